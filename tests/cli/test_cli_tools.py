"""The commands around an answer: paths, cross-validation, strength_max, edges, recovery, predictions, proofs."""

from __future__ import annotations

import gzip
import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from cli_cases import run
from click.testing import CliRunner
from model_files import BASE, write

import graphreg as gr
from graphreg.cli import exits, main
from graphreg.errors import MethodWarning, ModelFileError
from graphreg.fitting import UNFITTED

NAMED = {**BASE, "total_variation": BASE["total_variation"] | {"parameter": "lam"}}


@pytest.fixture
def named(model):
    """A model file whose strength has a name."""
    return write(model.parent, NAMED, "named.toml")


def problem_of(path):
    return gr.read_model(path).problem


# ---- strengths -------------------------------------------------------------------------------------------------------
def test_a_named_strength_is_a_parameter_and_nothing_else_changes(named, model):
    with_name, without = problem_of(named), problem_of(model)
    (parameter,) = [s.parameter for s, _ in with_name.model.terms if s.parameter is not None]
    assert (parameter.name, parameter.value) == ("lam", 0.2)
    assert np.array_equal(with_name.solve(gap=1e-9).coef, without.solve(gap=1e-9).coef)


def test_terms_that_name_the_same_parameter_share_it(model):
    ridge = {"penalty": "SquaredL2", "strength": 0.2, "parameter": "lam"}
    both = problem_of(write(model.parent, {**NAMED, "node_penalty": ridge}))
    assert len({id(s.parameter) for s, _ in both.model.terms if s.parameter is not None}) == 1
    other = {**NAMED, "node_penalty": ridge | {"strength": 0.3}}
    with pytest.raises(ModelFileError, match=r"\[node_penalty\] strength: .*'lam' has two values, 0.2 and 0.3"):
        gr.read_model(write(model.parent, other))
    bound = {"penalty": {"family": "Box", "low": -3.0, "high": 3.0}, "parameter": "lam"}
    with pytest.raises(ModelFileError, match="Box is a constraint and takes no parameter"):
        gr.read_model(write(model.parent, {**NAMED, "node_penalty": bound}))


def test_a_path(named, tmp_path, pyplot):
    files = [tmp_path / name for name in ("path.csv", "events.csv", "path.html", "path.png")]
    options = [x for pair in zip(("--csv", "--events", "--html", "--picture"), files, strict=True) for x in pair]
    result = run("path", named, "--strengths", "0.05,0.2,5", *options)
    assert result.exit_code == 0, result.output
    found = gr.path(problem_of(named), [0.05, 0.2, 5.0])
    assert str(found.table()["objective"].iloc[1])[:6] in result.stdout
    table = pd.read_csv(files[0])
    assert table["strength"].tolist() == [0.05, 0.2, 5.0]
    assert table["objective"].tolist() == pytest.approx(found.table()["objective"].tolist(), rel=1e-12)
    assert list(pd.read_csv(files[1]).columns) == list(found.events().columns)
    assert "nothing is certified between two strengths" in " ".join(files[2].read_text().split())
    assert files[3].read_bytes().startswith(b"\x89PNG")
    again = run("path", named, "--csv", files[0])
    assert again.exit_code == exits.USAGE
    assert "--force" in again.stderr
    document = json.loads(run("path", named, "--strengths", "0.2", "--json").stdout)
    assert document["coefficients"]["0.2"].keys() == {"01", "02", "03", "04", "05", "06", "07"}


def test_the_method_of_the_model_file_may_be_named(model):
    solve = {"method": {"family": "ADMM", "rho": 0.7}}
    model = write(model.parent, {**NAMED, "solve": solve}, "admm.toml")
    assert "path of 'lam' by ADMM" in run("path", model, "--strengths", "0.2", "--method", "ADMM").stdout


def test_a_path_that_is_not_certified_has_another_exit_code(named):
    result = run("path", named, "--strengths", "0.1,0.2", "--method", "SubgradientDescent", "--seconds", "0.5")
    assert result.exit_code == exits.NOT_CERTIFIED


def test_cross_validation(named, tmp_path, pyplot):
    page = tmp_path / "cv.html"
    options = ("--strengths", "0.01,0.1,1", "--folds", "3", "--seed", "4", "--rule", "1se")
    result = run("cv", named, *options, "--html", page, "--csv", tmp_path / "cv.csv")
    assert result.exit_code == 0, result.output
    found = gr.cross_validate(problem_of(named), [0.01, 0.1, 1.0], 3, seed=4, rule="1se", progress=False)
    assert str(found) == result.stdout.rstrip("\n")
    assert pd.read_csv(tmp_path / "cv.csv")["score"].tolist() == pytest.approx(found.mean.tolist(), rel=1e-12)
    assert "independent" in page.read_text()
    document = json.loads(run("cv", named, *options, "--json").stdout)
    assert document["chosen"] == found.chosen


def test_cross_validation_over_two_parameters(model):
    ridge = {"penalty": "SquaredL2", "strength": 0.2, "parameter": "mu"}
    both = write(model.parent, {**NAMED, "node_penalty": ridge})
    document = json.loads(
        run("cv", both, "--strengths", "lam=0.1,1", "--strengths", "mu=0.01,0.1,1", "--folds", "2", "--json").stdout
    )
    assert len(document["points"]) == 6
    assert document["chosen"].keys() == {"lam", "mu"}
    assert "NAME=" in run("cv", both, "--strengths", "0.1,1", "--strengths", "1,2").stderr
    assert "parameter=" in run("path", both, "--strengths", "1,2").stderr


def test_the_largest_strength_that_matters(model, tmp_path):
    page = tmp_path / "most.html"
    result = run("strength-max", model, "--html", page)
    assert result.exit_code == 0, result.output
    found = gr.strength_max(problem_of(model))
    assert f"{found.value:.6g}"[:6] in result.stdout
    assert "component" in page.read_text()
    document = json.loads(run("strength-max", model, "--json").stdout)
    assert document["lower"] <= document["strength_max"] == document["upper"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["path", "--strengths", "much"], "neither numbers between commas"),
        (["cv", "--strengths", "lam=1;2"], "neither numbers between commas"),
        (["path", "--parameter", "mu"], "mu"),
        (["cv", "--strengths", "mu=1,2"], "mu"),
        (["path", "--strengths", "0.1,-1"], "positive"),
        (["path", "--checkpoint", "no/such/folder/file"], "folder"),
    ],
    ids=str,
)
def test_mistakes_in_strengths(command, said, named):
    result = run(command[0], named, *command[1:])
    assert result.exit_code == exits.USAGE, result.output
    assert said in result.stderr


def test_a_model_without_a_parameter_is_told_how_to_name_one(model):
    for command in ("path", "cv"):
        assert 'parameter = "lam"' in run(command, model).stderr


# ---- edges and clusters ----------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("default:.*samples for 2 coefficients")
def test_edges(model, tmp_path, pyplot):
    files = tmp_path / "edges.csv", tmp_path / "edges.html", tmp_path / "edges.png"
    result = run("edges", model, "--alpha", "0.1", "--csv", files[0], "--html", files[1], "--picture", files[2])
    assert result.exit_code == 0, result.output
    problem = problem_of(model)
    with pytest.warns(MethodWarning):
        found = gr.inference.select_edges(problem.model.terms[0][1], gr.read_model(model).graphs[0], alpha=0.1)
    assert str(found) in result.stdout
    assert result.stderr.startswith("Warning: the node '01' has 7 samples")
    table = pd.read_csv(files[0], dtype={"tail": str, "head": str})
    assert table["p_value"].tolist() == pytest.approx(found.tests["p_value"].tolist(), rel=1e-12, nan_ok=True)
    assert table["tail"].tolist()[0] == "01"
    assert "Edge selection" in files[1].read_text()
    document = json.loads(run("edges", model, "--all-pairs", "--feature", "dose", "--json").stdout)
    assert document["verdict"].startswith("At ")
    assert len(document["edges"]) == 15


@pytest.mark.filterwarnings("ignore:.*samples for 2 coefficients")
def test_edges_of_several_graphs_and_of_none(model):
    line, ring = {"name": "line", "family": "path"}, {"name": "ring", "family": "cycle"}
    two = [{"penalty": "L2", "graph": name} for name in ("line", "ring")]
    several = write(model.parent, {**BASE, "graph": [line, ring], "total_variation": two})
    result = run("edges", several)
    assert result.exit_code == exits.USAGE
    assert "line, ring" in result.stderr
    assert len(json.loads(run("edges", several, "--graph", "ring", "--json").stdout)["edges"]) == 6
    alone = {key: BASE[key] for key in ("data", "loss")}
    assert "--all-pairs" in run("edges", write(model.parent, alone)).stderr


def test_recovery(model, tmp_path, pyplot):
    table = tmp_path / "clusters.csv"
    table.write_text("node,cluster\n01,n\n02,n\n03,n\n04,s\n05,s\n06,t\n07,s\n")
    result = run("recover", model, "--clusters", table, "--html", tmp_path / "page.html", "--csv", tmp_path / "r.csv")
    assert result.exit_code == 0, result.output
    names = {"n": ["01", "02", "03"], "s": ["04", "05", "07"], "t": ["06"]}
    found = gr.theory.recovery(problem_of(model), names)
    assert str(found) == result.stdout.rstrip("\n")
    assert "Theorem 2" in (tmp_path / "page.html").read_text()
    assert len(pd.read_csv(tmp_path / "r.csv")) == 3
    assert "clusters at the strength" in run("recover", model).stdout, "those of the answer"
    table.write_text("node,group\n01,n\n")
    mistake = run("recover", model, "--clusters", table)
    assert (mistake.exit_code, "no column 'cluster'" in mistake.stderr) == (exits.USAGE, True)


# ---- predictions and proofs ------------------------------------------------------------------------------------------
def test_predictions_of_rows_with_derived_and_standardised_columns(model, tmp_path):
    data = BASE["data"] | {
        "features": ["dose", "twice"],
        "derive": {"gain": "response - age", "half": "age / 2", "twice": "4 * half"},
        "target": "gain",
        "standardise": True,
        "keep": {"region": "north"},
    }
    prepared = write(model.parent, {**BASE, "data": data, "graph": {"family": "path"}})
    rows = pd.DataFrame({"site": ["01", "03"], "dose": [5.0, 4.0], "age": [1.0, 2.0]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    result = run("predict", prepared, tmp_path / "rows.csv", "--csv", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    read = gr.read_model(prepared)
    kept = pd.read_csv(model.parent / "visits.csv", dtype={"site": str}).query("region == 'north'")
    solution, x = read.solve(), np.column_stack([rows["dose"], 2 * rows["age"]])
    table = solution.table().loc[["01", "03"]]
    expected = (x * table.to_numpy()).sum(axis=1)
    per_deviation = solution.coef[[solution.labels.index(name) for name in table.index]]
    deviations = [kept["dose"].std(), (2 * kept["age"]).std()]
    assert per_deviation == pytest.approx(table.to_numpy() * deviations, rel=1e-9)
    found = pd.read_csv(tmp_path / "out.csv", dtype={"site": str})
    assert found["prediction"].tolist() == pytest.approx(expected.tolist(), rel=1e-9)
    assert found["site"].tolist() == ["01", "03"]
    assert found[["dose", "age", "twice"]].to_numpy().tolist() == [[5.0, 1.0, 2.0], [4.0, 2.0, 4.0]]  # in their units


def test_rows_on_standard_input_are_predicted(model, tmp_path):
    rows = (tmp_path / "visits.csv").read_bytes()
    done = CliRunner().invoke(main, ["predict", str(model), "-"], input=rows)
    assert done.exit_code == 0, done.output
    assert done.stdout == run("predict", model, tmp_path / "visits.csv").stdout
    wrong = CliRunner().invoke(main, ["predict", str(model), "-"], input=rows.replace(b"dose", b"doze", 1))
    assert wrong.exit_code == exits.DATA
    assert "there is no column 'dose'; did you mean 'doze'?" in wrong.output


@pytest.mark.parametrize("rounds", [1, None])
def test_a_table_of_predictions_says_whether_they_are_certified(model, tmp_path, rounds):
    """In every row of the table, and at the head of the page, before the first row."""
    solve = {"method": "PrimalDual"} if rounds is None else {"method": "PrimalDual", "rounds": rounds}
    model = write(model.parent, BASE | {"solve": solve})
    rows = tmp_path / "rows.csv"
    rows.write_text("site,dose,age\n01,1,2\n03,2,2\n")
    files = ("--csv", tmp_path / "out.csv", "--html", tmp_path / "out.html")
    done = run("predict", model, rows, *files)
    status = "certified" if rounds is None else "budget"
    assert done.exit_code == exits.of_status(status)
    assert pd.read_csv(tmp_path / "out.csv")["prediction_status"].tolist() == [status] * 2
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert ("the coefficients are not certified" in page.split("<table")[0]) == (status != "certified")
    assert status in page


def test_mistakes_in_rows(model, tmp_path):
    rows = tmp_path / "rows.csv"
    for text, said in (
        ("site,dose\n01,1\n", "no column 'age'"),
        ("place,dose,age\n01,1,2\n", "no column 'site'"),
        ("site,dose,age\n99,1,2\n", "'99'"),
    ):
        rows.write_text(text)
        result = run("predict", model, rows)
        assert result.exit_code in {exits.USAGE, exits.DATA}
        assert said in result.stderr
    assert run("predict", model, tmp_path / "missing.csv").exit_code == exits.USAGE


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_all_mistakes_in_rows_are_told_by_their_lines_before_anything_is_solved(model, tmp_path, monkeypatch, name):
    """Blank lines and texts of two lines count, as they do where the file is opened to correct it; a file of Parquet
    has no lines."""
    data = BASE["data"] | {"features": ["dose", "root"], "derive": {"root": "sqrt(age + 9)"}}
    model = write(model.parent, {**BASE, "data": data})
    monkeypatch.setattr(gr.Problem, "solve", lambda *_, **__: pytest.fail("solved in vain"))
    cells = ['01,1,2,"two', 'lines"', "", "99,1,,", "02,much,inf,", "   ", " ,1,2,", "03,1,2,", ""]
    text = "\n".join(["site,dose,age,note", *cells])
    rows, lines = tmp_path / name, ["line 5", "line 6", "line 8"]
    if name.endswith("gz"):
        rows.write_bytes(gzip.compress(text.encode()))
    elif name.endswith("csv"):
        rows.write_text(text)
    else:
        pytest.importorskip("pyarrow")
        pd.read_csv(StringIO(text), dtype={"site": str}).to_parquet(rows)
        lines = ["row 1", "row 2", "row 3"]
    result = run("predict", model, rows)
    assert result.exit_code == exits.DATA
    assert result.stderr.split("\n  ") == [
        "Error: not all rows can be predicted; correct these or leave them out:",
        f"'site' is missing in {lines[2]}",
        f"'site' is no node in {lines[0]}: '99'",
        f"'dose' is no number in {lines[1]}: 'much'",
        f"'age' is missing in {lines[0]}",
        f"'age' is infinite in {lines[1]}",
        f"{UNFITTED}\n",
    ]


def test_what_is_derived_of_rows_and_the_kind_are_refused_before_anything_is_solved(model, tmp_path, monkeypatch):
    data = BASE["data"] | {"features": ["dose", "root"], "derive": {"root": "sqrt(age + 9)"}}
    model, rows = write(model.parent, {**BASE, "data": data}), tmp_path / "rows.csv"
    monkeypatch.setattr(gr.Problem, "solve", lambda *_, **__: pytest.fail("solved in vain"))
    rows.write_text("site,dose,age\n01,1,2\n02,1,-40\n")
    assert "'root' is missing in line 3" in run("predict", model, rows).stderr
    rows.write_text("site,dose,age\n01,1,2\n")
    assert "needs a classification loss" in run("predict", model, rows, "--kind", "class").stderr


def test_a_proof(model, tmp_path):
    result = run("prove", model, tmp_path / "proof.json", "--claim", "split")
    assert result.exit_code == 0, result.output
    assert "<= infimum <=" in result.stdout
    assert run("verify", tmp_path / "proof.json").exit_code == 0
    assert run("prove", model, tmp_path / "proof.json").exit_code == exits.USAGE


def test_the_model_of_a_proof_is_given_by_its_file_or_hash(model, tmp_path):
    """The name of its file was taken for a hash, and a proof of it said to be one of another model."""
    assert run("prove", model, tmp_path / "proof.json").exit_code == 0
    name = run("hash", model).stdout.strip()
    for given in (model, name):
        assert run("verify", tmp_path / "proof.json", "--model", given).exit_code == 0
    done = run("verify", tmp_path / "proof.json", "--model", "0" * 64)
    assert done.exit_code == 1
    assert "of another model" in done.stdout
    done = run("verify", tmp_path / "proof.json", "--model", tmp_path / "nonsense")
    assert done.exit_code == exits.USAGE
    assert "nonsense" in done.stderr


@pytest.mark.filterwarnings("ignore:.*samples for 2 coefficients")
def test_a_page_has_the_whole_table(tmp_path, named):
    done = run("path", named, "--strengths", "70", "--html", tmp_path / "path.html", "--csv", tmp_path / "path.csv")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "path.html").read_text(encoding="utf-8")
    assert page.count("<tr") == 1 + len(pd.read_csv(tmp_path / "path.csv")) == 71
    assert run("edges", named, "--html", tmp_path / "edges.html").exit_code == 0
    page = (tmp_path / "edges.html").read_text(encoding="utf-8")
    assert page.count("<tr") > 1


@pytest.mark.filterwarnings("ignore:.*samples for 2 coefficients")
def test_tests_of_edges_say_what_they_assume_once(named):
    done = run("edges", named)
    assert done.stdout.count("assumed:") == 1
    assert "p_value" in done.stdout
