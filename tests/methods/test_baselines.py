"""Baselines: what each minimises, and how it gets there."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import statsmodels.api as sm
from baseline_cases import CLUSTERS, GRAPH, TRUE, N, chain, data_of
from core_cases import iterate

import graphreg as gr
from graphreg.errors import MethodWarning

RIDGE = 0.1 * gr.NodePenalty(gr.SquaredL2())


# ---- what is minimised -----------------------------------------------------------------------------------------------
def test_local_only_is_the_fit_of_every_node():
    problem = chain()
    found, data = problem.solve(gr.LocalOnly(), gap=1e-10), data_of()
    for i in range(N):
        X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
        np.testing.assert_allclose(found.coef[i], np.linalg.lstsq(X, y)[0], rtol=1e-6)
    assert found.own.holds(1e-10)
    assert found.ledger.messages["method"] == found.ledger.messages["adaptation"] == 0


def test_local_only_says_what_it_sends_with_node_penalties():
    problem = chain(gr.SquaredLoss, RIDGE)
    sent = problem.solve(gr.LocalOnly(), gap=1e-10).ledger.messages
    assert (sent["method"], sent["adaptation"] > 0) == (0, True)
    assert "with node penalties, the sums over all nodes" in problem.methods().loc["LocalOnly", "sends"]


def test_local_only_is_the_fit_of_every_node_by_statsmodels():
    data = data_of(gr.LogisticLoss)
    found = chain(gr.LogisticLoss).solve(gr.LocalOnly(), gap=1e-12, rounds=5000)
    for i in range(N):
        fit = sm.Logit(np.asarray(data.y)[data.node == i], data.X[data.node == i]).fit(disp=0, tol=1e-12)
        np.testing.assert_allclose(found.coef[i], fit.params, rtol=1e-6)


@pytest.mark.parametrize("penalty", [gr.L1(), gr.SquaredL2(), gr.Box(-0.5, 0.5)])
def test_local_only_keeps_the_node_penalties(penalty):
    strength = 1.0 if isinstance(penalty, gr.Box) else 0.2
    ground = strength * gr.NodePenalty(penalty)
    found = chain(gr.HuberLoss, ground).solve(gr.LocalOnly(), gap=1e-8)
    alone = gr.Problem(gr.HuberLoss(data_of()) + ground).solve(gap=1e-9)
    assert found.own.primal == pytest.approx(alone.objective, rel=2e-8)
    np.testing.assert_allclose(found.coef, alone.coef, atol=1e-3)


CONSENSUS = {
    "squared": (gr.SquaredLoss, None),
    "ridge": (gr.SquaredLoss, RIDGE),
    "logistic": (gr.LogisticLoss, None),
    "sums": (gr.SquaredLoss, RIDGE),
    "huber": (gr.HuberLoss, None),
}


@pytest.mark.parametrize("case", CONSENSUS)
@pytest.mark.parametrize("method", [gr.Pooled(), gr.FedAvg()], ids=lambda method: method.name)
def test_one_model_for_all_is_the_consensus(method, case):
    loss, extra = CONSENSUS[case]
    more = {"scale": "sum"} if case == "sums" else {}
    found = chain(loss, extra, **more).solve(method, gap=1e-8)
    model = loss(data_of(loss), **more) + gr.Consensus(nx.star_graph(N - 1))
    exact = gr.Problem(model if extra is None else model + extra).solve(gap=1e-10)
    assert found.own.holds(1e-8)
    assert found.own.primal == pytest.approx(exact.objective, rel=2e-8)
    np.testing.assert_allclose(found.coef, exact.coef, atol=2e-3)
    assert (found.coef == found.coef[0]).all()
    assert found.status == "no_certificate"


def test_the_baseline_certifies_a_consensus():
    """There the problem is the user's own."""
    problem = gr.Problem(gr.SquaredLoss(data_of()) + gr.Consensus(GRAPH))
    for method in (gr.Pooled(), gr.FedAvg(), gr.ClusteredFedAvg({"all": list(range(N))})):
        found = problem.solve(method, gap=1e-8)
        assert found.status == "certified"
        assert found.certificate.holds(1e-8)
        assert found.objective == pytest.approx(problem.solve(gap=1e-9).objective, rel=2e-8)


def test_unequal_sizes_are_weighted_as_the_objective_is():
    """scale="sum": one least-squares fit of all rows, although nodes have 1 to 40 of them."""
    rng = np.random.default_rng(1)
    node = np.repeat(range(5), [1, 40, 3, 8, 20])
    X, y = rng.standard_normal((72, 2)), rng.standard_normal(72) + node
    problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node), scale="sum"))
    found = problem.solve(gr.FedAvg(), gap=1e-12)
    np.testing.assert_allclose(found.coef[0], np.linalg.lstsq(X, y)[0], rtol=1e-5)


@pytest.mark.parametrize("steps", [1, 3])
def test_federated_averaging_with_a_node_without_data(steps):
    """a_i is the sum of the scales, of node 4 the strength of its ridge, which the pooled fit has as well; one local
    step is w <- w - eta/A grad sum f_i(w)."""
    data, eta, c, scales = data_of(n=4, m=5), 0.01, 0.3, (1.0, 2.0, 0.5, 1.0)
    model = gr.SquaredLoss(data, scale=dict(enumerate(scales))) + gr.TotalVariation(nx.path_graph(5), gr.L2())
    problem = gr.Problem(model + c * gr.NodePenalty(gr.SquaredL2()))
    method = gr.FedAvg(step_size=eta, local_steps=steps)
    state = iterate(method.iteration, method.target(problem.form), [3])[0]
    H, h, a = [c * np.eye(3)] * 5, [np.zeros(3)] * 5, np.array([*(5 * s for s in scales), c])
    for i, s in enumerate(scales):
        X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
        H[i], h[i] = s * X.T @ X + c * np.eye(3), s * X.T @ y
    w = np.zeros(3)
    for _ in range(3):
        own = [w] * 5
        for _ in range(steps):
            own = [v - eta * (H[i] @ v - h[i]) / a[i] for i, v in enumerate(own)]
        one, w = w - eta / a.sum() * (sum(H) @ w - sum(h)), a @ own / a.sum()
        assert np.allclose(one, w, rtol=1e-12) == (steps == 1)
    np.testing.assert_allclose(state.w, np.tile(w, (6, 1)), rtol=1e-12)
    pooled = np.linalg.solve(sum(H), sum(h))
    for each in (gr.Pooled(), gr.FedAvg()):
        np.testing.assert_allclose(problem.solve(each, gap=1e-10).coef, np.tile(pooled, (5, 1)), atol=1e-4)


def test_more_local_steps_keep_a_bias_that_falls_with_the_step():
    """Its limit is off the pooled fit by O(eta (local_steps - 1)); where all nodes have the same data there is none."""
    problem, pooled = chain(), chain().solve(gr.Pooled(), gap=1e-12).coef[0]
    far = []
    for eta in (0.02, 0.01, 0.005):
        found = problem.solve(gr.FedAvg(local_steps=5, step_size=eta), gap=0, rounds=1500)
        far.append(float(np.linalg.norm(found.coef[0] - pooled)))
    assert far[0] > 1e-2
    assert far[0] / far[1] == pytest.approx(2.0, rel=0.25)
    assert far[1] / far[2] == pytest.approx(2.0, rel=0.25)
    assert problem.solve(gr.FedAvg(local_steps=5), gap=1e-8, rounds=1500).own.relative_gap > 1e-3
    X, y = data_of(n=1).X, np.asarray(data_of(n=1).y)
    same = gr.NodeData.from_dict(dict.fromkeys(range(4), (X, y)))
    assert gr.Problem(gr.SquaredLoss(same)).solve(gr.FedAvg(local_steps=5), gap=1e-8).own.holds(1e-8)


def test_clustered_is_the_fit_of_each_cluster():
    data, labels = data_of(), list(range(N))
    found = chain().solve(gr.ClusteredFedAvg(CLUSTERS), gap=1e-10)
    for name in ("even", "odd"):
        own = [i for i in labels if CLUSTERS[i] == name]
        scale = np.repeat(1 / np.sqrt(20), 20 * len(own))
        rows = np.isin(data.node, own)
        fit = np.linalg.lstsq(data.X[rows] * scale[:, None], np.asarray(data.y)[rows] * scale)[0]
        np.testing.assert_allclose(found.coef[own], np.tile(fit, (len(own), 1)), rtol=1e-5)
    groups = {name: [i for i in labels if CLUSTERS[i] == name] for name in ("even", "odd")}
    again = chain().solve(gr.ClusteredFedAvg(groups), gap=1e-10)
    np.testing.assert_array_equal(again.coef, found.coef)


def test_clusters_are_those_of_the_hierarchy():
    model = gr.SquaredLoss(data_of()) + gr.Hierarchy(CLUSTERS, (1.0, 2.0))
    found = gr.Problem(model).solve(gr.ClusteredFedAvg(), gap=1e-10)
    given = chain().solve(gr.ClusteredFedAvg(CLUSTERS), gap=1e-10)
    np.testing.assert_allclose(found.table().loc[range(N)], given.table(), rtol=1e-12)
    assert set(found.latent) == {"even", "odd", "root"}
    assert set(found.own.form.latent) == {("server", "even"), ("server", "odd")}


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss, gr.QuantileLoss])
@pytest.mark.parametrize("ridge", [False, True])
def test_pfedme_is_the_optimum_of_its_envelope(loss, ridge):
    """A Hierarchy of one cluster: SquaredL2 edges between the nodes and one latent node."""
    more = {"tau": 0.3} if loss is gr.QuantileLoss else {}
    extra = 0.2 * gr.NodePenalty(gr.SquaredL2(), features=["x0", "x2"]) if ridge else None
    found = chain(loss, extra, **more).solve(gr.PFedMe(0.5), gap=1e-7)
    model = loss(data_of(loss), **more) + gr.Hierarchy({"one": list(range(N))}, (0.5, 1.0))
    exact = gr.Problem(model if extra is None else model + extra).solve(gap=1e-9)
    assert found.own.holds(1e-7)
    assert found.own.primal == pytest.approx(exact.objective, rel=3e-7)
    np.testing.assert_allclose(found.coef, exact.coef, atol=5e-3)
    np.testing.assert_allclose(found.own.w[-1], exact.latent["one"], atol=5e-3)


def test_pfedme_with_a_pull_of_each_node():
    lam = {i: 0.1 * (1 + i) for i in range(N)}
    found = chain().solve(gr.PFedMe(lam, beta=1.5), gap=1e-9)
    hierarchy = gr.Hierarchy({"one": list(range(N))}, (lam, 1.0))
    exact = gr.Problem(gr.SquaredLoss(data_of()) + hierarchy).solve(gap=1e-10)
    assert found.own.primal == pytest.approx(exact.objective, rel=2e-9)
    far = chain().solve(gr.PFedMe(lam, local_steps=4, step_size=0.5), gap=1e-9, rounds=500)
    assert far.own.primal > exact.objective * (1 + 1e-6)  # several local steps end elsewhere


def test_pfedme_ends_with_the_mean_of_its_models_and_not_with_its_w():
    lam = np.linspace(0.5, 2.0, N)
    method = gr.PFedMe(dict(enumerate(lam)), beta=0.5)
    early = chain().solve(method, gap=0, rounds=2, observe="state.model")
    np.testing.assert_allclose(early.own.w[-1], lam @ early.coef / lam.sum(), rtol=1e-9)
    w = early.observed["state.model"][-1][0]
    assert np.abs(early.own.w[-1] - w).max() > 0.01 * np.abs(w).max()


# ---- IFCA ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("start", ["random", "data"])
def test_ifca_finds_the_clusters_and_stays(start):
    problem = chain()
    found = problem.solve(gr.IFCA(2, starts=5, start=start), gap=1e-10, seed=0)
    cluster = found.gathered["cluster"]
    assert len({(CLUSTERS[i], int(cluster[i])) for i in range(N)}) == len(set(CLUSTERS.values())) == 2
    oracle = problem.solve(gr.ClusteredFedAvg(CLUSTERS), gap=1e-10)
    np.testing.assert_allclose(found.coef, oracle.coef, atol=1e-5)
    assert found.own.holds(1e-10)
    models = np.array([found.coef[cluster[:N] == j][0] for j in range(2)])
    values = np.array([[loss_at(i, w) for w in models] for i in range(N)])
    np.testing.assert_array_equal(values.argmin(axis=1), cluster[:N])  # a fixed point
    objectives = found.gathered["objectives"]
    assert objectives.shape[1] == 5
    assert (np.diff(objectives, axis=0) <= 1e-12 * objectives[:-1]).all()
    assert values.min(axis=1).sum() <= objectives[-1].min() * (1 + 1e-12)


def loss_at(i, w):
    data = data_of()
    X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
    return 0.5 * float(np.mean((X @ w - y) ** 2))


def test_ifca_takes_the_best_of_its_starts():
    """From a start that fits all by one model, and from the truth."""
    bad = np.array([TRUE.mean(axis=0), np.full(3, 1e3)])
    good = TRUE + 0.1
    problem = chain()
    both = problem.solve(gr.IFCA(2, start=np.array([bad, good])), gap=1e-8)
    alone = problem.solve(gr.IFCA(2, start=bad), gap=1e-8)
    assert both.own.primal < 0.1 * alone.own.primal
    pooled = problem.solve(gr.Pooled(), gap=1e-8)
    np.testing.assert_allclose(alone.coef, pooled.coef, atol=1e-3)


def test_ifca_fails_from_equal_models():
    with pytest.warns(MethodWarning, match="every client picks the first"):
        found = chain().solve(gr.IFCA(2, start="zero"), gap=1e-8)
    np.testing.assert_array_equal(found.gathered["cluster"][:N], 0)
    np.testing.assert_allclose(found.coef, chain().solve(gr.Pooled(), gap=1e-8).coef, atol=1e-3)


@pytest.mark.parametrize("rounds", [1, 5, 12])
def test_ifca_may_end_within_its_search(rounds):
    found = chain().solve(gr.IFCA(2), gap=0, rounds=rounds, seed=2)
    assert found.status == "budget"
    assert found.rounds == rounds
    assert np.isfinite(found.own.primal)


def test_ifca_messages():
    """Per round and client: s k d numbers down and s (d + 1) up, and a sum of s + 1 numbers while it searches."""
    found = chain().solve(gr.IFCA(2, starts=3, start="data"), gap=0, rounds=4, seed=0)
    down, up = 3 * 2 * 3, 3 * (3 + 1)
    own_fits = found.ledger.by_edge()
    sums = 4 * 2 * N * (3 + 1)
    assert found.ledger.messages["method"] == 4 * 4 * N  # models and answers, and a sum up and down the star
    assert found.ledger.bytes["method"] == 8 * (4 * N * (down + up) + sums)
    first = N * 2 + N * down  # what the server learns of the smoothness, and the first models: set-up
    asked = found.ledger.bytes["adaptation"] / 8 - first
    assert asked % 3 == 0
    assert 2 * 3 <= asked <= 3 * 2 * 3  # the fits of 2 to 6 clients
    assert set(own_fits["level"]) == {"to the server"}
    long = chain().solve(gr.IFCA(2), gap=0, rounds=60, seed=0)
    searched = len(long.gathered["objectives"])
    assert 0 < searched < 60
    assert long.ledger.messages["method"] == 4 * N * searched + 2 * N * (60 - searched)
