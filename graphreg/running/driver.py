"""The one driver: loop, clock, trace, stopping on the certified gap, progress, callback, interruption, checkpoints.

It screens before it repairs: every k/10 to k/2 rounds a cheap bound that certifies nothing, and a repair only when
the screen, or the decay of the gap so far, lets it expect the target, or when k has quadrupled since the last.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..breakdown import Watched, cause, numerical, raised_by
from ..certificate import Certificate, Certifier, feasible
from ..clock import LAST, OutOfTimeError, afresh, alarm, left, progress_bar
from ..errors import CheckpointError
from ..form import settles
from ..network import Ledger, LocalView
from .budget import Budget, Outcome
from .observed import Recorder
from .polish import applies, guess, merged, polish
from .schedule import EARLIEST, MAYBE, WARM, Schedule
from .snapshot import Checked, Keeper, Snapshot
from .trace import Record, Trace

if TYPE_CHECKING:
    from ..methods import AbstractIteration, Point, Start

EXTRA = 0.1  # of the seconds that a run may take: what the last certificate may take beyond them


@dataclass
class _Run:
    method: AbstractIteration
    certifier: Certifier
    budget: Budget
    ledger: Ledger
    keeper: Keeper | None
    schedule: Schedule
    recorder: Recorder | None = None
    trace: Trace = field(default_factory=Trace)
    began: float = field(default_factory=lambda: time.perf_counter())  # noqa: PLW0108 - the clock of the moment
    unknowns: int | None = None  # of the last guess of a polish
    checked: Checked | None = None  # for the checkpoint; None while it has yet to be noted
    longest: float = 0.0  # seconds that a certificate took, which the last one will take, too

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def over(self, k: int) -> str:
        """Why no round may follow after k; empty where one may."""
        budget = self.budget
        most = self.method.most_rounds if budget.rounds is None else budget.rounds
        remaining = left()
        if remaining is not None and remaining < self.longest:
            return "budget"
        if budget.seconds is not None and self.elapsed() + self.longest > budget.seconds:
            return "budget"
        return "" if k < most else "limit" if budget.rounds is None and budget.seconds is None else "budget"

    # ---- where a run begins, and what is kept of it ----------------------------------------------------------------
    def begin(self, view: LocalView) -> tuple[Any, int, str]:
        """State, round, and why the run ends (empty where it goes on): at the beginning, or where a checkpoint is."""
        remaining = left()
        if self.budget.seconds is not None and remaining is not None:  # what went before the first round counts, too
            self.began -= max(self.budget.seconds - remaining, 0.0)
        warm_start, start = self.budget.warm_start, self.budget.start
        stored = None if self.keeper is None else self.keeper.load(view, lambda: self.method.init(view, start))
        if self.keeper is None or stored is None:
            with alarm():
                state = (
                    self.method.init(view, start) if warm_start is None else warm_start.first(self.method, view, start)
                )
            self.see(state, 0)
            ended = self.begun(start)
            self.keep(state, 0, ended)
            return state, 0, ended
        if self.budget.rounds is not None and stored.round > self.budget.rounds:
            raise CheckpointError(
                f"the checkpoint is at round {stored.round}, beyond the rounds={self.budget.rounds} asked for, which "
                "count from the start; allow more rounds, or name another file"
            )
        with self.keeper.reading():
            self.certifier = self.method.judge(stored.state, self.certifier)
            self._restore(stored)
            finite = np.isfinite(self.method.point(stored.state)[0]).all()
        if self.recorder is not None:
            self.recorder.resume(stored.log, self.method, stored.state, stored.round)
        if stored.ended == "failed" and not finite:
            return stored.state, stored.round, "failed"
        if stored.ended == "recession" and self.certifier.recedes():
            return stored.state, stored.round, "recession"
        return stored.state, stored.round, "gap" if self.certifier.best().holds(self.budget.gap) else ""

    def see(self, state: Any, k: int) -> None:
        """Show round k to the observer, where there is one."""
        if self.recorder is not None:
            self.recorder.see(self.method, state, k)

    def begun(self, start: Start | None) -> str:
        """Why the run ends before its first round: where a start with flows meets the gap. Whoever has proved bounds of
        it before needs none here."""
        if start is None or start[1] is None or self.budget.gap == 0.0 or self.certifier.best_dual is not None:
            return ""
        point = start[0], start[1], None
        if not self.screen(point, 0) <= MAYBE * self.budget.gap:
            return ""
        certificate = self.certified(point, 0)
        return "failed" if certificate.contradiction else "gap" if certificate.holds(self.budget.gap) else ""

    def keep(self, state: Any, k: int, ended: str) -> None:
        """Note where the run stands between two rounds; written when it is due."""
        if self.keeper is None:
            return
        if self.checked is None:
            schedule, records = replace(self.schedule), list(self.trace.records)
            remembered, seconds = self.certifier.remembered(), self.trace.check_seconds
            self.checked = Checked(schedule, remembered, records, self.unknowns, seconds)
        sent = {purpose: replace(account) for purpose, account in self.ledger.accounts.items()}
        log = None if self.recorder is None else self.recorder.log
        self.keeper.keep(Snapshot(state, self.checked, sent, k, ended, self.elapsed(), log))

    def _restore(self, stored: Snapshot) -> None:
        checked, asked = stored.checks, self.schedule  # the budget may change from call to call
        self.schedule = replace(checked.schedule, target=asked.target, polishes=asked.polishes, every=asked.every)
        self.certifier.recall(checked.certifier)
        self.unknowns = checked.unknowns
        self.trace.records[:] = checked.records
        self.trace.check_seconds = checked.check_seconds
        self.ledger.accounts.update(stored.sent)
        self.began -= stored.seconds

    def outcome(self, view: LocalView, state: Any, k: int, ended: str, certificate: Certificate, why: str) -> Outcome:
        """What the run leaves."""
        budget, ledger = self.budget, self.ledger
        ledger.rounds = k
        if budget.warm_start is not None:
            budget.warm_start.take(view, state, self.schedule)
            budget.warm_start.interrupted |= ended == "interrupted"
            budget.warm_start.cut |= ended == "budget" and k != budget.rounds
        if ended in ("limit", "budget") and certificate.holds(budget.gap):
            ended = "gap"
        gathered = {} if state is None else self.method.gathered(state)
        observed = None if self.recorder is None else self.recorder.observed()
        more = (self.trace, ledger, k, self.elapsed(), gathered)
        return Outcome(certificate, self.certifier, ended, *more, cause=why, observed=observed)

    def write(self) -> None:
        if self.keeper is not None:
            self.keeper.write()

    # ---- rounds ------------------------------------------------------------------------------------------------------
    def step(self, state: Any) -> tuple[Any, str]:
        """The state after one more round, and why the run ends within it: a round that time cuts short is none."""
        try:
            return self.method.step(state), ""
        except OutOfTimeError:
            return state, "budget"

    def breakdown(self, error: Exception) -> str:
        """The cause of a breakdown in words; raises what is none."""
        if not numerical(error) or raised_by(error, self.budget.callback, self.budget.observer):
            raise error
        return cause(error)

    # ---- checks ------------------------------------------------------------------------------------------------------
    def check(self, state: Any, k: int) -> str:
        """Why the run ends after round k, from what a screen, a repair or a polish shows; empty where it goes on."""
        self.checked = None
        if not np.isfinite(self.method.point(state)[0]).all():
            return "failed"
        if self.method.searches(state):
            return ""
        self.certifier = self.method.judge(state, self.certifier)
        if self.schedule.polish_now(k) and self.polish(state, k):
            return "gap"
        screen = self.screen(self.method.point(state), k)
        self.schedule.saw(k, screen)
        if not self.schedule.repairs(k, screen):
            return ""
        certificate = self.certify(state, k)
        self.schedule.repaired(k, screen, certificate.relative_gap)
        if certificate.holds(self.budget.gap) or certificate.contradiction:
            return "failed" if certificate.contradiction else "gap"
        return "recession" if self.certifier.recedes() else ""  # the iterates would run to infinity

    def last(self, state: Any, k: int, ended: str) -> Certificate:
        """The certificate that the run ends with."""
        if ended in ("gap", "failed", "recession"):
            return self.certifier.best()
        self.certifier = self.method.judge(state, self.certifier)
        if self.budget.gap == 0.0:  # the iterate after exactly so many rounds is asked for, not the best one
            self.certifier.best_primal = None
        return self.certify(state, k)

    def so_far(self, state: Any, k: int) -> Certificate:
        """That of the last state, or of the best known where even this takes too long or is interrupted; nobody is
        called back. Without a state the run was still being set up.

        The checkpoint is of the last whole round: ledger and certifier may have been caught within the next.
        """
        self.budget = replace(self.budget, callback=None)
        try:
            self.write()
            with afresh(max(LAST, EXTRA * (self.budget.seconds or 0.0))):
                if state is None:
                    start, form = self.budget.start, self.certifier.form
                    self.certifier.consider(feasible(form, np.zeros(form.shape) if start is None else start[0]))
                else:
                    self.certifier = self.method.judge(state, self.certifier)
                    self.certify(state, k)
        except (KeyboardInterrupt, OutOfTimeError):
            pass
        return self.certifier.best()

    def screen(self, point: Point, k: int) -> float:
        at = time.perf_counter()
        before = self.certifier.repair.exchanges
        screen = self.certifier.screen(*point)
        screen = np.inf if np.isnan(screen) else screen  # inf - inf, where no point satisfies all constraints
        spent = self.certifier.repair.exchanges - before  # to balance flows that the method does not have
        self._charge(1 + spent + self._settling(point), 1 + spent)
        self._note(Record(k, self.elapsed(), screen, False, self.certifier.screened), at)
        return screen

    def certify(self, state: Any, k: int) -> Certificate:
        point = self.method.point(state)
        inside = self.method.inside_flows(state) if self.budget.gap > 0 and applies(self.certifier.form) else None
        if inside is not None:
            w, numbers = merged(self.certifier.form, point[0], inside)
            if not self.method.central:
                self.ledger.sum("certificate", numbers)  # as a polish, no step that neighbours could take alone
            self.certifier.consider(w)
        return self.certified(point, k)

    def certified(self, point: Point, k: int) -> Certificate:
        """The certificate of a point, charged and noted."""
        at = time.perf_counter()
        before = self.certifier.repair.exchanges
        with alarm():
            certificate = self.certifier.certify(*point, self.budget.gap)
        self.longest = max(self.longest, time.perf_counter() - at)
        spent = self.certifier.repair.exchanges - before
        self._charge(spent + self._settling(point), spent)
        gap = certificate.relative_gap if certificate.valid else np.inf
        self._note(Record(k, self.elapsed(), gap, certificate.valid, certificate.primal, certificate.dual), at)
        return certificate

    def polish(self, state: Any, k: int) -> bool:
        """Whether a polish of the state meets the gap."""
        at = time.perf_counter()
        with alarm():
            done = self._polish(state)
        self.trace.polish_seconds += time.perf_counter() - at
        if done:
            found = self.certifier.best()
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
        numbers = (unknowns or 0) * ((unknowns or 0) + 3) // 2  # a gradient and a symmetric Hessian
        self.ledger.sum("adaptation", numbers, polished.sums)
        self._charge(certifier.repair.exchanges - before, certifier.repair.exchanges - before)
        if polished.dual_point is None:
            return False
        certifier.gap = self.budget.gap
        certifier.admit(polished.w, polished.dual_point)
        return certifier.best().holds(self.budget.gap)

    def _settling(self, point: Point) -> int:
        """Exchanges for latent nodes that the certifier settles: up and down a tree, once each way across an edge."""
        return int(point[1] is None and settles(self.certifier.form))

    def _charge(self, exchanges: int, reductions: int) -> None:
        if self.method.central:  # all data are in one place, and nothing is sent
            return
        self.ledger.exchange("certificate", times=exchanges)
        self.ledger.sum("certificate", 2, reductions)

    def known(self) -> str:
        """The last check, for a progress bar; empty before the first."""
        if not self.trace.records:
            return ""
        last = self.trace.records[-1]
        return f"gap{'' if last.certified else ' about'} {last.relative_gap:.1e}, target {self.budget.gap:.0e}"

    def _note(self, record: Record, at: float) -> None:
        messages, size = self.ledger.sent()
        record = replace(record, messages=messages, bytes=size)
        self.trace.records.append(record)
        self.trace.check_seconds += time.perf_counter() - at
        if self.budget.callback is not None:
            self.budget.callback(record)


def drive(
    method: AbstractIteration,
    view: LocalView,
    certifier: Certifier,
    budget: Budget,
    keeper: Keeper | None = None,
    recorder: Recorder | None = None,
) -> Outcome:
    """Run a method until the certified relative gap is met, the budget is used up, or it is interrupted."""
    schedule = Schedule(
        budget.gap,
        polishes=method.polishes() and budget.gap > 0 and applies(view.form),
        every=method.every,
        earliest=EARLIEST if budget.start is None else WARM,
    )
    if budget.warm_start is not None:
        schedule = budget.warm_start.expecting(schedule)
    ledger, budget = view.engine.ledger, replace(budget, callback=Watched.of(budget.callback))
    run = _Run(method, certifier, budget, ledger, keeper, schedule, recorder)
    state, k, ended, why = None, 0, "", ""
    how = {"total": budget.rounds, "desc": method.name, "unit": " rounds", "delay": 1.0}
    try:
        state, k, ended = run.begin(view)
        shown = k
        with progress_bar(budget.progress, initial=k, **how) as tick:
            while not (ended := ended or run.over(k)):
                state, ended = run.step(state)
                if ended:
                    break
                k += 1
                run.see(state, k)
                if run.schedule.screen_now(k):
                    ended = run.check(state, k)
                    tick(k - shown, run.known())
                    shown = k
                run.keep(state, k, ended)
        run.write()  # before the last certificate, which a longer run would not ask for here
        certificate = run.last(state, k, ended)
        if recorder is not None:
            recorder.close(method, state, k)
    except OutOfTimeError:
        ended, certificate = "budget", run.so_far(state, k)
    except KeyboardInterrupt:
        ended, certificate = "interrupted", run.so_far(state, k)
    except Exception as error:  # noqa: BLE001 - what is no breakdown is raised again
        why = run.breakdown(error)
        ended, certificate = "failed", run.certifier.best()
    return run.outcome(view, state, k, ended, certificate, why)
