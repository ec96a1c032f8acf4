"""Confidence regions."""

from .regions import ConfidenceRegion as ConfidenceRegion
from .regions import LocalRegions as LocalRegions
from .regions import WaldTest as WaldTest
from .regions import local_regions as local_regions
