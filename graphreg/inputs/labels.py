"""Labels of nodes, and edges and weights by them, as users give them: read, checked, and named in messages.

The labels 0 to n - 1 are kept as their number n alone; others as a tuple, with a dict for their places.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar, SupportsIndex, TypeGuard, overload

import numpy as np

from .. import checks
from ..base.gate import too_much
from ..errors import GraphError, GraphregError

Array = np.ndarray[Any, np.dtype[Any]]
SHOWN = 20  # labels that the text of a longer sequence leaves out
DENSE = 4  # times as many integers as there are entries: a table of them all is cheaper than sorting


def plain_label(label: Any) -> Any:
    """A numpy scalar as the Python scalar it stands for (``np.int64(3)`` -> ``3``); anything else as it is."""
    if isinstance(label, np.generic) and label.dtype.kind not in "mM":  # .item() of a datetime64 may be a bare integer
        return label.item()
    return label


class IntegerLabels(Sequence[Hashable]):
    """The labels 0, 1, ..., n - 1, as the tuple of them: it equals that tuple and has its hash."""

    __slots__ = ("_each",)

    def __init__(self, n: int) -> None:
        self._each = range(n)

    def __len__(self) -> int:
        return len(self._each)

    def __iter__(self) -> Iterator[int]:
        return iter(self._each)

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._each)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Labels: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | Labels:
        return as_labels(self._each[index]) if isinstance(index, slice) else self._each[index]

    def __contains__(self, label: object) -> bool:
        try:
            return _place(label, len(self)) >= 0
        except TypeError:  # what has no hash is no label
            return False

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        if value in self and (place := _place(value, len(self))) in range(len(self))[start:stop]:
            return place
        raise ValueError(f"{value!r} is not among the labels")

    def __add__(self, other: Any) -> Labels:
        return NotImplemented if not isinstance(other, (tuple, IntegerLabels)) else (*self, *other)

    def __radd__(self, other: Any) -> Labels:
        return NotImplemented if not isinstance(other, tuple) else (*other, *self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, IntegerLabels):
            return len(self) == len(other)
        if isinstance(other, tuple):
            return len(self) == len(other) and tuple(self) == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        n = len(self)
        return repr(tuple(self)) if n <= SHOWN else f"(0, 1, 2, ..., {n - 1})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("labels are no array, so that none can be had without a copy")
        return np.arange(len(self), dtype=dtype)


Labels = tuple[Hashable, ...] | IntegerLabels


class IntegerIndex(Mapping[Hashable, int]):
    """The place of each of the labels 0, 1, ..., n - 1, which is the label itself; as the dict of them."""

    __slots__ = ("_n",)

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._n))

    def __getitem__(self, label: Hashable) -> int:
        place = _place(label, self._n)
        if place < 0:
            raise KeyError(label)
        return place

    def __repr__(self) -> str:
        return f"<IntegerIndex of the labels {IntegerLabels(self._n)!r}>"


def _place(label: Any, n: int) -> int:
    """The place of a label among 0 ... n - 1, -1 where it is none of them; found as a dict does, by hash and equality
    (2.0 and True are among them). What has no hash raises TypeError."""
    place = label if type(label) is int else hash(label)
    return place if 0 <= place < n and place == label else -1


# ---- labels from what users give -------------------------------------------------------------------------------------
def as_labels(given: Iterable[Any]) -> Labels:
    """The labels in their order, numpy's scalars as Python's; 0 to n - 1 without an object for each."""
    if isinstance(given, IntegerLabels):
        return given
    if isinstance(given, IntegerIndex) or (isinstance(given, range) and given and given == range(len(given))):
        return IntegerLabels(len(given))
    if is_integers(given):
        return _of_integers(given)
    labels = tuple(given)
    kinds = set(map(type, labels))
    if any(issubclass(kind, np.generic) for kind in kinds):
        labels = tuple(map(plain_label, labels))
        kinds = set(map(type, labels))
    # 0 is False and 0.0, which are other labels to a reader
    return IntegerLabels(len(labels)) if kinds == {int} and labels == tuple(range(len(labels))) else labels


def is_integers(given: Any, ndim: int = 1) -> TypeGuard[Array]:
    """True where it is an array of integers that 64 bits with a sign hold."""
    return type(given) is np.ndarray and given.ndim == ndim and given.dtype.kind in "iu" and given.dtype != np.uint64


def _of_integers(values: Array) -> Labels:
    n = len(values)
    plain = n > 0 and values[0] == 0 and values[-1] == n - 1 and bool((values == np.arange(n)).all())
    return IntegerLabels(n) if plain else tuple(values.tolist())


def by_appearance(values: Array) -> tuple[Labels, Array]:
    """The distinct integers of an array, none of them empty, by first appearance, and the place of each among them."""
    M = len(values)
    changes = values[1:] != values[:-1]
    if (values[1:] >= values[:-1]).all():  # in order, as samples often are
        first = np.concatenate([[0], np.flatnonzero(changes) + 1])
        node = np.zeros(M, dtype=np.intp)
        np.cumsum(changes, out=node[1:])
        return _of_integers(values[first]), node
    low, high = int(values.min()), int(values.max())
    if high - low < DENSE * M:
        shifted = values.astype(np.intp) - low
        at = np.full(high - low + 1, M)
        at[shifted[::-1]] = np.arange(M - 1, -1, -1)  # the last that is written stays: the first row of each
        first = np.sort(at[at < M])
        rank = np.empty(len(at), dtype=np.intp)
        rank[shifted[first]] = np.arange(len(first))
        return _of_integers(values[first]), rank[shifted]
    _, start, group = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(start)
    return _of_integers(values[start[order]]), np.argsort(order)[group]


# ---- places ----------------------------------------------------------------------------------------------------------
def index_of(labels: Sequence[Hashable]) -> Mapping[Hashable, int]:
    """The place of each label, of labels that are distinct."""
    if isinstance(labels, IntegerLabels):
        return IntegerIndex(len(labels))
    return {label: k for k, label in enumerate(labels)}


def all_of(each: Iterable[Sequence[Hashable]]) -> Labels:
    """The distinct labels of several sequences by first appearance."""
    each = list(each)
    if all(isinstance(labels, IntegerLabels) for labels in each):
        return IntegerLabels(max(map(len, each), default=0)) if each else ()
    return as_labels(dict.fromkeys(label for labels in each for label in labels))


def places_of(labels: Sequence[Hashable] | Array, index: Mapping[Hashable, int]) -> Array:
    """The place of each label, (n,) int; -1 where the index has none. Labels may be an array of integers."""
    if isinstance(index, IntegerIndex):
        values = _integers(labels)
        if values is not None:
            return np.where((values >= 0) & (values < len(index)), values, -1)
    elif is_integers(labels):  # one look for each that is distinct
        distinct, node = by_appearance(labels) if len(labels) else ((), np.zeros(0, dtype=np.intp))
        return places_of(distinct, index)[node]
    return np.fromiter(map(index.get, labels, repeat(-1)), dtype=np.intp, count=len(labels))


def _integers(labels: Sequence[Hashable] | Array) -> Array | None:
    """The labels as an array where they are all integers that it holds."""
    if isinstance(labels, np.ndarray):
        return labels if is_integers(labels) else None
    if isinstance(labels, IntegerLabels):
        return np.arange(len(labels))
    if set(map(type, labels)) != {int}:
        return None
    try:
        return np.fromiter(labels, dtype=np.int64, count=len(labels))
    except OverflowError:
        return None


def in_place(labels: Sequence[Hashable], index: Mapping[Hashable, int]) -> bool:
    """True where label k is known to have the place k."""
    return isinstance(labels, IntegerLabels) and isinstance(index, IntegerIndex) and len(labels) <= len(index)


# ---- labels, edges and weights as users give them: read, checked, and named in messages ------------------------------

SUM_THEM = 'sum the weights into one edge, as repeated="sum" does in Graph.of, Graph.from_edges and fit'
FILL = "fill it in or drop the row"
DECODE = "read its file with the encoding that it is in"


def is_missing(label: Any) -> bool:
    """True where a label is None, NaN, NaT or pandas' NA."""
    if label is None:
        return True
    if isinstance(label, (float, np.floating)):
        return bool(np.isnan(label))
    pandas = sys.modules.get("pandas")  # its NA and NaT are only about where it is imported
    if pandas is not None and (label is pandas.NA or label is pandas.NaT):
        return True
    return isinstance(label, np.datetime64) and bool(np.isnat(label))


def is_unwritable(label: Any) -> bool:
    """True where a label is text that no file can hold: a lone half of a pair of surrogates, left by a wrong
    decoding."""
    return isinstance(label, str) and not label.isprintable() and any("\ud800" <= c <= "\udfff" for c in label)


def positions_of(labels: Sequence[Any] | Array, what: str, error: type[GraphregError]) -> tuple[Labels, Array]:
    """The distinct labels of rows by first appearance, and the position of each row's among them."""
    if len(labels) and is_integers(labels):
        return by_appearance(labels)
    try:
        index: dict[Any, int] = dict.fromkeys(labels, 0)
    except TypeError:
        row, label = next((row, label) for row, label in enumerate(labels) if not _has_hash(label))
        remedy = "use a number, a string or a tuple"
        raise error(f"the {what} {label!r} in row {row} is not hashable; {remedy}") from None
    for missing in filter(is_missing, index):
        row = next(row for row, label in enumerate(labels) if label is missing)
        raise error(f"the {what} in row {row} is missing ({missing!r}); {FILL}")
    for label in filter(is_unwritable, index):
        raise error(f"the {what} {label!r} is no text that can be written; {DECODE}")
    index.update(zip(index, range(len(index)), strict=True))
    return as_labels(index), np.fromiter(map(index.__getitem__, labels), dtype=np.intp, count=len(labels))


def _has_hash(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


class Frozen:
    """A frozen record with read-only arrays: what was checked, and solved, stays what it is, and so do its copies."""

    ARRAYS: ClassVar[tuple[str, ...]]

    def freeze(self) -> None:
        for name in self.ARRAYS:
            array = getattr(self, name)
            if array is not None:
                array = array.view()  # the user's own stays as it is
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and pickles come with arrays of their own, which can be written to."""
        vars(self).update(state)
        for name in self.ARRAYS:
            array = getattr(self, name)
            if array is not None:
                array.flags.writeable = False


def edge_name(a: Any, b: Any) -> str:
    return f"the edge {plain_label(a)!r} - {plain_label(b)!r}"


def label_index(labels: Iterable[Any], distinct: bool = True) -> Mapping[Hashable, int]:
    """The position of each label by first appearance; repeated labels are refused where they must be distinct."""
    if isinstance(labels, IntegerLabels):
        return index_of(labels)
    labels = list(labels)
    usual = _usual_index(labels)
    if usual and (len(usual) == len(labels) or not distinct):
        return usual
    index: dict[Hashable, int] = {}
    for label in labels:
        if not is_in(label, index):
            if is_missing(label):
                raise GraphError(
                    f"the label of node {len(index)} is missing ({label!r}); name the node or leave it out"
                )
            if is_unwritable(label):
                raise GraphError(f"the node label {label!r} is no text that can be written; {DECODE}")
            index[label] = len(index)
        elif distinct:
            raise GraphError(f"the node label {label!r} appears twice; give each node a label of its own")
    if not index:
        raise GraphError("the graph is empty: it has no nodes; give it at least one")
    return index


def _usual_index(labels: list[Any]) -> dict[Hashable, int] | None:
    """The position of each label where all are integers, texts and tuples of which none is to be refused by itself."""
    kinds = set(map(type, labels))
    try:
        distinct = dict.fromkeys(labels, 0) if kinds <= {int, str, tuple} else {}
    except TypeError:  # of a tuple that holds something without a hash
        return None
    if str in kinds and any(map(is_unwritable, distinct)):
        return None
    distinct.update(zip(distinct, range(len(distinct)), strict=True))
    return distinct


def is_in(label: Any, index: Mapping[Hashable, int]) -> bool:
    """True where ``index`` has the label; an unhashable one is refused."""
    try:
        return label in index
    except TypeError:
        raise GraphError(f"the node label {label!r} is not hashable; use a number, a string or a tuple") from None


def checked_size(value: Any, what: str) -> int:
    return int(checks.count(value, what, GraphError))


def entries_of(values: Any, what: str) -> Any:
    """The values: an array with rows as it is, and else a list."""
    if isinstance(values, np.ndarray) and values.ndim:
        return values
    if isinstance(values, Mapping):
        raise GraphError(f"{what} must be an array with an entry per edge, got a mapping; give list(... .values())")
    return checks.sequence(values, what, "an array with an entry per edge", GraphError)


def check_room(numbers: int, what: str) -> None:
    """Refuse a graph of more numbers than memory can hold."""
    if said := too_much(numbers, what):
        raise GraphError(f"{said}; make it smaller")


def checked_positions(values: Any, what: str, n: int) -> Array:
    values = entries_of(values, what)
    try:
        positions = np.array(values, dtype=None if len(values) else np.intp)
    except ValueError:  # rows of several lengths
        positions = np.array(None)
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        raise GraphError(f"{what} must be a one-dimensional array of node positions (whole numbers)")
    outside = np.flatnonzero((positions < 0) | (positions >= n))
    if outside.size:
        e = outside[0]
        raise GraphError(f"{what}[{e}] is {positions[e]}, and the positions of the {n} nodes are 0 to {n - 1}")
    return positions.astype(np.intp)


def check_simple(labels: Labels, tail: Array, head: Array) -> None:
    loops = np.flatnonzero(tail == head)
    if loops.size:
        raise GraphError(
            f"the node {labels[int(tail[loops[0]])]!r} has an edge to itself (a self loop); remove that edge"
        )
    ordered = np.sort(np.minimum(tail, head) * len(labels) + np.maximum(tail, head))
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        i, j = divmod(int(twice[0]), len(labels))
        raise GraphError(f"{edge_name(labels[i], labels[j])} appears twice; {SUM_THEM}")


def checked_weights(weight: Any, labels: Labels, tail: Array, head: Array) -> Array:
    def refuse(e: int, why: str) -> GraphError:
        return GraphError(
            f"{edge_name(labels[int(tail[e])], labels[int(head[e])])} has the weight {plain_label(weight[e])!r}; {why}"
        )

    weight = entries_of(weight, "weight")
    if len(weight) != len(tail):
        raise GraphError(f"there are {len(tail)} edges and {len(weight)} weights; give one weight per edge")
    if not isinstance(weight, np.ndarray) or weight.dtype.kind not in "iuf":
        guilty = next((e for e, w in enumerate(weight) if not checks.is_number(w)), None)
        if guilty is not None:
            raise refuse(guilty, "a weight must be a number")
    values = np.array(weight, dtype=float)
    if values.ndim != 1:
        raise GraphError(f"the weights have the shape {values.shape}; give one number per edge")
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        both = ", or call a penalty on gr.w.at(i) + gr.w.at(j)" if values[bad[0]] < 0.0 else ""
        raise refuse(int(bad[0]), f"a weight must be positive and finite; leave the edge out to switch it off{both}")
    return values
