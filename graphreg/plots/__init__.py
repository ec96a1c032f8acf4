"""Pictures of problems and answers. Importing this does not import matplotlib."""

from ..form.notation import Written, dual, kkt, primal
from .comparing import comparison_figure, plot_audit, plot_comparison
from .flows import plot_flows, plot_ledger
from .graphs import plot_graph, plot_recovery
from .inference import plot_region, plot_selection, plot_tests
from .layouts import given_places as given_places
from .maps import plot_map
from .penalties import penalty_figure, plot_penalty
from .shapes import Shape as Shape
from .shapes import shapes_of as shapes_of
from .traces import plot_bounds, plot_trace
from .tuning import plot_cross_validation, plot_path

__all__ = [
    "Written",
    "comparison_figure",
    "dual",
    "kkt",
    "penalty_figure",
    "plot_audit",
    "plot_bounds",
    "plot_comparison",
    "plot_cross_validation",
    "plot_flows",
    "plot_graph",
    "plot_ledger",
    "plot_map",
    "plot_path",
    "plot_penalty",
    "plot_recovery",
    "plot_region",
    "plot_selection",
    "plot_tests",
    "plot_trace",
    "primal",
]
