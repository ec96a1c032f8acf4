"""The trees along which the coordinates of a problem are tied, and the recursions over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...terms import Array
from ._pieces import NEAR, TINY, Pieces


@dataclass(frozen=True)
class Forest:
    """The forest of some coordinates, its nodes in an order in which parents come first.

    ``order`` are the nodes, ``parent`` their parents in this order, ``up`` the edge to the parent (-1 at a root),
    ``sign`` is 1 where that edge runs from the node to the parent, -1 where it runs back, and 0 at a root.
    """

    order: Array
    parent: Array
    up: Array
    sign: Array
    lines: bool  # whether all trees are chains

    @classmethod
    def of(cls, tail: Array, head: Array, n: int) -> Forest:
        from ._compiled import called
        from ._sweeps import breadth_first

        ends = tail.astype(np.int32), head.astype(np.int32)
        scratch = np.zeros(n + 2, np.int32), *(np.zeros(2 * len(tail), np.int32) for _ in range(2))
        order, place, parent, up = (np.full(n, -1, np.int32) for _ in range(4))
        lines = bool(called(breadth_first, ends, scratch, (order, place, parent, up)))
        inner, sign = np.flatnonzero(up >= 0), np.zeros(n)
        sign[inner] = np.where(tail[up[inner]] == order[inner], 1.0, -1.0)
        return cls(order, parent, up, sign, lines)

    @property
    def tree(self) -> Array:
        """Which tree each node belongs to, (n,)."""
        number = np.empty(len(self.order), np.intp)
        number[self.order] = np.cumsum(self.parent < 0) - 1  # a tree's nodes stand together
        return number

    def _upwards(self, capacity: Array) -> Array:
        """The capacity of the edge to the parent of each node in the order, 0 where there is none."""
        return np.append(capacity, 0.0)[self.up]  # -1 is the last

    def minimiser(self, pieces: Pieces, column: int, capacity: Array) -> Array:
        """The minimiser t of one coordinate; ``capacity`` is that of every edge of the forest."""
        from ._chains import along_chains
        from ._compiled import called
        from ._trees import along_trees

        n, order = len(self.order), self.order
        c = self._upwards(capacity)
        slope, height = pieces.slope[order, column], pieces.height[order, column]
        t, low, high = (np.zeros(n) for _ in range(3))
        x, s, q, node, at = pieces.knots
        own = np.flatnonzero(at == column)
        if self.lines and not len(own):
            scratch = (np.zeros(2 * n) for _ in range(5))
            called(along_chains, (slope, height, c, self.parent), (t, low, high), tuple(scratch))
        else:
            place = np.empty(n, np.intp)
            place[order] = np.arange(n)
            own = own[np.argsort(place[node[own]], kind="stable")]
            first = np.zeros(n + 1, np.int32)
            first[1:] = np.cumsum(np.bincount(place[node[own]], minlength=n))
            size = len(own) + 2 * n
            sums = tuple(np.zeros(n) for _ in range(4))
            knots = tuple(np.zeros(size) for _ in range(6))
            for all_knots, given in zip((knots[0], knots[1], knots[3]), (x, s, q), strict=True):
                all_knots[: len(own)] = given[own]
            tops, links = ([np.full(m, -1, np.int32) for _ in range(k)] for m, k in ((n, 2), (size, 4)))
            heaps = (*tops, np.zeros(size, bool), *links)
            called(along_trees, (slope, height, c, self.parent, first), (t, low, high), sums, knots, heaps)
        out = np.empty(n)
        out[order] = t
        return out

    def balanced(self, t: Array, low: Array, high: Array, capacity: Array) -> tuple[Array, Array]:
        """The flow on every edge, and the derivative of every node in [low, high] that balances them (up to what
        rounding makes of the flows)."""
        from ._compiled import called
        from ._sweeps import balanced

        order, up, inner = self.order, self.up, self.up >= 0
        here, there = t[order], t[order][self.parent]
        far = NEAR * (np.abs(here) + np.abs(there)) + TINY
        c = self._upwards(capacity)
        least, most = -c * np.sign(here - there + far), -c * np.sign(here - there - far)
        share, flow, own, rest = (np.zeros(len(t)) for _ in range(4))
        called(balanced, (self.parent,), (low[order], high[order], least, most), (share, flow, own, rest))
        flows, derivative = np.zeros(len(capacity)), np.empty(len(t))
        flows[up[inner]] = -(self.sign * flow)[inner]
        derivative[order] = own
        return flows, derivative
