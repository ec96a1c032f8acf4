"""The workers of an MPI job: rank 0 gives orders, and every rank, itself included, carries them out on its part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...methods import AbstractIteration
from ...terms import Array
from ..parts import Part, Posts, Worker
from .ending import abort
from .job import mpi
from .messages import packed, receive, send
from .wire import MPIWire

PART, END = "part", "end"
REPLIED = ("answer", "sent")  # orders to which there is a reply; who cannot carry out another one ends the job


class MPICrew:
    """What rank 0 has of all workers. Its own is in a thread, as those of `graphreg.engines.parts.threads` are, so that
    a Ctrl-C or a deadline never strikes between two messages."""

    def __init__(self, comm: Any, parts: Sequence[Part], owner: Array, method: AbstractIteration, seed: int) -> None:
        self.comm, self.worker = comm, Follower(comm)
        self._posts = Posts(1, self._carry_out, _nothing)
        self._posts.ask(PART, [[(part, owner[part.whole.ids], method, seed) for part in parts]])

    def ask(self, what: str, arguments: Sequence[Any]) -> list[Any]:
        return self._posts.ask(what, [arguments])[0]

    def close(self) -> None:
        self._posts.close()

    def _carry_out(self, k: int, what: str, arguments: Sequence[Any]) -> list[Any]:
        del k
        alike = all(each is arguments[0] for each in arguments)
        each = [] if alike else [packed(argument) for argument in arguments[1:]]
        self.comm.bcast((what, alike, arguments[0] if alike else None), root=0)
        for rank, argument in enumerate(each, 1):
            send(self.comm, argument, rank)
        mine = self.worker.carry_out(what, arguments[0])
        return [mine, *(receive(self.comm, rank) if what in REPLIED else None for rank in range(1, self.comm.size))]


class Follower:
    """The worker of a rank."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.worker: Worker | None = None

    def serve(self) -> Any:
        """Carry out what rank 0 orders, until it says what the end is."""
        while True:
            what, alike, argument = self.comm.bcast(None, root=0)
            if what == END:
                return argument
            try:
                reply = packed(self.carry_out(what, argument if alike else receive(self.comm, 0)))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the others would wait for this rank for ever
                abort(mpi(), error)
            if what in REPLIED:
                send(self.comm, reply, 0)

    def carry_out(self, what: str, argument: Any) -> Any:
        try:
            if what == PART:
                part, owner, method, seed = argument
                self.worker = Worker(part, owner, method, seed, MPIWire(self.comm))
                return None
            assert self.worker is not None
            return self.worker.carry_out(what, argument)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the others would wait for this rank for ever
            abort(mpi(), error)


def _nothing() -> None:
    """A rank that fails ends the job."""
