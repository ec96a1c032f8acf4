"""From a point to its certificate, keeping the best bounds seen so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..form import DualPoint, Form
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.penalties._base import AbstractSmoothPenalty, row_norm
from ..terms.records import Array
from .attainment import at_infinity, attained
from .best_common import common
from .feasible import feasible
from .latent import settled
from .record import Certificate, relative
from .repair import Repair
from .tie import tie

CHARGE = 1e-3  # of the gap asked for; beyond it rounding decides, and there is no certificate


EPS = 4e-16  # of each number in a sum or a product
ROUNDING = 1e-9  # of what flows through the nodes: an imbalance beyond it is not rounding


@dataclass(frozen=True)
class _Dual:
    """Q of a point inside every domain, what is left of its conservation, and the rounding of the sum."""

    value: float
    unbalance: float
    rounding: float
    point: DualPoint

    def charge(self, radius: float) -> float:
        return radius * self.unbalance + self.rounding


@dataclass(frozen=True)
class _Primal:
    """P(w) as it was computed, and how far off that may be."""

    value: float
    rounding: float
    w: Array

    @property
    def bound(self) -> float:
        return self.value + self.rounding


class Certifier:
    """Certifies points of one problem. Any feasible point bounds the optimum, so the best on either side are kept."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.repair = Repair(form)
        self.floor = common(form).floor
        self.best_primal: _Primal | None = None
        self.best_dual: _Dual | None = None
        self.radius = 0.0  # twice the largest ||w_i|| seen near a minimiser
        self._attained: tuple[bool | None] | None = None
        self._slack: bool | None = None
        self.screened = float("nan")  # P at the last screen

    def remembered(self) -> dict[str, Any]:
        """What the certificates to come depend on beside the problem, to `recall` elsewhere.

        Of shared objects: what a certifier and a repair remember is replaced, never changed in place.
        """
        own = {name: value for name, value in vars(self).items() if name not in ("form", "repair", "floor")}
        return {**own, "repair": self.repair.remembered()}

    def recall(self, remembered: dict[str, Any]) -> None:
        own = dict(remembered)
        self.repair.recall(own.pop("repair"))
        vars(self).update(own)

    def attained(self) -> bool | None:
        """Whether the infimum is attained, decided once; see `attained`."""
        if self._attained is None:
            self._attained = (attained(self.form, None if self.best_dual is None else self.best_dual.point),)
        return self._attained[0]

    def recedes(self) -> bool:
        """Whether the problem is better solved without what falls away at infinity (see `at_infinity`): where samples
        fall for ever, or where no dual point lies well inside all domains."""
        if self.attained() is False:
            return True
        if self._slack is None and self.repair.slater is False:
            self._slack = at_infinity(self.form) is not None
        return bool(self._slack)

    def screen(self, w: Array, flows: tuple[Array, ...] | None, prices: tuple[Array, ...] | None = None) -> float:
        """A cheap relative gap that certifies nothing: that within the ball of twice the largest ||w_i||.

        gap_R = sum_e FY_e + sum_r FY_r + sum_i (<rho_i, w_i> + R ||rho_i||), rho_i = (K'u)_i + X_i'a_i, with the
        gradients of smooth losses for prices, whose FY_r is 0. ``screened`` is P at the point.
        """
        form = self.form
        w = feasible(form, w if flows is not None else settled(form, w))
        primal, gap, rho = 0.0, 0.0, np.zeros(form.shape)
        for k, block in enumerate(form.samples):
            x, s = block.predict(w), block.scale
            value = float(s @ block.loss.value(x, block.y))
            primal += value
            if prices is None or isinstance(block.loss, AbstractSmoothLoss):
                a = block.scaled(block.loss.gradient(x, block.y))
            else:
                s = block.column(s)  # prices at the ends of their domains, from where rounding may have moved them
                a = s * block.loss.clip(prices[k] / s, block.y)
                gap += value + float(block.conjugates(a).sum()) - float(np.vdot(a, x))
            rho += block.adjoint(a, form.shape)
        for edge, flow in zip(form.edges, self._flows(w, flows), strict=True):
            u, z = edge.clip(flow), edge.difference(w)
            value = float(edge.weight @ edge.penalty.value(z))
            primal += value
            gap += value + float(edge.conjugates(u).sum()) - float(np.vdot(u, z))
            edge.add_adjoint(u, rho)
        self.screened = primal
        radius = 2.0 * float(row_norm(w).max(initial=0.0))
        gap += radius * float(row_norm(rho).sum()) + float(np.vdot(rho, w))
        return relative(abs(gap), primal, primal, self.floor)

    def certify(
        self, w: Array, flows: tuple[Array, ...] | None, prices: tuple[Array, ...] | None, gap: float
    ) -> Certificate:
        """The certificate of w with the best bounds known, given any flows and prices near the optimum.

        Without flows the latent nodes are put where the others want them (see `settled`).
        """
        form = self.form
        w = feasible(form, w if flows is not None else settled(form, w))
        point = DualPoint(self._flows(w, flows), form.gradient_prices(w) if prices is None else prices)
        if all(np.isfinite(x).all() for x in (*point.flows, *point.prices)):
            clipped = self.repair.clip(point)
            point = clipped if self._serves(w, clipped, gap) else self.repair(w, point, gap)
        self.admit(w, point)
        return self.best(gap)

    def _serves(self, w: Array, point: DualPoint, gap: float) -> bool:
        """Whether a point needs no repair: it is inside all domains, and what its imbalance would be charged is small
        beside the gap asked for."""
        value = self.form.dual(point)
        if not np.isfinite(value):
            return False
        charge = 2.0 * float(row_norm(w).max(initial=0.0)) * self.repair.unbalance(point)
        return charge <= 0.1 * CHARGE * gap * abs(value)

    def best(self, gap: float) -> Certificate:
        """The certificate of the best points seen so far."""
        form, none = self.form, self.form.nothing()
        best = self.best_primal or _Primal(np.inf, 0.0, np.zeros(self.form.shape))
        found = self.best_dual or _Dual(-np.inf, 0.0, 0.0, none)
        primal, w, point = best.bound, best.w, found.point
        dual = found.value - found.charge(self.radius)
        charge = found.charge(self.radius) + best.rounding
        if not np.isfinite(primal):
            return Certificate(primal, dual, charge, "none", w, point, form, "no feasible point was found")
        if not np.isfinite(dual):
            note = "no dual point inside every domain was found"
            return Certificate(primal, dual, charge, "none", w, point, form, note)
        yardstick = max(abs(primal), abs(dual), self.floor)
        if charge > CHARGE * max(gap * yardstick, primal - dual - charge) and charge > 1e-14 * yardstick:
            note = (
                f"rounding left {charge:.2g} in the balance of flows and prices, too much for the gap asked for; "
                "rescale the features, or ask for a larger gap"
            )
            return Certificate(primal, dual, charge, "none", w, point, form, note, best.rounding)
        return Certificate(primal, dual, charge, "global", w, point, form, rounding=best.rounding)

    def admit(self, w: Array, point: DualPoint, near: Array | None = None) -> None:
        """Take points as they are, already feasible and conserved, among the best.

        ``near`` is a point near a minimiser, by which rounding is charged: w itself but where w runs to infinity.
        """
        self.consider(w)
        self._improve_dual(w if near is None else near, point)

    def consider(self, w: Array) -> None:
        """Take a feasible w among the best."""
        value = self.form.primal(w)
        if np.isfinite(value):
            found = _Primal(value, _rounding(self.form, w), w)
            if self.best_primal is None or found.bound <= self.best_primal.bound:
                self.best_primal = found

    def _flows(self, w: Array, flows: tuple[Array, ...] | None) -> tuple[Array, ...]:
        """The flows given, or those of the penalties' gradients (of their Moreau envelopes where they have kinks), and
        on edges whose ends agree (as in a consensus) those that balance what these and the losses leave."""
        if flows is not None:
            return flows
        out: list[Array] = []
        form = self.form
        for edge in form.edges:
            z, penalty = edge.difference(w), edge.penalty
            step = 1e-8
            if isinstance(penalty, AbstractSmoothPenalty):
                out.append(edge.weight[:, None] * penalty.gradient(z))
            else:
                out.append(edge.weight[:, None] * (z - penalty.prox(z, step)) / step)
        found, rounds = tie(form, self.repair.stacks, w, tuple(out), form.gradient_prices(w))
        self.repair.exchanges += rounds
        return found

    def _improve_dual(self, w: Array, point: DualPoint) -> None:
        """Keep the point where its bound is the best: Q less what its imbalance may be worth at a minimiser.

        Only what rounding leaves may be charged: a point that is further out of balance is no dual point.
        """
        parts = self.form.dual_parts(point)
        value = float(sum(part.sum() for part in parts))
        if not np.isfinite(value) or not np.isfinite(w).all():
            return
        unbalance, throughput = self.repair.unbalance(point), self.repair.throughput(point)
        if unbalance > ROUNDING * throughput:
            return
        self.radius = max(self.radius, 2.0 * float(row_norm(w).max(initial=0.0)))
        found = _Dual(value, unbalance, EPS * float(sum(np.abs(part).sum() for part in parts)), point)
        best = self.best_dual
        if best is None or found.value - found.charge(self.radius) > best.value - best.charge(self.radius):
            self.best_dual = found


def _rounding(form: Form, w: Array) -> float:
    """How much larger than computed P(w) may be: each predictor and difference moved by its rounding to where its
    term grows, and the rounding of the sum. It matters where coefficients are huge and predictors moderate."""
    total, size = 0.0, row_norm(w)
    for block in form.samples:
        x = block.predict(w)
        shift = EPS * (block.lengths.reshape(len(x), -1).max(axis=1) * size[block.node])
        shift = (shift if x.ndim == 1 else shift[:, None]) + EPS * np.abs(block.offset)
        value = block.loss.value(x, block.y)
        more = block.loss.value(x + shift * np.sign(block.loss.gradient(x, block.y)), block.y) - value
        total += float(block.scale @ (np.maximum(more, 0.0) + EPS * np.abs(value)))
    magnitude = np.abs(w)
    for edge in form.edges:
        z = edge.difference(w)
        part = magnitude if edge.features is None else magnitude[:, edge.features]
        shift = EPS * (part[edge.tail] + (0.0 if edge.ground else part[edge.head]))
        value = edge.penalty.value(z)
        more = edge.penalty.value(z + shift * np.sign(z)) - value
        total += float(edge.weight @ (np.where(np.isfinite(more), np.maximum(more, 0.0), 0.0) + EPS * np.abs(value)))
    return total
