"""The dual function of the flows alone, where every node is strictly convex: what flows are worth at once."""

from .added_up import AddedUp
from .flow_dual import FlowDual, Look

__all__ = ["AddedUp", "FlowDual", "Look"]
