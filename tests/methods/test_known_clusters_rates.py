"""Async-L2GD and Async-AL2SGD+: rates, and the messages that they take."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from cluster_cases import (
    CASES,
    SEED,
    at_clusters,
    begin,
    by_hand_2,
    case,
    exact_averages,
    network,
    outcomes,
    padded,
    padded_start,
    run,
    settings,
)
from core_cases import view_of
from factories import thinned

import graphreg as gr
from graphreg.methods.known_clusters.async_l2gd import oracle


# ---- messages --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["even", "even within clusters", "equal alpha, other gamma", "uneven"])
def test_the_messages_of_algorithm_1(name):
    """Proposition 3.2, corrected: coin switches only where all that is skipped is known."""
    c, T, p0, p = CASES[name](), 1500, 0.3, 0.4
    states = run(gr.AsyncL2GD(p_global=p0, p_cluster=p), c, T)
    table = states[-1].view.engine.ledger.by_edge()
    sent = table[table["purpose"] == "method"].set_index(["sender", "receiver"])["messages"]
    within_known, between_known = name != "uneven", name == "even"
    between = sent["root", "c0"]
    assert between == sent["c0", "root"]
    _near(between, p0 * (1 - p0) if between_known else p0, T)
    for i, j in enumerate(c.cluster):
        here = sent[f"c{j}", i] - between  # what comes from the cluster beside the rounds between clusters
        _near(here, (1 - p0) ** 2 * p * (1 - p) if within_known else (1 - p0) * p, T)
        if within_known:  # up only after a local step: the cluster knows
            _near(sent[i, f"c{j}"], (1 - p0) * (1 - p) * (p0 + (1 - p0) * p), T)
        else:
            assert sent[i, f"c{j}"] == sent[f"c{j}", i]


def _near(count, chance, T):
    """Within 4 standard errors; a coin switch depends on the one before, which at most doubles the variance."""
    assert abs(count - chance * T) < 4 * np.sqrt(2 * chance * (1 - chance) * T)


def test_the_messages_of_algorithm_2():
    c, T, p0, p, rho = CASES["even"](), 3000, 0.3, 0.4, 0.2
    ledger = run(gr.AsyncAL2SGD(p_global=p0, p_cluster=p, rho=rho), c, T)[-1].view.engine.ledger
    sent = ledger.by_edge().query("purpose == 'method'").set_index(["sender", "receiver"])["messages"]
    _near(sent["root", "c0"] / 2, (p0 + rho) / 2, T)
    _near(sent["c0", 0] - sent["root", "c0"], (1 - p0) * p, T)
    assert ledger.messages["adaptation"] == 2 * (9 + 3)


def test_messages_hold_the_numbers_that_are_needed():
    """d, and 2 d from a cluster to its clients after a round between clusters."""
    c = CASES["uneven"]()
    ledger = run(gr.AsyncL2GD(p_global=0.3, p_cluster=0.4), c, 300)[-1].view.engine.ledger
    table = ledger.by_edge().query("purpose == 'method'").set_index(["sender", "receiver"])
    between = table.loc[("root", "c1"), "messages"]
    assert table.loc[("root", "c1"), "bytes"] == between * 3 * 8
    assert table.loc[(4, "c1"), "bytes"] == table.loc[(4, "c1"), "messages"] * 3 * 8
    assert table.loc[("c1", 4), "bytes"] == (table.loc[("c1", 4), "messages"] + between) * 3 * 8


# ---- rates -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "batch"),
    thinned(
        ["even", "uneven", "near the network", "some apart, some tied", "apart", "one cluster"], [None, 1], every=4
    ),
)
def test_algorithm_2_reaches_the_optimum(name, batch):
    """To 1e-10 in distance, and the certificate follows; with and without batches in turn."""
    c = CASES[name]()
    method, star = gr.AsyncAL2SGD(batch=batch), c.optimum()
    state = begin(method, c)
    for k in range(12_000):
        state = method.step(state)
        if k % 50 == 0 and np.linalg.norm(state.y[: c.n] - star) < 1e-10:
            break
    assert np.linalg.norm(state.y[: c.n] - star) < 1e-10
    assert (state.momentum.a1 < 1).all()
    certified = c.problem.solve(method, gap=1e-8, seed=SEED)
    assert certified.status == "certified"
    assert certified.certificate.relative_gap <= 1e-8
    np.testing.assert_allclose(certified.coef, star, atol=2e-3)


@pytest.mark.whole
def test_a_hard_case_converges_with_the_corrected_estimator_and_not_with_the_printed_one():
    """p_j = 0, gamma = 20, rho = .01, condition number about 500. The squared distance is to fall by 1 - b2 mu a round
    (Theorem 4.3): by exp(-3) in 3 / (b2 mu) rounds, times a constant."""
    c = case((5, 5), m=20, d=5, gamma=20.0, lam=1.0, seed=1, spread=1000.0, size=4.0)
    method, star = gr.AsyncAL2SGD(p_cluster=0.0, rho=0.01), c.optimum()
    first = run(method, c, 1, 1)[0]
    m = {f.name: getattr(first.momentum, f.name)[0] for f in fields(first.momentum)}
    T = int(3 / (m["b2"] * c.constants()["mu"]))
    corrected = run(method, c, T, 1)[-1].y[: c.n]
    printed = by_hand_2(c, T, 1, *settings(first), m, printed=True)[-1]
    assert np.linalg.norm(corrected - star) < np.exp(-1.5) * np.linalg.norm(star)
    assert np.linalg.norm(printed - star) > 10 * np.linalg.norm(star)


@pytest.mark.whole
def test_the_neighbourhood_of_a_constant_step_scales_with_it():
    """E||theta - theta*||^2 in the long run is about eta (Theorem 3.5), over 1.5 decades; and below its bound."""
    c = case(m=60, gamma=np.linspace(0.5, 3.0, 9), lam=[1.0, 5.0, 0.3])
    star, largest, found, etas = c.optimum(), begin(gr.AsyncL2GD(), c).step_size[0], [], []
    for shrink in (1.0, 10**-0.75, 10**-1.5):
        eta, errors, mu = largest * shrink, [], c.constants()["mu"]
        T = int(6 / (eta * mu))
        method = gr.AsyncL2GD(step_size=eta)
        for seed in range(2):
            state = method.init(replace(view_of(c.problem.form), seed=seed), (padded_start(c, star), None))
            for k in range(T):
                state = method.step(state)
                if k > T // 3:
                    errors.append(((state.theta[: c.n] - star) ** 2).sum())
        found.append(np.mean(errors))
        etas.append(eta)
        assert found[-1] <= 2 * eta * _variance(c, state, star) / mu
    slope = np.polyfit(np.log(etas), np.log(found), 1)[0]
    assert 0.8 < slope < 1.3


def _variance(c, state, star):
    """sigma^2 = E||G(theta*)||^2, exactly."""
    p0, p, _ = settings(state)
    given = padded(c, state, star), exact_averages(c, state, star)
    total, local = 0.0, padded(c, state, c.gradients(star))
    for xi, own, chance in outcomes(c, p0, p):
        cluster = ~network(state, xi) & at_clusters(state, own)
        total += chance * (oracle(state, *given, network(state, xi), cluster, local) ** 2).sum()
    return total


@pytest.mark.whole
def test_with_a_decreasing_step_the_error_falls_as_one_over_t():
    c = CASES["even"]()
    star, method = c.optimum(), gr.AsyncL2GD(decreasing=True)
    rounds, errors = [500, 1500, 4500], np.zeros(3)
    for seed in range(2):
        states = run(method, c, rounds[-1], seed)
        for k, t in enumerate(rounds):
            errors[k] += np.mean([((s.theta[: c.n] - star) ** 2).sum() for s in states[int(0.8 * t) : t]])
    slope = np.polyfit(np.log(rounds), np.log(errors), 1)[0]
    assert -1.35 < slope < -0.75
