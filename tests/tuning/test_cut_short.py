"""Paths and cross-validations that time, Ctrl-C or a dying process cuts short: what is finished is given, the rest is
named, and nothing is chosen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.base import clock
from graphreg.base.clock import OutOfTimeError
from graphreg.errors import BudgetError, ModelError, WorkerError
from graphreg.running import Budget
from graphreg.tuning import fold_runs
from graphreg.tuning.fold_runs import FoldTask
from graphreg.tuning.warm import Warm


def problem(loss=gr.SquaredLoss):
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(6), 6)
    X = rng.standard_normal((36, 2))
    data = gr.NodeData.from_arrays(X, X @ [1.0, -1.0] + rng.standard_normal(36), node)
    return gr.Problem(loss(data) + gr.Parameter(0.1, name="lam") * gr.TotalVariation(nx.path_graph(6), gr.L2()))


def after(count, error, monkeypatch):
    """Raises an error in the solve after so many."""
    solve, solves = Warm.solve, []

    def broken(self, strength=None):
        solves.append(strength)
        if len(solves) > count:
            raise error
        return solve(self, strength)

    monkeypatch.setattr(Warm, "solve", broken)


@pytest.mark.parametrize(("error", "ended"), [(KeyboardInterrupt, "interrupted"), (OutOfTimeError, "out of time")])
def test_a_path_says_which_strengths_are_left(monkeypatch, error, ended):
    after(2, error, monkeypatch)
    found = gr.path(problem(), [0.1, 0.2, 0.3, 0.4], method=gr.PrimalDual(), progress=False)
    assert found.ended == ended
    assert sorted(found.left) == [0.2, 0.3]
    assert f"INCOMPLETE: {ended} with 2 strengths left" in str(found)


def test_seconds_bind_in_a_path():
    began = time.perf_counter()
    found = gr.path(problem(), np.geomspace(1e-3, 1, 3000), seconds=1.0, progress=False)
    assert time.perf_counter() - began < 20.0
    assert found.ended == "out of time"
    assert len(found.left) + len(found) == 3000
    assert all(solution.status == "certified" for solution in found)


def test_a_point_that_time_cuts_short_is_no_point(monkeypatch):
    warm = Warm(problem(), gr.PrimalDual(), Budget(1e-300, progress=False, seed=0))
    with clock.within(0.2), pytest.raises(OutOfTimeError):
        warm.solve(0.1)
    assert warm.warm_start.state is None


@pytest.mark.parametrize(("error", "ended"), [(KeyboardInterrupt, "interrupted"), (OutOfTimeError, "out of time")])
def test_a_cross_validation_cut_short_chooses_nothing(monkeypatch, error, ended):
    after(5, error, monkeypatch)
    found = gr.cross_validate(problem(), [0.1, 0.2], folds=4, progress=False)
    assert (found.ended, found.complete, len(found.runs)) == (ended, False, 2)
    assert f"chosen: nothing, as only 2 of 4 folds are finished ({ended})" in str(found)
    assert found.solution is None
    for choose in (lambda: found.best, lambda: found.one_se, found.assign, lambda: found.predictions):
        with pytest.raises(ModelError, match="nothing is chosen: only 2 of 4 folds"):
            choose()


def test_without_any_fold_there_is_nothing(monkeypatch):
    after(1, OutOfTimeError, monkeypatch)
    with pytest.raises(BudgetError, match="cross_validate"):
        gr.cross_validate(problem(), [0.1, 0.2], folds=4, progress=False)
    monkeypatch.undo()
    after(1, KeyboardInterrupt, monkeypatch)
    with pytest.raises(KeyboardInterrupt, match="cross_validate: nothing was finished; the same call begins anew"):
        gr.cross_validate(problem(), [0.1, 0.2], folds=4, progress=False)


# ---- errors and processes --------------------------------------------------------------------------------------------
class LostError(Exception):
    pass


def fails(self, strength=None):
    if strength == 0.2:
        raise LostError("of a term of the user's")
    return SOLVE(self, strength)


SOLVE = Warm.solve


def dies(self, strength=None):
    if strength == 0.2:
        os.kill(os.getpid(), signal.SIGKILL)
    return SOLVE(self, strength)


class _Dying(FoldTask):
    """Dies, or fails, at a strength, in whichever process it is."""

    def run(self, fold, tick):
        Warm.solve = dies if self.seed == 1 else fails
        try:
            return super().run(fold, tick)
        finally:
            Warm.solve = SOLVE


def test_what_fails_names_fold_and_strength(monkeypatch):
    monkeypatch.setattr(Warm, "solve", fails)
    with pytest.raises(LostError) as caught:
        gr.cross_validate(problem(), [0.2, 0.1], folds=2, progress=False)
    assert caught.value.__notes__ == ["in the cross-validation: fold 0 at lam = 0.2"]


def test_a_scoring_that_fails_names_fold_and_strength():
    with pytest.raises(ZeroDivisionError) as caught:
        gr.cross_validate(
            problem(), [0.2, 0.1], folds=2, scoring=lambda y, p, w: 1 / 0, greater_is_better=False, progress=False
        )
    assert "fold 0 at lam = 0.2" in caught.value.__notes__[0]


@pytest.mark.whole
def test_an_error_in_another_process_names_fold_and_strength(monkeypatch):
    monkeypatch.setattr("graphreg.tuning.cross_validation.FoldTask", _Dying)
    with pytest.raises(LostError) as caught:
        gr.cross_validate(problem(), [0.1, 0.2], folds=2, jobs=2, seed=0, progress=False)
    assert "at lam = 0.2" in caught.value.__notes__[0]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_process_that_dies_is_named_with_fold_and_strength(monkeypatch):
    from joblib.externals.loky import reusable_executor

    monkeypatch.setattr("graphreg.tuning.cross_validation.FoldTask", _Dying)
    with pytest.raises(WorkerError, match=r"died .*they were at fold \d at lam = 0.2.*fewer jobs") as died:
        gr.cross_validate(problem(), [0.1, 0.2], folds=2, jobs=2, seed=1, progress=False)
    assert died.value.found.runs == {}
    left, until = reusable_executor._executor, time.monotonic() + 20.0
    while left is not None and any(each.is_alive() for each in list(left._processes.values())):
        assert time.monotonic() < until, "a process was left behind"
        time.sleep(0.05)


# ---- processes that outlive nobody -----------------------------------------------------------------------------------
CHILD = """
import os, time
from graphreg.base import gate
gate.end_with(os.getppid())
print("there", flush=True)
time.sleep(99)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_with_its_parent(number):
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "there\n"
        parent.send_signal(number)
        began = time.monotonic()
        assert parent.stdout.read() == ""  # ends when nobody can write to it any more
    assert time.monotonic() - began < 20.0


def test_workers_are_told_whom_they_end_with(monkeypatch, tmp_path):
    told = []
    monkeypatch.setattr(fold_runs, "end_with", told.append)
    assert fold_runs._one(SimpleNamespace(run=lambda *_: "done"), None, 3, str(tmp_path), 7) == (3, "done")
    assert told == [7]
