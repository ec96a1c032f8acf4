"""How well graphs and problems are conditioned, and how fast gossip mixes."""
