"""Boxes that hold an exactly conserved point, and the dual value over all of a box from below, by plain sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...terms import Array, at_a_time
from .rows import Prices, RootRows, SampleRows
from .structure import Structure
from .sums import DUST, EPS, MORE, PIECE, Pair, Runs, total, two_product, two_sum


# ---- the dual value over all points next to one, from below, component by component ----------------------------------
class Bound:
    """A lower bound of Q over a box, per component: summands with their errors. ``why`` says what lies outside its
    domain, so that its component has none, and ``inner`` whether all prices lie in the relative interiors of theirs."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.parts: list[Array] = []
        self.errors = np.zeros(form.n_components)
        self.lost = np.zeros(form.n_components, dtype=bool)
        self.why: list[str] = []
        self.inner = True

    def of_prices(
        self, block: SampleBlock, a: Array, off: Array, some: slice = slice(None)
    ) -> tuple[Array, Array, Array]:
        """Of some samples: h*(a/s) at most, 0 where it is infinite; how far a/s may be off; and where h* is
        infinite."""
        s, y = block.column(block.scale_of(some)), block.y[some]
        b = a / s
        around = off / s * (1.0 + EPS) + EPS * np.abs(b)
        value = block.loss.conjugate_bound(b, around, y)
        low, high = block.loss.domain(y)
        self.inner = self.inner and bool(((b - around > low) & (b + around < high)).all())
        value, bad = self.finite(value, block.node[some], f"a price of {block.loss.called()}")
        return value, around, bad

    def finite(self, value: Array, node: Array, what: str) -> tuple[Array, Array]:
        """The values, 0 where they are infinite, and where that is."""
        bad = ~(value < np.inf)
        if bad.any():
            label = self.form.labels[int(node[int(np.argmax(bad))])]
            self.why.append(f"{what} leaves its domain at node {label!r}")
            self.lost[self.form.component[node[bad]]] = True
            value = np.where(bad, 0.0, value)
        return value, bad

    def spend(self, amounts: Array, where: Runs, plain: bool = False) -> None:
        """Amounts >= 0 that the terms may be too high by."""
        found = where.sums(amounts, plain=plain)
        self.errors += (found.high + np.abs(found.low) + found.error) * MORE

    def down(self) -> Array:
        """The sums of the parts, per component, less their errors, rounded downwards; -inf where there is none."""
        if not self.parts:
            return np.where(self.lost, -np.inf, 0.0)
        found = total(self.parts, [self.errors])
        value = found.high + found.low
        lower = value - (found.error * MORE + EPS * np.abs(value))
        return np.where(self.lost | ~np.isfinite(lower), -np.inf, lower)


class Value(Bound):
    """The bound over all points next to one, from sums that are exact but for a small part of their rounding."""

    def samples(self, rows: SampleRows, each: Prices, where: Runs) -> Array:
        """Add -sum s h*(a/s) - <a, anchor - offset>; which free prices belong to samples outside their domain."""
        block, (a, off) = rows.block, each.interval()
        value, around, bad = self.of_prices(block, a, off)
        self.add(-(block.scale * value), where, EPS, live(a, around))
        t_high, t_low = two_sum(-block.loss.anchor(block.y), block.offset)
        self.products(each, t_high, t_low, where)
        return rows.of_samples(bad)

    def roots(self, rows: RootRows, each: Prices, where: Runs) -> Array:
        """Add -sum c h*(q/c) - <q, R center>; which q belong to flows outside their domain."""
        edge, R, c = rows.edge, rows.R, rows.edge.weight[:, None]
        q, around = each.interval()
        b = q / c
        value = rows.h.conjugate_bound(b, around / c * (1.0 + 2 * EPS) + EPS * np.abs(b))
        value, bad = self.finite(value, edge.tail, f"a flow of {edge.name}")
        self.add(-(edge.weight * value), where, EPS, live(q, around))
        if edge.center is not None:
            t = [_dot_pair(edge.center, row) for row in R]
            high, low, slack = (np.stack([x[k] for x in t], axis=1) for k in range(3))
            self.products(each, -high, -low, where)
            self.spend(((np.abs(q) + around) * slack).sum(axis=1), where)
        return np.repeat(bad, len(R))

    def edges(self, edge: EdgeBlock, u: Array, around: Array, where: Runs) -> Array:
        """Add -sum c phi*(u/c) - <u, center>; which edges' flows lie outside their domain."""
        c = edge.weight[:, None]
        b = u / c
        value = edge.penalty.conjugate_bound(b, around / c * (1.0 + 2 * EPS) + EPS * np.abs(b))
        value, bad = self.finite(value, edge.tail, f"a flow of {edge.name}")
        self.add(-(edge.weight * value), where, EPS, live(u, around))
        if edge.center is not None:
            self.products(Prices(u, np.zeros(u.shape), around), -edge.center, np.zeros(u.shape), where)
        return bad

    def add(self, values: Array, where: Runs, relative: float, live: Array) -> None:
        """Values that are off by a relative error at most; exact where they are not ``live`` (conjugates at 0)."""
        self._take(where.sums(values))
        self.spend(relative * np.abs(values) + DUST * live, where)

    def products(self, prices: Prices, t_high: Array, t_low: Array, where: Runs) -> None:
        """<a, t> for prices within their spread, and t a pair."""
        if not (t_high.any() or t_low.any()):
            return
        crossed = [prices.high * t_low, prices.low * t_high]
        p, e = two_product(prices.high, t_high)
        for part in (p, e, crossed[0] + crossed[1]):
            self._take(where.sums(part))
        error = 2 * EPS * (np.abs(crossed[0]) + np.abs(crossed[1])) + np.abs(prices.low * t_low)
        error = error + DUST * ((prices.high != 0.0) & ((t_high != 0.0) | (t_low != 0.0)))
        error = error + prices.spread * (np.abs(t_high) + np.abs(t_low))
        self.spend(rowwise(error), where)

    def _take(self, found: Pair) -> None:
        columns = [found.high] if found.high.ndim == 1 else list(found.high.T)
        self.parts += columns + ([found.low] if found.low.ndim == 1 else list(found.low.T))
        self.errors += found.error if found.error.ndim == 1 else found.error.sum(axis=1)


def rowwise(errors: Array) -> Array:
    """One number per row."""
    return errors if errors.ndim == 1 else errors.sum(axis=1)


def live(a: Array, around: Array) -> Array:
    """Which rows are not exactly 0."""
    live = (a != 0.0) | (around != 0.0)
    return live if live.ndim == 1 else live.any(axis=1)


def sum_down(values: Array) -> float:
    """The sum, rounded downwards."""
    if not np.isfinite(values).all():
        return -np.inf
    exact = math.fsum(values)
    return exact if exact == 0.0 and not values.any() else float(np.nextafter(exact, -np.inf))


def _dot_pair(X: Array, v: Array) -> tuple[Array, Array, Array]:
    """Xv row by row as pairs, with errors."""
    parts: list[Array] = []
    for j, factor in enumerate(v):
        parts += two_product(X[:, j], np.full(len(X), factor))
    found = total(parts, [np.full(len(X), DUST)])
    return found.high, found.low, found.error


@dataclass(frozen=True)
class Enclosed:
    """A lower bound, and the dual point next to which it was found.

    Attributes
    ----------
    lower : (components,) array
        A lower bound of the optimum of each component; -inf where none was found. One number alone is a bound of all
        together.
    point : DualPoint
    spread : tuple of arrays
        An exactly conserved point has its flows within ``point.flows +- spread``.
    why : str
        What failed, where a bound is missing.
    inner : bool
        Whether the prices of the exactly conserved point lie in the relative interior of their domains.
    off : tuple of arrays
        It has its prices within ``point.prices +- off``; empty where that is not known.
    """

    lower: Array
    dual_point: DualPoint
    spread: tuple[Array, ...]
    why: str = ""
    inner: bool = False
    off: tuple[Array, ...] = ()

    @property
    def value(self) -> float:
        """The sum of the bounds, rounded downwards."""
        return sum_down(self.lower)


# ---- boxes -----------------------------------------------------------------------------------------------------------
CELLS = 1 << 15  # numbers of flows at a time


@dataclass(frozen=True)
class Box:
    """An exactly conserved point has its flows within ``flows +- spread`` and its prices within ``prices +- off``.

    That is a matter of the graph and the designs: it holds in every form that has these, whatever its targets, offsets
    and centers are.
    """

    flows: tuple[Array, ...]
    spread: tuple[Array, ...]
    prices: tuple[Array, ...]
    off: tuple[Array, ...]


@dataclass(frozen=True)
class BoxValue:
    """A lower bound of Q over a box for each component, what lies outside of its domain where there is none, and
    whether all prices lie in the relative interiors of theirs."""

    lower: Array
    why: str
    inner: bool


def box_value(form: Form, structure: Structure, box: Box) -> BoxValue:
    """The dual value over a box, from below. Sums are rounded at every step, and the bound pays for it."""
    found = _Sums(form)
    for block, a, off in zip(form.samples, box.prices, box.off, strict=False):
        found.samples(block, a, off)
    for k in structure.blocks:
        found.edges(form.edges[k], box.flows[k], box.spread[k])
    return BoxValue(found.down(), "; ".join(found.why), found.inner)


class _Sums(Bound):
    """The bound from sums that are rounded at every step: within pieces, which are added up without rounding."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.pieces: list[tuple[Array, Array, Array]] = []  # components, sums, and how far these are off

    def samples(self, block: SampleBlock, a: Array, off: Array) -> None:
        """Add -sum s h*(a/s) - <a, anchor - offset>, some samples at a time: what is between then stays in the
        cache."""
        for some in block.some():
            value = self.of_prices(block, a[some], off[some], some)[0]
            t = block.loss.anchor(block.y[some]) - block.offset[some]
            self._add(*_terms(block.scale_of(some) * value, a[some], off[some], t), block.node[some])

    def edges(self, edge: EdgeBlock, u: Array, spread: Array) -> None:
        """Add -sum c phi*(u/c) - <u, center>, some edges at a time."""
        for some in at_a_time(CELLS // u.shape[1], len(u)):
            c = edge.weight_of(some)[:, None]
            b, around = u[some] / c, spread[some] / c
            around *= 1.0 + 2 * EPS
            around += EPS * np.abs(b)
            each = edge.penalty.conjugate_bound(b, around)
            each = self.finite(each, edge.tail[some], f"a flow of {edge.name}")[0]
            t = None if edge.center is None else edge.center[some]
            self._add(*_terms(c[:, 0] * each, u[some], spread[some], t), edge.tail[some])

    def _add(self, value: Array, error: Array, node: Array) -> None:
        """Add values at some nodes that are off by an error at most."""
        component = self.form.component[node]
        starts = np.arange(0, len(value), PIECE)
        changes = np.flatnonzero(component[1:] != component[:-1]) + 1
        starts = np.union1d(starts, changes) if len(changes) else starts
        size = np.add.reduceat(np.abs(value), starts)
        off = np.add.reduceat(error, starts) + (PIECE - 1) * (EPS * size + DUST * (size > 0.0))
        self.pieces.append((component[starts], np.add.reduceat(value, starts), off * MORE))

    def down(self) -> Array:
        if self.pieces:
            component, value, off = (np.concatenate(each) for each in zip(*self.pieces, strict=True))
            where = Runs(component, self.form.n_components)
            found = where.sums(value)
            self.parts += [found.high, found.low]
            self.errors += found.error
            self.spend(off, where, plain=True)
        return super().down()


def _terms(value: Array, a: Array, off: Array, t: Array | None) -> tuple[Array, Array]:
    """-(value + <a, t>) row by row, where value and t were rounded once, and how far that is off."""
    error = 2 * EPS * np.abs(value) + DUST * live(a, off)
    if t is not None:
        each = 4 + (1 if t.ndim == 1 else t.shape[1])  # roundings of t, of a product, and of their sum
        error += rowwise((each * EPS * np.abs(a) + off) * np.abs(t)) * MORE
        value = value + rowwise(a * t)
        error += EPS * np.abs(value)
    return -value, error
