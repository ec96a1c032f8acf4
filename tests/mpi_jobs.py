"""MPI jobs of the tests: how they are launched, and what scripts of them begin with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

LAUNCHER = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
TESTS = Path(__file__).parent
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
COMMAND = [str(LAUNCHER), "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
HEAD = """
import numpy as np
import graphreg as gr
from graphreg.distributed.parts.keeping import SavedParts
from actor_cases import Breaking, problem, row
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
"""


def environment(**more):
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **ROOT, "PYTHONPATH": paths, **more}


def begun(ranks, *arguments, folder=None, **more):
    """A job whose end nobody has waited for."""
    command = [*COMMAND, "-n", str(ranks), sys.executable, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=pipe, stderr=pipe, text=True)


def ended(job, seconds=60):
    """Its exit status and what it said; a job that hangs is ended, and fails the test."""
    try:
        out, err = job.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        job.terminate()
        out, err = job.communicate(timeout=20)
        raise AssertionError(f"the job hangs: {out}\n{err}") from None
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def launched(code, ranks, folder, **more):
    """A script on so many ranks."""
    script = folder / "script.py"
    script.write_text(HEAD + code)
    return ended(begun(ranks, str(script), **more))


def on_sites(folder, ranks, *arguments, **more):
    """The command on so many ranks."""
    return ended(begun(ranks, "-m", "graphreg.mpi", "model.toml", *arguments, folder=folder, **more))


def said(done):
    """The output of graphreg, line by line, without the rule of dashes that mpiexec may draw before a line is ended."""
    return [line.rstrip("-") for line in done.stderr.splitlines() if line.startswith("graphreg: ")]


@cache
def can_meet():
    """The obstacle that keeps two processes from meeting on this machine, as some containers do; empty where nothing
    does."""
    meet = "from mpi4py import MPI; assert MPI.COMM_WORLD.size == 2; MPI.COMM_WORLD.Barrier()"
    try:
        done = ended(begun(2, "-c", meet))
    except (OSError, AssertionError) as error:
        return str(error)
    return done.stderr[-300:] if done.returncode else ""


# ---- sites -----------------------------------------------------------------------------------------------------------
MODEL = """
[data]
file = "{site}/samples.csv"
node = "node"
target = "y"
features = ["x"]
intercept = true
[graph]
edges = "{site}/edges.csv"
[loss]
family = "SquaredLoss"
[total_variation]
penalty = "L2"
strength = 0.3
[solve]
gap = 1e-8
method = "PrimalDual"
"""


def three_states(folder):
    """Three sites of ten nodes each, with edges within and between them."""
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(pair)) for k in range(30) for pair in ((k, (k + 1) % 30), (k, (7 * k + 3) % 30))}
    for s in range(3):
        state = folder / f"state {s}"
        state.mkdir()
        own = range(10 * s, 10 * s + 10)
        rows = [f"n{k},{x:.6f},{2 * x + k / 10:.6f}" for k in own for x in rng.standard_normal(5)]
        (state / "samples.csv").write_text("node,x,y\n" + "\n".join(rows) + "\n")
        edges = [f"n{a},n{b}" for a, b in sorted(pairs) if a != b and {a, b} & set(own)]
        (state / "edges.csv").write_text("a,b\n" + "\n".join(edges) + "\n")
    (folder / "model.toml").write_text(MODEL)
    return folder
