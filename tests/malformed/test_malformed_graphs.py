"""Malformed graphs: edge lists, matrices, points, labels and clusters.

The rows are (place, value, expected error, what its message must name), as for the constructors.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from bad_input import CHAIN, CLUSTERS, problem
from malformed_values import HUGE, NOT_A_COUNT, wrong_answers

import graphreg as gr
from graphreg.errors import GraphError, GraphregError, TermError

ADJACENCY = nx.to_numpy_array(CHAIN)


PLACES = {
    # ---- graphs
    "Graph.from_edges(edges)": (
        gr.Graph.from_edges,
        {
            "nothing": None,
            "empty": [],
            "text": "ab",
            "number": 3,
            "texts": ["ab"],
            "four": [("a", "b", 1, 2)],
            "loop": [("a", "a")],
            "twice": [("a", "b"), ("b", "a")],
            "missing": [("a", None)],
            "nan": [("a", np.nan)],
            "lists": [(["a"], "b")],
            "zero": [("a", "b", 0.0)],
            "nan weight": [("a", "b", np.nan)],
            "text weight": [("a", "b", "1")],
            "complex weight": [("a", "b", 1j)],
            "huge weight": [("a", "b", HUGE)],
            "sets": [{"a", "b"}],
            "a set": {("a", "b")},
            "masked": np.ma.masked_array([[0, 1], [1, 2]], mask=[[0, 0], [0, 1]]),
        },
        GraphError,
        "",
    ),
    "Graph.from_edges(weights)": (
        lambda v: gr.Graph.from_edges([("a", "b"), ("b", "c")], weights=v),
        {
            "short": [1.0],
            "text": "11",
            "zero": [1.0, 0.0],
            "minus": [1.0, -1.0],
            "nan": [1.0, np.nan],
            "infinite": [1.0, np.inf],
            "texts": ["1", "1"],
            "complex": [1.0, 1j],
            "huge": [1, HUGE],
            "number": 1.0,
            "masked": np.ma.masked_array([1.0, 2.0], mask=[0, 1]),
            "two axes": np.ones((2, 2)),
            "a set": {1.0, 2.0},
            "truths": [True, True],
        },
        GraphError,
        "",
    ),
    "Graph.from_edges(nodes)": (
        lambda v: gr.Graph.from_edges([("a", "b")], nodes=v),
        {
            "lacks": ["a"],
            "twice": ["a", "b", "a"],
            "missing": ["a", "b", None],
            "number": 3,
            "lists": [["a"], ["b"]],
            "a set": {"a", "b"},
        },
        GraphError,
        "",
    ),
    "Graph.from_sparse(adjacency)": (
        gr.Graph.from_sparse,
        {
            "nothing": None,
            "text": "A",
            "number": 3.0,
            "not square": np.ones((2, 3)),
            "asymmetric": np.triu(np.ones((3, 3)), 1),
            "minus": -ADJACENCY,
            "nan": ADJACENCY * np.nan,
            "infinite": np.array([[0, np.inf], [np.inf, 0]]),
            "loop": np.eye(3),
            "complex": ADJACENCY * 1j,
            "texts": np.array([["0", "1"], ["1", "0"]]),
            "objects": np.array([[0, HUGE], [HUGE, 0]], dtype=object),
            "masked": np.ma.masked_array(ADJACENCY, mask=np.eye(3, k=1)),
            "ragged": [[0, 1], [1]],
            "empty": np.zeros((0, 0)),
            "three axes": np.zeros((2, 2, 2)),
            "other names": pd.DataFrame(ADJACENCY, index=list("abc"), columns=list("abd")),
        },
        GraphError,
        "",
    ),
    "Graph.from_sparse(labels)": (
        lambda v: gr.Graph.from_sparse(ADJACENCY, v),
        {
            "short": ["a"],
            "twice": ["a", "b", "a"],
            "missing": ["a", "b", None],
            "number": 3,
            "lists": [["a"], ["b"], ["c"]],
            "a set": {"a", "b", "c"},
        },
        GraphError,
        "label",
    ),
    "Graph.from_networkx(graph)": (
        gr.Graph.from_networkx,
        {
            "nothing": None,
            "directed": nx.DiGraph(CHAIN),
            "multigraph": nx.MultiGraph([*CHAIN.edges, *CHAIN.edges]),
            "text": "chain",
            "empty": nx.Graph(),
            "an array": ADJACENCY,
            "loop": nx.Graph([("a", "a")]),
            "missing": nx.Graph([("a", np.nan)]),
        },
        GraphError,
        "",
    ),
    "Graph.from_networkx(weight)": (
        lambda v: gr.Graph.from_networkx(nx.Graph([("a", "b", {"weight": 2.0})]), v),
        {"typo": "wieght", "number": 3, "a list": ["weight"], "true": True},
        GraphError,
        "weight",
    ),
    "Graph.grid(rows)": (lambda v: gr.Graph.grid(v, 3), NOT_A_COUNT | {"nothing": None}, GraphError, "rows"),
    "Graph.grid(columns)": (lambda v: gr.Graph.grid(3, v), NOT_A_COUNT | {"nothing": None}, GraphError, "columns"),
    "Graph.chain(nodes)": (
        gr.Graph.chain,
        {
            "zero": 0,
            "minus": -1,
            "half": 2.5,
            "true": True,
            "nothing": None,
            "twice": ["a", "b", "a"],
            "missing": ["a", None],
            "empty": [],
            "nan": np.nan,
            "a set": {"a", "b"},
        },
        GraphError,
        "",
    ),
    "Graph.nearest_neighbours(points)": (
        lambda v: gr.Graph.nearest_neighbours(v, 1),
        {
            "nothing": None,
            "text": "points",
            "nan": [[0.0], [np.nan]],
            "infinite": [[0.0], [np.inf]],
            "complex": [[0.0], [1j]],
            "masked": np.ma.masked_array([[0.0], [1.0]], mask=[[0], [1]]),
            "texts": [["0"], ["1"]],
            "ragged": [[0.0], [1.0, 2.0]],
            "huge": [[0], [HUGE]],
            "empty": np.zeros((0, 2)),
            "a set": {0.0, 1.0},
        },
        GraphError,
        "",
    ),
    "Graph.nearest_neighbours(k)": (
        lambda v: gr.Graph.nearest_neighbours(np.arange(4.0)[:, None], v),
        NOT_A_COUNT | {"nothing": None, "too many": 4},
        GraphError,
        "k",
    ),
    "Graph.nearest_neighbours(weight)": (
        lambda v: gr.Graph.nearest_neighbours(np.arange(4.0)[:, None], 1, weight=v),
        {
            "unknown": "gausian",
            "number": 3,
            "minus": lambda s: -s,
            "nan": lambda s: s * np.nan,
            "short": lambda s: s[:1],
            "texts": lambda s: ["x"] * len(s),
            "complex": lambda s: s * 1j,
        },
        GraphError,
        "weight",
    ),
    "Hierarchy(clusters)": (
        lambda v: gr.Hierarchy(v, (1.0, 1.0)),
        {
            "nothing": None,
            "text": "p",
            "number": 3,
            "empty": {},
            "a list": [["a"]],
            "twice": {"p": ["a", "a"]},
            "missing": {"p": ["a", None]},
        },
        TermError,
        "",
    ),
    "a graph of other nodes": (
        lambda v: problem(gr.TotalVariation(v, gr.L2())),
        {"numbers for texts": nx.relabel_nodes(CHAIN, {"a": 0, "b": 1, "c": 2})},
        GraphregError,
        "",
    ),
    "a hierarchy of other nodes": (
        lambda v: problem(gr.Hierarchy(v, (1.0, 1.0))),
        {"numbers for texts": {"p": [0, 1], "q": [2]}},
        GraphregError,
        "",
    ),
    "clusters": (
        lambda v: problem(gr.Hierarchy(CLUSTERS, v)),
        {
            "number": 1.0,
            "text": "11",
            "short": (1.0,),
            "nothing": None,
            "texts": ("1", "1"),
            "masked": np.ma.masked_array([1.0, 1.0], mask=[0, 1]),
            "complex": (1.0, 1j),
        },
        TermError,
        "",
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_malformed_graphs_are_refused_by_name(place):
    build, values, error, part = PLACES[place]
    assert wrong_answers(build, values, error, part) == {}
