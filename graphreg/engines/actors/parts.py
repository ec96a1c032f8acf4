"""The part of a problem that one node holds: its samples, the edges that touch it, and the names of its neighbours.

Nothing of a part is shared with another: arrays are copies, and so are the objects of losses and penalties. The loss
of a part holds the data of its node alone.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...methods import Start
from ...network import Arcs, WholeGraph
from ...terms import Array, Space

COORDINATOR = -1  # where the sums of several components meet


@dataclass(frozen=True)
class SpanningTree:
    """The place of a node in the spanning forest along which sums travel."""

    parent: int  # a node, or the node itself at a root
    children: tuple[int, ...]
    beyond: bool  # a root whose sum goes on to the coordinator: there are several components
    first: bool  # the first root: the coordinator is with it


@dataclass(frozen=True)
class NodePart:
    """What the actor of a node is given. ``form`` has the node and its neighbours, ordered by their numbers in the
    whole graph."""

    node: int
    label: Hashable
    form: Form
    whole: WholeGraph
    tree: SpanningTree
    samples: tuple[tuple[int, Array], ...]  # of each of the part's sample blocks: the whole's block, and its rows
    edges: tuple[tuple[int, Array], ...]

    def start(self, start: Start | None) -> Start | None:
        """What the node knows of a start: its own parameters (NaN at its neighbours), and the flows of its edges."""
        if start is None:
            return None
        w = np.where(self.whole.own[:, None], start[0][self.whole.ids], np.nan)
        return w, None if start[1] is None else tuple(start[1][k][rows] for k, rows in self.edges)


def split(form: Form, arcs: Arcs) -> tuple[NodePart, ...]:
    """The parts of all nodes, the latent ones included."""
    return tuple(_part(form, arcs, i) for i in range(form.n))


def _part(form: Form, arcs: Arcs, i: int) -> NodePart:
    near = arcs.target[arcs.source == i]
    ids = np.unique(np.append(near, i))
    own = ids == i
    samples = [(k, rows) for k, b in enumerate(form.samples) if len(rows := np.flatnonzero(b.node == i))]
    edges = [(k, rows) for k, e in enumerate(form.edges) if len(rows := np.flatnonzero((e.tail == i) | (e.head == i)))]
    labels = [form.labels[j] for j in ids]
    n_observed = int((ids < form.space.n_observed).sum())
    index = {label: k for k, label in enumerate(labels[:n_observed])}
    space = Space(index, form.space.coordinates, form.space.penalised.copy())
    part = Form(
        space,
        tuple(labels[n_observed:]),
        tuple(_samples(form, k, rows, ids, i) for k, rows in samples),
        tuple(_edges(form.edges[k], rows, ids) for k, rows in edges),
    )
    whole = WholeGraph(form.n, form.space.n_observed, ids, own)
    return NodePart(i, form.labels[i], part, whole, _tree(arcs, i), tuple(samples), tuple(edges))


def _samples(form: Form, k: int, rows: Array, ids: Array, i: int) -> SampleBlock:
    part, node = form.samples[k].part(rows), np.full(len(rows), np.searchsorted(ids, i))
    return replace(part, loss=part.loss.at(form.labels[i]), node=node, n=len(ids))


def _edges(edge: EdgeBlock, rows: Array, ids: Array) -> EdgeBlock:
    part = edge.part(rows)
    tail = np.searchsorted(ids, part.tail)
    head = part.head if edge.ground else np.searchsorted(ids, part.head)
    penalty, features = copy.deepcopy(edge.penalty), None if edge.features is None else edge.features.copy()
    return replace(part, penalty=penalty, tail=tail, head=head, features=features, n=len(ids))


def _tree(arcs: Arcs, i: int) -> SpanningTree:
    parent = int(arcs.parent[i])
    children = tuple(np.flatnonzero(arcs.parent == i).tolist())
    first = i == int(np.flatnonzero(arcs.parent < 0)[0])
    return SpanningTree(i if parent < 0 else parent, children, parent < 0 and arcs.components > 1, first)
