"""The shared parts of the tests of the estimators for scikit-learn: patients in cohorts, and targets for each
estimator."""

from __future__ import annotations

from functools import cache

import networkx as nx
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_diabetes

from graphreg.sklearn import GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor, GraphRegressor

MEASURED = ["bmi", "bp", "s5"]
BANDS = 4
ESTIMATORS = (GraphRegressor, GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor)
SOME = [each if k < 2 else pytest.param(each, marks=pytest.mark.whole) for k, each in enumerate(ESTIMATORS)]


@cache
def cohorts():
    """The diabetes patients that scikit-learn ships, standardised, with the cohort of each; and the graph of cohorts:
    bands of age by sex, those next to each other joined."""
    raw = load_diabetes(scaled=False, as_frame=True).frame
    X = (raw[MEASURED] - raw[MEASURED].mean()) / raw[MEASURED].std()
    band = pd.qcut(raw["age"], BANDS, labels=False)
    X["cohort"] = [f"{'fm'[int(sex) - 1]}{b}" for sex, b in zip(raw["sex"], band, strict=True)]
    graph = nx.Graph()
    for sex in "fm":
        nx.add_path(graph, [f"{sex}{b}" for b in range(BANDS)])
    graph.add_edges_from((f"f{b}", f"m{b}") for b in range(BANDS))
    return X, (raw["target"] - raw["target"].mean()) / raw["target"].std(), graph


def fitted(estimator=GraphRegressor, **options):
    """An estimator at a strength at which the cohorts differ, fitted to the patients."""
    X, y, graph = cohorts()
    return estimator(graph, **{"strength": 0.05, "node": "cohort", **options}).fit(X, target_of(estimator, y))


def target_of(estimator, y):
    """The target as an estimator takes it: numbers, counts, or the names of two classes."""
    if estimator is GraphPoissonRegressor:
        return np.round(3.0 * (y - y.min()))
    return np.where(y > 0, "worse", "better") if estimator is GraphClassifier else y
