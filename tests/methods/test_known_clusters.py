"""Async-L2GD and Async-AL2SGD+: the model, and the algorithms by hand."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from cluster_cases import (
    CASES,
    SEED,
    begin,
    by_hand_1,
    by_hand_2,
    case,
    coins,
    padded_start,
    random,
    rows_of,
    run,
    settings,
)
from core_cases import view_of
from factories import thinned

import graphreg as gr
from graphreg.form.latent import with_latent_minimisers


# ---- options by cluster ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [gr.AsyncL2GD, gr.AsyncAL2SGD])
@pytest.mark.parametrize("engine", [None, gr.Actors()])
def test_options_are_given_by_the_users_own_labels(method, engine):
    """Also where clusters are numbered like nodes, and so have nodes of other names."""
    rng = np.random.default_rng(0)
    X, node = rng.standard_normal((40, 2)), np.repeat(range(4), 10)
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + rng.standard_normal(40) + node, node)
    runs = []
    for labels in ((0, 1), ("p", "q")):
        tree = gr.Hierarchy({k: labels[k // 2] for k in range(4)}, weights=(2.0, 1.0))
        problem = gr.Problem(gr.SquaredLoss(data) + tree)
        options = {"p_cluster": dict(zip(labels, (0.5, 0.2), strict=True)), "p_global": 0.3}
        runs.append(problem.solve(method(**options), rounds=8, gap=0, seed=1, engine=engine, on_failure="return").coef)
        with pytest.raises(gr.errors.MethodError, match="p_cluster names 'z'"):
            problem.solve(method(p_cluster={"z": 0.5, labels[1]: 0.2}), rounds=1)
    np.testing.assert_array_equal(*runs)
    other = method(p_cluster=dict(zip(labels, (0.2, 0.5), strict=True)), p_global=0.3)
    swapped = problem.solve(other, rounds=8, gap=0, seed=1, engine=engine, on_failure="return").coef
    assert not np.array_equal(swapped, runs[0])


# ---- the model -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CASES)
def test_the_tree_with_its_latent_nodes_minimised_out_is_the_form_with_alpha(name):
    c = CASES[name]()
    form, theta = c.problem.form, random(c, 0)
    w = np.zeros(form.shape)
    w[: c.n] = theta
    assert form.primal(with_latent_minimisers(form, w)) == pytest.approx(c.value(theta), rel=1e-12)
    slope = (c.value(theta + 1e-5 * c.gradient(theta)) - c.value(theta - 1e-5 * c.gradient(theta))) / 2e-5
    assert slope == pytest.approx((c.gradient(theta) ** 2).sum(), rel=1e-8)
    np.testing.assert_allclose(c.problem.solve(gap=1e-10).coef, c.optimum(), atol=2e-4)


def test_settled_latent_nodes_of_a_deep_tree_conserve_the_flows():
    data = gr.NodeData.from_arrays(np.eye(8), np.arange(8.0), np.arange(8))
    nested = {"a": {"b": [0, 1], "c": [2, 3]}, "d": {"e": [4, 5], "f": [6, 7]}}
    form = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy(nested, (1.0, 2.0, 0.5))).form
    before = np.random.default_rng(0).standard_normal(form.shape)
    w, out = with_latent_minimisers(form, before), np.zeros(form.shape)
    for edge in form.edges:
        edge.add_adjoint(edge.weight[:, None] * edge.difference(w), out)
    np.testing.assert_array_equal(w[:8], before[:8])
    assert np.abs(out[8:]).max() < 1e-14


def test_latent_nodes_of_other_penalties_stay_where_they_are():
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), np.arange(4))
    form = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy({"a": [0, 1], "b": [2, 3]}, (1.0, 1.0), gr.L2())).form
    w = np.random.default_rng(0).standard_normal(form.shape)
    assert with_latent_minimisers(form, w) is w


# ---- the algorithms by hand ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "options"),
    thinned((name for name in CASES if name != "apart"), [{}, {"batch": 3}, {"coin": "single"}], every=2),
    ids=str,
)
def test_algorithm_1_by_hand(name, options):
    """With all averages computed anew in every round: what is not sent again was known."""
    c = CASES[name]()
    states = run(gr.AsyncL2GD(**options), c, 80)
    first = states[0]
    rows = rows_of(c, SEED, options["batch"]) if "batch" in options else None
    if name == "some apart, some tied":  # the first cluster is a problem of its own
        own = c.cluster > 0
        p0, p, tau = (
            float(first.probabilities.p0[-1]),
            *(x[first.view.tree.clusters] for x in (first.probabilities.p, first.probabilities.tau)),
        )
        eta = first.step_size[: c.n, None]
    else:
        own = np.full(c.n, True)
        p0, p, tau = settings(first)
        eta = first.step_size[0]
    hand = by_hand_1(c, 80, SEED, eta, p0, p, tau, rows=rows)
    for state, theta in zip(states, hand, strict=True):
        np.testing.assert_allclose(state.theta[: c.n][own], theta[own], atol=1e-11)
    network, cluster = zip(*(coins(SEED, p0, p, c.nodes, k) for k in range(80)), strict=True)
    assert 0 < sum(network) < 80
    assert name == "near the network" or "coin" in options or name == "one cluster" or np.any(cluster)


def test_without_a_root_clusters_are_problems_of_their_own():
    c = CASES["apart"]()
    states = run(gr.AsyncL2GD(), c, 80)
    first, j = states[0], states[0].view.tree.clusters
    assert (first.probabilities.p0 == 0).all()
    assert (first.probabilities.tau == 0).all()
    assert len(np.unique(first.probabilities.p[j])) == 3
    hand = by_hand_1(c, 80, SEED, first.step_size[: c.n, None], 0.0, first.probabilities.p[j], np.zeros(3))
    np.testing.assert_allclose(states[-1].theta[: c.n], hand[-1], atol=1e-11)
    assert "between clusters" not in first.view.engine.ledger.by_level().index.get_level_values("level")


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
        assert tau == pytest.approx(K["C1"] / K["C2"])  # appendix A.6
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


# ---- a run -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [gr.AsyncL2GD(), gr.AsyncAL2SGD()], ids=str)
def test_a_start_is_where_it_begins(method):
    c = CASES["uneven"]()
    star = c.optimum()
    state = method.init(view_of(c.problem.form), (padded_start(c, star), None))
    np.testing.assert_array_equal(method.point(state)[0][: c.n], star)
    if isinstance(method, gr.AsyncAL2SGD):  # which does not move where the optimum is
        for _ in range(30):
            state = method.step(state)
        np.testing.assert_allclose(state.y[: c.n], star, atol=1e-12)


def test_what_was_chosen_is_gathered():
    found = case().problem.solve(gr.AsyncL2GD(p_global=0.25, p_cluster=0.5), gap=0, rounds=3).gathered
    assert (found["p_global"] == 0.25).all()
    assert found["tau"][0] == pytest.approx(0.25 / (0.25 + 2 * 0.75 * 0.5))
    assert "rho" in case().problem.solve(gr.AsyncAL2SGD(), gap=0, rounds=3).gathered


@pytest.mark.parametrize(
    "method", [gr.AsyncL2GD(majority=True, batch=2), gr.AsyncL2GD(coin="single"), gr.AsyncAL2SGD(batch=1)], ids=str
)
def test_the_laws_of_methods(method):
    report = gr.testing.check_method(method, accuracy=None, rounds=60)
    assert report.ok, report
