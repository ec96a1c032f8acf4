"""The process that hosts of actors are forked from: a script of its own, which knows nothing of the user's.

It is started with the numbers of open files: the connection to the coordinator, then one for each host. It is told
where modules are, which of ours to import, and which hosts are neighbours; it forks the hosts, says how each of them
ends, and ends them all when the coordinator says so, or is gone. No data ever come here, and nothing is written to
disk.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

BEAT = 0.5  # seconds between two signs of life while modules are imported
HOST = "graphreg.distributed.actors.host"


def main(control: Any, links: Sequence[Any]) -> None:
    """The life of the process."""
    parent = os.getppid()
    path, pairs, methods = control.recv()
    sys.path[:] = path
    with _beating(control):
        host = importlib.import_module(HOST)
        for name in methods:  # once, and not by each host
            importlib.import_module(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: those of BLAS know how to be forked
            alive = _forked(host, control, links, pairs)
    except OSError as error:
        control.send(str(error))
        return
    threading.Thread(target=_end, args=(control, alive, parent), daemon=True).start()
    while alive:
        pid, status = os.waitpid(-1, 0)
        ended = (alive.pop(pid), os.waitstatus_to_exitcode(status))
        with suppress(OSError):
            control.send(ended)


@contextmanager
def _beating(control: Any) -> Generator[None]:
    """Signs of life, from a thread: it has ended before there are forks. Without a coordinator there is no life."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT):
            try:
                control.send(None)
            except OSError:
                os._exit(1)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _forked(host: Any, control: Any, links: Sequence[Any], pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The number of each host by its process."""
    pipes: list[dict[int, Any]] = [{} for _ in links]
    for a, b in pairs:
        pipes[a][b], pipes[b][a] = Pipe()
    alive: dict[int, int] = {}
    try:
        for h, link in enumerate(links):
            pid = os.fork()
            if pid == 0:
                theirs = [each for k, mine in enumerate(pipes) if k != h for each in mine.values()]
                _become(host, link, pipes[h], [control, *(each for each in links if each is not link), *theirs])
            alive[pid] = h
    except OSError:
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        raise
    for connection in [*links, *(each for mine in pipes for each in mine.values())]:
        connection.close()  # what is left open here would keep a pipe alive whose owner is gone
    control.send(None)
    return alive


def _become(host: Any, link: Any, peers: dict[int, Any], others: Sequence[Any]) -> None:
    """A host, until its end."""
    code = 1
    try:
        for connection in others:
            connection.close()
        host.live(link, peers)
        code = 0
    except BaseException:  # noqa: BLE001 - a defect, told on stderr
        traceback.print_exc()
    finally:
        os._exit(code)


def _end(control: Any, alive: dict[int, int], parent: int) -> None:
    """End all hosts, stopped ones too, when the coordinator says so or is gone."""
    while not wait([control], 1.0) and os.getppid() == parent:
        pass
    for pid in list(alive):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    first, *rest = (Connection(int(number)) for number in sys.argv[1:])
    with suppress(EOFError, BrokenPipeError):  # the coordinator is gone
        main(first, rest)
