"""Masked entries, which scikit-learn takes for data, are refused by every estimator wherever they can be given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from graphreg.errors import DataError
from graphreg.sklearn import GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor, GraphRegressor

X = np.arange(6.0)[:, None]
TARGETS = {each: [1.0, 3.0, 2.0, 3.0, 2.0, 1.0] for each in (GraphPoissonRegressor, GraphQuantileRegressor)}
TARGETS |= {GraphRegressor: TARGETS[GraphPoissonRegressor], GraphClassifier: [0, 1, 0, 1, 1, 0]}


def masked(values):
    values = np.asarray(values)
    return np.ma.masked_array(values, mask=np.arange(values.size).reshape(values.shape) == 1)


@pytest.mark.parametrize("kind", TARGETS)
def test_masks_are_refused(kind):
    y, weights = np.array(TARGETS[kind]), np.ones(6)
    model = kind().fit(np.ma.masked_array(X), y)  # nothing is masked
    calls = {
        "X": [lambda: kind().fit(masked(X), y), lambda: model.predict(masked(X)), lambda: model.score(masked(X), y)],
        "y": [lambda: kind().fit(X, masked(y)), lambda: model.score(X, masked(y))],
        "sample_weight": [lambda: kind().fit(X, y, masked(weights)), lambda: model.score(X, y, masked(weights))],
        "node": [lambda: kind([(0, 1)]).fit(X, y, node=masked([0, 0, 0, 1, 1, 1]))],
    }
    for what, each in calls.items():
        for call in each:
            with pytest.raises(DataError, match=rf"^{what} is masked at \(1"):
                call()


def test_a_frame_is_no_list_of_nodes_and_nodes_are_no_features():
    frame = pd.DataFrame({"site": [0, 0, 0, 1, 1, 1], "other": 0})
    with pytest.raises(DataError, match="got a DataFrame; give one of its columns"):
        GraphRegressor([(0, 1)]).fit(X, TARGETS[GraphRegressor], node=frame)
    with pytest.raises(DataError, match="no column but that of the nodes, 'site'"):
        GraphRegressor([(0, 1)], node="site").fit(frame[["site"]], TARGETS[GraphRegressor])
