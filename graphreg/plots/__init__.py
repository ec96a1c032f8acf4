"""Pictures of problems and answers. Importing this does not import matplotlib."""

from ..form.notation import Written, dual, kkt, primal
from .auditing import plot_audit
from .bounds import plot_bounds
from .comparing import comparison_figure, plot_comparison
from .edge_tests import plot_tests
from .flows import plot_flows
from .graphs import plot_graph
from .ledgers import plot_ledger
from .maps import plot_map
from .paths import plot_path
from .penalties import penalty_figure, plot_penalty
from .recovering import plot_recovery
from .regions import plot_region
from .selecting import plot_selection
from .traces import plot_trace
from .validation import plot_cross_validation

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
