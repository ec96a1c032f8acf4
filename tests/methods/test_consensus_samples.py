"""Samples that are drawn by methods for a consensus, and what is gathered of them for inference."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
from consensus_cases import CORRECTED, EVERY_KIND, SEEDS, network, run
from core_cases import view_of

import graphreg as gr
from graphreg.datasets import random_problem


# ---- samples ---------------------------------------------------------------------------------------------------------
def ragged(counts=(3, 7, 5, 4)):
    rng = np.random.default_rng(1)
    node = np.repeat(np.arange(len(counts)), counts)
    data = gr.NodeData.from_arrays(rng.standard_normal((len(node), 2)), rng.standard_normal(len(node)), node)
    return gr.Problem(gr.SquaredLoss(data) + gr.Consensus(nx.cycle_graph(len(counts))))


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_pass_takes_each_sample_once(batch, shuffle):
    problem, counts = ragged(), np.array([3, 7, 5, 4])
    method = gr.LocalSGD(1e-3, batch=batch, replacement=False, shuffle=shuffle, hessian_samples=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gr.errors.MethodWarning)
        state = run(method, problem, 42, seed=5)
    taken = state.seen.moments.last()  # all of them, in order
    assert taken.shape == (4, 42 * batch)
    orders = set()
    for k, m in enumerate(counts):
        passes = taken[k][: 42 * batch // m * m].reshape(-1, m)
        assert (np.sort(passes, axis=1) == np.arange(m)).all()
        orders |= {tuple(each) for each in passes} if m == 7 else set()
    assert (len(orders) > 1) == shuffle  # a new permutation for each pass
    np.testing.assert_allclose(method.gathered(state)["passes"], 42 * batch / counts)


@pytest.mark.parametrize("method", EVERY_KIND)
def test_what_was_used_up_is_said_once(method):
    once = method(1e-3, batch=1, replacement=False)
    state = run(once, ragged(), 3)
    with pytest.warns(
        gr.errors.MethodWarning, match=f"the 3 samples of the node 0 are used up after 3 steps of {once.name}"
    ):
        state = once.step(state)
    for _ in range(10):
        state = once.step(state)  # warnings are errors
    run(method(1e-3, batch=1), ragged(), 20)  # with replacement nothing is used up


def test_samples_are_drawn_alike_with_replacement():
    state = run(gr.LocalSGD(1e-6, hessian_samples=2000), ragged(), 2000, seed=2)
    for k, m in enumerate((3, 7, 5, 4)):
        seen = np.bincount(state.seen.moments.last()[k], minlength=m)
        assert len(seen) == m
        assert (np.abs(seen / 2000 - 1 / m) < 5 * np.sqrt(1 / m / 2000)).all()


# ---- what inference needs --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("burn_in", [0, 11])
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_what_is_gathered_by_its_formulas(loss, kind, burn_in):
    problem, T, b = network(loss=loss, ridge=0.2), 30, 2
    more = {"tau": 3} if kind is gr.LocalSGD else {}
    method = kind(gr.DecreasingStep(), batch=b, hessian_samples=7, burn_in=burn_in, **more)
    view = view_of(problem.form)
    state, thetas, G = method.init(view, None), [], []
    for t in range(T):
        thetas.append(state.theta)
        G.append(view.gradients.sampled(state.theta, view.streams("samples").uniform(t, b)))
        state = method.step(state)
    got, G = method.gathered(state), np.array(G[burn_in:])
    assert (got["batch"], got["replacement"], got["alpha"], got["hessian_samples"]) == (b, 1, 0.8, 14)
    assert (got["steps"], got["burn_in"]) == (T - burn_in, burn_in)
    np.testing.assert_allclose(got["passes"], (T - burn_in) * b / 12)
    np.testing.assert_allclose(got["mean"], np.mean(thetas[burn_in:], axis=0), atol=1e-13)
    np.testing.assert_allclose(got["gradient_mean"], G.mean(axis=0), atol=1e-13)
    second = np.einsum("tki,tkj->kij", G, G) / len(G) - np.einsum("ki,kj->kij", G.mean(axis=0), G.mean(axis=0))
    np.testing.assert_allclose(got["gradient_covariance"], second, atol=1e-12)
    seen = np.concatenate([(view.streams("samples").uniform(t, b) * 12).astype(int) for t in range(T - 7, T)], axis=1)
    data = problem.model.terms[0][1].data
    X = data.X.reshape(8, 12, 2)
    for k in range(8):
        x = X[k, seen[k]]
        p = 1 / (1 + np.exp(-x @ state.theta[k]))
        bend = p * (1 - p) if loss is gr.LogisticLoss else np.ones(len(x))
        np.testing.assert_allclose(got["hessian"][k], x.T @ (bend[:, None] * x) / 14 + 0.2 * np.eye(2), rtol=1e-8)


def test_the_mean_over_the_clients_moves_by_the_sum_of_the_gradients():
    """So that node means are all the one-step estimator needs: sum_k w_k grad_t = (mean_t - mean_t+1) / eta_t."""
    problem, eta = network(), 1e-3
    state = run(gr.LocalSGD(eta, tau=2, availability=0.7), problem, 51)
    total = gr.LocalSGD().gathered(state)["gradient_mean"].sum(axis=0)
    np.testing.assert_allclose(-state.theta.mean(axis=0) / (51 * eta), total, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_hessians_are_the_slopes_of_the_gradients(seed):
    view = view_of(random_problem(seed).problem.form)
    gradients, rng = view.gradients, np.random.default_rng(0)
    w, v, h = 0.3 * rng.standard_normal(view.form.shape), rng.standard_normal(view.form.shape), 1e-6
    place = (rng.random((view.form.n, 3)) * gradients.counts[:, None]).astype(int)
    cases = (
        (gradients.full, gradients.hessians(w)),
        (lambda w: gradients.at_samples(w, place), gradients.hessians(w, place)),
    )
    for gradient, H in cases:
        slope = (gradient(w + h * v) - gradient(w - h * v)) / (2 * h)
        np.testing.assert_allclose(np.einsum("kij,kj->ki", H, v), slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())


def test_full_gradients_have_no_noise_to_gather():
    got = network().solve(gr.LocalSGD(batch=None), gap=0, rounds=20).gathered
    assert set(got) == {"steps", "burn_in", "passes", "mean", "hessian"}
    assert got["steps"] == 20
    late = network().solve(gr.LocalSGD(batch=None, burn_in=20), gap=0, rounds=21).gathered
    present = network().solve(gr.LocalSGD(batch=None), gap=0, rounds=20).coef  # the mean over the nodes
    np.testing.assert_allclose(late["mean"].mean(axis=0), present[0], rtol=1e-12)
    for method in CORRECTED:  # nor Hessians, which are large
        assert network().solve(method, gap=0, rounds=20).gathered == {}
