"""Two conic programmes: the direction along which edges give way first, and a bound of sums of lengths (at the end).

    maximise over w   sum_k <-r, w>_k    subject to   sum over the edges of component k of A_e phi((Kw)_e) <= 1

for all components at once, each by itself. The dual value of the bound of component k is the least load of its edges,
min over flows with K'u = -r of max_e ||u_e||_* / A_e; the dual values of the links z = Kw are such flows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.gate import carry_out
from ..base.lazy import cp
from ..terms import Array
from ..terms.penalties import AbstractPenalty, split
from .solvers import ATTEMPTS


@dataclass(frozen=True)
class Links:
    """Edges that share a penalty on the coordinates ``columns``, with weights A_e > 0 and components; or rows of any
    kind, where ``columns`` is None."""

    penalty: AbstractPenalty
    columns: Array | None
    K: sp.csr_array  # (m, n); of rows (m k, n d)
    weight: Array
    component: Array
    near: float = 1.0  # phi is taken at so small a multiple: for its growth at 0 where it is not homogeneous

    def of(self, w: Any) -> Any:
        """K w, (m, k), of an expression (n, d)."""
        if self.columns is not None:
            return self.K @ w[:, self.columns]
        return cp.reshape(self.K @ cp.vec(w, order="C"), (len(self.weight), -1), order="C")


def steepest(links: Sequence[Links], r: Array) -> tuple[Array, list[Array]]:
    """The directions w (n, d), and the flows of the edges of each entry of ``links``; both to the solver's accuracy.

    The numbers that the solver sees are about 1 where the loads of the components (largest ||u_e||_* / A_e) and the
    sums of their weights are.
    """
    w = cp.Variable(r.shape)
    zs: list[Any] = []
    ties: list[Any] = []
    bounds: Any = 0
    constraints: list[Any] = []
    size = 1 + max(int(each.component.max()) for each in links)
    for each in links:
        m, z0 = len(each.weight), each.of(w)
        z = cp.Variable(z0.shape)
        tie = z0 - z == 0
        value, domain = split(each.penalty.cvxpy(each.near * z))
        sums = sp.csr_array((each.weight, (each.component, np.arange(m))), shape=(size, m))
        bounds = bounds + sums @ value / each.near
        constraints += [tie, *domain]
        zs.append(z)
        ties.append(tie)
    used = np.unique(np.concatenate([each.component for each in links]))
    constraints.append(bounds[used] <= 1.0)
    _solve(cp.Problem(cp.Minimize(cp.sum(cp.multiply(r, w))), constraints))
    if w.value is None or any(tie.dual_value is None for tie in ties):
        return np.zeros(r.shape), [np.zeros(z.shape) for z in zs]
    flows = [np.asarray(tie.dual_value, dtype=float).reshape(z.shape) for tie, z in zip(ties, zs, strict=True)]
    return np.asarray(w.value, dtype=float), flows


def _solve(problem: Any) -> None:
    """Solve at tight tolerances; what it is worth is for the caller to judge."""
    with warnings.catch_warnings(action="ignore"):
        for options in (ATTEMPTS["CLARABEL"][1][1], ATTEMPTS["CLARABEL"][0][1]):
            try:
                carry_out(lambda options=options: problem.solve(solver="CLARABEL", **options))
            except cp.SolverError:
                continue
            if problem.status in ("optimal", "optimal_inaccurate"):
                return


# ---- sums of lengths -------------------------------------------------------------------------------------------------
# max <G, X> over X >= 0 with ones on its diagonal, certified from its dual:
#
#     max ||sum_e b_e u_e'||_F^2  over unit vectors u_e in R^p,      G_ef = <b_e, b_f>,  X_ef = <u_e, u_f>
#
# For p >= m the two are equal, for smaller p (p = 1: signs) the first is at most the second (Goemans and Williamson's
# relaxation). The dual is min sum_e y_e subject to diag(y) >= G, of which every feasible point is a bound.
def conic_bound(G: Array) -> tuple[float, Array]:
    """A number that no unit vectors exceed, and vectors (m, m), in rows, that come near it.

    What the solver returns for y is shifted until diag(y) - G has no negative eigenvalue (and by what rounding may
    hide of one), so that the bound does not rest on the solver.
    """
    m, size = len(G), max(float(np.abs(G).max()), 1e-300)
    X = cp.Variable((m, m), PSD=True)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(G / size, X))), [cp.diag(X) == 1])
    problem.solve(solver=cp.CLARABEL)
    plain = _sum_of(np.zeros(m), G)  # diag(y) = lambda_max(G) I is always feasible
    y, found = problem.constraints[0].dual_value, X.value
    if y is None or found is None:
        return plain, np.eye(m)
    y, found = np.asarray(y, dtype=float), np.asarray(found, dtype=float)
    values, vectors = np.linalg.eigh(0.5 * (found + found.T))
    each = vectors * np.sqrt(np.maximum(values, 0.0))
    return min(_sum_of(size * y, G), plain), each[:, ::-1]


def _sum_of(y: Array, G: Array) -> float:
    """sum_e y_e after the least common shift that makes y feasible."""
    low = float(np.linalg.eigvalsh(np.diag(y) - G)[0])
    rounding = 8.0 * len(y) * np.finfo(float).eps * (np.abs(G).sum(axis=1).max() + np.abs(y).max())
    return float(y.sum() + len(y) * max(0.0, rounding - low))
