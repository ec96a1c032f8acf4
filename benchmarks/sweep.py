"""``python -m benchmarks sweep``: time, rounds and memory against the number of edge components, with exponents.

Grids are deep (their diameter grows with the square root of their size), random graphs of degree 10 shallow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .datasets import find
from .report import load, merged, save, table
from .solvers import PREFIX, SOLVERS
from .worker import Limits, Run, measure

FAMILIES, WIDTHS = ("deep", "shallow"), (1, 10, 50)
SIZES = (1e3, 1e4, 1e5, 1e6, 1e7)
# components from which on exponents are fitted: below, starting costs more than running, and buffers more than arrays
FITTED = {"solve": 1e4, "rounds": 1e4, "memory": 1e5}
GAP = 1e-6
WHAT = {"solve": "CPU seconds to solve", "rounds": "rounds", "memory": "MB beyond the imports"}
HEADER = ("graph", "d", "solver", *(f"exponent of {name}" for name in ("time", "rounds", "memory")), "largest, s", "MB")
COLOURS, STYLES = {1: "#0b61a4", 10: "#d1495b", 50: "#2e933c"}, {"deep": ("-", "o"), "shallow": ("--", "s")}


def names(sizes: Sequence[float] = SIZES) -> list[list[str]]:
    """The workloads, of each family from small to large."""
    return [[f"{kind}-{d}-{size:.0e}".replace("e+0", "e") for size in sizes] for kind in FAMILIES for d in WIDTHS]


def sweep(solvers: Sequence[str], sizes: Sequence[float], repeats: int, limits: Limits, out: Path) -> list[Run]:
    """Every size of every family in turn, until one takes too long; the runs of other solvers are kept."""
    path = out / "sweep.json"
    runs = load(path)
    order = [name for family in names() for name in family]
    for family in names(sizes):
        for solver in solvers:
            for name in family:
                new = _measured(name, solver, repeats, limits)
                runs = merged(runs, new, lambda each: order.index(each) if each in order else -1)
                save(runs, path)
                if not all(run.answered for run in new):
                    break
    return runs


def _measured(name: str, solver: str, repeats: int, limits: Limits) -> list[Run]:
    objective, runs = find(name), list[Run]()
    for _ in range(repeats):
        runs.append(measure(objective, solver, GAP, limits))
        print(f"  {name}: {solver}: {runs[-1].solve:.3g} s {runs[-1].status}", flush=True)
        if not runs[-1].answered or runs[-1].solve > 60.0:
            break
    return runs


def points(runs: Sequence[Run], solver: str, kind: str, d: int, what: str) -> tuple[Any, Any]:
    """Numbers of edge components, and medians of one measure there, of what was certified."""
    found: dict[float, list[float]] = {}
    for run in runs:
        family, width, size = run.workload.split("-")
        if (run.solver, family, int(width)) == (solver, kind, d) and run.gap <= GAP:
            value = run.megabytes - run.before if what == "memory" else float(getattr(run, what))
            found.setdefault(float(size), []).append(value)
    sizes = sorted(found)
    return np.array(sizes), np.array([float(np.median(found[size])) for size in sizes])


def exponent(sizes: Any, values: Any, what: str) -> float:
    """p of values ~ sizes^p, by least squares of logarithms; nan of fewer than two points."""
    large = (sizes >= FITTED[what]) & (values > 0.0)
    if large.sum() < 2:
        return np.nan
    return float(np.polyfit(np.log(sizes[large]), np.log(values[large]), 1)[0])


def _power(p: float) -> str:
    return f"{p:.2f}" if np.isfinite(p) else "too few points"


def exponents(runs: Sequence[Run]) -> str:
    """A table of `exponent_rows`."""
    return table(exponent_rows(runs), HEADER)


def exponent_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """One row per family, width and solver."""
    body: list[tuple[str, ...]] = []
    for kind in FAMILIES:
        for d in WIDTHS:
            for solver in dict.fromkeys(run.solver for run in runs):
                found = {what: points(runs, solver, kind, d, what) for what in WHAT}
                sizes, seconds = found["solve"]
                if sizes.size:
                    fitted = [_power(exponent(*found[what], what)) for what in WHAT]
                    last = f"{sizes[-1]:.0e}: {seconds[-1]:.3g}"
                    body.append((kind, str(d), solver, *fitted, last, f"{found['memory'][1][-1]:.0f}"))
    return body


def draw_sweep(runs: Sequence[Run], path: Path) -> None:
    """Three panels for each solver: time, rounds, memory."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    solvers = [name for name in SOLVERS if any(run.solver == name for run in runs)]
    size = (10.5, 3.3 * len(solvers) + 0.3)
    drawing, grid = plt.subplots(len(solvers), 3, figsize=size, layout="constrained", squeeze=False)
    for line, solver in zip(grid, solvers, strict=True):
        for axes, what in zip(line, WHAT, strict=True):
            _panel(axes, runs, solver, what)
        line[0].set_title(solver.removeprefix(PREFIX), fontsize=9, loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("edge components, m d")
    drawing.savefig(path, dpi=130)
    plt.close(drawing)


def _panel(axes: Any, runs: Sequence[Run], solver: str, what: str) -> None:
    for kind, (style, marker) in STYLES.items():
        for d, colour in COLOURS.items():
            sizes, values = points(runs, solver, kind, d, what)
            known = values > 0.0  # less memory than a tiny problem, or no rounds, is no point
            if known.any():
                label = f"{kind}, d = {d}: {_power(exponent(sizes, values, what))}"
                axes.plot(sizes[known], values[known], style, marker=marker, color=colour, ms=3.5, lw=1.3, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylabel(WHAT[what])
    axes.tick_params(labelsize=8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6.5, frameon=False, title="exponent", title_fontsize=6.5)
