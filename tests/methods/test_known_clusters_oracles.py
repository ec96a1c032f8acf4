"""Async-L2GD and Async-AL2SGD+: unbiased oracles, their smoothness, the coins."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from cluster_cases import (
    CASES,
    SEED,
    at_clusters,
    begin,
    by_hand_1,
    case,
    exact_averages,
    network,
    outcomes,
    padded,
    random,
    run,
    settings,
)

import graphreg as gr
from graphreg.methods.known_clusters._clusters import majority_coin
from graphreg.methods.known_clusters._probabilities import Coins, probabilities_of
from graphreg.methods.known_clusters.async_l2gd import oracle
from graphreg.network.streams import Streams


@pytest.mark.parametrize("options", [{}, {"p_global": 0.3, "p_cluster": 0.2}, {"p_cluster": 0.4, "tau": 0.7}], ids=str)
@pytest.mark.parametrize("name", ["even", "uneven", "one cluster"])
def test_the_mean_of_the_oracle_is_the_gradient(name, options):
    """(3.2) for every tau_j, over all outcomes of all coins."""
    c = CASES[name]()
    state = begin(gr.AsyncL2GD(**options), c)
    theta = random(c, 1)
    w, averages, local = padded(c, state, theta), exact_averages(c, state, theta), padded(c, state, c.gradients(theta))
    p0, p, _ = settings(state)
    total = np.zeros_like(w)
    for xi, own, chance in outcomes(c, p0, p):
        cluster = ~network(state, xi) & at_clusters(state, own)
        total += chance * oracle(state, w, averages, network(state, xi), cluster, local)
    gradient = c.gradient(theta)
    np.testing.assert_allclose(total[: c.n], gradient, atol=1e-12 * np.abs(gradient).max() * 10)


@pytest.mark.parametrize("as_printed", [(), "(4.1)"])
@pytest.mark.parametrize("p_cluster", [None, 0.0, 0.25])
def test_the_mean_of_the_corrected_estimate_is_the_gradient(p_cluster, as_printed):
    """The corrected (4.1), with x elsewhere, over all coins and samples; as printed it is not."""
    c = CASES["uneven"]()
    method = gr.AsyncAL2SGD(p_cluster=p_cluster, batch=1, as_printed=as_printed)
    theta, x = random(c, 1), random(c, 2)
    state = begin(method, c)
    state = replace(state, x=padded(c, state, x), of_x=exact_averages(c, state, x))
    state = replace(state, slope=padded(c, state, c.gradients(x)))
    p0, p, tau = settings(state)
    total = np.zeros(state.view.form.shape)
    for xi, own, chance in outcomes(c, p0, p):
        cluster = ~network(state, xi) & at_clusters(state, own)
        for k in range(8):  # every sample once
            uniform = np.full((state.view.form.n, 1), (k + 0.5) / 8)
            state.view._streams["samples", None] = Fixed(uniform)
            averages = exact_averages(c, state, theta)
            given = padded(c, state, theta), averages, network(state, xi), cluster
            total += chance / 8 * method.estimate(state, *given)
    gradient = c.gradient(theta)
    lacking = tau[c.cluster, None] * (c.pulls(theta)[1] - c.pulls(x)[1])  # of the print, in the mean
    assert np.abs(lacking).max() > 1e-2 * np.abs(gradient).max()
    mean = gradient - lacking if as_printed else gradient
    np.testing.assert_allclose(total[: c.n], mean, atol=1e-11 * np.abs(gradient).max())


class Fixed:
    def __init__(self, uniform):
        self.values = uniform

    def uniform(self, at, size):
        return self.values


@pytest.mark.parametrize("options", [{}, {"p_global": 0.1, "p_cluster": 0.5}, {"p_cluster": 0.3, "tau": 0.8}], ids=str)
@pytest.mark.parametrize("name", ["even", "uneven", "near the network"])
def test_the_expected_smoothness(name, options):
    """E||G(theta) - G(theta*)||^2 <= 2 L (F(theta) - F(theta*)) (proof of Theorem 3.5), with the L of the default
    step 1/(2 L), over all coins; and not with a hundredth of it."""
    c = CASES[name]()
    state, star = begin(gr.AsyncL2GD(**options), c), CASES[name]().optimum()
    L, (p0, p, _), most = 0.5 / state.step_size[0], settings(state), 0.0
    for seed in range(20):
        theta = star + random(c, seed) * np.random.default_rng(seed).choice([0.1, 1.0, 10.0], (c.n, 1))
        if seed % 2:  # all alike within clusters, or everywhere
            theta = star + random(c, seed)[c.cluster if seed % 4 == 1 else np.zeros(c.n, int)]
        total, local = 0.0, padded(c, state, c.gradients(theta) - c.gradients(star))
        step = padded(c, state, theta - star)
        averages = exact_averages(c, state, theta - star)  # G is affine
        for xi, own, chance in outcomes(c, p0, p):
            cluster = ~network(state, xi) & at_clusters(state, own)
            total += chance * (oracle(state, step, averages, network(state, xi), cluster, local) ** 2).sum()
        ratio = total / (2 * L * (c.value(theta) - c.value(star)))
        assert ratio <= 1 + 1e-9
        most = max(most, ratio)
    assert most > 0.01


@pytest.mark.parametrize("name", ["even", "uneven", "near the network"])
def test_the_default_coins_minimise_the_bound(name):
    """Corollary 3.6, and its counterpart where no cluster averages on its own."""
    c = CASES[name]()
    state = begin(gr.AsyncL2GD(), c)
    bound = lambda p0, p: probabilities_of(state.view, state.probabilities.constants, Coins(p0, p, None)).bound[0]  # noqa: E731
    least = min(bound(p0, p) for p0 in np.linspace(0.01, 0.99, 50) for p in np.linspace(0, 0.99, 50))
    assert state.probabilities.bound[0] <= least * (1 + 1e-9)
    single = begin(gr.AsyncL2GD(coin="single"), c)
    assert (single.probabilities.p == 0).all()
    assert (single.probabilities.tau == 1).all()
    assert single.probabilities.bound[0] <= min(bound(p0, 0.0) for p0 in np.linspace(0.001, 0.999, 500)) * (1 + 1e-9)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 2, 2, 2), (3,), (2, 2)])
def test_the_majority_has_the_probability_of_the_coin(sizes):
    """Exactly, for odd and even numbers of voters; its messages go up to the root and down to all clients."""
    c, many = case(sizes), 1500
    method = gr.AsyncL2GD(majority=True, p_global=0.3, p_cluster=0.2)
    state = begin(method, c)
    k, node, m = len(sizes), c.nodes, len(sizes) // 2 + 1
    before = state.view.engine.ledger.messages["method"]
    shows = np.array(
        [
            majority_coin(state.view, state.probabilities.p0, state.probabilities.constants.voters, t)
            for t in range(many)
        ]
    )
    assert (shows[:, : c.n] == shows[:, :1]).all()
    assert abs(shows[:, 0].mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / many)
    q = _quantile(k, m, 0.3)
    votes = np.array([Streams(SEED, "network coin", node).uniform(t, 1)[:, 0] < q for t in range(many)])
    np.testing.assert_array_equal(shows[:, 0], votes.sum(axis=1) >= m)
    assert state.view.engine.ledger.messages["method"] - before == many * (2 * k + c.n)
    hand = by_hand_1(c, 50, SEED, state.step_size[0], *settings(state), network=lambda t: shows[t, 0])
    np.testing.assert_allclose(run(method, c, 50)[-1].theta[: c.n], hand[-1], atol=1e-11)


def _quantile(k, m, p):
    """The q at which more than half of k votes have probability p, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        q = (low + high) / 2
        chance = sum(comb(k, v) * q**v * (1 - q) ** (k - v) for v in range(m, k + 1))
        low, high = (q, high) if chance < p else (low, q)
    return low
