"""The penalties, one file per concept."""

from ._base import AbstractConstraint, AbstractNorm, AbstractOneSided, AbstractPenalty
from .ball import Ball
from .box import Box
from .huber_norm import HuberNorm
from .l1 import L1
from .l2 import L2
from .linf import LInf
from .non_negative import NonNegative
from .quadratic import Quadratic
from .squared_l2 import SquaredL2
from .zero import Zero

__all__ = [
    "L1",
    "L2",
    "AbstractConstraint",
    "AbstractNorm",
    "AbstractOneSided",
    "AbstractPenalty",
    "Ball",
    "Box",
    "HuberNorm",
    "LInf",
    "NonNegative",
    "Quadratic",
    "SquaredL2",
    "Zero",
]
