"""The figure: accuracy against time, one panel per workload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .datasets import TITLES
from .report import TARGET, accuracy, lower_bound, rungs
from .solvers import PREFIX, SOLVERS
from .worker import Run

COLUMNS = 4
TOP = 3.0  # relative accuracies beyond say nothing
COLOURS = ("#0b61a4", "#56a0d3", "#7fb8a8", "#d1495b", "#edae49", "#8d6a9f", "#2e933c", "#6b6b6b", "#b0713c", "#000000")
MARKERS = "osD^v<>PX*"


def draw(runs: Sequence[Run], path: Path) -> None:
    """Writes the figure of all workloads among the runs."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    workloads = list(dict.fromkeys(run.workload for run in runs))
    present = {run.solver for run in runs}
    solvers = [name for name in SOLVERS if name in present]
    columns = min(COLUMNS, max(len(workloads), 2))
    lines = -(-len(workloads) // columns)
    size = (3.1 * columns, 2.75 * lines + 0.9)
    drawing, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for axes in grid.flat[len(workloads) :]:
        axes.set_axis_off()
    for k, (axes, workload) in enumerate(zip(grid.flat, workloads, strict=False)):
        _panel(axes, [run for run in runs if run.workload == workload], solvers)
        axes.set_title(f"{workload}: {TITLES[workload]}", fontsize=9, loc="left")
        if k % columns == 0:
            axes.set_ylabel("relative accuracy")
        if k >= len(workloads) - columns:
            axes.set_xlabel("CPU seconds to solve")
    _legend(drawing, solvers)
    drawing.savefig(path, dpi=130)
    plt.close(drawing)


def _panel(axes: Any, runs: Sequence[Run], solvers: Sequence[str]) -> None:
    """Answers at every setting of each solver; certified gaps along the way; who gave no answer."""
    lower = lower_bound(runs)
    best = min((run.value for run in runs if run.answered), default=np.nan)
    floor = max(accuracy(best, lower), 1e-13)  # what is closer to the optimum than this cannot be told apart
    missing: list[str] = []
    for solver in solvers:
        k, found = solvers.index(solver), rungs(runs, solver)
        style = {"color": COLOURS[k % len(COLOURS)], "zorder": 3 if solver.startswith(PREFIX) else 2}
        if found:
            x, y = [rung.solve for rung in found], [np.clip(rung.accuracy, floor, TOP) for rung in found]
            axes.plot(x, y, marker=MARKERS[k % len(MARKERS)], ms=4, lw=1.4, **style)
            _certified(axes, min(found, key=lambda rung: rung.setting).runs[-1], style)
        elif any(run.solver == solver for run in runs):
            missing.append(solver.removeprefix("CVXPY + "))
    axes.axhline(TARGET, color="0.6", lw=0.8, ls=":", zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(min(floor, 1e-9) / 3, TOP)
    _at_least_a_decade(axes)
    axes.axhspan(min(floor, 1e-9) / 3, floor, color="0.92", zorder=0, lw=0)
    axes.tick_params(labelsize=8)
    if missing:
        axes.text(0.97, 0.97, "no answer: " + ",\n".join(missing), transform=axes.transAxes, fontsize=6.5, **_CORNER)


def _at_least_a_decade(axes: Any) -> None:
    """Widens a time axis on which little happens, so that ticks and distances compare with those of other panels."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axes.get_xlim()
    middle = np.sqrt(low * high)
    axes.set_xlim(min(low, middle / 12), max(high, middle * 12))
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_minor_formatter(NullFormatter())


_CORNER: dict[str, Any] = {"ha": "right", "va": "top", "color": "0.35"}


def _certified(axes: Any, run: Run, style: dict[str, Any]) -> None:
    """The gaps that were certified on the way to the last answer."""
    points = [(t, (P - Q) / abs(P)) for t, P, Q in run.trace if np.isfinite(P) and np.isfinite(Q)]
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(x, np.clip(y, 1e-14, TOP), ls="--", lw=1.0, marker=".", ms=3, **style)


def _legend(drawing: Any, solvers: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    shown = [
        Line2D([], [], color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], ms=4, lw=1.4, label=solver)
        for k, solver in enumerate(solvers)
    ]
    shown.append(Line2D([], [], color="0.3", ls="--", lw=1.0, marker=".", ms=3, label="certified gap along a run"))
    drawing.legend(
        handles=shown,
        loc="outside upper center",
        ncols=max(2, int(drawing.get_size_inches()[0] / 2.1)),
        frameon=False,
        fontsize=8,
    )
