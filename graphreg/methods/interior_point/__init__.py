"""The interior-point method for the whole problem."""

from .interior_point import CLEARLY as CLEARLY
from .interior_point import InteriorPoint as InteriorPoint
