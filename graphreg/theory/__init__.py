"""What the papers prove of a user's own problem, computed."""

from .connectivity import WellConnected, well_connected

__all__ = ["WellConnected", "well_connected"]
