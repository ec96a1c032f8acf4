"""Other data in the place of those that there are: targets, frames, or the samples of some nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.messages import few, shown
from ..errors import DataError
from .columns import Where, as_narwhals, check_targets, listing, raw, stacked, width
from .data import NodeData, from_columns
from .labels import as_labels

WANTED = "NodeData, a frame, targets for all rows or a mapping of labels to (X, y)"


def renewed(data: NodeData, given: Any) -> NodeData:
    """The data that take the place of ``data``: NodeData as they are, a frame read by the same columns, targets for the
    same rows, or of a mapping of labels to (X, y) the samples of these nodes, with those of the others as they were.

    Raises
    ------
    DataError
        Where the features, the number of targets or of rows is another, or as for the constructors of `NodeData`.
    """
    if isinstance(given, NodeData):
        new = given
    elif isinstance(given, Mapping):
        new = _at_some_nodes(data, given)
    elif as_narwhals(given, "DataFrame") is not None:
        if data.columns is None:
            raise DataError(
                "the data before were not read from a frame, so that no frame can be read alike; give NodeData"
            )
        new = from_columns(given, data.columns)
    else:
        return _with_targets(data, given)
    for what, here, there in (("features", new.features, data.features), ("targets", new.targets, data.targets)):
        if here != there and (what == "features" or len(here) != len(there)):
            said = [f"[{listing(names)}]" for names in (here, there)]
            raise DataError(
                f"the new data have the {what} {said[0]}, and the data before have {said[1]}; give the same"
            )
    return new


def _with_targets(data: NodeData, given: Any) -> NodeData:
    """The same rows with other targets."""
    if isinstance(given, (str, bytes, Set)) or not isinstance(given, Iterable):
        raise DataError(f"new data are {WANTED}, got {shown(given)}")
    y = raw(given, "the new y")
    if len(y) != data.n_samples or width(y) != len(data.targets):
        there = (data.n_samples,) if len(data.targets) == 1 else (data.n_samples, len(data.targets))
        raise DataError(
            f"the new targets have the shape {y.shape}, and those before have {there}; give NodeData or a frame where "
            "there are other rows"
        )
    check_targets(y, data.targets, Where(data.labels, data.node))
    return replace(data, y=y)


def _at_some_nodes(data: NodeData, samples: Mapping[Any, Any]) -> NodeData:
    """The data with the samples of some nodes in the place of those that they had, behind those of the others."""
    if data.offset.any() or (data.weights != 1.0).any():
        raise DataError(
            "the data before have weights or offsets, which pairs (X, y) have not; give NodeData or a frame"
        )
    X, y, names = stacked(samples)
    own = data.features[data.intercept :]
    if width(X) != len(own):
        raise DataError(f"the new X have {width(X)} features, and the data before have {len(own)}: {listing(own)}")
    if X is not None and data.standardised is not None:
        X = data.standardised.applied(X, own)
    new = NodeData.from_arrays(X, y, names, features=None if X is None else own, intercept=data.intercept)
    kept = np.flatnonzero(~np.isin(data.node, [k for k, label in enumerate(data.labels) if label in samples]))
    return _together(data.take(kept), new) if kept.size else new


def _together(one: NodeData, two: NodeData) -> NodeData:
    """The samples of both, on different nodes."""
    if width(one.y) != width(two.y):
        raise DataError(f"the new y have {width(two.y)} targets, and the data before have {width(one.y)}")
    both: dict[str, Any] = {"node": np.concatenate([one.node, two.node + len(one.labels)])}
    for name in ("X", "y", "weights", "offset"):
        a, b = getattr(one, name), getattr(two, name)
        both[name] = None if a is None or b is None else np.concatenate([a, b])
    return replace(one, labels=as_labels((*one.labels, *two.labels)), **both)


# ---- what is new -----------------------------------------------------------------------------------------------------
def change(old: NodeData, new: NodeData) -> str:
    """The changes from one to the other, in words."""
    rows = "node", "X", "weights", "offset"
    if old.labels != new.labels or not all(np.array_equal(getattr(old, x), getattr(new, x)) for x in rows):
        now, before = set(new.labels), set(old.labels)
        said = f"other rows: {_counted(new)}, where there were {_counted(old)}"
        more = [
            f"; {what} {few(map(repr, labels), 3)}"
            for what, labels in (
                ("data now at", [label for label in new.labels if label not in before]),
                ("none any more at", [label for label in old.labels if label not in now]),
            )
            if labels
        ]
        return said + "".join(more)
    if old.y is None or new.y is None:
        return "nothing changed"
    moved = np.array(old.y != new.y).reshape(len(new.y), -1).any(axis=1)
    if not moved.any():
        return "nothing changed"
    nodes = len(np.unique(new.node[moved]))
    return f"{moved.sum():,} of {new.n_samples:,} targets changed, at {nodes:,} of {len(new.labels):,} nodes"


def _counted(data: NodeData) -> str:
    return f"{data.n_samples:,} samples at {len(data.labels):,} nodes"
