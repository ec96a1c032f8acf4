"""Heterogeneous federated learning on a graph (Wang, Zhao, Lin)."""
