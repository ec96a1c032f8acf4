"""The certified gap of runs, by rounds. matplotlib is imported when it is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..base.escaping import picture
from ..base.messages import shown
from ..comparing import distinct
from ..errors import ModelError
from ..running import Record, Solution
from ..terms import Array
from .canvas import COSTS, LEAST_GAP, axes_for, described, finished, legend_below, line_style, log_scale, titled
from .comparing import above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCREEN: dict[str, Any] = {"markersize": 4, "markerfacecolor": "white", "linewidth": 0.7, "zorder": 1.5}


def plot_trace(solutions: Solution | Sequence[Solution] | Mapping[str, Solution], ax: Axes | None = None) -> Axes:
    """The relative gap of runs against rounds, both axes logarithmic.

    Large markers on lines are certified gaps; the small hollow ones on thin dotted lines, in the colour of their run,
    are screens, cheap estimates that certify nothing. Of a run that was observed, ``observe="w"``, a line without
    markers stands in for these: how far the objective after each round lies above the bound that the run certified. A
    solution without rounds (an exact one) is a horizontal line at its certified gap.

    Parameters
    ----------
    solutions : Solution, sequence of them, or mapping from names to them
        For instance ``gr.compare(problem).solutions``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    ModelError
        Where matplotlib is missing, there is nothing to draw, or a name has no solution, or several.

    Examples
    --------
    >>> gr.plots.plot_trace(problem.solve(gr.PrimalDual())).get_yscale()
    'log'
    """
    runs = _named(solutions)
    if not runs:
        raise ModelError("plot_trace needs at least one solution")
    axes = axes_for(ax, (8.0, 5.0))
    kinds = [_draw_run(axes, name, solution, k) for k, (name, solution) in enumerate(runs.items())]
    if "rounds" in kinds:
        axes.plot([], [], color="0.4", label="line: objective above the bound")
    if "screens" in kinds:
        axes.plot([], [], "o:", **SCREEN, color="0.4", label="small: screens (not certified)")
    described(axes, "communication rounds", "relative gap", "xy", "0.9")
    return finished(axes, "Certified relative gap")


def _named(solutions: Solution | Sequence[Solution] | Mapping[str, Solution]) -> dict[str, Solution]:
    if isinstance(solutions, Solution):
        return {solutions.method: solutions}
    if isinstance(solutions, Mapping):
        for name, each in solutions.items():
            if not isinstance(each, Solution):
                raise ModelError(f"plot_trace draws one solution under each name, and {name!r} is {shown(each)}")
        return dict(solutions)
    runs: dict[str, Solution] = {}
    for solution in solutions:
        runs[distinct(solution.method, runs)] = solution
    return runs


def _draw_run(axes: Axes, name: str, solution: Solution, k: int) -> str:
    """Draws one run; what stands between its certificates: "rounds", "screens", or nothing."""
    records = [record for record in solution.trace.records if np.isfinite(record.relative_gap)]
    style = line_style(k)
    if not solution.trace.records:
        if solution.certificate.valid:
            gap = max(solution.certificate.relative_gap, LEAST_GAP)
            style["marker"] = None
            axes.axhline(gap, label=f"{picture(name)}, {gap:.1e}", **style)
        return ""
    certified = [(max(r.round, 1), max(r.relative_gap, LEAST_GAP)) for r in records if r.certified]
    screens = [(max(r.round, 1), max(r.relative_gap, LEAST_GAP)) for r in records if not r.certified]
    seen, points = _rounds_of(solution), np.array(certified).reshape(-1, 2)
    if len(seen):
        axes.plot(*seen.T, color=style["color"], linestyle=style["linestyle"], linewidth=1.2)
        axes.plot(*np.vstack([seen[-1:], points[-1:]]).T, ":", color=style["color"], linewidth=1.0)
    elif screens:
        axes.plot(*np.array(screens).T, ":", **SCREEN, color=style["color"], marker=style["marker"])
    axes.plot(*points.T, markersize=7, linewidth=1.2, label=f"{picture(name)} ({solution.status})", **style)
    return "rounds" if len(seen) else "screens" if screens else ""


def _rounds_of(solution: Solution) -> Array:
    """Each observed round with the gap from its objective to the bound of the run, (k, 2)."""
    seen, bound = solution.observed, solution.certificate.dual
    if seen is None or "w" not in seen or solution.own is not None or not solution.certificate.valid:
        return np.zeros((0, 2))
    each = [(k, solution.form.primal(w)) for k, w in zip(seen.rounds, seen["w"], strict=True) if k > 0]
    return np.array([(k, above(solution, P, bound)) for k, P in each if np.isfinite(P)]).reshape(-1, 2)


# ---- the two bounds of an optimum as a run closes them, and the gap between. matplotlib is imported when it is drawn
MOST = 5  # ticks of the objective, where they are written beside the lower bound
ALIKE = 1e-4  # of the objective: ticks that are nearer to each other have many digits in common
FAR = 1000.0  # a first bound so many times further from the optimum than the next one is cut off


def plot_bounds(solutions: Solution | Sequence[Solution], x: str = "rounds", ax: Axes | None = None) -> Axes:
    """The certified lower and upper bound of the optimum by what they cost, and the gap between them below.

    Large markers are certificates: the optimum of the problem lies between the two lines, the best bounds so far. The
    small grey dots behind are screens, which certify nothing: the objective at the iterate, or at what it was
    merged into (``polish``), below the estimated gap.

    Where the ticks of the objective would differ in their last digits only, they are what lies above the best lower
    bound, which the title says, in the unit that the label names.

    Parameters
    ----------
    solutions : Solution or sequence of them
        A run certifies where it expects to meet the gap asked for, often once. Several runs of one problem, say at 5,
        10, 20, 40 rounds and ``gap=0``, are drawn as one.
    x : {"rounds", "messages", "bytes", "seconds"}
        Messages and bytes are those of the method and its adaptation, without certificates.
    ax : matplotlib Axes, optional
        Where to draw: two thirds of it become the bounds, the rest the gap. A new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        That of the bounds; that of the gap is the last of its figure.

    Raises
    ------
    ModelError
        For another x, for runs of different methods, where there is no certificate with rounds to be drawn, where the
        solutions are of different problems, or where matplotlib is missing.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual())
    >>> gr.plots.plot_bounds(run, "bytes").get_ylabel()[:11]
    'above bound'
    """
    checks.one_of(*COSTS)(x, "x")
    runs = [solutions] if isinstance(solutions, Solution) else list(solutions)
    if isinstance(solutions, Mapping) or len({run.method for run in runs}) > 1:
        raise ModelError("runs of one method are drawn as one; plot_trace({name: run, ...}) draws those of several")
    certified, screens = _records(runs)
    axes = axes_for(ax, (7.5, 5.5))
    below = _part_below(axes)
    field, label = COSTS[x]
    _draw_bounds(axes, certified, screens, field)
    _draw_gap(below, certified, screens, field)
    lower, upper = max(record.dual for record in certified), min(record.primal for record in certified)
    logs = "x" if x in ("messages", "bytes") else ""  # of a few thousand to millions
    axes.tick_params(labelbottom=False)
    described(axes, "", _ticks(axes, lower), logs, "0.92")
    described(below, label, "relative gap", grid="0.92")
    if x == "rounds":
        locator: Any = below.xaxis.get_major_locator()
        locator.set_params(integer=True, min_n_ticks=1)
    titled(axes, _proved(lower, upper))
    whole: Any = axes.get_figure(root=True)
    legend_below(below if whole.get_layout_engine() else axes, *axes.get_legend_handles_labels())
    return axes


def _records(runs: list[Solution]) -> tuple[list[Record], list[Record]]:
    """The certificates and the screens of the runs, in the order of what they cost."""
    if any(run.form.shape != runs[0].form.shape for run in runs):
        raise ModelError("plot_bounds draws runs of one problem, and these have parameters of different shapes")
    if own := [run.method for run in runs if run.own is not None]:
        raise ModelError(f"the trace of {own[0]} has bounds of another problem, the one that it solves itself")
    records = sorted((r for run in runs for r in run.trace.records), key=lambda record: (record.round, record.seconds))
    certified = [r for r in records if r.certified and np.isfinite([r.primal, r.dual]).all()]
    if not certified:
        raise ModelError(
            "there is nothing to draw: no run has a certificate in its trace; exact solutions have no rounds"
        )
    return certified, [r for r in records if not r.certified]


def _part_below(axes: Axes) -> Axes:
    """New axes in the lower third of these, with the same x axis."""
    figure, spec = axes.figure, axes.get_subplotspec()
    if spec is not None:
        upper, lower = spec.subgridspec(2, 1, height_ratios=[2, 1])
        axes.set_subplotspec(upper)
        return figure.add_subplot(lower, sharex=axes)
    left, bottom, width, height = axes.get_position(original=True).bounds
    axes.set_position((left, bottom + 0.38 * height, width, 0.62 * height))
    return figure.add_axes((left, bottom, width, 0.3 * height), sharex=axes)


def _proved(lower: float, upper: float) -> str:
    """Both bounds to two digits of what is between them, rounded outwards."""
    size, gap = max(abs(lower), abs(upper)), upper - lower
    digits = int(np.clip(np.ceil(np.log10(size / gap)) + 2, 4, 17)) if size > 0.0 and gap > 0.0 else 17
    low, high = (
        Context(prec=digits, rounding=way).create_decimal(Decimal(bound))
        for bound, way in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    )
    return f"{low} <= optimum <= {high}"


def _ticks(axes: Axes, bound: float) -> str:
    """The label of the y axis, whose ticks are set where they would have many digits in common."""
    low, high = axes.get_ylim()
    if not 0.0 < high - low < ALIKE * max(abs(low), abs(high)):
        return "objective"
    unit = 10.0 ** math.floor(math.log10(high - low))
    step = next(step for step in (0.2, 0.5, 1.0, 2.0, 5.0) if (high - low) / (step * unit) <= MOST)
    numbers = step * np.arange(math.ceil((low - bound) / (step * unit)), math.floor((high - bound) / (step * unit)) + 1)
    axes.set_yticks(bound + unit * numbers, [f"{number:.3g}" for number in numbers])
    return f"above bound, {unit:.0e}"


def _of(records: list[Record], field: str) -> Array:
    return np.array([getattr(record, field) for record in records], dtype=float)


def _draw_bounds(axes: Axes, certified: list[Record], screens: list[Record], field: str) -> None:
    cost, upper, lower = (_of(certified, each) for each in (field, "primal", "dual"))
    best, worst = np.minimum.accumulate(upper), np.maximum.accumulate(lower)
    axes.plot(_of(screens, field), _of(screens, "primal"), ".", color="0.65", markersize=5, zorder=0.5)
    style: dict[str, Any] = {"step": "post", "facecolor": "0.95", "edgecolor": "0.85", "hatch": "//", "linewidth": 0.0}
    axes.fill_between(cost, worst, best, label="the optimum lies here", zorder=0.4, **style)
    axes.step(cost, best, "-", where="post", color="C3", linewidth=1.4)
    axes.step(cost, worst, "--", where="post", color="C0", linewidth=1.4)
    axes.plot(cost, upper, "v", color="C3", markersize=6)
    axes.plot(cost, lower, "^", color="C0", markersize=6)
    axes.plot([], [], "v-", color="C3", label="upper bound, certified")
    axes.plot([], [], "^--", color="C0", label="lower bound, certified")
    if screens:
        axes.plot([], [], ".", color="0.65", label="screens (not certified)")
    distance = np.sort(np.maximum(upper - worst[-1], best[-1] - lower))[::-1]
    first = next((k for k in range(len(distance) - 2) if distance[k] <= FAR * distance[k + 1]), 0)
    near = np.concatenate([upper, lower])
    near = near[np.maximum(near - worst[-1], best[-1] - near) <= distance[first]]
    pad = 0.08 * float(np.ptp(near)) or 1e-9 * abs(best[-1]) or 1.0
    axes.set_ylim(near.min() - pad, near.max() + pad)
    axes.ticklabel_format(axis="y", useOffset=False)


def _draw_gap(axes: Axes, certified: list[Record], screens: list[Record], field: str) -> None:
    shown = [record for record in screens if np.isfinite(record.relative_gap)]
    gaps = np.maximum(_of(shown, "relative_gap"), LEAST_GAP)
    axes.plot(_of(shown, field), gaps, ".", color="0.65", markersize=5, zorder=0.5)
    axes.plot(_of(certified, field), np.maximum(_of(certified, "relative_gap"), LEAST_GAP), "o-", color="0.2")
    log_scale(axes.yaxis)
