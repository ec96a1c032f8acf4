"""What the papers prove, computed on the user's problem: strengths, recovery, spectra, bounds, mixing."""

from .strength import StrengthMax as StrengthMax
from .strength import strength_max as strength_max
