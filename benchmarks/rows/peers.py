"""Models of peers' own examples, each as it is written and in hand-written CVXPY, with the file where it is found."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr

from .settings import Maker, Setting, Twin, differences, fit, incidence, l1, l2, means

w = gr.w


def _pixels(s: Setting) -> nx.DiGraph:
    """Arrows to the right and downwards, of a picture whose pixels are 0, 1, ... line by line."""
    m = s.side
    pixels = nx.DiGraph()
    pixels.add_nodes_from(range(m * m))
    pixels.add_edges_from((i, i + 1) for i in range(m * m) if i % m < m - 1)
    pixels.add_edges_from((i, i + m) for i in range(m * (m - 1)))
    return pixels


# ---- CVXPY -----------------------------------------------------------------------------------------------------------
def cvxpy_inpainting(s: Setting) -> Twin:
    """examples/applications/tv_inpainting: cp.tv of a picture, half of whose pixels are known."""
    m, x = s.side, cp.Variable((s.side, s.side))
    y, known = s.noise(m * m), np.flatnonzero(s.rng.uniform(size=m * m) < 0.5).tolist() or [0]
    pixels = _pixels(s)
    pixels.remove_edges_from([(i, j) for i, j in pixels.edges if i % m == m - 1 or i >= m * (m - 1)])  # as in cp.tv
    size = gr.L2()(w.across(pixels).grouped(lambda arrow: arrow[0]))
    model = means(y[known[:1]], known[:1]) + 1.0 * size + gr.Zero()(w.at(known) - y[known])
    held = cp.reshape(x, m * m, order="C")[known] == y[known]
    return Twin(model, cp.tv(x) if m > 1 else 0.0 * cp.sum(x), [held])


def cvxpy_robust_kalman(s: Setting) -> Twin:
    """examples/applications/robust_kalman: forces move a vehicle that is seen with outliers; a node per force, and
    the positions are linear in them."""
    T, dt, damping, rho = s.size, 0.5, 0.05, 2
    A, B = np.array([[1.0, (1 - damping * dt / 2) * dt], [0.0, 1 - damping * dt]]), np.array([dt**2 / 2, dt])
    S = np.array([[(np.linalg.matrix_power(A, t - r) @ B)[0] if r <= t else 0.0 for r in range(T)] for t in range(T)])
    seen = s.noise(T, 2) + 20.0 * s.rng.normal(size=(T, 2)) * (s.rng.uniform(size=(T, 1)) < 0.2)
    model = means(np.zeros((T, 2)), scale=2.0) + 2.0 * gr.HuberNorm(rho)(S @ w.at(range(T)) - seen)
    x, v, f = cp.Variable((4, T + 1)), cp.Variable((2, T)), cp.Variable((2, T))
    moves = np.kron(A, np.eye(2)) @ x[:, :-1] + np.kron(B[:, None], np.eye(2)) @ f
    laws = [x[:, 1:] == moves, x[:2, 1:] + v == seen.T, x[:, 0] == 0]
    return Twin(model, cp.sum_squares(f) + cp.sum(cp.huber(cp.norm(v, 2, axis=0), rho)), laws)


def cvxpy_convex_fit(s: Setting) -> Twin:
    """examples/machine_learning/convex_approximation and the book's section 6.5.5: values and slopes at each point."""
    m = s.side + 1
    X = s.rng.normal(size=(m, 2))
    y, x, G = (X**2).sum(axis=1) + 0.3 * s.noise(m), cp.Variable(m), cp.Variable((m, 2))
    pairs = [(i, j) for i in range(m) for j in range(m) if i != j]
    one = gr.SquaredLoss(gr.NodeData.from_arrays(np.c_[np.ones(m), 0 * X], y, range(m), features=["f", "g1", "g2"]))
    above = [w.at(j, ["f"]) - w.at(i) @ np.r_[1.0, X[j] - X[i]][:, None] for i, j in pairs]
    small = 0.01 * gr.SquaredL2()(w.at(features=["g1", "g2"]))
    model = one + small + sum(map(gr.NonNegative(), above))
    laws = [x[j] >= x[i] + G[i] @ (X[j] - X[i]) for i, j in pairs]
    return Twin(model, fit(x, y) + 0.01 * cp.sum_squares(G) / 2, laws)


def cvxpy_fault_detection(s: Setting) -> Twin:
    """examples/applications/fault_detection: which faults are there, relaxed to [0, 1]."""
    n, p = s.size, 4 * s.size
    A = s.rng.normal(size=(p, n))
    y, x = A @ (s.rng.uniform(size=n) < 0.05) + 2.0 * s.noise(p), cp.Variable(n)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(A, y, ["all"] * p), scale="sum")
    model = loss + 6.0 * gr.L1()(w) + gr.Box(0.0, 1.0)(w)
    return Twin(model, fit(A @ x, y) + 6.0 * cp.sum(x), [x >= 0, x <= 1])


# ---- SnapVX ----------------------------------------------------------------------------------------------------------
def snapvx_hello_world(s: Setting) -> Twin:
    """Examples/HelloWorld.py: x^2 at the node 1 with x <= 10, |x + 3| at the node 2, and the squared difference."""
    x = cp.Variable(2)
    model = means(np.array([s.shift]), [1], scale=2.0) + gr.L1()(w.at(2) + 3.0) + gr.NonNegative()(10.0 - w.at(1))
    model = model + 2.0 * gr.SquaredL2()(w.at(1) - w.at(2))
    return Twin(model, (x[0] - s.shift) ** 2 + cp.abs(x[1] + 3.0) + (x[0] - x[1]) ** 2, [x[0] <= 10])


def snapvx_multivars(s: Setting) -> Twin:
    """Tests/tests_functionality/test_multivars.py: x and y at two nodes, tied by x1 - x2 + 2 y1 - 2 y2."""
    first, second, x = -s.shift, 3.0 - s.shift, cp.Variable((2, 2))
    data = gr.NodeData.from_arrays([[1.0, 0.0]] * 2, [-first, -second], [1, 2], features=["u", "v"])
    ends = gr.L1()(w.at([1, 2], ["v"]) + np.array([4.0, 6.0])) + 2.0 * gr.SquaredL2()((w.at(1) - w.at(2)) @ [[1], [2]])
    value = (x[0, 0] + first) ** 2 + (x[1, 0] + second) ** 2 + cp.abs(x[0, 1] + 4) + cp.abs(x[1, 1] + 6)
    return Twin(gr.SquaredLoss(data, scale=2.0) + ends, value + ((x[0] - x[1]) @ np.array([1.0, 2.0])) ** 2)


def snapvx_pagerank(s: Setting) -> Twin:
    """Examples/Pagerank.py: PageRank as squares over the edges and towards 1 and 0 at the nodes."""
    n, alpha = s.size, 1.0 / 0.85 - 1.0
    graph = nx.gnm_random_graph(n, 2 * n, seed=1)
    c, v, x, D = s.weights(graph.number_of_edges()), s.rng.uniform(size=n), cp.Variable(n), incidence(graph)
    v, degree = v / v.sum(), abs(D).T @ c
    model = means(np.ones(n), scale=dict(enumerate(2.0 * alpha * v)))
    model = model + 2.0 * gr.SquaredL2()(w.across(graph).weighted(c))
    rest = alpha * np.maximum(degree - v, 0.0)
    model = model + 2.0 * gr.SquaredL2()(w.at(range(n)).weighted(rest))
    return Twin(model, alpha * v @ (x - 1.0) ** 2 + rest @ x**2 + (c @ (D @ x) ** 2 if len(c) else 0.0))


def snapvx_network_lasso(s: Setting) -> Twin:
    """The paper's network lasso: weighted norms of the differences of whole vectors."""
    graph = nx.cycle_graph(s.size) if s.size > 2 else nx.path_graph(s.size)
    y, x, D = s.noise(s.size, 3), cp.Variable((s.size, 3)), incidence(graph)
    c = s.weights(len(D))
    return Twin(means(y) + 0.5 * gr.L2()(w.across(graph).weighted(c)), fit(x, y) + 0.5 * l2(D @ x, c))


# ---- PyGSP -----------------------------------------------------------------------------------------------------------
def pygsp_tikhonov(s: Setting) -> Twin:
    """pygsp/learning.py, regression_tikhonov: ||M x - y||^2 + tau x'L x, with half of the nodes seen."""
    graph, y, x = nx.random_geometric_graph(s.size, 0.35, seed=1), s.bend(), cp.Variable(s.size)
    seen = np.flatnonzero(s.rng.uniform(size=s.size) < 0.5).tolist() or [0]
    D, tau = incidence(graph), 0.1
    model = 2.0 * means(y[seen], seen) + 2.0 * tau * gr.SquaredL2()(w.across(graph))
    return Twin(model, cp.sum_squares(x[seen] - y[seen]) + (tau * cp.sum_squares(D @ x) if len(D) else 0.0))


def pygsp_simplex(s: Setting) -> Twin:
    """pygsp/learning.py, classification_tikhonov_simplex: class memberships that are not negative and sum to 1. The
    last of three is what the others leave."""
    graph, x = nx.random_geometric_graph(s.size, 0.35, seed=1), cp.Variable((s.size, 3))
    seen, B, e = list(range(0, s.size, 3)), np.c_[np.eye(2), [-1.0, -1.0]], np.array([[0.0, 0.0, 1.0]])
    Y, D = np.eye(3)[s.rng.integers(0, 3, len(seen))], incidence(graph)
    model = means(Y[:, :2], seen, scale=2.0) + 2.0 * gr.SquaredL2()(1.0 - w.at(seen) @ np.ones((2, 1)) - Y[:, 2:])
    model = model + gr.NonNegative()(w @ B + e) + 0.2 * gr.SquaredL2()(w.across(graph) @ B)
    value = cp.sum_squares(x[seen] - Y) + (0.1 * cp.sum_squares(D @ x) if len(D) else 0.0)
    return Twin(model, value, [x >= 0, cp.sum(x, axis=1) == 1])


# ---- strat_models ----------------------------------------------------------------------------------------------------
def _strata(s: Setting) -> nx.Graph:
    one, other = nx.path_graph(max(1, s.size // 8)), nx.cycle_graph(4) if s.size > 2 else nx.path_graph(s.size)
    return nx.convert_node_labels_to_integers(nx.cartesian_product(one, other))


def strat_models_house(s: Setting) -> Twin:
    """examples/house.py: a ridge regression in each stratum, and a Laplacian over a product of two graphs."""
    strata = _strata(s)
    n, D = len(strata), incidence(strata)
    X, node, x = s.rng.normal(size=(3 * n, 2)), np.arange(3 * n) % n, cp.Variable((n, 2))
    y, c = X.sum(axis=1) + s.noise(3 * n), s.weights(len(D))
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    model = loss + 0.7 * gr.SquaredL2()(w.across(strata).weighted(c)) + 0.1 * gr.SquaredL2()(w)
    value = fit(cp.sum(cp.multiply(X, x[node]), axis=1), y) + 0.1 * cp.sum_squares(x) / 2
    return Twin(model, value + 0.7 * cp.sum(c @ (D @ x) ** 2) / 2 if len(c) else value)


def strat_models_cardio(s: Setting) -> Twin:
    """examples/cardio.py: a logistic regression in each stratum."""
    strata = _strata(s)
    n, D = len(strata), incidence(strata)
    X, node, x = s.rng.normal(size=(5 * n, 2)), np.arange(5 * n) % n, cp.Variable((n, 2))
    y, c = np.where(X[:, 0] + s.rng.normal(size=5 * n) > 0, 1.0, -1.0), s.weights(len(D))
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    model = loss + 0.7 * gr.SquaredL2()(w.across(strata).weighted(c)) + 0.1 * gr.SquaredL2()(w)
    value = cp.sum(cp.logistic(-cp.multiply(y, cp.sum(cp.multiply(X, x[node]), axis=1))))
    value += 0.1 * cp.sum_squares(x) / 2 + (0.7 * cp.sum(c @ (D @ x) ** 2) / 2 if len(c) else 0.0)
    return Twin(model, value)


def strat_models_weather(s: Setting) -> Twin:
    """examples/weather.py: a density of few values in each stratum, smooth over the values and over the strata."""
    strata, k = _strata(s), 4
    n, D, S = len(strata), incidence(strata), differences(k)
    node, x = np.arange(4 * n) % n, cp.Variable((n, k))
    y, c = np.r_[np.arange(k), s.rng.integers(0, k, 4 * n - k)], s.weights(len(D))
    loss = gr.MultinomialLoss(gr.NodeData.from_arrays(np.ones((4 * n, 1)), y, node), scale="sum")
    model = (
        loss + 2.0 * gr.SquaredL2()(w @ S.T) + 0.1 * gr.SquaredL2()(w) + gr.SquaredL2()(w.across(strata).weighted(c))
    )
    value = sum(cp.log_sum_exp(x[i]) - x[i, j] for i, j in zip(node, y, strict=True))
    value += cp.sum_squares(x @ S.T) + 0.1 * cp.sum_squares(x) / 2
    return Twin(model, value + cp.sum(c @ (D @ x) ** 2) / 2 if len(c) else value)


# ---- ProxImaL --------------------------------------------------------------------------------------------------------
def proximal_denoise(s: Setting) -> Twin:
    """proximal/examples/basic_denoise.py: sum_squares(x - b) + .1 norm1(grad(x)) + nonneg(x)."""
    pixels, m = _pixels(s), s.side
    y, x, D = s.noise(m * m), cp.Variable(m * m), incidence(pixels)
    c = s.weights(len(D))
    model = means(y, scale=2.0) + 0.1 * gr.L1()(w.across(pixels).weighted(c)) + gr.NonNegative()(w)
    return Twin(model, cp.sum_squares(x - y) + 0.1 * l1(D @ x, c), [x >= 0])


def proximal_deconvolution(s: Setting) -> Twin:
    """The paper's deconvolution: sum_squares(conv(K, x) - b) + lam group_norm1(grad(x), [2]), bounds."""
    pixels, m = _pixels(s), s.side
    x, one = cp.Variable(m * m), sum(np.eye(m, k=k) for k in (-1, 0, 1)) / 3
    blur = np.kron(one, one)
    b = blur @ s.noise(m * m)
    size = gr.L2()(w.across(pixels).grouped(lambda arrow: arrow[0]))
    model = gr.SquaredLoss(blur @ w.at(range(m * m)), b, scale=2.0) + 0.05 * size
    model = model + gr.Box(s.shift - 1.0, s.shift + 1.0)(w.at(range(m * m)))
    groups = {i: list(pixels.successors(i)) for i in pixels if pixels.out_degree(i)}
    apart = sum(cp.norm(x[heads] - x[i]) for i, heads in groups.items())
    value = cp.sum_squares(blur @ x - b) + 0.05 * apart
    return Twin(model, value, [x >= s.shift - 1.0, x <= s.shift + 1.0])


PEERS: tuple[Maker, ...] = (
    cvxpy_inpainting,
    cvxpy_robust_kalman,
    cvxpy_convex_fit,
    cvxpy_fault_detection,
    snapvx_hello_world,
    snapvx_multivars,
    snapvx_pagerank,
    snapvx_network_lasso,
    pygsp_tikhonov,
    pygsp_simplex,
    strat_models_house,
    strat_models_cardio,
    strat_models_weather,
    proximal_denoise,
    proximal_deconvolution,
)
