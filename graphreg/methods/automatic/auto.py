"""The choice of a method: whatever is predicted to reach the gap first, and what takes over where it does not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...clock import left
from ...errors import InternalError
from ...form import Form
from ...running import Outcome, Task
from ..base import AbstractIteration, AbstractMethod
from ..exact import Exact
from ..interior_point.interior_point import InteriorPoint
from ..splitting.primal_dual import PrimalDual
from .predicting import Costs

SHARE = 0.3  # of the time predicted for what follows that rounds are tried for before
FEWEST = 20  # rounds that are worth a try: those before the first check
STEPS = 30  # of `InteriorPoint`: most runs take less than 15


@dataclass(frozen=True)
class Auto(AbstractMethod):
    """The method that is predicted to reach the gap first; others take over where it does not.

    Rounds of `PrimalDual` are tried first, for 0.3 of the time that is predicted for what follows them, if these are at
    least 20. What follows is `InteriorPoint` where all losses are smooth and its factors are not too large, else
    `Exact`. Where this falls short too, `PrimalDual` goes on from the best point, and at last `Exact`. So an answer
    takes little longer than by whichever of them is the fastest, without knowing beforehand which it is.
    The predictions count parameters, samples, edges and the entries of a sparse factor; no clock plays a part, so that
    the same problem is solved in the same way again.

    It is the method of ``problem.solve()``. ``solution.method`` tells which method reached the gap, and
    ``solution.message`` what was tried before.
    """

    needs = "what PrimalDual, InteriorPoint or Exact needs"
    sends = "nothing: all data are in one place"

    def missing(self, form: Form) -> tuple[str, ...]:
        every = [method.missing(form) for method in (PrimalDual(), InteriorPoint(), Exact())]
        return () if () in every else every[-1]

    def refuses(self) -> Mapping[str, str]:
        return {
            "engine": "Auto may go on with a method that needs all data in one place, which actors do not have",
            "checkpoint": "Auto takes no checkpoint: it may go through several methods",
            "rounds": "Auto may go through several methods, whose rounds differ: give seconds=",
            "observe": "Auto may go through several methods, whose iterates differ",
        }

    def run(self, task: Task) -> Outcome:
        if task.budget.gap == 0.0:  # as near as can be
            return Exact().run(task)
        began, tried, found = time.perf_counter(), list[str](), None
        for method, rounds in plan(task.form):
            found = _run(method, task, rounds, found)
            tried.append(_said(method, found))
            if _over(found, task.budget.gap):
                break
        if found is None:
            raise InternalError("a method was chosen for a problem to which none applies")
        note = f"Auto took {', then '.join(tried)}."
        note, by = f"{note} {found.note}".strip(), f"Auto({found.by or method.name})"
        return replace(found, seconds=time.perf_counter() - began, by=by, note=note)


def plan(form: Form) -> Iterator[tuple[AbstractMethod, int | None]]:
    """The methods, one after the other, and for how many rounds each is tried; None: until it gives up."""
    costs, rounds = Costs(form), not PrimalDual().missing(form)
    newton, exact = not InteriorPoint().missing(form), not Exact().missing(form)
    if rounds:
        few = SHARE * (costs.interior if newton else costs.exact if exact else float("inf")) / costs.round
        if few >= FEWEST:
            yield PrimalDual(), int(min(few, PrimalDual.most_rounds))
    if newton and costs.interior < float("inf"):
        yield InteriorPoint(), STEPS
    elif exact and costs.exact < float("inf"):
        yield Exact(), None
        exact = False
    if rounds:
        yield PrimalDual(), None
    if exact:
        yield Exact(), None


def _run(method: AbstractMethod, task: Task, rounds: int | None, before: Outcome | None) -> Outcome:
    """What a method makes of it, in the time that is left; the primal-dual method goes on from the best point so far,
    for the others the user's start is the better one."""
    budget = replace(task.budget, rounds=rounds, warm_start=None, seconds=left())
    if before is not None:
        best = before.certificate
        budget = replace(budget, known=best if best.valid else budget.known)
        if isinstance(method, PrimalDual) and best.valid:
            budget = replace(budget, start=(best.w, best.dual_point.flows))
    if isinstance(method, AbstractIteration):
        found = task.iterate(method, budget)
    else:
        found = method.run(replace(task, budget=budget))
    if found.ended == "budget" and found.rounds == rounds:
        found = replace(found, ended="limit")  # of what was tried, not of what the caller allows
    if task.budget.warm_start is not None:
        task.budget.warm_start.interrupted |= found.ended == "interrupted"
    return found


def _over(found: Outcome, gap: float) -> bool:
    """Whether nothing that follows could say more."""
    certain = found.certificate.holds(gap) or bool(found.certificate.contradiction)
    return certain or found.ended in ("budget", "interrupted", "recession", "infeasible")


def _said(method: AbstractMethod, found: Outcome) -> str:
    took = f"{found.rounds:,} rounds of {method.name}" if found.rounds else found.by or method.name
    return f"{took} ({found.cause})" if found.cause else took
