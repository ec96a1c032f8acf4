"""Tables as people have them: all complaints at once by the lines of the file, missing cells by a rule."""

from __future__ import annotations

import html
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.errors import ArgumentError, DataError, GraphError, ModelError
from graphreg.fitting import Asked, recipe, refuse_look_alikes
from graphreg.fitting.reading import POOLED

ASKED = Asked("region", "y", None, None, 5, "error", "exact", "error", None)
HOW = {"target": "y", "node": "region", "folds": 2, "strengths": [1.0]}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    out = pd.DataFrame({"region": np.repeat([101, 102, 103], 8), "age": rng.normal(50, 9, 24).round(1)})
    return out.assign(own=rng.choice(["own", "rent"], 24), y=out["age"] + rng.normal(size=24))


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("from,to\n101,102\n102,103\n")
    return path


def write(frame, tmp_path):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_all_that_is_wrong_is_said_at_once_by_the_lines_of_the_file(frame, edges, tmp_path):
    frame = frame.astype(object)
    frame["seen"] = pd.date_range("2024-03-01", periods=24).astype(str)
    frame["name"] = [f"patient {k}" for k in range(40, 64)]
    frame["cost"] = [str(k) for k in range(24)]
    frame.loc[4, "cost"] = "unknown"
    frame.loc[[2, 7], "age"] = np.nan
    frame.loc[11, "region"] = np.nan
    with pytest.raises(DataError) as caught:
        gr.fit(write(frame, tmp_path), edges, **HOW)
    said = str(caught.value).splitlines()
    assert said[0] == "table.csv cannot be used as it is:"
    parts = (
        "'seen' holds dates",
        "'name' holds text with 24 different values",
        "'cost' holds numbers, but line 6 'unknown'",
        "'region' is missing in line 13",
        '\'age\' is missing in lines 4, 9; use missing="drop" or missing="mean"',
    )
    assert len(said) == len(parts) + 1
    assert all(any(part in line for line in said) for part in parts)
    for k, row in ((4, "unknown"), (11, "")):  # the lines that an editor shows
        assert row in (tmp_path / "table.csv").read_text().splitlines()[k + 1]


def test_rows_of_a_frame_are_counted_from_0(frame):
    frame.loc[5, "age"] = np.inf
    with pytest.raises(DataError, match="'age' is infinite in row 5"):
        gr.fit(frame, [(101, 102), (102, 103)], **HOW)


def test_missing_cells(frame, edges, tmp_path):
    frame.loc[[1, 9], "age"] = np.nan
    frame.loc[3, "own"] = None
    frame.loc[20, "y"] = np.nan
    path = write(frame, tmp_path)
    dropped = gr.fit(path, edges, missing="drop", **HOW)
    assert len(dropped.rows.frame) == 20
    assert "left out: 4 of 24 rows, for missing cells of 'y', 'age', 'own'" in dropped.remarks
    filled = gr.fit(path, edges, missing="mean", **HOW)
    assert len(filled.rows.frame) == 23
    assert filled.rows.frame["age"][1] == pytest.approx(frame["age"].mean())
    assert filled.rows.frame["own"][3] == frame["own"].mode()[0]
    assert "2 of 'age', 1 of 'own'" in filled.remarks[0]
    assert "left out: 1 of 24 rows, for missing cells of 'y'" in filled.remarks  # and not of what was filled
    new = pd.DataFrame({"region": ["101"], "age": [np.nan], "own": ["own"]})
    known = new.assign(age=frame["age"].mean())
    assert filled.predict(new).tolist() == pytest.approx(filled.predict(known).tolist())
    with pytest.raises(ModelError, match="missing must be one of"):
        gr.fit(path, edges, missing="skip", **HOW)


def test_columns_are_sorted_out(frame, edges, tmp_path):
    frame = frame.assign(same=1.0, member=np.arange(24) % 2 == 0, code=np.tile(["1", "2", "3"], 8))
    found = gr.fit(write(frame, tmp_path), edges, **HOW)
    assert found.rows.numbers == ("age", "member", "code")
    assert found.rows.categories == ("own",)
    assert "the feature 'same' is the same in all rows, and was left out" in found.remarks
    assert list(found.table().columns) == ["intercept", "age", "member", "code", "own[rent]"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "z"}, r"no column 'z'"),
        ({"node": "regoin"}, "did you mean 'region'"),
        ({"features": ["age", "y"]}, "'y' is a feature and also"),
        ({"features": ["agee"]}, "did you mean 'age'"),
    ],
)
def test_names_that_are_none(frame, edges, tmp_path, change, said):
    with pytest.raises(DataError, match=said):
        gr.fit(write(frame, tmp_path), edges, **{**HOW, **change})


def test_files_of_edges(frame, tmp_path):
    table, path = write(frame, tmp_path), tmp_path / "edges.csv"
    path.write_text("a,b,weight\n101,102,2\n102,101,1\n102,103,0.5\n")
    with pytest.raises(GraphError, match=r"edges\.csv has edges that stand several times, again in line 3; use rep"):
        gr.fit(table, path, **HOW)
    found = gr.fit(table, path, repeated="sum", **HOW)
    assert found.graph.weight.tolist() == [3.0, 0.5]
    path.write_text("a,b,km\n101,102,2\n")
    assert "edges.csv: 'km' not used; edge_weight= takes a column for weights" in gr.fit(table, path, **HOW).remarks
    assert gr.fit(table, path, edge_weight="km", **HOW).graph.weight.tolist() == [2.0]
    with pytest.raises(DataError, match="no column 'miles' for edge_weight=; there are 'km'"):
        gr.fit(table, path, edge_weight="miles", **HOW)
    edges = pd.DataFrame({"a": [101, 102], "b": [102, 103], "km": [2.0, 0.5]})
    assert gr.fit(frame, edges, edge_weight="km", **HOW).graph.weight.tolist() == [2.0, 0.5]
    with pytest.raises(GraphError, match=r"edge_weight= names weights of a frame of edges, .* not of a list"):
        gr.fit(table, [("101", "102")], edge_weight="km", **HOW)
    with pytest.raises(GraphError, match=r"has the columns 'a', 'b', 'km' and 0 rows, .* give each edge a row"):
        gr.fit(table, edges.head(0), **HOW)
    path.write_text("a,b,weight\n101,102,2\n102,,1\n102,103,far\n")
    with pytest.raises(DataError, match="in lines 3, 4; a node without edges needs no line: leave it out"):
        gr.fit(table, path, **HOW)
    with pytest.raises(DataError, match="there is no file"):
        gr.fit(table, tmp_path / "none.csv", **HOW)


def test_nothing_to_learn(frame):
    with pytest.raises(DataError, match="the target 'y' is the same in all rows"):
        gr.fit(frame.assign(y=1.0), [(101, 102)], **HOW)
    with pytest.raises(DataError, match="no row of the table is left"):
        gr.fit(frame.assign(age=np.nan, y=np.nan), [(101, 102)], features=["own"], missing="drop", **HOW)
    with pytest.raises(DataError, match="a table is a frame"):
        gr.fit([1, 2], [(101, 102)], **HOW)


NAMED = [f"Region {x}" for x in "ABCDEFGHIJKLM"]


def labelled(*changed):
    """Rows at thirteen regions, of which those given are written otherwise in the second half of theirs."""
    rows = pd.DataFrame({"region": np.repeat(NAMED, 4), "y": np.arange(52.0) % 7})
    for label in changed:
        rows.loc[np.flatnonzero(rows["region"].str.lower() == label.strip().lower())[2:], "region"] = label
    return rows


def chain(*labels):
    return list(pairwise(labels))


@pytest.mark.parametrize("as_file", [False, True])
def test_labels_that_differ_by_spaces_only_are_refused_and_taken_on_demand(tmp_path, as_file):
    rows, edges = labelled("Region B ", " Region C"), chain(*NAMED)
    table = write(rows, tmp_path) if as_file else rows
    with pytest.raises(GraphError) as caught:
        gr.fit(table, edges, **HOW)
    said = str(caught.value)
    assert "'Region B ' of the table beside 'Region B' of the graph, ' Region C' of the table beside" in said
    assert said.endswith('; ids="strip" takes such spaces off')
    found = gr.fit(table, edges, ids="strip", **HOW)
    assert found.graph.labels == tuple(NAMED)
    plain = gr.fit(labelled(), edges, **HOW)
    np.testing.assert_array_equal(found.solution.coef, plain.solution.coef)
    np.testing.assert_array_equal(found.predict(rows), plain.predict(labelled()))
    with pytest.raises(GraphError, match="'Region B ' of the table"):
        gr.fit(rows, edges, ids="text", **HOW)


def test_zeros_in_front_that_a_spreadsheet_took_off_are_named():
    rows = pd.DataFrame({"fips": np.repeat(["1001", "1003", "10001"], 6), "y": np.arange(18.0) % 5})
    with pytest.raises(GraphError, match=r"zeros in front: '1001' of the table beside '01001' of the graph"):
        gr.fit(rows, chain("01001", "1003", "10001"), target="y", node="fips")
    refuse_look_alikes(["1.05", "1.5", "km10"], {"1.05": 0, "km1": 1})  # decimals, and other numbers, are meant
    with pytest.raises(GraphError, match="'km4' and 'km04' of the graph"):
        refuse_look_alikes(["km4"], ["km4", "km04"])


def test_categories_that_differ_by_spaces_or_by_case_only_are_refused():
    rows = pd.DataFrame({"n": np.repeat(["a", "b"], 6), "y": np.arange(12.0) / 3})
    rows["soil"] = ["Clay", "clay ", "loam"] * 4
    with pytest.raises(DataError, match=r"'soil' has categories that differ by .* case only: 'Clay' and 'clay '"):
        gr.fit(rows, [("a", "b")], target="y", node="n")


def test_nodes_that_are_probably_misspelt_are_named():
    rows = pd.DataFrame({"town": np.repeat(["Ulm", "Bonn", "Essen", "Ward 1"], 6), "y": np.arange(24.0) / 3})
    found = gr.fit(rows, chain("Ulm", "Bnon", "Bonn", "Esssen", "Ward 1", "Ward 2"), target="y", node="town", folds=3)
    hints = [x for x in found.remarks if x.startswith("no rows at")]
    assert hints == [
        "no rows at 'Bnon'; did you mean 'Bonn'?",  # which has edges as well
        "no rows at 'Esssen'; did you mean 'Essen'?",
    ]
    rows.loc[0, "town"] = "Bnon"  # one row, beside five that are written well
    found = gr.fit(rows, chain("Ulm", "Bonn", "Essen", "Ward 1"), target="y", node="town", folds=3)
    assert "no node 'Bnon' in the graph; did you mean 'Bonn'?" in found.remarks


@pytest.mark.parametrize("kind", [list, pd.DataFrame, np.array], ids=["list", "frame", "array"])
def test_edges_that_stand_several_times_are_summed_whatever_holds_them(kind):
    edges = kind([*chain(*NAMED), ("Region B", "Region A")])
    with pytest.raises(GraphError, match='repeated="sum"'):
        gr.fit(labelled(), edges, **HOW)
    assert gr.fit(labelled(), edges, repeated="sum", **HOW).graph.weight.tolist() == [2.0, *[1.0] * 11]


@pytest.mark.parametrize("ids", ["strip", "text"])
@pytest.mark.parametrize("as_file", [False, True])
def test_what_was_done_to_labels_and_edges_is_said_with_counts(ids, as_file, tmp_path):
    plain = pd.DataFrame({"region": np.repeat([1, 2, 3], 6), "y": np.arange(18.0) % 5})
    rows = plain.assign(region=np.repeat(["1 ", "2", " 3"], 6)) if ids == "strip" else plain
    edges = pd.DataFrame([("1", "2"), ("2", "3"), ("2", "1"), ("1", "2")], columns=["a", "b"])
    if ids == "strip":
        edges.loc[1] = ["2 ", "3"]
    graph = tmp_path / "edges.csv" if as_file else edges
    edges.to_csv(tmp_path / "edges.csv", index=False)
    found = gr.fit(write(rows, tmp_path) if as_file else rows, graph, **HOW, ids=ids, repeated="sum")
    where = ("table.csv", "edges.csv") if as_file else ("the table", "the graph")
    said = ["2 of 4 edges repeat others, and their weights were summed"]
    if ids == "strip":
        said.append(f"2 of the labels of {where[0]} lost spaces at their ends: '1 ', ' 3'")
        said.append(f"1 of the labels of {where[1]} lost spaces at their ends: '2 '")
    elif not as_file:
        said.append("3 of the labels of the table were made text: 1, 2, 3")
    assert set(said) == set(found.remarks)
    assert "a graph of 3 nodes and 2 edges, with weights from 1 to 3" in " ".join(str(found).split())
    found.report(tmp_path / "fit.html")
    page = html.unescape((tmp_path / "fit.html").read_text())
    assert all(each in page and each in " ".join(str(found).split()) for each in said)
    once = gr.fit(rows, edges.iloc[:2], **HOW, ids=ids)
    assert not [each for each in once.remarks if "summed" in each]


def test_weights_that_are_not_positive_are_named_by_their_lines(tmp_path):
    rows = labelled().assign(days=np.arange(52) % 20 - 1.0)
    with pytest.raises(DataError, match=r"'days' is not positive in lines 2, 3, 22, 23 and 2 more; mend that"):
        gr.fit(write(rows, tmp_path), chain(*NAMED), weights="days", loss="PoissonLoss", **HOW)


def test_rows_that_are_copies_are_counted():
    rows = labelled().assign(age=np.arange(52.0))
    found = gr.fit(pd.concat([rows, rows.iloc[:3]]), chain(*NAMED), **HOW)
    assert "3 of 55 rows are copies of others, and were kept" in found.remarks


def test_the_graph_is_stripped_too_and_edges_that_become_one_are_as_repeated_says():
    edges = [*chain(*NAMED), ("Region A", "Region B ")]
    with pytest.raises(GraphError, match=r"'Region B' and 'Region B ' of the graph; ids=\"strip\""):
        gr.fit(labelled(), edges, **HOW)
    with pytest.raises(GraphError, match="'Region A'"):
        gr.fit(labelled(), edges, ids="strip", **HOW)
    found = gr.fit(labelled(), edges, ids="strip", repeated="sum", **HOW)
    assert found.graph.weight.tolist() == [2.0, *[1.0] * 11]


def test_upper_and_lower_case_is_asked_for_and_never_folded():
    for ids in ("exact", "strip"):
        with pytest.raises(
            GraphError, match="'region b' of the table beside 'Region B' of the graph; labels that differ"
        ):
            gr.fit(labelled("region b"), chain(*NAMED), ids=ids, **HOW)
    with pytest.raises(GraphError, match=r"^labels .*'Region M' and 'region m' of the table; labels that"):
        gr.fit(labelled("region m"), chain(*NAMED[:-1]), **HOW)
    meant = gr.fit(labelled("region b"), chain("region b", *NAMED), **HOW)  # the graph has both
    assert meant.graph.n_nodes == 14
    every = [label.lower() for label in NAMED]
    with pytest.raises(GraphError, match=r"'region j' of the table beside 'Region J' of the graph and 3 more;"):
        gr.fit(labelled().assign(region=np.repeat(every, 4)), chain(*NAMED), **HOW)


def test_nodes_that_one_side_lacks_are_named():
    lacking = " ".join(gr.fit(labelled(), chain("Region A", "beyond"), **HOW).remarks)
    assert "12 nodes of the table not in the graph, fitted by the one model for all: 'Region B', 'Region C'" in lacking
    assert "'Region K' and 2 more 1 of 14 nodes have no rows, and follow their neighbours: 'beyond'" in lacking


def test_numbers_with_signs_are_called_that(frame):
    k = np.arange(24)
    signs = frame.assign(
        price=[f"${282_600 + each:,}" for each in k],
        share=[f"{each / 2}%" for each in k],
        euro=[f"{each},5" for each in k],
    )
    with pytest.raises(DataError) as caught:
        gr.fit(signs, [(101, 102), (102, 103)], **HOW)
    price, share, euro = str(caught.value).splitlines()[1:]
    assert "'price' holds numbers with signs ('$282,600', ...): strip them, e.g. frame['price'].str.replace(" in price
    assert "'[%]'" in share
    for said, values in ((price, 282_600.0 + k), (euro, k + 0.5)):
        names = {"frame": signs}
        exec("done = " + said.partition("e.g. ")[2], names)
        assert names["done"].tolist() == values.tolist()
    assert "'euro' holds numbers with decimal commas ('0,5', ...): write points" in euro
    with pytest.raises(DataError, match="beside 'unknown': make that a number or an empty cell, and strip them"):
        gr.fit(signs.assign(price=["unknown", *signs["price"][1:]]), [(101, 102), (102, 103)], **HOW)
    with pytest.raises(DataError, match="'y' holds numbers with signs"):
        gr.fit(frame.assign(y=signs["share"]), [(101, 102), (102, 103)], **HOW)


@pytest.mark.parametrize("cells", [["2,625", "2,75", "3"], ["4,5", "5,0", "-6,25"]])
def test_a_line_for_decimal_commas_makes_no_other_numbers(frame, cells):
    """Some have three digits behind the comma, as thousands have; few values are no categories."""
    table = frame.assign(x=cells * 8)
    with pytest.raises(DataError, match="'x' holds numbers with decimal commas") as caught:
        gr.fit(table, [(101, 102), (102, 103)], **HOW)
    names = {"frame": table}
    exec("done = " + str(caught.value).partition("e.g. ")[2].splitlines()[0], names)
    assert names["done"].tolist() == [float(cell.replace(",", ".")) for cell in cells] * 8


def test_numbers_that_pandas_keeps_otherwise_are_numbers_and_so_in_new_rows():
    rows = labelled().assign(
        age=pd.array([None, 3, 8, 5] * 13, dtype="Int64"), size=[f"{k / 4}" for k in range(52)], none=np.nan
    )
    found = gr.fit(rows, chain(*NAMED), missing="mean", **HOW)
    assert found.rows.numbers == ("age", "size")
    assert found.rows.fill["age"] == 16 / 3
    assert "the feature 'none' is missing in all rows, and was left out" in found.remarks
    plain = rows.assign(age=rows["age"].astype(float), size=rows["size"].astype(float))
    assert np.array_equal(found.predict(rows), found.predict(plain))
    with pytest.raises(DataError, match="'size' is no number in row 3: 'large'"):
        found.predict(rows.assign(size=["1", "2.5", "3", "large"] + ["4"] * 48))


def test_edges_of_a_multigraph_are_summed_on_demand():
    twice = nx.MultiGraph([*chain(*NAMED), chain(*NAMED)[0]])
    with pytest.raises(GraphError, match='repeated="sum"'):
        gr.fit(labelled(), twice, **HOW)
    assert gr.fit(labelled(), twice, repeated="sum", **HOW).graph.weight.tolist() == [2.0, *[1.0] * 11]


def test_gaps_of_a_target_are_said_to_leave_rows_out():
    frame = pd.DataFrame({"node": [*"ab"] * 6, "x": np.arange(12.0), "y": np.arange(12.0) ** 2})
    frame.loc[2, "x"] = frame.loc[3, "y"] = np.nan
    with pytest.raises(DataError) as caught:
        gr.fit(frame, [("a", "b")], node="node", target="y", folds=2)
    either = 'use missing="drop" or missing="mean"'
    assert f"'x' is missing in row 2; {either}" in str(caught.value).splitlines()[2].strip()
    assert f"'y' is missing in row 3; {either}: both leave these rows out" in str(caught.value)
    found = gr.fit(frame, [("a", "b")], node="node", target="y", folds=2, missing="mean", strengths=[1.0])
    assert len(found.rows.frame) == 11


def test_a_target_with_stray_cells_or_classes_written_twice_names_them():
    frame = pd.DataFrame({"node": [*"ab"] * 12, "x": np.arange(24.0), "y": [f"{k}.5" for k in range(24)]})
    frame.loc[[3, 8], "y"] = ["1.234,50", "none"]
    with pytest.raises(DataError, match=r"'y' holds numbers, but rows 3, 8 '1\.234,50', 'none'"):
        gr.fit(frame, [("a", "b")], node="node", target="y", folds=2)
    frame["y"] = ["yes", "no", "No", "maybe"] * 6
    with pytest.raises(DataError, match="'y' has categories that differ by spaces or by case only: 'No' and 'no'"):
        gr.fit(frame, [("a", "b")], node="node", target="y", folds=2)


def test_all_that_is_wrong_with_new_rows_is_told_at_once_by_their_labels():
    rng = np.random.default_rng(0)
    towns = ["Aachen", "Bonn", "Celle", "Dortmund"]
    frame = pd.DataFrame({"town": np.repeat(towns, 8), "area": rng.normal(size=32), "kind": ["flat", "house"] * 16})
    frame["rent"] = frame["area"] + np.repeat([0.0, 0.0, 9.0, 9.0], 8) + rng.normal(size=32)
    graph = gr.Graph.from_edges([*pairwise(towns), ("X", "Y")])
    found = gr.fit(frame, graph, node="town", target="rent", folds=2, strengths=[0.1])
    new = frame.drop(columns="rent").head(12).set_index(pd.Index([f"r{i}" for i in range(12)]))
    new["area"] = new["area"].astype(object)
    new.loc["r0":"r5", "town"] = ["Bon", "Mars", None, "X", "Mars", "Venus"]
    new.loc[["r1", "r2", "r3"], "area"] = ["big", np.inf, np.nan]
    new.loc[["r4", "r6"], "kind"] = ["hut", None]
    with pytest.raises(DataError) as caught:
        found.predict(new)
    assert str(caught.value).split("\n  ") == [
        "not all rows can be predicted; correct these or leave them out:",
        "'town' is missing in row 'r2'",
        "'town' is no node in rows 'r0', 'r1', 'r4', 'r5': 'Bon', 'Mars', 'Venus'; did you mean 'Bonn'?",
        "'town' is joined to no node with rows in row 'r3': 'X'",
        "'area' is missing in row 'r3'",
        "'area' is no number in row 'r1': 'big'",
        "'area' is infinite in row 'r2'",
        "'kind' is missing in row 'r6'",
        "'kind' is none of the categories 'flat', 'house' in row 'r4': 'hut'",
        POOLED,
    ]
    with pytest.raises(DataError, match="there is no column 'area'; did you mean 'Area'"):
        found.predict(new.rename(columns={"area": "Area"}))
    fine = new.drop(index=[f"r{i}" for i in range(7)])
    as_text = fine.assign(area=fine["area"].astype(str))  # as a table of text has its numbers
    assert found.predict(fine).tolist() == pytest.approx(found.predict(as_text).tolist(), rel=1e-12)


def test_signs_in_labels_are_no_difference():
    rows = pd.DataFrame({"town": ["St. Ulm", "Bonn"] * 6 + ["St Ulm"], "y": np.arange(13.0)})
    found = gr.fit(rows, [("St. Ulm", "Bonn")], target="y", node="town", folds=2)
    assert "no node 'St Ulm' in the graph; did you mean 'St. Ulm'?" in found.remarks


@pytest.mark.parametrize(
    ("values", "rest"), [(["yes", "no"], "yes"), (["low", "mid", "high"], "mid"), ([1, 2, 4, 0], 0)]
)
def test_nodes_alone_with_one_class_are_named_before_anything_is_fitted(values, rest):
    rows = pd.DataFrame({"town": ["St. Ulm", "Bonn"] * 24 + ["St Ulm"] * 2, "y": [*values * 24][:48] + [rest] * 2})
    said = rf"no edge joins 'St Ulm' to other nodes with rows, and in all rows there \(2\) 'y' is '?{rest}'?: "
    with pytest.raises(DataError, match=said + ".*; no node 'St Ulm' in the graph; did you mean 'St. Ulm'"):
        gr.fit(rows, [("St. Ulm", "Bonn")], target="y", node="town", folds=2)


@pytest.mark.parametrize("loss", ["LogisticLoss", "MultinomialLoss"])
def test_losses_of_classes_refuse_a_target_of_numbers_before_anything_else(loss):
    rows = pd.DataFrame({"node": ["a", "b"] * 20, "x": range(40), "sales": np.linspace(1.0, 2.0, 40)})
    rows.loc[0, "node"] = "alone"  # where the intercept would be infinite, were these classes
    with pytest.raises(
        DataError, match=f"'sales' has 40 values in 40 rows, too many to be classes of {loss}; .* loss="
    ):
        gr.fit(rows, [("a", "b")], target="sales", node="node", loss=loss)


def test_few_rows_of_several_classes_are_fitted():
    sizes = ["small", "middle", "large", "small"] * 2
    rows = pd.DataFrame({"node": ["a", "b"] * 4, "size": sizes, "week": [1] * 4 + [2] * 4})
    how = {"features": [], "folds": "week", "strengths": [1.0]}
    found = gr.fit(rows, [("a", "b")], target="size", node="node", loss="MultinomialLoss", **how)
    assert found.solution.status == "certified"


# ---- where things are, and what they are called ----------------------------------------------------------------------
def test_lines_count_those_within_cells_and_rows_of_parquet_are_rows(frame, edges, tmp_path):
    frame["note"] = "two\nlines"
    frame.loc[5, "age"] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    asked = {"target": "y", "node": "region", "features": ["age", "own"], "folds": 2}
    for name, where in (("table.csv", "line 12;"), ("table.parquet", "row 5;")):
        with pytest.raises(DataError, match=f"'age' is missing in {where}"):
            gr.fit(tmp_path / name, edges, **asked)
    found = gr.fit(tmp_path / "table.csv", edges, **asked, missing="drop", strengths=[1.0])
    for name, where in (("table.csv", "line 12$"), ("table.parquet", "row 5$")):
        with pytest.raises(DataError, match=f"'age' is missing in {where}"):
            found.predict(tmp_path / name)


def test_lines_of_edges_count_those_within_cells(frame, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text('from,to,note\n101,102,"a\nb"\n102,,\n')
    with pytest.raises(DataError, match="in line 4; a node without edges"):
        gr.fit(frame, path, **HOW)


def test_a_misspelt_column_of_weights_is_named(frame, tmp_path):
    edges = pd.DataFrame({"from": [101, 102], "to": [102, 103], "length": [1.0, 2.0]})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    for given in (edges, tmp_path / "edges.csv"):
        with pytest.raises(ModelError, match=r"no column 'lenght' for edge_weight=; did you mean 'length'\?"):
            gr.fit(frame, given, edge_weight="lenght", **HOW)


def test_features_that_are_constant_within_each_node_are_named_once(frame, edges, tmp_path):
    frame["people"] = frame["region"] * 10.0
    frame["county"] = frame["region"].map({101: "x", 102: "x", 103: "z"})
    found = gr.fit(write(frame, tmp_path), edges, **HOW)
    assert [remark for remark in found.remarks if "'people'" in remark] == [
        "the same in all rows of each node, so that neighbours alone tell them from the intercept: 'people', 'county'"
    ]
    one = frame.drop_duplicates("region")  # a row of each node: nothing varies
    assert "the same in all rows of each node" not in str(
        recipe.readied(one, [(101, 102), (102, 103)], ASKED).rows.remarks
    )


@pytest.mark.parametrize("strengths", [0.5, 0, True, np.float64(0.5)])
def test_strengths_that_are_neither_numbers_nor_how_many_are_refused(strengths):
    with pytest.raises(ModelError, match=r"strengths must be (numbers, as in \[0.1, 1.0\], or how many|.* 1), got "):
        gr.fit(labelled(), chain(*NAMED), target="y", node="region", strengths=strengths)


def test_arguments_by_other_names_are_told_the_right_one():
    with pytest.raises(ArgumentError, match="no argument 'y'; here it is target="):
        gr.fit(labelled(), chain(*NAMED), y="y", node="region")
    with pytest.raises(ArgumentError, match=r"^Graph\.of has no argument 'weight'; did you mean 'edge_weight'"):
        gr.Graph.of(chain(*NAMED), weight="km")


def test_remedies_name_arguments_that_the_call_has():
    frame = pd.DataFrame({"node": [*"abc"] * 8, "x": np.arange(24.0), "y": np.arange(24.0) ** 0.5})
    edges = pd.DataFrame({"i": [*"ab"], "j": [*"bc"], "km": [1.0, 2.0]})
    with pytest.raises(GraphError, match=r"edge_weight='length' does in Graph\.of and fit"):
        gr.fit(frame, edges, node="node", target="y")
    with pytest.raises(GraphError, match=r"^the edge 'a' - 'b' appears twice; .* and fit$"):  # and nothing else
        gr.fit(frame, iter([("a", "b"), ("b", "c"), ("b", "a")]), node="node", target="y")
    dated = frame.assign(day=["2024-01-31", "2024-02-01"] * 12)
    with pytest.raises(DataError, match=r"leave the column out, with features=\[\.\.\.\]"):
        gr.fit(dated, edges, node="node", target="y", edge_weight="km")


def test_labels_of_files_are_read_to_the_letter(tmp_path):
    """NA is Namibia; among numbers it is a missing cell, and an empty label is one."""
    rows = [
        f"{land},{'NA' if x == 3 else x},{x + k / 2}" for k, land in enumerate(["NA", "null", "BW"]) for x in range(9)
    ]
    (tmp_path / "table.csv").write_text("\n".join(["land,x,y", *rows, ",1,2"]))
    (tmp_path / "edges.csv").write_text("from,to\nNA,null\nnull,BW\n")
    files = tmp_path / "table.csv", tmp_path / "edges.csv"
    found = gr.fit(*files, target="y", node="land", missing="drop", folds=3)
    assert found.table().index.tolist() == ["NA", "null", "BW"]
    assert "left out: 4 of 28 rows, for missing cells of 'land', 'x'" in found.remarks
    with pytest.raises(DataError, match=r"'land' is missing in line 29; .*\n.*'x' is missing in lines 5, 14, 23"):
        gr.fit(*files, target="y", node="land")


@pytest.mark.parametrize("named", [{"node": "y"}, {"weights": "y"}, {"weights": "n"}, {"features": ["x", "x"]}])
def test_a_column_that_is_named_twice_is_refused(named):
    rows = pd.DataFrame({"n": list("aabb") * 5, "x": range(20), "y": range(20)})
    with pytest.raises(DataError, match="is named twice; node, target, weights and features are columns apart"):
        gr.fit(rows, [("a", "b")], **{"target": "y", "node": "n"} | named)


def test_labels_of_a_scheme_are_not_taken_for_one_another():
    rows = pd.DataFrame({"n": np.repeat(["Ward A0", "Ward A1", "Ward E4"], 6), "y": np.arange(18.0) / 3})
    found = gr.fit(rows, chain("Ward A0", "Ward A1", "Ward B2"), target="y", node="n", folds=3)
    assert not any("did you mean" in each for each in found.remarks)


def test_options_of_results_are_named():
    rows = pd.DataFrame({"n": np.repeat(["a", "b"], 6), "y": np.arange(12.0) / 3})
    found = gr.fit(rows, [("a", "b")], target="y", node="n", folds=3)
    with pytest.raises(ArgumentError, match=r"Fit\.predict has no argument 'knd'; did you mean 'kind'"):
        found.predict(rows, knd="class")


def test_the_numbers_of_rows_that_a_file_begins_with_are_no_feature(tmp_path):
    rows = pd.DataFrame({"n": np.repeat(["a", "b"], 12), "x": np.arange(24.0) % 5, "y": np.arange(24.0) / 3})
    rows.to_csv(tmp_path / "t.csv")
    found = gr.fit(tmp_path / "t.csv", [("a", "b")], target="y", node="n", folds=3)
    assert found.table().columns.tolist() == ["intercept", "x"]
    assert any("taken for the numbers of rows, and left out" in each for each in found.remarks)
