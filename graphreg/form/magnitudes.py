"""Numbers whose squares, or exponentials, leave the range of floats: refused before anything is computed with them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..errors import DataError, TermError
from ..terms import Array, EdgeBlock, SampleBlock, at_a_time

LARGEST, SMALLEST = 1e150, 1e-150  # their squares are about the largest and the smallest float
ROOM = 1e300  # sums of scaled squares stay below it
ROWS = 4096  # of X, looked at together


def check_samples(loss: SampleBlock) -> None:
    """Refuses features, targets, offsets and scales that are too large or too small; the column is named.

    Raises
    ------
    DataError
    """
    data = loss.loss.data
    most = np.zeros(0) if loss.X is None else _largest(loss.X)
    if loss.X is not None and not ((most <= LARGEST) & ((most == 0.0) | (most >= SMALLEST))).all():
        for name, column in zip(data.features, loss.X.T, strict=True):
            _check(loss, column, f"the feature {name!r}")
    targets = loss.y.reshape(len(loss.y), -1)
    names = data.targets if len(data.targets) == targets.shape[1] else data.targets[:1] * targets.shape[1]
    for name, column in zip(names, targets.T, strict=True):
        _check(loss, column, f"the target {name!r}")
    named = data.columns.offset if data.columns is not None else None
    offset = "the offset" if named is None else f"the offset {named!r}"
    _check(loss, loss.offset.reshape(len(loss.y), -1).max(axis=1), offset, vanishing=False)
    _check(loss, loss.offset.reshape(len(loss.y), -1).min(axis=1), offset, vanishing=False)
    top = loss.loss.largest_offset()
    beyond = loss.offset.reshape(len(loss.y), -1).max(axis=1)
    if (beyond > top).any():
        kind = loss.loss.called()
        what = f"{kind} overflows beyond {top:g}; subtract a constant from it, or take the logarithm of an exposure"
        _refuse(loss, beyond, beyond > top, offset, what)
    _check(loss, loss.base_scale, "the scale (scale= times the sample weight)")
    every = (float(np.abs(each).max(initial=0.0)) for each in (most, loss.y))
    largest, scale = max(every), float(loss.base_scale.max(initial=0.0))
    if not len(loss.y) * scale * largest * largest < ROOM:  # a sum of as many of the largest is in range
        _check_products(loss)


def check_center(edges: EdgeBlock, names: list[str]) -> None:
    """Refuses centers whose squares overflow; the coordinate is named.

    Raises
    ------
    TermError
    """
    if edges.center is None or not (np.abs(edges.center) > LARGEST).any():
        return
    e, j = np.argwhere(np.abs(edges.center) > LARGEST)[0]
    column = names[j if edges.features is None else edges.features[j]]
    raise TermError(
        f"the center of {edges.name} is {edges.center[e, j]:.3g} at the coordinate {column!r}, "
        "and its square overflows; rescale the column"
    )


def _largest(X: Array) -> Array:
    """max_r |X_rj|, (d,); some rows at a time, which then stay in the cache."""
    high, low = np.zeros((2, X.shape[1]))
    for some in at_a_time(ROWS, len(X)):
        np.maximum(high, X[some].max(axis=0), out=high)
        np.minimum(low, X[some].min(axis=0), out=low)
    return np.maximum(high, -low)


def _check(loss: SampleBlock, column: Array, what: str, vanishing: bool = True) -> None:
    size = np.abs(column.astype(float))
    if (size > LARGEST).any():
        _refuse(loss, column, size > LARGEST, what, "its square overflows; rescale the column")
    most = float(size.max(initial=0.0))
    if vanishing and 0.0 < most < SMALLEST:
        _refuse(
            loss, column, size == most, what, "no entry is larger, and its square is 0 in floats; rescale the column"
        )


def _check_products(loss: SampleBlock) -> None:
    """s_r times squares, summed, must stay in range too."""
    columns: dict[str, Array] = {} if loss.X is None else dict(zip(loss.loss.data.features, loss.X.T, strict=True))
    named = {f"the feature {name!r}": column for name, column in columns.items()}
    target = loss.loss.data.targets[0] if loss.loss.data.targets else ""
    named[f"the target {target!r}"] = np.abs(loss.y.reshape(len(loss.y), -1)).max(axis=1)
    for what, column in named.items():
        with np.errstate(over="ignore"):
            size = loss.base_scale * np.abs(column) ** 2
        if not float(np.minimum(size, ROOM).sum()) < ROOM:
            worst = size == size.max()
            _refuse(
                loss, column, worst, what, "its square times its scale overflows; rescale the column or the weights"
            )


def _refuse(loss: SampleBlock, values: Any, bad: Array, what: str, why: str) -> None:
    r = int(np.flatnonzero(bad)[0])
    data = loss.loss.data
    label: Hashable = data.labels[data.node[r]]
    raise DataError(f"{what} is {float(values[r]):.3g} at the node {label!r}, row {r}: {why}")
