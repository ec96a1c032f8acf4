"""Neural networks at the nodes: PyTorch modules, tied along the edges of a graph. Not convex: no certificate."""

from .local_networks import LocalNetworks as LocalNetworks
from .training import Trained as Trained
from .training import train as train

__all__ = ["LocalNetworks", "Trained", "train"]
