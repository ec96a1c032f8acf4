"""Threads for work that falls into parts: passes over many nodes or edges.

Who has such work cuts it by the sizes of the problem alone, so that each part writes where no other does, and takes
what they give in their order. So no bit depends on how many threads there are.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from .clock import setting, starting

T = TypeVar("T")
Part = TypeVar("Part")


class _Team(NamedTuple):
    count: int
    others: Any = None  # an executor of all threads but the one that waits for them


_team: contextvars.ContextVar[_Team | None] = contextvars.ContextVar("team", default=None)


@contextmanager
def threads(count: int | None) -> Generator[None]:
    """A context with so many threads; None leaves those that are there, and at first has as many as the variable
    ``GRAPHREG_THREADS`` says, else one. None of them is left when it is over, so that processes may fork."""
    if count is None and _team.get() is not None:
        yield
        return
    count = _asked() if count is None else count
    if count == 1:
        with setting(_team, _Team(1)):
            yield
        return
    from concurrent.futures import ThreadPoolExecutor  # here, since one thread needs none

    with ThreadPoolExecutor(count - 1, "graphreg part") as others, setting(_team, _Team(count, others)):
        yield


def _asked() -> int:
    with suppress(ValueError):
        return max(int(os.environ.get("GRAPHREG_THREADS", "1")), 1)
    return 1


def dealt(work: Callable[[Part], T], parts: Iterable[Part]) -> list[T]:
    """``work`` of each of the parts, in their order, by as many threads as there are. Numpy and compiled code, which
    let go of Python's lock, then run side by side."""
    parts, team = list(parts), _team.get()
    if team is None or team.count == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    found: list[Any] = [None] * len(parts)
    numbers = iter(range(len(parts)))  # of which each is given to one thread

    def run() -> None:
        for k in numbers:
            found[k] = work(parts[k])

    others: list[Any] = []
    try:
        with starting:
            for _ in range(min(team.count, len(parts)) - 1):
                context = contextvars.copy_context()
                context.run(_team.set, _Team(1))
                others.append(team.others.submit(context.run, run))
        run()
    finally:  # also where the time is up: nobody writes any more to what others may have then
        for _ in numbers:
            pass
        for other in others:
            other.exception()
    for other in others:
        other.result()
    return found
