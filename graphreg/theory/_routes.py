"""Flows of least load along the edges of a network, and directions that prove it.

    min over flows u with K'u = -r of max_e ||u_e||_* / A_e  =  max over w of -<r, w> / sum_e A_e phi((Kw)_e)

On trees in closed form. Else a conic programme is solved, on a graph in which nodes are merged across edges that are not
busy: a direction that is constant on merged nodes is a direction, so its bound holds; and where the flows within merged
nodes, routed electrically, are no larger than it, it is the value. Edges on which they are larger are given free, and so
on: the binding edges are few as a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..lowering.steepest import Links, steepest
from ..terms.penalties._base import AbstractPenalty
from ..terms.records import Array
from ._network import Flows, Network

BUSY = 0.5  # of the lower bound: the load from which an edge is given free
CLOSE = 1e-8  # relative distance of the bounds at which they are left
ROUNDS = 12  # of refinement; then no nodes are merged


@dataclass(frozen=True, eq=False)
class Routes:
    """Flows with K'u = -r, directions, and what they show of each component.

    Attributes
    ----------
    flows : tuple of (m, k) arrays
    direction : (n, d)
        sum_e A_e phi((Kw)_e) = 1 over every component with edges and demands.
    upper, lower : (components,)
        max_e ||u_e||_* / A_e, and -<r, w>.
    how : list of str
    """

    flows: Flows
    direction: Array
    upper: Array
    lower: Array
    how: list[str]


def route(network: Network, r: Array) -> Routes:
    """The flows of least load per component, and the directions that prove it."""
    found = _Best(network, r)
    flows = network.along_forest(r)
    found.offer(flows, _cut(network, flows))
    cyclic = ~network.acyclic & (found.upper > 0)
    if cyclic.any():
        z, flows = network.electrical(r)
        found.offer(flows, -z)
        _refine(network, r, found, flows, cyclic)
    return found.routes(cyclic)


class _Best:
    """The best flows and directions that were offered, component by component."""

    def __init__(self, network: Network, r: Array) -> None:
        self.network, self.r = network, r
        self.flows = network.nothing()
        self.direction = np.zeros(network.shape)
        self.upper = np.full(network.n_components, np.inf)
        self.lower = np.zeros(network.n_components)

    def offer(self, flows: Flows, w: Array) -> None:
        network = self.network
        upper = network.largest(flows)
        better = upper < self.upper
        self.upper = np.where(better, upper, self.upper)
        pairs = zip(network.where, flows, self.flows, strict=True)
        self.flows = tuple(np.where(better[where][:, None], new, old) for where, new, old in pairs)
        slope = -np.bincount(network.component, np.einsum("ij,ij->i", self.r, w), network.n_components)
        variation = network.variation(w)
        lower = np.divide(slope, variation, out=np.zeros_like(slope), where=variation > 0)
        better = lower > self.lower
        self.lower = np.where(better, lower, self.lower)
        size = np.where(variation > 0, variation, 1.0)[network.component][:, None]
        self.direction = np.where(better[network.component][:, None], w / size, self.direction)

    def routes(self, cyclic: Array) -> Routes:
        edges = sum(np.bincount(where, minlength=len(cyclic)) for where in self.network.where)
        kinds = zip(edges, cyclic, self.network.acyclic, strict=True)
        how = [
            "no edges" if m == 0 else "conic" if hard else "closed form on a tree" if tree else "nothing flows"
            for m, hard, tree in kinds
        ]
        return Routes(self.flows, self.direction, self.upper, np.minimum(self.lower, self.upper), how)


def _cut(network: Network, flows: Flows) -> Array:
    """For each component the direction that moves one side of its most loaded edge against the other (the sides with
    respect to the spanning forest)."""
    best = np.full(network.n_components, -np.inf)
    at: dict[int, tuple[int, int]] = {}
    for k, (where, load) in enumerate(zip(network.where, network.loads(flows), strict=True)):
        order = np.argsort(load, kind="stable")
        last = dict(zip(where[order].tolist(), order.tolist(), strict=True))  # the most loaded edge of each
        for component, e in last.items():
            if load[e] > best[component]:
                best[component], at[component] = load[e], (k, e)
    z = network.nothing()
    for k, block in enumerate(network.blocks):
        rows = np.array([e for block_, e in at.values() if block_ == k], dtype=np.intp)
        if len(rows):
            z[k][rows] = norming(block.penalty, flows[k][rows])
    return network.raised(z)


def norming(penalty: AbstractPenalty, u: Array) -> Array:
    """v with <u, v> = ||u||_* phi(v), for each row, to one part in a million at most.

    For p = prox(u, t) of phi, u - p is t times a subgradient at p: <u, p> = t phi(p) + ||p||^2 >= t phi(p), so that
    with t = (1 - 1e-6) ||u||_* p will do. For the usual norms one of u, sign(u) and the largest entry is exact.
    """
    rows, size = np.arange(len(u)), penalty.gauge(u)
    largest = np.zeros_like(u)
    place = np.abs(u).argmax(axis=1)
    largest[rows, place] = np.sign(u[rows, place])
    tried = [u, np.sign(u), largest]
    tried += [_scaled(penalty.prox, u, size, share) for share in (1e-2, 1e-4, 1e-6)]
    value = np.stack([_ratio(penalty, u, v) for v in tried])
    return np.stack(tried)[value.argmax(axis=0), rows]


def _scaled(prox: Callable[[Array, Any], Array], u: Array, size: Array, share: float) -> Array:
    unit = np.where(size > 0, size, 1.0)
    return prox(u / unit[:, None], np.full(len(u), 1.0 - share))


def _ratio(penalty: AbstractPenalty, u: Array, v: Array) -> Array:
    value = penalty.value(v)
    return np.divide(np.einsum("ij,ij->i", u, v), value, out=np.zeros(len(u)), where=value > 0)


# ---- the conic programme ---------------------------------------------------------------------------------------------
def _refine(network: Network, r: Array, found: _Best, flows: Flows, cyclic: Array) -> None:
    """Offers flows and directions of the components that are no trees until their bounds meet."""
    free = [np.zeros(len(where), dtype=bool) for where in network.where]
    for k in range(ROUNDS + 1):
        todo = cyclic & (found.lower < (1.0 - CLOSE) * found.upper)
        if not todo.any():
            return
        inside = [todo[where] for where in network.where]
        before = sum(int(f.sum()) for f in free)
        busy = zip(free, network.loads(flows), network.where, inside, strict=True)
        free = [f | (here & (load > BUSY * found.lower[where])) for f, load, where, here in busy]
        if k == ROUNDS or sum(int(f.sum()) for f in free) == before:
            free = [f | here for f, here in zip(free, inside, strict=True)]
        flows, w = _merged(network, r, found, free, inside)
        found.offer(flows, w)
        if all(f[here].all() for f, here in zip(free, inside, strict=True)):
            return


def _merged(
    network: Network, r: Array, best: _Best, free: list[Array], inside: list[Array]
) -> tuple[Flows, Array]:
    """Flows and directions from the conic programme on the graph whose nodes are merged across the edges ``inside``
    that are not free; what is left to route within merged nodes flows electrically. Elsewhere the flows are the best."""
    load, flows = best.upper, best.flows
    shut = network.subset([here & ~f for f, here in zip(free, inside, strict=True)])
    cluster = shut.component
    size = int(cluster.max()) + 1
    S = sp.csr_array((np.ones(len(cluster)), (np.arange(len(cluster)), cluster)), shape=(len(cluster), size))
    rows = [
        np.flatnonzero(here & (cluster[b.tail] != cluster[b.head]))
        for b, here in zip(network.blocks, inside, strict=True)
    ]
    total = np.zeros(len(load))
    for where, A, e in zip(network.where, network.weights, rows, strict=True):
        total += np.bincount(where[e], A[e], len(load))
    unit = np.where(total > 0, load * total, 1.0)
    links = [
        Links(b.penalty, columns, sp.csr_array(b.K[e] @ S), A[e] / total[where[e]], where[e])
        for b, columns, A, where, e in zip(
            network.blocks, network.columns, network.weights, network.where, rows, strict=True
        )
    ]
    demand = S.T @ np.where((total > 0)[network.component][:, None], r / unit[network.component][:, None], 0.0)
    used = np.unique(np.concatenate([(abs(each.K).sum(axis=0)).nonzero()[0] for each in links]))
    small = [replace(each, K=sp.csr_array(each.K[:, used])) for each in links if len(each.weight)]
    w = np.zeros((size, r.shape[1]))
    w[used], given = steepest(small, demand[used])
    flows = [np.where(here[:, None], 0.0, u) for here, u in zip(inside, flows, strict=True)]
    values = iter(given)
    for u, where, e in zip(flows, network.where, rows, strict=True):
        if len(e):
            u[e] = unit[where[e]][:, None] * next(values)
    _, inner = shut.electrical(shut.balanced(r + network.carried(tuple(flows))))
    for u, f, here, more in zip(flows, free, inside, inner, strict=True):
        u[here & ~f] += more
    return network.conserved(tuple(flows), r), S @ w
