"""Async-L2GD and Async-AL2SGD+: options and problems that are refused or warned of."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cluster_cases import (
    CASES,
    begin,
    case,
)

import graphreg as gr

BAD = [
    ({"p_global": 1.0}, r"AsyncL2GD\(p_global=...\) must be a number in \[0, 1\), got 1.0"),
    ({"p_global": -0.1}, "p_global"),
    ({"p_global": np.nan}, "p_global"),
    ({"p_cluster": 1.0}, r"AsyncL2GD\(p_cluster=...\) must be a number in \[0, 1\), got 1.0"),
    ({"p_cluster": {"c0": 0.1, "c1": 1.5}}, r"p_cluster=...\) of the cluster 'c1'"),
    ({"tau": 1.1}, r"AsyncL2GD\(tau=...\) must be a number in \[0, 1\], got 1.1"),
    ({"step_size": 0.0}, "step_size"),
    ({"step_size": True}, "step_size"),
    ({"batch": 0}, "batch"),
    ({"batch": 1.5}, "batch"),
    ({"coin": "both"}, r"AsyncL2GD\(coin=...\) must be 'separate' or 'single'"),
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
    with pytest.raises(gr.errors.MethodError, match=rf"AsyncAL2SGD\({next(iter(options))}=...\)"):
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


def test_a_constant_step_that_stays_at_a_distance_names_what_leads_to_the_optimum():
    """It advised more rounds, after which the gap was the same."""
    ridged = gr.Problem(gr.LogisticLoss(DATA) + TREE + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    far = "may stay at a distance, however many rounds there are: "
    constant = ridged.solve(gr.AsyncL2GD(), rounds=50, gap=1e-9, seed=0).message
    assert f"{far}take decreasing=True, or AsyncAL2SGD()." in constant
    assert "allow more" not in constant
    assert "allow more" in ridged.solve(gr.AsyncL2GD(decreasing=True), rounds=50, gap=1e-9, seed=0).message
    flat = gr.Problem(gr.LogisticLoss(DATA) + TREE)  # which decreasing steps do not take
    assert f"{far}a shorter step_size is nearer." in flat.solve(gr.AsyncL2GD(), rounds=50, gap=1e-9, seed=0).message
