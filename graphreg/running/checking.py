"""The checks of a run: what a screen, a repair or a polish shows of a state, noted in the trace and in the ledger."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.clock import alarm
from ..certificate import Certificate, Certifier, CheapBound, floor, relative
from ..form import has_latent_minimisers
from ..network import Ledger, pays
from ..terms import Array
from .budget import Budget
from .polish import Groups, Guess, applies, contracted, groups_of_flows, guess, most_unknowns, routed, worth_routing
from .schedule import FAR, MAYBE, Schedule, stalled
from .snapshot import Checked, Snapshot
from .trace import Record, Trace

if TYPE_CHECKING:
    from .method import AbstractIteration, Point, Start

NEAR = 0.2  # relative gap from which on guesses are routed: further away they change
TOWARDS = (0.5, 0.1, 0.02, 0.004)  # of the way from a guess to the point that it was made of
WORSE = 10.0  # times this gap: what flows may leave that were routed by a guess that is worth another go
BETTER = 4.0  # times less is left by a go that is worth another one


@dataclass
class Checks:
    """The points of one run, judged."""

    method: AbstractIteration
    certifier: Certifier
    budget: Budget
    ledger: Ledger
    schedule: Schedule
    trace: Trace = field(default_factory=Trace)
    began: float = field(default_factory=lambda: time.perf_counter())  # noqa: PLW0108 - the clock of the moment
    unknowns: int | None = None  # of the last guess of a polish
    grouped: tuple[tuple[Array, ...], Groups] | None = None  # the flows of the last merge, and what they hold together
    hurried: bool = False  # whether an alarm is set, which must not ring while code is compiled
    misled: bool | None = None  # whether a prox or gradient of the user's is wrong; None: not tried yet
    longest: float = 0.0  # seconds that a certificate took, which the last one will take, too

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def reason_at_start(self, start: Start | None) -> str:
        """The reason for which the run ends before its first round: where a start with flows meets the gap. Whoever
        has proved bounds of it before needs none here, and of starts on a path too few do."""
        gap, known = self.budget.gap, self.budget.warm_start is not None or self.certifier.best_dual is not None
        if start is None or start[1] is None or gap == 0.0 or known:
            return ""
        point = start[0], start[1], None
        bound = self.cheap_bound(point, None, 0)
        seen, promising = (self.screen(point, 0), MAYBE * gap) if bound is None else (self._relative(bound), gap)
        if not seen <= promising:
            return ""
        certificate = self.certify_point(point, 0, bound)
        return "failed" if certificate.contradiction else "gap" if certificate.holds(gap) else ""

    # ---- what a checkpoint keeps of them ----------------------------------------------------------------------------
    def noted(self) -> Checked:
        """The state that later checks depend on."""
        schedule, records = replace(self.schedule), list(self.trace.records)
        certifier = self.certifier.remembered(self.budget.gap)
        return Checked(schedule, certifier, records, self.unknowns, self.trace.check_seconds)

    def restore(self, stored: Snapshot) -> None:
        """Go on from there."""
        checked, asked = stored.checks, self.schedule  # the budget may change from call to call
        self.certifier = self.method.judge(stored.state, self.certifier)
        self.schedule = replace(checked.schedule, target=asked.target, polishes=asked.polishes, every=asked.every)
        self.certifier.recall(checked.certifier)
        self.unknowns = checked.unknowns
        self.trace.records[:] = checked.records
        self.trace.check_seconds = checked.check_seconds
        self.ledger.accounts.update(stored.sent)
        self.began -= stored.seconds

    # ---- between rounds ---------------------------------------------------------------------------------------------
    def check(self, state: Any, k: int) -> str:
        """The reason for which the run ends after round k, from what a screen, a repair or a polish shows; empty
        where it goes on."""
        method, schedule, asked, point = self.method, self.schedule, self.budget.gap, self.method.point(state)
        if not np.isfinite(point[0]).all():
            return "failed"
        at, known = time.perf_counter(), method.known_gap(state)
        if known is not None:
            self._note(at, k, known[0], False, known[1])
        if method.early(state) or (known is not None and known[0] > FAR * asked):
            return ""
        self.certifier = method.judge(state, self.certifier)
        bound = self.cheap_bound(point, self._inside(state), k)
        if bound is not None:
            gap = self._relative(bound)
            schedule.note_bound(k, gap)
            if schedule.worth_a_proof(k, gap):
                method.lighten(state)
                if ended := self._reason_to_end(self.certify_point(point, k, bound), k):
                    return ended
                schedule.note_proof(k)
        helps = bound is None or bound.w is not point[0]  # what flows tie together is better tied
        if schedule.polish_now(k) and helps and self.polish(state, k, bound):
            return "gap"
        gap = None if known is None else known[0]
        if bound is not None or not self._worth_a_repair(point, k, gap):  # a bound leads further by some rounds more
            return self._stalled(k, point[0])
        certificate = self.certify_state(state, k)
        schedule.note_repair(k, schedule.screened[1], certificate.relative_gap)
        return self._reason_to_end(certificate, k)

    def _worth_a_repair(self, point: Point, k: int, known: float | None) -> bool:
        """True where the screen of a point, or the gap that is known of it, lets expect that a repair meets the gap."""
        screen = self.screen(point, k) if known is None else known
        self.schedule.note_screen(k, screen)
        return self.schedule.worth_a_repair(k, screen, known is not None)

    def _reason_to_end(self, certificate: Certificate, k: int) -> str:
        """The reason for which the run ends with a certificate; empty where it goes on."""
        if certificate.holds(self.budget.gap) or certificate.contradiction:
            return "failed" if certificate.contradiction else "gap"
        if self.certifier.recedes():  # the iterates would run to infinity
            return "recession"
        return self._stalled(k, certificate.w)

    def _stalled(self, k: int, w: Array) -> str:
        """The end of methods with a bias that stall, and of all where a prox or gradient of the user's is wrong, which
        is tried once; else empty: all others still converge, be it ever so slowly."""
        if self.budget.rounds is not None or self.budget.gap == 0.0:
            return ""
        if self.misled is None:
            own = self.certifier.spot_checks
            self.misled = bool(own) and bool(own.doubt(w, self.certifier.form.nothing(), everywhere=False))
        slow = bool(self.method.bias) and stalled(self.trace.records, k, self.method.drawn)
        return "stalled" if slow or self.misled else ""

    def _relative(self, bound: CheapBound) -> float:
        """The gap of a bound, relative to P there."""
        primal = bound.primal
        return relative(bound.gap, primal, primal, floor(self.certifier.form, abs(primal)))

    def _inside(self, state: Any) -> tuple[Array, ...] | None:
        """Flows that say what is fused, where a merge may help."""
        return self.method.inside_flows(state) if self.budget.gap > 0 and applies(self.certifier.form) else None

    def cheap_bound(self, point: Point, inside: tuple[Array, ...] | None, k: int) -> CheapBound | None:
        """The bound that the flows of a point give at once, noted; None where that is not known (see `FlowDual`)."""
        at = time.perf_counter()
        points = [point[0]]
        if inside is not None and self.certifier.bounds_cheaply:
            points.append(self._merged(point[0], inside, k))
        bound = self.certifier.cheap_bound(points, point[1], self._fast(k))
        if bound is not None:
            self._charge(1, 1)
            self._note(at, k, self._relative(bound), False, bound.primal)
        return bound

    def _merged(self, w: Array, inside: tuple[Array, ...], k: int) -> Array:
        groups = self._groups(inside, k)
        if not self.method.central:  # as a polish, no step that neighbours could take alone
            self.ledger.sum("certificate", groups.numbers(self.certifier.form.d))
        return groups.merged(w)

    def _fast(self, k: int) -> bool:
        """True where looks take compiled passes, as rounds do."""
        return not self.hurried and pays(self.certifier.form, k)

    def _groups(self, inside: tuple[Array, ...], k: int) -> Groups:
        """The groups that flows hold together, found once."""
        if self.grouped is None or self.grouped[0] is not inside:
            found = groups_of_flows(self.certifier.form, inside, fast=self._fast(k))
            assert found is not None  # as many as there are may be left
            self.grouped = inside, found
        return self.grouped[1]

    def screen(self, point: Point, k: int) -> float:
        at = time.perf_counter()
        before = self.certifier.repair.exchanges
        screen = self.certifier.screen(*point)
        screen = np.inf if np.isnan(screen) else screen  # inf - inf, where no point satisfies all constraints
        self._charge_repairs(before, point, screens=1)  # to balance flows that the method does not have
        self._note(at, k, screen, False, self.certifier.screened)
        return screen

    def certify_state(self, state: Any, k: int) -> Certificate:
        point, inside = self.method.point(state), self._inside(state)
        bound = self.cheap_bound(point, inside, k)
        if bound is None and inside is not None:
            self.certifier.propose_primal(self._merged(point[0], inside, k), self.budget.gap)
        return self.certify_point(point, k, bound)

    def certify_point(self, point: Point, k: int, bound: CheapBound | None = None) -> Certificate:
        """The certificate of a point, charged and noted."""
        at = time.perf_counter()
        before = self.certifier.repair.exchanges
        with alarm():
            certificate = self.certifier.certify(*point, self.budget.gap, bound)
        self.longest = max(self.longest, time.perf_counter() - at)
        self._charge_repairs(before, point)
        gap = certificate.relative_gap if certificate.valid else np.inf
        self._note(at, k, gap, certificate.valid, certificate.primal, certificate.dual)
        return certificate

    def polish(self, state: Any, k: int, bound: CheapBound | None) -> bool:
        """True where a polish of the state meets the gap."""
        at = time.perf_counter()
        with alarm():
            done = self._polish(state, k, bound)
        self.trace.polish_seconds += time.perf_counter() - at
        if done:
            found = self.certifier.best()
            self._note(time.perf_counter(), k, found.relative_gap, True, found.primal, found.dual)
        return done

    def _polish(self, state: Any, k: int, bound: CheapBound | None) -> bool:
        form, certifier = self.certifier.form, self.certifier
        w, flows, _ = point = self.method.point(state)
        if flows is None:
            return False
        most = most_unknowns(form)
        again = certifier.bounds_cheaply and flows is self._inside(state)  # the next bound merges the same
        groups = self._groups(flows, k) if again else groups_of_flows(form, flows, most)
        unknowns = None if groups is None or groups.numbers(form.d) > most else groups.numbers(form.d)
        settled, self.unknowns = unknowns == self.unknowns, unknowns
        if groups is None or unknowns is None or not settled:  # only a guess that was made twice is worth a try
            return False
        if bound is not None and not (worth_routing(form, k) and self._near(bound, groups, w)):
            return False
        before, found = certifier.repair.exchanges, guess(form, groups)
        solved, sums = contracted(form, w, found)
        numbers = unknowns * (unknowns + 3) // 2  # a gradient and a symmetric Hessian
        self.ledger.sum("adaptation", numbers, sums)
        met = solved is not None and self._routes(found, solved, flows, bound)
        self._charge_repairs(before, point)
        return met

    def _near(self, bound: CheapBound, groups: Groups, w: Array) -> bool:
        """True where a guess may last: near the optimum; and where all agree, if P does not fall from there to w."""
        form = self.certifier.form
        if self._relative(bound) <= NEAR:
            return True
        if groups.numbers(form.d) > form.n_components * form.d:
            return False
        agreed = groups.merged(w)
        P = form.primal(agreed)
        return all(form.primal(agreed + t * (w - agreed)) >= P for t in TOWARDS)

    def _routes(self, found: Guess, w: Array, flows: tuple[Array, ...], bound: CheapBound | None) -> bool:
        """True where flows routed by a guess meet the gap. Those that leave their capacities are routed again from
        within, by what room is left there, as long as that brings them nearer to balance."""
        certifier, gap = self.certifier, self.budget.gap
        if bound is None:  # one go from nothing, which is spread evenly, and one from the flows at hand
            for begun in (tuple(np.zeros_like(u) for u in flows), flows):
                certifier.propose(w, routed(certifier.repair, found, w, begun), gap)
                if certifier.best().holds(gap):
                    return True
            return False
        point = routed(certifier.repair, found, w, flows)
        wanted = WORSE * self._relative(bound)
        while (bound := certifier.cheap_bound([w], point.flows)) is not None and (
            left := self._relative(bound)
        ) <= wanted:
            if left <= gap:
                certifier.from_flows(w, point.flows, gap)
                return certifier.best().holds(gap)
            wanted = left / BETTER
            point = routed(certifier.repair, found, w, bound.flows)
        return False

    def _charge_repairs(self, before: int, point: Point, screens: int = 0) -> None:
        """Charge what repairs of a point have exchanged since, and screens of it. Latent nodes that the certifier
        settles take an exchange: up and down a tree, once each way across an edge."""
        spent = screens + self.certifier.repair.exchanges - before
        self._charge(spent + (point[1] is None and has_latent_minimisers(self.certifier.form)), spent)

    def _charge(self, exchanges: int, reductions: int) -> None:
        if self.method.central:  # all data are in one place, and nothing is sent
            return
        self.ledger.exchange("certificate", times=exchanges)
        self.ledger.sum("certificate", 2, reductions)

    def _note(self, at: float, k: int, gap: float, certified: bool, primal: float, dual: float = np.nan) -> None:
        """Note a check that began ``at`` this moment."""
        record = Record(k, self.elapsed(), gap, certified, primal, dual, *self.ledger.sent())
        self.trace.records.append(record)
        self.trace.check_seconds += time.perf_counter() - at
        if self.budget.callback is not None:
            self.budget.callback(record)
