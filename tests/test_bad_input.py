"""Every mistake has an error of its own: its type, the guilty part by name, and what to do."""

from __future__ import annotations

from decimal import Decimal

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import (
    ConvexityError,
    DataError,
    FailedError,
    GraphError,
    MethodError,
    ModelError,
    SolverError,
    TermError,
    UnattainedError,
    UnboundedError,
)

NODES = ["a", "b", "c"]
CHAIN = nx.path_graph(NODES)
CLUSTERS = {"p": ["a", "b"], "q": ["c"]}


def make_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 3)), columns=["rain", "temp", "level"])
    return frame.assign(site=np.repeat(NODES, 4), flood=(frame["level"] > 0).astype(int))


FRAME = make_frame()


def read(frame=FRAME, target="level", features=("rain", "temp"), **more):
    return gr.NodeData.from_frame(frame, node="site", target=target, features=features, **more)


DATA = read(intercept=True)
LOSS = gr.SquaredLoss(DATA)
FUSION = gr.TotalVariation(CHAIN, gr.L2())
RIDGE = gr.NodePenalty(gr.SquaredL2())
NUMBERED = gr.NodeData.from_dict({i: (np.eye(2), [0.0, 1.0]) for i in range(3)})
QUOTED = gr.NodeData.from_dict({str(i): (np.eye(2), [0.0, 1.0]) for i in range(3)})


def targets(*y):
    """Data on the node 'a' with these targets."""
    return gr.NodeData.from_arrays(np.ones((len(y), 1)), y, ["a"] * len(y))


def with_weight(weight):
    graph = nx.path_graph(NODES)
    graph.edges["a", "b"]["weight"] = weight
    return graph


def spoilt(column, value):
    frame = FRAME.astype({column: object})
    frame.loc[5, column] = value
    return frame


def problem(*terms):
    return gr.Problem(LOSS + sum(terms))


def penalised(penalty=None, **more):
    """A problem with a node penalty, which by default acts on the coordinates rain and temp."""
    return problem(gr.NodePenalty(penalty or gr.L2(), **more))


def refused(build, error, *parts):
    """``build`` raises exactly ``error``, and the message has all the parts."""
    with pytest.raises(error) as caught:
        build()
    assert type(caught.value) is error
    for part in parts:
        assert part in str(caught.value)
    return caught.value


def refusals(cases):
    return pytest.mark.parametrize(("build", "error", "parts"), [(b, e, p) for b, e, *p in cases.values()], ids=cases)


# ---- data ------------------------------------------------------------------------------------------------------------
@refusals(
    {
        "nan": (lambda: read(spoilt("rain", np.nan)), DataError, "feature 'rain'", "nan", "node 'b'", "row 5"),
        "infinite": (lambda: read(spoilt("temp", np.inf)), DataError, "feature 'temp'", "inf", "node 'b'", "row 5"),
        "nan target": (lambda: read(spoilt("level", np.nan)), DataError, "target 'level'", "node 'b'", "drop the row"),
        "text": (lambda: read(spoilt("rain", "wet")), DataError, "'rain'", "not numeric", "'wet'"),
        "missing node": (lambda: read(spoilt("site", None)), DataError, "row 5", "missing"),
        "no rows": (lambda: read(FRAME.iloc[:0]), DataError, "no rows", "at least one"),
        "typo": (lambda: read(features=["rian"]), DataError, "'rian'", "did you mean 'rain'"),
        "zero sample weight": (
            lambda: read(FRAME.assign(w=0.0), weights="w"),
            DataError,
            "'w'",
            "node 'a'",
            "positive",
        ),
        "intercept": (lambda: read(intercept="yes"), DataError, "intercept", "True or False", "'yes'"),
        "list of pairs": (lambda: gr.NodeData.from_dict([(1, 2)]), DataError, "mapping", "list"),
        "feature counts": (
            lambda: gr.NodeData.from_dict({"a": (np.ones((1, 2)), [1]), "b": (np.ones((1, 3)), [1])}),
            DataError,
            "node 'b' has 3 features",
            "'a' has 2",
        ),
    }
)
def test_data(build, error, parts):
    refused(build, error, *parts)


def test_the_node_with_the_nan_is_named_in_a_dict():
    samples = {"a": (np.ones((2, 1)), [1.0, 2.0]), "b": ([[1.0], [np.nan]], [1.0, 2.0])}
    refused(lambda: gr.NodeData.from_dict(samples, features=["dose"]), DataError, "'dose'", "nan", "node 'b'")


# ---- losses ----------------------------------------------------------------------------------------------------------
@refusals(
    {
        "frame": (lambda: gr.SquaredLoss(FRAME), TermError, "SquaredLoss", "DataFrame", "from_frame"),
        "nothing": (lambda: gr.LogisticLoss(None), TermError, "LogisticLoss", "NoneType"),
        "pair": (lambda: gr.HuberLoss((np.eye(2), [0, 1])), TermError, "HuberLoss", "tuple"),
        "class": (lambda: gr.MeanLoss(gr.NodeData), TermError, "MeanLoss", "the class NodeData"),
        "three classes": (lambda: gr.LogisticLoss(targets(0, 1, 2)), DataError, "{0, 1}", "0, 1, 2", "compare"),
        "one and two": (lambda: gr.LogisticLoss(targets(1, 2)), DataError, "{-1, 1}", "1, 2"),
        "mixed coding": (lambda: gr.LogisticLoss(targets(-1, 0, 1)), DataError, "-1, 0, 1"),
        "probabilities": (lambda: gr.LogisticLoss(targets(0.2, 0.5)), DataError, "0.2, 0.5"),
        "text classes": (lambda: gr.LogisticLoss(targets("no", "yes")), DataError, "'no'", "compare the column"),
        "digits as text": (lambda: gr.LogisticLoss(targets("0", "1")), DataError, "'0'", "compare the column"),
        "text target": (lambda: gr.SquaredLoss(targets("1.5", "2")), DataError, "SquaredLoss", "'1.5'", "numbers"),
        "text for huber": (lambda: gr.HuberLoss(targets("low", "high")), DataError, "HuberLoss", "'low'"),
        "complex target": (lambda: gr.SquaredLoss(targets(1 + 2j, 0)), DataError, "SquaredLoss", "(1+2j)"),
        "dates": (lambda: gr.SquaredLoss(targets(*pd.to_datetime(["2020-01-01"]))), DataError, "numeric", "2020"),
        "text for means": (lambda: gr.MeanLoss(read(target="site", features=None)), DataError, "MeanLoss", "'a'"),
        "no target": (lambda: gr.SquaredLoss(read(target=None)), DataError, "SquaredLoss needs a target"),
        "no features": (lambda: gr.SquaredLoss(read(features=None)), DataError, "needs features", "MeanLoss"),
        "no columns": (
            lambda: gr.SquaredLoss(gr.NodeData.from_arrays(np.ones((1, 0)), [1.0], ["a"])),
            DataError,
            "needs features",
        ),
        "two targets": (
            lambda: gr.SquaredLoss(read(target=["level", "flood"])),
            DataError,
            "one target",
            "('level', 'flood')",
        ),
        "means with features": (lambda: gr.MeanLoss(DATA), DataError, "targets alone", "leave features out"),
        "means of nothing": (
            lambda: gr.MeanLoss(read(target=None, features=None)),
            DataError,
            "MeanLoss needs targets",
        ),
        "delta": (lambda: gr.HuberLoss(DATA, delta=np.nan), TermError, "delta of HuberLoss", "positive", "nan"),
        "delta text": (lambda: gr.HuberLoss(DATA, delta="1"), TermError, "delta of HuberLoss", "number", "'1'"),
        "scale": (lambda: gr.SquaredLoss(DATA, scale="median"), TermError, "'mean', 'sum'", "'median'"),
        "scale zero": (lambda: gr.SquaredLoss(DATA, scale=0), TermError, "scale of SquaredLoss", "positive", "0"),
        "scale true": (lambda: gr.SquaredLoss(DATA, scale=True), TermError, "scale of SquaredLoss", "True"),
        "scale nothing": (lambda: gr.SquaredLoss(DATA, scale=None), TermError, "scale of SquaredLoss", "None"),
        "scale lacks": (lambda: gr.SquaredLoss(DATA, scale={"a": 1, "b": 1}), TermError, "scale", "no entry", "'c'"),
        "scale of others": (
            lambda: gr.SquaredLoss(NUMBERED, scale={"0": 1, "1": 1, "2": 1}),
            TermError,
            "node 0 (and 2 more)",
            "'0' of type str, not 0 of type int",
        ),
        "scale at a node": (
            lambda: gr.SquaredLoss(DATA, scale={"a": 1, "b": -2, "c": 1}),
            TermError,
            "node 'b'",
            "positive",
            "-2",
        ),
    }
)
def test_losses(build, error, parts):
    refused(build, error, *parts)


def test_delta_of_a_function_is_never_said_to_be_a_strength():
    for build in (lambda: gr.HuberLoss(DATA, delta="1"), lambda: gr.Ball(-1), lambda: gr.HuberNorm(0)):
        message = str(refused(build, TermError, "must be"))
        assert "Parameter" not in message
        assert "switch it off" not in message


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
        "two losses": (lambda: problem(gr.HuberLoss(DATA)), TermError, "'a'", "SquaredLoss and HuberLoss", "disjoint"),
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


def test_labels_that_look_alike_within_one_graph_are_its_own_affair():
    graph = nx.Graph([(1, "1")])
    data = gr.NodeData.from_dict({1: (None, [0.0]), "1": (None, [2.0])})
    twice = gr.TotalVariation(graph, gr.SquaredL2()) + gr.TotalVariation(graph, gr.SquaredL2())
    solution = gr.Problem(gr.MeanLoss(data, scale="sum") + 0.5 * twice).solve()
    np.testing.assert_allclose(solution.coef[:, 0], [2 / 3, 4 / 3], atol=1e-4)


# ---- graphs ----------------------------------------------------------------------------------------------------------
@refusals(
    {
        "directed": (lambda: gr.TotalVariation(nx.DiGraph(CHAIN), gr.L2()), GraphError, "directed", "to_undirected()"),
        "multigraph": (lambda: gr.Consensus(nx.MultiGraph(CHAIN)), GraphError, "multigraph", "sum the weights"),
        "empty": (lambda: gr.TotalVariation(nx.Graph(), gr.L2()), GraphError, "empty", "no nodes"),
        "self loop": (lambda: gr.TotalVariation(nx.Graph([("a", "a")]), gr.L2()), GraphError, "'a'", "self loop"),
        "list": (lambda: gr.TotalVariation([("a", "b")], gr.L2()), GraphError, "list", "from_edges"),
        "nothing": (lambda: gr.Consensus(None), GraphError, "NoneType", "networkx"),
        "disconnected": (
            lambda: gr.Consensus(nx.Graph([("a", "b"), ("c", "d")])),
            GraphError,
            "disconnected",
            "'a' to 'c'",
            "Zero()",
        ),
        "isolated": (lambda: gr.Consensus(gr.Graph.from_edges([("a", "b")], nodes="abz")), GraphError, "'a' to 'z'"),
    }
)
def test_graphs(build, error, parts):
    refused(build, error, *parts)


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf, "2", None, True], ids=repr)
def test_edge_weights(weight):
    build = lambda: gr.TotalVariation(with_weight(weight), gr.L2())  # noqa: E731
    refused(build, GraphError, "the edge 'a' - 'b'", repr(weight))


def test_numpy_scalars_are_edge_weights():
    assert gr.TotalVariation(with_weight(np.float32(2)), gr.L2()).graph.weight.tolist() == [2.0, 1.0]


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
        "negative ball": (lambda: gr.Ball(-1), TermError, "radius of Ball", "positive", "-1"),
        "text ball": (lambda: gr.Ball("1"), TermError, "radius of Ball", "number", "'1'"),
        "no huber": (lambda: gr.HuberNorm(0), TermError, "delta of HuberNorm", "positive"),
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
            "dcp",
        ),
        "class": (lambda: gr.TotalVariation(CHAIN, gr.L2), TermError, "the class L2", "write L2(...)"),
        "class at nodes": (lambda: gr.NodePenalty(gr.SquaredL2), TermError, "NodePenalty", "write SquaredL2(...)"),
        "class in a tree": (lambda: gr.Hierarchy(CLUSTERS, (1, 1), gr.L2), TermError, "Hierarchy", "write L2(...)"),
        "text": (lambda: gr.TotalVariation(CHAIN, "l2"), TermError, "such as gr.L2()", "'l2'"),
        "function": (lambda: gr.NodePenalty(np.abs), TermError, "such as gr.L2()"),
        "one-sided": (lambda: gr.TotalVariation(CHAIN, gr.NonNegative()), TermError, "one-sided", "NodePenalty"),
        "box on edges": (lambda: gr.TotalVariation(CHAIN, gr.Box(0, 1)), TermError, "Box is one-sided"),
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


# ---- hierarchies -----------------------------------------------------------------------------------------------------
BOTH = {
    "tree": lambda clusters: gr.Hierarchy(clusters, (1, 1)),
    "alpha": lambda clusters: gr.Hierarchy.from_alpha(clusters, alpha=0.5, gamma=1),
}
BAD_CLUSTERS = {
    "empty": ({}, ["non-empty mapping", "node -> cluster"]),
    "list": ([["a"], ["b"]], ["mapping"]),
    "series": (pd.Series(["p", "p"], ["a", "b"]), ["mapping", ".to_dict()"]),
    "two clusters": ({"p": ["a", "b"], "q": ["b"]}, ["'b'", "two clusters, 'p' and 'q'"]),
    "twice": ({"p": ["a", "a"]}, ["'a'", "'p' twice"]),
    "empty cluster": ({"p": ["a"], "q": []}, ["'q' has no nodes", "leave it out"]),
    "empty cluster of clusters": ({"p": {}}, ["'p' has no nodes"]),
    "uneven": ({"p": {"p1": ["a"]}, "q": ["b"]}, ["'b'", "same depth"]),
    "label beside lists": ({"p": ["a"], "b": "q"}, ["'b'", "list of nodes", "'q'"]),
    "nested lists": ({"p": [["a"], ["b"]]}, ["'p'", "['a']"]),
    "missing node": ({"p": ["a", None]}, ["'p'", "None"]),
    "missing cluster": ({"a": "p", "b": float("nan")}, ["'b'", "missing"]),
    "root": ({"root": ["a"], "q": ["b"]}, ["'root'", "rename"]),
}


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize("case", BAD_CLUSTERS)
def test_clusters(case, form):
    clusters, parts = BAD_CLUSTERS[case]
    refused(lambda: BOTH[form](clusters), TermError, *parts)


def tree(*weights, clusters=CLUSTERS):
    return gr.Hierarchy(clusters, weights)


def averages(alpha=0.5, gamma=1.0):
    return gr.Hierarchy.from_alpha(CLUSTERS, alpha=alpha, gamma=gamma)


@refusals(
    {
        "too few": (lambda: tree(1), TermError, "2 levels", "1 weights"),
        "too many": (lambda: tree(1, 1, 1), TermError, "2 levels", "3 weights"),
        "number": (lambda: gr.Hierarchy(CLUSTERS, 1.0), TermError, "2 levels", "1 weights", "from the leaves"),
        "three levels": (lambda: tree(1, 1, clusters={"u": CLUSTERS}), TermError, "3 levels", "2 weights"),
        "zero": (lambda: tree(0, 1), TermError, "level 1", "positive"),
        "negative": (lambda: tree(1, -1), TermError, "level 2", "-1"),
        "text": (lambda: tree("x", 1), TermError, "level 1", "'x'"),
        "node lacks": (lambda: tree({"a": 1, "b": 1}, 1), TermError, "level 1", "no entry", "'c'"),
        "node unknown": (lambda: tree(dict.fromkeys("abcz", 1), 1), TermError, "level 1", "'z'"),
        "cluster lacks": (lambda: tree(1, {"p": 1}), TermError, "level 2", "no entry", "'q'"),
        "cluster unknown": (lambda: tree(1, dict.fromkeys("pqz", 1)), TermError, "level 2", "'z'"),
        "cluster zero": (lambda: tree(1, {"p": 0, "q": 1}), TermError, "level 2", "'p'", "positive"),
        "alpha below": (lambda: averages(-0.1), TermError, "'p'", "[0, 1]", "-0.1"),
        "alpha above": (lambda: averages({"p": 0.5, "q": 1.1}), TermError, "'q'", "[0, 1]", "1.1"),
        "alpha nan": (lambda: averages(np.nan), TermError, "[0, 1]", "nan"),
        "alpha text": (lambda: averages("half"), TermError, "[0, 1]", "'half'"),
        "alpha nothing": (lambda: averages(None), TermError, "[0, 1]", "None"),
        "alpha parameter": (lambda: averages(gr.Parameter(0.5)), TermError, "[0, 1]", "Parameter"),
        "alpha true": (lambda: averages(True), TermError, "[0, 1]", "True"),
        "alpha lacks": (lambda: averages({"p": 0.5}), TermError, "alpha", "no entry", "'q'"),
        "alpha unknown": (lambda: averages(dict.fromkeys("pqz", 0.5)), TermError, "alpha", "'z'"),
        "gamma zero": (lambda: averages(gamma=0), TermError, "gamma", "positive"),
        "gamma nan": (lambda: averages(gamma=np.nan), TermError, "gamma", "nan"),
        "gamma text": (lambda: averages(gamma="x"), TermError, "gamma", "'x'"),
        "gamma lacks": (lambda: averages(gamma={"a": 1, "b": 1}), TermError, "gamma", "no entry", "'c'"),
        "gamma at a node": (lambda: averages(gamma={"a": 1, "b": 1, "c": -1}), TermError, "gamma", "'c'", "-1"),
        "alpha with three levels": (
            lambda: gr.Hierarchy.from_alpha({"u": CLUSTERS}, alpha=0.5, gamma=1),
            TermError,
            "two levels",
        ),
    }
)
def test_hierarchies(build, error, parts):
    refused(build, error, *parts)


# ---- solving ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def solved():
    return problem(0.1 * FUSION, 1e-3 * RIDGE).solve()


BAD_CALLS = {
    "class": ({"method": gr.PrimalDual}, MethodError, ["write PrimalDual()"]),
    "text": ({"method": "exact"}, MethodError, ["gr.PrimalDual()", "'exact'"]),
    "negative gap": ({"gap": -1e-6}, ModelError, ["gap", "-1e-06"]),
    "nan gap": ({"gap": np.nan}, ModelError, ["gap", "nan"]),
    "infinite gap": ({"gap": np.inf}, ModelError, ["gap", "inf"]),
    "text gap": ({"gap": "small"}, ModelError, ["gap", "'small'"]),
    "no gap": ({"gap": None}, ModelError, ["gap", "None"]),
    "no rounds": ({"rounds": 0}, ModelError, ["rounds", "at least 1", "0"]),
    "half a round": ({"rounds": 2.5}, ModelError, ["rounds", "whole", "2.5"]),
    "text rounds": ({"rounds": "ten"}, ModelError, ["rounds", "'ten'"]),
    "no seconds": ({"seconds": 0}, ModelError, ["seconds", "positive"]),
    "nan seconds": ({"seconds": np.nan}, ModelError, ["seconds", "nan"]),
    "text seconds": ({"seconds": "1"}, ModelError, ["seconds", "'1'"]),
    "start shape": ({"start": np.zeros((2, 3))}, ModelError, ["(3, 3)", "(2, 3)"]),
    "start number": ({"start": 0.0}, ModelError, ["(3, 3)", "()"]),
    "start nan": ({"start": np.full((3, 3), np.nan)}, ModelError, ["start", "NaN"]),
    "start text": ({"start": "warm"}, ModelError, ["start", "'warm'"]),
    "start ragged": ({"start": [[1, 2], [3]]}, ModelError, ["start", "array"]),
    "on_failure": ({"on_failure": "ignore"}, ModelError, ["on_failure", "'ignore'", "'return'"]),
    "callback": ({"callback": 3}, ModelError, ["callback", "3"]),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_calls_of_solve(case):
    arguments, error, parts = BAD_CALLS[case]
    posed = problem(0.1 * FUSION)
    refused(lambda: posed.solve(**({"method": gr.PrimalDual()} | arguments)), error, *parts)


@refusals(
    {
        "not installed": (lambda: problem(FUSION).solve(gr.Exact("nosuch")), SolverError, "'nosuch'", "clarabel"),
        "form of Exact": (lambda: gr.Exact(form="lagrange"), MethodError, "'primal' or 'dual'", "'lagrange'"),
        "balance": (lambda: gr.PrimalDual(balance=0), MethodError, "balance", "positive"),
        "relaxation": (lambda: gr.PrimalDual(relaxation=2), MethodError, "relaxation", "(0, 2)"),
        "form of compile": (lambda: problem(FUSION).compile("both"), ModelError, "'primal' or 'dual'", "'both'"),
        "read too early": (lambda: problem(FUSION).compile().read(), FailedError, "no answer", ".solve("),
    }
)
def test_methods(build, error, parts):
    refused(build, error, *parts)


SEPARABLE = gr.NodeData.from_dict({"a": ([[1.0], [-1.0]], [1, 0]), "b": ([[1.0], [-2.0]], [1, 0])})
PAIR = nx.Graph([("a", "b")])


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_separable_classes_without_a_ridge(method):
    posed = gr.Problem(gr.LogisticLoss(SEPARABLE) + 0.1 * gr.TotalVariation(PAIR, gr.L2()))
    error = refused(lambda: posed.solve(method), UnattainedError, "not attained", "separable", "add a ridge")
    assert error.solution.status == "unattained"
    returned = posed.solve(method, on_failure="return")
    assert returned.status == "unattained"
    assert returned.message == str(error) == error.solution.message
    ridge = gr.NodePenalty(gr.SquaredL2())
    assert gr.Problem(posed.model + 1e-3 * ridge).solve(method).status == "certified"


MEANS = gr.MeanLoss(gr.NodeData.from_dict({"a": (None, [1.0]), "b": (None, [2.0])}))
INFEASIBLE = {
    "fixed apart, and tied": MEANS + gr.Consensus(PAIR) + gr.NodePenalty(gr.Zero(), center={"a": [0.0], "b": [1.0]}),
    "two boxes": MEANS + gr.NodePenalty(gr.Box(2, 3)) + gr.NodePenalty(gr.Box(-1, 1)),
    "ball and box": MEANS + gr.NodePenalty(gr.Ball(1.0), center=[5.0]) + gr.NodePenalty(gr.Box(-1, 1)),
    "far apart, and tied": MEANS
    + gr.TotalVariation(PAIR, gr.Ball(1.0))
    + gr.NodePenalty(gr.Ball(1.0), center={"a": [0.0], "b": [10.0]}),
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_constraints_that_no_point_satisfies(case):
    posed = gr.Problem(INFEASIBLE[case])
    error = refused(posed.solve, UnboundedError, "No point satisfies all constraints", "centers")
    assert error.solution.status == "unbounded"
    assert not error.solution.certificate.valid
    returned = posed.solve(on_failure="return")
    assert (returned.status, returned.certificate.valid) == ("unbounded", False)
    run = posed.solve(gr.PrimalDual(), rounds=30)
    assert run.status == "budget"
    assert "no point was found that satisfies all constraints" in run.message
    assert not run.certificate.valid


# ---- predictions and flows -------------------------------------------------------------------------------------------
def test_predictions(solved):
    refused(lambda: solved.predict(FRAME, kind="probability"), DataError, "kind", "'link'", "'probability'")
    refused(lambda: solved.predict(FRAME, kind="class"), DataError, "classification")
    refused(lambda: solved.predict(FRAME.drop(columns="temp")), DataError, "no column 'temp'")
    refused(lambda: solved.predict(FRAME.rename(columns={"temp": "temps"})), DataError, "did you mean 'temps'")
    refused(lambda: solved.predict(spoilt("site", "z")), DataError, "row 5", "'z'", "not a node")
    refused(lambda: solved.predict(spoilt("rain", np.nan)), DataError, "'rain'", "nan", "node 'b'", "row 5")
    refused(lambda: solved.predict({"rain": [1.0]}), DataError, "DataFrame", "dict")


def test_predictions_at_1_and_at_the_text_1():
    frame = FRAME.assign(site=np.repeat([1, 2, 3], 4))
    solution = gr.Problem(gr.SquaredLoss(read(frame))).solve()
    texts = frame.assign(site=frame["site"].astype(str))
    refused(lambda: solution.predict(texts), DataError, "row 0", "1 of type int, not '1' of type str")


def test_predictions_without_a_frame_or_without_features():
    without = gr.Problem(gr.SquaredLoss(NUMBERED)).solve()
    refused(lambda: without.predict(FRAME), DataError, "from_frame")
    means = gr.Problem(gr.MeanLoss(read(features=None))).solve()
    refused(lambda: means.predict(FRAME), DataError, "MeanLoss", "table()")


@pytest.mark.parametrize("edge", [("a", "c"), ("a", "z"), "a", ("a", "b", "c"), 0], ids=repr)
def test_flows_of_what_is_no_edge(solved, edge):
    with pytest.raises(KeyError, match="not an edge"):
        solved.flows[edge]
    assert edge not in solved.flows
