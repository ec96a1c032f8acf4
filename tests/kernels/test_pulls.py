"""What flows take from the nodes, in one pass: as the matrix K' says it."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import graphreg as gr
from graphreg import fast as kernels
from graphreg.fast import compiler
from graphreg.network import edge_pulls, fast

WITH_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


@pytest.fixture(params=["python", pytest.param("numba", marks=WITH_NUMBA)])
def forced(request, monkeypatch):
    """The kernel on graphs of any size; compiled, or as it is written."""
    monkeypatch.setattr(fast, "LARGE", 0)
    monkeypatch.setattr(fast, "offered", lambda: kernels)
    if request.param == "python":
        monkeypatch.setattr(compiler, "compiles", lambda: False)
    compiler.specialised.cache_clear()
    yield request.param
    compiler.specialised.cache_clear()


def blocks():
    """Edges between nodes, on all coordinates and on some, and edges to the ground."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((18, 3)), np.ones(18), np.arange(18) % 6)
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 5), (5, 0)], nodes=range(6))
    ties = gr.TotalVariation(graph, gr.L2()) + gr.TotalVariation(graph, gr.L1(), features=["x2"])
    return gr.Problem(gr.SquaredLoss(data) + ties + gr.NodePenalty(gr.L2())).form.edges


def test_pulls_are_those_of_the_matrix(forced):
    rng = np.random.default_rng(1)
    for edge in blocks():
        u = rng.standard_normal((len(edge.tail), 3 if edge.features is None else 1))
        pull, size = edge_pulls(edge, u)
        np.testing.assert_allclose(pull, edge.transposed @ u, atol=1e-15)
        np.testing.assert_allclose(size, abs(edge.transposed) @ np.abs(u), atol=1e-15)


def test_few_flows_have_none():
    edge = blocks()[0]
    assert edge_pulls(edge, np.zeros((len(edge.tail), 3))) is None
