"""An actor: one node, with its data, its state and its mailbox. It acts on the orders of the coordinator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...methods import AbstractIteration, Start, ToleratesLostMessages
from ...network import LocalView
from ...running import Packed
from ..parts import Answer, answer_of
from .endpoint import Endpoint, Tally
from .engine import ActorEngine, Hand
from .mailbox import Order
from .parts import NodePart


@dataclass(frozen=True)
class ActorAnswer(Answer):
    """And what the actor has sent."""

    tally: Tally


@dataclass(frozen=True)
class SavedState:
    """What a crash leaves of an actor: its packed state, and its last answer."""

    state: Packed
    answer: ActorAnswer


class Actor:
    """Runs a method at one node. After a round the state before it is still known, to answer for either."""

    def __init__(self, part: NodePart, method: AbstractIteration, seed: int, endpoint: Endpoint, hand: Hand) -> None:
        self.part, self.method, self.seed, self.endpoint = part, method, seed, endpoint
        stale = not isinstance(method, ToleratesLostMessages)
        self.engine = ActorEngine(part, endpoint, hand, stale)
        self.states: dict[int, Any] = {}
        self.disk: SavedState | None = None  # while the node is away

    def carry_out(self, order: Order) -> Any:
        """Over- and underflow in a step are for the driver to judge."""
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(self, order.what)(order.argument)

    # ---- orders ------------------------------------------------------------------------------------------------------
    def init(self, start: Start | None) -> None:
        self.engine.begin(0)
        self.states = {0: self.method.init(self._view(), start)}

    def step(self, at: int) -> None:
        """Round ``at``, from the state after the round before."""
        fault_plan = self.endpoint.fault_plan
        if fault_plan is not None and fault_plan.away(self.part.node, at):
            self._crash(at)
            return
        self.endpoint.mailbox.forget_before((at, 0))
        if self.disk is not None:
            self._restart(at, self.disk)
        self.engine.begin(at)
        before = self.states[at - 1]
        self.states = {at - 1: before, at: self._stepped(before)}

    def answer(self, at: int) -> ActorAnswer:
        if self.disk is not None:
            return replace(self.disk.answer, tally=self.endpoint.tally)
        answer = answer_of(self.method, self.states[at], self.part)
        return ActorAnswer(answer.w, answer.flows, answer.prices, answer.gathered, self.endpoint.tally)

    # ---- how ---------------------------------------------------------------------------------------------------------
    def _view(self) -> LocalView:
        return LocalView(self.part.form, self.engine, self.seed, self.part.whole)

    def _stepped(self, state: Any) -> Any:
        if self.endpoint.lossy and isinstance(self.method, ToleratesLostMessages):
            return self.method.step_with_lost_messages(state, self.engine.swap)
        return self.method.step(state)

    # ---- crashes -----------------------------------------------------------------------------------------------------
    def _crash(self, at: int) -> None:
        """Away in this round: view, caches, mailbox and what was heard are gone, the state is on disk."""
        self.endpoint.tally.away += 1
        if self.disk is not None:
            return
        self.disk = SavedState(Packed.of(self.states[at - 1], "the state"), self.answer(at - 1))
        self.states = {}
        self.endpoint.forget()

    def _restart(self, at: int, disk: SavedState) -> None:
        self.states = {at - 1: replace(disk.state.value(self._view()), round=at - 1)}
        self.disk = None
