"""Lower bounds of smallest eigenvalues that hold whatever rounding did.

Let A be known as floats up to an error that is at most ``share`` times its diagonal in the order of symmetric matrices
(the rounding of a Gram matrix is: |dA_ij| <= g sqrt(a_ii a_jj), and so |x'dA x| <= d g sum a_ii x_i^2). If Cholesky's
method in floating point runs to its end on B = A - mu I - tau diag(A), then B >= -d g' diag(A) with
g' = (d + 2) u (S. M. Rump, Verification of positive definiteness, BIT 46, 2006; N. J. Higham, Accuracy and Stability of
Numerical Algorithms, theorem 10.3), and so mu is a lower bound where tau >= share + d g'. As all is relative to the
diagonal, columns of very different units do no harm. Sparse matrices are factorised as L D L', of which the residual is
bounded entry by entry: L D L' is positive semidefinite exactly, whatever L and D > 0 are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from ..clock import carry_out
from ..terms import Array

U = 2.0**-53  # the unit roundoff
BELOW = (1.0 - 1e-9, 1.0 - 1e-6, 0.99, 0.7, 0.3, 0.03)  # of the eigenvalue as it is estimated: tried in this order
WIDE = 64  # from this size on the matrices of a stack are factorised one by one
RANGE = 1e140  # diagonals outside 1 / RANGE ... RANGE are not looked at


def least_of_stack(A: Array, share: float) -> Array:
    """A lower bound of the smallest eigenvalue of each of a stack (g, d, d); 0 where none is proved."""
    g, d, _ = A.shape
    diagonal = np.einsum("ijj->ij", A)
    usable = np.isfinite(A).all(axis=(1, 2)) & (diagonal > 1.0 / RANGE).all(axis=1) & (diagonal < RANGE).all(axis=1)
    found = np.zeros(g)
    if not usable.any():
        return found
    A, diagonal = A[usable], diagonal[usable]
    tau = 1.01 * share + 1.1 * (d + 3) ** 2 * U
    estimate, best = _estimates(A, diagonal), np.zeros(len(A))
    for factor in BELOW:
        todo = np.flatnonzero((best == 0.0) & (estimate > 0.0))
        if not len(todo):
            break
        mu = factor * estimate[todo]
        B = A[todo].copy()
        B[:, np.arange(d), np.arange(d)] -= mu[:, None] + tau * diagonal[todo]
        best[todo] = np.where(_completes(B), mu, 0.0)
    found[usable] = best
    return found


def _estimates(A: Array, diagonal: Array) -> Array:
    """The smallest eigenvalues, from the inverses, whose largest eigenvalues keep their relative accuracy; 0 where the
    matrix with a diagonal of 1 is singular."""
    root = np.sqrt(diagonal)
    values, V = np.linalg.eigh(A / (root[:, :, None] * root[:, None, :]))
    regular = values[:, 0] > len(root[0]) * 4 * U
    inverse = np.matmul(V / np.where(values > 0, values, 1.0)[:, None, :], V.transpose(0, 2, 1))
    inverse /= root[:, :, None] * root[:, None, :]
    scale = np.abs(inverse).max(axis=(1, 2), keepdims=True)
    top = np.linalg.eigvalsh(inverse / scale)[:, -1] * scale[:, 0, 0]
    return np.where(regular & (top > 0), 1.0 / np.where(top > 0, top, 1.0), 0.0)


def _completes(B: Array) -> Array:
    """Whether Cholesky's method runs to its end, for each of a stack."""
    g, d, _ = B.shape
    if d >= WIDE or g == 1:
        return np.array([_completes_one(each) for each in B], dtype=bool)
    L, ok = np.zeros_like(B), np.ones(g, dtype=bool)
    for j in range(d):
        pivot = B[:, j, j] - np.einsum("gk,gk->g", L[:, j, :j], L[:, j, :j])
        ok &= pivot > 0.0
        L[:, j, j] = np.sqrt(np.where(ok, pivot, 1.0))
        below = B[:, j + 1 :, j] - np.einsum("gik,gk->gi", L[:, j + 1 :, :j], L[:, j, :j])
        L[:, j + 1 :, j] = below / L[:, j, j, None]
        L[~ok] = 0.0
        L[~ok, j, j] = 1.0
    return ok


def _completes_one(B: Array) -> bool:
    try:
        return bool(np.isfinite(cholesky(B, lower=True, check_finite=True)).all())
    except (LinAlgError, ValueError):
        return False


# ---- sparse ----------------------------------------------------------------------------------------------------------
def least_of_sparse(A: Any, share: float) -> float:
    """A lower bound of the smallest eigenvalue of a sparse symmetric matrix; 0 where none is proved."""
    A = sp.csc_array(A)
    diagonal = A.diagonal()
    if not (np.isfinite(A.data).all() and (diagonal > 1.0 / RANGE).all() and (diagonal < RANGE).all()):
        return 0.0
    q = 2.0 ** np.round(-0.5 * np.log2(diagonal))  # powers of 2: scaling by them is exact
    Q = sp.diags_array(q)
    S = sp.csc_array(Q @ A @ Q)
    solve = _solver(S)
    if solve is None:
        return 0.0
    estimate = _estimate(solve, q)
    for factor in BELOW:
        if estimate > 0.0 and _is_definite(S, factor * estimate * q * q, share):
            return factor * estimate
    return 0.0


def _solver(S: Any) -> Callable[[Array], Array] | None:
    try:
        return factor(S).solve
    except RuntimeError:  # singular
        return None


def factor(S: Any) -> Any:
    options = {"SymmetricMode": True}
    A = sp.csc_array(S)
    return carry_out(lambda: splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options))


def _estimate(solve: Callable[[Array], Array], q: Array) -> float:
    """1 over the largest eigenvalue of A^-1 = Q S^-1 Q."""
    operator: Any = LinearOperator  # scipy has no types
    inverse = operator((len(q), len(q)), matvec=lambda x: q * solve(q * x.ravel()), dtype=float)
    try:
        start = np.random.default_rng(0).standard_normal(len(q))
        top = float(eigsh(inverse, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
    except (ArpackError, RuntimeError):
        return 0.0
    return 1.0 / top if np.isfinite(top) and top > 0 else 0.0


def _is_definite(S: Any, mu: Array, share: float) -> bool:
    """Whether S - diag(mu) is proved positive semidefinite, S being known up to ``share`` of its diagonal (near 1)."""
    diagonal = S.diagonal()
    tau = 1.01 * share + 1e-13
    for _ in range(3):
        B = sp.csc_array(S - sp.diags_array(mu + tau * diagonal))
        residual = _residual(B)
        if residual is None:
            return False
        needed = 1.01 * (share + residual / float(diagonal.min()) + 8 * U)
        if needed <= tau:
            return True
        tau = 2.0 * needed
    return False


def _residual(B: Any) -> float | None:
    """A bound of ||B - L D L'|| for some L and D > 0; None where there are none."""
    try:
        lu = factor(B)
    except RuntimeError:
        return None
    pivots = lu.U.diagonal()
    if not (np.array_equal(lu.perm_r, lu.perm_c) and (pivots > 0.0).all() and np.isfinite(lu.L.data).all()):
        return None
    L, place = sp.csr_array(lu.L), np.argsort(lu.perm_r)
    permuted = sp.csr_array(B)[place][:, place]
    left = abs(permuted - (L @ sp.diags_array(pivots)) @ L.T)
    size, one = abs(L), np.ones(len(pivots))
    most = int(np.diff(L.indptr).max()) + 4  # terms of any sum
    sums = left @ one + 1.01 * most * U * (size @ (pivots * (size.T @ one)) + abs(permuted) @ one)
    return 1.01 * float(sums.max())
