"""Gossip: one model for all nodes, found by averaging with neighbours."""
