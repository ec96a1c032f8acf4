"""scikit-learn's own checks of estimators: all hold, for every estimator with every method that it can have.

By default all are tried on `GraphRegressor`. What they ask of rows, weights and features is answered by the base class
alone, so that the other estimators are asked the rest.
"""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.utils.estimator_checks import estimator_checks_generator

import graphreg as gr
from graphreg.sklearn import GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor, GraphRegressor

METHODS = (None, gr.Exact(), gr.InteriorPoint(), gr.PrimalDual(), gr.ADMM())
SAME = "check_estimator_sparse_matrix"  # as for sparse arrays
OF_ROWS = (
    *(
        "check_complex",
        "check_dict",
        "check_dont",
        "check_dtype_object",
        "check_estimator_sparse",
        "check_f_contiguous",
    ),
    *("check_estimators_dtypes", "check_estimators_fit", "check_estimators_nan_inf", "check_estimators_pickle"),
    *("check_fit", "check_methods", "check_n_features", "check_non_transformer", "check_pipeline", "check_readonly"),
    *("check_regressors_int", "check_regressors_no_decision_function", "check_sample_weight", "check_supervised_y_2d"),
)
ALWAYS = ("check_estimators_overwrite_params",)  # methods are objects that remember what they compute


def estimators():
    for method in METHODS:
        for each in (GraphRegressor, GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor):
            yield each(method=method)
    yield GraphRegressor(loss="HuberLoss")
    yield GraphClassifier(loss="SquaredHingeLoss")
    yield GraphClassifier(loss="MultinomialLoss", penalty="SquaredL2", fit_intercept=False)


def cases():
    for estimator in estimators():
        before = set[str]()  # a check is asked in several ways: of read-only arrays, of other types
        name = " ".join(repr(estimator).split())
        usual = name == f"{type(estimator).__name__}()"
        for _, check in estimator_checks_generator(estimator):
            called = getattr(check, "func", check).__name__
            plain = type(estimator) is GraphRegressor
            asked = called != SAME if plain else not called.startswith(OF_ROWS) and called not in before
            before.add(called)
            marks = [] if (usual and asked) or (plain and called in ALWAYS) else [pytest.mark.whole]
            yield pytest.param(estimator, check, id=f"{name}-{called}", marks=marks)


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_a_check_of_scikit_learn_holds(estimator, check):
    check(estimator)
