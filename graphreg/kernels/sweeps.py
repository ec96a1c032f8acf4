"""A round of one coordinate, where the norms are all the same box, as a sweep: a group of edges comes right after the
nodes that it needs.

Where edges stand in runs, their tails and their heads are both consecutive, and gathers are slices. A grid, whoever
made it, is a few long runs.
"""

from __future__ import annotations

import numpy as np

from ..compiled import Kernel
from ..terms import Array
from .edges import SQUARE


def swept_round(  # noqa: PLR0915 - constants
    runs: int, kind: int, centred: int, relaxes: int, moves: int, even: int, stays: int
) -> Kernel:
    """As `edges.edge_round`, for the ``runs`` that begin at the edges ``first``, tails ``tail`` and heads ``head``, or
    for edges in a list; where all capacities are ``even`` there is one.

    Where it ``moves`` nodes, too, as `nodes.mean_round` does, those of a group come right before it, while they are in
    a cache: the first ``reach[g]`` nodes before the runs, or edges, from ``group[g]`` to ``group[g + 1]``. They write
    ``ahead`` and empty ``pull``. Where everything ``stays`` in place, ``new``, ``pull`` and ``moved`` are also what it
    begins with, and there may be several rounds, ``done`` (rounds,) zeros: each ``lag`` groups behind the one before,
    so that all of them find a group in the cache.
    """

    def kernel(  # noqa: PLR0913, PLR0915, PLR0917 - what is read, written, done in a cache
        group: Array,
        reach: Array,
        lag: int,
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
        done: Array,
        degree: Array,
        s: float,
        mass: Array,
        h: Array,
        force: Array,
        w: Array,
        moved: Array,
    ) -> None:
        for stage in range(reach.size + (done.size - 1) * lag):
            for turn in range(done.size):
                g = stage - turn * lag
                if g < 0 or g >= reach.size:
                    continue
                if moves:
                    till = max(reach[g], done[turn])
                    part = slice(done[turn], till)  # of slices the compiler knows that no index is negative
                    deg, m, target, to, out, zero = (
                        degree[part],
                        mass[part],
                        h[part],
                        ahead[part],
                        moved[part],
                        pull[part],
                    )
                    old = out if stays else w[part]
                    by = zero if stays else force[part]
                    for k in range(till - done[turn]):
                        weight = deg[k] / s
                        before = old[k]
                        x = (weight * before - by[k] + target[k]) / (weight + m[k])
                        to[k] = 2.0 * x - before
                        out[k] = before + rho * (x - before)
                        zero[k] = 0.0
                    done[turn] = till
                part = slice(group[g], group[g] if runs else group[g + 1])
                after, most, tails, heads = new[part], c[part], tail[part], head[part]
                last = after if stays else u[part]
                shift = center[part] if centred else after
                for e in range(after.size):
                    i, j = np.uint32(tails[e]), np.uint32(heads[e])  # of which the compiler knows that, too
                    z = ahead[i] - ahead[j]
                    if centred:
                        z -= shift[e]
                    flow, limit = last[e], c[0] if even else most[e]
                    v = flow + sigma * z
                    v = v / (1.0 + sigma / limit) if kind == SQUARE else min(max(v, -limit), limit)
                    x = flow + rho * (v - flow) if relaxes else v
                    after[e] = x
                    pull[i] += x
                    pull[j] -= x
                for r in range(group[g] if runs else 0, group[g + 1] if runs else 0):
                    begin, end = first[r], first[r + 1]
                    i, j, length = tail[r], head[r], end - begin
                    after, most = new[begin:end], c[begin:end]
                    here, there = ahead[i : i + length], ahead[j : j + length]
                    given, taken = pull[i : i + length], pull[j : j + length]
                    last = after if stays else u[begin:end]
                    shift = center[begin:end] if centred else after
                    for k in range(length):
                        z = here[k] - there[k]
                        if centred:
                            z -= shift[k]
                        flow, limit = last[k], c[0] if even else most[k]
                        v = flow + sigma * z
                        v = v / (1.0 + sigma / limit) if kind == SQUARE else min(max(v, -limit), limit)
                        after[k] = flow + rho * (v - flow) if relaxes else v
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
