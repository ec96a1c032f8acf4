"""`Graph.of` reads graphs as other packages hold them: one graph, in all of its forms."""

from __future__ import annotations

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import graphreg as gr
from graphreg.errors import GraphError

EDGES = [(0, 1, 2.0), (1, 2, 0.5), (0, 3, 1.0)]
TEXT = [("a", "b", 2.0), ("b", "c", 0.5), ("a", "d", 1.0)]


def adjacency():
    A = np.zeros((4, 4))
    for i, j, w in EDGES:
        A[i, j] = A[j, i] = w
    return A


def both(edges):
    """Every edge from both of its ends, as neighbours by label."""
    found: dict = {}
    for a, b, w in edges:
        found.setdefault(a, {})[b] = w
        found.setdefault(b, {})[a] = w
    return found


def of_networkx():
    graph = nx.Graph()
    graph.add_weighted_edges_from(EDGES)
    return graph


def of_igraph(edges, **options):
    return pytest.importorskip("igraph").Graph.TupleList(edges, **options)


FORMS = {
    "graphreg": lambda: gr.Graph.from_edges(EDGES),
    "networkx": of_networkx,
    "igraph": lambda: of_igraph(EDGES, edge_attrs=["weight"], vertex_name_attr="id"),
    "igraph with names": lambda: of_igraph(TEXT, weights=True),
    "sparse": lambda: sp.csr_array(adjacency()),
    "dense": adjacency,
    "list of edges": lambda: EDGES,
    "generator of edges": lambda: iter(EDGES),
    "frame of edges": lambda: pd.DataFrame(TEXT, columns=["from", "to", "weight"]),
    "polars frame of edges": lambda: pl.DataFrame(TEXT, schema=["from", "to", "weight"], orient="row"),
    "frame of weights": lambda: pd.DataFrame(adjacency(), index=list("abcd"), columns=list("abcd")),
    "mapping of weights": lambda: both(TEXT),
    "mapping of weights from one end": lambda: {"a": {"b": 2.0, "d": 1.0}, "b": {"c": 0.5}, "c": {}},
    "mapping of attributes": lambda: nx.to_dict_of_dicts(of_networkx()),
    "weights of libpysal": lambda: SimpleNamespace(sparse=sp.csr_array(adjacency()), id_order=list("abcd")),
    "graph of libpysal": lambda: SimpleNamespace(sparse=sp.coo_array(adjacency()), unique_ids=pd.Index(list("abcd"))),
    "torch_geometric": lambda: SimpleNamespace(
        edge_index=np.array([[0, 1, 1, 2, 0, 3], [1, 0, 2, 1, 3, 0]]),
        num_nodes=4,
        edge_weight=np.array([2.0, 2.0, 0.5, 0.5, 1.0, 1.0]),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_graph_in_all_its_forms(form):
    graph = gr.Graph.of(FORMS[form]())
    names = dict(zip("abcd", range(4), strict=True))
    found = {
        (*sorted(names.get(label, label) for label in edge), w)
        for edge, w in zip(graph.edges(), graph.weight.tolist(), strict=True)
    }
    assert found == set(EDGES)
    assert graph.n_nodes == 4


@pytest.mark.parametrize(
    "given",
    [
        np.array([[0, 1, 0, 4], [1, 2, 3, 2]]),
        {0: [1, 3], 1: [0, 2], 2: [1, 4]},
        [(0, 1), (1, 2), (0, 3), (4, 2)],
        np.array([(0, 1), (1, 2), (0, 3), (4, 2)]),
        np.array([(0, 1, 1.0), (1, 2, 1.0), (0, 3, 1.0), (4, 2, 1.0)]),
        pd.DataFrame({"u": [0, 1, 0, 4], "v": [1, 2, 3, 2]}),
    ],
)
def test_without_weights_all_are_one(given):
    graph = gr.Graph.of(given)
    assert graph.weight.tolist() == [1.0] * 4
    assert {frozenset(edge) for edge in graph.edges()} == set(map(frozenset, [(0, 1), (1, 2), (0, 3), (2, 4)]))


def test_graphs_of_igraph_may_lack_weights_and_must_have_no_directions():
    igraph = pytest.importorskip("igraph")
    assert gr.Graph.of(igraph.Graph(4, [(0, 1), (3, 1)])).weight.tolist() == [1.0, 1.0]
    with pytest.raises(GraphError, match="the graph is directed"):
        gr.Graph.of(igraph.Graph(2, [(0, 1)], directed=True))


def test_polygons_that_touch_are_joined():
    class Index:
        def query(self, geometry, predicate):
            assert predicate == "intersects"
            return np.array([[0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 1, 2]])  # each meets itself

    shapes = SimpleNamespace(sindex=Index(), geometry=None, index=pd.Index(["x", "y", "z"]))
    assert gr.Graph.of(shapes).edges() == [("x", "y"), ("y", "z")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("edges.csv", "a graph is .* got str"),
        (3, "a graph is .* got int"),
        ({"a": {"b": 1.0}, "b": {"a": 2.0}}, "'a' - 'b' has the weight 1.0 from one end and 2.0 from the other"),
        ({"a": "b"}, "the neighbours of 'a' are 'b'"),
        (np.array([[0, 1, 0], [1, 2, 2]]), r"shape \(2, 3\) is neither"),
        (np.array([[0, 0, 1, 2], [1, 1, 2, 3]]), "0 - 1 appears twice"),
        (np.array([[0.5, 0, 1, 2], [1, 1, 2, 3]]), "edge_index must be whole numbers"),
        (np.zeros((4, 5)), r"shape \(4, 5\) is neither"),
        (pd.DataFrame({"u": ["a"], "v": ["b"], "km": [3.0]}), "'u', 'v', 'km': give"),
        ({"a": ["a"]}, "self loop"),
    ],
)
def test_what_is_no_graph_is_refused_in_words(given, said):
    with pytest.raises(GraphError, match=said):
        gr.Graph.of(given)


COLUMNS = ["from", "to", "km"]
NAMED = {
    "networkx": lambda: nx.from_pandas_edgelist(pd.DataFrame(TEXT, columns=COLUMNS), *COLUMNS),
    "igraph": lambda: of_igraph(TEXT, edge_attrs=["km"]),
    "frame": lambda: pd.DataFrame(TEXT, columns=COLUMNS),
    "polars": lambda: pl.DataFrame(TEXT, schema=COLUMNS, orient="row"),
}


@pytest.mark.parametrize("form", NAMED)
def test_weights_have_a_name_of_their_own(form):
    graph = gr.Graph.of(NAMED[form](), edge_weight="km")
    assert {(*edge, w) for edge, w in zip(graph.edges(), graph.weight.tolist(), strict=True)} == set(TEXT)
    with pytest.raises(GraphError, match=r"no edge has the attribute 'mk'|no column 'mk' .*; there are 'km'"):
        gr.Graph.of(NAMED[form](), edge_weight="mk")


@pytest.mark.parametrize("given", [TEXT, adjacency(), gr.Graph.chain("ab")])
def test_weights_without_a_name_are_not_named(given):
    with pytest.raises(GraphError, match="edge_weight= names weights of a frame of edges"):
        gr.Graph.of(given, edge_weight="km")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_edges_without_rows_says_what_is_there_and_what_to_do(kind):
    for frame, there in ((kind({"from": [], "to": []}), "the columns 'from', 'to'"), (kind(), "no columns")):
        with pytest.raises(GraphError, match=rf"has {there} and 0 rows, .*: give each edge a row"):
            gr.Graph.of(frame)
    alone = gr.Graph.from_edges([], nodes=["a", "b"])  # as the message says
    assert (alone.labels, alone.n_edges) == (("a", "b"), 0)


def test_edges_that_repeat_are_summed_on_demand():
    edges = [("a", "b", 2.0), ("b", "a", 1.0), ("b", "c", 1.0), ("a", "b", 0.5)]
    with pytest.raises(GraphError, match=r"'a' - 'b' appears twice|'b' - 'a' appears twice"):
        gr.Graph.from_edges(edges)
    graph = gr.Graph.from_edges(edges, repeated="sum")
    assert (graph.edges(), graph.weight.tolist()) == ([("a", "b"), ("b", "c")], [3.5, 1.0])
    with pytest.raises(GraphError, match="repeated"):
        gr.Graph.from_edges(edges, repeated="add")
