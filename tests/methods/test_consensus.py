"""Methods for a consensus: they are their recursions, certified optima, parts of a graph, refusals."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
from consensus_cases import CORRECTED, EVERY, EVERY_KIND, SEEDS, network, run
from core_cases import view_of
from factories import named, thinned

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.network.mixing import mixing_of


# ---- the recursions of the literature --------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [None, 3])
def test_exact_diffusion_is_its_recursion(batch):
    problem = network(loss=gr.LogisticLoss, ridge=0.1)
    method, view = gr.ExactDiffusion(step_size=0.3, batch=batch), view_of(problem.form)
    state, start = method.init(view, None), np.zeros(view.form.shape)
    half = mixing_of(view, "metropolis", lazy=True).matrix(view.form)
    theta, psi = start, start
    for k in range(40):
        u = view.streams("samples").uniform(k, 3)
        g = view.gradients.full(theta) if batch is None else view.gradients.sampled(theta, u)
        new = theta - 0.3 * g
        theta, psi = half @ (new + theta - psi), new
        state = method.step(state)
        np.testing.assert_allclose(state.theta, theta, atol=1e-12)


def test_exact_diffusion_with_decreasing_steps_shrinks_its_correction():
    problem = network(scales=0.3)
    view, step = view_of(problem.form), gr.DecreasingStep(0.2, 5.0, 0.8)
    method, half = gr.ExactDiffusion(step), mixing_of(view, "metropolis", lazy=True).matrix(view.form)
    state = method.init(view, None)
    theta = psi = np.zeros(view.form.shape)
    eta = 8 * 0.2 * (np.arange(41) + 6.0) ** -0.8  # n eta_t
    for k in range(40):
        new = theta - eta[k] * view.gradients.full(theta)
        theta, psi = half @ (new + (eta[k] / eta[k - 1] if k else 1.0) * (theta - psi)), new
        state = method.step(state)
        np.testing.assert_allclose(state.theta, theta, atol=1e-12)


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("lazy", [True, False])
def test_gradient_tracking_is_its_recursion(batch, lazy):
    problem = network(loss=gr.LogisticLoss, ridge=0.1)
    method, view = gr.GradientTracking(step_size=0.2, lazy=lazy, batch=batch), view_of(problem.form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gr.errors.MethodWarning)
        state = method.init(view, None)
    C = mixing_of(view, "metropolis", lazy).matrix(view.form)
    theta, y, old = (np.zeros(view.form.shape) for _ in range(3))
    for k in range(40):
        u = view.streams("samples").uniform(k, 3)
        g = view.gradients.full(theta) if batch is None else view.gradients.sampled(theta, u)
        y, old = C @ (y + g - old), g
        theta = C @ (theta - 0.2 * y)
        state = method.step(state)
        np.testing.assert_allclose(state.theta, theta, atol=1e-12)


@pytest.mark.parametrize("tau", [1, 3])
def test_local_sgd_is_its_recursion(tau):
    """With the steps of Assumption 4 and gossip where tau divides t + 1."""
    problem = network()
    view = view_of(problem.form)
    method = gr.LocalSGD(gr.DecreasingStep(D=0.1, gamma=4.0, alpha=0.7), tau=tau, batch=2)
    state, theta = method.init(view, None), np.zeros(view.form.shape)
    C = mixing_of(view, "metropolis", lazy=False).matrix(view.form)
    for t in range(12):
        g = view.gradients.sampled(theta, view.streams("samples").uniform(t, 2))
        theta = theta - 0.1 * (t // tau + 1 + 4.0) ** -0.7 * 8 * g
        theta = C @ theta if t % tau == tau - 1 else theta
        state = method.step(state)
        np.testing.assert_allclose(state.theta, theta, atol=1e-12)


# ---- certified optima ------------------------------------------------------------------------------------------------
CLASSES = {
    "squared": (gr.SquaredLoss, 0.0, None),
    "logistic": (gr.LogisticLoss, 0.1, None),
    "huber": (gr.HuberLoss, 0.0, None),
    "multinomial": (gr.MultinomialLoss, 0.1, None),
    "poisson": (gr.PoissonLoss, 0.0, 0.05),
}


@pytest.mark.parametrize("method", [gr.GradientTracking, gr.ExactDiffusion])
@pytest.mark.parametrize("name", CLASSES)
def test_the_corrected_methods_are_certified(name, method):
    loss, ridge, step = CLASSES[name]
    problem = network(loss=loss, ridge=ridge, scales=0.3)
    found, exact = problem.solve(method(step_size=step), gap=1e-8, rounds=3000), problem.solve(gap=1e-8)
    assert found.status == "certified"
    assert found.certificate.holds(1e-8)
    assert exact.certificate.dual <= found.objective <= exact.objective * (1 + 2e-8) + 1e-12
    assert found.ledger.messages["adaptation"] > 0  # the bound of the step
    assert found.ledger.messages["certificate"] < 2 * found.ledger.messages["method"]


@pytest.mark.parametrize(("seed", "method"), thinned(SEEDS, CORRECTED, every=4), ids=named)
def test_random_consensus_problems(seed, method):
    found = random_problem(seed).problem.solve(method, gap=1e-8, rounds=6000)
    assert found.status == "certified"


@pytest.mark.parametrize("method", CORRECTED, ids=named)
def test_a_solution_as_start_brings_its_flows(method):
    problem = network(loss=gr.LogisticLoss, ridge=0.1)
    cold = problem.solve(method, gap=1e-8)
    starts = (cold.coef, cold.certificate.dual_point.flows), (cold.coef, None)
    moved = [np.abs(run(method, problem, 5, start=start).theta - cold.coef).max() for start in starts]
    assert moved[0] < 1e-2 * moved[1]
    assert problem.solve(method, gap=1e-8, start=cold).rounds < cold.rounds
    away = problem.solve(method, gap=1e-8, start=np.random.default_rng(0).standard_normal((8, 2)))  # no consensus
    np.testing.assert_allclose(away.coef, cold.coef, atol=1e-4)


def test_the_flows_are_those_of_the_optimum():
    problem = network()
    optimum = problem.solve(gap=1e-10).coef
    for method in CORRECTED:
        theta, flows, prices = method.point(run(method, problem, 1500))
        np.testing.assert_allclose(theta, optimum, atol=1e-5)
        balance = view_of(problem.form).gradients.full(theta)
        problem.form.edges[0].add_adjoint(flows[0], balance)
        np.testing.assert_allclose(balance, 0, atol=1e-10)
        assert prices is None


def test_local_sgd_is_certified_from_its_parameters_alone():
    """Equal losses are no consensus problem at all; different ones need flows, which local SGD does not have."""
    problem = network(scales=0.0)
    optimum = problem.solve(gap=1e-10)
    found = problem.solve(gr.LocalSGD(gr.DecreasingStep(alpha=1.0), batch=None), gap=0, rounds=2000)
    above = found.objective - optimum.objective
    assert 0 < found.certificate.gap <= 10 * above  # papers: 1.0 to 2.7 times where the solves are exact
    assert found.certificate.dual <= optimum.objective


@pytest.mark.parametrize("method", thinned([gr.GradientTracking, gr.ExactDiffusion], every=2))
def test_batches_end_in_a_ball_that_shrinks_with_the_step(method, whole):
    """Mean squared distances proportional to the step, and certificates that the noise of the flows does not spoil.

    Means over 6 runs; over 12 with ``make test ARGS=--whole``.
    """
    problem = network(scales=0.3)
    optimum, off = problem.solve(gap=1e-10), []
    for eta in (0.1, 0.025):
        far = [
            np.sum((run(method(eta, batch=1), problem, round(60 / eta), seed).theta - optimum.coef) ** 2)
            for seed in range(12 if whole else 6)
        ]
        off.append(np.mean(far))
    assert 2.0 < off[0] / off[1] < 8.0
    found = problem.solve(method(0.025, batch=1), gap=0, rounds=1000, seed=0)
    assert found.certificate.gap <= 5 * (found.objective - optimum.certificate.dual)


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_what_is_missing():
    labels = ["a", "b", "c", "d"]
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), labels)
    apart = nx.Graph([("a", "b"), ("c", "d")])
    path = nx.path_graph(labels)
    squares, ridge = gr.SquaredLoss(data), gr.NodePenalty(gr.SquaredL2())
    cases = {
        r"disconnected: no path leads from 'a' to 'c'": squares + gr.TotalVariation(apart, gr.Zero()),
        r"disconnected: no path leads from 'a' to 'b'": squares + ridge,
        r"TotalVariation\(L2\) is no consensus": squares + gr.TotalVariation(path, gr.L2()),
        r"Consensus ties some coordinates only": squares + gr.Consensus(path, features=["x1"]),
        r"NodePenalty\(L1\) is not smooth": squares + gr.Consensus(path) + 0.1 * gr.NodePenalty(gr.L1()),
        r"QuantileLoss is not smooth": gr.QuantileLoss(data, tau=0.5) + gr.Consensus(path),
        r"PoissonLoss has no bound of its curvature.*step_size": gr.PoissonLoss(data) + gr.Consensus(path),
    }
    with pytest.raises(gr.errors.MethodError, match="or pose a problem for each component"):
        gr.Problem(squares + gr.TotalVariation(apart, gr.Zero())).solve(gr.LocalSGD())
    for said, model in cases.items():
        problem = gr.Problem(model)
        for method in EVERY:
            with pytest.raises(gr.errors.MethodError, match=f"{method.name} does not apply: .*{said}"):
                problem.solve(method)
            assert not problem.methods().loc[method.name, "applies"]
    assert gr.Problem(squares + gr.Consensus(path) + ridge).methods().loc[[m.name for m in EVERY], "applies"].all()


def test_an_availability_of_nobody():
    with pytest.raises(gr.errors.MethodError, match="availability names 'z', which is not a node"):
        network().solve(gr.LocalSGD(availability={"z": 0.5}))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        *((gr.LocalSGD, {"tau": value}) for value in (0, -1, 1.5, None, True)),
        *((method, {"batch": value}) for method in (gr.LocalSGD, gr.GradientTracking) for value in (0, 2.5, "all")),
        *((method, {"step_size": value}) for method in (gr.LocalSGD, gr.ExactDiffusion) for value in (0.0, -1, np.nan)),
        *((gr.LocalSGD, {"availability": value}) for value in (0.0, -0.1, np.nan, "half", {"a": 1.5})),
        *((gr.LocalSGD, {name: "yes"}) for name in ("replacement", "shuffle", "lazy")),
        *((method, {"hessian_samples": 0}) for method in EVERY_KIND),
        *((method, {"burn_in": value}) for method in EVERY_KIND for value in (-1, 0.2, False)),
        *((method, {"replacement": 1}) for method in EVERY_KIND),
        (gr.GradientTracking, {"lazy": None}),
        *((gr.DecreasingStep, {"D": value}) for value in (0.0, np.inf)),
        *((gr.DecreasingStep, {"gamma": value}) for value in (-1.0, np.nan)),
        *((gr.DecreasingStep, {"alpha": value}) for value in (0.5, 1.1)),
    ],
)
def test_wrong_options(method, options):
    name = next(iter(options))
    with pytest.raises(gr.errors.MethodError, match=rf"{method.__name__}\({name}=...\)"):
        method(**options)


@pytest.mark.parametrize(
    ("method", "way"),
    [
        (gr.LocalSGD(step_size=0.01, batch=None), "take step_size=DecreasingStep(), or GradientTracking()."),
        (gr.LocalSGD(), ""),
        (gr.GradientTracking(batch=2), "take batch=None, or step_size=DecreasingStep()."),
        (gr.ExactDiffusion(batch=2, step_size=gr.DecreasingStep()), ""),
        (gr.ExactDiffusion(), ""),
    ],
    ids=str,
)
def test_constant_steps_that_stay_at_a_distance_say_what_leads_to_the_optimum(method, way):
    message = network().solve(method, rounds=5, gap=1e-12, seed=0).message
    assert ("however many rounds there are: " + way in message) == bool(way)
    assert ("allow more" in message) == (not way)
