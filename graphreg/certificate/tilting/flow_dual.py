"""What flows are worth at once, where every node is strictly convex: no screen and no repair is needed.

With h_i the losses of node i and its smooth ground edges, and g_i = (K'u)_i what the flows of all other edges take,

    Q(u) = sum_i min over w of (h_i(w) + <g_i, w>)  -  sum_e c_e phi_e*(u_e / c_e) + <u_e, center_e>.

At the minimisers w(u) the gradients of h_i are -g_i: as prices and ground flows they are conserved by construction. And

    P(w) - Q(u) = sum_e FY_e(Kw, u)  +  sum_i D_i(w, w(u)),

edge by edge and node by node at least 0, with the Bregman divergences D_i of h_i: however large P is, nothing cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...form import DualPoint, Form
from ...terms import Array
from ...terms.penalties import AbstractNorm, row_norm
from ..enclosure.enclosed import Enclosed
from ..enclosure.structure import Structure
from .nodes import AbstractTiltedNodes, QuadraticNodes, follows, tilted_nodes
from .proved import proved

SHARE = 0.1  # of the gap: if nodes hold less of it, a repair could gain no more than that


@dataclass(frozen=True)
class Look:
    """The best of some parameters against some flows, as computed: nothing is proved.

    ``at`` are the minimisers w(u), ``gap`` is P(w) - Q(u), ``nodes`` what of it the nodes hold, and ``primal`` is P(w).
    ``screen`` is the gap with the prices of w instead, within a ball (see `Certifier.screen`).
    """

    w: Array
    flows: tuple[Array, ...]
    at: Array
    gap: float
    nodes: float
    primal: float
    screen: float

    @property
    def repairable(self) -> bool:
        """Whether a repair, which changes the flows a little for other prices, might find a better bound: it leaves
        what the edges hold."""
        return self.nodes > SHARE * self.gap


class FlowDual:
    """The dual function of the flows of one form."""

    def __init__(self, form: Form, nodes: AbstractTiltedNodes) -> None:
        self.form, self.nodes = form, nodes
        self.free = tuple(k for k, edge in enumerate(form.edges) if not follows(edge))  # whose flows are given

    @classmethod
    def of(cls, form: Form) -> FlowDual | None:
        """None where some node may not be strictly convex."""
        nodes = tilted_nodes(form)
        return None if nodes is None else cls(form, nodes)

    def look(self, points: Sequence[Array], flows: tuple[Array, ...]) -> Look | None:
        """The best of the points (n, d), which satisfy all constraints; None where a node's minimum was not found."""
        form, g, clipped, fixed = self.form, np.zeros(self.form.shape), list(flows), 0.0
        for k in self.free:
            edge = form.edges[k]
            clipped[k] = u = edge.clip(flows[k])
            edge.add_adjoint(u, g)
            if not isinstance(edge.penalty, AbstractNorm):
                fixed += float(edge.conjugates(u).sum())
        at = self.nodes.minimisers(g, points[0])
        if at is None:
            return None
        found = [(*self._edges(w, clipped), w) for w in points]
        each = [(fixed + edges, float(self.nodes.divergence(w, at, g).sum())) for _, edges, w in found]
        best = int(np.argmin([sum(pair) for pair in each]))
        (values, _, w), (edges, nodes) = found[best], each[best]
        rho = self.nodes.slope(w, at, g)
        screen = edges + 2.0 * float(row_norm(w).max(initial=0.0) * row_norm(rho).sum()) + float(np.vdot(rho, w))
        primal = values + float(self.nodes.value(w).sum())
        return Look(w, tuple(clipped), at, edges + nodes, nodes, primal, screen)

    def _edges(self, w: Array, flows: Sequence[Array]) -> tuple[float, float]:
        """sum c phi of the edges whose flows are given, and that less <u, Kw - center>."""
        values = moved = 0.0
        for k in self.free:
            edge = self.form.edges[k]
            z = edge.difference(w)
            values += float(edge.weight @ edge.penalty.value(z))
            moved += float(np.vdot(flows[k], z))
        return values, values - moved

    def point(self, look: Look) -> tuple[DualPoint, Array | None]:
        """Flows and prices, conserved but for rounding; and the parameters whose gradients these are, where the bound
        can be proved by them."""
        return self.near(look.flows, look.at)

    def near(self, flows: Sequence[Array], at: Array) -> tuple[DualPoint, Array | None]:
        """The same from flows and from parameters near the minimisers that they lead to."""
        w = self.nodes.corrected(at, self.form.conservation(self._at(flows, at)))
        return self._at(flows, w), w if isinstance(self.nodes, QuadraticNodes) else None

    def proved(self, structure: Structure, point: DualPoint, at: Array) -> Enclosed | None:
        """The bound that follows from such a point; None where it is to be enclosed instead."""
        return proved(self.form, structure, self.nodes, point, at) if isinstance(self.nodes, QuadraticNodes) else None

    def _at(self, flows: Sequence[Array], w: Array) -> DualPoint:
        taken = [edge.gradients(w) if follows(edge) else u for edge, u in zip(self.form.edges, flows, strict=True)]
        return DualPoint(tuple(taken), self.form.gradient_prices(w))
