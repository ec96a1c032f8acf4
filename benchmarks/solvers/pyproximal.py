"""pyproximal: general proximal methods, with the sparse difference matrix as their operator."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..objective import Array, Objective
from ._base import FEW, AbstractSolver, Answer
from .modelled import block_diagonal

INNER = 50  # steps of an inner solver; with its default, 10, ADMM stops short of the optimum of regressions
TIGHT = 1e-10


@dataclass(frozen=True)
class PyProximal(AbstractSolver):
    """Chambolle and Pock's method ("PDHG") or ADMM; the setting is the number of iterations.

    Penalties are weighted in the operator, so that one L1 or L21 norm does for all edges. The step sizes of PDHG fit
    the curvature c of the losses, 1/c and c/||K||^2, and that of ADMM makes its two terms alike.
    """

    name: str
    admm: bool
    ladder: tuple[float, ...] = (100, 1_000, 5_000)

    def applies(self, objective: Objective) -> bool:
        return objective.loss != "logistic"

    @property
    def most(self) -> float:
        return FEW

    def run(self, objective: Objective, setting: float) -> Answer:
        import pylops
        from pyproximal import L1, L2, L21
        from pyproximal.optimization.primal import ADMML2
        from pyproximal.optimization.primaldual import PrimalDual

        began = time.process_time()
        n, d = objective.shape
        K = _operator(objective)
        A: Any = pylops.MatrixMult(K)
        g = L1() if objective.penalty == "l1" else L21(ndim=d)
        M, y = _design(objective)
        curvature = float((M * M).sum()) / (n * d)
        start, count = np.zeros(n * d), int(setting)
        built = time.process_time()
        if self.admm:
            inner = {"iter_lim": INNER, "atol": TIGHT, "btol": TIGHT}
            tau = float((K * K).sum()) / (n * d) / curvature
            x = ADMML2(g, pylops.MatrixMult(M), y, A, start, tau=tau, niter=count, **inner)[0]
        else:
            root = float(np.sqrt(objective.scale))
            mean = objective.X is None
            f = L2(b=y / root, sigma=objective.scale) if mean else L2(Op=pylops.MatrixMult(M), b=y, niter=INNER)
            x = PrimalDual(f, g, A, start, tau=1.0 / curvature, mu=0.99 * curvature / _norm(K) ** 2, niter=count)
        return Answer(_back(x, n, d), built - began, time.process_time() - built, count)


def _operator(objective: Objective) -> Any:
    """The weighted differences of w, stored by coordinates (d, n), into (d, m): the order that L21 takes."""
    K = sp.diags_array(objective.strength * objective.weight) @ objective.difference()
    return sp.csr_array(sp.kron(sp.eye_array(objective.shape[1]), K))


def _design(objective: Objective) -> tuple[Any, Array]:
    """M and y of the losses 1/2 ||M w - y||^2, w stored by coordinates."""
    (n, d), root = objective.shape, np.sqrt(objective.scale)
    if objective.X is None:
        return root * sp.eye_array(n * d, format="csr"), root * objective.y.T.ravel()
    by_coordinate = np.arange(n * d).reshape(d, n).T.ravel()  # where number (i, a) stands
    M = sp.csc_array(block_diagonal(root * objective.X))[:, np.argsort(by_coordinate)]
    return sp.csr_array(M), root * objective.y.ravel()


def _norm(K: Any) -> float:
    """||K||, at most: the largest column sum times the largest row sum."""
    size = abs(K)
    return float(np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()))


def _back(x: Array, n: int, d: int) -> Array:
    return np.asarray(x).reshape(d, n).T


PYPROXIMAL = (PyProximal("pyproximal PDHG", False), PyProximal("pyproximal ADMM", True))
