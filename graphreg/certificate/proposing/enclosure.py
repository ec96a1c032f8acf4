"""A lower bound next to any prices and flows: they are corrected until they balance, as far as their domains allow.

Where roundings cost little beside what is asked for, one plan of corrections serves all points: these are shrunk
towards 0 by as much as makes room for it. Where dom phi* holds a ball of radius r around 0, it holds one of radius t
r around (1 - t) u for every u in it; balance is linear, and Q concave: t costs at most t (Q - Q(0, 0)). Else the
corrections are planned for the point; where a domain is left, the flows and prices there stay as they are and the
others answer for them; and where that is not enough, the point is pulled towards the middle of the domains, component
by component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from ...form import DualPoint, Form, flows_without_choice
from ...terms import Array
from ..kernel.arithmetic import EPS, MORE, Pair, RefusedError, two_sum
from ..kernel.balance import Balanced
from ..kernel.joint import NOTHING, Dropped
from ..kernel.squares import Curvature, absorbed
from ..kernel.system import Summand, System
from ..kernel.value import Enclosed, LowerBound, lower_bound
from .plan import JointPlan, Plan, Planner
from .shifted_duals import ShiftedDuals
from .slack import Slack, determined, held_first, without_dust, without_flow
from .ties import Ties, alike, dropped, tied, ties_of

TINY = 1e-200  # numbers that small may leave their domains by what products of them miss
SWEEPS = 3  # corrections, each of what the one before left
AGAIN = 4  # attempts with fewer and fewer variables that may move
PULLS = (4e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2)  # shares of the way to a point well inside all domains
ROUNDED = 3.0  # of what sums may miss at a point: what they and its correction leave there
SHRUNK = 1e-13  # what flows are shrunk by beside what they need: they may be rounded out of their domains as they are
MOST = 1e-2  # what they may be shrunk by in all
SMALL = 1e-9  # prices so near to 0 are taken for it where nothing near the point will do: in large columns they weigh
ALIKE = 0.25  # a power of weights that makes them more alike
Proved = tuple[LowerBound, Balanced]


class Enclosure:
    """The bounds of one problem. What does not depend on targets, offsets and centers it has from one ``like`` it."""

    def __init__(self, form: Form, like: Enclosure | None = None, outside: Pair | None = None) -> None:
        """``outside`` is what is taken from the nodes beside the form's own flows and prices, (n, d)."""
        self.form, self.refused = form, ""
        self.like = None if like is None or like.refused else like.like or like  # the first of all: none is kept alive
        self._memory = form.memory if form.is_small and outside is None else {}  # the same matrix at other strengths
        try:
            known = self._memory.get("system") or (None if self.like is None else self.like.system)
            self.system = known if known and known.form is form and outside is None else System(form, known, outside)
            self._memory["system"] = self.system
        except RefusedError as error:
            self.refused = str(error)

    @cached_property
    def planner(self) -> Planner:
        """What plans corrections: a matter of the graph and the designs alone."""
        known = self._memory.get("planner") if self.like is None else self.like.planner
        return self._memory.setdefault("planner", known or Planner(self.system))

    @cached_property
    def of(self) -> Array:
        """The component of each variable."""
        return self.form.component[self.planner.nodes(np.arange(self.system.size))]

    @property
    def written(self) -> list[Summand] | None:
        """The functions of the form, for `upper_bound`; None where no bound can be proved."""
        return None if self.refused else self.system.written

    def __call__(
        self, point: DualPoint, center: Callable[[], DualPoint | None] | None = None, least: float = np.inf
    ) -> Enclosed:
        """The best bound per component; ``center`` gives a point well inside all domains where one is needed.

        Sums are taken plainly where that gives a bound of at least ``least``.
        """
        if not point.is_finite():
            return self._none(point, "flows or prices are not finite")
        if self.refused:
            return self._none(point, self.refused)
        v = self.system.flat(point)
        np.copyto(v, 0.0, where=np.abs(v) < TINY)
        if least < np.inf and self.system.outside is None:  # points are shrunk, which what is outside is not
            for found in self._plainly(v):
                if float(found[0].lower.sum()) >= least:
                    return self._enclosed(*found)
        v = without_dust(self.system, v)
        best = self._nothing(v)
        for best in self._bounds(v, center):
            if _whole(best):
                break
            with_zero = self._better(best, self._at_zero)  # such as where the loss of a component has no minimum
            if float(with_zero[0].lower.sum()) >= least:
                return self._enclosed(*with_zero)
        without = without_dust(self.system, v, SMALL)
        if least < np.inf and not float(best[0].lower.sum()) >= least and (without != v).any():
            best = self._better(best, self._tried(without))
        return self._enclosed(*best)

    def _bounds(self, v: Array, center: Callable[[], DualPoint | None] | None) -> Iterator[Proved]:
        """The best bound of each component so far, next to the point and then farther and farther from it."""
        best, inside = self._nothing(v), self.system.outside is None
        if not self.ties:
            yield (best := self._better(best, self._tried(v)))
            if flows_without_choice(self.form) is not None:
                still = determined(self.system, without_flow(self.system, v))
                yield (best := self._better(best, self._tried(np.where(still, 0.0, v))))
        if self.mixed and inside:
            none = np.zeros(self.system.size, dtype=bool)
            for held, power in ((none, 1.0), (none, ALIKE), (self.determined, 1.0)):
                for found in self._jointly(np.where(held, 0.0, v), held, power, plain=False):
                    yield (best := self._better(best, found))
        if self.ties:  # which leave the others little to answer with
            yield (best := self._better(best, self._tried(v)))
        if center is not None:
            yield (best := self._pulled(best, v, center()))
        yield self._better(best, self._at_zero)

    @cached_property
    def _at_zero(self) -> Proved:
        """What no flows and no prices are worth."""
        zero = np.zeros(self.system.size)
        return self._tried(zero) if self.system.outside is None else self._nothing(zero)

    def beside(self, found: Enclosed) -> Enclosed | None:
        """What is proved of the same dual points here, where ``found`` is of a form with the same graph and designs."""
        if self.refused or found.box is None or found.box.high.shape != (self.system.size,):
            return None
        with suppress(RefusedError):
            return self._enclosed(lower_bound(self.system, found.box, plain=True), found.box)
        return None

    def absorbed(self, nodes: ShiftedDuals, point: DualPoint, w: Array) -> Enclosed | None:
        """What follows from flows and prices that are nearly the gradients at w, where squares absorb what is left."""
        if self.refused or nodes.inverse is None:
            return None
        try:
            if not nodes.proved or not nodes.proved[0].holds(self.system):
                nodes.proved[:] = [Curvature(self.system, nodes.inverse)]
            return self._enclosed(*absorbed(self.system, nodes.proved[0], self.system.flat(point), w))
        except RefusedError:
            return None

    def over(self, flows: tuple[Array, ...]) -> Array:
        """What flows are worth in a form without samples, whatever they are to balance: a lower bound by component."""
        if not self.refused:
            v = self.system.flat(DualPoint(flows, ()))
            zero = np.zeros(len(v))
            box = Balanced(v, zero, zero, np.zeros(self.form.n_components, dtype=bool))
            with suppress(RefusedError):
                return lower_bound(self.system, box).lower
        return np.full(self.form.n_components, -np.inf)

    def _none(self, point: DualPoint, why: str) -> Enclosed:
        none = np.full(self.form.n_components, -np.inf)
        return Enclosed(none, point, tuple(np.zeros(u.shape) for u in point.flows), why)

    def _enclosed(self, found: LowerBound, box: Balanced) -> Enclosed:
        one, off = self.system, np.abs(box.low) + box.spread
        spread = tuple(each.around(each.taken(box.high), each.taken(off)) for each in one.flows)
        why = "" if np.isfinite(found.lower).all() else found.why
        return Enclosed(found.lower, one.point(box.high), spread, why, found.inner, box)

    # ---- one plan for all points -------------------------------------------------------------------------------------
    def _plainly(self, v: Array) -> Iterator[Proved]:
        """Bounds next to the point by one plan for all that are not far from it; of rows, next by one of them all."""
        with suppress(RefusedError, np.linalg.LinAlgError):
            yield from self._shrunk(self.planner.everywhere(Slack.of(self.system, v, flows=False, rough=True)), v)
        if self.mixed:
            yield from self._jointly(v)

    @cached_property
    def mixed(self) -> bool:
        """Whether rows tie all equations into one system."""
        return any(one.mixed for one in self.system.summands)

    def _jointly(self, v: Array, held: Array | None = None, power: float = 1.0, plain: bool = True) -> Iterator[Proved]:
        """Bounds by one system of all equations, without those that follow from others: one for each component, where
        sums over its nodes say so; then one at every node, where flows are as ties want them. A ``power`` below 1 has
        prices near their ends answer, too, where there are too few others."""
        weight = Slack.of(self.system, v, flows=False).weight ** power
        weight = weight if held is None else np.where(held, 0.0, weight)
        few = [partial(tied, self.system, ties=self.ties, free=free) for free in (True, False)]
        for of, wanted in ((self.alike, [None]), (self.dropped, few)) if self.ties else ((NOTHING, [None]),):
            with suppress(RefusedError, np.linalg.LinAlgError):
                plan = JointPlan(self.system, weight, of)
                for each in wanted:
                    yield from self._shrunk(plan, v, plain, each)

    def _shrunk(
        self, plan: Plan | JointPlan, v: Array, plain: bool = True, few: Callable[[Array], Array] | None = None
    ) -> Iterator[Proved]:
        """``few`` gives flows few digits, as ties want them."""
        system, wanted = self.system, few or np.array
        u = wanted(v)
        left = system.residual(u, u, plain=True)
        move = plan.moved(left.high.ravel())
        u = wanted(u - move)
        z = plan.sizes(ROUNDED * left.error.ravel() + 4 * EPS * np.abs(left.high.ravel()))
        if few:  # what few digits leave, here and once more
            z = z + 2.0 * plan.sizes(system.residual(u, u, plain=True).size().ravel())
        spread, needed = plan.spread(z), 0.0
        for one in system.flows:
            need = np.abs(one.taken(move)) + one.taken(spread)
            needed = max(needed, float(one.penalty.domain.gauge(need / one.scale[:, None]).max(initial=0.0)))
        for times in (1, self.form.d)[: 1 + (self.form.d > 1)]:  # gauges mostly grow with each coordinate's size
            t, low = SHRUNK + times * needed * MORE, np.zeros(len(v))
            if t > MOST:
                break
            with suppress(RefusedError):
                shrunk = wanted((1.0 - t) * u)
                as_it_is = plain or few  # corrections of what is tied would have more digits
                box = plan.box(system, shrunk, low, z, plain) if as_it_is else self._balanced(plan, shrunk, low)
                yield lower_bound(system, box, plain), box

    # ---- a plan for the point ----------------------------------------------------------------------------------------
    def _tried(self, v: Array) -> Proved:
        """The bound next to a point: of nodes that answer for themselves, or else of flows that move; what leaves its
        domain stays where it is, and the others answer for it."""
        best = self._nothing(v)
        for still in held_first(self.system):
            for apart in (True, False):
                best = self._holding(best, still, 2 if apart else AGAIN, partial(self._next_to, v, apart=apart))
                if _whole(best):
                    return best
        return best

    def _holding(self, best: Proved, held: Array, times: int, found_with: Callable[[Array], Proved]) -> Proved:
        """The best of some attempts, after each of which more is held: what left its domain."""
        for _ in range(times):
            try:
                found = found_with(held)
            except (RefusedError, np.linalg.LinAlgError) as error:
                return replace(best[0], why=best[0].why or str(error)), best[1]
            best = self._better(best, found)
            if _whole(best) or not (found[0].outside & ~held).any():
                break
            held = held | found[0].outside
        return best

    def _nothing(self, v: Array) -> Proved:
        none, zero = np.full(self.form.n_components, -np.inf), np.zeros(len(v))
        box = Balanced(v, zero, zero, np.ones(len(none), dtype=bool))
        return LowerBound(none, np.zeros(len(v), dtype=bool), "", True), box

    def _near(self, v: Array) -> Proved:
        """The bound next to a point by one system of all equations, where rows tie them, or else as they are tried."""
        best = self._nothing(v)
        for found in self._jointly(v, power=ALIKE, plain=False) if self.mixed and self.system.outside is None else ():
            best = self._better(best, found)
            if _whole(best):
                return best
        return self._better(best, self._tried(v))

    def _pulled(self, best: Proved, v: Array, middle: DualPoint | None) -> Proved:
        """No point is tried nearer than one that will not do for each component for which the farthest does."""
        inner = np.zeros_like(v) if middle is None or not middle.is_finite() else self.system.flat(middle)
        near, left, k, wanted = best, PULLS, 0, np.ones(len(best[0].lower), dtype=bool)
        while left:  # the nearest, the farthest, and then between them
            found = self._near(v + left[k] * (inner - v))
            best, nearer = self._better(best, found), self._better(near, found)
            wanted = np.isfinite(best[0].lower) if left[k] == PULLS[-1] else wanted
            before, now = ((np.isfinite(each[0].lower) >= wanted).all() for each in (near, nearer))
            near, left = (near, left[:k]) if now and not before else (nearer, left[k + 1 :])
            k = len(left) // 3 if len(left) < len(PULLS) - 1 else len(left) - 1
        return best

    @cached_property
    def ties(self) -> Ties:
        """The dependencies of columns, where rows ask for them."""
        known = {} if not self.mixed or self.system.outside is not None else None
        return known if known is not None else ties_of(self.form) if self.like is None else self.like.ties

    @cached_property
    def dropped(self) -> Dropped:
        """The equations that follow from others at their nodes by these."""
        return dropped(self.system, self.ties)

    @cached_property
    def alike(self) -> Dropped:
        """Those that follow from others over their components, as of rows of differences."""
        return alike(self.system, self.ties)

    @cached_property
    def determined(self) -> Array:
        """The prices and flows that balance alone determines to be 0, in general."""
        return determined(self.system, without_flow(self.system))

    def _next_to(self, v: Array, held: Array, apart: bool) -> Proved:
        box = self._balanced(self.planner.near(v, Slack.of(self.system, v), held, apart), v, np.zeros_like(v))
        return lower_bound(self.system, box), box

    def _balanced(self, plan: Plan | JointPlan, high: Array, low: Array) -> Balanced:
        """The box next to a point, corrected as far as that goes."""
        for _ in range(SWEEPS):
            left = self.system.residual(high, low)
            high, low = two_sum(high, low - plan.moved((left.high + left.low).ravel()))
        return plan.box(self.system, high, low, plan.sizes(self.system.residual(high, low).size().ravel()))

    def _better(self, one: Proved, other: Proved) -> Proved:
        """Component by component the point with the better bound."""
        take = other[0].lower > one[0].lower
        if not take.any():
            return replace(one[0], why=one[0].why or other[0].why), one[1]
        some = take[self.of]
        high, low, spread = (
            np.where(some, b, a)
            for a, b in ((getattr(one[1], x), getattr(other[1], x)) for x in ("high", "low", "spread"))
        )
        lower = np.where(take, other[0].lower, one[0].lower)
        inner = other[0].inner and (one[0].inner or bool(take.all()))
        lost = np.where(take, other[1].lost, one[1].lost)
        why = other[0].why or one[0].why
        return LowerBound(lower, other[0].outside, why, inner), Balanced(high, low, spread, lost, why)


def _whole(found: Proved) -> bool:
    return bool(np.isfinite(found[0].lower).all())
