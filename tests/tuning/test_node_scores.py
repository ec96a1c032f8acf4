"""Held-out scores by node equal what scikit-learn computes from the predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError


def rows(seed, count=40):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"site": np.repeat(["a", "b"], count), "rain": rng.normal(size=2 * count)})
    frame["weight"] = rng.uniform(0.5, 2.0, size=len(frame))
    frame["level"] = 1.0 + frame["rain"] + 0.3 * rng.normal(size=len(frame))
    frame["high"] = frame["level"] > 1.0
    frame["count"] = rng.poisson(np.exp(0.3 * frame["rain"]))
    return frame


def solved(loss, target, seen):
    columns = {"node": "site", "features": ["rain"], "weights": "weight", "intercept": True}
    data = gr.NodeData.from_frame(seen, target=target, **columns)
    edges = gr.TotalVariation(gr.Graph.from_edges([("a", "b")]), gr.SquaredL2())
    return gr.Problem(loss(data) + 0.1 * edges).solve()


@pytest.mark.parametrize("loss", ["SquaredLoss", "LogisticLoss", "PoissonLoss"])
def test_scores_are_those_of_the_predictions(loss):
    metrics = pytest.importorskip("sklearn.metrics")
    target = {"SquaredLoss": "level", "LogisticLoss": "high", "PoissonLoss": "count"}[loss]
    solution, new = solved(getattr(gr, loss), target, rows(0)), rows(1)
    table = solution.score(new)
    assert table["samples"].tolist() == [40, 40]
    for site, part in new.groupby("site"):
        y, v, p = part[target], part["weight"], solution.predict(part)
        if loss == "SquaredLoss":
            assert table.loc[site, "r2"] == pytest.approx(metrics.r2_score(y, p, sample_weight=v))
            assert table.loc[site, "loss"] == pytest.approx(metrics.mean_squared_error(y, p, sample_weight=v) / 2)
        elif loss == "LogisticLoss":
            chosen = solution.predict(part, kind="class")
            assert table.loc[site, "accuracy"] == pytest.approx(metrics.accuracy_score(y, chosen, sample_weight=v))
            assert table.loc[site, "loss"] == pytest.approx(metrics.log_loss(y, p, sample_weight=v))
        else:
            expected = metrics.mean_poisson_deviance(y, p, sample_weight=v)
            assert table.loc[site, "deviance"] == pytest.approx(expected)


def test_all_rows_together_and_one_node_alone():
    solution, new = solved(gr.SquaredLoss, "level", rows(0)), rows(1)
    whole, each = solution.score(new, by="all"), solution.score(new)
    shares = new.groupby("site")["weight"].sum() / new["weight"].sum()
    assert whole["loss"].iloc[0] == pytest.approx(float(shares @ each["loss"]))
    alone = solution.score(new[new["site"] == "b"])
    assert alone.index.tolist() == ["b"]
    assert alone["loss"].iloc[0] == pytest.approx(each.loc["b", "loss"])
    assert "parameters of a certified answer" in str(whole)
    assert "no certificate speaks of other rows" in str(whole)


def test_mistakes():
    solution, new = solved(gr.SquaredLoss, "level", rows(0)), rows(1)
    with pytest.raises(DataError, match="new rows are at 'c', which is not a node"):
        solution.score(new.assign(site="c"))
    with pytest.raises(DataError, match="by must be 'node' or 'all'"):
        solution.score(new, by="site")
