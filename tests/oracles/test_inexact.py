"""Inexact node updates: what a tolerance promises, which schedules lead to the optimum, which do not."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import SMOOTH, iterate, view_of
from factories import chain, thinned

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import MethodError
from graphreg.oracles.gradients import Accuracy, gradient_steps

LOSSES = [gr.SquaredLoss, gr.LogisticLoss, gr.HuberLoss]


def constant(tolerance):
    return lambda t: tolerance


def poisson(n=6):
    rng = np.random.default_rng(0)
    X = 0.5 * rng.standard_normal((8 * n, 2))
    y = rng.poisson(np.exp(X @ [0.7, -0.4] + 0.5)).astype(float)
    data = gr.NodeData.from_arrays(X, y, np.repeat(range(n), 8))
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(gr.PoissonLoss(data) + 0.2 * gr.TotalVariation(nx.path_graph(n), gr.L2()) + ridge)


# ---- the prox by gradient steps --------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seed", "tolerance"), thinned(SMOOTH, [1e-1, 1e-4], every=2))
def test_a_tolerance_bounds_the_distance_from_the_prox(seed, tolerance):
    """By strong convexity, (1) of the module; the exact prox is that of Newton's method, run to rounding."""
    view = view_of(random_problem(seed).problem.form)
    rng = np.random.default_rng(seed)
    v = 0.3 * rng.standard_normal(view.form.shape)
    tau = 1.0 / np.maximum(view.curvature, 1e-3 * view.curvature.max())
    exact, memory = v, view.memory()
    for _ in range(40):  # each call is accurate to a hundredth of its move
        exact, memory = view.prox(v, tau, exact, memory)
    size = tolerance * np.linalg.norm(exact - v, axis=1).max()
    found, curvature = gradient_steps(view.losses, v, tau, v, (), Accuracy(tolerance=size))
    distance = np.linalg.norm(found - exact, axis=1)
    assert (distance <= size * (1 + 1e-6) + 1e-9 * np.linalg.norm(exact)).all()
    assert np.isfinite(curvature).all()
    bare = view.losses.counts == 0
    assert np.array_equal(found[bare], v[bare])


@pytest.mark.parametrize("seed", SMOOTH[:8])
def test_every_step_decreases_the_objective_of_the_prox(seed):
    view = view_of(random_problem(seed).problem.form)
    v = 0.3 * np.random.default_rng(1).standard_normal(view.form.shape)
    tau = 1.0 / np.maximum(view.curvature, 1e-3 * view.curvature.max())
    w, curvature, last = v, None, np.full(view.form.n, np.inf)
    for _ in range(6):
        w, curvature = gradient_steps(view.losses, v, tau, w, curvature, Accuracy(steps=1))
        value = view.losses.value(w) + ((w - v) ** 2).sum(axis=1) / (2 * tau)
        assert (value <= last + 1e-9 * np.abs(value)).all()
        last = value


# ---- schedules -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("problem", "inexact"),
    thinned(
        [*(lambda loss=loss: chain(loss=loss) for loss in LOSSES), poisson], [1, 3, 1.0, lambda t: 0.9**t], every=2
    ),
)
def test_summable_errors_lead_to_the_optimum(problem, inexact):
    run = problem().solve(gr.PrimalDual(inexact=inexact), gap=1e-8)
    assert run.status == "certified"
    assert run.objective >= problem().solve(gap=1e-9).certificate.dual


@pytest.mark.parametrize("loss", thinned(LOSSES, every=3))
def test_errors_that_do_not_sum_up_leave_a_floor(loss):
    """The certificate holds all the same: never below the optimum."""
    problem = chain(loss=loss)
    exact = problem.solve(gap=1e-10)

    def gap(tolerance, rounds):
        run = problem.solve(gr.PrimalDual(inexact=constant(tolerance)), gap=0, rounds=rounds)
        assert run.certificate.dual <= exact.objective
        assert run.objective >= exact.certificate.dual
        return run.certificate.relative_gap

    floors = [gap(tolerance, 1500) for tolerance in (1e-2, 1e-4)]
    assert min(floors) > 1e-8
    assert floors[1] < 0.2 * floors[0]  # it follows the tolerance
    assert gap(1e-4, 3000) > 0.1 * floors[1]  # twice the rounds change little


def test_a_tolerance_of_zero_is_the_exact_method():
    form = chain(loss=gr.SquaredLoss).form
    options = {"balance": 1.0, "relaxation": 1.0}
    one, two = (iterate(gr.PrimalDual(**options, **more), form, [5])[0] for more in ({}, {"inexact": constant(0.0)}))
    np.testing.assert_allclose(one.x.w, two.x.w, atol=1e-12)


@pytest.mark.parametrize(("loss", "exact"), [(gr.LogisticLoss, False), (gr.SquaredLoss, True)])
def test_a_prox_ends_within_a_hundredth_of_its_move(loss, exact):
    """PFedMe and Algorithm 1 beside Newton's method, as their docstrings have it; of squares it is exact."""
    rng = np.random.default_rng(1)
    rows = {k: (rng.normal(size=(20, 2)), rng.integers(0, 2, 20)) for k in range(6)}
    problem = gr.Problem(loss(gr.NodeData.from_dict(rows)) + 0.1 * gr.TotalVariation(nx.path_graph(6), gr.L2()))

    def prox(i, v, tau):
        (X, y), w = rows[i], v
        for _ in range(60):
            p = X @ w if exact else 1 / (1 + np.exp(-X @ w))
            H = X.T @ (X if exact else (p * (1 - p))[:, None] * X) / 20 + np.eye(2) / tau
            w = w - np.linalg.solve(H, X.T @ (p - y) / 20 + (w - v) / tau)
        return w

    def observed(method, rounds, *names):
        run = problem.solve(method, rounds=rounds, gap=0, observe=gr.Observer(list(names), rounds=1))
        return (run.observed[name] for name in names)

    theta, model = observed(gr.PFedMe(0.5), 4, "w", "state.model")
    paper = {"balance": 1.0, "relaxation": 1.0}
    (first,) = observed(gr.PrimalDual(**paper), 1, "w")
    (none,) = observed(gr.PrimalDual(**paper, inexact=constant(0.0)), 1, "w")
    tau = 1 / np.array([1.0, 2, 2, 2, 2, 1])
    np.testing.assert_allclose(none[1], [prox(i, np.zeros(2), tau[i]) for i in range(6)], atol=1e-12)
    by_oracle = problem.oracles().prox(np.zeros((6, 2)), tau)
    np.testing.assert_allclose(by_oracle, none[1], atol=1e-12)
    pairs = [(first[0], first[1], by_oracle)]
    pairs += [(theta[t], theta[t + 1], [prox(i, model[t][0], 2.0) for i in range(6)]) for t in range(4)]
    for before, after, there in pairs:
        off, move = (np.linalg.norm(after[:6] - each, axis=1) for each in (there, before[:6]))
        assert (off <= 0.01 * move + 1e-13).all()
        assert (off.max() < 1e-13) == exact


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("inexact", [0, -1, 0.0, -2.0, np.inf, np.nan, "3", True, [1]])
def test_what_is_no_schedule_is_refused(inexact):
    with pytest.raises(MethodError, match=r"PrimalDual\(inexact=...\) must be a whole number"):
        gr.PrimalDual(inexact=inexact)


@pytest.mark.parametrize("tolerance", [-1.0, np.nan, None, "small"])
def test_a_function_that_gives_no_tolerance_is_refused(tolerance):
    with pytest.raises(MethodError, match="in round 0"):
        chain().solve(gr.PrimalDual(inexact=constant(tolerance)))


def test_losses_with_kinks_are_refused():
    problem = chain(loss=gr.QuantileLoss, tau=0.4)
    with pytest.raises(MethodError, match="QuantileLoss is not smooth"):
        problem.solve(gr.PrimalDual(inexact=3))
    assert not gr.PrimalDual().missing(problem.form)


def test_ground_edges_need_not_be_smooth():
    """They are edges with flows of their own, not part of the prox."""
    data = chain().model.terms[0][1].data
    model = gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(nx.path_graph(8), gr.L2()) + 0.05 * gr.NodePenalty(gr.L1())
    assert gr.Problem(model).solve(gr.PrimalDual(inexact=2), gap=1e-7).status == "certified"
