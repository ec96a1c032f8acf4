"""The certificate by parts: each part bounds its own share from either side.

P is a sum over parts, of their own nodes and of the edges whose tails these are, or rows whose owners. With the flows
on the edges between parts as they are, which all ends know alike, the dual problem comes apart, too. With E_p the edges
within part p,

    P*  >=  sum_p min over w of ( sum_{i in p} h_i(w_i) + <g_i, w_i>  +  sum_{e in E_p} c_e phi_e((Kw)_e - center_e) )
            -  sum_{e between parts} c_e phi_e*(u_e / c_e) + <u_e, center_e>,

where g_i is what the flows between parts take from node i. Each summand is bounded where its data are (see `lower`),
and the sums of these bounds bound the whole.
"""

from __future__ import annotations

import math

import numpy as np

from ...certificate import (
    FlowDual,
    SpotChecks,
    feasible,
    follows,
    held_by_edges,
    held_by_samples,
    left_within_ball,
    summands_of,
    upper_bound,
)
from ...errors import MethodError
from ...form import DualPoint, Form
from ...network import LocalView
from ...terms import Array, Space
from ...terms.penalties import AbstractConstraint
from .border import Border
from .engine import PartEngine
from .lower import JointBound, LowerBound
from .part import lines_of, shared_flows, with_owners
from .wire import digest, everyone

SHRUNK = 1e-13  # by so much flows are shrunk: clipped ones may be rounded out of their domains


class PartBounds:
    """The bounds of one part."""

    def __init__(self, engine: PartEngine, owner: Array) -> None:
        part, form = engine.part, engine.part.form
        self.part, self.owner, self.wire = part, owner, engine.wire
        self.own = np.flatnonzero(part.whole.own)
        place = np.full(form.n, -1)
        place[self.own] = np.arange(len(self.own))
        self.counted = [part.whole.own[e.map.owner] for e in form.edges]
        self.inner = [mine & e.map.within(part.whole.own) for e, mine in zip(form.edges, self.counted, strict=True)]
        _refuse(form, self.inner)
        self.engine, self.kept = engine, LocalView(form, engine, 0, part.whole).kept
        self.shared = shared_flows(with_owners(part), owner)
        labels = [form.labels[i] for i in self.own.tolist()]
        space = Space({label: k for k, label in enumerate(labels)}, form.space.coordinates, form.space.penalised)
        samples = tuple(block.moved(place, len(labels)) for block in form.samples)
        masks = list(zip(form.edges, self.inner, self.counted, strict=True))
        edges = tuple(edge.part(np.flatnonzero(inner)).moved(place, len(labels)) for edge, inner, _ in masks)
        self.inside = Form(space, (), samples, edges)
        cut = tuple(edge.part(np.flatnonzero(counted & ~inner)) for edge, inner, counted in masks)
        self.between = Form(form.space, (), (), cut)
        self.written = [summands_of(form) for form in (self.inside, self.between)]
        self.dual = FlowDual.of(self.inside)
        border = Border.of(engine, owner, place, self.inner)
        self.lower = LowerBound(self.inside, self.dual, border, self.inner)
        self.checks = [SpotChecks(each) for each in (self.inside, self.between)]

    # ---- looks -------------------------------------------------------------------------------------------------------
    def feasible(self, w: Array) -> Array:
        """Parameters (n, d) whose own rows are in the sets of the nodes' constraints."""
        out = w.copy()
        out[self.own] = feasible(self.inside, w[self.own])
        return out

    def cheap_bound(self, w: Array, flows: tuple[Array, ...], prices: tuple[Array, ...] | None) -> JointBound:
        """The worth of parameters (n, d), known at neighbours, too, of flows and of prices."""
        form, clipped = self.part.form, list(flows)
        for k, (edge, (some, kept)) in enumerate(zip(form.edges, self.kept, strict=True)):
            if not follows(edge):  # of fewer numbers than coordinates: shrunk they would not be so any more
                shrunk = 1.0 - SHRUNK if edge.penalty.composed() is None else 1.0
                clipped[k] = np.zeros(flows[k].shape)
                clipped[k][kept] = shrunk * some.clip(flows[k][kept])
        self.engine.passed(lines_of(clipped), self.shared, lines_of(clipped))  # of rows the owners' are taken
        at, priced, gap, primal = self._at_nodes(w[self.own], clipped, prices)
        for k, edge in enumerate(form.edges):
            if follows(edge):
                continue
            some = edge.part(np.flatnonzero(self.counted[k]))
            value, held = held_by_edges(some, w, clipped[k][self.counted[k]])
            primal, gap = primal + value, gap + held
        total = self._every(np.array([gap, primal])).sum(axis=0)
        gap = float(total[0]) if np.isfinite(total[0]) else np.inf
        return JointBound(w, tuple(clipped), at, priced, gap, float(total[1]))

    def _at_nodes(
        self, w: Array, flows: list[Array], prices: tuple[Array, ...] | None
    ) -> tuple[Array | None, tuple[Array, ...], float, float]:
        """The minimisers at the own nodes, or their prices, and what these nodes have of the gap and of P."""
        taken = np.zeros(self.part.form.shape)
        for edge, u in zip(self.part.form.edges, flows, strict=True):
            if not follows(edge):
                edge.add_adjoint(u, taken)
        pull = taken[self.own]
        if self.dual is not None and (at := self.dual.nodes.minimisers(pull, w)) is not None:
            return at, (), self.dual.nodes.divergence(w, at, pull), self.dual.nodes.value(w)
        priced, primal, gap, rho = held_by_samples(self.inside, w, prices)
        pull += rho
        for edge in self.inside.edges:
            if follows(edge):
                primal += float(edge.values(w).sum())
                edge.add_adjoint(edge.gradients(w), pull)
        gap += left_within_ball(w, pull)
        return None, priced, abs(gap), primal

    # ---- proofs ------------------------------------------------------------------------------------------------------
    def prove(self, cheap: JointBound) -> tuple[float, float]:
        """Not more than the optimum, and not less than P(w), of the whole."""
        shared = self._every(np.array([float(self._shared(cheap.flows))]))
        lower, t = self.lower(cheap) if shared.all() else (np.nan, 0.0)
        above, below = self._charges(cheap, 1.0 - t)
        each = self._every(np.array([lower - below, self._upper(cheap.w) + above]))
        low, high = (math.fsum(each[:, k]) for k in (0, 1))
        if not (np.isfinite(low) and np.isfinite(high)):
            return (low if np.isfinite(low) else -np.inf), (high if np.isfinite(high) else np.inf)
        return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))

    def _shared(self, flows: tuple[Array, ...]) -> bool:
        """True where the other parts have the very flows that this one has on the edges between them."""
        digests = {k: list[int]() for k in range(self.wire.count)}
        for edge, inner, u in zip(self.part.form.edges, self.inner, flows, strict=True):
            if edge.map.noun != "edge":  # of rows all have those of their owners
                continue
            cut = np.flatnonzero(~inner)
            far = np.where(self.part.whole.own[edge.tail[cut]], edge.head[cut], edge.tail[cut])
            for k in np.unique(self.owner[far]).tolist():
                digests[k].append(digest(u[cut[self.owner[far] == k]].tobytes()))
        got = everyone(self.wire, {k: np.array(values, dtype=np.int64) for k, values in digests.items()})
        return all(got[k].tolist() == values for k, values in digests.items())

    def _upper(self, w: Array) -> float:
        inside, between = self.written
        found = upper_bound(self.inside, w[self.own], inside) + upper_bound(self.between, w, between)
        return float(np.nextafter(found, np.inf))

    def _charges(self, cheap: JointBound, s: float) -> tuple[float, float]:
        """The charges of the user's terms on the upper and on the lower bound, this with s times the flows; infinite
        where they contradict themselves."""
        above = below = 0.0
        cut = [counted & ~inner for counted, inner in zip(self.counted, self.inner, strict=True)]
        points = ((cheap.w[self.own], self.inner), (cheap.w, cut))
        for checks, (w, masks) in zip(self.checks, points, strict=True):
            if checks:
                flows = tuple(s * u[mask] for u, mask in zip(cheap.flows, masks, strict=True))
                checks(w, DualPoint(flows, checks.form.gradient_prices(w)))
                above, below = above + checks.above, below + (np.inf if checks.contradiction else checks.below)
        return above, below

    def _every(self, values: Array) -> Array:
        """The numbers of all parts, (count, k)."""
        out = np.zeros((self.wire.count, len(values)))
        out[self.wire.me] = np.where(np.isfinite(values), values, 0.0)
        bad = np.zeros(out.shape)
        bad[self.wire.me] = ~np.isfinite(values)
        out, bad = self.wire.total(out), self.wire.total(bad)
        return np.where(bad > 0.0, np.nan, out)


def _refuse(form: Form, inner: list[Array]) -> None:
    """Penalties on edges between parts whose flows say nothing by themselves."""
    for edge, inside in zip(form.edges, inner, strict=True):
        if edge.map.noun == "node" or inside.all():
            continue
        why = ""
        if isinstance(edge.penalty, AbstractConstraint):
            why = "is a constraint, which no part can satisfy alone"
        elif edge.penalty.composed() is not None:
            why = "acts on fewer numbers than there are coordinates, which rounded flows do not"
        if why:
            raise MethodError(
                f"{edge.name} on edges between parts {why}; give both ends of such edges to one part, or solve the "
                "problem on one machine"
            )
