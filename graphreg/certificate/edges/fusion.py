"""Edges that are fused at every optimum: z_e = 0 exactly, proved.

Every optimal dual point (u*, a*) is near what one point w says (see `region`). Take such a point, and on the edges
within a cluster, in place of u*, other flows: those of the certificate, plus what a spanning tree of the cluster must
carry so that together with a* and the other u* everything is conserved. That is a sum over subtrees, of which the
region bounds each. Where all these flows lie strictly inside the subgradients at 0 (their gauge is below 1), the new
point is feasible, and no worse: phi* is 0 there and never negative. So it is optimal too, and an optimum w* closes
Fenchel-Young with it: (1 - t) c phi(z*_e) <= 0. The ends of the tree's edges are equal at every optimum, and so are
those of every edge within the cluster.

This is the restricted problem of one parameter vector per cluster without solving it: no strong convexity is asked of
anything, and losses and penalties may have kinks where w is not. It needs a gap of the order of (slack)^2 over the
curvature of the cluster. Optimal dual points exist (Rockafellar, Convex Analysis, theorem 31.4), as is checked: some
point lies inside the domains of all penalties but for equations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import dijkstra
from ...form import EdgeBlock, Form, held_together
from ...inputs import components_of
from ...terms import Array
from ...terms.penalties import AbstractConstraint, AbstractEntrywise, has_kink, is_equality
from ..record import Certificate
from .dual_region import Region, of_edges, of_samples
from .near import U, load, spread_of, upper_gap


# ---- penalties that are sums over coordinates, taken apart: one edge per coordinate ----------------------------------
@dataclass(frozen=True)
class Separated:
    """``form`` with the same objective; its edge block k is part of block ``owner[k]`` and acts on ``columns[k]`` of
    that block's coordinates."""

    form: Form
    owner: tuple[int, ...]
    columns: tuple[Array, ...]

    def parts(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        """Arrays shaped like the flows of the whole, taken apart."""
        return tuple(flows[k][:, j] for k, j in zip(self.owner, self.columns, strict=True))

    def together(self, masks: list[Array], count: int) -> list[Array]:
        """A mask of the edges of the whole, whether a mask is true of all its parts."""
        out: list[Array | None] = [None] * count
        for k, mask in zip(self.owner, masks, strict=True):
            out[k] = mask if out[k] is None else out[k] & mask
        return [np.zeros(0, dtype=bool) if each is None else each for each in out]


def separate(form: Form) -> Separated:
    """The form with every penalty that is a sum over coordinates (`restricted`) taken apart."""
    edges, owner, columns = list[EdgeBlock](), list[int](), list[Array]()
    for k, edge in enumerate(form.edges):
        width = form.width(edge)
        places = [np.array([j]) for j in range(width)]
        if len(places) < 2 or not isinstance(edge.penalty, AbstractEntrywise):
            edges.append(edge)
            owner.append(k)
            columns.append(np.arange(width))
            continue
        for j in places:
            center = None if edge.center is None else edge.center[:, j]
            phi, own = edge.penalty.restricted(j), edge.map.on(j)
            edges.append(replace(edge, penalty=phi, map=own, center=center))
            owner.append(k)
            columns.append(j)
    return Separated(replace(form, edges=tuple(edges)), tuple(owner), tuple(columns))


# ---- fusion ----------------------------------------------------------------------------------------------------------
ROUNDS = 8  # of leaving out the edges, then the clusters that fail
INSIDE = 1.0 - 1e-9  # of the room of an edge


@dataclass(frozen=True)
class Demand:
    """The demand that the edges within clusters must carry, (n, d): ``center`` up to ``width``, and up to a part
    whose square is at most 2 G ``weight``, for sums over nodes too."""

    center: Array
    width: Array
    weight: Array

    def add(self, K: sp.csr_array, columns: Array, found: Region) -> None:
        """The flows of some edges."""
        at = np.ix_(np.arange(len(self.center)), columns)
        Kt = sp.csr_array(K.T)
        size, terms = abs(Kt), float(np.diff(Kt.indptr).max(initial=0)) + 16.0
        self.center[at] += Kt @ found.center
        self.width[at] += size @ (found.width + 2 * terms * U * np.abs(found.center))
        self.weight[at] += size @ found.weight


def fused(certificate: Certificate, apart: list[Array]) -> list[Array]:
    """The edges that are proved to be fused at every optimum, a mask per edge block of ``certificate.form``; those that
    are known to be ``apart`` (masks) are not tried."""
    whole = certificate.form
    none = [np.zeros(len(edge.tail), dtype=bool) for edge in whole.edges]
    gap = upper_gap(certificate)
    if not (np.isfinite(gap) and np.isfinite(certificate.w).all() and has_optimal_dual(whole, certificate.w)):
        return none
    parts = separate(whole)
    form, w = parts.form, certificate.w
    flows = parts.parts(certificate.dual_point.flows)
    spread = parts.parts(tuple(spread_of(certificate, k) for k in range(len(whole.edges))))
    samples = [of_samples(block, w, gap) for block in form.samples]
    if any(found is None for found in samples):
        return none
    loads = [load(edge, u, eta) for edge, u, eta in zip(form.edges, flows, spread, strict=True)]
    movable = [_movable(edge, t, form.width(edge)) for edge, t in zip(form.edges, loads, strict=True)]
    movable = [mask & ~apart[k] for mask, k in zip(movable, parts.owner, strict=True)]
    for round_ in range(ROUNDS):
        if not any(mask.any() for mask in movable):
            return none
        ties = _Ties(form, movable)
        demand = _demand(form, w, gap, flows, samples, ties)
        failing = ties.failing(demand, flows, loads, gap)
        if not any(mask.any() for mask in failing):
            return parts.together(ties.within, len(whole.edges))
        if round_ < ROUNDS // 2:  # edges with little room lead nowhere: without them first
            movable = [mask & ~fails for mask, fails in zip(movable, failing, strict=True)]
        else:
            movable = ties.without(failing)
    return none


def has_optimal_dual(form: Form, w: Array) -> bool:
    """True where some point lies well inside the domain of every penalty but those of polyhedra, in which it lies: then
    there are optimal dual points (Rockafellar, Convex Analysis, corollary 31.2.1)."""
    origin = np.zeros_like(w)
    return any(all(_inside(edge, point, point is w) for edge in form.edges) for point in (origin, w))


def _inside(edge: EdgeBlock, w: Array, feasible: bool) -> bool:
    z = edge.difference(w)
    k = z.shape[1]
    if is_equality(edge.penalty, k):
        return not z.any()
    if isinstance(edge.penalty, AbstractConstraint) and (k == 1 or isinstance(edge.penalty, AbstractEntrywise)):
        return feasible or bool(np.isfinite(edge.penalty.value(z)).all())  # intervals
    step = 1e-6 * (1.0 + np.abs(z).max(initial=0.0))
    return all(np.isfinite(edge.penalty.value(z + sign * step * e)).all() for e in np.eye(k) for sign in (1.0, -1.0))


def inside_at_zero(edge: EdgeBlock, u: Array) -> Array:
    """The flows, pulled inside the subgradients at 0 where they are not."""
    t = edge.penalty.gauge_at_zero(u / edge.weight[:, None])
    factor = np.where(t > INSIDE, np.where(np.isfinite(t), INSIDE / np.maximum(t, INSIDE), 0.0), 1.0)
    return u * factor[:, None]


def _movable(edge: EdgeBlock, t: Array, k: int) -> Array:
    """Edges with room all around their flow; those to the ground where they pull to 0."""
    if not has_kink(edge.penalty, k):
        return np.zeros(len(t), dtype=bool)
    return (t < 1.0) & (True if edge.center is None else ~edge.center.any(axis=1))


def _demand(
    form: Form, w: Array, gap: float, flows: tuple[Array, ...], samples: list[Region | None], ties: _Ties
) -> Demand:
    demand = Demand(*(np.zeros(form.shape) for _ in range(3)))
    for block, found in zip(form.samples, samples, strict=True):
        assert found is not None
        size, terms = abs(block.A).T, float(np.diff(block.A.indptr).max(initial=0)) + len(block.node) + 8.0
        a = found.center.ravel()
        demand.center[:] += (block.A.T @ a).reshape(form.shape)
        width = found.width.ravel() + 2 * terms * U * np.abs(a)
        demand.width[:] += (size @ np.where(np.isfinite(width), width, 1e300)).reshape(form.shape)
        demand.weight[:] += (block.A.power(2).T @ found.weight.ravel()).reshape(form.shape) * (1.0 + 1e-10)
    for k, edge in enumerate(form.edges):
        columns, within = ties.columns[k], ties.within[k]
        if within.any():
            zero = np.zeros((int(within.sum()), len(columns)))
            demand.add(edge.K[within], columns, Region(inside_at_zero(edge, flows[k])[within], zero, zero))
        if not within.all():
            found = of_edges(edge.part(~within), form, w, gap)
            width = np.where(np.isfinite(found.width), found.width, 1e300)
            demand.add(edge.K[~within], columns, Region(found.center, width, found.weight))
    return demand


class _Ties:
    """Clusters: nodes that movable edges tie, coordinate by coordinate; the ground is one more node, n."""

    def __init__(self, form: Form, movable: list[Array]) -> None:
        self.form, self.movable = form, movable
        self.columns = [e.columns(form.d) for e in form.edges]
        self.ends = [(e.tail, np.where(e.head < 0, form.n, e.head)) for e in form.edges]
        self.member = np.zeros((form.d, form.n + 1), dtype=np.intp)
        self.groups = held_together(self.columns, form.d)
        self.member[:] = np.arange(form.n + 1)
        for touching, columns in self.groups:
            self.member[columns] = components_of(*self._movable_ends(touching), form.n + 1)[1]
        self.within = [self._within(k) for k in range(len(form.edges))]

    def _movable_ends(self, blocks: Iterable[int]) -> tuple[Array, Array]:
        """Tails and heads of the movable edges of some blocks."""
        tail, head = (np.concatenate([self.ends[k][end][self.movable[k]] for k in blocks]) for end in (0, 1))
        return tail, head

    def _within(self, k: int) -> Array:
        """The edges whose ends are tied on all coordinates that they act on."""
        (tail, head), columns, edge = self.ends[k], self.columns[k], self.form.edges[k]
        tied = np.all([self.member[j][tail] == self.member[j][head] for j in columns], axis=0)
        return tied & (True if edge.center is None else ~edge.center.any(axis=1))

    def failing(self, demand: Demand, flows: tuple[Array, ...], loads: list[Array], gap: float) -> list[Array]:
        """The movable edges of spanning trees that cannot be shown to have room for what they must carry."""
        eta = [np.zeros_like(u) for u in flows]
        for touching, columns in self.groups:
            self._carry(touching, columns, demand, loads, gap, eta)
        out: list[Array] = []
        for k, (edge, u) in enumerate(zip(self.form.edges, flows, strict=True)):
            carries: Array = np.asarray(eta[k].any(axis=1))
            t = np.zeros(len(u))
            if carries.any():
                t[carries] = load(edge.part(carries), inside_at_zero(edge, u)[carries], eta[k][carries])
            out.append(carries & ~(t < INSIDE))
        return out

    def _carry(
        self,
        touching: tuple[int, ...],
        columns: Array,
        demand: Demand,
        loads: list[Array],
        gap: float,
        eta: list[Array],
    ) -> None:
        """Adds what the edges of a spanning forest must carry, on coordinates that share their edges."""
        tail, head = self._movable_ends(touching)
        room = np.concatenate([(self.form.edges[k].weight * (1 - loads[k]))[self.movable[k]] for k in touching])
        block = np.concatenate([np.full(int(self.movable[k].sum()), k) for k in touching])
        row = np.concatenate([np.flatnonzero(self.movable[k]) for k in touching])
        parent, edge, order = forest(tail, head, room, self.form.n, self.member[columns[0]])
        total = [part[:, columns].copy() for part in (demand.center, demand.width, demand.weight)]
        total[1] += 4 * len(order) * U * np.abs(total[0])
        for i in order:  # from the leaves inwards
            for part in total:
                if parent[i] < self.form.n:
                    part[parent[i]] += part[i]
        place = {k: [int(np.flatnonzero(self.columns[k] == j)[0]) for j in columns] for k in touching}
        amount = np.abs(total[0]) + total[1] + np.sqrt(2.0 * gap * total[2])
        for i in order:
            k, e = int(block[edge[i]]), row[edge[i]]
            eta[k][e, place[k]] += amount[i] * (1.0 + 1e-12)

    def without(self, failing: list[Array]) -> list[Array]:
        """The movable edges of the clusters in which none fails: clusters over all coordinates together."""
        tail, head = self._movable_ends(range(len(self.ends)))
        between = head < self.form.n
        member = components_of(tail[between], head[between], self.form.n)[1]
        bad = np.zeros(self.form.n, dtype=bool)
        for (ends, _), mask in zip(self.ends, failing, strict=True):
            bad[member[ends[mask]]] = True
        return [m & ~bad[member[ends[0]]] for ends, m in zip(self.ends, self.movable, strict=True)]


def forest(tail: Array, head: Array, room: Array, n: int, member: Array) -> tuple[Array, Array, Array]:
    """Spanning trees along short paths through edges with room: for each node its parent and the number of the edge
    there, and the nodes that have one, the furthest first. Roots are the ground (n) and else a hub of each cluster."""
    finite = room[np.isfinite(room)]
    length = 1.0 + np.minimum(1e6, (np.median(finite) if len(finite) else 1.0) / np.maximum(room, 1e-300))
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    order = np.lexsort((length, high, low))  # of parallel edges the shortest
    key = low[order] * (n + 1) + high[order]
    first = order[np.concatenate([[True], key[1:] != key[:-1]])] if len(order) else order
    key = low[first] * (n + 1) + high[first]
    degree = np.bincount(np.concatenate([tail, head]), minlength=n + 1).astype(float)
    degree[n] = np.inf
    by = np.lexsort((-degree, member))
    roots = by[np.concatenate([[True], member[by][1:] != member[by][:-1]])]
    start = n + 1
    rows, columns = np.concatenate([low[first], np.full(len(roots), start)]), np.concatenate([high[first], roots])
    lengths = np.concatenate([length[first], np.ones(len(roots))])
    links = sp.csr_array((lengths, (rows, columns)), shape=(n + 2, n + 2))
    distance, parent = dijkstra(links, directed=False, indices=start, return_predecessors=True)
    inner = np.flatnonzero((parent[: n + 1] >= 0) & (parent[: n + 1] != start))
    edge = np.full(n + 1, -1)
    pair = np.minimum(inner, parent[inner]) * (n + 1) + np.maximum(inner, parent[inner])
    edge[inner] = first[np.searchsorted(key, pair)]
    return parent[: n + 1], edge, inner[np.argsort(-distance[inner], kind="stable")]
