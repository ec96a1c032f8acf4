"""A round where edges stand in runs: their tails and their heads are both consecutive, and gathers are slices.

For one coordinate, where the norms are all the same box. A grid, whoever made it, is a few long runs.
"""

from __future__ import annotations

from ..terms import Array
from .compiled import Kernel
from .edges import SQUARE


def run_round(kind: int, centred: int, relaxes: int, moves: int) -> Kernel:
    """As `edges.edge_round`, for the runs that begin at the edges ``first``, tails ``tail`` and heads ``head``.

    Where it ``moves`` nodes, too, as `nodes.mean_round` does, those of a group of runs come right before these, while
    they are in a cache: the first ``reach[g]`` nodes before the runs from ``group[g]`` to ``group[g + 1]``. They write
    ``ahead`` and empty ``pull``.
    """

    def kernel(  # noqa: PLR0913, PLR0917 - all that it reads and writes
        group: Array,
        reach: Array,
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
        degree: Array,
        s: float,
        mass: Array,
        h: Array,
        force: Array,
        w: Array,
        moved: Array,
    ) -> None:
        done = 0
        for g in range(reach.size):
            if moves:
                till = max(reach[g], done)
                part = slice(done, till)  # of slices the compiler knows that no index is negative
                deg, m, target, old = degree[part], mass[part], h[part], w[part]
                by, to, out, zero = force[part], ahead[part], moved[part], pull[part]
                for k in range(till - done):
                    weight = deg[k] / s
                    x = (weight * old[k] - by[k] + target[k]) / (weight + m[k])
                    to[k] = 2.0 * x - old[k]
                    out[k] = old[k] + rho * (x - old[k])
                    zero[k] = 0.0
                done = till
            for r in range(group[g], group[g + 1]):
                begin, end = first[r], first[r + 1]
                i, j, length = tail[r], head[r], end - begin
                before, after, most = u[begin:end], new[begin:end], c[begin:end]
                here, there = ahead[i : i + length], ahead[j : j + length]
                given, taken = pull[i : i + length], pull[j : j + length]
                shift = center[begin:end] if centred else after
                for k in range(length):
                    z = here[k] - there[k]
                    if centred:
                        z -= shift[k]
                    v = before[k] + sigma * z
                    v = v / (1.0 + sigma / most[k]) if kind == SQUARE else min(max(v, -most[k]), most[k])
                    after[k] = before[k] + rho * (v - before[k]) if relaxes else v
                for k in range(length):
                    given[k] += after[k]
                for k in range(length):
                    taken[k] -= after[k]

    return kernel


def run_pull() -> Kernel:
    """As `edges.edge_pull`."""

    def kernel(first: Array, tail: Array, head: Array, u: Array, pull: Array) -> None:
        for r in range(tail.size):
            begin, end = first[r], first[r + 1]
            i, j, length = tail[r], head[r], end - begin
            out, given, taken = u[begin:end], pull[i : i + length], pull[j : j + length]
            for k in range(length):
                given[k] += out[k]
            for k in range(length):
                taken[k] -= out[k]

    return kernel
