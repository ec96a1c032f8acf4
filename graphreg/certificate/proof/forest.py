"""Which coordinates of which nodes are tied by flows that may be moved, and trees along which they are moved.

The vertices are (node, column), numbered ``node * d + column``, and the ground, ``n * d``. An edge e with room is a
link between the two vertices of each of its columns. What is not tied to the ground falls into groups: moving flows
cannot change the total of a group, prices can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import Form
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
    ground = form.n * form.d
    parent = list(range(ground + 1))

    def find(v: int) -> int:
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    trees: list[list[Link]] = [[] for _ in range(ground + 1)]
    for link in _links(form, rooms, least):
        a, b = find(link.tail), find(link.head)
        if a != b:
            parent[a] = b
            trees[link.tail].append(link)
            trees[link.head].append(link)
    root = find(ground)
    numbers: dict[int, int] = {}
    group = np.array([-1 if (r := find(v)) == root else numbers.setdefault(r, len(numbers)) for v in range(ground)])
    return Forest(trees, group, len(numbers))


def _links(form: Form, rooms: list[Array], least: float) -> list[Link]:
    d, ground, found = form.d, form.n * form.d, []
    sizes: list[Array] = []
    for m, (edge, given) in enumerate(zip(form.edges, rooms, strict=True)):
        columns = edge.columns(d)
        room = np.broadcast_to(given, (len(edge.tail), len(columns)))
        e, p = np.nonzero(room > least)
        tail = edge.tail[e] * d + columns[p]
        head = np.where(edge.head[e] < 0, ground, edge.head[e] * d + columns[p])
        rows = zip(e.tolist(), p.tolist(), tail.tolist(), head.tolist(), strict=True)
        found += [Link(m, *row) for row in rows]
        sizes.append(room[e, p])
    order = np.argsort(-np.concatenate(sizes), kind="stable") if sizes else []
    return [found[k] for k in order]
