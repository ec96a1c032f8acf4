"""A picture that fails costs nothing but itself: tables are there before, the answer is told, the exit code says so."""

from __future__ import annotations

import json
import os
import stat

import pandas as pd
import pytest
from cli_cases import run

from graphreg import plots
from graphreg.base import files
from graphreg.cli import folder as folder_module

pytest.importorskip("matplotlib")


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """The files in the folder when the picture of the graph breaks down."""
    present = []

    def fail(solution, **options):
        present.extend(sorted(path.name for path in (tmp_path / "out").iterdir()))
        raise ValueError("no font\nfor \x1b[31mthis")

    monkeypatch.setattr(plots, "plot_graph", fail)
    return present


def test_tables_are_written_before_pictures(tmp_path, model, broken):
    out = tmp_path / "out"
    done = run("solve", model, "--method", "PrimalDual", "--out", out)
    assert broken == ["clusters.csv", "coefficients.csv", "edges.csv", "flows.csv", "result.json"]
    assert done.exit_code == 7
    assert done.stderr == "graph.png could not be drawn: ValueError: no font for \\x1b[31mthis\n"
    assert (out / "trace.png").read_bytes().startswith(b"\x89PNG"), "the other picture is drawn"
    assert sorted(path.name for path in out.iterdir()) == sorted([*broken, "trace.png"])
    assert sorted(json.loads((out / "result.json").read_text())["files"]) == sorted([*broken, "trace.png"])
    assert "trace.png" in done.stdout
    assert "graph.png" not in done.stdout


def test_a_picture_of_an_earlier_result_goes(tmp_path, model, monkeypatch):
    out = tmp_path / "out"
    assert run("solve", model, "--out", out).exit_code == 0
    assert (out / "graph.png").exists()
    monkeypatch.setattr(plots, "plot_graph", None)
    assert run("solve", model, "--out", out).exit_code == 7
    assert not (out / "graph.png").exists()


def test_the_answer_comes_before_the_picture_in_the_exit_code(tmp_path, model, broken):
    done = run("solve", model, "--method", "PrimalDual", "--rounds", "2", "--gap", "0", "--out", tmp_path / "out")
    assert done.exit_code == 4
    assert "graph.png could not be drawn" in done.stderr


def test_the_answer_is_told_whatever_becomes_of_the_files(tmp_path, model, broken, monkeypatch):
    done = run("solve", model, "--json", "--out", tmp_path / "out")
    assert done.exit_code == 7
    assert json.loads(done.stdout)["status"] == "certified"

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, "replacing", full)
    done = run("solve", model, "--json", "--out", tmp_path / "other")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["files"] == []
    monkeypatch.undo()
    monkeypatch.setattr("graphreg.Solution.prove", lambda *_: 1 / 0)
    broken_proof = run("solve", model, "--json", "--proof", tmp_path / "proof.json")
    assert json.loads(broken_proof.stdout)["status"] == "certified"


def test_a_comparison_is_told_and_written_before_its_picture(tmp_path, model, monkeypatch):
    monkeypatch.setattr(plots, "comparison_figure", None)
    files = ("--csv", tmp_path / "table.csv", "--picture", tmp_path / "gaps.png")
    done = run("compare", model, "--method", "PrimalDual", "--gap", "1e-3", *files)
    assert done.exit_code == 7
    assert "PrimalDual" in done.stdout
    assert done.stderr.startswith("gaps.png could not be drawn: TypeError")
    assert pd.read_csv(tmp_path / "table.csv")["method"].tolist() == ["PrimalDual"]
    assert not (tmp_path / "gaps.png").exists()


# ---- what stands in the folder ---------------------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_links_in_the_folder_lead_nowhere(tmp_path, model, monkeypatch):
    """Neither the names of results nor those of files in the making write through a link."""
    out, mine = tmp_path / "out", tmp_path / "mine.txt"
    out.mkdir()
    mine.write_text("mine")
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "known")
    (out / f".coefficients.csv.known{files.UNFINISHED}").symlink_to(mine)
    done = run("solve", model, "--out", out, "--no-pictures")
    assert done.exit_code == 2
    assert "File exists" in done.stderr
    monkeypatch.undo()
    (out / "clusters.csv").symlink_to(mine)
    assert run("solve", model, "--out", out, "--no-pictures", "--force").exit_code == 0
    assert not (out / "clusters.csv").is_symlink()
    assert mine.read_text() == "mine"


def test_who_may_read_a_result_stays(tmp_path, model):
    out = tmp_path / "out"
    assert run("solve", model, "--out", out, "--no-pictures").exit_code == 0
    (out / "result.json").chmod(0o600)
    assert run("solve", model, "--out", out, "--no-pictures").exit_code == 0
    assert stat.S_IMODE((out / "result.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["[" * 100_000, '{"written_by": "graphreg", "files": 5}', "\x00", "5"])
def test_a_strange_result_is_no_result_of_ours(tmp_path, model, text):
    out = tmp_path / "out"
    out.mkdir()
    (out / "result.json").write_text(text)
    done = run("solve", model, "--out", out)
    assert done.exit_code == 2
    assert "is no earlier result of graphreg" in done.stderr


def test_a_pipe_in_place_of_a_result_is_not_waited_for(tmp_path, model):
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "result.json")
    assert run("solve", model, "--out", tmp_path / "out").exit_code == 2
