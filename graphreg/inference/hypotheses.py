"""Linear hypotheses R theta = r, from matrices or as they are written: {"x1": 0, "x2 - 2 * x3": 1}."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import checks
from ..base.escaping import visible
from ..base.messages import did_you_mean
from ..errors import DataError
from ..terms import Array, name_of

NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANK = 1e-10  # smallest over largest singular value of rows of length 1


def position(name: Any, names: Sequence[Any]) -> int:
    """The place of a coefficient among the names."""
    if name in names:
        return names.index(name)
    hint = did_you_mean(name, names)
    raise DataError(f"there is no coefficient {name!r} (there are {', '.join(map(repr, names[:10]))}){hint}")


def linear(hypothesis: Any, value: Any, names: Sequence[Any]) -> tuple[Array, Array, tuple[str, ...]]:
    """R (q, d), r (q,) and how each row reads; the rows are linearly independent."""
    if isinstance(hypothesis, Mapping):
        if value is not None:
            raise DataError("a hypothesis by names has its values in the mapping, {'x1': 0}; leave out the second one")
        R = np.array([_row(key, names) for key in hypothesis]).reshape(-1, len(names))
        r = _numbers(list(hypothesis.values()), "the values of a hypothesis")
    else:
        R, r = _matrix(hypothesis, value, names)
    if not len(R):
        raise DataError("the hypothesis has no row; write for instance {'x1': 0}")
    _check_rank(R)
    return R, r, tuple(f"{written(row, names)} = {each:g}" for row, each in zip(R, r, strict=True))


def written(row: Array, names: Sequence[Any]) -> str:
    """A linear combination as a sum: x1 - 2 x2."""
    out = ""
    for j in np.flatnonzero(np.abs(row) > 1e-10 * np.abs(row).max(initial=0.0)).tolist():
        size = "" if abs(abs(row[j]) - 1.0) < 1e-6 else f"{abs(row[j]):.3g} "
        sign = (" - " if row[j] < 0 else " + ") if out else ("-" if row[j] < 0 else "")
        out += f"{sign}{size}{visible(name_of(names[j]))}"
    return out or "0"


def _matrix(hypothesis: Any, value: Any, names: Sequence[Any]) -> tuple[Array, Array]:
    if isinstance(hypothesis, str):
        read = re.fullmatch(rf"(.+?)\s*==?\s*(-?{NUMBER})\s*", hypothesis)
        name, value = read.groups() if read else (hypothesis, 0)
        raise DataError(f"a hypothesis by names has a value: write {{{name!r}: {value}}}")
    d = len(names)
    R = np.atleast_2d(_numbers(hypothesis, "the matrix R of a hypothesis"))
    if R.ndim != 2 or R.shape[1] != d:
        raise DataError(
            f"the matrix R of a hypothesis must have a column for each of the {d} coefficients, got the shape {R.shape}"
        )
    r = np.zeros(len(R)) if value is None else _numbers(value, "the values r of a hypothesis")
    if r.shape not in ((), (len(R),)):
        raise DataError(f"the values r must be one number for each of the {len(R)} rows of R, got the shape {r.shape}")
    return R, np.broadcast_to(r, (len(R),))


def _numbers(values: Any, what: str) -> Array:
    out = checks.numbers(values, what, error=DataError)
    if not np.isfinite(out).all():
        raise DataError(f"{what} must be finite, got {values!r}")
    return out


def _row(key: Any, names: Sequence[Any]) -> Array:
    """The combination that a key means: a name, or a sum of multiples of names."""
    row = np.zeros(len(names))
    if key in names or not isinstance(key, str):
        row[position(key, names)] = 1.0
        return row
    words = sorted((name for name in names if isinstance(name, str)), key=len, reverse=True)
    known = "|".join(re.escape(word) for word in words) or r"(?!)"
    part = re.compile(rf"\s*([+-]?)\s*(?:({NUMBER})\s*\*?\s*)?({known})(?=\s*(?:[+-]|$))")
    at = 0
    while at < len(key.rstrip()):
        found = part.match(key, at)
        if found is None or (at and not found[1]):
            raise _misread(key, at, names)
        row[names.index(found[3])] += (-1.0 if found[1] == "-" else 1.0) * float(found[2] or 1.0)
        at = found.end()
    if not row.any():
        raise DataError(f"nothing is left of the combination {key!r}")
    return row


def _misread(key: str, at: int, names: Sequence[Any]) -> DataError:
    """The error of a combination from there on: a name that is none, or else how it is written."""
    rest = re.sub(rf"^\s*[+-]?\s*(?:{NUMBER}\s*\*?\s*)?", "", key[at:])
    name = re.split(r"\s+[+-]|[+-]\s+", rest)[0].strip()
    if name and name not in names:
        try:
            position(name, names)
        except DataError as error:
            return error
    return DataError(f"{key!r} cannot be read from {key[at:]!r} on; write sums of names, as in 'x1 - 2 * x2'")


def _check_rank(R: Array) -> None:
    size = np.linalg.norm(R, axis=1)
    if (size == 0.0).any():
        raise DataError(f"row {int(np.argmin(size))} of the hypothesis is 0: it says nothing of the coefficients")
    rank = np.linalg.matrix_rank(R / size[:, None], rtol=RANK)
    if rank < len(R):
        raise DataError(
            f"the {len(R)} rows of the hypothesis have rank {rank}: leave out those that follow from others"
        )
