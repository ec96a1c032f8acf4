"""Heterogeneous federated learning on a graph (Wang, Zhao, Lin)."""

# Of the files' claims, as the paper goes.
ORDER = ("model", "algorithm_1", "algorithm_2", "selection", "theory", "bounds", "simulations", "election")
