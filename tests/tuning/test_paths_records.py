"""The records of a path of strengths: its table, its events, its plot."""

from __future__ import annotations

from itertools import pairwise

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


def test_events_are_the_changes_of_decided_states():
    path = gr.path(problem_of()[0], np.geomspace(1e-2, 1.0, 12))
    found = path.events()
    assert len(found)
    state = {}
    for strength, solution in path.solutions.items():
        for row in solution.clusters().edges.itertuples():
            if row.state != "undecided":
                said = "split" if row.state == "split" else "together"
                state.setdefault((row.tail, row.head), []).append((strength, said, row.certain))
    expected = {
        (a[0], b[0], *edge, b[1], bool(a[2] and b[2]))
        for edge, course in state.items()
        for a, b in pairwise(course)
        if a[1] != b[1]
    }
    rows = found[["strength_from", "strength_to", "tail", "head", "event", "certain"]].itertuples(index=False)
    assert {tuple(row) for row in rows} == expected
    assert list(found["strength_to"]) == sorted(found["strength_to"])


def test_an_undecided_edge_is_no_event():
    import pandas as pd

    class Found:
        def __init__(self, state, certain):
            self.edges = pd.DataFrame(
                {"term": ["t"], "tail": ["a"], "head": ["b"], "state": [state], "certain": [certain]}
            )

    course = [
        ("undecided", False),
        ("split", True),
        ("undecided", False),
        ("split", False),
        ("fused", True),
        ("split", True),
    ]
    found = events(np.arange(1.0, 7.0), [Found(*each) for each in course])
    assert found.drop(columns=["term", "tail", "head"]).values.tolist() == [
        [4.0, 5.0, "together", False],
        [5.0, 6.0, "split", True],
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
