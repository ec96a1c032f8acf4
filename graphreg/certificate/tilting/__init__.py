"""The dual function of the flows alone, where every node is strictly convex: what flows are worth at once."""

from .flow_dual import FlowDual, Look
from .squares import Squares

__all__ = ["FlowDual", "Look", "Squares"]
