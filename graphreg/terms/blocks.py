"""The blocks of the canonical form, to which terms are lowered: samples of one loss, edges that share one penalty."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..base.display import Brief
from ..inputs import difference_matrix
from .calculus import Strength
from .padding import Batch, Packed, adjoint, at_a_time, batches, gram, lanes_of, packed_grams, predictors, times
from .penalties.base import AbstractPenalty, row_norm
from .records import Array, Role, alike, shared

if TYPE_CHECKING:
    from .losses.loss import AbstractLoss


Rows = Array | slice


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


STREAM = 1 << 17  # numbers looked at together
LARGE = 1 << 20  # entries of X beyond which no sparse matrix of it is made for products
MANY = 1 << 18  # edges beyond which K is not kept beside K'


@dataclass(frozen=True, repr=False)
class SampleBlock(Brief):
    """Samples of one loss. The predictor (M,) or (M, k) is ``A vec(w) + offset``, A sparse.

    The nodes are those of a form of ``n``; a term leaves n to the form that takes it.
    """

    loss: AbstractLoss
    strength: Strength
    node: Array  # (M,)
    X: Array | None  # (M, d); None where the predictor is w_i itself
    y: Array
    offset: Array
    base_scale: Array  # (M,), without the strength
    n: int = 0
    given_layout: Layout | None = None  # of the block that this one is a part of

    @shared
    def one_each(self) -> bool:
        """True where the predictor of sample i is the parameter of node i itself, in order."""
        own = self.X is None or (self.X.shape[1] == 1 and bool((self.X == 1.0).all()))
        return own and len(self.node) == self.n and bool((self.node[:-1] < self.node[1:]).all())

    @property
    def width(self) -> int:
        """The number k of predictors of a sample."""
        return 1 if self.offset.ndim == 1 else self.offset.shape[1]

    @shared
    def layout(self) -> Layout:
        if self.given_layout is not None:
            return self.given_layout
        size = 0 if self.X is None else self.X.size * self.width
        return Layout.of(np.bincount(self.node), size)

    @shared
    def A(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        """(M k, n d): (Xw)_rj = sum over features f of X_rf w_i[f, j]. With one predictor it has a view of X."""
        X, k = np.ones((len(self.node), 1)) if self.X is None else self.X, self.width
        (M, p), rows = X.shape, X if k == 1 else np.repeat(X, k, axis=0)
        kind = np.int32 if max(M, self.n) * k * p < np.iinfo(np.int32).max else np.int64  # products are bound by memory
        first = self.node.astype(kind) * (p * k)
        indices = (first[:, None, None] + np.arange(k, dtype=kind)[:, None] + np.arange(p, dtype=kind) * k).ravel()
        entries = rows.ravel(), indices, np.arange(0, M * k * p + 1, p, dtype=kind)
        return sp.csr_array(entries, shape=(M * k, self.n * p * k))

    @shared
    def stacks(self) -> tuple[Batch, ...] | None:
        """The samples in stacks of nodes; None where the predictor is w_i itself."""
        return None if self.X is None else batches(self.node, self.X, self.layout.lanes)

    @shared
    def grams(self) -> tuple[Packed, ...]:
        """sum_r x_r x_r' over the samples of each node, times their scales without the strength; per stack."""
        return tuple(packed_grams(batch, self.base_scale) for batch in self.stacks or ())

    @cached_property
    def moments(self) -> Array:
        """sum_r x_r (y_r - o_r) over the samples of each node, times their scales without the strength, (n, p). Not
        shared: copies may have other targets."""
        assert self.X is not None
        return self.adjoint(self.base_scale * (self.y - self.offset), (self.n, self.X.shape[1]))

    @shared
    def lengths(self) -> Array:
        """||x_r|| of each row of A."""
        return np.ones(self.offset.size) if self.X is None else np.repeat(row_norm(self.X), self.width)

    @property
    def scale(self) -> Array:
        """s_r, (M,)."""
        base = self.base_scale
        if len(base) and base.strides == (0,):  # the same number everywhere
            return np.broadcast_to(float(self.strength) * base[0], base.shape)
        return float(self.strength) * base

    def scale_of(self, rows: Rows) -> Array:
        """s_r of some samples, at no cost for the others."""
        return float(self.strength) * self.base_scale[rows]

    def fixed(self) -> SampleBlock:
        """The block at the strength of this moment."""
        return alike(self, strength=Strength(float(self.strength)))

    def part(self, rows: Array) -> SampleBlock:
        """Some samples of the block, by their numbers; the loss stays whole."""
        own = {name: getattr(self, name)[rows] for name in ("node", "y", "offset", "base_scale")}
        return replace(self, X=None if self.X is None else self.X[rows], **own)

    @property
    def nodes(self) -> Array:
        """The node of each sample."""
        return self.node

    def column(self, scale: Array) -> Array:
        """s_r shaped to broadcast against predictors."""
        return scale[:, None] if self.offset.ndim == 2 else scale

    def scaled(self, values: Array) -> Array:
        """s_r times values per sample, of any shape: numbers, vectors, matrices."""
        return self.scale.reshape(-1, *[1] * (values.ndim - 1)) * values

    def apply(self, w: Array) -> Array:
        """X w, without the offset."""
        if self.layout.in_stacks:
            return self._by_node(w)
        return (self.A @ w.ravel()).reshape(self.offset.shape)

    def predict(self, w: Array) -> Array:
        x = self.apply(w)
        x += self.offset
        return x

    def apply_some(self, w: Array, some: slice) -> Array:
        """X w at some samples."""
        mine = w[self.node[some]]
        if self.X is None:
            return mine.reshape(-1, *self.offset.shape[1:])
        if self.offset.ndim == 1:
            return np.einsum("rj,rj->r", self.X[some], mine)
        return np.einsum("rj,rjk->rk", self.X[some], mine.reshape(len(mine), self.X.shape[1], -1))

    def some(self) -> Iterator[slice]:
        """So many samples at a time that they stay in the cache."""
        return at_a_time(STREAM // max(self.width, 1 if self.X is None else self.X.shape[1]), len(self.node))

    def adjoint(self, a: Array, shape: tuple[int, int]) -> Array:
        """X'a, (n, d)."""
        if not self.layout.in_stacks:
            return (self.A.T @ a.ravel()).reshape(shape)
        out = np.zeros(shape)
        with np.errstate(all="ignore"):  # infinite prices, of which a sparse product says nothing either
            for batch in self.stacks or ():
                each = batch.pad(a)
                if batch.run is None:
                    each = np.where((batch.mask if a.ndim == 1 else batch.mask[:, :, None]) != 0.0, each, 0.0)
                out[batch.nodes] = adjoint(batch.X.transpose(0, 2, 1), each)
        return out

    def _by_node(self, w: Array) -> Array:
        stacks, out = self.stacks or (), np.zeros(self.offset.shape)
        if not w.any():
            return out
        with np.errstate(all="ignore"):  # as in `adjoint`
            for batch in stacks:
                found = predictors(batch.X, w[batch.nodes])
                if len(stacks) == 1 and batch.run is not None:  # of all samples, in their order
                    return found.reshape(out.shape)
                batch.put(found, out)
        return out

    def values(self, w: Array) -> Array:
        """s_r l_r at each sample."""
        x = self.predict(w)
        return _streamed(lambda some: self.scale_of(some) * self.loss.value(x[some], self.y[some]), *x.shape)

    def prices(self, w: Array) -> Array:
        """The (sub)gradients s_r l'(predictor), inside dom l*."""
        return self.column(self.scale) * self.loss.gradient(self.predict(w), self.y)

    def curvatures(self, w: Array) -> Array:
        """s_r l_r'' of a smooth loss: numbers, or matrices (k, k), per sample."""
        return self.scaled(self.loss.curvature(self.predict(w), self.y))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)

    def sums(self, weight: Array) -> Array:
        """sum_r x_r weight_r x_r' over the samples r of each node: (n, p, p) for numbers (M,) where there is a design,
        else (n, d, d), for numbers, diagonals (M, k) or matrices (M, k, k) between the predictors of a sample."""
        if self.stacks is None and weight.ndim < 3:
            diagonal = np.zeros((self.n, self.width))
            np.add.at(diagonal, self.node, weight.reshape(len(weight), -1))
            return diagonal[:, :, None] * np.eye(self.width)
        weight = weight[:, :, None] * np.eye(self.width) if weight.ndim == 2 else weight
        size = self.width if self.X is None else self.X.shape[1] * (1 if weight.ndim == 1 else self.width)
        out = np.zeros((self.n, size, size))
        if self.stacks is None:
            np.add.at(out, self.node, weight)
        for batch in self.stacks or ():
            mask = batch.mask.reshape(*batch.mask.shape, *[1] * (weight.ndim - 1))
            out[batch.nodes] = gram(batch.X, batch.pad(weight) * mask)
        return out

    def conjugates(self, a: Array) -> Array:
        """s_r l_r*(a_r / s_r)."""
        return _streamed(lambda some: self._conjugates(a[some], some), *a.shape)

    def duals(self, a: Array) -> Array:
        """The summands of Q: <a_r, o_r> - s_r l_r*(a_r / s_r)."""
        return _streamed(lambda some: _rowwise(a[some] * self.offset[some]) - self._conjugates(a[some], some), *a.shape)

    def _conjugates(self, a: Array, some: Rows) -> Array:
        scale = self.scale_of(some)
        return scale * self.loss.conjugate(a / self.column(scale), self.y[some])

    def residuals(self, w: Array, a: Array) -> Array:
        """The Fenchel-Young residuals."""
        return self.values(w) + self.conjugates(a) - _rowwise(a * self.predict(w))

    def conduct(self, M: Array, w: Array) -> Array:
        """M X w, the prices that potentials drive; M has a number per predictor, or a matrix per sample."""
        return times(M, self.apply(w))

    def clip(self, a: Array) -> Array:
        """Prices near a, inside their domain."""
        s = self.column(self.scale)
        return s * self.loss.clip(a / s, self.y)

    def span(self, a: Array) -> Array:
        """The nearest prices in the span of their domain."""
        return self.loss.prices.span(a)

    def gauge(self, a: Array) -> Array:
        """inf {t : a / t in dom l*} for each sample, (M,)."""
        low, high = self.loss.domain(self.y)
        b = a / self.column(self.scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            gauge = np.abs(np.where(b > 0, b / high, np.where(b < 0, b / low, 0.0)))
        return gauge if gauge.ndim == 1 else gauge.max(axis=1)

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        """For each sample a t in [0, 1] with start + t (end - start) in the domain, where start lies."""
        s = self.column(self.scale)
        return self.loss.prices.step_to_boundary(start / s, end / s, self.y)


@dataclass(frozen=True, repr=False)
class EdgeBlock(Brief):
    """Edges that share one penalty; ``z = (Kw)_e - center_e`` on the coordinates ``features``.

    The ends are nodes of a form of ``n``. In what a term gives, indices from ``n_observed`` on are its own latent
    nodes, counted from there; the form that takes it moves them behind those of the terms before.
    """

    penalty: AbstractPenalty
    strength: Strength
    tail: Array
    head: Array  # GROUND (-1) for edges to the ground
    base_weight: Array  # (m,), without the strength
    features: Array | None  # None: all coordinates
    center: Array | None  # (m, k)
    role: Role
    name: str  # for printing
    n: int = 0

    @shared
    def K(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        """w -> w_tail - w_head, (m, n)."""
        return difference_matrix(self.tail, self.head, self.n)

    @shared
    def transposed(self) -> sp.csr_array:
        return sp.csr_array((self.K if len(self.tail) < MANY else difference_matrix(self.tail, self.head, self.n)).T)

    @property
    def weight(self) -> Array:
        """c_e, (m,); 1 for constraints, which have none."""
        return float(self.strength) * self.base_weight

    def weight_of(self, some: Rows) -> Array:
        """c_e of some edges, at no cost for the others."""
        return float(self.strength) * self.base_weight[some]

    def some(self, width: int) -> Iterator[slice]:
        """So many edges at a time, of ``width`` coordinates, that they stay in the cache."""
        return at_a_time(STREAM // max(width, 1), len(self.tail))

    @shared
    def in_line(self) -> bool:
        """True where the edges join each node of the form with the next, in order."""
        tail, head = self.tail, self.head
        if len(tail) != self.n - 1 or self.ground:
            return False
        return bool((tail < head).all() and (tail[1:] == head[:-1]).all())  # so many steps upwards are steps of one

    @property
    def ground(self) -> bool:
        return self.role.kind == "ground"

    @property
    def coordinates(self) -> Any:
        """The coordinates that the edges act on, as an index."""
        return slice(None) if self.features is None else self.features

    @property
    def nodes(self) -> Array:
        """The node of each edge at which it begins."""
        return self.tail

    @staticmethod
    def column(weight: Array) -> Array:
        """c_e shaped to broadcast against differences."""
        return weight[:, None]

    def columns(self, d: int) -> Array:
        """The numbers of these, of d."""
        return np.arange(d) if self.features is None else self.features

    def flat(self, d: int) -> sp.csr_array:
        """vec(w) -> vec(Kw) on these coordinates, (m k, n d)."""
        pick = sp.eye_array(d, format="csr")[self.columns(d)]  # pyright: ignore[reportIndexIssue]  (scipy has no types)
        return sp.csr_array(sp.kron(self.K, pick, format="csr"))

    def fixed(self) -> EdgeBlock:
        """The block at the strength of this moment."""
        return alike(self, strength=Strength(float(self.strength)))

    def part(self, rows: Array) -> EdgeBlock:
        """Some edges of the block, by a mask or by their numbers."""
        own = {name: getattr(self, name)[rows] for name in ("tail", "head", "base_weight")}
        return replace(self, center=None if self.center is None else self.center[rows], **own)

    def apply(self, w: Array) -> Array:
        """(Kw)_e on the features of the block, (m, k)."""
        part = np.ascontiguousarray(w[:, self.coordinates])
        return _streamed(partial(self._across, part), len(self.tail), part.shape[1])

    def _across(self, part: Array, some: Rows) -> Array:
        """w_tail - w_head of some edges, for the coordinates of the block."""
        z = part.take(self.tail[some], axis=0)
        if not self.ground:
            z -= part.take(self.head[some], axis=0)
        return z

    def difference(self, w: Array) -> Array:
        z = self.apply(w)
        return z if self.center is None else z - self.center

    def add_adjoint(self, u: Array, out: Array) -> None:
        """out += K'u."""
        if self.ground and self.features is None and self._once:
            out[self.tail] += u
        else:
            out[:, self.coordinates] += self.transposed @ u

    @shared
    def _once(self) -> bool:
        """True where no node is the tail of two edges."""
        return len(self.tail) == 0 or int(np.bincount(self.tail).max()) == 1

    def values(self, w: Array) -> Array:
        """c_e phi_e at each edge."""
        part, center = np.ascontiguousarray(w[:, self.coordinates]), self.center

        def each(some: Rows) -> Array:
            z = self._across(part, some)
            return self.weight_of(some) * self.penalty.value(z if center is None else z - center[some])

        return _streamed(each, len(self.tail), part.shape[1])

    def gradients(self, w: Array) -> Array:
        """c_e grad phi_e of a smooth penalty, (m, k)."""
        return self.weight[:, None] * self.penalty.gradient(self.difference(w))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)

    def curvatures(self, w: Array) -> Array:
        """The Hessians c_e phi_e'' of a smooth penalty, (m, k, k)."""
        h = self.penalty.curvature(self.difference(w))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
        return self.weight[:, None, None] * (h if h.ndim == 3 else h[:, :, None] * np.eye(h.shape[1]))

    def conjugates(self, u: Array) -> Array:
        """c_e phi_e*(u_e / c_e)."""

        def each(some: Rows) -> Array:
            c = self.weight_of(some)
            return c * self.penalty.conjugate(u[some] / c[:, None])

        return _streamed(each, *u.shape)

    def duals(self, u: Array) -> Array:
        """The summands of Q: -<u_e, center_e> - c_e phi_e*(u_e / c_e)."""
        return -(0.0 if self.center is None else np.einsum("ij,ij->i", u, self.center)) - self.conjugates(u)

    def residuals(self, w: Array, u: Array) -> Array:
        """The Fenchel-Young residuals."""
        return self.values(w) + self.conjugates(u) - np.einsum("ij,ij->i", u, self.difference(w))

    def conduct(self, C: Array, w: Array) -> Array:
        """C K w, the flows that potentials drive; C (m, k) or (m, 1)."""
        return self.penalty.domain.conduct(C, self.apply(w))

    def clip(self, u: Array) -> Array:
        """Flows near u, inside their domain."""

        def each(some: Rows) -> Array:
            c = self.weight_of(some)[:, None]
            return c * self.penalty.domain.clip(u[some] / c)

        return _streamed(each, *u.shape)

    def span(self, u: Array) -> Array:
        """The nearest flows in the span of their domain."""
        return self.penalty.domain.span(u)

    def gauge(self, u: Array) -> Array:
        """inf {t : u / t inside} for each edge, (m,)."""
        return self.penalty.domain.gauge(u / self.weight[:, None])

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        """For each edge a t in [0, 1] with start + t (end - start) inside, where start lies."""
        c = self.weight[:, None]
        return self.penalty.domain.step_to_boundary(start / c, end / c)


def strengths(blocks: Iterable[SampleBlock | EdgeBlock]) -> tuple[float, ...]:
    """The strengths of some blocks at this moment: what holds as long as they do is found once for them."""
    return tuple(float(block.strength) for block in blocks)


def _streamed(each: Callable[[Rows], Array], rows: int, width: int = 1) -> Array:
    """The values of ``each`` at the rows, for as many of them at a time as stay in the cache: of large blocks it
    leaves no arrays between that are as large."""
    if rows * width <= STREAM:
        return each(slice(None))
    out: Array | None = None
    for some in at_a_time(STREAM // width, rows):
        part = each(some)
        if out is None:
            out = np.empty((rows, *part.shape[1:]), dtype=part.dtype)
        out[some] = part
    assert out is not None  # there are rows
    return out


def _rowwise(products: Array) -> Array:
    """One number per sample."""
    return products if products.ndim == 1 else products.sum(axis=1)


@dataclass(frozen=True)
class Lowered:
    """A term in canonical form. ``latent`` are the labels of the nodes it introduces."""

    losses: tuple[SampleBlock, ...] = ()
    edges: tuple[EdgeBlock, ...] = ()
    latent: tuple[Hashable, ...] = ()
