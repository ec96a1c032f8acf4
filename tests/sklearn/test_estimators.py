"""The estimators fit the problems that their docstrings state, take rows as scikit-learn does, say what is proved."""

from __future__ import annotations

import doctest
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimator_cases import ESTIMATORS, MEASURED, SOME, cohorts, fitted, target_of
from factories import thinned
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor, QuantileRegressor, Ridge
from sklearn.metrics import d2_pinball_score, mean_pinball_loss

import graphreg as gr
from graphreg.errors import DataError, GraphError, ModelError, TermError
from graphreg.sklearn import GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor, GraphRegressor

X, Y, GRAPH = cohorts()
NODE, F = X["cohort"], X[MEASURED].to_numpy()


# ---- the problem -----------------------------------------------------------------------------------------------------
LOSSES = {
    GraphRegressor: lambda x, y: (x - y) ** 2 / 2,
    GraphClassifier: lambda x, y: np.logaddexp(0.0, np.where(y == "worse", -x, x)),
    GraphPoissonRegressor: lambda x, y: np.exp(x) - y * x,
    GraphQuantileRegressor: lambda x, y: np.maximum(0.8 * (y - x), -0.2 * (y - x)),
}


@pytest.mark.parametrize("estimator", SOME)
def test_the_formula_of_the_docstring_is_what_is_minimised(estimator):
    more = {"quantile": 0.8} if estimator is GraphQuantileRegressor else {}
    y, v = np.asarray(target_of(estimator, Y)), np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    model = estimator(GRAPH, 0.05, ridge=0.01, **more).fit(F, y, sample_weight=v, node=NODE)
    b, w, at = model.intercept_, model.coef_, [model.nodes_.index(label) for label in NODE]
    losses = v * LOSSES[estimator](b[at] + (F * w[at]).sum(axis=1), y)
    P = sum(losses[rows].sum() / v[rows].sum() for rows in (np.flatnonzero(label == NODE) for label in model.nodes_))
    both, index = np.c_[b, w], model.nodes_.index
    P += 0.05 * sum(np.linalg.norm(both[index(i)] - both[index(j)]) for i, j in GRAPH.edges) + 0.005 * (w**2).sum()
    assert model.solution_.objective == pytest.approx(P, rel=1e-12)
    assert model.certified_
    assert model.gap_ <= 1e-6


SINGLE = {
    GraphRegressor: lambda M: Ridge(alpha=0.1 * M),
    GraphClassifier: lambda M: LogisticRegression(C=1 / (0.1 * M), tol=1e-10),
    GraphPoissonRegressor: lambda _: PoissonRegressor(alpha=0.1, tol=1e-10),
}


@pytest.mark.parametrize("estimator", SINGLE)
def test_without_nodes_it_is_the_single_model_of_scikit_learn(estimator):
    y = target_of(estimator, Y)
    ours, theirs = estimator(ridge=0.1).fit(F, y), SINGLE[estimator](len(F)).fit(F, y)
    assert ours.nodes_ == ("all",)
    assert not ours.by_node_
    assert ours.coef_ == pytest.approx(np.atleast_2d(theirs.coef_), abs=1e-5)
    assert ours.intercept_ == pytest.approx(np.atleast_1d(theirs.intercept_), abs=1e-5)
    assert ours.score(F, y) == pytest.approx(theirs.score(F, y), abs=1e-5)


def test_quantiles_are_those_of_scikit_learn():
    ours = GraphQuantileRegressor(ridge=0.0, quantile=0.9).fit(F, Y)
    theirs = QuantileRegressor(quantile=0.9, alpha=0.0).fit(F, Y)
    losses = [mean_pinball_loss(Y, each.predict(F), alpha=0.9) for each in (ours, theirs)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert ours.score(F, Y) == pytest.approx(d2_pinball_score(Y, theirs.predict(F), alpha=0.9), rel=1e-6)


@pytest.mark.parametrize("fit_intercept", thinned([True, False], every=2))
def test_three_classes_have_coefficients_and_probabilities_each(fit_intercept):
    y = pd.cut(Y, [-np.inf, -0.5, 0.5, np.inf], labels=["low", "mid", "high"]).astype(str)
    model = fitted(GraphClassifier, fit_intercept=fit_intercept).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert (model.coef_.shape, model.intercept_.shape) == ((8, 3, 3), (8, 3))
    p, link = model.predict_proba(X), model.decision_function(X)
    assert p == pytest.approx(np.exp(link) / np.exp(link).sum(axis=1, keepdims=True))
    assert (model.predict(X) == model.classes_[p.argmax(axis=1)]).all()
    assert model.score(X, y) == np.mean(model.predict(X) == y) > 0.5
    assert np.abs(model.intercept_).max() > 0 or not fit_intercept
    coded = X.drop(columns="cohort").assign(cohort=NODE, level=y)
    data = gr.NodeData.from_frame(coded, "cohort", "level", MEASURED, intercept=fit_intercept)
    terms = gr.MultinomialLoss(data) + 0.05 * gr.TotalVariation(GRAPH, gr.L2()) + 1e-3 * gr.NodePenalty(gr.SquaredL2())
    assert p == pytest.approx(gr.Problem(terms).solve(gap=1e-9).predict(coded).to_numpy(), abs=1e-3)


@pytest.mark.parametrize(
    ("penalty", "loss", "meant"),
    [
        ("L1", "SquaredLoss", (gr.L1(), gr.SquaredLoss)),
        (gr.HuberNorm(0.5), gr.SquaredLoss, (gr.HuberNorm(0.5), gr.SquaredLoss)),
        (gr.SquaredL2, partial(gr.HuberLoss, delta=0.5), (gr.SquaredL2(), partial(gr.HuberLoss, delta=0.5))),
    ],
)
def test_losses_and_penalties_by_name_class_and_object(penalty, loss, meant):
    model = fitted(penalty=penalty, loss=loss)
    data = gr.NodeData.from_arrays(F, Y, NODE, intercept=True, features=MEASURED)
    terms = meant[1](data) + 0.05 * gr.TotalVariation(GRAPH, meant[0]) + 1e-3 * gr.NodePenalty(gr.SquaredL2())
    assert model.solution_.objective == pytest.approx(gr.Problem(terms).solve().objective, rel=1e-6)
    assert model.solution_.table().columns.tolist() == ["intercept", *MEASURED]


def test_two_classes_may_have_coefficients_each():
    y = target_of(GraphClassifier, Y)
    model, usual = (
        fitted(GraphClassifier, loss=loss, penalty="SquaredL2", ridge=0.0) for loss in ("MultinomialLoss", None)
    )
    assert model.coef_.shape == (8, 2, 3)
    # Of two vectors v and -v the norm counts twice: with half the strength for the difference 2 v
    half = fitted(GraphClassifier, penalty="SquaredL2", ridge=0.0, strength=0.025)
    assert model.decision_function(X) == pytest.approx(half.decision_function(X), abs=1e-3)
    assert model.predict_proba(X) == pytest.approx(half.predict_proba(X), abs=1e-3)
    assert (model.predict(X) == half.predict(X)).all()
    assert model.score(X, y) > 0.7
    assert model.decision_function(X) != pytest.approx(usual.decision_function(X), abs=1e-3)


def test_constraints_on_edges_take_no_strength():
    model = fitted(penalty="Zero", unseen="pooled")
    assert np.ptp(model.coef_, axis=0) == pytest.approx(0.0)
    assert model.coef_[0] == pytest.approx(model.pooled_coef_, abs=1e-5)


def test_hinge_losses_have_no_probabilities():
    model = fitted(GraphClassifier, loss="HingeLoss")
    assert not hasattr(model, "predict_proba")
    assert hasattr(GraphClassifier(loss="LogisticLoss"), "predict_proba")
    assert not hasattr(GraphClassifier(loss="LogLoss"), "predict_proba")
    assert model.score(X, target_of(GraphClassifier, Y)) > 0.7


# ---- rows ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", SOME)
def test_a_weight_of_0_is_no_row_and_a_weight_of_2_is_two(estimator):
    y, v = np.asarray(target_of(estimator, Y)), np.random.default_rng(1).integers(0, 3, len(Y))
    times = np.repeat(np.arange(len(Y)), v)
    one = estimator(GRAPH, 0.05, gap=1e-10).fit(F, y, sample_weight=v, node=NODE)
    other = estimator(GRAPH, 0.05, gap=1e-10).fit(F[times], y[times], node=NODE.iloc[times])
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-4)
    assert one.solution_.objective == pytest.approx(other.solution_.objective, rel=1e-9)


def test_classes_without_weight_are_none():
    y = np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]
    assert GraphClassifier().fit(F, y, sample_weight=(y != "b").astype(float)).classes_.tolist() == ["a", "c"]
    with pytest.raises(ValueError, match=r"non-zero|no rows|two classes"):  # scikit-learn 1.9 says it first
        GraphClassifier().fit(F, y, sample_weight=np.zeros(len(y)))


def test_sparse_features_are_stored_densely_and_too_many_are_refused():
    model = GraphRegressor(GRAPH, 0.05)
    assert model.fit(sp.csr_array(F), Y, node=NODE).predict(sp.csr_array(F), node=NODE) == pytest.approx(
        fitted().predict(X)
    )
    with pytest.raises(MemoryError, match=r"4 rows of 100,000,000,000,000 columns take 3,200,000\.0 GB; choose"):
        model.fit(sp.csr_array((4, 10**14)), np.arange(4.0), node=["f0"] * 4)


@pytest.mark.parametrize("estimator", SOME)
def test_copies_and_pickles(estimator):
    model = fitted(estimator, unseen="pooled")
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()
    assert again.solution_.certificate.gap == model.solution_.certificate.gap
    assert again.problem_.solve().status == "certified"
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert copy.get_params().keys() == model.get_params().keys()
    assert (copy.fit(X, target_of(estimator, Y)).coef_ == model.coef_).all()


def test_a_fit_is_reproducible_where_the_method_draws():
    method = gr.FedADMM(batch=8)
    answers = [fitted(method=method, gap=0.5, random_state=seed).coef_ for seed in (0, 0, 1)]
    assert (answers[0] == answers[1]).all()
    assert (answers[0] != answers[2]).any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_examples_of_docstrings_run(estimator):
    names = {each.__name__: each for each in ESTIMATORS} | {"np": np}
    said = []
    for test in doctest.DocTestFinder(recurse=False).find(estimator, estimator.__name__, globs=names):
        assert test.examples
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


# ---- what is said ----------------------------------------------------------------------------------------------------
def test_what_is_not_certified_warns():
    with pytest.warns(ConvergenceWarning, match=r"GraphRegressor is not certified \(no_certificate\): .*1e-17"):
        model = fitted(gap=1e-17)
    assert not model.certified_
    assert 1e-17 < model.gap_ < 1e-6
    with pytest.warns(ConvergenceWarning, match=r"\(unattained\).*the losses fall for ever.*edges to other nodes"):
        model = GraphClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 1], node=list("aabb"))
    assert not model.certified_


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (DataError, "nothing says at which node a row is", lambda: GraphRegressor(GRAPH).fit(F, Y)),
        (DataError, "fitted with nodes", lambda: GraphRegressor(GRAPH).fit(F, Y, node=NODE).predict(F)),
        (DataError, "fitted without nodes", lambda: GraphRegressor().fit(F, Y).predict(F, node=NODE)),
        (DataError, "given twice", lambda: GraphRegressor(GRAPH, node="cohort").fit(X, Y, node=NODE)),
        (DataError, "no column 'cohrt'; did you mean", lambda: GraphRegressor(GRAPH, node="cohrt").fit(X, Y)),
        (DataError, "X is a ndarray, without names", lambda: GraphRegressor(GRAPH, node="cohort").fit(F, Y)),
        (DataError, "node=7 is the position", lambda: GraphRegressor(GRAPH, node=7).fit(F, Y)),
        (DataError, r"got one class, \['a'\]", lambda: GraphClassifier().fit(F, ["a"] * len(F))),
        (DataError, "targets >= 0", lambda: GraphPoissonRegressor().fit(F, Y)),
        (GraphError, "a frame of edges has", lambda: GraphRegressor(X).fit(F, Y, node=NODE)),
        (
            DataError,
            r"not a node of .* add it to all nodes \(Graph.from_edges\(",
            lambda: GraphRegressor([("m0", "m1")]).fit(F, Y, node=NODE),
        ),
        (TermError, "'L3' is no penalty", lambda: GraphRegressor(GRAPH, penalty="L3").fit(F, Y, node=NODE)),
        (TermError, "'SquareLoss' is no loss.*'SquaredLoss'", lambda: GraphRegressor(loss="SquareLoss").fit(F, Y)),
        (TermError, "functools.partial", lambda: GraphRegressor(loss=lambda data: 1.0).fit(F, Y)),
        (ModelError, r"GraphRegressor\(strength=...\)", lambda: GraphRegressor(strength=-1).fit(F, Y)),
        (ModelError, r"GraphRegressor\(unseen=...\)", lambda: GraphRegressor(unseen="pool").fit(F, Y)),
        (ModelError, "quantile must be", lambda: GraphQuantileRegressor(quantile=1.5).fit(F, Y)),
        (DataError, "Only binary", lambda: GraphClassifier(loss="HingeLoss").fit(F, np.arange(len(F)) % 3)),
        (DataError, r"GraphRegressor\(..., node='cohort'\)", lambda: GraphRegressor(GRAPH).fit(X, Y, node="cohort")),
        (ValueError, "inconsistent numbers", lambda: GraphRegressor(GRAPH).fit(F, Y, node=NODE[:5])),
    ],
)
def test_errors_name_what_is_wrong(error, match, call):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("estimator", SOME)
def test_coefficients_of_two_methods_agree_to_seven_digits(estimator):
    rounds = gr.PrimalDual() if estimator is GraphQuantileRegressor else gr.InteriorPoint()
    one, two = (fitted(estimator, method=method) for method in (gr.Exact(), rounds))
    assert one.certified_
    assert two.certified_
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-7)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=1e-7)


def test_a_larger_gap_is_met_and_no_more():
    rough, fine = (fitted(gap=gap, method=gr.InteriorPoint()) for gap in (1e-4, 1e-6))
    assert 1e-9 < rough.gap_ <= 1e-4
    assert "Refined" not in rough.solution_.message
    assert fine.gap_ <= 1e-11
    assert "Refined by" in fine.solution_.message


def test_an_answer_that_is_not_certified_is_not_refined():
    with pytest.warns(ConvergenceWarning, match="is not certified"):
        model = fitted(gap=1e-15, method=gr.ADMM(), seconds=0.02)
    assert "Refined" not in model.solution_.message


def test_a_graph_of_many_edges_is_printed_in_brief():
    edges = [(f"station-{i}", f"station-{i + 1}") for i in range(300)]
    model = GraphRegressor(edges, strength=0.3)
    assert repr(model).startswith(
        "GraphRegressor(graph=[('station-0', 'station-1'), ('station-1', 'station-2'), ... 300"
    )
    assert repr(model).endswith("300 edges],\n               strength=0.3)")
    assert "<ndarray of 50 x 50>" in repr(GraphRegressor(np.ones((50, 50))))
    assert repr(GraphRegressor([("a", "b")])) == "GraphRegressor(graph=[('a', 'b')])"
    assert clone(model).graph == edges


def test_a_target_of_another_kind_names_the_estimator_that_takes_it():
    X, y = np.arange(8.0)[:, None], np.arange(8.0) / 3
    with pytest.raises(DataError, match=r"Unknown label type: continuous.* GraphRegressor takes numbers"):
        GraphClassifier().fit(X, y)
    with pytest.raises(
        DataError, match="target holds text, and GraphRegressor takes numbers; GraphClassifier takes text"
    ):
        GraphRegressor().fit(X, np.array(["a", "b"] * 4))
    with pytest.raises(
        DataError, match="or take another loss: MultinomialLoss of more classes, SquaredLoss of numbers"
    ):
        GraphRegressor(loss="LogisticLoss").fit(X, y)
