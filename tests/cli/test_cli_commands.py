"""The command line: what other commands than ``solve`` print and refuse."""

from __future__ import annotations

import json
import re
import runpy
import sys

import pandas as pd
import pytest
from cli_cases import run
from factories import interrupt
from model_files import BASE, write
from places import ROOT

import graphreg as gr
from graphreg.base.declaring import declared
from graphreg.methods import METHODS
from graphreg.model_file import families


def test_compare(tmp_path, model):
    done = run("compare", model, "--seconds", "0.5", "--csv", tmp_path / "table.csv")
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
        ("PrimalDual(balance=)", "is not of the form"),
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
        assert any(line.startswith(f"{name}: {'applies, ' if applies else 'does not apply'}") for line in lines)
    for method in METHODS:
        assert any(line.startswith("    needs") and method.needs[:40] in line for line in lines)


def test_check_penalty(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("check", "penalty", "HuberNorm(delta=2.5)", "-k", "2")
    assert done.exit_code == 0
    assert done.stdout.startswith("HuberNorm: every law holds")
    for name in ("penalties:ElasticNet", "penalties.py:ElasticNet", "penalties:ElasticNet(ridge=0.7)"):
        assert run("check", "penalty", name).exit_code == 0
    wrong = run("check", "penalty", "penalties:Wrong")
    assert wrong.exit_code == 6
    assert "FAIL  fenchel young everywhere" in wrong.stdout
    assert run("check", "penalty", "Quadratic(Q=[[2.0, 0.5], [0.5, 1.0]])", "-k", "2").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("penalty", "L3"), "Error: NAME: there is no penalty 'L3'"),
        (("penalty", "HuberNorm(dleta=2)"), "Error: NAME has no key 'dleta'; did you mean"),
        (("penalty", "HuberNorm(delta='wide')"), "Error: NAME: delta: this must be a number"),
        (("penalty", "nowhere:X"), "Error: NAME: there is no module 'nowhere'"),
        (
            ("penalty", "a/mine.py:X"),
            "Error: NAME: 'a/mine' is a path: write 'mine:X', where",
        ),
        (
            ("mine:X",),
            "Error: say which of the two mine:X is: graphreg check penalty mine:X or",
        ),
        (("L2",), "Error: say which of the two L2 is: graphreg check penalty L2 or graphreg check loss L2"),
        (("penalty", "L2(a"), "Error: NAME: 'L2(a' is not of the form NAME or NAME(option=value, ...)"),
        (("penalty", "L2(k=1"), "Error: NAME: 'L2(k=1' is not of the form NAME or NAME(option=value, ...)"),
        (("loss", "HuberLoss(1)"), "Error: NAME: in 'HuberLoss(1)' an option has no name; write NAME(option=value"),
        (("loss", "L2"), "Error: NAME: there is no loss 'L2'"),
    ],
)
def test_check_refuses(arguments, message):
    done = run("check", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(message)


def test_what_to_write_for_a_class_of_a_file_is_said(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    for name, meant in {"mine": "mine:Class", "mine.py": "mine:Class", "mine.Own": "mine:Own"}.items():
        assert run("check", "penalty", name).stderr.endswith(f"(of mine.py write '{meant}')\n")


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
    shown = run("demo")
    assert shown.exit_code == 0
    for heading in ("A model file", "Its dual", "Route 1", "Route 2", "Clusters"):
        assert f"== {heading}" in shown.stdout
    first, second = re.search(r"== Route 1.*?\n\n(\S+):.*== Route 2.*?\n\n(\S+):", shown.stdout, re.S).groups()
    assert (first, second) == ("Exact(clarabel)", "PrimalDual")
    assert float(re.search(r"the two answers differ by at most (\S+)", shown.stdout)[1]) > 0.0
    assert "Exact(clarabel)       certified" in shown.stdout


@pytest.mark.parametrize(("kind", "name", "file"), [("penalty", "SoftL1", "soft_l1"), ("loss", "MyLoss", "my_loss")])
def test_what_new_writes_obeys_the_laws_and_runs(tmp_path, monkeypatch, capsys, kind, name, file):
    monkeypatch.chdir(tmp_path)
    done = run("new", kind, name)
    assert done.exit_code == 0
    assert f"{file}.py" in done.stdout
    assert run("check", kind, f"{file}:{name}").exit_code == 0
    runpy.run_path(f"{file}.py", run_name="__main__")
    said = capsys.readouterr().out
    assert said.count(": certified.") == 2
    assert f"{name}: every law holds" in said
    assert len((tmp_path / f"{file}.py").read_text().splitlines()) <= 65
    before = (tmp_path / f"{file}.py").read_bytes()
    assert run("new", kind, name).exit_code == 2
    assert (tmp_path / f"{file}.py").read_bytes() == before


@pytest.mark.parametrize("name", ["soft", "../Up", "Not a name", "None", ""])
def test_new_refuses_what_is_no_class_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert run("new", "penalty", name).exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("L1", "L1 is there already, as graphreg.L1"),
        ("Penalty", "there already, as graphreg.Penalty"),
        ("Numpy", "numpy.py would hide the module numpy"),
    ],
)
def test_new_hides_nothing_that_is_there(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    done = run("new", "penalty", name)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
    free = done.stderr.split("such as ")[1].strip()
    assert run("new", "penalty", free).exit_code == 0


def test_the_program_is_installed():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"graphreg": "graphreg.cli:main"}
    assert run("--version").stdout == f"graphreg {gr.__version__}\n"


def test_every_command_is_described_on_its_line():
    listed = run("--help").stdout.split("Commands:")[1].split("A first round")[0]
    assert "..." not in listed


@pytest.mark.parametrize("code", ["import sys; sys.exit(0)", "import sys\ndef X(*given, **more): sys.exit(0)"])
def test_code_that_exits_does_not_pass(tmp_path, model, monkeypatch, code):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "exits.py").write_text(code)
    write(tmp_path, BASE | {"total_variation": {"penalty": "exits:X", "strength": 0.3}})
    solve, check = ["solve", model, "--allow-code"], ["check", "penalty", "exits:X"]
    for command in (check, solve, ["audit", model, "exits:X", "--allow-code"]):
        monkeypatch.delitem(sys.modules, "exits", raising=False)
        done = run(*command)
        assert done.exit_code == 2, done.output
        assert done.output.startswith("Error: ")
        assert "exit" in done.output.lower()
        assert done.output.count("\n") == 1
