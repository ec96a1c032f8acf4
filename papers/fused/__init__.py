"""Heterogeneous federated learning on a graph (Wang, Zhao, Lin)."""

ORDER = (
    "model",
    "algorithm_1",
    "algorithm_2",
    "selection",
    "theory",
    "bounds",
    "simulations",
    "election",
)  # of the files' claims, as the paper goes
