"""NodeData: ragged samples per node, from data frames, dictionaries and arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError
from ..messages import did_you_mean
from .columns import Columns, column_of, listed, matrix, names_of, numbers_of, raw, seen, shown, stack, table, vector
from .reading import FILL, is_missing, numbered, plain_label

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoDataFrame

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class NodeData:
    """The samples of all nodes, stacked; each belongs to one node. Use the constructors, which check what they read.

    Attributes
    ----------
    labels : tuple of hashables
        The nodes that have data, in order of first appearance.
    node : array of int, shape (M,)
        The node of each sample, as a position in ``labels``.
    X : array of float, shape (M, d), or None
        The features; a column of ones comes first where there is an intercept.
    y : array, shape (M,) or (M, k), or None
        The targets as they were given (one target: (M,)); losses code them.
    weights, offset : array of float, shape (M,)
        Sample weights (positive, default 1) and offsets of the linear predictor (default 0).
    features, targets : tuple of str
        The names of the columns of X and y.
    intercept : bool
        Whether the first column of X is the intercept.
    columns : Columns, optional
        Where in a frame the data came from, so that `read` can read others like it.
    """

    labels: tuple[Hashable, ...]
    node: Array
    X: Array | None
    y: Array | None
    weights: Array
    offset: Array
    features: tuple[str, ...]
    targets: tuple[str, ...]
    intercept: bool = False
    columns: Columns | None = None

    # ---- constructors ------------------------------------------------------------------------------------------------
    @staticmethod
    def from_frame(
        frame: IntoDataFrame,
        node: Hashable,
        target: Hashable | Sequence[Hashable] | None = None,
        features: Sequence[Hashable] | None = None,
        weights: Hashable | None = None,
        offset: Hashable | None = None,
        intercept: bool = False,
    ) -> NodeData:
        """Data from the columns of a frame, one sample per row.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, or Table of pyarrow
        node : column name
            The label of the node of each sample.
        target : column name or list of them
        features : list of column names, optional
            Numeric or boolean columns.
        weights, offset : column name, optional
        intercept : bool
            Whether to add a leading feature "intercept" of ones.

        Returns
        -------
        NodeData

        Raises
        ------
        DataError
            For a frame without rows, an unknown or repeated column, a feature that is not numeric, NaN or infinite
            entries, missing nodes, or weights that are not positive. The message names the column, node and row.

        Examples
        --------
        >>> gr.NodeData.from_frame(frame, node="site", target="level", features=["rain"], intercept=True).features
        ('intercept', 'rain')
        """
        columns = Columns(node, names_of(target), names_of(features), weights, offset, intercept)
        whole = table(frame)
        X = stack([numbers_of(whole, name, "feature") for name in columns.features])
        y = stack([raw(column_of(whole, name)) for name in columns.targets])
        data = _assemble(
            columns,
            column_of(whole, node).to_list(),
            X,
            None if y is None else raw(y),
            None if weights is None else numbers_of(whole, weights, "weights column"),
            None if offset is None else numbers_of(whole, offset, "offset column"),
        )
        return replace(data, columns=columns)

    @staticmethod
    def from_dict(
        samples: Mapping[Any, tuple[Any, Any]], features: Sequence[str] | None = None, intercept: bool = False
    ) -> NodeData:
        """Data from one pair (X, y) per node.

        Parameters
        ----------
        samples : mapping of label to (X, y)
            X (m_i, d) or None for all nodes, y (m_i,) or (m_i, k).
        features : list of str, optional
            Default: x0, x1, ...
        intercept : bool
            Whether to add a leading feature "intercept" of ones.

        Returns
        -------
        NodeData

        Raises
        ------
        DataError
            For an entry that is not such a pair, has no rows, or has another number of features or targets than the
            others (the node is named), and as for `from_frame`.

        Examples
        --------
        >>> gr.NodeData.from_dict({"a": ([[1.0], [2.0]], [0.5, 1.5])}).counts()
        array([2])
        """
        if not isinstance(samples, Mapping):
            raise DataError(f"from_dict takes a mapping of node labels to pairs (X, y), got {type(samples).__name__}")
        if not samples:
            raise DataError("the dictionary is empty; give at least one node with samples")
        entries = {label: _checked_entry(label, entry) for label, entry in samples.items()}
        _check_alike(entries)
        names: list[Hashable] = []
        for label, (_, y) in entries.items():
            names += [label] * len(y)
        designs = [X for X, _ in entries.values() if X is not None]
        X, y = np.concatenate(designs) if designs else None, np.concatenate([y for _, y in entries.values()])
        return NodeData.from_arrays(X, y, names, features=features, intercept=intercept)

    @staticmethod
    def from_arrays(
        X: Any,
        y: Any,
        node: Iterable[Hashable],
        weights: Any = None,
        offset: Any = None,
        features: Sequence[str] | None = None,
        intercept: bool = False,
    ) -> NodeData:
        """Data from stacked arrays, one sample per row.

        Parameters
        ----------
        X : array, shape (M, d), or None
        y : array, shape (M,) or (M, k), or None
        node : sequence of M hashables
            The label of the node of each sample.
        weights, offset : array, shape (M,), optional
        features : list of str, optional
            Default: the column names of X where it is a frame, else x0, x1, ...
        intercept : bool
            Whether to add a leading feature "intercept" of ones.

        Returns
        -------
        NodeData

        Raises
        ------
        DataError
            For arrays of other shapes or lengths, and as for `from_frame`.

        Examples
        --------
        >>> gr.NodeData.from_arrays([[1.0], [2.0]], [0.5, 1.5], ["a", "b"]).labels
        ('a', 'b')
        """
        if features is None and (frame := seen(X, "DataFrame")) is not None:
            features = list(map(str, frame.columns))
        X, y = None if X is None else matrix(X, "X"), None if y is None else raw(y)
        width, k = 0 if X is None else X.shape[1], 0 if y is None else 1 if y.ndim == 1 else y.shape[1]
        names = tuple(f"x{j}" for j in range(width)) if features is None else names_of(features)
        if len(names) != width:
            raise DataError(f"there are {len(names)} feature names and {width} columns in X; give one name per column")
        targets = ("y",) if k == 1 else tuple(f"y{j}" for j in range(k))
        vectors = (None if v is None else vector(v, what) for v, what in ((weights, "weights"), (offset, "offset")))
        return _assemble(Columns(None, targets, names, intercept=intercept), _label_list(node), X, y, *vectors)

    # ---- views -------------------------------------------------------------------------------------------------------
    @property
    def n_samples(self) -> int:
        return len(self.node)

    @property
    def n_features(self) -> int:
        """The number of columns of X, with the intercept."""
        return len(self.features)

    def counts(self) -> Array:
        """The number of samples of each node, (n,) int, in the order of ``labels``.

        Returns
        -------
        array of int, shape (n,)

        Examples
        --------
        >>> data.counts()
        array([6, 6, 6, 6])
        """
        return np.bincount(self.node, minlength=len(self.labels))

    def at(self, label: Hashable) -> NodeData:
        """The samples of one node alone, as a copy.

        Returns
        -------
        NodeData

        Raises
        ------
        DataError
            For a node without samples.

        Examples
        --------
        >>> data.at("b").counts()
        array([6])
        """
        if label not in self.labels:
            raise DataError(f"there are no samples at {label!r}{did_you_mean(label, self.labels)}")
        return self.take(np.flatnonzero(self.node == self.labels.index(label)))

    def take(self, rows: Any) -> NodeData:
        """The samples of the given rows, as a copy: a mask (M,) or positions, in their order. Nodes of which no sample
        is left are no part of it.

        Returns
        -------
        NodeData

        Raises
        ------
        DataError
            Where no row is left, or a mask has another length.

        Examples
        --------
        >>> data.take(np.arange(7)).counts()
        array([6, 1])
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool and chosen.shape != self.node.shape:
            raise DataError(f"the mask has {chosen.size} entries and the data have {self.n_samples} rows")
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.intp)
        if not len(chosen):
            raise DataError("no row of the data is left; take at least one")
        kept, node = np.unique(self.node[chosen], return_inverse=True)
        return replace(
            self,
            labels=tuple(self.labels[i] for i in kept),
            node=node,
            X=None if self.X is None else self.X[chosen],
            y=None if self.y is None else self.y[chosen],
            weights=self.weights[chosen],
            offset=self.offset[chosen],
        )

    def read(self, frame: IntoDataFrame) -> tuple[list[Hashable], Array | None, Array]:
        """Labels, features and offsets of the rows of another frame with the same columns; the target is not needed.

        Returns
        -------
        labels : list of length M
        X : array of float, shape (M, d), or None
        offset : array of float, shape (M,)

        Raises
        ------
        DataError
            For data that were not read from a frame, and as for `from_frame`.

        Examples
        --------
        >>> labels, X, offset = data.read(frame[:2])
        >>> labels
        ['a', 'a']
        """
        columns = self.columns
        if columns is None:
            raise DataError("these data were not read from a frame, so that no frame can be read alike; use from_frame")
        whole = table(frame)
        labels, node = numbered(column_of(whole, columns.node).to_list(), "node label", DataError)
        where = _Where(labels, node)
        X = _design(stack([numbers_of(whole, name, "feature") for name in columns.features]), len(node), columns, where)
        offset = None if columns.offset is None else numbers_of(whole, columns.offset, "offset column")
        return [labels[i] for i in node.tolist()], X, _offsets(offset, len(node), columns, where)

    def __repr__(self) -> str:
        counts = self.counts()
        each = f"{counts.min()} to {counts.max()}" if counts.min() < counts.max() else f"{counts.max()}"
        features = f"{self.n_features} features ({shown(self.features)})" if self.features else "no features"
        target = "target" if len(self.targets) == 1 else "targets"
        targets = f"{target} {shown(self.targets)}" if self.targets else "no target"
        return f"NodeData: {self.n_samples} samples at {len(self.labels)} nodes ({each} each), {features}, {targets}"


# ---- putting together ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Where:
    """Says where a sample is: its node and its row."""

    labels: tuple[Hashable, ...]
    node: Array

    def refuse(self, bad: Array, values: Array, what: str, remedy: str) -> None:
        rows = np.flatnonzero(bad)
        if rows.size:
            r = int(rows[0])
            more = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
            label = self.labels[self.node[r]]
            raise DataError(f"{what} is {plain_label(values[r])!r} at the node {label!r}, row {r}{more}; {remedy}")


def _assemble(
    columns: Columns, names: list[Any], X: Array | None, y: Array | None, weights: Array | None, offset: Array | None
) -> NodeData:
    M = len(names)
    for what, column in (("X", X), ("y", y), ("weights", weights), ("offset", offset)):
        if column is not None and len(column) != M:
            raise DataError(f"{what} has {len(column)} rows and there are {M} node labels; give one row per sample")
    if M == 0:
        raise DataError("the data have no rows; give at least one sample")
    labels, node = numbered(names, "node label", DataError)
    where = _Where(labels, node)
    targets = tuple(map(str, columns.targets))
    for name, column in zip(targets, () if y is None else y.reshape(M, -1).T, strict=True):
        where.refuse(_unusable(column), column, f"the target {name!r}", FILL)
    weights = np.ones(M) if weights is None else weights
    what = _named("the sample weight", columns.weights)
    where.refuse(~(np.isfinite(weights) & (weights > 0)), weights, what, "make it positive and finite, or drop the row")
    X, offset = _design(X, M, columns, where), _offsets(offset, M, columns, where)
    return NodeData(labels, node, X, y, weights, offset, columns.feature_names, targets, columns.intercept)


def _design(X: Array | None, M: int, columns: Columns, where: _Where) -> Array | None:
    """X, checked to be finite, behind a column of ones where there is an intercept."""
    if X is not None:
        for j in np.flatnonzero(~np.isfinite(X).all(axis=0)):
            where.refuse(~np.isfinite(X[:, j]), X[:, j], f"the feature {columns.features[j]!r}", FILL)
    if not columns.intercept:
        return X
    ones = np.ones((M, 1))
    return ones if X is None else np.hstack([ones, X])


def _offsets(offset: Array | None, M: int, columns: Columns, where: _Where) -> Array:
    if offset is None:
        return np.zeros(M)
    where.refuse(~np.isfinite(offset), offset, _named("the offset", columns.offset), FILL)
    return offset


def _named(what: str, column: Hashable | None) -> str:
    return what if column is None else f"{what} {column!r}"


def _label_list(node: Any) -> list[Any]:
    """Labels per sample from a column of a frame, an array or another iterable."""
    if isinstance(node, str) or not isinstance(node, Iterable):
        raise DataError(f"node must hold one label per sample, got {node!r}")
    return listed(node)


def _unusable(column: Array) -> Array:
    """Which targets are missing or infinite."""
    if column.dtype.kind in "fc":
        return ~np.isfinite(column)
    if column.dtype.kind in "biu":
        return np.zeros(len(column), dtype=bool)
    return np.array([is_missing(v) or (isinstance(v, float) and np.isinf(v)) for v in column.tolist()], dtype=bool)


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
        for what, here, there in (("features", _width(X), _width(X0)), ("targets", _width(y), _width(y0))):
            if here != there:
                raise DataError(
                    f"the node {plain_label(label)!r} has {here} {what} and the node {plain_label(first)!r} has "
                    f"{there}; all nodes share the same {what}"
                )


def _width(block: Array | None) -> int:
    return 0 if block is None else 1 if block.ndim == 1 else block.shape[1]
