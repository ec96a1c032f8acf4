"""Baselines: what each minimises, what it is worth in the user's problem, and how it gets there."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import statsmodels.api as sm
from core_cases import iterate
from test_checkpoint import facts

import graphreg as gr
from graphreg.certificate.latent import placed
from graphreg.datasets import random_problem
from graphreg.errors import MethodError, MethodWarning
from graphreg.methods._baseline import AbstractBaseline

N = 12
CLUSTERS = {i: "even" if i % 2 == 0 else "odd" for i in range(N)}
TRUE = np.array([[1.0, 2.0, -1.0], [-1.0, 0.5, 2.0]])
GRAPH = nx.cycle_graph(N)


def data_of(loss=gr.SquaredLoss, n=N, m=20, seed=0, noise=0.3):
    """Two clusters of nodes with different coefficients and different designs."""
    rng, m = np.random.default_rng(seed), 3 * m if loss is gr.LogisticLoss else m  # whose classes overlap
    node = np.repeat(np.arange(n), m)
    X = rng.standard_normal((n * m, 3)) * (1.0 + (node % 3)[:, None])
    eta = (X * TRUE[node % 2]).sum(axis=1)
    if loss is gr.LogisticLoss:
        return gr.NodeData.from_arrays(X, (0.4 * eta + rng.logistic(size=n * m) > 0).astype(int), node)
    return gr.NodeData.from_arrays(X, eta + noise * rng.standard_normal(n * m), node)


def chain(loss=gr.SquaredLoss, extra=None, **more):
    model = loss(data_of(loss), **more) + 0.1 * gr.TotalVariation(GRAPH, gr.L2())
    return gr.Problem(model if extra is None else model + extra)


RIDGE = 0.1 * gr.NodePenalty(gr.SquaredL2())
BASELINES = [
    gr.LocalOnly(),
    gr.Pooled(),
    gr.FedAvg(),
    gr.ClusteredFedAvg(CLUSTERS),
    gr.IFCA(2, starts=3),
    gr.PFedMe(2.0),
]
by_name = pytest.mark.parametrize("method", BASELINES, ids=lambda method: method.name)


# ---- what is minimised -----------------------------------------------------------------------------------------------
def test_local_only_is_the_fit_of_every_node():
    problem = chain()
    found, data = problem.solve(gr.LocalOnly(), gap=1e-10), data_of()
    for i in range(N):
        X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
        np.testing.assert_allclose(found.coef[i], np.linalg.lstsq(X, y)[0], rtol=1e-6)
    assert found.own.holds(1e-10)
    assert found.ledger.messages["method"] == found.ledger.messages["adaptation"] == 0


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


def test_one_local_step_is_gradient_descent():
    """w <- w - eta/A grad sum f_i(w), A the sum of the a_i; penalties of nodes without data count as well."""
    data = data_of(n=4, m=5)
    graph = nx.path_graph(5)  # node 4 has no data
    eta, c = 0.01, 0.3
    model = gr.SquaredLoss(data, scale={0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0}) + gr.TotalVariation(graph, gr.L2())
    problem = gr.Problem(model + c * gr.NodePenalty(gr.SquaredL2()))
    method = gr.FedAvg(step_size=eta)
    form = method.target(problem.form)
    state, w = iterate(method.iteration, form, [3])[0], np.zeros(3)
    a = 5 * np.array([1.0, 2.0, 0.5, 1.0])
    for _ in range(3):
        g = 5 * c * w
        for i, s in enumerate((1.0, 2.0, 0.5, 1.0)):
            X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
            g = g + s * X.T @ (X @ w - y)
        w = w - eta / (a.sum() + c) * g
    np.testing.assert_allclose(state.w, np.tile(w, (6, 1)), rtol=1e-12)


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
    assert found.ledger.messages["method"] >= 2 * N * 4
    first = N * 2 + N * down  # what the server learns of the smoothness, and the first models
    asked = found.ledger.bytes["method"] / 8 - first - 4 * N * (down + up) - 4 * 2 * N * (3 + 1)
    assert asked % 3 == 0
    assert 2 * 3 <= asked <= 3 * 2 * 3  # the fits of 2 to 6 clients
    assert set(own_fits["level"]) == {"to the server"}


# ---- in the user's problem -------------------------------------------------------------------------------------------
@by_name
def test_it_is_judged_in_the_problem_of_the_user(method):
    problem = chain()
    found, exact = problem.solve(method, gap=1e-6, seed=1), problem.solve(gap=1e-9)
    assert found.form is problem.form
    assert found.status == "no_certificate"
    assert found.certificate.valid
    assert found.certificate.dual <= exact.objective <= found.objective
    assert found.objective == pytest.approx(problem.form.primal(found.coef), rel=1e-12)
    np.testing.assert_array_equal(found.coef, found.own.w[:N])
    assert found.own.holds(1e-6)
    assert f"{method.name} minimises another problem ({method.aim}); that is certified to" in found.message
    assert f"at a relative gap of {found.certificate.relative_gap:.2g}" in found.message
    assert f"of what {method.name} minimises: certificate (global)" in str(found)


@by_name
def test_points_that_violate_a_constraint_are_not_moved(method):
    problem = gr.Problem(gr.SquaredLoss(data_of()) + gr.TotalVariation(GRAPH, gr.Ball(0.05)))
    found = problem.solve(method, gap=1e-6, seed=1)
    np.testing.assert_array_equal(found.coef, found.own.w[:N])
    if method.name in ("Pooled", "FedAvg"):  # one model for all violates nothing
        assert found.certificate.valid
        return
    assert found.objective == np.inf
    assert not found.certificate.valid
    assert found.certificate.dual <= problem.solve().objective
    assert "violate TotalVariation(Ball)" in found.certificate.note
    assert "violate TotalVariation(Ball)" in found.message
    assert str(found)


def test_latent_nodes_of_the_user_are_minimisers_given_the_clients():
    rng = np.random.default_rng(0)
    tree = {"left": {"a": [0, 1, 2], "b": [3, 4]}, "right": {"c": [5, 6, 7, 8], "d": [9, 10, 11]}}
    weights = ({i: 0.5 + i for i in range(N)}, 0.7, {"left": 2.0, "right": 0.3})
    form = gr.Problem(gr.SquaredLoss(data_of()) + gr.Hierarchy(tree, weights)).form
    w = placed(form, rng.standard_normal(form.shape))
    at = form.primal(w)
    for _ in range(20):
        v = w.copy()
        v[N:] += 1e-4 * rng.standard_normal(v[N:].shape)
        assert form.primal(v) > at
    alpha = gr.Hierarchy.from_alpha(CLUSTERS, alpha={"even": 1.0, "odd": 0.3}, gamma=1.0)
    problem = gr.Problem(gr.SquaredLoss(data_of()) + alpha)
    found = problem.solve(gr.LocalOnly(), gap=1e-8)
    assert np.isfinite(found.objective)
    np.testing.assert_array_equal(found.latent["even"], found.latent["root"])


@by_name
def test_budgets_and_interruptions_stay_what_they_are(method):
    short = chain(gr.LogisticLoss).solve(method, gap=0, rounds=2, seed=0)
    assert short.status == "budget"
    assert short.rounds == 2
    assert "Of this problem its point is at a relative gap of" in short.message

    def interrupt(record):
        raise KeyboardInterrupt

    stopped = chain(gr.LogisticLoss).solve(method, gap=0, rounds=200, seed=0, callback=interrupt)
    assert stopped.status == "interrupted"
    assert stopped.certificate.valid


def test_an_own_problem_whose_infimum_is_not_attained():
    X = np.array([[-1.0], [1.0], [-1.0], [1.0], [2.0]])
    data = gr.NodeData.from_arrays(X, [0, 1, 1, 0, 1], [0, 0, 1, 1, 1])  # node 0 alone is separable
    problem = gr.Problem(gr.LogisticLoss(data) + 0.5 * gr.TotalVariation(nx.path_graph(2), gr.L2()))
    assert problem.solve().status == "certified"
    found = problem.solve(gr.LocalOnly(), on_failure="return")
    assert found.status == "unattained"
    assert "The infimum is certified, but not attained" in found.message
    with pytest.raises(gr.errors.UnattainedError):
        problem.solve(gr.LocalOnly())


def test_a_start_saves_rounds():
    problem = chain(gr.HuberLoss)
    cold = problem.solve(gr.FedAvg(), gap=1e-8)
    warm = problem.solve(gr.FedAvg(), gap=1e-8, start=cold)
    assert warm.rounds < cold.rounds / 2


# ---- runs ------------------------------------------------------------------------------------------------------------
RUNS = [
    gr.ClusteredFedAvg(CLUSTERS, local_steps=2, batch=3),
    gr.FedAvg(participation=0.5),
    gr.FedAvg(batch=2, participation={i: 0.3 + 0.05 * i for i in range(N)}),
    gr.IFCA(2, starts=3),
    gr.IFCA(3, start="data"),
    gr.PFedMe(1.0, local_steps=2),
]


@pytest.mark.parametrize("method", RUNS, ids=lambda method: method.name)
def test_a_broken_run_has_the_bits_of_an_unbroken_one(method, tmp_path):
    budget = {"gap": 1e-9, "rounds": 60, "seed": 4}
    whole, again = (chain(gr.LogisticLoss).solve(method, **budget) for _ in range(2))
    assert facts(whole) == facts(again)
    path = tmp_path / "run"
    for k in (1, 7, 23, 41, 60):
        last = chain(gr.LogisticLoss).solve(method, checkpoint=path, **{**budget, "rounds": k})
    assert facts(last) == facts(whole)
    assert {name: np.asarray(each).tolist() for name, each in last.gathered.items()} == {
        name: np.asarray(each).tolist() for name, each in whole.gathered.items()
    }
    other = chain(gr.LogisticLoss).solve(method, **{**budget, "seed": 5})
    random = not isinstance(method, gr.PFedMe)
    assert (facts(other)[0] != facts(whole)[0]) == random


@by_name
def test_a_step_changes_nothing_in_its_argument(method):
    form = method.target(chain().form)
    state = iterate(method.iteration, form, [3])[0]
    one, two = method.iteration.step(state), method.iteration.step(state)
    assert one.round == two.round == state.round + 1
    for a, b in zip(method.iteration.point(one)[:1], method.iteration.point(two)[:1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_messages_of_federated_averaging():
    found = chain().solve(gr.FedAvg(), gap=0, rounds=25)
    assert found.ledger.messages["method"] == N * (2 * 25 + 2)  # and the step, before the first round
    assert found.ledger.bytes["method"] == 8 * N * (25 * 2 * 3 + 2 + 4)
    assert set(found.ledger.by_edge()["level"]) == {"to the server"}
    half = chain().solve(gr.FedAvg(participation=0.5), gap=0, rounds=200, seed=0)
    up = half.ledger.messages["method"] - N * (200 + 2)
    assert abs(up - 0.5 * 200 * N) < 4 * np.sqrt(0.25 * 200 * N)
    nodes = half.ledger.by_node()
    assert nodes["away"].sum() == 200 * N - up
    assert nodes.loc["server", "away"] == 0


def test_every_local_step_draws_anew():
    method = gr.FedAvg(local_steps=2, batch=3)
    before, after = iterate(method.iteration, method.target(chain().form), [4, 5])
    site, w = before.site, before.w
    for at in (8, 9):  # of the first five rounds, the last two of ten steps
        g = site.gradients.sampled(w, site.streams("samples").uniform(at, 3))
        w = w - before.step_size[0] * g
    np.testing.assert_allclose(after.w, np.tile(w[:N].mean(axis=0), (N + 1, 1)), rtol=1e-12)


def test_those_that_are_drawn_are_averaged():
    method, form = gr.FedAvg(participation=0.4), None
    form = method.target(chain().form)
    before, after = iterate(method.iteration, form, [6, 7])
    there = before.site.streams("availability").uniform(6, 1)[:N, 0] < 0.4
    assert 0 < there.sum() < N
    g = before.site.gradients.full(before.w)[:N][there]
    expected = before.w[0] - before.step_size[0] * g.mean(axis=0)
    np.testing.assert_allclose(after.w, np.tile(expected, (N + 1, 1)), rtol=1e-12)


@pytest.mark.parametrize("seed", [162, 383, 476, 250, 516, 129])
def test_random_problems(seed):
    problem = random_problem(seed).problem
    bound = problem.solve(gap=1e-6, on_failure="return").certificate.dual
    for method in (gr.LocalOnly(), gr.Pooled(), gr.FedAvg(), gr.IFCA(1, starts=1), gr.PFedMe(1.0)):
        if method.missing(problem.form):
            continue
        found = problem.solve(method, gap=1e-5, rounds=300, seed=0, on_failure="return")
        assert found.objective >= bound
        assert found.coef.shape == (problem.form.space.n_observed, problem.form.d)
        assert isinstance(method, AbstractBaseline)
        target = method.target(problem.form)
        assert method.name == "IFCA" or found.own.form.n == target.n


def test_a_server_beside_a_node_of_that_name():
    data = gr.NodeData.from_dict({label: (None, [x]) for label, x in (("server", 1.0), ("b", 3.0))})
    problem = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.Graph([("server", "b")]), gr.L2()))
    found = problem.solve(gr.Pooled(), gap=1e-10)
    assert found.own.form.latent == (("server", 2),)
    np.testing.assert_allclose(found.coef, 2.0, rtol=1e-4)


# ---- bad input -------------------------------------------------------------------------------------------------------
def without(label):
    return {node: cluster for node, cluster in CLUSTERS.items() if node != label}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gr.FedAvg(local_steps=0), "local_steps of FedAvg"),
        (lambda: gr.FedAvg(local_steps=2.5), "local_steps of FedAvg"),
        (lambda: gr.FedAvg(batch=0), "batch of FedAvg"),
        (lambda: gr.FedAvg(step_size=0.0), "step_size of FedAvg"),
        (lambda: gr.FedAvg(participation=0.0), r"participation of FedAvg must be in \(0, 1\]"),
        (lambda: gr.FedAvg(participation=1.5), r"participation of FedAvg must be in \(0, 1\]"),
        (lambda: gr.FedAvg(participation={0: 0.5, 1: -1}), "participation of the node 1 of FedAvg"),
        (lambda: gr.ClusteredFedAvg(CLUSTERS, local_steps=0), "local_steps of ClusteredFedAvg"),
        (lambda: gr.ClusteredFedAvg([1, 2]), "clusters of ClusteredFedAvg: clusters must be a non-empty mapping"),
        (lambda: gr.ClusteredFedAvg({"a": [0, 1], "b": [1]}), "the node 1 stands in two clusters"),
        (lambda: gr.IFCA(0), "k of IFCA"),
        (lambda: gr.IFCA(2.5), "k of IFCA"),
        (lambda: gr.IFCA(2, starts=0), "starts of IFCA"),
        (lambda: gr.IFCA(2, start="kmeans"), "'random', 'data', 'zero' or an array"),
        (lambda: gr.IFCA(2, start=np.array([[np.nan]])), "finite numbers"),
        (lambda: gr.IFCA(2, start=3.0), "array"),
        (lambda: gr.IFCA(2, step_size=-1.0), "step_size of IFCA"),
        (lambda: gr.PFedMe(0.0), "lam of PFedMe"),
        (lambda: gr.PFedMe({0: -1.0}), "lam of the node 0 of PFedMe"),
        (lambda: gr.PFedMe(1.0, local_steps=0), "local_steps of PFedMe"),
        (lambda: gr.PFedMe(1.0, beta=np.inf), "beta of PFedMe"),
    ],
)
def test_wrong_options(make, said):
    with pytest.raises(MethodError, match=said):
        make()


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (gr.ClusteredFedAvg(), r"give ClusteredFedAvg\(clusters="),
        (gr.ClusteredFedAvg(without(3)), "clusters do not cover the nodes 3: name theirs"),
        (gr.ClusteredFedAvg({0: "a"}), "do not cover the nodes 1, 2, 3, 4, 5 and 6 more"),
        (gr.ClusteredFedAvg(CLUSTERS | {99: "a"}), "clusters name 99, which is not a node"),
        (gr.ClusteredFedAvg(without(3) | {"3": "a"}), "clusters name '3', which is not a node .*compared as they are"),
        (gr.FedAvg(participation={0: 0.5}), "participation has no entry for the node 1"),
        (gr.FedAvg(participation=dict.fromkeys([*range(N), "x"], 0.5)), "participation names 'x'"),
        (gr.IFCA(), r"give IFCA\(k="),
        (gr.IFCA(N + 1), r"IFCA\(k=13\) has more models than there are nodes \(12\)"),
        (gr.IFCA(2, start=np.zeros((3, 3))), r"end with the shape \(2, 3\)"),
        (gr.PFedMe(), r"give PFedMe\(lam="),
        (gr.PFedMe({0: 1.0}), "lam has no entry for the node 1"),
        (gr.PFedMe(dict.fromkeys([*range(N), "x"], 1.0)), "lam names 'x'"),
    ],
)
def test_what_is_missing(method, said):
    with pytest.raises(MethodError, match=said):
        chain().solve(method)


def test_losses_and_penalties_that_do_not_fit():
    rough = chain(gr.QuantileLoss, tau=0.5)
    for method in (gr.FedAvg(), gr.ClusteredFedAvg(CLUSTERS), gr.IFCA(2)):
        with pytest.raises(MethodError, match="QuantileLoss is not smooth"):
            rough.solve(method)
    kinks = chain(gr.SquaredLoss, 0.1 * gr.NodePenalty(gr.L1()))
    for method in (gr.FedAvg(), gr.PFedMe(1.0)):
        with pytest.raises(MethodError, match=r"NodePenalty\(L1\) is not smooth"):
            kinks.solve(method)
    counts = gr.NodeData.from_arrays(np.ones((4, 1)), [1, 2, 0, 3], [0, 0, 1, 1])
    with pytest.raises(MethodError, match=r"curvature of PoissonLoss has no bound .* give step_size"):
        gr.Problem(gr.PoissonLoss(counts)).solve(gr.FedAvg())
    found = gr.Problem(gr.PoissonLoss(counts)).solve(gr.FedAvg(step_size=0.3), gap=1e-10)
    np.testing.assert_allclose(found.coef, np.log(1.5), rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (gr.FedAvg(step_size=5.0), r"step_size 5.0 of FedAvg is beyond 2/L"),
        (gr.ClusteredFedAvg(CLUSTERS, step_size=5.0), r"step_size 5.0 of ClusteredFedAvg is beyond 2/L"),
        (gr.IFCA(2, step_size=5.0), r"step_size 5.0 of IFCA is beyond 2/L"),
        (gr.PFedMe(1.0, beta=2.5), "beta . step_size of PFedMe is 2.5, beyond its bound 2"),
        (gr.PFedMe(1.0, local_steps=2, step_size=2.5), "beta or step_size of PFedMe is 2.5"),
    ],
)
def test_steps_beyond_their_bounds(method, said):
    with pytest.warns(MethodWarning, match=said):
        chain().solve(method, gap=0, rounds=1)


def test_the_bound_of_the_step_is_sharp():
    """Just below 2/L gradient descent converges on a quadratic, just above it does not."""
    problem = gr.Problem(gr.SquaredLoss(data_of()))
    data = data_of()
    H = sum(data.X[data.node == i].T @ data.X[data.node == i] / 20 for i in range(N)) / N
    each = np.mean([np.linalg.eigvalsh(data.X[data.node == i].T @ data.X[data.node == i] / 20)[-1] for i in range(N)])
    state = iterate(gr.FedAvg().iteration, gr.FedAvg().target(problem.form), [0])[0]
    assert state.step_size[0] == pytest.approx(1.0 / each, rel=1e-10)
    assert each >= np.linalg.eigvalsh(H)[-1]
    assert problem.solve(gr.FedAvg(step_size=1.99 / each), gap=1e-6).own.holds(1e-6)
