"""In which order a round goes through the edges: in runs where there are long ones, else by tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..terms import Array

LONG = 16  # edges of a run on average, from which on slices pay
BLOCK = 2**15  # tails whose parameters stay in a cache while the edges of all directions pass


@dataclass(frozen=True)
class EdgeOrder:
    """``places`` are the edges of the block in their new order (None: as they are); int32 ends in that order.

    Where there are runs, run r has the edges from ``first[r]`` to ``first[r + 1]``, and begins with the ends
    ``tails[r]`` and ``heads[r]``.
    """

    places: Array | None
    tail: Array
    head: Array
    first: Array | None = None
    tails: Array | None = None
    heads: Array | None = None

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


def edge_order(tail: Array, head: Array, runs: bool) -> EdgeOrder:
    """The order of a block; ``runs`` where slices are of use."""
    ends = np.asarray(tail, dtype=np.int32), np.asarray(head, dtype=np.int32)
    if runs:
        places = _along(*ends)
        t, h = (end if places is None else end[places] for end in ends)
        first = _starts(t, h)
        if LONG * (len(first) - 1) <= len(t):
            return EdgeOrder(places, t, h, first, t[first[:-1]], h[first[:-1]])
    if len(tail) == 0 or (np.diff(ends[0]) >= 0).all():
        return EdgeOrder(None, *ends)
    places = np.argsort(ends[0], kind="stable")
    return EdgeOrder(places, ends[0][places], ends[1][places])


def _along(tail: Array, head: Array) -> Array | None:
    """Sorted by block of tails, direction and tail; None where they stand so."""
    way = head.astype(np.int64) - tail
    way -= way.min(initial=0)
    key = ((tail // BLOCK) * (way.max(initial=0) + 1) + way) * BLOCK + tail % BLOCK
    return None if (np.diff(key) >= 0).all() else np.argsort(key, kind="stable")


def _starts(tail: Array, head: Array) -> Array:
    """Where runs begin, and the number of edges."""
    breaks = (np.diff(tail) != 1) | (np.diff(head) != 1)
    return np.concatenate([[0], np.flatnonzero(breaks) + 1, [len(tail)]]).astype(np.int32)
