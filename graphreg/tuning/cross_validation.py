"""Cross-validation over a graph: which strengths predict samples, or nodes, that were held out."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import checks
from ..base.clock import cut_short, needed, progress_bar, stages
from ..base.gate import allowing, refuse
from ..base.messages import warn
from ..distributed import MPI
from ..errors import MethodError, WorkerError
from ..methods import METHOD, AbstractMethod
from ..problem import Problem, problem_of
from ..running import Costs
from .chosen import RULES, CrossValidation, scores_of
from .fold_runs import FoldTask, by_ranks, fold_runs
from .folds import Folds, folds_of
from .grid import grid_of
from .scoring import Scorer, held_out, scorer_of
from .stored import StoredFolds
from .warm import usual_method


@checks.named
def cross_validate(  # noqa: PLR0913
    problem: Problem,
    grid: Any = None,
    folds: Any = 5,
    *,
    by: str = "sample",
    scoring: Any = None,
    greater_is_better: bool | None = None,
    rule: str = "min",
    method: AbstractMethod | None = None,
    gap: float = 1e-6,
    seed: int = 0,
    seconds: float | None = None,
    memory: float | None = None,
    jobs: int = 1,
    engine: MPI | None = None,
    refit: bool = True,
    progress: bool | None = None,
    checkpoint: Any = None,
) -> CrossValidation:
    """Choose the strengths of a model by their held-out score: how well it predicts samples that it was not fitted on.

    On each fold every loss is taken on its training rows (a mean is over those that are left), the model is solved and
    certified at every point of the grid, and the held-out samples are predicted from the coefficients of their nodes.
    With s_k the score of fold k and p_k the share of all held-out sample weight that it holds,

        score = sum_k p_k s_k,      standard error = sqrt( sum_k p_k (s_k - score)^2 / (K - 1) ),

    which for folds of one size is the standard deviation of the s_k over sqrt(K).

    Parameters
    ----------
    problem : Problem
        With at least one `Parameter`. Their values are the same afterwards; see ``CrossValidation.assign``.
    grid : sequence of numbers, mapping, sequence of mappings, int or None
        Values for the only Parameter; values by Parameter (or its name), of which all combinations are tried; one
        mapping per point; or so many strengths (20 by default) down over three decades, see `path`. A
        Parameter that the grid does not name keeps its value.
    folds : int, sequence or splitter
        How many; or a fold label per row; or pairs (train rows, test rows), as positions or masks; or an object with
        ``split(X, y, groups)`` as scikit-learn has them, to which the nodes are the groups. Rows are those of the
        data, of several losses one after the other in the order of the model's terms.
    by : {"sample", "node"}
        Of a number of folds: "sample" spreads every node's samples over the folds as evenly as can be (a node with a
        single sample has none left in one fold, and is predicted there through its edges); "node" holds out whole
        nodes, which are predicted through their edges.
    scoring : str or callable, optional
        "loss" (default: the model's own loss per sample), "mse", "mae", "accuracy", "log_loss", "auc", "deviance",
        or a function of (y, prediction, weights): targets as given, responses (probabilities, counts, ...) and sample
        weights of one fold's held-out samples. Formulas: `graphreg.tuning.scoring`.
    greater_is_better : bool
        Of a function of your own.
    rule : {"min", "1se", "paired"}
        "min" chooses the point with the best score; "1se" the strongest regularisation whose score is within one
        standard error of the best. Where folds are noisy (one sample or count per node) that is the strongest of the
        grid, whatever the data say, and a MethodWarning says so: use "min" there. Of several Parameters the one with
        the largest geometric mean is the strongest. "paired" chooses the best, unless it does not beat the strongest of
        the grid by more than one standard error of their difference: then that one. The difference is taken sample by
        sample, of by="node" node by node, of folds that are given and of scores that are no means over samples fold by
        fold; see ``CrossValidation.behind``. It is the rule of one standard error of Breiman et al. (1984) for two
        models, on paired differences.
    method : AbstractMethod, optional
        By default that of `path`. An iterative method begins each solve between the answers at two strengths that are
        solved, or where several Parameters vary at the last answer.
    gap : float
        The relative gap asked of every solve.
    seed : int
        Of the folds, and of methods that draw random numbers.
    seconds : float, optional
        A budget of time for all of it, the refit included.
    memory : float, optional
        A bound of the bytes that may be taken, as in `Problem.solve`, for each process.
    jobs : int
        How many processes; -1 for as many as there are processors. The numbers are the same.
    engine : MPI, optional
        ``gr.MPI()`` shares the folds out to the processes of an MPI job, each of which has the whole problem and gets
        the whole result.
    refit : bool
        Whether to solve the problem on all data at the chosen point.
    progress : bool, optional
        Whether to show a progress bar on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file for the folds that are finished: the same call goes on with the others.

    Returns
    -------
    CrossValidation
        After Ctrl-C, and where the time is up, of the folds that are finished; it says that it is incomplete, and why,
        and chooses nothing. Where no fold is finished there is nothing yet to give: then Ctrl-C raises
        KeyboardInterrupt.

    Raises
    ------
    ModelError, DataError, MethodError, CheckpointError
        For a grid, folds, a scoring or a file that cannot be used; the message names what is wrong. What a function of
        your own raises is passed on with a note that names the fold and the strengths.
    BudgetError
        Where the time is up before any fold is finished.
    WorkerError
        Where a process dies; with the folds and the strengths at which processes were. ``found`` has what is finished.

    Examples
    --------
    >>> found = gr.cross_validate(problem, [0.01, 1.0], folds=3)
    >>> found.best in ({"lam": 0.01}, {"lam": 1.0})
    True
    """
    problem_of(problem, "cross_validate")
    _check(rule=rule, gap=gap, seed=seed, seconds=seconds, jobs=jobs, method=method)
    _check(engine=engine, refit=refit, progress=progress)
    _check_engine(engine, jobs, checkpoint)
    with allowing(memory, seconds):
        with needed("cross_validate"), stages("cross-validation", progress, "the strengths and the folds"):
            values, split = grid_of(problem, grid), folds_of(problem.form, folds, by, seed)
        scorer = scorer_of(problem.form, scoring, greater_is_better)
        if rule != "min":
            values.regularisation(problem.form)  # refuses where no order is known, before hours are spent
        if not callable(scoring):
            _try(problem, split, scorer)
        task = FoldTask(problem.model, problem.form, values, method or usual_method(problem), gap, int(seed), memory)
        with closing(StoredFolds(checkpoint, task, split)) as stored:
            found = CrossValidation(problem, values, split, scorer, rule, gap, stored.runs)
            found = _carried_out(found, task, stored, jobs if engine is None else engine, progress)
        if rule == "1se" and found.indifferent:
            warn(found.indifferent)
        chosen = refit and found.complete and found.usable.any()
        return found.refitted(task.method, task.seed, progress) if chosen else found


def _carried_out(
    found: CrossValidation, task: FoldTask, stored: StoredFolds, how: int | MPI, progress: bool | None
) -> CrossValidation:
    """The cross-validation with what all folds gave, or those that are finished when Ctrl-C is pressed or the time
    is up."""
    refuse(Costs(task.form).arrays / 8.0, "cross_validate", "about ")
    folds, G = found.folds.each, len(found.grid.points)
    todo = [number for number in range(len(folds)) if number not in stored.runs]
    solves = {"total": len(folds) * G, "initial": len(stored.runs) * G, "desc": "cross-validation", "unit": " solves"}

    def so_far(ended: str) -> CrossValidation:
        return replace(found, runs=dict(sorted(stored.runs.items())), ended=ended)

    try:
        some, bar = cut_short("cross_validate", lambda: stored.runs), progress_bar(progress, **solves)
        each = partial(fold_runs, jobs=how) if isinstance(how, int) else by_ranks
        with some as ended, bar as tick, closing(each(task, folds, todo, tick=tick)) as runs:
            for number, run in runs:
                stored.add(number, run)
                scores_of(task.form, folds[number], run, found.scorer, task.grid)  # what is wrong is known at once
    except WorkerError as error:
        error.found = so_far("a process died")
        raise
    return so_far("".join(ended) if len(stored.runs) < len(folds) else "")


def _try(problem: Problem, folds: Folds, scorer: Scorer) -> None:
    """A score that a fold cannot have is refused before anything is solved."""
    width = max(block.width for block in problem.form.samples)
    for fold in folds.each:
        rows = fold.test[fold.scored]
        scorer.score(held_out(problem.form, rows, np.zeros((len(rows), width))), fold.name)


CHECKS = {
    "rule": checks.one_of(*RULES),
    "gap": checks.inside("(0, inf)", "a positive number that is finite"),
    "seed": checks.seed,
    "seconds": checks.seconds | None,
    "jobs": checks.count | checks.Check("-1 for all processors", lambda jobs: checks.is_whole(jobs) and jobs == -1),
    "method": METHOD | None,
    "engine": checks.instance(MPI, "gr.MPI()") | None,
    "refit": checks.switch,
    "progress": checks.switch | None,
}


def _check(**given: Any) -> None:
    for name, value in given.items():
        CHECKS[name](value, name)


def _check_engine(engine: Any, jobs: int, checkpoint: Any) -> None:
    if engine is not None and (jobs != 1 or checkpoint is not None):
        what = "jobs" if jobs != 1 else "checkpoint"
        raise MethodError(f"engine=gr.MPI() shares folds out to processes that are there: leave it or {what}= out")
