"""Async-L2GD and Async-AL2SGD+: the algorithms by hand, unbiased oracles, rates, messages, refusals."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from itertools import product
from math import comb

import networkx as nx
import numpy as np
import pytest
from cluster_cases import CASES, by_hand_1, by_hand_2, case, coins
from core_cases import site_of

import graphreg as gr
from graphreg.certificate.latent import settled
from graphreg.lowering.streams import Streams
from graphreg.methods._clusters import Averages, majority_coin
from graphreg.methods._odds import Coins, odds
from graphreg.methods.async_l2gd import oracle

SEED = 5


def begin(method, c, seed=SEED):
    return method.init(replace(site_of(c.problem.form), seed=seed), None)


def run(method, c, rounds, seed=SEED):
    state, out = begin(method, c, seed), []
    for _ in range(rounds):
        state = method.step(state)
        out.append(state)
    return out


def settings(state):
    """p0, and p and tau per cluster."""
    j = state.site.tree.clusters
    return float(state.odds.p0[0]), state.odds.p[j], state.odds.tau[j]


def rows_of(c, seed, batch):
    samples = Streams(seed, "samples", range(c.n))
    return lambda k: (samples.uniform(k, batch) * c.X.shape[1]).astype(int)


def network(state, show):
    return np.full(state.site.form.n, bool(show))


def at_clusters(state, shows):
    """The coins of all clusters as a mask over nodes."""
    tree, out = state.site.tree, np.zeros(state.site.form.n, dtype=bool)
    out[tree.clusters] = shows
    return tree.from_cluster(out)


def exact_averages(c, state, theta):
    center, top = (np.zeros(state.site.form.shape) for _ in range(2))
    center[: c.n], top[: c.n] = c.averages(theta)
    return Averages(center, top)


def outcomes(c, p0, p):
    """Every outcome of all coins, with its probability."""
    for shows in product([False, True], repeat=len(c.alpha) + 1):
        chance = np.prod([q if show else 1 - q for q, show in zip([p0, *p], shows, strict=True)])
        yield shows[0], np.array(shows[1:]), chance


def random(c, seed):
    return np.random.default_rng(seed).standard_normal((c.n, c.X.shape[2]))


def padded(c, state, theta):
    out = np.zeros(state.site.form.shape)
    out[: c.n] = theta
    return out


# ---- the model -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CASES)
def test_the_tree_with_its_latent_nodes_minimised_out_is_the_form_with_alpha(name):
    c = CASES[name]()
    form, theta = c.problem.form, random(c, 0)
    w = np.zeros(form.shape)
    w[: c.n] = theta
    assert form.primal(settled(form, w)) == pytest.approx(c.value(theta), rel=1e-12)
    slope = (c.value(theta + 1e-5 * c.gradient(theta)) - c.value(theta - 1e-5 * c.gradient(theta))) / 2e-5
    assert slope == pytest.approx((c.gradient(theta) ** 2).sum(), rel=1e-8)
    np.testing.assert_allclose(c.problem.solve(gap=1e-10).coef, c.optimum(), atol=2e-4)


def test_settled_latent_nodes_of_a_deep_tree_conserve_the_flows():
    data = gr.NodeData.from_arrays(np.eye(8), np.arange(8.0), np.arange(8))
    nested = {"a": {"b": [0, 1], "c": [2, 3]}, "d": {"e": [4, 5], "f": [6, 7]}}
    form = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy(nested, (1.0, 2.0, 0.5))).form
    before = np.random.default_rng(0).standard_normal(form.shape)
    w, out = settled(form, before), np.zeros(form.shape)
    for edge in form.edges:
        edge.add_adjoint(edge.weight[:, None] * edge.difference(w), out)
    np.testing.assert_array_equal(w[:8], before[:8])
    assert np.abs(out[8:]).max() < 1e-14


def test_latent_nodes_of_other_penalties_stay_where_they_are():
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), np.arange(4))
    form = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy({"a": [0, 1], "b": [2, 3]}, (1.0, 1.0), gr.L2())).form
    w = np.random.default_rng(0).standard_normal(form.shape)
    assert settled(form, w) is w


# ---- the algorithms by hand ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name in CASES if name != "apart"])
@pytest.mark.parametrize("options", [{}, {"batch": 3}, {"coin": "single"}], ids=str)
def test_algorithm_1_by_hand(name, options):
    """With all averages computed anew in every round: what is not sent again was known."""
    c = CASES[name]()
    states = run(gr.AsyncL2GD(**options), c, 80)
    first = states[0]
    rows = rows_of(c, SEED, options["batch"]) if "batch" in options else None
    if name == "some apart, some tied":  # the first cluster is a problem of its own
        own = c.cluster > 0
        p0, p, tau = float(first.odds.p0[-1]), *(x[first.site.tree.clusters] for x in (first.odds.p, first.odds.tau))
        eta = first.step_size[: c.n, None]
    else:
        own = np.full(c.n, True)
        p0, p, tau = settings(first)
        eta = first.step_size[0]
    hand = by_hand_1(c, 80, SEED, eta, p0, p, tau, rows=rows)
    for state, theta in zip(states, hand, strict=True):
        np.testing.assert_allclose(state.w[: c.n][own], theta[own], atol=1e-11)
    network, cluster = zip(*(coins(SEED, p0, p, c.nodes, k) for k in range(80)), strict=True)
    assert 0 < sum(network) < 80
    assert name == "near the network" or "coin" in options or name == "one cluster" or np.any(cluster)


def test_without_a_root_clusters_are_problems_of_their_own():
    c = CASES["apart"]()
    states = run(gr.AsyncL2GD(), c, 80)
    first, j = states[0], states[0].site.tree.clusters
    assert (first.odds.p0 == 0).all()
    assert (first.odds.tau == 0).all()
    assert len(np.unique(first.odds.p[j])) == 3
    hand = by_hand_1(c, 80, SEED, first.step_size[: c.n, None], 0.0, first.odds.p[j], np.zeros(3))
    np.testing.assert_allclose(states[-1].w[: c.n], hand[-1], atol=1e-11)
    assert "between clusters" not in first.site.engine.ledger.by_level().index.get_level_values("level")


@pytest.mark.parametrize("name", ["even", "uneven", "near the network", "one cluster"])
@pytest.mark.parametrize("batch", [None, 2])
def test_algorithm_2_by_hand(name, batch):
    c = CASES[name]()
    states = run(gr.AsyncAL2SGD(batch=batch), c, 80)
    first = states[0]
    m = {f.name: getattr(first.momentum, f.name)[0] for f in fields(first.momentum)}
    rows = None if batch is None else rows_of(c, SEED, batch)
    hand = by_hand_2(c, 80, SEED, *settings(first), m, rows=rows)
    for state, y in zip(states, hand, strict=True):
        np.testing.assert_allclose(state.y[: c.n], y, atol=1e-11)
    assert not np.array_equal(states[-1].x, first.x)  # it was refreshed


def test_the_constants_of_theorem_4_3():
    c = CASES["uneven"]()
    K = c.constants()
    for batch, each in ((None, K["L"]), (1, K["Ltilde"]), (4, K["Ltilde"] / 4 + 0.75 * K["L"])):
        L = each.max()
        state = begin(gr.AsyncAL2SGD(batch=batch), c)
        m, (p0, p, tau) = state.momentum, settings(state)
        assert K["C2"] > K["C1"]
        assert p0 == pytest.approx(2 * K["C1"] / (K["C1"] + K["C2"] + L))  # Corollary 4.4
        assert p == pytest.approx((K["C2"] - K["C1"]) / (K["C2"] - K["C1"] + L))
        assert tau == pytest.approx(K["C1"] / K["C2"])  # A.6
        smooth = K["C1"] + K["C2"] + L
        L_F = L + c.gamma.max()
        eta = 0.25 / max(L_F, smooth)
        a2 = smooth / (2 * max(L_F, smooth))
        a1 = min(0.5, np.sqrt(eta * K["mu"] * max(0.5, a2 / (p0 * (1 - p0)))))
        b2 = 1 / max(2 * K["mu"], 4 * a1 / eta)
        asked = {"eta": eta, "rho": p0 * (1 - p0), "a1": a1, "a2": a2, "b1": 1 - b2 * K["mu"], "b2": b2}
        for name, value in asked.items():
            assert getattr(m, name)[0] == pytest.approx(value), name


def test_every_constant_can_be_set():
    given = {"step_size": 1e-3, "rho": 0.2, "a1": 0.1, "a2": 0.3, "b1": 0.9, "b2": 0.02}
    m = begin(gr.AsyncAL2SGD(**given), case()).momentum
    assert [x[0] for x in (m.eta, m.rho, m.a1, m.a2, m.b1, m.b2)] == list(given.values())


# ---- the oracles -----------------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize("p_cluster", [None, 0.0, 0.25])
def test_the_mean_of_the_corrected_estimate_is_the_gradient(p_cluster):
    """The corrected (4.1), with x elsewhere, over all coins and samples; as printed it is not."""
    c = CASES["uneven"]()
    method = gr.AsyncAL2SGD(p_cluster=p_cluster, batch=1)
    theta, x = random(c, 1), random(c, 2)
    state = begin(method, c)
    state = replace(state, x=padded(c, state, x), of_x=exact_averages(c, state, x))
    state = replace(state, slope=padded(c, state, c.gradients(x)))
    p0, p, tau = settings(state)
    total = np.zeros(state.site.form.shape)
    for xi, own, chance in outcomes(c, p0, p):
        cluster = ~network(state, xi) & at_clusters(state, own)
        for k in range(8):  # every sample once
            uniform = np.full((state.site.form.n, 1), (k + 0.5) / 8)
            state.site._streams["samples", None] = Fixed(uniform)
            averages = exact_averages(c, state, theta)
            given = padded(c, state, theta), averages, network(state, xi), cluster
            total += chance / 8 * method.estimate(state, *given)
    gradient = c.gradient(theta)
    np.testing.assert_allclose(total[: c.n], gradient, atol=1e-11 * np.abs(gradient).max())
    lacking = tau[c.cluster, None] * (c.pulls(theta)[1] - c.pulls(x)[1])  # of the print, in the mean
    assert np.abs(lacking).max() > 1e-2 * np.abs(gradient).max()


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
    bound = lambda p0, p: odds(state.site, state.constants, Coins(p0, p, None)).bound[0]  # noqa: E731
    least = min(bound(p0, p) for p0 in np.linspace(0.01, 0.99, 50) for p in np.linspace(0, 0.99, 50))
    assert state.odds.bound[0] <= least * (1 + 1e-9)
    single = begin(gr.AsyncL2GD(coin="single"), c)
    assert (single.odds.p == 0).all()
    assert (single.odds.tau == 1).all()
    assert single.odds.bound[0] <= min(bound(p0, 0.0) for p0 in np.linspace(0.001, 0.999, 500)) * (1 + 1e-9)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 2, 2, 2), (3,), (2, 2)])
def test_the_majority_has_the_probability_of_the_coin(sizes):
    """Exactly, for odd and even numbers of voters; its messages go up to the root and down to all clients."""
    c = case(sizes)
    method = gr.AsyncL2GD(majority=True, p_global=0.3, p_cluster=0.2)
    state = begin(method, c)
    k, node, m = len(sizes), c.nodes, len(sizes) // 2 + 1
    before = state.site.engine.ledger.messages["method"]
    shows = np.array([majority_coin(state.site, state.odds.p0, state.constants.voters, t) for t in range(4000)])
    assert (shows[:, : c.n] == shows[:, :1]).all()
    assert abs(shows[:, 0].mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 4000)
    q = _quantile(k, m, 0.3)
    votes = np.array([Streams(SEED, "network coin", node).uniform(t, 1)[:, 0] < q for t in range(4000)])
    np.testing.assert_array_equal(shows[:, 0], votes.sum(axis=1) >= m)
    assert state.site.engine.ledger.messages["method"] - before == 4000 * (2 * k + c.n)
    hand = by_hand_1(c, 50, SEED, state.step_size[0], *settings(state), network=lambda t: shows[t, 0])
    np.testing.assert_allclose(run(method, c, 50)[-1].w[: c.n], hand[-1], atol=1e-11)


def _quantile(k, m, p):
    """The q at which more than half of k votes have probability p, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        q = (low + high) / 2
        chance = sum(comb(k, v) * q**v * (1 - q) ** (k - v) for v in range(m, k + 1))
        low, high = (q, high) if chance < p else (low, q)
    return low


# ---- messages --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["even", "even within clusters", "equal alpha, other gamma", "uneven"])
def test_the_messages_of_algorithm_1(name):
    """Proposition 3.2, corrected: coin switches only where all that is skipped is known."""
    c, T, p0, p = CASES[name](), 4000, 0.3, 0.4
    states = run(gr.AsyncL2GD(p_global=p0, p_cluster=p), c, T)
    table = states[-1].site.engine.ledger.by_edge()
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
    ledger = run(gr.AsyncAL2SGD(p_global=p0, p_cluster=p, rho=rho), c, T)[-1].site.engine.ledger
    sent = ledger.by_edge().query("purpose == 'method'").set_index(["sender", "receiver"])["messages"]
    _near(sent["root", "c0"] / 2, (p0 + rho) / 2, T)
    _near(sent["c0", 0] - sent["root", "c0"], (1 - p0) * p, T)
    assert ledger.messages["adaptation"] == 2 * (9 + 3)


def test_messages_hold_the_numbers_that_are_needed():
    """d, and 2 d from a cluster to its clients after a round between clusters."""
    c = CASES["uneven"]()
    ledger = run(gr.AsyncL2GD(p_global=0.3, p_cluster=0.4), c, 300)[-1].site.engine.ledger
    table = ledger.by_edge().query("purpose == 'method'").set_index(["sender", "receiver"])
    between = table.loc[("root", "c1"), "messages"]
    assert table.loc[("root", "c1"), "bytes"] == between * 3 * 8
    assert table.loc[(4, "c1"), "bytes"] == table.loc[(4, "c1"), "messages"] * 3 * 8
    assert table.loc[("c1", 4), "bytes"] == (table.loc[("c1", 4), "messages"] + between) * 3 * 8


# ---- rates -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["even", "uneven", "near the network", "some apart, some tied", "apart", "one cluster"]
)
@pytest.mark.parametrize("batch", [None, 1])
def test_algorithm_2_reaches_the_optimum(name, batch):
    """To 1e-10 in distance, and the certificate follows."""
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


def test_the_neighbourhood_of_a_constant_step_scales_with_it():
    """E||theta - theta*||^2 in the long run is about eta (Theorem 3.5), over 1.5 decades; and below its bound."""
    c = case(m=60, gamma=np.linspace(0.5, 3.0, 9), lam=[1.0, 5.0, 0.3])
    star, largest, found, etas = c.optimum(), begin(gr.AsyncL2GD(), c).step_size[0], [], []
    for shrink in (1.0, 10**-0.75, 10**-1.5):
        eta, errors, mu = largest * shrink, [], c.constants()["mu"]
        T = int(6 / (eta * mu))
        method = gr.AsyncL2GD(step_size=eta)
        for seed in range(2):
            state = method.init(replace(site_of(c.problem.form), seed=seed), (padded_start(c, star), None))
            for k in range(T):
                state = method.step(state)
                if k > T // 3:
                    errors.append(((state.w[: c.n] - star) ** 2).sum())
        found.append(np.mean(errors))
        etas.append(eta)
        assert found[-1] <= 2 * eta * _variance(c, state, star) / mu
    slope = np.polyfit(np.log(etas), np.log(found), 1)[0]
    assert 0.8 < slope < 1.3


def padded_start(c, theta):
    return np.concatenate([theta, np.zeros((len(c.problem.form.latent), theta.shape[1]))])


def _variance(c, state, star):
    """sigma^2 = E||G(theta*)||^2, exactly."""
    p0, p, _ = settings(state)
    given = padded(c, state, star), exact_averages(c, state, star)
    total, local = 0.0, padded(c, state, c.gradients(star))
    for xi, own, chance in outcomes(c, p0, p):
        cluster = ~network(state, xi) & at_clusters(state, own)
        total += chance * (oracle(state, *given, network(state, xi), cluster, local) ** 2).sum()
    return total


def test_with_a_decreasing_step_the_error_falls_as_one_over_t():
    c = CASES["even"]()
    star, method = c.optimum(), gr.AsyncL2GD(decreasing=True)
    rounds, errors = [500, 1500, 4500], np.zeros(3)
    for seed in range(3):
        states = run(method, c, rounds[-1], seed)
        for k, t in enumerate(rounds):
            errors[k] += np.mean([((s.w[: c.n] - star) ** 2).sum() for s in states[int(0.8 * t) : t]])
    slope = np.polyfit(np.log(rounds), np.log(errors), 1)[0]
    assert -1.35 < slope < -0.75


# ---- a step ----------------------------------------------------------------------------------------------------------
def leaves(value):
    if is_dataclass(value):
        return [x for f in fields(value) if f.name != "site" for x in leaves(getattr(value, f.name))]
    return [np.asarray(value)]


@pytest.mark.parametrize(
    "method", [gr.AsyncL2GD(), gr.AsyncL2GD(majority=True, batch=2), gr.AsyncAL2SGD(batch=1)], ids=str
)
def test_a_step_is_repeatable_and_changes_nothing(method):
    state = run(method, CASES["uneven"](), 37)[-1]
    before = [x.copy() for x in leaves(state)]
    once, again = method.step(state), method.step(state)
    assert all(np.array_equal(a, b) for a, b in zip(leaves(state), before, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(leaves(once), leaves(again), strict=True))


@pytest.mark.parametrize("method", [gr.AsyncL2GD(), gr.AsyncAL2SGD()], ids=str)
def test_a_start_is_where_it_begins(method):
    c = CASES["uneven"]()
    star = c.optimum()
    state = method.init(site_of(c.problem.form), (padded_start(c, star), None))
    np.testing.assert_array_equal(method.point(state)[0][: c.n], star)
    if isinstance(method, gr.AsyncAL2SGD):  # which does not move where the optimum is
        for _ in range(30):
            state = method.step(state)
        np.testing.assert_allclose(state.y[: c.n], star, atol=1e-12)


@pytest.mark.parametrize("method", [gr.AsyncL2GD(majority=True), gr.AsyncAL2SGD(batch=1)], ids=str)
def test_a_broken_run_goes_on_as_though_nothing_had_happened(method, tmp_path):
    def solve(rounds, **more):
        return CASES["uneven"]().problem.solve(method, gap=0, rounds=rounds, seed=SEED, **more)

    whole = solve(90)
    for rounds in (13, 50):
        solve(rounds, checkpoint=tmp_path / "run")
    again = solve(90, checkpoint=tmp_path / "run")
    assert np.array_equal(again.coef, whole.coef)
    assert again.certificate.relative_gap == whole.certificate.relative_gap
    assert again.ledger == whole.ledger
    assert all(np.array_equal(again.gathered[name], value) for name, value in whole.gathered.items())


def test_the_seed_decides():
    c = case()
    one, same, other = (c.problem.solve(gr.AsyncL2GD(), gap=0, rounds=40, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.coef, same.coef)
    assert not np.array_equal(one.coef, other.coef)


def test_what_was_chosen_is_gathered():
    found = case().problem.solve(gr.AsyncL2GD(p_global=0.25, p_cluster=0.5), gap=0, rounds=3).gathered
    assert (found["p_global"] == 0.25).all()
    assert found["tau"][0] == pytest.approx(0.25 / (0.25 + 2 * 0.75 * 0.5))
    assert "rho" in case().problem.solve(gr.AsyncAL2SGD(), gap=0, rounds=3).gathered


# ---- refusals --------------------------------------------------------------------------------------------------------
BAD = [
    ({"p_global": 1.0}, r"p_global of AsyncL2GD must be a number in \[0, 1\), got 1.0"),
    ({"p_global": -0.1}, "p_global"),
    ({"p_global": np.nan}, "p_global"),
    ({"p_cluster": 1.0}, r"p_cluster of AsyncL2GD must be a number in \[0, 1\), got 1.0"),
    ({"p_cluster": {"c0": 0.1, "c1": 1.5}}, "p_cluster of the cluster 'c1'"),
    ({"tau": 1.1}, r"tau of AsyncL2GD must be a number in \[0, 1\], got 1.1"),
    ({"step_size": 0.0}, "step_size"),
    ({"step_size": True}, "step_size"),
    ({"batch": 0}, "batch"),
    ({"batch": 1.5}, "batch"),
    ({"coin": "both"}, "coin of AsyncL2GD must be 'separate' or 'single'"),
    ({"coin": "single", "p_cluster": 0.1}, "takes no p_cluster"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=str)
def test_bad_options(options, words):
    with pytest.raises(gr.errors.MethodError, match=words):
        gr.AsyncL2GD(**options)


@pytest.mark.parametrize(
    "options", [{"rho": 0.0}, {"rho": 1.1}, {"a1": 1.0}, {"a2": 0.0}, {"b1": 2.0}, {"b2": 0.0}], ids=str
)
def test_bad_constants(options):
    with pytest.raises(gr.errors.MethodError, match=f"{next(iter(options))} of AsyncAL2SGD"):
        gr.AsyncAL2SGD(**options)


@pytest.mark.parametrize("kind", [gr.AsyncL2GD, gr.AsyncAL2SGD])
def test_coins_that_would_bias_the_oracle(kind):
    problem = case().problem
    with pytest.raises(
        gr.errors.MethodError, match=r"p_cluster is 0 for the cluster 'c0'.*tau must be 1 there, got 0.5"
    ):
        problem.solve(kind(p_cluster=0.0, tau=0.5), rounds=3)
    with pytest.raises(gr.errors.MethodError, match=r"p_global is 0, and the cluster 'c0' is tied to the root"):
        problem.solve(kind(p_global=0.0), rounds=3)
    with pytest.raises(
        gr.errors.MethodError, match=r"p_global is 0 for the cluster 'c0', so that p_cluster must be > 0"
    ):
        CASES["apart"]().problem.solve(kind(p_cluster=0.0, p_global=0.0), rounds=3)


@pytest.mark.parametrize("kind", [gr.AsyncL2GD, gr.AsyncAL2SGD])
def test_clusters_that_are_not_there(kind):
    with pytest.raises(gr.errors.MethodError, match=r"p_cluster names 'C1', .* did you mean 'c1'") as caught:
        case().problem.solve(kind(p_cluster={"c0": 0.1, "C1": 0.1}), rounds=3)
    assert "p_cluster has no entry for the cluster 'c1' (and 1 more)" in str(caught.value)
    fit = kind(p_cluster={"c0": 0.1, "c1": 0.3, "c2": 0.2})
    found = case().problem.solve(fit, gap=0, rounds=3).gathered["p_cluster"]
    np.testing.assert_array_equal(found[[0, 3, 7]], [0.1, 0.3, 0.2])


@pytest.mark.parametrize("kind", [gr.AsyncL2GD, gr.AsyncAL2SGD])
def test_a_step_beyond_its_bound_is_warned_about(kind):
    c = case()
    state = begin(kind(), c)
    bound = float((state.step_size if kind is gr.AsyncL2GD else state.momentum.eta)[0])
    begin(kind(step_size=bound), c)
    with pytest.warns(gr.errors.MethodWarning, match=f"beyond the bound .* which is {bound:.3g}".replace("+", r"\+")):
        begin(kind(step_size=1.01 * bound), c)


DATA = gr.NodeData.from_arrays(np.random.default_rng(0).standard_normal((24, 2)), np.arange(24) % 2, np.arange(24) % 4)
TREE = gr.Hierarchy({"a": [0, 1], "b": [2, 3]}, (1.0, 1.0))
GRAPH = gr.TotalVariation(nx.path_graph(4), gr.SquaredL2())
OTHERS = [
    (gr.SquaredLoss(DATA) + GRAPH, "there is no Hierarchy|links nodes to one another"),
    (gr.SquaredLoss(DATA) + GRAPH + TREE, "links nodes to one another"),
    (gr.SquaredLoss(DATA) + gr.Hierarchy({"a": [0, 1], "b": [2, 3]}, (1.0, 1.0), gr.L2()), "penalty L2.*for SquaredL2"),
    (gr.SquaredLoss(DATA) + gr.Hierarchy({"t": {"a": [0, 1], "b": [2, 3]}}, (1.0, 1.0, 1.0)), "more than two levels"),
    (gr.SquaredLoss(DATA) + gr.NodePenalty(gr.L2()), "there is no Hierarchy"),
    (gr.QuantileLoss(DATA, tau=0.5) + TREE, "QuantileLoss is not smooth"),
    (gr.PoissonLoss(DATA) + TREE, "PoissonLoss has no bound of its curvature"),
    (gr.SquaredLoss(DATA) + TREE + gr.NodePenalty(gr.L1()), "not smooth"),
]


@pytest.mark.parametrize(("model", "words"), OTHERS, ids=[words for _, words in OTHERS])
@pytest.mark.parametrize("method", [gr.AsyncL2GD(), gr.AsyncAL2SGD()], ids=["1", "2"])
def test_problems_that_lack_something(method, model, words):
    problem = gr.Problem(model)
    with pytest.raises(gr.errors.MethodError, match=words):
        problem.solve(method)
    assert not problem.methods().loc[method.name, "applies"]


def test_strong_convexity_is_needed_where_it_is_used():
    problem = gr.Problem(gr.LogisticLoss(DATA) + TREE)
    assert problem.methods().loc["AsyncL2GD", "applies"]
    for method in (gr.AsyncAL2SGD(), gr.AsyncL2GD(decreasing=True)):
        with pytest.raises(gr.errors.MethodError) as caught:
            problem.solve(method)
        more = len(problem.form.space.index) - 1
        said = f"the loss at 0 is not strongly convex (and so at {more} more); add a small ridge on every coordinate"
        assert said in str(caught.value)
        assert len(caught.value.missing) == 1
    ridged = gr.Problem(gr.LogisticLoss(DATA) + TREE + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    assert ridged.solve(gr.AsyncAL2SGD(), gap=1e-8).status == "certified"


def test_nodes_without_a_cluster_or_with_two():
    three = gr.Hierarchy({"a": [0, 1], "b": [2]}, (1.0, 1.0))
    other = gr.Hierarchy({"c": [0, 2], "d": [3]}, (1.0, 1.0))
    said = gr.Problem(gr.SquaredLoss(DATA) + three + other).methods().loc["AsyncL2GD", "missing"]
    assert "the node 0 is in several hierarchies" in said
