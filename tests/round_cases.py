"""Problems for compiled rounds, which are taken with numba, or as the plain Python that is compiled."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest

import graphreg as gr
from graphreg import fast as kernels
from graphreg.fast import compiler, order
from graphreg.network import fast

WITH_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
WAYS = ("python", pytest.param("numba", marks=WITH_NUMBA))


def compiling(monkeypatch, does):
    monkeypatch.setattr(fast, "compiles", lambda: does)
    monkeypatch.setattr(fast, "offered", lambda: kernels if does else None)


@contextmanager
def forced_rounds(monkeypatch, way):
    """Rounds of kernels on graphs of any size; compiled, or as they are written."""
    monkeypatch.setattr(fast, "WORTH", 0)
    compiling(monkeypatch, True)
    monkeypatch.setattr(order, "BLOCK", 128)  # so that a small grid has several groups
    if way == "python":
        monkeypatch.setattr(compiler, "compiles", lambda: False)
    for each in (compiler.compiled, compiler.specialised):
        each.cache_clear()
    yield way
    for each in (compiler.compiled, compiler.specialised):
        each.cache_clear()


# ---- problems --------------------------------------------------------------------------------------------------------
def graph(n=14, m=40, seed=0):
    """A random graph with weights over two decades, and a node without edges."""
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(n - 1) for j in range(i)])
    edges = pairs[rng.permutation(len(pairs))[:m]]
    return gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], 10.0 ** rng.uniform(-1, 1, m))


def regression(d, samples, kind=gr.SquaredLoss, n=14, seed=1):
    """Data at all nodes but the first."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(1, n), samples)
    X = rng.standard_normal((len(node), d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(len(node))
    return kind(gr.NodeData.from_arrays(X, y if kind is gr.SquaredLoss else np.sign(y), node))


def means(d, n=14, seed=2, nodes=None):
    rng = np.random.default_rng(seed)
    nodes = np.arange(n) if nodes is None else nodes
    return gr.MeanLoss(gr.NodeData.from_arrays(None, rng.standard_normal((len(nodes), d)), nodes))


def ragged(d, n=14, seed=4):
    """From one to twelve samples at every node, so that nodes are dealt out to several stacks."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(n), rng.integers(1, 13, n))
    X = rng.standard_normal((len(node), d))
    return gr.SquaredLoss(gr.NodeData.from_arrays(X, X.sum(axis=1) + rng.standard_normal(len(node)), node))


def tied(*penalties):
    return sum((0.2 * gr.TotalVariation(graph(seed=k), each) for k, each in enumerate(penalties)), start=0)


def grid(rows, columns, penalty, seed=None):
    """Means on a grid; its edges in any order where there is a seed."""
    whole = gr.Graph.grid(rows, columns)
    places = np.arange(whole.n_edges) if seed is None else np.random.default_rng(seed).permutation(whole.n_edges)
    mixed = gr.Graph(tuple(range(rows * columns)), whole.tail[places], whole.head[places], whole.weight[places])
    return gr.Problem(means(1, rows * columns) + 0.3 * gr.TotalVariation(mixed, penalty))


RIDGE = 0.1 * gr.NodePenalty(gr.SquaredL2())
PROBLEMS = {
    "means, l1": lambda: gr.Problem(means(1) + tied(gr.L1())),
    "means, l2, d = 3": lambda: gr.Problem(means(3) + tied(gr.L2())),
    "means at some nodes": lambda: gr.Problem(means(2, nodes=np.array([1, 4, 5, 9])) + tied(gr.L2(), gr.SquaredL2())),
    "regression, l1": lambda: gr.Problem(regression(4, 6) + tied(gr.L1())),
    "regression, l2": lambda: gr.Problem(regression(4, 6) + tied(gr.L2())),
    "regression, squared": lambda: gr.Problem(regression(4, 6) + tied(gr.SquaredL2())),
    "regression, d = 1": lambda: gr.Problem(regression(1, 6) + tied(gr.L1())),
    "ragged, d = 1": lambda: gr.Problem(ragged(1) + tied(gr.L1())),
    "ragged": lambda: gr.Problem(ragged(3) + tied(gr.L2())),
    "few samples": lambda: gr.Problem(regression(40, 3) + tied(gr.L2())),
    "wide": lambda: gr.Problem(regression(33, 36) + tied(gr.L1())),
    "mixed": lambda: gr.Problem(regression(3, 6) + tied(gr.L1(), gr.L2(), gr.HuberNorm(0.3)) + RIDGE),
    "centred": lambda: gr.Problem(means(2) + tied(gr.L2()) + 0.1 * gr.NodePenalty(gr.L1(), center=[0.5, -0.5])),
    "logistic": lambda: gr.Problem(regression(3, 20, gr.LogisticLoss) + tied(gr.L2()) + RIDGE),
    "a grid": lambda: grid(12, 20, gr.L1()),
    "a grid in disorder": lambda: grid(12, 20, gr.L2(), seed=0),
    "a grid, squared": lambda: grid(12, 20, gr.SquaredL2()),
    "a grid with l1 at the nodes": lambda: gr.Problem(grid(9, 20, gr.L1()).model + 0.1 * gr.NodePenalty(gr.L1())),
}
