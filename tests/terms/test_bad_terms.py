"""Mistakes in terms and their sums: each has an error of its own, which names the guilty part and what to do."""

from __future__ import annotations

from decimal import Decimal

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from bad_input import (
    CHAIN,
    CLUSTERS,
    FRAME,
    FUSION,
    LOSS,
    NODES,
    NUMBERED,
    QUOTED,
    RIDGE,
    penalised,
    problem,
    read,
    refusals,
    refused,
    with_weight,
)

import graphreg as gr
from graphreg.errors import ConvexityError, DataError, GraphError, TermError

# ---- strengths and sums ----------------------------------------------------------------------------------------------
BAD_NUMBERS = [0, -1, np.nan, np.inf, True, np.True_, "0.1", None, Decimal("0.1"), 1j, [0.1], np.array([0.1, 0.2])]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
def test_strengths(value):
    shown = repr(value) if not isinstance(value, (int, float)) or value is True else repr(float(value))
    for build in (lambda: value * FUSION, lambda: FUSION * value, lambda: value * (LOSS + FUSION)):
        refused(build, TermError, "a strength must be", shown)
    refused(lambda: gr.Parameter(value, name="lam"), TermError, "parameter 'lam'", shown)


def test_a_parameter_keeps_its_value_when_another_is_refused():
    strength = gr.Parameter(2.0, name="lam")
    with pytest.raises(TermError, match=r"'lam'.*positive.*-3"):
        strength.value = -3
    assert strength.value == 2.0


@pytest.mark.parametrize("value", [np.float64(2), np.float32(2), np.int64(2), 2, gr.Parameter(2)], ids=repr)
def test_numbers_of_every_kind_are_strengths(value):
    for model in (value * FUSION, FUSION * value):
        assert float(model.terms[0][0]) == 2.0


@refusals(
    {
        "two parameters": (
            lambda: gr.Parameter(1, "lam") * gr.Parameter(2, "mu") * FUSION,
            TermError,
            "product of the parameters 'lam' and 'mu'",
            "at most one",
        ),
        "two parameters, nested": (
            lambda: gr.Parameter(1, "lam") * (0.5 * (gr.Parameter(2, "mu") * FUSION)),
            TermError,
            "'lam' and 'mu'",
        ),
        "parameters in a hierarchy": (
            lambda: problem(gr.Parameter(1, "lam") * gr.Hierarchy(CLUSTERS, (gr.Parameter(2, "mu"), 1))),
            TermError,
            "'lam' and 'mu'",
        ),
        "two terms": (lambda: LOSS * FUSION, TermError, "two terms were multiplied", "sum of terms"),
        "sum times term": (lambda: (LOSS + FUSION) * FUSION, TermError, "two terms were multiplied"),
        "minus": (lambda: LOSS - FUSION, TermError, "subtracted", "positive strengths"),
        "minus in a sum": (lambda: (LOSS + FUSION) - RIDGE, TermError, "subtracted"),
        "negated": (lambda: -FUSION, TermError, "negated"),
        "one minus": (lambda: 1 - FUSION, TermError, "subtracted"),
        "one minus sum": (lambda: 1 - (LOSS + FUSION), TermError, "subtracted"),
        "division": (lambda: FUSION / 0, TermError, "divisor", "positive"),
        "division by text": (lambda: (LOSS + FUSION) / "2", TermError, "divisor", "'2'"),
        "number": (lambda: LOSS + 1, TermError, "sum of terms", "got 1"),
        "number first": (lambda: 1 + LOSS, TermError, "sum of terms", "got 1"),
        "graph": (lambda: LOSS + CHAIN, TermError, "sum of terms", "Graph"),
        "class": (lambda: LOSS + gr.NodePenalty, TermError, "write NodePenalty(...)"),
        "penalty": (lambda: LOSS + gr.L2(), TermError, "L2"),
        "scaled penalty": (lambda: 0.1 * gr.L2(), TermError, "L2 is a penalty", "TotalVariation"),
        "numpy times penalty": (lambda: np.float64(0.1) * gr.L1(), TermError, "L1 is a penalty"),
        "penalties": (lambda: gr.L2() + gr.L1(), TermError, "L2 is a penalty"),
        "list": (lambda: gr.Problem([LOSS, FUSION]), TermError, "a list", "sum([...])"),
        "nothing": (lambda: gr.Problem(None), TermError, "sum of terms", "None"),
        "no loss": (lambda: gr.Problem(FUSION + RIDGE), DataError, "no loss", "SquaredLoss(data)"),
    }
)
def test_sums(build, error, parts):
    refused(build, error, *parts)


@refusals(
    {
        "features differ": (
            lambda: problem(gr.SquaredLoss(read())),
            DataError,
            "same features",
            "['intercept', 'rain', 'temp']",
            "['rain', 'temp']",
        ),
        "features in another order": (
            lambda: gr.Problem(
                gr.SquaredLoss(read(FRAME.iloc[:4])) + gr.SquaredLoss(read(FRAME.iloc[4:], features=["temp", "rain"]))
            ),
            DataError,
            "same features",
            "['temp', 'rain']",
        ),
        "data off the graph": (
            lambda: problem(gr.TotalVariation(nx.path_graph(["a", "b"]), gr.L2())),
            DataError,
            "'c'",
            "not a node",
            "drop its samples",
        ),
        "1 and '1'": (
            lambda: gr.Problem(gr.SquaredLoss(QUOTED) + gr.TotalVariation(nx.path_graph(3), gr.L2())),
            DataError,
            "'0'",
            "0 of type int, not '0' of type str",
        ),
        "'1' and 1": (
            lambda: gr.Problem(gr.SquaredLoss(NUMBERED) + gr.TotalVariation(nx.path_graph(["0", "1", "2"]), gr.L2())),
            DataError,
            "'0' of type str, not 0 of type int",
        ),
        "data off the hierarchy": (
            lambda: problem(gr.Hierarchy({"p": ["a", "b"]}, (1, 1))),
            DataError,
            "'c'",
            "hierarchies",
        ),
        "graph and hierarchy": (
            lambda: gr.Problem(
                gr.SquaredLoss(NUMBERED)
                + gr.TotalVariation(nx.path_graph(3), gr.L2())
                + gr.Hierarchy({"0": "p", "1": "p", "2": "q"}, (1, 1))
            ),
            GraphError,
            "0 of type int",
            "'0' of type str",
        ),
    }
)
def test_models(build, error, parts):
    refused(build, error, *parts)


# ---- penalties -------------------------------------------------------------------------------------------------------
@refusals(
    {
        "not psd": (lambda: gr.Quadratic(np.diag([1.0, -2.0])), TermError, "positive semidefinite", "-2"),
        "not symmetric": (lambda: gr.Quadratic([[1, 2], [0, 1]]), TermError, "Q[0, 1] = 2", "Q[1, 0] = 0", "Q.T"),
        "not square": (lambda: gr.Quadratic(np.ones((2, 3))), TermError, "square", "(2, 3)"),
        "nan in Q": (lambda: gr.Quadratic([[np.nan]]), TermError, "NaN"),
        "text in Q": (lambda: gr.Quadratic([["x"]]), TermError, "matrix of numbers"),
        "zero Q": (lambda: gr.Quadratic(np.zeros((2, 2))), TermError, "is 0", "leave the term out"),
        "low above high": (lambda: gr.Box(1, 0), TermError, "Box", "low 1, high 0"),
        "low above high somewhere": (lambda: gr.Box([0, 2], [1, 1]), TermError, "coordinate 1", "low 2, high 1"),
        "nan bound": (lambda: gr.Box([0, np.nan], 1), TermError, "low", "NaN at coordinate 1"),
        "text bound": (lambda: gr.Box("low", 1), TermError, "bound low", "'low'"),
        "bounds differ": (lambda: gr.Box([0, 0], [1, 1, 1]), TermError, "low has 2 and high has 3"),
        "negative ball": (lambda: gr.Ball(-1), TermError, "Ball(radius=...)", "positive", "-1"),
        "text ball": (lambda: gr.Ball("1"), TermError, "Ball(radius=...)", "number", "'1'"),
        "no huber": (lambda: gr.HuberNorm(0), TermError, "HuberNorm(delta=...)", "positive"),
        "not convex": (
            lambda: gr.Penalty.from_cvxpy(lambda z: cp.norm1(z) + cp.sum(cp.sqrt(cp.abs(z)))),
            ConvexityError,
            "0.5",
            "neither convex nor concave",
        ),
        "concave part": (
            lambda: gr.Penalty.from_cvxpy(lambda z: cp.norm1(z) - cp.norm2(z)),
            ConvexityError,
            "concave",
            "nor is it: halfway between",
        ),
        "class": (lambda: gr.TotalVariation(CHAIN, gr.L2), TermError, "the class L2", "write L2(...)"),
        "class at nodes": (lambda: gr.NodePenalty(gr.SquaredL2), TermError, "NodePenalty", "write SquaredL2(...)"),
        "class in a tree": (lambda: gr.Hierarchy(CLUSTERS, (1, 1), gr.L2), TermError, "Hierarchy", "write L2(...)"),
        "text": (lambda: gr.TotalVariation(CHAIN, "l2"), TermError, "such as gr.L2()", "'l2'"),
        "function": (lambda: gr.NodePenalty(np.abs), TermError, "such as gr.L2()"),
        "one-sided": (
            lambda: gr.TotalVariation(CHAIN, gr.NonNegative()),
            TermError,
            "one-sided",
            "contains -z with every z: Ball",
        ),
        "box on edges": (
            lambda: gr.TotalVariation(CHAIN, gr.Box(-1, 1)),
            TermError,
            "Box may be one-sided",
            "AbstractConstraint",
        ),
        "one-sided in a tree": (lambda: gr.Hierarchy(CLUSTERS, (1, 1), gr.NonNegative()), TermError, "one-sided"),
        "one-sided of one's own": (
            lambda: gr.TotalVariation(CHAIN, gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.pos(z)))),
            TermError,
            "one-sided",
        ),
        "constraint in a tree": (lambda: gr.Hierarchy(CLUSTERS, (1, 1), gr.Ball()), TermError, "Consensus"),
        "Q of another size": (
            lambda: problem(gr.TotalVariation(CHAIN, gr.Quadratic(np.eye(2)))),
            TermError,
            "Q of Quadratic is for 2",
            "the term has 3",
        ),
        "Q at nodes": (lambda: penalised(gr.Quadratic(np.eye(3))), TermError, "for 3", "has 2"),
        "Q in a tree": (
            lambda: problem(gr.Hierarchy(CLUSTERS, (1, 1), gr.Quadratic(np.eye(2)))),
            TermError,
            "for 2",
            "has 3",
        ),
        "box of another size": (lambda: penalised(gr.Box([0, 0, 0], 1)), TermError, "low of Box is for 3", "has 2"),
    }
)
def test_penalties(build, error, parts):
    refused(build, error, *parts)


CONSTRAINTS = {
    "Zero": lambda graph: gr.TotalVariation(graph, gr.Zero()),
    "Ball": lambda graph: gr.TotalVariation(graph, gr.Ball(2.0)),
    "Consensus": gr.Consensus,
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_constraint_takes_neither_strength_nor_weights(name):
    constraint = CONSTRAINTS[name]
    refused(lambda: problem(0.1 * constraint(CHAIN)), TermError, name, "no strength", "0.1", "leave it out")
    refused(lambda: problem(gr.Parameter(1, "lam") * constraint(CHAIN)), TermError, "no strength", "lam")
    refused(lambda: problem(constraint(with_weight(2.0))), TermError, name, "no weights", "graph without weights")
    problem(1 * constraint(with_weight(1.0)))


@pytest.mark.parametrize("build", [lambda term: 3.0 * (LOSS + FUSION + term), lambda term: LOSS + 0.5 * (6.0 * term)])
def test_a_constraint_in_a_sum_that_is_scaled_is_told_that_sums_count(build):
    """The number in the message need not stand before the constraint itself."""
    with pytest.raises(TermError, match=r"no strength, got 3 in all \(before it, and before sums that it is in\)"):
        gr.Problem(build(gr.NodePenalty(gr.NonNegative())))


@pytest.mark.parametrize("penalty", [gr.NonNegative(), gr.Box(0, 1), gr.Ball(1.0), gr.Zero()], ids=repr)
def test_a_constraint_on_nodes_takes_neither_strength_nor_weights(penalty):
    name = f"NodePenalty({type(penalty).__name__})"
    weights = dict.fromkeys(NODES, 2.0)
    refused(lambda: problem(2 * gr.NodePenalty(penalty)), TermError, name, "no strength")
    refused(lambda: penalised(penalty, weights=weights), TermError, name, "no weights", "leave weights= out")


# ---- sums over nodes and edges: features, weights, centers -----------------------------------------------------------
SUMS = {
    "TotalVariation(L2)": lambda features: gr.TotalVariation(CHAIN, gr.L2(), features=features),
    "NodePenalty(L2)": lambda features: gr.NodePenalty(gr.L2(), features=features),
    "Consensus": lambda features: gr.Consensus(CHAIN, features=features),
}


@pytest.mark.parametrize("where", SUMS)
def test_unknown_features(where):
    term = SUMS[where]
    refused(lambda: problem(term(["rain", "tmp"])), TermError, where, "'tmp'", "did you mean 'temp'")
    refused(lambda: problem(term("rian")), TermError, where, "'rian'", "did you mean 'rain'")
    refused(lambda: problem(term([0])), TermError, where, "feature 0", "intercept, rain, temp")
    refused(lambda: problem(term(0)), TermError, where, "feature 0")
    refused(lambda: problem(term([["rain"]])), TermError, where, "['rain']")
    refused(lambda: problem(term(["rain", "rain"])), TermError, where, "distinct")
    refused(lambda: problem(term([])), TermError, where, "at least one")


def test_a_node_penalty_without_coordinates():
    loss = gr.SquaredLoss(read(features=None, intercept=True))
    refused(lambda: gr.Problem(loss + RIDGE), TermError, "no coordinates", "skip the intercept", "features=")


@refusals(
    {
        "lacks": (lambda: penalised(weights={"a": 1, "b": 1}), TermError, "weights", "no entry", "'c'"),
        "names": (lambda: penalised(weights=dict.fromkeys("abcz", 1)), TermError, "'z'", "not a node"),
        "zero": (lambda: penalised(weights={"a": 1, "b": 0, "c": 1}), TermError, "node 'b'", "positive"),
        "nan": (lambda: penalised(weights={"a": 1, "b": np.nan, "c": 1}), TermError, "node 'b'", "nan"),
        "number": (lambda: gr.NodePenalty(gr.L2(), weights=2.0), TermError, "mapping", "number * NodePenalty"),
        "no node": (lambda: gr.Problem(LOSS + gr.NodePenalty(gr.L2(), nodes=["z"])), TermError, "nodes of", "'z'"),
        "no nodes": (lambda: gr.Problem(LOSS + gr.NodePenalty(gr.L2(), nodes=[])), TermError, "at least one"),
        "twice": (lambda: gr.Problem(LOSS + gr.NodePenalty(gr.L2(), nodes=["a", "a"])), TermError, "distinct labels"),
        "weight elsewhere": (
            lambda: gr.Problem(LOSS + gr.NodePenalty(gr.L2(), weights={"a": 1.0, "b": 1.0}, nodes=["a"])),
            TermError,
            "the weights of NodePenalty(L2) name 'b', which is not a node",
        ),
        "list": (lambda: gr.NodePenalty(gr.L2(), weights=[1, 1, 1]), TermError, "mapping", "list"),
        "series": (lambda: gr.NodePenalty(gr.L2(), weights=pd.Series(1.0, NODES)), TermError, "Series", ".to_dict()"),
        "1 and '1'": (
            lambda: gr.Problem(gr.SquaredLoss(NUMBERED) + gr.NodePenalty(gr.L2(), weights=dict.fromkeys("012", 1.0))),
            TermError,
            "'0'",
            "0 of type int, not '0' of type str",
        ),
        "center lacks": (lambda: penalised(center={"a": [0, 0]}), TermError, "centers", "no entry", "'b'"),
        "center names": (lambda: penalised(center={x: [0, 0] for x in "abcz"}), TermError, "'z'", "not a node"),
        "center size": (lambda: penalised(center=[0, 0, 0]), TermError, "2 finite numbers", "[0, 0, 0]"),
        "center number": (lambda: penalised(center=0.5), TermError, "2 finite numbers", "0.5"),
        "center nan": (lambda: penalised(center=[0, np.nan]), TermError, "2 finite numbers", "nan"),
        "center text": (lambda: penalised(center="mean"), TermError, "2 finite numbers", "'mean'"),
        "center ragged": (lambda: penalised(center=[[1, 2], [3]]), TermError, "2 finite numbers"),
        "center matrix": (lambda: penalised(center=np.ones((3, 2))), TermError, "2 finite numbers", "shape (3, 2)"),
        "center at a node": (
            lambda: penalised(center={"a": [0, 0], "b": ["x", "y"], "c": [0, 0]}),
            TermError,
            "node 'b'",
            "['x', 'y']",
        ),
    }
)
def test_weights_and_centers(build, error, parts):
    refused(build, error, *parts)


def test_a_center_with_names_is_taken_by_them():
    order = pd.Series([1.0, 2.0], index=["temp", "rain"])
    by_name, by_place = (penalised(gr.SquaredL2(), center=center).form for center in (order, [2.0, 1.0]))
    assert np.array_equal(by_name.edges[0].center, by_place.edges[0].center)
    refused(lambda: penalised(center=order.rename({"rain": "rian"})), TermError, "center", "'rian'", "'rain'")
