"""How sure the estimates are: edge tests, confidence regions, hierarchical estimators."""

from .edges import edge_tests as edge_tests
from .selection import EdgeSelection as EdgeSelection
from .selection import select_edges as select_edges
