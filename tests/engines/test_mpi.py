"""Parts in the processes of an MPI job: the bits of parts in one process, and an end without a hang whatever fails."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from mpi_jobs import HEAD, LAUNCHER, TESTS, can_meet, launched, on_sites, three_states

import graphreg as gr
from graphreg.distributed.parts.keeping import SavedParts

pytestmark = pytest.mark.skipif(
    find_spec("mpi4py") is None or LAUNCHER is None, reason="there is no MPI: pip install 'graphreg[mpi-local]'"
)
SAME = """
import os
methods = (gr.PrimalDual(polish=False), gr.ADMM(), gr.FedADMM(availability=0.6), gr.AsyncL2GD(batch=1),
           gr.ExactDiffusion(), gr.SubgradientDescent(batch=2))
for k, kind in enumerate(("total variation", "hierarchy", "features", "quantile", "consensus", "parts")):
    model = problem(kind, n=12)
    for j, method in enumerate(methods):
        if method.missing(model.form) or ("SOME" in os.environ and (j + k) % 4):
            continue
        given = {"gap": 0, "rounds": 20, "seed": 1, "on_failure": "return"}
        here = model.solve(method, engine=gr.Parts(3), **given)
        there = model.solve(method, engine=gr.MPI(), **given)
        assert np.array_equal(here.coef, there.coef), (kind, method)
        assert here.ledger == there.ledger, (kind, method)
found = problem("total variation", n=12).solve(gr.PrimalDual(polish=False), gap=1e-8, engine=gr.MPI())
assert found.status == "certified"
print(f"rank {rank} agrees")
"""
COMPILED = """
from graphreg.fast import Rounds
from graphreg.network import fast
fast.WORTH, nodes, halves = 0, Rounds.nodes, []
Rounds.nodes = lambda self, *args: halves.append(1) or nodes(self, *args)
for kind in ("total variation", "features", "logistic"):
    model, given = problem(kind, n=12), {"gap": 0, "rounds": 30, "seed": 1, "on_failure": "return"}
    there = model.solve(gr.PrimalDual(polish=False), engine=gr.MPI(), **given)
    assert len(halves) == 30, len(halves)
    here = model.solve(gr.PrimalDual(polish=False), engine=gr.Parts(3), **given)
    assert len(halves) == 120, len(halves)
    assert np.array_equal(here.coef, there.coef), kind
    assert here.ledger == there.ledger, kind
    halves.clear()
print(f"rank {rank} agrees")
"""

FOLDS = """
(_, loss), (_, variation) = problem("squared", n=12).model.terms
model = gr.Problem(loss + gr.Parameter(0.1, name="lam") * variation)
given = {"grid": {"lam": [0.05, 0.5]}, "progress": False}
there = gr.cross_validate(model, folds=3, engine=gr.MPI(), **given)
here = gr.cross_validate(model, folds=3, **given)
assert there.complete and there.best == here.best
assert np.array_equal(there.scores, here.scores)
labels = np.arange(60) % 3  # of folds: one row is in another on the second rank
labels[0] += rank
for wrong in ({"folds": 3 + rank}, {"folds": 3, "gap": 1e-6 / (1 + rank)}, {"folds": labels}):
    try:
        gr.cross_validate(model, engine=gr.MPI(), **given, **wrong)
    except gr.errors.MethodError as error:
        assert "on rank 0" in str(error) or "on rank 1" in str(error), error
    else:
        raise AssertionError(wrong)
print(f"rank {rank} agrees in folds")
"""


@pytest.fixture(scope="module", autouse=True)
def launcher():
    """Skips where this machine does not let a launcher start two processes that meet."""
    if why := can_meet():
        pytest.skip(f"no two processes meet here: {why}")


@pytest.mark.parametrize(
    "ranks", [pytest.param(1, marks=pytest.mark.whole), 2, pytest.param(4, marks=pytest.mark.whole)]
)
def test_ranks_have_the_bits_of_parts(ranks, tmp_path, whole):
    """Every fourth pair of a problem and a method; all of them with ``make test ARGS=--whole``. Two ranks share out
    folds, too: every rank gets what one process finds; ranks that ask for other things are refused."""
    done = launched(SAME + (FOLDS if ranks == 2 else ""), ranks, tmp_path, **({} if whole else {"SOME": "1"}))
    assert done.returncode == 0, done.stderr
    said = [f"rank {k} agrees" for k in range(ranks)]
    assert sorted(done.stdout.split("\n")) == sorted(["", *said, *(f"{each} in folds" for each in said if ranks == 2)])


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_ranks_have_the_bits_of_parts_in_compiled_rounds(tmp_path):
    done = launched(COMPILED, 2, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "rank 0 agrees", "rank 1 agrees"]


def test_an_error_on_a_rank_ends_all_and_is_said_once(tmp_path):
    code = """
engine = gr.MPI(sites={label: label > "b" for label in "abcdefg"})
row().solve(Breaking(balance=1.0), gap=0, rounds=10, engine=engine)
"""
    done = launched(code, 2, tmp_path)
    assert done.returncode != 0
    assert done.stderr.count("ZeroDivisionError: no reason") == 1
    assert "of 2 failed: no reason" in done.stderr


@pytest.mark.whole
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
    from graphreg.distributed.mpi import job

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    job.mpi.cache_clear()
    with pytest.raises(gr.errors.MethodError, match=r"graphreg\[mpi\]"):
        job.mpi()
    job.mpi.cache_clear()


# ---- sites -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def country(tmp_path):
    return three_states(tmp_path)


def test_sites_have_the_answer_of_one_machine(country):
    alone = gr.read_model(country / "model.toml").solve(gap=1e-10)
    before = None
    for ranks in (1, 2):
        done = on_sites(country, ranks, "--out", f"out {ranks}")
        assert done.returncode == 0, done.stderr
        saved = SavedParts.open(country / f"out {ranks}")
        found = np.array([saved[label] for label in alone.labels])
        np.testing.assert_allclose(found, alone.coef, atol=1e-3)
        assert saved.summary["dual"] <= alone.certificate.primal
        assert saved.summary["primal"] >= alone.certificate.dual
        assert before is None or np.array_equal(found, before)
        before = found


def test_what_is_wrong_at_a_site_is_said_once(country):
    (country / "state 1" / "edges.csv").unlink()
    done = on_sites(country, 2)
    assert done.returncode == 1
    assert done.stderr.count("there is no file 'edges.csv'") == 1
    assert "rank 1 of 2" in done.stderr


@pytest.mark.whole
def test_more_processes_than_sites(country):
    done = on_sites(country, 4)
    assert done.returncode == 1
    assert done.stderr.count("files of 3 sites for 4 processes") == 1


@pytest.mark.whole
def test_an_edge_that_one_site_lacks_ends_all(country):
    path = country / "state 2" / "edges.csv"
    lines = path.read_text().splitlines()
    cut = next(line for line in lines[1:] if int(line.split(",")[0][1:]) < 20)
    path.write_text("\n".join(line for line in lines if line != cut) + "\n")
    done = on_sites(country, 3)
    assert done.returncode != 0
    assert "do not have the same edges between them" in done.stderr
