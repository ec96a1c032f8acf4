"""The arcs of a problem: across each pair of neighbours one each way; what may be sent, and how much at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import numpy as np
import scipy.sparse as sp

from ..base.csgraph import breadth_first_order, connected_components
from ..base.display import Brief
from ..form import EdgeBlock, Form, SampleBlock
from ..terms import GROUND, IN_ROWS, Array, Matrix


@dataclass(frozen=True, repr=False)
class Arcs(Brief):
    """Arc k < p leads from the first to the second node of pair k, arc p + k back.

    Attributes
    ----------
    n : int
        The number of nodes.
    source, target : (2p,) arrays of 32-bit integers
    coupled : (2p, d) bool
        The coordinates that the target needs of the source, for an edge between them or a row: what a message of
        parameters holds; none is sent where there are none.
    block : (p,) array of small integers
        The first of the blocks of edges between nodes that joins the pair.
    links : tuple of str
        What kind of link each of these blocks is: "graph", "within clusters", "between clusters", "to the server" or
        "rows".
    returned : (2p,) array of integers, optional
        How many numbers of the flows that the source alone keeps the target needs: what a message back holds, from the
        owners of rows to their ends. None where there are no such rows.
    """

    n: int
    source: Array
    target: Array
    coupled: Array
    block: Array
    links: tuple[str, ...]
    returned: Array | None = None

    @property
    def pairs(self) -> int:
        return len(self.block)

    @cached_property
    def level(self) -> tuple[str, ...]:
        """The kind of link that each pair is, (p,)."""
        return tuple(map(self.links.__getitem__, self.block.tolist()))

    @cached_property
    def numbers(self) -> Array:
        """The number of entries of a message of parameters, (2p,)."""
        if self.coupled.strides[0] == 0:  # every pair couples the same
            return np.broadcast_to(self.coupled[:1].sum(axis=1), 2 * self.pairs)
        return self.coupled.sum(axis=1)

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """How many messages an exchange of parameters takes, and of how many entries in all; the same of flows that
        come back."""
        returned = np.zeros(1, dtype=np.int64) if self.returned is None else self.returned
        one, two = ((int(np.count_nonzero(each)), int(each.sum())) for each in (self.numbers, returned))
        return one, two

    @cached_property
    def components(self) -> int:
        return int(connected_components(self._links(), directed=False)[0])

    @cached_property
    def parent(self) -> Array:
        """The parent of each node in a spanning forest, of breadth first from the first node of each component; -1 at
        roots. Sums go up and down it."""
        links = self._links()
        count, member = connected_components(links, directed=False)
        out = np.full(self.n, -1)
        for root in np.unique(member, return_index=True)[1][:count]:
            order, before = breadth_first_order(links, int(root), directed=False)
            out[order[1:]] = before[order[1:]]
        return out

    @cached_property
    def forest(self) -> Array:
        """The arcs of the spanning forest, both ways, (2p,) bool."""
        p = self.parent
        return (p[self.source] == self.target) | (p[self.target] == self.source)

    def _links(self) -> sp.csr_array:
        return sp.csr_array((np.ones(len(self.source)), (self.source, self.target)), shape=(self.n, self.n))


def arcs_of(form: Form) -> Arcs:
    """The arcs of all edges between two nodes; several edges of a pair share a message, of the union of their
    coordinates."""
    return form.once("arcs", None, partial(_arcs_of, form))


def _arcs_of(form: Form) -> Arcs:
    blocks, keys = list[EdgeBlock | SampleBlock](), list[Array]()
    for edge in (*form.edges, *form.beside):
        rows = edge.map.edges is None
        tail, head = np.sort(cast(Matrix, edge.map).ways[:2], axis=0) if rows else edge.map.pairs
        key = (tail * np.int64(form.n) + head)[tail != head if rows else slice(None)]
        if len(key):
            blocks.append(edge)
            keys.append(key)
    sizes = list(map(len, keys))
    every = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    owner, place = np.repeat(np.arange(len(blocks), dtype=np.int32), sizes), None
    pairs = every
    if not (every[1:] > every[:-1]).all():  # not in order, as those of most graphs are
        pairs, first, place = np.unique(every, return_index=True, return_inverse=True)
        owner = owner[first]
    p, returned = len(pairs), np.zeros(1, dtype=np.int64)
    if all(edge.map.edges is not None and edge.map.width(form.d) == form.d for edge in blocks):
        coupled = np.broadcast_to(True, (2 * p, form.d))
    else:
        coupled = np.zeros((2 * p, form.d), dtype=bool)
        place = np.arange(p) if place is None else place
        for edge, rows in zip(blocks, np.split(place, np.cumsum(sizes)), strict=False):  # behind the last are none
            if edge.map.edges is None:
                returned = returned + _row_arcs(cast(Matrix, edge.map), rows, coupled)
            else:
                coupled[np.ix_(np.append(rows, rows + p), edge.map.columns(form.d))] = True
    ends = np.empty((2, 2 * p), dtype=np.int32)
    np.divmod(pairs, form.n, out=(ends[0, :p], ends[1, :p]), casting="unsafe")  # nodes are fewer
    ends[0, p:], ends[1, p:] = ends[1, :p], ends[0, :p]
    links = tuple(edge.role.link if isinstance(edge, EdgeBlock) else IN_ROWS.link for edge in blocks)
    arcs = Arcs(form.n, ends[0], ends[1], coupled, owner, links, returned if returned.any() else None)
    vars(arcs)["components"] = form.n_components
    return arcs


def _row_arcs(rows: Matrix, pair: Array, coupled: Array) -> Array:
    """How many numbers of flows come back along each arc; ``pair`` has the pair of each way from node to node that rows
    make. Notes what they couple, too."""
    source, target, j, line = rows.ways
    source, target, j, line = (each[source != target] for each in (source, target, j, line))
    p = len(coupled) // 2
    coupled[np.where(source < target, pair, pair + p), j] = True
    alone = rows.alone[line // rows.k] != GROUND
    back, line = np.where(source < target, pair + p, pair)[alone], line[alone]
    new = np.append(True, (back[1:] != back[:-1]) | (line[1:] != line[:-1]))[: len(back)]  # another coordinate is not
    return np.bincount(back[new], minlength=2 * p)


def ends_of(form: Form, arcs: Arcs) -> tuple[Array, ...]:
    """Per edge block the arcs from the tails to the heads, and below them those back, (2m,); none to the ground."""
    p, out = arcs.pairs, list[Array]()
    known = arcs.source[:p] * np.int64(form.n) + arcs.target[:p]  # in order, see `arcs_of`
    for edge in form.edges:
        if not edge.ground and len(edge.tail) == p and (edge.tail * np.int64(form.n) + edge.head == known).all():
            out.append(np.arange(2 * p))
            continue
        nodes = slice(0, 0) if edge.ground else slice(None)
        pair = np.searchsorted(known, edge.tail[nodes] * np.int64(form.n) + edge.head[nodes])
        out.append(np.concatenate([pair, pair + p]))
    return tuple(out)
