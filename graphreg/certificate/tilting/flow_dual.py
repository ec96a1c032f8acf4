"""The dual function of the flows, where every node is strictly convex: no screen and no repair is needed.

With h_i the losses of node i and its smooth ground edges, and g_i = (K'u)_i what the flows of all other edges take,

    Q(u) = sum_i min over w of (h_i(w) + <g_i, w>)  -  sum_e c_e phi_e*(u_e / c_e) + <u_e, center_e>.

At the minimisers w(u) the gradients of h_i are -g_i: as prices and ground flows they are conserved by construction. And

    P(w) - Q(u) = sum_e FY_e(Kw, u)  +  sum_i D_i(w, w(u)),

edge by edge and node by node at least 0, with the Bregman divergences D_i of h_i: however large P is, nothing cancels.

Where every h_i is quadratic, flows and parameters near the minimisers that they lead to give a lower bound that is
valid whatever rounding did, at the price of a round or two. For any prices a, and any w, Fenchel's inequality and the
Hessian H_i of h_i give, with r_i = grad h_i(w_i) + g_i,

    min h_i + <g_i, .>  >=  sum_r <a_r, o_r> - s_r l_r*(a_r / s_r)  +  <X_i'a + g_i, w_i>  -  r_i'H_i^-1 r_i / 2,

summed with the edges' terms the dual value at (u, a), less how far it is from being conserved times w, less a square.
Near the minimisers both are rounding. The flows stay as they are: what is conserved exactly with them are the gradients
at the exact minimisers, which are as near as that square says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...form import DualPoint, EdgeBlock, Form
from ...network import Passes, edge_pulls, kernels
from ...terms import Array
from ...terms.penalties import AbstractNorm, AbstractPenalty, AbstractSmoothPenalty, row_norm
from ..enclosure.boxes import Box, Enclosed, box_value
from ..enclosure.plain import Balance
from ..enclosure.rows import SampleRows
from ..enclosure.structure import Structure
from ..enclosure.sums import DUST, EPS, MORE, Runs
from ..enclosure.upper import plain_residuals, sizes
from .nodes import AbstractTiltedNodes, QuadraticNodes, follows, tilted_nodes


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


def conservation(form: Form, point: DualPoint) -> Array:
    """K'u + X'a, (n, d), where edges are many without a matrix K."""
    out = np.zeros(form.shape)
    for block, a in zip(form.samples, point.prices, strict=True):
        out += block.adjoint(a, form.shape)
    for edge, u in zip(form.edges, point.flows, strict=True):
        found = edge_pulls(edge, u)
        if found is None:
            edge.add_adjoint(u, out)
        else:
            out[:, edge.coordinates] += found[0]
    return out


# ---- the lower bound that is proved ----------------------------------------------------------------------------------
def proved(
    form: Form,
    structure: Structure,
    nodes: QuadraticNodes,
    point: DualPoint,
    w: Array,
    outside: tuple[Array, Array] | None = None,
) -> Enclosed | None:
    """The bound from the flows and prices of a point, which are nearly the gradients at w; None where flows are stated
    by roots, or the curvature of a ground edge depends on the direction. What given flows on edges that are none of the
    form take from its nodes is ``outside`` (n, d), with a bound of its error."""
    ground = [edge for edge in form.edges if follows(edge)]
    known = bool((nodes.convexity > 0.0).all()) and all(map(_isotropic, ground))
    if structure.roots or not known or not np.isfinite(w).all():
        return None
    flows = tuple(edge.gradients(w) if follows(edge) else u for edge, u in zip(form.edges, point.flows, strict=True))
    cost, reach, off = _distances(form, structure, nodes, DualPoint(flows, point.prices), w, outside)
    spread = [np.zeros(u.shape) for u in flows]  # of each summand q of H_i, (q'v)^2 <= v'H_i v
    for k, edge in enumerate(form.edges):
        if follows(edge):
            root = np.sqrt(edge.weight * _bend(edge.penalty))
            spread[k] = (_rounding(edge, w) + (root * reach[edge.tail])[:, None]) * MORE
    for block, far in zip(form.samples, off, strict=True):
        for some in block.some():
            far[some] += block.column(np.sqrt(block.scale_of(some)) * reach[block.node[some]])
            far[some] *= MORE
    nothing = form.nothing()
    found = box_value(form, structure, Box(flows, nothing.flows, point.prices, nothing.prices))
    lost = Runs(form.component, form.n_components).sums(cost * MORE, plain=True)
    lost = (lost.high + np.abs(lost.low) + lost.error) * MORE
    lower = found.lower - lost
    lower = np.where(np.isfinite(lower), lower - EPS * (np.abs(lower) + lost), -np.inf)
    return Enclosed(lower, DualPoint(flows, point.prices), tuple(spread), found.why, found.inner, off)


def _distances(
    form: Form,
    structure: Structure,
    nodes: QuadraticNodes,
    point: DualPoint,
    w: Array,
    outside: tuple[Array, Array] | None,
) -> tuple[Array, Array, tuple[Array, ...]]:
    """The cost at each node of (u, a) not being conserved, nor w the minimiser, (n,); (v'H_i v)^1/2 at most for the
    way v from w to that, (n,); and how far prices are from the gradients at w."""
    balance, slope, away = Balance(form), np.zeros(form.shape), list[Array]()
    if outside is not None:
        balance.add(*outside)
    for block, design, a in zip(form.samples, structure.designs, point.prices, strict=True):
        rows, off, size = SampleRows(block, design, *form.shape), np.empty(a.shape), sizes(block, w, design)
        for some in block.some():
            s = block.column(block.scale_of(some))
            r, around = plain_residuals(block, w, size, some)
            off[some] = (s * (around + EPS * np.abs(r)) + np.abs(a[some] - s * r)) * MORE
        balance.add(*rows.plain_pull(a))
        slope += rows.most(off)
        away.append(off)
    for edge, u in zip(form.edges, point.flows, strict=True):
        balance.add_edges(edge, u)
        if follows(edge):
            slope[:, edge.coordinates] += abs(edge.transposed) @ _rounding(edge, w)
    left = (np.abs(balance.value) + balance.error) * MORE
    square = (((left + slope) * nodes.scale) ** 2).sum(axis=1) / nodes.convexity * MORE  # v'H_i v
    return (left * np.abs(w)).sum(axis=1) + 0.5 * square, np.sqrt(square) * MORE, tuple(away)


def _rounding(edge: EdgeBlock, w: Array) -> Array:
    """The distance of the gradients c L z at w, as they were computed, from exact ones, (m, k)."""
    z = edge.difference(w)
    return (4.0 * EPS * edge.weight[:, None] * _bend(edge.penalty)) * np.abs(z) + DUST * (z != 0.0)


def _bend(penalty: AbstractPenalty) -> float:
    return penalty.smoothness() if isinstance(penalty, AbstractSmoothPenalty) else np.inf


def _isotropic(edge: EdgeBlock) -> bool:
    """True where phi is L/2 ||z||^2, as ground edges mostly are."""
    return edge.penalty.strong_convexity() == _bend(edge.penalty)


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
        pairs = zip(self.dual.form.edges, self.given, strict=True)
        return tuple(u if follows(edge) else _inside(edge, u) for edge, u in pairs)

    @cached_property
    def screen(self) -> float:
        """The gap with the prices of w instead, within a ball (see `Certifier.screen`)."""
        rho = self.dual.slope(self)
        left = 2.0 * float(row_norm(self.w).max(initial=0.0) * row_norm(rho).sum()) + float(np.vdot(rho, self.w))
        return self.gap - self.nodes + left

    @property
    def repairable(self) -> bool:
        """True where a repair, which changes the flows a little for other prices, might find a better bound: it leaves
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

    def point(self, cheap: CheapBound) -> tuple[DualPoint, Array | None]:
        """Flows and prices, conserved but for rounding; and the parameters whose gradients these are, where the bound
        can be proved by them."""
        return self.near(cheap.flows, cheap.at)

    def near(self, flows: Sequence[Array], at: Array) -> tuple[DualPoint, Array | None]:
        """The same from flows and from parameters near the minimisers that they lead to."""
        w = self.nodes.corrected(at, conservation(self.form, self._at(flows, at)))
        return self._at(flows, w), w if isinstance(self.nodes, QuadraticNodes) else None

    def proved(self, structure: Structure, point: DualPoint, at: Array) -> Enclosed | None:
        """The bound that follows from such a point; None where it is to be enclosed instead."""
        return proved(self.form, structure, self.nodes, point, at) if isinstance(self.nodes, QuadraticNodes) else None

    def _at(self, flows: Sequence[Array], w: Array) -> DualPoint:
        taken = [edge.gradients(w) if follows(edge) else u for edge, u in zip(self.form.edges, flows, strict=True)]
        return DualPoint(tuple(taken), self.form.gradient_prices(w))
