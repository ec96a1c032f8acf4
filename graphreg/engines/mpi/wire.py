"""The ways between the ranks of an MPI job: messages of any size, and the wire of parts."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...terms import Array
from .job import mpi

Packed = tuple[bytes, list[Array]]


def packed(value: Any) -> Packed:
    """For `send`: raises where the value cannot be sent, before anybody waits for it."""
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
    """See `graphreg.engines.parts.wire.Wire`."""

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
