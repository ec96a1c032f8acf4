"""The dual function of the flows alone, where every node is strictly convex: what flows are worth at once."""

from .added_up import AddedUp
from .flow_dual import CheapBound, FlowDual

__all__ = ["AddedUp", "CheapBound", "FlowDual"]
