"""The ledger: what was sent, by purpose, by edge and by level."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.display import Html, Shown, table, title
from ..checks import checked, one_of, whole
from ..terms import Array
from .arcs import Arcs

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import pandas as pd

PURPOSES = ("method", "adaptation", "certificate", "inference")
NUMBER = 8  # bytes of a float64
BEYOND = "beyond the graph"  # sums of a problem of several components, which their roots add up


@dataclass
class Account:
    """The count of what was sent for one purpose. Kept so that the usual case, a message along every arc, costs one
    addition."""

    exchanges: int = checked(whole(0), 0)  # along every arc that couples coordinates, of these
    sums: int = checked(whole(0), 0)  # over all nodes: up and down a spanning forest
    summed: int = checked(whole(0), 0)  # numbers in all of them
    messages: Array | None = None  # of other exchanges, per arc
    numbers: Array | None = None
    lost: Array | int = 0  # of all messages, per arc: those that never arrived
    away: Array | None = None  # rounds in which each node was away, (n,)
    # messages beyond the graph, and numbers in them, of actors that count these themselves
    beyond: int = checked(whole(0), 0)
    beyond_numbers: int = checked(whole(0), 0)
    returns: int = checked(whole(0), 0)  # how often the owners of rows sent flows to all ends


@dataclass(eq=False)
class Ledger(Shown):
    """Messages and bytes: what the method sends, what its adaptation sends, what certificates and inference cost.

    The method's are the messages of its rounds. Adaptation is all by which nodes set a method up or change its
    settings: degrees that neighbours tell each other once, bounds of steps, sums for a balance or a restart.

    It counts what is really sent: a message along an arc holds the coordinates that its edges couple, or as many
    numbers as were given; a sum over all nodes is a message up and one down each edge of a spanning forest (and to and
    from the first root of several). ``by_edge()`` and ``by_level()`` split it up; ``by_node()`` has what is lost.
    """

    arcs: Arcs | None = None
    labels: Sequence[Hashable] = ()
    rounds: int = 0
    accounts: dict[str, Account] = field(default_factory=lambda: {purpose: Account() for purpose in PURPOSES})

    # ---- recording ---------------------------------------------------------------------------------------------------
    def exchange(
        self, purpose: str, columns: int | Array | None = None, along: Array | None = None, times: int = 1
    ) -> None:
        """A message along every arc, or along those of a mask; of the coupled coordinates, or of so many numbers
        (one for all arcs, or one per arc)."""
        account, arcs = self.accounts[purpose], self.arcs
        if arcs is None:
            return
        if along is None and columns is None:
            account.exchanges += times
            return
        sent = np.full(len(arcs.source), times) if along is None else times * along
        if account.messages is None or account.numbers is None:
            account.messages, account.numbers = np.zeros((2, len(sent)), dtype=np.int64)
        account.messages = account.messages + sent
        account.numbers = account.numbers + sent * (arcs.numbers if columns is None else columns)

    def swap(self, values: Iterable[Array], toward: Iterable[Array], along: Array) -> None:
        """Messages of the method along the arcs of a mask, of the values (2m, k) of the ends of each edge block, which
        go ``toward`` the other ends along these arcs."""
        numbers = np.zeros(len(along), dtype=np.int64)
        for each, arcs in zip(values, toward, strict=True):
            np.add.at(numbers, arcs, each.shape[1])
        self.exchange("method", numbers, along)

    def send_back(self, purpose: str = "method") -> None:
        """Messages from the owners of rows to their ends, of the flows."""
        self.accounts[purpose].returns += 1

    def sum(self, purpose: str, numbers: int, times: int = 1) -> None:
        """Sums of so many numbers over all nodes."""
        self.accounts[purpose].sums += times
        self.accounts[purpose].summed += times * numbers

    def away(self, nodes: Array) -> None:
        """A round in which the nodes of a mask (n,) are away."""
        account = self.accounts["method"]
        account.away = nodes.astype(np.int64) if account.away is None else account.away + nodes

    def copy(self) -> Ledger:
        """A ledger on which more can be recorded without a change of this one."""
        return replace(self, accounts={purpose: replace(account) for purpose, account in self.accounts.items()})

    # ---- reading ---------------------------------------------------------------------------------------------------
    @property
    def messages(self) -> dict[str, int]:
        """The messages by purpose."""
        return {purpose: self._all(purpose)[0] for purpose in PURPOSES}

    @property
    def bytes(self) -> dict[str, int]:
        """The bytes by purpose."""
        return {purpose: self._all(purpose)[1] for purpose in PURPOSES}

    @property
    def total_messages(self) -> int:
        return sum(self.messages.values())

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    def sent(self) -> tuple[int, int]:
        """Messages and bytes of the method and its adaptation: what a run costs that nobody certifies."""
        method, adaptation = self._all("method"), self._all("adaptation")
        return method[0] + adaptation[0], method[1] + adaptation[1]

    def work(self, rounds: int) -> str:
        """Rounds and messages in words; nothing where there were no rounds, and no messages where none were counted."""
        if not rounds:
            return ""
        messages = f"{self.total_messages:,} messages, " if self.rounds else ""
        return f"{rounds:,} round{'s' * (rounds > 1)}, {messages}"

    def by_edge(self) -> pd.DataFrame:
        """Messages and bytes by sender, receiver and purpose: one row where anything was sent."""
        from ..base.tables import LabelledTable

        columns = ["sender", "receiver", "level", "purpose", "messages", "bytes"]
        rows: list[tuple[Any, ...]] = []
        for purpose in PURPOSES:
            if self.arcs is None:
                continue
            messages, size = self._arcs(purpose)
            for k in np.flatnonzero(messages):
                ends = self.labels[self.arcs.source[k]], self.labels[self.arcs.target[k]]
                level = self.arcs.links[self.arcs.block[k % self.arcs.pairs]]
                rows.append((*ends, level, purpose, int(messages[k]), int(size[k])))
            if self._beyond(purpose)[0]:
                rows.append((None, None, BEYOND, purpose, *self._beyond(purpose)))
        return LabelledTable(rows, columns=columns)

    def by_node(self, purpose: str | None = None) -> pd.DataFrame:
        """Messages that each node sent and received, those sent to it that were lost, and the rounds in which it was
        away; of one ``purpose`` ("method", "adaptation", "certificate", "inference"), or of all."""
        import pandas as pd

        from ..base.tables import LabelledTable

        (one_of(*PURPOSES) | None)(purpose, "purpose")
        arcs = self.arcs
        n = 0 if arcs is None else arcs.n
        sent, received, lost, away = (np.zeros(n, dtype=np.int64) for _ in range(4))
        if arcs is not None:
            for each in PURPOSES if purpose is None else [purpose]:
                np.add.at(sent, arcs.source, messages := self._arcs(each)[0])
                np.add.at(lost, arcs.target, missing := self.accounts[each].lost)
                np.add.at(received, arcs.target, messages - missing)
        counted = self.accounts["method"].away
        columns = {"sent": sent, "received": received, "lost": lost, "away": away if counted is None else counted}
        labels = pd.Index(list(self.labels), dtype=object, name="node", tupleize_cols=False)
        return LabelledTable(columns, index=labels)

    def by_level(self) -> pd.DataFrame:
        """Messages and bytes by level (graph, within clusters, between clusters, to the server) and purpose."""
        table = self.by_edge().groupby(["level", "purpose"], sort=False)
        return table.agg({"messages": "sum", "bytes": "sum"})

    def _arcs(self, purpose: str) -> tuple[Array, Array]:
        """Messages and bytes along each arc."""
        account, arcs = self.accounts[purpose], self.arcs
        if arcs is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        messages, numbers = np.zeros((2, len(arcs.source)), dtype=np.int64)
        for times, each in ((account.exchanges, arcs.numbers), (account.returns, arcs.returned)):
            if each is not None:
                messages, numbers = messages + times * (each > 0), numbers + times * each.astype(np.int64)
        if account.messages is not None and account.numbers is not None:
            messages, numbers = messages + account.messages, numbers + account.numbers
        if account.sums:
            messages, numbers = messages + account.sums * arcs.forest, numbers + account.summed * arcs.forest
        return messages, NUMBER * numbers

    def _all(self, purpose: str) -> tuple[int, int]:
        """Messages and bytes along all arcs and beyond the graph."""
        account, arcs = self.accounts[purpose], self.arcs
        if arcs is None:
            return 0, 0
        ways = 2 * (arcs.n - 1)  # of a sum: along the arcs of a spanning forest, and between the roots of its trees
        messages, numbers = account.sums * ways + account.beyond, account.summed * ways + account.beyond_numbers
        for times, (each, size) in zip((account.exchanges, account.returns), arcs.sizes, strict=True):
            messages, numbers = messages + times * each, numbers + times * size
        if account.messages is not None and account.numbers is not None:
            messages, numbers = messages + int(account.messages.sum()), numbers + int(account.numbers.sum())
        return messages, NUMBER * numbers

    def _beyond(self, purpose: str) -> tuple[int, int]:
        """Messages and bytes between the roots of several components."""
        account = self.accounts[purpose]
        if self.arcs is None or self.arcs.components == 1:
            return 0, 0
        ways = 2 * (self.arcs.components - 1)
        return ways * account.sums + account.beyond, NUMBER * (ways * account.summed + account.beyond_numbers)

    # ---- as a value ------------------------------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        along = all(np.array_equal(self._arcs(purpose), other._arcs(purpose)) for purpose in PURPOSES)
        return self.rounds == other.rounds and self.messages == other.messages and along

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (it changes while a run goes on)

    def __repr__(self) -> str:
        return f"Ledger(rounds={self.rounds}, messages={self.messages}, bytes={self.bytes})"

    def _html(self) -> Iterable[Html]:
        messages, size = self.messages, self.bytes
        yield title(f"Ledger: {self.rounds:,} rounds, {self.total_messages:,} messages")
        yield table(("purpose", "messages", "bytes"), [(p, f"{messages[p]:,}", f"{size[p]:,}") for p in PURPOSES])

    def __str__(self) -> str:
        messages, size = self.messages, self.bytes
        rows = [f"{self.rounds} rounds"]
        rows += [f"  {p:12s}{messages[p]:>14,} messages {size[p]:>18,} bytes" for p in PURPOSES]
        lost = sum(int(np.sum(account.lost)) for account in self.accounts.values())
        rows += [f"  of these {lost:,} messages were lost"] * (lost > 0)
        return "\n".join(rows)
