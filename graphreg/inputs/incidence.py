"""Edges as arrays of tails and heads: the difference operator K, connected components, and groups of rows.

(K w)_e = w_tail - w_head,    and (K w)_e = w_tail on an edge to the ground.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..csgraph import connected_components, narrow

Array = np.ndarray[Any, np.dtype[Any]]

GROUND = -1  # the head of an edge from a node to the ground
SMALL = 256  # nodes and edges up to which labels are passed along: what scipy does before it begins takes longer


def difference_matrix(tail: Array, head: Array, n_nodes: int) -> sp.csr_array:
    """The difference operator K of the edges, (m, n): row e has +1 at its tail and -1 at its head.

    Where ``head`` is ``GROUND`` the row has the +1 alone.
    """
    tail, head = np.asarray(tail, dtype=np.intp), np.asarray(head, dtype=np.intp)
    if len(head) and head.min() != GROUND:
        first = tail < head  # rows are sorted
        columns, signs = np.where(first, tail, head), np.where(first, 1.0, -1.0)
        entries = np.stack([signs, -signs], axis=1).ravel(), np.stack([columns, tail + head - columns], axis=1).ravel()
        return narrow(sp.csr_array((*entries, 2 * np.arange(len(tail) + 1)), shape=(len(tail), n_nodes)))
    edge = np.arange(len(tail))
    inner = np.flatnonzero(head != GROUND)
    rows, columns = np.concatenate([edge, inner]), np.concatenate([tail, head[inner]])
    signs = np.concatenate([np.ones(len(tail)), -np.ones(len(inner))])
    return narrow(sp.csr_array((signs, (rows, columns)), shape=(len(tail), n_nodes)))


def components_of(tail: Array, head: Array, n_nodes: int) -> tuple[int, Array]:
    """How many connected components the edges leave of the nodes, and the number of each node's, (n,)."""
    if len(tail) + n_nodes <= SMALL:
        return _passed_along(tail, head, n_nodes)
    links = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(n_nodes, n_nodes))
    return connected_components(links, directed=False)


def _passed_along(tail: Array, head: Array, n_nodes: int) -> tuple[int, Array]:
    """The same: every node takes the least number that it hears of, and then the number of whoever has that one."""
    least, before = np.arange(n_nodes), np.zeros(0)
    while not np.array_equal(least, before):
        before, lower = least, np.minimum(least[tail], least[head])
        least = least.copy()
        np.minimum.at(least, before[tail], lower)
        np.minimum.at(least, before[head], lower)
        least = least[least]
    first, member = np.unique(least, return_inverse=True)
    return len(first), member.astype(np.int32)


def groups_of(number: Array, count: int = 0) -> list[Array]:
    """The positions of each number 0, 1, ... (``count`` of them at least), in order."""
    ends = np.cumsum(np.bincount(number, minlength=count))
    return np.split(np.argsort(number, kind="stable"), ends[:-1]) if len(ends) else []


def means_of(number: Array, values: Array) -> Array:
    """The mean of the rows with the same number, at each of them."""
    sizes = np.bincount(number)
    total = np.zeros((len(sizes), values.shape[1]))
    np.add.at(total, number, values)
    return (total / sizes[:, None])[number]
