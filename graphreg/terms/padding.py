"""Ragged samples in padded stacks: nodes with about as many samples form one batch; nothing loops over nodes.

And stacks of symmetric matrices, one triangle of each: what nodes keep of their Hessians takes half of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools

from ..base.clock import check_deadline
from ..base.gate import dealt, heavy
from .records import Array


@dataclass(frozen=True)
class Batch:
    """g nodes, each with up to ``size`` samples.

    ``nodes`` (g,) are distinct; ``mask`` (g, size) is 1.0 at samples and 0.0 at padding; ``X`` (g, size, d) is the
    design with zeros at padding: a view of that of the samples where nothing is padded and they stand in this order.
    ``where`` is the slice where they stand then, else (g, size) the number of each sample, 0 at padding.
    """

    nodes: Array
    mask: Array
    X: Array
    where: slice | Array

    @property
    def rows(self) -> Array:
        """The numbers of the samples among those of the block, (g, size), 0 at padding."""
        where = self.where
        return np.arange(where.start, where.stop).reshape(self.mask.shape) if isinstance(where, slice) else where

    @property
    def run(self) -> slice | None:
        """The slice of the samples, if they stand side by side."""
        return self.where if isinstance(self.where, slice) else None

    def pad(self, values: Array) -> Array:
        """Per-sample values of the block as (g, size), whatever stands at padding; a view where that is one."""
        each = values[self.where]
        return each.reshape(*self.mask.shape, *values.shape[1:]) if isinstance(self.where, slice) else each

    def put(self, values: Array, out: Array) -> None:
        """Writes values (g, size) at the samples of the block; what stands at padding is left."""
        if self.run is not None:
            out[self.run] = values.reshape(-1, *values.shape[2:])
        else:
            there = self.mask != 0.0
            out[self.rows[there]] = values[there]


def block_diagonal(blocks: Array) -> sp.bsr_array:
    """The matrix (m k, m k) with these blocks (m, k, k) on its diagonal."""
    m, k, _ = blocks.shape
    return sp.bsr_array((blocks, np.arange(m), np.arange(m + 1)), shape=(m * k, m * k))


def product(A: Any, x: Array, transposed: bool = False) -> Array:
    """A x, or A'x, of a sparse matrix by rows: the loop of scipy, which looks at its operands for longer than a product
    of some hundred rows takes, and makes a matrix of A' each time."""
    shape = A.shape[::-1] if transposed else A.shape
    out = np.zeros((shape[0], *x.shape[1:]))
    many = () if x.size == len(x) else x.shape[1:]  # one column is a vector, which takes less
    loop = getattr(_sparsetools, f"{'csc' if transposed else 'csr'}_matvec{'s' * len(many)}")
    loop(*shape, *many, A.indptr, A.indices, A.data, x.ravel(), out.ravel())
    return out


def at_a_time(rows: int, length: int) -> Iterator[slice]:
    """So many rows (one at least) of ``length`` at a time: what is between then stays in the cache."""
    rows = max(1, rows)
    for at in range(0, length, rows):
        yield slice(at, at + rows)


def gram(X: Array, M: Array) -> Array:
    """X'MX for each of a stack of designs (g, m, p): M (g, m) gives (g, p, p); matrices M (g, m, k, k), which couple
    the k predictors of a sample, give (g, p k, p k)."""
    g, m, p = X.shape
    if M.ndim == 2:
        return heavy(float(X.size) * p, np.matmul, X.transpose(0, 2, 1) * M[:, None, :], X)
    k = M.shape[-1]
    right = (X[:, :, :, None] * M.reshape(g, m, 1, k * k)).reshape(g, m, p * k * k)
    H = heavy(float(right.size) * p, np.matmul, X.transpose(0, 2, 1), right).reshape(g, p, p, k, k)
    return np.ascontiguousarray(H.transpose(0, 1, 3, 2, 4)).reshape(g, p * k, p * k)


def predictors(X: Array, w: Array) -> Array:
    """X w for each of a stack of designs (g, m, p) and parameters (g, d): (g, m), or (g, m, k) where d = p k."""
    g, _, p = X.shape
    if w.shape[1] == p:
        return _products(X, w[:, :, None])[:, :, 0]
    return _products(X, w.reshape(g, p, w.shape[1] // p))


def adjoint(XT: Array, a: Array) -> Array:
    """X'a, (g, d), for stacks of transposed designs (g, p, m) and of prices (g, m) or (g, m, k)."""
    if a.ndim == 2:
        return _products(XT, a[:, :, None])[:, :, 0]
    return _products(XT, a).reshape(len(a), -1)


def _products(A: Array, x: Array) -> Array:
    """A_i x_i for stacks of matrices (g, m, p) and (g, p, k)."""
    g, m, p = A.shape
    if A.size <= PRODUCTS:
        return np.matmul(A, x)
    out = np.empty((g, m, x.shape[2]), dtype=np.result_type(A, x))
    dealt(lambda some: np.matmul(A[some], x[some], out=out[some]), at_a_time(PRODUCTS // (m * p), g))
    return out


def inverses(H: Array) -> Array:
    """Those of positive definite matrices, by way of others with a diagonal of 1 where units are not alike."""
    if H.shape[1] == 1:
        return 1.0 / H
    diagonal = np.einsum("ijj->ij", H)
    if diagonal.max(initial=0.0) <= ALIKE * diagonal.min(initial=np.inf):
        return of_stack(np.linalg.inv, H, 1.0)
    scale = 1.0 / np.sqrt(diagonal)
    both = scale[:, :, None] * scale[:, None, :]
    return of_stack(np.linalg.inv, H * both, 1.0) * both


def of_stack(work: Callable[[Array], Any], H: Array, times: float) -> Any:
    """What LAPACK makes of each of a stack of matrices (g, m, k) in m k^2 multiplications, so many ``times``: some
    matrices at a time, so that the clock is heard between them."""
    per = times * H[0].size * H.shape[2] if len(H) else 0.0

    def part(some: slice) -> Any:
        if some.start:  # few are done whatever the clock says
            check_deadline()
        return heavy(per * (some.stop - some.start), work, H[some])

    found = dealt(part, at_a_time(int(AT_ONCE / (per + CALL)), len(H))) or [work(H)]
    alone = isinstance(found[0], np.ndarray)
    return np.concatenate(found) if alone else tuple(map(np.concatenate, zip(*found, strict=True)))


def times(M: Array, x: Array) -> Array:
    """M x per sample: numbers times numbers, entry by entry, or matrices (..., k, k) times vectors (..., k)."""
    return M * x if M.ndim == x.ndim else np.matmul(M, x[..., None])[..., 0]


def lanes_of(counts: Array) -> tuple[int, ...]:
    """The numbers of samples that the stacks have room for, given the numbers of samples of all nodes, in order: one
    size where all have as many, else the largest number between two powers of two, so that padding at most doubles
    the work."""
    counts = counts[counts > 0]
    if not len(counts) or counts.min() == counts.max():
        return tuple(counts[:1].tolist())
    octave = np.ceil(np.log2(counts)).astype(int)
    return tuple(int(counts[octave == each].max()) for each in np.unique(octave))


def batches(node: Array, X: Array, lanes: tuple[int, ...] | None = None) -> tuple[Batch, ...]:
    """The samples (node (M,), design (M, d)) grouped by node, nodes grouped by their number of samples: each is in the
    smallest of the ``lanes`` (by default `lanes_of` these nodes) that has room for it."""
    order = None if (node[1:] >= node[:-1]).all() else np.argsort(node, kind="stable")
    at = node if order is None else node[order]
    start = np.concatenate([[0], np.flatnonzero(at[1:] != at[:-1]) + 1]) if len(at) else np.zeros(0, dtype=np.intp)
    nodes, count = at[start], np.diff(start, append=len(at))
    widths = np.array(lanes_of(count) if lanes is None else lanes, dtype=int)
    lane_of = np.searchsorted(widths, count)
    out: list[Batch] = []
    for k in np.unique(lane_of):
        chosen, width = np.flatnonzero(lane_of == k), int(widths[k])
        first, full = start[chosen], bool((count[chosen] == width).all())
        if order is None and full and (np.diff(first) == width).all():
            run = slice(int(first[0]), int(first[-1]) + width)
            shape = len(chosen), width
            design = np.ascontiguousarray(X[run]).reshape(*shape, X.shape[1])
            out.append(Batch(nodes[chosen], np.broadcast_to(1.0, shape), design, run))
            continue
        lane = np.arange(width)
        mask = lane < count[chosen, None]
        rows = np.where(mask, first[:, None] + lane, first[:, None])
        rows = rows if order is None else order[rows]
        out.append(Batch(nodes[chosen], mask.astype(float), X[rows] * mask[:, :, None], rows))
    return tuple(out)


# ---- stacks of symmetric matrices, one triangle of each --------------------------------------------------------------
ALIKE = 1e6  # diagonals of coordinates that differ by less are in the same units
CELLS = 1 << 15  # numbers of dense matrices, or of designs, at a time
PRODUCTS = 1 << 20  # numbers of a stack from which on products with it are made in parts
AT_ONCE = 1e8  # multiplications of LAPACK between two looks at the clock
CALL = 1e4  # multiplications that take as long as a call of it


@dataclass(frozen=True, eq=False)
class Packed:
    """Symmetric matrices (n, d, d): of each the rows of its lower triangle, one behind the other, n d (d + 1) / 2
    numbers in all."""

    flat: Array
    d: int

    def __len__(self) -> int:
        return 2 * len(self.flat) // (self.d * (self.d + 1))

    @property
    def rows(self) -> Array:
        """One row for each matrix, (n, d (d + 1) / 2)."""
        return self.flat.reshape(-1, self.d * (self.d + 1) // 2)

    @property
    def diagonal(self) -> Array:
        """The diagonals, (n, d)."""
        j = np.arange(self.d)
        return self.rows.take(j * (j + 3) // 2, axis=1)  # side by side in memory, whatever n: sums of rows rest on it

    def dense(self, some: slice = slice(None)) -> Array:
        """Some of the matrices, (g, d, d)."""
        return self.rows[some][:, _places(self.d)]

    def times(self, v: Array) -> Array:
        """The products with v (n, d), one for each."""
        out = np.empty(v.shape)
        for some in self.at_a_time():
            out[some] = np.matmul(self.dense(some), v[some, :, None])[:, :, 0]
        return out

    def scaled(self, factor: float) -> Packed:
        """The matrices times a number; themselves where it is 1."""
        return self if factor == 1.0 else Packed(factor * self.flat, self.d)

    def at_a_time(self) -> list[slice]:
        """So many of them together that they stay in the cache where they are dense."""
        return list(at_a_time(CELLS // self.d**2, len(self)))


def triangles(dense: Array) -> Array:
    """The lower triangles of a stack (g, d, d), as rows of a `Packed`."""
    return dense[:, *np.tril_indices(dense.shape[1])]


def packed_grams(batch: Batch, weight: Array) -> Packed:
    """sum_r weight_r x_r x_r' over the samples r of each node of a batch, for weights of all samples of the block."""
    g, m, d = batch.X.shape
    out = Packed(np.empty(g * d * (d + 1) // 2), d)
    each = batch.pad(weight)
    for some in at_a_time(CELLS // (m * d), g):
        out.rows[some] = triangles(gram(batch.X[some], each[some] * batch.mask[some]))
    return out


@cache
def _places(d: int) -> Array:
    """The places of the entries of a matrix in its row, (d, d)."""
    i, j = np.arange(d)[:, None], np.arange(d)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return high * (high + 1) // 2 + low
