"""What an engine does for a local view: the two verbs of all engines, what compiled rounds on parts need, and the
engine of the whole graph in one process, where values of neighbours are at hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Protocol

import numpy as np

from ..terms import Array
from .ledger import Ledger
from .summing import summed


class Engine(Protocol):
    """Where a method runs, see `graphreg.distributed`. ``ledger`` records what is sent."""

    ledger: Ledger

    def exchange(
        self, values: Array, along: Array | None = None, *, parameters: bool = True, purpose: str = "method"
    ) -> Array:
        """The values (n, k) of the view's nodes and of their neighbours.

        A message goes along every arc of the view (see `LocalView.arcs`), or along those of the mask ``along``: rows of
        neighbours that did not send must not be used (a local view of isolated actors has NaN there). Where values are
        ``parameters``, k = d and a message holds the coordinates that the pair couples, else all k columns. What it
        is for is recorded.
        """
        ...

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        """What the other ends of edges have for the own ones.

        ``values`` has per edge block a row for each end, those of the tails above those of the heads (2m, k), and
        ``toward`` is `LocalView.toward`. A message goes along each arc of the mask ``along`` and holds the rows of all
        edges of the pair; rows of ends that did not send must not be used.
        """
        ...

    def reduce(self, values: Array, purpose: str = "adaptation") -> Array:
        """Sums over all nodes of the graph of values (n, ...) per node, in a fixed order; what it is for is
        recorded."""
        ...

    def away(self, nodes: Array) -> None:
        """Note that the nodes of a mask (n,) are away in this round."""
        ...


class AbstractPartEngine(ABC):
    """The engine of one of several parts, which all do the same in the same order; see `Engine`."""

    @abstractmethod
    def fill(self, values: Array) -> None:
        """``exchange`` of parameters along every arc, into the rows of neighbours of values (n, d) themselves: what no
        edge couples stays there as it is."""

    @abstractmethod
    def everywhere(self, here: bool) -> bool:
        """Whether something holds on every part."""


# ---- the whole graph in one process ----------------------------------------------------------------------------------
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
