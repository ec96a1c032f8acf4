"""Progress in notebooks: a line that is written over and leaves nothing, a widget where there are widgets."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType, SimpleNamespace

import pytest

from graphreg.base.clock import LastLine, in_notebook, progress_bar


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
