"""Figures of a comparison: how far above the optimum each method is, against what it cost to get there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..auditing import Audit
from ..base.escaping import caption, picture
from ..certificate import common, relative
from ..comparing import Comparison
from ..errors import ModelError
from ..running import Solution
from ..terms import Array
from .canvas import COSTS, LEAST_GAP, axes_for, described, finished, line_style, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (11.0, 8.0)  # inches


def plot_comparison(comparison: Comparison, x: str = "rounds", ax: Axes | None = None) -> Axes:
    """The distance of the best objective so far from the comparison's bound, against its cost; both axes logarithmic.

    As the bound is certified, each point of a line is a certified bound of the relative distance from the optimum.
    Large markers are the gaps that the runs certified by themselves, at their last check. Messages and bytes are those
    of the method and its adaptation, without certificates. Methods without rounds, and those that send nothing, are
    horizontal lines at what they reached, with their marker at the right.

    Parameters
    ----------
    comparison : Comparison
    x : {"rounds", "messages", "bytes", "seconds"}
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        For another x, where matplotlib is missing, or where there is nothing to draw.
    """
    checks.one_of(*COSTS)(x, "x")
    if not np.isfinite(comparison.bound):
        raise ModelError("there is nothing to draw: no run gave a certified bound")
    axes = axes_for(ax, (8.0, 5.0))
    for k, (name, solution) in enumerate(comparison.solutions.items()):
        _draw(axes, name, solution, comparison.bound, x, k)
    described(axes, COSTS[x][1], "relative gap", "xy", "0.9")
    return finished(axes, _words(comparison), 8.5) if ax is None else axes


def comparison_figure(comparison: Comparison, figure: Figure | None = None) -> Figure:
    """The plots against rounds, messages, bytes and seconds in one figure; the caption says what they measure by.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> len(gr.plots.comparison_figure(gr.compare(problem, [gr.ADMM()])).axes)
    4
    """
    whole: Figure = pyplot().figure(figsize=SIZE, layout="constrained") if figure is None else figure
    panels = whole.subplots(2, 2, sharey=True)
    for x, axes in zip(COSTS, panels.flat, strict=True):
        plot_comparison(comparison, x, axes)
    for axes in panels[:, 1]:
        axes.set_ylabel("")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    whole.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    whole.suptitle(caption(_words(comparison), 120), fontsize="medium")
    return whole


def _words(comparison: Comparison) -> str:
    what = "Lines: the best objective so far above the bound. Markers: the gap that the run certified by itself."
    if any(solution.own is not None for solution in comparison.solutions.values()):
        what += " Hollow: the objective above the bound, of baselines, which solve another problem."
    return f"{what} Bound: {comparison.reference}."


def _draw(axes: Axes, name: str, solution: Solution, bound: float, x: str, k: int) -> None:
    colour, style, mark = line_style(k).values()
    fill = colour if solution.own is None else "white"
    costs, gaps = _course(solution, bound, COSTS[x][0])
    end = _end(solution, bound)
    if len(costs) and costs[-1] > 0:
        axes.plot(costs, gaps, linestyle=style, marker=".", color=colour, linewidth=1.2, markersize=3)
        axes.plot([costs[-1]], [end], mark, color=colour, markerfacecolor=fill, markersize=7)
    elif x == "seconds":
        axes.plot([solution.seconds], [end], mark, color=colour, markerfacecolor=fill, markersize=7)
    else:
        axes.axhline(end, color=colour, linestyle=style, linewidth=1.0)
        edge: Any = axes.get_yaxis_transform()
        axes.plot([1.0], [end], mark, color=colour, markerfacecolor=fill, markersize=7, transform=edge, clip_on=False)
    label = f"{picture(name)} ({solution.status})"  # one entry, whatever was drawn
    axes.plot([], [], linestyle=style, marker=mark, color=colour, markerfacecolor=fill, label=label)


def _end(solution: Solution, bound: float) -> float:
    """The gap that the run certified; of a baseline how far its objective lies above the bound."""
    certificate = solution.certificate
    if solution.own is not None:
        return _above(solution, solution.objective, bound)
    return max(certificate.relative_gap, LEAST_GAP) if certificate.valid else np.nan


def _above(solution: Solution, objective: float, bound: float) -> float:
    return max(relative(objective - bound, objective, bound, common(solution.form).floor), LEAST_GAP)


def _course(solution: Solution, bound: float, field: str) -> tuple[Array, Array]:
    """The cost at each check, and how far the best objective so far lay above the bound. The trace of a baseline
    is of its own problem: only its last cost says something of this one."""
    records = solution.trace.records[0 if solution.own is None else -1 :]
    cost = np.array([getattr(record, field) for record in records], dtype=float)
    if solution.own is not None:
        return cost, np.full(len(cost), np.nan)
    primal = np.array([record.primal for record in records], dtype=float)
    best = np.minimum.accumulate(np.where(np.isfinite(primal), primal, np.inf))
    keep = np.isfinite(best)
    return cost[keep], np.array([_above(solution, value, bound) for value in best[keep]])


# ---- an audit drawn: how far the points of a run are from the optimum ------------------------------------------------
def plot_audit(audit: Audit, ax: Axes | None = None) -> Axes:
    """The distance from the optimum against the rounds, both axes logarithmic; the dotted line is how far the optimum
    itself is known.

    Parameters
    ----------
    audit : Audit
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        Where the algorithm gave no points, or matplotlib is missing.
    """
    if not len(audit.distances):
        raise ModelError(f"there is nothing to draw: {audit.algorithm} gave no points")
    axes = axes_for(ax, (8.0, 5.0))
    rounds, distance = audit.distances.T
    keep = np.isfinite(distance)
    label = f"{picture(audit.algorithm)} ({audit.verdict})"
    axes.plot(rounds[keep], np.maximum(distance[keep], LEAST_GAP), ".-", linewidth=1.2, markersize=3, label=label)
    if np.isfinite(audit.radius):
        known = max(audit.radius, LEAST_GAP)
        axes.axhline(known, color="0.5", linestyle=":", linewidth=1.0, label="how far the optimum itself is known")
    described(axes, "rounds", "distance from the optimum", "xy", "0.9")
    return finished(axes, audit.name or audit.measure, 9.0) if ax is None else axes
