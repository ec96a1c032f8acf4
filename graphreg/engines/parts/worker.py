"""The worker of a part: it carries out what the coordinator orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...methods import AbstractIteration, Start
from ...network import Ledger, LocalView
from ...terms import Array
from .answers import Answer, answer_of
from .engine import PartEngine
from .part import Part
from .wire import Wire


class Worker:
    """Runs a method on a part. After some rounds the state before them is still known, to answer for either."""

    def __init__(self, part: Part, owner: Array, method: AbstractIteration, seed: int, wire: Wire) -> None:
        self.part, self.method = part, method
        self.engine = PartEngine(part, owner, wire)
        self.view = LocalView(part.form, self.engine, seed, part.whole)
        self.states: dict[int, Any] = {}

    def carry_out(self, what: str, argument: Any) -> Any:
        """Over- and underflow in a step are for the driver to judge."""
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(self, what)(argument)

    # ---- orders ------------------------------------------------------------------------------------------------------
    def init(self, start: Start | None) -> None:
        self.states = {0: self.method.init(self.view, start)}

    def steps(self, asked: tuple[int, int]) -> int:
        """Rounds from the state after one of them on, so many at most, and how many they were: on all parts as many."""
        at, count = asked
        before = self.states[at]
        after, done = self.method.steps(before, count)
        self.states = {at: before, at + done: after}
        return done

    def answer(self, at: int) -> Answer:
        return answer_of(self.method, self.states[at], self.part)

    def sent(self, at: int) -> Ledger:
        """What the part's nodes have sent so far."""
        del at
        return self.engine.ledger
