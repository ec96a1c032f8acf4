"""Messages, and the mailbox of an actor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from ...terms import Array
from .faults import Tag

VALUES, UP, DOWN, ACKNOWLEDGEMENT = "values", "up", "down", "acknowledgement"  # kinds of messages


class Message(NamedTuple):
    """From one node to a neighbour: numbers, with the sender and a sequence number."""

    kind: str
    sender: int
    receiver: int
    tag: Tag
    attempt: int
    payload: Array


class Order(NamedTuple):
    """From the coordinator to an actor."""

    number: int
    what: str
    argument: Any


class Stop(NamedTuple):
    """From the coordinator to an actor: the run is over."""


class StoppedError(Exception):
    """The run is over."""


class WaitError(Exception):
    """Who waits for whom; raised where the run is over while an actor still waits."""

    def __init__(self, sender: int, tag: Tag) -> None:
        super().__init__(sender, tag)
        self.sender, self.tag = sender, tag


Carry = Callable[[Message], None]  # takes a message to the mailbox of its receiver


class Mailbox:
    """What has arrived for an actor and was not yet taken; read by the actor's thread alone.

    It waits until the coordinator has enough: who waits by a clock of his own gives up while the coordinator, or the
    whole machine, merely stands still.
    """

    def __init__(self, slot: SimpleQueue[Any]) -> None:
        self.slot = slot
        self.orders: deque[Order] = deque()
        self._last = 0  # the number of the last order
        self._messages: dict[tuple[str, int, Tag, int], Message] = {}

    def order(self) -> Order:
        """The next order of the coordinator, however long it takes."""
        while not self.orders:
            self._sort(self.slot.get())
        return self.orders.popleft()

    def take(self, kind: str, sender: int, tag: Tag, attempt: int = 0) -> Message:
        """The message with that sequence number; waits for it."""
        key = (kind, sender, tag, attempt)
        while key not in self._messages:
            try:
                self._sort(self.slot.get())
            except StoppedError:
                raise WaitError(sender, tag) from None
        return self._messages.pop(key)

    def forget(self) -> None:
        """Lose every message that has arrived."""
        while not self.slot.empty():
            self._sort(self.slot.get())
        self._messages.clear()

    def forget_before(self, tag: Tag) -> None:
        """Drop what came for earlier rounds, in which nobody read it."""
        for key in [key for key in self._messages if key[2] < tag]:
            del self._messages[key]

    def _sort(self, item: Message | Order | Stop) -> None:
        if isinstance(item, Stop):
            raise StoppedError
        if isinstance(item, Order):
            if item.number > self._last:  # an order may be repeated
                self._last = item.number
                self.orders.append(item)
        elif item.kind != ACKNOWLEDGEMENT:  # these have been counted where they were sent
            self._messages[item.kind, item.sender, item.tag, item.attempt] = item
