"""The sources of graphs: networkx, lists of edges, adjacency matrices and points.

Each reader gives the arguments of `Graph`, which checks what all graphs have in common.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..base.messages import did_you_mean
from ..errors import GraphError
from .columns import is_frame
from .labels import (
    Array,
    IntegerLabels,
    Labels,
    as_labels,
    by_appearance,
    checked_size,
    edge_name,
    is_in,
    is_integers,
    label_index,
    places_of,
    plain_label,
)

if TYPE_CHECKING:
    import networkx as nx

Weighting = Callable[[Array], Array]
Parts = tuple[Labels, Array, Array, Any]  # labels, tails and heads as positions, weights

LABELS = "a list of labels"
SYMMETRY = 1e-10  # relative difference of two mirrored entries that rounding explains


def _names_of(labels: Iterable[Hashable] | None, n: int, what: str) -> Labels:
    names = as_labels(range(n) if labels is None else in_order(labels, "labels"))
    if len(names) != n:
        raise GraphError(f"there are {len(names)} labels and {n} {what}; give one label for each")
    return names


def in_order(labels: Iterable[Any], what: str) -> Iterable[Any]:
    """Labels in an order; a range and an array of integers as they are."""
    if isinstance(labels, (range, IntegerLabels)) or is_integers(labels):
        return labels
    return checks.sequence(labels, what, LABELS, GraphError)


# ---- networkx --------------------------------------------------------------------------------------------------------
def is_networkx(graph: Any) -> bool:
    """True where it is a graph of networkx."""
    networkx = sys.modules.get("networkx")  # whoever holds a networkx graph has imported it
    return networkx is not None and isinstance(graph, networkx.Graph)


def from_networkx(graph: nx.Graph, weight: str | None = "weight") -> Parts:
    """The nodes and edges of a networkx graph, in its order."""
    if not is_networkx(graph):
        raise GraphError(f"from_networkx takes a networkx graph, got {type(graph).__name__}")
    if graph.is_directed():
        raise GraphError("the graph is directed, and a model's edges have no direction; use graph.to_undirected()")
    labels = tuple(graph.nodes)
    index = label_index(labels)
    edges = [(index[a], index[b]) for a, b in graph.edges()]  # of a multigraph without their keys
    tail, head = np.array(edges, dtype=np.intp).reshape(-1, 2).T
    if weight is None:
        return labels, tail, head, np.ones(len(edges))
    attributes = {name for _, _, each in graph.edges(data=True) for name in each}
    checks.text("the name of an edge attribute, or None")(weight, "weight", GraphError)
    if weight not in attributes and weight != "weight":
        raise GraphError(f"no edge has the attribute {weight!r}{did_you_mean(weight, attributes)}")
    return labels, tail, head, [w for _, _, w in graph.edges(data=weight, default=1.0)]


# ---- lists of edges --------------------------------------------------------------------------------------------------
def from_edges(edges: Iterable[Any], weights: Iterable[float] | None, nodes: Iterable[Hashable] | None) -> Parts:
    """Edges as they are listed, with the weights that stand beside them or apart."""
    whole = is_integers(edges, 2) and len(edges) > 0 and edges.shape[1] in (2, 3)  # rows of an array of integers
    entries: Any = edges if whole else _entries_of(edges)
    if weights is None:
        weight: Any = _own_weights(entries)
    else:
        given = checks.sequence(weights, "weights", "a list of numbers, one for each edge", GraphError)
        weight = weights if isinstance(weights, np.ndarray) else given
        triple = next((entry for entry in (entries[:1] if whole else entries) if len(entry) == 3), None)
        if triple is not None:
            raise GraphError(f"{edge_name(*triple[:2])} has its own weight and weights= is given; give one of the two")
    ends: Any = entries[:, :2].ravel() if whole else [plain_label(label) for entry in entries for label in entry[:2]]
    if nodes is None and whole:
        labels, positions = by_appearance(ends)
        return labels, positions[::2], positions[1::2], weight
    named = None if nodes is None else as_labels(in_order(nodes, "nodes"))
    index = label_index(ends, distinct=False) if named is None else label_index(named)
    try:
        positions = places_of(ends, index)
        unknown = int(np.argmin(positions)) if (positions < 0).any() else None
    except TypeError:  # one has no hash, and is refused unless one before it is unknown
        positions, unknown = np.zeros(0, int), next(k for k, label in enumerate(ends) if not is_in(label, index))
    if unknown is not None:
        edge = edge_name(*entries[unknown // 2][:2])
        label = plain_label(ends[unknown])
        raise GraphError(f"{edge} names the node {label!r}, not in nodes={did_you_mean(label, index)}; add it there")
    return tuple(index) if named is None else named, positions[::2], positions[1::2], weight


def _own_weights(entries: Any) -> Any:
    if isinstance(entries, np.ndarray):
        return entries[:, 2] if entries.shape[1] == 3 else np.ones(len(entries))
    return [entry[2] if len(entry) == 3 else 1.0 for entry in entries]


def _entries_of(edges: Iterable[Any]) -> list[Sequence[Any]]:
    """The entries of an edge list, each (a, b) or (a, b, weight)."""
    listed = checks.sequence(edges, "edges", "a list of pairs (a, b) or triples (a, b, weight)", GraphError)
    entries = edges.tolist() if isinstance(edges, np.ndarray) else listed
    for k, entry in enumerate(entries):
        if isinstance(entry, (str, bytes)) or not isinstance(entry, Sequence) or len(entry) not in (2, 3):
            frame = "; of a DataFrame give the rows, edges.to_numpy()" if is_frame(edges) else ""
            raise GraphError(f"entry {k} of edges is {entry!r}; an edge is a tuple (a, b) or (a, b, weight){frame}")
    return entries


# ---- adjacency matrices ----------------------------------------------------------------------------------------------
def from_sparse(adjacency: Any, labels: Iterable[Hashable] | None) -> Parts:
    """The entries above the diagonal of a symmetric matrix, and those on it, which are refused later."""
    if is_frame(adjacency):
        adjacency, labels = _of_frame(adjacency, labels)
    matrix: Any = _square_matrix(adjacency)
    names = _names_of(labels, matrix.shape[0], "rows of the adjacency")
    _check_symmetric(matrix, names)
    upper: Any = sp.triu(matrix, format="coo")
    upper.eliminate_zeros()
    return names, upper.row, upper.col, upper.data


def _of_frame(frame: Any, labels: Iterable[Hashable] | None) -> tuple[Array, Iterable[Hashable]]:
    """The entries of a data frame, and the labels of its rows where none are given."""
    rows, columns = list(frame.index), list(frame.columns)
    if rows != columns:
        k, there = next((k, pair) for k, pair in enumerate(zip_longest(rows, columns)) if pair[0] != pair[1])
        raise GraphError(
            f"row {k} of the adjacency is {there[0]!r} and its column {k} is {there[1]!r}; give rows and columns the "
            "same labels in the same order: frame.loc[frame.columns]"
        )
    return frame.to_numpy(), rows if labels is None else labels


def _square_matrix(adjacency: Any) -> sp.csr_array:
    checks.unmasked(adjacency, "the adjacency", GraphError)
    if not sp.issparse(adjacency):
        try:
            adjacency = np.asarray(adjacency)
        except ValueError:
            raise GraphError("an adjacency is a square matrix, and its rows have different lengths") from None
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise GraphError(f"an adjacency is a square matrix, got the shape {adjacency.shape}")
    if adjacency.dtype.kind not in "biuf":
        raise GraphError(f"an adjacency holds numbers, got the type {adjacency.dtype}")
    return sp.csr_array(adjacency, dtype=float)


def _check_symmetric(matrix: sp.csr_array, names: Labels) -> None:
    entries: Any = matrix.tocoo()
    infinite = np.flatnonzero(~np.isfinite(entries.data))
    if infinite.size:
        i, j = entries.row[infinite[0]], entries.col[infinite[0]]
        raise GraphError(f"{edge_name(names[i], names[j])} has the weight {matrix[i, j]}; a weight must be finite")
    excess: Any = (abs(matrix - matrix.T) - SYMMETRY * (abs(matrix) + abs(matrix.T))).tocoo()
    guilty = np.flatnonzero(excess.data > 0)
    if guilty.size:
        i, j = int(excess.row[guilty[0]]), int(excess.col[guilty[0]])
        raise GraphError(
            f"the adjacency is not symmetric: the entry ({names[i]!r}, {names[j]!r}) is {matrix[i, j]:g} and its "
            f"mirror is {matrix[j, i]:g}; use (A + A.T) / 2 if the directions mean nothing"
            + "; rows that are edges, 2 of (a, b) or 3 of (a, b, weight), are for Graph.from_edges"
            * (len(names) < 4)
        )


# ---- points ----------------------------------------------------------------------------------------------------------
def from_points(points: Any, k: int, labels: Iterable[Hashable] | None, weight: str | Weighting | None) -> Parts:
    """Points, each joined to its nearest."""
    places, names = _places(points, labels)
    k = checked_size(k, "k")
    if k >= len(names):
        raise GraphError(f"k is {k}, and each of the {len(names)} points has {len(names) - 1} others; take a smaller k")
    tail, head = _neighbour_pairs(places, k)
    return names, tail, head, _distance_weights(np.square(places[tail] - places[head]).sum(axis=1), weight)


def _places(points: Any, labels: Iterable[Hashable] | None) -> tuple[Array, Labels]:
    places = checks.numbers(points, "points", "an array of numbers, (n, q)", GraphError)
    places = places[:, None] if places.ndim == 1 else places
    labels = getattr(points, "index", None) if labels is None and is_frame(points) else labels
    if places.ndim != 2:
        raise GraphError(f"points must be an array (n, q), got the shape {places.shape}")
    names = _names_of(labels, len(places), "points")
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
