"""Maximum flows within one cluster: which demands can be routed to one of its nodes, and the largest multiple.

    cut(A) = sum of A_e over the edges between A and the rest,    demand(A) = sum over i in A of base_i + t slope_i

By max-flow min-cut, base + t slope can be routed from every node to i0 within the capacities A_e exactly where
demand(A) <= cut(A) for every A without i0.

Capacities are given in whole numbers of a unit 2^-k, so small that all of them together stay below 2^53: then sums of
doubles are exact. They are rounded down and demands up, so that what can be routed in units can be routed. Whole
numbers (and all multiples of some 2^-q, q well below k) are not changed by the rounding; other numbers are by at most
one unit each, at most 2^-50 (1e-15) of the sum of all capacities. Flows are found by scipy, whose numbers have 32 bits:
first in units 2^shift, and what then is left to be routed in smaller ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..base.csgraph import breadth_first_order, dijkstra, maximum_flow
from ..terms import Array

NEAR = 32  # nodes that are gathered around a sink
ROOM = 51  # bits for the sum of all capacities and demands, in units
DIGIT = 29  # bits of a flow that is found at once: capacities both ways along an edge have to stay below 2^31


@dataclass(frozen=True)
class CutGraph:
    """The graph of a cluster: n nodes, edges between positions, their capacities A_e > 0."""

    n: int
    tail: Array
    head: Array
    capacity: Array

    @cached_property
    def total_capacity(self) -> Array:
        """The sum of the capacities at each node, (n,): cut({i})."""
        return np.bincount(self.tail, self.capacity, self.n) + np.bincount(self.head, self.capacity, self.n)

    @cached_property
    def units(self) -> float:
        """The units in 1: a power of two."""
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
    def _arcs(self) -> tuple[Array, Array, Array]:
        """Both directions of every edge, and of those to one more node, n, that carry the demands of the others: their
        order in the rows of a matrix, its columns, and where its rows begin."""
        nodes, extra = np.arange(self.n), np.full(self.n, self.n)
        begin = np.concatenate([self.tail, self.head, nodes, extra])
        end = np.concatenate([self.head, self.tail, extra, nodes])
        order = np.lexsort((end, begin))
        start = np.append(0, np.cumsum(np.bincount(begin, minlength=self.n + 1)))
        return order, end[order].astype(np.int32), start.astype(np.int32)

    def route(self, sink: int, demand: Array, strictly: bool = False) -> tuple[bool, Array, Array]:
        """The answer to whether the demands can be routed to the sink (``strictly``: one unit more at every node, so
        that demand(A) < cut(A) for every nonempty A without the sink); the smallest set with the least cut(A) -
        demand(A), a mask (n,), empty where they can; and the flow from tail to head, (m,)."""
        asked = np.minimum(np.ceil(demand * self.units) + float(strictly), self._most)
        asked[sink] = 0.0
        edges, (order, ends, start) = self._in_units, self._arcs
        whole = np.concatenate([edges, edges, asked, np.zeros(self.n)])[order]
        left, size = whole.copy(), (self.n + 1, self.n + 1)
        missing = most = float(asked.sum())
        while most > 0.0:  # backwards, from the sink to the extra node
            shift = max(math.frexp(most)[1] - DIGIT, 0)  # most / 2^shift < 2^29, and what carries more is never full
            capacity = np.minimum(np.floor(np.ldexp(left, -shift)), 2.0**DIGIT).astype(np.int32)
            found = maximum_flow(csr_array((capacity, ends, start), shape=size), int(sink), self.n)
            left -= np.ldexp(found.flow.data.astype(float), shift)
            missing -= math.ldexp(found.flow_value, shift)
            # each arc out of a full set has less than 2^shift left
            most = min(missing, math.ldexp(len(left), shift)) if shift else 0.0
        free = csr_array((left > 0, ends, start), shape=size, copy=True)
        free.eliminate_zeros()
        short = np.zeros(self.n + 1, dtype=bool)
        short[breadth_first_order(free.T.tocsr(), self.n, return_predecessors=False)] = True
        flow = np.empty(len(left))
        flow[order] = left - whole
        return missing == 0.0, short[: self.n], flow[: len(self.tail)] / self.units

    def cut(self, inside: Array) -> float:
        """cut(A), of a mask (n,)."""
        return math.fsum(self.capacity[inside[self.tail] != inside[self.head]])

    @cached_property
    def adjacency(self) -> tuple[list[int], list[int], list[float]]:
        """The places at which the edges of each node begin, the nodes at their other ends, and their capacities."""
        ends = np.concatenate([self.tail, self.head])
        order = np.argsort(ends, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(ends, minlength=self.n)))
        others, weight = np.concatenate([self.head, self.tail]), np.concatenate([self.capacity, self.capacity])
        return start.tolist(), others[order].tolist(), weight[order].tolist()

    def distances(self, i: int) -> Array:
        """The number of edges to every node, (n,)."""
        graph = csr_array((np.ones(len(self.tail)), (self.tail, self.head)), shape=(self.n, self.n))
        return dijkstra(graph, directed=False, unweighted=True, indices=int(i))


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
        Sets that allow no more than t: every node i0 lies outside one of them, or all nodes but i0 are such a set (none
        where t = inf).
    """

    t: float
    sink: int
    tight: Array
    obstacles: tuple[Array, ...] = ()


def largest_multiple(routing: CutGraph, base: Array, slope: Array) -> Multiple:
    """max over i0 of the min over A without i0, slope(A) > 0, of (cut(A) - base(A)) / slope(A).

    A set A that allows no more than the best t so far rules out every i0 outside it, so that few i0 are tried: single
    nodes and their complements bound all i0 at once, after each flow those left lie in the intersection of the sets
    found, and the next is one half way through it.
    An infinite base (a node that can be i0 alone) and base = 0 on a connected graph are legal.
    """
    if routing.n == 1:
        return Multiple(math.inf, 0, np.zeros(1, dtype=bool))
    base, slope = base.astype(float), slope.astype(float)
    left, obstacles = np.ones(routing.n, dtype=bool), list[Array]()
    for i in np.flatnonzero(np.isinf(base))[:2]:
        only = np.arange(routing.n) == i
        left &= only
        obstacles.append(only)
    if not left.any():  # two nodes that no capacity suffices for
        return Multiple(-math.inf, int(np.argmax(obstacles[0])), obstacles[1], tuple(obstacles))
    base[left & np.isinf(base)] = 0.0  # it is the sink, whose own demand does not matter
    single = _ratios(routing.total_capacity, base, slope)
    most = np.minimum(_of_others(single), _ratios(routing.total_capacity, _of_others_sum(base), _of_others_sum(slope)))
    sink = int(np.argmax(np.where(left, most, -np.inf)))
    best = Multiple(-math.inf, sink, left)
    while True:
        asked = base + max(best.t, 0.0) * slope
        short = _all_but_near(routing, sink, asked)
        beats = not short.any()
        if beats:
            beats, short, _ = routing.route(sink, asked, strictly=True)
        if beats:
            t, short = _newton(routing, base, slope, sink, single, float(most[sink]))
            best = Multiple(t, sink, short)
            if math.isinf(t):
                return best
        elif math.isinf(best.t):
            best = Multiple(-math.inf, sink, short)
        obstacles.append(short)
        left &= short
        hopeful = left & (most > max(best.t, 0.0))
        if not hopeful.any():
            lone = np.flatnonzero(single <= max(best.t, 0.0))[:2]
            return replace(best, obstacles=(*obstacles, *(np.arange(routing.n) == i for i in lone)))
        sink = _half_way(routing, sink, hopeful, base + slope)


def _ratios(cut: Array, base: Array, slope: Array) -> Array:
    """(cut - base) / slope; where slope is 0, inf or -inf by the sign of what is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slope > 0, (cut - base) / slope, np.where(cut > base, np.inf, -np.inf))


def _of_others(values: Array) -> Array:
    """For each entry the least of the others; inf where there are none."""
    low = np.partition(np.append(values, [np.inf, np.inf]), 1)[:2]
    return np.where(values == low[0], np.where((values == low[0]).sum() > 1, low[0], low[1]), low[0])


def _of_others_sum(values: Array) -> Array:
    """For each entry the sum of the others, without cancellation."""
    total = math.fsum(values)
    out = total - values
    for i in np.flatnonzero(values > total / 2.0):  # one at most, but for rounding
        out[i] = math.fsum(np.delete(values, i))
    return out


def _newton(routing: CutGraph, base: Array, slope: Array, sink: int, single: Array, t: float) -> tuple[float, Array]:
    """The largest t for one sink to which base can be routed, and the set that allows no more: Newton's method on the
    least cut(A) - base(A) - t slope(A) (Dinkelbach 1967), downwards from the bound t by single nodes and by all."""
    others = np.arange(routing.n) != sink
    if math.isinf(t):
        return t, np.zeros(routing.n, dtype=bool)
    lone = others & (single <= t)
    tight = np.arange(routing.n) == int(np.argmax(lone)) if lone.any() else others
    while True:
        routed, short, _ = routing.route(sink, base + t * slope)
        if routed:
            return t, tight
        per_t = math.fsum(slope[short])
        ratio = (routing.cut(short) - math.fsum(base[short])) / per_t if per_t > 0 else t
        if ratio >= t:  # what the rounding to units has left over
            return t, tight
        t, tight = max(ratio, 0.0), short


def _all_but_near(routing: CutGraph, sink: int, asked: Array) -> Array:
    """A set A with cut(A) <= asked(A) of all nodes but those near the sink, found without a flow where they cling
    together: they are gathered greedily, each time the one that leaves the least cut(S) + asked(S); else empty."""
    start, neighbour, weight = routing.adjacency
    total, reach = math.fsum(asked), routing.total_capacity + asked
    link, order, value, largest = {sink: 0.0}, list[int](), 0.0, 0
    while link and len(order) < min(NEAR, routing.n - 1):
        j = max(link, key=lambda i: 2.0 * link[i] - reach[i])
        value += reach[j] - 2.0 * link.pop(j)
        order.append(j)
        largest = len(order) if value <= total else largest
        for k in range(start[j], start[j + 1]):
            i = neighbour[k]
            if i not in order:
                link[i] = link.get(i, 0.0) + weight[k]
    away = np.ones(routing.n, dtype=bool)
    away[order[:largest]] = False
    found = largest > 0 and routing.cut(away) <= math.fsum(asked[away])
    return away if found else np.zeros(routing.n, dtype=bool)


def _half_way(routing: CutGraph, last: int, left: Array, weight: Array) -> int:
    """The node, of those that are left, at which half of their weight is nearer to the last one tried."""
    nodes = np.flatnonzero(left)
    nodes = nodes[np.argsort(routing.distances(last)[nodes], kind="stable")]
    share = np.cumsum(weight[nodes] + 1e-12 * float(weight.sum()) + 1e-300)
    return int(nodes[np.searchsorted(share, share[-1] / 2.0)])
