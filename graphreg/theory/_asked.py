"""What `recovery` is asked: a problem of which Theorem 2 speaks, and its clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..clusters import Clusters
from ..errors import MethodError, ModelError, TermError
from ..form import EdgeBlock, Form
from ..graph import Graph
from ..lowering.gradients import without_gradient
from ..reading import plain_label
from ..terms.hierarchy import latent_label, tree_levels
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.losses.poisson import PoissonLoss
from ..terms.penalties._base import AbstractNorm
from ..terms.records import Array, look_alike
from ._strengths import Part


def read_form(problem: Any) -> Form:
    """The form of a problem."""
    form = getattr(problem, "form", None)
    if not isinstance(form, Form):
        raise ModelError(f"recovery takes a gr.Problem, got {type(problem).__name__}; write gr.Problem(model)")
    return form


def total_variation(form: Form) -> EdgeBlock:
    """The edges between nodes; all that the theorem does not speak of is refused."""
    between = [edge for edge in form.edges if not edge.ground]
    missing = [s.replace(", and the method steps along gradients", "") for s in without_gradient(form)]
    missing += [
        f"the curvature of {type(b.loss).__name__} has no bound"
        for b in form.samples
        if isinstance(b.loss, AbstractSmoothLoss)
        and not np.isfinite(b.loss.smoothness())
        and not isinstance(b.loss, PoissonLoss)
    ]
    if form.latent:
        missing.append("the model has latent nodes (a Hierarchy), of which the theorem does not speak")
    if len(between) != 1:
        missing.append(f"it needs exactly one TotalVariation, and the model has {len(between)} terms between nodes")
    for edge in between:
        if not isinstance(edge.penalty, AbstractNorm):
            missing.append(f"{edge.name} is no norm; the theorem is about L2, L1 and other norms")
        if edge.features is not None and len(edge.features) < form.d:
            missing.append(f"{edge.name} acts on some features only, and the theorem is about all of them")
    if missing:
        raise MethodError(f"Theorem 2 does not apply: {'; '.join(missing)}", tuple(missing))
    return between[0]


def read_clusters(form: Form, clusters: Any) -> tuple[list[Hashable], Array]:
    """The names of the clusters, and the number of each node's."""
    index = form.space.index
    if isinstance(clusters, Clusters):
        clusters = clusters.labels
    elif hasattr(clusters, "to_dict") and not isinstance(clusters, dict):
        clusters = clusters.to_dict()
    elif isinstance(clusters, (list, tuple, np.ndarray)):
        if len(clusters) != len(index):
            raise ModelError(
                f"clusters have {len(clusters)} entries for {len(index)} nodes; give one per node in node order, or a "
                "mapping from labels"
            )
        clusters = dict(zip(index, map(plain_label, clusters), strict=True))
    try:
        levels = tree_levels(clusters)
    except TermError as error:
        raise ModelError(f"clusters: {error}") from error
    if len(levels) > 2:
        raise ModelError("clusters are nested; give the level that is meant, a list of nodes per cluster")
    found = {plain_label(node): latent_label(path) for node, path in levels[0].items()}
    unknown = [node for node in found if node not in index]
    if unknown:
        raise ModelError(f"clusters name {unknown[0]!r}, which is not a node{look_alike(unknown[0], index)}")
    lacking = [node for node in index if node not in found]
    if lacking:
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise ModelError(
            f"clusters leave out the nodes {', '.join(map(repr, lacking[:5]))}{more}: name theirs (a node may be a "
            "cluster of its own)"
        )
    names = list(dict.fromkeys(found[node] for node in index))
    place = {name: c for c, name in enumerate(names)}
    return names, np.array([place[found[node]] for node in index], dtype=np.intp)


def part_of(graph: Graph, member: Array, c: int) -> Part:
    """One cluster of a graph."""
    nodes = np.flatnonzero(member == c)
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    i, j = place[graph.tail], place[graph.head]
    inside, leaves = (i >= 0) & (j >= 0), (i >= 0) != (j >= 0)
    own = Graph(tuple(graph.labels[k] for k in nodes), i[inside], j[inside], graph.weight[inside])
    out = np.bincount(np.maximum(i, j)[leaves], graph.weight[leaves], len(nodes))
    return Part(own, nodes, out, math.fsum(graph.weight[leaves]))
