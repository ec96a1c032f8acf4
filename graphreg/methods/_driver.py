"""The one driver: loop, clock, trace, stopping on the certified gap, progress, callback, interruption.

It screens before it repairs: every max(10, k/10) rounds a cheap bound that certifies nothing, and a repair only when
the screen, or the decay of the gap so far, lets it expect the target, or when k has quadrupled since the last.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..certificate import Certificate, Certifier
from ..lowering.site import Site
from ._base import AbstractIteration, Start
from ._polish import applies, guess, polish
from .ledger import Ledger
from .trace import Record, Trace

MOST_ROUNDS = 100_000  # where the caller sets no budget
EARLIEST, LATEST = 40, 400  # rounds before the first repair that a screen does not promise to succeed
WITHIN, MAYBE = 30.0, 2000.0  # screens over the target at which a repair will do, and at which it may


@dataclass(frozen=True)
class Budget:
    """What the caller asked for; see `Problem.solve`."""

    gap: float = 1e-6
    rounds: int | None = None
    seconds: float | None = None
    start: Start | None = None
    callback: Callable[[Record], Any] | None = None
    progress: bool | None = None


@dataclass
class Outcome:
    """What a run gave. ``ended`` is 'gap', 'budget', 'limit', 'recession', 'interrupted' or 'failed'."""

    certificate: Certificate
    ended: str
    trace: Trace
    ledger: Ledger
    rounds: int
    seconds: float


@dataclass
class _Schedule:
    """When to screen and when to repair: when the screen, or the decay of the last two gaps, lets expect the target.

    A repaired gap g is of higher order in the distance from the optimum than a screen s: from the last repair the
    next gap is expected at g (s / s_last)^power, the power learnt from the last two. The decay is taken as geometric
    in the rounds.
    """

    target: float
    polishes: bool
    next_screen: int = 10
    next_repair: int = LATEST
    next_polish: int = 10
    round: int = 0  # of the last repair, with its gap and the screen of that moment
    gap: float = np.inf
    screen: float = np.inf
    power: float = 1.5

    def polish_now(self, k: int) -> bool:
        if not self.polishes or k < self.next_polish:
            return False
        self.next_polish = max(20, k + k // 2)
        return True

    def repairs(self, k: int, screen: float) -> bool:
        if k >= self.next_repair:
            return True
        if not np.isfinite(self.gap):  # no repair yet: screens are 4 to 4000 times the gap
            return screen <= WITHIN * self.target or (k >= EARLIEST and screen <= MAYBE * self.target)
        return self.gap * (screen / max(self.screen, 1e-300)) ** self.power <= self.target

    def repaired(self, k: int, screen: float, gap: float) -> None:
        wait = 3.0 * k
        if 0.0 < self.target < gap < self.gap < np.inf:
            wait = (k - self.round) * np.log(gap / self.target) / np.log(self.gap / gap)
            if 0.0 < screen < self.screen:
                self.power = float(np.clip(np.log(self.gap / gap) / np.log(self.screen / screen), 1.0, 2.0))
        self.next_repair = k + int(np.clip(wait, 0.25 * k, 3.0 * k))
        self.round, self.gap, self.screen = k, gap, screen


def _now() -> float:
    return time.perf_counter()


@dataclass
class _Run:
    method: AbstractIteration
    certifier: Certifier
    budget: Budget
    ledger: Ledger
    engine: Any
    trace: Trace = field(default_factory=Trace)
    began: float = field(default_factory=_now)
    unknowns: int | None = None  # of the last guess of a polish

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def check(self, state: Any, k: int, schedule: _Schedule) -> str:
        """Why the run ends after round k, from what a screen, a repair or a polish shows; empty where it goes on."""
        if not np.isfinite(self.method.point(state)[0]).all():
            return "failed"
        if schedule.polish_now(k) and self.polish(state, k):
            return "gap"
        screen = self.screen(state, k)
        if not schedule.repairs(k, screen):
            return ""
        certificate = self.certify(state, k)
        schedule.repaired(k, screen, certificate.relative_gap)
        if certificate.holds(self.budget.gap):
            return "gap"
        return "recession" if self.certifier.attained() is False else ""  # the iterates would run to infinity

    def last(self, state: Any, k: int, ended: str) -> Certificate:
        """The certificate that the run ends with."""
        if ended in ("gap", "failed", "recession"):
            return self.certifier.best(self.budget.gap)
        if self.budget.gap == 0.0:  # the iterate after exactly so many rounds is asked for, not the best one
            self.certifier.best_primal = None
        return self.certify(state, k)

    def at_interrupt(self, state: Any, k: int) -> Certificate:
        """That of the last state, or of the best known where even this is interrupted; nobody is called back."""
        self.budget = replace(self.budget, callback=None)
        try:
            return self.certify(state, k)
        except KeyboardInterrupt:
            return self.certifier.best(self.budget.gap)

    def screen(self, state: Any, k: int) -> float:
        at = time.perf_counter()
        w, u, _ = self.method.point(state)
        screen = self.certifier.screen(w, u)
        self._charge(1, 1)
        self._note(Record(k, self.elapsed(), screen, False), at)
        return screen

    def certify(self, state: Any, k: int) -> Certificate:
        at = time.perf_counter()
        before = self.certifier.repair.exchanges
        certificate = self.certifier.certify(*self.method.point(state), self.budget.gap)
        spent = self.certifier.repair.exchanges - before
        self._charge(spent, spent)
        gap = certificate.relative_gap if certificate.valid else np.inf
        self._note(Record(k, self.elapsed(), gap, certificate.valid, certificate.primal, certificate.dual), at)
        return certificate

    def polish(self, state: Any, k: int) -> bool:
        """Whether a polish of the state meets the gap."""
        at = time.perf_counter()
        done = self._polish(state)
        self.trace.polish_seconds += time.perf_counter() - at
        if done:
            found = self.certifier.best(self.budget.gap)
            record = Record(k, self.elapsed(), found.relative_gap, True, found.primal, found.dual)
            self._note(record, time.perf_counter())
        return done

    def _polish(self, state: Any) -> bool:
        form, certifier = self.certifier.form, self.certifier
        w, flows, _ = self.method.point(state)
        found = None if flows is None else guess(form, flows)
        unknowns = None if found is None else found.S.shape[1]  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        settled, self.unknowns = unknowns == self.unknowns, unknowns
        if found is None or not settled:  # only a guess that was made twice is worth a try
            return False
        before = certifier.repair.exchanges
        polished = polish(certifier.repair, w, found)
        numbers = 8 * (unknowns or 0) * ((unknowns or 0) + 3) // 2  # a gradient and a symmetric Hessian
        hops = 2 * (self.engine.n - 1) * polished.sums
        self.ledger.add("adaptation", hops, hops * numbers)
        self._charge(certifier.repair.exchanges - before, certifier.repair.exchanges - before)
        if polished.point is None:
            return False
        certifier.admit(polished.w, polished.point)
        return certifier.best(self.budget.gap).holds(self.budget.gap)

    def _charge(self, exchanges: int, reductions: int) -> None:
        n = self.engine.n
        self.ledger.add("certificate", exchanges * self.engine.messages, exchanges * 8 * self.engine.floats)
        self.ledger.add("certificate", reductions * 2 * (n - 1), reductions * 32 * (n - 1))

    def _note(self, record: Record, at: float) -> None:
        self.trace.records.append(record)
        self.trace.check_seconds += time.perf_counter() - at
        if self.budget.callback is not None:
            self.budget.callback(record)


def drive(method: AbstractIteration, site: Site, certifier: Certifier, budget: Budget, ledger: Ledger) -> Outcome:
    """Run a method until the certified relative gap is met, the budget is used up, or it is interrupted."""
    run = _Run(method, certifier, budget, ledger, site.engine)
    schedule = _Schedule(budget.gap, polishes=method.polishes() and budget.gap > 0 and applies(site.form))
    bar = _bar(method.name, budget)
    state = method.init(site, budget.start)
    k, ended = 0, ""
    most = budget.rounds if budget.rounds is not None else MOST_ROUNDS
    try:
        while not ended:
            if k >= most or (budget.seconds is not None and run.elapsed() > budget.seconds):
                ended = "limit" if budget.rounds is None and budget.seconds is None else "budget"
                break
            state = method.step(state)
            k += 1
            if k >= schedule.next_screen:
                schedule.next_screen = k + max(10, k // 10)
                ended = run.check(state, k, schedule)
                bar(k, run.trace)
        certificate = run.last(state, k, ended)
    except KeyboardInterrupt:
        ended = "interrupted"
        certificate = run.at_interrupt(state, k)
    ledger.rounds = k
    if ended in ("limit", "budget") and certificate.holds(budget.gap):
        ended = "gap"
    bar(None, run.trace)
    return Outcome(certificate, ended, run.trace, ledger, k, run.elapsed())


def _bar(name: str, budget: Budget) -> Callable[[int | None, Trace], None]:
    """A progress bar on stderr, shown where that is a terminal (or where it is asked for) from the first check on."""
    shown = sys.stderr.isatty() if budget.progress is None else budget.progress
    if not shown:
        return lambda k, trace: None
    from tqdm import tqdm

    bar = tqdm(total=budget.rounds, desc=name, unit=" rounds", leave=False, delay=1.0)

    def update(k: int | None, trace: Trace) -> None:
        if k is None:
            bar.close()
            return
        last = trace.records[-1]
        word = "gap" if last.certified else "gap about"
        bar.set_postfix_str(f"{word} {last.relative_gap:.1e}, target {budget.gap:.0e}", refresh=False)
        bar.update(k - bar.n)

    return update
