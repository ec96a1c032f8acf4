"""Hierarchies as models: trees of clusters, and the form with alpha that agrees with them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from model_cases import NODES, equal, means, regression, solve

import graphreg as gr


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


def test_clusters_with_the_labels_of_nodes_have_names_in_words():
    """Numbered nodes in numbered clusters; the answer is that of clusters called otherwise."""
    data = gr.NodeData.from_dict({k: (np.eye(2), [0.0, k]) for k in range(4)})
    loss, weights = gr.SquaredLoss(data), ({0: 1.0, 1: 2.0, 2: 0.5, 3: 1.5}, {0: 0.4, 7: 0.8})
    numbered = solve(loss + gr.Hierarchy({0: 0, 1: 0, 2: 7, 3: 7}, weights))
    lettered = solve(loss + gr.Hierarchy({0: "p", 1: "p", 2: "q", 3: "q"}, (weights[0], {"p": 0.4, "q": 0.8})))
    assert list(numbered.latent) == ["cluster 0", "cluster 7", "root"]  # alike, though no node is called 7
    for ours, theirs in zip(numbered.latent.values(), lettered.latent.values(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(numbered.flows[0, "cluster 0"], lettered.flows[0, "p"], atol=1e-6)
    apart = solve(loss + gr.Hierarchy({0: 8, 1: 8, 2: 9, 3: 9}, (1.0, 1.0)))
    assert list(apart.latent) == [8, 9, "root"]
    with_alpha = gr.Hierarchy.from_alpha({0: 0, 1: 0, 2: 7, 3: 7}, alpha={0: 0.5, 7: 1.0}, gamma=1.0)
    assert list(solve(loss + with_alpha).latent) == ["cluster 0", "cluster 7", "root"]
    twice = gr.Hierarchy({0: 0, 1: 0, 2: 1, 3: 1}, (1.0, 1.0)) + gr.Hierarchy({0: 0, 2: 0, 1: 1, 3: 1}, (1.0, 1.0))
    names = ["cluster 0", "cluster 1", "root", "cluster 0 (2)", "cluster 1 (2)", "root (2)"]
    assert list(solve(loss + twice).latent) == names


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
