"""Solve one canonical form by one method, judge the answer by its certificate, and look for infima at infinity."""

from __future__ import annotations

import secrets
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from .certificate import AtInfinity, Certificate, Certifier, Enclosed, at_infinity, center, common
from .certificate.feasible import feasible
from .engines import InProcess
from .form import DualPoint, Form
from .lowering import conic
from .lowering.arcs import arcs_of
from .lowering.centring import centred
from .lowering.site import Site
from .methods import AbstractMethod, Exact, PrimalDual
from .methods import exact as exact_method
from .methods._base import AbstractIteration
from .methods._baseline import AbstractBaseline, in_problem, start_of
from .methods._driver import Budget, Outcome, drive
from .methods.checkpoint import Keeper, Store
from .methods.ledger import Ledger
from .solution import Solution
from .terms.records import Array

REFINEMENT = 3000  # rounds, where no attempt of a conic solver has sufficed
DEEPEST = 3  # how often what is left at infinity may have an infinity of its own


def solve(form: Form, method: AbstractMethod, budget: Budget, compiler: conic.Compiler) -> Solution:
    """The solution of a form; where the infimum is not attained, of what is left of it at infinity."""
    asked = budget.checkpoint
    store = None if asked is None else Store(asked, form, method, budget.start, budget.seed)
    seed = budget.seed if store is None else store.seed
    seed = secrets.randbits(32) if seed is None else seed  # noted in the solution, to repeat the run
    budget = replace(budget, seed=seed)
    if store is not None:
        store.seed = seed
    if isinstance(method, AbstractBaseline):
        solution = replace(_baseline(form, method, budget, store), seed=seed)
    else:
        solution = replace(_solve(form, method, budget, compiler, store), seed=seed)
    if store is not None and store.note:
        solution = replace(solution, message=f"{solution.message} {store.note}")
    return solution


def _baseline(form: Form, method: AbstractBaseline, budget: Budget, store: Store | None) -> Solution:
    """The solution of another problem, as one of the user's; see `AbstractBaseline`."""
    target = method.target(form)
    there = replace(budget, start=start_of(target, budget.start), carried=None, known=None)
    run = _solve(target, method.iteration, there, conic.Compiler(target), store)
    own = run.certificate
    certificate = in_problem(form, own, budget.gap)
    status = "no_certificate" if run.status == "certified" else run.status
    if certificate.holds(budget.gap) and run.status != "interrupted":
        status, message = "certified", _certified(budget.gap)
    else:
        message = _of_another_problem(method, run, certificate)
    return replace(run, form=form, certificate=certificate, own=own, status=status, message=message, method=method.name)


def _of_another_problem(method: AbstractBaseline, run: Solution, certificate: Certificate) -> str:
    """What a baseline's answer is worth in either problem."""
    known = f"that is certified to {run.certificate.relative_gap:.2g}" if run.status == "certified" else run.message
    reached = f"at a {_gap_of(certificate)}" if certificate.valid else f"without certificate ({certificate.note})"
    head = f"{method.name} minimises another problem ({method.aim})"
    said = f"{head}; {known}; of" if run.status == "certified" else f"{head}: {known} Of"
    return f"{said} this problem its point is {reached}."


def _solve(
    form: Form, method: AbstractMethod, budget: Budget, compiler: conic.Compiler, store: Store | None, depth: int = 0
) -> Solution:
    solution, recedes = _run(form, method, budget, compiler, None if store is None else store.keeper(depth))
    left = _left(budget, method, solution)
    same = solution.form is form  # or the method has chosen another problem, for which it would choose again
    infinity = at_infinity(form) if recedes and left is not None and same and depth < DEEPEST else None
    if infinity is None or left is None:
        return solution
    there = replace(left, start=(solution.certificate.w, None), carried=None, known=None)
    rest = _solve(infinity.rest, method, there, conic.Compiler(infinity.rest), store, depth + 1)
    certificate = _extend(infinity, rest.certificate, solution.certificate, budget.gap)
    status, message = rest.status, rest.message
    if not infinity.attained:
        status, message = "unattained", _unattained(certificate, budget.gap)
    elif certificate.holds(budget.gap):
        status, message = "certified", _certified(budget.gap)
    elif status in ("certified", "no_certificate"):  # of the rest; the gap of the whole is another
        status, message = "no_certificate", _no_certificate(certificate, budget.gap)
    elif status == "budget":
        message = _used_up(solution.rounds + rest.rounds, certificate)
    return replace(
        solution,
        certificate=certificate,
        status=status,
        message=message,
        rounds=solution.rounds + rest.rounds,
        seconds=solution.seconds + rest.seconds,
    )


def _left(budget: Budget, method: AbstractMethod, solution: Solution) -> Budget | None:
    """What a run has left of the budget; None where that is nothing. A conic solver has none."""
    if isinstance(method, Exact):
        return budget
    rounds = None if budget.rounds is None else budget.rounds - solution.rounds
    seconds = None if budget.seconds is None else budget.seconds - solution.seconds
    spent = (rounds is not None and rounds < 1) or (seconds is not None and seconds <= 0.0)
    return None if spent else replace(budget, rounds=rounds, seconds=seconds)


def _extend(infinity: AtInfinity, rest: Certificate, before: Certificate, gap: float) -> Certificate:
    """The bounds of the rest, carried over to the whole.

    What has fallen away is nowhere less than ``-infinity.dropped()``, so that a lower bound of the rest gives one of the
    whole. Its dual point is one of the whole as well, with no price and no flow where something fell away.
    """
    certifier = Certifier(infinity.form)
    certifier.admit(before.w, infinity.form.nothing())
    if rest.valid:
        point = infinity.extend(rest.point)
        spread = infinity.extend(DualPoint(rest.spread, rest.point.prices)).flows if rest.spread else ()
        certifier.consider(infinity.push(rest.w, gap))
        certifier.bounded(Enclosed(np.array([rest.dual - infinity.dropped()]), point, spread))
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
            solution = _exact(form, method, certifier, budget, compiler)
            return solution, _further(solution, certifier, budget.gap)
        assert isinstance(method, AbstractIteration)
        outcome = _iterate(form, method, certifier, budget, keeper)
    certifier = outcome.certifier
    status, message = _judge(certifier, outcome.certificate, outcome.ended, budget, outcome.rounds)
    certificate, trace = outcome.certificate, outcome.trace
    more = (method.name, outcome.rounds, outcome.seconds, trace, outcome.ledger, budget.seed or 0, outcome.gathered)
    solution = Solution(certificate.form, certificate, status, message, *more)
    return solution, _further(solution, certifier, budget.gap)


def around(form: Form, method: AbstractMethod) -> tuple[Form, Array | None]:
    """The form that a method runs on, and what its parameters are less than those of the problem (None: nothing)."""
    v = center(form)[0] if method.centres() else np.zeros(0)
    return (centred(form, v), v) if v.any() else (form, None)


def _iterate(
    form: Form, method: AbstractIteration, certifier: Certifier, budget: Budget, keeper: Keeper | None
) -> Outcome:
    """A run of a method, judged by what its answer is worth in the problem itself."""
    there, v = around(form, method)
    judge = certifier
    if v is not None:
        judge = Certifier(there)
        if certifier.best_primal is not None and certifier.best_dual is not None:
            judge.admit(certifier.best_primal.w - v, certifier.best_dual.found.point)
        if budget.start is not None:
            budget = replace(budget, start=(budget.start[0] - v, budget.start[1]))
    site = site_of(there, budget)
    if v is not None and not method.central and budget.carried is None:
        numbers = form.d * (form.d + 3) // 2  # a gradient and a symmetric Hessian
        site.engine.ledger.sum("adaptation", numbers, center(form)[1])
    with _played(method, site, budget) as player:
        outcome = drive(player, site, judge, budget, keeper)
    if v is None:
        return outcome
    if budget.gap == 0.0:  # the iterate after exactly so many rounds is asked for, not the best one
        certifier.best_primal = None
    w = np.where(form.free[:, None], 0.0, outcome.certificate.w + v)
    w, point, certifier.gap = feasible(form, w), outcome.certificate.point, budget.gap
    certifier.admit(w, point)
    if outcome.ended == "gap" and not certifier.best().holds(budget.gap):  # there it does, here rounding is another
        certifier.certify(w, point.flows, point.prices, budget.gap)
    return replace(outcome, certifier=certifier, certificate=certifier.best())


def site_of(form: Form, budget: Budget) -> Site:
    """The whole graph in one process."""
    before = None if budget.carried is None else budget.carried.site
    if before is not None:
        return before.beside(form, InProcess(Ledger(before.arcs, form.labels)))
    site = Site(form, InProcess(Ledger(arcs_of(form), form.labels)), budget.seed or 0)
    vars(site)["arcs"] = site.engine.ledger.arcs
    return site


def _played(method: AbstractIteration, site: Site, budget: Budget) -> AbstractContextManager[AbstractIteration]:
    """The method itself, or the actors that carry it out."""
    if budget.engine is None:
        return nullcontext(method)
    return budget.engine.playing(method, site.form, site.engine.ledger.arcs, site.seed)


def _further(solution: Solution, certifier: Certifier, gap: float) -> bool:
    """Whether it is worth while to go on at infinity: what is left was not interrupted, and may be certified there."""
    known = solution.status == "certified" or (gap == 0.0 and solution.certificate.valid)
    return solution.status == "unattained" or (not known and solution.status != "interrupted" and certifier.recedes())


def _exact(form: Form, method: Exact, certifier: Certifier, budget: Budget, compiler: conic.Compiler) -> Solution:
    began = time.perf_counter()
    said: list[str] = []
    certificate = certifier.best()
    ended = "limit"
    try:
        for scaled, options in conic.attempts(method.solver, method.form):
            compiled = compiler(method.form, scaled)
            left = _seconds_left(budget, began)
            if left is not None and left <= 0.0:
                ended = "budget"
                break
            said.append(compiled.solve(method.solver, {**options, **conic.time_limit(method.solver, left)}))
            found = compiled.point()
            if found is not None and np.isfinite(found[0]).all():
                w = np.where(form.free[:, None], 0.0, found[0])
                certificate = certifier.certify(w, found[1].flows, found[1].prices, budget.gap)
            enough = budget.gap if len(said) > 1 else min(budget.gap, exact_method.GAP)
            if certificate.holds(enough) or certifier.recedes():
                break
        else:
            if not certificate.holds(budget.gap) and np.isfinite(certificate.primal):
                left = replace(budget, seconds=_seconds_left(budget, began))
                certificate, rounds = _refined(form, certifier, certificate, left)
                said.append(f"refined by {rounds} rounds of PrimalDual")
    except KeyboardInterrupt:
        ended = "interrupted"
        if budget.carried is not None:
            budget.carried.interrupted = True
    if ended == "budget" and not said:  # compiling took all of it
        certificate = certifier.certify(np.zeros(form.shape), None, None, budget.gap)
    if ended == "limit" and not np.isfinite(certificate.primal):  # a solver's word is not enough: is 0 near a point?
        certificate = certifier.certify(np.zeros(form.shape), None, None, budget.gap)
        word = "infeasible" if method.form == "primal" else "unbounded"
        infeasible = any(word in each for each in said) and not np.isfinite(certificate.primal)
        ended = "infeasible" if infeasible else "failed"
    status, message = _judge(certifier, certificate, ended, budget, 0)
    if said:
        message += f" {method.solver} said: {', then '.join(dict.fromkeys(said))}."
    return Solution(
        form, certificate, status, message, f"{method.name}({method.solver})", 0, time.perf_counter() - began
    )


def _seconds_left(budget: Budget, began: float) -> float | None:
    return None if budget.seconds is None else budget.seconds - (time.perf_counter() - began)


def _refined(form: Form, certifier: Certifier, certificate: Certificate, budget: Budget) -> tuple[Certificate, int]:
    """The best certificate after some rounds of the primal-dual method, from where a conic solver stopped short."""
    method = PrimalDual()
    if method.missing(form) or budget.gap == 0.0:
        return certificate, 0
    start = (certificate.w, certificate.point.flows)
    budget = Budget(budget.gap, REFINEMENT, budget.seconds, start, progress=budget.progress)
    outcome = _iterate(form, method, certifier, budget, None)
    if outcome.ended == "interrupted":
        raise KeyboardInterrupt
    return outcome.certificate, outcome.rounds


def _judge(  # noqa: PLR0911 - one return per status
    certifier: Certifier, certificate: Certificate, ended: str, budget: Budget, rounds: int
) -> tuple[str, str]:
    """The status, decided by the certificate, and the sentence that goes with it."""
    reached = _reached(certificate)
    if ended == "infeasible":
        return "unbounded", "No point satisfies all constraints; look at the boxes, balls and centers together."
    if certifier.attained() is False:
        return "unattained", _unattained(certificate, budget.gap)
    if ended == "failed":
        remedy = "shorten the steps where they are given, rescale the features, or try another method or solver"
        return "failed", f"No finite answer was found; {remedy}."
    if certificate.holds(budget.gap):
        return "certified", _certified(budget.gap)
    if ended == "interrupted" and not (rounds or np.isfinite(certificate.primal)):
        return "interrupted", "Interrupted before there was an answer."
    if ended == "interrupted":
        return "interrupted", f"Interrupted after {rounds} rounds; this is the best point so far, a {reached}."
    if ended == "budget":
        return "budget", _used_up(rounds, certificate)
    return "no_certificate", _no_certificate(certificate, budget.gap)


def _certified(gap: float) -> str:
    return f"The relative gap is certified to be at most {gap:.3g}."


def _used_up(rounds: int, certificate: Certificate) -> str:
    spent = f" ({rounds} rounds)" if rounds else ""
    return f"The budget was used up{spent} at a {_reached(certificate)}; allow more, or a larger gap."


def _no_certificate(certificate: Certificate, gap: float) -> str:
    why = f" ({certificate.note})" if certificate.note else ""
    remedy = "standardise the features, add a small ridge, or ask for a larger gap"
    return f"Ended at a {_reached(certificate)} where {gap:.3g} was asked for{why}; {remedy}."


def _gap_of(certificate: Certificate) -> str:
    return f"relative gap of {certificate.relative_gap:.2g}"


def _reached(certificate: Certificate) -> str:
    reached = _gap_of(certificate) if certificate.valid else "point without certificate"
    if not np.isfinite(certificate.primal):
        reached += " (no point was found that satisfies all constraints; Exact() tells whether there is one)"
    return reached


def _unattained(certificate: Certificate, gap: float) -> str:
    if certificate.holds(gap):
        known = "Infimum certified, not attained"
    elif certificate.valid:
        known = f"Infimum bounded (relative gap of {certificate.relative_gap:.2g}), not attained"
    else:
        known = "Infimum not attained"
    return (
        f"{known}: along some direction the losses fall for ever (separable classes, counts that are all 0); add a "
        "ridge, for instance 1e-3 * NodePenalty(SquaredL2()), on every coordinate that may run away."
    )
