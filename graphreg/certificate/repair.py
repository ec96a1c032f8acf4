"""Repair: from any flows and prices to conserved ones inside every domain, by one procedure for all terms.

Clip into the domains; correct the conservation through conductances; repeat; pull back to a Slater centre until it is
inside; correct once more. What rounding leaves of the conservation is charged to the bound by the caller.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..batches import batches
from ..form import DualPoint, Form
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.penalties._base import AbstractNorm
from ..terms.records import Array
from .linear import Conductances, currents, solve

CYCLES = 5


class Repair:
    """The repair for one problem; keeps what depends on the problem alone (stacks, the Slater centre)."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.exchanges = 0  # rounds of messages between neighbours that the repairs so far would have taken
        self.stacks = tuple(None if b.X is None else batches(b.node, b.X) for b in form.samples)

    def __call__(self, w: Array, point: DualPoint) -> DualPoint:
        """A point near ``point``, conserved up to rounding, inside every domain (where one was found).

        ``w`` sets the scale of the potentials, so that the repair does not depend on the units of the data.
        """
        size = float(np.sqrt(np.mean(w * w))) or 1.0
        point = self.clip(point)
        for cycle in range(CYCLES):
            point = self.correct(point, size, 1e-9)
            if self.inside(point):
                break
            if cycle < CYCLES - 1:
                point = self.clip(point)
        else:
            point = self.pull_back(point)
        refined = self.correct(point, size, 1e-6)
        return refined if self.inside(refined) and self.unbalance(refined) <= self.unbalance(point) else point

    def unbalance(self, point: DualPoint) -> float:
        """sum_i ||(K'u)_i + X_i'a_i||."""
        return float(np.linalg.norm(self.form.conservation(point), axis=1).sum())

    def clip(self, point: DualPoint) -> DualPoint:
        flows = tuple(edge.clip(u) for edge, u in zip(self.form.edges, point.flows, strict=True))
        prices = []
        for block, a in zip(self.form.samples, point.prices, strict=True):
            s = block.column(block.scale)
            prices.append(s * block.loss.clip(a / s, block.y))
        return DualPoint(flows, tuple(prices))

    def inside(self, point: DualPoint) -> bool:
        return all(np.isfinite(part).all() for part in self.form.dual_parts(point))

    def conductances(self, point: DualPoint, size: float) -> Conductances:
        """How readily each flow and price gives way; ``size`` is the scale of w, by which penalties are conducted."""
        edges = []
        for edge, u in zip(self.form.edges, point.flows, strict=True):
            c = edge.weight[:, None]
            C = c * edge.penalty.conductance(u / c)
            # the capacity of a norm is a flow: over the scale of w it becomes a conductance
            edges.append(C / size if isinstance(edge.penalty, AbstractNorm) else C)
        samples = []
        for block, a in zip(self.form.samples, point.prices, strict=True):
            s = block.column(block.scale)
            samples.append(s * block.loss.conductance(a / s, block.y))
        return Conductances(tuple(edges), tuple(samples))

    def correct(self, point: DualPoint, size: float, tolerance: float) -> DualPoint:
        """The nearest conserved point in the metric of the conductances: u - CKz, a - MXz with the z that balances."""
        r = self.form.conservation(point)
        if not r.any():
            return point
        C = self.conductances(point, size)
        z, iterations = solve(self.form, self.stacks, C, r, tolerance)
        self.exchanges += iterations + 1
        move = currents(self.form, C, z)
        return DualPoint(
            tuple(u - v for u, v in zip(point.flows, move.flows, strict=True)),
            tuple(a - b for a, b in zip(point.prices, move.prices, strict=True)),
        )

    # ---- the pull back ---------------------------------------------------------------------------------------------
    def pull_back(self, point: DualPoint) -> DualPoint:
        """The best point of the segment from the Slater centre to ``point`` that lies inside, per component."""
        center = self.center
        most = np.ones(self.form.n_components)
        for (start, end), (block, kind) in zip(self._pairs(center, point), self._blocks(), strict=True):
            if kind == "sample":
                s = block.column(block.scale)
                t = block.loss.reach(start / s, end / s, block.y)
                where = self.form.component[block.node]
            else:
                c = block.weight[:, None]
                t = block.penalty.reach(start / c, end / c)
                where = self.form.component[block.tail]
            np.minimum.at(most, where, t if t.ndim == 1 else t.min(axis=1))
        most = np.where(most < 1.0, most * (1.0 - 1e-12), 1.0)
        return self._line_search(center, point, most)

    def _line_search(self, center: DualPoint, point: DualPoint, most: Array) -> DualPoint:
        """Maximise the concave Q per component over t in [0, most] by golden section."""
        golden = (np.sqrt(5.0) - 1.0) / 2.0
        low, high = np.zeros_like(most), most.copy()
        left, right = high - golden * (high - low), low + golden * (high - low)
        f_left, f_right = self._values(self.blend(center, point, left)), self._values(self.blend(center, point, right))
        f_most = self._values(self.blend(center, point, most))
        for _ in range(40):
            if np.all(f_most >= np.maximum(f_left, f_right)):  # concave and highest at the end, as it mostly is
                break
            go = f_left >= f_right
            high, low = np.where(go, right, high), np.where(go, low, left)
            new = np.where(go, high - golden * (high - low), low + golden * (high - low))
            f_new = self._values(self.blend(center, point, new))
            left, right = np.where(go, new, right), np.where(go, left, new)
            f_left, f_right = np.where(go, f_new, f_right), np.where(go, f_left, f_new)
        inner = np.where(f_left >= f_right, left, right)
        return self.blend(center, point, np.where(f_most >= np.maximum(f_left, f_right), most, inner))

    def _values(self, point: DualPoint) -> Array:
        """Q per component."""
        total = np.zeros(self.form.n_components)
        for part, (block, kind) in zip(self.form.dual_parts(point), self._blocks(), strict=True):
            where = self.form.component[block.node if kind == "sample" else block.tail]
            np.add.at(total, where, part)
        return total

    def _blocks(self) -> list[tuple[object, str]]:
        return [(b, "sample") for b in self.form.samples] + [(b, "edge") for b in self.form.edges]

    def _pairs(self, start: DualPoint, end: DualPoint) -> list[tuple[Array, Array]]:
        return list(zip((*start.prices, *start.flows), (*end.prices, *end.flows), strict=True))

    def blend(self, start: DualPoint, end: DualPoint, t: Array) -> DualPoint:
        """start + t (end - start), t per component."""
        form = self.form
        flows = []
        for edge, u, v in zip(form.edges, start.flows, end.flows, strict=True):
            flows.append(u + t[form.component[edge.tail]][:, None] * (v - u))
        prices = []
        for block, a, b in zip(form.samples, start.prices, end.prices, strict=True):
            each = t[form.component[block.node]]
            prices.append(a + (each[:, None] if a.ndim == 2 else each) * (b - a))
        return DualPoint(tuple(flows), tuple(prices))

    # ---- the Slater centre -------------------------------------------------------------------------------------------
    @cached_property
    def center(self) -> DualPoint:
        """A conserved point well inside every domain: 0 where 0 is inside; else half of a fit, scaled into them.

        The fit minimises the losses plus 1/2 sum_e C_e ||(Kw)_e||^2, whose gradients and currents are conserved and
        inside the domains of the losses; domains are star-shaped, so a multiple t <= 1/2 stays inside those and can
        be chosen to lie inside the flows' domains as well.
        """
        form = self.form
        flows = tuple(edge.weight[:, None] * edge.penalty.interior(form.width(edge)) for edge in form.edges)
        zero = DualPoint(flows, tuple(np.zeros_like(block.offset) for block in form.samples))
        boundary = any(not b.loss.interior(b.y).all() for b in form.samples)
        if not boundary and not any(u.any() for u in flows):
            return zero
        point = self._fit(zero) if boundary else self.correct(zero, 1.0, 1e-12)
        gauge = np.zeros(form.n_components)
        for edge, u in zip(form.edges, point.flows, strict=True):
            np.maximum.at(gauge, form.component[edge.tail], edge.penalty.gauge(u / edge.weight[:, None]))
        with np.errstate(divide="ignore"):
            t = 0.5 * np.minimum(1.0, 1.0 / gauge)
        origin = DualPoint(tuple(0.0 * u for u in point.flows), tuple(0.0 * a for a in point.prices))
        return self.blend(origin, point, t)

    def _fit(self, start: DualPoint) -> DualPoint:
        """Newton's method on the smooth fit, damped; its gradients and currents, corrected once."""
        form = self.form
        C = self.conductances(start, 1.0)
        w = np.zeros(form.shape)
        prices = form.gradient_prices(w)
        flows = start.flows
        for _ in range(30):
            r = form.conservation(DualPoint(flows, prices))
            if np.linalg.norm(r) <= 1e-9 * sum(np.linalg.norm(a) for a in prices):
                break
            M = tuple(
                b.column(b.scale) * np.maximum(_curvature(b.loss, b.predict(w), b.y), 1e-6) for b in form.samples
            )
            z, iterations = solve(form, self.stacks, Conductances(C.edges, M), r, 1e-4)
            self.exchanges += iterations + 1
            step = -z
            reach = max(float(np.abs(b.apply(step)).max()) for b in form.samples if not b.loss.interior(b.y).all())
            w = w + step * min(1.0, 2.0 / max(reach, 1e-300))  # predictors move by 2 at most: self-concordant steps
            prices = form.gradient_prices(w)
            driven = currents(form, C, w).flows
            flows = tuple(u + v for u, v in zip(start.flows, driven, strict=True))
        return self.correct(DualPoint(flows, prices), 1.0, 1e-12)


def _curvature(loss: object, x: Array, y: Array) -> Array:
    return loss.curvature(x, y) if isinstance(loss, AbstractSmoothLoss) else np.ones_like(x)
