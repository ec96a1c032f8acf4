"""Every example runs and says something."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import warnings

import pandas as pd
import pytest
from places import DATA, EXAMPLES

import graphreg as gr

SCRIPTS = sorted(EXAMPLES.glob("*.py"))
DEMO = EXAMPLES / "demo.py"
SECONDS = 300

# What is left of an example without --whole: fewer clients, clinics, pixels, folds and strengths, wider gaps.
SMALLER = {
    "choosing_the_strength.py": {
        "gr.path(problem, 12)": "gr.path(problem, 6)",
        "cross_validate(problem, 12, folds=5,": "cross_validate(problem, 8, folds=3,",
    },
    "compare_methods.py": {"SIZES, d, m = (30, 30),": "SIZES, d, m = (12, 12),"},
    "convex_clustering.py": {
        "for value in (0.1, 0.3, 1.0, 2.0, 4.0, 16.0)": "for value in (0.3, 1.0, 4.0)",
        "k=20": "k=6",
    },
    "demo.py": {
        "[0.001, 0.03, 0.1, STRENGTH, 1.0, 10.0]": "[0.03, STRENGTH]",
        "for k in range(1, 10)]": "for k in (1, 3, 6)]",
        "gr.compare(problem, seconds=1)": "gr.compare(problem, seconds=0.1)",
    },
    "elections.py": {
        "FOLDS = 5": "FOLDS = 3",
        "for strength in (0.01, 0.1)": "for strength in (0.1,)",
        "for strength in (0.02, 0.1)": "for strength in (0.1,)",
        "strengths = [1e-3, 0.01, 0.03, 0.1, 0.3, 3.0]": "strengths = [0.03, 0.3]",
    },
    "federated.py": {
        "CLIENTS, LEARNING, CHOOSING = 24,": "CLIENTS, LEARNING, CHOOSING = 8,",
        "GAP = 1e-3": "GAP = 1e-2",
        "1e-3 * gr.NodePenalty": "0.1 * gr.NodePenalty",
        "for g in (0.01, 0.1, 1.0) for x in (0.003, 0.03)": "for g in (0.1, 1.0) for x in (0.03,)",
        "starts=5": "starts=2",
    },
    "image_denoising.py": {"SIDE, NOISE = 56,": "SIDE, NOISE = 20,"},
    "which_edges_and_how_sure.py": {
        "cross_validate(problem, 10,": "cross_validate(problem, 5, folds=3,",
        "np.tile(clinics, 600)": "np.tile(clinics, 100)",
    },
}

# Examples that are given the folder of their data as an argument.
NEEDS_DATA = {"elections.py", "lip_cancer.py"}


def smaller(script, folder):
    """The example as SMALLER has it, in the folder."""
    source = script.read_text(encoding="utf-8")
    for text, instead in SMALLER[script.name].items():
        assert source.count(text) == 1, f"{script.name} has {text!r} no more"
        source = source.replace(text, instead)
    path = folder / script.name
    path.write_text(source, encoding="utf-8")
    return path


def test_there_are_examples():
    assert DEMO in SCRIPTS, "make demo runs examples/demo.py"
    strangers = sorted((NEEDS_DATA | set(SMALLER)) - {script.name for script in SCRIPTS})
    assert not strangers, f"NEEDS_DATA or SMALLER names examples that do not exist: {strangers}"


def thinned_tables(folder):
    """The tables of the data, of the counties every eighth; whole with ``--whole``."""
    for path in DATA.glob("*.csv*"):
        if path.name.startswith("us_election"):
            pd.read_csv(path, dtype={"fips": str})[::8].to_csv(folder / path.name, index=False)
        else:
            shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script != DEMO], ids=lambda script: script.stem)
def test_example_runs(script, tmp_path, monkeypatch, capsys, whole):
    """In this process, which has imported already what takes longer than most examples."""
    if script.name in SMALLER and not whole:
        script = smaller(script, tmp_path)
    arguments = []
    if script.name in NEEDS_DATA:
        if not DATA.is_dir():
            pytest.skip(f"{script.name} needs its data in ../shared/data, which is not there")
        arguments = [str(thinned_tables(tmp_path) if script.stem == "elections" and not whole else DATA)]
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    monkeypatch.chdir(tmp_path)
    took, solve = set[str](), gr.Problem.solve

    def recording(*given, **options):
        solution = solve(*given, **options)
        took.add(solution.method)
        return solution

    monkeypatch.setattr(gr.Problem, "solve", recording)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as where a user runs it
        runpy.run_path(str(script), run_name="__main__")
    said = capsys.readouterr().out
    assert said.strip(), f"{script.name} printed nothing"
    if re.search(r"^ *exact\b.* = .*solve\(", script.read_text(encoding="utf-8"), re.M):
        assert "Exact(clarabel)" in took, f"{script.name} speaks of an exact answer, and its methods were {took}"
        assert len(took) > 1


def test_the_demo_runs_as_a_program(tmp_path, whole):
    run = subprocess.run(
        [sys.executable, str(DEMO if whole else smaller(DEMO, tmp_path))],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, f"{DEMO.name} ended with {run.returncode}:\n{run.stderr[-4000:]}"
    first, second = re.search(r"== Route 1.*?\n\n(\S+):.*== Route 2.*?\n\n(\S+):", run.stdout, re.S).groups()
    assert (first, second) == ("Exact(clarabel)", "PrimalDual")
    assert float(re.search(r"largest difference of the two answers: (\S+)", run.stdout)[1]) > 0.0
