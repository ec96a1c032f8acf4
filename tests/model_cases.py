"""The shared parts of the tests of models: samples of four nodes, and what models are compared by."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr

NODES = ["a", "b", "c", "d"]
CHAIN = nx.path_graph(NODES)


def samples(rng, nodes=NODES, m=5, d=2):
    return {label: (rng.normal(size=(m, d)), rng.normal(size=m) + k) for k, label in enumerate(nodes)}


def regression(rng, **more):
    return gr.NodeData.from_dict(samples(rng, **more), intercept=True)


def means(**values):
    """One target per node."""
    return gr.NodeData.from_dict({label: (None, [value]) for label, value in values.items()})


def solve(model, gap=1e-9):
    solution = gr.Problem(model).solve(gr.Exact(), gap=gap)
    assert solution.status == "certified"
    return solution


def equal(model, other, atol=1e-5):
    """Both have the same optimum and, up to the accuracy, the same coefficients."""
    one, two = solve(model), solve(other)
    assert one.objective == pytest.approx(two.objective, rel=1e-7)
    np.testing.assert_allclose(one.coef, two.coef, atol=atol)


def ridge_fit(X, y, weight, ridge, center=0.0):
    """argmin of weight ||Xw - y||^2 / 2 + ridge ||w - center||^2 / 2."""
    d = X.shape[1]
    return np.linalg.solve(weight * X.T @ X + ridge * np.eye(d), weight * X.T @ y + ridge * np.full(d, center))
