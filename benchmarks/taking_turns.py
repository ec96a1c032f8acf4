"""All solvers on a workload, in turn."""

from __future__ import annotations

from collections.abc import Sequence

from .objective import Objective
from .solvers import PREFIX, REFERENCE, AbstractSolver
from .worker import Limits, Run, measure

SLOW = 20.0  # CPU seconds beyond which a solver is not run again on a workload


def take_turns(
    objective: Objective,
    solvers: Sequence[AbstractSolver],
    repeats: int,
    limits: Limits,
    small: bool = False,
    gaps: Sequence[float] = (),
) -> list[Run]:
    """All solvers in turn, so that what else the machine does falls on all of them alike.

    ``gaps`` are what graphreg's methods are asked for, instead of their ladders.
    """
    runs = [measure(objective, REFERENCE.name, REFERENCE.ladder[0], limits, small)]
    given_up: set[str] = set()
    for _ in range(repeats):
        for solver in solvers:
            for setting in gaps if gaps and solver.name.startswith(PREFIX) else solver.ladder:
                if solver.name in given_up:
                    break
                run = _tried(objective, solver, setting, limits, small)
                print(f"  {solver.name} at {setting:g}: {run.solve:.3g} s {run.status}", flush=True)
                runs.append(run)
                if not run.answered or run.solve > SLOW:
                    given_up.add(solver.name)
    return runs


def _tried(objective: Objective, solver: AbstractSolver, setting: float, limits: Limits, small: bool) -> Run:
    if objective.components > solver.most:
        return Run(objective.name, solver.name, setting, f"not tried: {objective.components:,} edge components")
    return measure(objective, solver.name, setting, limits, small)
