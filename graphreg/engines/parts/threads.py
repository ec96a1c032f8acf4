"""Parts of one process, a thread each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...methods import AbstractIteration
from ...terms import Array
from .part import Part
from .posts import Posts
from .wire import Switchboard, ThreadWire
from .worker import Worker


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
