"""The smallest positive and the largest eigenvalue of Laplacians L = K' diag(c) K, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ...certificate import factor
from ...inputs import difference_matrix
from ...terms import Array

DENSE = 100  # up to this many nodes eigenvalues are computed densely
START = 7  # of the random vectors by which Lanczos's iteration begins: results are to be repeatable


@dataclass(frozen=True)
class Eigenvalue:
    """An eigenvalue with its error: some eigenvalue lies within ``residual`` = ||L v - value v|| of ``value``.

    ``counted`` says whether that one is known to be the one meant: that there is no eigenvalue between 0 and
    value - 2 residual was counted (Sylvester's law of inertia), or all eigenvalues were computed.
    """

    value: float
    residual: float
    counted: bool


def laplacian(tail: Array, head: Array, weight: Array, n: int) -> sp.csr_array:
    """K' diag(c) K, (n, n)."""
    K = difference_matrix(tail, head, n)
    return sp.csr_array(K.T @ sp.diags_array(np.asarray(weight, dtype=float)) @ K)


def connectivity(L: sp.csr_array) -> Eigenvalue:
    """The second smallest eigenvalue of the Laplacian of a connected graph with two nodes or more."""
    if L.shape[0] <= DENSE:  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        return _dense(L, 1)
    v = _slowest(L)
    found = _with_residual(L, float(v @ (L @ v)), v, False)
    margin = 2.0 * found.residual + 1e-9 * found.value
    return Eigenvalue(found.value, found.residual, _count_below(L, found.value - margin) == 1)


def largest(L: sp.csr_array) -> Eigenvalue:
    """The largest eigenvalue of a Laplacian."""
    n = L.shape[0]  # pyright: ignore[reportOptionalSubscript]
    if n <= DENSE:
        return _dense(L, n - 1)
    start, options = np.random.default_rng(START).standard_normal(n), dict[str, Any](k=1, tol=1e-10)
    try:
        v = eigsh(L, which="LA", v0=start, **options)[1][:, 0]
    except ArpackNoConvergence:  # many eigenvalues near the largest: invert beyond all of them (Gershgorin)
        v = eigsh(L, sigma=2.0 * float(L.diagonal().max()) * (1.0 + 1e-9), which="LM", v0=start, **options)[1][:, 0]
    return _with_residual(L, float(v @ (L @ v)), v, False)


def _dense(L: sp.csr_array, k: int) -> Eigenvalue:
    """The eigenvalue number k from below."""
    values, vectors = eigh(L.toarray(), subset_by_index=(k, k))
    return _with_residual(L, float(values[0]), vectors[:, 0], True)


def _with_residual(L: sp.csr_array, value: float, v: Array, counted: bool) -> Eigenvalue:
    return Eigenvalue(value, float(np.linalg.norm(L @ v - value * v)), counted)


def _slowest(L: sp.csr_array) -> Array:
    """An eigenvector of the second smallest eigenvalue: of the largest of the pseudo-inverse, which is a solve with the
    first node tied to 0, between two projections off the constant."""
    n = L.shape[0]  # pyright: ignore[reportOptionalSubscript]
    tied = factor(L[1:, 1:])

    def inverse(b: Array) -> Array:
        x = np.concatenate([[0.0], tied.solve((b - b.mean())[1:])])
        return x - x.mean()

    start = np.random.default_rng(START).standard_normal(n)
    v = eigsh(LinearOperator((n, n), matvec=inverse, dtype=float), k=1, which="LA", v0=start)[1][:, 0]  # pyright: ignore[reportCallIssue]
    v = inverse(v - v.mean())  # one more step of the power iteration, which is the most accurate
    return v / np.linalg.norm(v)


def _count_below(L: sp.csr_array, shift: float) -> int | None:
    """How many eigenvalues are smaller than the shift: the negative pivots of L - shift I; None where the factorisation
    had to pivot off the diagonal, or met a pivot of 0 (rings: a path of n/2 - 1 nodes with fixed ends has the
    eigenvalue of the ring)."""
    n = L.shape[0]  # pyright: ignore[reportOptionalSubscript]
    try:
        lu = factor(L - shift * sp.eye_array(n))
    except RuntimeError:
        return None
    return int((lu.U.diagonal() < 0).sum()) if np.array_equal(lu.perm_r, lu.perm_c) else None
