"""Graphs: nodes with the user's labels, weighted undirected edges, and the difference operator K.

(K w)_e = w_tail - w_head,    and (K w)_e = w_tail on an edge to the ground.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .. import checks
from ..errors import GraphError
from .reading import (
    check_simple,
    check_symmetric,
    checked_edges,
    checked_positions,
    checked_size,
    checked_weights,
    edge_name,
    given_labels,
    is_in,
    label_index,
    plain_label,
    square_matrix,
)

if TYPE_CHECKING:
    import networkx as nx

Array = np.ndarray[Any, np.dtype[Any]]
Weighting = Callable[[Array], Array]

GROUND = -1  # the head of an edge from a node to the ground


def difference_matrix(tail: Array, head: Array, n_nodes: int) -> sp.csr_array:
    """The difference operator K of the edges, (m, n): row e has +1 at its tail and -1 at its head.

    Where ``head`` is ``GROUND`` the row has the +1 alone.
    """
    tail, head = np.asarray(tail, dtype=np.intp), np.asarray(head, dtype=np.intp)
    edge = np.arange(len(tail))
    inner = np.flatnonzero(head != GROUND)
    rows, columns = np.concatenate([edge, inner]), np.concatenate([tail, head[inner]])
    signs = np.concatenate([np.ones(len(tail)), -np.ones(len(inner))])
    return narrow(sp.csr_array((signs, (rows, columns)), shape=(len(tail), n_nodes)))


def narrow(matrix: sp.csr_array) -> sp.csr_array:
    """The same with 32-bit indices where they suffice: products are bound by memory."""
    if max(*matrix.shape, matrix.nnz) < np.iinfo(np.int32).max:  # pyright: ignore[reportGeneralTypeIssues]  (scipy has no types)
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def components_of(tail: Array, head: Array, n_nodes: int) -> tuple[int, Array]:
    """How many connected components the edges leave of the nodes, and the number of each node's, (n,)."""
    links = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(n_nodes, n_nodes))
    return connected_components(links, directed=False)


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


@dataclass(frozen=True, eq=False)
class Graph:
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
    """

    labels: tuple[Hashable, ...]
    tail: Array
    head: Array
    weight: Array

    def __post_init__(self) -> None:
        labels = tuple(map(plain_label, self.labels))
        object.__setattr__(self, "labels", labels)
        _ = self.index  # refuses bad labels
        tail = checked_positions(self.tail, "tail", len(labels))
        head = checked_positions(self.head, "head", len(labels))
        if len(tail) != len(head):
            raise GraphError(f"tail has {len(tail)} entries and head has {len(head)}; give one of each per edge")
        check_simple(labels, tail, head)
        weight = checked_weights(self.weight, labels, tail, head)
        object.__setattr__(self, "tail", np.minimum(tail, head))
        object.__setattr__(self, "head", np.maximum(tail, head))
        object.__setattr__(self, "weight", weight)

    # ---- constructors ------------------------------------------------------------------------------------------------
    @staticmethod
    def of(graph: Any) -> Graph:
        """``graph`` as a `Graph`: a `Graph`, an undirected networkx graph or a symmetric scipy sparse adjacency.

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
        if isinstance(graph, Graph):
            return graph
        if is_networkx(graph):
            return Graph.from_networkx(graph)
        if sp.issparse(graph):
            return Graph.from_sparse(graph)
        raise GraphError(
            f"a graph is a graphreg.Graph, a networkx graph or a scipy sparse adjacency, got {type(graph).__name__}; "
            "for edge lists use Graph.from_edges, for a dense adjacency Graph.from_sparse"
        )

    @staticmethod
    def from_networkx(graph: nx.Graph, weight: str | None = "weight") -> Graph:
        """A networkx graph with its node and edge order.

        Parameters
        ----------
        graph : networkx.Graph
            Undirected and without parallel edges.
        weight : str, optional
            The edge attribute with the weights; an edge without it has weight 1. None: all weights are 1.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For a directed graph or a multigraph, and as for `Graph`.

        Examples
        --------
        >>> gr.Graph.from_networkx(nx.cycle_graph(3)).n_edges
        3
        """
        if not is_networkx(graph):
            raise GraphError(f"from_networkx takes a networkx graph, got {type(graph).__name__}")
        if graph.is_directed():
            raise GraphError("the graph is directed, and a model's edges have no direction; use graph.to_undirected()")
        if graph.is_multigraph():
            raise GraphError(
                "the graph is a multigraph; make it a networkx.Graph and sum the weights of parallel edges "
                "into one edge"
            )
        labels = tuple(graph.nodes)
        index = label_index(labels)
        edges = [(index[a], index[b]) for a, b in graph.edges]
        tail, head = np.array(edges, dtype=np.intp).reshape(-1, 2).T
        weights: Any = (
            [1.0] * len(edges) if weight is None else [w for _, _, w in graph.edges(data=weight, default=1.0)]
        )
        return Graph(labels, tail, head, weights)

    @staticmethod
    def from_edges(
        edges: Iterable[Any], weights: Iterable[float] | None = None, nodes: Iterable[Hashable] | None = None
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
        entries = checked_edges(edges)
        if weights is None:
            weight: Any = [entry[2] if len(entry) == 3 else 1.0 for entry in entries]
        else:
            weight = weights if isinstance(weights, np.ndarray) else list(weights)
            triple = next((entry for entry in entries if len(entry) == 3), None)
            if triple is not None:
                raise GraphError(
                    f"{edge_name(*triple[:2])} has its own weight and weights= is given; give one of the two"
                )
        ends = [plain_label(label) for entry in entries for label in entry[:2]]
        index = label_index(ends, distinct=False) if nodes is None else label_index(map(plain_label, nodes))
        unknown = next((k for k, label in enumerate(ends) if not is_in(label, index)), None)
        if unknown is not None:
            edge = edge_name(*entries[unknown // 2][:2])
            raise GraphError(f"{edge} names the node {ends[unknown]!r}, which is not in nodes=; add it there")
        positions = np.fromiter((index[label] for label in ends), dtype=np.intp, count=len(ends))
        return Graph(tuple(index), positions[::2], positions[1::2], weight)

    @staticmethod
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
        matrix: Any = square_matrix(adjacency)
        names = given_labels(labels, matrix.shape[0], "rows of the adjacency")
        check_symmetric(matrix, names)
        upper: Any = sp.triu(matrix, format="coo")
        upper.eliminate_zeros()
        return Graph(names, upper.row, upper.col, upper.data)

    @staticmethod
    def grid(rows: int, columns: int) -> Graph:
        """The grid with nodes ``(i, j)``, each joined to those left, right, above and below of it; weights 1.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            For sizes that are no positive integers.

        Examples
        --------
        >>> gr.Graph.grid(2, 3).n_edges
        7
        """
        rows, columns = checked_size(rows, "rows"), checked_size(columns, "columns")
        number = np.arange(rows * columns).reshape(rows, columns)
        tail = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
        head = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
        return Graph(tuple((i, j) for i in range(rows) for j in range(columns)), tail, head, np.ones(len(tail)))

    @staticmethod
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
        labels = tuple(nodes) if isinstance(nodes, Iterable) else tuple(range(checked_size(nodes, "nodes")))
        steps = np.arange(max(len(labels) - 1, 0))
        return Graph(labels, steps, steps + 1, np.ones(len(steps)))

    @staticmethod
    def nearest_neighbours(
        points: Any, k: int, labels: Iterable[Hashable] | None = None, weight: str | Weighting | None = None
    ) -> Graph:
        """The graph that joins two points where one is among the ``k`` nearest of the other (Euclidean distance).

        Parameters
        ----------
        points : array, shape (n, q) or (n,)
        k : int
            From 1 to n - 1.
        labels : iterable of n hashables, optional
            Default: 0 to n - 1.
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
        places, names = _places(points, labels)
        k = checked_size(k, "k")
        if k >= len(names):
            raise GraphError(
                f"k is {k}, and each of the {len(names)} points has {len(names) - 1} others; take a smaller k"
            )
        tail, head = _neighbour_pairs(places, k)
        squares = np.square(places[tail] - places[head]).sum(axis=1)
        return Graph(names, tail, head, _distance_weights(squares, weight))

    # ---- views -------------------------------------------------------------------------------------------------------
    @cached_property
    def index(self) -> dict[Hashable, int]:
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


def is_networkx(graph: Any) -> bool:
    """Whether it is a graph of networkx."""
    networkx = sys.modules.get("networkx")  # whoever holds a networkx graph has imported it
    return networkx is not None and isinstance(graph, networkx.Graph)


# ---- nearest neighbours ----------------------------------------------------------------------------------------------
def _places(points: Any, labels: Iterable[Hashable] | None) -> tuple[Array, tuple[Hashable, ...]]:
    places = checks.numbers(points, "points", "an array of numbers, (n, q)", GraphError)
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2:
        raise GraphError(f"points must be an array (n, q), got the shape {places.shape}")
    names = given_labels(labels, len(places), "points")
    bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
    if bad.size:
        guilty, place = names[bad[0]], places[bad[0]].tolist()
        raise GraphError(f"the point of the node {guilty!r} is not finite: {place}; fill it in or leave it out")
    return places, names


def _neighbour_pairs(places: Array, k: int) -> tuple[Array, Array]:
    """The pairs (tail, head) of the union of the k nearest neighbours of every point."""
    from scipy.spatial import KDTree

    n = len(places)
    near = np.asarray(KDTree(places).query(places, k=k + 1)[1])
    others = near != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False  # among equal points, a point need not be found near itself
    tail, head = np.repeat(np.arange(n), k), near[others]
    keys = np.unique(np.minimum(tail, head) * n + np.maximum(tail, head))
    return keys // n, keys % n


def _distance_weights(squares: Array, weight: str | Weighting | None) -> Array:
    if weight is None:
        return np.ones(len(squares))
    if callable(weight):
        return np.asarray(weight(squares))
    if weight != "gaussian":
        raise GraphError(f"weight must be None, 'gaussian' or a function of squared distances, got {weight!r}")
    middle = float(np.median(squares))
    if not (math.isfinite(middle) and middle > 0):
        raise GraphError(f"the median squared distance is {middle:g}, which gives no Gaussian weights; pass a function")
    return np.exp(-squares / middle)
