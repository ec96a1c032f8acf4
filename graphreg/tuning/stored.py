"""What is finished of a path or a cross-validation, in a file: the same call goes on with the rest, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..certificate import Certificate
from ..form import DualPoint
from ..problem import Problem
from ..running import Checkpoint, Packed, Solution, Store, entry, of_method, of_problem
from ..terms import Parameter
from .fold_runs import FoldRun, Task
from .folds import Folds
from .warm import Warm

OF_SOLUTION = ("status", "message", "method", "rounds", "seconds", "seed")
OF_CERTIFICATE = ("primal", "dual", "charge", "scope", "w", "note", "rounding")


class StoredPath:
    """The file of one path: its finished points, and last what the warm solver goes on from. Traces and ledgers are not
    kept: a point that was read has empty ones."""

    def __init__(
        self, checkpoint: Checkpoint, problem: Problem, parameter: Parameter, warm: Warm, asked: Mapping[str, Any]
    ) -> None:
        self.problem, self.parameter, self.warm = problem, parameter, warm
        parameter.value = 1.0  # so that the value of the moment does not count
        choices = {key: entry(value) for key, value in asked.items()}
        of = {"method": of_method(warm.method), "problem": of_problem(problem.form), "path": choices}
        self.store = Store(checkpoint, "path", of)
        self.points = self.store.values[:-1]

    def load(self) -> dict[float, Solution]:
        """The finished points by strength; the warm solver goes on from them."""
        known: dict[float, Solution] = {}
        if not self.points:
            return known
        with self.store.reading():
            for k in range(len(self.points)):
                point = self.store.value(k, dict)
                known[point["strength"]] = self._solution(**point)
            view = self.warm.warm_start.view = self.warm.view()  # at the last point, where the state stood
            last = self.store.value(len(known), dict, view)
            for strength, solution in known.items():
                self.warm.learn(strength, solution)
            self.warm.warm_start.state, self.warm.warm_start.schedule = last["state"], last["schedule"]
            self.warm.between = dict(last["between"])
        self.store.mark(len(known))
        return known

    def _solution(
        self, strength: float, solution: dict[str, Any], certificate: dict[str, Any], dual: DualPoint
    ) -> Solution:
        self.parameter.value = strength
        form = self.problem.form.frozen()
        return Solution(form, Certificate(dual_point=dual, form=form, **certificate), **solution)

    def keep(self, strength: float, solution: Solution) -> None:
        """Note a finished point; written when it is due."""
        own = solution.certificate
        point = {
            "strength": strength,
            "solution": {name: getattr(solution, name) for name in OF_SOLUTION},
            "certificate": {name: getattr(own, name) for name in OF_CERTIFICATE},
            "dual": own.dual_point,
        }
        self.points.append(Packed.of(point, "path"))
        if self.store.due(len(self.points)):
            self.write()

    def write(self) -> None:
        """All finished points to the file, where they are not there yet."""
        if not self.points or len(self.points) == self.store.count:
            return
        warm_start, between = self.warm.warm_start, list(self.warm.between.items())
        last = Packed.of({"state": warm_start.state, "schedule": warm_start.schedule, "between": between}, "path")
        self.store.values = [*self.points, last]
        self.store.write(len(self.points))


class StoredFolds:
    """The file of one cross-validation, or nothing where none was asked for. Written after every fold. Another scoring
    may go on from it: predictions are kept, and scored when all is read."""

    def __init__(self, asked: Any, task: Task, folds: Folds) -> None:
        checkpoint, self.runs = Checkpoint.of(asked), dict[int, FoldRun]()
        self.store = None
        if checkpoint is None:
            return
        with task.grid.at(0):  # whatever values the Parameters have now
            problem = of_problem(task.form)
        own = {
            "the Parameters": entry(tuple(task.grid.names)),
            "the grid": entry(task.grid.points),
            **problem,
            "the number of folds": str(len(folds)),
            "the folds": entry([(fold.train, fold.test) for fold in folds.each]),
            "the gap": entry(task.gap),
            "the seed": entry(task.seed),
        }
        of = {"method": of_method(task.method), "cross-validation": own}
        self.store = Store(checkpoint, "cross-validation", of)
        with self.store.reading():
            self.runs |= (self.store.value(k, tuple) for k in range(len(self.store.values)))

    def add(self, number: int, run: FoldRun) -> None:
        self.runs[number] = run
        if self.store is not None:
            self.store.values.append(Packed.of((number, run), "fold"))
            self.store.write(len(self.runs))
