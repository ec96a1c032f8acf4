"""The penalties, one file per concept; whatever lies here is declared."""

from ._rows import pieces_of as pieces_of
from ._rows import row_norm as row_norm
from .ball import Ball as Ball
from .base import AbstractConstraint as AbstractConstraint
from .base import AbstractNorm as AbstractNorm
from .base import AbstractOneSided as AbstractOneSided
from .base import AbstractPenalty as AbstractPenalty
from .base import AbstractSmoothPenalty as AbstractSmoothPenalty
from .box import Box as Box
from .huber_norm import HuberNorm as HuberNorm
from .l1 import L1 as L1
from .l2 import L2 as L2
from .linf import LInf as LInf
from .non_negative import NonNegative as NonNegative
from .quadratic import Quadratic as Quadratic
from .squared_l2 import SquaredL2 as SquaredL2
from .squared_l2 import composition_of as composition_of
from .zero import Zero as Zero
