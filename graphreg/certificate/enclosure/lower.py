"""A lower bound of the optimum from any flows and prices, valid whatever rounding did.

Next to the point given there is one that is conserved exactly, and Q is bounded over all points that near. Where a
domain is left, the arcs and prices there stay as they are and the others answer for them; where that is not enough,
the point is pulled towards the middle of the domains, component by component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...form import DualPoint, Form
from ...terms import Array, at_a_time
from .arcs import Arcs, Forest, forest, rooms
from .boxes import Box, box_value
from .closing import ENOUGH, SWEEPS, Closing
from .plain import boxes_near
from .price_groups import tied
from .rows import AbstractRows, Prices, RootRows, SampleRows, at_ends
from .structure import Structure
from .sums import EPS, MORE, Pair, Runs, total
from .value import Value, sum_down

PULLS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
AGAIN = 6  # attempts with fewer and fewer arcs and prices that may move


@dataclass(frozen=True)
class Enclosed:
    """A lower bound, and the dual point next to which it was found.

    Attributes
    ----------
    lower : (components,) array
        A lower bound of the optimum of each component; -inf where none was found.
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


@dataclass(frozen=True)
class _Attempt:
    """The bound next to one point, and where that lies outside of its domains."""

    bound: Enclosed
    outside_arcs: Array  # which arcs leave their domain, over all arcs
    outside_prices: Array  # which free prices do, over all blocks
    beyond: Array  # components in which an edge lies outside whose flow did not move: no other forest helps there


class Enclosure:
    """The bounds of one problem; keeps what does not depend on the point, and shares what does not depend on targets,
    offsets and centers with one ``like`` it."""

    def __init__(self, form: Form, like: Enclosure | None = None) -> None:
        self.form = form
        self.structure = Structure(form) if like is None else like.structure

    def __call__(
        self, point: DualPoint, center: Callable[[], DualPoint | None] | None = None, least: float = np.inf
    ) -> Enclosed:
        """The best bound per component; ``center`` gives a point well inside all domains where one is needed.

        Sums are taken plainly where that gives a bound of at least ``least``.
        """
        if not all(np.isfinite(x).all() for x in (*point.flows, *point.prices)):
            none = np.full(self.form.n_components, -np.inf)
            return Enclosed(none, point, _zeros(point.flows), "flows or prices are not finite")
        if least < np.inf:
            for box in boxes_near(self.structure, self.form, self.rows, point):
                found = self._over(box)
                if found.value >= least:
                    return found
        best = self._pulled(point, center)
        if np.isfinite(best.lower).all():
            return best
        return self._better(best, self._within(self.form.nothing()))

    def beside(self, found: Enclosed) -> Enclosed | None:
        """What is proved of the same dual points here, where ``found`` is of a form with the same graph and designs."""
        if self.structure.roots or len(found.off) < len(found.dual_point.prices):
            return None
        here = self._over(Box(found.dual_point.flows, found.spread, found.dual_point.prices, found.off))
        # Without a bound there the box of a component need not hold a conserved point.
        return replace(here, lower=np.where(np.isfinite(found.lower), here.lower, -np.inf))

    def _over(self, box: Box) -> Enclosed:
        found = box_value(self.form, self.structure, box)
        return Enclosed(found.lower, DualPoint(box.flows, box.prices), box.spread, found.why, found.inner, box.off)

    def _pulled(self, point: DualPoint, center: Callable[[], DualPoint | None] | None) -> Enclosed:
        """The best bound at the point itself, or pulled so far towards the middle as it takes."""
        best = self._within(point)
        if np.isfinite(best.lower).all():
            return best
        middle = None if center is None else center()
        if middle is not None and all(np.isfinite(x).all() for x in (*middle.flows, *middle.prices)):
            for t in PULLS:
                best = self._better(best, self._within(_between(point, middle, t)))
                if np.isfinite(best.lower).all():
                    break
        return best

    def _better(self, one: Enclosed, other: Enclosed) -> Enclosed:
        """Component by component the point with the better bound."""
        take = other.lower > one.lower
        if not take.any():
            return one
        lower = np.where(take, other.lower, one.lower)
        component = self.form.component
        edges = [take[component[edge.tail]][:, None] for edge in self.form.edges]
        samples = [block.column(take[component[block.node]]) for block in self.form.samples]
        here, there = one.dual_point, other.dual_point
        point = DualPoint(_chosen(edges, here.flows, there.flows), _chosen(samples, here.prices, there.prices))
        off = _chosen(samples, one.off, other.off) if one.off and other.off else ()
        why = "" if np.isfinite(lower).all() else one.why
        inner = other.inner and (one.inner or bool(take.all()))
        return Enclosed(lower, point, _chosen(edges, one.spread, other.spread), why, inner, off)

    @cached_property
    def rows(self) -> list[AbstractRows]:
        return self.structure.rows(self.form)

    # ---- one attempt, and again with less that moves ----------------------------------------------------------------
    def _within(self, point: DualPoint) -> Enclosed:
        held_arcs = np.zeros(len(self.structure.arcs.tail), dtype=bool)
        held_prices = np.zeros(sum(len(rows.nodes()) for rows in self.rows), dtype=bool)
        samples = len(self.form.samples)
        if samples < len(self.rows):  # flows R'q as they are, if that will do: they tie all nodes into one system
            found = self._attempt(point, held_arcs, held_prices, samples).bound
            if np.isfinite(found.lower).all():
                return found
        best = Enclosed(np.full(self.form.n_components, -np.inf), point, _zeros(point.flows))
        for _ in range(AGAIN):
            found = self._attempt(point, held_arcs, held_prices, len(self.rows))
            best = found.bound if not np.isfinite(best.lower).any() else self._better(best, found.bound)
            arcs, prices = held_arcs | found.outside_arcs, held_prices | found.outside_prices
            same = np.array_equal(arcs, held_arcs) and np.array_equal(prices, held_prices)
            if same or not (~np.isfinite(best.lower) & ~found.beyond).any():
                break
            held_arcs, held_prices = arcs, prices
        return best

    def _attempt(self, point: DualPoint, held_arcs: Array, held_prices: Array, moving: int) -> _Attempt:
        """The bound where some arcs and prices stay as they are, and all prices but those of the ``moving`` first
        blocks."""
        form, arcs = self.form, self.structure.arcs
        prices = [rows.start(a) for rows, a in zip(self.rows, self._given(point), strict=True)]
        pulls = [rows.pull(each.high) for rows, each in zip(self.rows, prices, strict=True)]
        u = arcs.flat(point.flows)
        tree = forest(arcs, rooms(form, arcs, point.flows), self._largest(prices, u), held_arcs)
        free = self.rows[:moving]
        room = np.concatenate([np.zeros(0), *(rows.room(each) for rows, each in zip(free, prices, strict=False))])
        room[held_prices[: len(room)]] = 0.0
        vertex = np.where(tree.group == tree.grounded, -1, tree.group)[:-1]
        totals = Totals(vertex, tree, arcs, u)
        closing = Closing(free, room, tied(free, vertex, tree.count), totals.fixed)
        if closing.idle:
            closing.settle(prices)
            pulls = [rows.pull(each.high) for rows, each in zip(self.rows, prices, strict=True)]
        base, error, failed = self._closed(closing, totals, prices, pulls)
        flows, spread = self._rooted(prices, *self._carried(tree, point.flows, base, error, prices))
        return self._judged(prices, flows, spread, failed, tree)

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
        return found, arcs.fold(around, _zeros(flows))

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
    ) -> _Attempt:
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
        return _Attempt(found, np.concatenate(bad_arcs), np.concatenate(outside), beyond)

    def _named(self, at: Array, reason: str) -> str:
        names = self.form.space.names
        columns = list(dict.fromkeys(names[j] for j in (at % self.form.d).tolist()))
        node = self.form.labels[int(at[0]) // self.form.d]
        return f"{reason} (column {', '.join(map(repr, columns[:4]))} at node {node!r})"


class Totals:
    """What each group without a way to the ground has in total."""

    def __init__(self, vertex: Array, tree: Forest, arcs: Arcs, u: Array) -> None:
        self.inside, self.group, self.count = vertex >= 0, vertex[vertex >= 0], tree.count
        self.coordinates = Runs(self.group, tree.count)
        self.fixed = tree.carried_out(arcs, u) or Pair(*np.zeros((3, tree.count)))

    def __call__(self, pulls: list[Array], error: Array) -> Pair:
        """From what the prices pull at its coordinates, and from its arcs that do not move."""
        sums = [self.coordinates.sums(pull.ravel()[self.inside]) for pull in pulls]
        slack = np.bincount(self.group, error.ravel()[self.inside], self.count) * MORE
        parts = [part for each in [*sums, self.fixed] for part in (each.high, each.low)]
        return total(parts, [each.error for each in [*sums, self.fixed]] + [slack])


def _between(point: DualPoint, middle: DualPoint, t: float) -> DualPoint:
    return DualPoint(
        tuple(u + t * (v - u) for u, v in zip(point.flows, middle.flows, strict=True)),
        tuple(a + t * (b - a) for a, b in zip(point.prices, middle.prices, strict=True)),
    )


def _chosen(rows: list[Array], one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    """The other arrays in these rows."""
    return tuple(np.where(take, b, a) for take, a, b in zip(rows, one, other, strict=True))


def _zeros(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.zeros(x.shape) for x in arrays)


def _column_top(X: Array, a: Array) -> Array:
    """max over r of |x_rj a_r|, some rows at a time."""
    top = np.zeros(X.shape[1])
    for some in at_a_time(1 << 14, len(X)):
        top = np.maximum(top, (np.abs(X[some]) * a[some, None]).max(axis=0, initial=0.0))
    return top
