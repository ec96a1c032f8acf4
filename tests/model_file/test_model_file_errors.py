"""Model files: errors that name the key."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import MISSING, fields

import pandas as pd
import pytest
from factories import thinned
from model_files import BASE, DATE, FULL, OWN, changed, keys, read, tables

import graphreg as gr
from graphreg.base.declaring import declared
from graphreg.errors import DataError, GraphError, GraphregError, MethodError, ModelFileError, TermError
from graphreg.model_file import families
from graphreg.model_file.schema import TABLES, Place


@pytest.fixture
def frame(tmp_path):
    return tables(tmp_path)


# ---- every key, wrong once -------------------------------------------------------------------------------------------
def the_cases():
    return [(k, path, key, value) for k, content in enumerate(FULL) for path, key, value in keys(content)]


FREE = ("derive", "clusters")  # tables whose keys are names of one's own


def case_name(case):
    k, path, key, _ = case
    return f"{k}-{'.'.join(map(str, path))}.{key}"


def test_the_models_have_every_key():
    used = {(path[0], key) for _, path, key, _ in the_cases()}
    missing = {(table, field.name) for table, kind in TABLES.items() for field in fields(kind)} - used
    assert missing == {("solve", "checkpoint")}, "give the new key to a model in FULL"  # has its own test


@pytest.mark.parametrize(
    "case", thinned([case for case in the_cases() if case[1][-1] not in FREE], every=4), ids=case_name
)
def test_a_misspelt_key_is_named(tmp_path, frame, case):
    k, path, key, _ = case
    with pytest.raises(GraphregError) as caught:
        read(tmp_path, changed(FULL[k], path, key, name=f"{key}q"))
    line = str(caught.value)
    assert line.startswith("model.toml: [")
    assert f"[{path[0]}]" in line
    assert f"{key}q" in line or f"'{key}'" in line  # a label of a table that has to be complete


@pytest.mark.parametrize("case", thinned(the_cases(), every=4), ids=case_name)
def test_a_value_of_the_wrong_type_is_named(tmp_path, frame, case):
    k, path, key, value = case
    other = True if isinstance(value, str) else "x"
    for wrong in (DATE, [[DATE]], other):
        with pytest.raises(GraphregError) as caught:
            read(tmp_path, changed(FULL[k], path, key, value=wrong))
        line = str(caught.value)
        outer = next((step for step in path[1:] if isinstance(step, str)), key)  # the key of the table
        assert line.startswith("model.toml: [")
        assert f"[{path[0]}]" in line
        assert re.search(rf"\b{outer}\b", line) or re.search(rf"\b{re.escape(key)}\b", line)


@pytest.mark.parametrize("case", thinned(the_cases(), every=4), ids=case_name)
def test_a_missing_key_is_named_where_it_is_needed(tmp_path, frame, case):
    k, path, key, _ = case
    content = changed(FULL[k], path, key)
    schema = {field.name: field.default for field in fields(TABLES[path[0]])}
    inline = any(isinstance(step, str) for step in path[1:])
    if key == "family" if inline else schema.get(key) is MISSING:
        with pytest.raises(ModelFileError, match=rf"model.toml: \[+{path[0]}\]+.* needs the key '{key}'"):
            read(tmp_path, content)
        return
    said = ""
    try:
        read(tmp_path, content)
    except GraphregError as error:  # some keys need each other
        said = str(error)
    assert not said or said.startswith("model.toml: [")


def test_the_full_models_are_right(tmp_path, frame):
    for content in FULL:
        assert read(tmp_path, content).solve(gap=1e-2).certificate.valid


# ---- errors ----------------------------------------------------------------------------------------------------------
def wrong(table, **changes):
    return {**BASE, table: {**BASE.get(table, {}), **changes}}


ERRORS = [
    ({**BASE, "los": {}}, r"model.toml has no table or key 'los'; did you mean 'loss'\?"),
    ({k: v for k, v in BASE.items() if k != "loss"}, r"the table \[loss\] is missing"),
    ({**BASE, "loss": 3}, r"\[loss\]: this must be a table, written as \[loss\], got 3"),
    ({**BASE, "loss": []}, r"\[\[loss\]\]: the list is empty"),
    ({**BASE, "gap": 1e-3}, r"model.toml has no table or key 'gap'; it is a key of \[solve\]"),
    (wrong("loss", famly="x"), r"\[loss\] has no key 'famly'; did you mean 'family'\?"),
    (wrong("loss", family="logistic"), r"\[loss\] family: there is no loss 'logistic'; did you mean 'LogisticLoss'\?"),
    (wrong("loss", family="HuberLoss", dleta=1.0), r"\[loss\] has no key 'dleta'; did you mean 'delta'\?"),
    (wrong("loss", family="HuberLoss", delta="big"), r"\[loss\] delta: this must be a number, got 'big'"),
    (
        wrong("loss", family="HuberLoss", delta=-1.0),
        r"\[loss\]: HuberLoss\(delta=...\) must be a positive",
    ),
    (wrong("loss", scale="median"), r"\[loss\]: scale must be 'mean', 'sum'"),
    (wrong("loss", family="LogisticLoss"), r"\[loss\]: LogisticLoss takes targets coded"),
    (wrong("loss", strength=-1.0), r"\[loss\]: a strength must be positive"),
    (wrong("loss", data="visit"), r"\[loss\] data: no table \[\[data\]\] has the name 'visit'"),
    (wrong("loss", keep={"region": "east"}), r"\[loss\] keep region: no row of visits.csv is left"),
    (
        wrong("data", file="visit.csv"),
        r"\[data\] file: there is no file 'visit.csv' in .*; did you mean 'visits.csv'\?",
    ),
    (wrong("data", file="a/b.csv"), r"\[data\] file: there is no folder"),
    (wrong("data", file="penalties.py"), r"\[data\] file: 'penalties.py' is no table"),
    (wrong("data", node="sites"), r"\[data\] node: visits.csv has no column 'sites'; did you mean 'site'\?"),
    (wrong("data", target="respons"), r"\[data\] target: visits.csv has no column 'respons'; did you mean 'response'"),
    (wrong("data", features=["doze"]), r"\[data\] features: visits.csv has no column 'doze'; did you mean 'dose'"),
    (wrong("data", features="all"), r"\[data\] features: this must be 'others' or a list of text, got 'all'"),
    (
        wrong("data", features=["region"]),
        r"\[data\] features: 'region' of visits.csv is not numeric; name them in categories, leave",
    ),
    (
        wrong("data", features="others"),
        r"\[data\] features: 'region', 'district' of .* not numeric; name them in categories, list them in exclude,",
    ),
    (wrong("data", exclude=["age"]), r"\[data\] exclude: this goes with features = \"others\" only"),
    (wrong("data", weights="base"), r"\[data\]: the sample weight 'base' is .* at the node '01', row"),
    (wrong("data", standardise=["age", "ill"]), r"\[data\] standardise: 'ill' is not among the features"),
    (wrong("data", keep={"site": 1}), r"\[data\] keep site: 1 cannot be compared: the column 'site' .* holds text"),
    (wrong("data", keep={"hours": "1"}), r"\[data\] keep hours: '1' cannot be compared: .* holds numbers"),
    (wrong("data", keep={"hour": 1}), r"\[data\] keep: visits.csv has no column 'hour'; did you mean 'hours'"),
    (wrong("data", derive={"age": "dose"}), r"\[data\] derive age: there is a column 'age' already"),
    (wrong("graph", edges="roads.cvs"), r"\[graph\] edges: there is no file 'roads.cvs'"),
    (wrong("graph", head="c"), r"\[graph\] head: roads.csv has no column 'c'"),
    (wrong("graph", tail="b", head="b"), r"\[graph\] tail: tail and head are the same column"),
    (wrong("graph", edge_weight="wide"), r"\[graph\] edge_weight: roads.csv has no column 'wide'"),
    (wrong("graph", weight="wide"), r"\[graph\] has no key 'weight'; did you mean 'edge_weight'"),
    (wrong("graph", edge_weight="a"), r"\[graph\] edge_weight: the column 'a' of roads.csv is not numeric"),
    (wrong("graph", family="path"), r"\[graph\] needs exactly one of the keys 'edges', 'adjacency' or 'family', got 2"),
    (wrong("graph", size=3), r"\[graph\] size: this does not go with 'edges'"),
    *(
        (
            {**BASE, "graph": {"family": name, "size": size, "labels": "numbers"}},
            rf"\[graph\] size: a {name} of [\d,]+ nodes would take [\d.e+]+ GB, and [\d.]+ GB may be used; make it",
        )
        for name, size in [("complete", 10**6), ("path", 10**12), ("grid", [10**6, 10**6])]
    ),
    ({**BASE, "graph": {"family": "ring"}}, r"\[graph\] family: there is no family of graphs 'ring'"),
    ({**BASE, "graph": {"family": "grid"}}, r"\[graph\] size: a grid needs size = \[rows, columns\]"),
    (
        {**BASE, "graph": {"family": "grid", "size": [2, 2]}},
        r"\[graph\] size: this makes 4 nodes and there are 6 labels",
    ),
    (
        {**BASE, "graph": {"family": "path", "labels": "numbers"}},
        r"\[graph\] size: labels = \"numbers\" needs the number",
    ),
    ({**BASE, "graph": {"family": "path", "labels": ["01", "02"]}}, r"\[graph\]: the node '03' has data and is not"),
    (
        wrong("graph", name="x") | {"total_variation": {"penalty": "L2", "graph": "y"}},
        r"\[total_variation\] graph: no tab",
    ),
    ({k: v for k, v in BASE.items() if k != "graph"}, r"\[total_variation\] needs the table \[graph\]"),
    ({k: v for k, v in BASE.items() if k != "total_variation"}, r"\[graph\]: this table is used by no total variation"),
    ({**BASE, "graph": [BASE["graph"]] * 2}, r"\[\[graph\]\] \(number 1\) needs the key 'name'"),
    (wrong("total_variation", penalty="L3"), r"\[total_variation\] penalty: there is no penalty 'L3'"),
    (wrong("total_variation", penalty={"delta": 1}), r"\[total_variation\] penalty needs the key 'family'"),
    (wrong("total_variation", penalty={"famly": "L2"}), r"\[total_variation\] penalty has no key 'famly'"),
    (
        wrong("total_variation", penalty={"family": "L2", "delta": 1.0}),
        r"\[total_variation\] penalty has no key 'delta'",
    ),
    (wrong("total_variation", penalty="NonNegative"), r"\[total_variation\]: NonNegative may be one-sided"),
    (wrong("total_variation", penalty="Zero"), r"\[total_variation\] strength: Zero is a constraint"),
    (wrong("total_variation", penalty="Zero", strength=1.0), r"\[total_variation\] strength: Zero is a constraint"),
    (wrong("total_variation", features=["doze"]), r"\[total_variation\] features: there is no feature 'doze'; did you"),
    (wrong("total_variation", penalty="nothing:X"), r"\[total_variation\] penalty: there is no module 'nothing'"),
    (
        wrong("total_variation", penalty="penalties:X"),
        r"\[total_variation\] penalty: the module 'penalties' has no 'X'",
    ),
    (wrong("total_variation", penalty="penalties:np"), r"\[total_variation\] penalty: 'penalties:np' is no penalty"),
    (wrong("node_penalty", penalty="L1", center=[1.0]), r"\[node_penalty\]: the center of NodePenalty\(L1\) must be 2"),
    (
        wrong("node_penalty", penalty="L1", weights={"1": 1.0}),
        r"\[node_penalty\]: the weights of .* name '1', which is",
    ),
    (wrong("node_penalty", penalty={"family": "Quadratic"}), r"\[node_penalty\] penalty needs the key 'Q'"),
    (wrong("hierarchy", clusters="region"), r"\[hierarchy\] needs the key 'weights'"),
    (
        wrong("hierarchy", clusters="dose", weights=[1.0, 1.0]),
        r"\[data\] features: 'dose' .* columns of clusters are",
    ),
    (wrong("hierarchy", clusters="ill", weights=[1.0, 1.0]), r"\[hierarchy\] clusters: the column 'ill' .* two values"),
    (wrong("hierarchy", clusters="regoin", weights=[1.0, 1.0]), r"\[hierarchy\] clusters: .* did you mean 'region'"),
    (wrong("hierarchy", clusters="region", weights=[1.0]), r"\[hierarchy\]: the hierarchy has 2 levels of edges and 1"),
    (wrong("hierarchy", clusters="region", alpha=0.5), r"\[hierarchy\] needs the key 'gamma'"),
    (wrong("consensus", features=["age"]), r"\[consensus\]: the graph of Consensus is disconnected.* \(a star\)"),
    (wrong("solve", method="Simplex"), r"\[solve\] method: there is no method 'Simplex'"),
    (
        wrong("solve", method={"family": "PrimalDual", "polish": "yes"}),
        r"\[solve\] method polish: this must be true or",
    ),
    (
        wrong("solve", method={"family": "PrimalDual", "relaxation": 5.0}),
        r"method: PrimalDual\(relaxation=...\) must",
    ),
    (wrong("solve", rounds=1.5), r"\[solve\] rounds: this must be a whole number, got 1.5"),
]


@pytest.mark.parametrize(("content", "message"), ERRORS, ids=[message[:60] for _, message in ERRORS])
def test_errors_name_the_key_and_what_to_do(tmp_path, frame, content, message):
    with pytest.raises(GraphregError, match=message) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith("model.toml")
    assert "\n" not in str(caught.value)


def test_errors_of_solve_name_the_table(tmp_path, frame):
    with pytest.raises(GraphregError, match=r"model.toml: \[solve\]: gap must be a non-negative number"):
        read(tmp_path, wrong("solve", gap=-1.0)).solve()
    with pytest.raises(GraphregError, match=r"^gap must be a non-negative number"):
        read(tmp_path, wrong("solve", gap=1e-3)).solve(gap=-1.0)


ROWS = [
    ({}, r"\[rows\] needs exactly one of the keys 'along', 'across', 'at' or 'file', got 0"),
    ({"along": "day", "file": "entries.csv"}, r"\[rows\] needs exactly one of the keys .*, got 2"),
    ({"at": "all", "order": 2}, r"\[rows\] order: this does not go with 'at'; take it out"),
    ({"file": "entries.csv", "features": ["age"]}, r"\[rows\] features: this does not go with 'file'"),
    ({"along": "dya"}, r"\[rows\] along: dated.csv has no column 'dya'; did you mean 'day'"),
    ({"along": "region"}, r"\[rows\] along: the column 'region' of dated.csv holds neither numbers nor dates"),
    ({"along": "dose"}, r"\[rows\] along: the column 'dose' of dated.csv has two values at the node '01'"),
    ({"along": "half"}, r"\[rows\] along: 'half' is the same at '01' and '02'; list the nodes in their order"),
    (
        {"along": ["01", "07"], "at": "day"},
        r"\[rows\] at: the node '07' has no data, and so no 'day'; nodes with data are",
    ),
    ({"along": ["01", "02"], "at": ["a", "b"]}, r"\[rows\]: at must be "),
    ({"along": ["01", "02"], "at": [2.0, 1.0]}, r"\[rows\]: at must increase along the path"),
    ({"along": "day", "order": 0}, r"\[rows\]: the order of differences must be a whole number from 1, got 0"),
    ({"along": "day", "weights": "day"}, r"\[rows\] weights: 'day' has a value per node, and a row along a path"),
    ({"along": "day", "weights": [1.0]}, r"\[rows\]: the weights of \(D w\)_t have the shape \(1,\), and there are 5"),
    ({"at": "01"}, r"\[rows\] at: this must be \"all\" or a list of labels; for one node write \['01'\]"),
    ({"at": [1.0]}, r"\[rows\] at: this must be text or a list of text, got \[1.0\]"),
    ({"at": ["01"], "features": ["dos"]}, r"\[rows\] features: there is no feature 'dos'; did you mean 'dose'"),
    ({"at": ["01"], "offset": {"1": 2.0}}, r"\[rows\]: b of w_i - b_r has no entry for the row '01'"),
    ({"across": "graph"}, r"\[rows\] needs the table \[graph\]"),
    ({"across": "arow.csv"}, r"\[rows\] across: there is no file 'arow.csv' .*; did you mean 'arrows.csv'"),
    (
        {"across": "arrows.csv", "offset": "led"},
        r"\[rows\] offset: arrows.csv has no column 'led'; did you mean 'lead'",
    ),
    ({"across": "twice.csv"}, r"\[rows\] across: twice.csv has '01', '02' twice; give each once"),
    ({"across": "one.csv"}, r"\[rows\] across: one.csv has one column; a table of arrows has two"),
    ({"file": "one.csv"}, r"\[rows\] file: one.csv has no column 'row'; it has 'from'"),
    ({"file": "entries.csv", "weights": "sum"}, r"\[rows\] weights: the column 'sum' of entries.csv has two values"),
    ({"penalty": "Zero", "file": "entries.csv", "weights": "trust"}, r"\[rows\]: Zero\(\(K w\)_e\) is a constraint"),
    ({"penalty": "Zero", "file": "entries.csv", "strength": 1.0}, r"\[rows\] strength: Zero is a constraint"),
    ({"penalty": "L3", "at": "all"}, r"\[rows\] penalty: there is no penalty 'L3'"),
    ({"file": "text.csv"}, r"\[rows\] file: the column 'coefficient' of text.csv holds text; coefficients are numbers"),
    ({"file": "unknown.csv"}, r"\[rows\]: w_i\[doze\] names the unknown feature 'doze'; did you mean 'dose'"),
]


@pytest.mark.parametrize(("keys", "message"), ROWS, ids=[str(keys) for keys, _ in ROWS])
def test_wrong_rows(tmp_path, frame, keys, message):
    dated = pd.read_csv(tmp_path / "dated.csv", dtype={"site": str})
    dated.assign(half=dated["day"] // 10).to_csv(tmp_path / "dated.csv", index=False)
    (tmp_path / "twice.csv").write_text("from,to\n01,02\n01,02\n")
    (tmp_path / "one.csv").write_text("from\n01\n")
    (tmp_path / "text.csv").write_text("row,node,feature,coefficient\nr,01,dose,x\n")
    (tmp_path / "unknown.csv").write_text("row,node,feature,coefficient\nr,01,doze,1\n")
    data = {**BASE["data"], "file": "dated.csv"}
    with pytest.raises(GraphregError, match=message) as caught:
        read(tmp_path, {"data": data, "loss": BASE["loss"], "rows": {"penalty": "L1", **keys}})
    assert str(caught.value).startswith("model.toml: [rows]")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("visits.csv", "site,dose,age,response\n01,1,2,x\n", r"\[loss\]: SquaredLoss takes numeric targets"),
        (
            "visits.csv",
            "site,dose,age,response\n,1,2,3\n",
            r"\[data\] node: the column 'site' .* no label in row 0 \(f",
        ),
        ("visits.csv", "site,dose,age,response\n01,,2,3\n", r"\[data\]: the feature 'dose' is nan at the node '01'"),
        ("visits.csv", "site,dose,age,response\n", r"\[data\] file: visits.csv has no rows"),
        ("visits.csv", "site;dose\n01;2\n", r"\[data\] file: visits.csv has one column, 'site;dose'; separate columns"),
        ("visits.csv", "", r"\[data\] file: visits.csv is empty; its first row names the columns"),
        ("visits.csv", "site,dose,dose\n01,1,2\n", r"\[data\] file: visits.csv has two columns called 'dose'"),
        (
            "visits.csv",
            "site,a\n01,1,2,3\n02,1\n",
            r"\[data\] file: a row of visits.csv has more cells .* decimals with a point",
        ),
        ("roads.csv", "a,b\n7,8\n", r"\[graph\] edges: no label of roads.csv has data: it has '7', '8'"),
        ("roads.csv", "a,b\n 01, 02\n", r"labels differ only by spaces at their ends: '01' of the table beside ' 01'"),
        ("roads.csv", "a,b\n01,01\n", r"\[graph\]: the node '01' has an edge to itself"),
        (
            "roads.csv",
            "a,b\n01,02\n02,01\n",
            r"\[graph\]: the edge '02' - '01' appears twice|the edge .* appears twice",
        ),
        ("roads.csv", "a,b\n01,\n", r"\[graph\] head: the column 'b' of roads.csv has no label in row 0 \(f"),
        ("roads.csv", "a,b\n", r"\[graph\] edges: roads.csv has no rows below its header: there is no edge"),
        ("roads.csv", "a\n01\n", r"\[graph\] edges: roads.csv has one column"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, frame, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises((DataError, GraphError), match=message) as caught:
        read(tmp_path, BASE)
    assert str(caught.value).startswith("model.toml: [")


def test_edges_without_rows_have_no_weights_to_complain_of(tmp_path, frame):
    (tmp_path / "roads.csv").write_text("a,b,wide\n")
    with pytest.raises(DataError, match=r"\[graph\] edges: roads.csv has no rows below its header: there is no edge"):
        read(tmp_path, {**BASE, "graph": {"edges": "roads.csv", "edge_weight": "wide"}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "site,01,02\n01,0,1\n03,1,0\n",
            r"\[graph\] adjacency: the rows and columns .* the same labels \('02', '03'\)",
        ),
        ("site,01,02\n01,0,x\n02,1,0\n", r"\[graph\] adjacency: the column '02' of matrix.csv is not numeric"),
        ("site,01,02\n01,0,1\n02,2,0\n", r"\[graph\]: the adjacency is not symmetric"),
        ("site,01,02\n01,0,-1\n02,-1,0\n", r"\[graph\]: the edge '01' - '02' has the weight -1.0"),
    ],
)
def test_adjacencies_that_cannot_be_used(tmp_path, frame, text, message):
    (tmp_path / "matrix.csv").write_text(text)
    with pytest.raises((DataError, GraphError), match=message):
        read(tmp_path, {**BASE, "graph": {"adjacency": "matrix.csv"}})


def test_files_that_are_no_model(tmp_path, frame):
    with pytest.raises(ModelFileError, match=r"there is no file .*none\.toml"):
        gr.read_model(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("[data\n")
    with pytest.raises(ModelFileError, match=r"broken.toml is not valid TOML: .*line 1"):
        gr.read_model(tmp_path / "broken.toml")
    for line, meant in (("strength = 0,3", "decimals with a point"), ("intercept = True", "in small letters")):
        (tmp_path / "broken.toml").write_text(f"[loss]\n{line}\n")
        with pytest.raises(ModelFileError, match=f"at line 2, .*'{line}'; write .*{meant}"):
            gr.read_model(tmp_path / "broken.toml")
    (tmp_path / "broken.toml").write_text("a = 1\n= 2\n")
    with pytest.raises(ModelFileError, match=r"at line 2, .*: '= 2'$"):
        gr.read_model(tmp_path / "broken.toml")
    (tmp_path / "broken.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelFileError, match=r"broken.toml is not valid TOML"):
        gr.read_model(tmp_path / "broken.toml")
    with pytest.raises(ModelFileError, match="cannot be read"):
        gr.read_model(tmp_path)


def test_modules_that_fail(tmp_path, frame):
    (tmp_path / "failing.py").write_text("1 / 0\n")
    (tmp_path / "needy.py").write_text("import graphreg_has_no_such_friend\n")
    (tmp_path / "halves.py").write_text(
        "import graphreg as gr\n\n\nclass Half(gr.Penalty):\n    pass\n\n\n"
        "class Proud(gr.L2):\n    def __init__(self):\n        raise RuntimeError('never')\n"
    )
    for name, why in (
        ("failing:X", "importing 'failing' failed: ZeroDivisionError: division by zero"),
        ("needy:X", "importing 'needy' failed: ModuleNotFoundError"),
        ("halves:Half", "'halves:Half' is abstract; it lacks conjugate, cvxpy, prox, value"),
        ("halves:Proud", "halves:Proud cannot be made: RuntimeError: never"),
    ):
        with pytest.raises(ModelFileError, match=r"model.toml: \[total_variation\] penalty: " + re.escape(why)):
            read(tmp_path, wrong("total_variation", penalty=name))
    assert str(tmp_path) not in sys.path


def test_an_object_of_ones_own(tmp_path, frame):
    (tmp_path / "objects.py").write_text(OWN)
    found = read(tmp_path, wrong("total_variation", penalty="objects:derived"))
    assert found.solve().status == "certified"
    with pytest.raises(ModelFileError, match="penalty has no key 'ridge'"):
        read(tmp_path, wrong("total_variation", penalty={"family": "objects:derived", "ridge": 1.0}))


def test_a_method_that_does_not_apply_keeps_what_it_lacks(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(gr.PrimalDual, "missing", lambda self, form: ("it is Sunday",))
    with pytest.raises(MethodError, match=r"\[solve\]: PrimalDual does not apply: it is Sunday") as caught:
        read(tmp_path, wrong("solve", method="PrimalDual")).solve()
    assert caught.value.missing == ("it is Sunday",)


def test_an_error_is_placed_once_whatever_its_message_begins_with():
    inner, outer = Place("model.toml", "[data] file"), Place("model.toml", "[data]")
    with pytest.raises(TermError) as found, outer.named():
        raise TermError("model.toml: a text of the user's")
    assert str(found.value) == "model.toml: [data]: model.toml: a text of the user's"
    with pytest.raises(DataError) as found, outer.named(), outer.named():
        inner.refuse("no rows", DataError)
    assert str(found.value) == "model.toml: [data] file: no rows"


# ---- what is known without being listed ------------------------------------------------------------------------------
def test_every_public_class_has_its_name():
    for kind, base in families.BASES.items():
        classes = [each for each in (getattr(gr, name) for name in gr.__all__) if isinstance(each, type)]
        concrete = {each.__name__ for each in classes if issubclass(each, base) and not inspect.isabstract(each)}
        found = {name: families.find(kind, name, Place("model.toml"), []) for name in concrete}
        assert found == declared(base, users=False)


def test_options_are_those_of_the_classes():
    assert set(families.options(gr.HuberLoss)) == {"delta", "scale"}
    assert list(families.options(gr.Quadratic)) == ["Q"]
    named = ["balance", "relaxation", "restarts", "polish", "inexact", "tau", "sigma"]
    assert list(families.options(gr.PrimalDual)) == named


def test_checkpoint_goes_to_solve(tmp_path, frame, monkeypatch):
    asked = {}

    def solve(self, method=None, *, gap=1e-6, checkpoint=None):
        asked.update(gap=gap, checkpoint=checkpoint)

    monkeypatch.setattr(gr.Problem, "solve", solve)
    read(tmp_path, wrong("solve", checkpoint="run.npz", gap=1e-3)).solve()
    assert asked == {"gap": 1e-3, "checkpoint": tmp_path / "run.npz"}

    monkeypatch.undo()
    found = read(tmp_path, wrong("solve", checkpoint="run.npz", method="PrimalDual"))
    assert found.solve(gap=1e-2).status == "certified"
    assert (tmp_path / "run.npz").is_file()

    assert {each.name for each in fields(TABLES["solve"])} <= inspect.signature(gr.Problem.solve).parameters.keys()


def test_a_table_in_another_encoding(tmp_path, frame):
    (tmp_path / "visits.csv").write_bytes("site,dose,age,response\nK\u00f6ln,1,2,3\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"visits.csv is not in UTF-8; save it again as UTF-8"):
        read(tmp_path, BASE)
