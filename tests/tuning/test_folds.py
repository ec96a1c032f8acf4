"""The samples that are held out in each fold, and what of them the training data determine."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from validation_cases import frame_of, plain, read, ridge, river

import graphreg as gr
from graphreg.errors import DataError


# ---- folds -----------------------------------------------------------------------------------------------------------
def test_folds_by_sample_are_even_in_every_node_and_overall():
    frame = pd.concat([frame_of(per_node=7), frame_of(nodes=3, per_node=2, seed=1)], ignore_index=True)
    lam = gr.Parameter(1.0)
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + lam * gr.TotalVariation(river(), gr.L2()))
    for seed in range(5):
        folds = gr.tuning.folds.folds_of(problem.form, 4, "sample", seed)
        number = np.empty(len(frame), dtype=int)
        for fold in folds.each:
            number[fold.test] = fold.name
            assert sorted([*fold.train, *fold.test]) == list(range(len(frame)))
        table = pd.crosstab(frame["node"], number)
        assert (table.max(axis=1) - table.min(axis=1) <= 1).all()
        assert np.ptp(np.bincount(number)) <= 1
        again = gr.tuning.folds.folds_of(problem.form, 4, "sample", seed)
        assert all((a.test == b.test).all() for a, b in zip(folds.each, again.each, strict=True))
    assert len({tuple(gr.tuning.folds.folds_of(problem.form, 4, "sample", s).each[0].test) for s in range(5)}) == 5


def test_folds_by_node_hold_out_whole_nodes():
    frame, lam = frame_of(), gr.Parameter(1.0)
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + lam * gr.TotalVariation(river(), gr.L2()))
    folds = gr.tuning.folds.folds_of(problem.form, 4, "node", 0)
    held = [set(frame["node"].iloc[fold.test]) for fold in folds.each]
    assert sorted(map(len, held)) == [1, 1, 2, 2]
    assert len(set().union(*held)) == 6
    assert "predicted there from their neighbours" in " ".join(folds.assumed)


@pytest.mark.parametrize("by", ["sample", "node"])
def test_folds_are_of_the_rows_and_not_of_how_the_graph_is_written(by):
    rng = np.random.default_rng(0)
    node, graph = rng.integers(0, 6, 30), nx.cycle_graph(7)  # one node without rows
    again = nx.Graph()
    again.add_nodes_from([5, 2, 6, 0, 4, 1, 3])
    again.add_edges_from(graph.edges)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(rng.normal(size=(30, 2)), rng.normal(size=30), node))
    one, other = (
        gr.tuning.folds.folds_of(gr.Problem(loss + gr.TotalVariation(each, gr.L2())).form, 3, by, 0).each
        for each in (graph, again)
    )
    assert [fold.test.tolist() for fold in one] == [fold.test.tolist() for fold in other]


def test_a_node_with_one_sample_is_predicted_through_its_edge_or_not_at_all():
    frame = frame_of()
    extra = frame.iloc[:2].assign(node=["tied", "alone"])
    frame = pd.concat([frame, extra], ignore_index=True)
    graph = river()
    graph.add_edge("n5", "tied")
    graph.add_node("alone")
    lam = gr.Parameter(0.2, name="lam")
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + lam * gr.TotalVariation(graph, gr.L2()) + ridge())
    found = gr.cross_validate(problem, [0.1, 1.0], seed=1)
    unscored = found.predictions.query("not scored")
    assert unscored["node"].tolist() == ["alone"]
    text = " ".join(str(found).split())
    assert "2 nodes (2 of them with a single sample) have no training data in a fold" in text
    assert "1 held-out samples are not scored, at the node 'alone'" in text
    assert found.table()["held_out"].tolist() == [len(frame) - 1] * 2
    fold = found.predictions.query("node == 'alone'")["fold"].item()
    part = found.predictions.query("fold == @fold and scored")
    own = np.average((part["y"] - part["prediction"]) ** 2 / 2, weights=part["weight"])
    assert found.scores.loc[fold].iloc[found.index("min")] == pytest.approx(own)
    label = np.r_[np.arange(len(frame) - 1) % 2, 2]
    with pytest.raises(DataError, match=r"fold 2 holds out nothing .* ties the node 'alone'"):
        gr.cross_validate(problem, [0.1], folds=label)


def test_coordinates_that_nothing_ties_are_not_predicted():
    frame, lam = frame_of(), gr.Parameter(0.2, name="lam")
    shared = gr.SquaredLoss(read(frame)) + lam * gr.TotalVariation(river(), gr.SquaredL2(), features=["a"])
    with pytest.raises(DataError, match="holds out nothing that its training data say anything about"):
        gr.cross_validate(gr.Problem(shared), [0.1], folds=6, by="node")
    prior = shared + 0.1 * gr.NodePenalty(gr.SquaredL2(), features=["intercept", "b"])  # now they are known, from it
    assert gr.cross_validate(gr.Problem(prior), [0.1], folds=6, by="node").predictions["scored"].all()
    free = shared + gr.NodePenalty(gr.NonNegative(), features=["intercept", "b"])  # a constraint leaves them open
    with pytest.raises(DataError, match="holds out nothing"):
        gr.cross_validate(gr.Problem(free), [0.1], folds=6, by="node")


def test_nodes_without_a_graph_keep_their_places():
    """Penalties with an entry per node go on fitting where a fold takes all samples of a node."""
    frame, lam = frame_of(), gr.Parameter(0.2, name="lam")
    frame = pd.concat([frame, frame.iloc[:1].assign(node="single")], ignore_index=True)
    weights = {node: 1.0 + k for k, node in enumerate(frame["node"].unique())}
    problem = gr.Problem(gr.SquaredLoss(read(frame)) + lam * gr.NodePenalty(gr.SquaredL2(), weights=weights))
    found = gr.cross_validate(problem, [0.1, 1.0])
    assert found.predictions.query("not scored")["node"].tolist() == ["single"]


@pytest.mark.parametrize("kind", ["labels", "series", "pairs", "masks", "splitter"])
def test_folds_as_they_are_given(kind):
    model_selection = pytest.importorskip("sklearn.model_selection")
    problem, frame = plain()[0], frame_of()
    label = np.array(["u", "v", "w"])[np.arange(len(frame)) % 3]
    if kind == "splitter":
        given = model_selection.LeaveOneGroupOut()  # to which the nodes are the groups
        expected = [np.flatnonzero(frame["node"] == f"n{i}") for i in range(6)]
    else:
        expected = [np.flatnonzero(label == name) for name in "uvw"]
        masks = [(label != name, label == name) for name in "uvw"]
        pairs = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in masks]
        given = {"labels": label, "series": pd.Series(label, index=range(100, 142)), "pairs": pairs, "masks": masks}[
            kind
        ]
    folds = gr.tuning.folds.folds_of(problem.form, given, "sample", 0).each
    assert {tuple(fold.test) for fold in folds} == {tuple(rows) for rows in expected}
    assert all(sorted([*fold.train, *fold.test]) == list(range(len(frame))) for fold in folds)
    if kind in ("labels", "series"):
        assert [fold.name for fold in folds] == ["u", "v", "w"]
