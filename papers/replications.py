"""Replications of an experiment: each computed once, over processes, and kept."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from graphreg.errors import MethodWarning

from .breaking_off import heeded
from .kept import Kept
from .records import plain

Task = tuple[dict[str, Any], int]  # a cell, and the number of the replication


@dataclass(frozen=True)
class Replications:
    """The place and the way in which replications are computed and kept.

    Attributes
    ----------
    kept : Kept
    key : dict
        What all replications of the claim have in common: its id, its data, and the version of its code.
    processes : int
    progress : bool or None
        Whether a bar with an estimate of the time left is shown; None: where stderr is a terminal.
    """

    kept: Kept = field(default_factory=Kept)
    key: Mapping[str, Any] = field(default_factory=dict[str, Any])
    processes: int = 1
    progress: bool | None = False

    def carried_out(
        self, unit: Callable[..., Any], tasks: Sequence[Task], seed: int, files: Mapping[str, Path] | None = None
    ) -> list[dict[str, Any]]:
        """The results of all tasks, in their order; ``files``: real data that the unit is given."""
        key = {**self.key, "unit": unit.__qualname__, "seed": seed}
        of = [{"cell": plain(cell), "number": number} for cell, number in tasks]
        there = self.kept.lines(key)
        found: list[Any] = [there.get(json.dumps(each, sort_keys=True)) for each in of]
        todo = [place for place, content in enumerate(found) if content is None]
        shown: dict[str, Any] = {
            "total": len(tasks),
            "initial": len(tasks) - len(todo),
            "desc": self.key.get("id"),
            "unit": "run",
        }
        one = partial(_one, unit, seed=seed, files=None if files is None else dict(files))
        off = None if self.progress is None else not self.progress
        with tqdm(**shown, leave=False, disable=off) as bar:
            for place, content in self._computed(one, {place: tasks[place] for place in todo}):
                self.kept.append(key, of[place], content)
                found[place] = content
                bar.update(1)
        return found

    def _computed(
        self, one: Callable[[Task], dict[str, Any]], todo: Mapping[int, Task]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Results as they come; Ctrl-C ends the processes."""
        if self.processes == 1 or len(todo) < 2:
            for place, task in todo.items():
                yield place, one(task)
            return
        from joblib import Parallel, delayed
        from joblib.externals.loky import get_reusable_executor

        pool = Parallel(n_jobs=self.processes, backend="loky", return_as="generator_unordered", max_nbytes=None)
        try:
            found: Any = pool(delayed(_placed)(place, one, task, os.getpid()) for place, task in todo.items())
            yield from found
        except BaseException:
            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)  # pyright: ignore[reportArgumentType]
            raise


def _placed(place: int, one: Callable[[Task], dict[str, Any]], task: Task, parent: int) -> tuple[int, dict[str, Any]]:
    """One replication in another process, which ends here where the one that has started it is gone."""
    done = place, one(task)
    if os.getppid() != parent:
        os._exit(1)
    return done


def _one(unit: Callable[..., Any], task: Task, *, seed: int, files: Mapping[str, Path] | None) -> dict[str, Any]:
    """One replication. Its random numbers depend on the seed, the number and the cell alone."""
    cell, number = task
    words = np.frombuffer(repr(sorted(plain(cell).items())).encode(), dtype=np.uint8)
    rng = np.random.default_rng([seed, number, *map(int, words)])
    with heeded(), quiet():
        return plain(unit(rng, **cell) if files is None else unit(rng, files, **cell))


def quiet() -> warnings.catch_warnings[None]:
    """A context without what methods warn of: printed variants are run here to see what they do."""
    return warnings.catch_warnings(action="ignore", category=MethodWarning)
