"""The question whether the infimum is reached, decided in exact arithmetic on directions without end."""

from .attainment import AtInfinity as AtInfinity
from .attainment import at_infinity as at_infinity
from .attainment import attained as attained
