"""Flows that must keep a sign: what balance holds at 0, and bounds where no point is well inside all domains."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned
from scipy.optimize import linprog

import graphreg as gr
from graphreg.certificate.repairing.feasible import feasible
from graphreg.form import flows_without_choice

FALLING = gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.neg(z)), name="falling")
LOSSES = {
    "mean": gr.MeanLoss,
    "squared": gr.SquaredLoss,
    "huber": gr.HuberLoss,
    "quantile": gr.QuantileLoss,
    "hinge": gr.HingeLoss,
    "poisson": gr.PoissonLoss,
}


def arrows_of(rng, n, many):
    """A graph without circles, in a random order of nodes."""
    order = rng.permutation(n).tolist()
    pairs = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(many)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((order[i], order[j]) for i, j in sorted(pairs))
    return graph


def drawn(seed, rows, n=24, d=None, loss=None):
    """Some nodes without data, some with fewer samples than columns, columns that are 0 at some nodes."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4)) if d is None else d
    node = rng.choice(np.flatnonzero(rng.random(n) < 0.7), size=2 * n)
    X = rng.standard_normal((len(node), d)) * (rng.random((len(node), d)) < 0.7)
    X[np.abs(X).sum(axis=1) == 0.0, 0] = 1.0
    y = X @ rng.standard_normal(d) + rng.standard_normal(len(node))
    name = list(LOSSES)[seed % len(LOSSES)] if loss is None else loss
    y = {"hinge": np.sign(y), "poisson": rng.poisson(np.exp(np.clip(y, -2, 2))), "mean": np.c_[[y] * d].T}.get(name, y)
    data = gr.NodeData.from_arrays(None if name == "mean" else X, y, node)
    arrows = gr.w.across(arrows_of(rng, n, 2 * n))
    model = LOSSES[name](data) + rows(arrows)
    return gr.Problem(model + 1e-3 * gr.NodePenalty(gr.SquaredL2()) if name == "poisson" else model)


METHODS = {
    "auto": {"gap": 1e-6},
    "exact": {"method": gr.Exact(), "gap": 1e-6},
    "rounds": {"method": gr.PrimalDual(), "gap": 1e-3, "rounds": 1000},
}
ROWS = {
    "rises": gr.NonNegative(),
    "falls": gr.Box(-np.inf, 0.0),
    "falling is dear": lambda arrows: 0.3 * FALLING(arrows),
}


@pytest.mark.parametrize(
    ("seed", "rows", "method"), [(8, "falling is dear", "auto"), *thinned(range(30), ROWS, METHODS, every=13)]
)
def test_arrows_with_nodes_that_know_nothing_are_certified(seed, rows, method):
    loss = ("mean", "squared", "huber")[seed % 3] if method == "rounds" else None  # whose rounds are quick
    found = drawn(seed, ROWS[rows], loss=loss).solve(**METHODS[method], on_failure="return")
    assert found.status == "certified"


@pytest.mark.parametrize(("seed", "rows"), thinned(range(12), ROWS, every=5))
def test_flows_without_choice_are_0_in_all_that_balances(seed, rows):
    """Beside linear programmes, each of which makes one flow as large as it may be; prices are free there."""
    form = drawn(seed, ROWS[rows], n=10, loss="squared").form
    still = flows_without_choice(form)[0].ravel()
    K, A = form.edges[0].map.K, form.samples[0].A
    sign = 1.0 if rows == "falls" else -1.0  # of flows
    for j in range(len(still)):
        cost = np.zeros(K.shape[0] + A.shape[0])
        cost[j] = -sign
        bounds = [(0.0, 1.0) if sign > 0 else (-1.0, 0.0)] * K.shape[0] + [(None, None)] * A.shape[0]
        most = linprog(cost, A_eq=np.hstack([K.T.toarray(), A.T.toarray()]), b_eq=np.zeros(K.shape[1]), bounds=bounds)
        assert most.status == 0
        if still[j]:
            assert abs(most.fun) <= 1e-9


def test_ways_on_from_node_to_node():
    """0 has no data, and all leads away from it; nor 1, to which nothing else leads; 3 has none, and all leads there;
    what leads from 2 to 4 has a choice."""
    data = gr.NodeData.from_arrays(None, np.ones((2, 1)), np.array([2, 4]))
    arrows = nx.DiGraph([(0, 1), (1, 2), (2, 4), (4, 3), (2, 3)])
    form = gr.Problem(gr.MeanLoss(data) + gr.NonNegative()(gr.w.across(arrows))).form
    assert flows_without_choice(form)[0].ravel().tolist() == [True, True, False, True, True]
    both = gr.Problem(gr.MeanLoss(data) + 1.0 * gr.L1()(gr.w.across(arrows))).form
    assert flows_without_choice(both) is None


def test_of_domains_that_tie_coordinates_nothing_is_said():
    """Flows of a singular Q lie in its range, where no axis is, and of this cost below a line."""
    data = gr.NodeData.from_arrays(None, np.ones((1, 2)), np.array([1]))
    tied = gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.pos(z[0] + z[1])), name="tied")
    for penalty in (gr.Quadratic([[1.0, 1.0], [1.0, 1.0]]), tied):
        rows = penalty(gr.w.across(nx.DiGraph([(0, 1)])))
        assert flows_without_choice(gr.Problem(gr.MeanLoss(data) + rows).form) is None


def test_bounds_at_a_node_have_a_sign_too():
    """A node without data that nothing but a bound and arrows away from it hold."""
    data = gr.NodeData.from_arrays(None, np.ones((1, 1)), np.array([1]))
    ordered = gr.NonNegative()(gr.w.across(nx.DiGraph([(0, 1)])))
    above = gr.Problem(gr.MeanLoss(data) + ordered + gr.NodePenalty(gr.NonNegative())).form
    below = gr.Problem(gr.MeanLoss(data) + ordered + gr.NodePenalty(gr.Box(-np.inf, 3.0))).form
    assert [part.ravel().tolist() for part in flows_without_choice(above)] == [[False], [False, False]]
    assert [part.ravel().tolist() for part in flows_without_choice(below)] == [[True], [True, False]]


@pytest.mark.parametrize("penalty", [gr.NonNegative(), gr.Box(-np.inf, 0.0)])
@pytest.mark.parametrize("seed", range(6))
def test_points_that_are_hardly_out_of_order_are_feasible(penalty, seed):
    """Steps of all sizes both ways, where least squares leave some rows a little outside."""
    rng = np.random.default_rng(seed)
    n = 300
    data = gr.NodeData.from_arrays(None, rng.standard_normal((n, 1)), np.arange(n))
    chain = penalty(gr.w.along(range(n)))
    form = gr.Problem(gr.MeanLoss(data) + chain + gr.NodePenalty(gr.Box(-0.4, 0.4))).form
    steps = rng.choice([-1.0, 1.0], (n, 1), p=[0.3, 0.7]) * 10.0 ** rng.uniform(-14.0, -8.0, (n, 1))
    w = 0.3 + np.cumsum(steps if isinstance(penalty, gr.NonNegative) else -steps, axis=0)
    moved = feasible(form, w)
    assert np.isfinite(form.primal(moved))
    assert np.abs(moved - w).max() <= 1e-6


@pytest.mark.parametrize("seed", [3, 4, 7])
def test_balls_beside_an_order_shrink_all_alike(seed):
    """Each node by itself to its ball would break the order again."""
    rng, n = np.random.default_rng(seed), 150
    data = gr.NodeData.from_arrays(None, np.zeros((n, 2)), np.arange(n))
    chain = gr.NonNegative()(gr.w.across(nx.path_graph(n, create_using=nx.DiGraph)))
    form = gr.Problem(gr.MeanLoss(data) + chain + gr.NodePenalty(gr.Ball(1.0))).form
    moved = feasible(form, np.sort(rng.uniform([0.3, 0.5], [1.0, 0.95], (n, 2)), axis=0))
    assert np.isfinite(form.primal(moved))
    assert np.linalg.norm(moved, axis=1).max() > 0.5
