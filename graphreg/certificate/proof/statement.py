"""The problem of a form as a proof states it: by its factors, as exact numbers, with the names of nodes and columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array, Stated
from ...terms.penalties import AbstractPenalty
from ...verify import spell


def statement(form: Form) -> dict[str, Any]:
    """The ``model`` of a proof, of a form that is written out, see `write_out`."""
    return {
        "labels": distinct(form.labels),
        "columns": distinct(form.space.names),
        "samples": [_samples(block) for block in form.samples],
        "edges": [state_edges(edge, form.width(edge)) for edge in form.edges],
    }


def distinct(labels: Iterable[Hashable]) -> list[str]:
    """Labels as text: themselves where they are text, else as they are printed; with their types where that is not
    enough to tell them apart."""
    labels = list(labels)
    for write in (lambda x: x if isinstance(x, str) else repr(x), repr, lambda x: f"{type(x).__name__} {x!r}"):
        names = [write(label) for label in labels]
        if len(set(names)) == len(names):
            return names
    twice = next(name for k, name in enumerate(names) if name in names[:k])
    raise ProofError(f"two nodes are both printed as {twice}; a proof needs labels that differ in print")


def spelled(values: Any) -> Any:
    """Floats in the spelling of proofs; integers and None as they are."""
    if isinstance(values, (list, tuple)):
        return [spelled(value) for value in values]
    return spell(values) if isinstance(values, float) else values


def numbers(values: Array) -> Any:
    return spelled(np.asarray(values, dtype=float).tolist())


def _samples(block: SampleBlock) -> dict[str, Any]:
    stated, M = block.loss.stated(), len(block.node)
    assert isinstance(stated, Stated)  # as the form is written out
    rule, weights = block.loss.factors()
    if not np.array_equal(block.loss.scales(), block.base_scale):  # a block of other scales than its loss gives
        rule, weights = "sum", block.base_scale
    return {
        "loss": stated.name,
        "parameter": spelled(stated.parameter),
        "strength": spell(float(block.strength)),
        "rule": rule if isinstance(rule, str) else numbers(rule),
        "node": block.node.tolist(),
        "weight": numbers(weights),
        "x": None if block.X is None else numbers(block.X),
        "y": spelled(block.loss.stated_targets(block.y)),
        "offset": numbers(block.offset.reshape(M, -1)),
    }


def state_edges(edge: EdgeBlock, k: int) -> dict[str, Any]:
    """A block of edges of the ``model``."""
    penalty: AbstractPenalty = edge.penalty
    stated = penalty.stated(k)
    assert stated is not None  # as the form is written out
    return {
        "penalty": stated.name,
        "parameter": spelled(stated.parameter),
        "strength": spell(float(edge.strength)),
        "tail": edge.tail.tolist(),
        "head": edge.head.tolist(),
        "weight": numbers(edge.base_weight),
        "features": list(range(k)) if edge.features is None else edge.features.tolist(),
        "center": None if edge.center is None else numbers(edge.center),
    }
