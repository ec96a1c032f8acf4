"""Statistical inference for decentralized federated learning (Gu, 2023)."""
