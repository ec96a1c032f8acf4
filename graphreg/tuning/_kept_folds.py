"""The folds that are finished, kept in a file: a cross-validation that was killed goes on with the others."""

from __future__ import annotations

from typing import Any

from ..methods._fingerprint import Fingerprint, entry, of_method, of_problem
from ..methods._packing import Packed
from ..methods.checkpoint import Checkpoint, Store
from ._fold_runs import FoldRun, Task
from .folds import Folds


class Kept:
    """The file of one cross-validation, or nothing where none was asked for. Written after every fold."""

    def __init__(self, asked: Any, task: Task, folds: Folds) -> None:
        checkpoint, self.runs = Checkpoint.of(asked), dict[int, FoldRun]()
        self.store = None
        if checkpoint is not None:
            self.store = Store(checkpoint, "cross-validation", {"cross-validation": fingerprint(task, folds)})
            with self.store.reading():
                self.runs |= (self.store.value(k, tuple) for k in range(len(self.store.values)))

    def add(self, number: int, run: FoldRun) -> None:
        self.runs[number] = run
        if self.store is not None:
            self.store.values.append(Packed.of((number, run), "fold"))
            self.store.write(len(self.runs))


def fingerprint(task: Task, folds: Folds) -> Fingerprint:
    """The problem (at the first point, whatever values its Parameters have now), the method, the grid and the folds.

    Not the scoring: predictions are kept, and scored when all is read.
    """
    with task.grid.at(0):
        problem = of_problem(task.form)
    method = {f"{key} of the method": value for key, value in of_method(task.method).items()}
    rows = [(fold.train, fold.test) for fold in folds.each]
    return {
        **method,
        "the Parameters": entry(tuple(task.grid.names)),
        "the grid": entry(task.grid.points),
        **problem,
        "the number of folds": str(len(folds)),
        "the folds": entry(rows),
        "the gap": entry(task.gap),
        "the seed": entry(task.seed),
    }
