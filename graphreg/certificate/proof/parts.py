"""Penalties that are sums of others, written out: one block of edges for each part, and the flow split among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import ProofError
from ...form import DualPoint, EdgeBlock, Form
from ...terms import Array, Strength
from ...terms.penalties import AbstractSmoothPenalty


def write_out(form: Form, w: Array, point: DualPoint) -> tuple[Form, DualPoint]:
    """The form and the point with every composition of penalties as its parts; refuses what no proof can state."""
    for block in form.samples:
        if block.loss.stated() is None:
            raise ProofError(f"the loss {type(block.loss).__name__} cannot be stated in a proof: it has no `stated`")
    edges: list[EdgeBlock] = []
    flows: list[Array] = []
    for edge, u in zip(form.edges, point.flows, strict=True):
        parts = parts_of(edge, form.width(edge))
        edges += parts
        flows += _split(parts, edge.difference(w), u) if len(parts) > 1 else [u]
    return replace(form, edges=tuple(edges)), DualPoint(tuple(flows), point.prices)


def parts_of(edge: EdgeBlock, k: int) -> list[EdgeBlock]:
    """The block, or one block per part where its penalty is a composition."""
    if edge.penalty.stated(k) is not None:
        return [edge]
    parts = edge.penalty.parts()
    if not parts:
        raise ProofError(
            f"{edge.name}: the penalty {type(edge.penalty).__name__} cannot be stated in a proof; where it is a sum of "
            "the library's penalties, give it a method `parts` that says so"
        )
    blocks = [replace(edge, penalty=part, strength=Strength(float(edge.strength) * by)) for by, part in parts]
    return [inner for block in blocks for inner in parts_of(block, k)]


def _split(parts: list[EdgeBlock], z: Array, u: Array) -> list[Array]:
    """u as a sum of flows of the parts: gradients where there are any, the rest clipped into the other domains; what is
    left then goes to the first smooth part, or the first."""
    smooth = [isinstance(part.penalty, AbstractSmoothPenalty) for part in parts]
    flows = [np.zeros_like(u) for _ in parts]
    rest = np.array(u)
    for k, part in sorted(enumerate(parts), key=lambda pair: not smooth[pair[0]]):
        penalty = part.penalty
        if isinstance(penalty, AbstractSmoothPenalty):
            flows[k] = part.weight[:, None] * penalty.gradient(z)
        else:
            flows[k] = part.clip(rest)
        rest = rest - flows[k]
    first = smooth.index(True) if any(smooth) else 0
    flows[first] = flows[first] + rest
    return flows
