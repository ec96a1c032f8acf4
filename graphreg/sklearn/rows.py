"""The rows that an estimator is given: their features as an array of floats, and the node of each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from ..checks import is_whole, unmasked
from ..errors import DataError
from ..inputs import column_of, listed, seen
from ..terms import Array

FLOATS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}  # what features are read as


@dataclass(frozen=True)
class Rows:
    """Rows of an estimator's input.

    Attributes
    ----------
    X : array of float, shape (M, d)
        The features, without the column of the nodes.
    labels : list of M hashables, or None
        The node of each row; None where neither an argument nor a column has it.
    place : int, or None
        Where among the columns of the input that of the nodes is.
    """

    X: Array
    labels: list[Hashable] | None
    place: int | None = None


def refuse_masks(**given: Any) -> None:
    """Refuse masked entries, which scikit-learn takes for data."""
    for name, value in given.items():
        unmasked(value, name, DataError)


def rows_of(estimator: Any, X: Any, node: Any, reset: bool) -> Rows:
    """The rows, their nodes from the argument ``node`` or from the column that the estimator names.

    ``reset`` says that the estimator is to remember the columns; otherwise they must be those that it remembers.
    """
    column = estimator.node
    refuse_masks(X=X, node=node)
    if isinstance(node, str):
        raise DataError(
            f"node must hold one label per row, got {node!r}; a column is named where the estimator is made, as in "
            f"{type(estimator).__name__}(..., node={node!r})"
        )
    if column is None:
        try:
            X = dense(validate_data(estimator, X, reset=reset, **FLOATS))
        except ValueError as error:
            if node is None and seen(X, "DataFrame") is not None:
                error.add_note(
                    f"if a column holds the labels of the nodes, name it: {type(estimator).__name__}(node=...)"
                )
            raise
        if node is not None:
            check_consistent_length(X, node)
        return Rows(X, None if node is None else listed(node))
    if node is not None:
        raise DataError(
            f"the nodes are given twice, as the argument node= and as the column {column!r} of X; leave one out"
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    rest, labels, place = taken(X, column)
    rest = check_array(rest, estimator=estimator, input_name="X", **FLOATS)
    return Rows(dense(rest), labels, place)


def taken(X: Any, column: Any) -> tuple[Any, list[Hashable], int]:
    """X without the column of the nodes, that column, and its place; a frame has it by name or by position, an array
    by position."""
    frame = seen(X, "DataFrame")
    if frame is not None:
        names = list(frame.columns)
        if column not in names and is_whole(column):
            column = names[_position(column, len(names))]
        labels = column_of(frame, column).to_list()
        if len(names) == 1:
            raise DataError(f"X has no column but that of the nodes, {column!r}; give features, too")
        return frame.drop(column).to_native(), labels, names.index(column)
    if not is_whole(column):
        raise DataError(
            f"node={column!r} names a column of a DataFrame, and X is a {type(X).__name__}, without names; give a "
            "DataFrame (in a pipeline: set_output(transform='pandas')), the position of the column, or leave node= "
            "out here and give the labels to fit and predict as node="
        )
    array: Any = X.tocsc() if sp.issparse(X) else np.asarray(X)
    place = _position(column, array.shape[1])
    labels = dense(array[:, [place]])[:, 0]
    return array[:, np.delete(np.arange(array.shape[1]), place)], labels.tolist(), place


def _position(column: int, count: int) -> int:
    """The position of a column, which is counted from the end where it is negative."""
    if not -count <= column < count:
        raise DataError(f"node={column} is the position of a column, and X has {count} columns")
    return column % count


def dense(X: Any) -> Array:
    """X as a dense array: the library stores features densely."""
    if not sp.issparse(X):
        return X
    try:
        return X.toarray()
    except MemoryError:
        M, d = X.shape
        raise MemoryError(
            f"graphreg stores features densely, and {M:,} rows of {d:,} columns take {8 * M * d / 1e9:,.1f} GB; choose "
            "or project columns first (SelectKBest, TruncatedSVD)"
        ) from None
