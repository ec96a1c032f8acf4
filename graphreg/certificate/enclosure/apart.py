"""Which arcs stay as they are where every node with prices is to balance itself: only what has none needs a way to one.

Where flows and prices are of very different sizes, what rounding leaves at a node with heavy samples is more than its
light edges can carry, and its own samples take it away at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ...csgraph import minimum_spanning_tree
from ...terms import Array
from .arcs import Arcs
from .rows import AbstractRows


def held_apart(arcs: Arcs, room: Array, rows: Sequence[AbstractRows], free: Array) -> Array:
    """All arcs but, for each coordinate without a price that may move, one on its roomiest way to one that has; given
    the room of the arcs, and the weights of the ``free`` prices."""
    served = np.zeros(arcs.ground + 2, dtype=bool)
    served[arcs.ground] = True
    start = 0
    for block in rows:
        end = start + len(block.nodes())
        at, x = block.entries(np.flatnonzero(free[start:end] > 0.0))
        start = end
        served[at[x != 0.0]] = True
    served[-1] = False  # where places are filled up
    number = np.where(served, 0, np.cumsum(~served))[:-1]  # all that are served are one
    tail, head = number[arcs.tail], number[arcs.head]
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    held = np.ones(len(room), dtype=bool)
    some = np.flatnonzero((low != high) & (room > 0.0))
    some = some[np.lexsort((-room[some], high[some], low[some]))]
    first = np.ones(len(some), dtype=bool)  # of several arcs between two the roomiest
    first[1:] = (low[some][1:] != low[some][:-1]) | (high[some][1:] != high[some][:-1])
    some = some[first]
    size = int(number.max(initial=0)) + 1
    rank = np.empty(len(some))
    rank[np.argsort(-room[some], kind="stable")] = np.arange(1, len(some) + 1)
    found = minimum_spanning_tree(sp.csr_array((rank, (low[some], high[some])), shape=(size, size)))
    held[some[np.isin(rank, found.data)]] = False
    return held
