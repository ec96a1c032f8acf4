"""Personalized federated learning with multiple known clusters (Lyu, Hanzely, Kolar, 2022)."""

ORDER = (
    "model",
    "algorithm_1",
    "convergence",
    "algorithm_2",
    "communication",
    "estimators",
    "simulation",
    "study",
)  # of the files' claims, as the paper goes
