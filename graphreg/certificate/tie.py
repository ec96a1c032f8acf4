"""The flows of a consensus, where a method has none."""

from __future__ import annotations

import numpy as np

from ..form import DualPoint, Form
from ..terms.penalties.zero import Zero
from ..terms.records import Array
from .feasible import tied_means
from .linear import Conductances, Stacks, System

FINE = 1e-9  # the relative residual of the linear solve


def tie(
    form: Form, stacks: Stacks, flows: tuple[Array, ...], prices: tuple[Array, ...]
) -> tuple[tuple[Array, ...], int]:
    """The flows with those that level out, over the edges of a consensus (Zero), what the others and the prices leave
    of the conservation, and the rounds of messages that it takes to find them.

    The mean of that over the nodes that are tied stays: no flow between them can change it. The prices that a consensus
    needs at its nodes are far from balanced one by one: left to the repair alone, they would be moved as well.
    """
    ties = [isinstance(edge.penalty, Zero) and not edge.ground for edge in form.edges]
    zeros = [edge for edge, tied in zip(form.edges, ties, strict=True) if tied]
    if not zeros or not all(np.isfinite(part).all() for part in (*flows, *prices)):
        return flows, 0
    r = form.conservation(DualPoint(flows, prices))
    r -= tied_means(form, zeros, r)
    C = tuple(np.full((len(edge.tail), 1), float(tied)) for edge, tied in zip(form.edges, ties, strict=True))
    # nothing but these edges conducts, and r has no part that they cannot carry
    bare: Stacks = tuple(None if stack is None else () for stack in stacks)
    z, iterations = System(form, bare, Conductances(C, tuple(np.zeros(a.shape) for a in prices))).solve(r, FINE)
    each = zip(form.edges, flows, ties, strict=True)
    return tuple(u - edge.apply(z) if tied else u for edge, u, tied in each), iterations + 1
