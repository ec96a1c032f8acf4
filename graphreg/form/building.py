"""From a model to its canonical form; refuses what cannot be one, naming the guilty part: numbers, too,
whose squares or exponentials leave the range of floats."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.messages import did_you_mean, distinct, other_types, retyped, users_line
from ..errors import DataError, TermError
from ..inputs import Standardised, all_of, index_of, names_of, places_of
from ..terms import (
    Array,
    Coordinate,
    EdgeBlock,
    Matrix,
    Model,
    RowLoss,
    RowPenalty,
    SampleBlock,
    Space,
    at_a_time,
    feature_of,
    notation_of,
)
from ..terms.losses import AbstractLoss
from .form import Form


def build(model: Model, features: Sequence[Any] | None = None) -> Form:
    """The canonical form of a model; refuses what cannot be one, naming the guilty part: numbers, too,
    whose squares or exponentials leave the range of floats. ``features`` are the coordinates where no data name
    them."""
    losses = [term for _, term in model.terms if isinstance(term, AbstractLoss)]
    form = lower(model, _space(model, losses, _coordinates(model, losses, features)))
    for function in (*(block.loss for block in form.samples), *(edge.penalty for edge in form.edges)):
        notation_of(function)  # what cannot be printed is refused now, and not when an answer is
    return form


def lower(model: Model, space: Space) -> Form:
    """The canonical form of a model over a given space of parameters; it may have no loss."""
    latent: list[Hashable] = []
    samples: list[SampleBlock] = []
    edges: list[EdgeBlock] = []
    lowered = [term.lower(space, strength) for strength, term in model.terms]
    n = space.n_observed + sum(len(part.latent) for part in lowered)
    taken = np.zeros(n, dtype=bool)  # the nodes that have a loss
    for part in lowered:
        for loss in part.losses:
            check_samples(loss)
        for edge in part.edges:
            check_center(edge, space.names)
        samples += [_apart(loss.over(n), taken, space) for loss in part.losses]
        edges += [_placed(edge, space.n_observed, len(latent), n) for edge in part.edges if edge.count]
        if part.latent:
            latent += all_distinct(part.latent, {*space.index, *latent})
    for (_, term), part in zip(model.terms, lowered, strict=True):
        if isinstance(term, RowPenalty) and not any(edge.count for edge in part.edges):
            space = replace(space, doubt=space.doubt or f"{term!r} has no rows, and says nothing")
    return Form(space, tuple(latent), tuple(samples), tuple(edges))


def all_distinct(labels: Sequence[Hashable], taken: set[Hashable]) -> list[Hashable]:
    """The labels of latent nodes; one that is taken (by a node, or by another hierarchy) is numbered: "root (2)"."""
    out: list[Hashable] = []
    for label in labels:
        out.append(distinct(label, taken))
        taken.add(out[-1])
    return out


def _coordinates(
    model: Model, losses: Sequence[AbstractLoss], features: Sequence[Any] | None
) -> tuple[Coordinate, ...]:
    """The columns of w: those of the data, else those given, else as many as a loss of rows has predictors."""
    if losses:
        coordinates = losses[0].coordinates()
        for loss in losses[1:]:
            if loss.coordinates() != coordinates:
                raise DataError(
                    f"the losses must have the same features: {losses[0].called()} has {list(coordinates)}, "
                    f"{loss.called()} has {list(loss.coordinates())}; name them alike, or write a loss of rows, which "
                    f"takes those of the other: {loss.called()}(gr.w.at(nodes), y)"
                )
        if features is not None:
            raise DataError(f"the data name the features, {list(coordinates)}: leave features= out")
        return coordinates
    if features is not None:
        names = tuple(map(str, names_of(features)))
        if not names or len(set(names)) < len(names):
            raise DataError(f"features must be distinct names, at least one, got {list(names)}")
        return names
    for _, term in model.terms:
        if isinstance(term, RowLoss):
            return term.coordinates()
    if any(isinstance(term, RowPenalty) for _, term in model.terms):
        return ("y",)
    raise DataError("the model has no loss, so there are no data to fit; add one, for instance SquaredLoss(data)")


def _space(model: Model, losses: Sequence[AbstractLoss], coordinates: tuple[Coordinate, ...]) -> Space:
    first, rest = (
        [nodes for _, term in model.terms if term.leads is leads and len(nodes := term.labels())]
        for leads in (True, False)
    )
    closed = all(term.closed for _, term in model.terms)
    named = first if first and closed else [*first, *(loss.data.labels for loss in losses), *rest]
    index = index_of(all_of(named))
    if not len(index):
        raise DataError("no term of the model names its nodes: write w.at(nodes) where it says w")
    for loss in losses:
        unknown = places_of(loss.data.labels, index) < 0
        if unknown.any():
            label = loss.data.labels[int(np.argmax(unknown))]
            other = other_types([label], index)
            remedy = "add it to all nodes (Graph.from_edges(edges, nodes=labels), or clusters), or drop its samples"
            raise DataError(
                f"the data have samples at {label!r}, which is not a node of the model's graphs or hierarchies"
                f"{did_you_mean(label, index)}; {retyped(label, other[label]) if other else remedy}"
            )
    intercept = any(loss.data.intercept for loss in losses)
    penalised = [j for j, name in enumerate(coordinates) if not (intercept and feature_of(name) == "intercept")]
    seen = [term.labels() for _, term in model.terms if isinstance(term, RowLoss)] if rest else []
    known = dict.fromkeys(all_of([*first, *(x.data.labels for x in losses), *seen])) if rest else {}
    doubt = _doubt(
        [label for nodes in rest for label in nodes], known, "named by rows alone, without data, graph or path"
    )
    if not doubt and not closed:
        placed, seen = ({*all_of(each)} for each in (first, [x.data.labels for x in losses]))
        left = dict.fromkeys(x for x in all_of([x.data.labels for x in losses]) if x not in placed)
        doubt = _doubt(
            [x for x in placed if x not in seen] if left else (), left, "of a graph or path, and has no data"
        )
    return Space(index, coordinates, np.array(penalised, dtype=np.intp), doubt, _units(losses))


def _units(losses: Sequence[AbstractLoss]) -> Standardised | None:
    """What the features of all losses are centred by and divided by."""
    for loss in losses[1:]:
        if loss.data.standardised != losses[0].data.standardised:
            raise DataError(
                f"the features of {losses[0].called()} and {loss.called()} are standardised by other numbers, so that "
                "one coefficient has two units; read the second data with standardise=first.standardised"
            )
    return losses[0].data.standardised if losses else None


def _doubt(named: Sequence[Hashable], known: Mapping[Hashable, None], what: str) -> str:
    """A warning of the first label of some that is written nearly as one of the others.

    Raises
    ------
    DataError
        Where they differ in type, spaces, or small and capital letters alone: nobody means two nodes by that.
    """
    new = [label for label in dict.fromkeys(named) if label not in known]
    bare = {label: " ".join(str(label).casefold().split()) for label in (*known, *new)} if new else {}
    alike = {bare[label]: label for label in known} if new else {}
    for label in new:
        if (other := alike.get(bare[label])) is not None:
            raise DataError(
                f"the node {label!r} is {what}, and is {other!r} but for type, spaces or capitals: rename it"
            )
    for label in new[:DOUBTED]:
        if hint := did_you_mean(label, known, numbers=False):
            said = f"the node {label!r} is {what}{hint}"
            warnings.warn(said, UserWarning, stacklevel=users_line())
            return said
    return ""


def _placed(edge: EdgeBlock, n_observed: int, shift: int, n: int) -> EdgeBlock:
    """The edges with their latent nodes behind those of the terms before."""
    if not shift:
        return edge.over(n)
    return edge.moved(np.where((node := np.arange(n)) < n_observed, node, node + shift), n)


def _apart(block: SampleBlock, taken: Array, space: Space) -> SampleBlock:
    """The samples as rows where a loss before them has taken one of their nodes: each node has at most one loss of its
    own, and others stand beside it."""
    if block.map.noun != "sample":
        return block
    if not taken[block.node].any():
        taken[block.node] = True
        return block
    labels = list(space.index)
    keys = tuple((labels[i], r) for r, i in enumerate(block.node.tolist()))
    return replace(block, map=Matrix(block.A, block.width, block.n, keys, block.map.text))


# ---- numbers out of range --------------------------------------------------------------------------------------------
LARGEST, SMALLEST = 1e150, 1e-150  # their squares are about the largest and the smallest float
DOUBTED = 100  # labels that are looked at
ROOM = 1e300  # sums of scaled squares stay below it
OUTSIDE = "the loss is +inf there, where all methods begin; give an offset= at which it is finite"
ROWS = 4096  # of X, looked at together


def check_samples(loss: SampleBlock) -> None:
    """Refuses features, targets, offsets and scales that are too large or too small; the column is named.

    Raises
    ------
    DataError
    """
    data, (X, seen) = loss.loss.data, _seen(loss)
    most = _largest(X)
    if not ((most <= LARGEST) & ((most == 0.0) | (most >= SMALLEST))).all():
        for what, column in zip(seen, X.T, strict=True):
            _check(loss, column, what)
    targets = loss.y.reshape(len(loss.y), -1)
    names = data.targets if len(data.targets) == targets.shape[1] else data.targets[:1] * targets.shape[1]
    for name, column in zip(names, targets.T, strict=True):
        _check(loss, column, f"the target {name!r}")
    named = data.columns.offset if data.columns is not None else None
    offset = "the offset" if named is None else f"the offset {named!r}"
    each = loss.offset.reshape(len(loss.y), -1)
    high, low, top = each.max(axis=1), each.min(axis=1), loss.loss.largest_offset()
    for column in (high, low):
        _check(loss, column, offset, vanishing=False)
    if (high > top).any():
        kind = loss.loss.called()
        what = f"{kind} overflows beyond {top:g}; subtract a constant from it, or take the logarithm of an exposure"
        _refuse(loss, high, high > top, offset, what)
    _check(loss, loss.base_scale, "the scale (scale= times the sample weight)")
    every = (float(np.abs(each).max(initial=0.0)) for each in (most, loss.y))
    largest, scale = max(every), float(loss.base_scale.max(initial=0.0))
    if not len(loss.y) * scale * largest * largest < ROOM:  # a sum of as many of the largest is in range
        _check_products(loss)


def check_begin(form: Form) -> None:
    """Refuses losses of the user's that are infinite at w = 0; the node is named.

    Raises
    ------
    DataError
    """
    for loss in form.samples:
        if loss.loss.is_users():
            with np.errstate(all="ignore"):
                outside = loss.loss.value(loss.offset, loss.y) == np.inf
            if outside.any():
                what = f"the predictor of {loss.loss.called()} at w = 0"
                _refuse(loss, loss.offset.reshape(len(loss.y), -1).max(axis=1), outside, what, OUTSIDE)


def check_center(edges: EdgeBlock, names: list[str]) -> None:
    """Refuses centers whose squares overflow; the coordinate is named.

    Raises
    ------
    TermError
    """
    if edges.center is None or not (np.abs(edges.center) > LARGEST).any():
        return
    e, j = np.argwhere(np.abs(edges.center) > LARGEST)[0]
    rows = edges.map.edges is None
    where = f"in the row {edges.keys[e]!r}" if rows else f"at the coordinate {names[edges.columns(len(names))[j]]!r}"
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


def _seen(loss: SampleBlock) -> tuple[Array, list[str]]:
    """What predictors are made of, (M, p), and its names: the features, or the largest coefficient of each row."""
    if loss.map.noun == "row":
        largest = abs(loss.A).max(axis=1).toarray().reshape(loss.count, -1).max(axis=1)
        return largest[:, None], ["the largest coefficient"]
    names = [f"the feature {name!r}" for name in loss.loss.data.features]
    return (np.zeros((loss.count, 0)), []) if loss.X is None else (loss.X, names)


def _check_products(loss: SampleBlock) -> None:
    """s_r times squares, summed, must stay in range too."""
    (X, names), targets = _seen(loss), loss.loss.data.targets
    target = f"the target {targets[0] if targets else ''!r}", np.abs(loss.y.reshape(len(loss.y), -1)).max(axis=1)
    for what, column in (*zip(names, X.T, strict=True), target):
        with np.errstate(over="ignore"):
            size = loss.base_scale * np.abs(column) ** 2
        if not float(np.minimum(size, ROOM).sum()) < ROOM:
            worst = size == size.max()
            _refuse(
                loss, column, worst, what, "its square times its scale overflows; rescale the column or the weights"
            )


def _refuse(loss: SampleBlock, values: Any, bad: Array, what: str, why: str) -> None:
    r = int(np.flatnonzero(bad)[0])
    data, rows = loss.loss.data, loss.map.noun == "row"
    place = f"in the row {loss.keys[r]!r}" if rows else f"at the node {data.labels[data.node[r]]!r}, row {r}"
    raise DataError(f"{what} is {float(values[r]):.3g} {place}: {why}")
