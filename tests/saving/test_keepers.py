"""A run asks for a keeper by name and knows of no file: another one can be registered."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from factories import chain
from sameness import facts

import graphreg as gr
from graphreg.base import shortcuts
from graphreg.running import AbstractKeeper, Kept
from graphreg.saving import JsonTree


class InMemory(AbstractKeeper):
    """Keeps a run in a list that outlives it."""

    def __init__(self, kept):
        self.kept = kept

    def load(self, view, init):
        return self.kept[-1].value(view) if self.kept else None

    def reading(self):
        return nullcontext()

    def going_on(self):
        return nullcontext()

    def keep(self, snapshot):
        self.kept.append(JsonTree.of(snapshot, "run"))

    def write(self):
        pass


@pytest.fixture
def kept(monkeypatch):
    """What a keeper in memory has been given."""
    kept = []
    monkeypatch.setattr(shortcuts, "_places", dict(shortcuts._places))
    opened = Kept(7, lambda run: InMemory(kept), lambda: ("Kept in memory.",))
    shortcuts.register("Checkpoint.opened", lambda *asked: nullcontext(opened))
    return kept


def test_a_run_goes_on_from_wherever_it_was_kept(kept, tmp_path):
    whole = chain().solve(gr.PrimalDual(), gap=0, rounds=60, seed=7)
    chain().solve(gr.PrimalDual(), gap=0, rounds=23, checkpoint=tmp_path / "none")
    assert len(kept) == 24
    run = chain().solve(gr.PrimalDual(), gap=0, rounds=60, checkpoint=tmp_path / "none")
    assert run.seed == 7
    assert run.message == f"{whole.message} Kept in memory."
    assert facts(run)[0] == facts(whole)[0]
    assert not list(tmp_path.iterdir())
