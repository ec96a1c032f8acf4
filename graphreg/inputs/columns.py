"""Columns of samples as users give them: read from frames and arrays, checked, and named in messages."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..base.messages import did_you_mean, near, shown
from ..checks import unmasked
from ..errors import DataError
from .labels import FILL, Array, Labels, is_integers, is_missing, plain_label, positions_of
from .units import INTERCEPT, Standardised

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


PLAIN = (type(None), np.ndarray, list, tuple, str)  # are no frames, which is known without narwhals


@dataclass(frozen=True)
class Columns:
    """The columns that data were read from; names that cannot stand together are refused. ``levels`` are those of the
    features that are categories: a column of 0 and 1 for each but the first."""

    node: Hashable
    targets: tuple[Hashable, ...]
    features: tuple[Hashable, ...]
    weights: Hashable | None = None
    offset: Hashable | None = None
    intercept: bool = False
    levels: tuple[tuple[Hashable, tuple[Hashable, ...]], ...] = ()
    standardised: Standardised | None = None

    def __post_init__(self) -> None:
        checks.switch(self.intercept, "intercept", DataError)
        for what, names in (("feature", self.own_names), ("target", self.targets)):
            first = {str(name): k for k, name in reversed(tuple(enumerate(names)))}
            twice = [name for k, name in enumerate(names) if first[str(name)] < k]
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
    def own_names(self) -> tuple[str, ...]:
        """The same without the intercept: of a category one for each level but the first."""
        levels = {str(name): [f"{name}[{x}]" for x in known[1:]] for name, known in self.levels}
        return tuple(own for name in map(str, self.features) for own in levels.get(name, [name]))


def names_of(names: Any) -> tuple[Hashable, ...]:
    """One name, several, or None, as a tuple."""
    if names is None:
        return ()
    if isinstance(names, (str, Mapping)) or not isinstance(names, Iterable):
        one: Any = names
        return (one,)
    named = tuple(checks.sequence(names, "the names of columns", "a list", DataError))
    if wrong := [name for name in named if not isinstance(name, Hashable) or is_missing(name)]:
        raise DataError(f"a column is named by one label, got {wrong[0]!r}")
    return named


def is_frame(value: Any) -> bool:
    pandas = sys.modules.get("pandas")  # whoever holds a frame has imported it
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_series(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.Series, pandas.Index))


# ---- from frames -----------------------------------------------------------------------------------------------------
def as_narwhals(value: Any, kind: str) -> Any:
    """A frame of pandas, polars or pyarrow (of the kind "DataFrame") or a column of theirs ("Series") as narwhals sees
    it; None for anything else."""
    if isinstance(value, PLAIN):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        found = nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError:
        ((name, count),) = Counter(value.columns).most_common(1)
        raise DataError(f"the frame has {count} columns named {name!r}; rename them") from None
    return found if isinstance(found, getattr(nw, kind)) else None


def table(frame: Any) -> nw.DataFrame[Any]:
    found = as_narwhals(frame, "DataFrame")
    if found is None:
        kind = type(frame).__name__
        raise DataError(f"from a frame means from a DataFrame of pandas or polars or a Table of pyarrow, got {kind}")
    return found


def column_of(frame: nw.DataFrame[Any], name: Any) -> nw.Series[Any]:
    """The column ``name``."""
    if not isinstance(name, Hashable):
        raise DataError(f"a column is named by one label, got {name!r}")
    if name not in frame.columns:
        index = getattr(frame.to_native(), "index", None)  # which frames of pandas have
        hint = near(str(name), list(map(str, frame.columns)), "the columns are")
        hint = "it is in the index: use frame.reset_index()" if name in getattr(index, "names", ()) else hint
        raise DataError(f"the frame has no column {name!r}; {hint}")
    return frame.get_column(name)  # pyright: ignore[reportArgumentType]  (in pandas a name may be anything)


def numbers_of(frame: nw.DataFrame[Any], name: Any, what: str) -> Array:
    """A numeric column as floats, NaN where it is missing."""
    import narwhals.stable.v2 as nw

    column = column_of(frame, name)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return np.array(column.cast(nw.Float64()).to_numpy())
    return floats(entries(column), f"the {what} {name!r}")


def levels_of(frame: nw.DataFrame[Any], name: Hashable) -> tuple[Hashable, ...]:
    """The values of a column of categories, which is in order: that of a categorical column, or sorted."""
    import narwhals.stable.v2 as nw

    column = column_of(frame, name)
    seen = {value for value in column.to_list() if not is_missing(value)}
    ordered = any(column.dtype == kind for kind in (nw.Categorical, nw.Enum))
    found: Any = column.cat.get_categories().to_list() if ordered else sorted(seen, key=lambda x: (str(type(x)), x))
    if len(seen) < 2:
        levels = ", ".join(map(repr, seen)) or "none"
        raise DataError(f"the category {name!r} has one level ({levels}), which tells nothing apart; leave it out")
    return tuple(level for level in found if level in seen)


def numbers_of_levels(frame: nw.DataFrame[Any], name: Hashable, levels: tuple[Hashable, ...]) -> list[Array]:
    """A column of 0 and 1 for each level but the first."""
    values = column_of(frame, name).to_list()
    for row, value in enumerate(values):
        if is_missing(value):
            raise DataError(f"the category {name!r} is missing in row {row}; {FILL}")
        if value not in levels:
            known = f"which the data did not have{did_you_mean(value, levels)}; its levels are {listing(levels)}"
            raise DataError(f"the category {name!r} is {shown(plain_label(value))} in row {row}, {known}")
    return [np.array([value == level for value in values], dtype=float) for level in levels[1:]]


def entries(column: nw.Series[Any]) -> Array:
    """The entries of a column, as they are; Python's objects where some of it is missing."""
    if column.is_null().any():
        return np.fromiter(column.to_list(), dtype=object, count=len(column))
    return np.array(column.to_numpy())


def listed(values: Any) -> list[Any]:
    """The entries of a column, an array or another iterable, as Python's objects."""
    if (frame := as_narwhals(values, "DataFrame")) is not None:
        name = next(iter(frame.columns), "name")
        raise DataError(f"one value per row is wanted, got a DataFrame; give one of its columns, as in frame[{name!r}]")
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind not in "mM":
        return values.tolist()
    column = as_narwhals(values, "Series")
    return list(values) if column is None else column.to_list()


def labels_in(column: nw.Series[Any]) -> list[Any] | Array:
    """The labels in a column: an array where they are integers and none is missing."""
    if column.dtype.is_integer() and not column.is_null().any():
        values = np.asarray(column.to_numpy())
        if is_integers(values):
            return values
    return column.to_list()


def refuse_misaligned(**given: Any) -> None:
    """Refuse columns and frames of pandas whose rows have other labels: they would be joined by position."""
    indexed: dict[str, Any] = {name: value.index for name, value in given.items() if hasattr(value, "iloc")}
    if not indexed:
        return
    (first, index), *others = indexed.items()
    for name, other in others:
        if len(index) == len(other) and not index.equals(other):
            k = next(k for k, (a, b) in enumerate(zip(index, other, strict=True)) if a != b)
            raise DataError(
                f"row {k} of {first} has the index {index[k]!r}, and of {name} {other[k]!r}: rows are taken in their "
                f"order; align them ({name}.loc[{first}.index]), or give .to_numpy() where the order is right"
            )


# ---- from arrays -----------------------------------------------------------------------------------------------------
def floats(array: Array, what: str) -> Array:
    """The array as floats, NaN where an object is missing; text and other objects are refused. A copy of it, or the
    array itself where nobody can write to it."""
    if array.dtype.kind in "biuf":
        if array.dtype == np.float64 and array.flags.c_contiguous and _constant(array):
            return array
        return array.astype(float, order="C")  # rows side by side: forms hold views of them
    flat = array.ravel().tolist()
    maybe = array.dtype.kind == "O"
    usable = (checks.is_number, checks.is_switch, is_missing)
    numeric = np.array([maybe and any(each(value) for each in usable) for value in flat], dtype=bool)
    if not numeric.all():
        k = int(np.flatnonzero(~numeric)[0])
        row = k // max(1, array.size // len(array))
        raise DataError(
            f"{what} is not numeric: row {row} holds {checks.shown(flat[k])}; "
            "encode it as numbers, or where it is a category name it in categories= of from_frame"
        )
    return np.array([np.nan if is_missing(value) else value for value in flat], dtype=float).reshape(array.shape)


def _constant(array: Array) -> bool:
    """True where nobody can write to the array, nor to what it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None


def matrix(values: Any, what: str) -> Array:
    """Features (M, d) as floats, an array of their own, or one that nobody can write to."""
    if (frame := as_narwhals(values, "DataFrame")) is not None:
        return as_matrix((numbers_of(frame, name, "feature") for name in frame.columns), len(frame), len(frame.columns))
    if sp.issparse(values):
        m, d = values.shape
        raise DataError(
            f"{what} is a sparse matrix of {m:,} x {d:,} with {values.nnz:,} entries, and features are kept dense: "
            f"use its .toarray(), which takes {8e-6 * m * d:,.3g} MB, or, for all samples together, make each "
            "coefficient a node: gr.SquaredLoss(X @ gr.w.at(names), y), with a name per column"
        )
    array = _array(values, what, copied=False)
    if array.ndim != 2:
        remedy = "; use X.reshape(-1, 1) for a single feature" if array.ndim == 1 else ""
        raise DataError(f"{what} must have the shape (rows, features), got {array.shape}{remedy}")
    return floats(array, what)


def vector(values: Any, what: str) -> Array:
    """One number per sample as floats, an array of their own, or one that nobody can write to."""
    array = _array(values, what, copied=False)
    if array.ndim != 1:
        raise DataError(f"{what} must hold one number per sample, got the shape {array.shape}")
    return floats(array, what)


def raw(values: Any, what: str = "y") -> Array:
    """Targets as they are, (M,) or (M, k); text as objects."""
    array = _array(values, what, copied=not (isinstance(values, np.ndarray) and _constant(values)))
    if array.ndim not in (1, 2):
        raise DataError(f"{what} must have the shape (rows,) or (rows, targets), got {array.shape}")
    if array.dtype.kind in "US":  # from the source where it is a list: numpy makes text of a missing value
        array = array.astype(object) if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def as_matrix(columns: Iterable[Array], M: int, d: int) -> Array:
    """Columns of M floats side by side, one held at a time."""
    out = np.empty((M, d))
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def features_of(frame: nw.DataFrame[Any], columns: Columns) -> Array | None:
    """The features of a frame as floats, (M, d), without the intercept; None where there are none."""
    levels, names = {str(name): known for name, known in columns.levels}, columns.own_names

    def each() -> Iterator[Array]:
        for name in columns.features:
            known = levels.get(str(name))
            yield from [numbers_of(frame, name, "feature")] if known is None else numbers_of_levels(frame, name, known)

    if not names:
        return None
    X = as_matrix(each(), len(frame), len(names))
    return X if columns.standardised is None else columns.standardised.applied(X, names)


def _array(values: Any, what: str, copied: bool = True) -> Array:
    """The values as an array, by default one of their own."""
    checks.unmasked(values, what, DataError)
    column = as_narwhals(values, "Series")
    try:
        return (np.array if copied else np.asarray)(values) if column is None else entries(column)
    except ValueError:
        raise DataError(f"{what} is ragged: its rows have different lengths") from None


def listing(names: Iterable[Any], most: int = 6) -> str:
    """The first names, for messages."""
    texts = [repr(str(name)) for name in names]
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")


# ---- samples put together --------------------------------------------------------------------------------------------
ROWS = 4096  # of X, looked at together


@dataclass(frozen=True)
class Where:
    """Says where a sample is: its node and its row."""

    labels: Labels
    node: Array

    @staticmethod
    def of(names: list[Any] | Array) -> Where:
        """The places of the labels of all samples, in their order."""
        return Where(*positions_of(names, "node label", DataError))

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
    features = (INTERCEPT,) * columns.intercept + columns.own_names
    return where.labels, where.node, X, y, weights, offset, features, targets, columns.intercept


def check_targets(y: Array | None, targets: tuple[str, ...], where: Where) -> None:
    """Refuse targets that are missing or infinite."""
    for name, column in zip(targets, () if y is None else y.reshape(len(y), -1).T, strict=True):
        where.refuse(_unusable(column), column, f"the target {name!r}", FILL)


def design(X: Array | None, columns: Columns, where: Where) -> Array | None:
    """X, checked to be finite, behind a column of ones where there is an intercept."""
    if X is not None:
        for j in np.flatnonzero(~_all_finite(X)):
            where.refuse(~np.isfinite(X[:, j]), X[:, j], f"the feature {columns.own_names[j]!r}", FILL)
    if not columns.intercept:
        return X
    ones = np.ones((len(where.node), 1))
    return ones if X is None else np.hstack([ones, X])


def _all_finite(X: Array) -> Array:
    """A mask of the columns that are finite, (d,); some rows at a time, which then stay in the cache."""
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
    column = as_narwhals(node, "Series")
    return listed(node) if column is None else labels_in(column)


def _unusable(column: Array) -> Array:
    """A mask of the targets that are missing or infinite."""
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
