"""Fourteen models of the literature that are sums over rows, each as it is written and in hand-written CVXPY."""

from __future__ import annotations

from itertools import pairwise

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr

from .settings import Maker, Setting, Twin, differences, fit, incidence, l1, l2, means

w = gr.w


# ---- trends ----------------------------------------------------------------------------------------------------------
def trend_filtering(s: Setting) -> Twin:
    y, x, D = s.bend(), cp.Variable(s.size), differences(s.size, 2)
    c = s.weights(len(D))
    return Twin(means(y) + 2.0 * gr.L1()(w.along(range(s.size), 2).weighted(c)), fit(x, y) + 2.0 * l1(D @ x, c))


def trend_filtering_of_order_2(s: Setting) -> Twin:
    y, x, D = s.bend(), cp.Variable(s.size), differences(s.size, 3)
    c = s.weights(len(D))
    return Twin(means(y) + 2.0 * gr.L1()(w.along(range(s.size), 3).weighted(c)), fit(x, y) + 2.0 * l1(D @ x, c))


def trend_at_uneven_times(s: Setting) -> Twin:
    y, x, t = s.bend(), cp.Variable(s.size), np.cumsum(s.rng.uniform(0.2, 2.0, s.size))
    D = np.diff(differences(s.size) / np.diff(t)[:, None], axis=0)
    c = s.weights(len(D))
    return Twin(means(y) + gr.L1()(w.along(range(s.size), 2, at=t).weighted(c)), fit(x, y) + l1(D @ x, c))


def graph_trend_filtering(s: Setting) -> Twin:
    graph, y, x = nx.random_geometric_graph(s.size, 0.35, seed=1), s.bend(), cp.Variable(s.size)
    D, c = incidence(graph), s.weights(s.size)
    return Twin(means(y) + 0.3 * gr.L1()(w.across(graph, 2).weighted(c)), fit(x, y) + 0.3 * l1(D.T @ D @ x, c))


def graph_trend_filtering_of_order_2(s: Setting) -> Twin:
    graph, y, x = nx.random_geometric_graph(s.size, 0.35, seed=1), s.bend(), cp.Variable(s.size)
    D, c = incidence(graph), s.weights(graph.number_of_edges())
    return Twin(means(y) + 0.1 * gr.L1()(w.across(graph, 3).weighted(c)), fit(x, y) + 0.1 * l1(D @ D.T @ D @ x, c))


# ---- arrows ----------------------------------------------------------------------------------------------------------
def synchronisation(s: Setting) -> Twin:
    """Offsets between pairs, of which some are wrong, and one node that is known."""
    n = s.size
    ring = nx.DiGraph([(i, i + 1) for i in range(n - 1)] + [(i, i + 5) for i in range(0, n - 5, 3)])
    ring.add_node(0)
    b = {e: float(k % 3 - 1) for k, e in enumerate(ring.edges)}
    x, y, c, D = cp.Variable(n), s.noise(1), s.weights(len(b)), -incidence(ring)
    model = means(y, [0]) + gr.L1()((w.across(ring) - b).weighted(c))
    return Twin(model, fit(x[:1], y) + l1(D @ x - np.array([*b.values()]), c))


def sheaf(s: Setting) -> Twin:
    """Maps on the edges of a circle."""
    n, y, c = s.size, s.noise(s.size, 2), s.weights(s.size)
    x, R = cp.Variable((n, 2)), [np.linalg.qr(s.rng.normal(size=(2, 2)))[0] for _ in range(n)]
    ties = [(i, (i + 1) % n, a, Q) for i, (a, Q) in enumerate(zip(c, R, strict=True)) if n > 1]
    model = sum((a * gr.L2()(w.at(i) - w.at(j) @ Q.T) for i, j, a, Q in ties), start=means(y))
    return Twin(model, fit(x, y) + sum(a * cp.norm(x[i] - Q @ x[j]) for i, j, a, Q in ties))


def isotonic_on_a_dag(s: Setting) -> Twin:
    n, x, y = s.size, cp.Variable(s.size), s.bend()[::-1].copy()
    dag = nx.DiGraph((i, j) for i in range(n) for j in s.rng.choice(n, 2).tolist() if j > i)
    dag.add_nodes_from(range(n))
    return Twin(means(y) + gr.NonNegative()(w.across(dag)), fit(x, y), [x[j] >= x[i] for i, j in dag.edges])


# ---- some nodes, some coordinates ------------------------------------------------------------------------------------
def harmonic(s: Setting) -> Twin:
    """Boundary values, interpolated."""
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(s.side, s.side))
    rim = [v for v in grid if grid.degree(v) < 4]
    y, x, D = s.noise(len(rim)), cp.Variable(len(grid)), incidence(grid)
    c = s.weights(len(D))
    model = means(y[:1], rim[:1]) + gr.Zero()(w.at(rim) - y)
    model = model + gr.SquaredL2()(w.across(grid).weighted(c))
    return Twin(model, cp.sum_squares(np.sqrt(c)[:, None] * D @ x) / 2 if len(c) else 0.0, [x[rim] == y])


def penalty_at_some_nodes(s: Setting) -> Twin:
    some = range(min(10, s.size))
    x, y, c = cp.Variable(s.size), s.bend(), s.weights(len(some))
    model = means(y) + 3.0 * gr.L1()((w.at(some) - 1.0).weighted(c))
    return Twin(model, fit(x, y) + 3.0 * l1(x[: len(some)] - 1.0, c))


# ---- groups, features ------------------------------------------------------------------------------------------------
def isotropic_total_variation(s: Setting) -> Twin:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(s.side, s.side))
    pixels = nx.DiGraph((a, b) for a, b in map(sorted, grid.edges))
    pixels.add_nodes_from(grid)
    x, y = cp.Variable(len(grid)), s.noise(len(grid))
    groups = {i: list(pixels.successors(i)) for i in pixels if pixels.out_degree(i)}
    c = dict(zip(groups, s.weights(len(groups)), strict=True))
    model = means(y) + 0.3 * gr.L2()(w.across(pixels).grouped(lambda arrow: arrow[0]).weighted(c))
    size = sum(c[i] * cp.norm(x[heads] - x[i]) for i, heads in groups.items())
    return Twin(model, fit(x, y) + 0.3 * size)


def fused_coefficients(s: Setting) -> Twin:
    """The fused lasso over the coefficients of one model."""
    p = s.size // 3 + 1
    X, x, F = s.rng.normal(size=(s.size, p)), cp.Variable(p), differences(p)
    y = X @ (np.arange(p) > p / 2) + 0.1 * s.noise(s.size)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, ["all"] * s.size), scale="sum")
    model = loss + 2.0 * gr.L1()(w @ F.T) + 1.0 * gr.L1()(w)
    return Twin(model, fit(X @ x, y) + 2.0 * l1(F @ x, np.ones(len(F))) + cp.norm1(x))


def joint_sparsity(s: Setting) -> Twin:
    """Several targets with the same features, of which few matter: a node per target."""
    X, x = s.rng.normal(size=(s.size, 5)), cp.Variable((5, 3))
    Y, c = X[:, :2] @ s.rng.normal(size=(2, 3)) + 0.1 * s.noise(s.size, 3), s.weights(5)
    data = gr.NodeData.from_arrays(np.tile(X, (3, 1)), Y.T.ravel(), np.repeat(range(3), s.size), features=[*"abcde"])
    groups = sum(a * gr.L2()(w.at(features=[f]).grouped(lambda _: 0)) for a, f in zip(c, "abcde", strict=True))
    return Twin(gr.SquaredLoss(data, scale="sum") + groups, fit(X @ x, Y) + l2(x, c))


# ---- several losses, measurements, quantiles, crossed effects --------------------------------------------------------
def several_losses(s: Setting) -> Twin:
    X, x = s.rng.normal(size=(s.size, 3)), cp.Variable(3)
    day, night = X @ np.ones(3) + 0.1 * s.noise(s.size), X @ np.ones(3) + s.shift + s.rng.standard_t(2, size=s.size)
    model = sum(
        loss(gr.NodeData.from_arrays(X, y, ["all"] * s.size), scale="sum")
        for loss, y in ((gr.SquaredLoss, day), (gr.HuberLoss, night))
    )
    return Twin(model, fit(X @ x, day) + cp.sum(cp.huber(X @ x - night)) / 2)


def measurements(s: Setting) -> Twin:
    """What was measured is a moving mean."""
    n, x = s.size, cp.Variable(s.size)
    blur, y = sum(np.eye(n, k=k) for k in range(-2, 3)) / 5, s.bend()
    D, z = differences(n), blur @ y
    c = s.weights(len(D))
    model = gr.SquaredLoss(blur @ w.at(range(n)), z) + 0.2 * gr.L1()(w.along(range(n)).weighted(c))
    return Twin(model, fit(blur @ x, z) + 0.2 * l1(D @ x, c))


def quantiles_that_do_not_cross(s: Setting) -> Twin:
    taus, m, x = (0.1, 0.5, 0.9), s.size, cp.Variable((3, 2))
    X = np.c_[np.sort(s.rng.uniform(size=m)), np.ones(m)]
    y = X[:, 0] + (0.1 + X[:, 0]) * s.noise(m)
    losses = [gr.QuantileLoss(gr.NodeData.from_arrays(X, y, [tau] * m), tau=tau, scale="sum") for tau in taus]
    model = sum(losses) + sum(gr.NonNegative()((w.at(b) - w.at(a)) @ X.T) for a, b in pairwise(taus))
    left = [y - X @ x[i] for i in range(3)]
    value = sum(cp.sum(cp.maximum(tau * r, (tau - 1.0) * r)) for tau, r in zip(taus, left, strict=True))
    return Twin(model, value, [X @ (x[1] - x[0]) >= 0, X @ (x[2] - x[1]) >= 0])


def crossed_effects(s: Setting) -> Twin:
    m, p, q = 2 * s.size, s.size // 4 + 1, s.size // 6 + 1
    i, j = s.rng.integers(0, p, m), s.rng.integers(0, q, m)
    y = s.rng.normal(size=p)[i] + s.rng.normal(size=q)[j] + 0.1 * s.noise(m)
    students, teachers = [f"s{k}" for k in range(p)], [f"t{k}" for k in range(q)]
    a, b = cp.Variable(p), cp.Variable(q)
    both = w.at([students[k] for k in i]) + w.at([teachers[k] for k in j])
    model = gr.SquaredLoss(both, y) + gr.SquaredL2()(w.at(students)) + 2.0 * gr.SquaredL2()(w.at(teachers))
    return Twin(model, fit(a[i] + b[j], y) + cp.sum_squares(a) / 2 + cp.sum_squares(b))


LITERATURE: tuple[Maker, ...] = (
    trend_filtering,
    trend_filtering_of_order_2,
    trend_at_uneven_times,
    graph_trend_filtering,
    graph_trend_filtering_of_order_2,
    synchronisation,
    sheaf,
    harmonic,
    penalty_at_some_nodes,
    isotonic_on_a_dag,
    isotropic_total_variation,
    fused_coefficients,
    several_losses,
    joint_sparsity,
    measurements,
    quantiles_that_do_not_cross,
    crossed_effects,
)
