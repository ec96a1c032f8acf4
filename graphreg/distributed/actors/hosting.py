"""The processes of hosts: their start and their end.

A plain fork would hand the memory of this process, with the data of all nodes, to each of them, and multiprocessing's
fork server and its spawned processes import the user's script again, with the data that it loads. So hosts are forked
from a process of our own (`starter`), or, where there is no fork, spawned without the script.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import spawn
from multiprocessing.connection import Pipe
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import ActorError
from .host import live

METHODS = "graphreg.methods."  # the modules that hosts import before they are forked, where this process has them
LEAVE = 0.5  # seconds that a process has to end before it is made to
Pairs = Sequence[tuple[int, int]]  # hosts that are neighbours


def host_processes(count: int, pairs: Pairs) -> Forked | Spawned:
    """So many hosts, as this system allows."""
    start = Forked if hasattr(os, "fork") and not getattr(sys, "frozen", False) else Spawned
    try:
        return start(count, pairs)
    except OSError as error:
        raise too_many(count, error) from error


def too_many(count: int, why: object) -> ActorError:
    return ActorError(
        f"{count} processes with the pipes between them could not be started ({why}); take fewer, for "
        "instance processes=4"
    )


class Forked:
    """Hosts that a starter has forked. The group of the starter's processes is not that of this process: a Ctrl-C at
    the terminal goes to the coordinator alone. ``links`` lead to the hosts, and ``signs`` is where something is said of
    them."""

    def __init__(self, count: int, pairs: Pairs) -> None:
        self.links, theirs = _pipes(count + 1)
        try:
            numbers = [end.fileno() for end in theirs]
            script = str(Path(__file__).with_name("starter.py"))
            command = [spawn.get_executable(), "-P", script, *map(str, numbers)]
            with _deaf():
                self._starter = subprocess.Popen(command, pass_fds=numbers, stdin=subprocess.DEVNULL, process_group=0)
        except BaseException:
            _close(self.links)
            raise
        finally:
            _close(theirs)
        self._control = self.links.pop(0)
        self.signs, self._codes, self._count = [self._control], dict[int, int](), count
        try:
            methods = [name for name in list(sys.modules) if name.startswith(METHODS)]
            self._control.send(([each or os.getcwd() for each in sys.path], list(pairs), methods))
        except OSError:  # it has ended, as is heard of
            pass
        except BaseException:
            self.end()
            self.close()
            raise

    def receive(self) -> None:
        """Take what is said by ``signs``."""
        try:
            said = self._control.recv()
        except (EOFError, OSError):
            self.signs = []
            return
        if isinstance(said, str):
            raise too_many(self._count, said)
        if said is not None:
            h, code = said
            self._codes[h] = code

    def code(self, h: int) -> int | None:
        """The exit code of a host that is ending; None where nobody knows."""
        while h not in self._codes and self.signs and self._control.poll(LEAVE):
            self.receive()
        return self._codes.get(h)

    def end(self) -> None:
        """Wait for all to leave, who have been told to; make those leave who do not, stopped ones too."""
        try:
            with suppress(subprocess.TimeoutExpired):  # it is the last to leave
                self._starter.wait(LEAVE)
            if self._starter.returncode is None:
                self._starter.send_signal(signal.SIGCONT)
                with suppress(OSError, subprocess.TimeoutExpired):
                    self._control.send(None)  # whoever is left is killed
                    self._starter.wait(LEAVE)
        finally:
            if self._starter.returncode != 0:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._starter.pid, signal.SIGKILL)
                self._starter.wait()

    def close(self) -> None:
        """Close all pipes, which nobody reads any more."""
        _close([self._control, *self.links])


class Spawned:
    """Hosts in processes that multiprocessing spawns, without the user's script."""

    def __init__(self, count: int, pairs: Pairs) -> None:
        context = multiprocessing.get_context("spawn")
        self.links, theirs = _pipes(count)
        self.signs: list[Any] = []
        self._hosts: list[Any] = []
        peers: list[dict[int, Any]] = [{} for _ in theirs]
        try:
            for a, b in pairs:
                peers[a][b], peers[b][a] = Pipe()
            with _without_script():
                for end, mine in zip(theirs, peers, strict=True):
                    self._hosts.append(context.Process(target=live, args=(end, mine), daemon=True))
                    self._hosts[-1].start()
        except BaseException:
            self.end()
            self.close()
            raise
        finally:
            _close([*theirs, *(each for mine in peers for each in mine.values())])

    def receive(self) -> None:
        """Nobody says anything."""

    def code(self, h: int) -> int | None:
        self._hosts[h].join(LEAVE)
        return self._hosts[h].exitcode

    def end(self) -> None:
        for process in self._hosts:
            if process.pid is not None:
                process.join(LEAVE)
                process.kill()
                process.join()

    def close(self) -> None:
        _close(self.links)


def _pipes(count: int) -> tuple[list[Any], list[Any]]:
    """The two ends of so many pipes."""
    ends: list[tuple[Any, Any]] = []
    try:
        ends.extend(Pipe() for _ in range(count))
    except OSError:
        _close([each for pair in ends for each in pair])
        raise
    return [mine for mine, _ in ends], [theirs for _, theirs in ends]


def _close(connections: Sequence[Any]) -> None:
    for connection in connections:
        connection.close()


@contextmanager
def _deaf() -> Generator[None]:
    """A context in which Ctrl-C has to wait; what is started in it never hears of one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_script() -> Generator[None]:
    """A context in which multiprocessing finds no ``__main__`` that a new process would import."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
