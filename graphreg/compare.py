"""Every applicable method against the exact optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .errors import MethodError, ModelError
from .methods import METHODS, AbstractMethod
from .problem import Problem
from .solution import Solution

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """The runs of several methods on one problem, by name; ``table()`` sets them side by side."""

    solutions: dict[str, Solution]
    reference: str

    def table(self) -> pd.DataFrame:
        """Status, objective, certified relative gap, rounds, messages, bytes and seconds of each method.

        ``above`` is the objective minus the best certified lower bound of all runs.
        """
        import pandas as pd

        bound = max(s.certificate.dual for s in self.solutions.values())
        rows = {
            name: {
                "status": s.status,
                "objective": s.objective,
                "above": s.objective - bound,
                "relative_gap": s.certificate.relative_gap if s.certificate.valid else float("nan"),
                "rounds": s.rounds,
                "messages": s.ledger.total_messages,
                "bytes": s.ledger.total_bytes,
                "seconds": s.seconds,
            }
            for name, s in self.solutions.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def __str__(self) -> str:
        return f"{self.table().to_string()}\nreference: {self.reference}"


def compare(
    problem: Problem, methods: Sequence[AbstractMethod] | None = None, *, gap: float = 1e-6, seconds: float = 60.0
) -> Comparison:
    """Run every applicable method (or those given) and set them against the exact optimum.

    Parameters
    ----------
    problem : Problem
    methods : sequence of AbstractMethod, optional
        All that apply by default.
    gap : float
        The relative gap asked of each.
    seconds : float
        The budget of each iterative method (a conic solver is not interrupted).
    """
    if not isinstance(problem, Problem):
        raise ModelError(f"compare takes a Problem, got {problem!r}; write gr.Problem(model)")
    if methods is not None and (isinstance(methods, AbstractMethod) or not methods):
        raise MethodError(f"methods must be a list of at least one method, got {methods!r}")
    chosen = [m for m in METHODS if not m.missing(problem.form)] if methods is None else list(methods)
    solutions: dict[str, Solution] = {}
    for method in chosen:
        solution = problem.solve(method, gap=gap, seconds=seconds, progress=False, on_failure="return")
        name = solution.method
        while name in solutions:
            name += "'"
        solutions[name] = solution
        if solution.status == "interrupted":  # whoever presses Ctrl-C means all of it
            break
    best = max(solutions, key=lambda name: solutions[name].certificate.dual)
    if not np.isfinite(solutions[best].certificate.dual):
        return Comparison(solutions, "none, for want of a bound")
    return Comparison(solutions, f"the best certified lower bound, {best}'s")
