"""Which rows a part sends to each other part, and which it hears from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...network import Arcs, arcs_of
from ...terms import Array
from .part import Part


class Crossing:
    """Numbers of values (n, d) that cross between two parts, and the buffer in which they do: whole rows, or where a
    mask ``coupled`` (rows, d) is given some entries of them."""

    def __init__(self, rows: Array, coupled: Array | None, d: int) -> None:
        self.by_rows = coupled is None
        self.places = rows if coupled is None else (rows[:, None] * d + np.arange(d))[coupled]
        self.buffer = np.empty((len(rows), d) if coupled is None else len(self.places))

    def load(self, values: Array) -> None:
        # the mode "raise" would copy the buffer
        np.take(self._seen(values), self.places, axis=0, out=self.buffer, mode="clip")

    def unload(self, values: Array) -> None:
        self._seen(values)[self.places] = self.buffer

    def _seen(self, values: Array) -> Array:
        return values if self.by_rows else values.reshape(-1)


@dataclass(frozen=True)
class Ends:
    """Edges of a block that a part shares with another: its own ends, and those of the other part, as rows of values
    per end (those of tails above those of heads)."""

    block: int
    own: Array
    other: Array


@dataclass(frozen=True)
class Neighbour:
    """Another part. ``arcs`` and ``back`` are the arcs to it and from it, as places in those of the view; ``out`` and
    ``into`` the own nodes that it has arcs from, and its nodes that arcs come from, in order of their numbers;
    ``coupled`` (rows, d) which coordinates of them some arc couples, None where it is all."""

    number: int
    arcs: Array
    back: Array
    out: Array
    into: Array
    coupled: Array | None
    coupled_back: Array | None
    ends: tuple[Ends, ...]


def neighbours_of(part: Part, owner: Array) -> tuple[Neighbour, ...]:
    """By their numbers; ``owner`` says to which part each node of this one's form belongs."""
    arcs, own = arcs_of(part.form), part.whole.own
    out = own[arcs.source] & ~own[arcs.target]
    found: list[Neighbour] = []
    for number in np.unique(owner[~own]).tolist():
        there = np.flatnonzero(out & (owner[arcs.target] == number))
        back = (there + arcs.pairs) % (2 * arcs.pairs)
        ends = [_ends(part, owner, k, number) for k, edge in enumerate(part.form.edges) if not edge.ground]
        found.append(
            Neighbour(
                number,
                there,
                back,
                np.unique(arcs.source[there]),
                np.unique(arcs.target[there]),
                _coupled(arcs, there, arcs.source),
                _coupled(arcs, back, arcs.source),
                tuple(each for each in ends if len(each.own)),
            )
        )
    return tuple(found)


def _coupled(arcs: Arcs, some: Array, node: Array) -> Array | None:
    """Which coordinates of each sending node some of the arcs couple; None where it is all."""
    each = arcs.coupled[some % arcs.pairs]
    if each.all():
        return None
    nodes, place = np.unique(node[some], return_inverse=True)
    mask = np.zeros((len(nodes), each.shape[1]), dtype=bool)
    np.logical_or.at(mask, place, each)
    return mask


def _ends(part: Part, owner: Array, k: int, number: int) -> Ends:
    edge, own = part.form.edges[k], part.whole.own
    m = len(edge.tail)
    ends = np.concatenate([edge.tail, edge.head])
    across = np.roll(ends, m)
    mine = np.flatnonzero(own[ends] & (owner[across] == number) & ~own[across])
    order = np.argsort(mine % m, kind="stable")  # edge by edge, as the other part has them, too
    mine = mine[order]
    return Ends(k, mine, (mine + m) % (2 * m))
