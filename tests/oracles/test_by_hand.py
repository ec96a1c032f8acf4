"""Quantities of a problem that an algorithm written by hand needs: gradients, proxes and incidence, against the form
itself."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import MethodError


def posed(loss=gr.SquaredLoss, penalty=None, ridge=0.2):
    rng = np.random.default_rng(0)
    samples = {}
    for i in range(6):
        X = rng.normal(size=(5 + i, 2))
        y = X @ [1.0, -1.0] + rng.normal(size=len(X))
        samples[i] = X, (y > 0).astype(float) if loss is gr.LogisticLoss else y
    graph = nx.path_graph(6)
    nx.set_edge_attributes(graph, {edge: 0.5 + k for k, edge in enumerate(graph.edges)}, "weight")
    model = loss(gr.NodeData.from_dict(samples)) + 0.4 * gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(model + ridge * gr.NodePenalty(gr.SquaredL2()) + 0.1 * gr.NodePenalty(gr.L1()))


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_gradients_are_those_of_losses_and_smooth_node_penalties(loss):
    o, form = posed(loss).oracles(), posed(loss).form
    w, h = np.random.default_rng(1).normal(size=form.shape), 1e-6
    smooth = [*form.samples, *(edge for edge in form.edges if edge.ground and "Squared" in edge.name)]
    for i, j in ((0, 0), (3, 1)):
        step = np.zeros(form.shape)
        step[i, j] = h
        by_differences = sum((b.values(w + step).sum() - b.values(w - step).sum()) / (2 * h) for b in smooth)
        assert o.gradient(w)[i, j] == pytest.approx(by_differences, rel=1e-5)


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss, gr.HuberLoss])
def test_proxes_of_losses_are_exact(loss):
    problem = posed(loss, ridge=1e-9)
    o, v, tau = problem.oracles(), np.random.default_rng(2).normal(size=(6, 2)), np.linspace(0.1, 3.0, 6)
    w = o.prox(v, tau)
    (block,) = problem.form.samples
    slope = block.adjoint(block.prices(w), w.shape) + 1e-9 * w  # that of the ridge
    np.testing.assert_allclose(slope + (w - v) / tau[:, None], 0.0, atol=1e-9)


@pytest.mark.parametrize("features", [None, ["x0"]])
@pytest.mark.parametrize("kind", [gr.SquaredLoss, gr.LogisticLoss, gr.MultinomialLoss])
def test_proxes_of_losses_with_ridges_are_exact(kind, features):
    rng, labels = np.random.default_rng(5), range(6)  # the last one has no samples
    X, node = rng.normal(size=(30, 2)), np.repeat(labels[:5], 6)
    y = rng.integers(0, 3, 30) if kind is gr.MultinomialLoss else np.sign(rng.normal(size=30))
    loss = kind(gr.NodeData.from_arrays(X, y, node, intercept=True))
    ridge = gr.NodePenalty(gr.SquaredL2(), features=features)
    if kind is not gr.MultinomialLoss:
        ridge += 3.0 * gr.NodePenalty(gr.SquaredL2(), features=["x1"], center=[2.0])
    o = gr.Problem(loss + 0.1 * gr.TotalVariation(nx.path_graph(labels), gr.L2()) + 0.7 * ridge).oracles()
    v = rng.normal(size=(o.n, o.d))
    for tau in (np.linspace(0.1, 3.0, o.n), 1.0, np.linspace(0.1, 3.0, o.n)):
        w = o.prox(v, tau)
        step = np.broadcast_to(tau, (o.n,))[:, None]
        np.testing.assert_allclose(step * o.gradient(w) + w - v, 0.0, atol=1e-8)


def test_proxes_of_means_take_ridges_of_all_coordinates():
    data = gr.NodeData.from_dict({i: (None, np.full((2, 2), float(i))) for i in range(3)})
    for features, known in ((None, True), (["y0"], False)):
        ridge = 0.5 * gr.NodePenalty(gr.SquaredL2(), features=features)
        o = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L2()) + ridge).oracles()
        if known:
            w = o.prox(np.ones((3, 2)), 0.5)
            np.testing.assert_allclose(0.5 * o.gradient(w) + w - 1.0, 0.0, atol=1e-12)
        else:
            with pytest.raises(MethodError, match="has no prox beside a node penalty on some coordinates"):
                o.prox(np.ones((3, 2)), 0.5)


@pytest.mark.parametrize("penalty", [gr.L2(), gr.L1(), gr.SquaredL2(), gr.LInf()], ids=lambda p: type(p).__name__)
def test_proxes_of_edges_obey_moreau_and_lie_in_their_domain(penalty):
    problem = posed(penalty=penalty)
    o, rng = problem.oracles(), np.random.default_rng(3)
    u, step = rng.normal(size=(5, 2)), rng.uniform(0.2, 2.0, 5)
    p = o.dual_prox(u, step)
    np.testing.assert_allclose(u - step[:, None] * o.edge_prox(u / step[:, None], 1.0 / step), p, atol=1e-12)
    (edge,) = (edge for edge in problem.form.edges if not edge.ground)
    assert np.isfinite(edge.conjugates(p * (1.0 - 1e-12))).all()


def test_weights_incidence_and_node_penalties():
    o = posed().oracles()
    np.testing.assert_allclose(o.weight, 0.4 * (0.5 + np.arange(5)))
    w = np.random.default_rng(4).normal(size=(6, 2))
    np.testing.assert_array_equal(o.K @ w, w[o.tail] - w[o.head])
    shrunk = o.node_prox(w, 2.0)  # the l1 norm alone: the ridge is part of the gradient
    np.testing.assert_allclose(shrunk, np.sign(w) * np.maximum(np.abs(w) - 0.2, 0.0))


def test_edges_on_some_features_are_refused_by_name():
    data = gr.NodeData.from_dict({i: (np.eye(2), np.ones(2)) for i in range(3)})
    model = gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L2(), features=["x0"])
    with pytest.raises(MethodError, match=r"TotalVariation\(L2\) acts on some features"):
        gr.Problem(model).oracles().edge_prox(np.zeros((2, 2)), 1.0)
