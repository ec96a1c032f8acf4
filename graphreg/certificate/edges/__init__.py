"""What a certificate says of edges: near, fused, split or undecided."""
