"""The linear system Bv = 0 of a problem's dual, and the functions whose prices and flows v are.

The columns of B = [X', K'] are the prices of samples and the flows of edges on one coordinate; it has one equation for
each number of w. By Fenchel-Young, for every v and w,

    P(w) >= - sum_g f_g*(v_g) - <v, t> + <Bv, w>,

where f_g((B'w - t)_g) are the summands of P and the columns of B are shared out among them, each once. Domains are to
have an interior: prices that add up to 0 over classes are stated by the others than one, flows of a penalty h(Rz) with
fewer rows than coordinates as R'q by q.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...terms import Array, at_a_time
from .arithmetic import DUST, EPS, MORE, Pair, Runs, below, in_range, need, total, two_product, two_sum

CELLS = 1 << 16  # numbers at a time, so that they stay in the cache
Triple = tuple[Array, Array, Array]


class Summand(ABC):
    """M functions s f(z - t), of k variables each, those from ``first`` on row by row. ``node`` is a node of each, and
    ``name`` says what its variables are."""

    first: int
    shape: tuple[int, int]
    scale: Array
    node: Array
    name: str
    targets: Triple | None  # t (M, k) as high + low, and a bound of what that misses; None where all are 0

    @property
    def columns(self) -> slice:
        """Its variables."""
        return slice(self.first, self.first + self.shape[0] * self.shape[1])

    def taken(self, v: Array) -> Array:
        """Its variables of all, (M, k)."""
        return v[self.columns].reshape(self.shape)

    def some(self) -> Iterator[slice]:
        """Some functions at a time."""
        return at_a_time(max(CELLS // max(self.shape[1], 1), 1), self.shape[0])

    @property
    @abstractmethod
    def made_of(self) -> tuple[Array | None, ...]:
        """What its columns of B are made of."""

    @abstractmethod
    def bound(self, b: Array, around: Array, some: slice) -> Array:
        """Not less than f* over the boxes b +- around, of some functions; inf where it may be."""

    @abstractmethod
    def exact(self, v: Array) -> Pair:
        """Bv of its variables (M, k), (n, d)."""

    @abstractmethod
    def plain(self, v: Array) -> tuple[Array, Array]:
        """The same, rounded at every step, and a bound of what that misses."""

    @abstractmethod
    def rows(self, some: Array) -> sp.csr_array:
        """The columns of B of some of its variables, as rows."""

    def inner(self, b: Array, around: Array, some: slice) -> bool:
        """True where all prices lie in the relative interiors of their domains."""
        return True


@dataclass(frozen=True)
class Design:
    """Which node and which features each sample has. Targets, offsets and strengths have no part in it."""

    node: Array
    X: Array | None
    n: int

    @cached_property
    def runs(self) -> Runs:
        """The samples by node."""
        return Runs(self.node, self.n)

    @cached_property
    def count(self) -> Array:
        """How many samples each node has, (n, 1)."""
        return np.bincount(self.node, minlength=self.n)[:, None]

    @cached_property
    def top(self) -> Array:
        """The largest |x_rj| of each node, (n, p)."""
        return np.ones((self.n, 1)) if self.X is None else self.runs.largest(self.X)

    @cached_property
    def in_range(self) -> bool:
        """True where all entries are."""
        return self.X is None or in_range(self.X)


def designs_of(form: Form) -> list[Design]:
    """Of the samples of each loss."""
    return [Design(block.node, block.X, form.n) for block in form.samples]


class Prices(Summand):
    """The samples of one loss; of prices that add up to 0 without those that depend on the others."""

    def __init__(self, block: SampleBlock, design: Design, form: Form, first: int) -> None:
        self.block, self.design, self.n, self.d, self.first = block, design, form.n, form.d, first
        self.node, self.name = block.node, f"a price of {block.loss.called()}"
        self.own = block.loss.prices.dependent(block.y)  # the class whose price depends on the others
        self.shape = len(block.node), block.width - (self.own is not None)
        self.targets = self._targets()

    @property
    def scale(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]  (strengths change)
        return self.block.scale

    @property
    def made_of(self) -> tuple[Array | None, ...]:
        return self.block.node, self.block.X, self.own, np.array(self.shape)

    @cached_property
    def _others(self) -> Array:
        """The classes whose prices are free, (M, k - 1)."""
        k, own = self.block.width, np.asarray(self.own)
        return np.where(np.arange(k - 1) < own[:, None], 0, 1) + np.arange(k - 1)

    def whole(self, high: Array, low: Array | None = None, some: slice = slice(None)) -> tuple[Array, Array, Array]:
        """The prices of all classes as high + low, (M, k), and what the dependent ones miss, (M,)."""
        if self.own is None:
            return high, np.zeros_like(high) if low is None else low, np.zeros(len(high))
        out, row = np.zeros((2, len(high), self.block.width)), np.arange(len(high))[:, None]
        given = [high] if low is None else [high, low]
        for x, each in zip(out, given, strict=False):
            x[row, self._others[some]] = each
        left = total([-x[:, c] for x in given for c in range(x.shape[1])], [])
        own = np.asarray(self.own)[some]
        out[0][row[:, 0], own], out[1][row[:, 0], own] = left.high, left.low
        return out[0], out[1], left.error

    def reduced(self, a: Array) -> Array:
        """The variables of prices (M,) or (M, k)."""
        a = a.reshape(self.shape[0], -1)
        return a if self.own is None else np.take_along_axis(a, self._others, axis=1)

    def given(self, v: Array) -> Array:
        """Prices shaped as the predictors."""
        high, low, _ = self.whole(v)
        return (high + low).reshape(self.block.offset.shape)

    def _shaped(self, x: Array) -> Array:
        return x[:, 0] if self.block.offset.ndim == 1 else x

    def _targets(self) -> Triple | None:
        anchor, offset = self.block.loss.anchor(self.block.y), self.block.offset
        if self.own is None:
            if not (anchor.any() or offset.any()):
                return None
            high, low = two_sum(np.broadcast_to(anchor, offset.shape), -offset)
            return high.reshape(self.shape), low.reshape(self.shape), np.zeros(self.shape)
        need(not anchor.any(), f"{self.block.loss.called()} has an anchor and prices that depend on others")
        if not offset.any():
            return None
        own = np.take_along_axis(offset, np.asarray(self.own)[:, None], axis=1)
        high, low = two_sum(np.broadcast_to(own, self.shape), -self.reduced(offset))
        return high, low, np.zeros(self.shape)

    def _of_all(self, b: Array, around: Array, some: slice) -> tuple[Array, Array]:
        high, low, off = self.whole(b, None, some)
        if self.own is None:
            return self._shaped(high), self._shaped(around)
        spread, row, own = np.zeros(high.shape), np.arange(len(high)), np.asarray(self.own)[some]
        spread[row[:, None], self._others[some]] = around
        spread[row, own] = (around.sum(axis=1) + np.abs(low[row, own]) + off) * MORE
        return high, spread

    def bound(self, b: Array, around: Array, some: slice) -> Array:
        return self.block.loss.conjugate_bound(*self._of_all(b, around, some), self.block.y[some])

    def inner(self, b: Array, around: Array, some: slice) -> bool:
        low, high = self.block.loss.domain(self.block.y[some])
        b, around = self._of_all(b, around, some)
        return bool(((b - around > low) & (b + around < high)).all())

    def exact(self, v: Array) -> Pair:
        a, low, off = self.whole(v)
        parts = [self._product(a)]
        if low.any():
            parts.append(self._product(low))
        if off.any():
            nothing = np.zeros((self.n, self.d))
            parts.append(Pair(nothing, nothing, self._reach(off)))
        return total([x for p in parts for x in (p.high, p.low)], [p.error for p in parts])

    def _product(self, a: Array) -> Pair:
        """X'a, (n, d), without rounding but for the error."""
        X, live = self.design.X, np.flatnonzero(a.any(axis=1))
        whole = len(live) > len(a) // 2
        runs = self.design.runs if whole else Runs(self.node[live], self.n)
        a = a if whole else a[live]
        if X is None:
            return runs.sums(a)
        X = X if whole else X[live]
        each = [runs.products(X, np.ascontiguousarray(a[:, c])) for c in range(a.shape[1])]
        parts = zip(*((p.high, p.low, p.error) for p in each), strict=True)
        return Pair(*(np.stack(part, axis=2).reshape(self.n, self.d) for part in parts))

    def plain(self, v: Array) -> tuple[Array, Array]:
        a, low, off = self.whole(v)
        size = self.reach(a)
        # m units of rounding times sum |x_rj a_r| for m summands, in whatever order they are added
        error = (self.design.count + 1) * (0.5 * EPS * size + DUST * (size > 0.0)) * MORE
        if self.own is not None:
            error = error + self._reach(off + np.abs(low).sum(axis=1))
        return self.block.adjoint(self._shaped(a), (self.n, self.d)), error

    def reach(self, a: Array) -> Array:
        """A bound of |X|'|a| for prices of all classes, (n, d): of each node the largest |x_rj| times sum |a_r|."""
        sums = self.design.runs.magnitudes(a)
        top, of_prices = self.design.top[:, :, None], sums[:, None, :]
        size = np.maximum(top * of_prices * MORE, DUST * ((top > 0.0) & (of_prices > 0.0)))
        return size.reshape(self.n, self.d)

    def _reach(self, off: Array) -> Array:
        """The same for one number per sample, in each class."""
        return self.reach(np.repeat(off[:, None], self.block.width, axis=1))

    def rows(self, some: Array) -> sp.csr_array:
        r, c = np.divmod(some, self.shape[1])
        k, X = self.block.width, self.design.X
        x = np.ones((len(r), 1)) if X is None else X[r]
        place = self.node[r, None] * self.d + np.arange(x.shape[1]) * k
        if self.own is None:
            return _csr([place + c[:, None]], [x], self.n * self.d)
        places = [place + self._others[r, c][:, None], place + np.asarray(self.own)[r, None]]
        return _csr(places, [x, -x], self.n * self.d)


class Flows(Summand):
    """The edges of one penalty, on their coordinates; of a penalty h(Rz) with R (r, k) the r numbers q of flows R'q."""

    def __init__(self, edge: EdgeBlock, form: Form, first: int) -> None:
        self.edge, self.n, self.d, self.first = edge, form.n, form.d, first
        self.mix, self.penalty = edge.penalty.composed() or (None, edge.penalty)
        self.at = edge.columns(form.d)
        self.shape = len(edge.tail), len(self.at if self.mix is None else self.mix)
        self.node, self.name, self.targets = edge.tail, f"a flow of {edge.name}", self._targets()
        need(self.mix is None or in_range(self.mix), f"an entry of the root of {edge.penalty!r} is out of range")

    @property
    def scale(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]  (strengths change)
        return self.edge.weight

    @property
    def made_of(self) -> tuple[Array | None, ...]:
        return self.edge.tail, self.edge.head, self.at, self.mix

    def given(self, v: Array) -> Array:
        """The flows (m, k)."""
        return v if self.mix is None else v @ self.mix

    def reduced(self, u: Array) -> Array:
        """The variables of flows (m, k)."""
        return u if self.mix is None else np.linalg.lstsq(self.mix.T, u.T, rcond=None)[0].T

    def _targets(self) -> Triple | None:
        center = self.edge.center
        if center is None:
            return None
        if self.mix is None:
            return np.asarray(center, dtype=float), np.zeros(self.shape), np.zeros(self.shape)
        pairs = [_dot(np.asarray(center, dtype=float), row) for row in self.mix]
        high, low, off = (np.stack([getattr(p, name) for p in pairs], axis=1) for name in ("high", "low", "error"))
        return high, low, off

    def around(self, v: Array, off: Array) -> Array:
        """How far the flows as given may be from those of variables within ``off``."""
        if self.mix is None:
            return off
        size = np.abs(self.mix)
        return (off @ size + (len(size) + 2) * EPS * (np.abs(v) @ size) + DUST) * MORE

    def bound(self, b: Array, around: Array, some: slice) -> Array:
        return self.penalty.conjugate_bound(b, around)

    @cached_property
    def _runs(self) -> Runs:
        edge = self.edge
        return Runs(edge.tail if edge.ground else np.concatenate([edge.tail, edge.head]), self.n)

    def exact(self, v: Array) -> Pair:
        ends = (v,) if self.edge.ground else (v, -v)
        if self.mix is None:
            return self._runs.sums(np.concatenate(ends)).within(self.edge.coordinates, (self.n, self.d))
        each = []
        for q, row in zip(np.concatenate(ends).T, self.mix, strict=True):
            each.append(self._runs.products(np.broadcast_to(row, (len(q), len(row))), np.ascontiguousarray(q)))
        parts = [x for p in each for x in (p.high, p.low)]
        return total(parts, [p.error for p in each]).within(self.at, (self.n, self.d))

    def plain(self, v: Array) -> tuple[Array, Array]:
        u, out = self.given(v), np.zeros((self.n, self.d))
        size, steps = self.reach(v), self._degree + (0 if self.mix is None else len(self.mix) + 1)
        out[:, self.edge.coordinates] = self.edge.transposed @ u
        return out, steps * (0.5 * EPS * size + DUST * (size > 0.0)) * MORE

    def reach(self, v: Array) -> Array:
        """A bound of |B||v|, (n, d)."""
        out = np.zeros((self.n, self.d))
        size = np.abs(v)
        if self.mix is not None:  # products may underflow
            size = size @ np.abs(self.mix) + DUST * v.any(axis=1, keepdims=True)
        out[:, self.edge.coordinates] = (self._sizes @ size) * MORE
        return out

    @cached_property
    def _sizes(self) -> sp.csr_array:
        return sp.csr_array(abs(self.edge.transposed))

    @cached_property
    def _degree(self) -> Array:
        return np.diff(self._sizes.indptr)[:, None] + 1

    def rows(self, some: Array) -> sp.csr_array:
        e, s = np.divmod(some, self.shape[1])
        edge, size = self.edge, self.n * self.d
        at, x = (self.at[s, None], np.ones((len(e), 1))) if self.mix is None else (self.at[None, :], self.mix[s])
        places = [edge.tail[e, None] * self.d + at]
        if edge.ground:
            return _csr(places, [x], size)
        return _csr([*places, edge.head[e, None] * self.d + at], [x, -x], size)


def _csr(places: Sequence[Array], values: Sequence[Array], size: int) -> sp.csr_array:
    """A matrix with the same number of entries in each row."""
    columns, entries = np.hstack([*places]), np.hstack([*values])
    indptr = np.arange(0, columns.size + 1, columns.shape[1])
    out = sp.csr_array((entries.ravel(), columns.ravel(), indptr), shape=(len(columns), size))
    out.eliminate_zeros()
    return out


def _dot(X: Array, v: Array) -> Pair:
    """Xv row by row."""
    parts: list[Array] = []
    for j, factor in enumerate(v):
        parts += two_product(X[:, j], np.full(len(X), factor))
    return total(parts, [np.full(len(X), DUST)])


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


class System:
    """B, by summands, and the summands of a form; ``like`` it is one of a form with the same graph and designs. Systems
    with the same B are of one ``kind``."""

    def __init__(self, form: Form, like: System | None = None, outside: Pair | None = None) -> None:
        """``outside`` is what is taken from the equations beside Bv, (n, d)."""
        self.form, self.outside, self.size = form, outside, 0
        self.designs = known = designs_of(form) if like is None else like.designs
        self.prices: list[Prices] = []
        self.flows: list[Flows] = []
        for block, design in zip(form.samples, known, strict=True):
            self.prices.append(Prices(block, design, form, self.size))
            self._add(self.prices[-1])
        for edge in form.edges:
            self.flows.append(Flows(edge, form, self.size))
            self._add(self.flows[-1])
        need(all(design.in_range for design in known), "an entry of the designs is out of range")
        need(like is None or self._has_the_matrix_of(like), "this is no system like the other")
        self.kind = object() if like is None else like.kind

    def _has_the_matrix_of(self, other: System) -> bool:
        mine, theirs = ([x for one in each.summands for x in one.made_of] for each in (self, other))
        same = len(mine) == len(theirs) and all(map(_same, mine, theirs))
        return same and self.shape == other.shape and self.form.d == other.form.d

    def _add(self, one: Summand) -> None:
        need(all(below(t) for t in one.targets or ()), f"a target of {one.name} is too large")
        self.size += one.shape[0] * one.shape[1]

    @property
    def summands(self) -> list[Summand]:
        """The samples of each loss, then the edges of each penalty."""
        return [*self.prices, *self.flows]

    @property
    def shape(self) -> tuple[int, int]:
        """Of B: equations, variables."""
        return self.form.n * self.form.d, self.size

    def rows(self, variables: Array) -> sp.csr_array:
        """The columns of B of some variables, as rows, in rising order."""
        parts = [sp.csr_array((0, self.shape[0]))]
        for one in self.summands:
            low, high = np.searchsorted(variables, [one.columns.start, one.columns.stop])
            parts.append(one.rows(variables[low:high] - one.first))
        return sp.csr_array(sp.vstack(parts, format="csr"))

    @cached_property
    def B(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        """(equations, variables), by equations."""
        B = sp.csr_array(self.rows(np.arange(self.size)).T)
        B.sum_duplicates()
        return B

    @cached_property
    def component(self) -> Array:
        """The component of each equation."""
        return np.repeat(self.form.component, self.form.d)

    @cached_property
    def components(self) -> list[Runs]:
        """The functions of each summand by component."""
        return [Runs(self.form.component[one.node], self.form.n_components) for one in self.summands]

    def residual(self, high: Array, low: Array, plain: bool = False) -> Pair:
        """Bv, (n, d); where ``plain``, of the high part alone, and rounded at every step."""
        if plain:
            pairs = [Pair(x, np.zeros((1, 1)), e) for x, e in (one.plain(one.taken(high)) for one in self.summands)]
        else:
            given = [x for x in (high, low) if x.any()]
            pairs = [one.exact(one.taken(x)) for one in self.summands for x in given]
        pairs = [*pairs, *([] if self.outside is None else [self.outside])]
        if not pairs:
            return Pair(*np.zeros((3, self.form.n, self.form.d)))
        if not plain:
            return total([x for p in pairs for x in (p.high, p.low)], [p.error for p in pairs])
        value, error = np.zeros((2, *self.form.shape))
        for p in pairs:
            value = value + p.high
            error = error + p.error + np.abs(p.low) + 0.5 * EPS * np.abs(value)
        return Pair(value, np.zeros(value.shape), error * MORE)

    # ---- dual points -------------------------------------------------------------------------------------------------
    def flat(self, point: DualPoint) -> Array:
        """The variables of a dual point."""
        pairs = [*zip(self.prices, point.prices, strict=True), *zip(self.flows, point.flows, strict=True)]
        return np.concatenate([np.zeros(0), *(one.reduced(a).ravel() for one, a in pairs)])

    def point(self, v: Array) -> DualPoint:
        """The dual point of some variables, as rounded."""
        return DualPoint(
            tuple(one.given(one.taken(v)) for one in self.flows), tuple(one.given(one.taken(v)) for one in self.prices)
        )
