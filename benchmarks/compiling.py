"""Seconds of compiling (stacked against one expression per edge), and of ``import graphreg``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from .datasets import w4
from .objective import Objective
from .solvers import as_problem
from .worker import THREADS


def import_seconds(module: str = "graphreg", repeats: int = 5) -> float:
    """The median CPU time of importing it, in fresh processes."""
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    run = [sys.executable, "-c", code]
    env = {**os.environ, **THREADS}
    done = [subprocess.run(run, env=env, capture_output=True, text=True, check=True) for _ in range(repeats)]
    return float(np.median([float(d.stdout) for d in done]))


def compile_seconds(repeats: int = 3) -> tuple[float, float]:
    """CPU seconds to compile W4 for Clarabel: by graphreg (stacked), and with one expression per edge.

    Both end with CVXPY's ``get_problem_data``; building graphreg's Problem is in its time.
    """
    objective = w4()
    _timed(_stacked, objective)
    stacked = float(np.median([_timed(_stacked, objective) for _ in range(repeats)]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Objective contains too many subexpressions")  # which is the point
        return stacked, _timed(_per_edge, objective)


def _timed(compile_it: Any, objective: Objective) -> float:
    began = time.process_time()
    compile_it(objective).get_problem_data("CLARABEL")
    return time.process_time() - began


def _stacked(objective: Objective) -> Any:
    return as_problem(objective).compile().cvxpy


def _per_edge(objective: Objective) -> Any:
    import cvxpy as cp

    w = [cp.Variable(objective.shape[1]) for _ in range(objective.shape[0])]
    losses = [objective.scale / 2 * cp.sum_squares(each - y) for each, y in zip(w, objective.y, strict=True)]
    penalties = [
        objective.strength * weight * cp.norm(w[i] - w[j], 2)
        for (i, j), weight in zip(objective.edges.tolist(), objective.weight.tolist(), strict=True)
    ]
    return cp.Problem(cp.Minimize(cp.sum(losses) + cp.sum(penalties)))
