"""A round of one coordinate, where the norms are all the same box, as a sweep: a group of edges comes right after the
nodes that it needs.

Where edges stand in runs, their tails and their heads are both consecutive, and gathers are slices. A grid, whoever
made it, is a few long runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..terms import Array
from .compiler import Kernel, Step
from .edges import SQUARE, EdgeArrays, FlowBuffers

Steps = tuple[float, float]  # sigma and rho


class Way(NamedTuple):
    """The order of a `Sweep`, and the first edge of each run where there are runs; tails and heads are then those of
    the first edges."""

    group: Array
    reach: Array
    lag: int
    first: Array


class Nodes(NamedTuple):
    """Means, 1/2 mass ||w||^2 - <h, w>, with 1/tau = degree / s; K'u, w, and where w is written relaxed."""

    degree: Array
    s: float
    mass: Array
    h: Array
    force: Array
    w: Array
    moved: Array


@Step
def flow_of(kind: int, relaxes: int, flow: float, z: float, limit: float, steps: Steps) -> float:
    """The prox of sigma g* at flow + sigma z, relaxed."""
    sigma, rho = steps
    v = flow + sigma * z
    v = v / (1.0 + sigma / limit) if kind == SQUARE else min(max(v, -limit), limit)
    return flow + rho * (v - flow) if relaxes else v


@Step
def add_at_ends(u: Array, given: Array, taken: Array, length: int) -> None:
    """The flows of a run are added at its tails, and subtracted at its heads."""
    for k in range(length):
        given[k] += u[k]
    for k in range(length):
        taken[k] -= u[k]


@Step
def moved_nodes(part: slice, stays: int, rho: float, nodes: Nodes, ahead: Array, adjoint: Array) -> None:
    """Some nodes after their half of a round. They write ``ahead`` and empty ``pull``."""
    degree, s, mass, h, force, w, moved = nodes
    deg, m, target = degree[part], mass[part], h[part]
    to, out, zero = ahead[part], moved[part], adjoint[part]
    old = out if stays else w[part]
    by = zero if stays else force[part]
    for k in range(to.size):
        weight = deg[k] / s
        before = old[k]
        x = (weight * before - by[k] + target[k]) / (weight + m[k])
        to[k] = 2.0 * x - before
        out[k] = before + rho * (x - before)
        zero[k] = 0.0


def swept_round(runs: int, kind: int, flags: tuple[int, ...]) -> Kernel:
    """The kernel of `edges.edge_round`, for edges in ``runs`` or in a list; where all capacities are ``even`` there is
    one.

    Where it ``moves`` nodes, too, those of a group come right before it, while they are in a cache: the first
    ``reach[g]`` nodes before the runs, or edges, from ``group[g]`` to ``group[g + 1]``. They write ``ahead`` and empty
    ``pull``. Where everything ``stays`` in place, ``new``, ``pull`` and ``moved`` are also what it begins with, and
    there may be several rounds, ``done`` (rounds,) zeros: each ``lag`` groups behind the one before, so that all of
    them find a group in the cache.
    """
    centred, relaxes, moves, even, stays = flags

    def kernel(way: Way, edges: EdgeArrays, steps: Steps, flows: FlowBuffers, nodes: Nodes, done: Array) -> None:
        group, reach, lag, first = way
        tail, head, c, center = edges
        ahead, u, new, adjoint = flows
        for stage in range(reach.size + (done.size - 1) * lag):
            for turn in range(done.size):
                g = stage - turn * lag
                if g < 0 or g >= reach.size:
                    continue
                if moves:
                    till = max(reach[g], done[turn])
                    # of slices the compiler knows that no index is negative
                    moved_nodes(slice(done[turn], till), stays, steps[1], nodes, ahead, adjoint)
                    done[turn] = till
                part = slice(group[g], group[g] if runs else group[g + 1])
                after, most, tails, heads = new[part], c[part], tail[part], head[part]
                last = after if stays else u[part]
                shift = center[part] if centred else after
                for e in range(after.size):
                    i, j = np.uint32(tails[e]), np.uint32(heads[e])  # of which the compiler knows that, too
                    z = ahead[i] - ahead[j] - (shift[e] if centred else 0.0)
                    x = flow_of(kind, relaxes, last[e], z, c[0] if even else most[e], steps)
                    after[e] = x
                    adjoint[i] += x
                    adjoint[j] -= x
                for r in range(group[g] if runs else 0, group[g + 1] if runs else 0):
                    begin, end = first[r], first[r + 1]
                    i, j, length = tail[r], head[r], end - begin
                    after, most = new[begin:end], c[begin:end]
                    here, there = ahead[i : i + length], ahead[j : j + length]
                    last = after if stays else u[begin:end]
                    shift = center[begin:end] if centred else after
                    for k in range(length):
                        z = here[k] - there[k] - (shift[k] if centred else 0.0)
                        after[k] = flow_of(kind, relaxes, last[k], z, c[0] if even else most[k], steps)
                    add_at_ends(after, adjoint[i : i + length], adjoint[j : j + length], length)

    return kernel


def run_adjoint() -> Kernel:
    """The kernel of `edges.edge_pull` on runs."""

    def kernel(first: Array, tail: Array, head: Array, u: Array, adjoint: Array) -> None:
        for r in range(tail.size):
            begin, end = first[r], first[r + 1]
            i, j, length = tail[r], head[r], end - begin
            add_at_ends(u[begin:end], adjoint[i : i + length], adjoint[j : j + length], length)

    return kernel
