"""Columns of samples as users give them: read from frames and arrays, checked, and named in messages."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import checks
from .errors import DataError
from .messages import closest
from .reading import is_missing

Array = np.ndarray[Any, np.dtype[Any]]

INTERCEPT = "intercept"


@dataclass(frozen=True)
class Columns:
    """The columns that data were read from; names that cannot stand together are refused."""

    node: Hashable
    targets: tuple[Hashable, ...]
    features: tuple[Hashable, ...]
    weights: Hashable | None = None
    offset: Hashable | None = None
    intercept: bool = False

    def __post_init__(self) -> None:
        checks.switch(self.intercept, "intercept", DataError)
        for what, names in (("feature", self.features), ("target", self.targets)):
            twice = [name for k, name in enumerate(names) if str(name) in map(str, names[:k])]
            if twice:
                raise DataError(f"the {what} {twice[0]!r} is named twice; give each {what} a name of its own")
        both = [name for name in self.targets if name in self.features]
        if both:
            raise DataError(f"the target {both[0]!r} is also among the features; take it out of one of them")
        if self.intercept and INTERCEPT in map(str, self.features):
            raise DataError(
                "a feature is named 'intercept', and intercept=True adds one of that name; rename or drop it"
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X, with the intercept."""
        return (INTERCEPT,) * self.intercept + tuple(map(str, self.features))


def names_of(names: Any) -> tuple[Hashable, ...]:
    """One name, several, or None, as a tuple."""
    if names is None:
        return ()
    return (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)


def is_frame(value: Any) -> bool:
    pandas = sys.modules.get("pandas")  # whoever holds a frame has imported it
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_series(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.Series, pandas.Index))


# ---- from frames -----------------------------------------------------------------------------------------------------
def column_of(frame: Any, name: Any) -> Any:
    """The column ``name`` as a Series."""
    if not is_frame(frame):
        raise DataError(f"from a frame means from a pandas DataFrame, got {type(frame).__name__}; convert it to pandas")
    try:
        known = name in frame.columns
    except TypeError:
        raise DataError(f"a column is named by one label, got {name!r}") from None
    if not known:
        close = closest(str(name), map(str, frame.columns))
        hint = f"did you mean {close!r}?" if close else f"the columns are {shown(frame.columns)}"
        hint = "it is in the index: use frame.reset_index()" if name in frame.index.names else hint
        raise DataError(f"the frame has no column {name!r}; {hint}")
    column = frame[name]
    if is_frame(column):
        raise DataError(f"the frame has {column.shape[1]} columns named {name!r}; rename them")
    return column


def numbers_of(frame: Any, name: Any, what: str) -> Array:
    """A numeric column as floats, NaN where it is missing."""
    column = column_of(frame, name)
    if column.dtype.kind in "biuf":
        return column.to_numpy(dtype=float, na_value=np.nan, copy=True)
    return floats(column.to_numpy(), f"the {what} {name!r}")


# ---- from arrays -----------------------------------------------------------------------------------------------------
def floats(array: Array, what: str) -> Array:
    """The array as floats, NaN where an object is missing; text and other objects are refused."""
    if array.dtype.kind in "biuf":
        return array.astype(float, order="C")  # rows side by side: forms hold views of them
    flat = array.ravel().tolist()
    maybe = array.dtype.kind == "O"
    numeric = np.array([maybe and (isinstance(value, Real) or is_missing(value)) for value in flat], dtype=bool)
    if not numeric.all():
        k = int(np.flatnonzero(~numeric)[0])
        row = k // max(1, array.size // len(array))
        raise DataError(
            f"{what} is not numeric: row {row} holds {flat[k]!r}; encode it (pandas.get_dummies for classes)"
        )
    return np.array([np.nan if is_missing(value) else value for value in flat], dtype=float).reshape(array.shape)


def matrix(values: Any, what: str) -> Array:
    """Features (M, d) as floats."""
    if is_frame(values):
        columns = [numbers_of(values, name, "feature") for name in values.columns]
        return np.column_stack(columns) if columns else np.zeros((len(values), 0))
    if sp.issparse(values):
        raise DataError(f"{what} is a sparse matrix; use its .toarray()")
    array = _array(values, what)
    if array.ndim != 2:
        remedy = "; use X.reshape(-1, 1) for a single feature" if array.ndim == 1 else ""
        raise DataError(f"{what} must have the shape (rows, features), got {array.shape}{remedy}")
    return floats(array, what)


def vector(values: Any, what: str) -> Array:
    """One number per sample as floats."""
    array = _array(values, what)
    if array.ndim != 1:
        raise DataError(f"{what} must hold one number per sample, got the shape {array.shape}")
    return floats(array, what)


def raw(values: Any, what: str = "y") -> Array:
    """Targets as they are, (M,) or (M, k); text as objects."""
    array = _array(values, what)
    if array.ndim not in (1, 2):
        raise DataError(f"{what} must have the shape (rows,) or (rows, targets), got {array.shape}")
    if array.dtype.kind in "US":  # from the source where it is a list: numpy makes text of a missing value
        array = array.astype(object) if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def stack(columns: list[Array]) -> Array | None:
    """Columns side by side, None where there are none."""
    return np.column_stack(columns) if columns else None


def _array(values: Any, what: str) -> Array:
    try:
        return np.array(values)
    except ValueError:
        raise DataError(f"{what} is ragged: its rows have different lengths") from None


def shown(names: Iterable[Any], most: int = 6) -> str:
    """The first names, for messages."""
    texts = [repr(str(name)) for name in names]
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")
