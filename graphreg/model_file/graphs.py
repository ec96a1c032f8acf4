"""[graph]: edges from a list, from an adjacency matrix, or of a family of graphs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.gate import too_much
from ..base.messages import near, users_line
from ..errors import DataError
from ..fitting import doubts, refuse_look_alikes
from ..inputs import Graph
from .schema import FileTable, GraphKeys, Place, one_source
from .tables import SITE, Folders, check_columns, label_list

if TYPE_CHECKING:
    import pandas as pd

SOURCES: dict[str, tuple[str, ...]] = {  # with the keys that belong to each
    "edges": ("nodes", "tail", "head", "edge_weight"),
    "adjacency": ("nodes",),
    "family": ("size", "labels"),
}
Edge = tuple[Any, Any, float]  # with its weight
NUMBERS = 40  # that a node or an edge takes as an object
FAMILIES = ("path", "cycle", "complete", "star", "grid")


def read_graph(section: FileTable, folders: Folders, labels: Sequence[str]) -> Graph:
    """The graph that [graph] describes; ``labels`` are the nodes with data, in order."""
    keys, place = section.keys, section.place
    source = one_source(section, SOURCES, ("name",))
    with place.named():
        if source == "family":
            return _family(keys, place, labels)
        return _from_file(source, keys, place, folders, labels)


# ---- from files ------------------------------------------------------------------------------------------------------
def _from_file(source: str, keys: GraphKeys, place: Place, folders: Folders, labels: Sequence[str]) -> Graph:
    """The graph on the nodes with data and, unless ``nodes = "data"``, on all others that the file names."""
    read = _edges if source == "edges" else _adjacency
    edges, named, file = read(keys, place, folders)
    known = set(labels)
    if SITE not in file:
        refuse_look_alikes(labels, dict.fromkeys(named), "take such spaces off in the files")
    if known.isdisjoint(named) and not (SITE in file and not named):  # a site may have no edge at all
        place.at(source).refuse(
            f"no label of {file} has data: it has {', '.join(map(repr, dict.fromkeys(named[:3])))}, the data "
            f"have {', '.join(map(repr, labels[:3]))}; labels are compared as text, to the letter",
            DataError,
        )
    if SITE not in file:
        joined = set(named)
        alone = [label for label in labels if label not in joined]
        for label, hint in doubts([label for label in named if label not in known], alone, labels):
            warnings.warn(f"{file}: no data at {label!r}{hint}", UserWarning, stacklevel=users_line())
    if keys.nodes == "data":
        edges, named = [edge for edge in edges if edge[0] in known and edge[1] in known], []
    return Graph.from_edges(edges, nodes=dict.fromkeys([*labels, *named]))


def _edges(keys: GraphKeys, place: Place, folders: Folders) -> tuple[list[Edge], list[str], str]:
    """The edges of a table with a row each, with their weights; the labels of their ends, and the file."""
    at = place.at("edges")
    frame, file = folders.read(str(keys.edges), at, [name for name in (keys.tail, keys.head) if name], leading=2)
    if len(frame.columns) < 2:
        at.refuse(f"{file} has one column; a table of edges has two columns of labels", DataError)
    if not len(frame) and SITE not in file:  # a site may have no edge at all
        at.refuse(f"{file} has no rows below its header: there is no edge; give each edge a row", DataError)
    first, second = map(str, frame.columns[:2])
    ends = {"tail": keys.tail or first, "head": keys.head or second}
    for key, name in ends.items():
        check_columns(frame, [name], file, place.at(key))
    if ends["tail"] == ends["head"]:
        place.at("tail").refuse(f"tail and head are the same column, {ends['tail']!r}")
    weights = _weights(frame, keys.edge_weight, file, place.at("edge_weight"))
    tails, heads = (label_list(frame, name, file, place.at(key)) for key, name in ends.items())
    edges = list(zip(tails, heads, weights, strict=True))
    return edges, [label for a, b, _ in edges for label in (a, b)], file


def _weights(frame: pd.DataFrame, name: str | None, file: str, place: Place) -> list[float]:
    if name is None:
        return [1.0] * len(frame)
    check_columns(frame, [name], file, place)
    if frame[name].dtype.kind not in "iuf" and len(frame):
        place.refuse(f"the column {name!r} of {file} is not numeric; weights are positive numbers", DataError)
    return frame[name].astype(float).tolist()


def _adjacency(keys: GraphKeys, place: Place, folders: Folders) -> tuple[list[Edge], list[str], str]:
    """The edges of a matrix of weights; the labels of its rows, and the file."""
    at = place.at("adjacency")
    frame, file = folders.read(str(keys.adjacency), at, leading=1)
    rows = label_list(frame, str(frame.columns[0]), file, at) if len(frame.columns) else []
    columns = [str(name) for name in frame.columns[1:]]
    odd = sorted(set(rows) ^ set(columns)) or [name for k, name in enumerate(rows) if name in rows[:k]]
    if odd or not rows:
        at.refuse(
            f"the rows and columns of {file} do not have the same labels ({', '.join(map(repr, odd[:4]))}); "
            "the first column holds the labels of the rows, the first row those of the columns",
            DataError,
        )
    text = [name for name in columns if frame[name].dtype.kind not in "biuf"]
    if text:
        at.refuse(f"the column {text[0]!r} of {file} is not numeric; an empty cell or 0 is no edge", DataError)
    whole = Graph.from_sparse(np.nan_to_num(frame[rows].to_numpy(dtype=float)), rows)  # columns in the order of rows
    edges = [(a, b, weight) for (a, b), weight in zip(whole.edges(), whole.weight.tolist(), strict=True)]
    return edges, rows, file


# ---- families --------------------------------------------------------------------------------------------------------
def _family(keys: GraphKeys, place: Place, labels: Sequence[str]) -> Graph:
    name = str(keys.family)
    if name not in FAMILIES:
        place.at("family").refuse(f"there is no family of graphs {name!r}; {near(name, FAMILIES)}")
    size = _size(keys, name, place)
    count = prod(size) if size else len(labels)
    edges = count * (count - 1) // 2 if name == "complete" else 2 * count
    if said := too_much(NUMBERS * (count + edges), f"a {name} of {count:,} nodes"):
        place.at("size").refuse(f"{said}; make it smaller")
    names = _labels(keys, labels, size, place)
    if size and prod(size) != len(names):
        place.at("size").refuse(f"this makes {prod(size)} nodes and there are {len(names)} labels")
    if name == "cycle" and len(names) < 3:
        place.at("family").refuse(f"a cycle has at least 3 nodes, and there are {len(names)}")
    graph = Graph.from_networkx(_drawn(name, names, size))
    if lost := [label for label in labels if label not in graph.index]:
        place.refuse(f"the node {lost[0]!r} has data and is not among the labels of the graph", DataError)
    return graph


def _drawn(family: str, labels: Sequence[str], size: Sequence[int]) -> Any:
    """A graph of networkx; the first label is the centre of a star, and a grid has them row by row."""
    import networkx as nx

    if family == "grid":
        graph = nx.grid_2d_graph(size[0], size[1])
        return nx.relabel_nodes(graph, dict(zip(graph, labels, strict=False)))
    return getattr(nx, f"{family}_graph")(labels)


def _size(keys: GraphKeys, name: str, place: Place) -> tuple[int, ...]:
    at, size = place.at("size"), keys.size
    if name == "grid":
        if not isinstance(size, list) or len(size) != 2:
            at.refuse("a grid needs size = [rows, columns]")
    elif isinstance(size, list):
        at.refuse(f"the size of a {name} is one number, the number of its nodes")
    elif size is None and keys.labels == "numbers":
        at.refuse('labels = "numbers" needs the number of nodes')
    numbers = tuple(size) if isinstance(size, list) else () if size is None else (size,)
    if any(number < 1 for number in numbers):
        at.refuse(f"a size is positive, got {size}")
    return numbers


def _labels(keys: GraphKeys, labels: Sequence[str], size: tuple[int, ...], place: Place) -> list[str]:
    if isinstance(keys.labels, list):
        twice = [name for k, name in enumerate(keys.labels) if name in keys.labels[:k]]
        if twice or not keys.labels:
            place.at("labels").refuse(f"{twice[0]!r} is named twice" if twice else "the list is empty")
        return keys.labels
    return [str(k) for k in range(prod(size))] if keys.labels == "numbers" else list(labels)
