"""How sure the estimates are: edge tests, confidence regions, hierarchical estimators."""

from .decentralised import confidence_region, estimate
from .regions import ConfidenceRegion, WaldTest, local_regions

__all__ = ["ConfidenceRegion", "WaldTest", "confidence_region", "estimate", "local_regions"]
