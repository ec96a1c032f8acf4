"""A solution in a file: its points, from which the bounds are proved anew for the problem that it is of."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import visible
from ..base.files import place_of
from ..base.messages import shown
from ..certificate import Certificate, Certifier, violated
from ..checks import one_of, whole
from ..errors import CheckpointError
from ..form import DualPoint, Form
from ..terms import Array
from .checkpoints import archive
from .checkpoints.checkpoint import FORMAT, Checkpoint, Store, limits, write_values
from .checkpoints.fingerprint import of_problem
from .checkpoints.packing import PLAIN, MisfitError, Packed, check_entries
from .statuses import STATUSES

if TYPE_CHECKING:
    from ..base.tables import Table
    from .solution import Solution

KIND = "solution"
OF_SOLUTION = {"status": str, "message": str, "method": str, "rounds": int, "seconds": float, "seed": int}
OF_CERTIFICATE = {"primal": float, "dual": float, "w": Array}
SAVED = {"solution": dict, "certificate": dict, "dual": DualPoint, "labels": list, "coordinates": list}
ASSUMED = (
    "nothing is certified: the numbers are those of the file, and so is what it says of them; load it with the problem "
    "that it is of, and the bounds are proved anew",
)


def parts_of(solution: Solution) -> dict[str, Any]:
    """What of a solution is kept: what it says of itself, and the points that its bounds follow from."""
    own = solution.certificate
    return {
        "solution": {name: getattr(solution, name) for name in OF_SOLUTION},
        "certificate": {name: getattr(own, name) for name in OF_CERTIFICATE},
        "dual": own.dual_point,
    }


def save(solution: Solution, path: Any) -> None:
    """Write the file, see `Solution.save`."""
    asked, form = file_of(path), solution.form
    place = place_of(asked)
    if place.exists() and not _is_solution(archive.header_of(place)):
        raise CheckpointError(f"{str(asked)!r} is there, and no solution of graphreg; name another file, or remove it")
    names = {"labels": list(map(_plain, form.labels)), "coordinates": list(map(_plain, form.space.coordinates))}
    packed = Packed.of(parts_of(solution) | names, KIND)
    write_values(place, KIND, {"problem": of_problem(form)}, {}, [packed], limits(form, 1))


def look(path: Any) -> Table:
    """The coefficients in a file, for which nothing is known but the file."""
    import pandas as pd

    from ..base.tables import Table

    store = open_file(path, None)
    with store.reading():
        saved = value_of(store)
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
        f"{visible(file_of(path))}: coefficients by {said['method']}, which the file calls {said['status']!r}, with "
        f"the bounds {claimed['dual']:.10g} and {claimed['primal']:.10g}, that nobody has checked here"
    )
    return Table.of(frame, title, ASSUMED)


def proved(certifier: Certifier, known: Mapping[str, Any], point: DualPoint) -> Certificate:
    """The certificate of points: with the bounds that are known, where they say no more than is proved anew."""
    form = certifier.form
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


def check_parts(parts: Mapping[str, Any], where: str) -> None:
    """Refuse parts of another type, and texts that a terminal would obey."""
    check_entries(parts["solution"], OF_SOLUTION, where)
    check_entries(parts["certificate"], OF_CERTIFICATE, where)
    said = parts["solution"]
    for name in ("message", "method"):
        if not said[name].replace("\n", " ").isprintable():
            raise MisfitError(f"{where}: its {name} is {shown(said[name])}")
    for name in ("rounds", "seed"):
        whole(0)(said[name], f"the {name} of {where}", MisfitError)
    one_of(*STATUSES)(said["status"], f"the status of {where}", MisfitError)


# ---- files -----------------------------------------------------------------------------------------------------------
def file_of(path: Any) -> Path:
    """The file that a path names."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise CheckpointError(f"a solution is saved in a file: path must be its name, got {shown(path)}")
    return Path(path)


def open_file(path: Any, form: Form | None) -> Store:
    """The file, for reading; its entries are those of a solution, of this form where it is given."""
    asked = file_of(path)
    if not place_of(asked).exists():
        raise CheckpointError(f"there is no file {str(asked)!r}; save a solution there first")
    return Store(Checkpoint(asked), KIND, None if form is None else {"problem": of_problem(form)}, form, alone=False)


def value_of(store: Store) -> dict[str, Any]:
    """What the file holds, see `save`."""
    if len(store.values) != 1:
        raise MisfitError(f"it holds {len(store.values)} values, and not one solution")
    saved = store.value(0, dict)
    check_entries(saved, SAVED, "the solution")
    check_parts(saved, "the solution")
    return saved


def _is_solution(header: Any) -> bool:
    return isinstance(header, dict) and header.get("format") == FORMAT and header.get("kind") == KIND


def _plain(label: Hashable) -> Any:
    """A label as a file can hold it; of what it cannot, the text."""
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    return label if type(label) in (*PLAIN, float) else str(label)
