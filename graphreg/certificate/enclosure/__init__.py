"""Bounds that hold whatever rounding did: an exactly conserved point is enclosed next to the computed one.

Nothing is assumed of the minimiser. The mathematics: flows on a forest and prices in small linear systems can always be
moved by tiny amounts so that conservation holds exactly; how far is bounded in floating point, outwards, and the dual
value is bounded over all points that near.
"""

from .boxes import Enclosed
from .lower import Enclosure
from .upper import upper_bound

__all__ = ["Enclosed", "Enclosure", "upper_bound"]
