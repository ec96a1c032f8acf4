"""The records of a path of strengths: its table, its events, its plot."""

from __future__ import annotations

import numpy as np
import pytest
from path_cases import GRID, problem_of

import graphreg as gr
from graphreg.tuning.path import events


# ---- the record ------------------------------------------------------------------------------------------------------
def test_the_table_and_what_it_rests_on():
    problem, _ = problem_of()
    path = gr.path(problem, GRID)
    table = path.table()
    np.testing.assert_array_equal(table["strength"], GRID)
    np.testing.assert_allclose(table["loss"] + table["penalty"], table["objective"], rtol=1e-9)
    assert (np.diff(table["loss"]) >= -1e-5).all()  # the loss grows with the strength of the penalty
    assert (table[["fused", "near", "split", "undecided"]].sum(axis=1) == 24).all()
    assert table["clusters"].iloc[0] > table["clusters"].iloc[-1]
    assert (table["relative_gap"] <= 1e-6).all()
    assert "assumed:" in str(path)
    assert "8 of 8 strengths certified" in str(path)
    assert repr(path) == "<Path of 'lam': 8 strengths>"
    assert path.coef.shape == (8, 16, 2)
    np.testing.assert_array_equal(path.coef[3], path.solution_at(GRID[3]).coef)
    with pytest.raises(gr.errors.ModelError, match=r"no strength 0\.5; the nearest is"):
        path.solution_at(0.5)


def test_uncertified_points_are_told():
    path = gr.path(problem_of()[0], GRID, gap=1e-12, rounds=3)
    table = path.table()
    assert "budget" in set(table["status"])
    assert "8 of 8" not in str(path)


def test_strengths_without_an_answer_have_no_numbers_in_the_table():
    data = gr.NodeData.from_dict({"a": ([[1.0]], [0.0]), "b": ([[1.0]], [1.0])})
    boxes = gr.NodePenalty(gr.Box(2, 3)) + gr.NodePenalty(gr.Box(-1, 1))
    graph = gr.Graph.from_edges([("a", "b")])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.Parameter(1.0) * gr.TotalVariation(graph, gr.L1()) + boxes)
    table = gr.path(problem, [0.1, 1.0], on_failure="return").table()
    assert table["status"].tolist() == ["infeasible", "infeasible"]
    assert not {"loss", "penalty", "clusters"} & set(table.columns)


def test_events_are_the_changes_that_the_table_counts():
    data = {i: ([[1.0]], [y]) for i, y in zip("abcd", (4.0, 1.0, 0.0, -3.0), strict=True)}
    loss = gr.SquaredLoss(gr.NodeData.from_dict({i: data[i] for i in "ab"}))
    loss += gr.HuberLoss(gr.NodeData.from_dict({i: data[i] for i in "cd"}), delta=1)
    graph = gr.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    problem = gr.Problem(loss + gr.Parameter(1.0, name="lam") * gr.TotalVariation(graph, gr.L1()))
    path = gr.path(problem, np.linspace(0.05, 3, 25), gap=1e-10)
    clusters, found = path.table()["clusters"], path.events()
    assert set(clusters) == {1, 2, 3, 4}
    assert found["event"].tolist() == ["together"] * 3  # on a path of nodes each leaves one cluster fewer
    assert found["strength_to"].tolist() == path.strengths[1:][np.diff(clusters) < 0].tolist()
    assert found["before"].tolist() == ["undecided", "undecided", "split"]  # where the loss has no curvature
    assert not found["certain"].any()  # as no edge is proved to be fused


def test_an_event_is_certain_where_both_ends_are_proved():
    path = gr.path(problem_of()[0], np.geomspace(1e-2, 1.0, 12))
    found = path.events()
    assert len(found)
    for row in found.itertuples():
        ends = [path.solution_at(strength).clusters().edges for strength in (row.strength_from, row.strength_to)]
        ends = [edges[(edges["tail"] == row.tail) & (edges["head"] == row.head)].iloc[0] for edges in ends]
        assert [end["state"] for end in ends] == [row.before, row.after]
        assert row.certain == all(end["certain"] for end in ends)
    assert list(found["strength_to"]) == sorted(found["strength_to"])


def test_an_event_spans_the_strengths_at_which_its_edge_is_undecided():
    import pandas as pd

    class Found:
        def __init__(self, state, difference, certain):
            values = {"state": [state], "difference": [difference], "certain": [certain]}
            self.edges = pd.DataFrame({"term": ["t"], "tail": ["a"], "head": ["b"], **values})

    course = [
        ("undecided", 1.0, False),
        ("split", 1.0, True),
        ("undecided", 1.0, False),
        ("near", 1e-5, False),
        ("undecided", 0.0, False),  # which is counted as together
        ("undecided", 0.1, False),
        ("split", 0.2, True),
        ("undecided", 0.1, False),
        ("fused", 0.0, True),
        ("undecided", 0.1, False),
        ("split", 0.1, True),
        ("undecided", 0.0, False),
        ("undecided", 0.1, False),  # what was decided before the edge was together says nothing of it
    ]
    found = events(np.arange(13.0), [Found(*each) for each in course])
    assert found.drop(columns=["term", "tail", "head"]).values.tolist() == [
        [1.0, 3.0, "together", "split", "near", False],
        [3.0, 6.0, "split", "near", "split", False],
        [6.0, 8.0, "together", "split", "fused", True],
        [8.0, 10.0, "split", "fused", "split", True],
        [10.0, 11.0, "together", "split", "undecided", False],
        [11.0, 12.0, "undecided", "undecided", "undecided", False],
    ]


def test_without_edges():
    data = gr.NodeData.from_dict({i: (np.ones((2, 1)), np.array([i, i + 1.0])) for i in range(3)})
    problem = gr.Problem(gr.SquaredLoss(data) + gr.Parameter(1.0) * gr.NodePenalty(gr.SquaredL2()))
    path = gr.path(problem, GRID)
    assert (path.table()["fused"] == 0).all()
    assert len(path.events()) == 0
    with pytest.raises(gr.errors.ModelError, match="Give the strengths to try"):
        gr.path(problem)


# ---- plots and progress ----------------------------------------------------------------------------------------------
def test_the_plot():
    pytest.importorskip("matplotlib").use("Agg")
    path = gr.path(problem_of()[0], GRID)
    one = path.plot(node=3)
    np.testing.assert_array_equal(one.lines[1].get_ydata(), path.coef[:, 3, 1])
    np.testing.assert_array_equal(one.lines[1].get_xdata(), GRID)
    assert one.get_xscale() == "log"
    many = path.plot(feature=path.solution_at(GRID[0]).table().columns[1])
    segments = many.collections[0].get_segments()
    np.testing.assert_array_equal(segments[5][:, 1], path.coef[:, 5, 1])
    counts = many.figure.axes[1].lines[0].get_ydata()
    np.testing.assert_array_equal(counts, path.table()["clusters"])
    with pytest.raises(gr.errors.ModelError, match="99 is not a node"):
        path.plot(node=99)
    with pytest.raises(gr.errors.ModelError, match="'z' is not a coefficient"):
        path.plot(feature="z")


def test_the_progress_bar(capsys):
    gr.path(problem_of()[0], GRID[:2], progress=True)
    assert "strengths" in capsys.readouterr().err
    gr.path(problem_of()[0], GRID[:2], progress=False)
    assert capsys.readouterr().err == ""
