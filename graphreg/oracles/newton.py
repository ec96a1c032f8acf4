"""Newton systems of a whole problem: sums of B'DB over its samples and edges, factorised in a sparse order.

B holds the rows of a block (the predictors of its samples, the differences across its edges), D a small symmetric
matrix per sample or edge. Which entries of the sum can differ from 0, in which order they fill in least, and which
entries of D they are made of depends on graph and features alone, and is found once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..form import Form
from ..terms import Array
from .factors import QUICK, Factors, is_low
from .fill import adjacency, band, check_size, column_counts, sparse_order

RIDGE = 1e-15  # relative to each diagonal, of the size of its rounding; a larger one hides losses beside huge edges


@dataclass(frozen=True)
class Rows:
    """The rows of m samples or edges, k each, on the unknowns in the order of the system."""

    B: sp.csr_array  # (m k, n d)
    BT: sp.csr_array
    k: int

    @classmethod
    def of(cls, B: sp.csr_array, k: int) -> Rows:
        return cls(sp.csr_array(B), sp.csr_array(B.T), k)

    @property
    def m(self) -> int:
        return self.B.shape[0] // self.k  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)

    def apply(self, x: Array) -> Array:
        """B x, (k, m)."""
        return np.ascontiguousarray((self.B @ x).reshape(self.m, self.k).T)

    def adjoint(self, u: Array) -> Array:
        """B'u of u (k, m)."""
        return self.BT @ np.ascontiguousarray(u.T).ravel()

    def entries(self) -> tuple[Array, Array, Array, Array]:
        """Rows, columns and factors of what each entry of D (numbered last) adds to B'DB."""
        B, m, k = self.B, self.m, self.k
        count = np.diff(B.indptr)
        p = int(count.max(initial=0))
        place = np.arange(len(B.indices)) - np.repeat(B.indptr[:-1], count)
        column, factor = np.zeros((m * k, p), dtype=np.int64), np.zeros((m * k, p))
        row = np.repeat(np.arange(m * k), count)
        column[row, place], factor[row, place] = B.indices, B.data
        column, factor = column.reshape(m, k, p), factor.reshape(m, k, p)
        product = factor[:, :, None, :, None] * factor[:, None, :, None, :]
        kept = np.flatnonzero(product)
        i = np.broadcast_to(column[:, :, None, :, None], product.shape).ravel()[kept]
        j = np.broadcast_to(column[:, None, :, None, :], product.shape).ravel()[kept]
        return i, j, product.ravel()[kept], kept // (p * p)


class NewtonSystem:
    """The matrices sum_b B_b' D_b B_b of a form, over its samples and edges. One D is of all rows of a sample or an
    edge, of one row where their Hessian is diagonal, and of one piece of a penalty that is a sum of norms."""

    def __init__(self, form: Form) -> None:
        n, d = form.shape
        check_size(form)
        A = adjacency(form)
        nodes = sparse_order(A)
        counts = d * column_counts(A, nodes)
        squares = d * float((counts**2).sum())
        self.low, self.quick = is_low(d * float(counts.sum()), squares), squares <= QUICK
        self.order = (nodes[:, None] * d + np.arange(d)).ravel()  # of the entries of w
        self.shape = form.shape
        self.samples = tuple(self._samples(form))
        self.edges = tuple(self._edges(form))
        self.kinks = tuple(k for k, e in enumerate(form.edges) if e.penalty.pieces(form.width(e)))  # sums of norms
        self._pattern(n * d)

    def vector(self, w: Array) -> Array:
        """w (n, d) in the order of the system."""
        return w.ravel()[self.order]

    def matrix(self, x: Array) -> Array:
        """The other way round."""
        out = np.empty(len(x))
        out[self.order] = x
        return out.reshape(self.shape)

    def factorised(self, D: Sequence[Array]) -> Callable[[Array], Array]:
        """How to solve with the sum of B'DB, D (m, k, k) per block, those of the samples first; until the next call.

        Raises
        ------
        ArithmeticError
            Where the matrix is not finite or singular.
        """
        data = self._sum @ np.concatenate([np.ascontiguousarray(each).ravel() for each in D])
        diagonal = data[self._diagonal]
        data[self._diagonal] = np.where(diagonal > 0.0, diagonal * (1.0 + RIDGE), 1.0)
        if not np.isfinite(data).all():
            raise ArithmeticError("a Newton system is not finite")
        return self._factors(data)

    def _samples(self, form: Form) -> Iterator[Rows]:
        for block in form.samples:
            H = block.loss.curvature(block.offset[:1], block.y[:1])  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
            yield Rows.of(block.A[:, self.order], block.width if H.ndim == 3 else 1)

    def _edges(self, form: Form) -> Iterator[Rows]:
        for edge in form.edges:
            k = edge.penalty.pieces(form.width(edge))
            if k is None:
                H = edge.penalty.curvature(np.zeros((1, form.width(edge))))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
                k = form.width(edge) if H.ndim == 3 else 1
            yield Rows.of(edge.flat(form.d)[:, self.order], k)

    def _pattern(self, size: int) -> None:
        """Which entries there are, the upper half alone where the factor is low, and of which entries of all D they are
        sums."""
        i, j, factor, source = [np.arange(size)], [np.arange(size)], [np.zeros(size)], [np.zeros(size, dtype=np.int64)]
        begin = 0
        for rows in (*self.samples, *self.edges):
            row, column, product, of = rows.entries()
            kept = np.flatnonzero(row <= column) if self.low else slice(None)
            i.append(row[kept])
            j.append(column[kept])
            factor.append(product[kept])
            source.append(of[kept] + begin)
            begin += rows.m * rows.k**2
        place = np.concatenate(j).astype(np.int64) * size + np.concatenate(i)
        known, at = np.unique(place, return_inverse=True)
        content = (np.concatenate(factor), (at.ravel(), np.concatenate(source)))
        self._sum = sp.csr_array(sp.coo_array(content, shape=(len(known), max(begin, 1))))
        indptr = np.searchsorted(known, np.arange(size + 1, dtype=np.int64) * size).astype(np.int32)
        self._factors = Factors((known % size).astype(np.int32), indptr, self.low, self.quick)
        self._diagonal = np.searchsorted(known, np.arange(size, dtype=np.int64) * (size + 1))


def work(form: Form) -> float:
    """About how many multiplications a factorisation takes at most: d^3 sum_i b_i^2 for the band b (see `band`)."""
    return form.once("work", None, lambda: float(form.d**3 * (band(adjacency(form)) ** 2).sum()))


def filled_work(form: Form) -> float:
    """The same as it is: d^3 sum_i c_i^2, where c_i nodes stand in column i of a factor in the sparse order."""

    def counted() -> float:
        A = adjacency(form)
        return float(form.d**3 * (column_counts(A, sparse_order(A)) ** 2).sum())

    return form.once("filled work", None, counted)
