"""The dual value over all points next to one, from below, component by component."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ...form import EdgeBlock, Form
from ...terms.records import Array
from .rows import Prices, RootRows, SampleRows
from .sums import DUST, EPS, MORE, Pair, Runs, total, two_product, two_sum


@dataclass
class Value:
    """Adds up a lower bound of Q; ``why`` says what lies outside its domain, and ``inner`` whether all prices lie in
    the relative interiors of theirs."""

    form: Form
    sums: Sums
    why: list[str] = field(default_factory=list[str])
    inner: bool = True

    def samples(self, rows: SampleRows, each: Prices, where: Runs) -> Array:
        """Add -sum s h*(a/s) - <a, anchor - offset>; which free prices belong to samples outside their domain."""
        block, (a, off) = rows.block, each.interval()
        value, around, bad = self.of_prices(block, a, off)
        self.sums.add(-(block.scale * value), where, EPS, live(a, around))
        t_high, t_low = two_sum(-block.loss.anchor(block.y), block.offset)
        self.sums.products(each, t_high, t_low, where)
        return rows.of_samples(bad)

    def roots(self, rows: RootRows, each: Prices, where: Runs) -> Array:
        """Add -sum ||q||^2 / 2c - <q, R center>."""
        edge, R = rows.edge, rows.R
        q, around = each.interval()
        top = np.abs(q) + around
        value = np.einsum("ij,ij->i", top, top) * (0.5 * (1.0 + (6 + len(R)) * EPS)) / edge.weight
        self.sums.add(-value, where, 2 * EPS, live(q, around))
        if edge.center is not None:
            t = [_dot_pair(edge.center, row) for row in R]
            high, low, slack = (np.stack([x[k] for x in t], axis=1) for k in range(3))
            self.sums.products(each, -high, -low, where)
            self.sums.spend(((np.abs(q) + around) * slack).sum(axis=1), where)
        return np.zeros(each.high.size, dtype=bool)

    def edges(self, edge: EdgeBlock, u: Array, around: Array, where: Runs) -> Array:
        """Add -sum c phi*(u/c) - <u, center>; which edges' flows lie outside their domain."""
        c = edge.weight[:, None]
        b = u / c
        value = edge.penalty.conjugate_bound(b, around / c * (1.0 + 2 * EPS) + EPS * np.abs(b))
        value, bad = self.finite(value, edge.tail, f"a flow of {edge.name}")
        self.sums.add(-(edge.weight * value), where, EPS, live(u, around))
        if edge.center is not None:
            self.sums.products(Prices(u, np.zeros(u.shape), around), -edge.center, np.zeros(u.shape), where)
        return bad


class Sums:
    """Lower bounds of sums, per component, of terms with bounded errors. Terms come with their runs by component."""

    def __init__(self, count: int) -> None:
        self.parts: list[Array] = []
        self.errors = np.zeros(count)
        self.lost = np.zeros(count, dtype=bool)

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

    def spend(self, amounts: Array, where: Runs) -> None:
        """Amounts >= 0 that the terms may be smaller by."""
        found = where.sums(amounts)
        self.errors += (found.high + np.abs(found.low) + found.error) * MORE

    def sink(self, components: Array) -> None:
        """Components that have no bound."""
        self.lost[components] = True

    def _take(self, found: Pair) -> None:
        columns = [found.high] if found.high.ndim == 1 else list(found.high.T)
        self.parts += columns + ([found.low] if found.low.ndim == 1 else list(found.low.T))
        self.errors += found.error if found.error.ndim == 1 else found.error.sum(axis=1)

    def down(self) -> Array:
        return rounded_down(self.parts, self.errors, self.lost)


def rounded_down(parts: list[Array], errors: Array, lost: Array) -> Array:
    """The sums of the parts, per component, less their errors and rounded downwards; -inf where there is no bound."""
    if not parts:
        return np.where(lost, -np.inf, 0.0)
    found = total(parts, [errors])
    value = found.high + found.low
    lower = value - (found.error * MORE + EPS * np.abs(value))
    return np.where(lost | ~np.isfinite(lower), -np.inf, lower)


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
