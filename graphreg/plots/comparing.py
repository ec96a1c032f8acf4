"""Figures of a comparison: how far above the optimum each method is, or how well it predicts, against what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..auditing import Audit
from ..base.escaping import caption, picture
from ..certificate import common, relative
from ..comparing import MEASURES, Comparison
from ..errors import ModelError
from ..running import Solution
from ..terms import Array
from .canvas import COSTS, LEAST_GAP, axes_for, described, finished, line_style, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (11.0, 8.0)  # inches
SCORED = ("rounds", "messages", "bytes")  # against which scores are drawn


def plot_comparison(comparison: Comparison, x: str | None = None, ax: Axes | None = None, y: str | None = None) -> Axes:
    """The scores, or the gaps, of all methods of a comparison against their cost.

    The score, of the rows held out or a function's, is that after the rounds that were looked at; markers are at the
    last of them.

    The gap is the distance of the best objective so far from the comparison's bound; both axes are logarithmic.

    As the bound is certified, each point of a line is a certified bound of the relative distance from the optimum.
    Large markers are the gaps that the runs certified by themselves, at their last check; a dotted line joins each to
    the end of its run's line, above which it lies, as a run knows less than the comparison. Messages and bytes are
    those of the method and its adaptation, without certificates, of scores too. Methods without rounds, and those that
    send nothing, are horizontal lines at what they reached, with their marker at the right. An algorithm whose messages
    nobody counts is left out of the pictures against messages and bytes, as the title says.

    Parameters
    ----------
    comparison : Comparison
    x : {"rounds", "messages", "bytes", "seconds"}, optional
        By default bytes for scores, and rounds for gaps; of scores seconds are not known.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    y : {"score", "gap"}, optional
        By default the score, where one was asked for.

    Raises
    ------
    ModelError
        For another x or y, where matplotlib is missing, or where there is nothing to draw.

    Examples
    --------
    >>> found = gr.compare(problem, [gr.PrimalDual()], progress=False)
    >>> gr.plots.plot_comparison(found).get_yscale()
    'log'
    """
    scored = _scored(comparison, y)
    x = ("bytes" if scored else "rounds") if x is None else x
    checks.one_of(*(SCORED if scored else COSTS))(x, "x")
    axes = axes_for(ax, (8.0, 5.0))
    (_draw_scores if scored else _draw_gaps)(comparison, x, axes)
    return finished(axes, _words(comparison, scored, x), 8.5)


def _draw_gaps(comparison: Comparison, x: str, axes: Axes) -> None:
    for k, (name, solution) in enumerate(comparison.solutions.items()):
        if name not in _silent(comparison, x):
            _draw(axes, name, solution, comparison.dual, x, k)
    described(axes, COSTS[x][1], "relative gap", "xy", "0.9")


def _scored(comparison: Comparison, y: str | None) -> bool:
    """True where scores are to be drawn, and not gaps."""
    known = ("score", "gap") if comparison.measure else ("gap",)
    (checks.one_of(*known) | None)(y, "y")
    scored = bool(comparison.measure) and y != "gap"
    if not (scored or np.isfinite(comparison.dual)):
        raise ModelError("there is nothing to draw: no run gave a certified bound")
    return scored


def _draw_scores(comparison: Comparison, x: str, axes: Axes) -> None:
    scores, column = comparison.scores(), {"rounds": "round"}.get(x, f"solving_{x}")
    for k, name in enumerate(comparison.solutions):
        curve = scores[scores["method"] == name]
        cost, score = (np.array(curve[each], dtype=float) for each in (column, comparison.measure))
        style: dict[str, Any] = {**line_style(k), "linewidth": 1.2, "markersize": 6, "label": picture(name)}
        if len(cost) and cost[-1] > 0:  # on a logarithmic axis there is no round 0
            seen = cost > 0
            axes.plot(cost[seen], score[seen], markevery=[-1], **style)
        elif len(cost) and cost[-1] == 0:  # nan where nobody counts
            edge: Any = axes.get_yaxis_transform()
            axes.plot([0.0, 1.0], score[[-1, -1]], markevery=[-1], transform=edge, clip_on=False, **style)
    label = picture(comparison.measure) + " of the rows held out" * (comparison.measure in MEASURES)
    described(axes, COSTS[x][1], label, "x", "0.9")


def _silent(comparison: Comparison, x: str) -> list[str]:
    """The algorithms that are left out against x, as nobody counts what they sent."""
    return [name for name in comparison.solutions if comparison.sent.get(name, ()) is None and x in SCORED[1:]]


def comparison_figure(comparison: Comparison, figure: Figure | None = None, y: str | None = None) -> Figure:
    """The plots of the gap against rounds, messages, bytes and seconds in one figure, or of the score against the first
    three, where one was asked for; the caption says what they measure by.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> len(gr.plots.comparison_figure(gr.compare(problem, [gr.ADMM()])).axes)
    4
    """
    scored = _scored(comparison, y)
    size = (SIZE[0], SIZE[1] / 2.0) if scored else SIZE
    whole: Figure = pyplot().figure(figsize=size, layout="constrained") if figure is None else figure
    panels = whole.subplots(1, 3, sharey=True, squeeze=False) if scored else whole.subplots(2, 2, sharey=True)
    for x, axes in zip(SCORED if scored else COSTS, panels.flat, strict=True):
        (_draw_scores if scored else _draw_gaps)(comparison, x, axes)
    for axes in panels[:, 1:].flat:
        axes.set_ylabel("")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    whole.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    whole.suptitle(caption(_words(comparison, scored), 120), fontsize="medium")
    return whole


def _words(comparison: Comparison, scored: bool, x: str = "bytes") -> str:
    """What is drawn, and what is not."""
    silent = _silent(comparison, x)
    left_out = f" Not drawn, as nobody counts their messages: {', '.join(silent)}." * bool(silent)
    if scored:
        what = "Scores of rows held out" if comparison.measure in MEASURES else f"Values of {comparison.measure}"
        return f"{what}, of the iterates: no certificate speaks of them. What certificates cost is left out.{left_out}"
    what = "Lines: the best objective so far above the bound. Large markers, dotted from the end of their line: "
    what += "the gap that the run certified by itself."
    if any(solution.own is not None for solution in comparison.solutions.values()):
        what += " Hollow: the objective above the bound, of baselines, which solve another problem."
    return f"{what} Bound: {comparison.reference}.{left_out}"


def _draw(axes: Axes, name: str, solution: Solution, bound: float, x: str, k: int) -> None:
    colour, style, mark = line_style(k).values()
    fill = colour if solution.own is None else "white"
    costs, gaps = _course(solution, bound, COSTS[x][0])
    end = _end(solution, bound)
    if len(costs) and costs[-1] > 0:
        axes.plot(costs, gaps, linestyle=style, marker=mark, color=colour, linewidth=1.2, markersize=3.5)
        axes.plot(costs[[-1, -1]], [gaps[-1], end], ":", color=colour, linewidth=1.0)
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
        return above(solution, solution.objective, bound)
    return max(certificate.relative_gap, LEAST_GAP) if certificate.valid else np.nan


def above(solution: Solution, objective: float, bound: float) -> float:
    """How far an objective lies above a bound, as a relative gap."""
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
    return cost[keep], np.array([above(solution, value, bound) for value in best[keep]])


# ---- an audit drawn: how far the points of a run are from the optimum ------------------------------------------------
def plot_audit(audit: Audit, ax: Axes | None = None) -> Axes:
    """The distance from the optimum against the rounds, both axes logarithmic; the dotted line is how far the optimum
    itself is known.

    Parameters
    ----------
    audit : Audit
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

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
    return finished(axes, audit.name or audit.measure, 9.0)
