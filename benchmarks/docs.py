"""docs/benchmarks.md and docs/benchmarks.png, written from the stored runs of a full measurement."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .datasets import WORKLOADS, tiny
from .figure import draw
from .goals import HEADER as GOAL
from .goals import goals_rows
from .operations import HEADER as OPERATION
from .report import HEADER, TARGET, Rows
from .solvers import PREFIX, REFERENCE, SOLVERS
from .sweep import HEADER as SWEPT
from .sweep import draw_sweep, exponent_rows
from .worker import Limits, Run

PACKAGES = (
    *("numpy", "scipy", "numba", "cvxpy", "clarabel", "scs", "osqp", "prox_tv", "pycut-pursuit", "scikit-image"),
    *("scikit-learn", "skglm", "pyproximal"),
)
SHOWN = ("workload", "solver", "solve s", "first s", "ratio", "accuracy", "certified", "checks", "MB", "status")
COLUMNS = tuple(HEADER.index(name) for name in SHOWN)

TEXT = """\
# Speed

Written by `make bench ARGS="table --docs"`, of what was measured up to {day}.

## What is asked of the library

CPU seconds of one thread, certificates included; medians. "first s" may compile kernels. A goal is a time, an amount of
memory, a part of a rival's time, or a multiple of the best of all methods; "met" says how much of it was needed. What
is missed, and why, stands in [where time goes](where-time-goes.md).

{goals}

{operations}

## Against the size

Grids ("deep": far from end to end) and random graphs of degree 10 ("shallow"), means with l1 for d = 1, else
regressions with l2 and d + 10 samples per node, certified to 1e-6. Exponents p of time, rounds and memory against edge
components, from 10^4 of these on, of memory from 10^5 on: below, starting costs more than running. Rounds are those of
whatever `solve()` takes: on the grid of 10^4 Newton steps. A grid of 10^7 with d = 50 needs more than 16 GiB.

![time, rounds and memory against the number of edge components](sweep.png)

{exponents}

## Accuracy against time

![relative accuracy against CPU seconds, one panel per workload](benchmarks.png)

Workloads with a rival. Every mark is one setting of a solver (a tolerance, or a number of iterations), run in a process
of its own: CPU seconds to solve against relative accuracy, (P(w) - L) / |P(w)|, where w is what the solver answered, P
is evaluated by the benchmark, and L is the best lower bound that any certificate of graphreg gives. An answer is
therefore at least as accurate as it is drawn; in the grey zone nothing can be told apart. Dashed: the gap that graphreg
*certifies* along its run, which is what a user sees who does not know the optimum.

## The workloads

{workloads}

## Time to a relative accuracy of {target:g}

For each solver the fastest of its settings that gets there; where none does, its most accurate ("ratio > ..."). For
graphreg the accuracy has to be *certified*, and certificates are in its time; the others are judged by the lower bound
that graphreg found. "ratio" is to `solve()`, the default method, whose own methods stand in the first table; "checks"
is the share of its time that went into screens, certificates and polishes. Problems are built outside of these times
(CVXPY's compilation is inside: it is part of `solve`; so is the set-up of solvers that are given matrices). A solver
that takes less than ten seconds is run twice in its process, and the second time counts: "first s" is the first, in
which kernels may have been compiled.

{table}

## How it was measured

- {machine}
- {packages}
- One thread per process, at most {memory:g} GiB of memory and {seconds:g} CPU seconds; a solver that needed
  more than 20 CPU seconds, or gave no answer, was not run again on that workload.
- {repeats}. Ratios are those of one day's measurements
  on a machine that did other things as well: trust their order of magnitude.
- Not run this time: {absent}.
- Tolerances are the solvers' own: the same number means different things to different solvers, which is why accuracy
  is on the axis and not the tolerance.

## Who takes part where

A solver takes part where it minimises the very objective of the workload.

- Clarabel and SCS everywhere, OSQP where the problem is a quadratic programme: each through CVXPY, written by hand,
  stacked and sparse, and each given its matrices directly.
- prox_tv: chains (directly, by taut strings) and images (anisotropic, by splitting). It needs LAPACKE's headers
  (`liblapacke-dev` on Debian).
- pycut-pursuit: every total variation denoising, scalars by its function for squared losses and l1, `cp_d1_ql1b`
  (`cp_prox_tv`, which an earlier version of this page called for them, aborts), vectors with l1 by one such call per
  coordinate. For vectors with l2 the cuts of `cp_prox_tv` follow a few directions that a heuristic proposes, so it need
  not reach the optimum. The wheel of 0.1.4 is built for NumPy 1; `make bench` builds 0.1.3 from source:
  `pip install --no-binary pycut-pursuit --no-build-isolation pycut-pursuit`.
- pyproximal: means and regressions, by its primal-dual method and its ADMM, with steps that fit the curvatures.
- scikit-learn and skglm: a chain of at most 2,000 nodes, where the problem is a lasso in the differences. No other
  workload is one of their problems: their penalties are separable, or by groups that do not overlap.
- scikit-image: the chain. On images its isotropic method has another objective (it couples both differences of a
  pixel), and `denoise_tv_bregman(isotropic=False)`, run to convergence, stays 1e-2 above the optimum of ours.

A new rival is one file in `benchmarks/solvers/` and one entry in its `SOLVERS`; a new workload is one function in
`benchmarks/datasets.py`.

`python -m benchmarks --shares` prints the share of certificates alone, `--profile W4` the functions in which a run
spends its time, `--quick` takes a few minutes, `--report` prints the table of what is stored once more. Below the table
stands, for each workload, the time of `solve()` over that of its best rival, beside the ratio in
`benchmarks/ratios.json`: one that has grown by more than a fifth is shown as a regression; `--store` stores new ones.
`python -m benchmarks table` measures what stands above, each alone with `--only chain-1e5`; `python -m benchmarks
sweep` draws time, rounds and memory against the size, 10^3 to 10^7 edge components.
"""


def write_docs(
    runs: Sequence[Run], body: Rows, folder: Path, operations: Rows = (), sweeps: Sequence[Run] = ()
) -> Path:
    """Writes the text and its pictures; returns the path of the text."""
    here = [name for name in WORKLOADS if any(run.workload == name for run in runs)]
    parts = {
        "day": date.today().isoformat(),
        "goals": _markdown(GOAL, goals_rows(runs)),
        "operations": _markdown(OPERATION, operations),
        "exponents": _markdown(SWEPT, exponent_rows(sweeps)),
        "workloads": _markdown(("workload", "what"), [_described(name) for name in here]),
        "target": TARGET,
        "table": _markdown(SHOWN, [tuple(row[k] for k in COLUMNS) for row in body if _beside(row[1])]),
        "machine": machine(),
        "packages": packages(),
        "memory": Limits.memory,
        "seconds": Limits.seconds,
        "repeats": _repeats(runs),
        "absent": _absent(runs, here),
    }
    folder.mkdir(parents=True, exist_ok=True)
    rivals = {run.workload for run in runs if not run.solver.startswith(PREFIX) and run.solver != REFERENCE.name}
    draw([run for run in runs if run.workload in rivals], folder / "benchmarks.png")
    if sweeps:
        draw_sweep(sweeps, folder / "sweep.png")
    path = folder / "benchmarks.md"
    path.write_text(TEXT.format(**parts))
    return path


def _repeats(runs: Sequence[Run]) -> str:
    most = max(Counter((run.workload, run.solver, run.setting) for run in runs).values())
    return "Every setting was run once" if most == 1 else f"Medians of up to {most} repeats, solvers taken in turn"


def _beside(solver: str) -> bool:
    """Whether a row is one of the last table: rivals, and what `solve()` takes."""
    return not solver.startswith(PREFIX) or solver == f"{PREFIX}solve()"


def _absent(runs: Sequence[Run], workloads: Sequence[str]) -> str:
    """How many solvers take part, but were not run."""
    ran = {(run.workload, run.solver) for run in runs}
    part = {(name, solver.name) for solver in SOLVERS.values() for name in workloads if solver.applies(tiny(name))}
    return f"{len(part - ran)} of {len(part)} pairs of a solver and a workload"


def _described(name: str) -> tuple[str, ...]:
    function = WORKLOADS[name]
    return name, function().describe()


def machine() -> str:
    """The processor, its cores, the memory and the interpreter; no names of hosts."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    name = found.group(1).strip() if found else platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {system}"


def packages() -> str:
    """The versions of what takes part."""
    known: list[str] = []
    for name in PACKAGES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            known.append(f"{name} not installed")
    return ", ".join(known)


def _markdown(header: Sequence[str], body: Sequence[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (header, *body)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])
