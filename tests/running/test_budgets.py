"""Budgets of time and Ctrl-C: what they reach, and how soon."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib import import_module

import networkx as nx
import numpy as np
import pytest
import scipy.optimize

import graphreg as gr
from graphreg.base import clock, gate
from graphreg.certificate import at_infinity, attained
from graphreg.compiling import conic
from graphreg.errors import MethodError
from graphreg.methods import exact
from graphreg.network.streams import Streams
from graphreg.running import statuses
from graphreg.running.checking import Checks

SEPARABLE = gr.NodeData.from_arrays([[1.0, 2.0], [2.0, 1.0], [-1.0, 0.5], [-3.0, 1.0]], [1, 1, 0, 0], list("aabb"))
SLOW = 30.0  # seconds that stand for "for ever"
SOON = 6.0


def nap(seconds: float = SLOW) -> None:
    """As compiled code does: the lock is let go, and nothing is heard."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.01)


@pytest.fixture
def slow_programme(monkeypatch):
    def linprog(*args, **options):
        nap()
        raise AssertionError("nobody waits for this")

    monkeypatch.setattr(scipy.optimize, "linprog", linprog)


@pytest.fixture
def ctrl_c():
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    yield timer
    timer.cancel()


def large(loss=gr.LogisticLoss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 120))
    y = (X @ rng.standard_normal(120) > 0).astype(int)
    data = gr.NodeData.from_arrays(X, y, list(np.arange(2000) % 4))
    return gr.Problem(loss(data) + 0.1 * gr.TotalVariation(nx.path_graph(4), gr.L2()))


def took(work):
    began = time.perf_counter()
    out = work()
    return out, time.perf_counter() - began


# ---- the clock -------------------------------------------------------------------------------------------------------
def test_the_lesser_budget_wins():
    assert clock.left() is None
    with clock.within(10.0), clock.within(100.0):
        assert clock.left() <= 10.0
    with clock.within(10.0), clock.within(None):
        assert 9.0 < clock.left() <= 10.0
    assert clock.left() is None


def test_work_is_broken_off_at_the_deadline():
    with clock.within(0.1):
        with pytest.raises(clock.OutOfTimeError):
            took(lambda: gate.carry_out(nap))
        time.sleep(0.1)
        with pytest.raises(clock.OutOfTimeError):
            clock.check_deadline()


def test_work_is_broken_off_by_ctrl_c(ctrl_c):
    began = time.perf_counter()
    ctrl_c.start()
    with pytest.raises(KeyboardInterrupt):
        gate.carry_out(nap)
    assert time.perf_counter() - began < SOON


def test_what_work_returns_or_raises_is_passed_on():
    assert gate.carry_out(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        gate.carry_out(lambda: 1 // 0)


def test_an_import_is_no_part_of_the_time_allowed(monkeypatch):
    """Whoever solves first would else be said to be slow, or not to get there."""
    problem, real = gr.datasets.random_problem(3).problem, exact.import_module

    def slow(name):
        time.sleep(1.2)
        return real(name)

    real("cvxpy")
    monkeypatch.setattr(exact, "import_module", slow)
    run = gr.compare(problem, [gr.Exact()], seconds=1.0).solutions["Exact(clarabel)"]
    assert run.status == "certified"
    assert run.seconds < 1.0
    with clock.within(1.0), clock.within(0.9):
        clock.uncounted(lambda: slow("cvxpy"))
        assert clock.left() > 0.7
    assert run_of_path().left == ()


def run_of_path():
    """Two points, each by `gr.Exact()`, which is imported once a point, within a second in all."""
    vary = gr.Parameter(1.0, name="strength")
    model = gr.SquaredLoss(gr.NodeData.from_arrays(np.eye(2), [1.0, 2.0], [0, 1])) + vary * gr.TotalVariation(
        nx.path_graph(2), gr.L2()
    )
    return gr.path(gr.Problem(model), [0.1, 1.0], method=gr.Exact(), seconds=1.0)


def test_an_interpreter_that_ends_waits_for_what_it_broke_off():
    """HiGHS, back from a programme, must find an interpreter; without that the process aborts."""
    script = (
        "import numpy as np\n"
        "from scipy.optimize import linprog\n"
        "from graphreg.base import clock, gate\n"
        "rng = np.random.default_rng(0)\n"
        "A = rng.normal(size=(700, 700))\n"
        "work = lambda: linprog(rng.normal(size=700), A_ub=A, b_ub=np.ones(700), bounds=[(-1, 1)] * 700,\n"
        "                       options={'time_limit': 1.5})\n"
        "try:\n"
        "    with clock.within(0.3): gate.carry_out(work)\n"
        "except clock.OutOfTimeError: print('out of time')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "out of time", "")


# ---- linear programmes -----------------------------------------------------------------------------------------------
def test_nothing_is_known_of_a_programme_that_takes_too_long(slow_programme):
    form = gr.Problem(gr.LogisticLoss(SEPARABLE)).form
    with clock.within(0.2):
        answer, seconds = took(lambda: (attained(form), at_infinity(form)))
    assert answer in ((None, None), (False, None))  # small ones are decided without HiGHS
    assert seconds < SOON


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=["exact", "primal-dual"])
def test_seconds_hold_where_programmes_take_for_ever(slow_programme, method):
    problem = gr.Problem(gr.HingeLoss(SEPARABLE) + 0.1 * gr.TotalVariation(nx.path_graph(["a", "b"]), gr.L2()))
    solution, seconds = took(lambda: problem.solve(method, seconds=1.0, gap=1e-9, on_failure="return"))
    assert seconds < SOON
    assert solution.status in ("budget", "certified", "no_certificate")


@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.HingeLoss])
def test_seconds_hold_with_highs_itself(loss):
    problem = large(loss)
    solution, seconds = took(lambda: problem.solve(seconds=0.5, on_failure="return"))
    assert seconds < SOON
    assert solution.status in ("budget", "unattained", "certified")  # a fast machine finds the answer in time


def test_ctrl_c_is_heard_in_a_programme(slow_programme, ctrl_c):
    problem = gr.Problem(gr.HingeLoss(SEPARABLE) + 0.1 * gr.TotalVariation(nx.path_graph(["a", "b"]), gr.L2()))
    ctrl_c.start()
    solution, seconds = took(lambda: problem.solve(gap=1e-12, on_failure="return"))
    assert seconds < SOON
    assert solution.status in ("interrupted", "certified")


# ---- CVXPY and solvers -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["compile", "solve"])
def test_seconds_hold_while_cvxpy_is_busy(monkeypatch, where):
    problem = gr.Problem(gr.LogisticLoss(SEPARABLE) + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    slow_cvxpy(monkeypatch, where)
    solution, seconds = took(lambda: problem.solve(gr.Exact(), seconds=0.5))
    assert seconds < SOON
    assert solution.status == "budget"
    assert np.isfinite(solution.certificate.primal)
    monkeypatch.undo()
    assert problem.solve(gr.Exact()).status == "certified"  # nothing is left of what was broken off


@pytest.mark.parametrize("where", ["compile", "solve"])
def test_ctrl_c_is_heard_while_cvxpy_is_busy(monkeypatch, ctrl_c, where):
    problem = gr.Problem(gr.LogisticLoss(SEPARABLE) + 0.1 * gr.NodePenalty(gr.SquaredL2()))
    slow_cvxpy(monkeypatch, where)
    ctrl_c.start()
    solution, seconds = took(lambda: problem.solve(gr.Exact()))
    assert seconds < SOON
    assert solution.status == "interrupted"


def slow_cvxpy(monkeypatch, where):
    import cvxpy as cp

    if where == "compile":
        monkeypatch.setattr(conic, "units", lambda form: nap())
    else:
        monkeypatch.setattr(cp.Problem, "solve", lambda self, **options: nap())


# ---- loops of methods ------------------------------------------------------------------------------------------------
def counts():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((20, 2)), rng.poisson(2.0, 20), list(np.arange(20) % 4))
    return gr.Problem(gr.PoissonLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(4), gr.L2()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_steps_of_fed_admm_end_where_gradients_are_no_numbers(monkeypatch, bad):
    from graphreg.oracles.gradients import NodeGradients

    monkeypatch.setattr(NodeGradients, "full", lambda self, w: np.full(w.shape, bad))
    with np.errstate(invalid="ignore", over="ignore"):
        solution, seconds = took(lambda: counts().solve(gr.FedADMM(), rounds=20, on_failure="return"))
    assert seconds < SOON
    assert solution.status == "failed"


@pytest.mark.parametrize("method", [gr.FedADMM(), gr.PrimalDual(inexact=1000)], ids=lambda method: method.name)
def test_a_round_that_takes_for_ever_ends_with_the_budget(monkeypatch, method):
    from graphreg.oracles.gradients import NodeGradients

    slow = NodeGradients.full

    def full(self, w):
        time.sleep(0.05)
        return slow(self, w)

    monkeypatch.setattr(NodeGradients, "full", full)
    solution, seconds = took(lambda: counts().solve(method, seconds=0.3, on_failure="return"))
    assert seconds < SOON
    assert solution.status in ("budget", "certified", "no_certificate")


def test_a_round_cut_short_does_not_count():
    from dataclasses import dataclass

    from graphreg.methods import PrimalDual

    problem = counts()
    plain = problem.solve(PrimalDual(), rounds=3, gap=0.0)

    @dataclass(frozen=True)
    class Late:
        inner: PrimalDual

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def step(self, state):
            self.rounds.append(None)
            if len(self.rounds) > 3:
                raise clock.OutOfTimeError
            return self.inner.step(state)

        def steps(self, state, count):
            return self.step(state), 1

    from graphreg.certificate import Certifier
    from graphreg.running.driver import Budget, drive, view_of

    late = Late(PrimalDual())
    vars(late)["rounds"] = []
    budget = Budget(0.0)
    outcome = drive(late, view_of(problem.form, budget), Certifier(problem.form), budget)
    assert (outcome.ended, outcome.rounds) == ("budget", 3)
    np.testing.assert_array_equal(outcome.certificate.w, plain.certificate.w)


@pytest.mark.parametrize("kind", ["Timer", "Thread"])
def test_no_alarm_rings_while_a_thread_is_started(kind, monkeypatch):
    """Python would raise it in the new thread, and the one that starts it wait for ever."""
    import threading

    from graphreg.base.clock import OutOfTimeError, alarm, within
    from graphreg.base.gate import carry_out

    class Slow(getattr(threading, kind)):
        def start(self):
            super().start()
            time.sleep(0.05)
            whole.append(self)

    def wait():
        with within(0.02), alarm():
            carry_out(lambda: time.sleep(0.05))
            while True:
                time.sleep(0.0)

    whole = []
    monkeypatch.setattr(threading, kind, Slow)
    with pytest.raises(OutOfTimeError):
        wait()
    assert len(whole) == 1


def test_an_alarm_that_rings_at_the_last_moment_leaves_nothing_behind(monkeypatch):
    """The work is done, so nobody is told; nor does Python go on looking for the error, with which a profiler hangs."""
    import cProfile
    import threading

    from graphreg.base.clock import alarm, within

    class Timer:
        def __init__(self, seconds, ring):
            self.cancel = ring

        def start(self):
            pass

    monkeypatch.setattr(threading, "Timer", Timer)
    for _ in range(20):
        with within(60.0), alarm():
            pass
    profiler = cProfile.Profile()
    profiler.enable()
    assert sum(map(len, [[1]] * 1000)) == 1000
    profiler.disable()


def test_numbers_for_many_nodes_are_no_longer_drawn_once_time_is_up():
    streams = Streams(0, "samples", range(20_000))
    with clock.within(0.02), pytest.raises(clock.OutOfTimeError):
        streams.uniform(0, 4)
    np.testing.assert_array_equal(streams.uniform(3, 4)[7], Streams(0, "samples", [7]).uniform(3, 4)[0])


def test_what_is_broken_off_near_a_small_gap_has_a_bound(monkeypatch):
    """The proof of a gap of 1e-12 took longer than a last word may, and there was none at all."""
    certify = Checks.certify_point

    def slow(self, *args):
        if self.budget.gap < 1e-6:
            raise KeyboardInterrupt
        return certify(self, *args)

    monkeypatch.setattr(Checks, "certify_point", slow)
    solution = large().solve(gr.PrimalDual(), gap=1e-12, on_failure="return")
    assert solution.status == "interrupted"
    assert solution.certificate.valid
    assert "certify" not in solution.message
    said = statuses.interrupted(3, replace(solution.certificate, scope="none"))
    assert "a point without certificate; problem.certify(solution.coef) takes the time for bounds" in said


def test_parameters_of_another_shape_are_refused_after_a_round():
    class Lopped(gr.PrimalDual):
        def point(self, state):
            return (super().point(state)[0][:, :3], *super().point(state)[1:])

    with pytest.raises(MethodError, match=r"after a round parameters have the shape \(4, 3\), not \(4, 120\)"):
        large().solve(Lopped())


def test_where_nothing_is_constrained_no_constraints_are_blamed():
    liars = gr.Malicious([0], lambda values, round: values * np.nan)
    solution = large(gr.SquaredLoss).solve(gr.FedADMM(), rounds=5, gap=0.0, engine=liars)
    assert "the objective is not finite at its iterates" in solution.message
    assert "constraints" not in str(solution)


def test_an_alarm_rings_again_where_python_takes_no_error(monkeypatch):
    """It rang while a test's own hook collected garbage, and the deadline was gone."""
    from graphreg.base.clock import OutOfTimeError, alarm, within

    others = []
    monkeypatch.setattr(sys, "unraisablehook", others.append)

    class Slow:
        def __del__(self):
            work_until(time.monotonic() + 0.3)

    class Bad:
        def __del__(self):
            raise ValueError

    def work_until(end):
        while time.monotonic() < end:
            pass

    began = time.monotonic()

    def lose_it_once():
        Slow()
        work_until(began + 10.0)

    with within(0.1), alarm(), pytest.raises(OutOfTimeError):
        lose_it_once()
    assert time.monotonic() < began + 5.0
    assert others == []
    Bad()
    assert [said.exc_type for said in others] == [ValueError]


def test_no_alarm_rings_in_an_import(tmp_path, monkeypatch):
    """A module that is half imported stays so: what asks for it later, without a budget, has no use of it."""
    slow = "import time\nfor _ in range(40):\n    time.sleep(0.01)\nwhole = True\n"
    (tmp_path / "slowly_imported.py").write_text(slow)
    monkeypatch.syspath_prepend(tmp_path)

    def work():
        with clock.within(0.05), clock.alarm():
            import_module("slowly_imported")
            time.sleep(5.0)

    with pytest.raises(clock.OutOfTimeError):
        work()
    assert sys.modules.pop("slowly_imported").whole


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_where_an_alarm_looks_for_imports(collects, monkeypatch):
    """Python 3.11 (gh-106883) else waits for itself, for ever, and with its own lock: whole runs of tests stood still.
    What the caller has decided of the collector is kept."""
    seen, frames = [], sys._current_frames
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or frames())
    (gc.enable if collects else gc.disable)()
    try:
        with pytest.raises(clock.OutOfTimeError), clock.within(0.05), clock.alarm():
            time.sleep(0.2)
        assert seen
        assert not any(seen)
        assert gc.isenabled() == collects
    finally:
        monkeypatch.undo()
        gc.enable()


def test_an_alarm_rings_in_a_module_that_works_when_it_is_imported(tmp_path, monkeypatch):
    """It is in an import all the time, and the alarm waited for its end, and whoever asked for another for that."""
    text = (
        "import time\nfrom graphreg.base import clock\nrang = 0\nfor _ in range(2):\n    try:\n"
        "        with clock.within(0.05), clock.alarm():\n            for _ in range(200):\n"
        "                time.sleep(0.01)\n    except clock.OutOfTimeError:\n        rang += 1\n"
    )
    (tmp_path / "works_when_imported.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert import_module("works_when_imported").rang == 2
