"""The lower bound of a part's own problem: by the dual function of flows where its nodes are strictly convex (see
`graphreg.certificate.kernel.squares`), else next to prices that are repaired within the part.

Where what a part has cannot answer for some of its nodes, flows on edges to others give way (see `border`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...certificate import Enclosed, Enclosure, FlowDual, Pair, Repair, follows
from ...form import DualPoint, Form
from ...terms import Array
from .border import Border, Cut

# shares of the way to a point well inside all domains: few, since each is another proof on all parts
PULLS = (0.0, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
BALANCED = 1e-9  # of what flows through the nodes: an imbalance that needs no repair before it is enclosed


@dataclass(frozen=True)
class JointBound:
    """The worth of some parameters and flows, as computed; nothing is proved. ``w`` (n, d) and flows are the part's,
    ``at`` are the minimisers at its own nodes, None where these are not strictly convex, and ``prices`` those of its
    samples then; ``gap`` and ``primal`` are those of the whole."""

    w: Array
    flows: tuple[Array, ...]
    at: Array | None
    prices: tuple[Array, ...]
    gap: float
    primal: float


class LowerBound:
    """The lower bounds of one part, whose own problem is ``inside``; the edges ``inner`` (masks per block) lead to no
    other part."""

    def __init__(self, inside: Form, dual: FlowDual | None, border: Border, inner: list[Array]) -> None:
        self.inside, self.dual, self.border, self.inner = inside, dual, border, inner
        self.still = [np.zeros(len(cut.rows), dtype=bool) for cut in border.cuts]  # no edge is a way
        self.why = ""  # there is no bound, as of the last call
        self._enclosure: Enclosure | None = None

    def __call__(self, cheap: JointBound) -> tuple[float, float]:
        """The part's share, and by how much the flows were shrunk for it; all parts call it alike.

        Where no bound is found next to the point, it is pulled towards one well inside all domains: with t the same for
        all parts, which scale the flows between them by 1 - t.
        """
        point, lower, t = self._started(cheap), -np.inf, 0.0
        for t in PULLS:
            there, flows = self._pulled(point, t), [(1.0 - t) * u for u in cheap.flows]
            lower, lost = self._next_to(cheap, there, flows, self.still, 0)
            if not self._anywhere(not np.isfinite(lower)):
                break
            ways, most = self.border.ways(lost, flows, self.inside.component)
            if most:
                lower, _ = self._next_to(cheap, there, flows, ways, most)
                if not self._anywhere(not np.isfinite(lower)):
                    break
        return lower, t

    def _anywhere(self, here: bool) -> bool:
        return bool(self.border.engine.wire.largest(np.array([float(here)]))[0])

    def _next_to(
        self, cheap: JointBound, point: DualPoint, flows: list[Array], ways: list[Array], most: int
    ) -> tuple[float, Array]:
        """The bound next to a point, and the components without one; flows along ``ways`` move, of which ``most`` lead
        on from one part to the next."""
        held, spread, settled = flows, [np.zeros(u.shape) for u in flows], most == 0
        found = self._enclosed(cheap, point, held, self.border.adjoint(held, spread, ways), ways)
        for _ in range(most + 2 if most else 0):  # what a way leads to needs to know what comes along it
            new = self._moved(found, held, spread, ways)
            same = all(np.array_equal(a, b) for a, b in zip((*held, *spread), (*new[0], *new[1]), strict=True))
            settled = not self._anywhere(not same)
            if settled:
                break
            held, spread = new
            found = self._enclosed(cheap, point, flows, self.border.adjoint(held, spread, ways), ways)
        self.why = found.why
        values = [*found.lower.tolist(), *self._between(flows, ways)]
        low = math.fsum(values) if settled and np.isfinite(values).all() else -np.inf
        return float(np.nextafter(low, -np.inf)), ~np.isfinite(found.lower)

    @cached_property
    def _middle(self) -> DualPoint:
        """A point of the part's own problem well inside all domains, where nothing flows to other parts; 0 where none
        is found."""
        repair = Repair(self.inside)
        repair.size = 1.0
        found = repair.center
        known = repair.slater is not False and all(np.isfinite(x).all() for x in (*found.flows, *found.prices))
        return found if known else self.inside.nothing()

    def _pulled(self, point: DualPoint, t: float) -> DualPoint:
        middle = self._middle if t else point
        return self.inside.mapped(lambda _, x, y: x + t * (y - x), point, middle)

    def _started(self, cheap: JointBound) -> DualPoint:
        """Flows and prices of the own problem, conserved as far as it can by itself and rounding lets it."""
        inside, form = tuple(u[mask] for u, mask in zip(cheap.flows, self.inner, strict=True)), self.inside
        outside = self.border.adjoint(cheap.flows, [np.zeros(u.shape) for u in cheap.flows], self.still).high
        if self.dual is not None and cheap.at is not None:
            return self.dual.near(inside, cheap.at, outside)[0]
        w, repair = cheap.w[self.border.own], Repair(form, outside if outside.any() else None)
        taken = tuple(e.gradients(w) if follows(e) else u for e, u in zip(form.edges, inside, strict=True))
        point = DualPoint(taken, cheap.prices)
        return repair(w, point) if repair.unbalance(point) > BALANCED * repair.throughput(point) else point

    def _enclosed(
        self, cheap: JointBound, point: DualPoint, flows: list[Array], outside: Pair, ways: list[Array]
    ) -> Enclosed:
        """The minimum of the own problem, from below, where flows on the edges of some ``ways`` may move."""
        if some := self._some(ways):
            leave = [cut.sign[way, None] * flows[j][cut.rows[way]] for j, cut, way in some]
            ground = [self.border.to_the_ground(cut, way) for _, cut, way in some]
            form = replace(self.inside, edges=(*self.inside.edges, *ground))
            return Enclosure(form, outside=outside)(DualPoint((*point.flows, *leave), point.prices))
        self._enclosure = Enclosure(self.inside, self._enclosure, outside)
        if self.dual is not None and cheap.at is not None:
            near, at = self.dual.near(point.flows, cheap.at, outside.high)
            found = None if at is None else self._enclosure.absorbed(self.dual.nodes, near, at)
            if found is not None:
                return found
        return self._enclosure(point)

    def _some(self, ways: list[Array]) -> list[tuple[int, Cut, Array]]:
        """The blocks that have ways, with their numbers."""
        pairs = zip(self.border.cuts, ways, strict=True)
        return [(j, cut, way) for j, (cut, way) in enumerate(pairs) if way.any()]

    def _moved(
        self, found: Enclosed, flows: list[Array], spread: list[Array], ways: list[Array]
    ) -> tuple[list[Array], list[Array]]:
        """The flows on edges to other parts as those have them whose ways these are, and how far they may be off."""
        here, around = [u.copy() for u in flows], [off.copy() for off in spread]
        for k, (j, cut, way) in enumerate(self._some(ways), len(self.inside.edges)):
            here[j][cut.rows[way]] = cut.sign[way, None] * found.dual_point.flows[k]
            around[j][cut.rows[way]] = found.spread[k]
        theirs = self.border.received([np.hstack(both) for both in zip(here, around, strict=True)])
        for j, (cut, way) in enumerate(zip(self.border.cuts, ways, strict=True)):
            rows, width = cut.rows[~way & (cut.owner >= 0)], here[j].shape[1]  # without a way both have the same
            here[j][rows], around[j][rows] = theirs[j][rows, :width], theirs[j][rows, width:]
        return here, around

    def _between(self, flows: list[Array], ways: list[Array]) -> list[float]:
        """The share of the flows on edges between parts in the bound, per component, but for those that are ways."""
        form, pairs = self.border.part.form, list(zip(self.border.cuts, ways, strict=True))
        theirs = self.border.received([_in_rows(*pair) for pair in pairs])
        counted = [  # those that have their tails here, and are a way at neither end
            cut.rows[(cut.sign > 0.0) & ~way & (there[cut.rows, 0] == 0.0)]
            for (cut, way), there in zip(pairs, theirs, strict=True)
        ]
        edges = tuple(edge.part(rows) for edge, rows in zip(form.edges, counted, strict=True))
        held = tuple(u[rows] for u, rows in zip(flows, counted, strict=True))
        return Enclosure(Form(form.space, (), (), edges)).over(held).tolist()


def _in_rows(cut: Cut, way: Array) -> Array:
    """1 in the rows of an edge block that are ways, (m, 1)."""
    out = np.zeros((cut.edge.count, 1))
    out[cut.rows[way]] = 1.0
    return out
