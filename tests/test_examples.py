"""Every example runs and says something."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from places import DATA, EXAMPLES

SCRIPTS = sorted(EXAMPLES.glob("*.py"))
SECONDS = 300

# Examples that are given the folder of their data as an argument.
NEEDS_DATA = {"elections.py", "lip_cancer.py"}


def test_there_are_examples():
    assert EXAMPLES / "demo.py" in SCRIPTS, "make demo runs examples/demo.py"
    strangers = sorted(NEEDS_DATA - {script.name for script in SCRIPTS})
    assert not strangers, f"NEEDS_DATA names examples that do not exist: {strangers}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs(script, tmp_path):
    arguments = []
    if script.name in NEEDS_DATA:
        if not DATA.is_dir():
            pytest.skip(f"{script.name} needs its data in ../shared/data, which is not there")
        arguments = [str(DATA)]
    run = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, f"{script.name} ended with {run.returncode}:\n{run.stderr[-4000:]}"
    assert run.stdout.strip(), f"{script.name} printed nothing"
