"""Models written with gr.w, of the literature and of peers' documents, against hand-written CVXPY and against peers."""

from __future__ import annotations

import warnings
from itertools import pairwise

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import graphreg as gr

w, T, M = gr.w, 40, 6
RNG = np.random.default_rng(0)
DAYS = list(range(T))
Y = np.abs(np.arange(T) - 15.0) / 5 + 0.2 * RNG.standard_normal(T)
TIMES = np.cumsum(RNG.uniform(0.2, 2.0, T))
GRAPH = nx.convert_node_labels_to_integers(nx.random_geometric_graph(T, 0.35, seed=1))
GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(M, M))
RIM = [v for v in GRID if GRID.degree(v) < 4]
VALUES = RNG.standard_normal(len(RIM))
BLUR = sum(np.eye(T, k=k) for k in range(-2, 3)) / 5
EXACT = {"solver": "CLARABEL", "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
SECOND, FIRST = np.diff(np.eye(T), 2, axis=0), np.diff(np.eye(T), axis=0)


def incidence(graph):
    D = np.zeros((graph.number_of_edges(), len(graph)))
    for e, (i, j) in enumerate(graph.edges):
        D[e, i], D[e, j] = 1.0, -1.0
    return D


def means(y=Y, nodes=None):
    return gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(len(y)) if nodes is None else nodes))


def fit(x, y=Y):
    return cp.sum_squares(x - y) / 2


# ---- each gives the model, the objective and the constraints of its naive twin ---------------------------------------
def trend_filtering():
    x = cp.Variable(T)
    return means() + 2.0 * gr.L1()(w.along(DAYS, 2)), fit(x) + 2.0 * cp.norm1(SECOND @ x), []


def trend_of_order_2():
    x = cp.Variable(T)
    return means() + 2.0 * gr.L1()(w.along(DAYS, 3)), fit(x) + 2.0 * cp.norm1(cp.diff(x, 3)), []


def trend_at_times():
    x = cp.Variable(T)
    slope = cp.multiply(FIRST @ x, 1.0 / np.diff(TIMES))
    return means() + gr.L1()(w.along(DAYS, 2, at=TIMES)), fit(x) + cp.norm1(cp.diff(slope)), []


def graph_trend_filtering():
    x, D = cp.Variable(T), incidence(GRAPH)
    return means() + 0.3 * gr.L1()(w.across(GRAPH, 2)), fit(x) + 0.3 * cp.norm1(D.T @ D @ x), []


def graph_trend_of_order_2():
    x, D = cp.Variable(T), incidence(GRAPH)
    return means() + 0.1 * gr.L1()(w.across(GRAPH, 3)), fit(x) + 0.1 * cp.norm1(D @ D.T @ D @ x), []


def synchronisation():
    """Offsets between pairs, of which some are wrong, and one node that is known."""
    ring = nx.DiGraph([(i, (i + 1) % 8) for i in range(8)] + [(0, 4), (2, 6)])
    b = {e: float(k % 3 - 1) for k, e in enumerate(ring.edges)}
    x, order = cp.Variable(8), {i: i for i in range(8)}
    apart = sum(cp.abs(x[order[j]] - x[order[i]] - c) for (i, j), c in b.items())
    return means(np.zeros(1), [0]) + gr.L1()(w.across(ring) - b), x[0] ** 2 / 2 + apart, []


def sheaf():
    """Maps on the edges of a circle."""
    n, rng = 6, np.random.default_rng(4)
    Z, x = rng.standard_normal((n, 2)), cp.Variable((n, 2))
    R = {(i, (i + 1) % n): np.linalg.qr(rng.standard_normal((2, 2)))[0] for i in range(n)}
    model = sum((gr.L2()(w.at(i) - w.at(j) @ Q.T) for (i, j), Q in R.items()), start=means(Z))
    return model, fit(x, Z) + sum(cp.norm(x[i] - Q @ x[j]) for (i, j), Q in R.items()), []


def harmonic():
    x, D = cp.Variable(M * M), incidence(GRID)
    model = means(VALUES[:1], RIM[:1]) + gr.SquaredL2()(w.across(GRID)) + gr.Zero()(w.at(RIM) - VALUES)
    return model, cp.sum_squares(D @ x) / 2, [x[RIM] == VALUES]


def some_nodes():
    x = cp.Variable(T)
    return means() + 3.0 * gr.L1()(w.at(DAYS[:10]) - 1.0), fit(x) + 3.0 * cp.norm1(x[:10] - 1.0), []


def isotonic_on_a_dag():
    x, rng = cp.Variable(T), np.random.default_rng(1)
    dag = nx.DiGraph((i, j) for i in range(T) for j in rng.choice(T, 2).tolist() if j > i)
    A = np.array(dag.edges)
    return means() + gr.NonNegative()(w.across(dag)), fit(x), [x[A[:, 1]] >= x[A[:, 0]]]


def isotropic_total_variation():
    pixels = nx.DiGraph((a, b) for a, b in map(sorted, GRID.edges))
    img, x = RNG.standard_normal(M * M), cp.Variable(M * M)
    groups = {i: list(pixels.successors(i)) for i in pixels if pixels.out_degree(i)}
    size = sum(cp.norm(x[heads] - x[i]) for i, heads in groups.items())
    return means(img) + 0.3 * gr.L2()(w.across(pixels).grouped(lambda e: e[0])), fit(x, img) + 0.3 * size, []


def fused_lasso():
    """Over the coefficients of one model, as in CVXPY's examples."""
    rng, p = np.random.default_rng(2), 12
    X = rng.standard_normal((30, p))
    y = X @ np.repeat([0.0, 2.0, 0.0, -1.0], 3) + 0.1 * rng.standard_normal(30)
    v, F = cp.Variable(p), np.diff(np.eye(p), axis=0)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, [0] * 30), scale="sum")
    size = 2.0 * cp.norm1(F @ v) + cp.norm1(v)
    return loss + 2.0 * gr.L1()(w @ F.T) + 1.0 * gr.L1()(w), cp.sum_squares(X @ v - y) / 2 + size, []


def deblurring():
    """As in ProxImaL: sparse differences of what was blurred."""
    x, seen = cp.Variable(T), BLUR @ Y
    model = means(Y[:1], [0]) + gr.SquaredL2()(BLUR @ w - seen) + 0.2 * gr.L1()(w.along(DAYS))
    return model, fit(x[0], Y[0]) + fit(BLUR @ x, seen) + 0.2 * cp.norm1(FIRST @ x), []


def quantiles_that_do_not_cross():
    rng, taus = np.random.default_rng(3), (0.1, 0.5, 0.9)
    X = np.c_[np.sort(rng.uniform(0, 1, 20)), np.ones(20)]
    y = 1.0 + X[:, 0] + (0.1 + X[:, 0]) * rng.standard_normal(20)
    V = cp.Variable((3, 2))
    data = [gr.NodeData.from_arrays(X, y, [a] * 20) for a in taus]
    model = sum(gr.QuantileLoss(each, tau=a, scale="sum") for each, a in zip(data, taus, strict=True))
    model = model + sum(gr.NonNegative()((w.at(b) - w.at(a)) @ X.T) for a, b in pairwise(taus))
    r = [y - X @ V[i] for i in range(3)]
    value = sum(cp.sum(cp.maximum(a * r[i], (a - 1) * r[i])) for i, a in enumerate(taus))
    return model, value, [X @ (V[1] - V[0]) >= 0, X @ (V[2] - V[1]) >= 0]


def strata():
    """As strat_models: a Laplacian over a product of two attributes, and a local ridge."""
    strata = nx.convert_node_labels_to_integers(nx.cartesian_product(nx.path_graph(3), nx.cycle_graph(4)))
    rng = np.random.default_rng(7)
    X, y, node = rng.standard_normal((60, 2)), rng.standard_normal(60), np.arange(60) % 12
    v, D = cp.Variable((12, 2)), incidence(strata)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    value = cp.sum_squares(cp.sum(cp.multiply(X, v[node]), axis=1) - y) / 2
    value += 0.7 * cp.sum_squares(D @ v) / 2 + 0.1 * cp.sum_squares(v) / 2
    return loss + 0.7 * gr.SquaredL2()(w.across(strata)) + 0.1 * gr.SquaredL2()(w), value, []


def network_lasso():
    """As SnapVX: weighted norms of the differences of whole vectors."""
    graph, rng = nx.cycle_graph(8), np.random.default_rng(8)
    nx.set_edge_attributes(
        graph, {e: float(c) for e, c in zip(graph.edges, rng.uniform(0.2, 2, 8), strict=True)}, "weight"
    )
    Z, v = rng.standard_normal((8, 3)), cp.Variable((8, 3))
    apart = sum(c * cp.norm(v[i] - v[j]) for i, j, c in graph.edges(data="weight"))
    return means(Z) + 0.5 * gr.L2()(w.across(graph)), fit(v, Z) + 0.5 * apart, []


MODELS = (
    trend_filtering,
    trend_at_times,
    graph_trend_filtering,
    synchronisation,
    sheaf,
    harmonic,
    some_nodes,
    isotonic_on_a_dag,
    isotropic_total_variation,
    fused_lasso,
    deblurring,
    strata,
    network_lasso,
    trend_of_order_2,
    graph_trend_of_order_2,
    quantiles_that_do_not_cross,
)
METHODS = (gr.Exact, gr.PrimalDual, gr.InteriorPoint)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_they_are_what_hand_written_cvxpy_says(model, method):
    ours, objective, constraints = model()
    with warnings.catch_warnings(action="ignore"):
        best = cp.Problem(cp.Minimize(objective), constraints).solve(**EXACT)
    if method().lacks(gr.Problem(ours).form):
        assert (method, model) == (gr.InteriorPoint, quantiles_that_do_not_cross)  # losses with kinks
        return
    solution = gr.Problem(ours).solve(method(), gap=1e-7, progress=False, seconds=60)
    certificate = solution.certificate
    assert solution.status == "certified"
    assert solution.objective == pytest.approx(best, rel=2e-7, abs=1e-9)
    assert certificate.dual <= best + 1e-8 * max(1.0, abs(best))
    assert certificate.relative_gap <= 1e-7


def solved(model, gap=1e-10):
    solution = gr.Problem(model).solve(gr.Exact(), gap=gap, progress=False)
    assert solution.status == "certified"
    return solution


# ---- against peers ---------------------------------------------------------------------------------------------------
def test_isotonic_regression_is_that_of_sklearn():
    isotonic = pytest.importorskip("sklearn.isotonic")
    chain = nx.DiGraph((i, i + 1) for i in range(T - 1))
    y = Y[::-1].copy()
    peer = isotonic.IsotonicRegression().fit_transform(np.arange(T), y)
    np.testing.assert_allclose(solved(means(y) + gr.NonNegative()(w.across(chain))).coef[:, 0], peer, atol=1e-4)


def test_several_targets_are_those_of_sklearns_multi_task_lasso():
    linear = pytest.importorskip("sklearn.linear_model")
    rng, p, q = np.random.default_rng(0), 6, 3
    X, B = rng.standard_normal((50, p)), rng.standard_normal((p, q)) * (np.arange(p) < 3)[:, None]
    Z = X @ B + 0.1 * rng.standard_normal((50, q))
    peer = linear.MultiTaskLasso(alpha=0.3, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, Z)
    data = gr.NodeData.from_arrays(np.tile(X, (q, 1)), Z.T.ravel(), np.repeat(np.arange(q), 50))
    across = gr.Rows(sp.csr_array(np.kron(np.eye(q), np.eye(p))[np.arange(q * p).reshape(q, p).T.ravel()]), k=q)
    solution = solved(gr.SquaredLoss(data, scale=1 / 50) + 0.3 * gr.L2()(across))
    np.testing.assert_allclose(solution.coef, peer.coef_, atol=1e-4)


def test_hodrick_and_prescotts_filter():
    """As statsmodels' hpfilter, whose lambda is ours: (I + lambda D'D) x = y."""
    solution = solved(means() + 1600.0 * gr.SquaredL2()(w.along(DAYS, 2)))
    trend = scipy.sparse.linalg.spsolve(sp.csc_array(np.eye(T) + 1600.0 * SECOND.T @ SECOND), Y)
    np.testing.assert_allclose(solution.coef[:, 0], trend, atol=1e-4)


def test_harmonic_functions_solve_the_laplacian():
    """As PyGSP interpolates, and networkx's harmonic functions: L x = 0 inside."""
    model, _, _ = harmonic()
    solution = solved(model)
    L, inside = nx.laplacian_matrix(GRID).astype(float).tocsr(), [v for v in GRID if v not in RIM]
    x = np.zeros(M * M)
    x[RIM] = VALUES
    x[inside] = scipy.sparse.linalg.spsolve(sp.csc_array(L[inside][:, inside]), -L[inside][:, RIM] @ VALUES)
    found = dict(zip(solution.labels, solution.coef[:, 0], strict=True))
    np.testing.assert_allclose([found[v] for v in GRID], x, atol=1e-4)
