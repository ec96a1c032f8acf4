"""The one driver: loop, clock, trace, stopping on the certified gap, progress, callback, interruption, checkpoints.

It screens before it repairs: every k/10 to k/2 rounds a cheap bound that certifies nothing, and a repair only when
the screen, or the decay of the gap so far, lets it expect the target, or when k has quadrupled since the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.breakdown import cause, numerical, raised_by
from ..base.clock import OutOfTimeError, afresh, alarm, check_deadline, left, progress_bar
from ..certificate import Certificate, Certifier, center, centred, feasible
from ..errors import CheckpointError, MethodError
from ..form import Form
from ..network import InProcess, Ledger, LocalView, arcs_of
from ..terms import Array, alike, strengths
from .budget import DIVERGED, Budget, Outcome
from .checking import Checks
from .observed import Recorder
from .polish import applies
from .schedule import EARLIEST, WARM, Schedule
from .snapshot import AbstractKeeper, Checked, Snapshot

if TYPE_CHECKING:
    from .method import AbstractIteration, AbstractMethod

EASY = 1e-6  # a gap whose proof is quick: a bound to have, before that of the gap that is asked for


def around(form: Form, method: AbstractMethod) -> tuple[Form, Array | None]:
    """The form that a method runs on, and what its parameters are less than those of the problem (None: nothing)."""
    v = center(form)[0] if method.centres() else np.zeros(0)
    if not v.any():
        return form, None
    find = partial(centred, form, v)
    return form.once("centred", strengths(form.blocks), find) if form.is_small else find(), v


def view_of(form: Form, budget: Budget) -> LocalView:
    """The whole graph in one process."""
    before = None if budget.warm_start is None else budget.warm_start.view
    if before is not None:
        return before.at_strengths(form, InProcess(Ledger(before.arcs, form.labels)))
    engine, seed = InProcess(Ledger(arcs_of(form), form.labels)), budget.seed or 0
    find = partial(LocalView, form, engine, seed)
    return alike(form.once("view", None, find), form=form, engine=engine, seed=seed) if form.is_small else find()


def drive(
    method: AbstractIteration,
    view: LocalView,
    certifier: Certifier,
    budget: Budget,
    keeper: AbstractKeeper | None = None,
    recorder: Recorder | None = None,
) -> Outcome:
    """Run a method until the certified relative gap is met, the budget is used up, or it is interrupted."""
    schedule = Schedule(
        budget.gap,
        polishes=method.polishes() and budget.gap > 0 and applies(view.form),
        every=method.every,
        earliest=EARLIEST if budget.start is None else WARM,
    )
    if budget.warm_start is not None and budget.warm_start.schedule is not None:
        schedule = schedule.with_learnt_gaps(budget.warm_start.schedule)
    checks = Checks(method, certifier, budget, view.engine.ledger, schedule)
    allowed = method.most_rounds if budget.rounds is None else budget.rounds
    run = _Run(method, view, budget, checks, keeper, recorder, allowed)
    try:
        run.begin()
        run.rounds()
        certificate = run.last()
    except OutOfTimeError:
        certificate = run.so_far("budget")
    except KeyboardInterrupt:
        certificate = run.so_far("interrupted")
    except Exception as error:  # noqa: BLE001 - what is no breakdown is raised again
        certificate = run.broken(error)
    return run.outcome(certificate)


@dataclass
class _Run:
    """A run of a method: where it stands, the checks of its points, what is kept of it, who looks on."""

    method: AbstractIteration
    view: LocalView
    budget: Budget
    checks: Checks
    keeper: AbstractKeeper | None
    recorder: Recorder | None
    allowed: int  # rounds
    state: Any = None  # None while it is set up
    k: int = 0  # rounds so far
    ended: str = ""  # why it is over; empty where it goes on
    cause: str = ""  # of a breakdown
    checked: Checked | None = None  # for the checkpoint; None while it has yet to be noted

    # ---- where a run begins ----------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Take the first state, or that of the checkpoint."""
        budget, remaining = self.budget, left()
        if budget.seconds is not None and remaining is not None:  # what went before the first round counts, too
            self.checks.began -= max(budget.seconds - remaining, 0.0)
        if self.keeper is not None:
            stored = self.keeper.load(self.view, lambda: self.method.init(self.view, budget.start))
            if stored is not None:
                self._resume(stored, self.keeper)
                return
        before = None if budget.warm_start is None else budget.warm_start.state
        starting = {"desc": self.method.starting, "bar_format": "{desc} [{elapsed}]"}
        with alarm(), progress_bar(budget.progress if self.method.starting else False, **starting):
            if before is None:
                state = self.method.init(self.view, budget.start)
            else:
                state = self.method.resume(self.view, before, budget.start)
        if self.recorder is not None:
            self.recorder.see(self.method, state, 0)
        self.ended = self.checks.reason_at_start(budget.start)
        self.state = state
        if self.keeper is not None:
            self._keep(self.keeper)

    def _resume(self, stored: Snapshot, keeper: AbstractKeeper) -> None:
        """Go on from a checkpoint; end at once where it is of a run that has ended, or has met the gap."""
        asked, checks = self.budget.rounds, self.checks
        if asked is not None and stored.round > asked:
            raise CheckpointError(
                f"the checkpoint is at round {stored.round}, beyond the rounds={asked} asked for, which "
                "count from the start; allow more rounds, or name another file"
            )
        with keeper.reading():
            checks.restore(stored)
            finite = np.isfinite(self.method.point(stored.state)[0]).all()
        if self.recorder is not None:
            self.recorder.resume(stored.log, self.method, stored.state, stored.round)
        self.state, self.k = stored.state, stored.round
        if (stored.ended == "failed" and not finite) or (stored.ended == "recession" and checks.certifier.recedes()):
            self.ended = stored.ended
        elif checks.certifier.best().holds(self.budget.gap):
            self.ended = "gap"

    # ---- rounds ----------------------------------------------------------------------------------------------------
    def rounds(self) -> None:
        """Rounds, until there is a reason to end."""
        checks, shown = self.checks, self.k
        how = {"total": self.budget.rounds, "desc": self.method.name, "unit": " rounds", "delay": 1.0}
        with progress_bar(self.budget.progress, initial=self.k, **how) as tick:
            while not self._over():
                try:
                    self.state, done = self.method.steps(self.state, self._free())
                except OutOfTimeError:  # a round that time cuts short is none
                    self.ended = "budget"
                    return
                if not self.k and (shape := np.shape(self.method.point(self.state)[0])) != self.view.form.shape:
                    wanted = f"not {self.view.form.shape}"  # before numpy meets them
                    raise MethodError(f"{self.method.name}: after a round parameters have the shape {shape}, {wanted}")
                self.k += done
                if self.recorder is not None:
                    self.recorder.see(self.method, self.state, self.k)
                if checks.schedule.screen_now(self.k):
                    self.checked = None
                    self.ended = checks.check(self.state, self.k)
                    checks.grouped = None  # its flows take room that later rounds need
                    tick(self.k - shown, partial(checks.trace.reached, self.budget.gap))
                    shown = self.k
                if self.keeper is not None:
                    self._keep(self.keeper)

    def _over(self) -> bool:
        """True where the run is over; why, is noted."""
        if self.ended:
            return True
        budget, checks, remaining = self.budget, self.checks, left()
        if (remaining is not None and remaining < checks.longest) or (
            budget.seconds is not None and checks.elapsed() + checks.longest > budget.seconds
        ):
            self.ended = "budget"
        else:
            if self.k >= self.allowed and budget.further is not None:
                self.allowed = self.k + budget.further(checks.trace, self.k)
            if budget.rounds is None and self.method.over(self.state):
                self.ended = "limit"
            elif self.k >= self.allowed:
                self.ended = "limit" if budget.rounds is None else "budget"
        return bool(self.ended)

    def _free(self) -> int:
        """The number of rounds that may follow before one is looked at."""
        if self.keeper is not None or self.recorder is not None:
            return 1
        return max(min(self.checks.schedule.next_round(), self.allowed) - self.k, 1)

    def _keep(self, keeper: AbstractKeeper) -> None:
        """Note where the run stands between two rounds; written when it is due."""
        if self.checked is None:
            self.checked = self.checks.noted()
        sent = {purpose: replace(account) for purpose, account in self.checks.ledger.accounts.items()}
        log = None if self.recorder is None else self.recorder.log
        keeper.keep(Snapshot(self.state, self.checked, sent, self.k, self.ended, self.checks.elapsed(), log))

    # ---- how it ends -----------------------------------------------------------------------------------------------
    def last(self) -> Certificate:
        """The certificate that the run ends with."""
        checks, budget = self.checks, self.budget
        if self.keeper is not None:  # before the last certificate, which a longer run would not ask for here
            self.keeper.write()
        if self.ended not in ("gap", "failed", "recession"):
            checks.certifier = self.method.judge(self.state, checks.certifier)
            if budget.gap == 0.0:  # the iterate after exactly so many rounds is asked for, not the best one
                checks.certifier.best_primal = None
            if budget.further is not None and self.ended == "budget":  # no answer yet, and worth no repair
                w = feasible(checks.certifier.form, self.method.point(self.state)[0])
                checks.certifier.propose_primal(w, budget.gap)
            else:
                check_deadline()  # the last word is then a short one, and the only one
                checks.certify_state(self.state, self.k)
        certificate = checks.certifier.best()
        if not np.isfinite(certificate.primal) and checks.certifier.far.any():
            self.ended, self.cause = "failed", DIVERGED
        if self.recorder is not None:
            self.recorder.close(self.method, self.state, self.k)
        return certificate

    def so_far(self, ended: str) -> Certificate:
        """The certificate of the last state, or of the best known where even this takes too long or is interrupted.
        Nobody is called back.

        The checkpoint is of the last whole round: ledger and certifier may have been caught within the next.
        """
        self.ended, checks, budget = ended, self.checks, self.budget
        try:
            if self.keeper is not None:
                self.keeper.write()
            checks.hurried = True
            with afresh():
                if self.state is None:
                    form = checks.certifier.form
                    w = np.zeros(form.shape) if budget.start is None else budget.start[0]
                    checks.certifier.propose_primal(feasible(form, w), budget.gap)
                    return checks.certifier.best()
                checks.certifier = self.method.judge(self.state, checks.certifier)
                for gap in sorted({max(budget.gap, EASY), budget.gap}, reverse=True):
                    checks.budget = replace(budget, callback=None, gap=gap)
                    if checks.certify_state(self.state, self.k).holds(budget.gap):
                        break
        except (KeyboardInterrupt, OutOfTimeError):
            pass
        return checks.certifier.best()

    def broken(self, error: Exception) -> Certificate:
        """The best certificate so far, after a breakdown; what is none is raised again."""
        if not numerical(error) or raised_by(error, self.budget.callback, self.budget.observer):
            raise error
        self.ended, self.cause = "failed", cause(error)
        return self.checks.certifier.best()

    def outcome(self, certificate: Certificate) -> Outcome:
        """The outcome of the run."""
        budget, checks, ended = self.budget, self.checks, self.ended
        checks.ledger.rounds = self.k
        if (warm := budget.warm_start) is not None:
            warm.view, warm.state, warm.schedule = self.view, self.state, checks.schedule
            warm.interrupted |= ended == "interrupted"
            warm.cut |= ended == "budget" and self.k < self.allowed
        return Outcome(
            certificate,
            checks.certifier,
            "gap" if ended in ("limit", "budget", "stalled") and certificate.holds(budget.gap) else ended,
            checks.trace,
            checks.ledger,
            self.k,
            checks.elapsed(),
            {} if self.state is None else self.method.gathered(self.state),
            cause=self.cause,
            observed=None if self.recorder is None else self.recorder.observed(),
        )
