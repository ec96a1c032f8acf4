"""Actors in processes of their own, with pipes between those that host neighbours.

What a process is told are the parts of its nodes, pickled once, and the code of what it could not import. Nothing here
waits for a process that does not listen: what goes to one is written by a thread, and read by another.
"""

from __future__ import annotations

import dataclasses
import io
import reprlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from queue import SimpleQueue
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import cloudpickle
import numpy as np

from ...base.messages import warn
from ...errors import ActorError, MethodError
from .actor import NodePart
from .host import STOP
from .hosting import LEAVE, host_processes
from .threads import Reply, RunSettings


class Processes:
    """Hosts actors in ``count`` processes, nodes in the order of their numbers."""

    def __init__(self, parts: Sequence[NodePart], settings: RunSettings, count: int) -> None:
        self.replies: SimpleQueue[Any] = SimpleQueue()
        groups = [list(map(int, group)) for group in np.array_split(np.arange(len(parts)), min(count, len(parts)))]
        self.routes = {i: h for h, group in enumerate(groups) for i in group}
        self.labels = [", ".join(repr(parts[i].label) for i in group) for group in groups]
        self.starting = f"starting {len(groups)} processes"
        sent = bundles([[parts[i] for i in group] for group in groups], settings)
        self._stopping = False
        self._hosts = host_processes(len(groups), self._pairs(parts))
        self._links = self._hosts.links
        self._outboxes: list[SimpleQueue[Any]] = [SimpleQueue() for _ in groups]
        self._threads = [threading.Thread(target=self._read, name="coordinator", daemon=True)]
        for link, outbox, bundle in zip(self._links, self._outboxes, sent, strict=True):
            outbox.put(self.routes)
            outbox.put(bundle)
            self._threads.append(threading.Thread(target=_write, args=(link, outbox), name="coordinator", daemon=True))
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.close()
            raise

    # ---- what a stage does ---------------------------------------------------------------------------------------
    def order(self, number: int, what: str, arguments: Mapping[int, Any]) -> None:
        for h, outbox in enumerate(self._outboxes):
            mine = {node: argument for node, argument in arguments.items() if self.routes[node] == h}
            outbox.put(("order", number, what, mine))

    def put(self, node: int, item: Any) -> None:
        self._outboxes[self.routes[node]].put(("put", node, item))

    def stop(self) -> None:
        self._stopping = True
        for outbox in self._outboxes:
            outbox.put((STOP,))

    def close(self) -> None:
        """End all processes: told to, then made to."""
        self.stop()
        try:
            self._hosts.end()
        finally:
            for outbox in self._outboxes:
                outbox.put(None)
            for thread in self._threads:  # they end when the processes have: no link may be closed under their hands
                if thread.ident is not None:
                    thread.join(LEAVE)
            self._hosts.close()

    # ---- how ---------------------------------------------------------------------------------------------------------
    def _pairs(self, parts: Sequence[NodePart]) -> list[tuple[int, int]]:
        """Processes with neighbours in each other."""
        near = {
            (self.routes[part.node], self.routes[int(j)])
            for part in parts
            for j in part.whole.ids
            if self.routes[int(j)] != self.routes[part.node]
        }
        return sorted((a, b) for a, b in near if a < b)

    def _read(self) -> None:
        """Bring to the coordinator what the processes say, and that they live."""
        links = dict(enumerate(self._links))
        try:
            while links:
                for ready in wait([*self._hosts.signs, *links.values()]):
                    h = next((h for h, each in links.items() if each is ready), None)
                    if h is None:
                        self._hosts.receive()
                        self.replies.put(None)
                        continue
                    try:
                        for item in links[h].recv():
                            self.replies.put(item)
                    except (EOFError, OSError):
                        del links[h]
                        if not self._stopping:
                            self._lost(h)
        except ActorError as error:
            self.replies.put(Reply(-1, 0, error=error))

    def _lost(self, h: int) -> None:
        code = self._hosts.code(h)
        how = "unknown exit code" if code is None else f"exit code {code}"
        error = ActorError(f"the process of the nodes {self.labels[h]} has ended ({how})")
        self.replies.put(Reply(-1, 0, error=error))


def _write(link: Any, outbox: SimpleQueue[Any]) -> None:
    """Carry to a process what it is told."""
    with suppress(OSError):  # it has ended: the reader says so
        while (item := outbox.get()) is not None:
            if isinstance(item, bytes):
                link.send_bytes(item)
            else:
                link.send(item)


# ---- what a process is sent ------------------------------------------------------------------------------------------
CODE = (ModuleType, FunctionType, BuiltinFunctionType, type)  # what is no data
OWN = __name__.partition(".")[0]
WRITERS = (dataclasses.__file__, reprlib.__file__)  # of methods


class _Pickler(cloudpickle.Pickler):
    """Notes what is sent as code, since it cannot be imported elsewhere, and the data to which this code refers."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.code: dict[str, None] = {}
        self.data: dict[str, None] = {}

    def reducer_override(self, obj: Any) -> Any:
        reduced: Any = super().reducer_override(obj)
        if reduced is not NotImplemented and isinstance(obj, (type, FunctionType)) and _of_the_user(obj):
            self.code[f"{obj.__module__}.{obj.__qualname__}"] = None
            if isinstance(obj, FunctionType):
                state = reduced[2][1]
                known = dict(state["__globals__"])
                for name, cell in zip(obj.__code__.co_freevars, state["__closure__"] or (), strict=True):
                    with suppress(ValueError):  # nothing is in it yet
                        known[name] = cell.cell_contents
                self.data.update({name: None for name, value in known.items() if not isinstance(value, CODE)})
        return reduced


def _of_the_user(code: type | FunctionType) -> bool:
    """True for code that is neither of this package nor of Python, which writes methods of dataclasses."""
    generated = "__create_fn__" in code.__qualname__
    if isinstance(code, FunctionType):
        generated |= code.__code__.co_filename in WRITERS
    return not generated and code.__module__.partition(".")[0] not in (OWN, "builtins")


def bundles(groups: Sequence[Sequence[NodePart]], settings: RunSettings) -> list[bytes]:
    """The bytes that each process is sent. A warning names what is sent as code, and the data that go with it."""
    out: list[bytes] = []
    code: dict[str, None] = {}
    data: dict[str, None] = {}
    for parts in groups:
        file = io.BytesIO()
        pickler = _Pickler(file)
        try:
            pickler.dump((list(parts), settings))
        except Exception as error:
            raise MethodError(
                f"the model or the method cannot be sent to another process ({error}); leave out what is of this "
                "process alone (locks, files, generators), or take Actors(processes=False)"
            ) from error
        out.append(file.getvalue())
        code |= pickler.code
        data |= pickler.data
    _warn(code, data)
    return out


def _warn(code: dict[str, None], data: dict[str, None]) -> None:
    names = [name for name in code if name.rpartition(".")[0] not in code]  # a class, without its methods
    if names:
        also = f", and with it, to every process, the values of {', '.join(sorted(data))}" if data else ""
        warn(
            f"other processes cannot import {', '.join(names)}: the code itself is sent to them{also}; define it at "
            "the top level of a module, so that its name alone is sent"
        )
