"""The two verbs between parts: rows of nodes on the border are sent, and sums do not depend on the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...network import AbstractPartEngine, Arcs, Ledger, arcs_of, joined, magnitude, pieces
from ...terms import Array
from .part import Part, SharedRows, lines_of, message_of, shared_ends, shared_flows, take
from .wire import Wire


@dataclass(frozen=True)
class Side:
    """One way between two parts: ``arcs`` as places in those of the view, the nodes that they leave, ``rows`` in order
    of their numbers, and ``coupled`` (rows, d), which coordinates of these some arc couples, None where it is all."""

    arcs: Array
    rows: Array
    coupled: Array | None

    @staticmethod
    def of(arcs: Arcs, some: Array) -> Side:
        """That of some arcs."""
        rows, place = np.unique(arcs.source[some], return_inverse=True)
        each = arcs.coupled[some]
        if each.all():
            return Side(some, rows, None)
        mask = np.zeros((len(rows), each.shape[1]), dtype=bool)
        np.logical_or.at(mask, place, each)
        return Side(some, rows, mask)

    def used(self, source: Array, along: Array | None, width: int, parameters: bool) -> tuple[Array, Array]:
        """The nodes that some of the arcs leave, those that a mask says, and which of so many numbers of each cross."""
        coupled = self.coupled if parameters else None
        mask = np.ones((len(self.rows), width), dtype=bool) if coupled is None else coupled
        some = slice(None) if along is None else np.isin(self.rows, source[self.arcs[along[self.arcs]]])
        return self.rows[some], mask[some]


class Crossing:
    """Numbers of values (n, d) that cross between two parts, and the buffer in which they do: whole rows, or where a
    mask ``coupled`` (rows, d) is given some entries of them."""

    def __init__(self, side: Side, d: int) -> None:
        rows, coupled = side.rows, side.coupled
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
class Neighbour:
    """Another part, and the ways to it and back."""

    number: int
    there: Side
    back: Side
    ends: list[SharedRows]  # see `shared_ends`


def neighbours_of(part: Part, owner: Array) -> tuple[Neighbour, ...]:
    """The neighbours by their numbers; ``owner`` says to which part each node of this one's form belongs."""
    arcs, own = arcs_of(part.form), part.whole.own
    out = own[arcs.source] & ~own[arcs.target]
    found: list[Neighbour] = []
    for number in np.unique(owner[~own]).tolist():
        there = np.flatnonzero(out & (owner[arcs.target] == number))
        back = Side.of(arcs, (there + arcs.pairs) % (2 * arcs.pairs))
        found.append(Neighbour(number, Side.of(arcs, there), back, shared_ends(part, owner, number)))
    return tuple(found)


class PartEngine(AbstractPartEngine):
    """The engine of one part; see `graphreg.network.engine.Engine`.

    The ledger holds what its nodes would send as isolated nodes, so that all parts together have that of any engine.
    Where ``exchange`` is along some arcs alone, a part is sent the rows of nodes that send to one of its own.
    """

    def __init__(self, part: Part, owner: Array, wire: Wire) -> None:
        self.part, self.wire = part, wire
        self.ledger = Ledger(arcs_of(part.form), part.form.labels)
        self.neighbours = neighbours_of(part, owner)
        self.shared = shared_flows(part, owner)
        self.crossed: dict[int, tuple[int, int]] = {}  # messages and numbers to other parts

    def exchange(
        self, values: Array, along: Array | None = None, *, parameters: bool = True, purpose: str = "method"
    ) -> Array:
        if along is None and parameters:
            whole = np.where(self.part.whole.own[:, None], values, np.nan)
            self._cross(whole, purpose)
            return whole
        self.ledger.exchange(purpose, None if parameters else values.shape[1], along)
        out, sent, expected = np.full(values.shape, np.nan), dict[int, Array](), dict[int, tuple[Array, Array]]()
        out[self.part.whole.own] = values[self.part.whole.own]
        source, width = arcs_of(self.part.form).source, values.shape[1]
        for other in self.neighbours:
            rows, mask = other.there.used(source, along, width, parameters)
            sent[other.number] = values[rows][mask]
            expected[other.number] = other.back.used(source, along, width, parameters)
        got = self.swapped(sent, {number: np.empty(int(into.sum())) for number, (_, into) in expected.items()})
        for number, (hear, into) in expected.items():
            rows = np.full((len(hear), width), np.nan)
            rows[into] = got[number]
            out[hear] = rows
        return out

    def fill(self, values: Array) -> None:
        self._cross(values, "method")

    def _cross(self, values: Array, purpose: str) -> None:
        """Write the rows of neighbours into values (n, d), as far as edges couple them."""
        self.ledger.exchange(purpose)
        for crossing in self._out.values():
            crossing.load(values)
        self.swapped(*({k: each.buffer for k, each in way.items()} for way in (self._out, self._into)))
        for crossing in self._into.values():
            crossing.unload(values)

    @cached_property
    def _out(self) -> dict[int, Crossing]:
        return {each.number: Crossing(each.there, self.part.form.d) for each in self.neighbours}

    @cached_property
    def _into(self) -> dict[int, Crossing]:
        return {each.number: Crossing(each.back, self.part.form.d) for each in self.neighbours}

    def everywhere(self, here: bool) -> bool:
        return not self.wire.largest(np.array([0.0 if here else 1.0]))[0]

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        self.ledger.swap(values, toward, along)
        out = tuple(np.roll(each, len(each) // 2, axis=0) for each in values)
        shared = dict[int, list[SharedRows]]()
        for other in self.neighbours:
            shared[other.number] = []
            for e in other.ends:
                out[e.block][e.own] = np.nan
                there, back = (along[toward[e.block][ends]] for ends in (e.own, e.other))
                shared[other.number].append(SharedRows(e.block, e.own[there], e.own[back]))
        self.passed(values, shared, out)
        return out

    def send_back(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        self.ledger.send_back()
        self.passed(lines_of(flows), self.shared, lines_of(flows))
        return flows

    def passed(self, values: Sequence[Array], shared: Mapping[int, list[SharedRows]], out: Sequence[Array]) -> None:
        """Write what other parts send of their values into the rows that they share."""
        sent = {k: message_of(values, each) for k, each in shared.items()}
        sizes = {k: sum(len(e.other) * out[e.block].shape[1] for e in each) for k, each in shared.items()}
        for k, message in self.swapped(sent, {k: np.empty(size) for k, size in sizes.items()}).items():
            take(message, out, shared[k])

    def reduce(self, values: Array, purpose: str = "adaptation") -> Array:
        own = values[self.part.whole.own]
        self.ledger.sum(purpose, int(np.prod(values.shape[1:])))
        most = self.wire.largest(magnitude(own))
        if not np.isfinite(most).all():
            return self.wire.total(own.sum(axis=0))
        return joined(self.wire.total(pieces(own, most, self.part.whole.n)), most)

    def swapped(self, sent: Mapping[int, Array], into: Mapping[int, Array]) -> Mapping[int, Array]:
        """The arrays ``into``, with what other parts send; what goes to them is counted."""
        for number, values in sent.items():
            if values.size:
                messages, numbers = self.crossed.get(number, (0, 0))
                self.crossed[number] = messages + 1, numbers + values.size
        self.wire.swap(sent, into)
        return into

    def away(self, nodes: Array) -> None:
        self.ledger.away(nodes & self.part.whole.own)
