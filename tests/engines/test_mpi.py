"""Parts in the processes of an MPI job: the bits of parts in one process, and an end without a hang whatever fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphreg as gr

LAUNCHER = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI: pip install 'graphreg[mpi-local]'"
)
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
HEAD = """
import numpy as np
import graphreg as gr
from actor_cases import Breaking, problem, row
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
"""
SAME = """
for kind in ("total variation", "features", "quantile", "hierarchy", "parts"):
    model = problem(kind, n=12)
    for method in (gr.PrimalDual(polish=False), gr.ADMM(), gr.FedADMM(availability=0.6), gr.AsyncL2GD(batch=1),
                   gr.ExactDiffusion(), gr.SubgradientDescent(batch=2)):
        if method.missing(model.form):
            continue
        given = {"gap": 0, "rounds": 30, "seed": 1, "on_failure": "return"}
        here = model.solve(method, engine=gr.Parts(3), **given)
        there = model.solve(method, engine=gr.MPI(), **given)
        assert np.array_equal(here.coef, there.coef), (kind, method)
        assert here.ledger == there.ledger, (kind, method)
found = problem("total variation", n=12).solve(gr.PrimalDual(polish=False), gap=1e-8, engine=gr.MPI())
assert found.status == "certified"
print(f"rank {rank} agrees")
"""


def launched(code, ranks, tmp_path, **environment):
    script = tmp_path / "script.py"
    script.write_text(HEAD + code)
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    command = [LAUNCHER, "-n", str(ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    return subprocess.run(
        [*command, sys.executable, str(script)],
        env={**os.environ, **ROOT, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.whole)])
def test_ranks_have_the_bits_of_parts(ranks, tmp_path):
    done = launched(SAME, ranks, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", *(f"rank {k} agrees" for k in range(ranks))]


def test_an_error_on_a_rank_ends_all_and_is_said_once(tmp_path):
    code = """
engine = gr.MPI(sites={label: label > "b" for label in "abcdefg"})
row().solve(Breaking(balance=1.0), gap=0, rounds=10, engine=engine)
"""
    done = launched(code, 2, tmp_path)
    assert done.returncode != 0
    assert done.stderr.count("ZeroDivisionError: no reason") == 1
    assert "of 2 failed: no reason" in done.stderr


def test_an_error_of_the_call_is_raised_on_every_rank(tmp_path):
    code = """
try:
    problem("squared").solve(gr.IFCA(k=2), engine=gr.MPI())
except gr.errors.MethodError as error:
    print("refused" if "no actors or parts" in str(error) else error)
try:
    problem("squared").solve(gr.PrimalDual(), engine=gr.MPI(sites={0: "a"}))
except gr.errors.MethodError as error:
    print("refused" if "sites" in str(error) else error)
"""
    done = launched(code, 2, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * 4


def test_the_launcher_of_another_library(tmp_path):
    """Each process finds itself alone: as many runs of the whole as there are processes would follow."""
    script = tmp_path / "script.py"
    script.write_text(HEAD + "row().solve(gr.PrimalDual(), engine=gr.MPI())")
    environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}", "PMI_SIZE": "2"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "2 processes were launched, and each finds itself alone" in done.stderr


def test_without_mpi4py(monkeypatch):
    from graphreg.engines.mpi import world

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    world.mpi.cache_clear()
    with pytest.raises(gr.errors.MethodError, match=r"graphreg\[mpi\]"):
        world.mpi()
    world.mpi.cache_clear()
