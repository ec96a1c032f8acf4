"""Repair: from any flows and prices to conserved ones inside every domain, by one procedure for all terms.

Clip into the domains; correct the conservation through conductances; repeat; pull back to a Slater centre until it is
inside; correct once more. What rounding leaves of the conservation is charged to the bound by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...form import DualPoint, EdgeBlock, Form, SampleBlock, flows_without_choice
from ...terms import Array
from ...terms.penalties import AbstractConstraint, AbstractNorm, row_norm
from .linear import System

CYCLES = 5
SMALL = 0.1
ROUNDED = 1e-15  # of what flows through the nodes: an imbalance that no further correction makes smaller
COARSE, FINE = 1e-2, 1e-9  # relative residuals of the linear solves within the cycles, and after them
FIT_STEPS = 50
UNLIKE = 1e3  # columns whose sizes differ by more are in units of their own
FARTHEST = 1e8  # gauge of the fit, beyond which it lies in no multiple of the domains


@dataclass(eq=False)
class Repair:
    """The repair for one problem; keeps what depends on the problem alone (the Slater centre).

    Something ``outside`` may be taken from the nodes beside the form's own flows and prices, (n, d). Points are not
    pulled back into domains then: what balances it would not stay.
    """

    form: Form
    outside: Array | None = None
    size: float = field(default=0.0, init=False)  # of w, at the first repair
    slater: bool | None = field(default=None, init=False)  # the fit found a point well inside; None: not asked so far
    exchanges: int = field(default=0, init=False)  # rounds of messages that the repairs so far would have taken

    def remembered(self) -> tuple[float, int, bool]:
        """The state that repairs to come depend on beside the problem: the scale of w, the messages so far, and whether
        the Slater centre was looked for, which takes some."""
        return self.size, self.exchanges, "center" in vars(self)

    def recall(self, size: float, exchanges: int, centred: bool) -> None:
        self.size = size
        if centred and size:
            _ = self.center  # whose messages are among those so far
        self.exchanges = exchanges

    def __call__(self, w: Array, point: DualPoint, gap: float = 0.0) -> DualPoint:
        """A point near ``point``, conserved up to rounding, inside every domain (where one was found).

        ``w`` sets the scale of the potentials, so that the repair does not depend on the units of the data. Cycles
        end where what sticks out of the domains is small beside the relative ``gap`` that is asked for.
        """
        size = self.size_of(w)
        if not self.size:
            self.size = size
        point = self.clip(point)
        system = self.system(point, size)  # for all corrections of this repair
        for _ in range(CYCLES):
            point = self.correct(self.clip(point), system, COARSE)
            if self.gauge(point).max() <= 1.0 + SMALL * gap:
                break
        point = self.correct(point, system, FINE)
        for _ in range(CYCLES if self.still is not None else 0):
            if self.inside(point):
                break
            point = self.clip(point)
            point = self.correct(point, System(self.form, self.conductances(point, size, True), self.units), FINE)
        if self.outside is None and not self.inside(point):
            point = self.pull_back(point)
        if self.unbalance(point) <= ROUNDED * self.throughput(point):
            return point
        refined = self.correct(point, system, FINE)
        inside = self.outside is not None or self.inside(refined)
        return refined if inside and self.unbalance(refined) <= self.unbalance(point) else point

    def size_of(self, w: Array) -> float:
        """The root mean square of w, in the units of its coordinates; 1 where that is 0."""
        return float(np.sqrt(np.mean((w / self.units) ** 2))) or 1.0

    def conservation(self, point: DualPoint) -> Array:
        """K'u + X'a, and what is outside, (n, d)."""
        r = self.form.conservation(point)
        return r if self.outside is None else r + self.outside

    def unbalance(self, point: DualPoint) -> float:
        """sum_i ||(K'u)_i + X_i'a_i||, and what rounding leaves of the sums over the classes of prices that have the
        sum 0: ``sum_r ||x_r|| |sum_k a_rk| / sqrt(k)``."""
        total = float(np.linalg.norm(self.units * self.conservation(point), axis=1).sum())
        for block, a in zip(self.form.samples, point.prices, strict=True):
            if block.loss.prices.dependent(block.y) is not None:
                k = a.shape[1]
                total += float(self._lengths(block)[::k] @ np.abs(a.sum(axis=1))) / np.sqrt(k)
        return total

    def throughput(self, point: DualPoint) -> float:
        """The flow through the nodes, against which their imbalance is judged; at least a thousandth of the
        gradient at 0, for optima at which nothing flows."""
        total = 1e-3 * self.pressure
        if self.outside is not None:
            total += float(row_norm(self.outside * self.units).sum())
        for edge, u in zip(self.form.edges, point.flows, strict=True):
            total += float(row_norm(u * self._units_of(edge)).sum())
        prices = zip(self.form.samples, point.prices, strict=True)
        return total + sum(float(np.abs(a).ravel() @ self._lengths(block)) for block, a in prices)

    def _lengths(self, block: SampleBlock) -> Array:
        """||x_r|| of each row of A, in the units of the coordinates."""
        if (self.units == 1.0).all() or block.map.noun == "row" or block.X is None:
            return block.norms
        k = self.form.d // block.X.shape[1]
        each = [np.sqrt((block.X * self.units[c::k]) ** 2 @ np.ones(block.X.shape[1])) for c in range(k)]
        return np.stack(each, axis=1).ravel()

    @cached_property
    def units(self) -> Array:
        """The unit of each coordinate, (d,): what makes the columns of the data as large as one another. 1 where they
        differ by less than a factor of 1000, as those of standardised data do."""
        d = self.form.d
        squares, count = np.zeros(d), 0.0
        for block in self.form.at_nodes:
            if block.X is not None:
                k = d // block.X.shape[1]
                squares += np.repeat(np.einsum("r,rj,rj->j", block.base_scale, block.X, block.X), k)
                count += float(block.base_scale.sum())
        size = np.sqrt(squares / count) if count > 0.0 else np.ones(d)
        known = size[size > 0.0]
        if not len(known) or known.max() <= UNLIKE * known.min():
            return np.ones(d)
        return np.where(size > 0.0, np.median(known) / np.where(size > 0.0, size, 1.0), 1.0)

    def clip(self, point: DualPoint) -> DualPoint:
        inside = self.form.mapped(lambda block, x: block.clip(x), point)
        if self.still is None:
            return inside
        flows = [np.where(still, 0.0, u) for still, u in zip(self.still, inside.flows, strict=True)]
        return DualPoint(tuple(flows), inside.prices)

    @cached_property
    def still(self) -> tuple[Array, ...] | None:
        """The flows that balance holds at 0, which move no more."""
        return flows_without_choice(self.form) if self.outside is None else None

    def inside(self, point: DualPoint) -> bool:
        return all(np.isfinite(part).all() for part in self.form.dual_parts(point))

    def conductances(self, point: DualPoint, size: float, held: bool = False) -> DualPoint:
        """The conductance of each flow and price; ``size`` is the scale of w, by which penalties are conducted."""
        edges = []
        for edge, u in zip(self.form.edges, point.flows, strict=True):
            # the capacity of a norm is a flow: over the scale of w it becomes a conductance; a constraint has none,
            # and takes the scale of the losses' gradients for it
            if isinstance(edge.penalty, AbstractConstraint):
                C = self.pressure / size * edge.penalty.domain.conductance(u / self.pressure)
                C = C / np.square(self._units_of(edge))
            else:
                c = edge.weight[:, None]
                C = c * edge.penalty.domain.conductance(u / c)
                C = C / (size * self._units_of(edge)) if isinstance(edge.penalty, AbstractNorm) else C
            if held:
                C = np.where((u == 0.0) & (edge.penalty.domain.interior(self.form.width(edge)) != 0.0), 0.0, C)
            edges.append(C)
        samples = []
        for block, a in zip(self.form.samples, point.prices, strict=True):
            samples.append(block.scaled(block.loss.conductance(a / block.column(block.scale), block.y)))
        return DualPoint(tuple(edges), tuple(samples))

    def _units_of(self, edge: EdgeBlock) -> Array | float:
        """The units of the coordinates of an edge block; the number 1 where all are."""
        return 1.0 if edge.map.edges is None or (self.units == 1.0).all() else self.units[edge.coordinates]

    def system(self, point: DualPoint, size: float) -> System:
        return System(self.form, self.conductances(point, size), self.units)

    def correct(self, point: DualPoint, system: System, tolerance: float) -> DualPoint:
        """The nearest conserved point in the metric of the conductances: u - CKz, a - MXz with the z that balances."""
        r = self.conservation(point)
        if not r.any():
            return point
        z, iterations = system.solve(r, tolerance)
        self.exchanges += iterations + 1
        return self.form.mapped(lambda block, x, move: block.span(x - move), point, system.currents(z))

    @cached_property
    def pressure(self) -> float:
        """The root mean square gradient of the nodes' losses at 0, in the units of the coordinates."""
        total = np.zeros(self.form.shape) if self.outside is None else self.outside.copy()
        for block in self.form.samples:
            block.add_adjoint(block.scaled(block.loss.gradient(block.offset, block.y)), total)
        return float(np.sqrt(np.mean((self.units * total) ** 2))) or 1.0

    # ---- the pull back ---------------------------------------------------------------------------------------------
    def pull_back(self, point: DualPoint) -> DualPoint:
        """The best point of the segment from a Slater centre to ``point`` that lies inside, per component.

        The centre is half of ``point``, scaled into the domains, where a multiple of it lies inside; else the fit's.
        """
        center, scaled = self.shrink(point), np.isfinite(self.gauge(point))
        if not scaled.all():
            center = self.blend(self.center, center, scaled.astype(float))
        most = np.ones(self.form.n_components)
        for block, start, end in zip(self.form.blocks, center.parts, point.parts, strict=True):
            np.minimum.at(most, self._where(block), block.step_to_boundary(start, end))
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
        for part, block in zip(self.form.dual_parts(point), self.form.blocks, strict=True):
            total += np.bincount(self._where(block), part, len(total))
        return total

    def _where(self, block: SampleBlock | EdgeBlock) -> Array:
        """The component of each sample or edge."""
        return self.form.component[block.map.owner]

    def blend(self, start: DualPoint, end: DualPoint, t: Array) -> DualPoint:
        """start + t (end - start), t per component."""

        def between(block: SampleBlock | EdgeBlock, x: Array, y: Array) -> Array:
            return block.span(x + block.column(t[self._where(block)]) * (y - x))

        return self.form.mapped(between, start, end)

    # ---- the Slater centre -------------------------------------------------------------------------------------------
    @cached_property
    def center(self) -> DualPoint:
        """A conserved point well inside every domain: 0 where 0 is inside; else half of a fit, scaled into them.

        The fit minimises the losses plus 1/2 sum_e C_e ||(Kw)_e||^2 (a logistic function of the coordinates on which
        flows must keep a sign). Its gradients are conserved and inside the domains of the losses and the cones;
        domains are star-shaped, so a multiple t <= 1/2 stays inside these and can be chosen to lie inside all.
        """
        form = self.form
        signs = [edge.penalty.domain.interior(form.width(edge)) for edge in form.edges]
        if all(b.loss.prices.interior(b.y).all() for b in form.samples) and not any(sign.any() for sign in signs):
            return form.nothing()
        fit = self._fit(form.nothing(), signs)
        self.slater = bool((self.gauge(fit) < FARTHEST).all())
        return self.shrink(fit)

    def gauge(self, point: DualPoint) -> Array:
        """inf {t : point / t inside} per component."""
        gauge = np.zeros(self.form.n_components)
        for block, x in zip(self.form.blocks, point.parts, strict=True):
            np.maximum.at(gauge, self._where(block), block.gauge(x))
        return gauge

    def shrink(self, point: DualPoint) -> DualPoint:
        """t point with t = 1/2 min(1, 1/gauge) per component: domains are star-shaped about 0."""
        with np.errstate(divide="ignore"):
            t = 0.5 * np.minimum(1.0, 1.0 / self.gauge(point))
        return self.blend(self.form.nothing(), point, t)

    def _fit(self, origin: DualPoint, signs: list[Array]) -> DualPoint:
        """Newton's method on the smooth fit, with backtracking; its gradients, corrected once."""
        form, size = self.form, self.size
        C = self.conductances(origin, size).flows
        w = np.zeros(form.shape)
        point, slopes, curvatures, value = self._drive(w, signs, C)
        for _ in range(FIT_STEPS):
            r = form.conservation(point)
            if np.linalg.norm(self.units * r) <= 1e-9 * sum(np.linalg.norm(a) for a in point.prices):
                break
            z, iterations = System(form, DualPoint(slopes, curvatures), self.units).solve(r, 1e-4)
            self.exchanges += iterations + 1
            t, fall = 1.0, float(np.vdot(r, z))
            new, reached = point, value
            for _ in range(30):
                new, slopes, curvatures, reached = self._drive(w - t * z, signs, C)
                if reached <= value - 1e-4 * t * fall + 1e-14 * abs(value):
                    break
                t *= 0.5
            w, point, value = w - t * z, new, reached
        return self.correct(point, self.system(point, size), 1e-12)

    def _drive(
        self, w: Array, signs: list[Array], C: tuple[Array, ...]
    ) -> tuple[DualPoint, tuple[Array, ...], tuple[Array, ...], float]:
        """The gradients of the fit at w as flows and prices, the derivatives of both, and its value."""
        flows: list[Array] = []
        slopes: list[Array] = []
        prices: list[Array] = []
        curvatures: list[Array] = []
        value = 0.0
        for block in self.form.samples:
            each, gradient, curvature = block.loss.smoothed(block.predict(w), block.y)
            value += float(block.scale @ each)
            prices.append(block.scaled(gradient))
            # matrices keep prices in the span of their domain, as they are
            curvatures.append(block.scaled(curvature if curvature.ndim == 3 else np.maximum(curvature, 1e-9)))
        for edge, sign, conductance in zip(self.form.edges, signs, C, strict=True):
            z = edge.difference(w)
            u, slope = edge.penalty.domain.conduct(conductance, z), conductance
            if sign.any():  # pressure size log(1 + exp(sign z / size)), flat one way like the losses it stands for
                steep = np.clip(sign * z / self.size, -500, 500)
                pressed = self.pressure / (1.0 + np.exp(-steep))
                value += self.pressure * self.size * float(np.logaddexp(0.0, steep)[:, sign != 0].sum())
                value += 0.5 * float((z * u)[:, sign == 0].sum())
                u = np.where(sign == 0, u, sign * pressed)
                slope = np.where(sign == 0, slope, pressed * (1.0 - pressed / self.pressure) / self.size)
            else:
                value += 0.5 * float(np.vdot(z, u))
            flows.append(u)
            slopes.append(slope)
        return DualPoint(tuple(flows), tuple(prices)), tuple(slopes), tuple(curvatures), value
