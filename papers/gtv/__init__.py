"""Clustered federated learning via generalized total variation minimization (SarcheshmehPour, Tian, Zhang, Jung)."""

# Of the files' claims, as the paper goes.
ORDER = ("duality", "algorithm_1", "recovering", "critical", "high_dimension", "chains", "blocks", "stars", "digits")
