"""The solvers: graphreg's primal-dual method, and CVXPY as an expert writes it by hand, stacked and sparse."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import graphreg as gr

from .workloads import Array, Workload, w2

GAP = 1e-6


@dataclass(frozen=True)
class Answer:
    """What a solver gave: w, CPU seconds to build and to solve, and what it certifies (a lower bound and a gap)."""

    w: Array
    build: float
    solve: float
    rounds: int = 0
    lower: float = -np.inf
    gap: float = np.inf
    status: str = ""


def graphreg(workload: Workload) -> Answer:
    """PrimalDual to a certified relative gap of 1e-6; factorisations, screens and repairs are in its time."""
    began = time.process_time()
    problem = workload.problem()
    built = time.process_time()
    solution = problem.solve(gr.PrimalDual(), gap=GAP, progress=False, on_failure="return")
    done = time.process_time()
    found = solution.certificate
    return Answer(
        solution.coef,
        built - began,
        done - built,
        solution.rounds,
        found.dual if found.valid else -np.inf,
        found.relative_gap if found.valid else np.inf,
        solution.status,
    )


def reference(workload: Workload) -> Answer:
    """A tight lower bound for all, not timed: PrimalDual to 1e-9, a minute at most."""
    solution = workload.problem().solve(gr.PrimalDual(), gap=1e-9, seconds=60, progress=False, on_failure="return")
    found = solution.certificate
    return Answer(solution.coef, 0.0, 0.0, solution.rounds, found.dual, found.relative_gap, solution.status)


def by_hand(workload: Workload, solver: str, **options: Any) -> Answer:
    """CVXPY: one (n, d) variable, a sparse difference matrix, one sparse least-squares term.

    Squared losses are reduced to d rows per node by QR where a node has more samples than that.
    """
    import cvxpy as cp

    began = time.process_time()
    w = cp.Variable(workload.shape)
    z = workload.difference() @ w
    size = cp.norm1(z, axis=1) if workload.penalty == "l1" else cp.norm(z, 2, axis=1)
    objective = _losses(workload, w) + workload.strength * (workload.weight @ size)
    problem = cp.Problem(cp.Minimize(objective))
    built = time.process_time()
    problem.solve(solver=solver, **options)
    done = time.process_time()
    return Answer(np.asarray(w.value), built - began, done - built, status=str(problem.status))


def _losses(workload: Workload, w: Any) -> Any:
    import cvxpy as cp

    if workload.X is None:
        return workload.scale / 2 * cp.sum_squares(w - workload.y)
    vec = cp.vec(w, order="C")
    if workload.loss == "logistic":
        return workload.scale * cp.sum(cp.logistic(block_diagonal(-workload.y[:, :, None] * workload.X) @ vec))
    root = np.sqrt(workload.scale)
    X, y, left = root * workload.X, root * workload.y, 0.0
    if X.shape[1] > X.shape[2]:
        Q, X = np.linalg.qr(X)
        inner = np.einsum("gmk,gm->gk", Q, y)
        left = float((y**2).sum() - (inner**2).sum())
        y = inner
    return cp.sum_squares(block_diagonal(X) @ vec - y.ravel()) / 2 + left / 2


def block_diagonal(X: Array) -> Any:
    """The stack X (n, s, d) as one sparse (n s, n d) matrix."""
    n, s, d = X.shape
    columns = np.broadcast_to(np.arange(n)[:, None, None] * d + np.arange(d), X.shape)
    return sp.csr_array((X.ravel(), columns.ravel(), np.arange(0, n * s * d + 1, d)), shape=(n * s, n * d))


def warm(solver: str) -> None:
    """Solves something else once, so that imports and compiled kernels are not timed."""
    SOLVERS[solver](w2())


CLARABEL = "CVXPY + Clarabel"
SOLVERS: dict[str, Callable[[Workload], Answer]] = {
    "graphreg": graphreg,
    CLARABEL: partial(by_hand, solver="CLARABEL"),
    "CVXPY + SCS": partial(by_hand, solver="SCS", eps_abs=1e-7, eps_rel=1e-7, max_iters=20_000),
}
