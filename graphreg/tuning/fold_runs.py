"""The folds of a cross-validation carried out: the model on the training rows at every point of the grid."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..base.clock import OutOfTimeError, alarm
from ..base.display import Brief
from ..base.gate import end_with
from ..certificate import cluster_count
from ..distributed import agreed, shared, versions, world
from ..errors import FailedError, GraphregError, MethodError, ModelError, WorkerError
from ..form import Form
from ..inputs import Labels
from ..methods import AbstractMethod
from ..problem import Problem
from ..running import Budget
from ..saving import entry, of_problem
from ..terms import AbstractTerm, Array, Lowered, Model, Space, Strength
from ..terms.losses import AbstractLoss, at_rows
from .folds import Fold
from .grid import Grid
from .warm import Warm


@dataclass(frozen=True, repr=False)
class FoldRun(Brief):
    """The answers of one fold, point by point of the grid.

    Attributes
    ----------
    links : (G, m, k)
        The linear predictors of the m held-out rows; k = 1 but for losses with several.
    statuses : tuple of G strings
    gaps : (G,)
        The relative gaps; inf where there is no certificate.
    clusters : (G,)
        The numbers of clusters; 0 where rows that are no edges make none.
    """

    links: Array
    statuses: tuple[str, ...]
    gaps: Array
    clusters: Array


Tick = Callable[[int], Any]  # is told how many solves are done
FoldRuns = Generator[tuple[int, FoldRun]]  # with the number of each fold


@dataclass(frozen=True)
class _Nodes(AbstractTerm):
    """Nothing but the nodes of the whole problem: those whose samples are all held out stay in it, in their places."""

    nodes: Labels

    def labels(self) -> Labels:
        return self.nodes

    def lower(self, space: Space, strength: Strength) -> Lowered:
        return Lowered()


def training(model: Model, form: Form, rows: Array) -> Problem:
    """The problem on some rows: each loss on its own, with a mean over them; a loss that has none left drops out."""
    kept = np.zeros(sum(len(block.node) for block in form.samples), dtype=bool)
    kept[rows] = True
    terms: list[tuple[Strength, AbstractTerm]] = [(Strength(), _Nodes(form.observed))]
    begin = 0
    for strength, term in model.terms:
        if not isinstance(term, AbstractLoss):
            terms.append((strength, term))
            continue
        own = kept[begin : begin + term.data.n_samples]
        begin += len(own)
        if own.any():
            terms.append((strength, at_rows(term, own)))
    return Problem(Model(tuple(terms)))


@dataclass(frozen=True)
class FoldTask:
    """All that a fold needs; travels to other processes as a whole, so that Parameters stay the same objects."""

    model: Model
    form: Form
    grid: Grid
    method: AbstractMethod
    gap: float
    seed: int
    memory: float | None = None

    def run(self, fold: Fold, tick: Tick) -> FoldRun:
        """One fold, each solve from the answers at others.

        Raises
        ------
        KeyboardInterrupt, OutOfTimeError
            Where a solve was interrupted, or the time is up.
        ModelError, MethodError
            Where the training rows make no problem, or none for the method; with the name of the fold.
        FailedError
            Where a term of the user's breaks a law that certificates rest on.
        """
        G = len(self.grid.points)
        links: list[Array] = [np.zeros(0)] * G
        statuses, gaps, clusters = [""] * G, np.full(G, np.inf), np.zeros(G)
        try:
            problem = training(self.model, self.form, fold.train)
            if missing := self.method.lacks(problem.form):
                raise MethodError(f"{self.method.name} does not apply: {'; '.join(missing)}", missing)
            budget = Budget(self.gap, progress=False, seed=self.seed, memory=self.memory)
            warm = Warm(problem, self.method, budget)
            for k in self.grid.order:
                with self.grid.at(k), errors_with_place(self.grid, fold, k):
                    solution = warm.solve(self.grid.along(k))
                if solution.certificate.contradiction:
                    raise FailedError(f"fold {fold.name!r}: {solution.message}")
                if warm.warm_start.cut:
                    raise OutOfTimeError
                if solution.status == "interrupted" or warm.warm_start.interrupted:
                    raise KeyboardInterrupt
                links[k] = _links(self.form, solution.certificate.w, fold.test)
                statuses[k], gaps[k] = solution.status, solution.certificate.relative_gap
                clusters[k] = cluster_count(solution.certificate) if self.form.clustered else 0
                tick(1)
        except (ModelError, MethodError) as error:
            raise type(error)(f"fold {fold.name!r}: {error}") from error
        return FoldRun(np.stack(links), tuple(statuses), np.nan_to_num(gaps, nan=np.inf, posinf=np.inf), clusters)


def place(grid: Grid, fold: Fold, k: int) -> str:
    """A fold and a point of the grid, in words."""
    at = ", ".join(f"{name} = {value:.6g}" for name, value in grid.named(k).items())
    return f"fold {fold.name!r} at {at}"


@contextmanager
def errors_with_place(grid: Grid, fold: Fold, k: int) -> Generator[None]:
    """A context whose errors, of the user's own terms say, are passed on with the place where they happened."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the cross-validation: {place(grid, fold, k)}")
        raise


def _links(form: Form, w: Array, rows: Array) -> Array:
    """The linear predictors of rows of all losses, (m, k)."""
    return np.concatenate([block.predict(w).reshape(len(block.node), -1) for block in form.samples])[rows]


def fold_runs(task: FoldTask, folds: Sequence[Fold], todo: Sequence[int], jobs: int, tick: Tick) -> FoldRuns:
    """The runs of some folds with their numbers, as they end: one after the other, or in ``jobs`` processes.

    Raises
    ------
    WorkerError
        Where a process dies; with the places where processes were.
    """
    if jobs == 1 or len(todo) < 2:
        for number in todo:
            yield number, task.run(folds[number], tick)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    with TemporaryDirectory(prefix="graphreg-", ignore_cleanup_errors=True) as folder:
        try:
            pool = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", max_nbytes=None)
            runs: Any = pool(delayed(_one)(task, folds[k], k, folder, os.getpid()) for k in todo)
            for _ in todo:
                with alarm():
                    number, run = next(runs)
                tick(len(task.grid.points))
                yield number, run
        except BaseException as error:
            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)  # pyright: ignore[reportArgumentType]
            if isinstance(error, BrokenProcessPool):
                raise _died(task, folds, Path(folder)) from None
            raise


def _one(task: FoldTask, fold: Fold, number: int, folder: str, parent: int) -> tuple[int, FoldRun]:
    """One fold in a process of its own, which ends with its parent, or is killed by it when the time is up; how far it
    is stands in a file, which outlives the process."""
    end_with(parent)
    file, done = Path(folder) / str(number), 0

    def tick(solves: int) -> None:
        nonlocal done
        done += solves
        file.write_text(str(done))

    tick(0)
    run = task.run(fold, tick)
    file.unlink()
    return number, run


def _died(task: FoldTask, folds: Sequence[Fold], folder: Path) -> WorkerError:
    """The error where a process died, with the places where processes were."""
    order, places = task.grid.order, list[str]()
    for file in sorted(folder.iterdir(), key=lambda file: int(file.name)):
        done = min(int(file.read_text() or 0), len(order) - 1)
        places.append(place(task.grid, folds[int(file.name)], order[done]))
    where = f"; they were at {'; '.join(places)}" if places else " before any fold began"
    return WorkerError(
        f"a process of the cross-validation died (killed, or out of memory){where}. Take fewer jobs; with checkpoint= "
        "the same call goes on from the folds that are finished"
    )


# ---- folds that the processes of an MPI job share out: each runs some of them, and all know what all gave ------------
def by_ranks(task: FoldTask, folds: Sequence[Fold], todo: Sequence[int], tick: Tick) -> FoldRuns:
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
            raise shared(kind(f"rank {rank} of {comm.size}: {text}"))
    yield from sorted((run for runs, _, _ in every for run in runs), key=lambda pair: pair[0])
    if any(late for _, late, _ in every):
        raise OutOfTimeError
