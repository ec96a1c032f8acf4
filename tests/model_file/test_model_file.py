"""Model files: the same problems as in Python, from tables."""

from __future__ import annotations

import sys
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from model_files import BASE, FULL, changed, read, tables

import graphreg as gr
from graphreg.errors import GraphError, ModelFileError
from graphreg.model_file import families
from graphreg.model_file.schema import Place

ROADS = [("01", "02"), ("02", "03"), ("03", "04"), ("04", "05"), ("05", "07")]
NAMES = ["01", "02", "03", "04", "05", "06"]


def data_of(frame, target="response", **options):
    return gr.NodeData.from_frame(frame, node="site", target=target, features=["dose", "age"], **options)


def roads(**attributes):
    graph = nx.Graph()
    graph.add_nodes_from([*NAMES, "07"])
    graph.add_edges_from(ROADS, **attributes)
    return graph


def same(model, problem):
    """Both have the same certified optimum, node by node."""
    here, there = model.problem.solve(), problem.solve()
    assert here.status == there.status == "certified"
    scale = 1e-7 * (1 + abs(there.objective))
    assert here.certificate.dual - scale <= there.objective
    assert there.certificate.dual - scale <= here.objective
    assert here.table().columns.tolist() == there.table().columns.tolist()
    assert set(here.labels) == set(there.labels)
    return here


@pytest.fixture
def frame(tmp_path):
    return tables(tmp_path)


# ---- the same as in Python -------------------------------------------------------------------------------------------
def test_base(tmp_path, frame):
    model = gr.SquaredLoss(data_of(frame)) + 0.2 * gr.TotalVariation(roads(), gr.L2())
    solution = same(read(tmp_path, BASE), gr.Problem(model))
    assert "06" in solution.labels  # has no edge
    assert "07" in solution.labels  # has no data
    np.testing.assert_allclose(solution.coef[solution.labels.index("07")], solution.table().loc["05"], atol=1e-4)


def test_full_model_of_every_kind_of_key(tmp_path, frame):
    rows = frame.assign(twice=2 * frame["dose"] + frame["age"])
    rows["dose"] = (rows["dose"] - rows["dose"].mean()) / rows["dose"].std()
    features = ["dose", "age", "twice"]
    data = gr.NodeData.from_frame(
        rows, node="site", target="response", features=features, weights="hours", offset="base", intercept=True
    )
    sys.path.insert(0, str(tmp_path))
    try:
        own: Any = families.find("penalty", "penalties:ElasticNet", None, [tmp_path])
    finally:
        sys.path.pop(0)
    graph = gr.Graph.from_edges(ROADS[:4], weights=[1.0, 2.0, 1.0, 0.5], nodes=NAMES)
    districts = {"north": {"a": ["01", "02"], "b": ["03"]}, "south": {"c": ["04", "05", "06"]}}
    model = (
        2.0 * gr.HuberLoss(data, delta=1.5, scale="sum")
        + 0.3 * gr.TotalVariation(graph, gr.HuberNorm(0.5), features=["dose"])
        + 0.01 * gr.NodePenalty(own(2.0), weights=dict.fromkeys(NAMES, 1.5), center=[0.5], features=["dose"])
        + 0.5 * gr.Hierarchy(districts, weights=(0.1, 0.2, 0.3), penalty=gr.L2())
    )
    found = read(tmp_path, FULL[0])
    same(found, gr.Problem(model))
    assert found.method == gr.PrimalDual(balance=1.0, relaxation=1.5, polish=False)
    assert found.options == {"gap": 1e-3, "rounds": 1000, "seconds": 60.0, "memory": 1e9, "seed": 1}
    standard = found.samples[0].standardised
    assert standard is not None
    assert standard.center == {"dose": pytest.approx(frame["dose"].mean())}
    assert "standardised" in str(found)
    solution = found.solve(rounds=20, gap=0.0)  # what is given in Python comes first
    assert (solution.rounds, solution.status) == (20, "budget")


def test_adjacency_and_alpha(tmp_path, frame):
    clusters = {"x": NAMES[:3], "y": NAMES[3:]}
    graph = gr.Graph.from_edges(ROADS[:4], weights=[1.0, 2.0, 1.0, 0.5], nodes=NAMES)
    model = (
        gr.SquaredLoss(data_of(frame), scale=2.0)
        + 0.2 * gr.TotalVariation(graph, gr.L2())
        + gr.Hierarchy.from_alpha(clusters, alpha=0.3, gamma=0.4)
    )
    found = read(tmp_path, FULL[1])
    same(found, gr.Problem(model))
    assert found.method == gr.Exact(form="dual")


def test_families_of_graphs_and_constraints(tmp_path, frame):
    field = nx.relabel_nodes(nx.grid_2d_graph(2, 3), {(i, j): NAMES[3 * i + j] for i in range(2) for j in range(3)})
    model = (
        gr.SquaredLoss(data_of(frame))
        + 0.1 * gr.TotalVariation(nx.path_graph(NAMES), gr.L1())
        + gr.TotalVariation(field, gr.Quadratic([[2.0, 0.5], [0.5, 1.0]]))
        + gr.NodePenalty(gr.Box(-3.0, [2.0, 3.0]))
    )
    same(read(tmp_path, FULL[2]), gr.Problem(model))


@pytest.mark.parametrize("family", ["path", "cycle", "complete", "star"])
def test_named_graphs_are_those_of_networkx(tmp_path, frame, family):
    expected = gr.Graph.from_networkx(getattr(nx, f"{family}_graph")(NAMES))
    for keys_of_graph in ({}, {"labels": NAMES}):
        found = read(tmp_path, {**BASE, "graph": {"family": family, **keys_of_graph}}).graphs[0]
        assert found.edges() == expected.edges()


def test_nodes_that_are_numbered(tmp_path, frame):
    frame["site"] = frame["site"].astype(int) - 1
    frame.to_csv(tmp_path / "visits.csv", index=False)
    found = read(tmp_path, {**BASE, "graph": {"family": "path", "labels": "numbers", "size": 8}})
    assert found.graphs[0].labels == tuple("01234567")
    assert found.solve().status == "certified"


def test_consensus(tmp_path, frame):
    graph = nx.cycle_graph(NAMES)
    model = (
        gr.SquaredLoss(data_of(frame)) + 0.2 * gr.TotalVariation(graph, gr.L2()) + gr.Consensus(graph, features=["age"])
    )
    same(read(tmp_path, FULL[3]), gr.Problem(model))


def test_families_of_losses_differ_by_node(tmp_path, frame):
    content = {
        **BASE,
        "loss": [
            {"family": "SquaredLoss", "keep": {"region": "north"}},
            {
                "family": "HuberLoss",
                "delta": 0.7,
                "keep": {"region": "south"},
                "scale": {"04": 1.0, "05": 2.0, "06": 3.0},
            },
        ],
    }
    north, south = frame[frame["region"] == "north"], frame[frame["region"] == "south"]
    model = (
        gr.SquaredLoss(data_of(north))
        + gr.HuberLoss(data_of(south), delta=0.7, scale={"04": 1.0, "05": 2.0, "06": 3.0})
        + 0.2 * gr.TotalVariation(roads(), gr.L2())
    )
    same(read(tmp_path, content), gr.Problem(model))


def test_several_tables_of_data(tmp_path, frame):
    frame.iloc[:14].to_csv(tmp_path / "one.csv", index=False)
    frame.iloc[14:].to_csv(tmp_path / "two.csv", index=False)
    rest = {"node": "site", "features": ["dose", "age"]}
    content = {
        **BASE,
        "data": [
            {"name": "one", "file": "one.csv", "target": "response", **rest},
            {"name": "two", "file": "two.csv", "target": "ill", **rest},
        ],
        "loss": [{"family": "SquaredLoss", "data": "one"}, {"family": "LogisticLoss", "data": "two"}],
    }
    model = (
        gr.SquaredLoss(data_of(frame.iloc[:14]))
        + gr.LogisticLoss(data_of(frame.iloc[14:], "ill"))
        + 0.2 * gr.TotalVariation(roads(), gr.L2())
    )
    same(read(tmp_path, content), gr.Problem(model))


def test_means_of_several_targets(tmp_path, frame):
    content = {**BASE, "data": {"file": "visits.csv", "node": "site", "target": ["dose", "age"]}}
    content["loss"] = {"family": "MeanLoss"}
    data = gr.NodeData.from_frame(frame, node="site", target=["dose", "age"])
    same(read(tmp_path, content), gr.Problem(gr.MeanLoss(data) + 0.2 * gr.TotalVariation(roads(), gr.L2())))


def test_weights_of_a_hierarchy_by_label(tmp_path, frame):
    lam = {"north": 0.3, "south": 0.4}
    content = {**BASE, "hierarchy": {"clusters": "region", "weights": [0.2, lam]}}
    model = (
        gr.SquaredLoss(data_of(frame))
        + 0.2 * gr.TotalVariation(roads(), gr.L2())
        + gr.Hierarchy({"north": NAMES[:3], "south": NAMES[3:]}, weights=(0.2, lam))
    )
    same(read(tmp_path, content), gr.Problem(model))


# ---- tables ----------------------------------------------------------------------------------------------------------
def test_parquet_is_csv(tmp_path, frame):
    pytest.importorskip("pyarrow")
    frame["site"] = frame["site"].astype(int)
    frame.to_parquet(tmp_path / "visits.parquet")
    content = {**BASE, "graph": {"family": "path"}}
    content["data"] = {**content["data"], "file": "visits.parquet"}
    found = read(tmp_path, content)
    assert found.samples[0].labels == ("1", "2", "3", "4", "5", "6")
    data = data_of(frame.assign(site=frame["site"].map(str)))
    chain = nx.path_graph(found.samples[0].labels)
    same(found, gr.Problem(gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(chain, gr.L2())))


def test_parquet_without_its_extra(tmp_path, frame, monkeypatch):
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "visits.parquet")

    def absent(path):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", absent)
    with pytest.raises(ModelFileError, match=r"\[data\] file: .*pip install graphreg\[parquet\]"):
        read(tmp_path, changed(BASE, ("data",), "file", value="visits.parquet"))


def test_gzip_and_a_folder_of_data(tmp_path, frame):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    frame.to_csv(folder / "visits.csv.gz", index=False)
    (tmp_path / "roads.csv").rename(folder / "roads.csv")
    content = changed(BASE, ("data",), "file", value="visits.csv.gz")
    assert read(tmp_path, content, data=folder).samples[0].labels == tuple(NAMES)
    with pytest.raises(ModelFileError, match="there is no folder"):
        read(tmp_path, content, data=tmp_path / "nowhere")


def test_labels_are_text_to_the_letter(tmp_path):
    (tmp_path / "visits.csv").write_text("site,dose,age,response\nNA,1,2,3\n007,2,1,1\n1e3,2,2,2\n nan,1,1,1\n")
    found = read(tmp_path, {**BASE, "graph": {"family": "complete"}})
    assert found.samples[0].labels == ("NA", "007", "1e3", " nan")


def test_byte_order_mark_is_no_part_of_a_name(tmp_path, frame):
    frame.to_csv(tmp_path / "visits.csv", index=False, encoding="utf-8-sig")
    assert read(tmp_path, BASE).samples[0].labels == tuple(NAMES)


def test_filters_and_derived_columns(tmp_path, frame):
    content = changed(BASE, ("data",), "target", value="share")
    content["data"] |= {
        "derive": {"total": "dose + abs(age)", "share": "-dose / total + sqrt(hours) * 2 - log(1 + hours)"},
        "keep": {"site": ["01", "02", "03"], "hours": [1, 2]},
    }
    found = read(tmp_path, content)
    rows = frame[frame["site"].isin(["01", "02", "03"]) & frame["hours"].isin([1, 2])]
    share = -rows["dose"] / (rows["dose"] + rows["age"].abs()) + 2 * np.sqrt(rows["hours"]) - np.log1p(rows["hours"])
    np.testing.assert_allclose(found.samples[0].frame["share"], share, rtol=1e-14)
    assert found.samples[0].rows == len(frame)
    assert f"{len(rows)} of {len(frame)} rows, 3 nodes" in str(found)


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("dose +", "no formula"),
        ("dose ** 2", r"'dose \*\* 2', which is not allowed"),
        ("dose > 1", "not allowed"),
        ("__import__('os').getcwd()", "not allowed"),
        ("@frame", "no formula"),
        ("dose.mean()", "not allowed"),
        ("eval(dose)", "not allowed"),
        ("dose[0]", "not allowed"),
        ("[dose, age]", "not allowed"),
        ("'a' * 9", "not allowed"),
        ("dose if age else 1", "not allowed"),
        ("log", "names 'log', which is no column"),
        ("doze + 1", "did you mean 'dose'"),
        ("site * 2", "column 'site', which is text"),
        ("log(dose, age)", "not allowed"),
    ],
)
def test_formulas_that_are_refused(tmp_path, frame, formula, why):
    content = {**BASE, "data": {**BASE["data"], "derive": {"new": formula}}}
    with pytest.raises(ModelFileError, match=r"model.toml: \[data\] derive new: .*" + why):
        read(tmp_path, content)


def test_labels_that_no_edge_has_are_named(tmp_path, frame):
    model = read(tmp_path, BASE)
    assert str(model).splitlines()[-1] == "nodes with data and without edges: 1 (06)"
    whole = read(tmp_path, {**BASE, "graph": {"family": "cycle"}})
    assert "without edges" not in str(whole)


@pytest.mark.parametrize(("ends", "said"), [(("06", "Bonn"), "'Bon'; did you mean 'Bonn'"), (("6", "07"), "zeros")])
def test_labels_of_edges_that_are_probably_those_of_data_are_named(tmp_path, frame, ends, said):
    frame["site"] = frame["site"].replace("01", "Bonn")
    frame.to_csv(tmp_path / "visits.csv", index=False)
    edges = pd.DataFrame([("Bon", "02"), ("02", "03"), ends], columns=["a", "b"])
    edges.to_csv(tmp_path / "roads.csv", index=False)
    with pytest.raises(GraphError, match=said) if said == "zeros" else pytest.warns(UserWarning, match=said):
        read(tmp_path, BASE)


# ---- rows ------------------------------------------------------------------------------------------------------------
DAY = {"01": 1.0, "02": 4.0, "03": 9.0, "04": 16.0, "05": 25.0, "06": 36.0}  # of dated.csv
SITES, ARROWS = list(DAY), nx.DiGraph([("01", "02"), ("03", "02"), ("04", "05")])
LEADS = {("01", "02"): 0.5, ("03", "02"): -0.2, ("04", "05"): 0.0}
ENTRIES = np.zeros((4, 8))  # of entries.csv, on "dose" and "age" of the sites 01 to 04
ENTRIES[[0, 1, 2, 3], [0, 2, 5, 6]] = 1.0, -1.0, 1.0, 2.0
w = gr.w
ROWS = {
    "days": ({"along": "date", "order": 2}, w.along(SITES, 2)),
    "uneven": ({"along": "day", "order": 2, "at": "day"}, w.along(SITES, 2, at=[*DAY.values()])),
    "listed": (
        {"along": ["02", "01", "05"], "at": [0, 1.5, 2], "order": 2, "features": ["age"]},
        w.at(features=["age"]).along(["02", "01", "05"], 2, at=[0.0, 1.5, 2.0]),
    ),
    "by a list": ({"along": "day", "offset": [0.0, 1.0, 2.0, 3.0, 4.0], "features": ["age"]}, None),
    "graph": ({"across": "graph", "order": 2}, w.across(nx.Graph([("01", "02"), ("02", "03"), ("03", "04")]), 2)),
    "arrows": ({"across": "arrows.csv", "offset": "lead"}, w.across(ARROWS) - LEADS),
    "groups": (
        {"across": "arrows.csv", "groups": "kind", "weights": {"x": 1.0, "y": 2.0}},
        w.across(ARROWS)
        .grouped({e: "y" if e[0] == "03" else "x" for e in ARROWS.edges})
        .weighted({"x": 1.0, "y": 2.0}),
    ),
    "nodes": (
        {"at": ["03", "01"], "features": ["dose"], "offset": "day", "weights": {"01": 1.0, "03": 2.0}},
        (w.at(["03", "01"], ["dose"]) - [9.0, 1.0]).weighted([2.0, 1.0]),
    ),
    "all": ({"at": "all", "offset": [[1.0, 2.0]]}, w - np.array([[1.0, 2.0]])),
    "entries": (
        {"file": "entries.csv", "offset": "sum", "weights": "trust"},
        (gr.Rows(ENTRIES, 2, SITES[:4], ["dose", "age"]) - [[0.5, 0.0], [-0.5, -0.5]]).weighted([2.0, 1.0]),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_those_of_python(tmp_path, name):
    tables(tmp_path)
    keys, rows = ROWS[name]
    graph = {"graph": {"adjacency": "matrix.csv"}} if name == "graph" else {}
    rows = w.at(features=["age"]).along(SITES) - np.arange(5.0) if rows is None else rows
    data = {**BASE["data"], "file": "dated.csv"}
    content = {"data": data, **graph, "loss": BASE["loss"], "rows": {"penalty": "L2", "strength": 0.3, **keys}}
    file = read(tmp_path, content)
    fit = gr.SquaredLoss(file.samples[0].node_data(None, Place("")))
    if name == "graph":
        rows = w.across(file.graphs[0], 2)
    ours, theirs = file.problem.form, gr.Problem(fit + 0.3 * gr.L2()(rows)).form
    assert ours.labels == theirs.labels
    for mine, yours in zip(ours.edges, theirs.edges, strict=True):
        assert abs(mine.flat(2) - yours.flat(2)).max() == 0.0
        assert np.array_equal(mine.weight, yours.weight)
        assert (mine.center is None) == (yours.center is None)
        assert mine.center is None or np.array_equal(mine.center, yours.center)


def test_rows_of_several_graphs_name_theirs(tmp_path):
    tables(tmp_path)
    graphs = [{"name": "line", "family": "path"}, {"name": "ring", "family": "cycle"}]
    rows = [{"penalty": "L1", "across": each, "order": 2} for each in ("line", "ring")]
    content = {"data": BASE["data"], "graph": graphs, "loss": BASE["loss"], "rows": rows}
    line, ring = read(tmp_path, content).problem.form.edges
    assert line.flat(2).nnz == 2 * 16
    assert ring.flat(2).nnz == 2 * 18
    rows[1]["across"] = "rign"
    with pytest.raises(ModelFileError, match=r"number 2\) across: no table \[\[graph\]\] has .* did you mean 'ring'"):
        read(tmp_path, content)


def test_nodes_that_rows_alone_name_are_told(tmp_path):
    tables(tmp_path)
    file = read(tmp_path, {**BASE, "rows": {"penalty": "L2", "at": ["01", "7", "07"]}})
    assert "nodes that [rows] alone name: 1 (7)" in str(file)  # 07 is in the graph
