"""Solving at one strength after another, each from the answers at the last."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace

from ..certificate import Certificate
from ..form import Form
from ..lowering.site import Site
from ..methods import AbstractMethod, Exact, PrimalDual
from ..methods._base import Start
from ..methods._carried import Carried
from ..methods._driver import Budget
from ..problem import RAISES, Problem
from ..solution import Solution
from ..solving import site_of, solve
from ..terms.calculus import Parameter


def usual_method(problem: Problem) -> AbstractMethod:
    """`PrimalDual` where it applies, else `Exact`."""
    return Exact() if PrimalDual().missing(problem.form) else PrimalDual()


@contextmanager
def restored(parameters: Iterable[Parameter]) -> Generator[None]:
    """The Parameters have their values again afterwards, whatever happens."""
    before = [(parameter, parameter.value) for parameter in parameters]
    try:
        yield
    finally:
        for parameter, value in before:
            parameter.value = value


class Warm:
    """Solves one problem at one set of values of its Parameters after another, each from the answers at the last.

    Carried from one to the next: parameters and flows (on the line through the last two answers, where strengths are
    told), the layout of the graph, the factorised proxes of the losses, the state of the method (its balance and what
    its proxes remember), or the problem compiled to CVXPY.

    Parameters
    ----------
    problem : Problem
    method : AbstractMethod, optional
        See `usual_method`.
    gap, rounds, seed
        Of each solve; see `Problem.solve`.
    """

    def __init__(
        self,
        problem: Problem,
        method: AbstractMethod | None = None,
        gap: float = 1e-6,
        rounds: int | None = None,
        seed: int = 0,
    ) -> None:
        self.problem = problem
        self.method = usual_method(problem) if method is None else method
        self.carried = Carried()
        self.budget = Budget(gap, rounds, progress=False, seed=seed)
        self.known: list[tuple[float | None, Certificate]] = []  # the last two answers, with their strengths

    def solve(self, strength: float | None = None) -> Solution:
        """The solution at the values that the Parameters have now; no status raises.

        ``strength`` says where that is on a path, from which the next start follows.
        """
        form, before = self.problem.form.frozen(), replace(self.carried)
        budget = replace(self.budget, start=self._start(form, strength), carried=self.carried)
        solution = solve(form, self.method, budget, self.problem._compiler)  # pyright: ignore[reportPrivateUsage]
        if solution.status == "interrupted":  # what is half done is not gone on from
            self.carried = before
        else:
            self.learn(strength, solution)
        return solution

    def learn(self, strength: float | None, solution: Solution) -> None:
        """Take an answer for the last one, where it is near an optimum."""
        if solution.certificate.valid and solution.status not in RAISES:
            self.begin(strength, solution.certificate)

    def begin(self, strength: float | None, certificate: Certificate) -> None:
        """Take what is known at a strength for the last answer."""
        self.known = [*self.known[-1:], (strength, certificate)]

    def site(self) -> Site:
        """A site at the values that the Parameters have now."""
        return site_of(self.problem.form.frozen(), self.budget)

    def _start(self, form: Form, strength: float | None) -> Start | None:
        if not self.known:
            return None
        at, last = self.known[-1]
        w, flows = last.w, last.point.flows
        before, further = self.known[0]
        if strength is not None and at is not None and before is not None and before != at:
            t = (strength - at) / (at - before)
            w = w + t * (w - further.w)
            flows = tuple(u + t * (u - v) for u, v in zip(flows, further.point.flows, strict=True))
        return w, tuple(edge.clip(u) for edge, u in zip(form.edges, flows, strict=True))
