"""Predictions: numbers, probabilities and classes, with offsets, of several families."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from solution_cases import CHAIN, RIDGE, read

import graphreg as gr


def link_by_hand(solution, frame, offset=None):
    w = solution.table().loc[frame["site"]].to_numpy()
    link = w[:, 0] + w[:, 1] * frame["rain"].to_numpy() + w[:, 2] * frame["temp"].to_numpy()
    return link if offset is None else link + frame[offset].to_numpy()


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss])
@pytest.mark.parametrize("offset", [None, "gauge"])
def test_predictions_of_numbers(frame, loss, offset):
    problem = gr.Problem(loss(read(frame, offset=offset)) + 0.1 * gr.TotalVariation(CHAIN, gr.L2()))
    solution = problem.solve()
    new = frame.sample(frac=0.5, random_state=1).drop(columns="level")
    for kind in ("response", "link"):
        predicted = solution.predict(new, kind=kind)
        np.testing.assert_allclose(predicted, link_by_hand(solution, new, offset), rtol=1e-12)
        assert predicted.index.tolist() == new.index.tolist()


CODINGS = {
    "0 and 1": ({0: 0, 1: 1}, int),
    "-1 and 1": ({0: -1, 1: 1}, int),
    "booleans": ({0: False, 1: True}, bool),
    "floats": ({0: 0.0, 1: 1.0}, float),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("offset", [None, "gauge"])
def test_predictions_of_classes(frame, coding, offset):
    code, kind = CODINGS[coding]
    frame["flood"] = frame["flood"].map(code).astype(kind)
    solution = gr.Problem(gr.LogisticLoss(read(frame, "flood", offset=offset)) + RIDGE).solve()
    link = link_by_hand(solution, frame, offset)
    np.testing.assert_allclose(solution.predict(frame, kind="link"), link, rtol=1e-10)
    np.testing.assert_allclose(solution.predict(frame), 1 / (1 + np.exp(-link)), rtol=1e-10)
    classes = solution.predict(frame, kind="class")
    assert classes.tolist() == [code[int(x > 0)] for x in link]
    assert classes.dtype == kind
    assert set(classes) == set(code.values())
    assert (classes == frame["flood"]).mean() > 0.6


@pytest.mark.parametrize(("label", "other"), [(1, 0), (-1, 1), (0, 1), (True, False)])
def test_classes_where_all_samples_are_of_one(frame, label, other):
    frame["flood"] = label
    ridge = gr.NodePenalty(gr.SquaredL2(), features=["intercept", "rain", "temp"])
    solution = gr.Problem(gr.LogisticLoss(read(frame, "flood")) + ridge).solve()
    assert set(solution.predict(frame.assign(rain=0.0, temp=0.0), kind="class")) == {label}
    link = solution.predict(frame.assign(rain=0.0, temp=0.0), kind="link")
    slope = solution.table()["rain"].loc[frame["site"]].to_numpy()
    classes = solution.predict(frame.assign(rain=-1e6 * np.sign(link) * slope, temp=0.0), kind="class")
    assert set(classes) == {other}
    assert classes.dtype == frame["flood"].dtype


def test_a_huge_link_is_a_probability_without_a_warning(frame):
    solution = gr.Problem(gr.LogisticLoss(read(frame, "flood")) + RIDGE).solve()
    far = frame.assign(rain=1e6, temp=np.where(np.arange(30) % 2, 1e7, -1e7))
    assert solution.predict(far).between(0, 1).all()
    assert solution.predict(frame.iloc[:0]).empty


def test_predictions_with_two_families(frame):
    a, rest = frame[frame["site"] == "a"], frame[frame["site"] != "a"]
    model = gr.LogisticLoss(read(rest, "flood")) + gr.SquaredLoss(read(a, "level")) + RIDGE
    solution = gr.Problem(model).solve()
    np.testing.assert_allclose(solution.predict(frame, kind="link"), link_by_hand(solution, frame), rtol=1e-10)
    link, at_a = link_by_hand(solution, frame), (frame["site"] == "a").to_numpy()
    np.testing.assert_allclose(solution.predict(frame), np.where(at_a, link, 1 / (1 + np.exp(-link))), rtol=1e-10)
    assert set(solution.predict(frame[~at_a], kind="class")) <= set(frame["flood"])
    with pytest.raises(gr.errors.DataError, match="kind='class' needs a classification loss, and SquaredLoss is none"):
        solution.predict(frame, kind="class")


def test_no_rows_have_no_predictions_of_classes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": np.repeat(list("ab"), 20), "x": rng.normal(size=40), "y": rng.choice(list("lmh"), 40)})
    data = gr.NodeData.from_frame(frame, node="n", target="y", features=["x"], intercept=True)
    model = gr.MultinomialLoss(data) + gr.TotalVariation(gr.Graph.chain(["a", "b"]), gr.SquaredL2())
    solution = gr.Problem(model + 0.1 * gr.SquaredL2()(gr.w)).solve()
    assert len(solution.predict(frame[:0])) == 0
