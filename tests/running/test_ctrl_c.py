"""Ctrl-C and deadlines at any moment: what there is comes back, and nothing takes long. Bounds are generous: machines
may be busy."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.base import clock
from graphreg.certificate import clusters
from graphreg.errors import BudgetError
from graphreg.methods import AbstractIteration
from graphreg.running import solution as solution_module
from graphreg.running import solving
from graphreg.theory import pooled, routes
from graphreg.tuning import noise

SOON = 8.0  # seconds, on a busy machine; what is broken off would take much longer
SLOW = 60.0
METHODS = [gr.InteriorPoint(), gr.ADMM(), gr.PrimalDual(), gr.FedADMM(), gr.LocalOnly(), gr.Pooled()]


def problem(strength=0.1, n=12, loss=gr.SquaredLoss):
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(n), 6)
    X = rng.standard_normal((6 * n, 2))
    y = X @ [1.0, -1.0] + (node > n // 2) + rng.standard_normal(6 * n)
    return gr.Problem(
        loss(gr.NodeData.from_arrays(X, y, node)) + strength * gr.TotalVariation(nx.cycle_graph(n), gr.L2())
    )


def nap(*_args, **_options):
    """Work in Python that never looks at the clock."""
    until = time.monotonic() + SLOW
    while time.monotonic() < until:
        time.sleep(0.01)
    raise AssertionError("nobody waits for this")


@contextmanager
def soon():
    began = time.perf_counter()
    yield
    assert time.perf_counter() - began < SOON


def pressed(*_args, **_options):
    """The same, in the midst of which Ctrl-C is pressed: by itself, so that no busy machine is too late."""
    signal.raise_signal(signal.SIGINT)
    nap()


# ---- the clock -------------------------------------------------------------------------------------------------------
def test_the_alarm_rings_once_and_not_after_its_context():
    with clock.within(0.1), pytest.raises(clock.OutOfTimeError), clock.alarm():
        nap()
    with clock.within(0.1), clock.alarm():
        pass
    time.sleep(0.3)  # nothing rings any more


def test_what_needs_more_time_than_there_is_says_so():
    @clock.in_time
    def longest_path(length, *, seconds=None):
        nap()

    with soon(), pytest.raises(BudgetError, match="longest_path: the time was used up before there was anything"):
        longest_path(3, seconds=0.1)
    with pytest.raises(gr.errors.ModelError, match="seconds must be a positive number"):
        longest_path(3, seconds=-1)
    assert issubclass(BudgetError, TimeoutError)


def test_the_last_word_has_time_of_its_own():
    with clock.within(1e-9):
        with clock.afresh(5.0):
            assert clock.left() > 1.0
        assert clock.left() < 0.0


# ---- solve -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize(("work", "status"), [(pressed, "interrupted"), (nap, "budget")])
def test_the_set_up_of_a_method_is_broken_off(monkeypatch, method, work, status):
    kind = type(method if isinstance(method, AbstractIteration) else method.iteration)
    monkeypatch.setattr(kind, "init", work)
    with soon():
        found = problem().solve(method, seconds=0.3 if work is nap else None, progress=False)
    assert found.status == status
    assert not found.certificate.holds(1e-6)


@pytest.mark.parametrize(("work", "status"), [(pressed, "interrupted"), (nap, "budget")])
def test_a_last_certificate_that_takes_for_ever_is_left_out(monkeypatch, work, status):
    monkeypatch.setattr(gr.certificate.Certifier, "certify", work)
    with soon():
        found = problem().solve(gr.PrimalDual(), gap=1e-9, seconds=0.5 if work is nap else None, progress=False)
    assert found.status == status
    assert not found.certificate.valid


@pytest.mark.parametrize(("work", "status"), [(pressed, "interrupted"), (nap, "budget")])
def test_a_factorisation_is_broken_off(monkeypatch, work, status):
    monkeypatch.setattr("graphreg.oracles.newton.QUICK", 0.0)  # one that takes long
    monkeypatch.setattr("graphreg.oracles.newton.is_low", lambda *_: False)
    monkeypatch.setattr("scipy.sparse.linalg.splu", work)
    with soon():
        found = problem().solve(gr.InteriorPoint(), seconds=0.3 if work is nap else None, progress=False)
    assert found.status == status


@pytest.mark.parametrize(("work", "status"), [(pressed, "interrupted"), (nap, "budget")])
def test_the_certificate_of_a_sweep_is_broken_off(monkeypatch, work, status):
    monkeypatch.setattr(gr.certificate.Certifier, "from_flows", work)
    data = gr.NodeData.from_arrays(np.ones((9, 1)), np.arange(9.0), np.arange(9))
    chain = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(9), gr.L1()))
    with soon():
        found = chain.solve(gr.DynamicProgramming(), seconds=0.3 if work is nap else None, progress=False)
    assert found.status == status


def test_audits_hear_the_clock_while_they_read_a_problem(monkeypatch):
    monkeypatch.setattr("graphreg.auditing.course.of_problem", nap)
    with soon():
        found = gr.audit(problem(), gr.PrimalDual(), seconds=1.0)
    assert found.rounds == 0
    assert any(finding.evidence == "the rest" for finding in found.findings)


def separable():
    """Classes that a plane tells apart, so that no answer is one: what runs away is looked for after the run."""
    data = gr.NodeData.from_arrays(np.tile([[-1.0], [1.0]], (6, 1)), np.tile([0, 1], 6), np.repeat(np.arange(6), 2))
    return gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.cycle_graph(6), gr.L2()))


def test_nothing_is_looked_for_at_infinity_after_ctrl_c(monkeypatch):
    with pytest.raises(gr.errors.UnattainedError):
        separable().solve(gr.InteriorPoint(), gap=1e-12, progress=False)
    monkeypatch.setattr(gr.InteriorPoint, "step", pressed)
    monkeypatch.setattr("graphreg.running.solving.at_infinity", nap)
    monkeypatch.setattr("graphreg.certificate.certify.attained", nap)
    for method in (gr.InteriorPoint(), gr.Auto()):
        with soon():
            assert separable().solve(method, gap=1e-12, progress=False).status == "interrupted"


@pytest.mark.parametrize("heard", [False, True])
def test_ctrl_c_in_the_solve_at_infinity_is_no_verdict(monkeypatch, heard):
    whole = solving.Task.solved

    def run(self):
        if not self.depth:
            return whole(self)
        return replace(whole(self), status="interrupted") if heard else pressed()

    monkeypatch.setattr(solving.Task, "solved", run)
    with soon():
        assert separable().solve(gr.InteriorPoint(), gap=1e-12, progress=False).status == "interrupted"


@pytest.mark.parametrize("held", ["None", "splu(csc_array(eye_array(9)))"], ids=["nothing", "scipy's factors"])
def test_a_process_ends_under_compiled_work_that_was_broken_off(held):
    """With its own exit status, and with all that it has printed; also where scipy's memory of a thread outlives it."""
    code = f"""
import ctypes, signal, sys, time
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu
from graphreg.base import clock, gate
sleep = ctypes.CDLL(None).sleep  # without Python's lock, and deaf
def work():
    kept = {held}
    time.sleep(0.0)
    for _ in range(3000):
        sleep(60)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
try:
    gate.carry_out(work)
except KeyboardInterrupt:
    print("heard")
sys.exit(3)
"""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "heard\n", "")
    assert time.perf_counter() - began < 20.0


# ---- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("work", "ended"), [(pressed, "interrupted"), (nap, "out of time")])
def test_bounds_that_are_cut_short_hold(monkeypatch, work, ended):
    whole = gr.strength_max(problem())
    monkeypatch.setattr(routes, "_settle", work)
    with soon():
        found = gr.strength_max(problem(), seconds=0.5 if work is nap else None)
    assert found.ended == ended
    assert f"CUT SHORT: {ended}" in str(found)
    assert found.lower <= whole.value * (1 + 1e-9)
    assert found.upper >= whole.lower * (1 - 1e-9)
    assert found.certificate().holds(1e-7)


def test_before_there_are_bounds_there_is_nothing(monkeypatch):
    monkeypatch.setattr(pooled, "newton", nap)
    with soon(), pytest.raises(BudgetError, match="strength_max"):
        gr.strength_max(problem(), seconds=0.3)
    monkeypatch.setattr(pooled, "newton", pressed)
    with soon(), pytest.raises(KeyboardInterrupt):
        gr.strength_max(problem())


def test_ctrl_c_while_the_strengths_of_a_path_are_looked_for_ends_the_path(monkeypatch):
    monkeypatch.setattr(routes, "_settle", pressed)
    with soon(), pytest.raises(KeyboardInterrupt):
        gr.path(problem(gr.Parameter(0.1)), 5, progress=False)


@pytest.mark.parametrize("error", [KeyboardInterrupt, clock.OutOfTimeError])
def test_the_draws_that_are_done_are_kept(monkeypatch, error):
    largest, calls = noise.Network.largest, []

    def broken(self, flows):
        calls.append(1)
        if len(calls) > 30:
            raise error
        return largest(self, flows)

    monkeypatch.setattr(noise.Network, "largest", broken)
    found = gr.tuning.noise_strength(problem(), draws=100, seed=0, progress=False)
    assert len(found.draws) == 30
    assert "after 30 of 100 draws" in str(found)
    calls[:] = [1] * 15
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else BudgetError):
        gr.tuning.noise_strength(problem(), draws=100, seed=0, progress=False)


def test_proofs_of_edges_that_were_found_are_kept(monkeypatch):
    solution = problem(0.3).solve(gap=1e-4)
    whole = solution.clusters(prove=True)

    def broken(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("graphreg.methods.automatic.auto.nearer", broken)
    vars(solution).pop("_proved_clusters")
    part = solution.clusters(prove=True)
    assert part.ended == "interrupted"
    assert "interrupted" in str(part)
    proved = part.edges["certain"].to_numpy()
    assert (part.edges["state"][proved] == whole.edges["state"][proved]).all()
    monkeypatch.undo()
    assert not solution.clusters(prove=True).ended


@pytest.mark.parametrize(
    "late", ["graphreg.certificate.edges.clusters._prove", "graphreg.running.splitting.tied_bound"]
)
def test_proofs_of_edges_end_when_the_time_is_up(monkeypatch, late):
    solution = problem(0.3).solve(gap=1e-4)
    monkeypatch.setattr("graphreg.methods.automatic.auto.nearer", lambda solution, gap: solution.certificate)
    monkeypatch.setattr(late, nap)
    with soon():
        part = solution.clusters(prove=True, seconds=0.5)
    assert part.ended == "out of time"
    assert "out of time, so that not all proofs were looked for" in str(part)
    with clock.within(0.0):
        assert not solution.clusters().ended  # of which no proof is asked


def test_proofs_of_edges_that_were_found_before_the_time_was_up_are_kept(monkeypatch):
    solution = problem(0.3).solve(gap=1e-4)
    known = clusters(solution.certificate, prove=True)
    assert 0 < sum(known.edges["certain"]) < len(known.edges)

    def late(solution, gap):
        time.sleep(clock.left() + 0.01)
        return solution.certificate

    monkeypatch.setattr("graphreg.methods.automatic.auto.nearer", late)
    part = solution.clusters(prove=True, seconds=3.0)
    assert part.ended == "out of time"
    assert part.edges["certain"].equals(known.edges["certain"])


@pytest.mark.parametrize("why", ["out of time", "interrupted"])
def test_proofs_of_rows_that_were_found_are_kept(monkeypatch, why):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(None, np.cumsum(rng.normal(size=12)), range(12))
    trend = gr.Problem(gr.MeanLoss(data) + 0.3 * gr.L1()(gr.w.along(range(12), 2)))
    solution = trend.solve(gr.PrimalDual(polish=False), gap=0.1)
    open_, whole = solution.held(), solution.held(prove=True)
    assert open_.counts["not held"] < whole.counts["not held"]
    assert whole.counts["undecided"] > 1
    bound, asked = solution_module.tied_bound, []

    def late(*args):
        asked.append(args)
        if len(asked) > 3:
            if why == "interrupted":
                raise KeyboardInterrupt
            time.sleep(clock.left() + 0.01)
        return bound(*args)

    monkeypatch.setattr(solution_module, "tied_bound", late)
    part = solution.held(prove=True, seconds=5.0)
    assert len(asked) == 4
    assert part.counts == whole.counts
    assert f"{why}, so that not all proofs were looked for" in str(part)
    assert "not all proofs" not in str(whole)
    with clock.within(0.0):
        assert "not all proofs" not in str(solution.held())  # of which no proof is asked


# ---- theory and inference --------------------------------------------------------------------------------------------
def test_seconds_bind_in_theory_and_inference(monkeypatch):
    monkeypatch.setattr(gr.oracles.NodeGradients, "full", nap)
    monkeypatch.setattr(import_module("graphreg.theory.connected"), "largest_multiple", nap)
    one, loss = problem(), problem().model.terms[0][1]
    calls = [
        lambda: gr.theory.recovery(one, dict.fromkeys(range(12), 0), seconds=0.2),
        lambda: gr.theory.error_bound(one, np.ones((12, 2)), seconds=0.2),
        lambda: gr.theory.well_connected(nx.cycle_graph(4), 1.0, seconds=0.2),
        lambda: gr.inference.edge_tests(loss, nx.cycle_graph(12), seconds=0.2),
        lambda: gr.inference.select_edges(loss, nx.cycle_graph(12), seconds=0.2),
        lambda: gr.inference.local_regions(one, seconds=0.2),
    ]
    for call in calls:
        with soon(), pytest.raises(BudgetError, match="before there was anything to give; allow more seconds"):
            call()
