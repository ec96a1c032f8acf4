"""From a point to its certificate, keeping the best bounds seen so far."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..errors import InternalError
from ..form import DualPoint, Form, with_latent_minimisers
from ..terms import Array
from ..terms.penalties import AbstractSmoothPenalty
from .attainment.attainment import at_infinity, attained
from .attainment.recession import cones_of
from .common_model.best_common import floor
from .kernel.upper import upper_bound
from .kernel.value import Enclosed
from .proposing.enclosure import Enclosure
from .proposing.flow_dual import (
    CheapBound,
    FlowDual,
    held_by_edges,
    held_by_samples,
    left_within_ball,
    with_best_prices,
)
from .record import OWN_TERMS, Certificate, relative
from .remembered import BoundSource, Dual, Primal, Remembered, check_point
from .repairing.feasible import feasible
from .repairing.repair import Repair
from .repairing.routing import consensus_flows
from .spot_checks import SpotChecks

CHARGE = 1e-2  # of the gap asked for: rounding that costs less need not be avoided
SERVES = 0.1  # of the gap asked for: a point whose bound costs less needs no repair
NOTHING = 1e-13  # of a value: less than what plain sums may cost
SHORT = 1e-8  # step of the Moreau envelopes whose gradients stand for flows
ALIKE = 1e-12  # relative: parameters that differ by less are the same but for rounding
FAR = 1e100  # beyond parameters of this size an objective that is no float tells of iterates, and not of constraints
BALANCED = 1e-9  # of what flows through the nodes: an imbalance that needs no repair before it is enclosed


class Certifier:
    """Certifies points of one problem. Any feasible point bounds the optimum: whatever is proposed, bounds are proved
    at it, and the best on either side are kept.

    The relative ``gap`` that is asked for says how near to the values these bounds must come; 0: as near as can be.
    """

    def __init__(self, form: Form, like: Certifier | None = None) -> None:
        """``like`` it is one of a form with other targets, offsets and centers alone."""
        self.form = form
        self.repair = Repair(form)
        self.like = None if like is None else like.like or like  # the first of all: those between are not kept alive
        self.spot_checks = SpotChecks(form)
        self.best_primal: Primal | None = None
        self.best_dual: Dual | None = None
        self.far = np.zeros(form.shape)  # where no objective is known: the last parameters of iterates that diverged
        self.screened = float("nan")  # P at the last screen
        self._attained: tuple[bool | None, Dual | None] | None = None  # and the bound with which it was decided
        self._tried: BoundSource | None = None  # the last one, whether or not what follows from it was the best

    @cached_property
    def enclosure(self) -> Enclosure:
        """What proves lower bounds."""
        return Enclosure(self.form, None if self.like is None else self.like.enclosure)

    @cached_property
    def _flow_dual(self) -> FlowDual | None:
        """None beside terms of the user's, whose laws are tried where repairs lead: a conjugate that has forgotten its
        domain is not noticed at flows that a prox has kept inside."""
        return None if self.spot_checks else FlowDual.of(self.form)

    # ---- from a point to its certificate -----------------------------------------------------------------------------
    def certify(
        self,
        w: Array,
        flows: tuple[Array, ...] | None,
        prices: tuple[Array, ...] | None,
        gap: float,
        cheap: CheapBound | None = None,
    ) -> Certificate:
        """The certificate of w with the best bounds known, given any flows and prices near the optimum.

        What a ``cheap`` bound has found is proposed first; then the point as it is, where that is nearly conserved;
        then what a repair makes of it. Without flows the latent nodes are put where the others want them (see
        `with_latent_minimisers`).
        """
        if cheap is not None and self._cheaply(cheap, gap):
            return self.best()
        w = feasible(self.form, w if flows is not None else with_latent_minimisers(self.form, w))
        point = DualPoint(self._flows(w, flows), self.form.gradient_prices(w) if prices is None else prices)
        self.propose_primal(w, gap)
        of, first = self.form.component, np.empty((self.form.n_components, self.form.d))
        first[of[::-1]] = w[::-1]  # of each component the first node, which comes last
        first = first[of]
        if ((alike := np.abs(w - first) <= ALIKE * np.abs(first)) & (w != first)).any():
            self.propose_primal(np.where(alike, first, w), gap)  # rounding of large w costs what edges weigh
        if point.is_finite():
            point = self.repair.clip(point)
            if not self._as_it_is(point, gap):
                self.propose_dual(self.repair(w, point, gap), gap=gap)
        bound = -np.inf if self.best_dual is None else self.best_dual.bound
        if not (bound >= 0.0 or bound > self.form.dual(self.form.nothing())):
            self._keep_dual(self._proved(BoundSource(None, np.inf)))  # Q(0, 0) is better than nothing, where 0 is one
        return self.best()

    def _cheaply(self, cheap: CheapBound, gap: float) -> bool:
        """The bound that a cheap one leads to is taken. True where no repair need follow: the gap is met, or could not
        become much smaller."""
        if self._flow_dual is None:
            return False
        self.propose_primal(cheap.w, gap)
        self.propose_dual(*self._flow_dual.point(cheap), gap=gap)
        return self.best_dual is not None and (not cheap.repairable or self.best().holds(gap))

    def _as_it_is(self, point: DualPoint, gap: float) -> bool:
        """The bound next to a point that is nearly conserved is taken. True where the point needs no repair: that bound
        costs little beside the gap asked for."""
        value = self.form.dual(point)
        if not np.isfinite(value) or not self._balanced(point):
            return False
        if self._promising(value):
            self._keep_dual(self._proved(self._source(point, value, gap)))
        return self.best_dual is not None and value - self.best_dual.bound <= SERVES * gap * abs(value)

    def _flows(self, w: Array, flows: tuple[Array, ...] | None) -> tuple[Array, ...]:
        """The flows given, or those of the penalties' gradients (of their Moreau envelopes where they have kinks), and
        on edges whose ends agree (as in a consensus) those that balance what these and the losses leave."""
        if flows is not None:
            return flows
        out = list[Array]()
        for edge in self.form.edges:
            z, penalty, c = edge.difference(w), edge.penalty, edge.weight[:, None]
            smooth = isinstance(penalty, AbstractSmoothPenalty)
            out.append(c * penalty.gradient(z) if smooth else c * (z - penalty.prox(z, SHORT)) / SHORT)
        found, rounds = consensus_flows(self.form, w, tuple(out), self.form.gradient_prices(w))
        self.repair.exchanges += rounds
        return found

    def best(self) -> Certificate:
        """The certificate of the best points seen so far."""
        form, own, found = self.form, self.spot_checks, self.best_dual
        best = self.best_primal or Primal(np.inf, np.inf, self.far, True)
        if found is None:
            none, lost = form.nothing(), np.full(form.n_components, -np.inf)
            nowhere = Enclosed(lost, none, none.flows, "no dual point was found")
            found = Dual(-np.inf, nowhere, BoundSource(None, np.inf))
        primal, dual, w, point = best.bound, found.bound, best.w, found.found.dual_point
        note = ""
        if own and self.best_primal is not None and self.best_dual is not None:
            own(w, point)
        if own.contradiction:
            note = own.contradiction
            return Certificate(np.inf, -np.inf, 0.0, "none", w, point, form, note, contradiction=note)
        primal, dual = primal + own.above, dual - own.below
        if not np.isfinite(primal) and w.any():
            note = f"the objective is beyond all floats at parameters of {np.abs(w).max():.0e}"
        elif not np.isfinite(primal):
            which = "; problem.solve() tells which constraints exclude each other, if any do" * form.limited
            note = f"no point with a finite objective was found{which}"
        elif not np.isfinite(dual):
            note = f"no lower bound was proved: {found.found.why}" if found.found.why else "no lower bound was proved"
        elif primal < dual <= primal + NOTHING * own.size:
            note = f"the bounds cross by {dual - primal:.2g}, which may be rounding in terms of your own"
        elif dual > primal:
            raise InternalError(
                f"the lower bound {dual!r} lies above the upper bound {primal!r}: this is an error of graphreg, please "
                "report it with the model and its data"
            )
        if note:
            return Certificate(primal, dual, 0.0, "none", w, point, form, note)
        rounding = max(primal - best.value, 0.0)
        charge = rounding + max(found.value - dual, 0.0)
        scope = OWN_TERMS if own else "global"
        return Certificate(primal, dual, charge, scope, w, point, form, own.assumed, rounding, found.found.spread)

    # ---- what is cheap to know of a point ----------------------------------------------------------------------------
    def screen(self, w: Array, flows: tuple[Array, ...] | None, prices: tuple[Array, ...] | None = None) -> float:
        """A cheap relative gap that certifies nothing: that within the ball of twice the largest ||w_i||.

        gap_R = sum_e FY_e + sum_r FY_r + sum_i (<rho_i, w_i> + R ||rho_i||), rho_i = (K'u)_i + X_i'a_i, with the
        gradients of smooth losses for prices, whose FY_r is 0. ``screened`` is P at the point.
        """
        form = self.form
        w = feasible(form, w if flows is not None else with_latent_minimisers(form, w))
        _, primal, gap, rho = held_by_samples(form, w, prices)
        for edge, flow in zip(form.edges, self._flows(w, flows), strict=True):
            u = edge.clip(flow)
            value, held = held_by_edges(edge, w, u)
            primal, gap = primal + value, gap + held
            edge.add_adjoint(u, rho)
        self.screened = primal
        gap += left_within_ball(w, rho)
        return relative(abs(gap), primal, primal, floor(form, abs(primal)))

    @property
    def bounds_cheaply(self) -> bool:
        """True where every node is strictly convex."""
        return self._flow_dual is not None

    def cheap_bound(
        self, points: Sequence[Array], flows: tuple[Array, ...] | None, fast: bool = False
    ) -> CheapBound | None:
        """The best of some parameters against the best prices for some flows, nothing of it proved; None where some
        node is not strictly convex, or its prices are not found. By compiled code where that is ``fast``."""
        if flows is None or self._flow_dual is None:
            return None
        return self._flow_dual.cheap_bound([feasible(self.form, w) for w in points], flows, fast)

    def bound_as_given(self, flows: tuple[Array, ...], prices: tuple[Array, ...] | None) -> float | None:
        """The lower bound of flows that are not repaired, with prices given or the best for them: -inf where that is
        not balanced, None where the best prices are not known."""
        w = np.zeros(self.form.shape)
        if prices is not None:
            self.propose_dual(DualPoint(flows, prices))
        else:
            dual = self._flow_dual or FlowDual.of(self.form)  # flows that are given are no prox's
            found = with_best_prices(self.form, dual, flows, feasible(self.form, w))
            if found is None:
                return None
            self.propose_dual(*found)
        if self.best_dual is None:
            return -np.inf
        self.spot_checks(w, self.best_dual.found.dual_point)
        return None if self.spot_checks.contradiction else self.best_dual.bound - self.spot_checks.below

    def from_flows(self, w: Array, flows: tuple[Array, ...], gap: float) -> Certificate:
        """The certificate with what parameters and flows say that are nearly optimal, where every node is strictly
        convex; nothing of it is repaired."""
        if self._flow_dual is not None:
            self.propose_primal(w, gap)
            self.propose_dual(*self._flow_dual.near(self._flow_dual.inside(flows), w), gap=gap)
        return self.best()

    # ---- what is proposed, and kept where it is the best -------------------------------------------------------------
    def propose(self, w: Array, point: DualPoint, gap: float = 0.0) -> None:
        """Take points, feasible and conserved up to rounding, among the best."""
        self.propose_primal(w, gap)
        self.propose_dual(point, gap=gap)

    def propose_primal(self, w: Array, gap: float = 0.0) -> None:
        """Take a feasible w among the best."""
        if not np.isfinite(w).all():
            return
        value, best = self.form.primal(w), self.best_primal
        if best is None and not np.isfinite(value) and np.abs(w).max(initial=0.0) > FAR:
            self.far = w
        enough = _enough(value, gap)
        if best is not None and not value < best.value and not (best.plain and best.bound - value > enough):
            return
        found = self._upper(w, value, plain=True) if enough > 0.0 else None
        if found is None or not found.bound - value <= enough:
            found = self._upper(w, value, plain=False)
        if found is not None and (best is None or found.bound < best.bound):
            self.best_primal = found

    def propose_dual(self, point: DualPoint, at: Array | None = None, *, gap: float = 0.0) -> None:
        """Keep a dual point where the bound that is proved next to it is the best; its prices may be gradients ``at``
        parameters.

        Only what rounding leaves is mended there: a point that is further out of balance is worth no attempt.
        """
        if not point.is_finite():
            return
        value = self.form.dual(point)
        if self._promising(value) and (at is not None or self._balanced(point)):
            self._keep_dual(self._proved(self._source(point, value, gap, at), value))

    def propose_bound(self, found: Enclosed) -> None:
        """Take a lower bound that was proved elsewhere among the best."""
        self._keep_dual(Dual(self.form.dual(found.dual_point), found, BoundSource(found.dual_point, np.inf)))

    def propose_from(self, other: Certifier, v: Array, gap: float) -> None:
        """Take the lower bound of the problem around a common model v (d,), for what it is worth here."""
        best = other.best_dual
        self.spot_checks.contradiction = self.spot_checks.contradiction or other.spot_checks.contradiction
        if best is None:
            return
        found = self.enclosure.beside(best.found)
        if found is not None and found.value >= best.bound - _enough(best.value, gap):
            self.propose_bound(found)
            return
        if best.source.at is not None and self._flow_dual is not None:
            self.propose_dual(*self._flow_dual.near(best.found.dual_point.flows, best.source.at + v), gap=gap)
            costs = best.bound - (-np.inf if self.best_dual is None else self.best_dual.bound)
            if costs <= SERVES * gap * abs(best.value) and self.best().holds(gap):
                return
        self.propose_dual(best.found.dual_point, gap=gap)

    def _keep_dual(self, one: Dual) -> None:
        if self.best_dual is None or one.bound > self.best_dual.bound:
            self.best_dual = one

    def _balanced(self, point: DualPoint) -> bool:
        return self.repair.unbalance(point) <= BALANCED * self.repair.throughput(point)

    def _promising(self, value: float) -> bool:
        best = self.best_dual
        return best is None or not np.isfinite(best.bound) or value > best.bound

    # ---- how bounds are proved ---------------------------------------------------------------------------------------
    def _upper(self, w: Array, value: float, plain: bool) -> Primal | None:
        """The upper bound at w; None where it is not finite."""
        bound = upper_bound(self.form, w, self.enclosure.written if plain else None)
        return Primal(value, bound, w, plain) if np.isfinite(bound) else None

    def _source(self, point: DualPoint, value: float, gap: float, at: Array | None = None) -> BoundSource:
        """The bound next to a point of that value is to be proved by plain sums, where these cost little beside the gap
        asked for, or meet it."""
        enough = _enough(value, gap)
        least = value - enough if enough > 0.0 else np.inf
        if self.best_primal is not None and gap > NOTHING:
            primal, serves = self.best_primal.bound, value - SERVES * gap * abs(value)
            tells = primal - gap * abs(primal) > serves  # else the floor changes nothing
            size = max(abs(primal), floor(self.form, abs(primal)) if tells else 0.0)
            least = min(least, max(primal - gap * size, serves))
        return BoundSource(point, least, at)

    def _proved(self, source: BoundSource, value: float | None = None) -> Dual:
        """The lower bound that follows from a source: from the gradients that its prices are, or else enclosed. The
        ``value`` of its point may be known. Where the source is the last one again, as where a repair hands back what
        it was given, nothing new follows: the best bound so far is returned."""
        if self.best_dual is not None and self._tried is not None and self._tried.like(source):
            return self.best_dual
        self._tried = source
        if source.point is None:
            found = self.enclosure(self.form.nothing())
            return Dual(found.value, found, source)
        found = None
        if source.at is not None and self._flow_dual is not None:
            found = self.enclosure.absorbed(self._flow_dual.nodes, source.point, source.at)
        if found is None or not found.value >= source.least:
            found, value = self.enclosure(source.point, self._middle, source.least), None
        return Dual(self.form.dual(found.dual_point) if value is None else value, found, source)

    def _middle(self) -> DualPoint | None:
        """A point well inside all domains, where there is one."""
        if not self.repair.size:
            w = np.zeros(self.form.shape) if self.best_primal is None else self.best_primal.w
            self.repair.size = self.repair.size_of(w)
        center = self.repair.center
        return None if self.repair.slater is False else center

    # ---- whether the infimum is attained -----------------------------------------------------------------------------
    def attained(self) -> bool | None:
        """Attainment of the infimum, decided once; None where it is not known. See `attained`.

        It is where all prices of an exactly conserved point lie in the relative interiors of their domains: with
        <a, Xv> + <u, Kv> = 0, each summand is as large as its recession function along any v along which P does not
        grow, and there no sample changes.
        """
        if self._attained is None:
            self._attained = (self._decided(self.best_dual), self.best_dual)
        return self._attained[0]

    def _decided(self, best: Dual | None) -> bool | None:
        if best is not None and best.found.inner and np.isfinite(best.bound) and cones_of(self.form) is not None:
            return True
        return attained(self.form, None if best is None else best.found.dual_point)

    def recedes(self) -> bool:
        """True where the problem is better solved without what falls away at infinity (see `at_infinity`): samples fall
        for ever, or no dual point lies well inside all domains."""
        return self.attained() is False or (self.repair.slater is False and self._falls_away)

    @cached_property
    def _falls_away(self) -> bool:
        return at_infinity(self.form) is not None

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def remembered(self, gap: float) -> Remembered:
        """The points to `recall` elsewhere, of a run to some gap. Of shared objects: they are replaced, never changed
        in place."""
        best, lowest, decided = self.best_primal, self.best_dual, None
        if self._attained is not None:
            by = self._attained[1]
            decided = () if by is lowest else (None if by is None else by.source,)
        w, plain = (None, True) if best is None else (best.w, best.plain)
        size, exchanges, centred = self.repair.remembered()
        source = None if lowest is None else lowest.source
        return Remembered(w, plain, source, decided, self.screened, centred, gap, size, exchanges)

    def recall(self, remembered: Remembered) -> None:
        """Go on from there; every bound is proved anew. `ValueError` names points that are none of this form."""
        form, self.screened = self.form, remembered.screened
        self.repair.recall(remembered.size, remembered.exchanges, remembered.centred)
        self.best_primal = self.best_dual = self._attained = None
        for source in (remembered.source, *(remembered.decided or ())):
            check_point(form, *(None, None) if source is None else (source.at, source.point))
        check_point(form, remembered.w, None)
        if remembered.w is not None:
            self.best_primal = self._upper(remembered.w, form.primal(remembered.w), remembered.plain)
        self.best_dual = None if remembered.source is None else self._proved(remembered.source)
        if remembered.decided is not None:
            by = self.best_dual
            for source in remembered.decided:  # another one
                by = None if source is None else self._proved(source)
            self._attained = (self._decided(by), by)


def _enough(value: float, gap: float) -> float:
    """The cost of a bound that is small beside the gap asked for; 0 where plain sums cost more."""
    return CHARGE * gap * abs(value) if CHARGE * gap > NOTHING else 0.0
