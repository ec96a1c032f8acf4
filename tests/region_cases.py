"""Problems at which confidence regions are looked at."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.inference import ConfidenceRegion

K, M, D = 6, 40, 3
STEP = gr.DecreasingStep(D=0.2, gamma=5.0, alpha=0.8)


def drawn(m=M, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(0.3 * rng.standard_normal((K, 1, D))) * rng.standard_normal((K, m, D))
    y = np.einsum("kmd,kd->km", X, [1.0, -0.5, 0.0] + 0.3 * rng.standard_normal((K, D)))
    return X, y + rng.standard_normal((K, m))


def problem(m=M, seed=0, spoil=None, loss=gr.SquaredLoss, edges=True):
    X, y = drawn(m, seed)
    if spoil is not None:
        spoil(X, y)
    y = (y > 0).astype(int) if loss is gr.LogisticLoss else y
    model = loss(gr.NodeData.from_arrays(X.reshape(-1, D), y.ravel(), np.repeat(range(K), m)))
    return gr.Problem(model + gr.Consensus(nx.cycle_graph(K)) if edges else model)


def region(V=None, names=("x0", "x1", "x2")):
    V = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]]) if V is None else V
    return ConfidenceRegion(pd.Series([1.0, -2.0, 0.5], index=list(names)), V, "by hand", ("nothing",))
