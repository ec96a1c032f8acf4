"""The choice of a method: whatever is predicted to reach the gap first, and what takes over where it does not."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from ...base.breakdown import broken, cause
from ...base.clock import alarm, left
from ...base.declaring import declared, needs_no_options
from ...base.shortcuts import shortcut
from ...certificate import Certificate
from ...compiling import conic
from ...errors import InternalError
from ...form import Form
from ...running import MANY, AbstractIteration, AbstractMethod, Budget, Costs, Outcome, Solution, Task, Trace, solve
from ..exact import Exact
from ..interior_point.interior_point import InteriorPoint
from ..linear_system import LinearSystem
from ..splitting.primal_dual import PrimalDual

TRIED = 0.05  # of the rounds that take as long as what follows: how many are tried before
FEWEST = 20  # rounds that are worth a try: those before the first check
HALF = 0.5  # of these rounds, from now on: a promise to be there later is no gain that is worth the risk
LOOK = 10  # rounds to the next look, at least; a tenth of all
NEAR = 1e-5  # relative gap from which on Newton steps begin: further away a start of their own is as good


@dataclass(frozen=True)
class Auto(AbstractMethod):
    """The method that is predicted to reach the gap first; others take over where it does not.

    `DynamicProgramming` and `OneNode` need no rounds, and are taken where they apply; `LinearSystem` where it applies
    and a factor of it is within reach. Else `InteriorPoint` comes first where it takes no longer than 110 rounds of
    `PrimalDual`, and Newton steps on paths between two strengths at which they gave the answers. Elsewhere a twentieth
    of the rounds that take as long as is predicted of what follows them are tried, and at least 20; and more, where
    their gap falls so fast that they will be there first, and within half of that time from then on. What follows is
    `InteriorPoint` where it applies and its factors stay small, from the point of the rounds where that is near the
    optimum, while its steps lead anywhere, and at last `Exact`; of problems too large for it, rounds of `PrimalDual`
    from the best point so far. So an answer takes little longer than by whichever of them is the fastest, without
    knowing beforehand which it is.

    The predictions count parameters, samples, edges and the entries of a sparse factor (`Costs`). No clock plays a
    part, so that the same problem is solved in the same way again.

    It is the method of ``problem.solve()``. ``solution.method`` tells which method reached the gap, and
    ``solution.message`` what was tried before.

    Examples
    --------
    >>> problem.solve().method  # which of them it took
    'Auto(InteriorPoint)'
    """

    needs = "what PrimalDual, InteriorPoint or Exact needs"
    sends = "as PrimalDual in its rounds; nothing where all data are in one place"
    rows = True

    def missing(self, form: Form) -> tuple[str, ...]:
        every = [method.lacks(form) for method in (PrimalDual(), InteriorPoint(), Exact())]
        return () if () in every else every[-1]

    def refuses(self) -> Mapping[str, str]:
        return {
            "engine": "Auto may go on with a method that needs all data in one place, which actors do not have",
            "checkpoint": "Auto takes no checkpoint: it may go through several methods",
            "rounds": "Auto may go through several methods, whose rounds differ: give seconds=",
            "observe": "Auto may go through several methods, whose iterates differ",
        }

    def run(self, task: Task) -> Outcome:
        if task.budget.gap == 0.0 and not Exact().lacks(task.form):  # as near as can be
            return Exact().run(task)
        began, tried, carried, found = time.perf_counter(), list[str](), list[Stage](), None
        form, gap, first = task.form, task.budget.gap, _by_newton(task.budget)
        costs = Costs(form, gap, _rounds(task.budget))
        known = gap, costs.earlier, first, AbstractMethod.classes  # of a small form no strength plays a part

        def every() -> Iterator[Stage]:
            stages = partial(plan, costs, first)
            yield from form.once("plan", known, lambda: list(stages())) if form.is_small else stages()

        chosen = every()

        def following() -> Stage | None:
            with alarm():
                stage = next(chosen, None)
            nothing = stage is None and found is not None and found.cause.startswith(MemoryError.__name__)
            untried = PrimalDual() not in {each.method for each in carried} and not PrimalDual().lacks(form)
            return Stage(PrimalDual()) if nothing and untried else stage

        for stage in iter(following, None):
            carried.append(stage)
            found = _carried_out(stage, task, found)
            found = found if found.by else replace(found, by=stage.method.name)
            tried.append(_said(stage.method, found))
            certain = found.certificate.holds(gap) or found.certificate.contradiction
            if certain or found.ended in ("budget", "interrupted", "recession", "infeasible"):
                break  # nothing that follows could say more
        if found is None:
            raise InternalError("a method was chosen for a problem to which none applies")
        note = f"Auto took {', then '.join(tried)}."
        note, by = f"{note} {found.note}".strip(), f"Auto({found.by})"
        return replace(found, seconds=time.perf_counter() - began, by=by, note=note)


@dataclass(frozen=True)
class Stage:
    """A method and for how many rounds it is tried; None: until it gives up. Up to ``most`` more may follow where they
    promise to reach the gap."""

    method: AbstractMethod
    rounds: int | None = None
    most: int = 0


def plan(costs: Costs, newton_first: bool = False) -> Iterator[Stage]:
    """The stages that are tried, one after the other; no rounds before Newton steps where these are to be first."""
    form = costs.form
    for direct in _in_one_pass(AbstractMethod.classes):
        if not direct.lacks(form):
            yield Stage(direct)
    rounds, newton, exact = (not method.lacks(form) for method in (PrimalDual(), InteriorPoint(), Exact()))
    linear = not LinearSystem().lacks(form) and costs.step < float("inf")
    follows = costs.interior if newton else costs.exact if exact else float("inf")
    many = costs.rounds_in(follows) if rounds and follows < float("inf") else -1
    if linear:
        yield Stage(LinearSystem())
    elif many >= 0 and not (newton and (newton_first or many < MANY)):
        share = max(int(TRIED * many), FEWEST)
        yield Stage(PrimalDual(), share, max(many - share, 0))
    if newton and costs.interior < float("inf"):
        yield Stage(InteriorPoint())
    if exact and (costs.exact < float("inf") or not rounds):  # which ends in rounds of its own
        yield Stage(Exact())
    elif rounds:
        yield Stage(PrimalDual())


@lru_cache(maxsize=1)
def _in_one_pass(_: int) -> list[AbstractMethod]:
    """The methods, by name, that say so of themselves, among so many classes; without a look into the files of all."""
    shortcut("Auto.graph")  # which is declared from now on, as is the next
    shortcut("Auto.node")
    known: list[Any] = [each for each in declared(AbstractMethod, loaded=True).values() if each.in_one_pass]
    return [each() for each in known if needs_no_options(each)]


def _rounds(budget: Budget) -> int:
    """The number of rounds of `PrimalDual` so far, at other strengths."""
    state = None if budget.warm_start is None else budget.warm_start.of(PrimalDual().name).state
    return 0 if state is None else state.earlier + state.round


def _by_newton(budget: Budget) -> bool:
    """True where Newton steps gave the answers at the strengths that are near."""
    near = () if budget.warm_start is None else budget.warm_start.by
    return bool(near) and all(each == f"Auto({InteriorPoint().name})" for each in near)


def _carried_out(stage: Stage, task: Task, before: Outcome | None) -> Outcome:
    """The outcome of a stage, in the time that is left: from the best point so far, for Newton steps where that is near
    the optimum; else, and for solvers, the user's start is the better one."""
    method, carried = stage.method, task.budget.warm_start
    own = None if carried is None else carried.of(method.name)
    budget = replace(task.budget, rounds=stage.rounds, warm_start=own, seconds=left())
    near = NEAR if isinstance(method, InteriorPoint) else math.inf
    if isinstance(method, AbstractIteration) and before is not None and before.certificate.holds(near):
        budget = replace(budget, start=(before.certificate.w, before.certificate.dual_point.flows))
    if stage.rounds is not None:
        budget = replace(budget, further=partial(_promised, gap=budget.gap, last=stage.rounds + stage.most))
    try:
        iterates = isinstance(method, AbstractIteration)
        found = task.iterate(method, budget) if iterates else method.run(task.within(budget))
    except Exception as error:
        if not broken(error, budget.callback):
            raise
        found = Outcome(task.certifier.best(), task.certifier, "failed", cause=cause(error))
    if found.ended == "budget" and stage.rounds is not None and found.rounds >= stage.rounds:
        found = replace(found, ended="limit")  # of what was tried, not of what the caller allows
    if carried is not None and own is not None:
        carried.interrupted |= own.interrupted or found.ended == "interrupted"
        carried.cut |= own.cut
    return found


def _promised(trace: Trace, rounds: int, gap: float, last: int) -> int:
    """The number of further rounds after which the gap would be seen to be met, if it went on to fall as over the
    second half of them, or between the last two looks; some where nobody has looked since, and 0 where it does not
    fall, or that is beyond the ``last`` round, or takes more than half as many as that."""
    known = [record for record in trace.records if record.relative_gap > 0.0]
    looked = sorted({record.round for record in known})
    since = min([rounds / 2, *looked[-2:-1]])
    half = [record for record in known if record.round >= since]
    if not half or half[-1].round == half[0].round or not half[-1].relative_gap < half[0].relative_gap < math.inf:
        return 0  # several records may be of one round
    rate = math.log(half[0].relative_gap / half[-1].relative_gap) / (half[-1].round - half[0].round)
    then = half[-1].round + math.ceil(math.log(half[-1].relative_gap / gap) / rate)
    worth = half[-1].round < then <= min(last, rounds + HALF * last)
    return max(then + max(LOOK, then // 10) - rounds, LOOK) if worth else 0


def _said(method: AbstractMethod, found: Outcome) -> str:
    many = f"{found.rounds:,} round{'s' * (found.rounds > 1)} of {method.name}"
    took = many if found.rounds else found.by or method.name
    return f"{took} ({found.cause})" if found.cause else took


# ---- further than an answer is ---------------------------------------------------------------------------------------
def nearer(solution: Solution, gap: float) -> Certificate:
    """The certificate of a point that is nearer to the optimum: of this relative gap, or a hundredth of that of the
    answer where this is less, in ten times its seconds at most; that of the answer where none was found.

    Raises
    ------
    KeyboardInterrupt
        Where Ctrl-C broke it off.
    """
    known = solution.certificate
    aim = max(min(gap or 1.0, known.relative_gap / 100.0), 1e-12)
    start = known.w, known.dual_point.flows
    budget = Budget(aim, seconds=1.0 + 10.0 * solution.seconds, start=start, seed=solution.seed)
    found = solve(solution.form, Auto(), budget, conic.Compiler(solution.form))
    if found.status == "interrupted":
        raise KeyboardInterrupt
    better = found.certificate.valid and found.certificate.gap < known.gap
    return found.certificate if better else known
