"""Messages between actors: the mailbox of each, its endpoint, and the faults that befall messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from ...terms import Array
from .faults import FaultPlan, Tag

VALUES, BACK, UP, DOWN, ACKNOWLEDGEMENT = "values", "back", "up", "down", "acknowledgement"  # kinds of messages


class Message(NamedTuple):
    """A message from one node to a neighbour: numbers, with the sender and a sequence number."""

    kind: str
    sender: int
    receiver: int
    tag: Tag
    attempt: int
    payload: Array


class Instruction(NamedTuple):
    """An order from the coordinator to an actor."""

    number: int
    what: str
    argument: Any


class Stop(NamedTuple):
    """The word of the coordinator to an actor that the run is over."""


class StoppedError(Exception):
    """The run is over."""


class WaitError(Exception):
    """An actor waits for a sender in vain; raised where the run is over while it still waits."""

    def __init__(self, sender: int, tag: Tag) -> None:
        super().__init__(sender, tag)
        self.sender, self.tag = sender, tag


Carry = Callable[[Message], None]  # takes a message to the mailbox of its receiver


class Mailbox:
    """The messages that have arrived for an actor and were not yet taken; read by the actor's thread alone.

    It waits until the coordinator has enough: who waits by a clock of his own gives up while the coordinator, or the
    whole machine, merely stands still.
    """

    def __init__(self, slot: SimpleQueue[Any]) -> None:
        self.slot = slot
        self.orders: deque[Instruction] = deque()
        self._last = 0  # the number of the last order
        self._messages: dict[tuple[str, int, Tag, int], Message] = {}

    def order(self) -> Instruction:
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

    def _sort(self, item: Message | Instruction | Stop) -> None:
        if isinstance(item, Stop):
            raise StoppedError
        if isinstance(item, Instruction):
            if item.number > self._last:  # an order may be repeated
                self._last = item.number
                self.orders.append(item)
        elif item.kind != ACKNOWLEDGEMENT:  # these have been counted where they were sent
            self._messages[item.kind, item.sender, item.tag, item.attempt] = item


# ---- messages under faults -------------------------------------------------------------------------------------------
@dataclass
class Tally:
    """The messages of an actor, the numbers in them and those lost, by purpose and receiver or the coordinator."""

    sent: dict[tuple[str, int], list[int]] = field(default_factory=dict[tuple[str, int], list[int]])
    away: int = 0  # rounds

    def record(self, purpose: str, receiver: int, numbers: int, lost: bool = False) -> None:
        entry = self.sent.setdefault((purpose, receiver), [0, 0, 0])
        entry[:] = entry[0] + 1, entry[1] + numbers, entry[2] + lost


@dataclass
class Received:
    """The messages of one sender that an actor knows: the newest message of each exchange of a round, by its number."""

    newest: dict[int, Message] = field(default_factory=dict[int, Message])
    late: list[tuple[Tag, Message]] = field(default_factory=list[tuple[Tag, Message]])  # with when they arrive

    def accept(self, message: Message) -> None:
        """Sequence numbers tell duplicates and old messages, which change nothing."""
        known = self.newest.get(message.tag[1])
        if known is None or message.tag > known.tag:
            self.newest[message.tag[1]] = message

    def arrive(self, now: Tag) -> None:
        """Accept what is late until now."""
        due = [message for at, message in self.late if at <= now]
        self.late = [entry for entry in self.late if entry[0] > now]
        for message in due:
            self.accept(message)


class Endpoint:
    """The endpoint of one actor: what it sends and receives."""

    def __init__(self, node: int, mailbox: Mailbox, carry: Carry, fault_plan: FaultPlan | None) -> None:
        self.node, self.mailbox, self.carry, self.fault_plan = node, mailbox, carry, fault_plan
        self.tally = Tally()
        self.received: dict[int, Received] = {}

    @property
    def lossy(self) -> bool:
        return self.fault_plan is not None and self.fault_plan.faults.lossy

    def forget(self) -> None:
        """Lose the mailbox and all that is known of neighbours."""
        self.mailbox.forget()
        self.received.clear()

    # ---- messages that may be lost ---------------------------------------------------------------------------------
    def send(self, receiver: int, tag: Tag, payload: Array, purpose: str) -> None:
        if self.fault_plan is not None and self.fault_plan.faults.resend:
            self.send_reliably(VALUES, receiver, tag, payload, purpose)
        else:
            lost = self.fault_plan is not None and self.fault_plan.lost(self.node, receiver, tag)
            self._send(Message(VALUES, self.node, receiver, tag, 0, payload), purpose, lost)

    def receive(self, sender: int, tag: Tag, purpose: str) -> tuple[Array | None, bool]:
        """The newest message of the sender in this exchange, None where there was none; and whether it is of this
        round."""
        fault_plan = self.fault_plan
        if fault_plan is None:
            return self.mailbox.take(VALUES, sender, tag).payload, True
        received = self.received.setdefault(sender, Received())
        if not fault_plan.away(sender, tag[0]):
            if fault_plan.faults.resend:
                received.accept(self.receive_reliably(VALUES, sender, tag, purpose))
            else:
                self._accept_with_faults(received, self.mailbox.take(VALUES, sender, tag))
        received.arrive(tag)
        newest = received.newest.get(tag[1])
        return (None, False) if newest is None else (newest.payload, newest.tag == tag)

    def _accept_with_faults(self, received: Received, message: Message) -> None:
        assert self.fault_plan is not None
        delivery = self.fault_plan.delivery(message.sender, message.receiver, message.tag)
        if delivery.lost:
            return
        (at, call), late = message.tag, delivery.late + delivery.overtaken
        if late:
            received.late.append(((at + late, call), message))
        else:
            received.accept(message)
        if delivery.twice:
            received.late.append(((at + late + 1, call), message))

    # ---- messages that arrive ----------------------------------------------------------------------------------------
    def send_reliably(self, kind: str, receiver: int, tag: Tag, payload: Array, purpose: str) -> None:
        """Every copy that it takes until one is acknowledged. Nobody acknowledges while away: one copy, given up."""
        fault_plan = self.fault_plan
        arrivals = [fault_plan is None]
        if fault_plan is not None and not fault_plan.away(receiver, tag[0]):
            arrivals = fault_plan.attempts(self.node, receiver, tag)
        for attempt, arrives in enumerate(arrivals):
            self._send(Message(kind, self.node, receiver, tag, attempt, payload), purpose, not arrives)

    def receive_reliably(self, kind: str, sender: int, tag: Tag, purpose: str) -> Message:
        """The first copy that arrives; each that arrives is acknowledged."""
        fault_plan = self.fault_plan
        if fault_plan is None:
            return self.mailbox.take(kind, sender, tag)
        first: Message | None = None
        arrivals = fault_plan.attempts(sender, self.node, tag)
        for attempt, arrives in enumerate(arrivals):
            copy = self.mailbox.take(kind, sender, tag, attempt)
            if arrives:
                first = first or copy
                if tag[0] and (fault_plan.faults.resend or fault_plan.faults.drop > 0.0):
                    lost = attempt < len(arrivals) - 1  # else nothing would have been sent again
                    self._send(Message(ACKNOWLEDGEMENT, self.node, sender, tag, attempt, np.zeros(1)), purpose, lost)
        assert first is not None
        return first

    def _send(self, message: Message, purpose: str, lost: bool) -> None:
        payload = np.array(message.payload)  # nothing is shared with the receiver
        self.carry(message._replace(payload=payload))
        self.tally.record(purpose, message.receiver, payload.size, lost)
