"""The map of samples: their predictors x_r' w_i, of the parameters of their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp

from .maps import AbstractMatrix, Rows, pieces
from .padding import Batch, adjoint, batches, gram, lanes_of, predictors, product
from .penalties.base import row_norm
from .records import Array

LARGE = 1 << 20  # entries of X beyond which no sparse matrix of it is made for products


@dataclass(frozen=True)
class Layout:
    """The way in which a block of samples is multiplied: in stacks with these lanes (see `padding.batches`), and
    whether `apply` takes them: a sparse A would need half as much memory again as X, for its indices. Bits depend on
    it, so a part of a block is multiplied as the whole is."""

    lanes: tuple[int, ...]
    in_stacks: bool

    @staticmethod
    def of(counts: Array, size: int) -> Layout:
        """The layout of samples whose nodes have these counts, and whose design has so many numbers."""
        return Layout(lanes_of(counts), size >= LARGE)


@dataclass(frozen=True, repr=False)
class Design(AbstractMatrix):
    """w -> X w: x_r' w_i for each sample r at its node i, one number or ``outputs`` of them; w_i itself without an X.

    Rows have the shape (M,), or (M, k) where ``outputs`` is k.
    """

    node: Array  # (M,)
    X: Array | None  # (M, p); None where the predictor is w_i itself
    outputs: int | None
    n: int = 0
    given_layout: Layout | None = None  # of the samples that these are a part of

    noun = "sample"
    apart = True  # pyright: ignore[reportAssignmentType]  (known beforehand)

    @property
    def text(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  (follows from X and the outputs)
        return "w_i" if self.X is None else "x_r'w_i" if self.outputs is None else "W_i'x_r"

    @property
    def count(self) -> int:
        return len(self.node)

    @property
    def touched(self) -> Array:
        return self.node

    @property
    def k(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  (follows from the outputs)
        return self.outputs or 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of X w."""
        return (self.count,) if self.outputs is None else (self.count, self.outputs)

    @property
    def owner(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]  (the node itself)
        return self.node

    @cached_property
    def one_each(self) -> bool:
        """True where the predictor of sample i is the parameter of node i itself, in order."""
        own = self.X is None or (self.X.shape[1] == 1 and bool((self.X == 1.0).all()))
        return own and len(self.node) == self.n and bool((self.node[:-1] < self.node[1:]).all())

    @cached_property
    def layout(self) -> Layout:
        if self.given_layout is not None:
            return self.given_layout
        size = 0 if self.X is None else self.X.size * self.k
        return Layout.of(np.bincount(self.node), size)

    @cached_property
    def K(self) -> sp.csr_array:  # noqa: N802  # pyright: ignore[reportIncompatibleVariableOverride]  (a matrix, made late)
        """(M k, n d): (Xw)_rj = sum over features f of X_rf w_i[f, j]. With one predictor it has a view of X."""
        X, k = np.ones((len(self.node), 1)) if self.X is None else self.X, self.k
        (M, p), rows = X.shape, X if k == 1 else np.repeat(X, k, axis=0)
        kind = np.int32 if max(M, self.n) * k * p < np.iinfo(np.int32).max else np.int64  # products are bound by memory
        first = self.node.astype(kind) * (p * k)
        indices = (first[:, None, None] + np.arange(k, dtype=kind)[:, None] + np.arange(p, dtype=kind) * k).ravel()
        entries = rows.ravel(), indices, np.arange(0, M * k * p + 1, p, dtype=kind)
        return sp.csr_array(entries, shape=(M * k, self.n * p * k))

    @cached_property
    def stacks(self) -> tuple[Batch, ...] | None:
        """The samples in stacks of nodes; None where the predictor is w_i itself."""
        return None if self.X is None else batches(self.node, self.X, self.layout.lanes)

    @cached_property
    def norms(self) -> Array:
        return np.ones(self.count * self.k) if self.X is None else np.repeat(row_norm(self.X), self.k)

    def part(self, rows: Array) -> Self:
        return replace(self, node=self.node[rows], X=None if self.X is None else self.X[rows])

    def moved(self, place: Array, n: int) -> Self:
        return replace(self, node=place[self.node], n=n)

    def some(self) -> Iterator[slice]:
        """So many samples at a time that they stay in the cache."""
        return pieces(self.count, max(self.k, 1 if self.X is None else self.X.shape[1]))

    def across(self, part: Array, some: Rows) -> Array:
        mine = part[self.node[some]]
        if self.X is None:
            return mine.reshape(-1, *self.shape[1:])
        if self.outputs is None:
            return np.einsum("rj,rj->r", self.X[some], mine)
        return np.einsum("rj,rjk->rk", self.X[some], mine.reshape(len(mine), self.X.shape[1], -1))

    def apply(self, w: Array) -> Array:
        """X w, an array of its own."""
        if self.layout.in_stacks:
            return self._by_node(w)
        return product(self.K, w.ravel()).reshape(self.shape)

    def _by_node(self, w: Array) -> Array:
        stacks, out = self.stacks or (), np.zeros(self.shape)
        if not w.any():
            return out
        with np.errstate(all="ignore"):  # as in `adjoint`
            for batch in stacks:
                found = predictors(batch.X, w[batch.nodes])
                if len(stacks) == 1 and batch.run is not None:  # of all samples, in their order
                    return found.reshape(out.shape)
                batch.put(found, out)
        return out

    def adjoint(self, a: Array, shape: tuple[int, int]) -> Array:
        """X'a, (n, d)."""
        if not self.layout.in_stacks:
            return product(self.K, a.ravel(), transposed=True).reshape(shape)
        out = np.zeros(shape)
        with np.errstate(all="ignore"):  # infinite prices, of which a sparse product says nothing either
            for batch in self.stacks or ():
                each = batch.pad(a)
                if batch.run is None:
                    each = np.where((batch.mask if a.ndim == 1 else batch.mask[:, :, None]) != 0.0, each, 0.0)
                out[batch.nodes] = adjoint(batch.X.transpose(0, 2, 1), each)
        return out

    def add_adjoint(self, u: Array, out: Array) -> None:
        out += self.adjoint(u, (out.shape[0], out.shape[1]))

    def sums(self, weight: Array) -> Array:
        """sum_r x_r weight_r x_r' over the samples r of each node: (n, p, p) for numbers (M,) where there is a design,
        else (n, d, d), for numbers, diagonals (M, k) or matrices (M, k, k) between the predictors of a sample."""
        if self.stacks is None and weight.ndim < 3:
            diagonal = np.zeros((self.n, self.k))
            np.add.at(diagonal, self.node, weight.reshape(len(weight), -1))
            return diagonal[:, :, None] * np.eye(self.k)
        weight = weight[:, :, None] * np.eye(self.k) if weight.ndim == 2 else weight
        size = self.k if self.X is None else self.X.shape[1] * (1 if weight.ndim == 1 else self.k)
        out = np.zeros((self.n, size, size))
        if self.stacks is None:
            np.add.at(out, self.node, weight)
        for batch in self.stacks or ():
            mask = batch.mask.reshape(*batch.mask.shape, *[1] * (weight.ndim - 1))
            out[batch.nodes] = gram(batch.X, batch.pad(weight) * mask)
        return out
