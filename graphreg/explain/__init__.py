"""Problems and answers explained: formulas in text and LaTeX, and plots. Importing this does not import matplotlib."""

from .comparing import comparison_figure, plot_comparison
from .plots import plot_graph, plot_trace
from .regions import plot_region
from .text import Written, dual, kkt, primal

__all__ = [
    "Written",
    "comparison_figure",
    "dual",
    "kkt",
    "plot_comparison",
    "plot_graph",
    "plot_region",
    "plot_trace",
    "primal",
]
