"""Mistakes in graphs and hierarchies: each has an error of its own, which names the guilty part and what to do."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from bad_input import CHAIN, CLUSTERS, refusals, refused, with_weight

import graphreg as gr
from graphreg.errors import GraphError, TermError


# ---- graphs ----------------------------------------------------------------------------------------------------------
@refusals(
    {
        "directed": (lambda: gr.TotalVariation(nx.DiGraph(CHAIN), gr.L2()), GraphError, "directed", "to_undirected()"),
        "multigraph": (
            lambda: gr.Consensus(nx.MultiGraph([*CHAIN.edges, *CHAIN.edges])),
            GraphError,
            "twice",
            "sum the weights",
        ),
        "empty": (lambda: gr.TotalVariation(nx.Graph(), gr.L2()), GraphError, "empty", "no nodes"),
        "self loop": (lambda: gr.TotalVariation(nx.Graph([("a", "a")]), gr.L2()), GraphError, "'a'", "self loop"),
        "text": (lambda: gr.TotalVariation("a - b", gr.L2()), GraphError, "str", "list or frame of edges"),
        "frame": (
            lambda: gr.Graph.from_edges(pd.DataFrame({"from": ["a"], "to": ["b"]})),
            GraphError,
            "entry 0 of edges is 'from'",
            "edges.to_numpy()",
        ),
        "nothing": (lambda: gr.Consensus(None), GraphError, "NoneType", "networkx"),
        "disconnected": (
            lambda: gr.Consensus(nx.Graph([("a", "b"), ("c", "d")])),
            GraphError,
            "disconnected",
            "'a' to 'c'",
            "(a star)",
            "Zero()",
        ),
        "isolated": (lambda: gr.Consensus(gr.Graph.from_edges([("a", "b")], nodes="abz")), GraphError, "'a' to 'z'"),
    }
)
def test_graphs(build, error, parts):
    refused(build, error, *parts)


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf, "2", None, True], ids=repr)
def test_edge_weights(weight):
    build = lambda: gr.TotalVariation(with_weight(weight), gr.L2())  # noqa: E731
    refused(build, GraphError, "the edge 'a' - 'b'", repr(weight))


def test_numpy_scalars_are_edge_weights():
    assert gr.TotalVariation(with_weight(np.float32(2)), gr.L2()).graph.weight.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("label", [" A", "a", 1])
def test_ends_that_are_no_nodes_are_said_to_look_like_one(label):
    with pytest.raises(GraphError, match=r", not in nodes=(; did you mean 'A'\?| \(there is '1' of type str)"):
        gr.Graph.from_edges([(label, "B")], nodes=["A", "B", "1"])


def test_labels_that_look_alike_within_one_graph_are_its_own_affair():
    graph = nx.Graph([(1, "1")])
    data = gr.NodeData.from_dict({1: (None, [0.0]), "1": (None, [2.0])})
    twice = gr.TotalVariation(graph, gr.SquaredL2()) + gr.TotalVariation(graph, gr.SquaredL2())
    solution = gr.Problem(gr.MeanLoss(data, scale="sum") + 0.5 * twice).solve()
    np.testing.assert_allclose(solution.coef[:, 0], [2 / 3, 4 / 3], atol=1e-4)


# ---- hierarchies -----------------------------------------------------------------------------------------------------
BOTH = {
    "tree": lambda clusters: gr.Hierarchy(clusters, (1, 1)),
    "alpha": lambda clusters: gr.Hierarchy.from_alpha(clusters, alpha=0.5, gamma=1),
}
BAD_CLUSTERS = {
    "empty": ({}, ["non-empty mapping", "node -> cluster"]),
    "list": ([["a"], ["b"]], ["mapping"]),
    "series": (pd.Series(["p", "p"], ["a", "b"]), ["mapping", ".to_dict()"]),
    "two clusters": ({"p": ["a", "b"], "q": ["b"]}, ["'b'", "two clusters, 'p' and 'q'"]),
    "twice": ({"p": ["a", "a"]}, ["'a'", "'p' twice"]),
    "empty cluster": ({"p": ["a"], "q": []}, ["'q' has no nodes", "leave it out"]),
    "empty cluster of clusters": ({"p": {}}, ["'p' has no nodes"]),
    "uneven": ({"p": {"p1": ["a"]}, "q": ["b"]}, ["'b'", "same depth"]),
    "label beside lists": ({"p": ["a"], "b": "q"}, ["'b'", "list of nodes", "'q'"]),
    "nested lists": ({"p": [["a"], ["b"]]}, ["'p'", "['a']"]),
    "missing node": ({"p": ["a", None]}, ["'p'", "None"]),
    "missing cluster": ({"a": "p", "b": float("nan")}, ["'b'", "missing"]),
    "root": ({"root": ["a"], "q": ["b"]}, ["'root'", "rename"]),
}


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize("case", BAD_CLUSTERS)
def test_clusters(case, form):
    clusters, parts = BAD_CLUSTERS[case]
    refused(lambda: BOTH[form](clusters), TermError, *parts)


def tree(*weights, clusters=CLUSTERS):
    return gr.Hierarchy(clusters, weights)


def averages(alpha=0.5, gamma=1.0):
    return gr.Hierarchy.from_alpha(CLUSTERS, alpha=alpha, gamma=gamma)


@refusals(
    {
        "too few": (lambda: tree(1), TermError, "2 levels", "1 weights"),
        "too many": (lambda: tree(1, 1, 1), TermError, "2 levels", "3 weights"),
        "number": (lambda: gr.Hierarchy(CLUSTERS, 1.0), TermError, "2 levels", "1 weights", "from the leaves"),
        "three levels": (lambda: tree(1, 1, clusters={"u": CLUSTERS}), TermError, "3 levels", "2 weights"),
        "zero": (lambda: tree(0, 1), TermError, "level 1", "positive"),
        "negative": (lambda: tree(1, -1), TermError, "level 2", "-1"),
        "text": (lambda: tree("x", 1), TermError, "level 1", "'x'"),
        "node lacks": (lambda: tree({"a": 1, "b": 1}, 1), TermError, "level 1", "no entry", "'c'"),
        "node unknown": (lambda: tree(dict.fromkeys("abcz", 1), 1), TermError, "level 1", "'z'"),
        "cluster lacks": (lambda: tree(1, {"p": 1}), TermError, "level 2", "no entry", "'q'"),
        "cluster unknown": (lambda: tree(1, dict.fromkeys("pqz", 1)), TermError, "level 2", "'z'"),
        "cluster zero": (lambda: tree(1, {"p": 0, "q": 1}), TermError, "level 2", "'p'", "positive"),
        "alpha below": (lambda: averages(-0.1), TermError, "'p'", "[0, 1]", "-0.1"),
        "alpha above": (lambda: averages({"p": 0.5, "q": 1.1}), TermError, "'q'", "[0, 1]", "1.1"),
        "alpha nan": (lambda: averages(np.nan), TermError, "[0, 1]", "nan"),
        "alpha text": (lambda: averages("half"), TermError, "[0, 1]", "'half'"),
        "alpha nothing": (lambda: averages(None), TermError, "[0, 1]", "None"),
        "alpha parameter": (lambda: averages(gr.Parameter(0.5)), TermError, "[0, 1]", "Parameter"),
        "alpha true": (lambda: averages(True), TermError, "[0, 1]", "True"),
        "alpha lacks": (lambda: averages({"p": 0.5}), TermError, "alpha", "no entry", "'q'"),
        "alpha unknown": (lambda: averages(dict.fromkeys("pqz", 0.5)), TermError, "alpha", "'z'"),
        "gamma zero": (lambda: averages(gamma=0), TermError, "gamma", "positive"),
        "gamma nan": (lambda: averages(gamma=np.nan), TermError, "gamma", "nan"),
        "gamma text": (lambda: averages(gamma="x"), TermError, "gamma", "'x'"),
        "gamma lacks": (lambda: averages(gamma={"a": 1, "b": 1}), TermError, "gamma", "no entry", "'c'"),
        "gamma at a node": (lambda: averages(gamma={"a": 1, "b": 1, "c": -1}), TermError, "gamma", "'c'", "-1"),
        "alpha with three levels": (
            lambda: gr.Hierarchy.from_alpha({"u": CLUSTERS}, alpha=0.5, gamma=1),
            TermError,
            "two levels",
        ),
    }
)
def test_hierarchies(build, error, parts):
    refused(build, error, *parts)


@pytest.mark.parametrize("name", ["tail", "head", "weight"])
def test_arrays_of_a_graph_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(gr.Graph.chain("abc"), name)[0] = 7
