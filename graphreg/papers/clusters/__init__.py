"""Personalized federated learning with multiple known clusters (Lyu, Hanzely, Kolar, 2022)."""
