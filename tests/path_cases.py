"""The shared parts of the tests of paths of strengths."""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr

GRID = np.geomspace(1e-3, 1.0, 8)


def problem_of(penalty=None, loss=gr.SquaredLoss, extra=None, side=4, seed=0):
    """A grid graph whose halves differ, a few samples a node."""
    rng = np.random.default_rng(seed)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    half = side * side // 2
    data = {}
    for i in graph:
        X = rng.standard_normal((8, 2))
        link = X @ ([1.0, -1.0] if i < half else [-1.0, 1.0]) + 0.3 * rng.standard_normal(8)
        data[i] = (X, link if loss is gr.SquaredLoss else (link > 0).astype(float))
    lam = gr.Parameter(0.3, name="lam")
    model = loss(gr.NodeData.from_dict(data)) + lam * gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(model if extra is None else model + extra), lam
