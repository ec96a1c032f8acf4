"""Confidence regions."""

from .regions import INDEFINITE as INDEFINITE
from .regions import POINTS as POINTS
from .regions import SINGULAR as SINGULAR
from .regions import ConfidenceRegion as ConfidenceRegion
from .regions import LocalRegions as LocalRegions
from .regions import WaldTest as WaldTest
from .regions import check_level as check_level
from .regions import flat_direction as flat_direction
from .regions import form_of as form_of
from .regions import local_regions as local_regions
from .regions import names_of as names_of
