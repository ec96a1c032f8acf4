"""Which coordinates of which nodes are tied by flows that may be moved, and trees along which they are moved.

The vertices are (node, column), numbered ``node * d + column``, and the ground, ``n * d``. An edge e with room is a
link between the two vertices of each of its columns. What is not tied to the ground falls into groups: moving flows
cannot change the total of a group, prices can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import EdgeBlock, Form
from ...terms import Array


@dataclass(frozen=True)
class Link:
    """One column of one edge: (block, edge, place in the block's columns), and its ends, as the flow runs."""

    block: int
    edge: int
    place: int
    tail: int
    head: int


@dataclass(frozen=True)
class Forest:
    """Spanning trees of the links with most room; ``group`` (n d,) is -1 where the ground is tied to."""

    links: list[list[Link]]  # of the trees, at each vertex
    group: Array
    count: int


def forest(form: Form, rooms: list[Array], least: float) -> Forest:
    """The trees of the links whose room is above ``least``, those with most room first (Kruskal)."""
    from networkx.utils import UnionFind

    ground = form.n * form.d
    joined, trees = UnionFind(range(ground + 1)), [list[Link]() for _ in range(ground + 1)]
    for link in _links(form, rooms, least):
        if joined[link.tail] != joined[link.head]:
            joined.union(link.tail, link.head)
            trees[link.tail].append(link)
            trees[link.head].append(link)
    group, count = numbered([joined[v] for v in range(ground + 1)])
    return Forest(trees, np.array(group), count)


def _links(form: Form, rooms: list[Array], least: float) -> list[Link]:
    found: list[Link] = []
    sizes: list[Array] = []
    for m, (edge, given) in enumerate(zip(form.edges, rooms, strict=True)):
        room = np.broadcast_to(given, (len(edge.tail), form.width(edge)))
        chosen = room > least
        ends = zip(*np.nonzero(chosen), *ends_of(form, edge, chosen), strict=True)
        found += [Link(m, *map(int, each)) for each in ends]
        sizes.append(room[chosen])
    order = np.argsort(-np.concatenate(sizes), kind="stable") if sizes else []
    return [found[k] for k in order]


def ends_of(form: Form, edge: EdgeBlock, chosen: Array) -> tuple[Array, Array]:
    """The vertices between which the chosen entries (m, k) of a block's flows run."""
    e, p = np.nonzero(chosen)
    f = edge.columns(form.d)[p]
    return edge.tail[e] * form.d + f, np.where(edge.head[e] < 0, form.n * form.d, edge.head[e] * form.d + f)


def numbered(label: list[int]) -> tuple[list[int], int]:
    """Groups 0, 1, ... of all vertices but the ground, which is the last, by their labels; -1 where that is the
    ground's. And how many there are."""
    numbers: dict[int, int] = {}
    group = [-1 if g == label[-1] else numbers.setdefault(g, len(numbers)) for g in label[:-1]]
    return group, len(numbers)
