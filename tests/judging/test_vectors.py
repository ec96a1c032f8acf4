"""Points of problems with one parameter per node: a number for each node will do."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import ModelError

NAMES = ["c", "a", "b"]


@pytest.fixture
def problem():
    data = gr.NodeData.from_dict({name: (np.ones((3, 1)), np.arange(3.0) + k) for k, name in enumerate(NAMES)})
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(NAMES), gr.L1()))


W = np.array([1.0, 2.5, 3.0])


@pytest.mark.parametrize(
    "given",
    [W, W.tolist(), dict(zip(NAMES, W, strict=True)), pd.Series(W[[2, 0, 1]], ["b", "c", "a"])],
    ids=["array", "list", "mapping", "series"],
)
def test_a_number_for_each_node_is_taken(given, problem):
    assert problem.value(given) == problem.value(W[:, None])
    assert problem.certify(given, gap=0.1).primal == problem.certify(W[:, None], gap=0.1).primal


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (W[:2], r"shape \(3, 1\)"),
        (pd.Series(W, ["c", "a", "x"]), "'x'"),
        ({"c": 1.0, "a": 2.0}, "'b'"),
        (pd.Series(W, ["c", "a", "a"]), "twice"),
    ],
    ids=["short", "unknown", "missing", "twice"],
)
def test_what_is_no_number_for_each_node_is_refused(given, said, problem):
    with pytest.raises(ModelError, match=said):
        problem.value(given)
