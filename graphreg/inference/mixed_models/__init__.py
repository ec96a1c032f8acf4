"""Estimators for nodes that are drawn at random."""
