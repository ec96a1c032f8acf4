"""The certified gap of runs, by rounds. matplotlib is imported when it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..comparing import distinct
from ..errors import ModelError
from ..escaping import picture
from ..running import Solution
from .canvas import LEAST_GAP, axes_for, legend_below, log_scale, look, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trace(solutions: Solution | Sequence[Solution] | Mapping[str, Solution], ax: Axes | None = None) -> Axes:
    """The relative gap of runs against rounds, both axes logarithmic.

    Markers on lines are certified gaps; the faint dots behind them are screens, cheap estimates that certify nothing. A
    solution without rounds (an exact one) is a horizontal line at its certified gap.

    Parameters
    ----------
    solutions : Solution, sequence of them, or mapping from names to them
        For instance ``gr.compare(problem).solutions``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModelError
        Where matplotlib is missing, or there is nothing to draw.
    """
    runs = _named(solutions)
    if not runs:
        raise ModelError("plot_trace needs at least one solution")
    axes = axes_for(ax, (8.0, 5.0))
    screened = [_draw_run(axes, name, solution, k) for k, (name, solution) in enumerate(runs.items())]
    if any(screened):
        axes.plot([], [], ".", color="0.65", markersize=4, label="screens (not certified)")
    log_scale(axes.xaxis, axes.yaxis)
    axes.set(xlabel="communication rounds", ylabel="relative gap")
    titled(axes, "Certified relative gap")
    axes.grid(True, which="major", color="0.9")
    legend_below(axes)
    return axes


def _named(solutions: Solution | Sequence[Solution] | Mapping[str, Solution]) -> dict[str, Solution]:
    if isinstance(solutions, Solution):
        return {solutions.method: solutions}
    if isinstance(solutions, Mapping):
        return dict(solutions)
    runs: dict[str, Solution] = {}
    for solution in solutions:
        runs[distinct(solution.method, runs)] = solution
    return runs


def _draw_run(axes: Axes, name: str, solution: Solution, k: int) -> bool:
    """Draws one run; whether it has screens."""
    records = [record for record in solution.trace.records if np.isfinite(record.relative_gap)]
    style = look(k)
    if not solution.trace.records:
        if solution.certificate.valid:
            gap = max(solution.certificate.relative_gap, LEAST_GAP)
            style["marker"] = None
            axes.axhline(gap, label=f"{picture(name)}, {gap:.1e}", **style)
        return False
    certified = [(max(r.round, 1), max(r.relative_gap, LEAST_GAP)) for r in records if r.certified]
    screens = [(max(r.round, 1), max(r.relative_gap, LEAST_GAP)) for r in records if not r.certified]
    if screens:
        axes.plot(*np.array(screens).T, ".", color="0.65", markersize=4, zorder=0.5)
    points = np.array(certified).reshape(-1, 2)
    axes.plot(*points.T, markersize=7, linewidth=1.2, label=f"{picture(name)} ({solution.status})", **style)
    return bool(screens)
