"""The table, the CSV file and the figure of the speed measurements."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .solvers import CLARABEL
from .worker import REFERENCE, Run

# how many times faster than CVXPY + Clarabel graphreg is asked to be
ASKED = {"W1-l2": 100, "W1-l1": 100, "W2": 25, "W3-300": 10, "W4": 50, "W6": 5}
HEADER = (
    *("workload", "solver", "solve s", "build s", "ratio", "asked"),
    *("above bound", "gap", "rounds", "MB", "runs", "status"),
)


def rows(runs: Sequence[Run], objective: dict[int, float]) -> list[tuple[str, ...]]:
    """One row per workload and solver: medians, and the ratio to graphreg's median.

    ``objective`` maps id(run) to P of its answer; "above bound" is (P - best lower bound) / P: what is certain of the
    accuracy of any solver.
    """
    out: list[tuple[str, ...]] = []
    for workload in dict.fromkeys(run.workload for run in runs):
        here = [run for run in runs if run.workload == workload]
        lower = max(run.lower for run in here)
        own = _median([run.solve for run in here if run.solver == "graphreg"])
        for solver in dict.fromkeys(run.solver for run in here if run.solver != REFERENCE):
            group = [run for run in here if run.solver == solver]
            solve = _median([run.solve for run in group])
            values = [objective[id(run)] for run in group if run.w is not None]
            above = max(((value - lower) / abs(value) for value in values), default=np.nan)
            asked = ASKED.get(workload) if solver == CLARABEL else None
            out.append(
                (
                    workload,
                    solver,
                    _number(solve),
                    _number(_median([run.build for run in group])),
                    "" if solver == "graphreg" else _number(solve / own),
                    "" if asked is None else f">= {asked}",
                    _number(above),
                    _number(max(run.gap for run in group)),
                    str(group[-1].rounds or ""),
                    _number(_median([run.megabytes for run in group])),
                    str(len(group)),
                    group[-1].status,
                )
            )
    return out


def table(body: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in (HEADER, *body)) for k in range(len(HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (HEADER, *body)]
    return "\n".join([lines[0].rstrip(), "  ".join("-" * width for width in widths), *(x.rstrip() for x in lines[1:])])


def write(body: Sequence[tuple[str, ...]], folder: Path) -> None:
    """speed.csv and speed.png."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "speed.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *body])
    figure(body, folder / "speed.png")


def figure(body: Sequence[tuple[str, ...]], path: Path) -> None:
    """CPU seconds per workload and solver, logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    workloads = list(dict.fromkeys(row[0] for row in body))
    solvers = list(dict.fromkeys(row[1] for row in body))
    drawing, axes = plt.subplots(figsize=(1.5 + 1.2 * len(workloads), 3.6), layout="constrained")
    for k, solver in enumerate(solvers):
        seconds = {row[0]: float(row[2]) for row in body if row[1] == solver and row[2]}
        places = [workloads.index(name) + (k - (len(solvers) - 1) / 2) * 0.27 for name in seconds]
        bars = axes.bar(places, list(seconds.values()), 0.25, label=solver)
        axes.bar_label(bars, fmt="%.2g", fontsize=7)
    axes.set_yscale("log")
    axes.margins(y=0.15)
    axes.set_xticks(range(len(workloads)), workloads)
    axes.set_ylabel("CPU seconds")
    axes.set_title("graphreg certifies a relative gap of 1e-6; the others stop at their own tolerances", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    drawing.savefig(path, dpi=150)
    plt.close(drawing)


def _median(values: list[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.median(known)) if known else float("nan")


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ""
