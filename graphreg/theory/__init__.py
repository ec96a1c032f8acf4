"""What the papers prove of a user's own problem, computed."""

from .well_connected import WellConnected, well_connected
from .guarantee import Recovery, recovery

__all__ = ["Recovery", "WellConnected", "recovery", "well_connected"]
