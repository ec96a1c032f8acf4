"""Models mean what they say: sums and strengths, nodes, features, centres."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from model_cases import CHAIN, NODES, equal, means, regression, ridge_fit, samples, solve

import graphreg as gr


# ---- the calculus ----------------------------------------------------------------------------------------------------
def strengths(model):
    return [(float(strength), type(term).__name__) for strength, term in model.terms]


def test_sums_flatten_and_strengths_multiply(rng):
    loss, fusion = gr.SquaredLoss(regression(rng)), gr.TotalVariation(CHAIN, gr.L2())
    ridge = gr.NodePenalty(gr.SquaredL2())
    expected = [(1.0, "SquaredLoss"), (0.5, "TotalVariation"), (0.25, "NodePenalty")]
    for model in (
        loss + 0.5 * fusion + 0.25 * ridge,
        sum([loss, 0.5 * fusion, 0.25 * ridge]),
        loss + 0.5 * (fusion + 0.5 * ridge),
        loss + (fusion + ridge / 2) / 2,
        loss + (fusion * 0.5 + ridge * 0.5 * 0.5),
    ):
        assert strengths(model) == expected


def test_a_scaled_sum_is_the_sum_of_scaled_terms(rng):
    loss, fusion = gr.SquaredLoss(regression(rng)), gr.TotalVariation(CHAIN, gr.L2())
    ridge = gr.NodePenalty(gr.SquaredL2())
    whole, parts = solve(2 * (loss + 0.1 * fusion + 0.3 * ridge)), solve(2 * loss + 0.2 * fusion + 0.6 * ridge)
    assert whole.objective == pytest.approx(parts.objective, rel=1e-7)
    assert whole.objective == pytest.approx(2 * solve(loss + 0.1 * fusion + 0.3 * ridge).objective, rel=1e-7)


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual(), gr.Exact(form="dual")], ids=repr)
def test_a_changed_parameter_is_a_fresh_problem(rng, method):
    loss, fusion = gr.SquaredLoss(regression(rng)), gr.TotalVariation(CHAIN, gr.L2())
    ridge = gr.NodePenalty(gr.SquaredL2())
    strength = gr.Parameter(0.05, name="lam")
    kept = gr.Problem(loss + strength * (fusion + 0.5 * ridge) + 0.1 * strength * ridge)
    found = []
    for value in (0.05, 0.4, 0.2):
        strength.value = value
        again = kept.solve(method, gap=1e-8)
        fresh = gr.Problem(loss + value * fusion + 0.6 * value * ridge).solve(method, gap=1e-8)
        assert again.status == fresh.status == "certified"
        assert again.objective == pytest.approx(fresh.objective, rel=1e-7)
        np.testing.assert_allclose(again.coef, fresh.coef, atol=1e-3)
        found.append(again.objective)
    assert found[0] < found[2] < found[1]


def test_one_parameter_at_several_terms_and_several_parameters(rng):
    loss, fusion = gr.SquaredLoss(regression(rng)), gr.TotalVariation(CHAIN, gr.L2())
    ridge = gr.NodePenalty(gr.SquaredL2())
    lam, mu = gr.Parameter(0.1, "lam"), gr.Parameter(0.2, "mu")
    posed = gr.Problem(loss + lam * fusion + 2 * mu * ridge)
    for first, second in ((0.1, 0.2), (0.3, 0.2), (0.3, 0.05)):
        lam.value, mu.value = first, second
        fresh = solve(loss + first * fusion + 2 * second * ridge)
        assert posed.solve(gap=1e-9).objective == pytest.approx(fresh.objective, rel=1e-7)


def test_a_parameter_inside_a_hierarchy(rng):
    loss = gr.SquaredLoss(regression(rng))
    clusters, gamma = {"p": ["a", "b"], "q": ["c", "d"]}, gr.Parameter(0.1, "gamma")
    posed = gr.Problem(loss + gr.Hierarchy(clusters, (gamma, 2.0)))
    gamma.value = 0.7
    assert posed.solve(gap=1e-9).objective == pytest.approx(solve(loss + gr.Hierarchy(clusters, (0.7, 2.0))).objective)


# ---- nodes -----------------------------------------------------------------------------------------------------------
def test_nodes_are_in_order_of_first_appearance_in_the_graphs():
    data = means(z=1.0, a=2.0, k=3.0)
    loss = gr.MeanLoss(data)
    first = gr.TotalVariation(nx.Graph([("k", "a")]), gr.L2())
    second = gr.TotalVariation(nx.Graph([("z", "k"), ("b", "a")]), gr.SquaredL2())
    assert gr.Problem(loss + first + second).solve().labels == ("k", "a", "z", "b")
    assert gr.Problem(second + first + loss).solve().labels == ("z", "k", "b", "a")
    tree = gr.Hierarchy({"z": "p", "new": "p", "a": "q"}, (1, 1))
    assert gr.Problem(loss + first + tree).solve().labels == ("k", "a", "z", "new")
    assert gr.Problem(loss + gr.NodePenalty(gr.L2())).solve().labels == ("z", "a", "k")


def test_the_order_of_nodes_does_not_matter():
    data = means(a=0.0, b=1.0, c=3.0, d=7.0)
    penalty = gr.TotalVariation(CHAIN, gr.L2())
    other = gr.TotalVariation(gr.Graph.from_edges([("d", "c"), ("c", "b"), ("b", "a")]), gr.L2())
    one, two = solve(gr.MeanLoss(data) + 0.4 * penalty), solve(gr.MeanLoss(data) + 0.4 * other)
    assert two.labels == ("d", "c", "b", "a")
    np.testing.assert_allclose(one.coef, two.coef[::-1], atol=1e-4)
    np.testing.assert_allclose(one.flows["b", "c"], two.flows["b", "c"], atol=1e-4)


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_a_node_without_data_interpolates(method):
    data = means(a=0.0, d=3.0)
    fusion = gr.TotalVariation(CHAIN, gr.SquaredL2())
    solution = gr.Problem(gr.MeanLoss(data) + fusion).solve(method, gap=1e-9)
    # resistances in series: 1 at either end for the loss, 1 for each of three edges
    np.testing.assert_allclose(solution.coef[:, 0], [0.6, 1.2, 1.8, 2.4], atol=1e-3)
    assert solution.free == []


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_an_isolated_node_has_its_own_fit(rng, method):
    data = samples(rng)
    graph = gr.Graph.from_edges([("a", "b"), ("b", "c")], nodes=NODES)
    solution = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict(data)) + 0.3 * gr.TotalVariation(graph, gr.L2())).solve(
        method, gap=1e-10
    )
    own = np.linalg.lstsq(*data["d"])[0]
    np.testing.assert_allclose(solution.table().loc["d"], own, atol=1e-4)
    assert np.abs(solution.table().loc["a"] - np.linalg.lstsq(*data["a"])[0]).max() > 1e-2
    assert solution.free == []


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_components_without_a_loss_are_0_and_free(method):
    graph = nx.Graph([("a", "b"), ("x", "y"), ("y", "z")])
    graph.add_node("alone")
    posed = gr.Problem(gr.MeanLoss(means(a=1.0, b=5.0)) + 0.5 * gr.TotalVariation(graph, gr.L2()))
    solution = posed.solve(method, gap=1e-9)
    assert solution.status == "certified"
    assert solution.free == ["x", "y", "z", "alone"]
    np.testing.assert_array_equal(solution.coef[2:], 0.0)
    np.testing.assert_allclose(solution.coef[:2, 0], [1.5, 4.5], atol=1e-4)
    assert "free nodes" in str(solution)


def test_a_node_penalty_determines_nodes_without_a_loss():
    graph = nx.Graph([("a", "b"), ("x", "y")])
    pull = gr.NodePenalty(gr.SquaredL2(), center=[3.0])
    solution = solve(gr.MeanLoss(means(a=1.0, b=5.0)) + gr.TotalVariation(graph, gr.L2()) + 0.1 * pull)
    assert solution.free == []
    np.testing.assert_allclose(solution.coef[2:, 0], 3.0, atol=1e-4)


def test_graphs_over_the_same_nodes_add_up(rng):
    data = gr.SquaredLoss(regression(rng))
    heavy = nx.Graph()
    heavy.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 2.0), ("c", "d", 1.0)])
    part = gr.TotalVariation(nx.path_graph(["c", "b", "a"]), gr.L2())
    equal(data + 0.1 * gr.TotalVariation(heavy, gr.L2()), data + 0.1 * (gr.TotalVariation(CHAIN, gr.L2()) + part))


# ---- features --------------------------------------------------------------------------------------------------------
def test_a_feature_subset_leaves_the_other_coordinates_alone(rng):
    """With orthogonal columns the coordinates decouple: the free one is its own fit, the tied one pooled."""
    y = {label: rng.normal(size=4) for label in NODES}
    X = np.array([[1.0, 1], [1, -1], [1, 1], [1, -1]])
    data = gr.NodeData.from_dict({label: (X, values) for label, values in y.items()}, features=["level", "slope"])
    own = np.array([X.T @ values / 4 for values in y.values()])
    for term in (
        gr.Consensus(CHAIN, features="slope"),
        gr.TotalVariation(CHAIN, gr.Zero(), features=["slope"]),
        1e3 * gr.TotalVariation(CHAIN, gr.L2(), features=["slope"]),
    ):
        solution = solve(gr.SquaredLoss(data) + term)
        np.testing.assert_allclose(solution.coef[:, 0], own[:, 0], atol=1e-4)
        np.testing.assert_allclose(solution.coef[:, 1], own[:, 1].mean(), atol=1e-4)
        assert solution.flows["a", "b"][0] == 0.0


def test_features_are_taken_in_the_order_in_which_they_are_named(rng):
    loss = gr.SquaredLoss(regression(rng))
    Q = np.array([[2.0, 0.3], [0.3, 1.0]])
    straight = gr.TotalVariation(CHAIN, gr.Quadratic(Q), features=["x1", "intercept"])
    turned = gr.TotalVariation(CHAIN, gr.Quadratic(Q[::-1, ::-1]), features=["intercept", "x1"])
    equal(loss + straight, loss + turned)
    box = gr.NodePenalty(gr.Box([0.5, -np.inf], [np.inf, 0.1]), features=["x1", "intercept"])
    solution = solve(loss + box)
    assert solution.table()["x1"].min() >= 0.5
    assert solution.table()["intercept"].max() <= 0.1


def test_edge_penalties_include_the_intercept_and_node_penalties_skip_it(rng):
    data = regression(rng)
    solution = solve(gr.SquaredLoss(data) + 1e3 * gr.NodePenalty(gr.L2()))
    np.testing.assert_allclose(solution.coef[:, 1:], 0.0, atol=1e-6)
    levels = [y.mean() for _, y in samples(np.random.default_rng(3)).values()]
    np.testing.assert_allclose(solution.table()["intercept"], levels, atol=1e-4)
    tied = solve(gr.SquaredLoss(data) + 1e3 * gr.TotalVariation(CHAIN, gr.L2()))
    assert np.ptp(tied.coef, axis=0).max() <= 1e-4
    every = list(data.features)
    named = solve(gr.SquaredLoss(data) + 1e3 * gr.NodePenalty(gr.L2(), features=every))
    np.testing.assert_allclose(named.coef, 0.0, atol=1e-6)


def test_a_column_called_intercept_is_a_feature_like_others():
    X = np.ones((3, 1))
    data = gr.NodeData.from_dict({"a": (X, [1.0, 2.0, 3.0])}, features=["intercept"])
    solution = solve(gr.SquaredLoss(data) + gr.NodePenalty(gr.SquaredL2()))
    np.testing.assert_allclose(solution.coef, [[1.0]], atol=1e-5)


# ---- node penalties --------------------------------------------------------------------------------------------------
def test_centers_are_what_the_parameters_are_compared_with(rng):
    data = samples(rng)
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data), scale="sum")
    one = solve(loss + 0.7 * gr.NodePenalty(gr.SquaredL2(), center=[2.0, 2.0]))
    np.testing.assert_allclose(one.coef, [ridge_fit(X, y, 1, 0.7, 2.0) for X, y in data.values()], atol=1e-4)
    each = {label: np.full(2, float(k)) for k, label in enumerate(NODES)}
    many = solve(loss + 0.7 * gr.NodePenalty(gr.SquaredL2(), center=each))
    fits = [ridge_fit(X, y, 1, 0.7, float(k)) for k, (X, y) in enumerate(data.values())]
    np.testing.assert_allclose(many.coef, fits, atol=1e-4)
    fixed = solve(loss + gr.NodePenalty(gr.Zero(), center=each))
    np.testing.assert_allclose(fixed.coef, list(each.values()), atol=1e-12)
    near = solve(loss + gr.NodePenalty(gr.Ball(0.5), center=each))
    assert np.linalg.norm(near.coef - np.array(list(each.values())), axis=1).max() <= 0.5 + 1e-9


def test_node_weights_by_label(rng):
    data = samples(rng)
    weights = {"d": 4.0, "a": 1.0, "c": 3.0, "b": 2.0}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data), scale="sum")
    solution = solve(loss + 0.5 * gr.NodePenalty(gr.SquaredL2(), weights=weights))
    fits = [ridge_fit(X, y, 1, 0.5 * weights[label]) for label, (X, y) in data.items()]
    np.testing.assert_allclose(solution.coef, fits, atol=1e-4)


def test_latent_nodes_are_not_penalised():
    tree = gr.Hierarchy({"p": ["a", "b"], "q": ["c", "d"]}, (1.0, 1.0))
    loss = gr.MeanLoss(means(a=0.0, b=0.0, c=4.0, d=4.0))
    assert [len(edge.tail) for edge in gr.Problem(loss + tree + gr.NodePenalty(gr.L2())).form.edges] == [4, 2, 4]


def test_a_model_is_told_how_to_be_solved(rng):
    loss = gr.SquaredLoss(regression(rng))
    for given in (loss, loss + gr.NodePenalty(gr.L2())):
        with pytest.raises(AttributeError, match=r"has no attribute 'solve'; write gr.Problem\(model\).solve\(\)"):
            given.solve()
