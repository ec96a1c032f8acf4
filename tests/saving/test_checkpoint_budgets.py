"""Checkpoints and budgets: rounds and seconds count from the start, and a file is written as often as was asked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from core_cases import iterate
from factories import chain
from sameness import bits, facts

import graphreg as gr
from graphreg.errors import CheckpointError
from graphreg.saving import archive, store


def test_a_finished_run_goes_on_to_a_smaller_gap(tmp_path):
    path, problem, method = tmp_path / "run", chain(loss=gr.HuberLoss), gr.PrimalDual(polish=False)
    first = problem.solve(method, gap=1e-3, checkpoint=path)
    seen = []
    same = problem.solve(method, gap=1e-3, checkpoint=path, callback=seen.append)
    assert facts(same) == facts(first)
    assert not seen
    assert same.seconds >= first.trace.records[-1].seconds
    tighter = problem.solve(method, gap=1e-8, checkpoint=path)
    assert tighter.status == "certified"
    assert tighter.certificate.holds(1e-8)
    assert tighter.rounds > first.rounds
    assert [repr(r) for r in tighter.trace.records[: len(first.trace)]] == [repr(r) for r in first.trace.records]
    looser = problem.solve(method, gap=1e-2, checkpoint=path)
    assert looser.rounds == tighter.rounds
    state = iterate(method, problem.form, [tighter.rounds + 7])[0]
    exact = problem.solve(method, gap=0, rounds=tighter.rounds + 7, checkpoint=path)
    assert bits(exact.coef) == bits(method.point(state)[0])


def test_rounds_count_from_the_start(tmp_path):
    path, problem = tmp_path / "run", chain()
    problem.solve(gr.PrimalDual(), gap=0, rounds=30, checkpoint=path)
    assert problem.solve(gr.PrimalDual(), gap=0, rounds=50, checkpoint=path).ledger.rounds == 50
    with pytest.raises(CheckpointError, match="round 50, beyond the rounds=40"):
        problem.solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path)


def test_seconds_count_from_the_start(tmp_path, monkeypatch):
    written, path, problem = written_rounds(monkeypatch), tmp_path / "run", chain(n=40, loss=gr.LogisticLoss)
    first = problem.solve(gr.PrimalDual(), gap=0, seconds=0.2, checkpoint=path)
    assert first.rounds - written[-1] in (0, 1)  # the time may end within the check of the last round
    kept = written[-1]
    same = problem.solve(gr.PrimalDual(), gap=0, seconds=0.2, checkpoint=path)
    assert first.status == same.status == "budget"
    assert same.rounds >= kept  # what was held back for the last certificate may be left
    longer = same.seconds + 0.5  # on a busy machine the first run takes longer than it may
    more = problem.solve(gr.PrimalDual(), gap=0, seconds=longer, checkpoint=path)
    assert more.rounds > same.rounds
    assert more.seconds > same.seconds
    moments = [record.seconds for record in more.trace.records]
    assert moments == sorted(moments)


def written_rounds(monkeypatch):
    found, true = [], archive.write

    def write(path, header, arrays, limits):
        found.append(header["values"][-1]["tree"]["record"][1]["round"])
        true(path, header, arrays, limits)

    monkeypatch.setattr(archive, "write", write)
    return found


def test_the_interval_in_rounds(tmp_path, monkeypatch):
    found, path = written_rounds(monkeypatch), tmp_path / "run"
    chain().solve(gr.PrimalDual(), gap=0, rounds=35, checkpoint=gr.Checkpoint(path, seconds=None, rounds=10))
    assert found == [0, 10, 20, 30, 35]
    chain().solve(gr.PrimalDual(), gap=0, rounds=47, checkpoint=gr.Checkpoint(path, seconds=None, rounds=10))
    assert found == [0, 10, 20, 30, 35, 45, 47]
    chain().solve(gr.PrimalDual(), gap=0, rounds=47, checkpoint=path)
    assert len(found) == 7  # there was nothing new


def test_the_interval_in_seconds(tmp_path, monkeypatch):
    """By a clock that goes on by a quarter of a second with each look."""
    looks = iter(range(10**6))
    monkeypatch.setattr(store, "time", SimpleNamespace(perf_counter=lambda: next(looks) / 4))
    found = written_rounds(monkeypatch)
    chain().solve(gr.PrimalDual(), gap=0, rounds=20, checkpoint=gr.Checkpoint(tmp_path / "run", seconds=2.0))
    assert found == [0, 8, 16, 20]
