"""Stacks of symmetric matrices, one triangle of each: what nodes keep of their Hessians takes half of the memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .padding import Batch, at_a_time, gram
from .records import Array

CELLS = 1 << 15  # numbers of dense matrices, or of designs, at a time


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
    """Where the entries of a matrix stand in its row, (d, d)."""
    i, j = np.arange(d)[:, None], np.arange(d)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return high * (high + 1) // 2 + low
