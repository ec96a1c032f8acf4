"""Maximum flows within one cluster: which demands can be routed to one of its nodes, and the largest multiple.

    cut(A) = sum of A_e over the edges between A and the rest,    demand(A) = sum over i in A of base_i + t slope_i

By max-flow min-cut, base + t slope can be routed from every node to i0 within the capacities A_e exactly where
demand(A) <= cut(A) for every A without i0.

Flows are found by igraph, whose capacities are doubles. They are given whole numbers of a unit 2^-k, so small that all
of them together stay below 2^53: then its arithmetic is exact. Capacities are rounded down and demands up, so that what
can be routed in units can be routed. Whole numbers (and all multiples of some 2^-q, q well below k) are not changed by
the rounding; other numbers are by at most one unit each, at most 2^-50 (1e-15) of the sum of all capacities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..terms.records import Array

ROOM = 51  # bits for the sum of all capacities and demands, in units


@dataclass(frozen=True)
class Routing:
    """The graph of a cluster: n nodes, edges between positions, their capacities A_e > 0."""

    n: int
    tail: Array
    head: Array
    capacity: Array

    @cached_property
    def reach(self) -> Array:
        """The sum of the capacities at each node, (n,): cut({i})."""
        return np.bincount(self.tail, self.capacity, self.n) + np.bincount(self.head, self.capacity, self.n)

    @cached_property
    def units(self) -> float:
        """How many units make 1: a power of two."""
        _, bits = math.frexp(3.0 * float(self.capacity.sum()) + math.ulp(0.0))
        return math.ldexp(1.0, min(ROOM - bits, 1000))

    @cached_property
    def _in_units(self) -> Array:
        return np.floor(self.capacity * self.units)

    @cached_property
    def _most(self) -> Array:
        """A demand in units beyond which a node's own edges do not suffice: more need not be asked."""
        edges = self._in_units
        return np.bincount(self.tail, edges, self.n) + np.bincount(self.head, edges, self.n) + 1.0

    @cached_property
    def _network(self) -> Any:
        """The cluster and one more node, n, joined to all others by edges that carry their demands."""
        import igraph

        nodes = np.arange(self.n)
        ends = np.concatenate([np.stack([self.tail, self.head], axis=1), np.stack([np.full(self.n, self.n), nodes], 1)])
        return igraph.Graph(n=self.n + 1, edges=ends.tolist())

    def route(self, sink: int, demand: Array, strictly: bool = False) -> tuple[bool, Array, Array]:
        """Whether the demands can be routed to the sink (``strictly``: one unit more at every node, so that
        demand(A) < cut(A) for every nonempty A without the sink); the smallest set with the least cut(A) - demand(A),
        a mask (n,), empty where they can; and the flow from tail to head, (m,)."""
        asked = np.minimum(np.ceil(demand * self.units) + float(strictly), self._most)
        asked[sink] = 0.0
        # from the sink backwards: the side of the target that igraph gives is the smallest one
        found = self._network.maxflow(int(sink), self.n, capacity=np.concatenate([self._in_units, asked]).tolist())
        short = np.zeros(self.n + 1, dtype=bool)
        short[found.partition[1]] = True
        flow = -np.asarray(found.flow[: len(self.tail)]) / self.units
        return found.value == asked.sum(), short[: self.n], flow

    def cut(self, inside: Array) -> float:
        """cut(A), of a mask (n,)."""
        return math.fsum(self.capacity[inside[self.tail] != inside[self.head]])

    def distances(self, i: int) -> Array:
        """The number of edges to every node, (n,)."""
        import igraph

        ends = np.stack([self.tail, self.head], axis=1)
        return np.asarray(igraph.Graph(n=self.n, edges=ends.tolist()).distances(source=int(i))[0])


@dataclass(frozen=True)
class Multiple:
    """The largest t for which base + t slope can be routed to some node.

    Attributes
    ----------
    t : float
        -inf where base itself cannot be routed strictly to any node; inf where every multiple can.
    sink : int
        The node i0; where t = -inf the last one that was tried.
    tight : (n,) bool
        The set A without i0 that allows no more; empty where t = inf.
    obstacles : tuple of (n,) bool
        Sets that allow no more than t, of which every node i0 lies outside one (none where t = inf).
    """

    t: float
    sink: int
    tight: Array
    obstacles: tuple[Array, ...] = ()


def largest_multiple(routing: Routing, base: Array, slope: Array) -> Multiple:
    """max over i0 of the min over A without i0, slope(A) > 0, of (cut(A) - base(A)) / slope(A).

    A set A that allows no more than the best t so far rules out every i0 outside it, so that few i0 are tried: after
    each, those left lie in the intersection of the sets found, and the next is one half way through it.
    An infinite base (a node that can be i0 alone) and base = 0 on a connected graph are legal.
    """
    base, slope = base.astype(float), slope.astype(float)
    left, obstacles = np.ones(routing.n, dtype=bool), list[Array]()
    for i in np.flatnonzero(np.isinf(base))[:2]:
        only = np.arange(routing.n) == i
        left &= only
        obstacles.append(only)
    if not left.any():  # two nodes that no capacity suffices for
        return Multiple(-math.inf, int(np.argmax(obstacles[0])), obstacles[1], tuple(obstacles))
    base[left & np.isinf(base)] = 0.0  # it is the sink, whose own demand does not matter
    with np.errstate(divide="ignore", invalid="ignore"):
        single = np.where(slope > 0, (routing.reach - base) / slope, np.inf)
    sink = int(np.argmin(np.where(left, single, np.inf))) if np.isfinite(single[left]).any() else int(np.argmax(left))
    best = Multiple(-math.inf, sink, left)
    while True:
        asked = base + max(best.t, 0.0) * slope
        beats, short, _ = routing.route(sink, asked, strictly=True)
        if beats:
            t, short = _newton(routing, base, slope, sink, single)
            best = Multiple(t, sink, short)
            if math.isinf(t):
                return best
        elif math.isinf(best.t):
            best = Multiple(-math.inf, sink, short)
        obstacles.append(short)
        left &= short
        if not left.any():
            return Multiple(best.t, best.sink, best.tight, tuple(obstacles))
        sink = _half_way(routing, sink, left, base + slope)


def _newton(routing: Routing, base: Array, slope: Array, sink: int, single: Array) -> tuple[float, Array]:
    """The largest t for one sink to which base can be routed, and the set that allows no more: Newton's method on the
    least cut(A) - base(A) - t slope(A) (Dinkelbach 1967), from the bounds of single nodes downwards."""
    own = np.where(np.arange(routing.n) == sink, np.inf, single)
    t, tight = float(own.min(initial=np.inf)), np.arange(routing.n) == int(np.argmin(own))
    if math.isinf(t):
        return t, np.zeros(routing.n, dtype=bool)
    while True:
        routed, short, _ = routing.route(sink, base + t * slope)
        if routed:
            return t, tight
        per_t = math.fsum(slope[short])
        ratio = (routing.cut(short) - math.fsum(base[short])) / per_t if per_t > 0 else t
        if ratio >= t:  # what the rounding to units has left over
            return t, tight
        t, tight = max(ratio, 0.0), short


def _half_way(routing: Routing, last: int, left: Array, weight: Array) -> int:
    """The node, of those that are left, at which half of their weight is nearer to the last one tried."""
    nodes = np.flatnonzero(left)
    nodes = nodes[np.argsort(routing.distances(last)[nodes], kind="stable")]
    share = np.cumsum(weight[nodes] + 1e-12 * float(weight.sum()) + 1e-300)
    return int(nodes[np.searchsorted(share, share[-1] / 2.0)])
