"""Steps, bias and rates of methods for a consensus, and what they send."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from consensus_cases import CORRECTED, network, run
from core_cases import view_of

import graphreg as gr


# ---- bias and rates --------------------------------------------------------------------------------------------------
def test_a_constant_step_biases_local_sgd_alone():
    """With full gradients and Hessians that differ: proportional to the step, and none after a correction."""
    problem = network(scales=0.8)
    optimum = problem.solve(gr.Exact(), gap=1e-12, on_failure="return").coef[0]
    start = (np.tile(optimum, (8, 1)), None)
    L = view_of(problem.form).gradients.smoothness.max()

    def off(method, rounds):
        w = run(method, problem, rounds, start=start).theta
        return float(np.sqrt(np.mean(np.sum((w - optimum) ** 2, axis=1))))

    etas = [0.08 / L, 0.04 / L, 0.02 / L]
    biases = [off(gr.LocalSGD(eta / 8, batch=None), round(40 / eta)) for eta in etas]
    assert biases[0] > 1e-3
    for one, half in pairwise(biases):
        assert one / half == pytest.approx(2.0, rel=0.1)
    for method in (gr.GradientTracking(etas[0] * 8), gr.ExactDiffusion(etas[0] * 8)):
        assert off(method, 3000) < 1e-8


@pytest.mark.parametrize("tau", [pytest.param(1, marks=pytest.mark.whole), 4])
def test_the_consensus_error_falls_with_the_square_of_the_step(tau):
    """Proposition 1: a slope of 2 once eta tau << 1 - rho."""
    problem = network()
    optimum = problem.solve(gap=1e-10).coef[0]
    L = 8 * view_of(problem.form).gradients.smoothness.max()
    errors = []
    for eta in (0.04 / L / tau, 0.02 / L / tau):
        method = gr.LocalSGD(eta, tau=tau, batch=None)
        w = run(method, problem, round(3 / eta / tau) * tau, start=(np.tile(optimum, (8, 1)), None)).theta
        errors.append(np.mean(np.sum((w - w.mean(axis=0)) ** 2, axis=1)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)


@pytest.mark.whole
def test_the_error_falls_with_the_step_in_time():
    """(9): E||mean - theta*||^2 <= v_1 eta_T / K + ...: a slope of -alpha in T, here over a decade and a half, of the
    mean over stretches of T and over seeds. The study in benchmarks measures it over more."""
    problem = network(scales=0.0)
    truth = problem.solve(gap=1e-10).coef[0]
    ends = np.array([100, 240, 560, 1330, 3160])
    step, errors = gr.DecreasingStep(D=2.5 / 8, gamma=10.0, alpha=0.8), np.zeros(4)
    for seed in range(6):
        method = gr.LocalSGD(step)
        state, path = method.init(replace(view_of(problem.form), seed=seed), None), []
        for _ in range(ends[-1]):
            path.append(np.sum((state.theta.mean(axis=0) - truth) ** 2))
            state = method.step(state)
        errors += [np.mean(path[a:b]) for a, b in pairwise(ends)]
    found = np.polyfit(np.log(np.sqrt(ends[1:] * ends[:-1])), np.log(errors), 1)[0]
    assert -1.05 < found < -0.55


def test_clients_that_do_not_answer_change_nothing_in_the_end():
    problem = network(scales=0.3)
    optimum = problem.solve(gap=1e-10).coef[0]
    step = gr.DecreasingStep(alpha=1.0)
    off = {}
    for p in (None, 0.5, dict.fromkeys(range(8), 1.0) | {0: 0.1, 3: 0.4}):
        w = run(gr.LocalSGD(step, batch=None, availability=p), problem, 4000).theta
        off[str(p)] = np.abs(w - optimum).max()
    assert max(off.values()) < 0.02 * np.abs(optimum).max()


def test_messages_of_clients_that_do_not_answer():
    """A pair exchanges where both answer: with probability (1 - p)^2; and the mean over the clients stays."""
    problem, p = network(), 0.4
    ledger = problem.solve(gr.LocalSGD(availability=1 - p), gap=0, rounds=600, seed=3).ledger
    asked, share = 600 * 32, ledger.messages["method"] / (600 * 32)
    assert abs(share - (1 - p) ** 2) < 5 * np.sqrt(0.25 * 8 / asked)
    away = ledger.by_node()["away"]
    assert (np.abs(away / 600 - p) < 5 * np.sqrt(p * (1 - p) / 600)).all()
    method = gr.LocalSGD(1e-12, batch=None, availability=1 - p)
    w = np.random.default_rng(0).standard_normal((8, 2))
    np.testing.assert_allclose(run(method, problem, 30, start=(w, None)).theta.mean(axis=0), w.mean(axis=0), atol=1e-9)
    often = dict.fromkeys(range(8), 1.0) | {3: 0.5}
    one = problem.solve(gr.LocalSGD(availability=often), gap=0, rounds=50, seed=3).ledger.by_node()["away"]
    assert one[3] > 0
    assert one.sum() == one[3]


# ---- what is sent ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tau", [1, 2, 5])
def test_tau_saves_all_but_one_message_in_tau(tau):
    problem = network()
    ledger = problem.solve(gr.LocalSGD(tau=tau), gap=0, rounds=100).ledger
    assert ledger.messages["method"] == 2 * 16 * 100 // tau
    assert ledger.bytes["method"] == 8 * 2 * 2 * 16 * 100 // tau


@pytest.mark.parametrize("engine", [None, gr.Actors()])
def test_degrees_are_told_once_and_are_no_part_of_the_rounds(engine):
    """A number each way across every edge, by which the mixing is set up; none where C is given."""
    problem = network()
    told = problem.solve(gr.LocalSGD(0.01), gap=0, rounds=7, engine=engine).ledger
    C = gr.theory.mixing_matrix(nx.circulant_graph(8, [1, 2]))
    given = problem.solve(gr.LocalSGD(0.01, mixing=C), gap=0, rounds=7, engine=engine).ledger
    assert told.messages["adaptation"] - given.messages["adaptation"] == 2 * 16
    assert told.bytes["adaptation"] - given.bytes["adaptation"] == 8 * 2 * 16
    assert told.messages["method"] == given.messages["method"] == 7 * 2 * 16


def test_gradient_tracking_sends_twice_what_exact_diffusion_sends():
    sent = [network().solve(m, gap=0, rounds=50).ledger.messages["method"] for m in CORRECTED]
    assert sent == [2 * 50 * 32, 50 * 32]


# ---- steps -----------------------------------------------------------------------------------------------------------
def test_the_default_steps_of_theorem_2():
    problem = network()
    view = view_of(problem.form)
    H = np.einsum("kmi,kmj->ij", *(2 * [problem.model.terms[0][1].data.X.reshape(8, 12, 2)])) / 12
    mu = np.linalg.eigvalsh(H)[0]
    for batch, L in ((None, view.gradients.smoothness), (1, view.gradients.sample_smoothness)):
        steps = gr.LocalSGD(batch=batch).init(view, None).steps
        assert pytest.approx(2.5 / mu) == steps.D
        assert steps.at(0) == pytest.approx(1 / (8 * L.max()), rel=0.02)
        assert steps.at(0) <= 1 / (8 * L.max()) <= 1 / mu
    steps = gr.LocalSGD(gr.DecreasingStep(gamma=30.0, alpha=0.9), tau=5).init(view, None).steps
    assert steps.at(0) == pytest.approx(1 / (8 * L.max()), rel=0.02)
    assert steps.at(4) == steps.at(0)
    assert steps.at(5) == pytest.approx(steps.at(0) * (32 / 31) ** -0.9)


@pytest.mark.parametrize("method", [gr.GradientTracking, gr.ExactDiffusion])
def test_the_bound_of_a_step_is_where_it_diverges(method):
    """Nodes of one and the same Hessian L: at 0.95 of 2 / L they converge, at 1.05 they diverge."""
    X = np.tile(np.eye(2), (6, 1))
    data = gr.NodeData.from_arrays(X, np.random.default_rng(0).standard_normal(12), np.repeat(range(6), 2))
    problem = gr.Problem(gr.SquaredLoss(data) + gr.Consensus(nx.cycle_graph(6)))  # L = 1/2
    optimum = problem.solve(gap=1e-10).coef
    with warnings.catch_warnings():  # below the bound, but for what the maximum from sums is off: no warning
        warnings.simplefilter("error")
        near = run(method(3.8), problem, 1500).theta
    np.testing.assert_allclose(near, optimum, atol=1e-4)
    with pytest.warns(
        gr.errors.MethodWarning, match=rf"step 4.2 of {method.__name__} is beyond its bound 3.9.*2 / max"
    ):
        far = run(method(4.2), problem, 1500).theta
    assert np.abs(far).max() > 1e3


def test_a_mixing_that_is_not_lazy_takes_shorter_steps():
    problem = network(graph=nx.complete_bipartite_graph(4, 4))
    lazy, eager = (gr.GradientTracking(lazy=lazy) for lazy in (True, False))
    assert run(eager, problem, 0).eta < 0.8 * run(lazy, problem, 0).eta
    assert problem.solve(eager, gap=1e-8, rounds=20_000).status == "certified"


def test_steps_beyond_their_bounds_warn():
    problem = network()
    with pytest.warns(gr.errors.MethodWarning, match=r"beyond its bound .*2 / \(K max L_i\), K = 8"):
        run(gr.LocalSGD(10.0), problem, 0)
    with pytest.warns(gr.errors.MethodWarning, match="step .* of LocalSGD at the start is beyond its bound"):
        run(gr.LocalSGD(gr.DecreasingStep(D=100.0, gamma=1.0)), problem, 0)
    with pytest.warns(gr.errors.MethodWarning, match=r"D = 0.001 of a step with alpha = 1 is not beyond.*2 / mu"):
        run(gr.LocalSGD(gr.DecreasingStep(D=0.001, alpha=1.0)), problem, 0)
