"""Graphs as other packages hold them: each reader gives the arguments of `Graph`, which checks what all have in common.

Packages are known by what their objects offer, so that none is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..base.messages import did_you_mean, near
from ..errors import GraphError
from .columns import as_narwhals
from .labels import Array, Labels, as_labels, edge_name, label_index, places_of
from .sources import Parts, from_edges, from_networkx, from_sparse, is_networkx

KNOWN = (
    "a graphreg.Graph, a graph of networkx, igraph, libpysal or torch_geometric, an adjacency, a list or frame of "
    "edges, or a mapping of nodes to their neighbours"
)


def parts_of(graph: Any, weight: Any = None) -> Parts:
    """The labels, tails, heads and weights of whatever holds a graph, the weights by their name where that is said."""
    what, read = type(graph).__name__, next((read for is_one, read in READERS if is_one(graph)), None)
    if weight is not None and read not in NAMED:
        raise GraphError(f"edge_weight= names weights of a frame of edges, networkx or igraph, and not of a {what}")
    if read is None:
        raise GraphError(f"a graph is {KNOWN}, got {what}")
    return read(graph) if weight is None else read(graph, weight)


def _offers(*names: str) -> Callable[[Any], bool]:
    return lambda graph: all(hasattr(graph, name) for name in names)


def _of_igraph(graph: Any, weight: str = "weight") -> Parts:
    if graph.is_directed():
        raise GraphError("the graph is directed, and a model's edges have no direction; use graph.as_undirected()")
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    tail, head = np.array(graph.get_edgelist(), dtype=np.intp).reshape(-1, 2).T
    known = graph.es.attributes()
    if weight not in known and weight != "weight":
        raise GraphError(f"no edge has the attribute {weight!r}{did_you_mean(weight, known)}")
    return as_labels(names), tail, head, graph.es[weight] if weight in known else np.ones(len(tail))


def _of_data(data: Any) -> Parts:
    """A graph of torch_geometric, with the weights that it has."""
    weight = getattr(data, "edge_weight", None)
    return _of_index(np.asarray(data.edge_index), getattr(data, "num_nodes", None), weight)


def _of_index(ends: Array, n: int | None = None, weight: Any = None) -> Parts:
    """Edges as the columns of an array (2, m), of nodes 0 to n - 1."""
    if ends.ndim != 2 or len(ends) != 2 or ends.dtype.kind not in "iu":
        raise GraphError(f"edge_index must be whole numbers of the shape (2, edges), got {ends.dtype}, {ends.shape}")
    labels = as_labels(range(int(ends.max(initial=-1)) + 1 if n is None else int(n)))
    weights = np.ones(ends.shape[1]) if weight is None else np.asarray(weight, dtype=float)
    return undirected(labels, ends[0], ends[1], weights)


def _of_mapping(neighbours: Mapping[Any, Any]) -> Parts:
    """Each node with its neighbours, or with their weights by label, or attributes with a weight."""
    entries: list[tuple[Any, Any, Any]] = []
    for a, given in neighbours.items():
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise GraphError(f"the neighbours of {a!r} are {given!r}; give a list of labels, or their weights by label")
        pairs = given.items() if isinstance(given, Mapping) else ((b, 1.0) for b in given)
        entries += [(a, b, w.get("weight", 1.0) if isinstance(w, Mapping) else w) for b, w in pairs]
    index = label_index([*neighbours, *(b for _, b, _ in entries)], distinct=False)
    tail, head = (places_of([entry[k] for entry in entries], index) for k in (0, 1))
    return undirected(tuple(index), tail, head, [w for *_, w in entries])


def _of_frame(graph: Any, weight: Any = None) -> Parts:
    """A frame with a row for each edge, or with the weight of each pair."""
    frame = as_narwhals(graph, "DataFrame")
    names, labels = list(frame.columns), getattr(graph, "index", None)
    said = f"the columns {', '.join(map(repr, names[:8]))}" if names else "no columns"
    if not len(frame):
        raise GraphError(
            f"the frame of edges has {said} and 0 rows, so that there is no edge: give each edge a row with the labels "
            "of its ends; nodes without edges are Graph.from_edges([], nodes=labels)"
        )
    if weight is None and labels is not None and len(labels) == len(names) and set(labels) == set(names):
        return from_sparse(graph, None)
    if labels is not None and len(labels) == len(names) and set(map(str, labels)) == set(map(str, names)):
        raise GraphError(
            f"the frame has a row and a column per node, labelled by {type(labels[0]).__name__} and by "
            f"{type(names[0]).__name__}: give them one type, as by frame.columns = frame.index"
        )
    ends, others = names[:2], names[2:]
    if weight is not None and others and weight not in others:
        raise GraphError(f"the frame of edges has no column {weight!r} for edge_weight=; {near(weight, others)}")
    if len(ends) < 2 or (others not in ([], ["weight"]) if weight is None else weight not in others):
        raise GraphError(
            "a frame of edges has the labels of their ends in its first two columns, and perhaps their weights in one "
            f"called 'weight'; this one has {said}: give frame[[tail, head]], or name that of the weights, as "
            "edge_weight='length' does in Graph.of and fit"
        )
    pairs = zip(*(frame.get_column(name).to_list() for name in ends), strict=True)
    weight = "weight" if weight is None and others else weight
    return from_edges(pairs, None if weight is None else frame.get_column(weight).to_numpy(), None)


def _of_array(array: Array) -> Parts:
    if array.ndim == 2:
        rows, columns = array.shape
        if rows == columns:
            return from_sparse(array, None)
        if columns in (2, 3) and rows != 2:
            ends: Any = array[:, :2]
            if ends.dtype.kind == "f" and (ends == np.rint(ends)).all():  # numbers of nodes beside weights
                ends = ends.astype(np.int64)
            return from_edges(ends, None if columns == 2 else array[:, 2], None)
        if rows == 2 and columns != 3:
            return _of_index(array)
    raise GraphError(
        f"an array of the shape {array.shape} is neither an adjacency (n, n), nor edges (m, 2) or (m, 3), nor an "
        "edge_index (2, m); say which with Graph.from_edges(array) or Graph.from_sparse(matrix)"
    )


def _of_polygons(frame: Any) -> Parts:
    """The rows of a GeoDataFrame, joined where their shapes touch in a point or more (queen contiguity)."""
    places, others = frame.sindex.query(frame.geometry, predicate="intersects")
    once = places < others
    return as_labels(frame.index.tolist()), places[once], others[once], np.ones(int(once.sum()))


NAMED = (from_networkx, _of_igraph, _of_frame)  # readers that take the name of the weights
READERS: tuple[tuple[Callable[[Any], bool], Callable[..., Parts]], ...] = (
    (is_networkx, from_networkx),
    (sp.issparse, lambda graph: from_sparse(graph, None)),
    (_offers("sindex", "geometry"), _of_polygons),
    (_offers("get_edgelist", "vs", "es"), _of_igraph),
    (_offers("edge_index"), _of_data),
    (_offers("sparse", "id_order"), lambda w: from_sparse(w.sparse, w.id_order)),  # W of libpysal
    (_offers("sparse", "unique_ids"), lambda g: from_sparse(g.sparse, g.unique_ids.tolist())),  # its Graph
    (lambda graph: isinstance(graph, Mapping), _of_mapping),
    (lambda graph: as_narwhals(graph, "DataFrame") is not None, _of_frame),
    (_offers("__array__"), lambda graph: _of_array(np.asarray(graph))),
    (
        lambda graph: isinstance(graph, Iterable) and not isinstance(graph, (str, bytes)),
        lambda edges: from_edges(edges, None, None),
    ),
)


# ---- edges that stand more than once -------------------------------------------------------------------------------
def undirected(labels: Labels, tail: Array, head: Array, weight: Any) -> Parts:
    """Edges that stand from both of their ends, once; these must have the same weight."""
    weights = list(weight)
    there: dict[tuple[int, int], Any] = {}
    for i, j, w in zip(tail.tolist(), head.tolist(), weights, strict=True):
        if (j, i) in there and i != j:
            if there[j, i] != w:
                edge, back = edge_name(labels[j], labels[i]), there[j, i]
                raise GraphError(f"{edge} has the weight {back!r} from one end and {w!r} from the other; give it one")
            continue
        if (i, j) in there:
            raise GraphError(f"{edge_name(labels[i], labels[j])} appears twice from the same end; leave one out")
        there[i, j] = w
    ends = np.array(list(there), dtype=np.intp).reshape(-1, 2)
    return labels, ends[:, 0], ends[:, 1], list(there.values())


def once(parts: Parts, repeated: str) -> Parts:
    """Edges that stand several times as one, with all their weights, by first appearance; as they are where repeated
    ones are an error."""
    if checks.one_of("error", "sum")(repeated, "repeated", GraphError) == "error":
        return parts
    labels, tail, head, weight = parts
    total: dict[tuple[int, int], float] = {}
    for i, j, w in zip(tail.tolist(), head.tolist(), list(weight), strict=True):
        pair = min(i, j), max(i, j)
        total[pair] = total[pair] + w if pair in total else w
    ends = np.array(list(total), dtype=np.intp).reshape(-1, 2)
    return labels, ends[:, 0], ends[:, 1], list(total.values())
