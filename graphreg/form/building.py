"""From a model to its canonical form; refuses what cannot be one, naming the guilty part: numbers, too,
whose squares or exponentials leave the range of floats."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..base.messages import look_alike
from ..errors import DataError, TermError
from ..inputs import all_of, index_of, places_of
from ..terms import Array, EdgeBlock, Model, SampleBlock, Space, at_a_time, feature_of
from ..terms.losses import AbstractLoss
from .form import Form


def build(model: Model) -> Form:
    """The canonical form of a model; refuses what cannot be one, naming the guilty part: numbers, too,
    whose squares or exponentials leave the range of floats."""
    losses = [term for _, term in model.terms if isinstance(term, AbstractLoss)]
    if not losses:
        raise DataError("the model has no loss, so there are no data to fit; add one, for instance SquaredLoss(data)")
    return lower(model, _space(model, losses))


def lower(model: Model, space: Space) -> Form:
    """The canonical form of a model over a given space of parameters; it may have no loss."""
    latent: list[Hashable] = []
    samples: list[SampleBlock] = []
    edges: list[EdgeBlock] = []
    lowered = [term.lower(space, strength) for strength, term in model.terms]
    n = space.n_observed + sum(len(part.latent) for part in lowered)
    for part in lowered:
        for loss in part.losses:
            check_samples(loss)
        for edge in part.edges:
            check_center(edge, space.names)
        samples += [loss.over(n) for loss in part.losses]
        edges += [_placed(edge, space.n_observed, len(latent), n) for edge in part.edges if edge.count]
        if part.latent:
            latent += distinct(part.latent, {*space.index, *latent})
    _disjoint(samples, space)
    return Form(space, tuple(latent), tuple(samples), tuple(edges))


def distinct(labels: Sequence[Hashable], taken: set[Hashable]) -> list[Hashable]:
    """The labels of latent nodes; one that is taken (by a node, or by another hierarchy) is numbered: "root (2)"."""
    out: list[Hashable] = []
    for label in labels:
        name, number = label, 1
        while name in taken:
            number += 1
            name = f"{label} ({number})"
        out.append(name)
        taken.add(name)
    return out


def _space(model: Model, losses: Sequence[AbstractLoss]) -> Space:
    coordinates = losses[0].coordinates()
    for loss in losses[1:]:
        if loss.coordinates() != coordinates:
            raise DataError(
                f"the losses must have the same features: {losses[0].called()} has {list(coordinates)}, "
                f"{loss.called()} has {list(loss.coordinates())}"
            )
    first, rest = (
        [nodes for _, term in model.terms if term.leads is leads and len(nodes := term.labels())]
        for leads in (True, False)
    )
    closed = all(term.closed for _, term in model.terms)
    named = first if first and closed else [*first, *(loss.data.labels for loss in losses), *rest]
    index = index_of(all_of(named))
    for loss in losses:
        unknown = places_of(loss.data.labels, index) < 0
        if unknown.any():
            label = loss.data.labels[int(np.argmax(unknown))]
            raise DataError(
                f"the data have samples at {label!r}, which is not a node of the model's graphs or "
                f"hierarchies{look_alike(label, index)}; add the node, or drop its samples"
            )
    intercept = any(loss.data.intercept for loss in losses)
    penalised = [j for j, name in enumerate(coordinates) if not (intercept and feature_of(name) == "intercept")]
    return Space(index, coordinates, np.array(penalised, dtype=np.intp))


def _placed(edge: EdgeBlock, n_observed: int, shift: int, n: int) -> EdgeBlock:
    """The edges with their latent nodes behind those of the terms before."""
    if not shift:
        return edge.over(n)
    return edge.moved(np.where((node := np.arange(n)) < n_observed, node, node + shift), n)


def _disjoint(samples: Sequence[SampleBlock], space: Space) -> None:
    owner = np.full(space.n_observed, -1)
    for k, block in enumerate(samples):
        present = np.zeros(space.n_observed, dtype=bool)
        present[block.node] = True
        nodes = np.flatnonzero(present)
        taken = nodes[owner[nodes] >= 0]
        if len(taken):
            label = list(space.index)[int(taken[0])]
            first = samples[int(owner[taken[0]])].loss.called()
            raise TermError(
                f"the node {label!r} has two losses, {first} and {block.loss.called()}; "
                "losses are added on disjoint nodes"
            )
        owner[nodes] = k


# ---- numbers out of range --------------------------------------------------------------------------------------------
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
    where = (
        f"in the row {e}" if edges.map.edges is None else f"at the coordinate {names[edges.columns(len(names))[j]]!r}"
    )
    raise TermError(
        f"the center of {edges.name} is {edges.center[e, j]:.3g} {where}, and its square overflows; rescale the column"
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
