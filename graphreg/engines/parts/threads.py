"""Parts of one process, a thread each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from ...methods import AbstractIteration
from ...terms import Array
from .part import Part
from .wire import BrokenOffError, Switchboard, ThreadWire
from .worker import Worker


class ThreadCrew:
    """The workers of all parts as threads, which end with `close`."""

    def __init__(self, parts: Sequence[Part], owner: Array, method: AbstractIteration, seed: int) -> None:
        self._board = Switchboard(len(parts))
        self._orders = [SimpleQueue[tuple[str, Any] | None]() for _ in parts]
        self._replies: list[SimpleQueue[tuple[Any, BaseException | None]]] = [SimpleQueue() for _ in parts]
        self._pending = 0  # orders that a Ctrl-C kept from being heard to the end
        self._threads = [
            threading.Thread(target=self._work, args=(k, part, owner, method, seed), name=f"part {k}", daemon=True)
            for k, part in enumerate(parts)
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, what: str, arguments: Sequence[Any]) -> list[Any]:
        for orders, argument in zip(self._orders, arguments, strict=True):
            orders.put((what, argument))
        return self._heard()

    def close(self) -> None:
        for orders in self._orders:
            orders.put(None)
        self._board.break_off()
        for thread in self._threads:
            thread.join(1.0)

    def _heard(self) -> list[Any]:
        heard = [replies.get() for replies in self._replies]
        errors = [error for _, error in heard if error is not None]
        if errors:
            raise next((each for each in errors if not isinstance(each, BrokenOffError)), errors[0])
        return [value for value, _ in heard]

    def _work(self, k: int, part: Part, owner: Array, method: AbstractIteration, seed: int) -> None:
        worker: Worker | None = None
        while (order := self._orders[k].get()) is not None:
            try:
                if worker is None:
                    worker = Worker(part, owner[part.whole.ids], method, seed, ThreadWire(self._board, k))
                self._replies[k].put((worker.carry_out(*order), None))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the coordinator raises it
                self._board.break_off()
                self._replies[k].put((None, error))
                return
