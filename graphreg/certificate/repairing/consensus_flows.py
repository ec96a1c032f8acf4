"""The flows across edges whose ends agree, where a method has none."""

from __future__ import annotations

import numpy as np

from ...form import DualPoint, Form
from ...terms import Array
from .feasible import tied_means, tied_parts
from .linear import edge_system

FINE = 1e-9  # the relative residual of the linear solve


def consensus_flows(
    form: Form, w: Array, flows: tuple[Array, ...], prices: tuple[Array, ...]
) -> tuple[tuple[Array, ...], int]:
    """The flows with those that level out, over the edges between nodes that agree at w, what the others and the prices
    leave of the conservation, and the rounds of messages that it takes to find them.

    There any flow within the capacity is a subgradient; those of a consensus (Zero) have none. The mean of what is left
    over the nodes that are tied stays: no flow between them can change it. The prices that a consensus needs at its
    nodes are far from balanced one by one: left to the repair alone, they would be moved as well.
    """
    level = [(edge.difference(w) == 0.0).all(axis=1) & (not edge.ground) for edge in form.edges]  # between equal nodes
    ties = [edge.part(rows) for edge, rows in zip(form.edges, level, strict=True) if rows.any()]
    if not ties or not all(np.isfinite(part).all() for part in (*flows, *prices)):
        return flows, 0
    flows = tuple(np.where(rows[:, None], 0.0, u) for u, rows in zip(flows, level, strict=True))
    r = form.conservation(DualPoint(flows, prices))
    r -= tied_means(tied_parts(form, ties), r)
    C = tuple(rows[:, None].astype(float) for rows in level)
    z, iterations = edge_system(form, C).solve(r, FINE)  # r has no part that they cannot carry
    each = zip(form.edges, flows, level, strict=True)
    return tuple(np.where(rows[:, None], -edge.apply(z), u) for edge, u, rows in each), iterations + 1
