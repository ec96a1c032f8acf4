"""In which order a round goes through the edges: in runs where there are long ones, else by tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..terms import Array

LONG = 16  # edges of a run on average, from which on slices pay
BLOCK = 2**10  # tails of a group: what some rounds have of them, and of their edges, fits into a cache


@dataclass(frozen=True)
class Runs:
    """Run r has the edges from ``first[r]`` to ``first[r + 1]``; with each edge both ends, at first ``tail[r]`` and
    ``head[r]``, move on by one. Group g has the runs from ``group[g]`` to ``group[g + 1]``, whose ends are among the
    first ``reach[g]`` nodes; the last one has none, and reaches all nodes. No group that comes more than ``lag`` after
    group g has an end among these.
    """

    first: Array
    tail: Array
    head: Array
    group: Array
    reach: Array
    lag: int


@dataclass(frozen=True)
class EdgeOrder:
    """``places`` are the edges of the block in their new order (None: as they are); int32 ends in that order."""

    places: Array | None
    tail: Array
    head: Array
    runs: Runs | None = None

    def of(self, rows: Array) -> Array:
        """What belongs to the edges of the block, flat and in the new order."""
        return np.ascontiguousarray(rows if self.places is None else rows[self.places], dtype=float).reshape(-1)

    def back(self, flat: Array, width: int) -> Array:
        """The way back, (m, width)."""
        rows = flat.reshape(-1, width)
        if self.places is None:
            return rows
        out = np.empty_like(rows)
        out[self.places] = rows
        return out


def edge_order(tail: Array, head: Array, n: int, slices: bool) -> EdgeOrder:
    """The order of a block of edges between n nodes; ``slices`` where runs are of use."""
    tail, head = tail.astype(np.int32), head.astype(np.int32)
    if slices:
        places = _along(tail, head)
        t, h = (tail, head) if places is None else (tail[places], head[places])
        runs = _runs(t, h, n)
        if LONG * len(runs.tail) <= len(t):
            return EdgeOrder(places, t, h, runs)
    if (np.diff(tail) >= 0).all():
        return EdgeOrder(None, tail, head)
    places = np.argsort(tail, kind="stable")
    return EdgeOrder(places, tail[places], head[places])


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
    """Where runs begin that stay in a group, and the number of edges."""
    breaks = (np.diff(tail) != 1) | (np.diff(head) != 1) | (tail[1:] % BLOCK == 0)
    return np.concatenate([[0], np.flatnonzero(breaks) + 1, [len(tail)]]).astype(np.int32)


def _runs(tail: Array, head: Array, n: int) -> Runs:
    first = _starts(tail, head)
    begin = first[:-1]
    t, h, last = tail[begin], head[begin], np.maximum(tail, head)[first[1:] - 1]
    group = np.flatnonzero(np.diff(t // BLOCK, prepend=-1))
    reach = np.append(np.maximum.accumulate(np.maximum.reduceat(last, group)) + 1, n)
    least = np.append(np.minimum.reduceat(np.minimum(t, h), group), n)
    least = np.minimum.accumulate(least[::-1])[::-1]  # of this group and of those that follow
    lag = int((np.searchsorted(least, reach) - np.arange(len(reach))).max()) - 1
    return Runs(first, t, h, np.append(group, [len(t)] * 2).astype(np.int32), reach.astype(np.int32), max(lag, 1))
