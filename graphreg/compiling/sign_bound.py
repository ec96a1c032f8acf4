"""The conic bound of sums of lengths: max <G, X> over X >= 0 with ones on its diagonal, certified from its dual.

    max ||sum_e b_e u_e'||_F^2  over unit vectors u_e in R^p,      G_ef = <b_e, b_f>,  X_ef = <u_e, u_f>

For p >= m the two are equal, for smaller p (p = 1: signs) the first is at most the second (Goemans and Williamson's
relaxation). The dual is min sum_e y_e subject to diag(y) >= G, of which every feasible point is a bound.
"""

from __future__ import annotations

import numpy as np

from ..lazy import cp
from ..terms import Array


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
