"""Solving at one strength after another, each from the answers at the last."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..base.clock import OutOfTimeError, check_deadline, left
from ..base.gate import GRACE
from ..certificate import Certificate
from ..form import Form
from ..methods import AbstractIteration, AbstractMethod, Auto, Exact, Interior, InteriorPoint, PrimalDual, Start
from ..network import LocalView
from ..problem import RAISES, Problem
from ..running import Budget, Solution, WarmStart, around, solve, view_of
from ..terms import Parameter

NEAR = 3.2  # the ratio of two strengths between whose iterates `InteriorPoint` begins; further apart, anew is better
NEWTON = InteriorPoint()
STAGES: dict[str, AbstractIteration] = {each.name: each for each in (PrimalDual(), NEWTON)}  # of `Auto`


def usual_method(problem: Problem, rounds: int | None = None) -> AbstractMethod:
    """`Auto`; where rounds are counted the first of `PrimalDual` and `InteriorPoint` that applies, else `Exact`."""
    if rounds is None:
        return Auto()
    return next((each for each in STAGES.values() if not each.lacks(problem.form)), Exact())


def halving(count: int) -> list[int]:
    """The numbers below ``count``: the ends first, then always the middle of what lies between two that are known."""
    order, gaps = [0, count - 1], [(0, count - 1)]
    while gaps:
        middles = [((a + b) // 2, a, b) for a, b in gaps if b - a > 1]
        order += [k for k, _, _ in middles]
        gaps = [gap for k, a, b in middles for gap in ((a, k), (k, b))]
    return list(dict.fromkeys(order))


@contextmanager
def restored(parameters: Iterable[Parameter]) -> Generator[None]:
    """The Parameters have their values again afterwards, whatever happens."""
    before = [(parameter, parameter.value) for parameter in parameters]
    try:
        yield
    finally:
        for parameter, value in before:
            parameter.value = value


QUIET = Budget(progress=False, seed=0)


class Warm:
    """Solves one problem at one set of values of its Parameters after another, each from the answers at others.

    Carried from one to the next: parameters and flows (between those at the nearest strengths on either side, where
    strengths are told), the layout of the graph, the factorised proxes of the losses, the states of the methods (their
    balance and what their proxes remember), or the problem compiled to CVXPY. Of `InteriorPoint` the layout of its
    systems, and an iterate of each strength: the average of two, weighted so that their strengths average to the new
    one, is inside all cones there, and conserved where the losses are squared ones.

    Parameters
    ----------
    problem : Problem
    method : AbstractMethod, optional
        See `usual_method`. `Auto` takes no rounds where `InteriorPoint` was quicker at the strengths on either side.
    budget : Budget
        Its gap, rounds and seed are of each solve; see `Problem.solve`.
    """

    def __init__(self, problem: Problem, method: AbstractMethod | None = None, budget: Budget = QUIET) -> None:
        self.problem, self.budget = problem, budget
        self.method: AbstractMethod = usual_method(problem, budget.rounds) if method is None else method
        self.warm_start = WarmStart()
        self.known: dict[float | None, tuple[Certificate, str]] = {}  # by strength: the answers, and by which method
        self.top: tuple[float, Certificate] | None = None  # a strength at which all is known beforehand
        self.last: Any = None  # state of `InteriorPoint`
        self.between: dict[float, Interior] = {}  # of `InteriorPoint`: from where runs at other strengths begin

    def solve(self, strength: float | None = None) -> Solution:
        """The solution at the values that the Parameters have now; no status raises. What the time cuts short is an
        answer where it is certified all the same; it has not the bits of one that was not, and nothing goes on from it.

        ``strength`` says where that is on a path, from which the next start follows.
        """
        check_deadline()
        form, before = self.problem.form.frozen(), self.warm_start.copy()
        near, state = self._near(strength), self._enclosed(strength)
        self.warm_start.by = tuple(self.known[each][1] for each in near) if len(near) == 2 else ()
        known = None if self.top is None or strength != self.top[0] else self.top[1]
        more: dict[str, Any] = {"warm_start": self.warm_start, "known": known, "seconds": left()}
        budget = replace(self.budget, start=self._start(form, strength, near), **more)
        solution = solve(form, self.method, budget, self.problem._compiler)  # pyright: ignore[reportPrivateUsage]
        cut = self.warm_start.cut or (self.budget.rounds is None and solution.status == "budget")
        if cut:
            self.warm_start = replace(before, cut=True)
            if solution.status != "certified":
                raise OutOfTimeError
        elif solution.status == "interrupted":  # what is half done is not gone on from
            self.warm_start = before
        else:
            self.learn(strength, solution)
            new = self.of(NEWTON.name).state
            if strength is not None and new is not None and new is not state:
                self.between[strength] = new.early
        return solution

    def learn(self, strength: float | None, solution: Solution) -> None:
        """Take an answer for what is known there, where it is near an optimum."""
        if solution.certificate.valid and solution.status not in RAISES:
            self.known[strength] = solution.certificate, solution.method

    def view(self) -> LocalView:
        """A local view at the values that the Parameters have now."""
        form, *_ = around(self.problem.form.frozen(), self.iterations.get(self.method.name, NEWTON))
        return view_of(form, self.budget)

    @property
    def iterations(self) -> dict[str, AbstractIteration]:
        """What has states to go on from: the method, or what `Auto` goes through."""
        if isinstance(self.method, AbstractIteration):
            return {self.method.name: self.method}
        return STAGES if isinstance(self.method, Auto) else {}

    def of(self, name: str) -> WarmStart:
        """What an iteration goes on from."""
        return self.warm_start if name == self.method.name else self.warm_start.of(name)

    def _near(self, strength: float | None) -> list[float | None]:
        """The nearest of the known strengths from below and from above, as far as there are."""
        if strength is None:
            return [each for each in self.known if each is None]
        return list(dict.fromkeys(_sides(strength, [each for each in self.known if each is not None])))

    def _start(self, form: Form, strength: float | None, near: list[float | None]) -> Start | None:
        if not near:
            return None
        below, above = self.known[near[0]][0], self.known[near[-1]][0]
        w, flows = below.w, below.dual_point.flows
        if strength is not None and near[0] is not None and near[-1] is not None and near[0] < near[-1]:
            t = (strength - near[0]) / (near[-1] - near[0])
            w = w + t * (above.w - w)
            flows = tuple(u + t * (v - u) for u, v in zip(flows, above.dual_point.flows, strict=True))
        return w, tuple(edge.clip(u) for edge, u in zip(form.edges, flows, strict=True))

    def _enclosed(self, strength: float | None) -> Any:
        """The state from which `InteriorPoint` goes on: between the iterates at the nearest strengths on either side;
        None where it begins anew."""
        newton, sides = self.of(NEWTON.name), [] if strength is None else _sides(strength, self.between)
        self.last = newton.state or self.last
        newton.state = None
        if strength is not None and len(sides) == 2 and sides[1] <= NEAR * sides[0]:
            t = (strength - sides[0]) / (sides[1] - sides[0])
            early = self.between[sides[0]].blend(self.between[sides[1]], t)
            newton.state = replace(self.last, early=early)
        return newton.state


def _sides(strength: float, known: Iterable[float]) -> list[float]:
    """The nearest from below and from above, or the one of them that there is."""
    below, above = [each for each in known if each <= strength], [each for each in known if each >= strength]
    return [*sorted(below)[-1:], *sorted(above)[:1]]


def refit(problem: Problem, method: AbstractMethod, gap: float, seed: int) -> Solution:
    """The solution from nothing at the values that the Parameters have now, also where the time is nearly up."""
    seconds = None if (rest := left()) is None else max(rest, GRACE)
    return problem.solve(method, gap=gap, seed=seed, seconds=seconds, progress=False, on_failure="return")
