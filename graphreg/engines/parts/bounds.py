"""The certificate by parts, where every node is strictly convex: each part bounds its own share from either side.

With the flows on the edges between parts as they are, which both ends know alike,

    P(w) = sum_i h_i(w_i)  +  sum_e c_e phi_e((Kw)_e - center_e),
    Q(u) = sum_i min over w of (h_i(w) + <(K'u)_i, w>)  -  sum_e c_e phi_e*(u_e / c_e) + <u_e, center_e>

are sums over parts, of their own nodes i and of the edges e whose tails these are. Each summand is bounded where its
data are (see `graphreg.certificate.tilting`), and the sums of these bounds bound the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from ...certificate import Box, QuadraticNodes, Structure, box_value, follows, proved, tilted_nodes, upper_bound
from ...errors import MethodError
from ...form import DualPoint, EdgeBlock, Form
from ...terms import Array, Space
from .directory import everyone
from .part import Part
from .wire import Wire

EPS = 2.0**-52
SHRUNK = 1e-13  # by so much flows are shrunk: clipped ones may be rounded out of their domains


@dataclass(frozen=True)
class JointLook:
    """What some parameters and flows are worth, as computed; nothing is proved. ``w`` (n, d) and flows are the part's,
    ``at`` are the minimisers at its own nodes; ``gap`` and ``primal`` are those of the whole."""

    w: Array
    flows: tuple[Array, ...]
    at: Array
    gap: float
    primal: float


class PartBounds:
    """The bounds of one part."""

    def __init__(self, part: Part, owner: Array, wire: Wire) -> None:
        self.part, self.owner, self.wire, form = part, owner, wire, part.form
        self.own = np.flatnonzero(part.whole.own)
        place = np.full(form.n, -1)
        place[self.own] = np.arange(len(self.own))
        self.inner = [part.whole.own[e.tail] & (e.ground | part.whole.own[e.head]) for e in form.edges]
        self.counted = [part.whole.own[e.tail] for e in form.edges]
        labels = [form.labels[i] for i in self.own.tolist()]
        space = Space({label: k for k, label in enumerate(labels)}, form.space.coordinates, form.space.penalised)
        samples = tuple(replace(block, node=place[block.node], n=len(labels)) for block in form.samples)
        masks = list(zip(form.edges, self.inner, self.counted, strict=True))
        edges = tuple(_within(edge, np.flatnonzero(inner), place, len(labels)) for edge, inner, _ in masks)
        self.inside = Form(space, (), samples, edges)
        cut = tuple(edge.part(np.flatnonzero(counted & ~inner)) for edge, inner, counted in masks)
        self.between = Form(form.space, (), (), cut)
        self.structure, self.structure_between = Structure(self.inside), Structure(self.between)
        nodes = tilted_nodes(self.inside)
        self._refuse(nodes)
        assert isinstance(nodes, QuadraticNodes)
        self.nodes = nodes

    def _refuse(self, nodes: object) -> None:
        """Where no bound can be had from parts alone."""
        if not isinstance(nodes, QuadraticNodes):
            raise MethodError(
                f"part {self.wire.me} has nodes that may not be strictly convex, or losses that are no squares; a "
                "certificate by parts needs squared losses with as many samples as features at each node, or a "
                "NodePenalty(SquaredL2())"
            )

    # ---- looks -------------------------------------------------------------------------------------------------------
    def look(self, w: Array, flows: tuple[Array, ...]) -> JointLook:
        """What parameters (n, d), known at neighbours, too, and flows are worth."""
        form, clipped = self.part.form, list(flows)
        for k, edge in enumerate(form.edges):
            if not follows(edge):
                clipped[k] = (1.0 - SHRUNK) * edge.clip(flows[k])
        g = self._pull(clipped, all_of_them=True)[0]
        mine = w[self.own]
        at = self.nodes.minimisers(g, mine)
        gap = float(np.sum(self.nodes.divergence(mine, at, g)))
        primal = float(np.sum(self.nodes.value(mine)))
        for k, edge in enumerate(form.edges):
            if follows(edge):
                continue
            some = edge.part(np.flatnonzero(self.counted[k]))
            u, z = clipped[k][self.counted[k]], some.difference(w)
            value = float(some.weight @ some.penalty.value(z))
            primal += value
            gap += value + float(some.conjugates(u).sum()) - float(np.vdot(u, z))
        total = self._every(np.array([gap, primal])).sum(axis=0)
        return JointLook(w, tuple(clipped), at, float(total[0]), float(total[1]))

    def _pull(self, flows: list[Array], all_of_them: bool) -> tuple[Array, Array]:
        """What flows take from the own nodes, those between parts or all that are given; and a bound of its error."""
        form = self.part.form
        value, size = np.zeros((2, len(self.own), form.d))
        for k, edge in enumerate(form.edges):
            if follows(edge):
                continue
            part, u, columns = edge, flows[k], edge.columns(form.d)
            if not all_of_them:
                cut = np.flatnonzero(~self.inner[k])
                part, u = edge.part(cut), u[cut]
            ends = [(part.tail, u)] + ([] if edge.ground else [(part.head, -u)])
            for node, each in ends:
                out = np.zeros((2, form.n, len(columns)))
                np.add.at(out[0], node, each)
                np.add.at(out[1], node, np.abs(each))
                value[:, columns] += out[0][self.own]
                size[:, columns] += out[1][self.own]
        degree = np.zeros(form.n)
        for edge in form.edges:
            for node in (edge.tail,) if edge.ground else (edge.tail, edge.head):
                degree += np.bincount(node, minlength=form.n)
        return value, EPS * (degree[self.own, None] + 2.0) * size

    # ---- proofs ------------------------------------------------------------------------------------------------------
    def prove(self, look: JointLook) -> tuple[float, float]:
        """Not more than the optimum, and not less than P(w), of the whole."""
        lower = self._lower(look) if self._shared(look.flows) else np.nan
        each = self._every(np.array([lower, self._upper(look.w)]))
        low, high = (math.fsum(each[:, k]) for k in (0, 1))
        if not (np.isfinite(low) and np.isfinite(high)):
            return (low if np.isfinite(low) else -np.inf), (high if np.isfinite(high) else np.inf)
        return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))

    def _shared(self, flows: tuple[Array, ...]) -> bool:
        """Whether the other parts have the very flows that this one has on the edges between them."""
        digests = {k: list[int]() for k in range(self.wire.count)}
        for edge, inner, u in zip(self.part.form.edges, self.inner, flows, strict=True):
            cut = np.flatnonzero(~inner & ~np.full(len(inner), edge.ground))
            far = np.where(self.part.whole.own[edge.tail[cut]], edge.head[cut], edge.tail[cut])
            for k in np.unique(self.owner[far]).tolist():
                digests[k].append(_digest(u[cut[self.owner[far] == k]]))
        got = everyone(self.wire, {k: np.array(values, dtype=np.int64) for k, values in digests.items()})
        return all(got[k].tolist() == values for k, values in digests.items())

    def _upper(self, w: Array) -> float:
        inside = upper_bound(self.inside, w[self.own], self.structure.designs)
        return float(np.nextafter(inside + upper_bound(self.between, w, self.structure_between.designs), np.inf))

    def _lower(self, look: JointLook) -> float:
        inside = tuple(u[mask] for u, mask in zip(look.flows, self.inner, strict=True))
        outside = self._pull(list(look.flows), all_of_them=False)
        slope = self.inside.conservation(self._point(inside, look.at)) + outside[0]
        at = self.nodes.corrected(look.at, slope)
        found = proved(self.inside, self.structure, self.nodes, self._point(inside, at), at, outside)
        if found is None:
            return -np.inf
        cut = tuple(u[mask & ~inner] for u, mask, inner in zip(look.flows, self.counted, self.inner, strict=True))
        nothing = tuple(np.zeros(u.shape) for u in cut)
        between = box_value(self.between, self.structure_between, Box(cut, nothing, (), ()))
        values = [*found.lower.tolist(), *between.lower.tolist()]
        low = math.fsum(values) if np.isfinite(values).all() else -np.inf
        return float(np.nextafter(low, -np.inf))

    def _point(self, flows: tuple[Array, ...], at: Array) -> DualPoint:
        """Flows, and the prices that are gradients at w."""
        pairs = zip(self.inside.edges, flows, strict=True)
        taken = tuple(edge.gradients(at) if follows(edge) else u for edge, u in pairs)
        return DualPoint(taken, self.inside.gradient_prices(at))

    def _every(self, values: Array) -> Array:
        """The numbers of all parts, (count, k)."""
        out = np.zeros((self.wire.count, len(values)))
        out[self.wire.me] = np.where(np.isfinite(values), values, 0.0)
        bad = np.zeros(out.shape)
        bad[self.wire.me] = ~np.isfinite(values)
        out, bad = self.wire.total(out), self.wire.total(bad)
        return np.where(bad > 0.0, np.nan, out)


def _digest(values: Array) -> int:
    return int.from_bytes(blake2b(np.ascontiguousarray(values).tobytes(), digest_size=7).digest(), "big")


def _within(edge: EdgeBlock, rows: Array, place: Array, n: int) -> EdgeBlock:
    part = edge.part(rows)
    head = part.head if edge.ground else place[part.head]
    return replace(part, tail=place[part.tail], head=head, n=n)
