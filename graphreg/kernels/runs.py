"""The edges' half of a round where edges stand in runs: tails and heads are both consecutive, and gathers are slices.

For one coordinate, where the norms are all the same box. A grid, whoever made it, is a few long runs.
"""

from __future__ import annotations

from ..terms import Array
from .compiled import Kernel
from .edges import SQUARE


def run_round(kind: int, centred: int) -> Kernel:
    """As `edges.edge_round`, for the runs that begin at edge ``first``, tail ``tail`` and head ``head``."""

    def kernel(
        first: Array,
        tail: Array,
        head: Array,
        c: Array,
        center: Array,
        sigma: float,
        rho: float,
        ahead: Array,
        u: Array,
        new: Array,
        pull: Array,
    ) -> None:
        for r in range(tail.size):
            begin, length = first[r], first[r + 1] - first[r]
            i, j = tail[r], head[r]
            for k in range(length):
                e = begin + k
                z = ahead[i + k] - ahead[j + k]
                if centred:
                    z -= center[e]
                v = u[e] + sigma * z
                v = v / (1.0 + sigma / c[e]) if kind == SQUARE else min(max(v, -c[e]), c[e])
                new[e] = v if rho == 0.0 else u[e] + rho * (v - u[e])
            for k in range(length):
                pull[i + k] += new[begin + k]
            for k in range(length):
                pull[j + k] -= new[begin + k]

    return kernel


def run_pull() -> Kernel:
    """As `edges.edge_pull`."""

    def kernel(first: Array, tail: Array, head: Array, u: Array, pull: Array) -> None:
        for r in range(tail.size):
            begin, length = first[r], first[r + 1] - first[r]
            i, j = tail[r], head[r]
            for k in range(length):
                pull[i + k] += u[begin + k]
            for k in range(length):
                pull[j + k] -= u[begin + k]

    return kernel
