"""What parts have of a point, or of what a method has gathered, and how it is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...form import Form
from ...methods import AbstractIteration, Point
from ...terms import Array
from .part import Part


@dataclass(frozen=True)
class Answer:
    """The rows of a part's own nodes, (k, d); flows and prices of all of its edges and samples."""

    w: Array
    flows: tuple[Array, ...] | None
    prices: tuple[Array, ...] | None
    gathered: dict[str, Any]  # of arrays the rows of the own nodes


def answer_of(method: AbstractIteration, state: Any, part: Part) -> Answer:
    """What a part has after a round."""
    own = part.whole.own
    w, flows, prices = method.point(state)
    gathered = {
        name: value[own] if isinstance(value, np.ndarray) and value.ndim else value
        for name, value in method.gathered(state).items()
    }
    return Answer(w[own], flows, prices, gathered)


def point_of(form: Form, parts: Sequence[Part], answers: Sequence[Answer]) -> Point:
    """The point of the whole problem. The flow of an edge is that of its tail's part."""
    w = np.empty(form.shape)
    for part, answer in zip(parts, answers, strict=True):
        w[part.nodes] = answer.w
    return w, _flows(form, parts, answers), _prices(form, parts, answers)


def gathered_of(form: Form, parts: Sequence[Part], answers: Sequence[Answer]) -> dict[str, Any]:
    """One row per node; what is no array is the first part's."""
    out: dict[str, Any] = {}
    for name, first in answers[0].gathered.items():
        if not isinstance(first, np.ndarray):
            out[name] = first
            continue
        rows = np.empty((form.n, *first.shape[1:]), first.dtype)
        for part, answer in zip(parts, answers, strict=True):
            rows[part.nodes] = answer.gathered[name]
        out[name] = rows
    return out


def _flows(form: Form, parts: Sequence[Part], answers: Sequence[Answer]) -> tuple[Array, ...] | None:
    if answers[0].flows is None:
        return None
    out = form.nothing().flows
    for part, answer in zip(parts, answers, strict=True):
        for (k, rows), edge, flow in zip(part.edges, part.form.edges, answer.flows or (), strict=True):
            mine = part.whole.own[edge.tail]
            out[k][rows[mine]] = flow[mine]
    return out


def _prices(form: Form, parts: Sequence[Part], answers: Sequence[Answer]) -> tuple[Array, ...] | None:
    """None where every node's prices follow from its point; those of a part that does not say are gradients."""
    if all(answer.prices is None for answer in answers):
        return None
    out = form.nothing().prices
    for part, answer in zip(parts, answers, strict=True):
        prices = answer.prices
        if prices is None:
            at = np.zeros(part.form.shape)
            at[part.whole.own] = answer.w
            prices = tuple(block.prices(at) for block in part.form.samples)
        for (k, rows), price in zip(part.samples, prices, strict=True):
            out[k][rows] = price
    return out
