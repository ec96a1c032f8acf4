"""How long compiling takes (stacked against one expression per edge), and how long ``import graphreg`` does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from .worker import THREADS
from .workloads import Workload, w4


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
    workload = w4()
    _timed(_stacked, workload)
    stacked = float(np.median([_timed(_stacked, workload) for _ in range(repeats)]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Objective contains too many subexpressions")  # which is the point
        return stacked, _timed(_per_edge, workload)


def _timed(compile_it: Any, workload: Workload) -> float:
    began = time.process_time()
    compile_it(workload).get_problem_data("CLARABEL")
    return time.process_time() - began


def _stacked(workload: Workload) -> Any:
    return workload.problem().compile().cvxpy


def _per_edge(workload: Workload) -> Any:
    import cvxpy as cp

    w = [cp.Variable(workload.shape[1]) for _ in range(workload.shape[0])]
    losses = [workload.scale / 2 * cp.sum_squares(each - y) for each, y in zip(w, workload.y, strict=True)]
    penalties = [
        workload.strength * weight * cp.norm(w[i] - w[j], 2)
        for (i, j), weight in zip(workload.edges.tolist(), workload.weight.tolist(), strict=True)
    ]
    return cp.Problem(cp.Minimize(cp.sum(losses) + cp.sum(penalties)))
