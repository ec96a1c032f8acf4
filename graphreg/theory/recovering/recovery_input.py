"""What `recovery` is asked: the edges of a problem of which Theorem 2 speaks, and one cluster of them."""

from __future__ import annotations

import math

import numpy as np

from ...errors import MethodError
from ...form import EdgeBlock, Form
from ...inputs import Graph
from ...oracles import STEPPING, without_gradient
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ..curvature import tells_curvature
from ..varied import is_norm
from .strengths import ClusterPart


def total_variation(form: Form) -> EdgeBlock:
    """The edges between nodes; all that the theorem does not speak of is refused."""
    between = [edge for edge in form.edges if not edge.ground]
    missing = [s.removesuffix(STEPPING) for s in without_gradient(form)]
    missing += [
        f"the curvature of {type(b.loss).__name__} has no bound"
        for b in form.samples
        if isinstance(b.loss, AbstractSmoothLoss) and not np.isfinite(b.loss.smoothness()) and not tells_curvature(b)
    ]
    if form.latent:
        missing.append("the model has latent nodes (a Hierarchy), of which the theorem does not speak")
    if len(between) != 1:
        missing.append(f"it needs exactly one TotalVariation, and the model has {len(between)} terms between nodes")
    for edge in between:
        if not is_norm(edge.penalty, form.width(edge)):
            missing.append(f"{edge.name} is no norm; the theorem is about L2, L1 and other norms")
        if edge.features is not None and len(edge.features) < form.d:
            missing.append(f"{edge.name} acts on some features only, and the theorem is about all of them")
    if missing:
        raise MethodError(f"Theorem 2 does not apply: {'; '.join(missing)}", tuple(missing))
    return between[0]


def part_of(graph: Graph, member: Array, c: int) -> ClusterPart:
    """One cluster of a graph."""
    nodes = np.flatnonzero(member == c)
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    i, j = place[graph.tail], place[graph.head]
    inside, leaves = (i >= 0) & (j >= 0), (i >= 0) != (j >= 0)
    own = Graph(tuple(graph.labels[k] for k in nodes), i[inside], j[inside], graph.weight[inside])
    out = np.bincount(np.maximum(i, j)[leaves], graph.weight[leaves], len(nodes))
    return ClusterPart(own, nodes, out, math.fsum(graph.weight[leaves]))
