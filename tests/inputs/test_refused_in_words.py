"""Input that used to end in an error of Python's or numpy's own: refused in words, with the argument that is wrong."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
from bad_input import refusals, refused
from factories import chain

import graphreg as gr
from graphreg import mpi
from graphreg.errors import DataError, GraphError, MethodError, ModelError, ModelFileError, TermError
from graphreg.plots import outlines_of

ONE = np.ones(1)
ITSELF = {}
ITSELF["x"] = ITSELF


def neighbours(weight):
    return gr.Graph.nearest_neighbours(np.eye(3), 1, weight=lambda _: weight)


def two(labels=("a", "b"), tail=(0,), head=(1,), weight=ONE):
    return gr.Graph(labels, tail, head, weight)


def samples(node):
    return gr.NodeData(("a",), np.array(node), np.ones((2, 1)), np.ones(2), np.ones(2), np.zeros(2), ("x",), ("y",))


def deep(levels):
    tree = {"x": ["a"]}
    for _ in range(levels):
        tree = {"x": tree}
    return gr.Hierarchy(tree, (1.0,) * (levels + 2))


def outlines(*points):
    shape = {"type": "Feature", "id": 0, "geometry": {"type": "Polygon", "coordinates": [list(points)]}}
    return outlines_of({"type": "FeatureCollection", "features": [shape]}, [0])


@refusals(
    {
        "one weight for all": (lambda: neighbours(1.0), GraphError, "weight must be", "entry per edge", "1."),
        "no weights": (lambda: neighbours(None), GraphError, "weight must be", "entry per edge"),
        "tail": (lambda: two(tail=None), GraphError, "tail must be", "None"),
        "ragged tail": (lambda: two(tail=[[0], [1, 2]]), GraphError, "tail must be", "whole numbers"),
        "tail by name": (lambda: two(tail={0: 1}), GraphError, "tail must be", "mapping"),
        "head": (lambda: two(head=0), GraphError, "head must be", "got 0"),
        "weight": (lambda: two(weight=None), GraphError, "weight must be", "None"),
        "labels": (lambda: two(labels=3), GraphError, "labels must be a list of labels", "3"),
        "large grid": (
            lambda: gr.Graph.grid(10**7, 10**7),
            GraphError,
            "10,000,000 nodes would take",
            "make it smaller",
        ),
        "large chain": (
            lambda: gr.Graph.chain(10**13),
            GraphError,
            "10,000,000,000,000 nodes would take",
            "make it smaller",
        ),
        "node": (lambda: samples([0, 5]), DataError, "node[1] is 5", "0 to 0"),
        "node of floats": (lambda: samples(np.array([0.0, 0.0])), DataError, "positions in labels", "float64"),
        "node below": (lambda: samples([-1, 0]), DataError, "node[0] is -1", "0 to 0"),
        "a frame as nodes": (
            lambda: gr.NodeData.from_arrays(np.eye(2), [1.0, 2.0], pd.DataFrame({"site": [0, 1]})),
            DataError,
            "DataFrame",
            "frame['site']",
        ),
        "clusters that hold themselves": (lambda: gr.Hierarchy(ITSELF, (1.0,)), TermError, "nested", "hold itself"),
        "deep clusters": (lambda: deep(2000), TermError, "nested more than 100 deep", "'x'"),
        "region and district": (
            lambda: gr.Hierarchy({0: ("north", "n1"), 1: ("north", "n2")}, (1.0, 1.0, 1.0)),
            TermError,
            "'north' stands in two clusters",
            "nested dicts",
        ),
        "no model file": (lambda: gr.read_model(None), ModelFileError, "path must be its name", "None"),
        "a method by name": (lambda: mpi.solve(chain(), range(8), method="ADMM"), MethodError, "write ADMM()"),
        "outlines": (lambda: outlines((0, 0), (1, np.nan), (1, 1)), ModelError, "'0'", "not finite"),
    }
)
def test_refused(build, error, parts):
    refused(build, error, *parts)


def test_what_is_near_to_that_is_taken():
    assert two(tail=[0], weight=(1.0,)).n_edges == 1
    assert neighbours(np.ones(2)).n_edges == 2
    assert gr.Graph.grid(30, 30).n_nodes == 900
    assert deep(50).clusters
    assert gr.Hierarchy({"p": ("a", "b"), "q": ("c",)}, (1.0, 1.0)).labels() == ("a", "b", "c")
    assert outlines((0, 0), (1, 0), (1, 1)).own
    assert nx.is_connected(two().to_networkx())
