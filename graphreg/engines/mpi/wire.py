"""The end of a part that is a process: buffers of numbers, sent and received as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...terms import Array
from .job import mpi


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
