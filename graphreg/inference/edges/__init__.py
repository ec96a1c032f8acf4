"""Tests of edges: whether two nodes have the same parameters."""

from .edges import edge_tests as edge_tests
