"""What an actor sends and hears: the tally of its messages, and the faults that befall those it is sent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...terms import Array
from .faults import Tag, Weather
from .mail import ACKNOWLEDGEMENT, DOWN, VALUES, Carry, Mailbox, Message, SilenceError


class WaitError(Exception):
    """Who waits for whom; raised where a message does not come."""

    def __init__(self, sender: int, tag: Tag) -> None:
        super().__init__(sender, tag)
        self.sender, self.tag = sender, tag


@dataclass
class Tally:
    """What an actor has sent: messages and numbers by purpose and receiver, and beyond the graph."""

    sent: dict[tuple[str, int], list[int]] = field(default_factory=dict[tuple[str, int], list[int]])
    beyond: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    away: int = 0  # rounds

    def book(self, purpose: str, receiver: int, numbers: int) -> None:
        entry = self.sent.setdefault((purpose, receiver), [0, 0])
        entry[0] += 1
        entry[1] += numbers

    def book_beyond(self, purpose: str, numbers: int) -> None:
        entry = self.beyond.setdefault(purpose, [0, 0])
        entry[0] += 1
        entry[1] += numbers


@dataclass
class Heard:
    """What an actor knows of one sender: the newest message of each exchange of a round, by its number."""

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


class Post:
    """The post of one actor."""

    def __init__(self, node: int, mailbox: Mailbox, carry: Carry, weather: Weather | None) -> None:
        self.node, self.mailbox, self.carry, self.weather = node, mailbox, carry, weather
        self.tally = Tally()
        self.heard: dict[int, Heard] = {}

    @property
    def lossy(self) -> bool:
        return self.weather is not None and self.weather.faults.lossy

    def forget(self) -> None:
        """Lose the mailbox and all that is known of neighbours."""
        self.mailbox.forget()
        self.heard.clear()

    # ---- messages that may be lost ---------------------------------------------------------------------------------
    def send(self, receiver: int, tag: Tag, payload: Array, purpose: str) -> None:
        if self.weather is not None and self.weather.faults.resend:
            self.send_surely(VALUES, receiver, tag, payload, purpose)
        else:
            self._send(VALUES, receiver, tag, 0, payload, purpose)

    def hear(self, sender: int, tag: Tag, purpose: str) -> tuple[Array | None, bool]:
        """The newest message of the sender in this exchange, None where there was none; and whether it is of this
        round."""
        weather = self.weather
        if weather is None:
            return self._take(VALUES, sender, tag).payload, True
        heard = self.heard.setdefault(sender, Heard())
        if not weather.away(sender, tag[0]):
            if weather.faults.resend:
                heard.accept(self._take_surely(VALUES, sender, tag, purpose))
            else:
                self._weathered(heard, self._take(VALUES, sender, tag))
        heard.arrive(tag)
        newest = heard.newest.get(tag[1])
        return (None, False) if newest is None else (newest.payload, newest.tag == tag)

    def _weathered(self, heard: Heard, message: Message) -> None:
        assert self.weather is not None
        fate = self.weather.fate(message.sender, message.receiver, message.tag)
        if fate.lost:
            return
        (at, call), late = message.tag, fate.late + fate.overtaken
        if late:
            heard.late.append(((at + late, call), message))
        else:
            heard.accept(message)
        if fate.twice:
            heard.late.append(((at + late + 1, call), message))

    # ---- messages that arrive ----------------------------------------------------------------------------------------
    def send_surely(self, kind: str, receiver: int, tag: Tag, payload: Array, purpose: str) -> None:
        """Every copy that it takes until one is acknowledged. Nobody acknowledges while away: one copy, given up."""
        weather = self.weather
        copies = 1
        if weather is not None and not weather.away(receiver, tag[0]):
            copies = len(weather.attempts(self.node, receiver, tag))
        for attempt in range(copies):
            self._send(kind, receiver, tag, attempt, payload, purpose)

    def hear_surely(self, kind: str, sender: int, tag: Tag, purpose: str) -> Array:
        if self.weather is None:
            return self._take(kind, sender, tag).payload
        return self._take_surely(kind, sender, tag, purpose).payload

    def hear_beyond(self, coordinator: int, tag: Tag) -> Array:
        """The total of all components."""
        return self._take(DOWN, coordinator, tag).payload

    def _take_surely(self, kind: str, sender: int, tag: Tag, purpose: str) -> Message:
        """The first copy that arrives; each that arrives is acknowledged."""
        assert self.weather is not None
        first: Message | None = None
        for attempt, arrives in enumerate(self.weather.attempts(sender, self.node, tag)):
            copy = self._take(kind, sender, tag, attempt)
            if arrives:
                first = first or copy
                if tag[0] and (self.weather.faults.resend or self.weather.faults.drop > 0.0):
                    self._send(ACKNOWLEDGEMENT, sender, tag, attempt, np.zeros(1), purpose)
        assert first is not None
        return first

    # ---- carrying ----------------------------------------------------------------------------------------------------
    def _send(self, kind: str, receiver: int, tag: Tag, attempt: int, payload: Array, purpose: str) -> None:
        payload = np.array(payload)  # nothing is shared with the receiver
        self.carry(Message(kind, self.node, receiver, tag, attempt, payload))
        self.tally.book(purpose, receiver, payload.size)

    def _take(self, kind: str, sender: int, tag: Tag, attempt: int = 0) -> Message:
        try:
            return self.mailbox.take(kind, sender, tag, attempt)
        except SilenceError:
            raise WaitError(sender, tag) from None
