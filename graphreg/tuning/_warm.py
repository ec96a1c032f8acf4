"""Solving at one strength after another, each from the answer at the last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..methods import AbstractMethod, Exact, PrimalDual
from ..methods._driver import Budget
from ..problem import Problem
from ..solution import Solution
from ..solving import solve
from ..terms.calculus import Parameter


def usual_method(problem: Problem) -> AbstractMethod:
    """`PrimalDual` where it applies, else `Exact`."""
    return Exact() if PrimalDual().missing(problem.form) else PrimalDual()


@contextmanager
def restored(parameters: Iterable[Parameter]) -> Iterator[None]:
    """The Parameters have their values again afterwards, whatever happens."""
    before = [(parameter, parameter.value) for parameter in parameters]
    try:
        yield
    finally:
        for parameter, value in before:
            parameter.value = value


class Warm:
    """Solves one problem at one set of values of its Parameters after another, each from the last answer.

    Parameters
    ----------
    problem : Problem
    method : AbstractMethod, optional
        See `usual_method`.
    gap, rounds, seconds, seed
        Of each solve; see `Problem.solve`.
    """

    def __init__(  # noqa: PLR0913
        self,
        problem: Problem,
        method: AbstractMethod | None = None,
        gap: float = 1e-6,
        rounds: int | None = None,
        seconds: float | None = None,
        seed: int = 0,
    ) -> None:
        self.problem = problem
        self.method = usual_method(problem) if method is None else method
        self.budget = Budget(gap, rounds, seconds, progress=False, seed=seed)
        self.last: Solution | None = None

    def solve(self) -> Solution:
        """The solution at the values that the Parameters have now; no status raises."""
        form = self.problem.form.frozen()
        start = None if self.last is None else (self.last.certificate.w, self.last.certificate.point.flows)
        solution = solve(form, self.method, replace(self.budget, start=start), self.problem._compiler)  # pyright: ignore[reportPrivateUsage]
        self.last = solution
        return solution
