"""The bound next to one point: the prices are closed at groups without a way to the ground, the flows carried along a
forest, and Q is bounded over all points that are as near as an exactly conserved one is.

Where every node with prices is to balance itself, only what has none needs a way to one, and other arcs stay as they
are: where flows and prices are of very different sizes, what rounding leaves at a node with heavy samples is more than
its light edges can carry, and its own samples take it away at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import minimum_spanning_tree
from ...form import DualPoint, Form
from ...terms import Array, at_a_time
from .arcs import Arcs, Forest, forest, rooms
from .boxes import Enclosed, Value
from .closing import ENOUGH, SWEEPS, Closing, tied
from .rows import AbstractRows, Prices, RootRows, SampleRows, at_ends
from .structure import Structure
from .sums import EPS, MORE, Pair, Runs, total


def held_apart(arcs: Arcs, room: Array, rows: Sequence[AbstractRows], free: Array) -> Array:
    """All arcs but, for each coordinate without a price that may move, one on its roomiest way to one that has; given
    the room of the arcs, and the weights of the ``free`` prices."""
    served = np.zeros(arcs.ground + 2, dtype=bool)
    served[arcs.ground] = True
    start = 0
    for block in rows:
        end = start + len(block.nodes())
        at, x = block.entries(np.flatnonzero(free[start:end] > 0.0))
        start = end
        served[at[x != 0.0]] = True
    served[-1] = False  # where places are filled up
    number = np.where(served, 0, np.cumsum(~served))[:-1]  # all that are served are one
    tail, head = number[arcs.tail], number[arcs.head]
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    held = np.ones(len(room), dtype=bool)
    some = np.flatnonzero((low != high) & (room > 0.0))
    some = some[np.lexsort((-room[some], high[some], low[some]))]
    first = np.ones(len(some), dtype=bool)  # of several arcs between two the roomiest
    first[1:] = (low[some][1:] != low[some][:-1]) | (high[some][1:] != high[some][:-1])
    some = some[first]
    size = int(number.max(initial=0)) + 1
    rank = np.empty(len(some))
    rank[np.argsort(-room[some], kind="stable")] = np.arange(1, len(some) + 1)
    found = minimum_spanning_tree(sp.csr_array((rank, (low[some], high[some])), shape=(size, size)))
    held[some[np.isin(rank, found.data)]] = False
    return held


@dataclass(frozen=True)
class Attempt:
    """The bound next to one point, and where that lies outside of its domains."""

    bound: Enclosed
    outside_arcs: Array  # which arcs leave their domain, over all arcs
    outside_prices: Array  # which free prices do, over all blocks
    beyond: Array  # components in which an edge lies outside whose flow did not move: no other forest helps there


class Attempts:
    """The bounds next to points of one problem; what is taken from its nodes beside that is ``outside``, (n, d)."""

    def __init__(self, form: Form, structure: Structure, outside: Pair | None = None) -> None:
        self.form, self.structure, self.outside = form, structure, outside

    @cached_property
    def rows(self) -> list[AbstractRows]:
        return self.structure.rows(self.form)

    def __call__(self, point: DualPoint, held_arcs: Array, held_prices: Array, moving: int) -> Attempt:
        """The bound where some arcs and prices stay as they are, and all prices but those of the ``moving`` first
        blocks."""
        arcs, prices = self.structure.arcs, self._started(point)
        largest = self._largest(prices, arcs.flat(point.flows))
        tree = forest(arcs, rooms(self.form, arcs, point.flows), largest, held_arcs)
        return self._along(tree, prices, point, self._room(prices, held_prices, moving), moving)

    def _along(self, tree: Forest, prices: list[Prices], point: DualPoint, room: Array, moving: int) -> Attempt:
        """The bound where flows move along a forest."""
        arcs, u = self.structure.arcs, self.structure.arcs.flat(point.flows)
        pulls = [rows.pull(each.high) for rows, each in zip(self.rows, prices, strict=True)]
        free = self.rows[:moving]
        vertex = np.where(tree.group == tree.grounded, -1, tree.group)[:-1]
        totals = Totals(vertex, tree, arcs, u, self.outside)
        closing = Closing(free, room, tied(free, vertex, tree.count), totals.staying(pulls[moving:]))
        if closing.idle:
            closing.settle(prices)
            pulls = [rows.pull(each.high) for rows, each in zip(self.rows, prices, strict=True)]
        base, error, failed = self._closed(closing, totals, prices, pulls)
        if self.outside is not None:
            base, error = [*base, self.outside.high, self.outside.low], error + self.outside.error
        flows, spread = self._rooted(prices, *self._carried(tree, point.flows, base, error, prices))
        return self._judged(prices, flows, spread, failed, tree)

    def apart(self, point: DualPoint, held_arcs: Array, held_prices: Array) -> Attempt:
        """The bound where nodes with prices balance themselves, and what has none may move however little it can."""
        arcs, prices = self.structure.arcs, self._started(point)
        room = np.where(held_arcs, 0.0, rooms(self.form, arcs, point.flows))
        free = self._room(prices, held_prices, len(self.rows))
        tree = forest(arcs, room, np.zeros(self.form.d), held_apart(arcs, room, self.rows, free))
        return self._along(tree, prices, point, free, len(self.rows))

    def _started(self, point: DualPoint) -> list[Prices]:
        return [rows.start(a) for rows, a in zip(self.rows, self._given(point), strict=True)]

    def _room(self, prices: list[Prices], held: Array, moving: int) -> Array:
        """The weights of the free prices of the blocks that may move; 0 for those that are held."""
        pairs = zip(self.rows[:moving], prices, strict=False)
        room = np.concatenate([np.zeros(0), *(rows.room(each) for rows, each in pairs)])
        room[held[: len(room)]] = 0.0
        return room

    def _given(self, point: DualPoint) -> list[Array]:
        return [*point.prices, *(point.flows[k] for k, _, _ in self.structure.roots)]

    def _largest(self, prices: list[Prices], u: Array) -> Array:
        """The largest number of each coordinate, |x_rj a_r| or |u_ej|: what counts as rounding there."""
        d = self.form.d
        top = np.zeros(d)
        if len(u):
            np.maximum.at(top, self.structure.arcs.tail % d, np.abs(u))
        for block, each in zip(self.form.samples, prices, strict=False):
            a, X = np.abs(each.high), block.X
            if X is None:
                top = np.maximum(top, a.max(axis=0, initial=0.0))
            else:
                tops = [_column_top(X, np.ascontiguousarray(each)) for each in a.reshape(len(a), -1).T]
                top = np.maximum(top, np.stack(tops, axis=1).ravel())
        return top

    def _closed(
        self, closing: Closing, totals: Totals, prices: list[Prices], pulls: list[Pair]
    ) -> tuple[list[Array], Array, dict[int, str]]:
        """What the prices pull at each coordinate once the totals are taken away: summands, and their error."""
        base = [part for pull in pulls for part in (pull.high, pull.low)]
        error = np.sum([pull.error for pull in pulls], axis=0) if pulls else np.zeros(self.form.shape)
        low, low_error = self._lows(prices)
        T = totals([*base, *low], error + low_error)
        for sweep in range(SWEEPS):
            if sweep:
                T = totals([*base, *low], error + low_error)
            worst = closing.move(prices, T)
            low, low_error = self._lows(prices)
            if worst <= ENOUGH:
                break
        return [*base, *low], error + low_error, closing.failures(T)

    def _lows(self, prices: list[Prices]) -> tuple[list[Array], Array]:
        """What the low parts of the prices pull: summands, and a bound of their error and of what prices that depend on
        others lack."""
        parts: list[Array] = []
        error = np.zeros(self.form.shape)
        for rows, each in zip(self.rows, prices, strict=True):
            if each.low.any():
                pull = rows.pull(each.low)
                parts += [pull.high, pull.low]
                error = error + pull.error
            error = error + rows.slack(each)
        return parts, error

    # ---- flows ------------------------------------------------------------------------------------------------------
    def _carried(
        self,
        tree: Forest,
        flows: tuple[Array, ...],
        base: list[Array],
        error: Array,
        prices: list[Prices],
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Flows moved along the forest, twice, and how far they are from conserving exactly."""
        arcs = self.structure.arcs
        pulled = total(base, [error]) if base else Pair(*(np.zeros(self.form.shape) for _ in range(3)))
        inner = np.flatnonzero(tree.arc >= 0)
        arc = tree.arc[inner]
        sign = np.where(arcs.tail[arc] == inner, -1.0, 1.0)
        u = arcs.flat(flows)
        for _ in range(2):
            left = self._residual(pulled, arcs.fold(u, flows))
            signed = (left.high + left.low).ravel()
            gathered = tree.gather(np.maximum(signed, 0.0)) - tree.gather(np.maximum(-signed, 0.0))
            u[arc] += sign * gathered[inner]
        found = arcs.fold(u, flows)
        left = self._residual(pulled, found)
        off = np.abs(left.high + left.low) * (1.0 + EPS) + left.error
        for rows, each in zip(self.rows, prices, strict=True):
            off = off + rows.reach(each.spread)
        around = np.zeros(len(u))
        around[arc] = tree.gather(off.ravel() * MORE)[inner] * MORE
        return found, arcs.fold(around, zeros(flows))

    def _residual(self, pulled: Pair, flows: tuple[Array, ...]) -> Pair:
        """K'u + X'a at every coordinate."""
        parts, errors = [pulled.high, pulled.low], [pulled.error]
        for k, runs in self.structure.arc_runs:
            edge = self.form.edges[k]
            each = runs.sums(at_ends(edge, flows[k], -flows[k])).within(edge.coordinates, self.form.shape)
            parts += [each.high, each.low]
            errors.append(each.error)
        return total(parts, errors)

    def _rooted(
        self, prices: list[Prices], flows: tuple[Array, ...], spread: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """With the flows R'q of the edges that are stated by roots, and how far these are from exact ones."""
        found, around = list(flows), list(spread)
        for (k, R, _), each in zip(self.structure.roots, prices[len(self.form.samples) :], strict=True):
            q, off = each.interval()
            found[k] = q @ R
            around[k] = (off @ np.abs(R) + (len(R) + 2) * EPS * (np.abs(q) @ np.abs(R))) * MORE
        return tuple(found), tuple(around)

    # ---- the value --------------------------------------------------------------------------------------------------
    def _judged(
        self,
        prices: list[Prices],
        flows: tuple[Array, ...],
        spread: tuple[Array, ...],
        failed: dict[int, str],
        tree: Forest,
    ) -> Attempt:
        form = self.form
        value = Value(form)
        outside = [np.zeros(0, dtype=bool)]
        for rows, each, where in zip(self.rows, prices, self.structure.wheres, strict=True):
            if isinstance(rows, SampleRows):
                outside.append(value.samples(rows, each, where))
            elif isinstance(rows, RootRows):
                outside.append(value.roots(rows, each, where))
        bad_arcs = [np.zeros(0, dtype=bool)]
        beyond = np.zeros(form.n_components, dtype=bool)
        used = np.zeros(len(self.structure.arcs.tail), dtype=bool)
        used[tree.arc[tree.arc >= 0]] = True
        moved = self.structure.arcs.fold(used, flows)
        for k, where in zip(self.structure.arcs.blocks, self.structure.edge_wheres, strict=True):
            bad = value.edges(form.edges[k], flows[k], spread[k], where)
            bad_arcs.append(np.repeat(bad, flows[k].shape[1]))
            if bad.any():
                beyond[form.component[form.edges[k].tail[bad & ~moved[k].any(axis=1)]]] = True
        lower = value.down()
        for group, reason in failed.items():
            at = np.flatnonzero(tree.group[:-1] == group)
            lower[form.component[at // form.d]] = -np.inf
            value.why.append(self._named(at, reason))
        intervals = [each.interval() for each in prices[: len(form.samples)]]
        point = DualPoint(flows, tuple(a for a, _ in intervals))
        why, off = "; ".join(value.why[:3]), tuple(off for _, off in intervals)
        found = Enclosed(lower, point, spread, why, value.inner, off)
        return Attempt(found, np.concatenate(bad_arcs), np.concatenate(outside), beyond)

    def _named(self, at: Array, reason: str) -> str:
        names = self.form.space.names
        columns = list(dict.fromkeys(names[j] for j in (at % self.form.d).tolist()))
        node = self.form.labels[int(at[0]) // self.form.d]
        return f"{reason} (column {', '.join(map(repr, columns[:4]))} at node {node!r})"


class Totals:
    """What each group without a way to the ground has in total."""

    def __init__(self, vertex: Array, tree: Forest, arcs: Arcs, u: Array, outside: Pair | None) -> None:
        self.inside, self.group, self.count = vertex >= 0, vertex[vertex >= 0], tree.count
        self.coordinates = Runs(self.group, tree.count)
        self.fixed = tree.carried_out(arcs, u) or Pair(*np.zeros((3, tree.count)))
        if outside is not None:
            held, fixed = self([outside.high, outside.low], outside.error), self.fixed
            self.fixed = held if held.high.any() or held.low.any() or held.error.any() else fixed

    def staying(self, pulls: list[Pair]) -> Pair:
        """What stays whatever the free prices do: arcs that do not move, what is outside, and prices of other blocks,
        which pull so. Totals that follow from others must do so with all of it."""
        if not pulls:
            return self.fixed
        parts = [part for pull in pulls for part in (pull.high, pull.low)]
        return self(parts, np.sum([pull.error for pull in pulls], axis=0))

    def __call__(self, pulls: list[Array], error: Array) -> Pair:
        """From what the prices pull at its coordinates, and from its arcs that do not move."""
        sums = [self.coordinates.sums(pull.ravel()[self.inside]) for pull in pulls]
        slack = np.bincount(self.group, error.ravel()[self.inside], self.count) * MORE
        parts = [part for each in [*sums, self.fixed] for part in (each.high, each.low)]
        return total(parts, [each.error for each in [*sums, self.fixed]] + [slack])


def zeros(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.zeros(x.shape) for x in arrays)


def _column_top(X: Array, a: Array) -> Array:
    """max over r of |x_rj a_r|, some rows at a time."""
    top = np.zeros(X.shape[1])
    for some in at_a_time(1 << 14, len(X)):
        top = np.maximum(top, (np.abs(X[some]) * a[some, None]).max(axis=0, initial=0.0))
    return top
