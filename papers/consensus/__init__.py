"""Statistical inference for decentralized federated learning (Gu, 2023)."""

ORDER = ("sgd", "gossip", "errors", "conditions", "inference", "corrections")  # of the files' claims, as the paper goes
