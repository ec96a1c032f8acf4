"""Loopless local gradient methods for clusters that are known."""
