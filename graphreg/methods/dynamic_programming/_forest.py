"""The trees along which the coordinates of a problem are tied, and the recursions over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...terms import Array
from ._chains import along_chains
from ._sweeps import Costs, balanced, depth_first
from ._trees import along_trees


@dataclass(frozen=True)
class CoordinateForest:
    """The forest of some coordinates, its nodes in an order in which parents come first.

    ``order`` are the nodes, ``place`` the places of all in it, ``parent`` their parents in this order, ``up`` the
    edge to the parent (-1 at a root), ``sign`` is 1 where that edge runs from the node to the parent, -1 where it runs
    back, and 0 at a root.
    """

    order: Array
    place: Array
    parent: Array
    up: Array
    sign: Array
    lines: bool  # whether all trees are chains
    sorted: bool  # whether the order is that of the nodes

    @classmethod
    def of(cls, tail: Array, head: Array, n: int) -> CoordinateForest | None:
        """None where there are circles."""
        m = len(tail)
        ends = tail.astype(np.int32), head.astype(np.int32)
        near = (np.zeros(size, np.int32) for size in (n + 2, 2 * m, 2 * m, n, n, n))
        order, place, parent, up = (np.full(n, -1, np.int32) for _ in range(4))
        whole, lines = depth_first(ends, tuple(near), (order, place, parent, up))
        if not whole:
            return None
        inner, sign = np.flatnonzero(up >= 0), np.zeros(n)
        sign[inner] = np.where(tail[up[inner]] == order[inner], 1.0, -1.0)
        return cls(order, place, parent, up, sign, bool(lines), bool((order[1:] > order[:-1]).all()))

    @property
    def tree(self) -> Array:
        """The number of the tree that each node belongs to, (n,)."""
        number = np.empty(len(self.order), np.intp)
        number[self.order] = np.cumsum(self.parent < 0) - 1  # a tree's nodes stand together
        return number

    def upwards(self, costs: Costs) -> tuple[Array, Array]:
        """The least and the most of the derivative of the message to the parent of each node in the order, 0 where
        there is none."""
        fall, rise = (np.append(each, 0.0)[self.up] for each in costs)  # -1 is the last
        ahead = self.sign > 0.0  # a parent that rises lets the difference fall
        return -np.where(ahead, rise, fall), np.where(ahead, fall, rise)

    def minimiser(self, slope: Array, height: Array, bounds: tuple[Array, Array], knots: tuple[Array, ...]) -> Array:
        """The minimiser t of one coordinate, all in the order: what the derivative at each node is far to the left, and
        its ``bounds`` `upwards`. ``knots`` are where it changes: their places, what they change, and their nodes."""
        n, (x, s, q, node) = len(self.order), knots
        t, low, high = (np.zeros(n) for _ in range(3))
        if self.lines and not len(x):
            scratch = (np.zeros(2 * n) for _ in range(5))
            along_chains((slope, height, *bounds, self.parent), (t, low, high), tuple(scratch))
        else:
            place = self.place[node]
            own = np.argsort(place, kind="stable")
            first = np.zeros(n + 1, np.int32)
            first[1:] = np.cumsum(np.bincount(place, minlength=n))
            size = len(own) + 2 * n
            sums = tuple(np.zeros(n) for _ in range(8))
            places = tuple(np.zeros(size) for _ in range(6))
            for all_knots, given in zip((places[0], places[1], places[3]), (x, s, q), strict=True):
                all_knots[: len(own)] = given[own]
            tops, links = ([np.full(m, -1, np.int32) for _ in range(k)] for m, k in ((n, 2), (size, 4)))
            heaps = (*tops, np.zeros(size, bool), *links)
            along_trees((slope, height, *bounds, self.parent, first), (t, low, high), sums, places, heaps)
        return t

    def balanced(self, t: Array, low: Array, high: Array, costs: Costs) -> tuple[Array, Array]:
        """The flow on every edge, and the derivative of every node in [low, high] that balances them (up to what
        rounding makes of the flows)."""

        inner = self.up >= 0
        least, most, share, flow, own, rest = (np.zeros(len(t)) for _ in range(6))
        nodes = (self.parent, self.ordered(t), *self.upwards(costs))
        balanced(nodes, (self.ordered(low), self.ordered(high)), (least, most, share, flow, own, rest))
        flows = np.zeros(len(costs[0]))
        flows[self.up[inner]] = -(self.sign * flow)[inner]
        return flows, self.in_place(own)

    def ordered(self, values: Array) -> Array:
        """A copy of what each node has, in the order of the forest."""
        return values.copy() if self.sorted else values[self.order]

    def in_place(self, values: Array) -> Array:
        """The other way round."""
        if self.sorted:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out
