"""Restarted Halpern iterations: the pull, when they restart, where they are the default, what they bring; screens."""

from __future__ import annotations

import numpy as np
import pytest
from core_cases import iterate, view_of
from factories import chain as chain_of
from factories import thinned

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.methods.splitting._halpern import EVERY, LEAST, Halpern
from graphreg.running.schedule import Schedule

RELAXATION = 1.6


def chain(loss=gr.SquaredLoss):
    problem = chain_of(6, loss, gr.L1(), 0.3, d=2, seed=3)
    return problem, problem.model.terms[0][1].data


def by_hand(data, n, strength, s, rounds):
    """Halpern's iteration on the primal-dual method for least squares and l1 on a path, node by node."""
    degree = np.array([1.0] + [2.0] * (n - 2) + [1.0])
    w, u = np.zeros((n, 2)), np.zeros((n - 1, 2))
    for j in range(rounds):
        w_hat, u_hat = np.empty_like(w), np.empty_like(u)
        for i in range(n):
            tau = s / degree[i]
            pull = (u[i] if i < n - 1 else 0.0) - (u[i - 1] if i > 0 else 0.0)
            X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
            H = X.T @ X / 4 + np.eye(2) / tau
            w_hat[i] = np.linalg.solve(H, X.T @ y / 4 + (w[i] - tau * pull) / tau)
        ahead = 2 * w_hat - w
        for e in range(n - 1):
            u_hat[e] = np.clip(u[e] + (ahead[e] - ahead[e + 1]) / (2 * s), -strength, strength)
        t = (j + 1) / (j + 2)
        w, u = t * (w + RELAXATION * (w_hat - w)), t * (u + RELAXATION * (u_hat - u))  # the anchor is 0
    return w, u


@pytest.mark.parametrize("rounds", range(1, EVERY))
def test_the_pull_is_that_of_halpern(rounds):
    problem, data = chain()
    method = gr.PrimalDual(balance=0.8, relaxation=RELAXATION, restarts=True)
    state = iterate(method, problem.form, [rounds])[0]
    w, u = by_hand(data, 6, 0.3, 0.8, rounds)
    np.testing.assert_allclose(state.x.w, w, atol=1e-12)
    np.testing.assert_allclose(state.x.u[0], u, atol=1e-12)


def test_when_it_restarts():
    fresh = Halpern().step().with_residual(1.0, 1)
    assert fresh is not None
    assert (fresh.first, fresh.last) == (1.0, 1.0)
    assert fresh.with_residual(0.9, 10).last == 0.9  # goes on
    assert fresh.with_residual(0.2, 10) is None  # has fallen far enough
    assert fresh.with_residual(0.7, 10).with_residual(0.75, 15) is None  # has begun to grow
    assert fresh.with_residual(0.9, 10).with_residual(0.95, 15) is not None  # grows, but has not fallen before
    late = Halpern(steps=LEAST + 1, first=1.0, last=1.0)
    assert late.with_residual(0.9, 2 * LEAST) is None  # long enough
    assert late.with_residual(0.9, 100 * LEAST) is not None


@pytest.mark.parametrize("method", [gr.PrimalDual, gr.ADMM])
def test_where_it_is_the_default(method):
    rough, smooth = chain(gr.QuantileLoss)[0].form, chain()[0].form
    assert view_of(rough).scales().kinks
    assert not view_of(smooth).scales().kinks
    given = {"balance": 1.0} if method is gr.PrimalDual else {"rho": 1.0}
    assert isinstance(iterate(method(), rough, [1])[0].due, Halpern)
    assert not isinstance(iterate(method(), smooth, [1])[0].due, Halpern)
    assert iterate(method(**given), rough, [1])[0].due is None
    assert isinstance(iterate(method(restarts=True), smooth, [1])[0].due, Halpern)
    assert not isinstance(iterate(method(restarts=False), rough, [1])[0].due, Halpern)


@pytest.mark.parametrize(
    ("method", "loss", "restarts"),
    thinned([gr.PrimalDual, gr.ADMM], [gr.SquaredLoss, gr.HingeLoss, gr.QuantileLoss], [True, False], every=2),
)
def test_it_leads_there(method, loss, restarts):
    problem = chain(loss)[0]
    run = problem.solve(method(restarts=restarts), gap=1e-6)
    assert run.status == "certified"
    assert run.objective == pytest.approx(problem.solve(gap=1e-8).objective, rel=2e-6)


@pytest.mark.parametrize("seed", thinned([5, 105, 225], every=3))
def test_what_it_brings_on_losses_with_kinks(seed):
    """Without restarts three times the rounds are not enough."""
    problem = random_problem(seed).problem
    found = problem.solve(gr.PrimalDual(restarts=True), rounds=20_000)
    assert found.status == "certified"
    longer = problem.solve(gr.PrimalDual(restarts=False), rounds=3 * found.rounds)
    assert longer.status == "budget"
    assert not longer.certificate.holds(1e-6)


def test_looks_are_recorded_as_adaptation():
    problem = chain(gr.QuantileLoss)[0]
    run = problem.solve(gr.PrimalDual(), gap=0, rounds=4)
    assert run.ledger.messages["adaptation"] == 2 * 2 * (
        6 - 1
    )  # sums over six nodes: the first balance, and after the first round


def test_exact_is_refined_where_the_solver_stops_short(monkeypatch):
    from graphreg.compiling import solvers

    monkeypatch.setattr(solvers, "ATTEMPTS", {"CLARABEL": ((True, {"max_iter": 5}),)})
    solution = random_problem(188).problem.solve(gr.Exact(), gap=1e-7)
    assert solution.status == "certified"
    assert "refined by" in solution.message


@pytest.mark.parametrize(
    ("k", "screens", "wait"), [(100, (1e-1, 9e-2), 50), (100, (1e-1, 4e-5), 10), (400, (1.0, 1.0), 40)]
)
def test_screens_come_every_tenth_to_every_half_of_the_rounds(k, screens, wait):
    """Far from the target after k/2 rounds, near it or without decay after k/10."""
    schedule = Schedule(target=1e-6, polishes=False)
    schedule.note_screen(k // 2, screens[0])
    assert schedule.screen_now(k)
    schedule.note_screen(k, screens[1])
    assert schedule.next_screen == k + wait
