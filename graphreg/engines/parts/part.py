"""A part of a problem: some nodes with their samples, the edges that touch them, and the names of their neighbours.

Nothing of a part is shared with another: arrays are copies, and so are the objects of losses and penalties. The losses
of a part hold the data of its own nodes alone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...methods import Start
from ...network import Arcs, WholeGraph
from ...terms import Array, Space
from ...terms.losses import at_nodes

Rows = tuple[tuple[int, Array], ...]


@dataclass(frozen=True)
class Part:
    """``form`` has the part's own nodes and their neighbours, ordered by their numbers in the whole graph."""

    form: Form
    whole: WholeGraph
    samples: Rows  # of each of the part's sample blocks: the whole's block, and its rows
    edges: Rows

    @property
    def nodes(self) -> Array:
        """The numbers of its own nodes in the whole graph."""
        return self.whole.ids[self.whole.own]

    def start(self, start: Start | None) -> Start | None:
        """What the part knows of a start: its own parameters (NaN at neighbours), and the flows of its edges."""
        if start is None:
            return None
        w = np.where(self.whole.own[:, None], start[0][self.whole.ids], np.nan)
        return w, None if start[1] is None else tuple(start[1][k][rows] for k, rows in self.edges)


def part_of(form: Form, arcs: Arcs, mine: Array) -> Part:
    """The part of the nodes of a mask (n,)."""
    near = mine.copy()
    near[arcs.target[mine[arcs.source]]] = True
    ids = np.flatnonzero(near)
    place = np.full(form.n, -1)  # of each node among those of the part; -1 is the ground, too
    place[ids] = np.arange(len(ids))
    samples = [(k, rows) for k, b in enumerate(form.samples) if len(rows := np.flatnonzero(mine[b.node]))]
    edges = [(k, rows) for k, e in enumerate(form.edges) if len(rows := np.flatnonzero(_touched(e, mine)))]
    n_observed = int(np.searchsorted(ids, form.space.n_observed))
    labels = [form.labels[i] for i in ids.tolist()]
    index = {label: k for k, label in enumerate(labels[:n_observed])}
    space = Space(index, form.space.coordinates, form.space.penalised.copy())
    part = Form(
        space,
        tuple(labels[n_observed:]),
        tuple(_samples(form, form.samples[k], rows, place, len(ids)) for k, rows in samples),
        tuple(_edges(form.edges[k], rows, place, len(ids)) for k, rows in edges),
    )
    whole = WholeGraph(form.n, form.space.n_observed, ids, mine[ids], form.differences)
    return Part(part, whole, tuple(samples), tuple(edges))


def _touched(edge: EdgeBlock, mine: Array) -> Array:
    return mine[edge.tail] if edge.ground else mine[edge.tail] | mine[edge.head]


def _samples(form: Form, block: SampleBlock, rows: Array, place: Array, n: int) -> SampleBlock:
    part = block.part(rows)
    own = {form.labels[i] for i in np.unique(part.node).tolist()}
    return replace(part, loss=at_nodes(part.loss, own), node=place[part.node], n=n, given_layout=block.layout)


def _edges(edge: EdgeBlock, rows: Array, place: Array, n: int) -> EdgeBlock:
    part = edge.part(rows)
    head = part.head if edge.ground else place[part.head]
    penalty, features = copy.deepcopy(edge.penalty), None if edge.features is None else edge.features.copy()
    return replace(part, penalty=penalty, tail=place[part.tail], head=head, features=features, n=n)
