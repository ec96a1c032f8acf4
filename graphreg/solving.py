"""Solve one canonical form by one method, judge the answer by its certificate, and look for infima at infinity."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from . import statuses
from .breakdown import Watched, broken, cause
from .certificate import AtInfinity, Certificate, Certifier, Enclosed, at_infinity, common
from .clock import OutOfTimeError, within
from .conic_route import by_cones
from .form import DualPoint, Form
from .iterating import iterate
from .lowering import conic
from .methods._base import AbstractIteration, AbstractMethod
from .methods._baseline import AbstractBaseline, in_problem, start_of
from .methods._driver import Budget
from .methods._snapshot import Keeper, KeptRuns
from .methods.exact import Exact
from .solution import Solution
from .statuses import End, judged

DEEPEST = 3  # how often what is left at infinity may have an infinity of its own


def solve(form: Form, method: AbstractMethod, budget: Budget, compiler: conic.Compiler) -> Solution:
    """The solution of a form; where the infimum is not attained, of what is left of it at infinity.

    ``seconds`` hold for all of it, linear programmes and compiling included. What numpy, CVXPY or a solver raises ends
    as the status "failed"; what a callback or a user's term raises is passed on.
    """
    asked = budget.checkpoint
    store = None if asked is None else KeptRuns(asked, form, method, budget.start, budget.seed)
    seed = secrets.randbits(32) if budget.seed is None else budget.seed  # noted in the solution, to repeat the run
    seed = seed if store is None else store.seed(seed)
    callback = Watched.of(budget.callback)
    budget = replace(budget, seed=seed, callback=callback)
    try:
        with within(budget.seconds):
            if isinstance(method, AbstractBaseline):
                solution = _baseline(form, method, budget, store)
            else:
                solution = _solve(form, method, budget, compiler, store)
    except OutOfTimeError:  # before the first round
        said = statuses.used_up(0, Certifier(form).best())
        solution = _without_answer(form, method, budget, "budget", said)
    except Exception as error:
        if not broken(error, callback):
            raise
        compiler.forget()
        solution = _without_answer(form, method, budget, "failed", statuses.failed(cause(error)))
    solution = replace(solution, seed=seed)
    if store is not None and store.note:
        solution = replace(solution, message=f"{solution.message} {store.note}")
    return solution


def _without_answer(form: Form, method: AbstractMethod, budget: Budget, status: str, message: str) -> Solution:
    return Solution(form, Certifier(form).best(), status, message, method.name)


def _baseline(form: Form, method: AbstractBaseline, budget: Budget, store: KeptRuns | None) -> Solution:
    """The solution of another problem, as one of the user's; see `AbstractBaseline`."""
    target = method.target(form)
    there = replace(budget, start=start_of(target, budget.start), carried=None, known=None)
    run = _solve(target, method.iteration, there, conic.Compiler(target), store)
    own = run.certificate
    certificate = in_problem(form, own, budget.gap)
    status = "no_certificate" if run.status == "certified" else run.status
    if certificate.holds(budget.gap) and run.status != "interrupted":
        status, message = "certified", statuses.certified(budget.gap)
    else:
        message = _of_another_problem(method, run, certificate)
    return replace(run, form=form, certificate=certificate, own=own, status=status, message=message, method=method.name)


def _of_another_problem(method: AbstractBaseline, run: Solution, certificate: Certificate) -> str:
    """What a baseline's answer is worth in either problem."""
    known = f"that is certified to {run.certificate.relative_gap:.2g}" if run.status == "certified" else run.message
    reached = (
        f"at a {statuses.gap_of(certificate)}" if certificate.valid else f"without certificate ({certificate.note})"
    )
    head = f"{method.name} minimises another problem ({method.aim})"
    said = f"{head}; {known}; of" if run.status == "certified" else f"{head}: {known} Of"
    return f"{said} this problem its point is {reached}."


def _solve(
    form: Form, method: AbstractMethod, budget: Budget, compiler: conic.Compiler, store: KeptRuns | None, depth: int = 0
) -> Solution:
    solution, recedes = _run(form, method, budget, compiler, None if store is None else store.keeper(depth))
    left = _left(budget, method, solution)
    same = solution.form is form  # or the method has chosen another problem, for which it would choose again
    if not recedes or left is None or not same or depth == DEEPEST:
        return solution
    try:
        return _at_infinity(form, method, left, store, depth, solution)
    except KeyboardInterrupt:
        said = statuses.interrupted(solution.rounds, solution.certificate)
        return solution if solution.status == "unattained" else replace(solution, status="interrupted", message=said)


def _at_infinity(
    form: Form, method: AbstractMethod, left: Budget, store: KeptRuns | None, depth: int, solution: Solution
) -> Solution:
    """The solution with what is known of the problem without what falls away at infinity."""
    infinity, gap = at_infinity(form), left.gap
    if infinity is None:
        return solution
    there = replace(left, start=(solution.certificate.w, None), carried=None, known=None)
    rest = _solve(infinity.rest, method, there, conic.Compiler(infinity.rest), store, depth + 1)
    certificate = _extend(infinity, rest.certificate, solution.certificate, gap)
    status, message = rest.status, rest.message
    if solution.status == "unattained" or infinity.attained is False:
        status, message = "unattained", statuses.unattained(certificate, gap)
    elif certificate.holds(gap):
        status, message = "certified", statuses.certified(gap, infinity.attained)
    elif status in ("certified", "no_certificate"):  # of the rest; the gap of the whole is another
        status, message = "no_certificate", statuses.no_certificate(certificate, gap)
    elif status == "budget":
        message = statuses.used_up(solution.rounds + rest.rounds, certificate)
    return replace(
        solution,
        certificate=certificate,
        status=status,
        message=message,
        rounds=solution.rounds + rest.rounds,
        seconds=solution.seconds + rest.seconds,
    )


def _left(budget: Budget, method: AbstractMethod, solution: Solution) -> Budget | None:
    """What a run has left of the budget; None where that is nothing. A conic solver knows no rounds."""
    rounds = None if budget.rounds is None or isinstance(method, Exact) else budget.rounds - solution.rounds
    seconds = None if budget.seconds is None else budget.seconds - solution.seconds
    spent = (rounds is not None and rounds < 1) or (seconds is not None and seconds <= 0.0)
    return None if spent else replace(budget, rounds=rounds, seconds=seconds)


def _extend(infinity: AtInfinity, rest: Certificate, before: Certificate, gap: float) -> Certificate:
    """The bounds of the rest, carried over to the whole.

    What has fallen away is nowhere less than ``-infinity.dropped()``, so that a lower bound of the rest gives one of
    the whole. Its dual point is one of the whole as well, with no price and no flow where something fell away.
    """
    certifier = Certifier(infinity.form)
    certifier.admit(before.w, infinity.form.nothing())
    if rest.valid:
        point = infinity.extend(rest.point)
        spread = infinity.extend(DualPoint(rest.spread, rest.point.prices)).flows if rest.spread else ()
        certifier.consider(infinity.push(rest.w, gap))
        certifier.bounded(Enclosed(np.array([np.nextafter(rest.dual - infinity.dropped(), -np.inf)]), point, spread))
    return certifier.best()


def _run(
    form: Form, method: AbstractMethod, budget: Budget, compiler: conic.Compiler, keeper: Keeper | None
) -> tuple[Solution, bool]:
    """The solution, and whether more can be said at infinity."""
    certifier = Certifier(form)
    if budget.known is not None:
        certifier.admit(budget.known.w, budget.known.point)
    if budget.gap > 0.0 and common(form).exact:  # few methods come that near by themselves
        w = np.where(form.free[:, None], 0.0, common(form).w)
        certifier.certify(w, form.nothing().flows, None, budget.gap)
    if not form.samples:  # everything ran away: 0 is optimal, with nothing to pay and nothing to carry
        certifier.admit(np.zeros(form.shape), form.nothing())
        return Solution(form, certifier.best(), "certified", "Nothing is left to fit.", method.name), False
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(method, Exact):
            solution = by_cones(form, method, certifier, budget, compiler)
            return solution, _further(solution, certifier, budget.gap)
        assert isinstance(method, AbstractIteration)
        outcome = iterate(form, method, certifier, budget, keeper)
    certifier = outcome.certifier
    certificate, trace = outcome.certificate, outcome.trace
    status, message = judged(certifier, certificate, End(outcome.ended, outcome.cause), budget.gap, outcome.rounds)
    more = (method.name, outcome.rounds, outcome.seconds, trace, outcome.ledger, budget.seed or 0, outcome.gathered)
    solution = Solution(certificate.form, certificate, status, message, *more)
    return solution, _further(solution, certifier, budget.gap)


def _further(solution: Solution, certifier: Certifier, gap: float) -> bool:
    """Whether it is worth while to go on at infinity: what is left was not interrupted, and may be certified there."""
    known = solution.status == "certified" or (gap == 0.0 and solution.certificate.valid)
    return solution.status == "unattained" or (not known and solution.status != "interrupted" and certifier.recedes())
