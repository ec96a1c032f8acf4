"""The gate to native work: what it refuses, what it breaks off, and which processes it kills."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
import time

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.base import clock, gate
from graphreg.compiling import solvers
from graphreg.methods import exact

SLOW = 60.0


def problem(n=12, loss=gr.SquaredLoss):
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(n), 6)
    X = rng.standard_normal((6 * n, 2))
    y = X @ [1.0, -1.0] + rng.standard_normal(6 * n)
    strength = gr.Parameter(0.1, name="lam")
    loss = loss(gr.NodeData.from_arrays(X, y, node))
    return gr.Problem(loss + strength * gr.TotalVariation(nx.cycle_graph(n), gr.L2()))


@pytest.fixture
def children(monkeypatch):
    """The processes that are started."""
    started = []

    class Noted(subprocess.Popen):
        def __init__(self, *args, **how):
            super().__init__(*args, **how)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return started


# ---- processes -------------------------------------------------------------------------------------------------------
def test_a_process_gives_what_the_function_returns_or_raises(children):
    assert gate.aside(len, bytes(10**6)) == 10**6  # more than a pipe holds
    assert gate.aside(print, "what is printed is no answer") is None
    with pytest.raises(ZeroDivisionError):
        gate.aside(divmod, 1, 0)
    assert [child.returncode for child in children] == [0, 0, 0]


def test_a_process_is_killed_at_the_deadline(children):
    with clock.within(0.5), pytest.raises(clock.OutOfTimeError):
        gate.aside(time.sleep, SLOW)
    assert children[0].poll() < 0  # by a signal


def test_no_process_is_begun_for_a_moment(children):
    with clock.within(0.1), pytest.raises(clock.OutOfTimeError):
        gate.aside(time.sleep, SLOW)
    assert not children


def test_a_process_is_killed_at_ctrl_c(children, monkeypatch):
    def pressed(*_args, **_given):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", pressed)
    with pytest.raises(KeyboardInterrupt):
        gate.aside(time.sleep, SLOW)
    assert children[0].poll() < 0  # by a signal


def test_a_process_is_killed_where_nobody_waits_any_more(children):
    over = threading.Event()

    def work():
        try:
            gate.aside(time.sleep, SLOW)
        finally:
            over.set()

    with clock.within(0.5), pytest.raises(clock.OutOfTimeError):
        gate.carry_out(work)
    assert over.wait(SLOW / 2)
    assert children[0].poll() is not None  # dead before its time; what stopped the thread may have lost its status


def test_a_process_ends_with_a_thread_that_was_stopped_though_it_heard_nothing(children, monkeypatch):
    monkeypatch.setattr(gate, "stopped", [threading.current_thread()])
    with pytest.raises(clock.OutOfTimeError):
        gate.aside(time.sleep, SLOW)
    assert children[0].poll() is not None


def test_an_abort_is_an_error(children):
    with pytest.raises(MemoryError, match=r"the process that worked on it died \(exit status -\d+\)"):
        gate.aside(os.abort)
    with pytest.raises(MemoryError, match="exit status 3"):
        gate.aside(os._exit, 3)
    assert len(children) == 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system takes no limit of memory")
def test_a_process_is_given_no_more_memory_than_may_be_used():
    with gate.allowing(2e8):
        assert len(gate.aside(bytes, 10**7)) == 10**7
        with pytest.raises(MemoryError):
            gate.aside(bytes, 10**9)


@pytest.mark.parametrize("solver", ["clarabel", "scs"])
def test_a_long_solve_is_done_by_a_process_with_the_same_answer(monkeypatch, children, solver):
    here = problem().solve(gr.Exact(solver))
    assert not children
    monkeypatch.setattr(exact, "LONG", 0.0)
    there = problem().solve(gr.Exact(solver))
    assert children
    assert here.status == there.status == "certified"
    np.testing.assert_array_equal(here.coef, there.coef)
    assert here.certificate.dual == there.certificate.dual


def test_a_solver_that_dies_is_a_failure_with_the_bounds_so_far(monkeypatch):
    calls = []

    def dies(*_args):
        calls.append(1)
        raise MemoryError("the process that worked on it died (exit status -6)")

    monkeypatch.setattr(exact, "LONG", 0.0)
    monkeypatch.setattr(solvers, "aside", dies)
    start = problem().solve(gr.PrimalDual(), gap=1e-2)
    with pytest.raises(gr.errors.FailedError, match=r"died \(exit status -6\)") as caught:
        problem().solve(gr.Exact(), start=start, gap=1e-9)
    assert len(calls) == 1  # no other attempt would have more memory
    assert caught.value.solution.certificate.valid


# ---- threads ---------------------------------------------------------------------------------------------------------
def test_deadlines_hold_in_threads_of_the_users():
    ended = []

    def user():
        with clock.within(0.1):
            try:
                gate.carry_out(lambda: time.sleep(SLOW))
            except clock.OutOfTimeError:
                ended.append("in time")

    thread = threading.Thread(target=user)
    thread.start()
    thread.join(SLOW / 2)
    assert ended == ["in time"]


def test_what_takes_many_multiplications_is_carried_out():
    where = [gate.heavy(count, threading.current_thread) for count in (0.0, 2.0 * gate.QUICK)]
    assert [thread is threading.main_thread() for thread in where] == [True, False]


# ---- memory ----------------------------------------------------------------------------------------------------------
def test_the_lesser_bound_of_memory_wins():
    whole = gate.usable_memory()
    with gate.allowing(1e6), gate.allowing(1e9), gate.allowing(None):
        assert gate.usable_memory() == 1e6
        assert not gate.too_much(1e5, "this")
        said = "this would take about 0.008 GB, and 0.001 GB may be used; take a smaller problem, more memory"
        with pytest.raises(MemoryError, match=f"^{said}, or "):
            gate.refuse(1e6, "this", "about ")
    assert gate.usable_memory() == whole


@pytest.mark.parametrize("method", gr.methods.METHODS, ids=lambda method: method.name)
def test_no_method_takes_more_memory_than_is_allowed(monkeypatch, method):
    model = problem()
    if method.lacks(model.form):
        return
    monkeypatch.setattr(type(method), "run", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(gr.errors.FailedError, match=f"{method.name} would take about .* GB, and 1e-06 GB may be used"):
        model.solve(method, memory=1e3)


def test_conic_solvers_are_weighed_with_what_cvxpy_makes(monkeypatch):
    monkeypatch.setattr("graphreg.compiling.conic.primal", lambda *_: pytest.fail("it was compiled"))
    size = 1e9 * problem().methods().loc["Exact", "gigabytes"]
    with pytest.raises(gr.errors.FailedError, match="what CVXPY and clarabel make of it would take about"):
        problem().solve(gr.Exact(), memory=size / 2)
    with pytest.raises(gr.errors.ModelError, match="memory must be a positive"):
        problem().solve(memory=-1)


def test_what_methods_take_is_told():
    table = problem().methods()
    assert np.isfinite(table.loc[["Exact", "InteriorPoint"], "seconds"]).all()
    assert table.loc[["PrimalDual", "LinearSystem"], "seconds"].isna().all()
    assert table["gigabytes"].isna().tolist() == (~table["applies"]).tolist()
    large = problem(n=120).methods()
    assert large.loc["InteriorPoint", "gigabytes"] > 5.0 * table.loc["InteriorPoint", "gigabytes"]


def tuned(**given):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(40), "y": rng.standard_normal(40), "node": np.repeat(range(10), 4)})
    return gr.fit(frame, nx.path_graph(10), target="y", node="node", folds=2, strengths=[0.1], **given)


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("Auto", lambda **given: gr.path(problem(), [0.1, 0.2], progress=False, **given)),
        ("cross_validate", lambda **given: gr.cross_validate(problem(), [0.1, 0.2], folds=2, **given)),
        ("certify", lambda **given: problem().certify(np.zeros(problem().form.shape), **given)),
        ("cross_validate", tuned),
    ],
)
def test_whatever_solves_keeps_to_the_memory_that_is_allowed(what, call):
    with pytest.raises((MemoryError, gr.errors.FailedError), match=f"{what} would take about .* GB, and 1e-07 GB may"):
        call(memory=100.0)
    with pytest.raises(gr.errors.ModelError, match="memory must be a positive"):
        call(memory=0)
    call(memory=1e9)


def test_methods_that_are_compared_and_folds_in_processes_have_as_much_memory(monkeypatch):
    def elsewhere(task, folds, todo, tick, jobs):
        for number in todo:  # in a process of its own nothing is known but the task
            yield number, contextvars.Context().run(task.run, folds[number], tick)

    monkeypatch.setattr("graphreg.tuning.cross_validation.fold_runs", elsewhere)
    compared = gr.compare(problem(), [gr.PrimalDual(), gr.Exact()], memory=5e4, progress=False)
    assert compared.table()["status"].tolist() == ["certified", "failed"]
    found = gr.cross_validate(problem(), [0.1], folds=2, method=gr.Exact(), memory=5e4, refit=False)
    assert {status for run in found.runs.values() for status in run.statuses} == {"failed"}
