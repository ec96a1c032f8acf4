"""Prices as they enter the conservation: what they pull at the nodes, exactly, and the rows of the small systems.

Samples are rows of X at their node. A penalty h(Rz) with fewer rows than coordinates is as good as that many samples on
each edge: its flow is R'q with free numbers q, and these are its prices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...form import EdgeBlock, SampleBlock
from ...terms import Array
from ...terms.penalties import AbstractPenalty
from .sums import DUST, EPS, MORE, Pair, Runs, total, two_sum


@dataclass
class Prices:
    """Prices ``high + low``, with an exactly conserved point within ``spread`` of them; arrays of one shape."""

    high: Array
    low: Array
    spread: Array
    off: Array | None = None  # (M,): how far the dependent ones are from minus the sum of the others as they stand

    def copy(self) -> Prices:
        off = None if self.off is None else self.off.copy()
        return Prices(self.high.copy(), self.low.copy(), self.spread.copy(), off)

    def interval(self) -> tuple[Array, Array]:
        """A float next to the prices, and how far from it they may be."""
        value = self.high + self.low
        exact = (self.low == 0.0) & (self.spread == 0.0)
        return value, np.where(exact, 0.0, self.spread * MORE + EPS * np.abs(value))


class AbstractRows(ABC):
    """One block of prices."""

    @abstractmethod
    def start(self, values: Array) -> Prices:
        """Prices exactly in the span of the domain, next to the given ones."""

    @abstractmethod
    def pull(self, a: Array) -> Pair:
        """X'a, (n, d), without rounding."""

    @abstractmethod
    def reach(self, spread: Array) -> Array:
        """A bound of |X|'spread, (n, d)."""

    def slack(self, prices: Prices) -> Array:
        """A bound of how far the pull of the prices as they stand is from that of prices in the span of the domain."""
        return np.zeros(1)

    @abstractmethod
    def room(self, prices: Prices) -> Array:
        """The weight of each free price in the small systems: 0 where it may not move."""

    @abstractmethod
    def nodes(self) -> Array:
        """A number of the place where each free price acts: prices of one place touch the same coordinates."""

    @abstractmethod
    def places(self) -> Array:
        """(places, coordinates): the coordinates i d + j that each place touches, -1 to fill up."""

    @abstractmethod
    def entries(self, free: Array) -> tuple[Array, Array]:
        """The coordinates and coefficients of some free prices, each (len(free), width)."""

    @abstractmethod
    def _place(self, free: Array) -> tuple[Array, ...]:
        """Where some free prices stand among all."""

    def clear(self, prices: Prices, free: Array) -> None:
        """Make free prices 0, in place."""
        place = self._place(free)
        prices.high[place] = prices.low[place] = prices.spread[place] = 0.0

    def move(self, prices: Prices, free: Array, by: Array, spread: Array) -> None:
        """Change free prices in place."""
        place = self._place(free)
        low = prices.low[place] + by
        prices.low[place] = low
        prices.spread[place] = np.where(low == 0.0, spread, spread * MORE + EPS * np.abs(low))


@dataclass(frozen=True)
class Design:
    """The design of one loss: which node and which features each sample has. Targets and offsets have no part in it."""

    node: Array
    X: Array | None
    n: int

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.node, self.n)

    @cached_property
    def count(self) -> Array:
        """How many samples each node has, (n, 1)."""
        return np.bincount(self.node, minlength=self.n)[:, None]

    @cached_property
    def top(self) -> Array:
        """The largest |x_rj| of each node, (n, p)."""
        return np.ones((self.n, 1)) if self.X is None else self.runs.largest(self.X)


@dataclass(frozen=True)
class SampleRows(AbstractRows):
    """The samples of one loss."""

    block: SampleBlock
    design: Design
    n: int
    d: int

    @property
    def k(self) -> int:
        return self.block.width

    @cached_property
    def own(self) -> Array | None:
        """The dependent coordinate of each sample's price."""
        return self.block.loss.prices.dependent(self.block.y)

    @cached_property
    def _domain(self) -> tuple[Array, Array]:
        return self.block.loss.domain(self.block.y)

    @cached_property
    def _free(self) -> tuple[Array, Array]:
        """Sample and coordinate of each price that is not 0 whatever happens, as that of a class that has left is."""
        low, high = self._domain
        free = (low != 0.0) | (high != 0.0)
        if self.own is not None:
            free[np.arange(len(free)), self.own] = False
        if free.ndim == 1:
            return np.flatnonzero(free), np.zeros(int(free.sum()), int)
        r, c = np.nonzero(free)
        return r, c

    def start(self, values: Array) -> Prices:
        prices = Prices(np.array(values, dtype=float), np.zeros(values.shape), np.zeros(values.shape))
        self._settle(prices)
        return prices

    def _settle(self, prices: Prices, rows: Array | None = None, *, moved: bool = False) -> None:
        """The dependent prices as what the others leave of a sum of 0. Where these have ``moved`` by small amounts, the
        leading parts stay, since what they pull is known."""
        if self.own is None:
            return
        if prices.off is None:
            prices.off = np.zeros(len(self.own))
        r = np.arange(len(self.own)) if rows is None else rows
        own = self.own[r]
        others = [np.where(np.arange(self.k) == own[:, None], 0.0, x[r]) for x in (prices.high, prices.low)]
        parts = [-x[:, c] for x in others for c in range(self.k)]
        if moved:
            found = total([*parts, -prices.high[r, own]], [])
            low, left = two_sum(found.high, found.low)
            prices.low[r, own], off = low, np.abs(left) + found.error
        else:
            found = total(parts, [])
            prices.high[r, own], prices.low[r, own], off = found.high, found.low, found.error
        spread = np.where(np.arange(self.k) == own[:, None], 0.0, prices.spread[r]).sum(axis=1)
        prices.off[r] = off
        prices.spread[r, own] = (spread + off) * MORE

    def slack(self, prices: Prices) -> Array:
        if self.own is None or prices.off is None or not prices.off.any():
            return np.zeros(1)
        return self.reach(np.where(np.arange(self.k) == self.own[:, None], prices.off[:, None], 0.0))

    def pull(self, a: Array) -> Pair:
        X, some = self.block.X, np.flatnonzero(a.reshape(len(a), -1).any(axis=1))
        whole = len(some) > len(a) // 2
        runs = self.design.runs if whole else Runs(self.block.node[some], self.n)
        a = a if whole else a[some]
        if X is None:
            return runs.sums(a)
        X = X if whole else X[some]
        if a.ndim == 1:
            return runs.products(X, a)
        each = [runs.products(X, np.ascontiguousarray(a[:, c])) for c in range(self.k)]
        parts = zip(*((p.high, p.low, p.error) for p in each), strict=True)
        return Pair(*(np.stack(part, axis=2).reshape(self.n, self.d) for part in parts))

    def plain_pull(self, a: Array) -> tuple[Array, Array]:
        """X'a, rounded at every step, and a bound of what that misses, (n, d) each: m units of rounding times
        sum |x_rj a_r| for m summands, in whatever order they are added."""
        size = self.most(a)
        error = (self.design.count + 1) * (0.5 * EPS * size + DUST * (size > 0.0)) * MORE
        return self.block.adjoint(a, (self.n, self.d)), error

    def most(self, a: Array) -> Array:
        """A bound of |X|'|a|, (n, d): of each node the largest |x_rj| times the sum of |a_r|."""
        sums = self.design.runs.magnitudes(a.reshape(len(a), -1))
        top, of_prices = self.design.top[:, :, None], sums[:, None, :]
        size = np.maximum(top * of_prices * MORE, DUST * ((top > 0.0) & (of_prices > 0.0)))
        return size.reshape(self.n, self.d)

    def reach(self, spread: Array) -> Array:
        some = np.flatnonzero(spread.reshape(len(spread), -1).any(axis=1))
        out = np.zeros((self.n, self.d))
        if len(some):
            X, s = self.block.X, spread[some]
            if X is None:
                each = s
            elif s.ndim == 1:
                each = np.abs(X[some]) * s[:, None]
            else:
                each = (np.abs(X[some])[:, :, None] * s[:, None, :]).reshape(len(some), -1)
            np.add.at(out, self.block.node[some], each)
        return out * MORE

    def room(self, prices: Prices) -> Array:
        r, c = self._free
        s = self.block.scale
        b = prices.high / self.block.column(s)
        low, high = self._domain
        with np.errstate(invalid="ignore"):
            depth = np.clip(np.minimum(b - low, high - b), 0.0, 1.0)
        if self.own is None:
            g = depth if depth.ndim == 1 else depth[r, c]
            return s[r] * g.ravel() ** 2
        return s[r] * np.minimum(depth[r, c], depth[r, self.own[r]]) ** 2

    def nodes(self) -> Array:
        return self.block.node[self._free[0]]

    def places(self) -> Array:
        return np.arange(self.n * self.d).reshape(self.n, self.d)

    def of_samples(self, chosen: Array) -> Array:
        """Which free prices belong to the samples of a mask."""
        return chosen[self._free[0]]

    def entries(self, free: Array) -> tuple[Array, Array]:
        r, c = self._free[0][free], self._free[1][free]
        base, X = self.block.node[r] * self.d, self.block.X
        if X is None:
            return (base + c)[:, None], np.ones((len(r), 1))
        features = np.arange(X.shape[1]) * self.k
        columns = base[:, None] + features + c[:, None]
        if self.own is None:
            return columns, X[r]
        other = base[:, None] + features + self.own[r][:, None]
        return np.hstack([columns, other]), np.hstack([X[r], -X[r]])

    def clear(self, prices: Prices, free: Array) -> None:
        super().clear(prices, free)
        self._settle(prices, np.unique(self._free[0][free]))

    def move(self, prices: Prices, free: Array, by: Array, spread: Array) -> None:
        super().move(prices, free, by, spread)
        self._settle(prices, np.unique(self._free[0][free]), moved=True)

    def _place(self, free: Array) -> tuple[Array, ...]:
        r, c = self._free[0][free], self._free[1][free]
        return (r,) if self.block.offset.ndim == 1 else (r, c)


@dataclass(frozen=True)
class RootRows(AbstractRows):
    """The edges of a penalty h(Rz) with R (r, k): numbers q (m, r), of which the flows are R'q."""

    edge: EdgeBlock
    R: Array
    h: AbstractPenalty
    n: int
    d: int

    @cached_property
    def columns(self) -> Array:
        return self.edge.columns(self.d)

    @cached_property
    def runs(self) -> Runs:
        return Runs(at_ends(self.edge, self.edge.tail, self.edge.head), self.n)

    def start(self, values: Array) -> Prices:
        """From the flows: the q with R'q nearest to them."""
        q = np.linalg.lstsq(self.R.T, values.T, rcond=None)[0].T
        return Prices(q, np.zeros(q.shape), np.zeros(q.shape))

    def pull(self, a: Array) -> Pair:
        X, parts = np.empty((len(at_ends(self.edge, a, a)), len(self.columns))), []
        for s, row in enumerate(self.R):
            X[:] = row
            parts.append(self.runs.products(X, at_ends(self.edge, a[:, s], -a[:, s])))
        high = [part for each in parts for part in (each.high, each.low)]
        return total(high, [each.error for each in parts]).within(self.columns, (self.n, self.d))

    def reach(self, spread: Array) -> Array:
        out = np.zeros((self.n, self.d))
        each = spread @ np.abs(self.R)
        for ends in (self.edge.tail,) if self.edge.ground else (self.edge.tail, self.edge.head):
            part = np.zeros((self.n, len(self.columns)))
            np.add.at(part, ends, each)
            out[:, self.columns] += part
        return out * MORE

    def room(self, prices: Prices) -> Array:
        c = self.edge.weight[:, None]
        return (c * np.minimum(self.h.domain.room(prices.high / c), 1.0)).ravel()

    def nodes(self) -> Array:
        return np.repeat(np.arange(len(self.edge.tail)), len(self.R))

    def places(self) -> Array:
        tail = self.edge.tail[:, None] * self.d + self.columns
        return tail if self.edge.ground else np.hstack([tail, self.edge.head[:, None] * self.d + self.columns])

    def entries(self, free: Array) -> tuple[Array, Array]:
        e, s = np.divmod(free, len(self.R))
        x = self.R[s]
        return self.places()[e], x if self.edge.ground else np.hstack([x, -x])

    def _place(self, free: Array) -> tuple[Array, ...]:
        return np.divmod(free, len(self.R))


def at_ends(edge: EdgeBlock, at_tail: Array, at_head: Array) -> Array:
    """What is at the tails, and at the heads where these are nodes."""
    return at_tail if edge.ground else np.concatenate([at_tail, at_head])
