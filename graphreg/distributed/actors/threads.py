"""Actors of one process, a thread each."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from ...base.gate import stop
from ...methods import AbstractIteration
from ...terms import Array
from .actor import Actor, NodePart
from .faults import FaultPlan, Tag
from .mailbox import Carry, Endpoint, Instruction, Mailbox, Message, Stop, StoppedError

LEAVE = 1.0  # seconds that threads have to end


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run, which the coordinator and all actors are told."""

    method: AbstractIteration
    seed: int
    fault_plan: FaultPlan | None
    patience: float  # seconds


@dataclass(frozen=True)
class Reply:
    """The reply of an actor to an order; ``error`` where it failed."""

    node: int
    number: int
    value: Any = None
    error: BaseException | None = None
    stopped: bool = False


@dataclass(frozen=True)
class RootSum:
    """The sum of a component, from its root to the coordinator."""

    node: int
    tag: Tag
    total: Array


@dataclass(frozen=True)
class Warned:
    """A warning in another process."""

    category: type[Warning]
    text: str


class Threads:
    """Hosts actors; ``slots`` are their mailboxes, ``replies`` what they say to the coordinator."""

    def __init__(self, parts: Sequence[NodePart], settings: RunSettings, carry: Carry | None = None) -> None:
        self.slots: dict[int, SimpleQueue[Any]] = {part.node: SimpleQueue() for part in parts}
        self.replies: SimpleQueue[Any] = SimpleQueue()  # of Reply and RootSum
        deliver = carry or self.deliver
        self._threads = [
            threading.Thread(
                target=self._run_actor,
                args=(part, settings, deliver),
                name=f"actor of the node {part.label!r}",
                daemon=True,
            )
            for part in parts
        ]
        for thread in self._threads:
            thread.start()

    def order(self, number: int, what: str, arguments: Mapping[int, Any]) -> None:
        """The same order to all, each with its argument."""
        for node, slot in self.slots.items():
            slot.put(Instruction(number, what, arguments[node]))

    def put(self, node: int, item: Any) -> None:
        self.slots[node].put(item)

    def deliver(self, message: Message) -> None:
        self.slots[message.receiver].put(message)

    def stop(self) -> None:
        for slot in self.slots.values():
            slot.put(Stop())

    def close(self) -> None:
        """End all threads: told to, then made to as soon as they are back in Python."""
        self.stop()
        for end in (None, stop):
            until = time.monotonic() + LEAVE
            for thread in self._threads:
                if end is not None and thread.is_alive():
                    end(thread)
            for thread in self._threads:
                thread.join(max(until - time.monotonic(), 0.0))

    def _run_actor(self, part: NodePart, settings: RunSettings, carry: Carry) -> None:
        mailbox = Mailbox(self.slots[part.node])
        endpoint = Endpoint(part.node, mailbox, carry, settings.fault_plan)
        number = 0
        try:
            actor = Actor(part, settings.method, settings.seed, endpoint, self._hand)
            while True:
                order = mailbox.order()
                number = order.number
                self.replies.put(Reply(part.node, number, actor.carry_out(order)))
        except StoppedError:
            self.replies.put(Reply(part.node, number, stopped=True))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the coordinator raises it
            self.replies.put(Reply(part.node, number, error=error))

    def _hand(self, node: int, tag: Tag, total: Array) -> None:
        self.replies.put(RootSum(node, tag, total))
