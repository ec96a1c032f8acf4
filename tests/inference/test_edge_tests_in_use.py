"""Edge tests: of the size they claim, what they select, and clear about what they cannot test."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphreg as gr
from benchmarks.statistics.edge_tests import pairs, rejections
from graphreg.errors import DataError, GraphError, GraphregError, MethodError, MethodWarning, TermError
from graphreg.inference import edge_tests, edges, local_regions, select_edges
from graphreg.inference.local import local_fits

TRIANGLE = gr.Graph.from_edges([(0, 1), (1, 2), (0, 2)])


# ---- sizes, with fixed seeds; the study has the long version ---------------------------------------------------------
NOISES = ["normal, sd 2", "sd |x_1|", "sd exp(x_1 / 2)", "sd ||x||^2 / p", "sd 1 and 3 at the ends"]


@pytest.mark.parametrize("noise", NOISES)
def test_auto_holds_its_size(noise):
    loss, graph = pairs(noise, 60, 5, 600, seed=5)
    assert rejections(loss, graph, "auto")[0] <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 600)


def test_the_printed_covariance_is_right_for_unit_noise_only():
    found = {sd: rejections(*pairs(f"normal, sd {sd}", 60, 5, 300), "model")[0] for sd in ("0.5", "1", "2")}
    assert found["0.5"] == 0.0
    assert 0.02 < found["1"] < 0.09
    assert found["2"] > 0.7


def test_false_edges_are_found():
    loss, graph = pairs("normal, sd 1", 60, 5, 300, distance=1.0)
    found = {kind: rejections(loss, graph, kind)[0] for kind in ("auto", "chow", "robust")}
    assert found["chow"] > 0.9
    assert found["auto"] > found["chow"] - 0.03
    assert found["robust"] > found["chow"] - 0.08


# ---- selection -------------------------------------------------------------------------------------------------------
def two_groups():
    rng = np.random.default_rng(0)
    labels = ["a1", "a2", "a3", "b1", "b2"]
    data = {}
    for label in labels:
        X = rng.normal(size=(40, 3))
        data[label] = (X, X @ ([1.0, 0, 0] if label[0] == "a" else [0, 2.0, 0]) + 0.5 * rng.normal(size=40))
    return gr.SquaredLoss(gr.NodeData.from_dict(data))


def test_the_reduced_graph_is_of_the_given_type():
    loss, given = two_groups(), nx.complete_graph(["a1", "a2", "a3", "b1", "b2", "empty"])
    given.remove_edge("a1", "a3")
    nx.set_node_attributes(given, 3, "size")
    nx.set_edge_attributes(given, {edge: k + 1.0 for k, edge in enumerate(given.edges)}, "weight")
    found = select_edges(loss, given)
    inside = [(a, b) for a, b in given.edges if a[0] == b[0] or "empty" in (a, b)]
    assert list(found.graph.edges) == inside
    assert found.graph.nodes["a1"]["size"] == 3
    assert all(found.graph.edges[edge] == given.edges[edge] for edge in inside)
    assert given.number_of_edges() == len(found.tests)  # the given one is as it was
    assert sorted(found.removed) == sorted(edge for edge in given.edges if edge not in inside)
    for other in (gr.Graph.of(given), nx.to_scipy_sparse_array(given)):
        named = other if isinstance(other, gr.Graph) else gr.Graph.from_sparse(other, given.nodes)
        again = select_edges(loss, named).graph
        assert isinstance(again, gr.Graph)
        assert again.edges() == inside
        assert again.weight.tolist() == [given.edges[edge]["weight"] for edge in inside]
        assert again.labels == tuple(given.nodes)
    gr.Problem(loss + 0.1 * gr.TotalVariation(found.graph, gr.L2())).solve()


def test_adjacency_matrices_and_all_pairs():
    loss = two_groups()
    numbered = gr.NodeData.from_dict(
        {i: (loss.data.X[loss.data.node == i], loss.data.y[loss.data.node == i]) for i in range(5)}
    )
    full = sparse.csr_array(np.ones((5, 5)) - np.eye(5))
    found = select_edges(gr.SquaredLoss(numbered), full)
    assert found.components() == [[0, 1, 2], [3, 4]]
    pairwise = select_edges(loss)
    assert len(pairwise.tests) == 10
    assert pairwise.components() == [["a1", "a2", "a3"], ["b1", "b2"]]
    assert "all pairs" in str(pairwise.tests)
    text = str(pairwise)
    assert "4 of 10 edges kept, 6 removed" in text
    assert "2 components of sizes 3, 2" in text
    assert "merges" in text
    assert repr(pairwise) == "<EdgeSelection: 4 of 10 edges kept>"


def test_what_the_tests_say_stands_above_the_table():
    all_pairs = select_edges(two_groups())
    said = "At 6 of the 10 tested edges the two nodes differ, at the level 5% after Bonferroni's correction. "
    said += "The samples do not tell the ends of the other 4 apart."
    assert said in str(all_pairs)
    assert said in " ".join(str(all_pairs.tests).split())
    assert said.replace("'", "&#x27;") in all_pairs._repr_html_()
    assert said.replace("'", "&#x27;") in all_pairs.tests._repr_html_()
    alone = gr.Graph.from_edges([("a1", "a2")], nodes=["a1", "a2", "a3", "b1", "b2"])
    none = edge_tests(two_groups(), alone, alpha=0.001, correction="none")
    assert none.verdict.startswith(
        "At the one tested edge the two nodes do not differ, at the level 0.1% without a corr"
    )
    pair = gr.Graph.from_edges([("a1", "a2"), ("a2", "a3")], nodes=alone.labels)
    several = edge_tests(two_groups(), pair, correction="bh")
    assert several.verdict.startswith(
        "At none of the 2 tested edges do the two nodes differ, at the level 5% after the"
    )
    assert several.verdict.endswith("That does not prove them equal.")


def test_the_picture_shows_what_was_kept():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from graphreg.plots import plot_selection

    selection = select_edges(two_groups())
    axes = plot_selection(selection)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["kept (4)", "removed (6)"]
    assert "5 nodes in 2 components" in axes.get_title()
    assert sum(len(each.get_segments()) for each in axes.collections if hasattr(each, "get_segments")) == 10
    with pytest.raises(GraphregError, match="no entry for the node 'a2'"):
        plot_selection(selection, {"a1": (0.0, 0.0)})
    matplotlib.pyplot.close("all")


# ---- what cannot be tested -------------------------------------------------------------------------------------------
def test_nodes_without_data_keep_their_edges():
    loss, graph = two_groups(), nx.path_graph(["a1", "b1", "empty", "a2"])
    with pytest.raises(DataError, match="'a3'"):
        edge_tests(loss, graph)
    graph.add_nodes_from(["a3", "b2"])
    tests = edge_tests(loss, graph)
    assert tests["p_value"].isna().tolist() == [False, True, True]
    assert tests["keep"].tolist() == [False, True, True]
    assert tests["adjusted"][0] == tests["p_value"][0]  # one test, not three
    assert "2 edges not tested, kept: the node 'empty' has no data" in str(tests)


SAMPLES = {
    "chow": (3, "no residual"),
    "robust": (3, "leverage is 1"),
    "HC1": (3, "no residual"),
    "model": (2, "2 samples"),
}


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_node_with_too_few_samples_leaves_the_other_edges_their_tests(kind):
    m, why = SAMPLES[kind]
    data = two_groups().data
    samples = {label: (data.X[data.node == i], data.y[data.node == i]) for i, label in enumerate(data.labels)}
    pairs_of = nx.cycle_graph(["a1", "a2", "a3", "b1"])
    samples.pop("b2")
    three = {label: each for label, each in samples.items() if label != "b1"}
    whole = edge_tests(gr.SquaredLoss(gr.NodeData.from_dict(three)), nx.path_graph(list(three)), kind)
    samples["b1"] = tuple(part[:m] for part in samples["b1"])
    tests = edge_tests(gr.SquaredLoss(gr.NodeData.from_dict(samples)), pairs_of, kind)
    left = tests["untested"] == ""
    assert left.tolist() == [True, False, True, False]
    assert tests["untested"][1] == tests["untested"][3]
    assert why in tests["untested"][1]
    assert "'b1'" in tests["untested"][1]
    assert tests["keep"][~left].all()
    assert tests["p_value"][~left].isna().all()
    pd.testing.assert_frame_equal(pd.DataFrame(tests[left]).reset_index(drop=True), pd.DataFrame(whole))
    assert f"2 edges not tested, kept: {tests['untested'][1]}" in " ".join(str(tests).split())
    assert "of the 2 tested edges" in tests.verdict
    assert str(tests).splitlines()[0].endswith("removed, 2 not tested")


def test_a_separable_node_leaves_the_other_edges_their_tests():
    rng = np.random.default_rng(0)
    samples = {k: (rng.normal(size=(60, 2)), rng.integers(0, 2, 60)) for k in range(4)}
    samples[2] = (samples[2][0], samples[2][0][:, 0] > 0)
    selection = select_edges(gr.LogisticLoss(gr.NodeData.from_dict(samples)), nx.cycle_graph(4))
    reasons = selection.tests.set_index(["tail", "head"])["untested"]
    assert reasons[[(0, 1), (0, 3)]].tolist() == ["", ""]
    assert all("the local fit of the node 2 runs to infinity" in why for why in reasons[[(1, 2), (2, 3)]])
    assert "2 edges not tested, kept: the local fit of the node 2 runs to infinity" in " ".join(str(selection).split())


def test_a_column_that_is_constant_in_some_nodes_tells_no_equal_nodes_apart():
    """The ridge of a fit decides there what the intercept and the column have in common."""
    rng, sites = np.random.default_rng(3), [f"n{i}" for i in range(8)]
    rows = pd.DataFrame({"s": np.repeat(sites, 30), "x": rng.normal(size=240)})
    rows["k"] = np.where(rows["s"] < "n4", 3.0, rng.normal(size=240))
    rows["v"] = rows["x"] + 2 * rows["k"] + rng.normal(size=240)
    fit = gr.fit(rows, nx.cycle_graph(sites), target="v", node="s", folds=2, strengths=[0.1])
    tests = edge_tests(fit).set_index(["tail", "head"])
    assert tests["keep"].all()
    regular = tests["untested"] == ""
    assert list(tests.index[regular]) == [("n4", "n5"), ("n5", "n6"), ("n6", "n7")]
    why = tests["untested"]["n3", "n4"]
    assert why.startswith("the data of the node 'n3' leave intercept, k open: columns are collinear there")
    assert why.endswith("; test others with features=")
    assert (edge_tests(fit, features=["x"])["untested"] == "").all()
    alone = gr.Graph.from_edges([*tests.index[regular]])
    pd.testing.assert_frame_equal(
        pd.DataFrame(edge_tests(fit, alone).drop(columns=["tail", "head"])),
        pd.DataFrame(tests[regular].reset_index(drop=True)),
    )


UNBOUNDED = {  # the loss, targets, and those of a node that a ridge alone makes finite
    "separable": (gr.LogisticLoss, lambda X, u: u > 0.5, lambda X, u: X[:, 0] > 0),
    "one class": (gr.LogisticLoss, lambda X, u: u > 0.5, lambda X, u: u > -1),
    "counts of 0": (gr.PoissonLoss, lambda X, u: np.floor(4 * u), lambda X, u: 0.0 * u),
    "a class that is absent": (gr.MultinomialLoss, lambda X, u: np.floor(3 * u), lambda X, u: np.floor(2 * u)),
}


@pytest.mark.parametrize("twice", [False, True], ids=["", "a column twice"])
@pytest.mark.parametrize("case", UNBOUNDED)
def test_what_a_ridge_alone_makes_finite_has_no_tests_and_no_intervals(case, twice):
    loss, regular, without_end = UNBOUNDED[case]
    rng, samples = np.random.default_rng(2), {}
    for label in "abcd":
        X = np.column_stack([np.ones(90), rng.normal(size=(90, 2))])
        u = rng.random(90)
        samples[label] = (X, (without_end if label == "b" else regular)(X[:, 1:], u))
    rest = {label: each for label, each in samples.items() if label != "b"}
    if twice:
        samples["b"][0][:, 2] = samples["b"][0][:, 0]
    ridge = 1e-2 * gr.NodePenalty(gr.SquaredL2())
    model, graph = loss(gr.NodeData.from_dict(samples)) + ridge, nx.path_graph("abcd")
    tests = edge_tests(model, graph)
    assert (tests["untested"] == "").tolist() == [False, False, True]
    assert tests["untested"][0] == tests["untested"][1]
    why = "the data of the node 'b' leave it open (its classes are separable by the features, or its counts are all 0)"
    assert tests["untested"][0].startswith(f"{why}, and node penalties decide")
    regions = local_regions(model)
    assert list(regions) == ["a", "c", "d"]
    assert regions.left_out == {"b": tests["untested"][0]}
    assert "ridge" not in str(regions.left_out)
    assert select_edges(model, graph).removed == []
    alone = loss(gr.NodeData.from_dict(rest)) + ridge
    np.testing.assert_allclose(local_regions(alone).table(), regions.table(), rtol=1e-6)
    found = edge_tests(alone, nx.path_graph("acd"))["statistic"][1]
    np.testing.assert_allclose(found, tests["statistic"][2], rtol=1e-6)


def test_as_many_samples_as_coefficients_have_no_errors_by_a_ridge():
    loss, graph = pairs("normal, sd 1", 3, 3, 2)
    model = loss + 1e-3 * gr.NodePenalty(gr.SquaredL2())
    with pytest.warns(MethodWarning), pytest.raises(DataError, match="no residual degrees of freedom"):
        edge_tests(model, graph, "HC0")
    with pytest.raises(DataError, match="no residual degrees of freedom"):
        local_regions(model, "HC0")


def test_many_nodes_that_cannot_be_fitted_are_found_at_once(monkeypatch):
    """Each fit names all nodes that stop it: one that looked for them singly would fit as often as there are such."""
    rng, fits = np.random.default_rng(0), []
    samples = {k: (rng.normal(size=(40, 2)), rng.integers(0, 2, 40)) for k in range(24)}
    for k in range(0, 24, 2):
        samples[k] = (samples[k][0], samples[k][0][:, 0] > 0) if k % 4 else tuple(part[:1] for part in samples[k])
    graph = nx.circulant_graph(24, [1, 2])
    monkeypatch.setattr(edges, "data_fits", lambda form: fits.append(form) or local_fits(form))
    tests = edge_tests(gr.LogisticLoss(gr.NodeData.from_dict(samples)), graph)
    assert ((tests["untested"] == "") == (tests["tail"] % 2 * tests["head"] % 2 == 1)).all()
    assert 1 <= len(fits) <= 4
    assert "more reasons why edges are not tested" in " ".join(str(tests).split())


def test_bad_arguments_are_named():
    loss = two_groups()
    graph = nx.Graph([("a1", "a2")])
    graph.add_nodes_from(["a3", "b1", "b2", "c", "d"])
    cases = [
        (MethodError, "covariance must be one of 'auto'.*'HC9'", {"covariance": "HC9"}),
        (MethodError, "correction must be .*'holm'", {"correction": "holm"}),
        (MethodError, "alpha must be .* got 5", {"alpha": 5}),
        (MethodError, "alpha must be .* got 0", {"alpha": 0}),
        (TermError, "unknown feature 'tmp'", {"features": ["tmp"]}),
    ]
    for kind, message, options in cases:
        with pytest.raises(kind, match=message):
            edge_tests(loss, graph, **options)
    graph.remove_edge("a1", "a2")
    with pytest.raises(GraphError, match="no edges to test"):
        edge_tests(loss, graph)
    graph.add_edge("c", "d")
    with pytest.raises(DataError, match=r"no edge can be tested; the edge 'c' - 'd'.*'c' has no data"):
        edge_tests(loss, graph)
    with pytest.raises(DataError, match="one node, 'a'"):
        edge_tests(gr.SquaredLoss(gr.NodeData.from_dict({"a": (np.eye(2), [0.0, 1.0])})))
    with pytest.raises(MethodError, match="without a node penalty"):
        edge_tests(loss + gr.NodePenalty(gr.SquaredL2()), covariance="chow")
    with pytest.raises(MethodError, match=r"NodePenalty\(L1\) is not smooth"):
        edge_tests(loss + gr.NodePenalty(gr.L1()))


def test_nodes_that_are_fitted_without_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 30, 2))
    y = X @ [0.1, 0.3]
    y[2] += rng.normal(size=30)
    loss = gr.SquaredLoss(gr.NodeData.from_dict({k: (X[k], y[k]) for k in range(3)}))
    for kind in ("auto", "chow", "robust", "HC0"):
        with pytest.raises(DataError, match="edge 0 - 1 cannot be tested: both nodes are fitted without error"):
            edge_tests(loss, gr.Graph.from_edges([(0, 1)], nodes=[0, 1, 2]), covariance=kind)
        assert edge_tests(loss, TRIANGLE, covariance=kind)["untested"].astype(bool).tolist() == [True, False, False]
        tests = edge_tests(loss, gr.Graph.from_edges([(2, 0), (1, 2)]), covariance=kind)
        assert (tests["covariance"] == ("robust" if kind == "auto" else kind)).all()
        assert tests["keep"].all()
    assert edge_tests(loss, TRIANGLE, covariance="model")["p_value"][0] > 0.999


def test_few_samples_are_warned_of_once():
    loss, graph = pairs("normal, sd 1", 19, 4, 3)
    with pytest.warns(MethodWarning, match="node 0 has 19 samples for 4 coefficients .and 5 more") as caught:
        edge_tests(loss, graph)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edge_tests(*pairs("normal, sd 1", 20, 4, 3))


def test_more_coefficients_than_samples():
    """With a ridge the estimates exist, but the data decide none of them."""
    loss, graph = pairs("normal, sd 1", 12, 20, 5)
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2())
    for model in (loss, loss + ridge):
        with pytest.raises(
            DataError, match=r"0 - 1 cannot .* leave x0, .* and 10 more open: it has 12 samples for 20 c"
        ):
            edge_tests(model, graph, features=["x0", "x1"])
    with pytest.warns(MethodWarning):
        tests = edge_tests(pairs("normal, sd 1", 22, 20, 5)[0] + ridge, graph, features=["x0", "x1"])
    assert "biased by the node penalty" in str(tests)
    assert tests["p_value"].between(0, 1).all()


def test_too_few_samples_for_the_robust_test_are_said():
    loss, graph = pairs("sd 1 and 3 at the ends", 22, 20, 3)
    with pytest.warns(MethodWarning):
        tests = edge_tests(loss, graph, covariance="robust")
    void = tests["residual_df"] <= 0
    assert void.any()
    assert (tests["p_value"][void] == 1.0).all()
    assert np.isinf(tests["separation"][void]).all()
    assert "too few samples for the robust test" in str(tests)


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::graphreg.errors.MethodWarning")
def test_few_degrees_of_freedom_overflow_without_warnings_of_numpy():
    assert edge_tests(*pairs("sd |x_1|", 8, 6, 10), covariance="robust")["keep"].any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [1e80, 1e120, 1e160])
def test_numbers_of_any_size_are_tested_or_refused_without_warnings_of_numpy(size):
    """Fourth powers of residuals overflow at the first two; at the last squares do."""
    rng = np.random.default_rng(0)
    samples = {k: (rng.normal(size=(12, 2)), size * rng.normal(size=12)) for k in range(3)}
    with pytest.raises(DataError, match="its square overflows") if size == 1e160 else nullcontext():
        assert gr.inference.edge_tests(gr.SquaredLoss(gr.NodeData.from_dict(samples)), nx.path_graph(3))["keep"].all()
