"""Fed-ADMM by hand: the printed algorithms with all their copies, (18) by CVXPY, averages, the laws of methods."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from core_cases import iterate
from federated_factories import SEED, ByHand, D, L_of, N, P, data_of, edges_of, graph_of, iterate_seeded, squared

import graphreg as gr
from graphreg.methods.fed_admm._averages import SuffixMean, WholeMean
from graphreg.methods.fed_admm._versions import Versions


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("kind", ["L1", "L2", "SquaredL2", "Zero"])
def test_the_printed_algorithm(kind, batch):
    """Algorithm 1 with eta = kappa/t and the mean of theta(0), ..., theta(T - 1)."""
    kappa, rho, T = 0.15, 0.8, 40
    graph = nx.cycle_graph(N)
    term = gr.Consensus(graph) if kind == "Zero" else 0.3 * gr.TotalVariation(graph_of(), getattr(gr, kind)())
    problem = gr.Problem(gr.SquaredLoss(data_of()) + term)
    hand = ByHand(data_of(), edges_of(problem.form), rho, lambda i, t: kappa / t, batch)
    for _ in range(T):
        hand.round()
    method = gr.FedADMM(rho=rho, step_size=lambda t: kappa / t, batch=batch, average="printed")
    run = problem.solve(method, gap=0, rounds=T, seed=SEED)
    if kind != "Zero":  # a certificate's point satisfies the constraints
        np.testing.assert_allclose(run.coef, np.mean(hand.visited, axis=0), atol=1e-10)
    state = iterate_seeded(method, problem.form, T)
    np.testing.assert_allclose(method.point(state)[0], np.mean(hand.visited, axis=0), atol=1e-10)
    np.testing.assert_allclose(state.theta, hand.theta, atol=1e-10)
    for e, (i, j, *_) in enumerate(hand.edges):
        np.testing.assert_allclose(state.copies.u[0][e], -hand.alpha[e, i], atol=1e-10)
        np.testing.assert_allclose(state.copies.u[0][e], hand.alpha[e, j], atol=1e-10)
        np.testing.assert_allclose(state.copies.beta[0][e], hand.beta[e, i], atol=1e-10)
        np.testing.assert_allclose(state.copies.beta[0][e + len(hand.edges)], hand.beta[e, j], atol=1e-10)


@pytest.mark.parametrize("batch", [None, 2])
def test_nodes_that_are_away_and_the_default_steps(batch):
    """Also with edges to the ground, two graphs, and coordinates that no edge couples."""
    data, rho, kappa = data_of(d=4), 0.7, 1.5
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph_of(), gr.L2(), features=["x0", "x2"])
    model = model + 0.1 * gr.NodePenalty(gr.L1(), features=["x1", "x2"])
    model = model + 0.2 * gr.TotalVariation(nx.path_graph(4), gr.L1(), features=["x2"])
    form = gr.Problem(model).form
    edges, p = edges_of(form), np.array(list(P.values()))
    degree = np.array([sum(i in edge[:2] for edge in edges) for i in range(N)])
    bound = L_of(data, batch) + rho * degree
    decreasing = batch is not None
    steps = (lambda i, t: kappa / (t + kappa * bound[i])) if decreasing else (lambda i, t: 1.0 / bound[i])
    hand = ByHand(data, edges, rho, steps, batch, p, "freeze")
    method = gr.FedADMM(rho=rho, kappa=kappa if decreasing else None, batch=batch, availability=P)
    for k in (1, 2, 17, 18, 19, 60):
        while hand.t < k:
            hand.round()
        state = iterate_seeded(method, form, k)
        np.testing.assert_allclose(state.theta, hand.theta, atol=1e-10)
        flows = np.concatenate([u.ravel() for u in state.copies.u])
        np.testing.assert_allclose(flows, np.concatenate([-hand.alpha[e, edge[0]] for e, edge in enumerate(edges)]))


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf(), gr.HuberNorm(0.2), gr.SquaredL2(), gr.Ball(0.1)])
def test_the_copies_minimise_18(penalty):
    """Against CVXPY, without the closed form."""
    rho, c = 0.6, 1.0 if isinstance(penalty, gr.AbstractConstraint) else 0.3
    term = gr.TotalVariation(nx.path_graph(2), penalty)
    form = gr.Problem(gr.SquaredLoss(data_of(2)) + (term if isinstance(penalty, gr.Ball) else c * term)).form
    method = gr.FedADMM(rho=rho)
    before, after = iterate(method, form, [4, 5])
    ends = [after.theta[0] + before.copies.u[0][0] / rho, after.theta[1] - before.copies.u[0][0] / rho]
    beta = cp.Variable((2, D))
    value = penalty.cvxpy(cp.reshape(beta[0] - beta[1], (1, D), order="C"))
    edge, constraints = (0.0, value) if isinstance(value, list) else (c * cp.sum(value), [])
    proximal = sum(cp.sum_squares(beta[k] - end) for k, end in enumerate(ends))
    options = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    cp.Problem(cp.Minimize(edge + rho / 2 * proximal), constraints).solve(solver=cp.CLARABEL, **options)
    np.testing.assert_allclose(after.copies.beta[0], beta.value, atol=1e-5)


def test_smooth_edges_to_the_ground_are_part_of_the_gradients():
    """As though each ridge were samples of its own; the flow of such an edge is its gradient."""
    data, r = data_of(), 0.7
    ridge = gr.Problem(
        gr.SquaredLoss(data, scale="sum")
        + 0.2 * gr.TotalVariation(graph_of(), gr.L2())
        + r * gr.NodePenalty(gr.SquaredL2())
    )
    X = np.concatenate([data.X, np.tile(np.sqrt(r) * np.eye(D), (N, 1))])
    y, node = np.concatenate([data.y, np.zeros(N * D)]), np.concatenate([data.node, np.repeat(range(N), D)])
    more = gr.NodeData.from_arrays(X, y, node)
    written = gr.Problem(gr.SquaredLoss(more, scale="sum") + 0.2 * gr.TotalVariation(graph_of(), gr.L2()))
    method = gr.FedADMM(rho=0.5)
    one, two = (iterate(method, problem.form, [30])[0] for problem in (ridge, written))
    np.testing.assert_allclose(one.theta, two.theta, atol=1e-10)
    w, flows, _ = method.point(one)
    assert len(one.copies.u) == 1
    np.testing.assert_allclose(flows[1], r * w)


# ---- averages --------------------------------------------------------------------------------------------------------
def test_averages_in_the_memory_of_two_iterates():
    points = np.random.default_rng(0).standard_normal((140, 2, 3))
    mean, suffix = WholeMean(points[0], 1), SuffixMean.of(points[0])
    for k in range(1, 141):
        if k > 1:
            mean, suffix = mean.step(points[k - 1]), suffix.step(points[k - 1])
        first = max(2 ** (k.bit_length() - 2), 1) if k > 1 else 1
        assert k - first + 1 >= k / 2
        assert k - first <= 0.75 * k
        np.testing.assert_allclose(mean.value(), points[:k].mean(axis=0), atol=1e-13)
        np.testing.assert_allclose(suffix.value(), points[first - 1 : k].mean(axis=0), atol=1e-13)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "last"),
        ({"availability": 0.5}, "last"),
        ({"batch": 2}, "suffix"),
        ({"availability": 0.5, "while_away": "ipw"}, "suffix"),
        ({"while_away": "ipw"}, "last"),
        ({"batch": 2, "average": "last"}, "last"),
        ({"average": "suffix"}, "suffix"),
    ],
)
def test_what_is_returned(options, kind):
    form, method = squared().form, gr.FedADMM(**options)
    states = iterate(method, form, range(1, 14))
    chosen = states[-1:] if kind == "last" else states[3:]  # rounds 4 to 13: since the last but one power of two
    np.testing.assert_allclose(method.point(states[-1])[0], np.mean([s.theta for s in chosen], axis=0), atol=1e-13)
    last = states[-1].copies
    u = last.blocks[0].u[: len(form.edges[0].tail)] if isinstance(last, Versions) else last.u[0]
    np.testing.assert_array_equal(method.point(states[-1])[1][0], u)


# ---- laws ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "accuracy"),
    [
        ({"availability": 0.6}, 1e-3),
        pytest.param({"batch": 2, "availability": 0.6}, None, marks=pytest.mark.whole),
        pytest.param({"while_away": "ipw", "availability": 0.6}, None, marks=pytest.mark.whole),
        ({"while_away": "ipw", "availability": gr.Availability(0.6, known=False), "batch": 2}, None),
    ],
    ids=str,
)
def test_the_laws_of_methods(options, accuracy):
    report = gr.testing.check_method(gr.FedADMM(**options), accuracy=accuracy, rounds=2000 if accuracy else 60)
    assert report.ok, report
