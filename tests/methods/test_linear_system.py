"""The linear system of squared losses and penalties: optima, conserved points, large targets, refusals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from factories import noise
from own_terms import OwnSquare

import graphreg as gr
from graphreg.certificate import common
from graphreg.datasets import random_problem
from graphreg.errors import MethodError
from graphreg.form.form import DualPoint
from graphreg.methods import linear_system
from graphreg.methods.linear_system import Hessian, balanced, minimised
from graphreg.oracles import NewtonSystem

METHOD = gr.LinearSystem()
SEEDS = (30, 33, 40, 43, 140)  # random problems that it solves
MATRIX = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])


def tied(penalty=None, shift=0.0, graph=None, **more):
    data = noise(9, 2, shift=shift)  # two samples for three features: the ties alone make it definite
    graph = nx.cycle_graph(9) if graph is None else graph
    return gr.Problem(gr.SquaredLoss(data) + 0.7 * gr.TotalVariation(graph, penalty or gr.SquaredL2(), **more))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_of_a_random_problem(seed):
    problem = random_problem(seed).problem
    found, exact = problem.solve(METHOD, gap=1e-9), problem.solve(gr.Exact(), gap=1e-6, on_failure="return")
    size = max(abs(exact.objective), common(problem.form).floor)
    assert exact.certificate.dual - 1e-12 * size <= found.objective <= exact.certificate.primal + 1e-9 * size


def test_the_system_is_that_of_the_normal_equations():
    problem = tied()
    form = problem.form
    currents = Hessian(form).system.currents
    H = np.stack([form.conservation(currents(e.reshape(form.shape))).ravel() for e in np.eye(form.n * form.d)])
    w = np.random.default_rng(0).standard_normal(form.shape)
    dense = np.linalg.solve(H, -form.conservation(DualPoint(*gradients(form, 0.0 * w))).ravel())
    np.testing.assert_allclose(solved(form)[0].ravel(), dense, rtol=1e-9, atol=1e-12)
    slope = form.conservation(DualPoint(*gradients(form, w)))
    start = form.conservation(DualPoint(*gradients(form, 0.0 * w)))
    np.testing.assert_allclose(H @ w.ravel(), (slope - start).ravel(), atol=1e-12)


def solved(form):
    """The minimiser, and a dual point that balances there."""
    w, point, hessian = minimised(form)
    return w, balanced(form, point, hessian)


def gradients(form, w):
    return tuple(edge.gradients(w) for edge in form.edges), form.gradient_prices(w)


@pytest.mark.parametrize("penalty", [gr.SquaredL2(), gr.Quadratic(np.diag([1.0, 3.0, 0.5])), gr.Quadratic(MATRIX)])
def test_every_sum_of_squares(penalty):
    found = tied(penalty).solve(METHOD, gap=1e-11)
    assert found.certificate.relative_gap <= 1e-11
    assert found.rounds == 0


def test_some_features_alone_and_node_penalties_with_centers():
    data = noise(9, 2)
    ties = gr.TotalVariation(nx.cycle_graph(9), gr.SquaredL2(), features=["x0", "x2"])
    model = gr.SquaredLoss(data) + 0.7 * ties + 0.2 * gr.NodePenalty(gr.SquaredL2(), center=[1.0, -2.0, 0.5])
    assert gr.Problem(model).solve(METHOD, gap=1e-12).status == "certified"


def test_hierarchies_and_nodes_without_data():
    data = gr.NodeData.from_arrays(None, np.random.default_rng(0).standard_normal((6, 2)), np.arange(6))
    tree = gr.Hierarchy({k: "ab"[k // 4] for k in range(8)}, weights=(0.4, 0.7))
    found = gr.Problem(gr.MeanLoss(data) + tree).solve(METHOD, gap=1e-12)
    assert found.status == "certified"
    assert not found.table().isna().any().any()


def test_large_targets_cost_no_digits():
    rng = np.random.default_rng(0)
    y = 1e9 + rng.standard_normal((40, 1))
    graph = nx.random_regular_graph(4, 40, seed=1)
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, np.arange(40)))
    problem = gr.Problem(loss + gr.TotalVariation(graph, gr.SquaredL2()))
    assert problem.solve(METHOD, gap=1e-12).certificate.relative_gap <= 1e-12


def test_factors_are_left_alone_where_few_rounds_are_enough():
    loss = gr.SquaredLoss(noise(60, 5))
    ties = gr.TotalVariation(nx.complete_graph(60), gr.SquaredL2())
    for model in (loss + 0.1 * ties, loss + 0.1 * gr.SquaredL2()(gr.w.across(nx.complete_graph(60), 2))):
        form = gr.Problem(model).form
        hessian, right = Hessian(form), np.random.default_rng(2).standard_normal(form.shape)
        x = hessian.solve(right)
        assert "_factors" not in vars(hessian)
        np.testing.assert_allclose(form.conservation(hessian.system.currents(x)), right, atol=1e-9)
        np.testing.assert_allclose(hessian._factors(right), x, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("penalty", [gr.SquaredL2(), gr.Quadratic(MATRIX)])
def test_factors_follow_where_rounds_are_too_few(penalty, monkeypatch):
    problem = tied(penalty)
    expected = solved(problem.form)[0]
    monkeypatch.setattr(linear_system, "affordable", lambda form: 3)
    taken = []
    monkeypatch.setattr(
        linear_system, "NewtonSystem", lambda *args, **more: taken.append(1) or NewtonSystem(*args, **more)
    )
    w, point = solved(problem.form)
    assert taken
    np.testing.assert_allclose(w, expected, rtol=1e-9, atol=1e-11)
    assert np.abs(problem.form.conservation(point)).max() <= 1e-13


@pytest.mark.parametrize(("graph", "enough"), [(nx.path_graph(400), False), (nx.complete_graph(40), True)])
def test_rounds_end_once_they_do_not_promise_to_be_enough(graph, enough):
    n = len(graph)
    form = gr.Problem(gr.SquaredLoss(noise(n, 2)) + 1e4 * gr.TotalVariation(graph, gr.SquaredL2())).form
    system, right, products = Hessian(form).system, np.random.default_rng(2).standard_normal(form.shape), []
    product = system._apply
    system._apply = lambda z: products.append(1) or product(z)
    x, rounds = system.solve(right, 1e-13, 240, promising=True)
    assert (rounds < 240) == enough
    assert len(products) == rounds if enough else 30 < len(products) < 120
    if enough:
        np.testing.assert_array_equal(x, system.solve(right, 1e-13, 240)[0])


@pytest.mark.parametrize("sure", [True, False])
def test_gradients_are_balanced_where_a_bound_needs_it(sure, monkeypatch):
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2()) if sure else 0.0  # without it some node is not strictly convex
    problem, taken = (
        gr.Problem(gr.SquaredLoss(noise(9, 2)) + gr.TotalVariation(nx.cycle_graph(9), gr.SquaredL2()) + ridge),
        [],
    )
    monkeypatch.setattr(linear_system, "balanced", lambda *given: taken.append(1) or balanced(*given))
    assert problem.solve(METHOD, gap=1e-10).status == "certified"
    assert bool(taken) != sure


class Steep(OwnSquare):
    """3/2 of the square."""

    def value(self, z):
        return 3.0 * super().value(z)

    def gradient(self, z):
        return 3.0 * z

    def curvature(self, z):
        return np.full_like(z, 3.0)

    def smoothness(self):
        return 3.0

    def strong_convexity(self):
        return 3.0


@pytest.mark.parametrize("rounds", [0, 100])
def test_squares_of_the_users_own(rounds, monkeypatch):
    monkeypatch.setattr(linear_system, "affordable", lambda form: rounds)
    w, point = solved(tied(Steep()).form)
    np.testing.assert_allclose(w, solved(tied(gr.Quadratic(3.0 * np.eye(3))).form)[0], rtol=1e-9, atol=1e-11)
    assert np.abs(tied(Steep()).form.conservation(point)).max() <= 1e-13


def test_columns_of_any_scale_are_solved_alike():
    rng, scale = np.random.default_rng(1), np.array([1e-9, 1.0, 1e9])
    X, y, node, graph = (
        rng.standard_normal((600, 3)),
        rng.standard_normal(600),
        np.arange(600) % 60,
        nx.complete_graph(60),
    )

    def form(s):
        ties = sum(
            (s[k] ** 2 * gr.TotalVariation(graph, gr.SquaredL2(), features=[f"x{k}"]) for k in range(3)), start=0
        )
        return gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X * s, y, node)) + ties).form

    assert Hessian(form(scale)).rounds
    np.testing.assert_allclose(solved(form(scale))[0] * scale, solved(form(np.ones(3)))[0], rtol=1e-8, atol=1e-11)


def test_what_is_solved_badly_is_worth_no_less_than_nothing():
    """Columns of 1e-9 and 1e12: no bound is below that of no prices and flows, 0."""
    rng, graph = np.random.default_rng(0), nx.gnm_random_graph(40, 80, seed=0)
    X = rng.normal(size=(240, 4))
    y = X @ [1.0, -1.0, 0.5, 2.0] + rng.normal(size=240)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X * [1e-9, 1.0, 1e12, 1.0], y, np.repeat(range(40), 6)))
    found = gr.Problem(loss + 0.1 * gr.TotalVariation(graph, gr.SquaredL2())).solve(METHOD, on_failure="return")
    assert found.certificate.dual >= -1e-9


def test_conserved_to_rounding():
    form = tied().form
    w, point = solved(form)
    assert np.abs(form.conservation(point)).max() <= 1e-14 * np.abs(point.prices[0]).max()
    assert form.primal(w) - form.dual(point) <= 1e-13 * form.primal(w)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (tied(gr.L2()), "which is no sum of squares"),
        (tied(gr.HuberNorm(1.0)), "which is no sum of squares"),
        (
            gr.Problem(gr.HuberLoss(noise(9, 2)) + gr.TotalVariation(nx.cycle_graph(9), gr.SquaredL2())),
            "HuberLoss is no squared loss",
        ),
    ],
)
def test_what_it_lacks_is_said(problem, said):
    assert not problem.methods().loc["LinearSystem", "applies"]
    with pytest.raises(MethodError, match=said):
        problem.solve(METHOD)


def test_it_has_no_rounds():
    with pytest.raises(MethodError, match="has no rounds"):
        tied().solve(METHOD, rounds=3)
