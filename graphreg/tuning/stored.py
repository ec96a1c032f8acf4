"""Finished parts of a path or a cross-validation in a file: the same call goes on with the rest, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..certificate import Certifier
from ..checks import is_whole
from ..methods import Interior, InteriorPoint
from ..network import LocalView
from ..problem import Problem
from ..running import STATUSES, Checkpoint, Schedule, Solution
from ..saving import (
    OF_ANSWER,
    JsonTree,
    MisfitError,
    Store,
    check_entries,
    check_parts,
    check_state,
    entry,
    of_method,
    of_problem,
    parts_of,
    proved,
)
from ..terms import Parameter
from .fold_runs import FoldRun, FoldTask
from .folds import Folds
from .warm import Warm

POINT = {"strength": float} | OF_ANSWER
LAST = {"stages": list[tuple[str, Any, Schedule | None]], "between": list[tuple[float, Interior]]}
ANSWERS = ("certified", "budget", "no_certificate")  # statuses that follow from the bounds of a point


class StoredPath:
    """The file of one path: its finished points, and last what the warm solver goes on from. Traces and ledgers are not
    kept: a point that was read has empty ones."""

    def __init__(
        self, checkpoint: Checkpoint, problem: Problem, parameter: Parameter, warm: Warm, asked: Mapping[str, Any]
    ) -> None:
        self.problem, self.parameter, self.warm, self.asked = problem, parameter, warm, asked
        parameter.value = 1.0  # so that the value of the moment does not count
        choices = {key: entry(value) for key, value in asked.items()}
        of = {"method": of_method(warm.method), "problem": of_problem(problem.form), "path": choices}
        self.store = Store(checkpoint, "path", of, problem.form, len(asked["the strengths"]))
        self.points = self.store.values[:-1]

    def load(self) -> dict[float, Solution]:
        """The finished points by strength; the warm solver goes on from them. Those of which the status does not follow
        from the problem and the point are left out, and solved again."""
        known: dict[float, Solution] = {}
        if not self.points:
            return known
        with self.store.reading():
            all_points, self.points = self.points, []
            for k, packed in enumerate(all_points):
                strength, solution = self._point(self.store.value(k, dict), f"point {k}")
                if solution is not None:
                    known[strength] = solution
                    self.points.append(packed)
            for strength, solution in known.items():
                self.warm.learn(strength, solution)
            view = self.warm.view()  # at the last point
            last = self.store.value(len(all_points), dict, view)
            self._check(last, view)
            for name, state, schedule in last["stages"]:
                stage = self.warm.of(name)
                stage.view, stage.state, stage.schedule = view, state, schedule
            self.warm.between = dict(last["between"])
        self.store.mark(len(known))
        return known

    def _point(self, point: dict[str, Any], where: str) -> tuple[float, Solution | None]:
        """A strength and its solution; None where it is to be solved again."""
        check_parts(point, POINT, where)
        strength, solution = point["strength"], point["solution"]
        if strength not in self.asked["the strengths"]:
            raise MisfitError(f"{where} is of the strength {strength}")
        self.parameter.value = strength
        form = self.problem.form.frozen()
        certificate = proved(certifier := Certifier(form), point)
        status = solution["status"]
        holds = status in ANSWERS and (status != "certified" or certificate.holds(self.asked["the gap"]))
        holds = holds or (status == "unattained" and certifier.attained() is False)
        return strength, Solution(form, certificate, **solution) if holds else None

    def _check(self, last: Any, view: LocalView) -> None:
        """Refuse what the warm solver is to go on from, where it is not of the problem."""
        check_entries(last, LAST, "the last state")
        known = self.warm.iterations
        for name, state, _ in last["stages"]:
            if name not in known:
                raise MisfitError(f"the last state is none of {self.warm.method.name}")
            if state is not None:
                check_state(state, known[name].init(view, None), view.form, "the last state")
        if not last["between"]:
            return
        newton = known.get(InteriorPoint().name)
        if newton is None:
            raise MisfitError(f"{self.warm.method.name} goes on from no states between others")
        like = newton.init(view, None)
        for _, between in last["between"]:
            check_state(between, like.early, view.form, "a state between others")

    def close(self) -> None:
        self.store.close(say=True)

    def keep(self, strength: float, solution: Solution) -> None:
        """Note a finished point; written when it is due."""
        self.points.append(JsonTree.of({"strength": strength} | parts_of(solution), "path"))
        if self.store.due(len(self.points)):
            self.write()

    def write(self) -> None:
        """All finished points to the file, where they are not there yet."""
        if self.points:
            each = ((name, self.warm.of(name)) for name in self.warm.iterations)
            stages = [(name, stage.state, stage.schedule) for name, stage in each]
            last = {"stages": stages, "between": list(self.warm.between.items())}
            self.store.write(len(self.points), lambda: [*self.points, JsonTree.of(last, "path")])


class StoredFolds:
    """The file of one cross-validation, or nothing where none was asked for. Written after every fold. Another scoring
    may go on from it: predictions are kept, and scored when all is read."""

    def __init__(self, asked: Any, task: FoldTask, folds: Folds) -> None:
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
        G = len(task.grid.points)
        store = self.store = Store(checkpoint, "cross-validation", of, task.form, len(folds) * G)
        try:
            with store.reading():
                for k in range(len(store.values)):
                    number, run = store.value(k, tuple)
                    _check_fold(number, run, task, folds, f"fold {k}")
                    self.runs[number] = run
        except BaseException:
            store.close()
            raise

    def add(self, number: int, run: FoldRun) -> None:
        self.runs[number] = run
        if self.store is not None:
            values = self.store.values
            self.store.write(len(self.runs), lambda: [*values, JsonTree.of((number, run), "fold")])

    def close(self) -> None:
        if self.store is not None:
            self.store.close(say=True)


def _check_fold(number: Any, run: Any, task: FoldTask, folds: Folds, where: str) -> None:
    """Refuse what a fold of this cross-validation cannot have given."""
    if not is_whole(number) or not 0 <= number < len(folds) or not isinstance(run, FoldRun):
        raise MisfitError(f"{where} is of no fold of these")
    G, rows = len(task.grid.points), len(folds.each[number].test)
    k = max(block.width for block in task.form.samples)
    wanted = {"links": (G, rows, k), "gaps": (G,), "clusters": (G,)}
    for name, shape in wanted.items():
        value = getattr(run, name)
        if value.shape != shape or value.dtype.kind != "f" or np.isnan(value).any():
            raise MisfitError(f"the {name} of {where} are not {shape} numbers")
    if len(run.statuses) != G or not set(run.statuses) <= set(STATUSES) or (run.gaps < 0.0).any():
        raise MisfitError(f"the statuses or gaps of {where} are none of {G} solves")
