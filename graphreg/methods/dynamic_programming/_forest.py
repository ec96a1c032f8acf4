"""The trees along which the coordinates of a problem are tied, and the recursions over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...clock import carry_out
from ...form import Form
from ...terms import Array
from ._pieces import NEAR, TINY, Pieces


@dataclass(frozen=True)
class Forest:
    """The forest of some coordinates, its nodes in an order in which parents come first.

    ``order`` are the nodes, ``parent`` their parents in this order, ``up`` the edge to the parent (-1 at a root),
    ``sign`` is 1 where that edge runs from the node to the parent and -1 where it runs back.
    """

    order: Array
    parent: Array
    up: Array
    sign: Array
    lines: bool  # whether all trees are chains

    @classmethod
    def of(cls, tail: Array, head: Array, n: int) -> Forest:
        from . import _messages

        ends = tail.astype(np.int32), head.astype(np.int32)
        scratch = np.zeros(n + 2, np.int32), *(np.zeros(2 * len(tail), np.int32) for _ in range(2))
        order, place, parent, up = (np.full(n, -1, np.int32) for _ in range(4))
        lines = bool(called(_messages.breadth_first, *ends, *scratch, order, place, parent, up))
        sign = np.where(up < 0, 0.0, 1.0)
        sign[(up >= 0) & (tail[up] != order)] = -1.0 if len(tail) else 0.0
        return cls(order, parent, up, sign, lines)

    @property
    def tree(self) -> Array:
        """Which tree each node belongs to, (n,)."""
        number = np.empty(len(self.order), np.intp)
        number[self.order] = np.cumsum(self.parent < 0) - 1  # a tree's nodes stand together
        return number

    def minimiser(self, pieces: Pieces, column: int, capacity: Array) -> Array:
        """The minimiser t of one coordinate; ``capacity`` is that of every edge of the forest."""
        from . import _messages

        n, order = len(self.order), self.order
        c = np.where(self.up < 0, 0.0, capacity[self.up] if len(capacity) else 0.0)
        slope, height = pieces.slope[order, column], pieces.height[order, column]
        t, low, high = (np.zeros(n) for _ in range(3))
        x, s, q, node, at = pieces.knots
        own = np.flatnonzero(at == column)
        if self.lines and not len(own):
            scratch = [np.zeros(2 * n) for _ in range(5)]
            called(_messages.along_chains, slope, height, c, self.parent, t, low, high, *scratch)
        else:
            place = np.empty(n, np.intp)
            place[order] = np.arange(n)
            own = own[np.argsort(place[node[own]], kind="stable")]
            first = np.zeros(n + 1, np.int32)
            first[1:] = np.cumsum(np.bincount(place[node[own]], minlength=n))
            size = len(own) + 2 * n
            sums, heaps = [np.zeros(n) for _ in range(4)], [np.full(n, -1, np.int32) for _ in range(2)]
            kx, ks, dks, kq, dkq, key = (np.zeros(size) for _ in range(6))
            kx[: len(own)], ks[: len(own)], kq[: len(own)] = x[own], s[own], q[own]
            links = [np.full(size, -1, np.int32) for _ in range(4)]
            knots = (kx, ks, dks, kq, dkq, key, np.zeros(size, bool))
            given = (slope, height, first, c, self.parent, t, low, high)
            called(_messages.along_trees, *given, *sums, *heaps, *knots, *links)
        out = np.empty(n)
        out[order] = t
        return out

    def balanced(self, t: Array, low: Array, high: Array, capacity: Array) -> tuple[Array, Array]:
        """The flow on every edge, and the derivative of every node in [low, high] that balances them (up to what
        rounding makes of the flows)."""
        from . import _messages

        order, up, inner = self.order, self.up, self.up >= 0
        here, there = t[order], t[order][self.parent]
        far = NEAR * (np.abs(here) + np.abs(there)) + TINY
        c = np.where(inner, capacity[up] if len(capacity) else 0.0, 0.0)
        least, most = -c * np.sign(here - there + far), -c * np.sign(here - there - far)
        share, flow, own, rest = (np.zeros(len(t)) for _ in range(4))
        called(_messages.balanced, low[order], high[order], least, most, self.parent, share, flow, own, rest)
        flows, derivative = np.zeros(len(capacity)), np.empty(len(t))
        flows[up[inner]] = -(self.sign * flow)[inner]
        derivative[order] = own
        return flows, derivative


def called(function: Callable[..., Any], *arrays: Array) -> Any:
    """What a recursion returns, and leaves in its arrays: compiled, or else on lists, which Python reads faster."""
    from ._messages import fast

    if fast:
        return carry_out(lambda: function(*arrays))
    lists = [each.tolist() for each in arrays]
    found = function(*lists)
    for array, numbers in zip(arrays, lists, strict=True):
        array[:] = numbers
    return found
