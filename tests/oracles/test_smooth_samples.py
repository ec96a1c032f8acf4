"""Proxes of smooth losses, of many nodes at once: each node decides for itself when it is there."""

from __future__ import annotations

import numpy as np
import pytest

import graphreg as gr
from graphreg.oracles import node_proxes
from graphreg.oracles.nodeprox import SmoothSamples

N, D, M = 24, 3, 6


@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.PoissonLoss, gr.HuberLoss])
def test_nodes_that_are_there_are_put_aside_and_change_nothing(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N * M, D)) * np.repeat(np.geomspace(0.01, 3.0, N), M)[:, None]
    y = (rng.random(N * M) < 0.5).astype(float)
    node = np.repeat(np.arange(N), M)

    def prox_of(rows):
        form = gr.Problem(gr.Model.of(loss(gr.NodeData.from_arrays(X[rows], y[rows], node[rows])))).form
        (prox,) = node_proxes(form)
        return prox

    v, tau, start = rng.standard_normal((N, D)), np.geomspace(0.1, 10.0, N), np.zeros((N, D))
    whole = prox_of(slice(None))
    first, memory = whole(v, tau, start, None)
    second, _ = whole(1.01 * v, 1.5 * tau, first, memory)
    for i in range(N):
        one, own = prox_of(node == i), slice(i, i + 1)
        w, kept = one(v[own], tau[own], start[own], None)
        np.testing.assert_allclose(w, first[own], rtol=1e-9, atol=1e-12)
        again, _ = one(1.01 * v[own], 1.5 * tau[own], w, kept)
        np.testing.assert_allclose(again, second[own], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.PoissonLoss])
def test_a_node_ends_where_rounding_leaves_nothing_to_move_however_long_the_step(loss, monkeypatch):
    """With steps of 1e8 what rounding leaves of a gradient is worth more than a point's last digits."""
    rng, m = np.random.default_rng(0), 60
    X, node = rng.standard_normal((N * m, D)), np.repeat(np.arange(N), m)
    y = (rng.random(N * m) < 0.5).astype(float)
    (prox,) = node_proxes(gr.Problem(gr.Model.of(loss(gr.NodeData.from_arrays(X, y, node)))).form)
    tau, w, memory, steps = np.full(N, 1e8), np.zeros((N, D)), None, []
    stepped = SmoothSamples.stepped
    monkeypatch.setattr(SmoothSamples, "stepped", lambda *given: steps.append(1) or stepped(*given))
    for _ in range(3):
        w, memory = prox(w, tau, w, memory)
    assert len(steps) < 50
    gradient = np.array([X[node == i].T @ np.asarray(slope(loss, X[node == i] @ w[i], y[node == i])) for i in range(N)])
    assert np.abs(gradient).max() < 1e-11


def slope(loss, x, y):
    return np.exp(x) - y if loss is gr.PoissonLoss else 1.0 / (1.0 + np.exp(-x)) - y
