"""Problems and answers explained: formulas in text and LaTeX, and plots. Importing this does not import matplotlib."""

from .plots import plot_graph, plot_trace
from .text import Written, dual, kkt, primal

__all__ = ["Written", "dual", "kkt", "plot_graph", "plot_trace", "primal"]
