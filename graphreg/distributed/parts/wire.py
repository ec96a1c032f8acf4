"""The ways between parts: messages between neighbours, sums and maxima over all, and a run that is set up together.

Where they set it up together, what is refused at one of them is raised at all, and nobody waits for ever.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from ...errors import GraphregError
from ...terms import Array


class Wire(Protocol):
    """The end of part ``me`` of ``count``. All parts call the same, in the same order."""

    me: int
    count: int

    def swap(self, out: Mapping[int, Array], into: Mapping[int, Array]) -> None:
        """Send arrays to neighbours, by their numbers, and write those that they send into others. All of them are
        floats side by side in memory; empty ones are not sent."""
        ...

    def largest(self, values: Array) -> Array:
        """The largest of each entry over all parts."""
        ...

    def total(self, values: Array) -> Array:
        """The sums of each entry over all parts, which must be exact in any order (see `network.engine`)."""
        ...


class BrokenOffError(Exception):
    """A part has failed."""


class Switchboard:
    """Parts in threads of one process: a queue for each way between two of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._queues: dict[tuple[int, int], SimpleQueue[Array | None]] = {
            (a, b): SimpleQueue() for a in range(count) for b in range(count)
        }

    def put(self, a: int, b: int, values: Array) -> None:
        self._queues[a, b].put(values)

    def take(self, a: int, b: int) -> Array:
        """The next array that a has sent to b."""
        values = self._queues[a, b].get()
        if values is None:
            raise BrokenOffError
        return values

    def break_off(self) -> None:
        """Tell whoever waits, or will, that it is over."""
        for queue in self._queues.values():
            queue.put(None)


class ThreadWire:
    """The end of a part that is a thread."""

    def __init__(self, board: Switchboard, me: int) -> None:
        self.board, self.me, self.count = board, me, board.count

    def swap(self, out: Mapping[int, Array], into: Mapping[int, Array]) -> None:
        for other, values in out.items():
            self.board.put(self.me, other, values.copy())  # the sender goes on before it is read
        for other, values in into.items():
            values[...] = self.board.take(other, self.me)

    def largest(self, values: Array) -> Array:
        return np.max(self._all(values), axis=0)

    def total(self, values: Array) -> Array:
        return np.sum(self._all(values), axis=0)

    def _all(self, values: Array) -> list[Array]:
        others = [k for k in range(self.board.count) if k != self.me]
        got = {k: np.empty(values.shape) for k in others}
        self.swap(dict.fromkeys(others, values), got)
        return [got.get(k, values) for k in range(self.board.count)]


def digest(content: bytes) -> int:
    """A number that no other content has, as far as anybody knows."""
    return int.from_bytes(blake2b(content, digest_size=7).digest(), "big")


def everyone(wire: Wire, out: dict[int, Array]) -> dict[int, Array]:
    """Whole numbers from every part to every part, however many."""
    others = [k for k in range(wire.count) if k != wire.me]
    sizes = {k: np.empty(1) for k in others}
    wire.swap({k: np.array([float(len(out[k]))]) for k in others}, sizes)
    flat = {k: np.ascontiguousarray(out[k], dtype=np.int64).view(float) for k in others}  # their bits, as they are
    got = {k: np.empty(int(sizes[k][0])) for k in others}
    wire.swap(flat, got)
    return {k: out[k].astype(np.int64) if k == wire.me else got[k].view(np.int64) for k in range(wire.count)}


# ---- setting up a run ------------------------------------------------------------------------------------------------
@contextmanager
def joint_wire(wire: Wire) -> Generator[Wire]:
    """A wire for what parts do together. What graphreg refuses at one of them, or at several, is raised at all when the
    context ends, once: the error of the first of them, which names it."""
    meeting, error = MeetingWire(wire), None
    try:
        yield meeting
        meeting.meet()
        return
    except _RefusedElsewhereError:
        pass
    except GraphregError as own:
        error = own
        meeting.meet(refused=True)
    if wire.count == 1 and error is not None:
        raise error
    raise _first(wire, error) from error


class MeetingWire:
    """A wire on which every call begins with the question whether a part has refused."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.me, self.count = wire, wire.me, wire.count

    def meet(self, refused: bool = False) -> None:
        """Raises at all parts that have not refused themselves."""
        if self.wire.largest(np.array([float(refused)]))[0] and not refused:
            raise _RefusedElsewhereError

    def swap(self, out: Mapping[int, Array], into: Mapping[int, Array]) -> None:
        self.meet()
        self.wire.swap(out, into)

    def largest(self, values: Array) -> Array:
        self.meet()
        return self.wire.largest(values)

    def total(self, values: Array) -> Array:
        self.meet()
        return self.wire.total(values)


class _RefusedElsewhereError(Exception):
    """Another part has refused."""


def _first(wire: Wire, error: GraphregError | None) -> GraphregError:
    """The error of the first part that has one, as all of them raise it."""
    content = b"" if error is None else pickle.dumps((type(error), str(error)))
    sent = np.frombuffer(content.ljust(-(-len(content) // 8) * 8, b"\0"), dtype=np.int64)
    got = everyone(wire, dict.fromkeys(range(wire.count), sent))
    first = next(k for k in range(wire.count) if len(got[k]))
    kind, text = pickle.loads(got[first].tobytes())
    found: GraphregError = kind(f"rank {first} of {wire.count}: {text}")
    found.shared = True
    return found
