"""Folds are of the rows of the table, whatever rows are left out."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import graphreg as gr
from graphreg.cli import main
from graphreg.errors import DataError, ModelError
from graphreg.fitting import recipe

NODES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def _few_strengths(monkeypatch):
    """The folds are the same for each strength; which of many is the best is seen elsewhere."""
    monkeypatch.setattr(recipe, "STRENGTHS", 3)


def shops(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"shop": NODES * 24, "week": np.repeat(np.arange(6), 12), "price": rng.normal(size=72)})
    frame["sales"] = 10.5 + 2 * frame["price"] + rng.normal(size=72)
    frame.loc[rng.choice(72, 15, replace=False), "price"] = np.nan
    return frame


def fitted(frame, folds, **options):
    options = {"missing": "drop", "features": ["price"], "progress": False} | options
    return gr.fit(frame, nx.path_graph(NODES), target="sales", node="shop", folds=folds, **options)


def weeks(found, frame):
    """The weeks of the rows that each fold held out."""
    held = found.validation.predictions
    rows = found.rows.frame.index.to_numpy()
    return {name: set(frame["week"].to_numpy()[rows[part["row"]]]) for name, part in held.groupby("fold")}


def pairs(frame, rows):
    week = frame["week"].to_numpy()
    return [(rows(week < k), rows(week == k)) for k in (3, 4, 5)]


@pytest.mark.parametrize("missing", ["drop", "mean"])
@pytest.mark.parametrize("rows", [np.flatnonzero, np.asarray], ids=["positions", "masks"])
def test_pairs_are_of_the_rows_of_the_table(rows, missing):
    frame = shops()
    frame.loc[3, "sales"] = np.nan
    found = fitted(frame, pairs(frame, rows), missing=missing)
    assert list(weeks(found, frame).values()) == [{3}, {4}, {5}]


def test_labels_are_of_the_rows_of_the_table():
    frame = shops()
    by_label, by_name = fitted(frame, frame["week"]), fitted(frame, "week")
    assert list(weeks(by_label, frame).values()) == [{k} for k in range(6)]
    assert by_label.scores.equals(by_name.scores)


def test_pairs_of_an_iterator_serve_both_validations():
    frame = shops()
    graph = nx.Graph([("a", "b")])
    graph.add_node("c")
    found = gr.fit(
        frame, graph, target="sales", node="shop", features=["price"], missing="drop", progress=False,
        folds=iter(pairs(frame, np.flatnonzero)),
    )  # fmt: skip
    assert len(found.pooled.runs) == len(found.validation.runs) == 3


def test_a_column_of_folds_is_no_feature():
    frame = shops()
    assert fitted(frame, "week", features=None).rows.numbers == ("price",)
    both = fitted(frame, "week", features=["week", "price"])
    assert both.rows.numbers == ("week", "price")
    said = "'week' says the folds, and is no feature"
    assert said in fitted(frame, "week").remarks
    assert said not in both.remarks


@pytest.mark.parametrize(
    ("folds", "said"),
    [
        ("weak", "did you mean 'week'"),
        ([0, 1] * 30, "there are 60 fold labels and 72 rows"),
        ([([0, 1], [2, 72]), ([2], [3])], "rows of fold 0 name row 72; there are 72 rows, counted from 0"),
        ([([0.5], [2]), ([2], [3])], "rows of fold 0 must be a mask of 72 entries or at least one position"),
    ],
)
def test_folds_that_are_wrong_are_named(folds, said):
    with pytest.raises((DataError, ModelError), match=said):
        fitted(shops(), folds)


def test_a_fold_without_rows_that_are_left_is_named():
    frame = shops()
    frame.loc[frame["week"] == 3, "price"] = np.nan
    with pytest.raises(ModelError, match="fold 0 names rows that were all left out, for missing cells"):
        fitted(frame, pairs(frame, np.flatnonzero))
    assert "by 5 folds" in str(fitted(frame, "week"))


def test_one_pair_is_no_cross_validation():
    with pytest.raises(ModelError, match=r"at least two folds, got \[0\]; of one alone nothing is known of the error"):
        fitted(shops(), pairs(shops(), np.flatnonzero)[:1])


def test_a_row_without_a_label_of_folds_is_named():
    frame = shops()
    frame.loc[frame["price"].first_valid_index(), "week"] = np.nan
    with pytest.raises(ModelError, match="fold label"):
        fitted(frame, "week")


def test_the_command_line_takes_a_column_of_folds_and_says_what_is_filled(tmp_path):
    frame = shops()
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.drop(columns="sales").head(9).to_csv(tmp_path / "next.csv", index=False)
    (tmp_path / "edges.csv").write_text("from,to\na,b\nb,c\n")
    table, edges, rows, out = (str(tmp_path / name) for name in ("table.csv", "edges.csv", "next.csv", "out.csv"))
    options = ["--target", "sales", "--node", "shop", "--missing", "mean", "--folds", "week", "--predict", rows, out]
    found = CliRunner().invoke(main, ["fit", table, edges, *options])
    assert found.exit_code == 0, found.output
    gaps = int(frame["price"].head(9).isna().sum())
    assert gaps
    assert "by 6 folds" in found.stdout
    assert f"missing cells of 'next.csv' are filled as those of the table: {gaps} of 'price'" in found.stderr
