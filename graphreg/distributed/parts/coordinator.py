"""A method as the driver runs it where others carry out its rounds, and all parts of a run as such a method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration, Point, Start
from ...network import PURPOSES, Account, Arcs, Ledger, LocalView, arcs_of
from .part import Part, PartAnswer, gathered_of, point_of
from .wire import BrokenOffError


@dataclass(frozen=True)
class CoordinatorState:
    """The state of all actors or parts after a round; they hold it."""

    round: int


class AbstractCoordinator(AbstractIteration):
    """A ``method`` as the driver runs it where ``who`` carry out its rounds: its points are gathered."""

    who: ClassVar[str]
    unheard: ClassVar[tuple[type[BaseException], ...]]  # raised where they cannot answer any more
    method: AbstractIteration
    form: Form
    parts: Sequence[Part]

    @abstractmethod
    def _answers(self, state: CoordinatorState) -> Sequence[PartAnswer]:
        """The answers of all of them after this round."""

    @property
    def name(self) -> str:
        return self.method.name

    def centres(self) -> bool:
        return self.method.centres()

    def missing(self, form: Form) -> tuple[str, ...]:
        return self.method.missing(form)

    def point(self, state: CoordinatorState) -> Point:
        return point_of(self.form, self.parts, self._answers(state))

    def gathered(self, state: CoordinatorState) -> dict[str, Any]:
        """One row per node; what is no array is that of the first of them. Nothing where they cannot answer."""
        try:
            return gathered_of(self.form, self.parts, self._answers(state))
        except self.unheard:
            return {}

    def held(self, state: Any) -> dict[str, Any]:
        raise MethodError(
            f"what {self.who} hold beside their points stays with them; observe 'w', 'flows' or 'prices', or leave "
            "engine out"
        )


def refuse_judges(method: AbstractIteration) -> None:
    """A method that judges its own answer needs all data in one place."""
    if type(method).judge is not AbstractIteration.judge:
        raise MethodError(
            f"{method.name} has no actors or parts: its answer is judged where all data are in one place; leave "
            "engine out"
        )


class Crew(Protocol):
    """The workers of all parts."""

    def ask(self, what: str, arguments: Sequence[Any]) -> list[Any]:
        """The replies of all workers to an order, each with its argument; raises what one of them raised."""
        ...


class PartCoordinator(AbstractCoordinator):
    """A method, carried out on parts of the graph. Points are gathered to be certified."""

    who = "parts"
    unheard = (BrokenOffError,)

    def __init__(self, method: AbstractIteration, form: Form, parts: Sequence[Part], crew: Crew) -> None:
        self.method, self.form, self.parts, self.crew = method, form, parts, crew
        self.ledger: Ledger | None = None
        self.before: Ledger | None = None
        self.known: tuple[int, list[PartAnswer]] | None = None  # the last answers, and of which round

    # ---- what the driver asks for ------------------------------------------------------------------------------------
    def init(self, view: LocalView, start: Start | None) -> CoordinatorState:
        self.ledger, self.before = view.engine.ledger, view.engine.ledger.copy()
        self.crew.ask("init", [part.start(start) for part in self.parts])
        return CoordinatorState(0)

    def step(self, state: CoordinatorState) -> CoordinatorState:
        return self.steps(state, 1)[0]

    def steps(self, state: CoordinatorState, count: int) -> tuple[CoordinatorState, int]:
        done = self._all("steps", (state.round, count))[0]
        return CoordinatorState(state.round + done), done

    # ---- how ---------------------------------------------------------------------------------------------------------
    def _all(self, what: str, argument: Any) -> list[Any]:
        return self.crew.ask(what, [argument] * len(self.parts))

    def _answers(self, state: CoordinatorState) -> list[PartAnswer]:
        if self.known is None or self.known[0] != state.round:
            self.known = state.round, self._all("answer", state.round)
            self._update_ledger(self._all("sent", state.round))
        return self.known[1]

    def _update_ledger(self, ledgers: Sequence[Ledger]) -> None:
        """Account for what the nodes of all parts have sent so far, beside what was sent before."""
        if self.ledger is not None and self.before is not None and self.ledger.arcs is not None:
            for purpose in PURPOSES[:2]:
                accounts = [each.accounts[purpose] for each in ledgers]
                before = self.before.accounts[purpose]
                self.ledger.accounts[purpose] = joint_account(self.ledger.arcs, self.parts, accounts, before)


def joint_account(arcs: Arcs, parts: Sequence[Part], accounts: Sequence[Account], before: Account) -> Account:
    """The account of one purpose: what the nodes of all parts sent, and what was sent before. Exchanges along every
    arc and sums are the same in all parts."""
    first = accounts[0]
    out = Account(before.exchanges + first.exchanges, before.sums + first.sums, before.summed + first.summed)
    out.returns = before.returns + max(each.returns for each in accounts)  # not counted where no rows are
    if any(each.messages is not None for each in accounts):
        out.messages, out.numbers = np.zeros((2, len(arcs.source)), dtype=np.int64)
        key = arcs.source * np.int64(arcs.n) + arcs.target
        order = np.argsort(key)
        for part, account in zip(parts, accounts, strict=True):
            local, ids = arcs_of(part.form), part.whole.ids
            sends = np.flatnonzero(part.whole.own[local.source])
            known = ids[local.source[sends]] * np.int64(arcs.n) + ids[local.target[sends]]
            place = order[np.searchsorted(key, known, sorter=order)]
            if account.messages is not None and account.numbers is not None:
                out.messages[place], out.numbers[place] = account.messages[sends], account.numbers[sends]
    if any(each.away is not None for each in accounts):
        out.away = np.zeros(arcs.n, dtype=np.int64)
        for part, account in zip(parts, accounts, strict=True):
            if account.away is not None:
                out.away[part.nodes] = account.away[part.whole.own]
    return out
