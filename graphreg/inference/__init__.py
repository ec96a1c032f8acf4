"""How sure the estimates are: edge tests, confidence regions, hierarchical estimators."""

from .components import Components as Components
from .decentralised import confidence_region as confidence_region
from .decentralised import estimate as estimate
from .edge_tests import edge_tests as edge_tests
from .estimators import EstimatorComparison as EstimatorComparison
from .estimators import JamesSteinEstimate as JamesSteinEstimate
from .estimators import compare_estimators as compare_estimators
from .estimators import james_stein as james_stein
from .hierarchical import HierarchicalEstimate as HierarchicalEstimate
from .hierarchical import hierarchical as hierarchical
from .local import LocalFits as LocalFits
from .local import local_fits as local_fits
from .regions import ConfidenceRegion as ConfidenceRegion
from .regions import WaldTest as WaldTest
from .regions import local_regions as local_regions
from .selection import EdgeSelection as EdgeSelection
from .selection import select_edges as select_edges
