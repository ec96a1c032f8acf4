"""Workers of parts: they carry out the orders of a coordinator, in threads, and whoever orders may be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from ...methods import AbstractIteration, Start
from ...network import Ledger, LocalView
from ...terms import Array
from .engine import PartEngine
from .part import Part, PartAnswer, answer_of
from .wire import BrokenOffError, Switchboard, ThreadWire, Wire

LEAVE = 1.0  # seconds that threads have to end
Order = tuple[int, str, Any]


class Posts:
    """``work(k, what, argument)`` is called in thread k, in the order of the orders, each of which reaches all threads
    or, where a Ctrl-C comes before the first, none."""

    def __init__(self, count: int, work: Callable[[int, str, Any], Any], broken: Callable[[], None]) -> None:
        self._number, self._work, self._broken = 0, work, broken
        self._failed = False
        self._orders: list[SimpleQueue[Order | None]] = [SimpleQueue() for _ in range(count)]
        self._replies: list[SimpleQueue[tuple[int, Any, BaseException | None]]] = [SimpleQueue() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._run, args=(k,), name=f"part {k}", daemon=True) for k in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, what: str, arguments: Sequence[Any]) -> list[Any]:
        """The replies of all, each to its argument; raises what one of them raised first, and `BrokenOffError` from
        then on."""
        if self._failed:
            raise BrokenOffError
        self._number += 1
        try:
            self._give(what, arguments)
        except BaseException:  # a Ctrl-C: nobody who has the order is left waiting for one who has not
            self._give(what, arguments)
            raise
        return [self._reply(replies) for replies in self._replies]

    def close(self) -> None:
        for orders in self._orders:
            orders.put(None)
        self._broken()
        for thread in self._threads:
            thread.join(LEAVE)

    def _give(self, what: str, arguments: Sequence[Any]) -> None:
        for orders, argument in zip(self._orders, arguments, strict=True):
            orders.put((self._number, what, argument))

    def _reply(self, replies: SimpleQueue[tuple[int, Any, BaseException | None]]) -> Any:
        """The reply to the last order; those to earlier ones are of no interest any more."""
        while True:
            number, value, error = replies.get()
            if error is not None:
                self._failed = True
                raise self._first(error)
            if number == self._number:
                return value

    def _first(self, error: BaseException) -> BaseException:
        """The error that broke off a run: the first that is not of a part which only heard of another's failure."""
        errors = [error]
        for replies in self._replies:
            while not replies.empty():
                found = replies.get()[2]
                errors += [] if found is None else [found]
        return next((each for each in errors if not isinstance(each, BrokenOffError)), errors[0])

    def _run(self, k: int) -> None:
        last = 0
        while (order := self._orders[k].get()) is not None:
            number, what, argument = order
            if number <= last:
                continue
            last = number
            try:
                self._replies[k].put((number, self._work(k, what, argument), None))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the coordinator raises it
                self._replies[k].put((number, None, error))
                self._broken()
                return


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

    def answer(self, at: int) -> PartAnswer:
        return answer_of(self.method, self.states[at], self.part)

    def sent(self, at: int) -> Ledger:
        """The ledger of what the part's nodes have sent so far."""
        return self.engine.ledger


class ThreadCrew:
    """The workers of all parts as threads, which end with `close`."""

    def __init__(self, parts: Sequence[Part], owner: Array, method: AbstractIteration, seed: int) -> None:
        self._parts, self._owner, self._run = parts, owner, (method, seed)
        self._board = Switchboard(len(parts))
        self._workers: dict[int, Worker] = {}
        self._posts = Posts(len(parts), self._carry_out, self._board.break_off)

    def ask(self, what: str, arguments: Sequence[Any]) -> list[Any]:
        return self._posts.ask(what, arguments)

    def close(self) -> None:
        self._posts.close()

    def _carry_out(self, k: int, what: str, argument: Any) -> Any:
        if k not in self._workers:
            part = self._parts[k]
            self._workers[k] = Worker(part, self._owner[part.whole.ids], *self._run, ThreadWire(self._board, k))
        return self._workers[k].carry_out(what, argument)
