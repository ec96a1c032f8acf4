"""Equalities with solutions that are found without graphreg: by hand in CVXPY, in closed form, by other packages."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.linear_model import LogisticRegression

import graphreg as gr

METHODS = {"exact": gr.Exact(), "primal-dual": gr.PrimalDual(), "admm": gr.ADMM()}
N, D, M = 8, 3, 5  # nodes, features, samples per node
TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture(params=METHODS)
def solve(request):
    """Solves a model to a certified relative gap of 1e-9 with one of the two routes."""
    return lambda model: gr.Problem(model).solve(METHODS[request.param], gap=1e-9)


@pytest.fixture
def graph(rng):
    """A ring with chords and random weights, on the labels 0, 1, ..."""
    ring = nx.circulant_graph(N, [1, 3])
    for _, _, data in ring.edges(data=True):
        data["weight"] = rng.uniform(0.5, 2.0)
    return ring


def samples(rng, sizes=(M,) * N):
    """X and y per node, around two different truths."""
    out = {}
    for i, size in enumerate(sizes):
        X = rng.normal(size=(size, D))
        out[i] = X, X @ np.array([1.0, -1.0, 0.5 if i < len(sizes) // 2 else 2.0]) + 0.3 * rng.normal(size=size)
    return out


def agree(solution, objective, coef, atol=1e-4):
    """The objectives agree to 1e-6 relative, and the coefficients as far as a gap of 1e-9 lets them."""
    assert solution.status == "certified"
    assert solution.objective == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(solution.coef, coef, atol=atol)


def minimum(objective):
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    return problem.value


# ---- total variation -------------------------------------------------------------------------------------------------
def test_convex_clustering(rng, graph, solve):
    points = rng.normal(size=(N, 2)) + 3.0 * (np.arange(N) % 2)[:, None]
    data = gr.NodeData.from_arrays(None, points, range(N))
    found = solve(gr.MeanLoss(data, scale="sum") + 0.2 * gr.TotalVariation(graph, gr.L2()))

    c = cp.Variable((N, 2))
    fusion = sum(a * cp.norm(c[i] - c[j]) for i, j, a in graph.edges(data="weight"))
    value = minimum(cp.sum_squares(c - points) / 2 + 0.2 * fusion)
    agree(found, value, c.value)


def test_denoising_of_a_chain(rng, solve):
    """The dual is a least-squares problem in a box: x = y - D'u, |u| <= strength."""
    y = np.repeat([0.0, 2.0, -1.0, 0.5], 12) + 0.4 * rng.normal(size=48)
    data = gr.NodeData.from_arrays(None, y, range(48))
    found = solve(gr.MeanLoss(data, scale="sum") + 1.3 * gr.TotalVariation(nx.path_graph(48), gr.L1()))

    jumps = np.diff(np.eye(48), axis=0)
    u = lsq_linear(jumps.T, y, (-1.3, 1.3), method="bvls", tol=1e-14).x
    x = y - jumps.T @ u
    agree(found, ((x - y) ** 2).sum() / 2 + 1.3 * np.abs(np.diff(x)).sum(), x[:, None])


def test_the_network_lasso(rng, graph, solve):
    data = samples(rng)
    model = gr.SquaredLoss(gr.NodeData.from_dict(data)) + 0.1 * gr.TotalVariation(graph, gr.L2())
    found = solve(model)

    w = cp.Variable((N, D))
    fit = sum(cp.sum_squares(X @ w[i] - y) / (2 * M) for i, (X, y) in data.items())
    fusion = sum(a * cp.norm(w[i] - w[j]) for i, j, a in graph.edges(data="weight"))
    agree(found, minimum(fit + 0.1 * fusion), w.value)


def test_the_network_lasso_for_classes(rng, graph, solve):
    data = {i: (X, np.where(y > 0, 1, 0)) for i, (X, y) in samples(rng, (12,) * N).items()}
    model = gr.LogisticLoss(gr.NodeData.from_dict(data), scale="sum")
    model = model + 0.5 * gr.TotalVariation(graph, gr.L1()) + 0.3 * gr.NodePenalty(gr.SquaredL2())
    found = solve(model)

    w = cp.Variable((N, D))
    fit = sum(cp.sum(cp.logistic(cp.multiply(1 - 2 * y, X @ w[i]))) for i, (X, y) in data.items())
    fusion = sum(a * cp.norm1(w[i] - w[j]) for i, j, a in graph.edges(data="weight"))
    agree(found, minimum(fit + 0.5 * fusion + 0.15 * cp.sum_squares(w)), w.value)


def test_ridge_fusion(rng, graph, solve):
    """Quadratic throughout: one linear system with the graph Laplacian."""
    data = samples(rng)
    model = gr.SquaredLoss(gr.NodeData.from_dict(data), scale="sum")
    found = solve(model + 0.7 * gr.TotalVariation(graph, gr.SquaredL2()) + 0.2 * gr.NodePenalty(gr.SquaredL2()))

    laplacian = nx.laplacian_matrix(graph, nodelist=range(N)).toarray()
    H = np.kron(0.7 * laplacian + 0.2 * np.eye(N), np.eye(D))
    for i, (X, _) in data.items():
        H[i * D : (i + 1) * D, i * D : (i + 1) * D] += X.T @ X
    w = np.linalg.solve(H, np.concatenate([X.T @ y for X, y in data.values()])).reshape(N, D)
    fit = sum(((X @ w[i] - y) ** 2).sum() / 2 for i, (X, y) in data.items())
    agree(found, fit + 0.35 * np.trace(w.T @ laplacian @ w) + 0.1 * (w**2).sum(), w)


# ---- consensus -------------------------------------------------------------------------------------------------------
def test_consensus_is_the_weighted_pooled_fit(rng, solve):
    data = samples(rng, sizes=(3, 5, 8, 4, 6, 7, 3, 9))
    X, y = (np.concatenate(part) for part in zip(*data.values(), strict=True))
    node = np.repeat(list(data), [len(y) for _, y in data.values()])
    weights = rng.uniform(0.5, 2.0, size=len(y))
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node, weights=weights))
    found = solve(loss + gr.Consensus(nx.cycle_graph(N)))

    root = np.sqrt(weights / np.bincount(node, weights)[node])
    w = np.linalg.lstsq(root[:, None] * X, root * y)[0]
    agree(found, ((root * (X @ w - y)) ** 2).sum() / 2, np.tile(w, (N, 1)))


def test_logistic_consensus_is_the_pooled_fit(rng, solve):
    data = {i: (X, (y + rng.logistic(size=len(y)) > 0).astype(int)) for i, (X, y) in samples(rng, (20,) * N).items()}
    found = solve(gr.LogisticLoss(gr.NodeData.from_dict(data), scale="sum") + gr.Consensus(nx.path_graph(N)))

    X, y = (np.concatenate(part) for part in zip(*data.values(), strict=True))
    fit = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(X, y)
    value = np.logaddexp(0.0, (1 - 2 * y) * (X @ fit.coef_[0])).sum()
    agree(found, value, np.tile(fit.coef_, (N, 1)))


# ---- known clusters --------------------------------------------------------------------------------------------------
CLUSTERS = {"a": [0, 1, 2], "b": [3, 4], "c": [5, 6, 7]}
GAMMA = {i: 0.3 + 0.1 * i for i in range(N)}
LAM = {"a": 0.5, "b": 2.0, "c": 1.0}


def fit_by_hand(data, w):
    return sum(cp.sum_squares(X @ w[i] - y) / (2 * len(y)) for i, (X, y) in data.items())


def alphas():
    """alpha_j = lam_j / (lam_j + Gamma_j), Gamma_j the sum of gamma_i in the cluster (Proposition 2.2)."""
    return {j: LAM[j] / (LAM[j] + sum(GAMMA[i] for i in nodes)) for j, nodes in CLUSTERS.items()}


def test_the_hierarchy_is_2_3_of_the_paper(rng, solve):
    data = samples(rng)
    found = solve(gr.SquaredLoss(gr.NodeData.from_dict(data)) + gr.Hierarchy(CLUSTERS, (GAMMA, LAM)))

    w, root = cp.Variable((N, D)), cp.Variable(D)
    center = {j: cp.Variable(D) for j in CLUSTERS}
    inner = sum(GAMMA[i] / 2 * cp.sum_squares(w[i] - center[j]) for j, nodes in CLUSTERS.items() for i in nodes)
    outer = sum(LAM[j] / 2 * cp.sum_squares(center[j] - root) for j in CLUSTERS)
    agree(found, minimum(fit_by_hand(data, w) + inner + outer), w.value)
    np.testing.assert_allclose(found.latent["b"], center["b"].value, atol=1e-5)
    np.testing.assert_allclose(found.latent["root"], root.value, atol=1e-5)


def test_the_alpha_form_is_2_1_of_the_paper(rng, solve):
    data, alpha = samples(rng), alphas()
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data))
    found = solve(loss + gr.Hierarchy.from_alpha(CLUSTERS, alpha=alpha, gamma=GAMMA))

    w = cp.Variable((N, D))
    share = {i: alpha[j] * GAMMA[i] for j, nodes in CLUSTERS.items() for i in nodes}
    overall = sum(share[i] * w[i] for i in share) / sum(share.values())
    penalty = 0.0
    for j, nodes in CLUSTERS.items():
        own = sum(GAMMA[i] * w[i] for i in nodes) / sum(GAMMA[i] for i in nodes)
        for i in nodes:
            penalty += (1 - alpha[j]) * GAMMA[i] / 2 * cp.sum_squares(w[i] - own)
            penalty += alpha[j] * GAMMA[i] / 2 * cp.sum_squares(w[i] - overall)
    agree(found, minimum(fit_by_hand(data, w) + penalty), w.value)


def test_both_forms_of_the_hierarchy_agree(rng, solve):
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples(rng)))
    tree = solve(loss + gr.Hierarchy(CLUSTERS, (GAMMA, LAM)))
    averages = solve(loss + gr.Hierarchy.from_alpha(CLUSTERS, alpha=alphas(), gamma=GAMMA))
    agree(averages, tree.objective, tree.coef)
