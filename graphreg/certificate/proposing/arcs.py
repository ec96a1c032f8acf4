"""Arcs: an edge on one coordinate. Which may move, the groups that they join, and a forest along which flows move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import breadth_first_order, dijkstra
from ...inputs import components_of
from ...terms import Array
from ..kernel.system import System

LEAST_ROOM = 1e-15  # of the largest number of its coordinate: an arc with less room keeps its flow
NARROW = 1e3  # times that: arcs with less room than this are gone through where there is no other way
FAR = 1e6  # the length of an arc without room, where one with room has 1


@dataclass(frozen=True)
class Arcs:
    """The edges of all blocks but those stated by roots, coordinate by coordinate, and what of other rows is w_ij or a
    difference of two such numbers. Vertices are i d + j; the ground is ``ground`` = n d.

    ``ends`` are the tail and the head of every arc or, where edges have one for each of several coordinates, in order,
    of the first of these ``copies``.
    """

    variable: Array  # the number of each among the variables of the system
    ends: tuple[Array, Array]
    ground: int
    d: int
    copies: int = 1

    @staticmethod
    def of(system: System) -> Arcs:
        n, d = system.form.shape
        each = [(np.zeros(0, dtype=np.int64),) * 3]
        flows = [one for one in system.flows if one.size and (one.K is not None or one.mix is None)]
        whole = d > 1 and all(one.K is None and np.array_equal(one.at, np.arange(d)) for one in flows)
        for one in flows:
            if one.K is not None:
                some, *ends = differences(one.K)
            else:
                at = one.at[:1] if whole else one.at
                ends = [(end[:, None].astype(np.int64) * d + at).ravel() for end in one.edge.ends]
                some = np.arange(one.size)
            each.append((one.first + some, ends[0], ends[1] if len(ends) == 2 else np.full(len(ends[0]), n * d)))
        variable, tail, head = (np.concatenate(x) for x in zip(*each, strict=True))
        return Arcs(variable, (tail, head), n * d, d, d if whole and flows else 1)

    @cached_property
    def tail(self) -> Array:
        return self._of_all(self.ends[0])

    @cached_property
    def head(self) -> Array:
        return self._of_all(self.ends[1])

    def _of_all(self, end: Array) -> Array:
        return (end[:, None] + np.where(end == self.ground, 0, 1)[:, None] * np.arange(self.copies)).ravel()

    def starts(self, arc: Array, vertex: Array) -> Array:
        """Whether arcs begin at these vertices."""
        return self.ends[0][arc // self.copies] + arc % self.copies == vertex


def differences(K: Any) -> tuple[Array, Array, Array]:
    """The rows of K that are a number or a difference of two, and their ends."""
    count, total, size = np.diff(K.indptr), K.sum(axis=1), abs(K).sum(axis=1)
    row = np.flatnonzero(((count == 1) & (total == 1.0)) | ((count == 2) & (total == 0.0) & (size == 2.0)))
    one, other = K.indptr[row], K.indptr[row + 1] - 1
    falls = K.data[one] > 0.0
    tail, head = (K.indices[np.where(x, one, other)].astype(np.int64) for x in (falls, ~falls))
    return row, tail, np.where(count[row] == 1, K.shape[1], head)


@dataclass(frozen=True)
class Forest:
    """Groups of vertices that movable arcs join, and a tree in each: of the ground's group from the ground, of every
    other from a hub.

    Attributes
    ----------
    group : (n d + 1,) array
        The number of each vertex' group.
    parent, arc : (n d,) arrays
        The next vertex towards the root, and the arc that leads there; roots have themselves, and -1.
    jumps : tuple of arrays
        The ancestors 1, 2, 4, ... steps up, of vertices or, where all coordinates are alike, of nodes.
    copies : int
        How many vertices each of these stands for.
    """

    group: Array
    count: int
    grounded: int
    parent: Array
    arc: Array
    movable: Array
    jumps: tuple[Array, ...]
    copies: int

    @cached_property
    def depth(self) -> Array:
        """How many arcs lie between each vertex and its root."""
        n = len(self.parent) // self.copies
        depth, at = np.zeros(n, dtype=int), np.arange(n)
        for k, up in reversed([*enumerate(self.jumps)]):  # 2^k arcs at a time
            ancestor = up[at]
            further = ancestor < n
            depth[further] += 2**k
            at = np.where(further, ancestor, at)
        return np.repeat(depth, self.copies)

    def gather(self, values: Array) -> Array:
        """The sum of values >= 0 (n d,) over the subtree of each vertex, by doubling of the distance looked down."""
        d = self.copies
        total = np.append(values, np.zeros(d))
        for place in self.steps:
            total += np.bincount(place, total, len(total) + d)[:-d]
        return total[:-d]

    @property
    def steps(self) -> Iterator[Array]:
        """The ancestors 1, 2, 4, ... steps up of all vertices and the ground; no vertex where there is none."""
        for up in self.jumps:
            yield up if self.copies == 1 else (up[:, None] * self.copies + np.arange(self.copies)).ravel()


def forest(arcs: Arcs, room: Array, largest: Array, held: Array) -> Forest:
    """The forest of the arcs with room but those that are held, gone through by breadth, or along the roomiest ways
    where these are needed."""
    even = arcs.copies > 1 and bool((room.reshape(-1, arcs.d) == room[:: arcs.d, None]).all())
    alike = even and largest.max() <= NARROW * largest.min()  # one forest serves all coordinates
    need = LEAST_ROOM * (largest.max() if alike or not largest.any() else largest[arcs.tail % arcs.d])
    movable: Array = (room > need) & (room > 0.0) & ~held
    wide: Array = movable & (room > NARROW * need)
    if arcs.copies > 1:
        by_edge = movable.reshape(-1, arcs.d), wide.reshape(-1, arcs.d)
        d, (tail, head) = arcs.d, arcs.ends
        nodes = Arcs(arcs.variable[::d], (tail // d, head // d), arcs.ground // d, 1)  # the edges themselves
        least: Array = np.asarray(by_edge[1].all(axis=1))
        most: Array = np.asarray(by_edge[0].any(axis=1))
        if all((each == each[:, :1]).all() for each in by_edge):  # all coordinates alike: one forest serves them all
            return _expanded(forest_of(nodes, by_edge[0][:, 0], by_edge[1][:, 0], room, need), arcs, movable)
        if _components(nodes, least)[0] == _components(nodes, most)[0]:  # they join the same nodes
            return _expanded(forest_of(nodes, least, least, room, need), arcs, movable)
    return forest_of(arcs, movable, wide, room, need)


def forest_of(arcs: Arcs, movable: Array, wide: Array, room: Array, need: Array | float) -> Forest:
    """The forest of the movable arcs, of wide ones alone where these suffice, else along the shortest ways: room, and
    how much is needed, may be those of all coordinates of an edge."""
    count, group = _components(arcs, movable)
    if np.array_equal(wide, movable) or _components(arcs, wide)[0] == count:
        return grown(arcs, np.flatnonzero(wide), None, group, movable)
    chosen = np.flatnonzero(movable)
    length = 1.0 + np.minimum(FAR, NARROW * need / np.maximum(room, 1e-300))
    return grown(arcs, chosen, length.reshape(len(movable), -1).max(axis=1)[chosen], group, movable)


def grown(arcs: Arcs, chosen: Array, length: Array | None, group: Array, movable: Array) -> Forest:
    """The forest of some arcs, by breadth or, where they have lengths, along the shortest ways."""
    parent, arc = _trees(arcs, chosen, length, group)
    count, grounded = int(group.max()) + 1, int(group[arcs.ground])
    return Forest(group, count, grounded, parent, arc, movable, _jumps(parent), 1)


def _expanded(nodes: Forest, arcs: Arcs, movable: Array) -> Forest:
    """The forest of the nodes, once for every coordinate."""
    d, n = arcs.d, arcs.ground // arcs.d
    each, grounded = np.arange(d), (nodes.count - 1) * d
    number = nodes.group[:n, None] - (nodes.group[:n, None] > nodes.grounded)  # without the ground's
    group = np.where(nodes.group[:n, None] == nodes.grounded, grounded, number * d + each)
    parent = np.where(nodes.parent[:, None] == n, arcs.ground, nodes.parent[:, None] * d + each).ravel()
    arc = np.where(nodes.arc[:, None] < 0, -1, nodes.arc[:, None] * d + each).ravel()
    whole = np.append(group.ravel(), grounded)
    return Forest(whole, grounded + 1, grounded, parent, arc, movable, nodes.jumps, d)


def _components(arcs: Arcs, chosen: Array) -> tuple[int, Array]:
    return components_of(arcs.tail[chosen], arcs.head[chosen], arcs.ground + 1)


def _trees(arcs: Arcs, chosen: Array, length: Array | None, group: Array) -> tuple[Array, Array]:
    """Parents and arcs; one search from the ground, which is tied to a hub of every other group for that."""
    size = arcs.ground + 1
    tail, head = arcs.tail[chosen], arcs.head[chosen]
    degree = np.bincount(tail, minlength=size) + np.bincount(head, minlength=size)
    order = np.lexsort((-degree, group))
    hubs = order[_changes(group[order])]
    hubs = hubs[group[hubs] != group[arcs.ground]]
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    key = low * size + high
    by_key = np.argsort(key, kind="stable") if length is None else np.lexsort((length, key))
    first = _changes(key[by_key])
    by_key = by_key[first]  # of several arcs between two vertices the shortest
    key = key[by_key]
    ends = np.append(low[by_key], hubs), np.append(high[by_key], np.full(len(hubs), arcs.ground))
    weights = np.ones(len(ends[0])) if length is None else np.append(length[by_key], np.full(len(hubs), 1e7))
    graph = sp.csr_array((weights, ends), shape=(size, size))
    if length is None:
        parent = breadth_first_order(graph, arcs.ground, directed=False)[1]
    else:
        parent = dijkstra(graph, directed=False, indices=arcs.ground, return_predecessors=True)[1]
    parent = parent[: arcs.ground].astype(np.int64)
    vertex = np.arange(arcs.ground)
    wanted = np.minimum(vertex, parent) * size + np.maximum(vertex, parent)
    arc = np.full(arcs.ground, -1)
    if len(key):
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        found = key[place] == wanted
        arc[found] = chosen[by_key[place[found]]]
    arc[hubs] = -1
    return np.where(arc < 0, vertex, parent), arc


def _changes(values: Array) -> Array:
    """Where sorted values differ from the one before."""
    out = np.ones(len(values), dtype=bool)
    out[1:] = values[1:] != values[:-1]
    return out


def _jumps(parent: Array) -> tuple[Array, ...]:
    """The ancestors 1, 2, 4, ... steps up, as long as there are any; a vertex beyond the last stands for none."""
    nobody = len(parent) + 1  # vertices, the ground, nobody
    up = np.append(np.where(parent == np.arange(len(parent)), nobody, parent), [nobody, nobody])
    out = []
    while (up[:-1] != nobody).any():
        out.append(up[:-1])
        up = up[up]
    return tuple(out)
