"""The dual value over all points next to one, from below, component by component."""

from __future__ import annotations

import math

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array
from .rows import Prices, RootRows, SampleRows
from .sums import DUST, EPS, MORE, Pair, Runs, total, two_product, two_sum


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
