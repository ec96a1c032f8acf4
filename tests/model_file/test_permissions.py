"""Permissions of a model file: run code, and leave its folder."""

from __future__ import annotations

import os

import pytest
from cli_cases import run
from model_files import BASE, tables, write

import graphreg as gr
from graphreg.cli import main
from graphreg.errors import GraphregError, ModelFileError

TATTLE = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nfrom graphreg import L2 as P\n"
TATTLE += "from graphreg import SquaredLoss as L, PrimalDual as M\n"
COMMANDS = [name for name, each in main.commands.items() if any(p.name == "model" for p in each.params[:1])]


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "model"
    inner.mkdir()
    tables(inner)
    return inner


def code(name):
    """A model file that names code, as a penalty, a loss or a method."""
    return {
        "penalty": {**BASE, "total_variation": {"penalty": f"{name}:P"}},
        "penalty with options": {**BASE, "node_penalty": {"penalty": {"family": f"{name}:P"}}},
        "penalty of a hierarchy": {
            **BASE,
            "hierarchy": {"clusters": "region", "weights": [1, 1], "penalty": f"{name}:P"},
        },
        "loss": {**BASE, "loss": {"family": f"{name}:L"}},
        "method": {**BASE, "solve": {"method": f"{name}:M"}},
        "method with options": {**BASE, "solve": {"method": {"family": f"{name}:M", "balance": 1.0}}},
    }


# ---- code ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", code("x"))
def test_code_runs_where_it_is_allowed_only(folder, where):
    name = "tattle_" + where.replace(" ", "_")
    (folder / f"{name}.py").write_text(TATTLE)
    path = write(folder, code(name)[where])
    with pytest.raises(ModelFileError, match=rf"'{name}:.' is code, .* --allow-code .*allow_code=True") as caught:
        gr.read_model(path)
    assert str(caught.value).startswith("model.toml: [")
    assert not (folder / f"{name}.ran").exists()
    gr.read_model(path, allow_code=True)
    assert (folder / f"{name}.ran").exists()


def test_there_are_commands_that_open_a_model_file():
    assert {"solve", "compare", "methods", "hash", "audit"} <= set(COMMANDS)


@pytest.mark.filterwarnings("ignore:.*samples for 2 coefficients")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_asks_and_says_so(folder, command):
    name = f"tattle_{command}"
    (folder / f"{name}.py").write_text(TATTLE)
    path = write(folder, {**BASE, "total_variation": {"penalty": f"{name}:P", "parameter": "lam"}})
    more = {
        "audit": ["PrimalDual"],
        "predict": [folder / "visits.csv"],
        "prove": [folder / "proof.json"],
        "report": ["--out", folder / "report.html"],
        "path": ["--strengths", "0.1"],
        "cv": ["--strengths", "0.1", "--folds", "2"],
    }.get(command, [])
    done = run(command, path, *more)
    assert done.exit_code == 2
    assert "--allow-code" in done.stderr
    assert not (folder / f"{name}.ran").exists()
    if command not in ("compare", "audit"):  # which take long
        assert run(command, path, *more, "--allow-code").exit_code == 0
    said = " ".join(run(command, "--help").output.split())
    assert "--allow-code Run modules that the model file names" in said
    assert "--allow-outside Let paths in the model file leave its folder" in said


def test_code_named_on_the_command_line_was_named_by_its_user(folder):
    (folder / "tattle_typed.py").write_text(TATTLE)
    path = write(folder, {**BASE, "node_penalty": {"penalty": "SquaredL2"}})
    assert run("solve", path, "--method", "tattle_typed:M", "--gap", "1e-2").exit_code == 0
    assert "The code of a module that is named here is run" in " ".join(run("check", "--help").output.split())


# ---- paths -----------------------------------------------------------------------------------------------------------
def paths(folder):
    """Ways out of the folder, to a table that is there."""
    outside = folder.parent / "visits.csv"
    (folder / "visits.csv").replace(outside)
    (folder / "link.csv").symlink_to(outside)
    (folder / "away").symlink_to(folder.parent, target_is_directory=True)
    (folder / "deep").mkdir()
    return ["../visits.csv", str(outside), "link.csv", "away/visits.csv", "deep/../../visits.csv", "deep/../link.csv"]


def test_tables_outside_the_folder(folder):
    for name in paths(folder):
        path = write(folder, {**BASE, "data": {**BASE["data"], "file": name}})
        with pytest.raises(ModelFileError, match=r"\[data\] file: .* leaves the folder .*--allow-outside .*=True"):
            gr.read_model(path)
        assert gr.read_model(path, allow_outside=True).samples[0].rows == 42
    for key in ("edges", "adjacency"):
        path = write(folder, {**BASE, "graph": {key: "link.csv"}, "data": {**BASE["data"], "file": "matrix.csv"}})
        (folder / "matrix.csv").write_bytes((folder.parent / "visits.csv").read_bytes())
        with pytest.raises(ModelFileError, match=rf"\[graph\] {key}: 'link.csv' leaves the folder"):
            gr.read_model(path)
    done = run("solve", path)
    assert done.exit_code == 2
    assert "--allow-outside" in done.stderr


def test_paths_that_stay_are_taken(folder):
    (folder / "deep").mkdir()
    (folder / "here.csv").symlink_to(folder / "visits.csv")
    linked = folder.parent / "linked"
    linked.symlink_to(folder, target_is_directory=True)
    for name in ("deep/../visits.csv", "here.csv", "./visits.csv"):
        write(folder, {**BASE, "data": {**BASE["data"], "file": name}})
        for path in (folder / "model.toml", linked / "model.toml"):
            assert gr.read_model(path).samples[0].rows == 42


def test_tables_in_a_folder_of_their_own(folder):
    """The folder that --data names is the one that tables stay in."""
    path = write(folder.parent, BASE)
    assert gr.read_model(path, folder).samples[0].rows == 42
    path = write(folder.parent, {**BASE, "data": {**BASE["data"], "file": "../model/../model.toml"}})
    with pytest.raises(ModelFileError, match="leaves the folder"):
        gr.read_model(path, folder)


@pytest.mark.parametrize("name", ["../run.npz", "link.npz", "away/run.npz"])
def test_checkpoints_outside_the_folder(folder, name):
    (folder / "link.npz").symlink_to(folder.parent / "run.npz")
    (folder / "away").symlink_to(folder.parent, target_is_directory=True)
    path = write(folder, {**BASE, "solve": {"method": "PrimalDual", "gap": 1e-2, "checkpoint": name}})
    with pytest.raises(ModelFileError, match=r"\[solve\] checkpoint: .* leaves the folder .*--allow-outside"):
        gr.read_model(path)
    assert not (folder.parent / "run.npz").exists()
    if name == "../run.npz":
        assert run("solve", path, "--allow-outside").exit_code == 0
        assert (folder.parent / "run.npz").exists()


@pytest.mark.parametrize("name", ["a\0b.csv", "x" * 300 + ".csv", "circle.csv", "pipe.csv", "/dev/zero", ""])
def test_names_that_are_no_tables(folder, name):
    (folder / "circle.csv").symlink_to("circle.csv")
    os.mkfifo(folder / "pipe.csv")
    for allowed in (False, True):
        with pytest.raises(ModelFileError, match=r"^model.toml: \[data\] file: "):
            gr.read_model(write(folder, {**BASE, "data": {**BASE["data"], "file": name}}), allow_outside=allowed)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5000, "a = \x00", "[a.a.a]" * 3])
def test_what_is_no_toml_is_refused(tmp_path, text):
    (tmp_path / "model.toml").write_text(text)
    with pytest.raises(ModelFileError, match=r"^model.toml is not valid TOML"):
        gr.read_model(tmp_path / "model.toml")


@pytest.mark.parametrize(
    "formula", ["(" * 5000 + "dose" + ")" * 5000, "+".join(["dose"] * 20_000), "-" * 5000 + "dose"]
)
def test_formulas_that_are_too_deep(folder, formula):
    data = {**BASE["data"], "derive": {"more": formula}}
    with pytest.raises(ModelFileError, match=r"\[data\] derive more: "):
        gr.read_model(write(folder, {**BASE, "data": data}))


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_permissions_are_yes_or_no(folder, value):
    path = write(folder, BASE)
    with pytest.raises(GraphregError, match="allow_code must be True or False"):
        gr.read_model(path, allow_code=value)
    with pytest.raises(GraphregError, match="allow_outside must be True or False"):
        gr.read_model(path, allow_outside=value)
