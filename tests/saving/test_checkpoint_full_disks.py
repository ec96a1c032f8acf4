"""A disk that is full, or fails, in the midst of a run: it is said once, the run and its bits are kept, and writing is
tried again."""

from __future__ import annotations

import errno
import os
import warnings

import numpy as np
import pytest
from factories import chain
from sameness import bits, facts

import graphreg as gr
from graphreg.errors import CheckpointError, CheckpointWarning

FAILURES = [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EROFS]
ROUNDS = 40


def run(path, **options):
    budget = {"gap": 0, "rounds": ROUNDS, "checkpoint": gr.Checkpoint(path, rounds=5), **options}
    return chain().solve(gr.PrimalDual(), **budget)


class Disk:
    """Flushing to it fails from one attempt to another."""

    def __init__(self, monkeypatch, first, last, number=errno.ENOSPC):
        self.first, self.last, self.number, self.attempts = first, last, number, 0
        self.true = os.fsync
        monkeypatch.setattr(os, "fsync", self.flush)

    def flush(self, handle):
        if not os.path.isdir(f"/proc/self/fd/{handle}"):  # a folder is flushed as well
            self.attempts += 1
            if self.first <= self.attempts <= self.last:
                raise OSError(self.number, os.strerror(self.number))
        self.true(handle)


@pytest.mark.parametrize("number", FAILURES, ids=errno.errorcode.get)
def test_a_run_goes_on_without_its_file(number, tmp_path, monkeypatch):
    whole, path = chain().solve(gr.PrimalDual(), gap=0, rounds=ROUNDS), tmp_path / "run"
    disk = Disk(monkeypatch, 3, 10**6, number)
    with pytest.warns(CheckpointWarning) as caught:
        found = run(path)
    assert len(caught) == 1
    said = f"'{path}' could not be written: {os.strerror(number)}; make room for it or allow it, or name another place"
    assert said in str(caught[0].message)
    assert "the run goes on, and it is tried again" in str(caught[0].message)
    assert bits(found.coef) == bits(whole.coef)
    assert found.message.startswith(whole.message)
    assert found.message.endswith(f"{said}. It holds round 5.")
    assert disk.attempts == 2 + (ROUNDS - 5) // 5 + 1  # each time when it was due, and at the end
    assert os.listdir(tmp_path) == ["run"]
    disk.last = 0
    assert facts(run(path)) == facts(whole)  # from round 5 on


def test_a_file_that_could_be_written_again_is_whole(tmp_path, monkeypatch):
    whole, path = chain().solve(gr.PrimalDual(), gap=0, rounds=ROUNDS), tmp_path / "run"
    Disk(monkeypatch, 3, 5)
    with pytest.warns(CheckpointWarning):
        found = run(path)
    assert found.message == f"{whole.message} The checkpoint '{path}' could not be written for a while; the last " + (
        "write succeeded."
    )
    assert facts(run(path)) == facts(whole)


def test_at_the_beginning_it_is_an_error(tmp_path, monkeypatch):
    """Nothing is lost yet."""
    Disk(monkeypatch, 1, 10**6)
    with pytest.raises(CheckpointError, match="No space left"):
        run(tmp_path / "run")
    assert not os.listdir(tmp_path)


def test_an_interruption_on_a_full_disk(tmp_path, monkeypatch):
    Disk(monkeypatch, 3, 10**6)

    def interrupt(record):
        if record.round >= 20:
            raise KeyboardInterrupt

    with pytest.warns(CheckpointWarning):
        found = run(tmp_path / "run", callback=interrupt)
    assert found.status == "interrupted"
    assert found.certificate.valid
    assert "It holds round 5." in found.message
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_that_is_gone(tmp_path):
    """Permission and place are lost in mid-run."""
    folder, whole = tmp_path / "folder", chain().solve(gr.PrimalDual(), gap=0, rounds=ROUNDS)
    folder.mkdir()

    def remove(record):
        for name in os.listdir(folder) if folder.exists() else ():
            (folder / name).unlink()
        if folder.exists():
            folder.rmdir()

    with pytest.warns(CheckpointWarning, match="No such file or directory"):
        assert bits(run(folder / "run", callback=remove).coef) == bits(whole.coef)


@pytest.mark.parametrize("last", [3, 10**6])
def test_a_path_goes_on(last, tmp_path, monkeypatch):
    lam = gr.Parameter(0.3, name="lam")
    problem, grid, path = chain(strength=lam), [0.1, 0.2, 0.3, 0.4], tmp_path / "path"
    whole = gr.path(problem, grid, method=gr.PrimalDual(), gap=1e-4)
    Disk(monkeypatch, 2, last)
    with pytest.warns(CheckpointWarning) as caught:
        found = gr.path(problem, grid, method=gr.PrimalDual(), gap=1e-4, checkpoint=gr.Checkpoint(path, rounds=1))
    np.testing.assert_array_equal(found.coef, whole.coef)
    assert "the path goes on" in str(caught[0].message)
    ending = "the last write succeeded" if last == 3 else "It holds 1 of the points."
    assert ending in str(caught[1].message)
    assert len(caught) == 2
    assert os.listdir(tmp_path) == ["path"]


def test_a_cross_validation_goes_on(tmp_path, monkeypatch):
    lam = gr.Parameter(0.3, name="lam")
    how = {"folds": 3, "method": gr.PrimalDual(), "gap": 1e-2, "refit": False}
    problem, path = chain(strength=lam), tmp_path / "folds"
    whole = gr.cross_validate(problem, [0.1, 0.2], **how)
    Disk(monkeypatch, 2, 2)
    with pytest.warns(CheckpointWarning) as caught:
        found = gr.cross_validate(problem, [0.1, 0.2], checkpoint=path, **how)
    assert [str(each.message).partition("; the ")[2] for each in caught] == [
        "cross-validation goes on, and it is tried again when it is due",
        "last write succeeded.",
    ]
    np.testing.assert_array_equal(found.scores.to_numpy(), whole.scores.to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = gr.cross_validate(problem, [0.1, 0.2], checkpoint=path, **how)
    np.testing.assert_array_equal(again.scores.to_numpy(), whole.scores.to_numpy())
