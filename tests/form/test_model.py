"""What a model means: sums, strengths, nodes, features, scales and hierarchies, against equal problems by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr

NODES = ["a", "b", "c", "d"]
CHAIN = nx.path_graph(NODES)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def samples(rng, nodes=NODES, m=5, d=2):
    return {label: (rng.normal(size=(m, d)), rng.normal(size=m) + k) for k, label in enumerate(nodes)}


def regression(rng, **more):
    return gr.NodeData.from_dict(samples(rng, **more), intercept=True)


def means(**values):
    """One target per node."""
    return gr.NodeData.from_dict({label: (None, [value]) for label, value in values.items()})


def solve(model, gap=1e-9):
    solution = gr.Problem(model).solve(gap=gap)
    assert solution.status == "certified"
    return solution


def equal(model, other, atol=1e-5):
    """Both have the same optimum and, up to the accuracy, the same coefficients."""
    one, two = solve(model), solve(other)
    assert one.objective == pytest.approx(two.objective, rel=1e-7)
    np.testing.assert_allclose(one.coef, two.coef, atol=atol)


def ridge_fit(X, y, weight, ridge, center=0.0):
    """argmin of weight ||Xw - y||^2 / 2 + ridge ||w - center||^2 / 2."""
    d = X.shape[1]
    return np.linalg.solve(weight * X.T @ X + ridge * np.eye(d), weight * X.T @ y + ridge * np.full(d, center))


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


# ---- hierarchies -----------------------------------------------------------------------------------------------------
def test_clusters_as_ranges_are_those_of_their_numbers():
    data = gr.NodeData.from_dict({k: (np.eye(2), [0.0, k]) for k in range(4)})
    posed = [gr.Hierarchy({"p": kind(2), "q": kind(2, 4)}, (1.0, 0.5)) for kind in (range, np.arange)]
    tables = [solve(gr.SquaredLoss(data) + each).table() for each in posed]
    np.testing.assert_array_equal(*tables)


def test_clusters_by_label_and_as_lists_are_the_same_tree(rng):
    loss = gr.SquaredLoss(regression(rng))
    weights = ({"a": 1.0, "b": 2.0, "c": 0.5, "d": 1.5}, {"p": 0.4, "q": 0.8})
    specs = [
        {"a": "p", "c": "q", "b": "p", "d": "q"},
        {"p": ["a", "b"], "q": ["c", "d"]},
        {"q": ("d", "c"), "p": np.array(["b", "a"])},
        pd.Series({"a": "p", "b": "p", "c": "q", "d": "q"}).to_dict(),
        {"p": pd.Index(["a", "b"]), "q": pd.Series(["c", "d"])},  # as frame.groupby(...).groups has them
    ]
    tables, latent = [], []
    for spec in specs:
        solution = solve(loss + gr.Hierarchy(spec, weights))
        assert set(solution.latent) == {"p", "q", "root"}
        tables.append(solution.table().loc[NODES])
        latent.append(np.stack([solution.latent[label] for label in ("p", "q", "root")]))
    for table, inner in zip(tables[1:], latent[1:], strict=True):
        np.testing.assert_allclose(table, tables[0], atol=1e-5)
        np.testing.assert_allclose(inner, latent[0], atol=1e-5)


def test_a_tree_of_three_levels_is_its_graph(rng):
    """The same tree written as a graph with the inner nodes as nodes without data."""
    data = regression(rng)
    spec = {"east": {"p": ["a"], "q": ["b"]}, "west": {"p": ["c", "d"]}}
    tree = solve(gr.SquaredLoss(data) + gr.Hierarchy(spec, (0.9, 0.6, {"east": 0.3, "west": 0.2})))
    assert list(tree.latent) == [("east", "p"), ("east", "q"), ("west", "p"), "east", "west", "root"]
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        [
            ("a", "ep", 0.9),
            ("b", "eq", 0.9),
            ("c", "wp", 0.9),
            ("d", "wp", 0.9),
            ("ep", "east", 0.6),
            ("eq", "east", 0.6),
            ("wp", "west", 0.6),
            ("east", "root", 0.3),
            ("west", "root", 0.2),
        ]
    )
    written = solve(gr.SquaredLoss(data) + gr.TotalVariation(graph, gr.SquaredL2()))
    assert tree.objective == pytest.approx(written.objective, rel=1e-7)
    names = {("east", "p"): "ep", ("east", "q"): "eq", ("west", "p"): "wp"}
    for label, value in tree.latent.items():
        np.testing.assert_allclose(value, written.table().loc[names.get(label, label)], atol=1e-4)
    np.testing.assert_allclose(tree.table(), written.table().loc[list(tree.labels)], atol=1e-4)


def test_latent_nodes_are_weighted_means_of_their_neighbours():
    spec, gamma, lam = (
        {"p": ["a", "b"], "q": ["c", "d"]},
        {"a": 1.0, "b": 3.0, "c": 1.0, "d": 1.0},
        {"p": 2.0, "q": 1.0},
    )
    solution = solve(gr.MeanLoss(means(a=0.0, b=1.0, c=4.0, d=9.0)) + gr.Hierarchy(spec, (gamma, lam)))
    w, latent = solution.table()["y"], {label: value[0] for label, value in solution.latent.items()}
    for cluster, nodes in spec.items():
        pulls = sum(gamma[i] * w[i] for i in nodes) + lam[cluster] * latent["root"]
        mass = sum(gamma[i] for i in nodes) + lam[cluster]
        assert latent[cluster] == pytest.approx(pulls / mass, abs=1e-4)
    assert latent["root"] == pytest.approx((2 * latent["p"] + latent["q"]) / 3, abs=1e-4)
    assert solution.labels == ("a", "b", "c", "d")
    assert solution.coef.shape == (4, 1)


def test_the_forms_of_the_hierarchy_agree(rng):
    loss = gr.SquaredLoss(regression(rng))
    spec, gamma, lam = (
        {"p": ["a", "b"], "q": ["c", "d"]},
        {"a": 0.3, "b": 0.9, "c": 0.6, "d": 0.2},
        {"p": 0.5, "q": 2.0},
    )
    alpha = {j: lam[j] / (lam[j] + sum(gamma[i] for i in nodes)) for j, nodes in spec.items()}
    equal(loss + gr.Hierarchy(spec, (gamma, lam)), loss + gr.Hierarchy.from_alpha(spec, alpha=alpha, gamma=gamma))


def test_alpha_1_is_one_cluster_around_the_weighted_mean():
    """sum_i (w_i - a_i)^2 / 2 + gamma_i/2 (w_i - thetabar)^2 with the gamma-weighted mean thetabar of all."""
    a, gamma = {"a": 0.0, "b": 1.0, "c": 4.0, "d": 9.0}, {"a": 1.0, "b": 3.0, "c": 1.0, "d": 2.0}
    spec = {"p": ["a", "b"], "q": ["c", "d"]}
    solution = solve(gr.MeanLoss(means(**a)) + gr.Hierarchy.from_alpha(spec, alpha=1, gamma=gamma))
    single = solve(gr.MeanLoss(means(**a)) + gr.Hierarchy.from_alpha({"all": NODES}, alpha=0.0, gamma=gamma))
    np.testing.assert_allclose(solution.coef, single.coef, atol=1e-4)
    share = {i: gamma[i] / (1 + gamma[i]) for i in a}  # w_i = (a_i + gamma_i t) / (1 + gamma_i), t minimises the rest
    t = sum(share[i] * a[i] for i in a) / sum(share.values())
    by_hand = [(a[i] + gamma[i] * t) / (1 + gamma[i]) for i in a]
    np.testing.assert_allclose(solution.coef[:, 0], by_hand, atol=1e-4)
    assert solution.objective == pytest.approx(sum(share[i] * (a[i] - t) ** 2 / 2 for i in a), rel=1e-6)


def test_alpha_0_is_separate_clusters():
    a, gamma = {"a": 0.0, "b": 1.0, "c": 4.0, "d": 9.0}, {"a": 1.0, "b": 3.0, "c": 1.0, "d": 2.0}
    spec = {"p": ["a", "b"], "q": ["c", "d"]}
    whole = solve(gr.MeanLoss(means(**a)) + gr.Hierarchy.from_alpha(spec, alpha=0, gamma=gamma))
    parts = [
        solve(
            gr.MeanLoss(means(**{i: a[i] for i in nodes}))
            + gr.Hierarchy({j: nodes}, ({i: gamma[i] for i in nodes}, 1e-3))
        )
        for j, nodes in spec.items()
    ]
    np.testing.assert_allclose(whole.coef, np.concatenate([part.coef for part in parts]), atol=1e-4)
    assert whole.objective == pytest.approx(sum(part.objective for part in parts), rel=1e-6)
    assert set(whole.latent) == {"p", "q"}


def test_alpha_near_its_limits_is_near_them():
    a, spec = {"a": 0.0, "b": 1.0, "c": 4.0, "d": 9.0}, {"p": ["a", "b"], "q": ["c", "d"]}

    def coef(alpha):
        return solve(gr.MeanLoss(means(**a)) + gr.Hierarchy.from_alpha(spec, alpha=alpha, gamma=1.0)).coef

    np.testing.assert_allclose(coef(1e-5), coef(0), atol=1e-3)
    np.testing.assert_allclose(coef(1 - 1e-5), coef(1), atol=1e-3)
    assert np.abs(coef(0.5) - coef(0)).max() > 0.1 < np.abs(coef(0.5) - coef(1)).max()
    mixed = coef({"p": 0, "q": 1})  # each cluster by itself: the second alone at the root
    np.testing.assert_allclose(mixed, coef(0), atol=1e-4)


# ---- scales, weights, offsets ----------------------------------------------------------------------------------------
RAGGED = {"a": 2, "b": 6, "c": 3, "d": 4}


def ragged(rng):
    return {label: (rng.normal(size=(m, 2)), rng.normal(size=m)) for label, m in RAGGED.items()}


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("mean", {label: 1 / m for label, m in RAGGED.items()}),
        ("sum", dict.fromkeys(RAGGED, 1.0)),
        (0.3, dict.fromkeys(RAGGED, 0.3)),
        ({"d": 4.0, "a": 1.0, "c": 0.5, "b": 2.0}, {"a": 1.0, "b": 2.0, "c": 0.5, "d": 4.0}),
    ],
    ids=["mean", "sum", "number", "mapping"],
)
def test_scales(rng, scale, factor):
    data = ragged(rng)
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data), scale=scale)
    solution = solve(loss + 0.5 * gr.NodePenalty(gr.SquaredL2()))
    fits = np.array([ridge_fit(X, y, factor[label], 0.5) for label, (X, y) in data.items()])
    np.testing.assert_allclose(solution.coef, fits, atol=1e-4)
    value = sum(
        factor[label] * ((X @ w - y) ** 2).sum() / 2 + 0.25 * (w**2).sum()
        for w, (label, (X, y)) in zip(fits, data.items(), strict=True)
    )
    assert solution.objective == pytest.approx(value, rel=1e-7)


def by_rows(data, repeat=None, **more):
    """The samples of a dict, stacked; each repeated."""
    X, y = (np.concatenate(part) for part in zip(*data.values(), strict=True))
    node = np.repeat(list(data), [len(y) for _, y in data.values()])
    repeat = np.ones(len(y), dtype=int) if repeat is None else repeat
    return gr.NodeData.from_arrays(X.repeat(repeat, axis=0), y.repeat(repeat), node.repeat(repeat), **more)


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss, gr.LogisticLoss])
@pytest.mark.parametrize("scale", ["mean", "sum", 0.3, {"a": 0.5, "b": 0.1, "c": 0.3, "d": 0.2}], ids=str)
def test_sample_weights_are_repeated_rows(rng, loss, scale):
    data = ragged(rng)
    if loss is gr.LogisticLoss:
        data = {label: (X, y > 0) for label, (X, y) in data.items()}
    times = rng.integers(1, 4, size=sum(RAGGED.values()))
    penalty = 0.2 * gr.TotalVariation(CHAIN, gr.L2()) + 0.1 * gr.NodePenalty(gr.SquaredL2())
    weighted, repeated = loss(by_rows(data, weights=times), scale=scale), loss(by_rows(data, times), scale=scale)
    equal(weighted + penalty, repeated + penalty, atol=1e-3)
    assert solve(loss(by_rows(data), scale=scale) + penalty).objective != pytest.approx(
        solve(weighted + penalty).objective
    )


def test_offsets_are_taken_from_the_target(rng):
    data, penalty = ragged(rng), 0.2 * gr.TotalVariation(CHAIN, gr.L2())
    offset = rng.normal(size=sum(RAGGED.values()))
    with_offset = by_rows(data, offset=offset)
    shifted = gr.NodeData.from_arrays(
        with_offset.X, with_offset.y - offset, np.repeat(list(RAGGED), list(RAGGED.values()))
    )
    for loss in (gr.SquaredLoss, gr.HuberLoss):
        equal(loss(with_offset) + penalty, loss(shifted) + penalty)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual()], ids=repr)
def test_the_offset_of_a_logistic_loss_is_a_feature_with_coefficient_1(rng, method):
    """min over w of log(1 + exp(-y (w + o))), against the same function on a fine grid."""
    o, y = np.array([0.3, -1.2, 0.8, 0.1]), np.array([1, 0, 0, 1])
    data = gr.NodeData.from_arrays(np.ones((4, 1)), y, ["a"] * 4, offset=o)
    solution = gr.Problem(gr.LogisticLoss(data, scale="sum")).solve(method)
    grid = np.linspace(-2, 2, 40_001)
    values = np.logaddexp(0, -(2 * y - 1) * (grid[:, None] + o)).sum(axis=1)
    assert solution.objective == pytest.approx(values.min(), rel=1e-6)
    assert solution.coef[0, 0] == pytest.approx(grid[values.argmin()], abs=2e-3)


# ---- means and mixed families ----------------------------------------------------------------------------------------
def test_means_of_several_targets(rng):
    frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["east", "north"]).assign(site=np.repeat(NODES, 3))
    data = gr.NodeData.from_frame(frame, node="site", target=["east", "north"])
    solution = solve(gr.MeanLoss(data))
    np.testing.assert_allclose(solution.table(), frame.groupby("site")[["east", "north"]].mean(), atol=1e-5)
    assert list(solution.table().columns) == ["east", "north"]
    weighted = gr.NodeData.from_frame(
        frame.assign(w=np.arange(1, 13)), node="site", target=["east", "north"], weights="w"
    )
    first = np.average(frame[["east", "north"]][:3], axis=0, weights=[1, 2, 3])
    np.testing.assert_allclose(solve(gr.MeanLoss(weighted)).coef[0], first, atol=1e-5)
    apart = solve(gr.MeanLoss(data) + 0.3 * gr.TotalVariation(CHAIN, gr.L1()))
    for target in ("east", "north"):  # the l1 norm treats the targets one by one
        single = gr.MeanLoss(gr.NodeData.from_frame(frame, node="site", target=target))
        alone = solve(single + 0.3 * gr.TotalVariation(CHAIN, gr.L1()))
        np.testing.assert_allclose(apart.table()[target], alone.table()[target], atol=1e-3)


@pytest.mark.parametrize("method", [gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual()], ids=repr)
def test_different_families_on_disjoint_nodes(rng, method):
    """Without ties each family is solved by itself; tied, the optimum lies between that and the consensus."""
    data = samples(rng)
    squared = gr.SquaredLoss(gr.NodeData.from_dict({"a": data["a"]}))
    huber = gr.HuberLoss(gr.NodeData.from_dict({"c": data["c"]}), delta=0.5)
    logistic = gr.LogisticLoss(gr.NodeData.from_dict({i: (data[i][0], data[i][1] > 1) for i in ("d", "b")}))
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2())
    losses = sum([squared, huber, logistic])
    apart = gr.Problem(losses + ridge).solve(method, gap=1e-8)
    assert apart.labels == ("a", "c", "d", "b")
    alone = [gr.Problem(loss + ridge).solve(gap=1e-9) for loss in (squared, huber, logistic)]
    assert apart.objective == pytest.approx(sum(s.objective for s in alone), rel=1e-6)
    np.testing.assert_allclose(apart.coef, np.concatenate([s.coef for s in alone]), atol=2e-3)
    tied = gr.Problem(losses + 0.2 * gr.TotalVariation(CHAIN, gr.L2()) + ridge).solve(method)
    pooled = gr.Problem(losses + gr.Consensus(CHAIN) + ridge).solve(method)
    assert [s.status for s in (apart, tied, pooled)] == ["certified"] * 3
    assert apart.objective < tied.objective < pooled.objective


def test_the_printed_problem_counts_what_there_is(rng):
    text = str(gr.Problem(gr.SquaredLoss(regression(rng)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2())))
    assert "20 samples at 4 nodes" in text
    assert "3 edges" in text
    assert repr(gr.Problem(gr.SquaredLoss(regression(rng)))) == "<Problem: 4 nodes x 3 coordinates, 1 terms>"
