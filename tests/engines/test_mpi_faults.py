"""MPI jobs that fail: they end without a hang, and say what it was once, with the rank, as the exit status does."""

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
from mpi_jobs import LAUNCHER, begun, can_meet, ended, environment, launched, on_sites, three_states

from graphreg.mpi import SavedParts
from graphreg.mpi.command import main

pytestmark = pytest.mark.skipif(
    find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI: pip install 'graphreg[mpi-local]'"
)
COMMAND = """
import os, signal, sys, time
from graphreg.errors import DataError
from graphreg.mpi.command import main
os.chdir(os.environ["FOLDER"])

def at_round(k, fail):
    step = gr.PrimalDual.step
    def failing(self, state):
        if state.round == k:
            fail()
        return step(self, state)
    gr.PrimalDual.step = failing

def fail():
    raise ZeroDivisionError("no reason")
"""


@pytest.fixture(scope="module", autouse=True)
def launcher():
    if why := can_meet():
        pytest.skip(f"no two processes meet here: {why}")


@pytest.fixture
def country(tmp_path):
    return three_states(tmp_path)


def commanded(code, ranks, folder):
    """A script that changes something on some ranks, and then is the command."""
    return launched(f"{COMMAND}\n{code}\nsys.exit(main(['model.toml']))", ranks, folder, FOLDER=str(folder))


def said(done):
    """What graphreg said, line by line."""
    return [line for line in done.stderr.splitlines() if line.startswith("graphreg: ")]


# ---- what ranks must have alike --------------------------------------------------------------------------------------
DIFFERENT = """
from graphreg import mpi
from graphreg.engines.mpi import alike
def refused(call):
    try:
        call()
    except gr.errors.MethodError as error:
        assert error.shared
        told = MPI.COMM_WORLD.gather(str(error))
        if rank == 0:
            assert len(set(told)) == 1, told
            print(told[0])
    else:
        print("nothing was refused")
engine, method = gr.MPI(), gr.PrimalDual()
refused(lambda: row().solve(method, gap=10.0 ** -(3 + rank), engine=engine))
refused(lambda: row().solve(gr.PrimalDual(balance=1.0 + rank), engine=engine))
refused(lambda: row().solve(method, start=np.full((7, 7), float(rank)), engine=engine))
refused(lambda: row().solve(method, engine=gr.MPI(sites={label: rank for label in "abcdefg"})))
refused(lambda: problem("squared", seed=rank).solve(method, engine=engine))
own = {"abcdefg"[rank]}
refused(lambda: mpi.solve(row(), own, seconds=1.0 + rank))
refused(lambda: mpi.solve(row(), own, gap=-1.0 if rank else 1e-6)) if rank else refused(lambda: mpi.solve(row(), own))
numpy = np.__version__
np.__version__ = f"9.{rank}"
refused(lambda: row().solve(method, engine=engine))
np.__version__ = numpy
alike.find_spec, alike.version = (lambda name: rank or None), (lambda name: "1.0")  # numba at rank 1 alone
refused(lambda: mpi.solve(row(), own))
alike.find_spec, alike.compiles = (lambda name: name), (lambda: rank == 0)
refused(lambda: mpi.solve(row(), own))
"""


def test_what_ranks_must_have_alike_is_refused_before_the_run(tmp_path):
    done = launched(DIFFERENT.replace("MethodError as error", "GraphregError as error"), 2, tmp_path)
    assert done.returncode == 0, done.stderr
    expected = [
        "gap is 0.001 on rank 0 and 0.0001 on rank 1",
        "the option balance is 1.0 on rank 0 and 2.0 on rank 1; call it with the same arguments on every rank",
        "not the same start on rank 0 and rank 1",
        "not the same sites on rank 0 and rank 1",
        "not the same features of the samples of SquaredLoss 1 on rank 0 and rank 1",
        "seconds is 1.0 on rank 0 and 2.0 on rank 1",
        "rank 1 of 2: gap must be a non-negative number, got -1.0",
        "numpy is 9.0 on rank 0 and 9.1 on rank 1; install the same versions on every machine",
        "numba is not installed on rank 0 and 1.0",
        "numba is 1.0 on rank 0 and 1.0, which does not compile on rank 1",
    ]
    lines = done.stdout.splitlines()
    assert len(lines) == len(expected), done.stdout
    for line, text in zip(lines, expected, strict=True):
        assert text in line, line


def test_three_ranks_are_named_by_their_values():
    from graphreg.engines.mpi.alike import _differences

    every = [{("versions", "numpy"): value} for value in ("1", "2", "1")]
    assert "numpy is 1 on ranks 0, 2 and 2 on rank 1; install" in _differences(every)


@pytest.mark.whole
def test_what_all_ranks_raise_is_shown_once(tmp_path):
    done = launched("row().solve(gr.PrimalDual(), gap=1e-3 * (1 + rank), engine=gr.MPI())", 3, tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.count("gap is 0.001 on rank 0") == 1


@pytest.mark.whole
def test_what_a_script_does_not_catch_ends_all(tmp_path):
    code = """
row().solve(gr.PrimalDual(), engine=gr.MPI())
if rank == 1:
    raise RuntimeError("not on my machine")
MPI.COMM_WORLD.Barrier()
"""
    done = launched(code, 3, tmp_path)
    assert done.returncode == 1
    assert said(done) == ["graphreg: rank 1 of 3 failed: not on my machine"]


@pytest.mark.whole
def test_what_cannot_be_sent_is_an_error_of_all(tmp_path):
    code = """
import networkx as nx
def own():
    class Local(gr.L2):
        pass
    return Local()
data = gr.NodeData.from_arrays(np.eye(7), np.arange(7.0), list("abcdefg"))
model = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(list("abcdefg")), own()))
try:
    model.solve(gr.PrimalDual(), engine=gr.MPI())
except Exception as error:
    print("own.<locals>.Local" in str(error))
"""
    done = launched(code, 2, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


# ---- failures --------------------------------------------------------------------------------------------------------
def test_a_failure_in_a_round_at_several_ranks_is_said_once(country):
    done = commanded("at_round(3, fail)", 3, country)
    assert done.returncode == 1
    assert done.stderr.count("ZeroDivisionError: no reason") == 1
    assert said(done) == ["graphreg: rank 0 of 3 (and 2 more) failed: no reason"]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        ("if rank == 1: at_round(3, fail)", 1, "rank 1 of 3 failed: no reason"),
        ("if rank == 2: gr.PrimalDual.point = lambda *_: fail()", 1, "rank 2 of 3 failed: no reason"),
        ("import graphreg.engines.parts.joint as j; j.common_model = lambda _: fail()", 1, "(and 2 more) failed: no"),
        (
            "import graphreg.engines.parts.joint as j\nif rank == 1: j.PartBounds = fail",
            1,
            "rank 1 of 3 failed: fail()",
        ),
        ("if rank == 1: at_round(2, lambda: sys.exit('left'))", 1, "rank 1 of 3 failed: left"),
    ],
)
def test_a_failure_anywhere_ends_all(code, status, text, country):
    done = commanded(code, 3, country)
    assert done.returncode == status
    assert len(said(done)) == 1
    assert text in said(done)[0]


def refuse(folder, *arguments, ranks=2):
    """One line, and the exit status of errors."""
    done = on_sites(folder, ranks, *arguments)
    assert done.returncode == 1, done.stderr
    assert len(said(done)) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return said(done)[0]


@pytest.mark.whole
def test_a_node_at_two_sites_is_named(country):
    file = country / "state 2" / "samples.csv"
    file.write_text(file.read_text() + "n3,1.0,1.0\n")
    assert "rank 0 of 3: the node 'n3' belongs to part 0 and to part 2" in refuse(country, ranks=3)


@pytest.mark.whole
def test_what_sites_do_not_agree_on_is_said_once(country):
    file = country / "state 1" / "samples.csv"
    whole = file.read_text()
    file.write_text(whole.replace("node,x,y", "node,z,y"))
    assert "rank 1 of 2" in refuse(country)
    assert "no column 'x'" in refuse(country)
    file.write_text(whole)
    edges = country / "state 0" / "edges.csv"
    edges.write_text(edges.read_text() + "n0,n15\n")
    assert "do not have the same edges between them" in refuse(country)


@pytest.mark.whole
def test_folders_are_tried_before_the_run(country):
    (country / "taken").write_text("a file")
    for option, what in (("--out", "results"), ("--checkpoint", "checkpoint")):
        text = refuse(country, option, "taken", "--seconds", "100", "--gap", "0")
        assert "rank 0 of 2: nothing can be written to the folder taken" in text
        assert f"for the {what}" in text


@pytest.mark.whole
def test_a_checkpoint_of_another_run_is_refused(country):
    assert on_sites(country, 2, "--checkpoint", "run").returncode == 0
    assert "has 2 parts, and this one has 3" in refuse(country, "--checkpoint", "run", ranks=3)
    model = country / "model.toml"
    model.write_text(model.read_text().replace("0.3", "0.4"))
    assert "another problem" in refuse(country, "--checkpoint", "run")
    (country / "run" / "manifest.json").write_text("{}")
    assert "manifest.json is damaged" in refuse(country, "--checkpoint", "run")


@pytest.mark.whole
def test_model_files_that_are_not_alike(country):
    code = """
if rank == 1:
    text = open("model.toml").read()
    open("other.toml", "w").write(text.replace("0.3", "0.4"))
    sys.exit(main(["other.toml"]))
"""
    done = commanded(code, 2, country)
    assert done.returncode == 1
    assert "not the same [total_variation] of the model file on rank 0 and rank 1" in said(done)[0]


@pytest.mark.whole
def test_a_launcher_of_another_library_is_said_by_one(country):
    arguments = [sys.executable, "-m", "graphreg.mpi", "model.toml"]
    for rank, lines in (("0", 1), ("1", 0)):
        alone = environment(PMI_SIZE="2", PMI_RANK=rank)
        done = subprocess.run(
            arguments, cwd=country, env=alone, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == lines, done.stderr


# ---- jobs that are killed --------------------------------------------------------------------------------------------
LONG = ("--gap", "0", "--rounds", "1500", "--checkpoint", "run", "--every", "50", "--out", "out")


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
    assert kept["rounds"] == 1500
    assert on_sites(country, 1, "--gap", "0", "--rounds", "1500", "--out", "alone").returncode == 4
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
