"""How targets are coded: numbers as they are, two classes as -1 and 1."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set

import numpy as np

from ...checks import is_number, is_switch
from ...errors import DataError, TermError
from ...messages import look_alike, shown
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


def two_classes(target: Array) -> Array:
    """The two classes as binary data code them, also where all samples are of one class."""
    values = np.unique(target)
    return values if len(values) == 2 else np.array([-1 if values[0] == -1 else 0, 1]).astype(target.dtype)


def counts(target: Array, loss: str) -> Array:
    """Targets that count something: numbers >= 0."""
    coded = numeric(target, loss)
    if (coded < 0).any():
        row = int(np.argmax(coded < 0))
        raise DataError(f"{loss} takes targets >= 0, got {coded[row]:g} in row {row}; drop the row, or use SquaredLoss")
    return coded


def classes_of(target: Array) -> tuple[Hashable, ...]:
    """The distinct values of a target, sorted where they can be, else in order of appearance."""
    values = tuple(dict.fromkeys(np.ravel(target).tolist()))
    try:
        return tuple(sorted(values))
    except TypeError:
        return values


def named_classes(classes: object) -> tuple[Hashable, ...]:
    """The classes that a user names, in their order."""
    if isinstance(classes, (str, Set)) or not isinstance(classes, Iterable):
        raise TermError(f"classes must be a sequence of the values that a target takes, got {classes!r}")
    classes = tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    for value in classes:
        if not isinstance(value, Hashable):
            raise TermError(f"classes must be values that a target takes, got {value!r} among them")
    return classes


def one_hot(target: Array, classes: tuple[Hashable, ...], loss: str) -> Array:
    """One column per class, 1 where the target is that class."""
    index = {value: k for k, value in enumerate(classes)}
    given = np.ravel(target).tolist()
    for row, value in enumerate(given):
        if value not in index:
            hint = look_alike(value, classes)
            raise DataError(
                f"{loss} has the classes {list(classes)}, got {value!r} in row {row}{hint}; add it to classes"
            )
    coded = np.zeros((len(given), len(classes)))
    coded[np.arange(len(given)), [index[value] for value in given]] = 1.0
    return coded


def _check_numbers(target: Array, wanted: str, remedy: str = "; make them numbers") -> None:
    """Text (of digits, too), dates and other objects are refused."""
    if target.dtype.kind in "biuf":
        return
    for value in np.ravel(target):
        if target.dtype.kind != "O" or not (is_number(value) or is_switch(value)):
            raise DataError(f"{wanted}, got {shown(value)}{remedy}")
