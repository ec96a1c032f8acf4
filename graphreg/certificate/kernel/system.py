"""The linear system Bv = 0 of a problem's dual, and the functions whose prices and flows v are.

The columns of B = [X', K'] are the prices of samples and the flows of edges on one coordinate; it has one equation for
each number of w. By Fenchel-Young, for every v and w,

    P(w) >= - sum_g f_g*(v_g) - <v, t> + <Bv, w>,

where f_g((B'w - t)_g) are the summands of P and the columns of B are shared out among them, each once. Domains are to
have an interior: prices that add up to 0 over classes are stated by the others than one, flows of a penalty h(Rz) with
fewer rows than coordinates as R'q by q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...terms import Array, at_a_time
from ...terms.losses import AbstractQuadraticLoss
from ...terms.penalties import AbstractSmoothPenalty
from .arithmetic import (
    DUST,
    EPS,
    MORE,
    Pair,
    Piece,
    below,
    extracted,
    in_range,
    magnitudes,
    need,
    product,
    total,
    two_sum,
)

CELLS = 1 << 16  # numbers at a time, so that they stay in the cache
ROWS = 1 << 14  # variables at a time
KEPT = 1 << 19  # variables of a summand without a design, of which the columns of B are kept
Triple = tuple[Array, Array, Array]
Rows = Callable[[Array, Array], sp.csr_array]
PieceOfB = tuple[slice, slice, sp.csr_array]


class Design:
    """The design of samples whose predictors are numbers, node by node: other products than those of a sparse matrix,
    for its many entries. Targets, offsets and strengths have no part in it."""

    def __init__(self, block: SampleBlock) -> None:
        assert block.X is not None
        self.block, self.X, self.node, self.shape = block, block.X, block.node, (block.n, block.X.shape[1])

    @cached_property
    def top(self) -> Array:
        """The largest |x_rj| of each node, (n, d)."""
        out, j = np.zeros(self.shape[0] * self.shape[1]), np.arange(self.shape[1])
        for some in at_a_time(CELLS // len(j), len(self.node)):
            np.maximum.at(out, (self.node[some, None] * len(j) + j).ravel(), np.abs(self.X[some]).ravel())
        return out.reshape(self.shape)

    def pull(self, v: Array, value: Array, size: Array) -> None:
        """Add X'v (n d,), and not less than |X|'|v|: of each node the largest |x_rj| times sum |v_r|."""
        value += self.block.adjoint(v, self.shape).ravel()
        each = np.bincount(self.node, magnitudes(v), len(self.top)) * MORE
        size += (self.top * each[:, None]).ravel()

    def sizes(self, w: Array) -> Array:
        """Not less than sum_j |x_rj w_ij| for the samples r of each node, (n,); above 0 where some product is not."""
        live = ((self.top > 0.0) & (w != 0.0)).any(axis=1)
        return (self.top * magnitudes(w)).sum(axis=1) * MORE + DUST * live


class Summand:
    """M functions s f(B'w - t), of k variables each, row by row, for a penalty f.

    ``rows`` gives columns of B, as rows, of any sparse matrix, by functions e and variables s of each, which are
    broadcast. ``node`` is a node of each function, ``name`` says what its variables are, and t (M, k) is given as high +
    low and a bound of what that misses. Where f is L / 2 ||.||^2 and every column of B is at one node, ``square`` is L.
    """

    first = 0  # the number of its first variable in a system
    square = 0.0
    design: Design | None = None

    def __init__(
        self,
        name: str,
        node: Array,
        penalty: Any,
        scale: Callable[[], Array],
        rows: Rows,
        shape: tuple[int, int],
        targets: Triple | None = None,
    ) -> None:
        self.name, self.node, self.penalty, self._scale, self.rows = name, node, penalty, scale, rows
        self.shape, self.size, self.targets = shape, shape[0] * shape[1], targets

    @property
    def scale(self) -> Array:
        """s (M,), at the strengths of this moment."""
        return self._scale()

    @property
    def made_of(self) -> tuple[Array | None, ...]:
        """What its columns of B are made of."""
        K = self.of(slice(0, self.shape[0]))
        return K.data, K.indices, K.indptr

    def of(self, some: slice) -> sp.csr_array:
        """The columns of B of all variables of some functions, as rows."""
        return self.rows(np.arange(self.shape[0])[some, None], np.arange(self.shape[1]))

    @property
    def columns(self) -> slice:
        """Its variables in a system."""
        return slice(self.first, self.first + self.size)

    def taken(self, v: Array) -> Array:
        """Its variables of all, (M, k)."""
        return v[self.columns].reshape(self.shape)

    def some(self) -> Iterator[slice]:
        """Some functions at a time."""
        return at_a_time(max(CELLS // max(self.shape[1], 1), 1), self.shape[0])

    def few(self) -> Iterator[slice]:
        """Some functions at a time, for which as many columns of B are made."""
        return at_a_time(ROWS // max(self.shape[1], 1), self.shape[0])

    def bound(self, b: Array, around: Array, some: slice) -> Array:
        """Not less than f* over the boxes b +- around, of some functions; inf where it may be."""
        return self.penalty.conjugate_bound(b, around)

    def value(self, z: Array, around: Array, some: slice) -> Array:
        """Not less than f over the boxes z +- around, of some functions."""
        return self.penalty.value_bound(z, around)

    def inner(self, b: Array, around: Array, some: slice) -> bool:
        """True where all prices lie in the relative interiors of their domains."""
        return True

    def predicted(self, w: Array, plain: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """B'w - t of some functions at a time, (m, k), and how far that is off (0: it is exact). Where ``plain``,
        rounding may be paid for instead of avoided."""
        size = self.design.sizes(w) if plain and self.design is not None else None
        for some in self.few():
            t = [np.zeros(1)] * 3 if self.targets is None else [each[some].ravel() for each in self.targets]
            found = self._exactly(w, some, t, plain) if size is None else self._roughly(w, some, t, size)
            yield some, *(x.reshape(-1, self.shape[1]) for x in found)

    def _exactly(self, w: Array, some: slice, t: Sequence[Array], plain: bool) -> tuple[Array, Array]:
        A, flat = self.of(some), w.ravel()
        counts = np.diff(A.indptr)
        if plain and (np.abs(A.data) == 1.0).all() and (counts + t[0].any() + t[1].any() <= 2).all():
            z = A @ flat - t[0] - t[1]  # of two numbers: rounded once
            return z, EPS * np.abs(z) + t[2]
        p, e, off = product(A.data, flat[A.indices])
        if (counts == counts[:1]).all():
            each = [x.reshape(len(counts), -1).T for x in (p, e, np.broadcast_to(off, p.shape))]
            found = total([*each[0], *(np.broadcast_to(-x, len(counts)) for x in t[:2]), *each[1]], [*each[2]])
        else:
            every, number = slice(0, len(counts)), np.arange(len(counts))
            of_t = [(every, number, np.broadcast_to(-x, len(counts)), 0.0, 0.0) for x in t[:2]]
            size = (abs(A) @ np.abs(flat) + np.abs(t[0]) + np.abs(t[1])) * MORE
            found = extracted(lambda: [(every, np.repeat(number, counts), p, e, off), *of_t], size, counts + 2)
        value, left = two_sum(found.high, found.low)
        error = np.where((left == 0.0) & (found.error == 0.0), 0.0, (np.abs(left) + found.error) * MORE)
        return value, error + t[2]

    def _roughly(self, w: Array, some: slice, t: Sequence[Array], size: Array) -> tuple[Array, Array]:
        assert self.design is not None
        reached = size[self.node[some]] + np.abs(t[0]) + np.abs(t[1])
        steps = w.shape[1] + 4
        z = self.design.block.apply_some(w, some) - t[0] - t[1]
        return z, steps * (0.5 * EPS * MORE * reached + DUST * (reached > 0.0)) + t[2]


class Prices(Summand):
    """The samples of one loss; of prices that add up to 0 without those that depend on the others, unless they are to
    be ``whole``."""

    def __init__(self, block: SampleBlock, d: int, design: Design | None = None, whole: bool = False) -> None:
        self.block, self.d = block, d
        self.own = None if whole else block.loss.prices.dependent(block.y)  # the class whose price depends on others
        shape = len(block.node), block.width - (self.own is not None)
        name = f"a price of {block.loss.called()}"
        super().__init__(name, block.node, None, lambda: block.scale, self._rows, shape)
        self.targets = self._targets()
        if block.X is not None and block.width == 1:
            self.design = design or Design(block)
        if isinstance(block.loss, AbstractQuadraticLoss):
            self.square = 1.0

    @property
    def made_of(self) -> tuple[Array | None, ...]:
        return self.block.node, self.block.X, self.own, np.array(self.shape)

    def _rows(self, r: Array, c: Array) -> sp.csr_array:
        """(Xw)_rc = sum_f x_rf w_i[f, c], less the same of the class that is its own."""
        x = np.ones((*r.shape, 1)) if self.block.X is None else self.block.X[r]
        place = (self.node[r] * self.d)[..., None] + np.arange(x.shape[-1]) * self.block.width
        if self.own is None:
            return _csr([place + c[..., None]], [x], self.block.n * self.d)
        places = [place + self._others[r, c][..., None], place + np.asarray(self.own)[r][..., None]]
        return _csr(places, [x, -x], self.block.n * self.d)

    @cached_property
    def _others(self) -> Array:
        """The classes whose prices are free, (M, k - 1)."""
        k, own = self.block.width, np.asarray(self.own)
        return np.where(np.arange(k - 1) < own[:, None], 0, 1) + np.arange(k - 1)

    def _targets(self) -> Triple | None:
        anchor, offset = self.block.loss.anchor(self.block.y), self.block.offset
        if not (anchor.any() or offset.any()):
            return None
        if self.own is not None:
            need(not anchor.any(), f"{self.block.loss.called()} has an anchor and prices that depend on others")
            anchor, offset = np.take_along_axis(offset, np.asarray(self.own)[:, None], axis=1), self.reduced(offset)
        high, low = two_sum(np.broadcast_to(anchor, offset.shape), -offset)
        return high.reshape(self.shape), low.reshape(self.shape), np.zeros(self.shape)

    def reduced(self, a: Array) -> Array:
        """The variables of prices (M,) or (M, k)."""
        a = a.reshape(self.shape[0], -1)
        return a if self.own is None else np.take_along_axis(a, self._others, axis=1)

    def given(self, v: Array) -> Array:
        """Prices shaped as the predictors."""
        return self._of_all(v, 0.0 * v, slice(None))[0]

    def _of_all(self, b: Array, around: Array, some: slice) -> tuple[Array, Array]:
        """The prices of all classes, and how far they may be off."""
        if self.own is None:
            shape = len(b), *self.block.offset.shape[1:]
            return b.reshape(shape), around.reshape(shape)
        row, others, own = np.arange(len(b)), self._others[some], np.asarray(self.own)[some]
        left = total([-x for x in b.T], [])
        out, spread = np.zeros((2, len(b), self.block.width))
        out[row[:, None], others], out[row, own] = b, left.high
        spread[row[:, None], others] = around
        spread[row, own] = (around.sum(axis=1) + np.abs(left.low) + left.error) * MORE
        return out, spread

    def bound(self, b: Array, around: Array, some: slice) -> Array:
        return self.block.loss.conjugate_bound(*self._of_all(b, around, some), self.block.y[some])

    def value(self, z: Array, around: Array, some: slice) -> Array:
        need(self.own is None, "a loss of all classes is one of their predictors")
        return self.block.loss.value_bound(*self._of_all(z, around, some), self.block.y[some])

    def inner(self, b: Array, around: Array, some: slice) -> bool:
        low, high = self.block.loss.domain(self.block.y[some])
        b, around = self._of_all(b, around, some)
        return bool(((b - around > low) & (b + around < high)).all())


class Flows(Summand):
    """The edges of one penalty, on their coordinates; of a penalty h(Rz) with R (r, k) the r numbers q of flows R'q,
    unless they are to be ``whole``."""

    def __init__(self, edge: EdgeBlock, d: int, whole: bool = False) -> None:
        self.edge, self.d, self.at = edge, d, edge.columns(d)
        self.mix, penalty = (None if whole else edge.penalty.composed()) or (None, edge.penalty)
        need(self.mix is None or in_range(self.mix), f"an entry of the root of {edge.penalty!r} is out of range")
        shape = len(edge.tail), len(self.at if self.mix is None else self.mix)
        super().__init__(f"a flow of {edge.name}", edge.tail, penalty, lambda: edge.weight, self._rows, shape)
        self.targets = self._targets()
        smooth = isinstance(penalty, AbstractSmoothPenalty) and edge.ground and self.mix is None
        if smooth and penalty.strong_convexity() == penalty.smoothness():
            self.square = penalty.smoothness()

    @property
    def made_of(self) -> tuple[Array | None, ...]:
        return self.edge.tail, self.edge.head, self.at, self.mix

    def _rows(self, e: Array, s: Array) -> sp.csr_array:
        """w_tail - w_head on the coordinates of the edges, or R of it."""
        edge, each = self.edge, self.at[s][..., None]
        at, x = (each, np.ones(1)) if self.mix is None else (self.at, self.mix[s])
        ends = [edge.tail] if edge.ground else [edge.tail, edge.head]
        places = [(end[e] * self.d)[..., None] + at for end in ends]
        return _csr(places, [x, -x][: len(ends)], edge.n * self.d)

    def _targets(self) -> Triple | None:
        """The centers, or R of them."""
        if self.edge.center is None:
            return None
        center = np.asarray(self.edge.center, dtype=float)
        if self.mix is None:
            return center, np.zeros(self.shape), np.zeros(self.shape)
        p, e, _ = product(center[:, None, :], self.mix)
        found = total([*np.moveaxis(p, 2, 0), *np.moveaxis(e, 2, 0)], [np.full(self.shape, len(self.at) * DUST)])
        return found.high, found.low, found.error

    def given(self, v: Array) -> Array:
        """The flows (m, k)."""
        return v if self.mix is None else v @ self.mix

    def reduced(self, u: Array) -> Array:
        """The variables of flows (m, k)."""
        return u if self.mix is None else np.linalg.lstsq(self.mix.T, u.T, rcond=None)[0].T

    def around(self, v: Array, off: Array) -> Array:
        """How far the flows as given may be from those of variables within ``off``."""
        if self.mix is None:
            return off
        size = np.abs(self.mix)
        return (off @ size + (len(size) + 2) * EPS * (np.abs(v) @ size) + DUST) * MORE


def _csr(places: Sequence[Array], values: Sequence[Array], size: int) -> sp.csr_array:
    """A matrix with the same number of entries in each row: those of all but the last axis of places and values."""
    k, shape = places[0].shape[-1], (*places[0].shape[:-1], len(places) * places[0].shape[-1])
    columns = np.empty(shape, dtype=np.int32 if size < np.iinfo(np.int32).max else np.int64)
    entries = np.empty(shape)
    for j, (place, x) in enumerate(zip(places, values, strict=True)):
        columns[..., j * k : (j + 1) * k], entries[..., j * k : (j + 1) * k] = place, x
    indptr = np.arange(0, columns.size + 1, shape[-1], dtype=columns.dtype)
    return sp.csr_array((entries.ravel(), columns.ravel(), indptr), shape=(len(indptr) - 1, size))


class Columns:
    """B: the columns of all summands, a matter of the graph and the designs alone."""

    def __init__(self, summands: Sequence[Summand], equations: int) -> None:
        self.summands = summands
        self._kept: dict[int, list[PieceOfB]] = {}
        self.shape = equations, sum(one.size for one in summands)

    def rows(self, variables: Array) -> sp.csr_array:
        """The columns of B of some variables, as rows, in rising order."""
        parts = [sp.csr_array((0, self.shape[0]))]
        for one in self.summands:
            low, high = np.searchsorted(variables, [one.columns.start, one.columns.stop])
            parts.append(one.rows(*np.divmod(variables[low:high] - one.first, max(one.shape[1], 1))))
        out = sp.csr_array(sp.vstack(parts, format="csr"))
        out.eliminate_zeros()
        return out

    @cached_property
    def B(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        """(equations, variables), by equations."""
        B = sp.csr_array(self.rows(np.arange(self.shape[1])).T)
        B.sum_duplicates()
        return B

    def pieces_of(self, one: Summand) -> Iterable[PieceOfB]:
        """The columns of some variables at a time, as rows, between the first and the last equation that they are
        in."""
        if one.first in self._kept:
            return self._kept[one.first]
        if one.design is None and one.size <= KEPT:
            self._kept[one.first] = [*self._made(one)]
        return self._kept.get(one.first) or self._made(one)

    def _made(self, one: Summand) -> Iterator[PieceOfB]:
        for some in one.few():
            A, first = one.of(some), one.first + some.start * one.shape[1]
            here = slice(int(A.indices.min(initial=0)), int(A.indices.max(initial=0)) + 1)
            near = sp.csr_array((A.data, A.indices - here.start, A.indptr), shape=(A.shape[0], here.stop - here.start))
            yield slice(first, first + A.shape[0]), here, near

    @cached_property
    def _whole(self) -> tuple[sp.csr_array, sp.csr_array]:
        whole = self.rows(np.arange(self.shape[1]))
        return whole, abs(whole)

    def pieces(self) -> Iterator[PieceOfB]:
        """The same of all summands: at once where variables are few."""
        if self.shape[1] <= ROWS:
            yield slice(0, self.shape[1]), slice(0, self.shape[0]), self._whole[0]
        else:
            for one in self.summands:
                yield from self.pieces_of(one)

    @cached_property
    def count(self) -> Array:
        """How many entries each equation has."""
        out = np.zeros(self.shape[0])
        for _, here, A in self.pieces():
            out[here] += np.bincount(A.indices, minlength=A.shape[1])
        return out

    @cached_property
    def in_range(self) -> bool:
        """True where all entries are."""
        return all(in_range(A.data) for *_, A in self.pieces())

    def pulled(self, v: Array) -> tuple[Array, Array]:
        """Bv, rounded at every step, and not less than |B||v|."""
        if self.shape[1] <= ROWS:
            return self._whole[0].T @ v, self._whole[1].T @ magnitudes(v) * MORE
        value, size = np.zeros((2, self.shape[0]))
        for one in self.summands:
            self.pull(one, v[one.columns], value, size)
        return value, size

    def pull(self, one: Summand, v: Array, value: Array, size: Array) -> None:
        """Add the same of the variables of one summand."""
        if one.design is not None:
            one.design.pull(v, value, size)
            return
        for some, here, A in self.pieces_of(one):
            mine, turned = v[some.start - one.first : some.stop - one.first], A.T
            value[here] += turned @ mine
            turned.data = np.abs(turned.data) * MORE
            size[here] += turned @ magnitudes(mine)

    def exactly(self, parts: Sequence[Array]) -> Pair:
        """B times the sum of some parts of v, without rounding but for the error."""

        def products() -> Iterator[Piece]:
            for some, here, A in self.pieces():
                counts = np.diff(A.indptr)
                for v in parts:
                    yield here, A.indices, *product(A.data, np.repeat(v[some], counts))

        size = sum((self.pulled(v)[1] for v in parts), np.zeros(self.shape[0]))
        return extracted(products, size * MORE, self.count * len(parts))


def summands_of(form: Form, designs: Sequence[Design | None], whole: bool = False) -> tuple[list[Prices], list[Flows]]:
    """The samples of each loss, and the edges of each penalty."""
    prices = [Prices(b, form.d, design, whole) for b, design in zip(form.samples, designs, strict=True)]
    return prices, [Flows(edge, form.d, whole) for edge in form.edges]


def designs_of(form: Form) -> list[Design | None]:
    """Of the samples of each loss, where it has a design of numbers."""
    return [one.design for one in summands_of(form, [None] * len(form.samples))[0]]


class System:
    """B and the summands of a form, and ``more`` beside them; ``like`` it is one of a form with the same graph and
    designs. Systems with the same B are of one ``kind``."""

    def __init__(
        self, form: Form, like: System | None = None, outside: Pair | None = None, more: Iterable[Summand] = ()
    ) -> None:
        """``outside`` is what is taken from the equations beside Bv, (n, d)."""
        self.form, self.outside, self.size = form, outside, 0
        designs = [None] * len(form.samples) if like is None else like.designs
        self.prices, self.flows = summands_of(form, designs)
        self.summands: list[Summand] = [*self.prices, *self.flows, *more]
        for one in self.summands:
            need(all(below(t) for t in one.targets or ()), f"a target of {one.name} is too large")
            one.first, self.size = self.size, self.size + one.size
        need(like is None or self._has_the_matrix_of(like), "this is no system like the other")
        self.kind = Columns(self.summands, form.n * form.d) if like is None else like.kind
        need(self.kind.in_range, "an entry of the designs is out of range")

    def _has_the_matrix_of(self, other: System) -> bool:
        mine, theirs = ([x for one in each.summands for x in one.made_of] for each in (self, other))
        same = len(mine) == len(theirs) and all(map(_same, mine, theirs))
        return same and (self.form.shape, self.size) == (other.form.shape, other.size)

    @property
    def designs(self) -> list[Design | None]:
        """Those of the samples of each loss."""
        return [one.design for one in self.prices]

    @property
    def shape(self) -> tuple[int, int]:
        """Of B: equations, variables."""
        return self.kind.shape

    @property
    def rows(self) -> Callable[[Array], sp.csr_array]:
        """The columns of B of some variables, as rows, in rising order."""
        return self.kind.rows

    @cached_property
    def component(self) -> Array:
        """The component of each equation."""
        return np.repeat(self.form.component, self.form.d)

    def residual(self, high: Array, low: Array, plain: bool = False) -> Pair:
        """Bv, (n, d); where ``plain``, of the high part alone, and rounded at every step."""
        if plain:  # m summands are off by m + 1 units of rounding of their magnitudes, in whatever order
            value, size = self.kind.pulled(high)
            found = Pair(value, np.zeros(len(value)), (self.kind.count + 2) * (0.5 * EPS) * size * MORE)
        else:
            found = self.kind.exactly([x for x in (high, low) if x.any()])
        found = Pair(*(x.reshape(self.form.shape) for x in (found.high, found.low, found.error)))
        if self.outside is None:
            return found
        both = found, self.outside
        return total([x for each in both for x in (each.high, each.low)], [each.error for each in both])

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


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
