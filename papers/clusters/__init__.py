"""Personalized federated learning with multiple known clusters (Lyu, Hanzely, Kolar, 2022)."""

# Of the files' claims, as the paper goes.
ORDER = ("model", "algorithm_1", "convergence", "algorithm_2", "communication", "estimators", "simulation", "study")
