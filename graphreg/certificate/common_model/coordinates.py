"""Coordinates in which the pooled design, and the penalties on nodes, have orthonormal columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...base.gate import heavy, refuse
from ...form import Form
from ...terms import Array, at_a_time

SHIFT = 1e-15  # added to the eigenvalues of the first Gram matrix, beyond which rounding hides them
GOOD = 1e-4  # of the largest eigenvalue: where none is smaller, once is enough
SQUARES = 4.0  # arrays of that size that are held at once
RANK = 1e-12  # of the largest eigenvalue or length: smaller ones are directions that the data do not have
ROWS, CELLS = 128, 1 << 15  # samples that are taken at a time, at least; as many numbers stay in the cache
WIDTH = 256  # numbers that are compared at a time


def slices(X: Array) -> Iterator[slice]:
    """Some rows of an array at a time."""
    return at_a_time(max(ROWS, CELLS * len(X) // max(X.size, 1)), len(X))


def largest(form: Form) -> Array:
    """The largest |x_rj| of each column; 1 where all are 0, and no columns where predictors are parameters."""
    designs = [block.X for block in form.samples if block.X is not None]
    if not designs:
        return np.zeros(0)
    size = np.max([column_top(X) for X in designs], axis=0)
    return np.where(size > 0.0, size, 1.0)


def column_top(X: Array) -> Array:
    """max over r of |x_rj|; some rows side by side, since numpy is slow on narrow arrays."""
    beside = max(1, WIDTH // X.shape[1])
    whole = len(X) // beside * beside
    top = np.abs(X[whole:]).max(axis=0, initial=0.0)
    wide = np.ascontiguousarray(X[:whole]).reshape(-1, beside * X.shape[1])
    for rows in slices(wide):
        part = np.maximum(wide[rows].max(axis=0), -wide[rows].min(axis=0))
        top = np.maximum(top, part.reshape(beside, -1).max(axis=0))
    return top


def coordinates(form: Form, largest: Array, fixed: Array, bends: Array) -> Array:
    """T (p, r) with Z'SZ + T'BT about I for the pooled design Z = X T, the samples' scales S and the ``bends`` B of
    penalties (d,): twice a Gram matrix of equilibrated columns and its eigenvectors, the first time with a small shift
    (as in shifted CholeskyQR)."""
    some = bends.any()  # else strengths change nothing
    blocks = [(block.X, block.scale if some else block.base_scale) for block in form.samples if block.X is not None]
    if not blocks:
        return np.eye(form.d)[:, ~fixed]
    E = np.where(fixed.reshape(len(largest), -1).any(axis=1), 0.0, 1.0 / largest)
    bends = bends.reshape(len(largest), -1).max(axis=1)
    free = np.flatnonzero((bends == 0.0) & (E > 0.0) & some)
    spanned = (rows := sum(len(X) for X, _ in blocks) + len(free)) < len(E)
    refuse(SQUARES * len(E) * min(rows, len(E)), "the best common model", "about ")
    if spanned:
        E = np.where(bends > 0.0, 1.0 / np.sqrt(np.where(bends > 0.0, bends, 1.0)), E)
        unit = sp.csr_array((np.ones(len(free)), (np.arange(len(free)), free)), shape=(len(free), len(E))).toarray()
        A = np.vstack([unit, *(X for X, _ in blocks)]) * E
        T = E[:, None] * heavy(4.0 * A.size * len(A), _span, A)
    else:
        T = np.diag(E)
    most = max(float(s.max()) for _, s in blocks)
    for shift, rank in ((SHIFT, 0.0), (0.0, RANK)):
        G = np.sum([weighted(X, s / most, T if rank or spanned else E) for X, s in blocks], axis=0)
        G = G + (T.T * (bends / most)) @ T if some else G
        sizes = np.ones(len(G)) if rank else np.sqrt(np.diagonal(G))  # the second time columns are eigenvectors
        here = np.flatnonzero(sizes > 0.0)
        if not len(here):
            return np.zeros((len(E), 0))
        T = T[:, here] / sizes[here]
        G = G[np.ix_(here, here)] / np.outer(sizes[here], sizes[here])
        root = None if rank or spanned else heavy(len(G) ** 3.0, inverse_root, G, GOOD)
        if root is not None:
            return T @ root
        values, U = heavy(10.0 * len(G) ** 3, np.linalg.eigh, G)
        kept = values > rank * values.max(initial=0.0) if rank else np.full(len(values), True)
        T = T @ (U[:, kept] / np.sqrt(np.maximum(values[kept], 0.0) + shift * len(values)))
        if values.min() > GOOD * values.max():
            break
    return T


def inverse_root(G: Array, least: float) -> Array | None:
    """R with R'GR = I for a matrix with a diagonal of 1; None where an eigenvalue may be less than ``least``.

    A Cholesky factor takes a tenth of the time of eigenvectors, which alone tell what is left where columns are nearly
    collinear.
    """
    lapack: Any = scipy.linalg.lapack  # scipy has no types
    L, failed = lapack.dpotrf(G, lower=True) if len(G) else (G, 0)
    R = None if failed else lapack.dtrtri(L, lower=True)[0].T if len(G) else G  # LAPACK complains of no columns
    return R if R is not None and least * float(np.vdot(R, R)) <= 1.0 else None  # the trace of the inverse


def _span(A: Array) -> Array:
    """An orthonormal basis of the rows, without what rounding makes of rows that are sums of others."""
    sizes = np.linalg.norm(A, axis=1)
    rows = A[sizes > 0.0] / sizes[sizes > 0.0, None]
    factors: Any = scipy.linalg.qr(rows.T, mode="economic", pivoting=True)
    return factors[0][:, np.abs(np.diagonal(factors[1])) > RANK]


def weighted(X: Array, s: Array, T: Array) -> Array:
    """(X T)' diag(s) X T, some rows at a time; T (p,) is diagonal."""
    out = np.zeros((T.shape[-1], T.shape[-1]))
    for rows in slices(X):
        Z = X[rows] * T if T.ndim == 1 else X[rows] @ T
        out += (Z * s[rows, None]).T @ Z
    return out
