"""Checkpoints of runs that Ctrl-C, a kill or a full disk breaks off: the file is whole, and the run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from factories import chain
from places import PACKAGE, TESTS
from sameness import bits, facts

import graphreg as gr
from graphreg.errors import CheckpointWarning
from graphreg.saving import archive


@pytest.mark.parametrize("at", [0, 3, 4])
def test_an_interruption_leaves_a_checkpoint(at, tmp_path):
    """In the middle of a check, when half of it is recorded."""
    whole, left = chain(loss=gr.LogisticLoss).solve(gr.PrimalDual(polish=False), gap=1e-9), [at]

    def interrupt(record):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt

    path = tmp_path / "run"
    problem = chain(loss=gr.LogisticLoss)
    first = problem.solve(gr.PrimalDual(polish=False), gap=1e-9, callback=interrupt, checkpoint=path)
    assert first.status == "interrupted"
    assert 0 < archive.read(path)[0]["values"][0]["tree"]["record"][1]["round"] <= first.rounds
    assert facts(problem.solve(gr.PrimalDual(polish=False), gap=1e-9, checkpoint=path)) == facts(whole)


@pytest.mark.parametrize("call", [1, 2, 25, 26])
def test_an_interruption_within_a_round(call, tmp_path, monkeypatch):
    """After the messages of the round are recorded."""
    from graphreg.distributed import InProcess

    problem, path, true, count = chain(), tmp_path / "run", InProcess.exchange, iter(range(10**6))
    whole = problem.solve(gr.PrimalDual(), gap=0, rounds=40)

    def exchange(self, values):
        values = true(self, values)
        if next(count) == call - 1:
            raise KeyboardInterrupt
        return values

    monkeypatch.setattr(InProcess, "exchange", exchange)
    assert problem.solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path).status == "interrupted"
    assert facts(problem.solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path)) == facts(whole)


CHILD = """
import os, signal, sys
from factories import chain
import graphreg as gr
from graphreg.saving import archive

path, what, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
owner, name = {"round": (gr.PrimalDual, "step"), "file": (archive.np.lib.format, "write_array"),
               "place": (os, "replace")}[what]
true, calls = getattr(owner, name), iter(range(10**9))

def killing(*arguments, **options):
    if next(calls) == count:
        if what == "file":  # with half of an array on the disk
            arguments[0].write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return true(*arguments, **options)

setattr(owner, name, killing)
chain(n=20, loss=gr.LogisticLoss).solve(gr.PrimalDual(), gap=0, rounds=300, checkpoint=gr.Checkpoint(path, rounds=3))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("what", ["round", "file", "place"])
def test_a_killed_process_goes_on(what, tmp_path):
    """Killed in a round, in the middle of writing a file, and before it is put into its place."""

    def problem():
        return chain(n=20, loss=gr.LogisticLoss)

    path = tmp_path / "run"
    rounds = np.random.default_rng(["round", "file", "place"].index(what)).integers(20, 250)
    count = int(rounds if what == "round" else 10 * rounds // 3 if what == "file" else rounds // 3)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), what, str(count)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(TESTS)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    header = archive.read(path)[0]
    left = header["values"][0]["tree"]["record"][1]["round"]
    assert 3 <= left < 300
    if what == "round":
        assert rounds - 3 <= left <= rounds  # at most an interval is lost
    again = problem().solve(gr.PrimalDual(), gap=0, rounds=300, checkpoint=path)
    assert facts(again) == facts(problem().solve(gr.PrimalDual(), gap=0, rounds=300))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]  # nothing else is left lying about


# ---- atomicity -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("part", ["write_array", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(part, stored, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    before = stored.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format if part == "write_array" else os, part, full)
        with pytest.warns(CheckpointWarning, match=r"could not be written: No space left.*make room for it.*goes on"):
            run = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=stored)
    assert bits(run.coef) == bits(chain().solve(gr.PrimalDual(), gap=0, rounds=40).coef)
    assert "No space left" in run.message
    assert "It holds round 20." in run.message
    assert stored.read_bytes() == before
    assert [p.name for p in stored.parent.iterdir()] == [stored.name]
    again = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=stored)
    assert facts(again) == facts(chain().solve(gr.PrimalDual(), gap=0, rounds=40))


def test_an_interruption_of_the_writing_leaves_a_whole_file(stored, monkeypatch):
    true, rest = os.replace, [KeyboardInterrupt()]

    def replace_once(*arguments):
        if rest:
            raise rest.pop()
        true(*arguments)

    monkeypatch.setattr(os, "replace", replace_once)
    run = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=gr.Checkpoint(stored, rounds=5))
    assert run.status == "interrupted"
    again = chain().solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=stored)
    assert facts(again) == facts(chain().solve(gr.PrimalDual(), gap=0, rounds=40))


def test_a_link_stays_a_link(stored, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(stored)
    assert chain().solve(gr.PrimalDual(), gap=0, rounds=25, checkpoint=link).rounds == 25
    assert link.is_symlink()
    assert chain().solve(gr.PrimalDual(), gap=0, rounds=25, checkpoint=stored).rounds == 25
