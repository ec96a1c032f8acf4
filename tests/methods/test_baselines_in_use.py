"""Baselines beside the user's problem: what they are worth in it, their runs, and what they refuse."""

from __future__ import annotations

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from baseline_cases import CLUSTERS, GRAPH, N, chain, data_of
from core_cases import iterate
from factories import interrupt, thinned
from sameness import facts

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import MethodError, MethodWarning
from graphreg.form.latent import with_latent_means
from graphreg.methods.baselines._baseline import AbstractBaseline

BASELINES = [
    gr.LocalOnly(),
    gr.Pooled(),
    gr.FedAvg(),
    gr.ClusteredFedAvg(CLUSTERS),
    gr.IFCA(2, starts=3),
    gr.PFedMe(2.0),
    gr.FedProx(1.0, local_steps=1),
    gr.SCAFFOLD(),
    gr.Ditto(2.0),
]
by_name = pytest.mark.parametrize("method", BASELINES, ids=lambda method: method.name)


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
    assert f"of what {method.name} minimises: certificate" in str(found)


@by_name
def test_points_that_violate_a_constraint_are_not_moved(method):
    problem = gr.Problem(gr.SquaredLoss(data_of()) + gr.TotalVariation(GRAPH, gr.Ball(0.05)))
    found = problem.solve(method, gap=1e-6, seed=1)
    np.testing.assert_array_equal(found.coef, found.own.w[:N])
    if method.name in ("Pooled", "FedAvg", "FedProx", "SCAFFOLD"):  # one model for all violates nothing
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
    w = with_latent_means(form, rng.standard_normal(form.shape))
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


@pytest.mark.usefixtures("unhurried")
@by_name
def test_budgets_and_interruptions_stay_what_they_are(method):
    short = chain(gr.LogisticLoss).solve(method, gap=0, rounds=2, seed=0)
    assert short.status == "budget"
    assert short.rounds == 2
    assert "Of this problem its point is at a relative gap of" in short.message

    stopped = chain(gr.LogisticLoss).solve(method, gap=0, rounds=200, seed=0, callback=interrupt)
    assert stopped.status == "interrupted"
    assert stopped.certificate.valid


def test_an_own_problem_whose_infimum_is_not_attained():
    X = np.array([[-1.0], [1.0], [-1.0], [1.0], [2.0]])
    data = gr.NodeData.from_arrays(X, [0, 1, 1, 0, 1], [0, 0, 1, 1, 1])  # node 0 alone is separable
    problem = gr.Problem(gr.LogisticLoss(data) + 0.5 * gr.TotalVariation(nx.path_graph(2), gr.L2()))
    assert problem.solve().status == "certified"
    found = problem.solve(gr.LocalOnly())
    assert found.status == "no_certificate"  # it is not this problem that has no minimum
    assert "The infimum is certified, but not attained" in found.message


@pytest.mark.parametrize(
    "method", [gr.LocalOnly(), gr.ClusteredFedAvg({"one": [0], "more": [1, 2]})], ids=lambda m: m.name
)
def test_the_remedy_reaches_the_intercept(method):
    rng = np.random.default_rng(0)
    rows = {k: (rng.normal(size=(20, 2)), rng.integers(0, 2, 20)) for k in range(3)}
    rows[0] = rng.normal(size=(3, 2)), np.ones(3)  # one class alone
    model = gr.LogisticLoss(gr.NodeData.from_dict(rows, intercept=True)) + 0.1 * gr.TotalVariation(
        nx.path_graph(3), gr.L2()
    )
    model = model + 0.01 * gr.NodePenalty(gr.SquaredL2())
    found = gr.Problem(model).solve(method, rounds=500)
    assert found.status == "no_certificate"
    remedy = eval(re.search(r"not attained: .* for instance (.*?): ", found.message)[1])
    mended = gr.Problem(model + remedy).solve(method, rounds=500)
    assert mended.own.holds(1e-6)
    assert "not attained" not in mended.message


def test_an_own_problem_without_a_point():
    boxes = gr.NodePenalty(gr.Box(-1, 1), center={0: [0.0] * 3, 1: [5.0] * 3})
    problem = gr.Problem(gr.SquaredLoss(data_of(n=2)) + gr.TotalVariation(nx.path_graph(2), gr.L2()) + boxes)
    assert problem.solve().status == "certified"
    with pytest.raises(gr.errors.FailedError, match=r"minimises another problem .* No point satisfies all constraints"):
        problem.solve(gr.Pooled())


def test_a_start_saves_rounds():
    problem = chain(gr.HuberLoss)
    cold = problem.solve(gr.FedAvg(), gap=1e-8)
    warm = problem.solve(gr.FedAvg(), gap=1e-8, start=cold)
    assert warm.rounds < cold.rounds / 2


# ---- runs ------------------------------------------------------------------------------------------------------------
RUNS = [
    gr.ClusteredFedAvg(CLUSTERS, local_steps=2, batch=3),
    gr.FedAvg(availability=0.5),
    gr.FedAvg(batch=2, availability={i: 0.3 + 0.05 * i for i in range(N)}),
    gr.IFCA(2, starts=3),
    gr.IFCA(3, start="data"),
    gr.IFCA(2, starts=3, availability=0.7),
    gr.PFedMe(1.0, local_steps=2),
    gr.FedProx(0.5, batch=3, availability=0.7),
    gr.SCAFFOLD(availability=0.6, batch=5),
    gr.Ditto(1.0, availability=0.6),
    gr.PFedMe(1.0, availability=0.7),
]


@pytest.mark.parametrize("method", RUNS, ids=lambda method: method.name)
def test_a_broken_run_has_the_bits_of_an_unbroken_one(method, tmp_path):
    budget = {"gap": 1e-9, "rounds": 30, "seed": 4}
    whole, again = (chain(gr.LogisticLoss).solve(method, **budget) for _ in range(2))
    assert facts(whole) == facts(again)
    path = tmp_path / "run"
    for k in (1, 7, 19, 30):
        last = chain(gr.LogisticLoss).solve(method, checkpoint=path, **{**budget, "rounds": k})
    assert facts(last) == facts(whole)
    assert {name: np.asarray(each).tolist() for name, each in last.gathered.items()} == {
        name: np.asarray(each).tolist() for name, each in whole.gathered.items()
    }
    other = chain(gr.LogisticLoss).solve(method, **{**budget, "seed": 5})
    random = not isinstance(method, gr.PFedMe) or method.drawn
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
    assert found.ledger.messages["method"] == N * 2 * 25
    assert found.ledger.bytes["method"] == 8 * N * 25 * 2 * 3
    assert found.ledger.messages["adaptation"] == N * 2  # the step and the first model, before the first round
    assert found.ledger.bytes["adaptation"] == 8 * N * (2 + 4)
    assert set(found.ledger.by_edge()["level"]) == {"to the server"}
    half = chain().solve(gr.FedAvg(availability=0.5), gap=0, rounds=200, seed=0)
    up = half.ledger.messages["method"] - N * 200
    assert abs(up - 0.5 * 200 * N) < 4 * np.sqrt(0.25 * 200 * N)
    nodes = half.ledger.by_node()
    assert nodes["away"].sum() == 200 * N - up
    assert nodes.loc["server", "away"] == 0


def test_every_local_step_draws_anew():
    method = gr.FedAvg(local_steps=2, batch=3)
    before, after = iterate(method.iteration, method.target(chain().form), [4, 5])
    view, w = before.view, before.w
    for at in (8, 9):  # of the first five rounds, the last two of ten steps
        g = view.gradients.sampled(w, view.streams("samples").uniform(at, 3))
        w = w - before.step_size[0] * g
    np.testing.assert_allclose(after.w, np.tile(w[:N].mean(axis=0), (N + 1, 1)), rtol=1e-12)


def test_those_that_are_there_are_averaged():
    method = gr.FedAvg(availability=0.4)
    before, after = iterate(method.iteration, method.target(chain().form), [6, 7])
    there = before.view.streams("availability").uniform(7, 1)[:N, 0] < 0.4
    assert 0 < there.sum() < N
    g = before.view.gradients.full(before.w)[:N][there]
    expected = before.w[0] - before.step_size[0] * g.mean(axis=0)
    np.testing.assert_allclose(after.w, np.tile(expected, (N + 1, 1)), rtol=1e-12)


UNEVEN = {i: 0.2 + 0.06 * i for i in range(N)}


def test_the_envelopes_of_those_that_are_there_are_averaged():
    method = gr.PFedMe(2.0, beta=0.7, availability=UNEVEN)
    before, after = iterate(method.iteration, method.target(chain().form), [6, 7])
    there = before.view.streams("availability").uniform(7, 1)[:N, 0] < np.array(list(UNEVEN.values()))
    assert 0 < there.sum() < N
    weight = there / np.array(list(UNEVEN.values()))  # after one step of size 1 the w_i are the theta_i, of all nodes
    mean = weight @ after.theta[:N] / weight.sum()
    np.testing.assert_allclose(after.model, np.tile(0.3 * before.model[0] + 0.7 * mean, (N + 1, 1)), rtol=1e-12)


def test_the_gradients_of_those_that_are_there_move_their_models():
    method = gr.IFCA(2, starts=1, availability=UNEVEN)
    before, after = iterate(method.iteration, method.target(chain().form), [6, 7])
    there = before.view.streams("availability").uniform(7, 1)[:N, 0] < np.array(list(UNEVEN.values()))
    assert (after.cluster[0, :N] == before.cluster[0, :N])[~there].all()
    np.testing.assert_array_equal(after.least[0, :N][~there], before.least[0, :N][~there])
    weight = there / np.array(list(UNEVEN.values()))
    for j, w in enumerate(before.models[0]):
        mine = weight * (after.cluster[0, :N] == j)
        total = mine @ before.view.gradients.full(np.tile(w, (N + 1, 1)))[:N]
        np.testing.assert_allclose(after.models[0, j], w - total / (mine @ before.scale[:N] or 1.0), rtol=1e-12)


AWAY = (
    gr.FedAvg(availability=0.6),
    gr.ClusteredFedAvg(CLUSTERS, availability=0.6),
    gr.PFedMe(2.0, availability=0.6),
    gr.IFCA(2, starts=2, availability=0.6),
    gr.FedADMM(availability=0.6),
    gr.FedADMM(while_away="ipw", availability=0.6),
)


def test_the_same_seed_draws_the_same_nodes_for_each_method():
    nodes = [chain().solve(m, gap=0, rounds=50, seed=2).ledger.by_node()["away"].iloc[:N].tolist() for m in AWAY]
    assert min(nodes[0]) > 0
    assert all(each == nodes[0] for each in nodes)
    consensus = gr.Problem(gr.SquaredLoss(data_of()) + gr.Consensus(GRAPH))
    run = consensus.solve(gr.LocalSGD(tau=2, availability=0.6), gap=0, rounds=100, seed=2)  # 50 gossips
    assert run.ledger.by_node()["away"].tolist() == nodes[0]


@pytest.mark.parametrize("method", AWAY, ids=lambda method: method.name)
def test_every_method_takes_a_sampler_whose_probabilities_nobody_knows(method):
    asked = []

    def odd_nodes_rest_in_even_rounds(t, labels, uniform, common):
        asked.append(t)
        return np.array([t % 2 == 1 or label % 2 == 0 for label in labels])

    run = chain().solve(replace(method, availability=odd_nodes_rest_in_even_rounds), gap=0, rounds=10, seed=2)
    assert sorted(set(asked)) == list(range(1, 11))
    assert run.ledger.by_node()["away"].iloc[:N].tolist() == [0, 5] * (N // 2)


@pytest.mark.parametrize("seed", thinned([162, 383, 250, 476, 516, 129], every=2))
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
    assert found.own.form.latent == ("server (2)",)
    np.testing.assert_allclose(found.coef, 2.0, rtol=1e-4)


# ---- bad input -------------------------------------------------------------------------------------------------------
def without(label):
    return {node: cluster for node, cluster in CLUSTERS.items() if node != label}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gr.FedAvg(local_steps=0), r"FedAvg\(local_steps=...\)"),
        (lambda: gr.FedAvg(local_steps=2.5), r"FedAvg\(local_steps=...\)"),
        (lambda: gr.FedAvg(batch=0), r"FedAvg\(batch=...\)"),
        (lambda: gr.FedAvg(step_size=0.0), r"FedAvg\(step_size=...\)"),
        (lambda: gr.FedAvg(availability=0.0), r"FedAvg\(availability=...\) must be a probability in \(0, 1\]"),
        (lambda: gr.FedAvg(availability=1.5), r"FedAvg\(availability=...\) must be a probability in \(0, 1\]"),
        (lambda: gr.FedAvg(availability={0: 0.5, 1: -1}), r"FedAvg\(availability=...\) of the node 1"),
        (lambda: gr.ClusteredFedAvg(CLUSTERS, local_steps=0), r"ClusteredFedAvg\(local_steps=...\)"),
        (lambda: gr.ClusteredFedAvg([1, 2]), "clusters of ClusteredFedAvg: clusters must be a non-empty mapping"),
        (lambda: gr.ClusteredFedAvg({"a": [0, 1], "b": [1]}), "the node 1 stands in two clusters"),
        (lambda: gr.IFCA(0), r"IFCA\(k=...\)"),
        (lambda: gr.IFCA(2.5), r"IFCA\(k=...\)"),
        (lambda: gr.IFCA(2, starts=0), r"IFCA\(starts=...\)"),
        (lambda: gr.IFCA(2, start="kmeans"), "'random', 'data', 'zero' or an array"),
        (lambda: gr.IFCA(2, start=np.array([[np.nan]])), "finite numbers"),
        (lambda: gr.IFCA(2, start=3.0), "array"),
        (lambda: gr.IFCA(2, step_size=-1.0), r"IFCA\(step_size=...\)"),
        (lambda: gr.PFedMe(0.0), r"PFedMe\(lam=...\)"),
        (lambda: gr.PFedMe({0: -1.0}), r"PFedMe\(lam=...\) of the node 0"),
        (lambda: gr.PFedMe(1.0, local_steps=0), r"PFedMe\(local_steps=...\)"),
        (lambda: gr.PFedMe(1.0, beta=np.inf), r"PFedMe\(beta=...\)"),
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
        (gr.ClusteredFedAvg(CLUSTERS | {99: "a"}), "clusters name 99, which is not a node.* leave it out"),
        (gr.ClusteredFedAvg(without(3) | {"3": "a"}), "clusters name '3', which is not a node .*compared as they are"),
        (gr.FedAvg(availability={0: 0.5}), "availability has no entry for the node 1"),
        (gr.FedAvg(availability=dict.fromkeys([*range(N), "x"], 0.5)), "availability names 'x'"),
        (gr.IFCA(), r"give IFCA\(k="),
        (gr.IFCA(N + 1), r"IFCA\(k=13\) has more models than there are nodes \(12\)"),
        (gr.IFCA(2, start=np.zeros((3, 3))), r"end with the shape \(2, 3\)"),
        (gr.PFedMe(), r"give PFedMe\(lam="),
        (gr.FedProx(), r"give FedProx\(mu="),
        (gr.Ditto(), r"give Ditto\(lam="),
        (gr.Ditto({0: 1.0}), "lam has no entry for the node 1"),
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
        (gr.SCAFFOLD(step_size=5.0), r"step_size 5.0 of SCAFFOLD is beyond 2/\(K L\)"),
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


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (gr.FedAvg(local_steps=5), "local_steps may"),
        (gr.FedAvg(local_steps=5, availability=dict.fromkeys(range(N), 0.5)), "local_steps and availability may"),
        (gr.ClusteredFedAvg({i: i % 2 for i in range(N)}, batch=1), "batch may"),
        (gr.PFedMe(lam=0.5, local_steps=3), "local_steps may"),
        (gr.PFedMe(lam=0.5, availability=0.5), "availability may"),
        (gr.IFCA(2, availability=0.5), "availability may"),
    ],
    ids=str,
)
def test_it_says_which_options_lead_off_its_own_optimum(method, named):
    found = chain().solve(method, gap=1e-9, rounds=30, seed=0)
    assert found.status == "budget"
    assert f"; {named} lead off that optimum, however many rounds" in found.message
    assert "standardise" not in found.message
    assert "allow more" not in found.message


def test_no_gap_is_advised_for_the_clusters_of_another_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 2))
    y = np.where(np.arange(180) < 90, X @ [1, -1], X @ [-1, 1]) + 0.1 * rng.normal(size=180)
    data = gr.NodeData.from_arrays(X, y, np.arange(180) // 30)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(nx.path_graph(6), gr.L2()))
    found = problem.solve(gr.IFCA(k=2), seed=0).clusters()
    assert "no gap decides them" in found.advice
    assert found.decided_at == 0.0
    assert "gap=" not in str(found)
