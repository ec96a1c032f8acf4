"""Processes that host actors: what they are sent and what they hold, and how they end when something is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
from actor_cases import (
    by_actors,
    children,
    deviation,
    hosts_of,
    nothing_is_left,
    on_arrays,
    problem,
    row,
    starters_of,
    whole,
)

import graphreg as gr
from graphreg.base.clock import OutOfTimeError, within
from graphreg.datasets import random_problem
from graphreg.distributed.actors import hosting
from graphreg.distributed.actors.coordinator import CoordinatorState
from graphreg.distributed.actors.mailbox import Instruction
from graphreg.distributed.actors.threads import Threads
from graphreg.errors import ActorError, MethodError, MethodWarning

ENDED = 5.0  # seconds, beyond the timeout, after which nothing is left of a run


def run(engine, callback, **options):
    """An endless run, until something happens to it."""
    return row().solve(gr.PrimalDual(balance=1.0), gap=0, callback=callback, engine=engine, **options)


class Once:
    """A callback that acts in a late round, and knows when."""

    def __init__(self, act):
        self.act, self.at = act, 0.0

    def __call__(self, record):
        if record.round >= 10 and not self.at:
            self.at = time.monotonic()
            self.act()

    def ago(self):
        return time.monotonic() - self.at


def stop(*which):
    """Stop hosts, by their places."""
    hosts = hosts_of(os.getpid())
    for k in which or range(len(hosts)):
        os.kill(hosts[k], signal.SIGSTOP)


# ---- who is silent is named ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("processes", "which", "named"),
    [
        pytest.param(1, [], "nodes 'a', 'b', 'c', 'd', 'e', 'f', 'g'", marks=pytest.mark.whole),
        (7, [2], "node 'c'"),
    ],
)
def test_the_nodes_of_a_host_that_is_stopped_are_named(processes, which, named):
    once = Once(lambda: stop(*which))
    with pytest.raises(ActorError, match=f"nothing is heard of the {named} within timeout=1 seconds"):
        run(gr.Actors(processes=processes, timeout=1.0), once)
    assert once.ago() < 1.0 + ENDED
    nothing_is_left()


@dataclass(frozen=True)
class Hanging(gr.PrimalDual):
    def step(self, state):
        while state.round == 3:
            time.sleep(0.01)
        return super().step(state)


def test_an_actor_that_hangs_is_named_and_its_thread_ended():
    alone = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(np.eye(2), np.arange(2.0), ["a", "b"])))
    with pytest.raises(ActorError, match="nothing is heard of the nodes 'a', 'b' within"):
        alone.solve(Hanging(balance=1.0), gap=0, rounds=9, engine=gr.Actors(timeout=0.2))
    nothing_is_left()


def test_actors_wait_while_the_coordinator_stands_still(monkeypatch):
    """It may stop between two of its orders, for longer than the timeout."""

    def order(self, number, what, arguments):
        for node, slot in self.slots.items():
            slot.put(Instruction(number, what, arguments[node]))
            if (number, node) == (4, 3):
                time.sleep(0.6)

    monkeypatch.setattr(Threads, "order", order)
    found = row().solve(gr.PrimalDual(balance=1.0), gap=0, rounds=9, engine=gr.Actors(timeout=0.2))
    assert (found.status, found.rounds) == ("budget", 9)


def test_one_interrupt_ends_a_run_whose_hosts_are_stopped():
    def act():
        stop()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    once = Once(act)
    found = run(gr.Actors(processes=2, timeout=500.0), once)
    assert once.ago() < ENDED
    assert found.status == "interrupted"
    assert found.certificate.valid
    nothing_is_left()


def test_the_time_of_a_run_binds_whether_or_not_hosts_answer():
    form = row().form.frozen()
    view, method = whole(form), gr.PrimalDual(balance=1.0)
    with gr.Actors(processes=2).hosting(method, form, view.engine.ledger.arcs, 1) as coordinator:
        state = coordinator.step(coordinator.init(view, None))
        known = coordinator.point(state)[0]
        stop()
        began = time.monotonic()
        with within(0.2):
            with pytest.raises(OutOfTimeError):
                coordinator.step(state)
            later = CoordinatorState(2)
            np.testing.assert_array_equal(coordinator.point(later)[0], known)  # the last that was heard
            assert coordinator.gathered(later) == coordinator.gathered(state)
    assert time.monotonic() - began < ENDED
    nothing_is_left()


def test_the_time_of_a_run_begins_before_its_processes():
    began = time.monotonic()
    found = row().solve(gr.PrimalDual(), gap=1e-9, seconds=0.1, engine=gr.Actors(processes=2))
    assert found.status in ("budget", "certified")  # what is known before the first round may suffice
    assert found.rounds == 0
    assert time.monotonic() - began < ENDED
    nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.whole)])
def test_a_host_that_has_ended_is_named_and_one_that_is_interrupted_goes_on(number):
    def act():
        for host in hosts_of(os.getpid()):
            os.kill(host, signal.SIGINT)
        os.kill(hosts_of(os.getpid())[-1], number)

    with pytest.raises(ActorError, match=rf"the process of the nodes 'e', 'f', 'g' has ended \(exit code -{number}\)"):
        run(gr.Actors(processes=2), Once(act))
    nothing_is_left()


# ---- the coordinator -------------------------------------------------------------------------------------------------
ENDLESS = """
import graphreg as gr, networkx as nx, numpy as np, time
data = gr.NodeData.from_arrays(np.eye(4) + 0.1, np.exp(np.arange(4.0)), np.arange(4))  # no gap of 0
model = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(4), gr.L2()))
last = time.monotonic()
def tell(record):
    global last
    if record.round > 10 and time.monotonic() > last + 0.2:
        last = time.monotonic()
        print(record.round, flush=True)
found = model.solve(gr.PrimalDual(balance=1.0), gap=0, callback=tell, engine=gr.Actors(processes=2, timeout=1.5))
print(found.status, found.certificate.valid)
"""


@contextmanager
def script(text, folder):
    """A script that is no file, in a process of its own; it has said something."""
    there = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, env=there) as child:
        try:
            child.stdout.readline()
            yield child
        finally:
            child.kill()


def wait_until_gone(processes):
    until = time.monotonic() + ENDED
    while time.monotonic() < until and any(alive(pid) for pid in processes):
        time.sleep(0.05)
    assert not [pid for pid in processes if alive(pid)]


def alive(pid):
    """True where a process is there and is no corpse that its new parent has yet to bury."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and state.strip()[0] != "Z"


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.whole)])
def test_nothing_outlives_the_coordinator(number, tmp_path):
    with script(ENDLESS, tmp_path) as child:
        starters, hosts = starters_of(child.pid), hosts_of(child.pid)
        assert (len(starters), len(hosts)) == (1, 2)
        os.kill(hosts[0], signal.SIGSTOP)
        child.send_signal(number)
        child.wait()
    wait_until_gone([*starters, *hosts])
    assert not list(tmp_path.iterdir())


def test_a_coordinator_that_was_stopped_goes_on_and_can_be_interrupted(tmp_path):
    with script(ENDLESS, tmp_path) as child:
        family = [*starters_of(child.pid), *hosts_of(child.pid)]
        child.send_signal(signal.SIGSTOP)
        time.sleep(2.0)  # more than the timeout
        child.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=ENDED)
    assert said.splitlines()[-1] == "interrupted True"
    wait_until_gone(family)
    assert not list(tmp_path.iterdir())


# ---- what a host holds -----------------------------------------------------------------------------------------------
AUDITED = """
import json, os, sys
import graphreg as gr, networkx as nx, numpy as np
from actor_cases import hosts_of, starters_of, sentinels_in

class Own(gr.L2):
    def value(self, z):
        return FACTOR * super().value(z)

def load():
    X = np.random.default_rng(0).standard_normal((4 * N, 2))
    return X, np.random.default_rng(1).standard_normal(4 * N), np.repeat(np.arange(N), 4)

def main(X, y, node):
    own, processes = "own" in sys.argv, int(sys.argv[1])
    model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node))
    model += 0.1 * gr.TotalVariation(nx.cycle_graph(N), Own() if own else gr.L2())
    sentinels = [part.tobytes() for part in [*np.split(X, N), *np.split(y, N)]]
    held = []
    def look(record):
        if record.round >= 5 and not held:
            held.extend(sentinels_in(pid, sentinels) for pid in [*starters_of(os.getpid()), *hosts_of(os.getpid())])
    engine = gr.Actors(processes=processes)
    gr.Problem(model).solve(gr.PrimalDual(balance=1.0), gap=0, rounds=10, callback=look, engine=engine)
    print(json.dumps(held))

N, FACTOR = 4, 1.0
if "module" in sys.argv:
    X, y, node = load()
    main(X, y, node)
else:
    main(*load())
"""
PLACES = [("module", "own", "2")]
MORE = [(place, terms, count) for place in ("module", "main") for terms in ("own", "plain") for count in ("2", "4")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read by /proc")
@pytest.mark.parametrize(
    ("place", "terms", "processes"),
    [*PLACES, *(pytest.param(*each, marks=pytest.mark.whole) for each in MORE if each not in PLACES)],
)
def test_a_host_has_the_data_of_its_own_nodes_in_its_memory_and_no_others(place, terms, processes, tmp_path):
    """Wherever a script loads its data, and whether or not a class of it is needed: found by reading all memory."""
    file = tmp_path / "script.py"
    file.write_text(AUDITED)
    command = [sys.executable, str(file), processes, terms, place]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path()})
    assert done.returncode == 0, done.stderr
    starter, *hosts = json.loads(done.stdout.splitlines()[-1])
    nodes = [list(map(int, each)) for each in np.array_split(np.arange(4), int(processes))]
    assert starter == []
    assert hosts == [[*each, *(i + 4 for i in each)] for each in nodes]
    assert ("other processes cannot import __main__.Own" in done.stderr) == (terms == "own")


def path():
    return os.pathsep.join([str(each) for each in sys.path if each])


# ---- what is sent as code --------------------------------------------------------------------------------------------
def test_what_cannot_be_imported_is_sent_as_code_and_named():
    slowly, table = 0.5, np.full(3, 0.1)
    method = gr.SubgradientDescent(step_size=lambda t: slowly * table[0])
    form = problem("total variation", n=6).form.frozen()
    said = r"cannot import test_hosts.*<lambda>: the code itself.*to every process, the values of slowly, table;"
    with pytest.warns(MethodWarning, match=said):
        actors = by_actors(method, form, 5, processes=2)
    assert deviation(on_arrays(method, form, 5), actors) <= 1e-12


def test_what_cannot_be_sent_at_all_is_refused():
    lock = threading.Lock()
    method = gr.SubgradientDescent(step_size=lambda t: 0.1 * (not lock.locked()))
    with pytest.raises(MethodError, match=r"cannot be sent to another process \(.*processes=False"):
        row().solve(method, gap=0, rounds=3, engine=gr.Actors(processes=2))
    nothing_is_left()


def test_what_another_process_cannot_import_is_said(monkeypatch):
    elsewhere = ModuleType("elsewhere")
    elsewhere.Own = type("Own", (gr.PrimalDual,), {"__module__": "elsewhere"})
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    with pytest.raises(
        ActorError, match=r"could not read .* sent \(ModuleNotFoundError: No module named 'elsewhere'\)"
    ):
        row().solve(elsewhere.Own(balance=1.0), gap=0, rounds=3, engine=gr.Actors(processes=1))
    nothing_is_left()


def test_processes_without_a_fork_go_the_way_of_the_arrays(monkeypatch):
    monkeypatch.delattr(hosting.os, "fork")
    form = random_problem(162).problem.form.frozen()
    assert deviation(on_arrays(gr.ADMM(), form, 5), by_actors(gr.ADMM(), form, 5, processes=2)) <= 1e-12
    assert not [command for command in children(os.getpid()).values() if "spawn_main" in command]
    nothing_is_left()


def test_too_many_processes_are_refused(monkeypatch):
    def none_left():
        raise OSError("too many open files")

    monkeypatch.setattr(hosting, "Pipe", none_left)
    with pytest.raises(
        ActorError, match=r"7 processes with .* could not be started \(too many open files\); take fewer"
    ):
        row().solve(gr.PrimalDual(), rounds=3, gap=0, engine=gr.Actors(processes=True))
    nothing_is_left()


def test_the_start_of_processes_is_said_at_once(capsys):
    """They take seconds to start, and no round is there to be shown before they have."""
    for engine, said in ((gr.Actors(processes=2), True), (gr.Actors(), False)):
        row().solve(gr.PrimalDual(balance=1.0), gap=0, rounds=1, engine=engine, progress=True)
        assert ("starting 2 processes" in capsys.readouterr().err) == said
    row().solve(gr.PrimalDual(balance=1.0), gap=0, rounds=1, engine=gr.Actors(processes=2), progress=False)
    assert not capsys.readouterr().err
