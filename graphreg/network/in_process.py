"""The whole graph in one process: values of neighbours are at hand, and the ledger says what would have been sent."""

from __future__ import annotations

from math import prod

import numpy as np

from ..terms import Array
from .ledger import Ledger
from .summing import summed


class InProcess:
    """Runs a method on the whole graph and records the messages of its decentralised execution; see `Engine`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def exchange(
        self, values: Array, along: Array | None = None, *, parameters: bool = True, purpose: str = "method"
    ) -> Array:
        self.ledger.exchange(purpose, None if parameters else values.shape[1], along)
        return values

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        numbers = np.zeros(len(along), dtype=np.int64)
        for each, arcs in zip(values, toward, strict=True):
            np.add.at(numbers, arcs, each.shape[1])
        self.ledger.exchange("method", numbers, along)
        return tuple(np.roll(each, len(each) // 2, axis=0) for each in values)

    def reduce(self, values: Array, purpose: str = "adaptation") -> Array:
        total = summed(values)
        self.ledger.sum(purpose, prod(total.shape))
        return total

    def away(self, nodes: Array) -> None:
        self.ledger.away(nodes)
