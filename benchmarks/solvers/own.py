"""graphreg's methods: what `solve()` takes by default, and each by name, asked for a ladder of certified gaps."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

import graphreg as gr
from graphreg.methods import METHODS, AbstractIteration, AbstractMethod
from graphreg.running.trace import Record

from ..objective import Objective
from ._base import FEW, AbstractSolver, Answer

PREFIX = "graphreg "
BUDGET, LONG = 60.0, 240.0  # seconds of an iterative method: usually, and of more than `LARGE` edge components
LARGE = 2e6
DEFAULT = "solve()"
NAMED = ("PrimalDual", "ADMM", "InteriorPoint", "DynamicProgramming", "LinearSystem", "Exact")


def cpu_clock() -> AbstractContextManager[Any]:
    """The driver's clock counts CPU seconds: what else a machine does is not in its traces."""
    return mock.patch.object(time, "perf_counter", time.process_time)


def as_problem(objective: Objective) -> gr.Problem:
    """The objective as a graphreg problem."""
    graph = gr.Graph(tuple(range(objective.shape[0])), objective.edges[:, 0], objective.edges[:, 1], objective.weight)
    penalty = gr.L1() if objective.penalty == "l1" else gr.L2()
    return gr.Problem(_loss(objective) + objective.strength * gr.TotalVariation(graph, penalty))


def _loss(objective: Objective) -> Any:
    n, d = objective.shape
    if objective.X is None:
        return gr.MeanLoss(gr.NodeData.from_arrays(None, objective.y, np.arange(n)), scale=objective.scale)
    node = np.repeat(np.arange(n), objective.X.shape[1])
    data = gr.NodeData.from_arrays(objective.X.reshape(-1, d), objective.y.ravel(), node)
    loss = gr.LogisticLoss if objective.loss == "logistic" else gr.SquaredLoss
    return loss(data, scale=objective.scale)


@dataclass(frozen=True)
class Own(AbstractSolver):
    """``problem.solve(method, gap=setting)``, of the default method without naming it; factorisations, screens and
    repairs are in its time."""

    method: AbstractMethod | None
    ladder: tuple[float, ...]

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return PREFIX + (DEFAULT if self.method is None else self.method.name)

    @property
    def most(self) -> float:
        return FEW if self.method is not None and self.method.name == "Exact" else np.inf

    def applies(self, objective: Objective) -> bool:
        return self.method is None or not self.method.missing(as_problem(objective).form)

    def run(self, objective: Objective, setting: float) -> Answer:
        import scipy.optimize  # noqa: F401 - graphreg imports it where it has to decide whether minima are attained

        began = time.process_time()
        problem = as_problem(objective)
        built = time.process_time()
        trace: list[tuple[float, float, float]] = []

        def note(record: Record) -> None:
            if record.certified:
                trace.append((time.process_time() - built, record.primal, record.dual))

        options: dict[str, Any] = {"gap": setting, "progress": False, "on_failure": "return"}
        rounds = self.method is None or isinstance(self.method, AbstractIteration)
        if rounds:
            options |= {"seconds": BUDGET if objective.components <= LARGE else LONG, "callback": note}
        with cpu_clock():
            solution = problem.solve(*([] if self.method is None else [self.method]), **options)
        done = time.process_time()
        found, checks = solution.certificate, np.nan
        if rounds:
            checks = solution.trace.check_seconds / solution.seconds
        return Answer(
            solution.coef,
            built - began,
            done - built,
            solution.rounds,
            found.dual if found.valid else -np.inf,
            found.relative_gap if found.valid else np.inf,
            solution.status if self.method else f"{solution.status}; {solution.method}",
            checks,
            tuple(trace),
        )


@dataclass(frozen=True)
class Reference(AbstractSolver):
    """A tight lower bound by which all are judged, not timed: the default method, for at most a minute."""

    name: str = "reference"
    ladder: tuple[float, ...] = (1e-9,)

    def applies(self, objective: Objective) -> bool:
        return True

    def run(self, objective: Objective, setting: float) -> Answer:
        return Own(None, self.ladder).run(objective, setting)


_KNOWN = {method.name: method for method in METHODS}
ROUNDS = (1e-2, 1e-4, 1e-6, 1e-8)
OWN = (
    Own(None, ROUNDS),
    *(
        Own(_KNOWN[name], ROUNDS if isinstance(_KNOWN[name], AbstractIteration) else (1e-6,))
        for name in NAMED
        if name in _KNOWN
    ),
)
