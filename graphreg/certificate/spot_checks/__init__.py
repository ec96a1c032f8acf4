"""Spot checks of the user's own terms at the points of a certificate: what it rests on is theirs to say, and may be
wrong."""

from . import laws as laws
from .laws import TermRows as TermRows
from .spot_checks import SpotChecks as SpotChecks
