"""Inference takes whatever holds a loss at its nodes, and answers in the units of the columns."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg import inference
from graphreg.errors import DataError, GraphError, TermError

OPEN = "the data of the node leave it open"
NODES = ["a", "b", "c", "d"]
PATH = gr.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
RING = nx.cycle_graph(NODES)


def drawn(samples=30, seed=0):
    """Nodes with unlike slopes of a column whose mean and spread are far from 0 and 1."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"node": np.repeat(NODES, samples)})
    frame["price"] = rng.normal(90_000, 12_000, len(frame))
    frame["rooms"] = rng.integers(1, 7, len(frame))
    slope = np.repeat([2e-4, 2e-4, 5e-4, 5e-4], samples)
    frame["days"] = 40 + slope * frame["price"] - 3 * frame["rooms"] + 5 * rng.normal(size=len(frame))
    frame["kind"] = np.where(
        frame["days"] + 20 * rng.normal(size=len(frame)) > 65, "slow", rng.choice(["odd", "even"], len(frame))
    )
    return frame


def read(standardise, target="days", samples=30, by=1.0):
    frame = drawn(samples)
    return gr.NodeData.from_frame(
        frame.assign(price=frame["price"] / by),
        node="node",
        target=target,
        features=["price", "rooms"],
        intercept=True,
        standardise=standardise,
    )


@pytest.fixture(scope="module")
def losses():
    """The same loss of columns as they are, and in standard deviations."""
    return [gr.SquaredLoss(read(standardise), scale="sum") for standardise in (False, True)]


# ---- units -----------------------------------------------------------------------------------------------------------
def same(a, b, rel=1e-6):
    pd.testing.assert_frame_equal(pd.DataFrame(a), pd.DataFrame(b), rtol=rel, atol=1e-12)


def test_local_regions_are_those_of_the_columns_as_they_are(losses):
    raw, scaled = (inference.local_regions(loss)["c"] for loss in losses)
    same(scaled.intervals(), raw.intervals())
    same(scaled.covariance, raw.covariance)
    assert scaled.test({"price": 0}).statistic == pytest.approx(raw.test({"price": 0}).statistic, rel=1e-6)
    here = drawn().query("node == 'c'")
    X = np.column_stack([np.ones(len(here)), here["price"], here["rooms"]])
    own = np.linalg.lstsq(X, here["days"])[0]
    np.testing.assert_allclose(scaled.estimate[["intercept", "price", "rooms"]], own, rtol=1e-6)


@pytest.mark.parametrize("features", [None, ["price"], ["intercept"], ["rooms", "intercept"]])
@pytest.mark.parametrize("covariance", ["chow", "robust"])
def test_edge_tests_are_those_of_the_columns_as_they_are(losses, features, covariance):
    raw, scaled = (inference.edge_tests(loss, PATH, covariance, features=features) for loss in losses)
    same(scaled, raw)
    assert str(scaled).splitlines()[0] == str(raw).splitlines()[0]  # the tested coefficients by name


def test_classes_have_units_too():
    raw, scaled = (gr.MultinomialLoss(read(each, "kind", 200, 1e4)) for each in (False, True))
    ridge = 1e-6 * gr.NodePenalty(gr.SquaredL2(), features=["intercept", "price", "rooms"])
    for features in (["price"], ["intercept"]):
        one, other = (inference.edge_tests(loss + ridge, PATH, "robust", features=features) for loss in (raw, scaled))
        np.testing.assert_allclose(other["statistic"], one["statistic"], rtol=0.02)
        np.testing.assert_allclose(other["separation"], one["separation"], rtol=0.02)


def test_a_region_of_a_run_and_mixed_models_are_in_the_units_of_tables(losses):
    problem = gr.Problem(losses[1] + gr.Consensus(PATH))
    step = gr.DecreasingStep(D=0.02, gamma=20.0)
    method = gr.ExactDiffusion(step, batch=5, replacement=True, hessian_samples=300)
    region = inference.estimate(problem, 400, method, seed=0)
    shared = problem.solve().table().loc["a"]
    assert (abs(region.estimate - shared) < 4 * region.std_error).all()
    assert region.std_error["price"] < 1e-3

    tree = inference.hierarchical(losses[1])
    answer = gr.Problem(tree.model).solve(gap=1e-10)
    same(tree.table(), answer.table(), 1e-4)
    rows = tree.intervals().set_index(["label", "feature"])["estimate"]
    np.testing.assert_allclose(rows["b"], tree.table().loc["b"])
    assert tree.fixed().loc["price", "std_error"] < 1e-2
    assert any("standard deviations of the columns" in each for each in tree.assumed)
    np.testing.assert_allclose(tree.effects().loc["a"], tree.table().loc["a"] - tree.fixed()["estimate"], rtol=1e-6)
    slopes = inference.hierarchical(losses[1], random=["price"]).effects()
    assert list(slopes.columns) == ["intercept", "price"]  # the intercept is where the price is 0
    compared = inference.compare_estimators(losses[1])
    same(compared.coef["local"], gr.Problem(losses[1]).solve(gap=1e-12).table(), 1e-4)
    shrunken = inference.james_stein(losses[1]).table().drop(columns="shrinkage")
    same(compared.coef["James-Stein"], shrunken)


def test_the_intercepts_variance_is_that_of_its_combination(losses):
    """By hand: Var(b - c w / s) of one centred column and the intercept."""
    space = gr.Problem(losses[1]).form.space
    units = space.units
    V = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
    slopes = -np.array([units.center[name] / units.scale[name] for name in ("price", "rooms")])
    order = [space.names.index(name) for name in ("intercept", "price", "rooms")]
    at = np.ix_(order, order)
    own = np.empty((3, 3))
    own[at] = V
    row = np.array([1.0, *slopes])
    assert space.covariance_in_units(own)[order[0], order[0]] == pytest.approx(row @ V @ row)


# ---- what is taken ---------------------------------------------------------------------------------------------------
def test_a_loss_a_problem_a_fit_and_a_solution_are_taken(losses):
    loss = losses[1]
    problem = gr.Problem(loss + 50.0 * gr.TotalVariation(PATH, gr.L2()))
    solution = problem.solve()
    expected = inference.edge_tests(loss, PATH)
    for given in (problem, problem.model, solution):
        same(inference.edge_tests(given), expected)
        selection = inference.select_edges(given)
        assert selection.removed == [("b", "c")]
        assert selection.components() == [["a", "b"], ["c", "d"]]
        assert isinstance(selection.graph, gr.Graph)
        assert selection.graph.labels == PATH.labels
        same(inference.edge_tests(given, RING), inference.edge_tests(loss, RING))
        same(inference.local_regions(given)["a"].intervals(), inference.local_regions(loss)["a"].intervals())
    for given in (problem, solution):
        same(inference.hierarchical(given).table(), inference.hierarchical(loss).table())
    fit = gr.fit(drawn()[["node", "price", "rooms", "days"]], PATH, target="days", node="node", folds=3, strengths=[1])
    same(inference.edge_tests(fit), inference.edge_tests(fit.problem, fit.graph))
    own = inference.local_regions(fit)["a"].intervals()
    same(own, inference.local_regions(losses[0])["a"].intervals(), 1e-2)  # but for the small ridge of a fit
    same(inference.james_stein(fit).table(), inference.james_stein(loss).table())


def test_weights_and_nodes_without_edges_stay_in_the_graph_of_a_problem(losses):
    graph = gr.Graph(NODES, [0, 1], [1, 2], [2.0, 3.0])
    problem = gr.Problem(losses[0] + gr.TotalVariation(graph, gr.L2()))
    found = inference.select_edges(problem).graph
    assert found.labels == graph.labels
    assert found.weight.tolist() == [2.0]


def test_a_hierarchy_is_no_graph(losses):
    clusters = {"north": ["a", "b"], "south": ["c", "d"]}
    problem = gr.Problem(losses[0] + gr.Hierarchy(clusters, [1.0, 1.0]))
    assert len(inference.edge_tests(problem)) == 6


def test_what_has_no_answer_names_the_terms(losses):
    two = losses[0] + gr.TotalVariation(PATH, gr.L2()) + gr.TotalVariation(RING, gr.L1())
    with pytest.raises(GraphError, match=r"several graphs, of .*L2.*L1.*graph=\.\.\."):
        inference.edge_tests(gr.Problem(two))
    with pytest.raises(GraphError, match="the graph names 'z'"):
        inference.edge_tests(gr.Problem(losses[0]), gr.Graph.from_edges([("a", "z")]))
    rows = losses[0] + gr.SquaredLoss(gr.w.at(["a", "b"]), 1.0)
    with pytest.raises(TermError, match=r"losses at the nodes and no others; there are .*SquaredLoss"):
        inference.edge_tests(gr.Problem(rows), PATH)


def test_columns_that_nearly_agree_beside_a_small_ridge_have_no_negative_variance():
    """A fit of columns of 1e-9 and 1e12, two of them the same but for 1e-10, and targets far from 0."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"node": rng.choice(NODES, 120), "tiny": 1e-9 * rng.normal(size=120)})
    frame["huge"], frame["a"] = 1e12 * rng.normal(size=120), rng.normal(size=120)
    frame["b"] = frame["a"] + 1e-10 * rng.normal(size=120)
    frame["y"] = 1e6 + 1e9 * frame["tiny"] + frame["a"] + 0.1 * rng.normal(size=120)
    data = gr.NodeData.from_frame(
        frame, node="node", target="y", features=["tiny", "huge", "a", "b"], intercept=True, standardise=True
    )
    problem = gr.Problem(gr.SquaredLoss(data, scale="sum") + 1e-3 * gr.NodePenalty(gr.SquaredL2()))
    for region in inference.local_regions(problem).values():
        assert (region.std_error > 0).all()


def test_coefficients_that_others_make_up_have_no_interval():
    """A column twice, and categories of a node without the base one: the sum is determined, and none of them alone."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"site": np.repeat(list("ab"), 24), "x": rng.normal(size=48), "u": rng.normal(size=48)})
    rows["twice"] = 2 * rows["x"]
    rows["kind"] = np.tile(["corner", "kiosk", "super"], 16)
    rows.loc[(rows["site"] == "b") & (rows["kind"] == "corner"), "kind"] = "super"
    rows["y"] = rows["x"] + rows["u"] + rng.normal(size=48)
    fit = gr.fit(rows, [("a", "b")], target="y", node="site", folds=2, strengths=[0.1])
    regions = inference.local_regions(fit)
    assert list(regions["a"].intervals().index) == ["intercept", "u", "kind[kiosk]", "kind[super]"]
    assert list(regions["b"].intervals().index) == ["u"]
    assert set(regions.reasons.values()) == {OPEN}
    assert len(regions.reasons) + len(regions.table()) == fit.table().size


def test_the_open_coefficients_are_those_in_the_units_of_the_user():
    """y = 3 + 2 C is 3 - 2 (32/1.8) + (2/1.8) F as well, so that no intercept is told."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"site": np.repeat(list("ab"), 20), "celsius": rng.normal(15, 5, 40), "u": rng.normal(size=40)})
    rows["fahrenheit"] = 1.8 * rows["celsius"] + 32
    rows["y"] = 3 + 2 * rows["celsius"] + rows["u"] + rng.normal(size=40)
    fit = gr.fit(rows, [("a", "b")], target="y", node="site", folds=2, strengths=[0.1])
    regions = inference.local_regions(fit)
    assert [list(region.names) for region in regions.values()] == [["u"], ["u"]]


def test_intervals_of_all_nodes_leave_out_what_penalties_decide_there():
    """A feature that is the same in all rows of a node has no standard error, least of all one of 0."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"site": np.repeat(list("abc"), 12), "x": rng.normal(size=36)})
    rows["soil"] = np.where(rows["site"] == "a", "clay", np.where(rng.random(36) < 0.5, "clay", "loam"))
    rows["y"] = rows["x"] + rng.normal(size=36)
    fit = gr.fit(rows, [("a", "b"), ("b", "c"), ("c", "d")], target="y", node="site", folds=2, strengths=[0.1])
    regions = inference.local_regions(fit)
    table = regions.table(0.9)
    assert table.index.tolist() == [
        *(("a", name) for name in ("intercept", "x")),
        *((node, name) for node in "bc" for name in ("intercept", "x", "soil[loam]")),
    ]
    assert regions["a"].assumed[-1] == f"soil[loam] left out: {OPEN}"
    np.testing.assert_array_equal(table.loc["b"].to_numpy(), regions["b"].intervals(0.9).to_numpy())
    assert "samples of each node" in str(table)
    assert "12 samples" not in str(table)
    assert table.verdict == f"no intervals of soil[loam] of 'a': {OPEN}"
    empty = {("d", name): "the node has no samples" for name in ("intercept", "x", "soil[loam]")}
    assert regions.reasons == {("a", "soil[loam]"): OPEN, **empty}
    assert len(table) + len(regions.reasons) == fit.table().size  # each coefficient has an interval or a reason


def test_a_node_that_penalties_alone_decide_is_left_out_with_the_reason():
    x = np.repeat([1.0, 2.0, 0.0], 6)[:, None] * np.tile([1.0, -1.0], 9)[:, None]
    data = gr.NodeData.from_arrays(x, x[:, 0] + np.tile([0.1, 0.0, -0.2], 6), np.repeat(list("abc"), 6))
    regions = inference.local_regions(gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.NodePenalty(gr.SquaredL2())))
    assert list(regions) == ["a", "b"]
    why = "the data of the node 'c' leave x0 open: columns are collinear there, or 0"
    assert regions.left_out["c"].startswith(why)
    assert list(regions.reasons) == [("c", "x0")]
    with pytest.raises(DataError, match=why):
        regions["c"]
    alone = gr.NodeData.from_arrays(np.zeros((4, 1)), np.arange(4.0), list("acac"))
    with pytest.raises(DataError, match="no node has a region: the data of the node 'a' leave x0 open"):
        inference.local_regions(gr.Problem(gr.SquaredLoss(alone) + 0.1 * gr.NodePenalty(gr.SquaredL2())))


def test_an_intercept_that_the_data_lack_is_asked_for():
    data = gr.NodeData.from_arrays(np.arange(8.0)[:, None], np.arange(8.0) % 3, [0, 0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(TermError, match="unknown feature 'intercept'; there are x0; read the data with intercept=True"):
        inference.hierarchical(data, random=["intercept"])
