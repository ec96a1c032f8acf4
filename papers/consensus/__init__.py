"""Statistical inference for decentralized federated learning (Gu, 2023)."""

# Of the files' claims, as the paper goes.
ORDER = ("sgd", "gossip", "errors", "conditions", "inference", "corrections")
