"""Samples put together: columns that belong to one another, checked, with the node and the row in every message."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import unmasked
from ..errors import DataError
from ..messages import shown
from .columns import Array, Columns, labels_in, listed, matrix, raw, seen
from .labels import Labels, is_integers, plain_label
from .reading import FILL, is_missing, numbered

ROWS = 4096  # of X, looked at together


@dataclass(frozen=True)
class Where:
    """Says where a sample is: its node and its row."""

    labels: Labels
    node: Array

    @staticmethod
    def of(names: list[Any] | Array) -> Where:
        """Of the labels of all samples, in their order."""
        return Where(*numbered(names, "node label", DataError))

    def refuse(self, bad: Array, values: Array, what: str, remedy: str) -> None:
        rows = np.flatnonzero(bad)
        if rows.size:
            r = int(rows[0])
            more = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
            label = self.labels[self.node[r]]
            raise DataError(f"{what} is {plain_label(values[r])!r} at the node {label!r}, row {r}{more}; {remedy}")


def assembled(
    columns: Columns,
    names: list[Any] | Array,
    X: Array | None,
    y: Array | None,
    weights: Array | None,
    offset: Array | None,
) -> tuple[Any, ...]:
    """The fields of `NodeData`, in order and without the last."""
    M = len(names)
    for what, column in (("X", X), ("y", y), ("weights", weights), ("offset", offset)):
        if column is not None and len(column) != M:
            raise DataError(f"{what} has {len(column)} rows and there are {M} node labels; give one row per sample")
    if M == 0:
        raise DataError("the data have no rows; give at least one sample")
    where = Where.of(names)
    targets = tuple(map(str, columns.targets))
    check_targets(y, targets, where)
    if weights is None:
        weights = np.broadcast_to(1.0, M)  # one number, however many samples there are
    else:
        what, remedy = _named("the sample weight", columns.weights), "make it positive and finite, or drop the row"
        where.refuse(~(np.isfinite(weights) & (weights > 0)), weights, what, remedy)
    X, offset = design(X, columns, where), offsets(offset, columns, where)
    return where.labels, where.node, X, y, weights, offset, columns.feature_names, targets, columns.intercept


def check_targets(y: Array | None, targets: tuple[str, ...], where: Where) -> None:
    """Refuse targets that are missing or infinite."""
    for name, column in zip(targets, () if y is None else y.reshape(len(y), -1).T, strict=True):
        where.refuse(_unusable(column), column, f"the target {name!r}", FILL)


def design(X: Array | None, columns: Columns, where: Where) -> Array | None:
    """X, checked to be finite, behind a column of ones where there is an intercept."""
    if X is not None:
        for j in np.flatnonzero(~_all_finite(X)):
            where.refuse(~np.isfinite(X[:, j]), X[:, j], f"the feature {columns.features[j]!r}", FILL)
    if not columns.intercept:
        return X
    ones = np.ones((len(where.node), 1))
    return ones if X is None else np.hstack([ones, X])


def _all_finite(X: Array) -> Array:
    """Which columns are finite, (d,); some rows at a time, which then stay in the cache."""
    out = np.ones(X.shape[1], dtype=bool)
    for at in range(0, len(X), ROWS):
        out &= np.isfinite(X[at : at + ROWS]).all(axis=0)
    return out


def offsets(offset: Array | None, columns: Columns, where: Where) -> Array:
    """The offsets, checked to be finite; 0 where there are none."""
    if offset is None:
        return np.zeros(len(where.node))
    where.refuse(~np.isfinite(offset), offset, _named("the offset", columns.offset), FILL)
    return offset


def _named(what: str, column: Hashable | None) -> str:
    return what if column is None else f"{what} {column!r}"


def label_list(node: Any) -> list[Any] | Array:
    """Labels per sample from a column of a frame, an array or another iterable; integers stay an array."""
    if isinstance(node, (str, set, frozenset, Mapping)) or not isinstance(node, Iterable):
        raise DataError(f"node must hold one label per sample, in their order, got {shown(node)}")
    unmasked(node, "node", DataError)
    if is_integers(node):
        return node
    column = seen(node, "Series")
    return listed(node) if column is None else labels_in(column)


def _unusable(column: Array) -> Array:
    """Which targets are missing or infinite."""
    if column.dtype.kind in "fc":
        return ~np.isfinite(column)
    if column.dtype.kind in "biu":
        return np.zeros(len(column), dtype=bool)
    return np.array([is_missing(v) or (isinstance(v, float) and np.isinf(v)) for v in column.tolist()], dtype=bool)


# ---- by node ---------------------------------------------------------------------------------------------------------
def stacked(samples: Any) -> tuple[Array | None, Array, list[Hashable]]:
    """X, y and the labels of all samples, of one pair (X, y) per node."""
    if not isinstance(samples, Mapping):
        raise DataError(f"from_dict takes a mapping of node labels to pairs (X, y), got {type(samples).__name__}")
    if not samples:
        raise DataError("the dictionary is empty; give at least one node with samples")
    entries = {label: _checked_entry(label, entry) for label, entry in samples.items()}
    _check_alike(entries)
    names = [label for label, (_, y) in entries.items() for _ in range(len(y))]
    designs = [X for X, _ in entries.values() if X is not None]
    return np.concatenate(designs) if designs else None, np.concatenate([y for _, y in entries.values()]), names


def _checked_entry(label: Any, entry: Any) -> tuple[Array | None, Array]:
    """X (or None) and y of one node."""
    at = f"the node {plain_label(label)!r}"
    if not isinstance(entry, (tuple, list)) or len(entry) != 2:
        raise DataError(f"{at} needs a pair (X, y), got {type(entry).__name__}")
    if entry[1] is None:
        raise DataError(f"{at} has no targets: y is None")
    X, y = None if entry[0] is None else matrix(entry[0], f"X of {at}"), raw(entry[1], f"y of {at}")
    if X is not None and len(X) != len(y):
        raise DataError(f"{at} has {len(X)} rows in X and {len(y)} in y; give one target per row")
    if len(y) == 0:
        raise DataError(f"{at} has no rows; leave it out: nodes without data belong to the graph")
    return X, y


def _check_alike(entries: Mapping[Any, tuple[Array | None, Array]]) -> None:
    """All nodes have as many features and targets as the first."""
    (first, (X0, y0)), *others = entries.items()
    for label, (X, y) in others:
        for what, here, there in (("features", width(X), width(X0)), ("targets", width(y), width(y0))):
            if here != there:
                raise DataError(
                    f"the node {plain_label(label)!r} has {here} {what} and the node {plain_label(first)!r} has "
                    f"{there}; all nodes share the same {what}"
                )


def width(block: Array | None) -> int:
    return 0 if block is None else 1 if block.ndim == 1 else block.shape[1]
