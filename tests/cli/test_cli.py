"""The command line: what it prints and writes, how it ends, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from factories import interrupt
from model_files import BASE, tables, write
from places import DATA, EXAMPLES, ROOT

import graphreg as gr
from graphreg.cli import folder as folder_module
from graphreg.cli import main
from graphreg.cli.exits import EXITS
from graphreg.declaring import declared
from graphreg.methods import METHODS
from graphreg.model_file import families

SEPARABLE = "site,dose,ill\n" + "".join(f"{s},{x},{int(x > 0)}\n" for s in ("01", "02") for x in (-2, -1, 1, 2))


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def process(*arguments, cwd, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "graphreg", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.fixture
def model(tmp_path):
    tables(tmp_path)
    return write(tmp_path, BASE)


@pytest.fixture
def unattained(tmp_path):
    (tmp_path / "separable.csv").write_text(SEPARABLE)
    data = {"file": "separable.csv", "node": "site", "target": "ill", "features": ["dose"]}
    return write(tmp_path, {"data": data, "loss": {"family": "LogisticLoss"}}, "unattained.toml")


# ---- solve -----------------------------------------------------------------------------------------------------------
def test_solve_prints_the_problem_and_the_answer(model):
    done = run("solve", model)
    assert done.exit_code == 0, done.output
    expected = gr.read_model(model).solve()
    assert done.stderr == ""
    assert "minimise over w in R^(7 x 2)" in done.stdout
    assert "visits.csv: 42 rows, 6 nodes, 2 features" in done.stdout
    assert "nodes without data: 1" in done.stdout
    assert f"objective {expected.objective:.10g}"[:16] in done.stdout
    assert str(expected.certificate).splitlines()[0][:40] in done.stdout
    assert "coefficients (7 nodes)" in done.stdout
    assert str(expected.clusters()) in done.stdout


def test_quiet_says_nothing(model):
    done = run("solve", model, "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_json_is_all_there_is(model):
    done = run("solve", model, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    expected = gr.read_model(model).solve()
    assert found["status"] == "certified"
    assert found["certificate"]["lower_bound"] <= found["objective"]
    assert found["objective"] == pytest.approx(expected.objective, rel=1e-9)
    assert found["model"]["content"]["total_variation"] == BASE["total_variation"]
    assert found["versions"]["graphreg"] == gr.__version__
    assert found["clusters"]["count"] == expected.clusters().count
    assert found["coefficients"]["01"] == pytest.approx(expected.table().loc["01"].to_dict(), abs=1e-6)


def test_options_come_before_the_model_file(model):
    done = run("solve", model, "--method", "PrimalDual", "--gap", "1e-2", "--rounds", "3", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["status"], found["rounds"]) == (4, "budget", 3)
    assert found["ledger"]["rounds"] == 3
    assert len(found["trace"]) >= 1


def test_method_keeps_the_options_of_the_model_file(tmp_path, model):
    write(tmp_path, {**BASE, "solve": {"method": {"family": "PrimalDual", "balance": 1.0}, "rounds": 5, "gap": 0.0}})
    same, other = (json.loads(run("solve", model, "--json", *more).stdout) for more in ((), ("--method", "PrimalDual")))
    assert same["objective"] == other["objective"]
    assert run("solve", model, "--method", "Primal").exit_code == 2


def test_out_writes_what_was_found(tmp_path, model):
    out = tmp_path / "a" / "b"
    done = run("solve", model, "--method", "PrimalDual", "--out", out)
    assert done.exit_code == 0
    solution = gr.read_model(model).solve(gr.PrimalDual())
    table = pd.read_csv(out / "coefficients.csv", dtype={"node": str}).set_index("node")
    written = pd.read_csv(out / "coefficients.csv", dtype=str).set_index("node")
    np.testing.assert_array_equal(written.map(float).to_numpy(), solution.coef)  # to the last digit
    assert table.index.tolist() == list(solution.labels)
    assert table.columns.tolist() == ["dose", "age"]
    edges = pd.read_csv(out / "edges.csv", dtype={"tail": str, "head": str})
    assert edges["state"].tolist() == solution.clusters().edges["state"].tolist()
    np.testing.assert_array_equal(edges["slack"], solution.clusters().edges["slack"])
    flows = pd.read_csv(out / "flows.csv", dtype={"tail": str, "head": str})
    for row in flows.itertuples():
        np.testing.assert_array_equal([row.dose, row.age], solution.flows[row.tail, row.head])
    groups = pd.read_csv(out / "clusters.csv", dtype={"node": str})
    assert dict(zip(groups["node"], groups["cluster"], strict=True)) == solution.clusters().labels
    result = json.loads((out / "result.json").read_text())
    assert sorted(result["files"]) == sorted(path.name for path in out.iterdir())
    assert result["objective"] == solution.objective
    assert all(name in done.stdout for name in result["files"])


def test_pictures(tmp_path, model, monkeypatch):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert run("solve", model, "--method", "PrimalDual", "--out", out).exit_code == 0
    for name in ("graph.png", "trace.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    assert run("solve", model, "--out", out, "--no-pictures").exit_code == 0
    assert not list(out.glob("*.png")), "pictures of an earlier result would be taken for those of this one"
    monkeypatch.setattr(folder_module, "find_spec", lambda name: None)
    done = run("solve", model, "--out", out)
    assert done.exit_code == 0
    assert "pip install graphreg[plot]" in done.stderr
    assert not list(out.glob("*.png"))


def test_latent_nodes_and_standardised_features_are_written(tmp_path, model):
    content = {**BASE, "hierarchy": {"clusters": ["district", "region"], "weights": [1.0, 1.0, 1.0]}}
    content["data"] = {**BASE["data"], "standardise": True}
    write(tmp_path, content)
    out = tmp_path / "out"
    done = run("solve", model, "--out", out, "--no-pictures")
    assert done.exit_code == 0
    assert "the features are standardised: coefficients are per standard deviation" in done.stdout
    latent = pd.read_csv(out / "latent.csv", index_col=0)
    assert latent.index.tolist() == ["north/a", "north/b", "south/c", "north", "south", "root"]
    standard = pd.read_csv(out / "standardised.csv").set_index("feature")
    frame = pd.read_csv(tmp_path / "visits.csv")
    assert standard.loc["dose", "scale"] == pytest.approx(frame["dose"].std())
    assert "north/a" in set(pd.read_csv(out / "edges.csv")["head"])


def test_coefficients_by_feature_and_class(tmp_path, model):
    content = {**BASE, "loss": {"family": "MultinomialLoss"}, "node_penalty": {"penalty": "SquaredL2"}}
    content["data"] = {**BASE["data"], "target": "hours"}
    content["total_variation"] = {"penalty": "L2", "features": ["dose"]}  # all classes
    write(tmp_path, content)
    assert run("solve", model, "--out", tmp_path / "out", "--no-pictures").exit_code == 0
    table = pd.read_csv(tmp_path / "out" / "coefficients.csv", dtype={"node": str})
    solution = gr.read_model(model).solve()
    assert table.columns.tolist() == ["node", *(f"{f}[{c}]" for f in ("dose", "age") for c in (1, 2, 3))]
    np.testing.assert_allclose(table.iloc[:, 1:], solution.coef, atol=1e-5)


def test_what_is_not_ours_stays(tmp_path, model):
    out = tmp_path / "out"
    out.mkdir()
    (out / "edges.csv").write_text("mine\n")
    (out / "notes.txt").write_text("mine\n")
    done = run("solve", model, "--out", out)
    assert done.exit_code == 2
    assert "edges.csv exists and is no earlier result" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["edges.csv", "notes.txt"]
    assert (out / "edges.csv").read_text() == "mine\n"
    assert run("solve", model, "--out", out, "--force").exit_code == 0
    assert run("solve", model, "--out", out).exit_code == 0  # now it is ours
    assert (out / "notes.txt").read_text() == "mine\n"
    (out / "result.json").write_text('{"written_by": "someone else", "files": ["result.json"]}')
    assert run("solve", model, "--out", out).exit_code == 2


def test_a_folder_that_cannot_be_made(tmp_path, model):
    (tmp_path / "file").write_text("")
    done = run("solve", model, "--out", tmp_path / "file" / "out")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: --out: ")


def test_nothing_is_left_half_written(tmp_path, model, monkeypatch):
    out = tmp_path / "out"
    assert run("solve", model, "--out", out, "--no-pictures").exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    real, count = Path.write_bytes, []

    def full(self, content):
        count.append(self.name)
        if len(count) == 3:
            real(self, content[:10])
            raise OSError(28, "No space left on device")
        return real(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    done = run("solve", model, "--method", "PrimalDual", "--out", out, "--no-pictures")
    assert done.exit_code == 2
    assert "the results cannot be written: No space left on device" in done.stderr
    assert len(count) == 3
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


# ---- how it ends -----------------------------------------------------------------------------------------------------
def test_exit_codes(tmp_path, model, unattained):
    assert run("solve", model, "--quiet").exit_code == 0
    assert run("solve").exit_code == 2
    assert run("solve", tmp_path / "none.toml").exit_code == 2
    assert run("solve", model, "--method", "PrimalDual", "--rounds", "2", "--gap", "0").exit_code == 4
    done = run("solve", unattained, "--out", tmp_path / "out", "--no-pictures")
    assert done.exit_code == 5
    assert "add a ridge" in done.stdout
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "unattained"
    (tmp_path / "visits.csv").write_text("site,dose,age,response\n01,,2,3\n")
    assert run("solve", model).exit_code == 3
    write(tmp_path, {**BASE, "los": {}})
    assert run("solve", model).exit_code == 2


@pytest.mark.parametrize("method", ["Exact", "PrimalDual"])
def test_where_no_point_is_feasible_there_are_no_coefficients(tmp_path, model, method):
    boxes = [{"penalty": {"family": "Box", "low": 1.0}}, {"penalty": {"family": "Box", "high": -1.0}}]
    write(tmp_path, {**BASE, "node_penalty": boxes})
    out = tmp_path / "out"
    done = run("solve", model, "--method", method, "--rounds", "20", "--out", out)
    assert done.exit_code == (5 if method == "Exact" else 4)
    assert "no coefficients: no point was found" in done.stdout
    assert [path.name for path in out.iterdir()] == ["result.json"]
    found = json.loads((out / "result.json").read_text())
    assert "coefficients" not in found
    assert found["certificate"]["lower_bound"] is None
    assert found["objective"] is None


def test_exit_codes_are_in_the_help():
    text = run("--help").output
    for code, meaning in EXITS.items():
        assert f"{code}" in text
        assert meaning[:40] in text


def test_errors_are_one_line(tmp_path, model):
    write(tmp_path, {**BASE, "loss": {"famly": "SquaredLoss"}})
    done = run("solve", model)
    assert done.stderr == "Error: model.toml: [loss] has no key 'famly'; did you mean 'family'?\n"
    assert done.stdout == ""


def test_errors_of_solve_name_the_table(tmp_path, model):
    write(tmp_path, {**BASE, "solve": {"method": {"family": "Exact", "solver": "none such"}}})
    done = run("solve", model)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: model.toml: [solve]: the solver 'none such' is not installed")
    done = run("solve", model, "--method", "PrimalDual", "--gap", "nan")
    assert (done.exit_code, done.stderr) == (2, "Error: gap must be a non-negative number, got nan\n")


def test_a_warning_free_silent_process(tmp_path, model):
    started = process("solve", model, "--method", "PrimalDual", cwd=tmp_path)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    assert "certificate (global)" in out
    assert err == ""  # stderr is no terminal: no progress


def test_ctrl_c_gives_the_best_point_so_far(tmp_path, model):
    endless = ("--method", "PrimalDual", "--gap", "0", "--rounds", str(10**9))
    started = process("solve", model, *endless, "--out", "out", "--no-pictures", cwd=tmp_path)
    assert started.stdout is not None
    line = started.stdout.readline()
    while line and not line.startswith("minimise over"):
        line = started.stdout.readline()
    time.sleep(2.0)  # the problem is printed; the run has begun
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 130, err
    assert "PrimalDual: interrupted. The run was interrupted after" in out
    assert "certificate (global)" in out
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["status"] == "interrupted"
    assert result["certificate"]["valid"]
    assert len(pd.read_csv(tmp_path / "out" / "coefficients.csv")) == 7


def test_ctrl_c_while_reading(model, monkeypatch):
    monkeypatch.setattr("graphreg.model_file.read_samples", interrupt)
    done = run("solve", model)
    assert done.exit_code == 130
    assert done.stderr == "Interrupted.\n"


# ---- the other commands ----------------------------------------------------------------------------------------------
def test_compare(tmp_path, model):
    done = run("compare", model, "--seconds", "2", "--csv", tmp_path / "table.csv")
    assert done.exit_code == 0
    table = pd.read_csv(tmp_path / "table.csv", index_col="method")
    assert {"Exact(clarabel)", "PrimalDual"} <= set(table.index)
    assert (table.loc[["Exact(clarabel)", "PrimalDual"], "status"] == "certified").all()
    assert all(name in done.stdout for name in table.index)
    again = run("compare", model, "--csv", tmp_path / "table.csv")
    assert again.exit_code == 2
    assert "table.csv exists" in again.stderr
    assert run("compare", model, "--csv", tmp_path / "no" / "table.csv").exit_code == 2
    one = run("compare", model, "--method", "PrimalDual", "--json", "--gap", "1e-3")
    assert list(json.loads(one.stdout)["methods"]) == ["PrimalDual"]


def test_methods_with_options(model):
    names = ["PrimalDual(balance=1.0, relaxation=1)", "ADMM(rho=None)", "Exact(form='dual')"]
    done = run("compare", model, *(word for name in names for word in ("--method", name)), "--seed", "3", "--json")
    assert done.exit_code == 0, done.stderr
    assert list(json.loads(done.stdout)["methods"]) == names
    one = run("solve", model, "--method", "PrimalDual(balance=2.0)", "--json", "--gap", "0", "--rounds", "9")
    other = gr.read_model(model).solve(gr.PrimalDual(balance=2.0), gap=0, rounds=9)
    assert json.loads(one.stdout)["objective"] == other.objective


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PrimalDual(2.0)", "an option has no name"),
        ("PrimalDual(**{})", "an option has no name"),
        ("PrimalDual(balance=1.0", "not of the form NAME"),
        ("PrimalDual(balance=)", "cannot be read"),
        ("PrimalDual()()", "not of the form NAME"),
        ("", "not of the form NAME"),
        ("PrimalDual(balance=1.0) + 1", "not of the form NAME"),
        ("PrimalDual(balance=open('f'))", "'balance' in .* is open.'f'.: it must be a number"),
        ("PrimalDual(balance=__import__('os').getpid())", "must be a number, text"),
        ("PrimalDual(balnce=1.0)", "did you mean 'balance'"),
        ("PrimalDual(balance='x')", "must be a number, got 'x'"),
        ("PrimalDual(balance=-1.0)", r"PrimalDual\(balance=...\) must be a positive"),
        ("PrimalDual(relaxation=None)", "must be a number, got None"),
        ("PrimalDal(balance=1.0)", "did you mean 'PrimalDual'"),
        ("nowhere:Method(a=1)", "there is no module 'nowhere'"),
    ],
)
@pytest.mark.parametrize("command", ["solve", "compare"])
def test_wrong_methods_are_refused(model, command, text, said):
    done = run(command, model, "--method", text)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: --method")
    assert re.search(said, done.stderr), done.stderr
    assert not done.stdout


def test_a_comparison_is_drawn(tmp_path, model):
    pytest.importorskip("matplotlib")
    done = run("compare", model, "--method", "PrimalDual", "--picture", tmp_path / "gaps.png", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")
    again = run("compare", model, "--picture", tmp_path / "gaps.png")
    assert again.exit_code == 2
    assert "--picture" in again.stderr


def test_an_interrupted_comparison_ends(model, monkeypatch):
    monkeypatch.setattr("graphreg.compiling.conic.ConicProblem.solve", interrupt)
    done = run("compare", model, "--json")
    assert done.exit_code == 130
    assert list(json.loads(done.stdout)["methods"]) == ["Exact(clarabel)"]
    assert json.loads(done.stdout)["reference"] == "none, for want of a bound"


def test_an_interrupted_conic_solver_says_that_there_is_no_answer(model, monkeypatch):
    monkeypatch.setattr("graphreg.compiling.conic.ConicProblem.solve", interrupt)
    done = run("solve", model, "--method", "Exact")
    assert done.exit_code == 130
    assert "Exact(clarabel): interrupted. The run was interrupted before there was an answer.\n" in done.stdout
    assert done.stdout.endswith("no coefficients\n")


@pytest.mark.parametrize(("option", "value"), [("--gap", "-1"), ("--seconds", "0"), ("--rounds", "0")])
def test_numbers_out_of_range_are_refused_by_their_option(model, option, value):
    done = run("solve", model, option, value)
    assert done.exit_code == 2
    assert option in done.stderr
    assert not done.stdout


def test_methods(model):
    done = run("methods", model)
    assert done.exit_code == 0
    table = gr.read_model(model).problem.methods()
    assert done.stdout == f"{table}\n"
    lines = done.stdout.splitlines()
    for name, applies in table["applies"].items():
        assert f"{name}: {'applies' if applies else 'does not apply'}" in lines
    for method in METHODS:
        assert any(line.startswith("    needs") and method.needs[:40] in line for line in lines)


def test_check_penalty(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("check", "penalty", "HuberNorm", "-o", "delta=2.5", "-k", "2")
    assert done.exit_code == 0
    assert done.stdout.startswith("HuberNorm: every law holds")
    assert run("check", "penalty", "penalties:ElasticNet", "-o", "ridge=0.5").exit_code == 0
    wrong = run("check", "penalty", "penalties:Wrong")
    assert wrong.exit_code == 6
    assert "FAIL  fenchel young everywhere" in wrong.stdout
    assert run("check", "penalty", "Quadratic", "-o", "Q=[[2.0, 0.5], [0.5, 1.0]]", "-k", "2").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("penalty", "L3"), "Error: L3: there is no penalty 'L3'"),
        (("penalty", "HuberNorm", "-o", "dleta=2"), "Error: --option has no key 'dleta'; did you mean 'delta'?"),
        (("penalty", "HuberNorm", "-o", "delta"), "Error: --option: 'delta' is not of the form NAME=VALUE"),
        (("penalty", "HuberNorm", "-o", "delta=wide"), "Error: --option: delta: this must be a number, got 'wide'"),
        (("penalty", "nowhere:X"), "Error: nowhere:X: there is no module 'nowhere'"),
        (("loss", "L2"), "Error: L2: there is no loss 'L2'"),
    ],
)
def test_check_refuses(arguments, message):
    done = run("check", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(message)


@pytest.mark.parametrize("name", sorted(declared(families.BASES["loss"], users=False)))
def test_check_loss(name):
    done = run("check", "loss", name)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{name}: every law holds")


def test_example_and_demo(tmp_path):
    done = run("example", tmp_path / "river")
    assert done.exit_code == 0
    assert run("example").stdout == (tmp_path / "river" / "model.toml").read_text()
    assert run("example", tmp_path / "river").exit_code == 2
    assert run("solve", tmp_path / "river" / "model.toml", "--quiet").exit_code == 0
    shown = run("demo", "--out", tmp_path / "demo")
    assert shown.exit_code == 0
    for heading in ("A model file", "Its dual", "Route 1", "Route 2", "Clusters"):
        assert f"== {heading}" in shown.stdout
    assert json.loads((tmp_path / "demo" / "result.json").read_text())["status"] == "certified"


def test_the_program_is_installed_and_light(tmp_path):
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"graphreg": "graphreg.cli:main"}
    code = "import sys, graphreg; print('click' in sys.modules, 'graphreg.model_file' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    code = "import sys, graphreg.cli; print('pandas' in sys.modules, 'cvxpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    started = process("--version", cwd=tmp_path)
    assert started.communicate(timeout=60)[0] == f"graphreg {gr.__version__}\n"


# ---- real data -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "objective"), [("states", 2.215762), ("counties", 27.163352)])
def test_elections(name, objective):
    if not DATA.is_dir():
        pytest.skip("the election models need their data in ../shared/data, which is not there")
    done = run("solve", EXAMPLES / "models" / f"elections-{name}.toml", "--data", DATA, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    slack = 1e-6 * objective  # both are certified to 1e-6; the figures are those of examples/elections.py
    assert found["certificate"]["lower_bound"] <= objective + slack
    assert found["objective"] == pytest.approx(objective, abs=2 * slack)
