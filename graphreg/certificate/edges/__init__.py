"""The states of edges that a certificate proves: near, fused, split or undecided."""
