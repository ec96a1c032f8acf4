"""The interface of engines for a local view: the two verbs of all engines, what compiled rounds on parts need, and the
engine of the whole graph in one process, where values of neighbours are at hand; and how all of them sum, in whatever
order, to the same bits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..terms import Array, at_a_time
from .ledger import Ledger


class Engine(Protocol):
    """The place where a method runs, see `graphreg.distributed`. ``ledger`` records what is sent."""

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
        """The values that the other ends of edges have for the own ones.

        ``values`` has per edge block a row for each end, those of the tails above those of the heads (2m, k), and
        ``toward`` is `LocalView.toward`. A message goes along each arc of the mask ``along`` and holds the rows of all
        edges of the pair; rows of ends that did not send must not be used.
        """
        ...

    def send_back(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        """The flows (m, k) of every edge block, where those of rows whose owner is elsewhere are what it sends: of rows
        of more than two ends one node keeps the flow, and tells every end what this needs of it."""
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
        """True where something holds on every part."""


# ---- the whole graph in one process ----------------------------------------------------------------------------------
@dataclass(eq=False)
class InProcess:
    """Runs a method on the whole graph and records the messages of its decentralised execution; see `Engine`."""

    ledger: Ledger

    def exchange(
        self, values: Array, along: Array | None = None, *, parameters: bool = True, purpose: str = "method"
    ) -> Array:
        self.ledger.exchange(purpose, None if parameters else values.shape[1], along)
        return values

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        self.ledger.swap(values, toward, along)
        return tuple(np.roll(each, len(each) // 2, axis=0) for each in values)

    def send_back(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        self.ledger.send_back()
        return flows

    def reduce(self, values: Array, purpose: str = "adaptation") -> Array:
        total = summed(values)
        self.ledger.sum(purpose, math.prod(total.shape))
        return total

    def away(self, nodes: Array) -> None:
        self.ledger.away(nodes)


# ---- sums that come out the same, bit for bit, in whatever order and however dealt out their numbers are added -------
# Every number is cut into three pieces, each a multiple of a unit so large that sums of all of these pieces are exact
# in floating point (pre-rounding: Demmel and Nguyen, Fast reproducible floating-point summation, 2013). What is beyond
# the third piece is below 2^-60 of the largest number for up to 2^30 of them: the result is nearer than that of any
# loop.
PIECES = 3
CACHED = 1 << 15  # numbers looked at together
LARGEST, SMALLEST = 960, -1000  # exponents of the largest number beyond which all are scaled by a power of two


def pieces(values: Array, most: Array, count: int) -> Array:
    """The sums of the pieces of values (rows, ...), to be added to those of other rows, (3, ...).

    ``most`` (...) are the largest absolute values, and ``count`` is the number of the rows, of all that are added.
    """
    exponent = np.frexp(most)[1]  # |values| <= 2^exponent
    shift = _shift(exponent)
    room = math.ceil(math.log2(max(count, 1))) + 1
    top = exponent - shift
    large = np.ldexp(1.5, (top + room).reshape(1, -1, 1) + (room - 53) * np.arange(PIECES)[:, None, None])
    out, width = np.zeros((PIECES, most.size)), max(most.size, 1)
    scale = np.ldexp(1.0, -shift).reshape(-1, 1)
    with np.errstate(invalid="ignore"):  # infinite values have no pieces: their sum is NaN
        for some in at_a_time(CACHED // width, len(values)):
            rest = values[some].reshape(-1, width).T * scale
            for k in range(PIECES):  # the unit of large is 2^(top + room - 52): sums of its multiples are exact
                piece = rest + large[k]
                piece -= large[k]
                rest -= piece
                out[k] += piece.sum(axis=1)
    return out.reshape(PIECES, *most.shape)


def joined(sums: Array, most: Array) -> Array:
    """The sum (...) of all numbers, from the `pieces` of all of them."""
    total = sums[-1]
    for k in reversed(range(PIECES - 1)):
        total = total + sums[k]
    return total * np.ldexp(1.0, _shift(np.frexp(most)[1]))


def magnitude(values: Array) -> Array:
    """max |values| over the rows, (...); 0 where there are none."""
    return np.abs(values).max(axis=0, initial=0.0)


def summed(values: Array) -> Array:
    """The sum over the rows, (...)."""
    most = magnitude(values)
    if not np.isfinite(most).all():
        return values.sum(axis=0)
    return joined(pieces(values, most, len(values)), most)


def _shift(exponent: Array) -> Array:
    return 64 * (exponent > LARGEST) - 64 * (exponent < SMALLEST)
