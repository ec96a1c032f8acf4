"""A primal point at which every constraint holds exactly."""

from __future__ import annotations

from typing import Any

from ...form import EdgeBlock, Form
from ...terms import Array
from ...terms.penalties import AbstractConstraint
from ...verify import Model, NotProvedError, rational
from .numbers import exact, exactly

ROUNDS = 4


def feasible_exactly(form: Form, model: Model, w: Array) -> tuple[list[list[Any]], int]:
    """Rationals near w and an upper bound of P there (in units of the checker); `NotProvedError` where none is found.

    Nodes whose constraint does not hold are moved into it; where edges between nodes do not hold, all of w is pulled
    towards 0.
    """
    W: list[list[Any]] = exactly(w.tolist())
    for round_ in range(ROUNDS):
        try:
            return W, model.primal(W)
        except NotProvedError:
            for edge in form.edges:
                if isinstance(edge.penalty, AbstractConstraint):
                    _settle(form, edge, W) if edge.ground else _pull(edge, W, 50 - 5 * round_)
    return W, model.primal(W)


def _settle(form: Form, edge: EdgeBlock, W: list[list[Any]]) -> None:
    """Every node of a constraint on nodes into its set."""
    columns = range(form.d) if edge.features is None else edge.features.tolist()
    centers = None if edge.center is None else exactly(edge.center.tolist())
    for e, i in enumerate(edge.tail.tolist()):
        center = [rational(0)] * len(columns) if centers is None else centers[e]
        z = edge.penalty.settle([W[i][j] - c for j, c in zip(columns, center, strict=True)], exact)  # pyright: ignore
        for j, c, p in zip(columns, center, z, strict=True):
            W[i][j] = c + p


def _pull(edge: EdgeBlock, W: list[list[Any]], bits: int) -> None:
    shrink = 1 - rational(1, 1 << bits)
    for row in W:
        row[:] = [shrink * x for x in row]
