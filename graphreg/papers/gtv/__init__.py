"""Clustered federated learning via generalized total variation minimization (SarcheshmehPour, Tian, Zhang, Jung)."""
