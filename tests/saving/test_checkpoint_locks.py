"""Writers of checkpoints, and their places: one run at a time, never through a link, with the mode that the file
had, and with nothing left beside it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest
from factories import chain
from places import PACKAGE
from sameness import bits, facts

import graphreg as gr
from graphreg.base import files as place
from graphreg.errors import CheckpointError
from graphreg.saving import archive
from graphreg.saving.archive import Lock

HOLDER = """
import sys, time
from pathlib import Path
from graphreg.saving.archive import Lock

lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def run(path, rounds=30, **options):
    return chain().solve(gr.PrimalDual(), gap=0, rounds=rounds, checkpoint=gr.Checkpoint(path, rounds=5), **options)


@pytest.fixture
def rival(tmp_path):
    """Another process that has the lock of ``tmp_path / "run"``."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as child:
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def left(folder):
    return sorted(os.listdir(folder))


# ---- the lock --------------------------------------------------------------------------------------------------------
def test_a_living_owner_is_named_and_a_dead_one_is_not_in_the_way(rival, tmp_path):
    path = tmp_path / "run"
    said = rf"{path}' is in use by the process {rival.pid} on .*wait until that has ended, or name another file"
    with pytest.raises(CheckpointError, match=said):
        run(path)
    assert left(tmp_path) == [".run.lock"]
    (tmp_path / f".run.{'a' * 16}.writing").write_text("half")  # what it had begun to write
    (tmp_path / ".run.mine.writing").write_text("of somebody else")
    os.kill(rival.pid, signal.SIGKILL)
    rival.wait()
    assert left(tmp_path) == [".run." + "a" * 16 + ".writing", ".run.lock", ".run.mine.writing"]
    assert facts(run(path)) == facts(chain().solve(gr.PrimalDual(), gap=0, rounds=30))
    assert left(tmp_path) == [".run.mine.writing", "run"]


def test_two_runs_of_one_process(tmp_path):
    path, said = tmp_path / "run", []

    def again(record):
        with pytest.raises(CheckpointError, match="in use by another run of this process") as caught:
            run(path)
        said.append(caught.value)

    assert bits(run(path, callback=again).coef) == bits(run(tmp_path / "other").coef)
    assert said
    assert left(tmp_path) == ["other", "run"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, LookupError])
def test_nothing_is_left_however_a_run_ends(error, tmp_path):
    def fail(record):
        raise error

    path = tmp_path / "run"
    if error is KeyboardInterrupt:
        assert run(path, callback=fail).status == "interrupted"
    else:
        with pytest.raises(error):
            run(path, callback=fail)
    assert left(tmp_path) == ["run"]
    with pytest.raises(CheckpointError):
        chain(strength=0.7).solve(gr.PrimalDual(), gap=0, rounds=40, checkpoint=path)
    with pytest.raises(CheckpointError):
        run(path, rounds=1, start=chain().solve().coef)
    assert left(tmp_path) == ["run"]


def test_a_forked_process_keeps_no_lock(tmp_path):
    held = Lock(tmp_path / "run")
    (begun, begins), (told, tells) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:  # it waits until it is told, and has nothing of the lock
        os.write(begins, b".")
        os.read(told, 1)
        held.release()
        os._exit(0)
    os.read(begun, 1)
    os.close(held.handle)  # as though the process had died without a word
    archive._held.discard(held.handle)
    again = Lock(tmp_path / "run")
    os.write(tells, b".")
    assert os.waitpid(child, 0)[1] == 0
    assert left(tmp_path) == [".run.lock"]
    again.release()
    assert not left(tmp_path)
    for end in (begun, begins, told, tells):
        os.close(end)


@pytest.mark.parametrize("what", ["link", "hard link", "pipe", "folder", "text"])
def test_what_has_the_name_of_the_lock_is_left_alone(what, tmp_path):
    victim, name = tmp_path / "diary", tmp_path / ".run.lock"
    victim.write_text("dear diary")
    if what == "link":
        name.symlink_to(victim)
    elif what == "hard link":
        name.hardlink_to(victim)
    elif what == "pipe":
        os.mkfifo(name)
    elif what == "folder":
        name.mkdir()
    else:
        name.write_text("dear diary")
    with pytest.raises(CheckpointError, match=r"could not be locked.*remove '.run.lock' if it is no lock"):
        run(tmp_path / "run")
    assert victim.read_text() == "dear diary"
    assert left(tmp_path) == [".run.lock", "diary"]


def test_a_lock_that_is_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    """Between opening it and locking it its last owner lets go: what was locked is no longer there."""
    true, times = archive.fcntl.flock, []

    def flock(handle, how):
        times.append(handle)
        if len(times) == 1:
            (tmp_path / ".run.lock").unlink()
        true(handle, how)

    monkeypatch.setattr(archive.fcntl, "flock", flock)
    held = Lock(tmp_path / "run")
    assert len(times) == 2
    assert left(tmp_path) == [".run.lock"]
    held.release()
    assert not left(tmp_path)


def test_without_flock_runs_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "fcntl", None)
    assert run(tmp_path / "run").rounds == 30
    assert left(tmp_path) == ["run"]


# ---- the file that is written ----------------------------------------------------------------------------------------
def test_a_planted_link_is_not_written_through(tmp_path, monkeypatch):
    victim = tmp_path / "diary"
    victim.write_text("dear diary")
    (tmp_path / ".run.writing").symlink_to(victim)  # a name that could be guessed
    assert run(tmp_path / "run").rounds == 30
    monkeypatch.setattr(place.secrets, "token_hex", lambda n: "0" * 2 * n)  # and if it were guessed
    (tmp_path / f".again.{'0' * 16}.writing").symlink_to(victim)
    monkeypatch.setattr(archive, "sweep", lambda path: None)
    with pytest.raises(CheckpointError, match="could not be written: File exists"):
        run(tmp_path / "again")
    assert victim.read_text() == "dear diary"


def test_a_name_that_becomes_a_link_is_replaced(tmp_path):
    """Somebody puts a link into the place of the file while the run goes on: it is the link that goes."""
    path, victim = tmp_path / "run", tmp_path / "diary"
    victim.write_text("dear diary")

    def plant(record):
        if record.round < 20:
            path.unlink(missing_ok=True)
            path.symlink_to(victim)

    run(path, callback=plant)
    run(path, rounds=40)
    assert victim.read_text() == "dear diary"
    assert not path.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_is_kept(mode, tmp_path):
    path = tmp_path / "run"
    run(path, rounds=5)
    path.chmod(mode)
    run(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "text").write_text("")
    run(tmp_path / "run")
    assert (tmp_path / "run").stat().st_mode == (tmp_path / "text").stat().st_mode
