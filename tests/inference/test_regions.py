"""Confidence regions: their formulas by hand, Wald tests as statsmodels has them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from core_cases import view_of
from region_cases import STEP, D, K, M, drawn, problem

import graphreg as gr
from graphreg.errors import MethodWarning
from graphreg.inference import confidence_region
from graphreg.inference.decentralised import Sums, reuse

METHODS = {name: getattr(gr, name) for name in ("ExactDiffusion", "GradientTracking", "LocalSGD")}


def seen(name, T=30, batch=2, seed=3):
    """The gradients and parameters of a run, step by step, and its problem: gradients by the formula of squared losses
    from the samples of each step."""
    case, (X, y) = problem(), drawn()
    method = METHODS[name](STEP, batch=batch, hessian_samples=T)
    view = replace(view_of(case.form), seed=seed)
    state, thetas, G = method.init(view, None), [], []
    for t in range(T):
        theta = state.theta
        taken = (view.streams("samples").uniform(t, batch) * M).astype(int)
        each = np.arange(K)[:, None], taken
        rest = np.einsum("kbd,kd->kb", X[each], theta) - y[each]
        thetas.append(theta)
        G.append(np.einsum("kb,kbd->kd", rest, X[each]) / batch)
        state = method.step(state)
    return case, method, np.array([*thetas, state.theta]), np.array(G)


# ---- formulas --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", METHODS)
def test_a_region_by_hand(name, quiet):
    T, (X, _) = 30, drawn()
    case, method, thetas, G = seen(name)
    run = case.solve(method, gap=0, rounds=T, seed=3)
    stream = replace(view_of(case.form), seed=3).streams("samples")
    taken = np.concatenate([(stream.uniform(t, 2) * M).astype(int) for t in range(T)], axis=1)
    sampled = X[np.arange(K)[:, None], taken]
    H = np.einsum("kbi,kbj->ij", sampled, sampled) / (2 * T)  # f_k is the mean over the samples of node k
    average = thetas[:-1].mean(axis=(0, 1))
    noise = sum(np.cov(G[:, k].T, ddof=0) for k in range(K)) * (1 + 2 * T / M)  # with replacement
    V = np.linalg.inv(H) @ noise @ np.linalg.inv(H) / T
    step = np.linalg.solve(H, G.sum(axis=1).mean(axis=0))
    for estimator, theta in (("average", average), ("one-step", average - step)):
        region = confidence_region(run, estimator)
        np.testing.assert_allclose(region.estimate, theta, rtol=1e-9)
        np.testing.assert_allclose(region.covariance, V, rtol=1e-8)
        assert region.shifts["start"] == pytest.approx(np.sqrt(step @ np.linalg.solve(V, step)))


@pytest.mark.parametrize("name", METHODS)
def test_the_mean_moves_by_the_step_times_the_sum_of_the_gradients(name):
    """(14) needs node means alone: sum_k G_kt = (mean_t - mean_t+1) / eta_t, for the corrected methods too."""
    _, _, thetas, G = seen(name)
    eta = 0.2 * (np.arange(30) + 1 + 5.0) ** -0.8
    moved = -np.diff(thetas.mean(axis=1), axis=0) / eta[:, None]
    np.testing.assert_allclose(moved, G.sum(axis=1), rtol=1e-8, atol=1e-10)


def test_decreasing_steps_leave_the_flows_where_they_are():
    """At the optimum with its flows nothing moves, whatever the step."""
    case = problem()
    exact = case.solve(gap=1e-12, on_failure="return")
    start = (exact.coef, exact.certificate.dual_point.flows)
    for method in (gr.ExactDiffusion(gr.DecreasingStep()), gr.GradientTracking(gr.DecreasingStep())):
        state = method.init(view_of(case.form), start)
        for _ in range(50):
            state = method.step(state)
        assert state.eta < 0.9 * method.init(view_of(case.form), None).eta
        np.testing.assert_allclose(state.theta, exact.coef, atol=1e-5)


@pytest.mark.parametrize("shuffle", [True, False])
def test_what_taking_samples_again_adds(shuffle):
    """r from how often each sample was taken: sum_j N_j^2 / (T b), which is exact without replacement."""
    case, counts = problem(m=7), np.full(K, 7)
    for T in (5, 7, 12, 14, 20):
        for replacement in (True, False):
            options = {"batch": 1, "replacement": replacement, "hessian_samples": T, "shuffle": shuffle}
            method, squares = gr.ExactDiffusion(1e-3, **options), []
            for seed in range(40 if replacement else 1):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MethodWarning)
                    state = method.init(replace(view_of(case.form), seed=seed), None)
                    for _ in range(T):
                        state = method.step(state)
                squares += [np.sum(np.bincount(row) ** 2) / T for row in state.seen.moments.last()]
            found = reuse(method.gathered(state)["passes"], replacement)
            if replacement:  # up to 1/m: E N^2 = p (1 - 1/m) + p^2
                expected, error = np.mean(squares), np.std(squares) / np.sqrt(len(squares))
                assert abs(found[0] - 1 / 7 - expected) < 4 * error
            else:
                np.testing.assert_allclose(found, squares)
            np.testing.assert_allclose(method.gathered(state)["passes"], T / counts)


@pytest.mark.parametrize("burn_in", [3, 9])
def test_what_taking_samples_again_adds_after_a_burn_in(burn_in):
    """In the mean over shuffled passes, of which the burn-in ends in one and the run in another; exact within one."""
    case, options = problem(m=7), {"batch": 1, "replacement": False, "hessian_samples": 20, "burn_in": burn_in}
    for T in (burn_in + 2, burn_in + 7, burn_in + 15):
        squares: list[float] = []
        for seed in range(40):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MethodWarning)
                method = gr.ExactDiffusion(1e-3, **options)
                state = method.init(replace(view_of(case.form), seed=seed), None)
                for _ in range(T):
                    state = method.step(state)
            squares += [np.sum(np.bincount(row) ** 2) / (T - burn_in) for row in state.seen.moments.last()]
        got = method.gathered(state)
        found = reuse(got["passes"], False, burn_in / 7)[0]
        np.testing.assert_allclose(Sums.of(got).noise, found * got["gradient_covariance"].sum(axis=0))
        assert abs(found - np.mean(squares)) <= 4 * np.std(squares) / np.sqrt(len(squares)) + 1e-12


def test_a_burn_in_is_a_later_start(quiet):
    """The region after B of T steps has the estimate and the covariance of the last T - B."""
    T, B = 30, 12
    case, method, thetas, G = seen("ExactDiffusion", T)
    late = replace(method, burn_in=B, hessian_samples=T - B)
    found = confidence_region(case.solve(late, gap=0, rounds=T, seed=3))
    H = late.gathered(_after(case, late, T))["hessian"].sum(axis=0)
    noise = sum(np.cov(G[B:, k].T, ddof=0) for k in range(K)) * (1 + 2 * (T - B) / M)
    step = np.linalg.solve(H, G[B:].sum(axis=1).mean(axis=0))
    np.testing.assert_allclose(found.estimate, thetas[B:-1].mean(axis=(0, 1)) - step, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(H) @ noise @ np.linalg.inv(H) / (T - B), rtol=1e-8)


def _after(case, method, rounds):
    state = method.init(replace(view_of(case.form), seed=3), None)
    for _ in range(rounds):
        state = method.step(state)
    return state


def test_an_average_of_regions_needs_one_sum():
    case = problem()
    run = case.solve(gr.ExactDiffusion(STEP, batch=1, hessian_samples=60), gap=0, rounds=60, seed=0)
    before = dict(run.ledger.messages)
    region = confidence_region(run)
    assert run.ledger.messages == before
    assert region.ledger.messages == {**before, "inference": 2 * (K - 1)}  # up and down a spanning tree
    assert region.ledger.bytes["inference"] == 8 * 2 * (K - 1) * (3 * D + D * (D + 1))
    assert Sums.numbers(D) == 3 * D + D * (D + 1)


def test_actors_give_the_same_region(quiet):
    case = problem()
    regions = [
        gr.inference.estimate(case, rounds=40, seed=5, engine=engine, estimator="average")
        for engine in (None, gr.Actors())
    ]
    np.testing.assert_allclose(regions[0].estimate, regions[1].estimate, rtol=1e-9)
    np.testing.assert_allclose(regions[0].covariance, regions[1].covariance, rtol=1e-9)


def test_estimate_is_a_single_pass():
    region = gr.inference.estimate(problem(m=600), seed=0)
    text = " ".join(str(region).split())
    assert "a single pass" in text
    assert "T = 480 steps of K = 6 nodes with 1 samples each, after a burn-in of 120" in text
    assert "this is no certificate" in text
    assert repr(region) == "<ConfidenceRegion of 3 coefficients: one-step estimator of ExactDiffusion>"
    again = gr.inference.estimate(problem(m=600), seed=0)
    pd.testing.assert_frame_equal(region.intervals(), again.intervals())
    optimum = problem(m=600).solve().coef[0]  # of the sample, which the one-step estimator nears faster than the truth
    assert (np.abs(region.estimate - optimum) < 1.5 * region.std_error).all()


def test_a_node_without_samples_is_not_taken_for_a_misspelt_one():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": np.repeat(["CH/00", "CH/05"], 20), "x": rng.normal(size=40), "y": rng.normal(size=40)})
    data = gr.NodeData.from_frame(frame, node="n", target="y", features=["x"])
    graph = gr.Graph.from_edges([("CH/00", "CH/02"), ("CH/02", "CH/05")])
    solution = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2())).solve()
    with pytest.raises(KeyError, match="no region at 'CH/02': the node has no samples") as caught:
        gr.inference.local_regions(solution)["CH/02"]
    assert "did you mean" not in str(caught.value)
