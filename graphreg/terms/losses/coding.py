"""How targets are coded: numbers as they are, two classes as -1 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DataError
from ..records import Array


def numeric(target: Array, loss: str) -> Array:
    """Numeric targets as floats; text and other objects are refused."""
    try:
        return np.asarray(target, dtype=float)
    except (TypeError, ValueError):
        guilty = next(value for value in np.ravel(target) if not _is_number(value))
        raise DataError(f"{loss} takes numeric targets, got {guilty!r}") from None


def signs(target: Array, loss: str) -> Array:
    """Binary targets, coded {0, 1}, {-1, 1} or as booleans, as -1 and 1; anything else is refused."""
    try:
        coded = np.asarray(target, dtype=float)
    except (TypeError, ValueError):
        guilty = next(value for value in np.ravel(target) if not _is_number(value))
        raise DataError(
            f"{loss} takes targets coded {{0, 1}}, {{-1, 1}} or as booleans, got {guilty!r}; compare the column with "
            "the class that counts as 1"
        ) from None
    values = np.unique(coded)
    if np.isin(values, (0.0, 1.0)).all():
        return np.where(coded == 1.0, 1.0, -1.0)
    if np.isin(values, (-1.0, 1.0)).all():
        return coded
    shown = ", ".join(f"{value:g}" for value in values[:5]) + (", ..." if len(values) > 5 else "")
    raise DataError(f"{loss} takes targets coded {{0, 1}}, {{-1, 1}} or as booleans, got the values {shown}")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
