"""NodeData: ragged samples per node, from data frames, dictionaries and arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import checks
from ..base import display
from ..base.escaping import visible
from ..base.messages import did_you_mean
from ..errors import ArgumentError, DataError
from .columns import (
    Array,
    Columns,
    Where,
    as_narwhals,
    assembled,
    column_of,
    design,
    features_of,
    label_list,
    labels_in,
    levels_of,
    listing,
    matrix,
    names_of,
    numbers_of,
    offsets,
    raw,
    refuse_misaligned,
    stacked,
    table,
    vector,
    width,
)
from .labels import Frozen, Labels, as_labels
from .units import Standardised

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoDataFrame

SHOWN = 10  # features and nodes in a notebook


@dataclass(frozen=True, eq=False)
class NodeData(Frozen, display.Shown):
    """The samples of all nodes, stacked; each belongs to one node. Use the constructors, which check what they read.

    Attributes
    ----------
    labels : sequence of hashables
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

    Examples
    --------
    >>> data.features, data.targets
    (('rain', 'temp'), ('level',))
    >>> gr.NodeData.from_dict({"a": ([[1.0], [2.0]], [1.0, 2.1])}).X.shape
    (2, 1)
    """

    ARRAYS = "node", "X", "y", "weights", "offset"

    labels: Labels
    node: Array
    X: Array | None
    y: Array | None
    weights: Array
    offset: Array
    features: tuple[str, ...]
    targets: tuple[str, ...]
    intercept: bool = False
    columns: Columns | None = None

    def __new__(cls, *given: Any, **options: Any) -> Self:
        if 0 < len(given) + len(options) < len(fields(cls)) - 2:  # copies give none
            raise ArgumentError("NodeData takes what was read: write NodeData.from_frame, from_dict or from_arrays")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if self.node.dtype.kind not in "iu":
            raise DataError(f"node holds positions in labels, which are integers, and not {self.node.dtype}")
        outside = np.flatnonzero((self.node < 0) | (self.node >= len(self.labels)))
        if outside.size:
            r = outside[0]
            last = len(self.labels) - 1
            raise DataError(f"node[{r}] is {self.node[r]}, and the positions of the nodes are 0 to {last}")
        self.freeze()

    # ---- constructors ------------------------------------------------------------------------------------------------
    @staticmethod
    @checks.named
    def from_frame(  # noqa: PLR0913
        frame: IntoDataFrame,
        node: Hashable,
        target: Hashable | Sequence[Hashable] | None = None,
        features: Sequence[Hashable] | None = None,
        weights: Hashable | None = None,
        offset: Hashable | None = None,
        intercept: bool = False,
        categories: Sequence[Hashable] | None = None,
        *,
        standardise: bool | Sequence[Hashable] | Standardised = False,
    ) -> NodeData:
        """Data from the columns of a frame, one sample per row. Missing values are refused, each by its column and row;
        `graphreg.fit` has rules for them.

        Penalties treat all features alike, so that those in very different units (dollars, shares) want to be
        standardised: a column x with mean m and standard deviation s stands in the data as (x - m) / s. A coefficient w
        of the problem is then w / s in the units of the column, and the intercept b is b - m w / s: tables of
        coefficients are in these units, ``Solution.coef`` and penalties are not.

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
        categories : list of column names, optional
            Features whose values are names (of a crop, of a shift): a column of 0 and 1 for each but the first, called
            "soil[clay]", whose coefficient is the difference from the first. The order is that of a categorical column,
            else they are sorted. They come behind those features beside which they are not named.
        standardise : bool or list of column names, or the ``standardised`` of other data
            Features to be divided by their standard deviation (with n - 1, over all rows) and, where there is an
            intercept, centred at their mean: all that are numbers, those named, or those of other data by the numbers
            of these.

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
        coded, whole = names_of(categories), table(frame)
        named = names_of(features)
        named += tuple(name for name in coded if name not in named)
        levels = tuple((name, levels_of(whole, name)) for name in coded)
        columns = Columns(node, names_of(target), named, weights, offset, intercept, levels)
        return from_columns(whole, replace(columns, standardised=_standardised(whole, columns, standardise)))

    @staticmethod
    @checks.named
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
        X, y, names = stacked(samples)
        return NodeData.from_arrays(X, y, names, features=features, intercept=intercept)

    @staticmethod
    @checks.named
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

        Arrays are copied, so that what is solved stays what it is; but for those to which nobody can write (whose flag
        ``writeable`` is off, as is that of what they are views of): these are taken as they are.

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
        refuse_misaligned(X=X, y=y, node=node, weights=weights, offset=offset)
        if features is None and (frame := as_narwhals(X, "DataFrame")) is not None:
            features = list(map(str, frame.columns))
        X, y = None if X is None else matrix(X, "X"), None if y is None else raw(y)
        d, k = width(X), width(y)
        names = tuple(f"x{j}" for j in range(d)) if features is None else names_of(features)
        if len(names) != d:
            raise DataError(f"there are {len(names)} feature names and {d} columns in X; give one name per column")
        targets = ("y",) if k == 1 else tuple(f"y{j}" for j in range(k))
        vectors = (None if v is None else vector(v, what) for v, what in ((weights, "weights"), (offset, "offset")))
        columns = Columns(None, targets, names, intercept=intercept)
        return NodeData(*assembled(columns, label_list(node), X, y, *vectors))

    # ---- views -------------------------------------------------------------------------------------------------------
    @property
    def standardised(self) -> Standardised | None:
        """What features were centred by and divided by; None where they were not."""
        return None if self.columns is None else self.columns.standardised

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
        chosen = self._positions(rows)
        node = self.node[chosen]
        present = np.bincount(node, minlength=len(self.labels)) > 0
        kept, node = np.flatnonzero(present), (np.cumsum(present) - 1)[node]
        known = {name: getattr(self, name) for name in ("X", "y", "weights", "offset")}
        rows = {name: each[chosen] for name, each in known.items() if each is not None}
        return replace(self, labels=as_labels(self.labels[i] for i in kept.tolist()), node=node, **rows)

    def _positions(self, rows: Any) -> Array:
        chosen = np.asarray(rows)
        if chosen.dtype == bool and chosen.shape != self.node.shape:
            raise DataError(f"the mask has {chosen.size} entries and the data have {self.n_samples} rows")
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        if not chosen.size:
            raise DataError("no row of the data is left; take at least one")
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise DataError(f"rows must be a mask or whole numbers in one dimension, got {checks.shown(rows)}")
        outside = chosen[(chosen < -self.n_samples) | (chosen >= self.n_samples)]
        if outside.size:
            raise DataError(f"there is no row {outside[0]}: the data have {self.n_samples} rows")
        return chosen

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
        where = Where.of(labels_in(column_of(whole, columns.node)))
        X = design(features_of(whole, columns), columns, where)
        offset = None if columns.offset is None else numbers_of(whole, columns.offset, "offset column")
        return [where.labels[i] for i in where.node.tolist()], X, offsets(offset, columns, where)

    def __repr__(self) -> str:
        counts = self.counts()
        each = f"{counts.min()} to {counts.max()}" if counts.min() < counts.max() else f"{counts.max()}"
        features = f"{self.n_features} features ({listing(self.features)})" if self.features else "no features"
        target = "target" if len(self.targets) == 1 else "targets"
        targets = f"{target} {listing(self.targets)}" if self.targets else "no target"
        return f"NodeData: {self.n_samples} samples at {len(self.labels)} nodes ({each} each), {features}, {targets}"

    def _html(self) -> Iterable[display.Html]:
        counts = self.counts().tolist()
        yield display.title(repr(self))
        columns = [] if self.X is None else list(zip(self.features, self.X.T, strict=True))
        if rows := [(name, x.mean(), x.std(), x.min(), x.max()) for name, x in columns[:SHOWN]]:
            yield display.table(
                ("feature", "mean", "std", "min", "max"), [(row[0], *map(float, row[1:])) for row in rows]
            )
            yield display.more(len(columns), len(rows))
        nodes = [(visible(label), count) for label, count in islice(zip(self.labels, counts, strict=True), SHOWN)]
        shown = display.table(("node", "samples"), nodes)
        yield display.details("samples at the nodes", shown, display.more(len(counts), len(nodes)))


def _standardised(frame: Any, columns: Columns, asked: Any) -> Standardised | None:
    """What the features of a frame are centred by and divided by, as a user asks."""
    if asked is None or asked is False or isinstance(asked, Standardised):
        return asked or None
    coded = {str(name) for name, _ in columns.levels}
    numeric = [str(name) for name in columns.features if str(name) not in coded]
    chosen = numeric if asked is True else [str(name) for name in names_of(asked)]
    for name in chosen:
        if name not in numeric:
            raise DataError(f"standardise: {name!r} is not among the features that are numbers; {listing(numeric)}")
    if not chosen:
        raise DataError("standardise: there are no features to standardise")
    X: Any = features_of(frame, columns)
    return Standardised.of(X, columns.own_names, chosen, columns.intercept)


def from_columns(frame: Any, columns: Columns) -> NodeData:
    """The data in these columns of a frame."""
    whole = table(frame)
    y = [raw(column_of(whole, name)) for name in columns.targets]
    fields = assembled(
        columns,
        labels_in(column_of(whole, columns.node)),
        features_of(whole, columns),
        raw(np.column_stack(y)) if y else None,
        None if columns.weights is None else numbers_of(whole, columns.weights, "weights column"),
        None if columns.offset is None else numbers_of(whole, columns.offset, "offset column"),
    )
    return NodeData(*fields, columns=columns)
