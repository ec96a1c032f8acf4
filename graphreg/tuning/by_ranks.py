"""Folds that the processes of an MPI job share out: each runs some of them, and all know what all gave."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Sequence
from typing import Any

from ..clock import OutOfTimeError
from ..engines import agreed, versions, world
from ..errors import GraphregError
from ..running import entry, of_problem
from .fold_runs import FoldRun, Task
from .folds import Fold


def by_ranks(
    task: Task, folds: Sequence[Fold], todo: Sequence[int], tick: Callable[[int], Any]
) -> Generator[tuple[int, FoldRun]]:
    """The runs of some folds with their numbers; every rank runs those that are its turn, and gets all. What is refused
    on one of them is raised on all."""
    comm = world()
    asked = {"grid": entry(task.grid.points), "method": entry(repr(task.method)), "gap": repr(task.gap)}
    asked |= {"seed": repr(task.seed), "folds": entry([fold.test for fold in folds])}
    agreed(comm, lambda: {"versions": versions(), "call": asked, "problem": of_problem(task.form)})
    found, late, error = list[tuple[int, FoldRun]](), False, None
    try:
        for number in todo[comm.rank :: comm.size]:
            found.append((number, task.run(folds[number], tick)))
    except OutOfTimeError:
        late = True
    except GraphregError as own:
        error = type(own), str(own)
    every = [pickle.loads(each) for each in comm.allgather(pickle.dumps((found, late, error)))]
    for rank, (_, _, refused) in enumerate(every):
        if refused is not None:
            kind, text = refused
            raised = kind(f"rank {rank} of {comm.size}: {text}")
            raised.shared = True
            raise raised
    yield from sorted((run for runs, _, _ in every for run in runs), key=lambda pair: pair[0])
    if any(late for _, late, _ in every):
        raise OutOfTimeError
