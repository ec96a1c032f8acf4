"""Answers in files: their points, from which the bounds are proved anew for the problem that they are of."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import checks
from ..base.escaping import visible
from ..base.files import place_of
from ..base.messages import shown
from ..certificate import Certificate, Certifier, check_point, violated
from ..errors import CheckpointError
from ..form import DualPoint, Form
from ..running import STATUSES, Checkpoint, Outcome, Solution, judged
from ..terms import Array
from . import archive
from .fingerprint import of_problem
from .packing import PLAIN, JsonTree, MisfitError, check_entries
from .store import FORMAT, Store, limits, write_values

if TYPE_CHECKING:
    from ..base.tables import Table
    from ..problem import Problem

KIND = "solution"
OF_SOLUTION = {"status": str, "message": str, "method": str, "rounds": int, "seconds": float, "seed": int}
OF_CERTIFICATE = {"primal": float, "dual": float, "w": Array}
OF_ANSWER = {"solution": dict, "certificate": dict, "dual": DualPoint}
SAVED = OF_ANSWER | {"labels": list, "coordinates": list}
ASSUMED = (
    "nothing is certified: the numbers are those of the file, and so is what it says of them; load it with the problem "
    "that it is of, and the bounds are proved anew",
)


def save(solution: Solution, path: Any) -> None:
    """Write the file, see `Solution.save`."""
    asked, form = _file_of(path), solution.form
    place = place_of(asked, KIND)
    if place.exists() and not _is_solution(archive.header_of(place)):
        raise CheckpointError(f"{str(asked)!r} is there, and no solution of graphreg; name another file, or remove it")
    names = {"labels": list(map(_plain, form.labels)), "coordinates": list(map(_plain, form.space.coordinates))}
    packed = JsonTree.of(parts_of(solution) | names, KIND)
    write_values(place, KIND, {"problem": of_problem(form)}, {}, [packed], limits(form, 1))


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
    if problem is None:
        return _table(path)
    from ..problem import problem_of  # not before: an actor that starts on its own needs no problem

    return _proved_anew(path, problem_of(problem, "load").form.frozen(), gap)


def _table(path: Any) -> Table:
    """The coefficients in a file, for which nothing is known but the file."""
    import pandas as pd

    from ..base.tables import Table

    store, saved = _read(path, None)
    with store.reading():
        w, labels, names = saved["certificate"]["w"], saved["labels"], saved["coordinates"]
        if w.shape != (len(labels), len(names)) or w.dtype != np.float64:
            raise MisfitError(f"its parameters are {w.dtype} {w.shape}, of {len(labels)} nodes")
        for label in (*labels, *names):
            if _plain(label) != label:  # which also refuses what cannot be a label
                raise MisfitError(f"it has the label {shown(label)}")
        index = pd.Index(labels, dtype=object, name="node", tupleize_cols=False)
        frame = pd.DataFrame(w, index=index, columns=pd.Index(names, dtype=object, tupleize_cols=False))
    said, claimed = saved["solution"], saved["certificate"]
    title = (
        f"{visible(_file_of(path))}: coefficients by {said['method']}, which the file calls {said['status']!r}, with "
        f"the bounds {claimed['dual']:.10g} and {claimed['primal']:.10g}, that nobody has checked here"
    )
    return Table.of(frame, title, ASSUMED)


def _proved_anew(path: Any, form: Form, gap: float) -> Solution:
    """The solution of a form in a file, its bounds proved anew."""
    store, saved = _read(path, form)
    with store.reading(), np.errstate(over="ignore", invalid="ignore"):
        certifier = Certifier(form)
        certifier.spot_checks.begin()
        certificate = proved(certifier, saved)
    outcome = judged(Outcome(certificate, certifier, "read"), gap)
    said, name = saved["solution"], repr(str(_file_of(path)))
    message = f"{outcome.message} Read from {name}, which says {said['status']!r}; the bounds are proved anew."
    own = {name: said[name] for name in ("method", "rounds", "seconds", "seed")}
    return Solution(form, certificate, outcome.status, message, **own)


# ---- what is kept of a solution, in points of a path too -------------------------------------------------------------
def parts_of(solution: Solution) -> dict[str, Any]:
    """The parts of a solution that are kept: what it says of itself, and the points that its bounds follow from."""
    own = solution.certificate
    return {
        "solution": {name: getattr(solution, name) for name in OF_SOLUTION},
        "certificate": {name: getattr(own, name) for name in OF_CERTIFICATE},
        "dual": own.dual_point,
    }


def proved(certifier: Certifier, parts: Mapping[str, Any]) -> Certificate:
    """The certificate of the points in parts of a solution: with the bounds that are known, where they say no more than
    is proved anew. A `ValueError` where they are no points of the certifier's form."""
    form, known, point = certifier.form, parts["certificate"], parts["dual"]
    check_point(form, known["w"], point)
    certifier.propose(known["w"], point)
    best = certifier.best()
    if certifier.best_primal is None and not best.contradiction and form.primal(known["w"]) == np.inf:
        return violated(best, known["w"])  # of a baseline, which drops what ties the nodes
    if not best.valid or not known["primal"] >= best.primal or not known["dual"] <= best.dual:
        return best
    primal, dual = known["primal"], known["dual"]
    rounding = max(primal - form.primal(known["w"]), 0.0)
    charge = rounding + max(form.dual(point) - dual, 0.0)
    return replace(best, primal=primal, dual=dual, charge=charge, rounding=rounding, dual_point=point)


def check_parts(parts: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    """Refuse what has not the parts that are wanted, those of a solution among them; and texts that a terminal would
    obey."""
    check_entries(parts, wanted, where)
    check_entries(parts["solution"], OF_SOLUTION, where)
    check_entries(parts["certificate"], OF_CERTIFICATE, where)
    said = parts["solution"]
    for name in ("message", "method"):
        if not said[name].replace("\n", " ").isprintable():
            raise MisfitError(f"{where}: its {name} is {shown(said[name])}")
    for name in ("rounds", "seed"):
        checks.whole(0)(said[name], f"the {name} of {where}", MisfitError)
    checks.one_of(*STATUSES)(said["status"], f"the status of {where}", MisfitError)


# ---- files -----------------------------------------------------------------------------------------------------------
def _file_of(path: Any) -> Path:
    """The file that a path names."""
    if not isinstance(path, (str, PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise CheckpointError(f"a solution is saved in a file: path must be its name, got {shown(path)}")
    return Path(path)


def _read(path: Any, form: Form | None) -> tuple[Store, dict[str, Any]]:
    """The file of one solution, of this form where it is given, and what it holds, see `save`."""
    asked = _file_of(path)
    if not place_of(asked, KIND).exists():
        raise CheckpointError(f"there is no file {str(asked)!r}; save a solution there first")
    store = Store(Checkpoint(asked), KIND, None if form is None else {"problem": of_problem(form)}, form, alone=False)
    with store.reading():
        if len(store.values) != 1:
            raise MisfitError(f"it holds {len(store.values)} values, and not one solution")
        saved = store.value(0, dict)
        check_parts(saved, SAVED, "the solution")
    return store, saved


def _is_solution(header: Any) -> bool:
    return isinstance(header, dict) and header.get("format") == FORMAT and header.get("kind") == KIND


def _plain(label: Hashable) -> Any:
    """A label as a file can hold it; of what it cannot, the text."""
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    return label if type(label) in (*PLAIN, float) else str(label)
