"""A part of a problem: some nodes with their samples, the edges that touch them, and the names of their neighbours. Of
rows of more than two ends it has those whose flow its nodes keep, and of others what they take from its nodes.

Nothing of a part is shared with another: arrays are copies, and so are the objects of losses and penalties. The losses
of a part hold the data of its own nodes alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...methods import AbstractIteration, Point, Start
from ...network import Arcs, WholeGraph
from ...terms import GROUND, AbstractEdges, AbstractMap, Array, Matrix, Space
from ...terms.losses import at_nodes, at_rows

Rows = tuple[tuple[int, Array], ...]
Known = tuple[Array, Array, Any]  # rows, which of them a part keeps, and the map of these


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
        """The start as the part knows it: its own parameters (NaN at neighbours), and the flows of its edges."""
        if start is None:
            return None
        w = np.where(self.whole.own[:, None], start[0][self.whole.ids], np.nan)
        return w, None if start[1] is None else tuple(start[1][k][rows] for k, rows in self.edges)


def part_of(form: Form, arcs: Arcs, mine: Array) -> Part:
    """The part of the nodes of a mask (n,)."""
    near = mine.copy()
    near[arcs.target[mine[arcs.source]]] = True
    ids = np.flatnonzero(near)
    place = np.full(form.n, -1)  # of each node among those of the part
    place[ids] = np.arange(len(ids))
    samples, known = (
        [(k, b, found) for k, b in enumerate(blocks) if len((found := _known(b, mine))[0])]
        for blocks in (form.samples, form.edges)
    )
    n_observed = int(np.searchsorted(ids, form.space.n_observed))
    labels = [form.labels[i] for i in ids.tolist()]
    index = {label: k for k, label in enumerate(labels[:n_observed])}
    space = Space(index, form.space.coordinates, form.space.penalised.copy())
    part = Form(
        space,
        tuple(labels[n_observed:]),
        tuple(_samples(form, cast(SampleBlock, block), found, place, len(ids)) for _, block, found in samples),
        tuple(_edges(cast(EdgeBlock, edge), *found, place, len(ids)) for _, edge, found in known),
    )
    curvature = form.curvature_of(form.beside)[ids] if form.beside else None
    whole = WholeGraph(form.n, form.space.n_observed, ids, mine[ids], form.differences, curvature)
    return Part(part, whole, *(tuple((k, found[0]) for k, _, found in each) for each in (samples, known)))


def _known(block: SampleBlock | EdgeBlock, mine: Array) -> Known:
    """What the nodes of a mask know of a block: its rows there, which they keep, and the map of these."""
    if block.map.noun != "sample":
        return cast(Matrix | AbstractEdges, block.map).known(mine)
    rows = np.flatnonzero(mine[block.map.owner])
    return rows, np.full(len(rows), True), block.map.part(rows)


def _samples(form: Form, block: SampleBlock, found: Known, place: Array, n: int) -> SampleBlock:
    """Some samples as a part knows them: of rows that others keep it has neither weights nor targets nor offsets."""
    rows, kept, known = found
    part, here = block.part(rows), known.moved(place, n)
    if block.map.noun == "sample":
        own = {form.labels[i] for i in np.unique(part.node).tolist()}
        return replace(part, loss=at_nodes(part.loss, own), map=here.changed(given_layout=block.layout))
    y, offset = (np.where(kept.reshape(-1, *[1] * (x.ndim - 1)), x, 0) for x in (part.y, part.offset))
    loss = at_rows(part.loss, rows[kept]) if kept.any() else copy.copy(part.loss)
    if not kept.any():  # there are no data without rows
        vars(loss).pop("data")
    return replace(part, loss=loss, map=here, y=y, offset=offset, base_scale=np.where(kept, part.base_scale, np.nan))


def _edges(edge: EdgeBlock, rows: Array, kept: Array, known: AbstractMap, place: Array, n: int) -> EdgeBlock:
    """Some rows of a block as a part knows them: it has neither weights nor centers of those that others keep."""
    part, here = edge.part(rows), known.moved(place, n)
    if here.edges is not None and here.edges.features is not None:
        here = here.changed(features=here.edges.features.copy())
    center = None if part.center is None else np.where(kept[:, None], part.center, np.nan)
    weight = np.where(kept, part.base_weight, np.nan)
    return replace(part, penalty=copy.deepcopy(edge.penalty), map=here, base_weight=weight, center=center)


# ---- what parts share -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SharedRows:
    """Rows of an array per block that a part shares with another: those that it sends, and those that it is sent."""

    block: int
    own: Array
    other: Array


def message_of(values: Sequence[Array], shared: Sequence[SharedRows]) -> Array:
    """What is sent to another."""
    return np.concatenate([np.zeros(0), *(values[each.block][each.own].ravel() for each in shared)])


def take(message: Array, values: Sequence[Array], shared: Sequence[SharedRows]) -> None:
    """Write what came from another to its rows."""
    at = 0
    for each in shared:
        shape = len(each.other), values[each.block].shape[1]
        values[each.block][each.other] = message[at : at + shape[0] * shape[1]].reshape(shape)
        at += shape[0] * shape[1]


def shared_ends(part: Part, owner: Array, other: int) -> list[SharedRows]:
    """What a part shares with another one of values per end of edges, those of tails above those of heads: both its own
    ends. ``owner`` says to which part each node of its form belongs."""
    out, own = list[SharedRows](), part.whole.own
    for k, edge in enumerate(part.form.edges):
        if edge.map.noun == "edge":
            m, ends = edge.count, np.concatenate(edge.ends)
            across = np.roll(ends, m)
            mine = np.flatnonzero(own[ends] & (owner[across] == other) & ~own[across])
            if len(mine):
                mine = mine[np.argsort(mine % m, kind="stable")]  # edge by edge, as the other part has them, too
                out.append(SharedRows(k, mine, (mine + m) % (2 * m)))
    return out


def shared_flows(part: Part, owner: Array) -> dict[int, list[SharedRows]]:
    """What a part shares with each other one of the flows of rows that one node keeps; ``owner`` says to which part
    each node of its form belongs."""
    out, mine = dict[int, list[SharedRows]](), part.whole.own
    for k, block in enumerate((*part.form.edges, *part.form.beside)):
        if block.map.edges is not None:
            continue
        rows = cast(Matrix, block.map)
        end, keeper, _, line = rows.ways
        alone = rows.alone[line // rows.k] != GROUND
        there, back = alone & mine[keeper] & ~mine[end], alone & mine[end] & ~mine[keeper]
        for other in np.union1d(owner[end[there]], owner[keeper[back]]).tolist():
            places = (line[there & (owner[end] == other)], line[back & (owner[keeper] == other)])
            out.setdefault(other, []).append(SharedRows(k, *map(np.unique, places)))
    return out


def with_owners(part: Part) -> Part:
    """The part as it is where of a row's two ends one alone keeps its flow, too: the one that speaks for it."""
    edges = (e if e.map.edges else replace(e, map=e.map.changed(owners=e.map.owner)) for e in part.form.edges)
    return replace(part, form=replace(part.form, edges=tuple(edges)))


def lines_of(flows: Sequence[Array]) -> tuple[Array, ...]:
    """Flows as arrays with a row per entry, of which `shared_flows` speaks: what is written there is written here."""
    return tuple(u.reshape(-1, 1) for u in flows)


# ---- points, put together from those of parts ------------------------------------------------------------------------
@dataclass(frozen=True)
class PartAnswer:
    """The rows of a part's own nodes, (k, d); flows and prices of all of its edges and samples."""

    w: Array
    flows: tuple[Array, ...] | None
    prices: tuple[Array, ...] | None
    gathered: dict[str, Any]  # of arrays the rows of the own nodes


def answer_of(method: AbstractIteration, state: Any, part: Part) -> PartAnswer:
    """The answer of a part after a round."""
    own = part.whole.own
    w, flows, prices = method.point(state)
    gathered = {
        name: value[own] if isinstance(value, np.ndarray) and value.ndim else value
        for name, value in method.gathered(state).items()
    }
    return PartAnswer(w[own], flows, prices, gathered)


def point_of(form: Form, parts: Sequence[Part], answers: Sequence[PartAnswer]) -> Point:
    """The point of the whole problem. The flow of a row is that of its owner's part."""
    w = np.empty(form.shape)
    for part, answer in zip(parts, answers, strict=True):
        w[part.nodes] = answer.w
    return w, _flows(form, parts, answers), _prices(form, parts, answers)


def gathered_of(form: Form, parts: Sequence[Part], answers: Sequence[PartAnswer]) -> dict[str, Any]:
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


def _flows(form: Form, parts: Sequence[Part], answers: Sequence[PartAnswer]) -> tuple[Array, ...] | None:
    if answers[0].flows is None:
        return None
    out = form.nothing().flows
    for part, answer in zip(parts, answers, strict=True):
        for (k, rows), edge, flow in zip(part.edges, part.form.edges, answer.flows or (), strict=True):
            mine = part.whole.own[edge.map.owner]
            out[k][rows[mine]] = flow[mine]
    return out


def _prices(form: Form, parts: Sequence[Part], answers: Sequence[PartAnswer]) -> tuple[Array, ...] | None:
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
        for (k, rows), block, price in zip(part.samples, part.form.samples, prices, strict=True):
            mine = part.whole.own[block.map.owner]
            out[k][rows[mine]] = price[mine]
    return out
