"""The dual function of the flows alone, where every node is strictly convex: what flows are worth at once."""

from .flow_dual import FlowDual, Look

__all__ = ["FlowDual", "Look"]
