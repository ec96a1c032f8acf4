"""A lower bound of the optimum from any flows and prices, valid whatever rounding did.

Next to the point given there is one that is conserved exactly, and Q is bounded over all points that near. Where a
domain is left, the arcs and prices there stay as they are and the others answer for them; where that is not enough,
the point is pulled towards the middle of the domains, component by component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...form import DualPoint, Form
from ...terms import Array
from .attempt import Attempt, Attempts, zeros
from .boxes import Box, Enclosed, box_value
from .plain import boxes_near
from .structure import Structure
from .sums import Pair

PULLS = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
AGAIN = 6  # attempts with fewer and fewer arcs and prices that may move


class Enclosure:
    """The bounds of one problem; keeps what does not depend on the point, and shares what does not depend on targets,
    offsets and centers with one ``like`` it."""

    def __init__(self, form: Form, like: Enclosure | None = None, outside: Pair | None = None) -> None:
        """``outside`` is what is taken from the nodes beside the form's own flows and prices, (n, d)."""
        self.form, self.outside = form, outside
        self.structure = Structure(form) if like is None else like.structure

    @cached_property
    def attempt(self) -> Attempts:
        return Attempts(self.form, self.structure, self.outside)

    def __call__(
        self, point: DualPoint, center: Callable[[], DualPoint | None] | None = None, least: float = np.inf
    ) -> Enclosed:
        """The best bound per component; ``center`` gives a point well inside all domains where one is needed.

        Sums are taken plainly where that gives a bound of at least ``least``.
        """
        if not point.is_finite():
            none = np.full(self.form.n_components, -np.inf)
            return Enclosed(none, point, zeros(point.flows), "flows or prices are not finite")
        if least < np.inf and self.outside is None:  # boxes are shrunk, which what is outside is not
            for box in boxes_near(self.structure, self.form, self.attempt.rows, point):
                found = self._over(box)
                if found.value >= least:
                    return found
        best = self._pulled(point, center)
        if not self.structure.roots and (best.value < least < np.inf or not np.isfinite(best.lower).all()):
            best = self._better(best, self._tried(point, self.attempt.apart))
        if np.isfinite(best.lower).all() or self.outside is not None:
            return best
        return self._better(best, self._within(self.form.nothing()))

    def beside(self, found: Enclosed) -> Enclosed | None:
        """What is proved of the same dual points here, where ``found`` is of a form with the same graph and designs."""
        if self.structure.roots or len(found.off) < len(found.dual_point.prices):
            return None
        here = self._over(Box(found.dual_point.flows, found.spread, found.dual_point.prices, found.off))
        # Without a bound there the box of a component need not hold a conserved point.
        return replace(here, lower=np.where(np.isfinite(found.lower), here.lower, -np.inf))

    def _over(self, box: Box) -> Enclosed:
        found = box_value(self.form, self.structure, box)
        return Enclosed(found.lower, DualPoint(box.flows, box.prices), box.spread, found.why, found.inner, box.off)

    def _pulled(self, point: DualPoint, center: Callable[[], DualPoint | None] | None) -> Enclosed:
        """The best bound at the point itself, or pulled so far towards the middle as it takes."""
        best = self._within(point)
        if np.isfinite(best.lower).all():
            return best
        middle = None if center is None else center()
        if middle is not None and middle.is_finite():
            for t in PULLS:
                best = self._better(best, self._within(_between(point, middle, t)))
                if np.isfinite(best.lower).all():
                    break
        return best

    def _better(self, one: Enclosed, other: Enclosed) -> Enclosed:
        """Component by component the point with the better bound."""
        take = other.lower > one.lower
        if not take.any():
            return one
        lower = np.where(take, other.lower, one.lower)
        component = self.form.component
        edges = [take[component[edge.tail]][:, None] for edge in self.form.edges]
        samples = [block.column(take[component[block.node]]) for block in self.form.samples]
        here, there = one.dual_point, other.dual_point
        point = DualPoint(_chosen(edges, here.flows, there.flows), _chosen(samples, here.prices, there.prices))
        off = _chosen(samples, one.off, other.off) if one.off and other.off else ()
        why = "" if np.isfinite(lower).all() else one.why
        inner = other.inner and (one.inner or bool(take.all()))
        return Enclosed(lower, point, _chosen(edges, one.spread, other.spread), why, inner, off)

    # ---- one attempt, and again with less that moves ----------------------------------------------------------------
    def _within(self, point: DualPoint) -> Enclosed:
        samples, every = len(self.form.samples), len(self.attempt.rows)
        if samples < every:  # flows R'q as they are, if that will do: they tie all nodes into one system
            found = self.attempt(point, *self._nothing_held(), samples).bound
            if np.isfinite(found.lower).all():
                return found
        return self._tried(point, lambda point, arcs, prices: self.attempt(point, arcs, prices, every))

    def _nothing_held(self) -> tuple[Array, Array]:
        prices = sum(len(each.nodes()) for each in self.attempt.rows)
        return np.zeros(len(self.structure.arcs.tail), dtype=bool), np.zeros(prices, dtype=bool)

    def _tried(self, point: DualPoint, attempt: Callable[[DualPoint, Array, Array], Attempt]) -> Enclosed:
        """The best of attempts with fewer and fewer arcs and prices that may move."""
        held_arcs, held_prices = self._nothing_held()
        best = Enclosed(np.full(self.form.n_components, -np.inf), point, zeros(point.flows))
        for _ in range(AGAIN):
            found = attempt(point, held_arcs, held_prices)
            best = found.bound if not np.isfinite(best.lower).any() else self._better(best, found.bound)
            arcs, prices = held_arcs | found.outside_arcs, held_prices | found.outside_prices
            same = np.array_equal(arcs, held_arcs) and np.array_equal(prices, held_prices)
            if same or not (~np.isfinite(best.lower) & ~found.beyond).any():
                break
            held_arcs, held_prices = arcs, prices
        return best


def _between(point: DualPoint, middle: DualPoint, t: float) -> DualPoint:
    return DualPoint(
        tuple(u + t * (v - u) for u, v in zip(point.flows, middle.flows, strict=True)),
        tuple(a + t * (b - a) for a, b in zip(point.prices, middle.prices, strict=True)),
    )


def _chosen(rows: list[Array], one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    """The other arrays in these rows."""
    return tuple(np.where(take, b, a) for take, a, b in zip(rows, one, other, strict=True))
