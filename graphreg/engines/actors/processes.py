"""Actors in processes of their own, with pipes between those that host neighbours.

Processes come from a fork server where there is one, else they are spawned: a plain fork would hand the memory of this
process, with the data of all nodes, to each of them (and forking a process with threads is not safe). What a process
is told are the parts of its nodes, pickled once. Each has a thread per actor; its main thread reads the pipes, so that
nobody who writes to it ever blocks for long.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

import numpy as np

from ...errors import ActorError, MethodError
from .mailbox import Message
from .parts import NodePart
from .threads import LEAVE, Reply, RunSettings, Threads, Warned

STOP = "stop"
Routes = dict[int, int]  # the process of each node


class Processes:
    """Hosts actors in ``count`` processes, nodes in the order of their numbers."""

    def __init__(self, parts: Sequence[NodePart], settings: RunSettings, count: int) -> None:
        self.replies: SimpleQueue[Any] = SimpleQueue()
        groups = [list(group) for group in np.array_split(np.arange(len(parts)), min(count, len(parts)))]
        self.routes: Routes = {int(i): h for h, group in enumerate(groups) for i in group}
        self.labels = [", ".join(repr(parts[i].label) for i in group) for group in groups]
        self._stopping = False
        self._links: list[Connection[Any, Any]] = []
        self._hosts: list[Any] = []
        self._reader = threading.Thread(target=self._read, name="coordinator", daemon=True)
        bundles = [_bundle([parts[i] for i in group], settings) for group in groups]
        try:
            self._start(parts, bundles)
        except BaseException:
            self.close()
            raise
        self._reader.start()

    # ---- what a stage does ---------------------------------------------------------------------------------------
    def order(self, number: int, what: str, arguments: Mapping[int, Any]) -> None:
        for h, link in enumerate(self._links):
            mine = {node: argument for node, argument in arguments.items() if self.routes[node] == h}
            self._tell(link, ("order", number, what, mine))

    def put(self, node: int, item: Any) -> None:
        self._tell(self._links[self.routes[node]], ("put", node, item))

    def stop(self) -> None:
        self._stopping = True
        for link in self._links:
            self._tell(link, (STOP,))

    def close(self) -> None:
        """End all processes: asked to, then told to, then made to."""
        self.stop()
        for process in self._hosts:
            process.join(LEAVE)
            for end in (process.terminate, process.kill):
                if process.is_alive():
                    end()
                    process.join(LEAVE)
            process.close()
        if self._reader.is_alive():  # it ends when the last link has: none may be closed under its hands
            self._reader.join(LEAVE)
        for link in self._links:
            link.close()
        self._hosts, self._links = [], []

    # ---- how ---------------------------------------------------------------------------------------------------------
    def _start(self, parts: Sequence[NodePart], bundles: Sequence[bytes]) -> None:
        context = _context()
        pipes: list[dict[int, Connection[Any, Any]]] = [{} for _ in bundles]
        theirs: list[Connection[Any, Any]] = []
        try:
            for a, b in self._pairs(parts):
                pipes[a][b], pipes[b][a] = context.Pipe()
            for h, bundle in enumerate(bundles):
                link, end = context.Pipe()
                self._links.append(link)
                theirs.append(end)
                process = context.Process(
                    target=_host, args=(bundle, end, pipes[h], self.routes), name=f"graphreg actors {h}", daemon=True
                )
                process.start()
                self._hosts.append(process)
        except OSError as error:
            raise ActorError(
                f"{len(bundles)} processes with the pipes between them could not be started ({error}); take fewer, "
                "for instance processes=4"
            ) from error
        finally:  # their ends: what is left open here would keep a pipe alive whose owner is gone
            for connection in [*theirs, *(c for each in pipes for c in each.values())]:
                connection.close()

    def _pairs(self, parts: Sequence[NodePart]) -> list[tuple[int, int]]:
        """Processes with neighbours in each other."""
        near = {
            (self.routes[part.node], self.routes[int(j)])
            for part in parts
            for j in part.whole.ids
            if self.routes[int(j)] != self.routes[part.node]
        }
        return sorted((a, b) for a, b in near if a < b)

    def _tell(self, link: Connection[Any, Any], what: tuple[Any, ...]) -> None:
        with suppress(OSError):  # its process has ended: the reader says so
            link.send(what)

    def _read(self) -> None:
        """Bring to the coordinator what the processes say."""
        links = dict(enumerate(self._links))
        while links:
            for link in wait(list(links.values())):
                h = next(h for h, each in links.items() if each is link)
                try:
                    for item in links[h].recv():
                        self.replies.put(item)
                except (EOFError, OSError):
                    del links[h]
                    if not self._stopping:
                        self._lost(h)

    def _lost(self, h: int) -> None:
        self._hosts[h].join(LEAVE)
        code = self._hosts[h].exitcode
        hint = '; a script that starts processes needs its if __name__ == "__main__":' if code == 1 else ""
        error = ActorError(f"the process of the nodes {self.labels[h]} has ended (exit code {code}){hint}")
        self.replies.put(Reply(-1, 0, error=error))


def _context() -> Any:
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload(["__main__", __name__])
    return context


def _bundle(parts: Sequence[NodePart], settings: RunSettings) -> bytes:
    try:
        return pickle.dumps((list(parts), settings))
    except Exception as error:
        raise MethodError(
            f"the model or the method cannot be sent to another process ({error}); define its functions and classes at "
            "the top level of a module, or take Actors(processes=False)"
        ) from error


# ---- in the other process --------------------------------------------------------------------------------------------
def _host(bundle: bytes, link: Connection[Any, Any], peers: dict[int, Connection[Any, Any]], routes: Routes) -> None:
    """The life of a process that hosts actors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's affair: a round is finished first
    parts, settings = pickle.loads(bundle)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        Host(parts, settings, link, peers, routes, warned).run()


class Host:
    """Passes on what comes in and what goes out, for the actors of one process."""

    def __init__(
        self,
        parts: Sequence[NodePart],
        settings: RunSettings,
        link: Connection[Any, Any],
        peers: dict[int, Connection[Any, Any]],
        routes: Routes,
        warned: list[warnings.WarningMessage],
    ) -> None:
        self.link, self.peers, self.routes, self.warned = link, peers, routes, warned
        self.locks = {h: threading.Lock() for h in peers}
        self.actors = Threads(parts, settings, self._carry)
        threading.Thread(target=self._report, daemon=True).start()

    def run(self) -> None:
        sources = [self.link, *self.peers.values()]
        while True:
            ready = wait(sources)
            for source in [each for each in sources if each in ready]:
                try:
                    item = source.recv()
                except (EOFError, OSError):
                    if source is self.link:  # the coordinator is gone
                        return
                    sources.remove(source)
                    continue
                if source is not self.link:
                    self.actors.deliver(Message(*item))
                elif item[0] == STOP:
                    self.actors.close()
                    return
                else:
                    getattr(self.actors, item[0])(*item[1:])

    def _carry(self, message: Message) -> None:
        h = self.routes[message.receiver]
        if h not in self.peers:
            self.actors.deliver(message)
            return
        with suppress(OSError), self.locks[h]:  # where that process has ended the coordinator knows
            self.peers[h].send(tuple(message))

    def _report(self) -> None:
        """Replies to the coordinator, as many at once as there are."""
        while True:
            items: list[Any] = [self.actors.replies.get()]
            while not self.actors.replies.empty():
                items.append(self.actors.replies.get())
            outgoing = [*self._warnings(), *(_portable(item) for item in items)]
            try:
                self.link.send(outgoing)
            except OSError:
                return

    def _warnings(self) -> list[Any]:
        outgoing, self.warned[:] = list(self.warned), []
        return [Warned(each.category, str(each.message)) for each in outgoing]


def _portable(item: Any) -> Any:
    """A reply that can be pickled: an error that cannot goes as its words."""
    if isinstance(item, Reply) and item.error is not None:
        try:
            pickle.loads(pickle.dumps(item.error))
        except Exception:  # noqa: BLE001 - whatever its class makes of it
            return Reply(item.node, item.number, error=RuntimeError(f"{type(item.error).__name__}: {item.error}"))
    return item
