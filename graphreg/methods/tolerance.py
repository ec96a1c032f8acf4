"""Methods that keep their fixed points where messages are lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from ..terms import Array

Swap = Callable[[tuple[Array, ...]], tuple[Array, ...]]


class Messages(Protocol):
    """The messages of an actor's round, of which any may be lost: NaN stands for what they would have brought."""

    def swap(self, mine: tuple[Array, ...], /) -> tuple[Array, ...]:
        """Sends, for every block, a row per edge to the other end, and returns what the other ends have sent; NaN on
        edges to the ground, too."""
        ...

    def to_owners(self, mine: tuple[Array, ...], /) -> tuple[Array, ...]:
        """Sends, for every block of rows that are no edges, what this end has of each (m, k) to its owner, and returns
        the sums over all ends at those that this node owns; NaN where one of them was not heard."""
        ...

    def to_ends(self, flows: tuple[Array, ...], /) -> tuple[Array, ...]:
        """Sends what owners have of each row to its ends, and returns theirs: of each the numbers that this end
        sees."""
        ...


class ToleratesLostMessages(ABC):
    """An iteration whose round may miss any of its messages, and which still has the fixed points of the problem.

    Where both ends of an edge keep a copy of its variables and one message of the two is lost, only one end updates,
    the copies differ for ever, and plain iterations end at a wrong point. What is proven (Combettes and Pesquet,
    Stochastic quasi-Fejer block-coordinate fixed point iterations with random sweeping, SIAM J. Optim. 25, 2015,
    section 3; for the ADMM of a consensus Bastianello, Carli, Schenato and Todescato, Asynchronous distributed
    optimization over lossy networks via relaxed ADMM, IEEE TAC 66, 2021): x+ = x + relaxation (T x - x) with T firmly
    nonexpansive converges almost surely where every coordinate is, at random, either updated exactly so or left as it
    is. So a method tolerates loss where its fixed-point variable has one coordinate block per edge and end, kept at
    that end, whose update needs one message: that of the other end in this round.
    """

    @abstractmethod
    def for_lost_messages(self) -> Any:
        """The method as it is run where messages may be lost; refuses options that are not proven there."""

    @abstractmethod
    def step_with_lost_messages(self, state: Any, messages: Messages) -> Any:
        """The state after one more round, of an actor."""
