"""The dual function of the flows, where every node is strictly convex: no screen and no repair is needed.

With h_i the losses of node i and its smooth ground edges, and g_i = (K'u)_i what the flows of all other edges take,

    Q(u) = sum_i min over w of (h_i(w) + <g_i, w>)  -  sum_e c_e phi_e*(u_e / c_e) + <u_e, center_e>.

At the minimisers w(u) the gradients of h_i are -g_i: as prices and ground flows they are conserved by construction. And

    P(w) - Q(u) = sum_e FY_e(Kw, u)  +  sum_i D_i(w, w(u)),

edge by edge and node by node at least 0, with the Bregman divergences D_i of h_i: however large P is, nothing cancels.

Where every h_i is quadratic, squares absorb what flows and parameters near these minimisers leave (see
`graphreg.certificate.kernel.squares`): a lower bound at the price of a round or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...form import DualPoint, EdgeBlock, Form
from ...network import Passes, kernels
from ...terms import Array
from ...terms.penalties import AbstractNorm
from ..screening import left_within_ball
from .tilted_nodes import TiltedNodes, follows, tilted_nodes


# ---- edges whose flows are given -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class GivenEdges:
    """A block of edges and its flows, inside their domains; ``passes`` where compiled code takes it."""

    edge: EdgeBlock
    u: Array
    passes: Passes | None

    @staticmethod
    def of(edge: EdgeBlock, u: Array, fast: bool) -> GivenEdges:
        """Compiled where that is ``fast``, and can be."""
        compiled = kernels() if fast else None
        passes = None if compiled is None else compiled.edge_passes(edge, u.shape[1])
        return GivenEdges(edge, edge.clip(u) if passes is None else u, passes)

    def pull(self, g: Array) -> float:
        """K'u is added to g (n, d); and sum c phi*(u / c)."""
        if self.passes is not None:
            self.passes.pull(self.u, g)
            return 0.0
        self.edge.add_adjoint(self.u, g)
        return 0.0 if isinstance(self.edge.penalty, AbstractNorm) else float(self.edge.conjugates(self.u).sum())

    def residual(self, w: Array) -> tuple[float, float]:
        """sum c phi(z), and the sum of c phi(z) - <u, z>, z = Kw - center."""
        if self.passes is not None:
            return self.passes.residual(w, self.u)
        z = self.edge.difference(w)
        value = float(self.edge.weight @ self.edge.penalty.value(z))
        return value, value - float(np.vdot(self.u, z))


# ---- the dual function, as computed ----------------------------------------------------------------------------------
SHRUNK = 1e-13  # by so much flows are shrunk: clipped ones may be rounded out of their domains
SHARE = 0.1  # of the gap: if nodes hold less of it, a repair could gain no more than that


def _inside(edge: EdgeBlock, u: Array) -> Array:
    clipped = edge.clip(u)
    clipped *= 1.0 - SHRUNK
    return clipped


@dataclass(frozen=True)
class CheapBound:
    """The best of some parameters against some flows, as computed: nothing is proved.

    ``at`` are the minimisers w(u), ``gap`` is P(w) - Q(u), ``nodes`` what of it the nodes hold, and ``primal`` is P(w).
    """

    dual: FlowDual
    given: tuple[Array, ...]
    w: Array
    at: Array
    gap: float
    nodes: float
    primal: float

    @cached_property
    def flows(self) -> tuple[Array, ...]:
        """Those given, inside their domains."""
        return self.dual.inside(self.given)

    @cached_property
    def screen(self) -> float:
        """The gap with the prices of w instead, within a ball (see `Certifier.screen`)."""
        return self.gap - self.nodes + left_within_ball(self.w, self.dual.slope(self))

    @property
    def repairable(self) -> bool:
        """True where a repair, which changes the flows a little for other prices, might find a better bound: it leaves
        what the edges hold."""
        return self.nodes > SHARE * self.gap


class FlowDual:
    """The dual function of the flows of one form."""

    def __init__(self, form: Form, nodes: TiltedNodes) -> None:
        self.form, self.nodes = form, nodes
        self.free = tuple(k for k, edge in enumerate(form.edges) if not follows(edge))  # whose flows are given

    @classmethod
    def of(cls, form: Form) -> FlowDual | None:
        """None where some node may not be strictly convex."""
        nodes = tilted_nodes(form)
        return None if nodes is None else cls(form, nodes)

    def cheap_bound(self, points: Sequence[Array], flows: tuple[Array, ...], fast: bool = False) -> CheapBound | None:
        """The best of the points (n, d), which satisfy all constraints; None where a node's minimum was not found.
        Compiled where that is ``fast``."""
        given = [GivenEdges.of(self.form.edges[k], flows[k], fast) for k in self.free]
        g, fixed = np.zeros(self.form.shape), 0.0
        for edges in given:
            fixed += edges.pull(g)
        at = self.nodes.minimisers(g, points[0], fast)
        if at is None:
            return None
        best: CheapBound | None = None
        for w in points:
            each = [edges.residual(w) for edges in given]
            held, nodes = fixed + sum(residual for _, residual in each), self.nodes.divergence(w, at, g, fast)
            if best is None or held + nodes < best.gap:
                best = CheapBound(self, flows, w, at, held + nodes, nodes, sum(value for value, _ in each))
        assert best is not None  # there are points
        return replace(best, primal=best.primal + self.nodes.value(best.w, fast))

    def slope(self, cheap: CheapBound) -> Array:
        """The gradients of the tilted nodes at the parameters of a cheap."""
        g = np.zeros(self.form.shape)
        for k in self.free:
            self.form.edges[k].add_adjoint(cheap.flows[k], g)
        return self.nodes.slope(cheap.w, cheap.at, g)

    def inside(self, flows: Sequence[Array]) -> tuple[Array, ...]:
        """Flows inside their domains."""
        pairs = zip(self.form.edges, flows, strict=True)
        return tuple(u if follows(edge) else _inside(edge, u) for edge, u in pairs)

    def point(self, cheap: CheapBound) -> tuple[DualPoint, Array | None]:
        """Flows and prices, conserved but for rounding; and the parameters whose gradients these are, where the bound
        can be proved by them."""
        return self.near(cheap.flows, cheap.at)

    def near(self, flows: Sequence[Array], at: Array, outside: Array | float = 0.0) -> tuple[DualPoint, Array | None]:
        """The same from flows and from parameters near the minimisers that they lead to, where something ``outside``
        is taken from the nodes, too."""
        w = self.nodes.corrected(at, self.form.conservation(self._at(flows, at)) + outside)
        return self._at(flows, w), None if self.nodes.curvature is None else w

    def _at(self, flows: Sequence[Array], w: Array) -> DualPoint:
        taken = [edge.gradients(w) if follows(edge) else u for edge, u in zip(self.form.edges, flows, strict=True)]
        return DualPoint(tuple(taken), self.form.gradient_prices(w))
