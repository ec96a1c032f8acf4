"""Problems in two clusters of nodes, for the tests of baselines."""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr

N = 12
CLUSTERS = {i: "even" if i % 2 == 0 else "odd" for i in range(N)}
TRUE = np.array([[1.0, 2.0, -1.0], [-1.0, 0.5, 2.0]])
GRAPH = nx.cycle_graph(N)


def data_of(loss=gr.SquaredLoss, n=N, m=20, seed=0, noise=0.3):
    """Two clusters of nodes with different coefficients and different designs."""
    rng, m = np.random.default_rng(seed), 3 * m if loss is gr.LogisticLoss else m  # whose classes overlap
    node = np.repeat(np.arange(n), m)
    X = rng.standard_normal((n * m, 3)) * (1.0 + (node % 3)[:, None])
    eta = (X * TRUE[node % 2]).sum(axis=1)
    if loss is gr.LogisticLoss:
        return gr.NodeData.from_arrays(X, (0.4 * eta + rng.logistic(size=n * m) > 0).astype(int), node)
    return gr.NodeData.from_arrays(X, eta + noise * rng.standard_normal(n * m), node)


def chain(loss=gr.SquaredLoss, extra=None, **more):
    model = loss(data_of(loss), **more) + 0.1 * gr.TotalVariation(GRAPH, gr.L2())
    return gr.Problem(model if extra is None else model + extra)
