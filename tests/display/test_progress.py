"""Progress in notebooks: a line that is written over and leaves nothing, a widget where there are widgets."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

import graphreg as gr
from graphreg.base import clock
from graphreg.base.clock import LastLine, in_notebook, progress_bar, stages


class Handle:
    """The value of ``display``: every state of one output of the page."""

    def __init__(self, states):
        self.states = states

    def update(self, content, raw):
        assert raw
        self.states.append(content["text/plain"])


@pytest.fixture
def notebook(monkeypatch):
    """A kernel without widgets; what is displayed, one list of states for each output."""
    outputs = []
    tqdm.set_lock(threading.RLock())  # a run of another test that was interrupted while it wrote may hold it for ever

    def display(content, raw, display_id):
        assert raw
        assert display_id is True
        outputs.append([content["text/plain"]])
        return Handle(outputs[-1])

    ipython, shown = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})
    shown.display = display
    for name in [name for name in sys.modules if name in ("tqdm.auto", "tqdm.autonotebook", "tqdm.notebook")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", ModuleType("ipykernel.zmqshell"))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    yield outputs
    for name in ("tqdm.auto", "tqdm.autonotebook", "tqdm.notebook"):  # they were made for this kernel
        sys.modules.pop(name, None)


def test_there_is_no_notebook_here():
    assert not in_notebook()


def test_a_console_of_ipython_is_no_notebook(monkeypatch):
    ipython = ModuleType("IPython")
    for shell in (None, SimpleNamespace(config={"TerminalIPythonApp": {}})):
        ipython.get_ipython = lambda shell=shell: shell
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert not in_notebook()


def test_a_bar_is_one_line_that_is_gone_at_the_end(notebook, capsys):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with progress_bar(True, total=3, desc="path", unit=" strengths", mininterval=0.0) as tell:
            for _ in range(3):
                tell(1, "lam 0.1")
    assert not warned, "there are no widgets, and no word of it"
    assert len(notebook) == 1
    assert any("path" in state and "1/3" in state and "lam 0.1" in state for state in notebook[0])
    assert notebook[0][-1] == ""
    assert capsys.readouterr().err == ""


def test_nobody_asked_and_it_is_quick(notebook):
    with progress_bar(None, total=3, desc="path") as tell:
        tell(3)
    assert notebook == []


def test_nobody_wants_it(notebook):
    with progress_bar(False, total=3) as tell:
        tell(3)
    assert notebook == []


def test_a_line_tells_what_is_new_alone(notebook):
    line = LastLine()
    assert [line.write(text) for text in ("", "\r", "\ra 1", "\ra 1", "\ra 2", "\r    \r")] == [0, 1, 4, 4, 4, 6]
    line.flush()
    assert notebook == [["a 1", "a 2", ""]]


# ---- calls that take some seconds, and of which no step is known beforehand ------------------------------------------
def test_a_stage_that_takes_long_is_said_without_a_step(notebook):
    with progress_bar(None, desc="audit", delay=0.05) as tell:
        tell(1, "the main run")
        assert notebook == []
        time.sleep(0.3)
        assert any("audit" in state and "the main run" in state for state in notebook[0])
    assert notebook[0][-1] == "", "what was shown while it lasted is gone"


def test_the_clock_goes_on_beside_a_stage_that_takes_long(notebook, monkeypatch):
    monkeypatch.setattr(clock, "BEAT", 0.05)
    with progress_bar(None, desc="audit", delay=0.05) as tell:
        tell(1, "the main run")
        started = time.monotonic()
        while len(notebook) == 0 or len({state.partition("[")[2][:5] for state in notebook[0]}) < 3:
            assert time.monotonic() - started < 60.0, "the same seconds are shown for a minute"
            time.sleep(0.05)


def test_a_stage_has_its_name_and_the_time_and_no_count_of_what_is_not_counted(notebook):
    with stages("audit", True) as at:
        at("locality")
        started = time.monotonic()
        while not notebook and time.monotonic() - started < 60.0:
            time.sleep(0.05)
    assert notebook[0][0] == "audit [00:01, locality]"


def test_a_line_that_cannot_be_written_leaves_no_lock_held(monkeypatch):
    """Else the next bar waits for ever."""
    refused = threading.Event()

    class Closed(io.StringIO):
        def write(self, text):
            if threading.current_thread() is threading.main_thread():
                return super().write(text)
            refused.set()
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(sys, "stderr", Closed())
    monkeypatch.setattr(clock, "BEAT", 0.01)
    tqdm.set_lock(threading.RLock())
    with progress_bar(True, desc="audit", delay=0.01) as tell:
        tell(1, "the main run")
        assert refused.wait(60.0)
        time.sleep(0.1)
        taken = threading.Thread(target=lambda: tqdm.get_lock().__enter__(), daemon=True)
        taken.start()
        taken.join(60.0)
        assert not taken.is_alive()
        tqdm.set_lock(threading.RLock())  # the thread keeps the other


@pytest.mark.parametrize("asked", [True, False, None])
def test_an_audit_is_asked_whether_to_say_what_it_is_at(asked, solution, monkeypatch):
    told = []

    @contextmanager
    def bar(shown, **how):
        told.append((how["desc"], shown))
        yield lambda steps, text="": None

    monkeypatch.setattr(clock, "progress_bar", bar)
    gr.audit(solution[0], [np.zeros((4, 1))] * 3, progress=asked)
    assert ("audit", asked) in told


@pytest.fixture(scope="module")
def solution():
    data = gr.NodeData.from_dict({k: ([[1.0], [2.0]], [1.0, 2.0 + k]) for k in range(4)})
    lam = gr.Parameter(0.1, name="lam")
    return gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(nx.path_graph(4), gr.L2())), lam


TABLE = pd.DataFrame({"node": np.repeat(range(4), 6), "x": np.arange(24) % 5, "y": np.arange(24) ** 0.5})


def unproved():
    """A problem whose only edge is not proved to be split by its certificate."""
    data = gr.NodeData.from_dict({k: ([[1.0, 0.0]], [5.0 * k]) for k in range(2)})
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.L2()))


CALLS = {
    "audit": (lambda problem, folder: gr.audit(problem, gr.PrimalDual(), seconds=5.0), {"the optimum", "locality"}),
    "certify": (lambda problem, folder: problem.certify(np.zeros((4, 1))), {"gradients"}),
    "proof": (lambda problem, folder: problem.solve().prove(folder / "proof.json"), {"exact points", "claims"}),
    "report": (lambda problem, folder: problem.solve().report(folder / "page.html"), {"what is seen"}),
    "report of a path": (lambda problem, folder: gr.path(problem, [0.1, 0.2]).report(folder / "p.html"), {"lam = 0.1"}),
    "fit": (
        lambda problem, folder: gr.fit(TABLE, nx.path_graph(4), target="y", node="node", folds=2, progress=True),
        {"reading", "the strength at which all nodes agree"},
    ),
    "cross-validation": (
        lambda problem, folder: gr.cross_validate(problem, [0.1, 0.2], folds=2, progress=True),
        {"the strengths and the folds", "the solve on all data"},
    ),
    "path": (lambda problem, folder: gr.path(problem, 2, progress=True), {"the strengths"}),
    "strength_max": (
        lambda problem, folder: gr.strength_max(problem),
        {"the optimum at which all nodes agree", "flows and directions that bound it"},
    ),
    "proofs of clusters": (lambda problem, folder: unproved().solve().clusters(prove=True), {"pair 1 of 1"}),
    "proofs of rows": (lambda problem, folder: unproved().solve().held(prove=True), {"row 1 of 1"}),
    "check_loss": (
        lambda problem, folder: gr.testing.check_loss(
            gr.SquaredLoss(gr.NodeData.from_frame(TABLE, "node", "y", ["x"]))
        ),
        {"gradient fenchel young", "value bound of losses"},
    ),
    "check_penalty": (lambda problem, folder: gr.testing.check_penalty(gr.L2(), k=2), {"prox fenchel young"}),
    "check_method": (
        lambda problem, folder: gr.testing.check_method(gr.PrimalDual(), rounds=3, accuracy=None),
        {"state is a record", "same seed same run"},
    ),
    "certify a problem of CVXPY": (
        lambda problem, folder: gr.certify(cp.Problem(cp.Minimize(cp.norm1(cp.Variable(2) - 1)))),
        {"an answer", "its bounds"},
    ),
}


def test_a_terminal_that_tells_no_size_gets_bars_too():
    """As that of a job or a recorded session is; tqdm takes its width for too small for a bar."""
    here, there = pytest.importorskip("pty").openpty()
    with open(there, "w") as stderr, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        with progress_bar(None, total=2, desc="path", unit=" strengths", mininterval=0.0) as tell:
            tell(1)
    assert b"| 0/2 [" in os.read(here, 10_000)
    os.close(here)


@pytest.mark.parametrize("asked", [True, False])
def test_one_line_at_a_time_which_the_outer_call_has_or_not(asked, notebook):
    with stages("fit", asked) as at:
        at("the strength at which all nodes agree")
        with stages("strength_max") as within:
            within("flows")
            time.sleep(1.2)
    assert len(notebook) == asked
    assert not any("flows" in state for states in notebook for state in states)


@pytest.mark.parametrize("name", CALLS)
def test_long_calls_say_what_they_are_at(name, solution, tmp_path, monkeypatch):
    said = {}

    @contextmanager
    def bar(shown, **how):
        yield lambda steps, text="": said.setdefault(how["desc"], []).append(text)

    call, stages = CALLS[name]
    monkeypatch.setattr(clock, "progress_bar", bar)
    call(solution[0], tmp_path)
    assert stages <= set(said[name.split()[0]])


def test_the_long_stages_of_an_audit_say_how_far_they_are(solution, monkeypatch):
    said = []

    @contextmanager
    def bar(shown, **how):
        yield lambda steps, text="": said.append(text)

    def slow(problem):
        return (np.full((4, 1), 1.0 / k) for k in range(1, 10_000))

    monkeypatch.setattr(clock, "progress_bar", bar)
    gr.audit(solution[0], slow, rounds=300)
    assert [each for each in said if "round" in each] == [f"the main run, round {k}" for k in (100, 200, 300)]
    gr.audit(solution[0], gr.PrimalDual())
    assert {f"locality, {k} of 32 changes of targets tried" for k in range(32)} <= set(said)
