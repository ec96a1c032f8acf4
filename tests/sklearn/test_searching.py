"""The estimators inside scikit-learn's searches, pipelines and cross-validation, beside the library's own."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from estimator_cases import MEASURED, SOME, cohorts, target_of
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import graphreg as gr
from graphreg.errors import DataError
from graphreg.sklearn import GraphClassifier, GraphRegressor

X, Y, GRAPH = cohorts()
FOLDS = list(KFold(3, shuffle=True, random_state=0).split(X))
STRENGTHS = [0.01, 0.1, 1.0]
STEP = "graphregressor__strength"


def scores_of(search):
    """The score of each fold (rows) at each point."""
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(len(FOLDS))])


@pytest.mark.parametrize(
    ("estimator", "theirs", "ours"),
    [
        (GraphRegressor, "neg_mean_squared_error", "mse"),
        (GraphRegressor, None, lambda y, p, v: r2_score(y, p, sample_weight=v)),
        (GraphClassifier, "neg_log_loss", "log_loss"),
    ],
)
def test_a_search_finds_what_cross_validation_finds(estimator, theirs, ours):
    y = target_of(estimator, Y)
    model = estimator(GRAPH, node="cohort", ridge=0.01, gap=1e-9)
    search = GridSearchCV(model, {"strength": STRENGTHS}, cv=FOLDS, scoring=theirs).fit(X, y)
    problem, better = search.best_estimator_.problem_, {"greater_is_better": True} if callable(ours) else {}
    found = gr.cross_validate(problem, STRENGTHS, FOLDS, scoring=ours, gap=1e-9, refit=False, **better)
    assert search.best_params_ == found.chosen
    sign = 1 if callable(ours) else -1
    assert scores_of(search) == pytest.approx(sign * found.scores.to_numpy(), rel=1e-4)
    assert np.ptp(search.cv_results_["mean_test_score"]) > 1e-3  # the grid has something to choose from


def test_the_fitted_problem_has_a_path():
    model = GraphRegressor(GRAPH, 0.05, node="cohort").fit(X, Y)
    most = float(gr.strength_max(model.problem_))
    assert np.ptp(model.coef_, axis=0).max() > 1e-3
    assert np.ptp(model.set_params(strength=1.01 * most).fit(X, Y).coef_, axis=0).max() < 1e-3


def routed():
    last = GraphRegressor(GRAPH, ridge=0.01)
    return last.set_fit_request(node=True).set_predict_request(node=True).set_score_request(node=True)


def test_labels_travel_by_metadata_routing():
    F, node = X[MEASURED], X["cohort"]
    with sklearn.config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), routed()).fit(F, Y, node=node)
        answer, score = steps.predict(F, node=node), steps.score(F, Y, node=node)
        scores = cross_val_score(routed(), F, Y, cv=FOLDS, params={"node": node})
    assert answer == pytest.approx(steps[-1].predict(StandardScaler().fit_transform(F), node=node))
    assert score == pytest.approx(r2_score(Y, answer))
    by_column = GraphRegressor(GRAPH, node="cohort", ridge=0.01)
    assert scores == pytest.approx(cross_val_score(by_column, X, Y, cv=FOLDS), abs=1e-6)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="a search of a pipeline passes nothing on before 1.8",
)
def test_a_search_of_a_pipeline_passes_labels_on():
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(make_pipeline(StandardScaler(), routed()), {STEP: STRENGTHS}, cv=FOLDS)
        search.fit(X[MEASURED], Y, node=X["cohort"])
    columns = make_column_transformer(
        (StandardScaler(), MEASURED), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    steps = make_pipeline(columns, GraphRegressor(GRAPH, node="cohort", ridge=0.01))
    expected = GridSearchCV(steps, {STEP: STRENGTHS}, cv=FOLDS).fit(X, Y)
    assert search.best_params_ == expected.best_params_
    assert scores_of(search) == pytest.approx(scores_of(expected), abs=1e-6)


def test_without_routing_a_search_says_what_is_missing():
    with pytest.raises(DataError, match="with metadata routing, see docs"):
        GridSearchCV(GraphRegressor(GRAPH), {"strength": [0.3]}, cv=FOLDS, error_score="raise").fit(
            X[MEASURED], Y, node=X["cohort"]
        )


@pytest.mark.parametrize("estimator", SOME)
def test_rows_are_predicted_by_folds(estimator):
    y = np.asarray(target_of(estimator, Y))
    model = estimator(GRAPH, 0.05, node="cohort")
    train, test = FOLDS[0]
    answer = cross_val_predict(model, X, y, cv=FOLDS)
    assert (answer[test] == model.fit(X.iloc[train], y[train]).predict(X.iloc[test])).all()


def test_cohorts_have_models_of_their_own_on_real_data():
    """Held-out patients: as good as one model for all, and the search shrinks towards it."""
    model = GraphRegressor(GRAPH, 0.05, node="cohort")
    ours = cross_val_score(model, X, Y, cv=FOLDS).mean()
    assert ours > cross_val_score(LinearRegression(), X[MEASURED], Y, cv=FOLDS).mean() - 0.02
    assert ours > cross_val_score(model.set_params(strength=0), X, Y, cv=FOLDS).mean()
