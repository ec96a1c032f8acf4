"""A method on parts of the graph, one in each process of an MPI job: rank 0 gives orders, all carry them out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...checks import checked
from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration, AbstractMethod
from ...network import Arcs
from ...running import AbstractEngine, Budget
from ...saving import entry, of_problem
from ...terms import Array
from ..parts import Part, PartCoordinator, Posts, Worker, owners, part_of, refuse_judges
from ..parts.config import SITES, share_of_border, warn_of_border
from .job import abort, agreed, call, end_all_with_errors, mpi, shared, versions, world

T = TypeVar("T")


@dataclass(frozen=True)
class MPI(AbstractEngine):
    """Run a method on as many parts of the graph as an MPI job has processes: ``mpiexec -n 4 python script.py``, in
    which every process calls ``problem.solve(method, engine=gr.MPI())`` and gets the answer.

    Iterates are those of `Parts`, bit for bit.

    Parameters
    ----------
    sites : mapping, optional
        To which site each node belongs; sites are dealt out to the processes in turn.

    Examples
    --------
    >>> gr.MPI()  # for engine=, in a job that mpiexec began
    MPI(sites=None)
    """

    sites: Mapping[Hashable, Any] | None = checked(SITES | None, None)

    def __post_init__(self) -> None:
        super().__post_init__()
        end_all_with_errors()

    @contextmanager
    def hosting(self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int) -> Generator[PartCoordinator]:
        refuse_judges(method)
        comm = world()
        owner = owners(form, arcs, comm.size, self.sites) % comm.size
        parts = [part_of(form, arcs, owner == k) for k in range(comm.size)]
        warn_of_border(max(map(share_of_border, parts)), form.n)
        with closing(MPICrew(comm, parts, owner, method, seed)) as crew:
            yield PartCoordinator(method, form, parts, crew)

    def everywhere(self, form: Form, method: AbstractMethod, budget: Budget, solve: Callable[[], T]) -> T:
        comm = world()
        asked = call(method, budget) | {"sites": entry(self.sites)}
        agreed(comm, lambda: {"versions": versions(), "call": asked, "problem": of_problem(form)})
        if comm.rank:
            found, error = pickle.loads(RankWorker(comm).serve())
        else:
            found, error = _tried(solve)
            content, unsent = _pickled(found, error)
            comm.bcast((END, True, content), root=0)
            error = error or unsent
        if error is not None:
            raise shared(error)
        assert found is not None
        return found


def _tried(solve: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return solve(), None
    except Exception as error:  # noqa: BLE001 - all ranks raise it
        return None, error


def _pickled(found: Any, error: Exception | None) -> tuple[bytes, MethodError | None]:
    """The bytes for the other ranks; and what all raise where it cannot be sent."""
    try:
        return pickle.dumps((found, error)), None
    except Exception as why:  # noqa: BLE001 - of a class of the user's
        said = "the answer cannot be sent to the other ranks" if error is None else f"rank 0: {error!r}"
        unsent = MethodError(f"{said} ({why}); use functions and classes that can be pickled")
        return pickle.dumps((None, unsent)), unsent


# ---- the workers -----------------------------------------------------------------------------------------------------
PART, END = "part", "end"
REPLIED = ("answer", "sent")  # orders to which there is a reply; who cannot carry out another one ends the job


class MPICrew:
    """All workers, as rank 0 sees them. Its own is in a thread, as those of `graphreg.distributed.parts.worker` are: so
    a Ctrl-C or a deadline never strikes between two messages."""

    def __init__(self, comm: Any, parts: Sequence[Part], owner: Array, method: AbstractIteration, seed: int) -> None:
        self.comm, self.worker = comm, RankWorker(comm)
        self._posts = Posts(1, self._carry_out, lambda: None)  # a rank that fails ends the job
        self._posts.ask(PART, [[(part, owner[part.whole.ids], method, seed) for part in parts]])

    def ask(self, what: str, arguments: Sequence[Any]) -> list[Any]:
        return self._posts.ask(what, [arguments])[0]

    def close(self) -> None:
        self._posts.close()

    def _carry_out(self, k: int, what: str, arguments: Sequence[Any]) -> list[Any]:
        alike = all(each is arguments[0] for each in arguments)
        each = [] if alike else [packed(argument) for argument in arguments[1:]]
        self.comm.bcast((what, alike, arguments[0] if alike else None), root=0)
        for rank, argument in enumerate(each, 1):
            send(self.comm, argument, rank)
        mine = self.worker.carry_out(what, arguments[0])
        return [mine, *(receive(self.comm, rank) if what in REPLIED else None for rank in range(1, self.comm.size))]


class RankWorker:
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
                abort(error)
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
            abort(error)


# ---- the ways between ranks ------------------------------------------------------------------------------------------
Packed = tuple[bytes, list[Array]]


def packed(value: Any) -> Packed:
    """The value as `send` takes it; raises where the value cannot be sent, before anybody waits for it."""
    buffers: list[pickle.PickleBuffer] = []
    header = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return header, [np.frombuffer(each.raw(), dtype=np.uint8) for each in buffers]


def send(comm: Any, value: Packed, to: int) -> None:
    header, raw = value
    comm.send((header, [each.size for each in raw]), to)
    for each in raw:
        comm.Send(each, to)


def receive(comm: Any, sender: int) -> Any:
    header, sizes = comm.recv(source=sender)
    buffers = [np.empty(size, dtype=np.uint8) for size in sizes]
    for each in buffers:
        comm.Recv(each, source=sender)
    return pickle.loads(header, buffers=buffers)


class MPIWire:
    """See `graphreg.distributed.parts.wire.Wire`."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.me, self.count = comm, int(comm.rank), int(comm.size)

    def swap(self, out: Mapping[int, Array], into: Mapping[int, Array]) -> None:
        waiting = [self.comm.Irecv(values, source=other) for other, values in into.items() if values.size]
        waiting += [self.comm.Isend(values, dest=other) for other, values in out.items() if values.size]
        mpi().Request.Waitall(waiting)

    def largest(self, values: Array) -> Array:
        return self._all(values, mpi().MAX)

    def total(self, values: Array) -> Array:
        return self._all(values, mpi().SUM)

    def _all(self, values: Array, operation: Any) -> Array:
        given = np.ascontiguousarray(values, dtype=float)
        out = np.empty_like(given)
        self.comm.Allreduce(given, out, op=operation)
        return out
