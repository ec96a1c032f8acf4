"""The same model on other data: which may take the place of which, and what is said of it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import DataError

GRAPH = nx.path_graph(list("abcd"))
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"site": list("aabbcc"), "rain": RNG.standard_normal(6), "y": RNG.standard_normal(6)})


def read(frame=FRAME, **more):
    return gr.NodeData.from_frame(frame, node="site", target="y", features=["rain"], intercept=True, **more)


def posed(data, loss=gr.SquaredLoss, **more):
    return gr.Problem(loss(data, **more) + 0.1 * gr.TotalVariation(GRAPH, gr.L2()))


def same(one, two):
    """True where two problems are the same to the bit."""
    (a,), (b,) = one.form.samples, two.form.samples
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("node", "X", "y", "base_scale"))


def new_row(site, rain=1.0, y=2.0):
    return pd.DataFrame({"site": [site], "rain": [rain], "y": [y]})


MORE = pd.concat([FRAME, new_row("d")], ignore_index=True)
OTHER = pd.concat([FRAME[2:], new_row("a")], ignore_index=True)
CASES = {
    "targets": (
        FRAME["y"].to_numpy() + 1.0,
        FRAME.assign(y=FRAME["y"] + 1.0),
        "6 of 6 targets changed, at 3 of 3 nodes",
    ),
    "a series": (FRAME["y"].where(FRAME["site"] != "b", 0.0), None, "2 of 6 targets changed, at 1 of 3 nodes"),
    "a frame": (MORE, MORE, "7 samples at 4 nodes, where there were 6 samples at 3 nodes; data now at 'd'"),
    "data": (read(FRAME[:4]), FRAME[:4], "none any more at 'c'"),
    "a node more": ({"d": ([[1.0]], [2.0])}, MORE, "data now at 'd'"),
    "a node anew": ({"a": ([[1.0]], [2.0])}, OTHER, "other rows: 5 samples at 3 nodes"),
    "all anew": (dict.fromkeys("abc", ([[1.0]], [2.0])), pd.concat(map(new_row, "abc")), "3 samples at 3 nodes"),
    "the same": (read(), FRAME, "nothing changed"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_on_other_data(case):
    given, frame, said = CASES[case]
    before = posed(read())
    problem = before.update(given)
    assert said in problem.changes[0]
    assert problem.changes[0].startswith("SquaredLoss: ")
    if frame is not None:
        assert same(problem, posed(read(frame)))
    assert same(before, posed(read()))  # stays as it is
    assert before.changes == ()
    assert problem.solve(start=before.solve()).status == "certified"


def test_targets_may_have_another_name():
    other = gr.NodeData.from_frame(FRAME.rename(columns={"y": "z"}), "site", "z", ["rain"], intercept=True)
    assert posed(read()).update(other).changes == ("SquaredLoss: nothing changed",)


def test_strengths_and_scales_stay():
    scale = {"a": 1.0, "b": 2.0, "c": 0.5}
    strength = gr.Parameter(0.3)
    before = gr.Problem(gr.SquaredLoss(read(), scale=scale) + strength * gr.TotalVariation(GRAPH, gr.L1()))
    problem = before.update(FRAME["y"] + 1.0)
    strength.value = 0.7
    assert float(problem.form.edges[0].strength) == 0.7
    np.testing.assert_array_equal(problem.form.samples[0].base_scale, before.form.samples[0].base_scale)
    with pytest.raises(gr.errors.TermError, match="scale has no entry for the node 'd'"):
        before.update(MORE)


def test_classes_are_coded_as_before():
    data = gr.NodeData.from_dict({i: ([[1.0], [2.0], [3.0]], ["x", "y", "z"]) for i in "ab"})
    before = posed(data, gr.MultinomialLoss)
    problem = before.update({"b": ([[1.0]], ["x"]), "a": ([[2.0]], ["y"])})
    assert problem.form.space.coordinates == before.form.space.coordinates
    with pytest.raises(DataError, match="has the classes"):
        before.update(["w"] * 6)


def test_each_loss_has_its_own_data():
    one, two = read(FRAME[:4]), read(FRAME[4:].assign(y=[0, 1]))
    model = gr.SquaredLoss(one) + gr.LogisticLoss(two) + 0.1 * gr.TotalVariation(GRAPH, gr.L2())
    problem = gr.Problem(model).update(None, [1, 0])
    assert problem.changes == ("LogisticLoss: 2 of 2 targets changed, at 1 of 1 nodes",)
    np.testing.assert_array_equal(problem.form.samples[0].y, one.y)
    np.testing.assert_array_equal(problem.form.samples[1].y, [1.0, -1.0])
    for given in ((), (None, None, None)):
        with pytest.raises(DataError, match=rf"\(SquaredLoss, LogisticLoss\), one for each, got {len(given)}"):
            gr.Problem(model).update(*given)


WEIGHTED = FRAME.assign(n=2.0)
REFUSED = {
    "fewer targets": (np.ones(5), r"shape \(5,\), and those before have \(6,\)"),
    "two targets": (np.ones((6, 2)), r"shape \(6, 2\)"),
    "a missing target": ([np.nan] * 6, "the target 'y' is nan at the node 'a', row 0"),
    "a number": (3, "new data are NodeData, a frame, targets .*, got 3"),
    "text": ("rain", "got 'rain'"),
    "a set": ({1, 2}, "got {1, 2}"),
    "a column less": (FRAME.drop(columns="rain"), "no column 'rain'"),
    "other features": (
        gr.NodeData.from_dict({"a": ([[1.0]], [1.0])}),
        r"features \['x0'\].* have \['intercept', 'rain'\]",
    ),
    "other widths": ({"a": ([[1.0, 2.0]], [1.0])}, "the new X have 2 features, and the data before have 1: 'rain'"),
    "two targets at a node": ({"a": ([[1.0]], [[1.0, 2.0]])}, "the new y have 2 targets, and the data before have 1"),
    "a node that is none": ({"e": ([[1.0]], [1.0])}, "samples at 'e', which is not a node"),
    "no pair": ({"a": 3}, "the node 'a' needs a pair"),
    "ragged": ([[1], [2, 3]], "the new y is ragged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_named(case):
    given, said = REFUSED[case]
    with pytest.raises(DataError, match=said):
        posed(read()).update(given)


def test_weights_need_a_frame():
    problem = posed(read(WEIGHTED, weights="n"))
    with pytest.raises(DataError, match="weights or offsets, which pairs"):
        problem.update({"a": ([[1.0]], [1.0])})
    np.testing.assert_array_equal(problem.update(WEIGHTED.assign(n=3.0)).model.terms[0][1].data.weights, 3.0)
    offset = posed(read(WEIGHTED, offset="n")).update(WEIGHTED.assign(n=3.0))
    np.testing.assert_array_equal(offset.model.terms[0][1].data.offset, 3.0)
    arrays = gr.Problem(gr.SquaredLoss(gr.NodeData.from_dict({"a": ([[1.0]], [1.0])})))
    with pytest.raises(DataError, match="not read from a frame"):
        arrays.update(FRAME)
