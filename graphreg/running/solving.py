"""Solve one canonical form by one method, judge the answer by its certificate, and look for infima at infinity."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.breakdown import Watched, broken, cause
from ..base.clock import OutOfTimeError, afresh, alarm, at_least, check_deadline
from ..base.gate import allowing, refuse, threads
from ..base.shortcuts import shortcut
from ..certificate import (
    AtInfinity,
    Certificate,
    Certifier,
    Enclosed,
    at_infinity,
    at_zero_levels,
    center,
    common,
    feasible,
)
from ..compiling import conic, torn
from ..form import DualPoint, Form, check_begin, with_latent_means
from ..network import arcs_of
from ..terms import Array
from . import statuses
from .budget import Budget, Outcome
from .driver import around, drive, view_of
from .observed import Recorder
from .predicting import Costs
from .snapshot import Kept
from .solution import Solution

if TYPE_CHECKING:
    from .method import AbstractIteration, AbstractMethod, Start

DEEPEST = 3  # how often what is left at infinity may have an infinity of its own


def solve(form: Form, method: AbstractMethod, budget: Budget, compiler: conic.Compiler) -> Solution:
    """The solution of a form; where the infimum is not attained, of what is left of it at infinity.

    ``seconds`` hold for all of it, linear programmes and compiling included. What numpy, CVXPY or a solver raises ends
    as the status "failed"; what a callback or a user's term raises is passed on.
    """
    asked, seed = budget.checkpoint, budget.seed
    opened: AbstractContextManager[Kept | None] = nullcontext()
    if asked is not None:
        opened = shortcut("Checkpoint.opened")(asked, form, method, budget.start, seed)
    with opened as kept:
        seed = secrets.randbits(32) if seed is None else seed  # noted in the solution, to repeat the run
        seed = seed if kept is None else kept.seed
        callback = None if budget.callback is None else Watched(budget.callback)
        task = Task(form, method, replace(budget, seed=seed, callback=callback), compiler, kept)
        try:
            with allowing(budget.memory, budget.seconds), threads(budget.threads):
                found = task.solved()
        except OutOfTimeError:  # before the first round, or after the last
            found = task.broken_off("budget")
        except KeyboardInterrupt:
            found = task.broken_off("interrupted")
        except Exception as error:
            if not broken(error, callback, budget.observer):
                raise
            compiler.forget()
            found = _without_answer(form, "failed", statuses.failed(cause(error)))
        own = None if found.own is None else found.own.certificate
        certificate = found.certificate
        if budget.gap > 0.0 and own is None:  # else exactly this iterate is asked for, or this baseline's point
            certificate = at_zero_levels(certificate, budget.gap)
        unproven = "; ".join(method.unproven(form))
        words = [found.message, f"Convergence is not guaranteed: {unproven}." if unproven else ""]
        words += [] if kept is None else kept.said()
    if certificate.contradiction:  # nor did any bound before it was found hold
        found.trace.records[:] = [replace(record, certified=False, dual=np.nan) for record in found.trace.records]
    more = (found.rounds, found.seconds, found.trace, found.ledger, seed, found.gathered, own, found.observed)
    message = " ".join(filter(None, words))
    return Solution(certificate.form, certificate, found.status, message, found.by or method.name, *more)


def solved(form: Form, method: AbstractMethod, gap: float) -> Solution:
    """The solution of a form on the way to something else, whose Ctrl-C and deadline it hears."""
    found = solve(form, method, Budget(gap), conic.Compiler(form))
    if found.status == "interrupted":
        raise KeyboardInterrupt
    check_deadline()
    return found


def _without_answer(form: Form, status: str, message: str) -> Outcome:
    certifier = Certifier(form)
    return Outcome(certifier.best(), certifier, status, status=status, message=message)


@dataclass(frozen=True)
class Task:
    """The task of a method: a form to be solved within a budget, and ways to solve it."""

    form: Form
    method: AbstractMethod
    budget: Budget
    compiler: conic.Compiler  # of the form to CVXPY
    kept: Kept | None  # its runs
    depth: int = 0  # how often the form is what was left at infinity

    @cached_property
    def plain_certifier(self) -> Certifier:
        """The certifier of the form, with what the caller knows beforehand."""
        form, budget, certifier = self.form, self.budget, Certifier(self.form)
        with alarm(), np.errstate(over="ignore", invalid="ignore"):
            if budget.known is not None:
                certifier.propose(budget.known.w, budget.known.dual_point)
            if budget.gap > 0.0 and budget.start is not None and budget.warm_start is None:  # no answer is worse
                w = budget.start[0]
                for each in (w, with_latent_means(form, w)) if form.latent else (w,):
                    certifier.propose_primal(feasible(form, each))
        return certifier

    @cached_property
    def certifier(self) -> Certifier:
        """The certifier with the best common model, where that fits all data: few methods come that near by
        themselves."""
        with alarm(), np.errstate(over="ignore", invalid="ignore"):
            form, certifier = self.form, self.plain_certifier
            if self.budget.gap > 0.0 and common(form).exact:
                w = np.where(form.free[:, None], 0.0, common(form).w)
                certifier.certify(w, form.nothing().flows, None, self.budget.gap)
            return certifier

    def within(self, budget: Budget) -> Task:
        """The task with another budget, and with all that has been proved so far."""
        _ = self.plain_certifier
        task = replace(self, budget=budget)
        vars(task).update({name: vars(self)[name] for name in ("plain_certifier", "certifier") if name in vars(self)})
        return task

    def iterate(self, method: AbstractIteration, budget: Budget) -> Outcome:
        """Rounds of a method, around the best common model where that keeps digits; judged by what its answer is worth
        in the problem itself."""
        form, certifier = self.form, self.certifier
        keeper = None if self.kept is None or budget.checkpoint is None else self.kept.keeper(self.depth)
        with alarm():
            there, v = around(form, method)
            view, engine = view_of(there, budget), budget.engine
        judge = certifier
        if v is not None:
            judge = Certifier(there, certifier)
            if certifier.best_primal is not None and certifier.best_dual is not None:
                judge.propose(certifier.best_primal.w - v, certifier.best_dual.found.dual_point)
            if budget.start is not None:
                budget = replace(budget, start=(budget.start[0] - v, budget.start[1]))
        if v is not None and not method.central and budget.warm_start is None:
            numbers = form.d * (form.d + 3) // 2  # a gradient and a symmetric Hessian
            view.engine.ledger.sum("adaptation", numbers, center(form)[1])
        hosted = nullcontext(method) if engine is None else engine.hosting(method, there, arcs_of(there), view.seed)
        with hosted as player, nullcontext() if keeper is None else keeper.going_on():
            seen = budget.observer
            shift = np.zeros(form.d) if v is None else v
            recorder = None if seen is None else Recorder(seen, there, shift, view.engine.ledger)
            outcome = drive(player, view, judge, budget, keeper, recorder)
            remedy = "" if engine is None else engine.remedy(form, method)
            if not remedy and outcome.ended != "failed" and (nearer := method.nearer(form)):
                remedy = f"with these options it may stay at a distance, however many rounds there are: {nearer}"
            outcome = replace(outcome, remedy=remedy)
        return outcome if v is None else self._moved_back(outcome, judge, v, budget.gap)

    def _moved_back(self, outcome: Outcome, judge: Certifier, v: Array, gap: float) -> Outcome:
        """The outcome in the problem itself of a run around the common model v, which another certifier judged."""
        form, certifier = self.form, self.certifier
        if gap == 0.0:  # the iterate after exactly so many rounds is asked for, not the best one
            certifier.best_primal = None
        w = np.where(form.free[:, None], 0.0, outcome.certificate.w + v)
        point, ended = outcome.certificate.dual_point, outcome.ended
        try:
            with at_least():
                w = feasible(form, w)
                certifier.propose_primal(w, gap)
                certifier.propose_from(judge, v, gap)
                if ended == "gap" and not certifier.best().holds(gap):  # there it does, here rounding is another
                    certifier.certify(w, point.flows, point.prices, gap)
        except OutOfTimeError:  # nor is it known here whether the gap is met
            ended = "budget" if ended == "gap" else ended
        return replace(outcome, certifier=certifier, certificate=certifier.best(), ended=ended)

    def instead(self, form: Form, method: AbstractIteration, start: Start | None) -> Outcome:
        """The outcome of another form within the same budget, judged."""
        budget = replace(self.budget, start=start, warm_start=None, known=None)
        return Task(form, method, budget, conic.Compiler(form), self.kept, self.depth).solved()

    def solved(self) -> Outcome:
        """The outcome, judged; with what is known of the problem at infinity, where that says more."""
        form, own, gap = self.form, self.plain_certifier, self.budget.gap
        zero = np.zeros(form.shape)
        if not form.samples and form.primal(zero) == 0.0:  # nothing to pay at 0, and nothing to carry
            self.certifier.propose(zero, form.nothing())
            best, said = self.certifier.best(), "Nothing is left to fit."
            return Outcome(best, self.certifier, "gap", status="certified", message=said)
        refuse(Costs(form).arrays / 8.0, self.method.name, "about ")
        own.spot_checks.begin()
        with alarm():
            rows = torn(form)
        if rows or own.spot_checks.contradiction:
            return statuses.judged(Outcome(own.best(), own, "infeasible" if rows else "failed", cause=rows), gap)
        if own.spot_checks and self.budget.start is None:
            check_begin(form)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.method.run(self)
        found = statuses.judged(found, gap)
        left = self._left(found)
        same = found.certificate.form is form  # or the method has chosen another, for which it would choose again
        if left is None or not same or self.depth == DEEPEST or not _further(found, gap):
            return found
        try:
            return self._at_infinity(left, found)
        except OutOfTimeError:
            return found
        except KeyboardInterrupt:
            return replace(found, status="interrupted", message=statuses.interrupted(found.rounds, found.certificate))

    def broken_off(self, ended: str) -> Outcome:
        """The outcome, judged, where the time is up or Ctrl-C is pressed outside of all rounds."""
        try:
            with afresh():
                return statuses.judged(Outcome(self.certifier.best(), self.certifier, ended), self.budget.gap)
        except (OutOfTimeError, KeyboardInterrupt):
            return _without_answer(self.form, ended, statuses.BEFORE[ended])

    def _left(self, found: Outcome) -> Budget | None:
        """The part of the budget that a run has left; None where that is nothing."""
        budget = self.budget
        rounds = None if budget.rounds is None else budget.rounds - found.rounds
        seconds = None if budget.seconds is None else budget.seconds - found.seconds
        spent = (rounds is not None and rounds < 1) or (seconds is not None and seconds <= 0.0)
        return None if spent else replace(budget, rounds=rounds, seconds=seconds)

    def _at_infinity(self, left: Budget, found: Outcome) -> Outcome:
        """The outcome with what is known of the problem without what falls away at infinity."""
        infinity, gap = at_infinity(self.form), left.gap
        if infinity is None:
            return found
        there = replace(left, start=(found.certificate.w, None), warm_start=None, known=None, observer=None)
        compiler = conic.Compiler(infinity.rest)
        rest = Task(infinity.rest, self.method, there, compiler, self.kept, self.depth + 1).solved()
        certificate = _extend(infinity, rest.certificate, found.certificate, gap)
        rounds, seconds = found.rounds + rest.rounds, found.seconds + rest.seconds
        status, message = rest.status, rest.message
        if status == "interrupted":
            message = statuses.interrupted(rounds, certificate)
        elif found.status == "unattained" or infinity.attained is False:
            nodes = [self.form.labels[i] for i in infinity.running]
            status, message = "unattained", statuses.unattained(certificate, gap, nodes)
        elif certificate.holds(gap):
            status, message = "certified", statuses.certified(gap, infinity.attained)
        elif status in ("certified", "no_certificate"):  # of the rest; the gap of the whole is another
            status, message = "no_certificate", statuses.no_certificate(certificate, gap)
        elif status == "budget":
            message = statuses.used_up(rounds, certificate)
        if certificate.contradiction:
            status, message = "failed", statuses.contradicted(certificate)
        return replace(found, certificate=certificate, status=status, message=message, rounds=rounds, seconds=seconds)


def _extend(infinity: AtInfinity, rest: Certificate, before: Certificate, gap: float) -> Certificate:
    """The bounds of the rest, carried over to the whole.

    A lower bound of the rest gives one of the whole (`AtInfinity.lower`). Its dual point is one of the whole as well,
    with no price and no flow where something fell away.
    """
    certifier = Certifier(infinity.form)
    certifier.propose(before.w, infinity.form.nothing())
    certifier.spot_checks.contradiction = rest.contradiction
    if rest.valid:
        point = infinity.extend(rest.dual_point)
        spread = infinity.extend(DualPoint(rest.spread, rest.dual_point.prices)).flows if rest.spread else ()
        certifier.propose_primal(infinity.push(rest.w, gap))
        certifier.propose_bound(Enclosed(np.array([infinity.lower(rest.dual)]), point, spread))
    return certifier.best()


def _further(found: Outcome, gap: float) -> bool:
    """True where it is worth while to go on at infinity: what is left was not interrupted, and may be certified
    there."""
    known = found.status == "certified" or (gap == 0.0 and found.certificate.valid)
    more = found.status == "unattained" or (not known and found.status != "interrupted" and found.certifier.recedes())
    # a baseline has been there in its own problem
    return more and found.own is None and not found.certificate.contradiction
