"""Mistakes in data and targets: each has an error of its own, which names the guilty part and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bad_input import DATA, FRAME, FUSION, NUMBERED, RIDGE, problem, read, refusals, refused, spoilt, targets

import graphreg as gr
from graphreg.errors import DataError, TermError


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
        "capitals": (lambda: read(features=["RAIN"]), DataError, "'RAIN'", "did you mean 'rain'"),
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
        "negative count": (
            lambda: gr.PoissonLoss(targets(3, -1)),
            DataError,
            "PoissonLoss takes targets >= 0",
            "-1 in row 1",
            "use SquaredLoss, or drop",
        ),
        "text counts": (lambda: gr.PoissonLoss(targets("1", "2")), DataError, "PoissonLoss", "numeric", "'1'"),
        "tau 0": (lambda: gr.QuantileLoss(DATA, tau=0), TermError, "QuantileLoss(tau=...)", "0"),
        "tau 1": (lambda: gr.QuantileLoss(DATA, tau=1.0), TermError, "QuantileLoss(tau=...)", "(0, 1)", "1.0"),
        "tau in percent": (lambda: gr.QuantileLoss(DATA, tau=50), TermError, "QuantileLoss(tau=...)", "(0, 1)", "50"),
        "tau negative": (lambda: gr.QuantileLoss(DATA, tau=-0.5), TermError, "QuantileLoss(tau=...)", "-0.5"),
        "tau nan": (lambda: gr.QuantileLoss(DATA, tau=np.nan), TermError, "QuantileLoss(tau=...)", "nan"),
        "tau text": (lambda: gr.QuantileLoss(DATA, tau="median"), TermError, "QuantileLoss(tau=...)", "'median'"),
        "tau a list": (lambda: gr.QuantileLoss(DATA, tau=[0.1, 0.9]), TermError, "QuantileLoss(tau=...)", "[0.1, 0.9]"),
        "text quantile": (lambda: gr.QuantileLoss(targets("low", "high")), DataError, "QuantileLoss", "'low'"),
        "one class": (lambda: gr.MultinomialLoss(targets("x", "x")), TermError, "two distinct classes", "['x']"),
        "one of two classes": (
            lambda: gr.MultinomialLoss(targets("x", "y"), classes=["x"]),
            TermError,
            "two distinct classes",
            "classes=",
        ),
        "unknown class": (
            lambda: gr.MultinomialLoss(targets("x", "z", "y"), classes=["x", "y"]),
            DataError,
            "'z' in row 1",
            "['x', 'y']",
            "add it to classes",
        ),
        "the class '1' for 1": (
            lambda: gr.MultinomialLoss(targets(0, 1), classes=["0", "1"]),
            DataError,
            "0 in row 0",
            "'0' of type str, not 0 of type int",
        ),
        "a class twice": (
            lambda: gr.MultinomialLoss(targets("x", "y"), classes=["x", "y", "x"]),
            TermError,
            "distinct classes",
            "['x', 'y', 'x']",
        ),
        "classes as text": (
            lambda: gr.MultinomialLoss(targets("x", "y"), classes="xy"),
            TermError,
            "classes",
            "sequence",
            "'xy'",
        ),
        "classes as a number": (lambda: gr.MultinomialLoss(targets(0, 1), classes=2), TermError, "classes", "2"),
        "offset with classes": (
            lambda: gr.MultinomialLoss(gr.NodeData.from_arrays(np.eye(2), [0, 1], ["a", "a"], offset=[0.0, 1.0])),
            DataError,
            "MultinomialLoss takes no offset",
        ),
        "classes of two targets": (
            lambda: gr.MultinomialLoss(read(target=["level", "flood"])),
            DataError,
            "MultinomialLoss takes one target",
        ),
        "hinge coding": (lambda: gr.HingeLoss(targets(0, 1, 2)), DataError, "HingeLoss", "{0, 1}", "0, 1, 2"),
        "hinge text": (lambda: gr.HingeLoss(targets("no", "yes")), DataError, "HingeLoss", "'no'", "compare"),
        "squared hinge coding": (lambda: gr.SquaredHingeLoss(targets(1, 2)), DataError, "SquaredHingeLoss", "1, 2"),
        "delta": (lambda: gr.HuberLoss(DATA, delta=np.nan), TermError, "HuberLoss(delta=...)", "positive", "nan"),
        "delta text": (lambda: gr.HuberLoss(DATA, delta="1"), TermError, "HuberLoss(delta=...)", "number", "'1'"),
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


@pytest.fixture(scope="module")
def solved():
    return problem(0.1 * FUSION, 1e-3 * RIDGE).solve()


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


@pytest.mark.parametrize("name", ["node", "X", "y", "weights", "offset"])
def test_samples_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(DATA, name)[0] = 7


def test_arrays_of_the_user_stay_writable_and_apart():
    X, y = np.ones((2, 1)), np.zeros(2)
    data = gr.NodeData.from_arrays(X, y, ["a", "b"])
    X[0], y[0] = 5.0, 5.0
    assert (data.X[0, 0], data.y[0]) == (1.0, 0.0)
