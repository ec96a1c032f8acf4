"""Certificates: a feasible primal value, a dual value at an explicitly feasible point, and what lies between."""

from .attainment.attainment import AtInfinity as AtInfinity
from .attainment.attainment import at_infinity as at_infinity
from .attainment.attainment import attained as attained
from .attainment.recession import recedes_exactly as recedes_exactly
from .certify import Certifier as Certifier
from .common_model.best_common import Common as Common
from .common_model.best_common import center as center
from .common_model.best_common import common as common
from .common_model.best_common import lengths as lengths
from .common_model.centring import centred as centred
from .convexity import strong_convexity as strong_convexity
from .definite import factor as factor
from .edges.clusters import STATES as STATES
from .edges.clusters import Clusters as Clusters
from .edges.clusters import clusters as clusters
from .edges.near import upper_gap as upper_gap
from .enclosure.lower import Enclosed as Enclosed
from .enclosure.lower import Enclosure as Enclosure
from .levels import levelled as levelled
from .record import Certificate as Certificate
from .record import relative as relative
from .remembered import Remembered as Remembered
from .remembered import check_point as check_point
from .repairing.feasible import feasible as feasible
from .repairing.repair import Repair as Repair
from .spot_checks import SpotChecks as SpotChecks
