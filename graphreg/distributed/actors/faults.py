"""Faults that are drawn for a run: messages lost, late, doubled or overtaken, and nodes that crash."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from ...checks import Check, ChecksNames, check_fields, checked, inside, is_whole, per, whole
from ...errors import MethodError
from ...running import ONE_ENGINE

Tag = tuple[int, int]  # the sequence number of a message: the round, and which exchange of that round

DROP, DELAY, DUPLICATE, REORDER, CRASH, ACKNOWLEDGE = range(6)  # what is drawn


class Delivery(NamedTuple):
    """The fate of a message."""

    lost: bool = False
    late: int = 0  # rounds
    twice: bool = False
    overtaken: bool = False  # by the next message of its sender


def _are_rounds(given: object) -> bool:
    return isinstance(given, (tuple, list)) and all(is_whole(t) and t >= 1 for t in given)


OFTEN, ALWAYS = (inside(interval, f"a probability in {interval}") for interval in ("[0, 1)", "[0, 1]"))
LEAST = 1e-3  # the share of messages in time below which nothing is heard for hundreds of rounds
CRASHES = per(
    "node",
    Check("a tuple of rounds from 1 on, as in (3, 8)", _are_rounds),
    mapping="a mapping from labels of nodes to rounds",
)


@dataclass(frozen=True)
class Faults(ChecksNames):
    """The faults between nodes, and at them, in the rounds of a run (what precedes the first round is reliable).

    Every event is drawn independently and follows from the seed of the run, whatever the engine's processes.

    Parameters
    ----------
    drop : float
        The probability that a message is lost, in [0, 1).
    delay : int
        The most rounds that a message may be late: 0 to ``delay``, each equally likely.
    duplicate, reorder : float
        The probability that a message arrives a second time, or after the next one of its sender; in [0, 1].
    crash : float
        The probability per round that a node of the data crashes, in [0, 1), also while it is away. It is away for
        ``down`` rounds, from that one on, and hears nothing; it forgets all that it had received, and goes on from its
        last state. So it is away in a share of 1 - (1 - crash)^down of all rounds (`away`):
        crash = 1 - (1 - share)^(1/down). Latent nodes, such as a server, never crash by chance.
    crashes : mapping of label to rounds
        Crashes that are planned, also of latent nodes: ``{"server": (3, 10)}``.
    down : int
        For how many rounds a crashed node is away, at least 1.
    resend : bool
        Whether messages are acknowledged, and sent again until an acknowledgement arrives. Then every message between
        nodes that are up arrives within its exchange, and the ledger holds the copies and the acknowledgements (of one
        number each).

    A method that tolerates loss (`graphreg.methods.tolerance.ToleratesLostMessages`) knows which messages have arrived
    in their round; for others the last value that was received stands in for one that has not. Sums over all nodes are
    sent again until they arrive, whatever ``resend`` says, and are refused where nodes may crash.

    Examples
    --------
    >>> lossy = gr.Actors(faults=gr.Faults(drop=0.1))
    >>> problem.solve(gr.PrimalDual(balance=1.0), engine=lossy, seed=0).status
    'certified'
    >>> round(gr.Faults(crash=0.1, down=2).away, 2)
    0.19
    """

    drop: float = checked(OFTEN, 0.0)
    delay: int = checked(whole(0, "a whole number of rounds"), 0)
    duplicate: float = checked(ALWAYS, 0.0)
    reorder: float = checked(ALWAYS, 0.0)
    crash: float = checked(OFTEN, 0.0)
    crashes: Mapping[Hashable, tuple[int, ...]] = checked(CRASHES, default_factory=dict[Hashable, tuple[int, ...]])
    down: int = checked(whole(1, "a whole number of rounds"), 3)
    resend: bool = False
    elsewhere = dict.fromkeys(("malicious", "liars"), ONE_ENGINE)

    def __post_init__(self) -> None:
        check_fields(self, MethodError)
        arrive = (1.0 - self.drop) * (1.0 - self.reorder) / (self.delay + 1)
        if arrive < LEAST and not self.resend:
            raise MethodError(
                f"of all messages only a share of {arrive:.2g} would arrive in their round, "
                "(1 - drop)(1 - reorder)/(delay + 1), which no method can work with; lower them, or take resend=True"
            )

    @property
    def away(self) -> float:
        """The share of rounds in which a node is away, on average, but for planned crashes: 1 - (1 - crash)^down."""
        return 1.0 - (1.0 - self.crash) ** self.down

    @property
    def crashing(self) -> bool:
        """True where nodes may crash."""
        return self.crash > 0.0 or any(self.crashes.values())

    @property
    def lossy(self) -> bool:
        """True where a message may be missing in its exchange."""
        disturbed = self.drop > 0.0 or self.delay > 0 or self.reorder > 0.0
        return self.crashing or (disturbed and not self.resend)


@dataclass(frozen=True)
class FaultPlan:
    """The faults of one run. Everything is a function of the seed, the arc and the sequence number."""

    faults: Faults
    seed: int
    planned: Mapping[int, tuple[int, ...]]  # crashes by number of the node
    observed: float = math.inf  # how many nodes crash by chance: not the latent ones, which come after these

    def delivery(self, sender: int, receiver: int, tag: Tag) -> Delivery:
        f = self.faults
        if tag[0] == 0:
            return Delivery()
        late = int((f.delay + 1) * self._draw(DELAY, sender, receiver, *tag)) if f.delay else 0
        lost, twice, overtaken = (
            probability > 0.0 and self._draw(what, sender, receiver, *tag) < probability
            for what, probability in ((DROP, f.drop), (DUPLICATE, f.duplicate), (REORDER, f.reorder))
        )
        return Delivery(lost, late, twice, overtaken)

    def lost(self, sender: int, receiver: int, tag: Tag) -> bool:
        """True where a message never arrives: lost, or forgotten in a crash of its receiver before it is read."""
        found = self.delivery(sender, receiver, tag)
        until = tag[0] + found.late + found.overtaken
        return found.lost or any(self.away(receiver, t) for t in range(tag[0], until + 1))

    def attempts(self, sender: int, receiver: int, tag: Tag) -> list[bool]:
        """The attempts at a message that is sent until it is acknowledged: whether each copy arrives. The last one
        does, and so does its acknowledgement."""
        out: list[bool] = []
        while True:
            k, drop = len(out), self.faults.drop if tag[0] else 0.0
            out.append(drop == 0.0 or self._draw(DROP, sender, receiver, *tag, k) >= drop)
            if out[-1] and (drop == 0.0 or self._draw(ACKNOWLEDGE, sender, receiver, *tag, k) >= drop):
                return out

    def away(self, node: int, at: int) -> bool:
        """True where a node is away in a round."""
        f = self.faults
        since = range(max(1, at - f.down + 1), at + 1)
        if any(t in since for t in self.planned.get(node, ())):
            return True
        return f.crash > 0.0 and node < self.observed and any(self._draw(CRASH, node, t) < f.crash for t in since)

    def _draw(self, *what: int) -> float:
        """A number in [0, 1)."""
        key = blake2b(struct.pack(f"<Q{len(what)}q", self.seed % 2**64, *what), digest_size=8).digest()
        return int.from_bytes(key, "little") / 2**64
