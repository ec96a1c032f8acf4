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
from operator import itemgetter

import numpy as np

from ...form import DualPoint, EdgeBlock, Form
from ...network import Passes, kernels
from ...terms import Array, adjoint_of
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import AbstractNorm, row_norm
from .shifted_duals import ShiftedDuals, follows, shifted_duals

# ---- by how much a point misses Fenchel-Young, of which nothing is proved -------------------------------------------
Prices = tuple[Array, ...]


def held_by_samples(form: Form, w: Array, prices: Prices | None) -> tuple[Prices, float, float, Array]:
    """Prices within their domains, of smooth losses the gradients at w, whose residuals are 0; the losses' values, the
    sum of the residuals ``l(x) + l*(a) - <a, x>``, and X'a (n, d)."""
    taken, value, held, rho = list[Array](), 0.0, 0.0, np.zeros(form.shape)
    for k, block in enumerate(form.samples):
        x, s = block.predict(w), block.scale
        each = float(s @ block.loss.value(x, block.y))
        value += each
        if prices is None or (isinstance(block.loss, AbstractSmoothLoss) and block.map.noun == "sample"):
            a = block.scaled(block.loss.gradient(x, block.y))
        else:
            # at the ends of their domains, from where rounding may have moved them
            a = block.clip(prices[k])
            held += each + float(block.conjugates(a).sum()) - float(np.vdot(a, x))
        block.add_adjoint(a, rho)
        taken.append(a)
    return tuple(taken), value, held, rho


def held_by_edges(edge: EdgeBlock, w: Array, u: Array) -> tuple[float, float]:
    """The same two sums of edges with flows u inside their domains."""
    z = edge.difference(w)
    value = float(edge.weight @ edge.penalty.value(z))
    return value, value + float(edge.conjugates(u).sum()) - float(np.vdot(u, z))


def left_within_ball(w: Array, rho: Array) -> float:
    """What an imbalance rho costs at most where ||w_i|| grow to twice their largest:
    ``sum_i (<rho_i, w_i> + R ||rho_i||)``."""
    return 2.0 * float(row_norm(w).max(initial=0.0)) * float(row_norm(rho).sum()) + float(np.vdot(rho, w))


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
            self.passes.add_adjoint(self.u, g)
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
AS_GIVEN = 1e-9  # of flows: what they may differ by and be the same
SHARE = 0.1  # of the gap: if nodes hold less of it, a repair could gain no more than that


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

    @property
    def repairable(self) -> bool:
        """True where a repair, which changes the flows a little for other prices, might find a better bound: it leaves
        what the edges hold."""
        return self.nodes > SHARE * self.gap


class FlowDual:
    """The dual function of the flows of one form."""

    def __init__(self, form: Form, nodes: ShiftedDuals) -> None:
        self.form, self.nodes = form, nodes
        self.free = tuple(k for k, edge in enumerate(form.edges) if not follows(edge))  # whose flows are given

    @classmethod
    def of(cls, form: Form) -> FlowDual | None:
        """None where some node may not be strictly convex."""
        nodes = shifted_duals(form)
        return None if nodes is None else cls(form, nodes)

    def cheap_bound(self, points: Sequence[Array], flows: tuple[Array, ...], fast: bool = False) -> CheapBound | None:
        """The best of the points (n, d), which satisfy all constraints; None where a node's minimum was not found.
        Compiled where that is ``fast``."""
        given = [GivenEdges.of(self.form.edges[k], flows[k], fast) for k in self.free]
        g, fixed = np.zeros(self.form.shape), 0.0
        for edges in given:
            fixed += edges.pull(g)
        at = self.nodes.minimisers(g, points[0])
        if at is None:
            return None
        found = list[tuple[float, float, float, Array]]()
        for w in points:
            each = [edges.residual(w) for edges in given]
            held, nodes = fixed + sum([residual for _, residual in each]), self.nodes.divergence(w, at, g)
            found.append((held + nodes, nodes, sum([value for value, _ in each]), w))
        gap, nodes, value, w = min(found, key=itemgetter(0))
        return CheapBound(self, flows, w, at, gap, nodes, value + self.nodes.value(w))

    def inside(self, flows: Sequence[Array]) -> tuple[Array, ...]:
        """Flows inside their domains."""
        out = [*flows]
        for k in self.free:
            out[k] = self.form.edges[k].clip(flows[k])
            out[k] *= 1.0 - SHRUNK
        return tuple(out)

    def point(self, cheap: CheapBound) -> tuple[DualPoint, Array | None]:
        """Flows and prices, conserved but for rounding; and the parameters whose gradients these are, where the bound
        can be proved by them."""
        return self.near(cheap.flows, cheap.at)

    def near(self, flows: Sequence[Array], at: Array, outside: Array | float = 0.0) -> tuple[DualPoint, Array | None]:
        """The same from flows and from parameters near the minimisers that they lead to, where something ``outside``
        is taken from the nodes, too."""
        w = self.nodes.corrected(at, self.form.conservation(self._at(flows, at)) + outside)
        return self._at(flows, w), None if self.nodes.inverse is None else w

    def _at(self, flows: Sequence[Array], w: Array) -> DualPoint:
        taken = [edge.gradients(w) if follows(edge) else u for edge, u in zip(self.form.edges, flows, strict=True)]
        return DualPoint(tuple(taken), self.form.gradient_prices(w))


def with_best_prices(
    form: Form, dual: FlowDual | None, flows: tuple[Array, ...], w: Array
) -> tuple[DualPoint, Array | None] | None:
    """Flows as they are with the best prices for them, found from w; None where these are not known. Flows of smooth
    penalties at nodes are given, too, unless they are the best for the others."""
    cheap = None if dual is None else dual.cheap_bound([w], flows)
    follow = [k for k, edge in enumerate(form.edges) if follows(edge)]
    if cheap is not None:
        best = cheap.dual.point(cheap)
        if all(np.allclose(flows[k], best[0].flows[k], AS_GIVEN, AS_GIVEN) for k in follow):
            return best
    others = [k for k in range(len(flows)) if k not in follow]
    plain = FlowDual.of(replace(form, edges=tuple(form.edges[k] for k in others))) if follow else None
    at = None if plain is None else plain.nodes.minimisers(adjoint_of(form.edges, flows, w.shape), w)
    if plain is None or at is None:
        return None
    outside = adjoint_of([form.edges[k] for k in follow], [flows[k] for k in follow], w.shape)
    return DualPoint(flows, plain.near([flows[k] for k in others], at, outside)[0].prices), None
