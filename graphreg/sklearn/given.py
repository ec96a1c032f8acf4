"""What an estimator is given: rows with the node of each, and the names and objects that describe its problem."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from ..base.messages import few, retyped, users_line
from ..catalogue import named
from ..checks import is_whole, unmasked
from ..errors import DataError, TermError
from ..inputs import Graph, NodeData, as_narwhals, column_of, is_frame, listed
from ..problem import Problem
from ..terms import Array, Model, NodePenalty, Parameter, TotalVariation
from ..terms.losses import AbstractLoss
from ..terms.penalties import SquaredL2

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
            if node is None and as_narwhals(X, "DataFrame") is not None:
                error.add_note(
                    f"if a column holds the labels of the nodes, name it: {type(estimator).__name__}(node=...)"
                )
            _name_columns(X, error)
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
    try:
        rest = check_array(rest, estimator=estimator, input_name="X", **FLOATS)
    except ValueError as error:
        _name_columns(rest, error, place)
        raise
    return Rows(dense(rest), labels, place)


def column_at(estimator: Any) -> str:
    """Where the labels of the nodes are, as code."""
    return f"X[{estimator.node!r}]" if isinstance(estimator.node, str) else "pd.Series(node)"


def matched(estimator: Any, labels: Sequence[Hashable], counting: Array) -> Graph | None:
    """The graph of an estimator, refused where its labels and those of the rows that count are alike but for type,
    spaces or case; with a warning of nodes without rows or edges."""
    from ..fitting.matching import refuse_look_alikes, untied  # the face of that room imports all of the library

    if estimator.graph is None:
        return None
    graph, seen, column = Graph.of(estimator.graph), dict.fromkeys(labels[r] for r in counting), column_at(estimator)
    refuse_look_alikes(
        seen, graph.labels, f"{column}.str.strip() takes such spaces off", partial(retyped, column=column)
    )
    said, n = untied(seen, graph), len(graph.labels)
    held_out = len(said) == 1 and n <= 2 * len(seen) < 2 * n  # as in every fold of a search by nodes
    if said and not held_out:
        warnings.warn(f"{type(estimator).__name__}: {'; '.join(said)}", UserWarning, stacklevel=users_line())
    return graph


def _name_columns(X: Any, error: ValueError, place: int | None = None) -> None:
    """Add to an error the columns that hold text, or cells that are missing or infinite, and what is to be done about
    them; those of an array by position, of which ``place`` was taken out."""
    frame, cells = as_narwhals(X, "DataFrame"), X.T.tolist() if isinstance(X, np.ndarray) and X.ndim == 2 else []
    columns = {f"{k + (place is not None and k >= place)}": each for k, each in enumerate(cells)}
    if frame is not None:
        columns = {repr(name): frame[name].to_list() for name in frame.columns}
    said, numbers = list[str](), {name: each for name, each in columns.items() if is_numbers(each)}
    if text := [name for name in columns if name not in numbers]:
        said.append(
            f"columns that are no numbers: {few(text)}; code them first, as OneHotEncoder of scikit-learn does in a "
            "ColumnTransformer, or use graphreg.fit, which takes text as it is"
        )
    bad = {name: np.flatnonzero(~np.isfinite(np.asarray(each, dtype=float))) for name, each in numbers.items()}
    if gaps := [f"{name} (rows {few(rows.tolist())})" for name, rows in bad.items() if rows.size]:
        said.append(f"columns with missing or infinite cells: {few(gaps)}; fill them, or leave these rows out")
    error.args = ("\n".join([str(error), *said]),)


def is_numbers(column: Any) -> bool:
    """True where all cells of a column are numbers."""
    try:
        return np.asarray(column, dtype=float).ndim == 1
    except (ValueError, TypeError):
        return False


def taken(X: Any, column: Any) -> tuple[Any, list[Hashable], int]:
    """X without the column of the nodes, that column, and its place; a frame has it by name or by position, an array
    by position."""
    frame = as_narwhals(X, "DataFrame")
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


SHOWN = 4  # edges, or rows of a table of weights, that an estimator is printed with
ALL = "all"  # the node of every row where nothing is said of nodes


class _Printed(str):
    """Text that is printed as it is."""

    def __repr__(self) -> str:
        return str(self)


def brief(graph: Any) -> Any:
    """A graph as an estimator is printed with: of many edges the first two, of a table of weights its shape."""
    given: Any = graph
    if isinstance(graph, (list, tuple)) and len(given) > SHOWN:
        return _Printed(f"[{given[0]!r}, {given[1]!r}, ... {len(given):,} edges]")
    if (isinstance(graph, np.ndarray) or is_frame(graph)) and len(given) > SHOWN:
        return _Printed(f"<{type(given).__name__} of {' x '.join(map(str, given.shape))}>")
    return graph


def loss_of(loss: Any, data: NodeData) -> AbstractLoss:
    """A loss from its name, its class or a function of the data."""
    make = named("loss", loss)
    made = make(data) if callable(make) else make
    if not isinstance(made, AbstractLoss) or made.data is not data:
        raise TermError(
            f"loss must be the name or class of a loss, or a function that makes one of the data, got {loss!r}; for "
            "options write functools.partial(gr.HuberLoss, delta=0.5)"
        )
    return made


def problem_of(loss: AbstractLoss, graph: Any, penalty: Any, strength: float, ridge: float) -> Problem:
    """Loss + strength * TotalVariation(graph, penalty) + ridge * NodePenalty(SquaredL2()); the strength is a Parameter
    of that name."""
    model = Model.of(loss)
    if graph is not None:
        penalty = named("penalty", penalty)
        edges = TotalVariation(graph, penalty() if isinstance(penalty, type) else penalty)
        model += Parameter(strength, "strength") * edges if edges.takes_strength() else edges
    return Problem(model + ridge * NodePenalty(SquaredL2()) if ridge > 0 else model)


def pooled(loss: AbstractLoss, ridge: float, n: int) -> Problem:
    """The same problem with one parameter vector for all n nodes: samples weigh what they weigh at their nodes, and
    each node has its ridge."""
    data = replace(loss.data, labels=(ALL,), node=np.zeros_like(loss.data.node), weights=loss.scales())
    return problem_of(replace(loss, data=data, scale="sum", **loss.coding()), None, None, 0.0, n * ridge)
