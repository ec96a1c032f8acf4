"""CVXPY as an expert writes it by hand, stacked and sparse, with the solvers that apply."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..objective import Array, Objective
from ._base import FEW, AbstractSolver, Answer


@dataclass(frozen=True)
class Modelled(AbstractSolver):
    """One (n, d) variable, a sparse difference matrix, one sparse least-squares term.

    Squared losses are reduced to d rows per node by QR where a node has more samples than that. Its time to solve is
    that of ``problem.solve``, CVXPY's compilation included.
    """

    name: str
    solver: str
    ladder: tuple[float, ...]
    tolerances: tuple[str, ...]  # the options that the setting is given to
    options: tuple[tuple[str, Any], ...] = ()
    quadratic: bool = False  # for quadratic programmes only

    def applies(self, objective: Objective) -> bool:
        return not self.quadratic or (objective.penalty == "l1" and objective.loss != "logistic")

    @property
    def most(self) -> float:
        return FEW

    def run(self, objective: Objective, setting: float) -> Answer:
        import cvxpy as cp

        began = time.process_time()
        w = cp.Variable(objective.shape)
        z = objective.difference() @ w
        size = cp.norm1(z, axis=1) if objective.penalty == "l1" else cp.norm(z, 2, axis=1)
        problem = cp.Problem(cp.Minimize(_losses(objective, w) + objective.strength * (objective.weight @ size)))
        built = time.process_time()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # which is what is measured
            problem.solve(solver=self.solver, **dict.fromkeys(self.tolerances, setting), **dict(self.options))
        done = time.process_time()
        if w.value is None:
            raise RuntimeError(f"no point, it said {problem.status}")
        return Answer(np.asarray(w.value), built - began, done - built, status=str(problem.status))


def _losses(objective: Objective, w: Any) -> Any:
    import cvxpy as cp

    if objective.X is None:
        return objective.scale / 2 * cp.sum_squares(w - objective.y)
    vec = cp.vec(w, order="C")
    if objective.loss == "logistic":
        margins = block_diagonal(-objective.y[:, :, None] * objective.X) @ vec
        return objective.scale * cp.sum(cp.logistic(margins))
    root = np.sqrt(objective.scale)
    X, y, left = root * objective.X, root * objective.y, 0.0
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


CLARABEL = "CVXPY + Clarabel"
MODELLED = (
    # its default first: an interior-point method saves little by asking for less
    Modelled(CLARABEL, "CLARABEL", (1e-8, 1e-5, 1e-3), ("tol_gap_abs", "tol_gap_rel", "tol_feas")),
    Modelled("CVXPY + SCS", "SCS", (1e-3, 1e-5, 1e-7), ("eps_abs", "eps_rel"), (("max_iters", 20_000),)),
    Modelled("CVXPY + OSQP", "OSQP", (1e-3, 1e-5, 1e-7), ("eps_abs", "eps_rel"), (("max_iter", 20_000),), True),
)
