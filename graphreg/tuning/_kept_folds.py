"""The folds that are finished, kept in a file: a cross-validation that was killed goes on with the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CheckpointError
from ..methods import _archive, _fingerprint
from ..methods.checkpoint import Checkpoint
from ._fold_runs import FoldRun, Task
from .folds import Folds

FORMAT, VERSION = "graphreg cross-validation", 1


class Kept:
    """The file of one cross-validation, or nothing where none was asked for. Written after every fold."""

    def __init__(self, asked: Any, task: Task, folds: Folds) -> None:
        checkpoint = Checkpoint.of(asked)
        self.path = None if checkpoint is None else checkpoint.file
        self.of = {} if self.path is None else fingerprint(task, folds)
        self.runs: dict[int, FoldRun] = {}
        if self.path is None:
            return
        if self.path.is_dir():
            raise CheckpointError(f"the checkpoint {str(self.path)!r} is a folder; name a file in it")
        if not self.path.parent.is_dir():
            raise CheckpointError(
                f"the checkpoint {str(self.path)!r} is to lie in a folder that does not exist; create it"
            )
        if self.path.exists():
            self.runs = self._read(*_archive.read(self.path))

    def _read(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[int, FoldRun]:
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise CheckpointError(f"{str(self.path)!r} is no checkpoint of this cross-validation; name another file")
        found = _fingerprint.differences(self.of, header["of"])
        if found:
            raise CheckpointError(
                f"the checkpoint {str(self.path)!r} is of another cross-validation; what differs: {', '.join(found)}; "
                "name another file, or remove this one to begin anew",
                tuple(found),
            )
        return {
            int(k): FoldRun(arrays[f"links{k}"], tuple(statuses), arrays[f"gaps{k}"], arrays[f"clusters{k}"])
            for k, statuses in header["folds"].items()
        }

    def add(self, number: int, run: FoldRun) -> None:
        self.runs[number] = run
        if self.path is None:
            return
        arrays = {
            f"{name}{k}": getattr(each, name) for k, each in self.runs.items() for name in ("links", "gaps", "clusters")
        }
        statuses = {str(k): list(each.statuses) for k, each in self.runs.items()}
        header = {"format": FORMAT, "version": VERSION, "of": self.of, "folds": statuses}
        _archive.write(self.path, header, arrays)


def fingerprint(task: Task, folds: Folds) -> dict[str, str]:
    """The problem (at the first point, whatever values its Parameters have now), the method, the grid and the folds.

    Not the scoring: predictions are kept, and scored when all is read.
    """
    with task.grid.at(0):
        problem = _fingerprint.of_problem(task.form)
    method = {f"{key} of the method": value for key, value in _fingerprint.of_method(task.method).items()}
    rows = [(fold.train, fold.test) for fold in folds.each]
    return {
        **method,
        "the Parameters": _fingerprint.entry(tuple(task.grid.names)),
        "the grid": _fingerprint.entry(task.grid.points),
        **problem,
        "the number of folds": str(len(folds)),
        "the folds": _fingerprint.entry(rows),
        "the gap": _fingerprint.entry(task.gap),
        "the seed": _fingerprint.entry(task.seed),
    }
