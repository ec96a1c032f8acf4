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
    """Means, 1/2 mass ||w||^2 - <h, w>, with 1/tau = degree / s, and w, which moves in place; and where it, K'u and the
    flows come from that the first round begins with, or nothing where they are in place."""

    degree: Array
    s: float
    mass: Array
    h: Array
    w: Array
    first_w: Array
    first_adjoint: Array
    first_u: Array


@Step
def flow_of(kind: int, flow: float, z: float, limit: float, steps: Steps) -> float:
    """The prox of sigma g* at flow + sigma z, relaxed by rho, which 0 does not."""
    sigma, rho = steps
    v = flow + sigma * z
    v = v / (1.0 + sigma / limit) if kind == SQUARE else min(max(v, -limit), limit)
    return v if rho == 0.0 else flow + rho * (v - flow)


@Step
def add_at_ends(u: Array, given: Array, taken: Array, length: int) -> None:
    """The flows of a run are added at its tails, and subtracted at its heads."""
    for k in range(length):
        given[k] += u[k]
    for k in range(length):
        taken[k] -= u[k]


@Step
def copy(source: Array, to: Array, begin: int, end: int) -> None:
    """Some entries of an array are written to another."""
    given, taken = source[begin:end], to[begin:end]
    for k in range(taken.size):
        taken[k] = given[k]


@Step
def moved_nodes(part: slice, rho: float, nodes: Nodes, ahead: Array, adjoint: Array) -> None:
    """Some nodes after their half of a round. They write ``ahead`` and empty ``adjoint``."""
    deg, m, target = nodes.degree[part], nodes.mass[part], nodes.h[part]
    to, out, by = ahead[part], nodes.w[part], adjoint[part]
    for k in range(to.size):
        weight = deg[k] / nodes.s
        before = out[k]
        x = (weight * before - by[k] + target[k]) / (weight + m[k])
        to[k] = 2.0 * x - before
        out[k] = x if rho == 0.0 else before + rho * (x - before)
        by[k] = 0.0


@Step
def swept_list(
    kind: int, flags: tuple[int, int], part: slice, edges: EdgeArrays, steps: Steps, flows: FlowBuffers
) -> None:
    """A group of edges that stand in no runs."""
    centred, even = flags
    tails, heads, most, flow = edges.tail[part], edges.head[part], edges.c[part], flows.u[part]
    shift = edges.center[part] if centred else flow
    for e in range(flow.size):
        i, j = np.uint32(tails[e]), np.uint32(heads[e])  # of which the compiler knows that no index is negative
        z = flows.ahead[i] - flows.ahead[j] - (shift[e] if centred else 0.0)
        x = flow_of(kind, flow[e], z, edges.c[0] if even else most[e], steps)
        flow[e] = x
        flows.adjoint[i] += x
        flows.adjoint[j] -= x


def swept_round(runs: int, kind: int, flags: tuple[int, ...]) -> Kernel:
    """The kernel of `edges.edge_round`, for edges in ``runs`` or in a list; where all capacities are ``even`` there is
    one.

    Where it ``moves`` nodes, too, those of a group come right before it, while they are in a cache: the first
    ``reach[g]`` nodes before the runs, or edges, from ``group[g]`` to ``group[g + 1]``. They write ``ahead`` and empty
    ``adjoint``, which is then also what it begins with. What comes from elsewhere is copied right before it, too. There
    may be several rounds, ``done`` (rounds,) zeros: each ``lag`` groups behind the one before, so that all of them find
    a group in the cache.
    """
    centred, moves, even = flags

    def kernel(way: Way, edges: EdgeArrays, steps: Steps, flows: FlowBuffers, nodes: Nodes, done: Array) -> None:
        group, reach, lag, first = way
        tail, head, c, center = edges
        ahead, u, adjoint = flows
        for stage in range(reach.size + (done.size - 1) * lag):
            for turn in range(done.size):
                g = stage - turn * lag
                if g < 0 or g >= reach.size:
                    continue
                copies = turn == 0 and nodes.first_u.size > 0
                if moves:
                    till = max(reach[g], done[turn])
                    if copies:
                        copy(nodes.first_w, nodes.w, done[turn], till)
                        copy(nodes.first_adjoint, adjoint, done[turn], till)
                    # of slices the compiler knows that no index is negative
                    moved_nodes(slice(done[turn], till), steps[1], nodes, ahead, adjoint)
                    done[turn] = till
                begin, end = (first[group[g]], first[group[g + 1]]) if runs else (group[g], group[g + 1])
                if copies:
                    copy(nodes.first_u, u, begin, end)
                if runs:
                    for r in range(group[g], group[g + 1]):
                        begin, end = first[r], first[r + 1]
                        i, j, length = tail[r], head[r], end - begin
                        flow, most = u[begin:end], c[begin:end]
                        here, there = ahead[i : i + length], ahead[j : j + length]
                        shift = center[begin:end] if centred else flow
                        for k in range(length):
                            z = here[k] - there[k] - (shift[k] if centred else 0.0)
                            flow[k] = flow_of(kind, flow[k], z, c[0] if even else most[k], steps)
                        add_at_ends(flow, adjoint[i : i + length], adjoint[j : j + length], length)
                else:
                    swept_list(kind, (centred, even), slice(begin, end), edges, steps, flows)

    return kernel


def run_adjoint(first: Array, tail: Array, head: Array, u: Array, adjoint: Array) -> None:
    """The kernel of `edges.edge_adjoint` on runs."""
    for r in range(tail.size):
        begin, end = first[r], first[r + 1]
        i, j, length = tail[r], head[r], end - begin
        add_at_ends(u[begin:end], adjoint[i : i + length], adjoint[j : j + length], length)
