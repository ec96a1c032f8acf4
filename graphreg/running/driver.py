"""The one driver: loop, clock, trace, stopping on the certified gap, progress, callback, interruption, checkpoints.

It screens before it repairs: every k/10 to k/2 rounds a cheap bound that certifies nothing, and a repair only when
the screen, or the decay of the gap so far, lets it expect the target, or when k has quadrupled since the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..breakdown import Watched, cause, numerical, raised_by
from ..certificate import Certificate, Certifier
from ..clock import OutOfTimeError, alarm, left, progress_bar
from ..errors import CheckpointError
from ..network import LocalView
from .budget import Budget, Outcome
from .checking import Checks
from .observed import Recorder
from .polish import applies
from .schedule import EARLIEST, WARM, Schedule
from .snapshot import Checked, Keeper, Snapshot

if TYPE_CHECKING:
    from .method import AbstractIteration


@dataclass
class _Run:
    """A run between two rounds: the checks of its points, what is kept of it, who looks on."""

    method: AbstractIteration
    budget: Budget
    checks: Checks
    keeper: Keeper | None
    recorder: Recorder | None = None
    checked: Checked | None = None  # for the checkpoint; None while it has yet to be noted
    more: int = 0  # rounds beyond those allowed

    def over(self, k: int) -> str:
        """Why no round may follow after k; empty where one may."""
        budget = self.budget
        most = self.method.most_rounds if budget.rounds is None else budget.rounds
        remaining = left()
        if remaining is not None and remaining < self.checks.longest:
            return "budget"
        if budget.seconds is not None and self.checks.elapsed() + self.checks.longest > budget.seconds:
            return "budget"
        if k >= most + self.more and budget.further is not None:
            self.more = k - most + budget.further(self.checks.trace, k)
        return "" if k < most + self.more else "limit" if budget.rounds is None else "budget"

    # ---- where a run begins, and what is kept of it ----------------------------------------------------------------
    def begin(self, view: LocalView) -> tuple[Any, int, str]:
        """State, round, and why the run ends (empty where it goes on): at the beginning, or where a checkpoint is."""
        remaining = left()
        if self.budget.seconds is not None and remaining is not None:  # what went before the first round counts, too
            self.checks.began -= max(self.budget.seconds - remaining, 0.0)
        warm_start, start = self.budget.warm_start, self.budget.start
        stored = None if self.keeper is None else self.keeper.load(view, lambda: self.method.init(view, start))
        if self.keeper is None or stored is None:
            with alarm():
                state = (
                    self.method.init(view, start) if warm_start is None else warm_start.first(self.method, view, start)
                )
            self.see(state, 0)
            ended = self.checks.begun(start)
            self.keep(state, 0, ended)
            return state, 0, ended
        if self.budget.rounds is not None and stored.round > self.budget.rounds:
            raise CheckpointError(
                f"the checkpoint is at round {stored.round}, beyond the rounds={self.budget.rounds} asked for, which "
                "count from the start; allow more rounds, or name another file"
            )
        with self.keeper.reading():
            self.checks.restore(stored)
            finite = np.isfinite(self.method.point(stored.state)[0]).all()
        if self.recorder is not None:
            self.recorder.resume(stored.log, self.method, stored.state, stored.round)
        if stored.ended == "failed" and not finite:
            return stored.state, stored.round, "failed"
        if stored.ended == "recession" and self.checks.certifier.recedes():
            return stored.state, stored.round, "recession"
        return stored.state, stored.round, "gap" if self.checks.certifier.best().holds(self.budget.gap) else ""

    def see(self, state: Any, k: int) -> None:
        """Show round k to the observer, where there is one."""
        if self.recorder is not None:
            self.recorder.see(self.method, state, k)

    def keep(self, state: Any, k: int, ended: str) -> None:
        """Note where the run stands between two rounds; written when it is due."""
        if self.keeper is None:
            return
        if self.checked is None:
            self.checked = self.checks.noted()
        sent = {purpose: replace(account) for purpose, account in self.checks.ledger.accounts.items()}
        log = None if self.recorder is None else self.recorder.log
        self.keeper.keep(Snapshot(state, self.checked, sent, k, ended, self.checks.elapsed(), log))

    def outcome(self, view: LocalView, state: Any, k: int, ended: str, certificate: Certificate, why: str) -> Outcome:
        """What the run leaves."""
        budget, ledger = self.budget, self.checks.ledger
        ledger.rounds = k
        if budget.warm_start is not None:
            budget.warm_start.take(view, state, self.checks.schedule)
            budget.warm_start.interrupted |= ended == "interrupted"
            budget.warm_start.cut |= ended == "budget" and k != budget.rounds
        if ended in ("limit", "budget", "stalled") and certificate.holds(budget.gap):
            ended = "gap"
        gathered = {} if state is None else self.method.gathered(state)
        observed = None if self.recorder is None else self.recorder.observed()
        more = (self.checks.trace, ledger, k, self.checks.elapsed(), gathered)
        return Outcome(certificate, self.checks.certifier, ended, *more, cause=why, observed=observed)

    def write(self) -> None:
        if self.keeper is not None:
            self.keeper.write()

    # ---- rounds ------------------------------------------------------------------------------------------------------
    def steps(self, state: Any, k: int) -> tuple[Any, int, str]:
        """The state after one more round, or after several where nothing is due between them, how many they were, and
        why the run ends within one: a round that time cuts short is none."""
        try:
            return *self.method.steps(state, self._free(k)), ""
        except OutOfTimeError:
            return state, 0, "budget"

    def _free(self, k: int) -> int:
        """How many rounds may follow round k before one is looked at."""
        if self.keeper is not None or self.recorder is not None:
            return 1
        most = self.method.most_rounds if self.budget.rounds is None else self.budget.rounds
        return max(min(self.checks.schedule.next_round(), most + max(self.more, 0)) - k, 1)

    def breakdown(self, error: Exception) -> str:
        """The cause of a breakdown in words; raises what is none."""
        if not numerical(error) or raised_by(error, self.budget.callback, self.budget.observer):
            raise error
        return cause(error)

    def check(self, state: Any, k: int) -> str:
        """Why the run ends after round k; empty where it goes on."""
        self.checked = None
        ended = self.checks.check(state, k)
        self.checks.grouped = None  # its flows take room that later rounds need
        return ended

    def so_far(self, state: Any, k: int, ended: str) -> Certificate:
        """That of the last state, or of the best known where even this takes too long or is interrupted.

        The checkpoint is of the last whole round: ledger and certifier may have been caught within the next.
        """
        try:
            self.write()
            self.checks.so_far(state, k, ended == "interrupted")
        except (KeyboardInterrupt, OutOfTimeError):
            pass
        return self.checks.certifier.best()


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
    checks = Checks(method, certifier, budget, ledger, schedule)
    run = _Run(method, budget, checks, keeper, recorder)
    state, k, ended, why = None, 0, "", ""
    how = {"total": budget.rounds, "desc": method.name, "unit": " rounds", "delay": 1.0}
    try:
        state, k, ended = run.begin(view)
        shown = k
        with progress_bar(budget.progress, initial=k, **how) as tick:
            while not (ended := ended or run.over(k)):
                state, done, ended = run.steps(state, k)
                if ended:
                    break
                k += done
                run.see(state, k)
                if checks.schedule.screen_now(k):
                    ended = run.check(state, k)
                    tick(k - shown, checks.known())
                    shown = k
                run.keep(state, k, ended)
        run.write()  # before the last certificate, which a longer run would not ask for here
        certificate = checks.last(state, k, ended)
        if recorder is not None:
            recorder.close(method, state, k)
    except OutOfTimeError:
        ended, certificate = "budget", run.so_far(state, k, "budget")
    except KeyboardInterrupt:
        ended, certificate = "interrupted", run.so_far(state, k, "interrupted")
    except Exception as error:  # noqa: BLE001 - what is no breakdown is raised again
        why = run.breakdown(error)
        ended, certificate = "failed", checks.certifier.best()
    return run.outcome(view, state, k, ended, certificate, why)
