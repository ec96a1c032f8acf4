"""``--ranks`` and ``--retries``: jobs that the command starts, that are killed, and that end with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest
from actor_cases import children
from mpi_jobs import LAUNCHER, begun, can_meet, ended, environment, on_sites, said, three_states

from graphreg.mpi import SavedParts
from graphreg.mpi.command import main

pytestmark = pytest.mark.skipif(
    find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI: pip install 'graphreg[mpi-local]'"
)


@pytest.fixture
def country(tmp_path):
    if why := can_meet():
        pytest.skip(f"no two processes meet here: {why}")
    return three_states(tmp_path)


# ---- jobs that are killed --------------------------------------------------------------------------------------------
LONG = ("--gap", "0", "--rounds", "700", "--checkpoint", "run", "--every", "50", "--out", "out")


def ranks_of(process, many):
    """The processes of a job's ranks, when they are there."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = [
            pid
            for parent in (process.pid, *children(process.pid))
            for pid, line in children(parent).items()
            if line.split()[1:3] == ["-m", "graphreg.mpi"] and "--ranks" not in line
        ]
        if len(found) >= many:
            return sorted(set(found))
        time.sleep(0.05)
    raise AssertionError("there are no ranks")


def starting(folder, *arguments):
    """The command that starts the job itself."""
    command = [sys.executable, "-m", "graphreg.mpi", "model.toml", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True)


def has_kept(folder):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if (folder / "run" / "manifest.json").exists():
            return
        time.sleep(0.02)
    raise AssertionError("nothing was kept")


def test_a_job_whose_rank_is_killed_is_started_again(country):
    job = starting(country, *LONG, "--ranks", "2", "--retries", "2")
    has_kept(country)
    os.kill(ranks_of(job, 2)[0], signal.SIGKILL)
    done = ended(job)
    assert done.returncode == 4, done.stderr  # of the second job: a gap of 0 is never certified
    lines = said(done)
    assert "starting 2 ranks" in lines[0]
    assert "a rank died (exit status 137, SIGKILL); the job is started again" in lines[1]
    assert "retry 1 of 2" in lines[2]
    assert len(lines) == 3
    kept = json.loads((country / "out" / "summary.json").read_text())
    assert kept["rounds"] == 700
    assert on_sites(country, 1, "--gap", "0", "--rounds", "700", "--out", "alone").returncode == 4
    saved, alone = SavedParts.open(country / "out"), SavedParts.open(country / "alone")
    for labels, _ in alone.parts():
        np.testing.assert_array_equal([saved[label] for label in labels], [alone[label] for label in labels])


@pytest.mark.whole
def test_retries_are_used_up_and_bad_input_is_not_tried_again(country):
    job = starting(country, *LONG, "--ranks", "2", "--retries", "0")
    has_kept(country)
    os.kill(ranks_of(job, 2)[1], signal.SIGSEGV)
    done = ended(job)
    assert done.returncode == 139
    assert "a rank died (exit status 139, SIGSEGV)" in said(done)[-1]
    (country / "state 1" / "edges.csv").unlink()
    done = ended(starting(country, "--checkpoint", "run", "--ranks", "2", "--retries", "3"))
    assert done.returncode == 1
    assert len(said(done)) == 2  # the start, and the error


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.whole)],
)
def test_a_signal_to_the_command_ends_its_ranks(number, status, country):
    job = starting(country, *LONG, "--rounds", "1000000", "--ranks", "2")
    has_kept(country)
    ranks = ranks_of(job, 2)
    job.send_signal(number)
    done = ended(job)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert gone(ranks)


@pytest.mark.whole
def test_ctrl_c_in_mpiexec_ends_all(country):
    job = begun(2, "-m", "graphreg.mpi", "model.toml", *LONG, "--rounds", "1000000", folder=country)
    has_kept(country)
    ranks = ranks_of(job, 2)
    job.send_signal(signal.SIGINT)
    done = ended(job)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert gone(ranks)


def gone(ranks):
    """Those whose launcher has ended may take a moment."""
    end = time.monotonic() + 5
    while any(map(alive, ranks)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, ranks))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- the command's own options ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--retries", "2", "--checkpoint", "run"), "say how many --ranks"),
        (("--retries", "2", "--ranks", "2"), "would begin anew without one; name a --checkpoint"),
        (("--ranks", "0"), "--ranks is a whole number of at least 1"),
        (("--ranks", "2", "--retries=-1", "--checkpoint=run"), "--retries one of at least 0"),
    ],
)
def test_options_without_sense(arguments, text, capsys):
    assert main(["model.toml", *arguments]) == 1
    assert text in capsys.readouterr().err


def test_root_is_told_what_open_mpi_wants(monkeypatch, capsys):
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert main(["model.toml", "--ranks", "2"]) == 1
    assert "OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" in capsys.readouterr().err


def test_a_job_within_a_job_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert main(["model.toml", "--ranks", "2"]) == 1
    assert "belongs to an MPI job already" in capsys.readouterr().err


def test_a_job_on_a_terminal_shows_its_rounds(monkeypatch):
    """No rank knows of the terminal: under mpiexec it writes into a pipe."""
    asked = []
    monkeypatch.setattr("graphreg.mpi.command._started", lambda command, *rest: asked.append(command) or 0)
    monkeypatch.setattr("graphreg.mpi.command._launcher", lambda ranks: ["mpiexec"])
    for terminal in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        assert main(["model.toml", "--ranks", "2"]) == 0
    assert [command[-1] for command in asked] == ["--progress", "model.toml"]
