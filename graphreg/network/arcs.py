"""The arcs of a problem: across each pair of neighbours one each way; what may be sent, and how much at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from ..base.csgraph import breadth_first_order, connected_components
from ..base.display import Brief
from ..form import Form
from ..terms import Array


@dataclass(frozen=True, repr=False)
class Arcs(Brief):
    """Arc k < p leads from the first to the second node of pair k, arc p + k back.

    Attributes
    ----------
    n : int
        The number of nodes.
    source, target : (2p,) arrays of 32-bit integers
    coupled : (p, d) bool
        The coordinates that some edge between the pair couples: what a message of parameters holds.
    block : (p,) array of small integers
        The first of the blocks of edges between nodes that joins the pair.
    links : tuple of str
        What kind of link each of these blocks is: "graph", "within clusters", "between clusters" or "to the server".
    """

    n: int
    source: Array
    target: Array
    coupled: Array
    block: Array
    links: tuple[str, ...]

    @property
    def pairs(self) -> int:
        return len(self.coupled)

    @cached_property
    def level(self) -> tuple[str, ...]:
        """The kind of link that each pair is, (p,)."""
        return tuple(map(self.links.__getitem__, self.block.tolist()))

    @cached_property
    def numbers(self) -> Array:
        """The number of entries of a message of parameters, (2p,)."""
        if self.coupled.strides[0] == 0:  # every pair couples the same
            return np.broadcast_to(self.coupled[:1].sum(axis=1), 2 * self.pairs)
        return np.tile(self.coupled.sum(axis=1), 2)

    @cached_property
    def all_numbers(self) -> int:
        """The number of entries of a message along every arc, in all."""
        return int(self.numbers.sum())

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
    blocks = [edge for edge in form.edges if len(edge.map.pairs[0])]
    key = [tail * np.int64(form.n) + head for tail, head in (edge.map.pairs for edge in blocks)]
    sizes = list(map(len, key))
    every = np.concatenate(key) if key else np.zeros(0, dtype=np.int64)
    owner, place = np.repeat(np.arange(len(blocks), dtype=np.int32), sizes), None
    pairs = every
    if not (every[1:] > every[:-1]).all():  # not in order, as those of most graphs are
        pairs, first, place = np.unique(every, return_index=True, return_inverse=True)
        owner = owner[first]
    if all(edge.map.width(form.d) == form.d for edge in blocks):
        coupled = np.broadcast_to(True, (len(pairs), form.d))
    else:
        coupled = np.zeros((len(pairs), form.d), dtype=bool)
        place = np.arange(len(pairs)) if place is None else place
        for edge, rows in zip(blocks, np.split(place, np.cumsum(sizes)), strict=False):  # behind the last are none
            coupled[np.ix_(rows, edge.map.columns(form.d))] = True
    ends = np.empty((2, 2 * len(pairs)), dtype=np.int32)
    np.divmod(pairs, form.n, out=(ends[0, : len(pairs)], ends[1, : len(pairs)]), casting="unsafe")  # nodes are fewer
    ends[0, len(pairs) :], ends[1, len(pairs) :] = ends[1, : len(pairs)], ends[0, : len(pairs)]
    arcs = Arcs(form.n, ends[0], ends[1], coupled, owner, tuple(edge.role.link for edge in blocks))
    vars(arcs)["components"] = form.n_components
    return arcs


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
