"""What flows and prices leave at the nodes, on graphs of any size."""

from __future__ import annotations

import numpy as np

from ...form import DualPoint, Form
from ...network import edge_pulls
from ...terms import Array


def conservation(form: Form, point: DualPoint) -> Array:
    """K'u + X'a, (n, d), where edges are many without a matrix K."""
    out = np.zeros(form.shape)
    for block, a in zip(form.samples, point.prices, strict=True):
        out += block.adjoint(a, form.shape)
    for edge, u in zip(form.edges, point.flows, strict=True):
        found = edge_pulls(edge, u)
        if found is None:
            edge.add_adjoint(u, out)
        else:
            out[:, edge.coordinates] += found[0]
    return out
