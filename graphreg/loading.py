"""Answers from files, judged by the problem that they are of."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, overload

import numpy as np

from . import checks
from .certificate import Certifier, check_point
from .form import Form
from .problem import Problem, problem_of
from .running import Outcome, Solution, file_of, judged, look, open_file, proved, value_of

if TYPE_CHECKING:
    from .base.tables import Table


@overload
def load(path: str | PathLike[str], problem: None = None, *, gap: float = 1e-6) -> Table: ...
@overload
def load(path: str | PathLike[str], problem: Problem, *, gap: float = 1e-6) -> Solution: ...
@checks.named
def load(path: str | PathLike[str], problem: Problem | None = None, *, gap: float = 1e-6) -> Solution | Table:
    """An answer that `Solution.save` wrote.

    A file holds points, and no data. With the problem that it is of, its bounds are proved anew from the points, as
    rigorously as those of any solve, and they decide the status: whoever wrote the file need not be believed. What
    remains the file's own word are the method, rounds, seconds and seed.

    Parameters
    ----------
    path : path
    problem : Problem, optional
        The very problem that was solved, at the same values of its Parameters. For one that is nearly the same, load
        with the former one and give the answer as ``start=``.
    gap : float
        The relative gap at which the status is "certified", as in `Problem.solve`.

    Returns
    -------
    Solution or Table
        Without a problem the coefficients alone, by node, in a table that says that nothing of it is certified. (Labels
        other than texts, numbers and tuples of these are their texts there.)

    Raises
    ------
    CheckpointError
        Where there is no such file, it is damaged, forged or something else, or of another problem; with what differs.

    Examples
    --------
    >>> solution.save("answer.npz")
    >>> gr.load("answer.npz", problem).status
    'certified'
    >>> gr.load("answer.npz").shape
    (4, 2)
    """
    checks.nonnegative(gap, "gap")
    return look(path) if problem is None else _proved_anew(path, problem_of(problem, "load").form.frozen(), gap)


def _proved_anew(path: str | PathLike[str], form: Form, gap: float) -> Solution:
    """The solution of a form in a file, its bounds proved anew."""
    store = open_file(path, form)
    with store.reading(), np.errstate(over="ignore", invalid="ignore"):
        saved = value_of(store)
        check_point(form, saved["certificate"]["w"], saved["dual"])
        certifier = Certifier(form)
        certifier.spot_checks.begin()
        certificate = proved(certifier, saved["certificate"], saved["dual"])
    outcome = judged(Outcome(certificate, certifier, "read"), gap)
    said, name = saved["solution"], repr(str(file_of(path)))
    message = f"{outcome.message} Read from {name}, which says {said['status']!r}; the bounds are proved anew."
    own = {name: said[name] for name in ("method", "rounds", "seconds", "seed")}
    return Solution(form, certificate, outcome.status, message, **own)
