"""Tests of edges: whether two nodes have the same parameters."""

from .edges import CORRECTIONS as CORRECTIONS
from .edges import DOUBT as DOUBT
from .edges import FEW as FEW
from .edges import KINDS as KINDS
from .edges import Found as Found
from .edges import edge_tests as edge_tests
