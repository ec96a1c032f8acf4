"""The estimators know the node of each row: by a column, by an argument, by the graph, or not at all."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimator_cases import MEASURED, SOME, cohorts, fitted
from sklearn.linear_model import Ridge

import graphreg as gr
from graphreg.errors import DataError, GraphError
from graphreg.sklearn import GraphRegressor

X, Y, GRAPH = cohorts()
NODE, F = X["cohort"], X[MEASURED].to_numpy()
EDGES = list(GRAPH.edges)


@pytest.mark.parametrize(
    ("given", "node"),
    [
        (X, "cohort"),
        (X, 3),
        (X, -1),
        (pl.from_pandas(X), "cohort"),
        (X.to_numpy(), 3),
        (X.assign(cohort=pd.Categorical(NODE)), "cohort"),
    ],
    ids=["name", "position", "from the end", "polars", "array", "categorical"],
)
def test_the_column_of_the_nodes(given, node):
    model = GraphRegressor(GRAPH, 0.05, node=node).fit(given, Y)
    other = GraphRegressor(GRAPH, 0.05).fit(F, Y, node=NODE)
    assert model.nodes_ == other.nodes_ == tuple(GRAPH)
    assert (model.n_features_in_, other.n_features_in_) == (4, 3)
    assert model.coef_ == pytest.approx(other.coef_)
    assert model.predict(given) == pytest.approx(other.predict(F, node=NODE))
    assert model.score(given, Y) == pytest.approx(other.score(F, Y, node=list(NODE)))


def test_labels_that_are_numbers_may_stand_in_a_sparse_matrix():
    number = NODE.map({label: k for k, label in enumerate(GRAPH)})
    graph = gr.Graph.from_edges([(list(GRAPH).index(a), list(GRAPH).index(b)) for a, b in EDGES], nodes=range(8))
    whole = sp.csr_array(np.c_[F, number])
    model = GraphRegressor(graph, 0.05, node=3).fit(whole, Y)
    assert model.predict(whole) == pytest.approx(
        GraphRegressor(graph, 0.05).fit(F, Y, node=number).predict(F, node=number)
    )


def test_a_row_is_predicted_by_the_model_of_its_node():
    model = fitted()
    for label in ("f0", "m3"):
        k, row = model.nodes_.index(label), X.iloc[[0]].assign(cohort=label)
        assert model.predict(row) == pytest.approx(model.intercept_[k] + F[:1] @ model.coef_[k])
    assert np.ptp([model.predict(X.iloc[[0]].assign(cohort=label))[0] for label in GRAPH]) > 0.01


@pytest.mark.parametrize(
    "graph",
    [
        gr.Graph.from_networkx(GRAPH),
        EDGES,
        pd.DataFrame(EDGES).assign(weight=1.0).to_numpy().tolist(),
        pd.DataFrame(
            nx.to_numpy_array(GRAPH),
            index=list(GRAPH),
            columns=list(GRAPH),
        ),
    ],
    ids=["Graph", "edges", "edges with weights", "frame"],
)
def test_graphs_in_every_form(graph):
    model = GraphRegressor(graph, 0.05, node="cohort").fit(X, Y)
    assert model.predict(X) == pytest.approx(fitted().predict(X), abs=1e-4)


def test_a_node_without_rows_has_the_parameters_that_the_graph_gives_it():
    seen = X[NODE != "m1"]
    model = GraphRegressor(GRAPH, 0.05, node="cohort", penalty="SquaredL2", ridge=0.0, gap=1e-9).fit(
        seen, Y[seen.index]
    )
    k = model.nodes_.index("m1")
    mean = np.mean([model.coef_[model.nodes_.index(other)] for other in GRAPH["m1"]], axis=0)
    assert model.coef_[k] == pytest.approx(mean, abs=1e-5)
    assert np.isfinite(model.predict(X)).all()


def test_a_node_that_the_graph_lacks_is_refused_or_pooled():
    strange = X.iloc[:2].assign(cohort=["f0", "f00"])
    with pytest.raises(DataError, match=r"row 1 is at 'f00', which is none of the 8 nodes .*unseen='pooled'.*'f0'"):
        fitted().predict(strange)
    model = fitted(unseen="pooled")
    assert model.pooled_solution_.status == "certified"
    answer = model.predict(strange)
    assert answer[0] == pytest.approx(fitted().predict(strange[:1])[0])
    assert answer[1] == pytest.approx(model.pooled_intercept_ + F[1] @ model.pooled_coef_)


@pytest.mark.parametrize("estimator", SOME)
def test_the_pooled_model_is_where_all_nodes_agree(estimator):
    model = fitted(estimator, strength=1e3, unseen="pooled", ridge=0.01)
    assert model.coef_ == pytest.approx(np.tile(model.pooled_coef_, (8, 1)), abs=2e-3)
    assert model.solution_.objective == pytest.approx(model.pooled_solution_.objective, rel=1e-5)


def test_a_node_that_no_path_joins_to_rows_has_no_model():
    graph = GRAPH.copy()
    graph.add_edge("x0", "x1")
    model = GraphRegressor(graph, 0.05, node="cohort").fit(X, Y)
    with pytest.raises(DataError, match="'x1', a node that no path of edges joins to one with rows; fit with unseen"):
        model.predict(X.assign(cohort="x1"))
    model.set_params(unseen="pooled").fit(X, Y)
    assert model.predict(X[:1].assign(cohort="x1")) == pytest.approx(
        model.pooled_intercept_ + F[:1] @ model.pooled_coef_
    )


def test_without_a_graph_or_at_strength_0_nodes_are_fitted_by_themselves():
    for options in ({"graph": None}, {"graph": GRAPH, "strength": 0}):
        model = GraphRegressor(node="cohort", ridge=0.1, **options).fit(X, Y)
        rows = (NODE == "f2").to_numpy()
        alone = Ridge(alpha=0.1 * rows.sum()).fit(F[rows], Y[rows])
        assert model.coef_[model.nodes_.index("f2")] == pytest.approx(alone.coef_, abs=1e-5)


def test_a_column_of_text_without_node_has_a_hint():
    with pytest.raises(ValueError, match="could not convert string") as error:
        GraphRegressor(GRAPH, 0.05).fit(X, Y)
    assert "GraphRegressor(node=...)" in "".join(error.value.__notes__)


@pytest.mark.parametrize("node", ["region", None])
def test_columns_of_text_are_named(node):
    frame = pd.DataFrame({"region": list("abab"), "kind": list("xyxy"), "new": [True, False] * 2, "size": range(4)})
    estimator = GraphRegressor([("a", "b")], node=node)
    with pytest.raises(ValueError, match="could not convert string to float") as error:
        estimator.fit(frame if node else frame.drop(columns="region"), [1.0, 2.0, 3.0, 4.0])
    assert "columns that are no numbers: 'kind'; code them first" in str(error.value)


NUMBERS = NODE.map(dict(zip(GRAPH, range(101, 109), strict=True)))
CHAIN = [(k, k + 1) for k in range(101, 108)]


def texts(edges, shape=str):
    return [(shape(a), shape(b)) for a, b in edges]


@pytest.mark.parametrize(
    ("labels", "edges", "remedy"),
    [
        (NUMBERS, texts(CHAIN), "write X['cohort'].astype(str)"),
        (NUMBERS.astype(str), CHAIN, "write X['cohort'].astype(int)"),
        (NUMBERS + 0.0, texts(CHAIN), "write X['cohort'].astype(int).astype(str)"),
        (NUMBERS, texts(CHAIN, "{:05}".format), "write X['cohort'].astype(str).str.zfill(5)"),
    ],
)
def test_labels_of_other_types_name_them_and_what_makes_them_alike(labels, edges, remedy):
    rows, model = X.assign(cohort=labels), GraphRegressor(edges, 0.05, node="cohort")
    with pytest.raises(GraphError) as error:
        model.fit(rows, Y)
    assert f"{labels.tolist()[0]!r} of the table beside" in str(error.value)
    assert f"; {remedy}" in str(error.value)
    alike = rows.assign(cohort=eval(remedy.removeprefix("write "), {"X": rows}))
    assert model.fit(alike, Y).nodes_ == gr.Graph.of(edges).labels  # without a warning


def test_rows_of_other_types_are_not_predicted_by_one_model_for_all():
    model = GraphRegressor(texts(CHAIN), 0.05, node="cohort", unseen="pooled")
    model.fit(X.assign(cohort=NUMBERS.astype(str)), Y)
    with pytest.raises(DataError, match=r"at 10\d, which is no node .*; write X\['cohort'\].astype\(str\)"):
        model.predict(X.assign(cohort=NUMBERS))


def test_a_graph_with_the_labels_of_both_types_is_refused():
    both = gr.Graph.from_edges(texts(CHAIN), nodes=[*range(101, 109), *map(str, range(101, 109))])
    with pytest.raises(GraphError, match=r"101 and '101' of the graph.*; write pd.Series\(node\).astype\(str\)"):
        GraphRegressor(both, 0.05).fit(F, Y, node=NUMBERS)


def test_nodes_without_edges_and_many_without_rows_are_counted():
    graph = gr.Graph.from_edges([("f0", "f1")], nodes=list(GRAPH))
    with pytest.warns(UserWarning, match="6 of 8 nodes have no edges, and are fitted alone: "):
        GraphRegressor(graph, 0.05, node="cohort").fit(X, Y)
    few = X[NODE.isin(["f0", "f1", "f2"])]
    with pytest.warns(UserWarning, match="5 of 8 nodes have no rows, and follow their neighbours: "):
        GraphRegressor(GRAPH, 0.05, node="cohort").fit(few, Y[few.index])


def test_a_model_of_labels_of_other_types_says_what_makes_them_alike():
    data = gr.NodeData.from_arrays(F, Y, NUMBERS)
    with pytest.raises(DataError, match=r"samples at 10\d, .*; write table\[\"node\"\].astype\(str\)$"):
        gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(texts(CHAIN), gr.L2()))


@pytest.mark.parametrize("frame", [True, False])
@pytest.mark.parametrize("cell", [np.nan, np.inf, "many"])
@pytest.mark.parametrize("column", [None, 0])
def test_a_cell_that_is_no_number_is_named_with_its_column(frame, cell, column):
    """Also of an array, from which the column of the nodes was taken; in fit and in predict."""
    X = pd.DataFrame({"node": 0, "rain": np.arange(6.0), "temp": np.ones(6)}, dtype=object)
    right = X.astype(float)
    X.loc[[2, 4], "temp"] = cell
    name = ("'temp'" if frame else "2") if column == 0 else ("'temp'" if frame else "1")
    said = f"no numbers: {name};" if cell == "many" else f"missing or infinite cells: {name} (rows 2, 4);"
    X, right = (each if column == 0 else each.drop(columns="node") for each in (X, right))
    X, right = (X, right) if frame else (X.to_numpy(), right.to_numpy())
    fitted = GraphRegressor(node=column).fit(right, np.arange(6.0))
    for call in (lambda: GraphRegressor(node=column).fit(X, np.arange(6.0)), lambda: fitted.predict(X)):
        with pytest.raises(ValueError, match=re.escape(said)):
            call()
