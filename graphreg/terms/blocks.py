"""The blocks of the canonical form, to which terms are lowered: samples of one loss, edges that share one penalty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from ..base.display import Brief
from ..errors import TermError
from .calculus import Strength
from .design import Layout
from .maps import AbstractEdges, AbstractMap, AbstractMatrix, Rows, pieces, streamed
from .padding import Batch, Packed, packed_grams, times
from .penalties.base import AbstractPenalty
from .records import Array, Role, alike, shared

if TYPE_CHECKING:
    from .losses.loss import AbstractLoss


T = TypeVar("T")
M = TypeVar("M", bound=AbstractMap)


class of_map(Generic[T]):  # noqa: N801  (a decorator)
    """An attribute of a block that its map has, by its own name or another."""

    of: tuple[str, ...] = ()  # the kinds of rows that alone have it (see `AbstractMap.noun`)
    needed = ""  # these in words

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name, self.own = self.name or name, name

    def __get__(self, block: Any, owner: type[Any] | None = None) -> T:
        if self.of and block.map.noun not in self.of:
            raise TermError(
                f"{block.name} has rows that are no {self.needed}, and here {self.needed} are needed ({self.name})"
            )
        vars(block)[self.own] = found = getattr(block.map, self.name)  # which is there from now on
        return found


class of_edges(of_map[T]):  # noqa: N801  (a decorator)
    """An attribute that only edges have: where the rows of a block are of another kind, whoever asks is refused."""

    of, needed = ("edge", "node"), "edges"


class of_design(of_map[T]):  # noqa: N801  (a decorator)
    """An attribute that only samples at nodes have: whoever asks it of a loss of other rows is refused."""

    of, needed = ("sample",), "samples at nodes"


class AbstractBlock(Brief, ABC, Generic[M]):
    """A function of the rows of a map, each with a weight of its own: s_r l_r((Xw)_r + o_r), c_e phi((Kw)_e - b_e)."""

    strength: Strength
    map: M
    n = of_map[int]()  # the nodes of the form
    count = of_map[int]()  # the rows

    @property
    def keys(self) -> Sequence[Hashable]:
        """What names rows that are no edges."""
        return self.map.keys or range(self.count)

    @abstractmethod
    def scale_of(self, some: Rows) -> Array:
        """The weights of some rows, at no cost for the others."""

    @abstractmethod
    def column(self, weight: Array) -> Array:
        """Weights shaped to broadcast against rows."""

    @abstractmethod
    def conjugate(self, u: Array, some: Rows) -> Array:
        """The conjugate of the function at some rows, without their weights."""

    def fixed(self) -> Self:
        """The block at the strength of this moment."""
        return alike(self, strength=Strength(float(self.strength)))

    def moved(self, place: Array, n: int) -> Self:
        """The block in a form of n nodes, where node i is ``place[i]``."""
        return replace(cast(Any, self), map=self.map.moved(place, n))

    def over(self, n: int) -> Self:
        """The block in a form of n nodes, of which its own are the first."""
        return replace(cast(Any, self), map=self.map.over(n))

    def apply(self, w: Array) -> Array:
        """K w, without what is added to it."""
        return self.map.apply(w)

    def add_adjoint(self, u: Array, out: Array) -> None:
        """out += K'u."""
        self.map.add_adjoint(u, out)

    def conjugates(self, u: Array) -> Array:
        """s_r l_r*(a_r / s_r), or c_e phi*(u_e / c_e)."""
        return streamed(lambda some: self._conjugates(u[some], some), *u.shape)

    def _conjugates(self, u: Array, some: Rows) -> Array:
        c = self.scale_of(some)
        return c * self.conjugate(u / self.column(c), some)


@dataclass(frozen=True, repr=False)
class SampleBlock(AbstractBlock[AbstractMatrix]):
    """Samples of one loss. The predictor (M,) or (M, k) is ``A vec(w) + offset``, A sparse: of a sample at its node by
    a `Design`, of any rows of w by a `Matrix`, and then what only samples at nodes have is refused.

    The nodes are those of a form of ``n``; a term leaves n to the form that takes it.
    """

    loss: AbstractLoss
    strength: Strength
    map: AbstractMatrix
    y: Array
    offset: Array
    base_scale: Array  # (M,), without the strength

    # what only samples at nodes have
    node = of_design[Array]()  # of each sample
    nodes = of_design[Array]("node")
    X = of_design[Array | None]()  # (M, d); None where the predictor is w_i itself
    stacks = of_design[tuple[Batch, ...] | None]()  # None where the predictor is w_i itself
    layout = of_design[Layout]()
    one_each = of_design[bool]()  # whether the predictor of sample i is the parameter of node i itself
    apply_some = of_design[Callable[[Array, slice], Array]]("across")  # X w at some samples
    adjoint = of_design[Callable[[Array, tuple[int, int]], Array]]()  # X'a, (n, d)
    sums = of_design[Callable[[Array], Array]]()  # sum_r x_r weight_r x_r' over the samples of each node
    some = of_design[Callable[[], Iterator[slice]]]()  # so many at a time that they stay in the cache
    A = of_map[sp.csr_array]("K")  # vec(w) -> vec(Xw), (M k, n d)
    width = of_map[int]("k")  # the number k of predictors of a sample
    lengths = of_map[float | Array]()  # by which rows step
    norms = of_map[Array]()  # ||x_r|| of each row of A
    apart = of_map[bool]()  # True where the predictors of a sample see different numbers of w

    @property
    def name(self) -> str:
        """The name of the loss, and of its rows where they are no samples at nodes."""
        text = "" if self.map.noun == "sample" else self.map.text
        return f"{self.loss.called()}({text})" if text else self.loss.called()

    def apply(self, w: Array) -> Array:
        return self.map.apply(w).reshape(self.offset.shape)

    @shared
    def grams(self) -> tuple[Packed, ...]:
        """sum_r x_r x_r' over the samples of each node, times their scales without the strength; per stack."""
        return tuple([packed_grams(batch, self.base_scale) for batch in self.stacks or ()])

    @cached_property
    def moments(self) -> Array:
        """sum_r x_r (y_r - o_r) over the samples of each node, times their scales without the strength, (n, p). Not
        shared: copies may have other targets."""
        assert self.X is not None
        return self.adjoint(self.base_scale * (self.y - self.offset), (self.n, self.X.shape[1]))

    @property
    def scale(self) -> Array:
        """s_r, (M,)."""
        base = self.base_scale
        if len(base) and base.strides == (0,):  # the same number everywhere
            return np.broadcast_to(float(self.strength) * base[0], base.shape)
        return float(self.strength) * base

    def scale_of(self, some: Rows) -> Array:
        return float(self.strength) * self.base_scale[some]

    def part(self, rows: Array) -> SampleBlock:
        """Some samples of the block, by their numbers; the loss stays whole."""
        own = {name: getattr(self, name)[rows] for name in ("y", "offset", "base_scale")}
        return replace(self, map=self.map.part(rows), **own)

    def column(self, weight: Array) -> Array:
        return weight[:, None] if self.offset.ndim == 2 else weight

    def scaled(self, values: Array) -> Array:
        """s_r times values per sample, of any shape: numbers, vectors, matrices."""
        return self.scale.reshape(-1, *[1] * (values.ndim - 1)) * values

    def predict(self, w: Array) -> Array:
        x = self.apply(w)
        x += self.offset
        return x

    difference = predict

    def values(self, w: Array) -> Array:
        """s_r l_r at each sample."""
        x = self.predict(w)
        return streamed(lambda some: self.scale_of(some) * self.loss.value(x[some], self.y[some]), *x.shape)

    def prices(self, w: Array) -> Array:
        """The (sub)gradients s_r l'(predictor), inside dom l*."""
        return self.column(self.scale) * self.loss.gradient(self.predict(w), self.y)

    def curvatures(self, w: Array) -> Array:
        """s_r l_r'' of a smooth loss: numbers, or matrices (k, k), per sample."""
        return self.scaled(self.loss.curvature(self.predict(w), self.y))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)

    def traces(self, weight: Array) -> Array:
        """The trace of sum_r x_r weight_r x_r' over the samples r of each node, (n,); weight (M,)."""
        if self.map.noun == "sample":
            squares = (self.norms**2).reshape(self.count, -1).sum(axis=1)
            return np.bincount(self.node, weight * squares, self.n)
        return (self.A.power(2).T @ np.repeat(weight, self.width)).reshape(self.n, -1).sum(axis=1)

    def conjugate(self, u: Array, some: Rows) -> Array:
        return self.loss.conjugate(u, self.y[some])

    def duals(self, a: Array) -> Array:
        """The summands of Q: <a_r, o_r> - s_r l_r*(a_r / s_r)."""
        return streamed(lambda some: _rowwise(a[some] * self.offset[some]) - self._conjugates(a[some], some), *a.shape)

    def residuals(self, w: Array, a: Array) -> Array:
        """The Fenchel-Young residuals."""
        return self.values(w) + self.conjugates(a) - _rowwise(a * self.predict(w))

    def dual_prox(self, v: Array, step: Array, s: Array) -> Array:
        """argmin over a of ``step s l*(a / s) + 1/2 ||a - v||^2`` for each sample, step and s (M,)."""
        sigma = self.column(step)
        return v - sigma * self.loss.prox(v / sigma, s / step, self.y)

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
class EdgeBlock(AbstractBlock[AbstractMap]):
    """Rows of a map that share one penalty, ``z = (Kw)_e - center_e``: edges, unless the map is of another kind.

    The nodes are those of a form of ``n``. In what a term gives, indices from ``n_observed`` on are its own latent
    nodes, counted from there; the form that takes it moves them behind those of the terms before.
    """

    penalty: AbstractPenalty
    strength: Strength
    map: AbstractMap
    base_weight: Array  # (m,), without the strength
    center: Array | None  # (m, k)
    role: Role
    name: str  # for printing

    # what only edges have
    tail = of_edges[Array]()
    head = of_edges[Array]()  # the other ends; GROUND (-1) for edges to the ground
    ends = of_edges[tuple[Array, ...]]()  # the tails, and the heads where there are any
    nodes = of_edges[Array]("tail")  # at which the edges begin
    features = of_edges[Array | None]()  # the coordinates that they act on; None: all
    coordinates = of_edges[Any]()  # the same as an index
    edges = of_edges[AbstractEdges]()  # the map itself
    columns = of_edges[Callable[[int], Array]]()  # the numbers of these, of d
    ground = of_edges[bool]()  # True where they lead from nodes to the ground
    in_line = of_edges[bool]()  # True where they join each node of the form with the next, in order
    K = of_edges[sp.csr_array]()  # w -> w_tail - w_head, (m, n)
    transposed = of_edges[sp.csr_array]()
    lengths = of_map[float | Array]()  # by which rows step: the number of ends of an edge
    flat = of_map[Callable[[int], sp.csr_array]]()  # vec(w) -> vec(Kw), (m k, n d), of d coordinates

    @property
    def weight(self) -> Array:
        """c_e, (m,); 1 for constraints, which have none."""
        return float(self.strength) * self.base_weight

    def scale_of(self, some: Rows) -> Array:
        return float(self.strength) * self.base_weight[some]

    def some(self, width: int) -> Iterator[slice]:
        """So many rows at a time, of ``width`` coordinates, that they stay in the cache."""
        return pieces(self.count, width)

    def column(self, weight: Array) -> Array:
        return weight[:, None]

    def part(self, rows: Array) -> EdgeBlock:
        """Some rows of the block, by a mask or by their numbers."""
        center = None if self.center is None else self.center[rows]
        return replace(self, map=self.map.part(rows), base_weight=self.base_weight[rows], center=center)

    def on(self, columns: Array) -> EdgeBlock:
        """The block on some of the numbers of its rows, where its penalty is a sum over them."""
        center = None if self.center is None else self.center[:, columns]
        penalty: Any = self.penalty
        return replace(self, penalty=penalty.restricted(columns), map=self.map.on(columns), center=center)

    def difference(self, w: Array) -> Array:
        z = self.map.apply(w)
        return z if self.center is None else z - self.center

    def values(self, w: Array) -> Array:
        """c_e phi_e at each row."""
        part, center = self.map.chosen(w), self.center

        def each(some: Rows) -> Array:
            z = self.map.across(part, some)
            return self.scale_of(some) * self.penalty.value(z if center is None else z - center[some])

        return streamed(each, self.count, self.map.width(w.shape[1]))

    def gradients(self, w: Array) -> Array:
        """c_e grad phi_e of a smooth penalty, (m, k)."""
        return self.weight[:, None] * self.penalty.gradient(self.difference(w))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)

    def curvatures(self, w: Array) -> Array:
        """The Hessians c_e phi_e'' of a smooth penalty, (m, k, k)."""
        h = self.penalty.curvature(self.difference(w))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
        return self.weight[:, None, None] * (h if h.ndim == 3 else h[:, :, None] * np.eye(h.shape[1]))

    def conjugate(self, u: Array, some: Rows) -> Array:
        return self.penalty.conjugate(u)

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
            c = self.scale_of(some)[:, None]
            return c * self.penalty.domain.clip(u[some] / c)

        return streamed(each, *u.shape)

    def dual_prox(self, v: Array, step: Array, c: Array) -> Array:
        """argmin over u of ``step c phi*(u / c) + 1/2 ||u - v||^2`` for each row, step and c (m,)."""
        return self.penalty.dual_prox(v, step, c)

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


def adjoint_of(blocks: Iterable[AbstractBlock[Any]], values: Iterable[Array], shape: tuple[int, int]) -> Array:
    """The sum of K'u over blocks, (n, d)."""
    out = np.zeros(shape)
    for block, u in zip(blocks, values, strict=True):
        block.add_adjoint(u, out)
    return out


def strengths(blocks: Iterable[SampleBlock | EdgeBlock]) -> tuple[float, ...]:
    """The strengths of some blocks at this moment: what holds as long as they do is found once for them."""
    return tuple([float(block.strength) for block in blocks])


def _rowwise(products: Array) -> Array:
    """One number per sample."""
    return products if products.ndim == 1 else products.sum(axis=1)


@dataclass(frozen=True)
class Lowered:
    """A term in canonical form. ``latent`` are the labels of the nodes it introduces."""

    losses: tuple[SampleBlock, ...] = ()
    edges: tuple[EdgeBlock, ...] = ()
    latent: tuple[Hashable, ...] = ()
