"""In which order a round goes through nodes and edges: edges in runs where there are long ones, else by tails; nodes as
they are, or so that neighbours are near."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from ..base.csgraph import reverse_cuthill_mckee
from ..base.gate import dealt
from ..form import Form
from ..terms import Array, at_a_time
from ..terms.losses import AbstractQuadraticLoss
from .edges import kind_of

LONG = 16  # edges of a run on average, from which on slices pay
FAR = 2**12  # between the ends of an edge on average: more than a cache holds of the nodes between them
NEARER = 0.5  # of that, which is worth another order
BLOCK = 2**10  # tails of a group: what some rounds have of them, and of their edges, fits into a cache
MANY = 2**20  # numbers of the flows from which on edges stand in parts, of which threads take several at a time
PARTS = 8  # of the nodes


@dataclass(frozen=True)
class EdgeRuns:
    """Run r has the edges from ``first[r]`` to ``first[r + 1]``; with each edge both ends, at first ``tail[r]`` and
    ``head[r]``, move on by one."""

    first: Array
    tail: Array
    head: Array


@dataclass(frozen=True)
class Sweep:
    """Group g has the runs, or where there are none the edges, from ``group[g]`` to ``group[g + 1]``, whose ends are
    among the first ``reach[g]`` nodes; the last one has none, and reaches all nodes. No group that comes more than
    ``lag`` after group g has an end among these.
    """

    group: Array
    group_end: Array
    lag: int


@dataclass(frozen=True)
class EdgeOrder:
    """``places`` are the edges of the block in their new order (None: as they are); int32 ends in that order. Those of
    part k stand from ``first[k]`` to ``first[k + 1]``, where they stand in parts."""

    places: Array | None
    tail: Array
    head: Array
    sweep: Sweep | None = None
    runs: EdgeRuns | None = None
    first: Array | None = None

    @cached_property
    def stages(self) -> list[list[slice]]:
        """All parts, stage by stage: no two parts of a stage have a node in common."""
        if self.first is None:
            return [[slice(0, len(self.tail))]]
        parts = [slice(begin, end) for begin, end in pairwise(self.first.tolist())]
        stages = (parts[k : k + PARTS] for k in range(0, len(parts), PARTS))
        return [[part for part in stage if part.stop > part.start] for stage in stages]

    def of(self, rows: Array) -> Array:
        """The values of the edges of the block, flat and in the new order."""
        if self.places is None:
            return np.ascontiguousarray(rows, dtype=float).reshape(-1)
        places, out = self.places, np.empty(rows.shape)

        def part(some: slice) -> None:
            out[some] = rows[places[some]]

        dealt(part, at_a_time(MANY, len(places)))
        return out.reshape(-1)

    def back(self, flat: Array, width: int) -> Array:
        """The way back, (m, width)."""
        rows = flat.reshape(-1, width)
        if self.places is None:
            return rows
        places, out = self.places, np.empty_like(rows)

        def part(some: slice) -> None:
            out[places[some]] = rows[some]

        dealt(part, at_a_time(MANY // width, len(places)))
        return out


@dataclass(frozen=True)
class RoundOrders:
    """``nodes`` is where each node stands (None: as in the form), and with it the ends of the edges of each block."""

    nodes: Array | None
    edges: tuple[EdgeOrder, ...]


def orders_of(form: Form, whole: bool = True) -> RoundOrders:
    """The order in which rounds go through a form whose nodes stand as they are. Where it is a part of the
    ``whole``, its edges stand as they would among all others: by tails."""
    slices = whole and form.d == 1
    orders = (edge_order(e.tail, e.head, form.n, slices and not e.ground) for e in form.edges)
    if whole and not slices:
        orders = (
            _in_parts(order, form.n, e.ground) if e.count * form.width(e) >= MANY else order
            for order, e in zip(orders, form.edges, strict=True)
        )
    return RoundOrders(None, tuple(orders))


def near_orders(form: Form, orders: RoundOrders) -> RoundOrders:
    """The orders with neighbours near each other, where that helps."""
    if form.d != 1 or any(each.runs is not None for each in orders.edges):
        return orders
    place = _near(form)
    if place is None:
        return orders
    ends = ((place[edge.tail], edge.head if edge.ground else place[edge.head], edge.ground) for edge in form.edges)
    return RoundOrders(place, tuple(_by_tails(tail, head, form.n, not ground) for tail, head, ground in ends))


def _near(form: Form) -> Array | None:
    """The place of each node in an order in which neighbours are near (reverse Cuthill-McKee); None where that helps
    little, or a loss or penalty needs the order of the form."""
    known = all(kind_of(edge, form.d) is not None for edge in form.edges)
    if not known or not all(isinstance(block.loss, AbstractQuadraticLoss) for block in form.samples):
        return None
    between = [edge for edge in form.edges if not edge.ground and len(edge.tail)]
    if not between:
        return None
    tail, head = (np.concatenate(ends) for ends in zip(*((edge.tail, edge.head) for edge in between), strict=True))
    far = float(np.abs(tail - head).mean())
    if far <= FAR:
        return None
    entries = np.ones(len(tail), dtype=np.int8), (tail.astype(np.int32), head.astype(np.int32))
    links = sp.csr_array(entries, shape=(form.n, form.n))
    place = np.argsort(reverse_cuthill_mckee(sp.csr_array(links + links.T), symmetric_mode=True))
    return place if np.abs(place[tail] - place[head]).mean() <= NEARER * far else None


def edge_order(tail: Array, head: Array, n: int, slices: bool) -> EdgeOrder:
    """The order of a block of edges between n nodes; ``slices`` where runs are of use."""
    tail, head = tail.astype(np.int32), head.astype(np.int32)
    if slices and LONG * np.count_nonzero(np.bincount(head - tail + n)) <= len(tail):  # a run goes one way
        places = _along(tail, head)
        t, h = (tail, head) if places is None else (tail[places], head[places])
        first = _starts(t, h)
        runs = EdgeRuns(first, t[first[:-1]], h[first[:-1]])
        if LONG * len(runs.tail) <= len(t):
            high = np.maximum(t, h)[runs.first[1:] - 1]
            return EdgeOrder(places, t, h, _sweep(runs.tail, np.minimum(runs.tail, runs.head), high, n), runs)
    return _by_tails(tail, head, n, slices)


def _by_tails(tail: Array, head: Array, n: int, slices: bool) -> EdgeOrder:
    tail, head = tail.astype(np.int32, copy=False), head.astype(np.int32, copy=False)
    m, places = len(tail), None
    if not (np.diff(tail) >= 0).all():
        places = np.argsort(tail * np.int64(m) + np.arange(m))  # of different numbers, so that any sort will do
    t, h = (tail, head) if places is None else (tail[places], head[places])
    return EdgeOrder(places, t, h, _sweep(t, np.minimum(t, h), np.maximum(t, h), n) if slices and len(t) else None)


def _in_parts(order: EdgeOrder, n: int, ground: bool) -> EdgeOrder:
    """The edges by the parts of the nodes in which their ends lie, and as they stood in each. First come those within
    a part; of the others two parts meet at one stage, as two of so many players of a tournament on one day."""
    one = order.tail.astype(np.int64) * PARTS // n
    other = one if ground else order.head.astype(np.int64) * PARTS // n
    low, high = np.minimum(one, other), np.maximum(one, other)
    day = np.where(high == PARTS - 1, 2 * low, low + high) % (PARTS - 1)
    part = (np.where(low == high, 0, 1 + day) * PARTS + low).astype(np.uint8)
    places = np.argsort(part, kind="stable")
    first = np.searchsorted(part[places], np.arange(PARTS * PARTS + 1))
    known = places if order.places is None else order.places[places]
    return EdgeOrder(known, order.tail[places], order.head[places], first=first)


def _along(tail: Array, head: Array) -> Array | None:
    """Sorted by group of tails, direction and tail; None where they stand so. Where runs are long as they stand, they
    are sorted, and else every edge."""
    first = _starts(tail, head)
    if LONG * len(first) > len(tail):
        return _sorted(tail, head)
    places = _sorted(tail[first[:-1]], head[first[:-1]])
    if places is None:
        return None
    length = np.diff(first)[places]
    shift = first[:-1][places] - (np.cumsum(length) - length)  # of a run, from where it comes to stand
    return np.arange(len(tail)) + np.repeat(shift, length)


def _sorted(tail: Array, head: Array) -> Array | None:
    way = head.astype(np.int64) - tail
    way -= way.min(initial=0)
    key = ((tail // BLOCK) * (way.max(initial=0) + 1) + way) * BLOCK + tail % BLOCK
    return None if (np.diff(key) >= 0).all() else np.argsort(key, kind="stable")


def _starts(tail: Array, head: Array) -> Array:
    """The first edges of runs that stay in a group, and the number of edges."""
    breaks = (np.diff(tail) != 1) | (np.diff(head) != 1) | (tail[1:] % BLOCK == 0)
    return np.concatenate([[0], np.flatnonzero(breaks) + 1, [len(tail)]]).astype(np.int32)


def _sweep(tail: Array, low: Array, high: Array, n: int) -> Sweep:
    """The groups of runs or edges with these tails, and with ends from ``low`` to ``high``."""
    group = np.flatnonzero(np.diff(tail // BLOCK, prepend=-1))
    reach = np.append(np.maximum.accumulate(np.maximum.reduceat(high, group)) + 1, n)
    least = np.append(np.minimum.reduceat(low, group), n)
    least = np.minimum.accumulate(least[::-1])[::-1]  # of this group and of those that follow
    lag = int((np.searchsorted(least, reach) - np.arange(len(reach))).max()) - 1
    return Sweep(np.append(group, [len(tail)] * 2).astype(np.int32), reach.astype(np.int32), max(lag, 1))
