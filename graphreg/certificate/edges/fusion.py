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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...form import EdgeBlock, Form, held_together
from ...inputs import components_of
from ...terms import Array
from ...terms.penalties import AbstractConstraint, AbstractEntrywise, has_kink, is_equality, row_norm
from ..convexity import node_convexity
from ..proposing.arcs import Arcs, Forest, grown
from ..record import Certificate
from .dual_region import Region, of_edges, of_samples, rounding
from .near import U, load, radius, spread_of, upper_gap


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
        every = np.arange(form.width(edge))
        apart = len(every) > 1 and isinstance(edge.penalty, AbstractEntrywise)
        places = list(every[:, None]) if apart else [every]
        edges += [edge.on(j) for j in places] if apart else [edge]
        owner += [k] * len(places)
        columns += places
    return Separated(replace(form, edges=tuple(edges)), tuple(owner), tuple(columns))


# ---- fusion ----------------------------------------------------------------------------------------------------------
ROUNDS = 8  # of leaving out the edges, then the clusters that fail
INSIDE = 1.0 - 1e-9  # of the room of an edge
UNBOUNDED = 1e300


def fused(certificate: Certificate) -> list[Array]:
    """The edges that are proved to be fused at every optimum, a mask per edge block of ``certificate.form``."""
    parts = separate(certificate.form)
    return parts.together([~np.isnan(room) for room in rooms(certificate, parts)], len(certificate.form.edges))


def rooms(certificate: Certificate, parts: Separated) -> list[Array]:
    """The room that an optimal flow has at least inside the subgradients at 0, (m,) per block of ``parts``, on the
    edges that are proved to be fused by it; nan on the others."""
    whole, w, gap = certificate.form, certificate.w, upper_gap(certificate)
    form, samples = parts.form, optimal_prices(parts.form, w, gap)
    none = [np.full(edge.count, np.nan) for edge in form.edges]
    if samples is None:
        return none
    flows = parts.parts(certificate.dual_point.flows)
    spread = parts.parts(tuple(spread_of(certificate, k) for k in range(len(whole.edges))))
    loads = [load(edge, u, eta) for edge, u, eta in zip(form.edges, flows, spread, strict=True)]
    movable = [_movable(edge, t, form.width(edge)) for edge, t in zip(form.edges, loads, strict=True)]
    mu, strong = node_convexity(form), certificate.strong_convexity  # of edges that are apart nothing is carried
    reach = [radius(edge, mu, strong, gap) + row_norm(rounding(edge, form, w)) for edge in form.edges]
    apart = [row_norm(edge.difference(w)) * (1 - 1e-12) > far for edge, far in zip(form.edges, reach, strict=True)]
    movable = [mask & ~other for mask, other in zip(movable, apart, strict=True)]
    for round_ in range(ROUNDS):
        if not any(mask.any() for mask in movable):
            return none
        ties = _Ties(form, movable)
        carried = ties.carried(_demand(form, w, gap, flows, samples, ties), loads, gap)
        t = [ties.load(k, u, eta) for k, (u, eta) in enumerate(zip(flows, carried, strict=True))]
        failing = [eta.any(axis=1) & ~(each < INSIDE) for eta, each in zip(carried, t, strict=True)]
        if not any(mask.any() for mask in failing):
            left = (
                edge.weight * np.maximum(1.0 - each, 0.0) * (1.0 - 4 * U)
                for edge, each in zip(form.edges, t, strict=True)
            )
            return [np.where(within, room, np.nan) for within, room in zip(ties.within, left, strict=True)]
        if round_ < ROUNDS // 2:  # edges with little room lead nowhere: without them first
            movable = [mask & ~fails for mask, fails in zip(movable, failing, strict=True)]
        else:
            movable = ties.without(failing)
    return none


def optimal_prices(form: Form, w: Array, gap: float) -> list[Region] | None:
    """Where the optimal prices of each block are; None where that is not known, or there may be no optimal dual
    point."""
    if not (np.isfinite(gap) and np.isfinite(w).all() and has_optimal_dual(form, w)):
        return None
    found = [of_samples(block, w, gap) for block in form.samples]
    known = [region for region in found if region is not None]
    return known if len(known) == len(found) else None


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


def _demand(form: Form, w: Array, gap: float, flows: tuple[Array, ...], samples: list[Region], ties: _Ties) -> Region:
    """The region of the demands that the edges within clusters must carry, (n, d): its weights are those of sums over
    nodes, too."""
    demand = Region(*(np.zeros(form.shape) for _ in range(3)))
    for block, found in zip(form.samples, samples, strict=True):
        _add(demand, block.A, found)
    for edge, u, within in zip(form.edges, flows, ties.within, strict=True):
        inside = inside_at_zero(edge, u)[within]
        _add(demand, edge.part(within).flat(form.d), Region(inside, 0.0 * inside, 0.0 * inside))
        outside = edge.part(~within)
        _add(demand, outside.flat(form.d), of_edges(outside, form, w, gap))
    return demand


def _add(demand: Region, K: sp.csr_array, found: Region) -> None:
    """Add K'v for flows or prices v."""
    Kt: Any = sp.csr_array(K.T)
    terms, at = float(np.diff(Kt.indptr).max(initial=0)) + 16.0, found.center.ravel()
    width = np.where(np.isfinite(found.width), found.width, UNBOUNDED).ravel() + 2 * terms * U * np.abs(at)
    demand.center[:] += (Kt @ at).reshape(demand.center.shape)
    demand.width[:] += (abs(Kt) @ width).reshape(demand.center.shape)
    demand.weight[:] += (Kt.power(2) @ found.weight.ravel()).reshape(demand.center.shape) * (1.0 + 1e-10)


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

    def carried(self, demand: Region, loads: list[Array], gap: float) -> list[Array]:
        """What the edges of spanning trees must carry at most, shaped like the flows."""
        eta = [np.zeros((edge.count, len(some))) for edge, some in zip(self.form.edges, self.columns, strict=True)]
        for touching, columns in self.groups:
            for k, rows, places, amount in self._carry(touching, columns, demand, loads, gap):
                eta[k][np.ix_(rows, places)] += amount
        return eta

    def load(self, k: int, u: Array, eta: Array) -> Array:
        """The load at most of the edges of a block that lie within clusters, with what they must carry, (m,); 1 where a
        penalty has no kink."""
        edge, t, mine = self.form.edges[k], np.ones(len(u)), np.flatnonzero(self.within[k])
        if len(mine) and has_kink(edge.penalty, u.shape[1]):
            t[mine] = load(edge.part(mine), inside_at_zero(edge, u)[mine], eta[mine])
        return t

    def _carry(
        self, touching: tuple[int, ...], columns: Array, demand: Region, loads: list[Array], gap: float
    ) -> Iterator[tuple[int, Array, Array, Array]]:
        """What the edges of a spanning forest must carry at most, on coordinates that share their edges: of each block
        the rows, the places of the coordinates, and how much."""
        tail, head = self._movable_ends(touching)
        room = np.concatenate([(self.form.edges[k].weight * (1 - loads[k]))[self.movable[k]] for k in touching])
        tree = _forest(tail, head, room, self.member[columns[0]])
        rounding = 4 * (self.form.n + 16) * U  # of sums over subtrees, as of their parts
        at, width, weight = (part[:, columns] for part in (demand.center, demand.width, demand.weight))
        total = [_gathered(tree, part) for part in (at, width + rounding * np.abs(at), weight)]
        amount = (np.abs(total[0]) + total[1] + np.sqrt(2.0 * gap * total[2])) * (1.0 + 1e-12 + rounding)
        node = np.full(len(tail), -1)
        inner = np.flatnonzero(tree.arc >= 0)
        node[tree.arc[inner]] = inner  # whose edge to its parent it is
        ends = np.cumsum([int(self.movable[k].sum()) for k in touching])[:-1]
        for k, mine in zip(touching, np.split(node, ends), strict=True):
            rows = np.flatnonzero(self.movable[k])[mine >= 0]
            places = np.array([int(np.flatnonzero(self.columns[k] == j)[0]) for j in columns])
            yield k, rows, places, amount[mine[mine >= 0]]

    def without(self, failing: list[Array]) -> list[Array]:
        """The movable edges of the clusters in which none fails: clusters over all coordinates together."""
        tail, head = self._movable_ends(range(len(self.ends)))
        between = head < self.form.n
        member = components_of(tail[between], head[between], self.form.n)[1]
        bad = np.zeros(self.form.n, dtype=bool)
        for (ends, _), mask in zip(self.ends, failing, strict=True):
            bad[member[ends[mask]]] = True
        return [m & ~bad[member[ends[0]]] for ends, m in zip(self.ends, self.movable, strict=True)]


def _forest(tail: Array, head: Array, room: Array, member: Array) -> Forest:
    """Spanning trees along short paths through edges with room, from the ground and else from a hub of each cluster."""
    finite = room[np.isfinite(room)]
    length = 1.0 + np.minimum(1e6, (np.median(finite) if len(finite) else 1.0) / np.maximum(room, 1e-300))
    ends, every = (tail.astype(np.int64), head.astype(np.int64)), np.arange(len(room))  # whose pairs are numbered
    return grown(Arcs(every, ends, len(member) - 1, 1), every, length, member, every >= 0)


def _gathered(tree: Forest, values: Array) -> Array:
    """The sums over the subtree of each node, (n, c)."""
    return np.stack([tree.gather(column) for column in values.T], axis=1)
