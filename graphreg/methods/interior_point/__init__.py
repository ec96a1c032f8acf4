"""The interior-point method for the whole problem."""

from .interior_point import InteriorPoint as InteriorPoint
