"""Prices that take away, exactly, what the groups without a way to the ground have in total.

Within a group flows carry whatever is left from node to node; its total they cannot change. Groups that share prices
are one small system; many of one shape are solved in stacks, and one with very many columns cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...inputs import components_of, groups_of
from ...terms import Array, at_a_time
from .rows import AbstractRows, Prices
from .sums import EPS, MORE, Pair
from .systems import Arrow, Systems, reduced, triangles


# ---- groups that prices tie: each part is one small system -----------------------------------------------------------
@dataclass(frozen=True)
class PriceGroup:
    """Groups that share prices: their columns, the free prices that may move, and all (numbers over the blocks)."""

    rows: Array
    groups: Array
    whole: Array


@dataclass(frozen=True)
class Tied:
    """The parts of one forest, with all their prices; ``lone`` are groups without any.

    ``vertex`` (n d + 1,) has the group of each coordinate, -1 where there is a way to the ground, ``starts`` the number
    of the first free price of each block, and ``width`` the most coordinates that a price touches.
    """

    vertex: Array
    count: int
    starts: Array
    width: int
    parts: list[PriceGroup]
    lone: Array


def tied(blocks: Sequence[AbstractRows], vertex: Array, count: int) -> Tied:
    """Parts by connected components: a price ties all groups that its place touches."""
    starts = np.cumsum([0, *(len(b.nodes()) for b in blocks)])
    ends = np.append(vertex, -1)
    width = max((block.places().shape[1] for block in blocks), default=0)
    groups = np.unique(vertex[vertex >= 0])
    if not len(groups):
        return Tied(ends, count, starts, width, [], groups)
    links: list[tuple[Array, Array]] = []
    at_group: list[Array] = []  # of each price one of the groups that its place touches, -1 for none
    for block in blocks:
        free = block.nodes()
        touched = ends[block.places()]
        one = touched.max(axis=1, initial=-1)
        used = np.bincount(free, minlength=len(touched)) > 0
        ties = used[:, None] & (touched >= 0)
        links.append((np.broadcast_to(one[:, None], touched.shape)[ties], touched[ties]))
        at_group.append(one[free])
    tail, head = (np.concatenate([np.zeros(0, dtype=int), *(link[k] for link in links)]) for k in (0, 1))
    label = components_of(tail, head, count)[1]
    group = np.concatenate([np.zeros(0, dtype=int), *at_group])
    rows = np.flatnonzero(group >= 0)
    parts, lone = _collected(label[groups], groups, label[group[rows]], rows)
    return Tied(ends, count, starts, width, parts, lone)


def tied_alike(blocks: Sequence[AbstractRows], group: Array, count: int, d: int) -> Tied:
    """The same where each group has all d coordinates of some nodes, and each price touches all of one: ``group`` (n,)
    has that of each node, and coordinate j of group g is g d + j."""
    starts = np.cumsum([0, *(len(b.nodes()) for b in blocks)])
    at = group[np.concatenate([np.zeros(0, dtype=int), *(b.nodes() for b in blocks)])]
    rows, groups = np.flatnonzero(at >= 0), np.unique(group[group >= 0])
    parts, lone = _collected(groups, groups, at[rows], rows)
    each = np.arange(d)
    vertex = np.append(np.where(group[:, None] < 0, -1, group[:, None] * d + each), -1)
    spread = [PriceGroup(part.rows, (part.groups[:, None] * d + each).ravel(), part.whole) for part in parts]
    return Tied(vertex, count * d, starts, d, spread, (lone[:, None] * d + each).ravel())


def _collected(group_label: Array, groups: Array, row_label: Array, rows: Array) -> tuple[list[PriceGroup], Array]:
    labels, where = np.unique(group_label, return_inverse=True)
    at = np.searchsorted(labels, row_label)
    places = zip(groups_of(at, len(labels)), groups_of(where, len(labels)), strict=True)
    pairs = [(rows[mine], groups[own]) for mine, own in places]
    lone = [own for mine, own in pairs if not len(mine)]
    return [PriceGroup(mine, own, mine) for mine, own in pairs if len(mine)], np.concatenate([groups[:0], *lone])


SWEEPS = 3
ENOUGH = 1e-20  # of a price: a spread that no further sweep need make smaller
WIDE = 60  # columns, beyond which a system is tried as an arrow first, but where prices touch that many each
MANY = 1e7  # entries of one dense system
ROWS, SOME = 2, 16  # prices for every column of a system, and so many more; the others are left as they are


@dataclass(frozen=True)
class Solver:
    """Systems of one shape, ``groups`` (g, p) their columns and ``rows`` the prices of all, one system after the other;
    ``inside`` (g, M) tells which rows of the stack these are, since shorter systems are filled up."""

    systems: Systems | Arrow
    groups: Array
    rows: Array
    inside: Array


class Closing:
    """The systems of the groups of one forest. ``stuck`` are those whose totals cannot be taken away, with the reasons.

    ``room`` is the weight of each free price of all blocks, and ``fixed`` what arcs that do not move carry out of each
    group; None for nothing.
    """

    def __init__(self, blocks: Sequence[AbstractRows], room: Array, ties: Tied, fixed: Pair | None = None) -> None:
        self.blocks, self.room, self.ties, self.fixed = blocks, room, ties, fixed
        self.vertex, self.starts = ties.vertex, ties.starts
        self.stuck: dict[int, str] = {}
        self.solvers: list[Solver] = []
        self.idle: list[Array] = []  # prices that must be 0
        self.following = False  # whether the totals of some groups follow from those of others
        self.column = np.full(ties.count, -1)  # of each group, in the system of its part
        for part in ties.parts:
            self.column[part.groups] = np.arange(len(part.groups))
        self._prepare()

    # ---- the systems ------------------------------------------------------------------------------------------------
    def _prepare(self) -> None:
        self._stick(self.ties.lone, "flows enter where there are no prices")
        dense = max(WIDE, self.ties.width)
        shapes: dict[tuple[int, int], list[PriceGroup]] = {}
        for part in self.ties.parts:
            p = len(part.groups)
            rows = self._some(part.whole, p) if p <= dense else part.whole
            if p > dense or len(rows) < p or len(rows) * p > MANY:
                self._alone(PriceGroup(rows, part.groups, part.whole))
            else:
                size = 1 << int(np.ceil(np.log2(len(rows))))
                shapes.setdefault((p, size), []).append(PriceGroup(rows, part.groups, part.whole))
        for (p, size), some in shapes.items():
            for few in at_a_time(int(4e6 / (p * size)), len(some)):
                self._stack(some[few], size)

    def _stack(self, parts: list[PriceGroup], size: int) -> None:
        Y, S = np.zeros((len(parts), size, len(parts[0].groups))), np.zeros((len(parts), size))
        inside = np.arange(size) < np.array([len(part.rows) for part in parts])[:, None]
        rows, (system, row) = np.concatenate([part.rows for part in parts]), np.nonzero(inside)
        (at, columns), values = self._entries(rows)
        np.add.at(Y, (system[at], row[at], columns), values)
        S[inside] = self.room[rows]
        systems = Systems.of(Y, S, triangles(Y, S))
        good = np.flatnonzero(systems.ok)
        for k in np.flatnonzero(~systems.ok):
            self._alone(parts[k])
        if len(good):
            kept = Systems(*(x[good] for x in (Y, S, systems.V, systems.Z, systems.DZ, systems.E)))
            groups = np.stack([parts[k].groups for k in good])
            self.solvers.append(Solver(kept, groups, rows[systems.ok[system]], inside[good]))

    def _alone(self, part: PriceGroup) -> None:
        """A part with too few prices, with columns that depend on one another, or with very many."""
        Y, S = self._matrix(part), self.room[part.rows]
        empty = np.diff(sp.csc_array(Y).indptr) == 0
        solver, groups, why = self._solver(Y[:, np.flatnonzero(~empty)], S, part.groups[~empty])
        self.following = self.following or (solver is not None and len(groups) < np.count_nonzero(~empty))
        # Columns that depend on one another at some of the prices do so at all of them, or their totals do not follow.
        if (solver is None or len(groups) < len(part.groups)) and len(part.rows) < len(part.whole):
            self._alone(PriceGroup(part.whole, part.groups, part.whole))
            return
        self._stick(part.groups[empty], "flows enter where no price can answer")
        if solver is not None:
            self.solvers.append(Solver(solver, groups[None], part.rows, np.ones((1, len(part.rows)), dtype=bool)))
        elif len(part.rows) <= len(groups) and np.linalg.matrix_rank(Y.toarray()) == len(part.rows):
            self.idle.append(part.rows)  # prices of independent samples are balanced only where they are 0
            self._stick(groups, why)
        else:
            self._stick(groups, why)

    def _solver(self, Y: Any, S: Array, groups: Array) -> tuple[Systems | Arrow | None, Array, str]:
        """A solver, the groups whose totals it takes away (the others follow), and why there is none."""
        if not len(groups):
            return None, groups, ""
        fixed = np.zeros(len(groups))
        if self.fixed is not None:
            unknown = self.fixed.error[groups] + np.abs(self.fixed.low[groups]) > 0.0
            fixed = np.where(unknown, np.nan, self.fixed.high[groups])
        if Y.shape[1] > WIDE:
            arrow = Arrow.of(sp.csr_array(Y), S)
            if arrow is not None:
                return arrow, groups, ""
        if Y.shape[0] * Y.shape[1] > MANY:
            return None, groups, "too many columns are tied together"
        found = reduced(Y.toarray(), S, fixed if fixed.any() else None)
        if found.system is None or found.why:
            return None, groups, found.why
        return found.system, groups[found.chosen], ""

    def _stick(self, groups: Array, why: str) -> None:
        self.stuck.update(dict.fromkeys(map(int, groups), why))

    def failures(self, T: Pair) -> dict[int, str]:
        """The groups whose totals are not taken away, with reasons. One that is exactly 0 need not be."""
        left = (T.high != 0.0) | (T.low != 0.0) | (T.error != 0.0)
        return {group: why for group, why in self.stuck.items() if left[group]}

    def _some(self, rows: Array, p: int) -> Array:
        """Enough of the prices, of those with most room; the others stay as they are."""
        most = 1 << int(np.ceil(np.log2(ROWS * p + SOME)))
        if len(rows) <= 2 * most:
            return rows
        room = self.room[rows]
        roomy = rows[room >= np.median(room)]
        return roomy[np.linspace(0, len(roomy) - 1, most).astype(int)]

    def _matrix(self, part: PriceGroup) -> sp.csr_array:
        """Y: one row per price, one column per group."""
        cells, values = self._entries(part.rows)
        Y = sp.csr_array((values, cells), shape=(len(part.rows), len(part.groups)))
        Y.sum_duplicates()
        Y.eliminate_zeros()
        return Y

    def _entries(self, prices: Array) -> tuple[tuple[Array, Array], Array]:
        """The cells of Y, a row for each of the prices, and what is added up in each."""
        rows, columns, values = [], [], []
        for k, here in self._by_block(prices):
            at, x = self.blocks[k].entries(prices[here] - self.starts[k])
            group = self.vertex[at]
            inside = (group >= 0) & (x != 0.0)
            rows.append(np.broadcast_to(np.flatnonzero(here)[:, None], x.shape)[inside])
            columns.append(self.column[group[inside]])
            values.append(x[inside])
        return (np.concatenate(rows), np.concatenate(columns)), np.concatenate(values)

    def _by_block(self, rows: Array) -> Iterator[tuple[int, Array]]:
        """The blocks that some of the prices belong to, and which of them do."""
        for k, (start, end) in enumerate(pairwise(self.starts)):
            here = (rows >= start) & (rows < end)
            if here.any():
                yield k, here

    # ---- moving -----------------------------------------------------------------------------------------------------
    def settle(self, prices: Sequence[Prices]) -> None:
        """Prices that must be 0 are 0."""
        for rows in self.idle:
            for k, here in self._by_block(rows):
                self.blocks[k].clear(prices[k], rows[here] - self.starts[k])

    def move(self, prices: Sequence[Prices], T: Pair) -> float:
        """Take the totals T away; the largest spread relative to its price."""
        value = T.high + T.low
        tau = T.error * MORE + EPS * np.abs(value)
        worst = 0.0
        for solver in self.solvers:
            by, spread = solver.systems.solve(value[solver.groups], tau[solver.groups])
            worst = max(worst, self._apply(prices, solver.rows, by[solver.inside], spread[solver.inside]))
        return worst

    def _apply(self, prices: Sequence[Prices], rows: Array, by: Array, spread: Array) -> float:
        worst = 0.0
        for k, here in self._by_block(rows):
            self.blocks[k].move(prices[k], rows[here] - self.starts[k], by[here], spread[here])
            size = np.abs(prices[k].high).max(initial=0.0)
            worst = max(worst, float(spread[here].max(initial=0.0)) / (float(size) or 1.0))
        return worst
