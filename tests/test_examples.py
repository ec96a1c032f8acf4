"""Every example runs and says something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SECONDS = 300

# Examples that are given the folder of their data as an argument, which is relative to the root of the repository.
NEEDS_DATA: dict[str, str] = {"elections.py": "../shared/data", "lip_cancer.py": "../shared/data"}


def test_there_are_examples():
    assert (ROOT / "examples" / "demo.py") in EXAMPLES, "make demo runs examples/demo.py"
    strangers = sorted(set(NEEDS_DATA) - {script.name for script in EXAMPLES})
    assert not strangers, f"NEEDS_DATA names examples that do not exist: {strangers}"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_runs(script, tmp_path):
    arguments = []
    if script.name in NEEDS_DATA:
        folder = (ROOT / NEEDS_DATA[script.name]).resolve()
        if not folder.is_dir():
            pytest.skip(f"{script.name} needs its data in {NEEDS_DATA[script.name]}, which is not there")
        arguments = [str(folder)]
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
