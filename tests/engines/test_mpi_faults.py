"""MPI jobs that fail: they end without a hang, and say what it was once, with the rank, as the exit status does."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
from mpi_jobs import LAUNCHER, can_meet, environment, launched, on_sites, said, three_states

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


# ---- what ranks must have alike --------------------------------------------------------------------------------------
DIFFERENT = """
from graphreg import mpi
from graphreg.distributed.mpi import job
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
job.find_spec, job.version = (lambda name: rank or None), (lambda name: "1.0")  # numba at rank 1 alone
refused(lambda: mpi.solve(row(), own))
job.find_spec, job.compiles = (lambda name: name), (lambda: rank == 0)
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
    from graphreg.distributed.mpi.job import _differences

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


# ---- ranks that do not come ------------------------------------------------------------------------------------------
MEETING = """
import os, signal, sys
sys.modules["graphreg.distributed.mpi.job"].LATEST = 2.0
if rank == 1:
    {}
problem("squared").solve(gr.PrimalDual(), engine=gr.MPI())
"""


@pytest.mark.parametrize(
    ("what", "said_of_it"),
    [
        ("sys.exit(0)", "rank 1 of 2 has ended"),
        pytest.param('raise ValueError("mine")', "rank 1 of 2 has ended", marks=pytest.mark.whole),
        pytest.param('gr.MPI(); raise ValueError("mine")', "rank 1 of 2 failed: mine", marks=pytest.mark.whole),
        pytest.param("os.kill(os.getpid(), signal.SIGSTOP)", "rank 1 of 2 did not come", marks=pytest.mark.whole),
    ],
)
def test_nobody_waits_for_a_rank_that_does_not_come(what, said_of_it, tmp_path):
    done = launched(MEETING.format(what), 2, tmp_path)
    assert done.returncode == 1
    assert said_of_it in done.stderr


# ---- failures --------------------------------------------------------------------------------------------------------
def test_a_failure_in_a_round_at_several_ranks_is_said_once(country):
    done = commanded("at_round(3, fail)", 2, country)
    assert done.returncode == 1
    assert done.stderr.count("ZeroDivisionError: no reason") == 1
    assert said(done) == ["graphreg: rank 0 of 2 (and 1 more) failed: no reason"]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        ("if rank == 1: at_round(3, fail)", 1, "rank 1 of 3 failed: no reason"),
        ("if rank == 2: gr.PrimalDual.point = lambda *_: fail()", 1, "rank 2 of 3 failed: no reason"),
        (
            "from graphreg.distributed.parts import joint; joint.common_by_sums = fail",
            1,
            "(and 2 more) failed: fail()",
        ),
        (
            "import graphreg.distributed.parts.joint as j\nif rank == 1: j.PartBounds = fail",
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
