"""Pictures of problems and answers. Importing this does not import matplotlib."""

from ..form.notation import Written, dual, kkt, primal
from .auditing import plot_audit
from .comparing import comparison_figure, plot_comparison
from .paths import plot_path
from .plots import plot_graph, plot_trace
from .recovering import plot_recovery
from .regions import plot_region
from .selecting import plot_selection
from .validation import plot_cross_validation

__all__ = [
    "Written",
    "comparison_figure",
    "dual",
    "kkt",
    "plot_audit",
    "plot_comparison",
    "plot_cross_validation",
    "plot_graph",
    "plot_path",
    "plot_recovery",
    "plot_region",
    "plot_selection",
    "plot_trace",
    "primal",
]
