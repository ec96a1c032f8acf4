"""Whatever takes a path is in a table here; and what writes a file loses nobody's: another's is refused, a good one of
our own stays where the disk is full, and every failure is an error of the library."""

from __future__ import annotations

import inspect
import os
import re
import resource
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click
import cvxpy as cp
import numpy as np
import pytest
from cli_cases import run
from factories import chain
from model_files import BASE, tables, write
from places import ROOT
from result_cases import frame_of, network

import graphreg as gr
from graphreg import mpi
from graphreg.cli import main
from graphreg.distributed import LocalSolution
from graphreg.distributed.parts.keeping import Sent
from graphreg.errors import CheckpointWarning, GraphregError
from graphreg.running import Trace

READS, NONE = "reads", "names no file of its own"
SAID = re.compile(r"path|file|folder|directory|checkpoint|place|store|out|to", re.IGNORECASE)
FOREIGN = b"precious" * 100
X = cp.Variable(3)

# By function and parameter: READS, NONE, or what writes there.
WRITERS = {
    "Solution.prove(path)": lambda path: answer().prove(path),
    "Judgement.prove(path)": lambda path: chain().certify(answer().coef).prove(path),
    "Solution.save(path)": lambda path: answer().save(path),
    "Solution.report(file)": lambda path: answer().report(path),
    "ConicCertificate.prove(path)": lambda path: gr.certify(cp.Problem(cp.Minimize(cp.sum(X)), [X >= 1.0])).prove(path),
    "Audit.report(file)": lambda path: gr.audit(chain(), [np.zeros((8, 3))]).report(path),
    "Path.report(file)": lambda path: strengths().report(path),
    "Fit.report(file)": lambda path: gr.fit(
        frame_of(4), network(4), target="level", node="node", strengths=[1.0], folds=2
    ).report(path),
    "Problem.solve(checkpoint)": lambda path: chain().solve(gr.PrimalDual(), rounds=9, gap=0, checkpoint=path),
    "path(checkpoint)": lambda path: strengths(checkpoint=path),
    "cross_validate(checkpoint)": lambda path: gr.cross_validate(varied(), {"lam": [0.1]}, folds=2, checkpoint=path),
}
FUNCTIONS = {
    **WRITERS,
    "LocalSolution.save(folder)": "a folder",
    "solve(checkpoint)": "a folder",  # of graphreg.mpi
    "Checkpoint(path)": "Problem.solve(checkpoint)",
    **dict.fromkeys(("SavedParts(folder)", "SavedParts.open(folder)", "load(path)"), READS),
    **dict.fromkeys(("read_model(path)", "read_model(data)", "ModelFile.rows_like(path)"), READS),
    **dict.fromkeys(("ModelFile(path)", "plot_path(path)"), NONE),
}
READ_BY_ALL = {"model", "table", "edges", "--data", "--outlines", "--positions", "--clusters", "rows", "proof"}
NEW = {
    "--csv",
    "--html",
    "--picture",
    "--events",
    "--markdown",
    "--proof",
    "--intervals",
    "file",
}  # refused where there is anything
FOLDERS = {"folder", "--out"}
OPTIONS = {  # of commands, where it is none of these
    "report --out": "Solution.report(file)",
    "path --checkpoint": "path(checkpoint)",
    "cv --checkpoint": "cross_validate(checkpoint)",
}


def answer():
    return chain().solve(gr.PrimalDual(), gap=1e-6)


def varied():
    return chain(strength=gr.Parameter(0.3, name="lam"))


def strengths(**how):
    return gr.path(varied(), [0.2, 0.4], progress=False, **how)


# ---- the tables have all of them -------------------------------------------------------------------------------------
def takes_paths(owner, name):
    try:
        known = inspect.signature(owner).parameters.values()
    except (TypeError, ValueError):
        return
    for each in known:
        said = str(each.annotation)
        if SAID.fullmatch(each.name) or "PathLike" in said or re.search(r"str \| Path\b", said):
            yield f"{name}({each.name})"


def public():
    faces = [gr, mpi, *(import_module(f"graphreg.{name}") for name in gr._SUBMODULES)]
    for face in faces:
        for name in getattr(face, "__all__", dir(face)):
            found = getattr(face, name, None)
            if name.startswith("_") or not str(getattr(found, "__module__", "")).startswith("graphreg"):
                continue
            if callable(found):
                yield found, found.__qualname__
            if inspect.isclass(found):
                for method, function in inspect.getmembers(found, callable):
                    if not method.startswith("_") and str(getattr(function, "__module__", "")).startswith("graphreg"):
                        yield function, function.__qualname__


def commands(group, name=""):
    for key, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{name}{key} ")
        else:
            yield f"{name}{key}", command


def test_every_function_that_takes_a_path_is_in_the_table():
    found = {said for owner, name in public() for said in takes_paths(owner, name)}
    found |= set(takes_paths(gr.judging.Judgement.prove, "Judgement.prove"))
    assert found == set(FUNCTIONS), "say what it does with the path: one of WRITERS, or that it writes none"


def test_every_option_that_takes_a_path_is_in_the_table():
    for name, command in commands(main):
        for option in command.params:
            if isinstance(option.type, click.Path):
                said = option.opts[0]
                where = f"{name} {said}"
                assert where in OPTIONS or said in READ_BY_ALL | NEW | FOLDERS, f"say what {where} does with the path"
                if said in NEW:
                    assert any("--force" in each.opts for each in command.params), where


# ---- what becomes of the files ---------------------------------------------------------------------------------------
@contextmanager
def full_disk():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # Python ignores SIGXFSZ
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", WRITERS)
def test_nobody_loses_a_file(name, tmp_path):
    work = WRITERS[name]
    foreign, link, dangling, good = (tmp_path / each for each in ("foreign", "link", "dangling", "good"))
    foreign.write_bytes(FOREIGN)
    link.symlink_to(foreign)
    dangling.symlink_to(tmp_path / "nothing")
    for place in (foreign, link, dangling, tmp_path, tmp_path / "none" / "file", Path("/sys/file"), "a\0b"):
        with pytest.raises(GraphregError):
            work(place)
    assert foreign.read_bytes() == FOREIGN
    assert link.is_symlink()
    work(good)
    before = good.read_bytes()
    place = tmp_path / "new" if "checkpoint" in name else good  # a run that is there is not written again
    with full_disk(), pytest.raises((GraphregError, CheckpointWarning), match=r"c(annot|ould not) be written"):
        work(place)
    assert good.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.endswith(".lock")) == [
        *("dangling", "foreign", "good", "link")
    ]
    work(good)


@dataclass(frozen=True)
class Told:
    """A command, what it wrote before, and the files that it would write."""

    arguments: tuple[str, ...]
    file: str


TOLD = [
    Told(("solve", "model.toml", "--quiet", "--no-pictures", "--out", "results"), "results/coefficients.csv"),
    Told(("solve", "model.toml", "--quiet", "--proof", "out"), "out"),
    Told(("prove", "model.toml", "out", "--quiet"), "out"),
    Told(("report", "model.toml", "--quiet", "--out", "out"), "out"),
    Told(("strength-max", "model.toml", "--quiet", "--csv", "out"), "out"),
    Told(("strength-max", "model.toml", "--quiet", "--html", "out"), "out"),
]


@pytest.mark.parametrize("told", TOLD, ids=lambda told: " ".join(told.arguments))
def test_commands_lose_no_file(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables(tmp_path)
    write(tmp_path, BASE)
    file = tmp_path / told.file
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(FOREIGN)
    names = set(os.listdir(tmp_path))
    refused = run(*told.arguments)
    assert refused.exit_code == 2
    assert refused.output.startswith("Error: ")
    assert refused.output.count("\n") == 1
    assert file.read_bytes() == FOREIGN
    if told.arguments[0] != "report":
        with full_disk():
            full = run(*told.arguments, "--force")
        assert full.exit_code == 2
        assert "written" in full.output.splitlines()[-1]
        assert file.read_bytes() == FOREIGN
    assert set(os.listdir(tmp_path)) == names


def test_files_of_parts_are_replaced_as_a_whole(tmp_path):
    none = np.zeros((1, 1), dtype=np.int64)
    counts = (Trace(), Sent(none, none), 0, 1, 1)
    found = LocalSolution(("a",), ("x",), np.ones((1, 1)), "certified", 0.0, 1.0, 1.0, 1, 1.0, *counts)
    found.save(tmp_path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with full_disk(), pytest.raises(GraphregError, match="cannot be written"):
        found.save(tmp_path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    with pytest.raises(GraphregError, match="nothing can be written"):
        found.save(tmp_path / "summary.json")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
def test_standard_output_that_is_full_is_one_line(tmp_path):
    tables(tmp_path)
    write(tmp_path, BASE)
    command, there = [sys.executable, "-m", "graphreg", "solve", "model.toml"], {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            command, cwd=tmp_path, env=there, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert (done.returncode, done.stderr) == (
        2,
        "Error: standard output cannot be written to: No space left on device\n",
    )
