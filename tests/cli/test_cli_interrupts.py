"""Ctrl-C at the edges of a command: while it is imported, and when all is computed but not yet shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pandas as pd
import pytest
from cli_cases import run
from model_files import BASE, tables, write
from places import ROOT

from graphreg.tuning import Path as StrengthPath

SCRIPT = "import sys; sys.argv = ['bin/graphreg', '--version']; from graphreg.cli import main; sys.exit(main())"


@pytest.fixture
def named(tmp_path):
    tables(tmp_path)
    return write(tmp_path, BASE | {"total_variation": {"penalty": "L2", "strength": 0.3, "parameter": "lam"}})


@pytest.mark.parametrize("command", [["-m", "graphreg", "--version"], ["-c", SCRIPT]], ids=["module", "script"])
def test_ctrl_c_while_modules_are_imported(command, tmp_path):
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt\n")  # imported before the true one
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, "Interrupted.\n", "")


def test_who_imports_the_library_keeps_the_traceback(tmp_path):
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-c", "import graphreg; graphreg.Problem"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_after_the_last_strength_shows_the_table(named, tmp_path, monkeypatch, times):
    """Once it is held back until the table is there; the second time it ends."""
    table = StrengthPath.table

    def pressed(self):
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(StrengthPath, "table", table)
        return table(self)

    monkeypatch.setattr(StrengthPath, "table", pressed)
    done = run("path", named, "--strengths", "0.1,0.3", "--csv", tmp_path / "path.csv")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if times == 2:
        assert (done.exit_code, done.stdout) == (130, "")
        return
    assert done.exit_code == 0, done.output
    assert "certified" in done.stdout
    assert len(pd.read_csv(tmp_path / "path.csv")) == 2
    assert "press Ctrl-C again" in done.stderr


@pytest.mark.parametrize("command", ["path", "cv"])
def test_without_a_name_for_a_strength_the_file_is_told_what_to_say(command, tmp_path):
    tables(tmp_path)
    model = write(tmp_path, BASE | {"total_variation": {"penalty": "L2", "strength": 0.3}})
    done = run(command, model, "--strengths", "0.1,0.3")
    assert done.exit_code == 2
    assert 'write parameter = "lam" beside strength = 0.3' in done.stderr
    assert "[total_variation]" in done.stderr
    assert "gr." not in done.stderr
