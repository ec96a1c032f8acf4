"""From a model to its canonical form; refuses what cannot be one, naming the guilty part."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from ..errors import DataError, TermError
from ..inputs import all_of, index_of, places_of
from ..messages import look_alike
from ..terms import Model, Space, feature_of
from ..terms.losses import AbstractLoss
from .form import EdgeBlock, Form, SampleBlock
from .magnitudes import check_center, check_samples


def build(model: Model) -> Form:
    """The canonical form of a model; refuses what cannot be one, naming the guilty part."""
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
        samples += [replace(loss, n=n) for loss in part.losses]
        edges += [_placed(edge, space.n_observed, len(latent), n) for edge in part.edges if len(edge.tail)]
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
    graphs = all_of(nodes for _, term in model.terms if len(nodes := term.nodes()))
    index = index_of(graphs or all_of(loss.data.labels for loss in losses))
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
        return replace(edge, n=n)
    tail, head = (np.where(end >= n_observed, end + shift, end) for end in (edge.tail, edge.head))
    return replace(edge, tail=tail, head=head, n=n)


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
