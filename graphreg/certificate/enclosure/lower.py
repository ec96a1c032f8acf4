"""A lower bound of the optimum from any flows and prices, valid whatever rounding did.

Next to the point given there is one that is conserved exactly, and Q is bounded over all points that near. Where a
domain is left, the arcs and prices there stay as they are and the others answer for them; where that is not enough,
the point is pulled towards the middle of the domains, component by component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...form import DualPoint, EdgeBlock, Form
from ...terms.records import Array
from .arcs import LEAST_ROOM, Arcs, Forest, forest, rooms
from .closing import ENOUGH, SWEEPS, Closing
from .rows import AbstractRows, Prices, RootRows, SampleRows
from .sums import DUST, EPS, MORE, Pair, Runs, total
from .value import Sums, Value, sum_down

PULLS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
PLAINLY = (1e-12, 1e-11, 1e-10)  # the same, where sums are taken plainly
ROOMY = 4.0  # times what plain sums may miss in all: the room that arcs need there
NOTHING = 1e-13  # of a value: less than what plain sums may cost
LARGE = 10_000  # entries of samples and edges
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
    """

    lower: Array
    point: DualPoint
    spread: tuple[Array, ...]
    why: str = ""
    inner: bool = False

    @property
    def value(self) -> float:
        """The sum of the bounds, rounded downwards."""
        return sum_down(self.lower)


@dataclass
class _Attempt:
    """One point with everything that was derived from it."""

    lower: Array
    flows: tuple[Array, ...]
    spread: tuple[Array, ...]
    outside_arcs: Array  # which arcs leave their domain, over all arcs
    outside_prices: list[Array]
    beyond: Array  # components in which an edge lies outside whose flow did not move: no other forest helps there
    why: list[str]
    inner: bool
    prices: tuple[Array, ...] | None = None  # as they were moved

    def at(self, given: DualPoint) -> DualPoint:
        """The point next to which the bound holds."""
        return DualPoint(self.flows, given.prices if self.prices is None else self.prices)


class Enclosure:
    """The bounds of one problem; keeps what does not depend on the point."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def __call__(
        self, point: DualPoint, center: Callable[[], DualPoint | None] | None = None, enough: float = 0.0
    ) -> Enclosed:
        """The best bound per component; ``center`` gives a point well inside all domains where one is needed.

        Large sums are taken plainly where what that costs is below ``enough``.
        """
        if not all(np.isfinite(x).all() for x in (*point.flows, *point.prices)):
            none = np.full(self.form.n_components, -np.inf)
            return Enclosed(none, point, _zeros(point.flows), "flows or prices are not finite")
        value = self.form.dual(point)
        if self.large and enough > NOTHING * abs(value):
            found = self._pulled(point, center, PLAINLY, plain=True)
            if np.isfinite(found.value) and found.value >= value - enough:
                return found
        best = self._pulled(point, center, PULLS)
        if np.isfinite(best.lower).all():
            return best
        return self._better(best, self._within(self.form.nothing()))

    def _pulled(
        self,
        point: DualPoint,
        center: Callable[[], DualPoint | None] | None,
        pulls: tuple[float, ...],
        plain: bool = False,
    ) -> Enclosed:
        """The best bound at the point itself, or pulled so far towards the middle as it takes."""
        best = Enclosed(np.full(self.form.n_components, -np.inf), point, _zeros(point.flows))
        if not plain or self._inside(point):
            best = self._within(point, plain)
        if np.isfinite(best.lower).all():
            return best
        middle = None if center is None else center()
        if middle is not None and all(np.isfinite(x).all() for x in (*middle.flows, *middle.prices)):
            for t in pulls:
                at = _between(point, middle, t)
                if not plain or self._inside(at):
                    best = self._better(best, self._within(at, plain))
                if np.isfinite(best.lower).all():
                    break
        return best

    def _inside(self, point: DualPoint) -> bool:
        """Whether all flows as they stand lie inside their domains whatever rounding does to them."""
        for edge, u in zip(self.form.edges, point.flows, strict=True):
            b = u / edge.weight[:, None]
            if not np.isfinite(edge.penalty.conjugate_bound(b, 2 * EPS * np.abs(b))).all():
                return False
        return True

    def _better(self, one: Enclosed, other: Enclosed) -> Enclosed:
        """Component by component the point with the better bound."""
        take = other.lower > one.lower
        if not take.any():
            return one
        lower = np.where(take, other.lower, one.lower)
        flows, spread = [], []
        for edge, u, v, s, t in zip(
            self.form.edges, one.point.flows, other.point.flows, one.spread, other.spread, strict=True
        ):
            rows = take[self.form.component[edge.tail]][:, None]
            flows.append(np.where(rows, v, u))
            spread.append(np.where(rows, t, s))
        prices = []
        for block, a, b in zip(self.form.samples, one.point.prices, other.point.prices, strict=True):
            prices.append(np.where(block.column(take[self.form.component[block.node]]), b, a))
        why = "" if np.isfinite(lower).all() else one.why
        inner = other.inner and (one.inner or bool(take.all()))
        return Enclosed(lower, DualPoint(tuple(flows), tuple(prices)), tuple(spread), why, inner)

    @cached_property
    def large(self) -> bool:
        """Whether sums without rounding take a noticeable time."""
        samples = sum(block.A.nnz for block in self.form.samples)
        return samples + sum(len(edge.tail) * self.form.width(edge) for edge in self.form.edges) > LARGE

    # ---- what does not depend on the point ---------------------------------------------------------------------------
    @cached_property
    def rows(self) -> list[AbstractRows]:
        n, d = self.form.shape
        samples: list[AbstractRows] = [SampleRows(block, n, d) for block in self.form.samples]
        roots = [RootRows(self.form.edges[k], R, n, d) for k, R in self.roots]
        return samples + roots

    @cached_property
    def roots(self) -> list[tuple[int, Array]]:
        """The edge blocks that are stated by the root of a quadratic form, with it."""
        each = [(k, edge.penalty.squares()) for k, edge in enumerate(self.form.edges)]
        return [(k, R) for k, R in each if R is not None]

    @cached_property
    def wheres(self) -> list[Runs]:
        """For each block of prices its samples or edges by component."""
        form = self.form
        at = [block.node for block in form.samples] + [form.edges[k].tail for k, _ in self.roots]
        return [Runs(form.component[nodes], form.n_components) for nodes in at]

    @cached_property
    def edge_wheres(self) -> list[Runs]:
        form = self.form
        return [Runs(form.component[form.edges[k].tail], form.n_components) for k in self.arcs.blocks]

    @cached_property
    def arcs(self) -> Arcs:
        return Arcs.of(self.form)

    @cached_property
    def arc_runs(self) -> list[tuple[int, Runs]]:
        """For each edge block with arcs its ends, ordered by node."""
        blocks = [(k, self.form.edges[k]) for k in self.arcs.blocks]
        return [(k, Runs(_ends(edge, edge.tail, edge.head), self.form.n)) for k, edge in blocks]

    # ---- one attempt, and again with less that moves ----------------------------------------------------------------
    def _within(self, point: DualPoint, plain: bool = False) -> Enclosed:
        banned_arcs: Array | None = None
        banned_prices: list[Array] | None = None
        best = Enclosed(np.full(self.form.n_components, -np.inf), point, _zeros(point.flows))
        for _ in range(2 if plain else AGAIN):
            found = self._attempt(point, banned_arcs, banned_prices, plain)
            here = Enclosed(found.lower, found.at(point), found.spread, "; ".join(found.why), found.inner)
            best = here if not np.isfinite(best.lower).any() else self._better(best, here)
            if not (~np.isfinite(best.lower) & ~found.beyond).any():
                break
            arcs = found.outside_arcs if banned_arcs is None else banned_arcs | found.outside_arcs
            prices = found.outside_prices
            if banned_prices is not None:
                prices = [a | b for a, b in zip(banned_prices, prices, strict=True)]
            same = banned_arcs is not None and np.array_equal(arcs, banned_arcs)
            same = same and all(np.array_equal(a, b) for a, b in zip(prices, banned_prices or [], strict=True))
            if same or not (arcs.any() or any(p.any() for p in prices)):
                break
            banned_arcs, banned_prices = arcs, prices
        return best

    def _attempt(
        self, point: DualPoint, banned: Array | None, held: list[Array] | None, plain: bool = False
    ) -> _Attempt:
        form, arcs = self.form, self.arcs
        prices = [rows.start(a) for rows, a in zip(self.rows, self._given(point), strict=True)]
        pulls = [rows.pull(each.high, plain) for rows, each in zip(self.rows, prices, strict=True)]
        u = arcs.flat(point.flows)
        largest = self._largest(prices, u)
        if plain:
            largest = np.maximum(largest, self._missed(pulls, point.flows) * (ROOMY / LEAST_ROOM))
        tree = forest(arcs, rooms(form, arcs, point.flows), largest, banned)
        closing = Closing(self.rows, prices, arcs, tree, u, held)
        if closing.idle:
            closing.settle(prices)
            pulls = [rows.pull(each.high, plain) for rows, each in zip(self.rows, prices, strict=True)]
        base, error, failed = self._closed(closing, prices, pulls)
        flows, spread = self._rooted(prices, *self._carried(tree, point.flows, base, error, prices, plain))
        found = self._judged(prices, flows, spread, failed, tree, plain)
        found.prices = tuple(each.interval()[0] for each in prices[: len(point.prices)])
        return found

    def _missed(self, pulls: list[Pair], flows: tuple[Array, ...]) -> Array:
        """What plain sums of pulls and flows may miss at each coordinate, (d,), over all nodes."""
        missed = np.zeros(self.form.d)
        for pull in pulls:
            missed += pull.error.sum(axis=0)
        for k in self.arcs.blocks:
            edge = self.form.edges[k]
            degree = np.diff(edge.transposed.indptr)
            steps = degree[edge.tail] + (0 if edge.ground else degree[edge.head])
            missed[slice(None) if edge.features is None else edge.features] += EPS * (steps @ np.abs(flows[k]))
        return missed

    def _given(self, point: DualPoint) -> list[Array]:
        return [*point.prices, *(point.flows[k] for k, _ in self.roots)]

    def _largest(self, prices: list[Prices], u: Array) -> Array:
        """The largest number of each coordinate, |x_rj a_r| or |u_ej|: what counts as rounding there."""
        d = self.form.d
        top = np.zeros(d)
        if len(u):
            np.maximum.at(top, self.arcs.tail % d, np.abs(u))
        for block, each in zip(self.form.samples, prices, strict=False):
            a, X = np.abs(each.high), block.X
            if X is None:
                top = np.maximum(top, a.max(axis=0, initial=0.0))
            elif a.ndim == 1:
                top = np.maximum(top, _column_top(X, a))
            else:
                tops = [_column_top(X, np.ascontiguousarray(a[:, c])) for c in range(a.shape[1])]
                top = np.maximum(top, np.stack(tops, axis=1).ravel())
        return top

    def _closed(
        self, closing: Closing, prices: list[Prices], pulls: list[Pair]
    ) -> tuple[list[Array], Array, dict[int, str]]:
        """What the prices pull at each coordinate once the totals are taken away: summands, and their error."""
        base = [part for pull in pulls for part in (pull.high, pull.low)]
        error = np.sum([pull.error for pull in pulls], axis=0) if pulls else np.zeros(self.form.shape)
        low, low_error = self._lows(prices)
        T = closing.totals([*base, *low], error + low_error)
        for sweep in range(SWEEPS):
            if sweep:
                T = closing.totals([*base, *low], error + low_error)
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
        plain: bool,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Flows moved along the forest, twice, and how far they are from conserving exactly."""
        arcs = self.arcs
        pulled = total(base, [error]) if base else Pair(*(np.zeros(self.form.shape) for _ in range(3)))
        inner = np.flatnonzero(tree.arc >= 0)
        arc = tree.arc[inner]
        sign = np.where(arcs.tail[arc] == inner, -1.0, 1.0)
        u = arcs.flat(flows)
        for _ in range(1 if plain else 2):
            left = self._residual(pulled, arcs.fold(u, flows), plain)
            signed = (left.high + left.low).ravel()
            gathered = tree.gather(np.maximum(signed, 0.0)) - tree.gather(np.maximum(-signed, 0.0))
            u[arc] += sign * gathered[inner]
        found = arcs.fold(u, flows)
        left = self._residual(pulled, found, plain)
        off = np.abs(left.high + left.low) * (1.0 + EPS) + left.error
        for rows, each in zip(self.rows, prices, strict=True):
            off = off + rows.reach(each.spread)
        around = np.zeros(len(u))
        around[arc] = tree.gather(off.ravel() * MORE)[inner] * MORE
        return found, arcs.fold(around, _zeros(flows))

    def _residual(self, pulled: Pair, flows: tuple[Array, ...], plain: bool) -> Pair:
        """K'u + X'a at every coordinate."""
        parts, errors = [pulled.high, pulled.low], [pulled.error]
        n, d = self.form.shape
        for k, runs in self.arc_runs:
            edge = self.form.edges[k]
            each = _plainly(edge, flows[k]) if plain else runs.sums(_ends(edge, flows[k], -flows[k]))
            columns = slice(None) if edge.features is None else edge.features
            for source, out in ((each.high, parts), (each.low, parts), (each.error, errors)):
                whole = np.zeros((n, d))
                whole[:, columns] = source
                out.append(whole)
        return total(parts, errors)

    def _rooted(
        self, prices: list[Prices], flows: tuple[Array, ...], spread: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """With the flows R'q of the edges that are stated by roots, and how far these are from exact ones."""
        found, around = list(flows), list(spread)
        for (k, R), each in zip(self.roots, prices[len(self.form.samples) :], strict=True):
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
        plain: bool,
    ) -> _Attempt:
        form = self.form
        value = Value(form, Sums(form.n_components, plain))
        outside: list[Array] = []
        for rows, each, where in zip(self.rows, prices, self.wheres, strict=True):
            if isinstance(rows, SampleRows):
                outside.append(value.samples(rows, each, where))
            elif isinstance(rows, RootRows):
                outside.append(value.roots(rows, each, where))
        bad_arcs = [np.zeros(0, dtype=bool)]
        beyond = np.zeros(form.n_components, dtype=bool)
        used = np.zeros(len(self.arcs.tail), dtype=bool)
        used[tree.arc[tree.arc >= 0]] = True
        moved = self.arcs.fold(used, flows)
        for k, where in zip(self.arcs.blocks, self.edge_wheres, strict=True):
            bad = value.edges(form.edges[k], flows[k], spread[k], where)
            bad_arcs.append(np.repeat(bad, flows[k].shape[1]))
            if bad.any():
                beyond[form.component[form.edges[k].tail[bad & ~moved[k].any(axis=1)]]] = True
        lower = value.sums.down()
        for group, reason in failed.items():
            at = np.flatnonzero(tree.group[:-1] == group)
            lower[form.component[at // form.d]] = -np.inf
            value.why.append(self._named(at, reason))
        return _Attempt(lower, flows, spread, np.concatenate(bad_arcs), outside, beyond, value.why[:3], value.inner)

    def _named(self, at: Array, reason: str) -> str:
        names = self.form.space.names
        columns = list(dict.fromkeys(names[j] for j in (at % self.form.d).tolist()))
        node = self.form.labels[int(at[0]) // self.form.d]
        return f"{reason} (column {', '.join(map(repr, columns[:4]))} at node {node!r})"


def _between(point: DualPoint, middle: DualPoint, t: float) -> DualPoint:
    return DualPoint(
        tuple(u + t * (v - u) for u, v in zip(point.flows, middle.flows, strict=True)),
        tuple(a + t * (b - a) for a, b in zip(point.prices, middle.prices, strict=True)),
    )


def _zeros(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.zeros(x.shape) for x in arrays)


def _ends(edge: EdgeBlock, at_tail: Array, at_head: Array) -> Array:
    return at_tail if edge.ground else np.concatenate([at_tail, at_head])


def _plainly(edge: EdgeBlock, u: Array) -> Pair:
    """K'u, rounded at every step."""
    high, size = edge.transposed @ u, abs(edge.transposed) @ np.abs(u)
    steps = np.diff(edge.transposed.indptr)[:, None]
    return Pair(high, np.zeros_like(high), steps * (EPS * MORE * size + DUST * (size > 0.0)))


def _column_top(X: Array, a: Array) -> Array:
    """max over r of |x_rj a_r|, some rows at a time."""
    top = np.zeros(X.shape[1])
    for at in range(0, len(X), 1 << 14):
        some = slice(at, at + (1 << 14))
        top = np.maximum(top, (np.abs(X[some]) * a[some, None]).max(axis=0, initial=0.0))
    return top
