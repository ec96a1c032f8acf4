"""Edges between a part and the others: what their flows take from the part's nodes, and which of them may give way.

Flows between parts are held as they are, where what a part has can answer for its own nodes. Where it cannot (as at a
node without data all of whose neighbours are elsewhere), flows on some edges to others that can may move: they are a
way to the ground for the part, and the other part takes what they turn out to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ...certificate import MORE, Pair, product, sums
from ...form import EdgeBlock
from ...terms import TO_GROUND, Array, Selection
from .engine import PartEngine
from .part import Part, SharedRows

FAR = 1e9  # the depth of what no way leads to


@dataclass(frozen=True)
class Cut:
    """The edges of a block that lead to other parts: their rows, their own ends (among the part's own nodes), the parts
    of the other ends, and 1 where the own ends are tails, else -1. Of rows that are no edges some own end, -1 for no
    part alone, and 1 where the part speaks for them. ``K`` is what all see of the own nodes, (rows k, n d)."""

    edge: EdgeBlock
    rows: Array
    own: Array
    owner: Array
    sign: Array
    K: sp.csr_array

    @staticmethod
    def of(edge: EdgeBlock, rows: Array, owner: Array, place: Array, d: int) -> Cut:
        """Of these rows of a block; see `Border.of`."""
        part, own = edge.part(rows), np.flatnonzero(place >= 0)
        K = sp.csr_array(part.map.flat(d)[:, (own[:, None] * d + np.arange(d)).ravel()])
        if edge.map.edges is None:
            first = K.indices[K.indptr[: -1 : edge.map.width(d)]] // d
            mine = place[part.map.owner] >= 0
            return Cut(edge, rows, first, np.full(len(rows), -1), np.where(mine, 1.0, -1.0), K)
        tails = place[part.tail] >= 0
        mine, far = (np.where(each, part.tail, part.head) for each in (tails, ~tails))
        return Cut(edge, rows, place[mine], owner[far], np.where(tails, 1.0, -1.0), K)


@dataclass(frozen=True)
class Border:
    """The border of one part, whose own nodes are ``own`` among those of its form."""

    engine: PartEngine
    own: Array
    cuts: tuple[Cut, ...]

    @staticmethod
    def of(engine: PartEngine, owner: Array, place: Array, inner: Sequence[Array]) -> Border:
        """``place`` says where each node stands among the own ones, -1 if it is another's, and ``inner`` which edges of
        each block lead to no other part."""
        form = engine.part.form
        each = zip(form.edges, inner, strict=True)
        cuts = (Cut.of(edge, np.flatnonzero(~inside), owner, place, form.d) for edge, inside in each)
        return Border(engine, np.flatnonzero(engine.part.whole.own), tuple(cuts))

    @property
    def part(self) -> Part:
        return self.engine.part

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.own), self.part.form.d

    def adjoint(self, flows: Sequence[Array], spread: Sequence[Array], but: Sequence[Array]) -> Pair:
        """The sums that flows (m, k) per block take from the own nodes, (n, d), each within its spread; the rows
        ``but`` (masks over the cut edges) are left out."""
        taken = list[tuple[Array, Pair]]()
        for cut, u, around, out in zip(self.cuts, flows, spread, but, strict=True):
            line, place = cut.K.tocoo().coords
            some = np.repeat(~out, u.shape[1])[line]
            line, place, x = line[some], place[some], cut.K.data[some]
            high, low, error = product(x, u[cut.rows].ravel()[line])
            taken.append((place, Pair(high, low, error + np.abs(x) * around[cut.rows].ravel()[line] * MORE)))
        found = sums(taken, int(np.prod(self.shape)))
        return Pair(*(x.reshape(self.shape) for x in (found.high, found.low, found.error)))

    def received(self, values: Sequence[Array]) -> list[Array]:
        """The values (m, k) per block that the parts at the other ends of the cut edges have there, in their rows."""
        parts = sorted({*np.concatenate([np.zeros(0, dtype=int), *(cut.owner for cut in self.cuts)]).tolist()} - {-1})
        found = [np.zeros((len(v), v.shape[1])) for v in values]
        rows = [[(j, cut.rows[cut.owner == k]) for j, cut in enumerate(self.cuts)] for k in parts]
        shared = {k: [SharedRows(j, some, some) for j, some in each] for k, each in zip(parts, rows, strict=True)}
        self.engine.passed(values, shared, found)
        return found

    def ways(self, lost: Array, flows: Sequence[Array], component: Array) -> tuple[list[Array], int]:
        """The cut edges that are ways out of components that are ``lost`` (a mask), and over how many of them the
        farthest goes. A way leads to a component nearer to one that is not lost; where none is there, there is no
        way."""
        rooms = [_roomy(cut, u) for cut, u in zip(self.cuts, flows, strict=True)]
        depth, m = np.where(lost, FAR, 0.0), [cut.edge.count for cut in self.cuts]
        while True:
            at_ends = [np.zeros((k, 1)) for k in m]
            for cut, out in zip(self.cuts, at_ends, strict=True):
                out[cut.rows, 0] = depth[component[cut.own]]
            there = [each[cut.rows, 0] for cut, each in zip(self.cuts, self.received(at_ends), strict=True)]
            found = depth.copy()
            for cut, room, far in zip(self.cuts, rooms, there, strict=True):
                np.minimum.at(found, component[cut.own[room]], far[room] + 1.0)
            found = np.where(found < FAR, found, FAR)
            moved = bool((found < depth).any())
            depth = found
            if not self.engine.wire.largest(np.array([float(moved)]))[0]:
                break
        here = [depth[component[cut.own]] for cut in self.cuts]
        ways = [room & (far < mine) for room, far, mine in zip(rooms, there, here, strict=True)]
        farthest = float(depth[depth < FAR].max(initial=0.0))
        return ways, int(self.engine.wire.largest(np.array([farthest]))[0])

    def to_the_ground(self, cut: Cut, way: Array) -> EdgeBlock:
        """The edges of a mask as edges to the ground, whose flows are those that leave the own nodes."""
        edge = cut.edge.part(cut.rows[way])
        center = None if edge.center is None else cut.sign[way, None] * edge.center
        ends = Selection(cut.own[way], edge.features, self.shape[0])
        return replace(edge, map=ends, center=center, role=TO_GROUND)


def _roomy(cut: Cut, u: Array) -> Array:
    if cut.edge.map.edges is None:  # their flows act at more than two nodes
        return np.zeros(len(cut.rows), dtype=bool)
    c = cut.edge.weight[cut.rows, None]
    return np.asarray((cut.edge.penalty.domain.slacks(u[cut.rows] / c) > 0.0).any(axis=1)).reshape(len(cut.rows))
