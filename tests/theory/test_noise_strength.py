"""The strength that the noise asks for, against its formula with pseudo-inverses, and its refusals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from factories import thinned, weighted

import graphreg as gr
from graphreg.errors import DataError, MethodError, ModelError, TermError
from graphreg.inference.local import local_fits
from graphreg.tuning import noise_strength

D, M = 3, 30
DUAL = {gr.L1: np.inf, gr.L2: 2, gr.LInf: 1}


def drawn(graph, seed=0, m=M):
    rng = np.random.default_rng(seed)
    rows = {}
    for label in graph.nodes:
        X = rng.normal(size=(m, D))
        rows[label] = (X, X @ np.ones(D) + rng.normal(size=m))
    return gr.NodeData.from_dict(rows)


@pytest.mark.parametrize("penalty", thinned(DUAL, every=2))
def test_the_quantile_is_that_of_the_formula(penalty):
    """Also on several components, one an isolated node; with the pseudo-inverse written out."""
    graph = weighted(nx.disjoint_union(nx.cycle_graph(5), nx.path_graph(4)), 1, 0.3)
    graph.add_node(9)
    data, draws = drawn(graph), 4000
    problem = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph, penalty()))
    found = noise_strength(problem, 0.8, draws, seed=0)
    S = local_fits(problem.form).score_covariance()
    weights = np.array([w for *_, w in graph.edges(data="weight")])
    AD = weights[:, None] * nx.incidence_matrix(graph, oriented=True).T.toarray()
    lift = np.linalg.pinv(AD).T
    rng = np.random.default_rng(6)
    psi = np.stack([rng.multivariate_normal(np.zeros(D), S[i], draws) for i in range(len(graph))], axis=1)
    loads = np.linalg.norm(np.einsum("ei,bij->bej", lift, psi), DUAL[penalty], axis=2).max(axis=1)
    np.testing.assert_allclose(found.value, np.quantile(loads, 0.8), rtol=0.03)
    np.testing.assert_allclose(found.draws.mean(), loads.mean(), rtol=0.03)
    assert found.low <= found.value <= found.high


def test_loads_of_one_draw_exactly():
    """The electrical flows of given scores are the rows of the pseudo-inverse."""
    from graphreg.theory.varied import varying

    graph = weighted(nx.gnp_random_graph(8, 0.6, seed=2), 1, 0.3)
    problem = gr.Problem(gr.SquaredLoss(drawn(graph)) + gr.TotalVariation(graph, gr.L2()))
    network = varying(problem, None, "it").network
    psi = np.random.default_rng(0).normal(size=network.shape)
    _, flows = network.electrical(network.balanced(psi))
    (block,), (A,) = network.blocks, network.weights
    lift = np.linalg.pinv(A[:, None] * block.K.toarray()).T
    np.testing.assert_allclose(flows[0] / A[:, None], -lift @ psi, atol=1e-12)


def test_scales_and_units_pass_through():
    graph = nx.cycle_graph(6)
    data, tv = drawn(graph), gr.TotalVariation(graph, gr.L2())
    mean = noise_strength(gr.Problem(gr.SquaredLoss(data) + tv), seed=0, draws=50)
    total = noise_strength(gr.Problem(gr.SquaredLoss(data, scale="sum") + tv), seed=0, draws=50)
    assert float(total) == pytest.approx(M * float(mean))
    lam = gr.Parameter(3.0)
    halved = noise_strength(gr.Problem(gr.SquaredLoss(data) + 2 * lam * tv), seed=0, draws=50)
    assert float(halved) == pytest.approx(float(mean) / 2)


def test_it_fuses_what_is_alike():
    """On the true graph, at the strength of the noise, nodes that are alike fuse in most replications."""
    graph, fused = nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(5)), 0
    for seed in range(10):
        rows = {}
        rng = np.random.default_rng(seed)
        for i in graph.nodes:
            X = rng.normal(size=(M, D))
            rows[i] = (X, X @ np.full(D, 1.0 if i < 5 else -1.0) + rng.normal(size=M))
        lam = gr.Parameter(1.0)
        problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(rows)) + lam * gr.TotalVariation(graph, gr.L2()))
        lam.value = float(noise_strength(problem, seed=seed, draws=200))
        fused += lam.value >= float(gr.strength_max(problem))
    assert fused >= 7


def test_latent_nodes_and_nodes_without_data_have_no_noise():
    graph = nx.path_graph(7)
    data = drawn(nx.path_graph(6))
    found = noise_strength(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(graph, gr.L1())), draws=50, seed=0)
    assert "nodes without data have no noise; there is 1" in str(found)
    clusters = {"a": [0, 1, 2], "b": [3, 4, 5]}
    tree = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy(clusters, (1.0, 2.0), gr.L2()))
    assert float(noise_strength(tree, draws=50, seed=0)) > 0


def test_what_is_printed_and_repeated():
    graph = nx.path_graph(4)
    problem = gr.Problem(gr.SquaredLoss(drawn(graph)) + gr.TotalVariation(graph, gr.L2()))
    found = noise_strength(problem, draws=50, seed=3, progress=True)
    assert float(found) == float(noise_strength(problem, draws=50, seed=3))
    assert "take a fifth" in " ".join(str(found).split())
    assert "HC3" in str(found)
    assert repr(found) == f"<NoiseStrength {found.value:.6g}>"


def test_bad_input_and_local_fits_that_fail():
    graph = nx.path_graph(4)
    data = drawn(graph)
    tv = gr.TotalVariation(graph, gr.L2())
    problem = gr.Problem(gr.SquaredLoss(data) + tv)
    for quantile in (0, 1, "x", np.nan, True):
        with pytest.raises(ModelError, match="quantile"):
            noise_strength(problem, quantile)
    for draws in (0, 5, 10.5, True):
        with pytest.raises(ModelError, match="draws"):
            noise_strength(problem, draws=draws)
    with pytest.raises(TermError, match="SquaredL2 has no strength"):
        noise_strength(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(graph, gr.SquaredL2())))
    with pytest.raises(DataError, match="a sample of the node 0 alone determines a coefficient"):
        noise_strength(gr.Problem(gr.SquaredLoss(drawn(graph, m=2)) + tv))
    with pytest.raises(MethodError, match="'HC0', 'HC1'"):
        noise_strength(problem, covariance="robust")
    with pytest.raises(MethodError, match="QuantileLoss is not smooth"):
        noise_strength(gr.Problem(gr.QuantileLoss(data, tau=0.5) + tv))
