"""How parts reach one another: messages between neighbours, and sums and maxima over all."""

from __future__ import annotations

from collections.abc import Mapping
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from ...terms import Array
from .posts import BrokenOffError


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
        """The sums of each entry over all parts, which must be exact in any order (see `network.summing`)."""
        ...


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
        """What b is sent by a."""
        values = self._queues[a, b].get()
        if values is None:
            raise BrokenOffError
        return values

    def break_off(self) -> None:
        """Whoever waits, or will, hears of it."""
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
