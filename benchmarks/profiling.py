"""The time of graphreg's own runs, by where it goes: the share of certificates, and a profile by function."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import graphreg as gr

from .datasets import WORKLOADS, tiny
from .report import table
from .solvers import as_problem, cpu_clock

GAP = 1e-6
REPEATS = 5
FUNCTIONS = 25
HEADER = (
    "workload",
    "method",
    "seconds",
    "rounds",
    "ms per round",
    "screens",
    "repairs",
    "checks s",
    "share",
    "polish",
)


def shares(workloads: Sequence[str]) -> str:
    """A table: CPU seconds of PrimalDual to 1e-6, and the shares that certificates and polishes take of them."""
    body: list[tuple[str, ...]] = []
    for name in workloads:
        problem = as_problem(WORKLOADS[name]())
        runs = [_solve(problem) for _ in range(REPEATS)]
        seconds = float(np.median([run.seconds for run in runs]))
        checks = float(np.median([run.trace.check_seconds for run in runs]))
        polish = float(np.median([run.trace.polish_seconds for run in runs]))
        last = runs[-1]
        repairs = len(last.trace.certified())
        round_ms = 1e3 * (seconds - checks - polish) / last.rounds
        counts = (str(last.rounds), f"{round_ms:.3g}", str(len(last.trace) - repairs), str(repairs))
        body.append(
            (
                name,
                last.method,
                f"{seconds:.3g}",
                *counts,
                f"{checks:.3g}",
                f"{checks / seconds:.0%}",
                f"{polish / seconds:.0%}",
            )
        )
    return table(body, HEADER)


def profile(workload: str) -> str:
    """The functions in which PrimalDual to 1e-6 spends its own time, without those that they call."""
    _solve(as_problem(tiny(workload)))
    problem, profiler = as_problem(WORKLOADS[workload]()), cProfile.Profile(time.process_time)
    began = time.process_time()
    profiler.enable()
    solution = _solve(problem)
    profiler.disable()
    seconds = time.process_time() - began
    body = [
        (f"{own / seconds:.1%}", f"{own:.4f}", f"{whole:.4f}", str(calls), _place(*where))
        for where, (_, calls, own, whole, _) in _by_own_time(profiler)[:FUNCTIONS]
    ]
    title = f"{workload}: {seconds:.3g} CPU seconds under the profiler, {solution.rounds} rounds, {solution.status}\n\n"
    return title + table(body, ("share", "own s", "with calls s", "calls", "function"))


def _solve(problem: gr.Problem) -> gr.Solution:
    with cpu_clock():
        return problem.solve(gr.PrimalDual(), gap=GAP, progress=False, on_failure="return")


def _by_own_time(profiler: cProfile.Profile) -> list[tuple[tuple[str, int, str], tuple[int, int, float, float, dict]]]:
    found = pstats.Stats(profiler).stats  # pyright: ignore[reportAttributeAccessIssue]  (not in the type stubs)
    return sorted(found.items(), key=lambda item: -item[1][2])


def _place(file: str, line: int, function: str) -> str:
    """graphreg/form/form.py:70 apply, or numpy's and scipy's module and function."""
    parts = Path(file).parts
    for package in ("graphreg", "numpy", "scipy"):
        if package in parts:
            last = len(parts) - 1 - parts[::-1].index(package)
            return f"{'/'.join(parts[last:])}:{line} {function}"
    return f"{parts[-1]}:{line} {function}" if line else function
