"""The linear system Bv = 0 of a problem's dual, and the functions whose prices and flows v are.

The columns of B = [X', K'] are the prices of samples and the flows of edges on one coordinate; it has one equation for
each number of w. By Fenchel-Young, for every v and w,

    P(w) >= - sum_g f_g*(v_g) - <v, t> + <Bv, w>,

where f_g((B'w - t)_g) are the summands of P and the columns of B are shared out among them, each once. Domains are to
have an interior: prices that add up to 0 over classes are stated by the others than one, flows of a penalty h(Rz) with
fewer rows than coordinates as R'q by q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...terms import AbstractEdges, Array, Selection, at_a_time
from ...terms.losses import AbstractQuadraticLoss
from ...terms.penalties import AbstractSmoothPenalty
from .arithmetic import (
    DUST,
    EPS,
    MORE,
    RANGE,
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

ROWS = 1 << 14  # variables at a time, so that they stay in the cache
WIDE = 64  # entries of a row of a design, beyond which fewer variables are taken
KEPT = 1 << 19  # variables of a summand without a design, of which the columns of B are kept
TOO_LARGE = "an entry of the designs is too large"
Triple = Sequence[Array]  # high, low, and how far these are off
Near = Callable[[slice, Triple], tuple[Array, Array]]
Rows = Callable[[Array, Array], sp.csr_array]
Part = tuple[slice, slice, Any]  # sparse matrices, of which scipy has no types


class Design:
    """The design of samples whose predictors are numbers, node by node: other products than those of a sparse matrix,
    for its many entries. Targets, offsets and strengths have no part in it."""

    def __init__(self, block: SampleBlock) -> None:
        assert block.X is not None
        self.block, self.X, self.node, self.shape = block, block.X, block.node, (block.n, block.X.shape[1])

    @cached_property
    def top(self) -> Array:
        """Not less than the |x_rj| of each node, (n, d)."""
        (n, d), out = self.shape, np.zeros(self.shape).ravel()
        for some in at_a_time(ROWS // d, len(self.node)):
            place = self.node[some, None] * d + np.arange(d)
            np.maximum.at(out, place.ravel(), magnitudes(self.X[some], 1.0 / RANGE).ravel())
        return out.reshape(n, d)

    def count(self) -> Array:
        """How many entries each equation has, (n d,); none is too large."""
        need((self.top <= RANGE).all(), TOO_LARGE)
        return np.repeat(np.bincount(self.node, minlength=self.shape[0]), self.shape[1])

    def pull(self, v: Array, value: Array, size: Array) -> None:
        """Add X'v (n d,), and not less than |X|'|v|: of each node the largest |x_rj| times sum |v_r|."""
        value += self.block.adjoint(v, self.shape).ravel()
        each = np.bincount(self.node, magnitudes(v), self.shape[0]) * MORE
        size += (self.top * each[:, None]).ravel()

    def sizes(self, w: Array) -> Array:
        """Not less than sum_j |x_rj w_ij| for the samples r of each node, (n,); above 0 where some product is not."""
        live = ((self.top > 0.0) & (w != 0.0)).any(axis=1)
        return (self.top * magnitudes(w)).sum(axis=1) * MORE + DUST * live

    def predicting(self, w: Array) -> Near:
        """Xw - t of some samples, and how far that is off."""
        sizes = self.sizes(w)

        def near(some: slice, t: Triple) -> tuple[Array, Array]:
            high, low, error = (x.ravel() for x in t)
            reached = sizes[self.node[some]] + np.abs(high) + np.abs(low)
            around = (w.shape[1] + 4) * (0.5 * EPS * MORE * reached + DUST * (reached > 0.0)) + error
            return self.block.apply_some(w, some) - high - low, around

        return near


class Arcs:
    """Numbers of a node, or their differences across edges: products for which no matrix is made."""

    def __init__(self, rows: AbstractEdges, d: int) -> None:
        self.map, self.shape = rows, (rows.n, d)

    @cached_property
    def _ones(self) -> Any:
        """|K|' of one coordinate, (n, m)."""
        return abs(self.map.transposed)

    def count(self) -> Array:
        out = np.zeros(self.shape)
        out[:, self.map.columns(self.shape[1])] = self.map.degree[:, None]
        return out.ravel()

    def pull(self, v: Array, value: Array, size: Array) -> None:
        """Add K'v (n d,), and not less than |K|'|v|."""
        columns = self.map.columns(self.shape[1])
        u, pulled = v.reshape(-1, len(columns)), np.zeros(self.shape)
        self.map.add_adjoint(u, value.reshape(self.shape))
        if self.map.ground:  # K = |K|
            self.map.add_adjoint(magnitudes(u), pulled)
        else:
            pulled[:, columns] = self._ones @ magnitudes(u)
        size += pulled.ravel() * MORE

    def predicting(self, w: Array) -> Near:
        """Kw - t of some rows, and how far that is off: a difference is rounded once, and so is what a t that is not 0
        is taken from."""
        part = self.map.chosen(w)

        def near(some: slice, t: Triple) -> tuple[Array, Array]:
            z = self.map.across(part, some)
            around = np.zeros(z.shape) if self.map.ground else np.abs(z)
            for taken in t[:2] if any(x.any() for x in t) else []:
                z = z - taken
                around += np.where(taken == 0.0, 0.0, np.abs(z))
            return z, 0.5 * EPS * MORE * around + t[2]

        return near


class Summand:
    """M functions s f(B'w - t), of k variables each, row by row, for a penalty f.

    ``rows`` gives columns of B, as rows, of any sparse matrix, by functions e and variables s of each, which are
    broadcast. ``node`` is a node of each function, ``name`` says what its variables are, and t (M, k) is given as
    high + low and a bound of what that misses. Where f is L / 2 ||.||^2 and every column of B is at one node,
    ``square`` is L.
    """

    first = 0  # the number of its first variable in a system
    square = 0.0
    wide = 1  # entries of a row of its design
    mixed = False  # whether its variables, no flows of one coordinate between two nodes, tie all into one system
    products: Design | Arcs | None = None  # those that take less than a sparse matrix does
    made_of: tuple[Array | None, ...] = ()  # what tells its columns of B

    def __init__(self, name: str, node: Array, penalty: Any, block: Any, rows: Rows, k: int) -> None:
        """``block`` has the scales s, at the strengths of the moment."""
        self.name, self.node, self.penalty, self._block, self.rows = name, node, penalty, block, rows
        self.shape, self.size = (len(node), k), len(node) * k
        self.targets: Triple | None = None

    @property
    def scale(self) -> Array:
        """s (M,)."""
        return self._block.scale

    def of(self, some: slice) -> Any:
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
        return at_a_time(ROWS // max(self.shape[1], self.wide * self.shape[1] // WIDE, 1), self.shape[0])

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
        near = self.products.predicting(w) if plain and self.products is not None else None
        for some in self.some():
            t = tuple(x[some] for x in self.targets or [np.broadcast_to(0.0, self.shape)] * 3)
            z, around = near(some, t) if near is not None else _predicted(self.of(some), w.ravel(), t)
            yield some, z.reshape(-1, self.shape[1]), around.reshape(-1, self.shape[1])


def _predicted(A: Any, w: Array, t: Triple) -> tuple[Array, Array]:
    """A w - t, and how far that is off."""
    counts, row, t = np.diff(A.indptr), np.arange(A.shape[0]), [x.ravel() for x in t]
    p, e, off = product(A.data, w[A.indices])
    if (counts == counts[:1]).all():
        each = [x.reshape(len(row), counts[0]).T for x in (p, e, off)]
        found = total([*each[0], -t[0], -t[1], *each[1]], [*each[2]])
    else:
        every, size = slice(0, len(row)), abs(A) @ np.abs(w) + np.abs(t[0]) + np.abs(t[1])
        pieces = [(every, np.repeat(row, counts), p, e, off), *((every, row, -x, 0.0, 0.0) for x in t[:2])]
        found = extracted(lambda: pieces, size * MORE, counts + 2)
    value, left = two_sum(found.high, found.low)
    return value, (np.abs(left) + found.error) * MORE + t[2]


class Prices(Summand):
    """The samples of one loss; of prices that add up to 0 without those that depend on the others, unless they are to
    be ``whole``."""

    def __init__(self, block: SampleBlock, d: int, whole: bool = False) -> None:
        own = None if whole else block.loss.prices.dependent(block.y)
        self.own: Any = own  # the class whose price depends on the others
        self.K = block.A if block.map.noun == "row" else None  # rows of any kind
        super().__init__(
            f"a price of {block.name}", block.map.owner, None, block, self._rows, block.width - (own is not None)
        )
        self.block, self.d = block, d
        if own is not None:
            self.others = np.arange(block.width - 1) + (np.arange(block.width - 1) >= own[:, None])  # (M, k - 1)
            need(block.apart, f"the classes of {block.name} see the same numbers, whose differences would be rounded")
        if self.K is not None:
            self.made_of = self.K.data, self.K.indices, self.K.indptr, own
        else:
            self.made_of = block.node, block.X, own
            self.wide = 1 if block.X is None else block.X.shape[1]
            if block.X is not None and block.width == 1:
                self.products = Design(block)
            elif block.X is None and own is None:
                self.products = Arcs(Selection(block.node, n=block.n), d)
            if isinstance(block.loss, AbstractQuadraticLoss):
                self.square = 1.0
        anchor, offset = block.loss.anchor(block.y), block.offset
        if own is not None:
            need(not anchor.any(), f"{block.loss.called()} has an anchor and prices that depend on others")
            anchor, offset = np.take_along_axis(offset, own[:, None], axis=1), self.reduced(offset)
        if anchor.any() or offset.any():
            high, low = (x.reshape(self.shape) for x in two_sum(np.broadcast_to(anchor, offset.shape), -offset))
            self.targets = high, low, np.zeros(self.shape)

    def _rows(self, r: Array, c: Array) -> sp.csr_array:
        """(Xw)_rc = sum_f x_rf w_i[f, c], or (Kw)_rc, less the same of the class that is its own."""
        block, classes = self.block, [c] if self.own is None else [self.others[r, c], self.own[r]]
        if self.K is not None:
            lines = np.broadcast_arrays(*(r * block.width + each for each in classes))
            first, *last = (sp.csr_array(self.K[each.ravel()]) for each in lines)
            return sp.csr_array(first - last[0]) if last else first
        x = np.ones((*r.shape, 1)) if block.X is None else block.X[r]
        place = (block.node[r] * self.d)[..., None] + np.arange(x.shape[-1]) * block.width
        return _csr([place + each[..., None] for each in classes], [x, -x], block.n * self.d)

    def reduced(self, a: Array) -> Array:
        """The variables of prices (M,) or (M, k)."""
        a = a.reshape(self.shape[0], -1)
        return a if self.own is None else np.take_along_axis(a, self.others, axis=1)

    def given(self, v: Array) -> Array:
        """Prices shaped as the predictors."""
        return self._of_all(v, 0.0 * v, slice(None))[0]

    def _of_all(self, b: Array, around: Array, some: slice) -> tuple[Array, Array]:
        """The prices of all classes, and how far they may be off."""
        if self.own is None:
            shape = len(b), *self.block.offset.shape[1:]
            return b.reshape(shape), around.reshape(shape)
        row, left = np.arange(len(b)), total([-x for x in b.T], [])
        out = np.zeros((2, len(b), self.block.width))
        out[:, row[:, None], self.others[some]] = b, around
        out[:, row, self.own[some]] = left.high, (around.sum(axis=1) + np.abs(left.low) + left.error) * MORE
        return out[0], out[1]

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
        self.K = edge.flat(d) if edge.map.edges is None else None  # rows of any kind; R times these would be rounded
        mix, penalty = (None if whole or self.K is not None else edge.penalty.composed()) or (None, edge.penalty)
        self.mix: Any = mix  # R
        self.mixed = mix is not None or self.K is not None
        self.edge, self.d = edge, d
        self.at = np.arange(edge.map.width(d)) if self.K is not None else edge.columns(d)
        need(self.mix is None or in_range(self.mix), f"an entry of the root of {edge.penalty!r} is out of range")
        k = len(self.at if self.mix is None else self.mix)
        super().__init__(f"a flow of {edge.name}", edge.map.owner, penalty, edge, self._rows, k)
        K, ground = self.K, edge.map.noun == "node"
        if K is not None:
            self.made_of = K.data, K.indices, K.indptr, self.at
        else:
            self.made_of = edge.tail, edge.head, self.at, self.mix
            self.products = Arcs(edge.map.edges, d) if mix is None and edge.map.edges is not None else None
        if isinstance(penalty, AbstractSmoothPenalty) and ground and self.mix is None:
            bend = penalty.smoothness()
            self.square = bend if penalty.strong_convexity() == bend else 0.0
        center, zero = edge.center, np.zeros(self.shape)
        if center is not None and mix is None:
            self.targets = np.asarray(center, dtype=float), zero, zero
        elif center is not None and mix is not None:  # R times the centers
            p, e, _ = product(np.asarray(center, dtype=float)[:, None, :], mix)
            found = total([*np.moveaxis(p, 2, 0), *np.moveaxis(e, 2, 0)], [np.full(self.shape, len(self.at) * DUST)])
            self.targets = found.high, found.low, found.error

    @property
    def scale(self) -> Array:
        return self.edge.weight

    def _rows(self, e: Array, s: Array) -> sp.csr_array:
        """w_tail - w_head on the coordinates of the edges, or R of it."""
        edge = self.edge
        if self.K is not None:
            return sp.csr_array(self.K[(e * self.shape[1] + s).ravel()])
        e, s = np.broadcast_arrays(e, s)
        at, x = (self.at[s][..., None], np.ones(1)) if self.mix is None else (self.at, self.mix[s])
        ends = [edge.tail] if edge.ground else [edge.tail, edge.head]
        return _csr([(end[e] * self.d)[..., None] + at for end in ends], [x, -x], edge.n * self.d)

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
    shape, k = places[0].shape[:-1], places[0].shape[-1]
    # products are bound by memory
    columns = np.empty((*shape, len(places), k), dtype=np.int32 if size < np.iinfo(np.int32).max else np.int64)
    entries = np.empty(columns.shape)
    for j, place in enumerate(places):
        columns[..., j, :], entries[..., j, :] = place, values[j]
    indptr = np.arange(0, columns.size + 1, len(places) * k, dtype=columns.dtype)
    return sp.csr_array((entries.ravel(), columns.ravel(), indptr), shape=(len(indptr) - 1, size))


class Columns:
    """B: the columns of all summands, a matter of the graph and the designs alone."""

    def __init__(self, summands: Sequence[Summand], equations: int) -> None:
        self.summands, self.shape = summands, (equations, sum(one.size for one in summands))
        self._kept: dict[Summand, list[Part]] = {}
        self.combined: dict[int, Any] = {}  # what is known of combinations of equations (see `follows`)
        numbers = np.arange(self.shape[1])
        every = Summand("all", numbers, None, None, self.rows, 1)
        self.parts = [every] if len(numbers) <= ROWS else summands  # few variables are taken together

    def rows(self, variables: Array, _: Array | None = None) -> sp.csr_array:
        """The columns of B of some variables, as rows, in rising order."""
        variables, parts = variables.ravel(), [sp.csr_array((0, self.shape[0]))]
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

    def pieces(self, one: Summand) -> Iterator[Part]:
        """The columns of some variables at a time, as rows, between the first and the last equation that they are
        in."""
        if one in self._kept:
            yield from self._kept[one]
            return
        made = list[Part]()
        for some in one.some():
            A, first = one.of(some), one.first + some.start * one.shape[1]
            here = slice(int(A.indices.min(initial=0)), int(A.indices.max(initial=0)) + 1)
            near = sp.csr_array((A.data, A.indices - here.start, A.indptr), shape=(A.shape[0], here.stop - here.start))
            part = slice(first, first + A.shape[0]), here, near
            if one.size <= KEPT and not isinstance(one.products, Design):
                made.append(part)
            yield part
        if made:
            self._kept[one] = made

    @cached_property
    def count(self) -> Array:
        """How many entries each equation has; none of these is too large."""
        out = np.zeros(self.shape[0])
        for one in self.summands:
            if one.products is not None:
                out += one.products.count()
                continue
            for _, here, A in self.pieces(one):
                need((np.abs(A.data) <= RANGE).all(), TOO_LARGE)
                out[here] += np.bincount(A.indices, minlength=A.shape[1])
        return out

    def pulled(self, v: Array) -> tuple[Array, Array]:
        """Bv, rounded at every step, and not less than |B||v|."""
        value, size = np.zeros((2, self.shape[0]))
        for one in self.summands:
            self.pull(one, v[one.columns], value, size)
        return value, size

    def pull(self, one: Summand, v: Array, value: Array, size: Array) -> None:
        """Add the same of the variables of one summand."""
        if one.products is not None:
            one.products.pull(v, value, size)
            return
        for some, here, A in self.pieces(one):
            mine, turned = v[some.start - one.first : some.stop - one.first], A.T
            value[here] += turned @ mine
            turned.data = magnitudes(turned.data, 1.0 / RANGE) * MORE
            size[here] += turned @ magnitudes(mine)

    def exactly(self, parts: Sequence[Array]) -> Pair:
        """B times the sum of some parts of v, without rounding but for the error."""

        def products() -> Iterator[Piece]:
            for one in self.parts:
                for some, here, A in self.pieces(one):
                    for v in parts:
                        yield here, A.indices, *product(A.data, np.repeat(v[some], np.diff(A.indptr)))

        size = sum((self.pulled(v)[1] for v in parts), np.zeros(self.shape[0]))
        return extracted(products, size * MORE, self.count * len(parts))


def summands_of(form: Form) -> list[Summand]:
    """The functions of a form as they are written: of all classes and coordinates."""
    prices = [Prices(block, form.d, whole=True) for block in form.samples]
    return [*prices, *(Flows(edge, form.d, whole=True) for edge in form.edges)]


class System:
    """B and the summands of a form; ``like`` it is one of a form with the same graph and designs. Systems with the same
    B are of one ``kind``."""

    def __init__(self, form: Form, like: System | None = None, outside: Pair | None = None) -> None:
        """``outside`` is what is taken from the equations beside Bv, (n, d)."""
        self.form, self.outside, self.size = form, outside, 0
        self.component = np.repeat(form.component, form.d)  # of each equation
        self.prices = [Prices(block, form.d) for block in form.samples]
        self.flows = [Flows(edge, form.d) for edge in form.edges]
        self.summands: list[Summand] = [*self.prices, *self.flows]
        for one in self.summands:
            need(all(below(t) for t in one.targets or ()), f"a target of {one.name} is too large")
            one.first, self.size = self.size, self.size + one.size
        if like is not None:
            need(self._has_the_matrix_of(like), "this is no system like the other")
            for one, other in zip(self.summands, like.summands, strict=False):
                one.products = other.products
        for one in [one for one in (*self.prices, *self.flows) if one.K is not None]:
            A = one.of(slice(0, one.shape[0]))
            of = np.repeat(form.component[one.node], one.shape[1])
            need((self.component[A.indices] == np.repeat(of, np.diff(A.indptr))).all(), f"{one.name} joins components")
        self.kind = Columns(self.summands, form.n * form.d) if like is None else like.kind
        self.count, self.shape = self.kind.count, self.kind.shape  # of entries, of B: equations, variables

    def _has_the_matrix_of(self, other: System) -> bool:
        """True where B is the same; what one has more are functions without variables."""
        pairs = zip(self.summands, other.summands, strict=False)
        same = all(one.shape == its.shape and all(map(_same, one.made_of, its.made_of)) for one, its in pairs)
        return same and (self.form.shape, self.size) == (other.form.shape, other.size)

    @cached_property
    def written(self) -> list[Summand]:
        """The functions as they are written (see `summands_of`); shared, where those are the same."""
        d = self.form.d
        prices = [one if one.own is None else Prices(one.block, d, whole=True) for one in self.prices]
        return [*prices, *(one if one.mix is None else Flows(one.edge, d, whole=True) for one in self.flows)]

    def residual(self, high: Array, low: Array, plain: bool = False) -> Pair:
        """Bv, (n, d); where ``plain``, of the high part alone, and rounded at every step."""
        if plain:  # m summands are off by m + 1 units of rounding of their magnitudes, in whatever order
            value, size = self.kind.pulled(high)
            found = Pair(value, np.zeros(len(value)), (self.count + 2) * (0.5 * EPS) * size * MORE)
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
