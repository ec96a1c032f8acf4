"""Certificates: a feasible primal value, a dual value at an explicitly feasible point, and what lies between."""

from .attainment import AtInfinity as AtInfinity
from .attainment import at_infinity as at_infinity
from .attainment import attained as attained
from .best_common import Common as Common
from .best_common import center as center
from .best_common import common as common
from .best_common import lengths as lengths
from .certify import Certifier as Certifier
from .enclosure import Enclosed as Enclosed
from .recession import recedes_exactly as recedes_exactly
from .record import Certificate as Certificate
from .record import relative as relative
