"""The penalties, one file per concept; whatever lies here is imported, and so declared."""

from ...declaring import declared, import_files
from . import tried as tried
from ._rows import INSIDE as INSIDE
from ._rows import LEAST_SLACK as LEAST_SLACK
from ._rows import beside as beside
from ._rows import by_row as by_row
from ._rows import column as column
from ._rows import longest as longest
from ._rows import norm_bound as norm_bound
from ._rows import pieces_of as pieces_of
from ._rows import row_norm as row_norm
from .ball import Ball as Ball
from .base import AbstractAbsoluteNorm as AbstractAbsoluteNorm
from .base import AbstractConstraint as AbstractConstraint
from .base import AbstractEntrywise as AbstractEntrywise
from .base import AbstractNorm as AbstractNorm
from .base import AbstractOneSided as AbstractOneSided
from .base import AbstractPenalty as AbstractPenalty
from .base import AbstractSmoothPenalty as AbstractSmoothPenalty
from .base import AbstractSupercoercive as AbstractSupercoercive
from .base import extent as extent
from .base import gauge_around as gauge_around
from .base import has_kink as has_kink
from .base import is_equality as is_equality
from .base import pulls_at_zero as pulls_at_zero
from .base import slope_at_zero as slope_at_zero
from .box import Box as Box
from .domain import FlowDomain as FlowDomain
from .domain import OneSidedDomain as OneSidedDomain
from .domain import OwnDomain as OwnDomain
from .huber_norm import HuberNorm as HuberNorm
from .l1 import L1 as L1
from .l2 import L2 as L2
from .linf import LInf as LInf
from .non_negative import NonNegative as NonNegative
from .quadratic import Quadratic as Quadratic
from .squared_l2 import SquaredL2 as SquaredL2
from .zero import Zero as Zero

import_files(__name__, __path__)
globals().update(declared(AbstractPenalty, users=False))  # so that a penalty can be imported from here, too
