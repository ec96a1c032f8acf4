"""A lower bound next to prices and flows: they are corrected until they balance, as far as their domains allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graphreg.certificate.enclosure.sums import two_sum
from graphreg.form import DualPoint, Form
from graphreg.terms import Array

from .arithmetic import LEAST, RefusedError, U, upwards
from .balance import Witness, balanced, residual
from .plan import Plan, Planner
from .slack import slack_of
from .system import System
from .value import LowerBound, lower_bound

SWEEPS = 3  # corrections, each of what the one before left
AGAIN = 4  # attempts with fewer and fewer variables that may move
ROUNDS = 12  # in which the sizes of corrections grow
PULLS = (4e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)  # shares of the way to a point well inside all domains


@dataclass(frozen=True)
class Found:
    """The bounds of the components, as far as they were proved, and what stood in the way of the others."""

    lower: Array
    why: str = ""

    @property
    def whole(self) -> bool:
        return bool(np.isfinite(self.lower).all())

    def beside(self, other: Found) -> Found:
        """Component by component the better one."""
        return Found(np.maximum(self.lower, other.lower), self.why or other.why)


class Proposals:
    """Bounds of one form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.system = System(form)
        self.planner = Planner(self.system)

    def __call__(self, point: DualPoint, center: Callable[[], DualPoint | None] | None = None) -> Found:
        """The best bound per component, at the point itself or pulled so far towards the middle as it takes."""
        v = self.flat(point)
        best = self._tried(v)
        if best.whole:
            return best
        middle = None if center is None else center()
        inner = np.zeros_like(v) if middle is None else self.flat(middle)
        for t in PULLS:
            best = best.beside(self._tried(v + t * (inner - v)))
            if best.whole:
                break
        return best

    def flat(self, point: DualPoint) -> Array:
        """The prices and flows of a dual point as the variables of the system."""
        v, samples = np.zeros(self.system.size), len(self.form.samples)
        for number, each in enumerate(self.system.summands):
            if number < samples:
                block, a = self.form.samples[number], point.prices[number].reshape(each.shape[0], -1)
                own = block.loss.prices.dependent(block.y)
                a = a if own is None else a[np.arange(a.shape[1]) != own[:, None]]
            else:
                a, found = point.flows[number - samples], self.form.edges[number - samples].penalty.composed()
                a = a if found is None else np.linalg.lstsq(found[0].T, a.T, rcond=None)[0].T
            v[each.columns] = a.ravel()
        return v

    def _tried(self, v: Array) -> Found:
        """The bound next to a point: of nodes that answer for themselves, or else of flows that move; what leaves its
        domain stays where it is, and the others answer for it."""
        best = Found(np.full(self.form.n_components, -np.inf))
        for apart in (True, False):
            held = np.zeros(len(v), dtype=bool)
            for _ in range(AGAIN):
                try:
                    found = self._next_to(v, held, apart)
                except (RefusedError, np.linalg.LinAlgError) as error:
                    best = best.beside(Found(best.lower, str(error)))
                    break
                best = best.beside(Found(found.lower, found.why))
                if best.whole:
                    return best
                if not (found.outside & ~held).any():
                    break
                held = held | found.outside
        return best

    def _next_to(self, v: Array, held: Array, apart: bool) -> LowerBound:
        plan = self.planner(v, slack_of(self.system, v), held, apart)
        high, low = self._corrected(plan, v)
        z = self._sizes(plan, high, low)
        return lower_bound(self.system, balanced(self.system, Witness(high, low, plan.answers, z, plan.dropped)))

    def _corrected(self, plan: Plan, v: Array) -> tuple[Array, Array]:
        """The point as high + low, moved so that what it leaves vanishes: BR is I but for what trees carry upwards."""
        high, low = v, np.zeros_like(v)
        for _ in range(SWEEPS):
            r = np.where(plan.kept, residual(self.system.B, high, low)[0], 0.0)
            x = plan.tree.gather(np.maximum(r, 0.0)) - plan.tree.gather(np.maximum(-r, 0.0))
            high, low = two_sum(high, low - plan.R @ np.where(plan.kept, x, 0.0))
        return high, low

    def _sizes(self, plan: Plan, high: Array, low: Array) -> Array:
        """z with |Bv| + E z <= z, as far as a few rounds find it."""
        r, error = residual(self.system.B, high, low)
        size = np.where(plan.kept, np.abs(r) + error, 0.0)
        depth, width = plan.depth, plan.answers.width
        # a bound of roundings grows by some units from arc to arc
        more = 1.0 + 4 * U * (width + 16) * (depth.max(initial=0) - depth + 2)
        own, z = size, size
        for _ in range(ROUNDS):
            z = plan.tree.gather(own) * more
            z = np.where(plan.kept & (z > 0.0), np.maximum(z, LEAST), 0.0)
            left = upwards(size + upwards(plan.answers.E @ z, width + 2), 4) - z
            short = plan.kept & (left > 0.0)
            if not short.any():
                break
            own = own + np.where(short, 2.0 * left + LEAST, 0.0)
        return z
