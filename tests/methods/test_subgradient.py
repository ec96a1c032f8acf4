"""Subgradient descent: its step, its defaults, its rates."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import iterate, view_of
from factories import noise
from sameness import facts

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import MethodError, MethodWarning
from graphreg.methods.baselines.subgradient import State
from graphreg.network.view import LocalView

N, GRAPH = 6, nx.cycle_graph(6)


def smooth(strength=0.5, ridge=0.2):
    edges = strength * gr.TotalVariation(GRAPH, gr.SquaredL2())
    return gr.Problem(gr.SquaredLoss(noise(N, 8, 2)) + edges + ridge * gr.NodePenalty(gr.SquaredL2()))


def rough():
    edges = 0.1 * gr.TotalVariation(GRAPH, gr.L1())
    return gr.Problem(gr.QuantileLoss(noise(N, 8, 2), tau=0.3) + edges + 0.05 * gr.NodePenalty(gr.L1()))


def test_a_step_by_hand():
    problem, data = rough(), noise(N, 8, 2)
    method = gr.SubgradientDescent(step_size=lambda t: 0.1 / (t + 2))
    w = np.random.default_rng(1).standard_normal((N, 2))
    states = iterate(method, problem.form, [1, 2], (w, None))
    for t, state in enumerate(states):
        g = 0.05 * np.sign(w)
        for i in range(N):
            X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
            g[i] += X.T @ np.where(y - X @ w[i] > 0, -0.3, 0.7) / 8
            for j in GRAPH[i]:
                g[i] += 0.1 * np.sign(w[i] - w[j])
        w = w - 0.1 / (t + 2) * g
        np.testing.assert_allclose(state.w, w, rtol=1e-12)


def test_smooth_problems_are_certified():
    run = smooth().solve(gr.SubgradientDescent(), gap=1e-8)
    assert run.status == "certified"
    assert run.objective == pytest.approx(smooth().solve(gap=1e-9).objective, rel=2e-8)


@pytest.mark.parametrize("seed", [162, 383, 476, 250, 516, 129, 61, 96])
def test_the_bounds_of_the_curvature(seed):
    """mu ||v||^2 <= <difference of gradients, v> <= L ||v||^2, where all is smooth; from sums over the nodes."""
    view = view_of(random_problem(seed).problem.form)
    state = gr.SubgradientDescent().init(view, None)
    each = view.gradients.smoothness
    finite = np.isfinite(each)
    assert each[finite].max(initial=0.0) * (1 - 1e-12) <= state.L
    assert 1e6 * max(each[finite].max(initial=0.0), 1.0) >= state.L
    assert 0.0 <= state.mu <= view.gradients.convexity.min() * (1 + 1e-12)
    assert state.mu > 0 or view.gradients.convexity.min() == 0


def test_the_bounds_are_of_the_right_size():
    view = view_of(smooth().form)
    state = gr.SubgradientDescent().init(view, None)
    highest = view.gradients.smoothness.max() + 2 * 0.5 * 2
    assert highest * (1 - 1e-12) <= state.L <= highest * N ** (1 / 16)
    lowest = view.gradients.convexity.min()
    assert lowest * N ** (-1 / 16) <= state.mu <= lowest * (1 + 1e-12)
    assert view.engine.ledger.messages["adaptation"] == 2 * 2 * (N - 1)  # two sums up and down a tree


def test_default_steps():
    view = view_of(smooth().form)
    L, mu = 7.0, 0.5

    def eta(method, form_view, mu, t):
        zero = np.zeros(form_view.form.shape)
        smooth_too = method.init(form_view, None).smooth
        return method._eta(State(form_view, t, zero, L, mu, smooth_too))

    assert eta(gr.SubgradientDescent(), view, mu, 50) == pytest.approx(1 / L)
    stochastic = gr.SubgradientDescent(batch=1)
    assert eta(stochastic, view, mu, 0) == pytest.approx(1 / L)
    assert eta(stochastic, view, mu, 100) == pytest.approx(2 / (mu * (100 + 2 * L / mu)))
    assert eta(gr.SubgradientDescent(), view_of(rough().form), 0.0, 99) == pytest.approx(1 / (L * 10))


@pytest.mark.parametrize("t", [1, 2, 3, 4, 7, 8, 11, 16, 21])
def test_the_suffix_average(t):
    plain, form = gr.SubgradientDescent(step_size=0.05), rough().form
    average = gr.SubgradientDescent(step_size=0.05, average="suffix")
    each = [state.w for state in iterate(plain, form, range(1, t + 1))]
    found = average.point(iterate(average, form, [t])[0])[0]
    half = 1 << (t.bit_length() - 1) >> 1  # the iterates from half the last power of two on
    assert t - max(half, 1) + 1 >= t / 2
    np.testing.assert_allclose(found, np.mean(each[max(half, 1) - 1 :], axis=0), rtol=1e-12)


def test_samples_estimate_the_step():
    """The mean of many stochastic steps is the full one."""
    form, steps = smooth().form, []
    start = np.random.default_rng(2).standard_normal((N, 2)), None
    method = gr.SubgradientDescent(step_size=0.01, batch=1)
    for seed in range(3000):
        view = LocalView(form, view_of(form).engine, seed)
        state = State(view, 0, start[0], 1.0, 1.0, True)
        steps.append(method.step(state).w)
    full = iterate(gr.SubgradientDescent(step_size=0.01), form, [1], start)[0].w
    error = np.std(steps, axis=0) / np.sqrt(len(steps))
    assert (np.abs(np.mean(steps, axis=0) - full) <= 5 * error).all()
    assert (error > 0).all()


def test_the_rate_where_it_is_strongly_convex():
    """E ||w - w*||^2 falls as 1/t: the slope over 1.5 decades, from 8 seeds."""
    problem = smooth(strength=0.1, ridge=0.5)
    best, rounds = problem.solve(gap=1e-10).coef, np.unique(np.logspace(2, 3.5, 7).astype(int))
    total = np.zeros(len(rounds))
    method = gr.SubgradientDescent(batch=1)
    for seed in range(8):
        view = LocalView(problem.form, view_of(problem.form).engine, seed)
        state, k = method.init(view, None), 0
        for t in range(1, int(rounds[-1]) + 1):
            state = method.step(state)
            if t == rounds[k]:
                total[k] += ((state.w - best) ** 2).sum()
                k += 1
    slope = np.polyfit(np.log(rounds), np.log(total), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.25)


def test_the_rate_at_kinks():
    """P - P* is about R G / sqrt(t) at worst: the tenfold rounds leave less than a half."""
    problem = rough()
    best = problem.solve(gap=1e-9).objective
    method = gr.SubgradientDescent(average="suffix")
    above = [problem.solve(method, gap=0, rounds=t).objective - best for t in (30, 300, 3000)]
    assert above[1] < 0.5 * above[0]
    assert above[2] < 0.5 * above[1]


def test_one_message_each_way_and_round():
    run = rough().solve(gr.SubgradientDescent(), gap=0, rounds=20)
    assert run.ledger.messages["method"] == 20 * 2 * N
    assert run.ledger.bytes["method"] == 20 * 2 * N * 2 * 8


def test_a_broken_run_has_the_bits_of_an_unbroken_one(tmp_path):
    method, budget = gr.SubgradientDescent(batch=2, average="suffix"), {"gap": 0, "rounds": 60, "seed": 1}
    whole = rough().solve(method, **budget)
    for k in (1, 8, 31, 60):
        last = rough().solve(method, checkpoint=tmp_path / "run", **{**budget, "rounds": k})
    assert facts(last) == facts(whole)
    assert facts(rough().solve(method, gap=0, rounds=60, seed=2))[0] != facts(whole)[0]


def test_constraints_are_refused_by_name():
    model = gr.SquaredLoss(noise(N, 8, 2)) + gr.Consensus(GRAPH) + gr.NodePenalty(gr.Box(-1.0, 1.0))
    with pytest.raises(MethodError, match=r"Consensus is a constraint.*NodePenalty\(Box\) is a constraint") as caught:
        gr.Problem(model).solve(gr.SubgradientDescent())
    assert len(caught.value.missing) == 2


@pytest.mark.parametrize(
    "options",
    [
        *({"step_size": value} for value in (0.0, -1.0, np.inf, "fast", True)),
        *({"batch": value} for value in (0, 1.5, True)),
        {"average": "mean"},
    ],
)
def test_wrong_options(options):
    name = next(iter(options))
    with pytest.raises(MethodError, match=rf"SubgradientDescent\({name}=...\)"):
        gr.SubgradientDescent(**options)


def test_a_step_beyond_its_bound():
    with pytest.warns(MethodWarning, match="beyond 2/L"):
        smooth().solve(gr.SubgradientDescent(step_size=100.0), gap=0, rounds=1)
