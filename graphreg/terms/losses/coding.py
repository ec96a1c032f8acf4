"""How targets are coded: numbers as they are, two classes as -1 and 1."""

from __future__ import annotations

from numbers import Real

import numpy as np

from ...errors import DataError
from ..records import Array


def numeric(target: Array, loss: str) -> Array:
    """Numeric targets as floats; text and other objects are refused."""
    _check_numbers(target, f"{loss} takes numeric targets")
    return np.asarray(target, dtype=float)


def signs(target: Array, loss: str) -> Array:
    """Binary targets, coded {0, 1}, {-1, 1} or as booleans, as -1 and 1; anything else is refused."""
    wanted = f"{loss} takes targets coded {{0, 1}}, {{-1, 1}} or as booleans"
    remedy = "; compare the column with the class that counts as 1"
    _check_numbers(target, wanted, remedy)
    coded = np.asarray(target, dtype=float)
    values = np.unique(coded)
    if np.isin(values, (0.0, 1.0)).all():
        return np.where(coded == 1.0, 1.0, -1.0)
    if np.isin(values, (-1.0, 1.0)).all():
        return coded
    shown = ", ".join(f"{value:g}" for value in values[:5]) + (", ..." if len(values) > 5 else "")
    raise DataError(f"{wanted}, got the values {shown}{remedy}")


def _check_numbers(target: Array, wanted: str, remedy: str = "; make them numbers") -> None:
    """Text (of digits, too), dates and other objects are refused."""
    if target.dtype.kind in "biuf":
        return
    for value in np.ravel(target):
        if target.dtype.kind != "O" or not isinstance(value, (Real, np.bool_)):
            raise DataError(f"{wanted}, got {value!r}{remedy}")
