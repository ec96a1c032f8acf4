"""Graphs: nodes with the user's labels, and weighted undirected edges.

(K w)_e = w_tail - w_head is the difference across an edge, and (K w)_e = w_tail on an edge to the ground.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..base.csgraph import connected_components
from ..base.display import Html, Shown, details, facts, more, table, title
from ..base.escaping import visible
from ..errors import GraphError
from . import conversions, sources
from .labels import (
    Array,
    Frozen,
    Labels,
    as_labels,
    check_room,
    check_simple,
    checked_positions,
    checked_size,
    checked_weights,
    label_index,
)

if TYPE_CHECKING:
    import networkx as nx


GROUND = -1  # the head of an edge from a node to the ground
SMALL = 256  # nodes and edges up to which each edge joins its ends: what scipy does before it begins takes longer


def difference_matrix(tail: Array, head: Array, n_nodes: int) -> sp.csr_array:
    """The difference operator K of the edges, (m, n): row e has +1 at its tail and -1 at its head.

    Where ``head`` is ``GROUND`` the row has the +1 alone.
    """
    narrow = max(2 * len(tail), n_nodes) < np.iinfo(np.int32).max  # products are bound by memory
    kind = np.int32 if narrow else np.int64
    tail, head = np.asarray(tail, dtype=kind), np.asarray(head, dtype=kind)
    if len(head) and head.min() != GROUND:
        first = tail < head  # rows are sorted
        columns, signs = np.where(first, tail, head), np.where(first, 1.0, -1.0)
        entries = np.stack([signs, -signs], axis=1).ravel(), np.stack([columns, tail + head - columns], axis=1).ravel()
        return sp.csr_array((*entries, 2 * np.arange(len(tail) + 1, dtype=kind)), shape=(len(tail), n_nodes))
    edge = np.arange(len(tail), dtype=kind)
    inner = np.flatnonzero(head != GROUND)
    rows, columns = np.concatenate([edge, inner]), np.concatenate([tail, head[inner]])
    signs = np.concatenate([np.ones(len(tail)), -np.ones(len(inner))])
    return sp.csr_array((signs, (rows, columns)), shape=(len(tail), n_nodes))


def components_of(tail: Array, head: Array, n_nodes: int) -> tuple[int, Array]:
    """The number of connected components that the edges leave of the nodes, and that of each node's, (n,)."""
    if len(tail) + n_nodes <= SMALL:
        return _joined_one_by_one(tail, head, n_nodes)
    links = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(n_nodes, n_nodes))
    return connected_components(links, directed=False)


def _joined_one_by_one(tail: Array, head: Array, n_nodes: int) -> tuple[int, Array]:
    """The components, numbered by their least nodes: each node leads to a smaller one, the least to itself."""
    to = list(range(n_nodes))
    for ends in zip(tail.tolist(), head.tolist(), strict=True):
        i, j = ends
        while to[i] != i:
            to[i] = i = to[to[i]]
        while to[j] != j:
            to[j] = j = to[to[j]]
        to[max(i, j)] = min(i, j)
    count, member = 0, list[int]()
    for i, smaller in enumerate(to):
        member.append(count if smaller == i else member[smaller])
        count += smaller == i
    return count, np.array(member, dtype=np.int32)


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


# ---- graphs ----------------------------------------------------------------------------------------------------------
IN_GRID, IN_CHAIN = 30, 8  # numbers that a node takes with its edges while such a graph is made
SHOWN = 10  # edges in a notebook


@dataclass(frozen=True, eq=False)
class Graph(Frozen, Shown):
    """An undirected graph with positive edge weights.

    Isolated nodes and several components are legal; self loops, repeated edges and directions are not.

    Parameters
    ----------
    labels : sequence of hashables, length n
        The nodes, in order. Numpy scalars become Python scalars.
    tail, head : array of int, shape (m,)
        The nodes that each edge joins, as positions in ``labels``. Edges are stored with the tail before the head.
    weight : array of float, shape (m,)
        Positive and finite.

    Raises
    ------
    GraphError
        For no nodes, a repeated, missing or unhashable label, an edge to a node that is not there, a self loop, a
        repeated edge, or a bad weight. The message names the node or edge.

    Examples
    --------
    >>> river = gr.Graph.from_edges([("a", "b"), ("b", "c", 2.0)])
    >>> river.labels, river.weight.tolist()
    (('a', 'b', 'c'), [1.0, 2.0])
    """

    ARRAYS = "tail", "head", "weight"

    labels: Labels
    tail: Array
    head: Array
    weight: Array

    def __post_init__(self) -> None:
        labels = as_labels(sources.in_order(self.labels, "labels"))
        vars(self).update(labels=labels)
        _ = self.index  # refuses bad labels
        tail = checked_positions(self.tail, "tail", len(labels))
        head = checked_positions(self.head, "head", len(labels))
        if len(tail) != len(head):
            raise GraphError(f"tail has {len(tail)} entries and head has {len(head)}; give one of each per edge")
        check_simple(labels, tail, head)
        weight = checked_weights(self.weight, labels, tail, head)
        vars(self).update(tail=np.minimum(tail, head), head=np.maximum(tail, head), weight=weight)
        self.freeze()

    # ---- constructors ------------------------------------------------------------------------------------------------
    @staticmethod
    @checks.named
    def of(graph: Any, repeated: str = "error", edge_weight: Any = None) -> Graph:
        """``graph`` as a `Graph`, whatever holds it:

        a `Graph`; a graph of networkx or igraph; a symmetric adjacency, of scipy or an array; the edges, a list of
        (a, b) or (a, b, weight), an array (m, 2) or (m, 3), or a frame with a row for each (its ends in the first two
        columns, and a column "weight"); a frame of weights with the same labels as index and columns; a mapping of each
        node to its neighbours, or to their weights by label; the weights or the Graph of libpysal; the polygons of a
        GeoDataFrame, joined where they touch; a graph of torch_geometric, or its ``edge_index`` (2, m).

        ``edge_weight`` names another column of a frame of edges, or attribute of networkx or igraph, than "weight".
        Of mappings and ``edge_index`` an edge may stand once, or from both of its ends with the same weight. An edge of
        a list, array, frame or multigraph that stands several times is refused, or, where ``repeated`` is "sum", one
        with all their weights.

        Returns
        -------
        Graph
            The same object where it is one.

        Raises
        ------
        GraphError
            For anything else, and as for `Graph`.

        Examples
        --------
        >>> gr.Graph.of(nx.path_graph(3)).edges()
        [(0, 1), (1, 2)]
        """
        if isinstance(graph, Graph) and edge_weight is None:
            return graph
        return Graph(*conversions.once(conversions.parts_of(graph, edge_weight), repeated))

    @staticmethod
    @checks.named
    def from_networkx(graph: nx.Graph, weight: str | None = "weight") -> Graph:
        """A networkx graph with its node and edge order.

        Parameters
        ----------
        graph : networkx.Graph
            Undirected; of parallel edges, which ``Graph.of(graph, repeated="sum")`` makes one, there are none.
        weight : str, optional
            The edge attribute with the weights; an edge without it has weight 1. None: all weights are 1.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For a directed graph, and as for `Graph`.

        Examples
        --------
        >>> gr.Graph.from_networkx(nx.cycle_graph(3)).n_edges
        3
        """
        return Graph(*sources.from_networkx(graph, weight))

    @staticmethod
    @checks.named
    def from_edges(
        edges: Iterable[Any],
        weights: Iterable[float] | None = None,
        nodes: Iterable[Hashable] | None = None,
        repeated: str = "error",
    ) -> Graph:
        """A graph from a list of its edges.

        Parameters
        ----------
        edges : iterable of (a, b) or (a, b, weight)
            Labels of the joined nodes; the weight is 1 where it is not given.
        weights : iterable of float, optional
            One weight per edge; then ``edges`` are pairs.
        nodes : iterable of hashables, optional
            All nodes in order, including those without edges. Default: the labels in order of first appearance.
        repeated : {"error", "sum"}
            What an edge that stands several times, in either direction, is: refused, or one with all their weights.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For an entry that is not an edge, a label that is not among ``nodes``, and as for `Graph`.

        Examples
        --------
        >>> gr.Graph.from_edges([("a", "b", 2.0)]).weight
        array([2.])
        """
        return Graph(*conversions.once(sources.from_edges(edges, weights, nodes), repeated))

    @staticmethod
    @checks.named
    def from_sparse(adjacency: Any, labels: Iterable[Hashable] | None = None) -> Graph:
        """A graph from a symmetric adjacency matrix (scipy sparse or dense, (n, n)); a zero is no edge.

        Parameters
        ----------
        adjacency : sparse matrix or array, shape (n, n)
        labels : iterable of n hashables, optional
            Default: 0 to n - 1.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For a matrix that is not numeric, square or symmetric (an entry is named), and as for `Graph`.

        Examples
        --------
        >>> gr.Graph.from_sparse([[0, 1], [1, 0]]).edges()
        [(0, 1)]
        """
        return Graph(*sources.from_sparse(adjacency, labels))

    @staticmethod
    @checks.named
    def grid(rows: int, columns: int) -> Graph:
        """The grid with nodes ``(i, j)``, each joined to those left, right, above and below of it; weights 1.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For sizes that are no positive integers, or too large for memory.

        Examples
        --------
        >>> gr.Graph.grid(2, 3).n_edges
        7
        """
        rows, columns = checked_size(rows, "rows"), checked_size(columns, "columns")
        check_room(IN_GRID * rows * columns, f"a grid of {rows:,} x {columns:,} nodes")
        number = np.arange(rows * columns).reshape(rows, columns)
        tail = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
        head = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
        return Graph(tuple((i, j) for i in range(rows) for j in range(columns)), tail, head, np.ones(len(tail)))

    @staticmethod
    @checks.named
    def chain(nodes: int | Iterable[Hashable]) -> Graph:
        """The chain through ``nodes`` in their order (a number n stands for 0 to n - 1); weights 1.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For labels that are no labels, or come twice.

        Examples
        --------
        >>> gr.Graph.chain(["up", "middle", "down"]).edges()
        [('up', 'middle'), ('middle', 'down')]
        """
        named = isinstance(nodes, Iterable)
        each = checks.sequence(nodes, "nodes", error=GraphError) if named else range(checked_size(nodes, "nodes"))
        check_room(IN_CHAIN * len(each), f"a chain of {len(each):,} nodes")
        labels = as_labels(each)
        steps = np.arange(max(len(labels) - 1, 0))
        return Graph(labels, steps, steps + 1, np.ones(len(steps)))

    @staticmethod
    @checks.named
    def nearest_neighbours(
        points: Any, k: int, labels: Iterable[Hashable] | None = None, weight: str | sources.Weighting | None = None
    ) -> Graph:
        """The graph that joins two points where one is among the ``k`` nearest of the other (Euclidean distance).

        Parameters
        ----------
        points : array, shape (n, q) or (n,)
        k : int
            From 1 to n - 1.
        labels : iterable of n hashables, optional
            By default the index of a DataFrame, else 0 to n - 1.
        weight : None, "gaussian" or callable
            None: weights 1. "gaussian": exp(-d^2 / median of d^2 over the edges). A callable maps the squared
            distances (m,) to weights (m,).

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For points that are not finite numbers (the node is named), a ``k`` out of range, and as for `Graph`.

        Examples
        --------
        >>> gr.Graph.nearest_neighbours([0.0, 1.0, 5.0], k=1).edges()
        [(0, 1), (1, 2)]
        """
        return Graph(*sources.from_points(points, k, labels, weight))

    # ---- views -------------------------------------------------------------------------------------------------------
    @cached_property
    def index(self) -> Mapping[Hashable, int]:
        """The position of each label."""
        return label_index(self.labels)

    @property
    def n_nodes(self) -> int:
        return len(self.labels)

    @property
    def n_edges(self) -> int:
        return len(self.tail)

    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """The (tail, head) labels of each edge, in edge order.

        Returns
        -------
        list of (hashable, hashable)

        Examples
        --------
        >>> gr.Graph.chain(3).edges()
        [(0, 1), (1, 2)]
        """
        labels = self.labels
        return [(labels[i], labels[j]) for i, j in zip(self.tail.tolist(), self.head.tolist(), strict=True)]

    def difference(self) -> sp.csr_array:
        """K (m, n), with (K w)_e = w_tail - w_head; its transpose is the divergence.

        Returns
        -------
        scipy.sparse.csr_array, shape (m, n)

        Examples
        --------
        >>> gr.Graph.chain(2).difference().toarray()
        array([[ 1., -1.]])
        """
        return difference_matrix(self.tail, self.head, self.n_nodes)

    def components(self) -> Array:
        """The number of the connected component of each node, (n,) int, counted by first appearance.

        Returns
        -------
        array of int, shape (n,)

        Examples
        --------
        >>> gr.Graph.from_edges([(0, 1), (2, 3)]).components()
        array([0, 0, 1, 1])
        """
        raw = components_of(self.tail, self.head, self.n_nodes)[1]
        _, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse]

    def to_networkx(self) -> nx.Graph:
        """The same graph in networkx, with the edge attribute ``weight``.

        Returns
        -------
        networkx.Graph

        Examples
        --------
        >>> gr.Graph.chain(2).to_networkx().edges[0, 1]["weight"]
        1.0
        """
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.labels)
        graph.add_weighted_edges_from((a, b, w) for (a, b), w in zip(self.edges(), self.weight.tolist(), strict=True))
        return graph

    def __repr__(self) -> str:
        low, high = (self.weight.min(), self.weight.max()) if self.n_edges else (1.0, 1.0)
        weights = "" if low == high == 1.0 else f", weights {low:.4g} to {high:.4g}"
        return f"Graph: {self.n_nodes} nodes, {self.n_edges} edges{weights}"

    def _html(self) -> Iterable[Html]:
        degree = np.bincount(np.concatenate([self.tail, self.head]), minlength=self.n_nodes)
        alone = int((degree == 0).sum())
        yield title(repr(self))
        yield facts(
            {
                "connected components": int(self.components().max()) + 1,
                "edges at a node": f"{degree.min()} to {degree.max()}, {degree.mean():.3g} on average"
                + (f"; {alone} nodes have none" if alone else ""),
            }
        )
        ends = zip(self.edges(), self.weight.tolist(), strict=True)
        if rows := [(visible(tail), visible(head), weight) for (tail, head), weight in islice(ends, SHOWN)]:
            yield details("edges", table(("tail", "head", "weight"), rows), more(self.n_edges, len(rows)))
