"""Demands and strengths of Theorem 2 (GTV minimisation) for the clusters of a problem.

With r what the gradient at wbar is left with by rounding, everything counts from the wbar that was found:
phi(w~ - wbar) <= (lambda |dC| + r) / alpha, so that d_i = base_i + slope_i / lambda with
base_i = out_i + beta_i |dC| / alpha and slope_i = delta_i + beta_i r / alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..inputs import Graph
from ..oracles import NodeGradients
from ..terms import Array
from .clusterwise import Clusterwise
from .routing import Routing, largest_multiple

STEP = 1.1  # from one strength to the next, where constants depend on it
CELLS = 300  # a factor of 3e12


@dataclass(frozen=True)
class ClusterPart:
    """One cluster: its own edges, the positions of its nodes, what leaves each (n_c,), and |dC|."""

    graph: Graph
    nodes: Array
    out: Array
    boundary: float

    @staticmethod
    def of(graph: Graph, member: Array, c: int) -> ClusterPart:
        """The cluster number c of a graph."""
        nodes = np.flatnonzero(member == c)
        place = np.full(graph.n_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        i, j = place[graph.tail], place[graph.head]
        inside, leaves = (i >= 0) & (j >= 0), (i >= 0) != (j >= 0)
        own = Graph(tuple(graph.labels[k] for k in nodes), i[inside], j[inside], graph.weight[inside])
        out = np.bincount(np.maximum(i, j)[leaves], graph.weight[leaves], len(nodes))
        return ClusterPart(own, nodes, out, math.fsum(graph.weight[leaves]))

    @property
    def routing(self) -> Routing:
        return Routing(self.graph.n_nodes, self.graph.tail, self.graph.head, self.graph.weight)


@dataclass(frozen=True)
class Demands:
    """``base`` and ``slope`` (n,) of the demands, with alpha (k,), beta (n,) and (|dC| lambda + r) / alpha, (k,)."""

    base: Array
    slope: Array
    alpha: Array
    beta: Array
    distance: Array


@dataclass(frozen=True)
class AtStrength:
    """At the strength of the problem: delta and demand (n,), whether a wbar was found (k,), and the interval of
    strengths of each cluster, None where there is none."""

    now: Demands
    delta: Array
    demand: Array
    found: Array
    intervals: list[tuple[float, float] | None]


def strengths(losses: Clusterwise, parts: list[ClusterPart], lam: float) -> AtStrength:
    """Demands at one strength, and the strengths for which each cluster is well-connected."""
    now = demands(losses, parts, np.full(losses.k, lam))
    intervals = _everywhere(parts, now) if losses.quadratic else _stepwise(losses, parts)
    return AtStrength(now, losses.delta, now.base + now.slope / lam, np.isfinite(losses.optimum[1]), intervals)


def demands(losses: Clusterwise, parts: list[ClusterPart], lam: Array) -> Demands:
    """With constants that hold at the strengths lam (k,), one per cluster, and at all below."""
    boundary = np.array([part.boundary for part in parts])
    out = np.zeros(losses.form.n)
    for part in parts:
        out[part.nodes] = part.out
    left = losses.optimum[1]
    most = lam * boundary + left
    constants = losses.constants(np.where(boundary > 0, most, 0.0))
    alpha, beta, member = constants.alpha, constants.beta, losses.member
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch, rest = boundary / alpha, np.where(boundary + alpha > 0, left / alpha, 0.0)
        distance = np.where(alpha > 0, most / alpha, np.inf)
    return Demands(
        out + _times(beta, np.where(boundary > 0, stretch, 0.0)[member]),
        losses.delta + _times(beta, np.where(np.isfinite(rest), rest, 0.0)[member]),  # where it is inf so is base
        alpha,
        beta,
        distance,
    )


def _times(beta: Array, values: Array) -> Array:
    """beta * values, 0 where either is 0 and the other infinite: a node without data does not care."""
    both = (beta > 0) & (values > 0)
    return np.where(both, np.where(both, beta, 0.0) * np.where(both, values, 1.0), 0.0)


def _everywhere(parts: list[ClusterPart], at: Demands) -> list[tuple[float, float] | None]:
    """Where the constants do not depend on lambda: from 1/t on, t the largest for which base + t slope is routed."""
    return [(1.0 / t, math.inf) if t > 0 else None for t in (_multiple(part, at) for part in parts)]


def _multiple(part: ClusterPart, at: Demands) -> float:
    """1/lambda at its largest; 0 or less where there is none."""
    base, slope = at.base[part.nodes], at.slope[part.nodes]
    base = np.where(np.isfinite(slope), base, np.inf)
    return largest_multiple(part.routing, base, np.where(np.isfinite(slope), slope, 0.0)).t


def _stepwise(losses: Clusterwise, parts: list[ClusterPart]) -> list[tuple[float, float] | None]:
    """Where the constants grow worse with lambda: with c(lambda) the least strength that constants c allow is
    nondecreasing, so that lambda <- least(c(lambda)) climbs from 0 to the least strength that is guaranteed by its own
    constants. From there, cells [a, b]: constants at b with delta / a guarantee every strength between."""
    k = len(parts)
    low, done = np.zeros(k), np.zeros(k, dtype=bool)
    for _ in range(60):
        at = demands(losses, parts, low)
        t = np.array([_multiple(part, at) if low[c] < math.inf else 0.0 for c, part in enumerate(parts)])
        new = np.where(t > 0, 1.0 / np.where(t > 0, t, 1.0), math.inf)
        done = ~(new > 1.001 * low)
        low = np.maximum(low, new)
        if (done | np.isinf(low)).all():
            break
    low = np.where(done, low, math.inf)
    free = np.array([part.boundary == 0 or len(part.nodes) == 1 for part in parts]) & np.isfinite(low)
    return _cells(losses, parts, low, free)


def _cells(losses: Clusterwise, parts: list[ClusterPart], low: Array, free: Array) -> list[tuple[float, float] | None]:
    """The first run of cells that are guaranteed; ``free`` clusters have constants that do not depend on lambda."""
    out: list[tuple[float, float] | None] = [
        (a, math.inf) if f else None for a, f in zip(low.tolist(), free, strict=True)
    ]
    live, sink = np.isfinite(low) & ~free, np.zeros(len(parts), dtype=int)
    zero = losses.norm.gauge_at_zero(NodeGradients(losses.form).full(np.zeros(losses.form.shape)))
    scale = float(zero.max()) / max(*(part.boundary for part in parts), 1e-300)  # of a strength that moves anything
    first = np.maximum(low, 1e-6 * scale)  # lower ones hardly matter
    for step in range(CELLS):
        if not live.any():
            break
        a, b = first * STEP**step, first * STEP ** (step + 1)
        at = demands(losses, parts, np.where(live, b, 0.0))
        for c in np.flatnonzero(live):
            part, had = parts[c], out[c]
            demand = at.base[part.nodes] + at.slope[part.nodes] / a[c]
            good, sink[c] = _routable(part.routing, demand, int(sink[c]))
            if good:
                out[c] = (float(a[c]) if had is None else had[0], float(b[c]))
            elif had is not None:
                live[c] = False
    return out


def _routable(routing: Routing, demand: Array, hint: int) -> tuple[bool, int]:
    """Whether the demands are strictly routable to some node, tried first with that of the last time."""
    if np.isfinite(demand).all() and routing.route(hint, demand, strictly=True)[0]:
        return True, hint
    found = largest_multiple(routing, demand, np.zeros(routing.n))
    return found.t > 0, found.sink
