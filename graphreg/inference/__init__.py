"""How sure the estimates are: edge tests, confidence regions, hierarchical estimators."""

from .edges.edges import edge_tests as edge_tests
from .edges.selection import EdgeSelection as EdgeSelection
from .edges.selection import select_edges as select_edges
from .local import LocalFits as LocalFits
from .local import local_fits as local_fits
from .mixed_models.components import Components as Components
from .mixed_models.estimators import EstimatorComparison as EstimatorComparison
from .mixed_models.estimators import compare_estimators as compare_estimators
from .mixed_models.hierarchical import hierarchical as hierarchical
from .mixed_models.james_stein import JamesSteinEstimate as JamesSteinEstimate
from .mixed_models.james_stein import james_stein as james_stein
from .mixed_models.mixed import HierarchicalEstimate as HierarchicalEstimate
from .regions.decentralised import confidence_region as confidence_region
from .regions.decentralised import estimate as estimate
from .regions.regions import ConfidenceRegion as ConfidenceRegion
from .regions.regions import WaldTest as WaldTest
from .regions.regions import local_regions as local_regions
