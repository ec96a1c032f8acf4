"""Labels, edges and weights as users give them: read, checked, and named in messages."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import checks
from ..errors import GraphError, GraphregError
from ..memory import too_much
from .labels import IntegerLabels, Labels, as_labels, by_appearance, index_of, is_integers, plain_label

Array = np.ndarray[Any, np.dtype[Any]]

FILL = "fill it in or drop the row"
DECODE = "read its file with the encoding that it is in"


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA."""
    if label is None:
        return True
    if isinstance(label, (float, np.floating)):
        return bool(np.isnan(label))
    pandas = sys.modules.get("pandas")  # its NA and NaT are only about where it is imported
    if pandas is not None and (label is pandas.NA or label is pandas.NaT):
        return True
    return isinstance(label, np.datetime64) and bool(np.isnat(label))


def is_unwritable(label: Any) -> bool:
    """Whether a label is text that no file can hold: a lone half of a pair of surrogates, left by a wrong decoding."""
    return isinstance(label, str) and not label.isprintable() and any("\ud800" <= c <= "\udfff" for c in label)


def numbered(labels: Sequence[Any] | Array, what: str, error: type[GraphregError]) -> tuple[Labels, Array]:
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
    """Whether ``index`` has the label; an unhashable one is refused."""
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
    keys = np.minimum(tail, head) * len(labels) + np.maximum(tail, head)
    ordered = np.sort(keys)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        i, j = divmod(int(twice[0]), len(labels))
        raise GraphError(f"{edge_name(labels[i], labels[j])} appears twice; sum the weights into one edge")


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
        raise refuse(int(bad[0]), "a weight must be positive and finite; leave the edge out to switch it off")
    return values
