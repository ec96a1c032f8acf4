"""Ctrl-C within a claim. A solve that is broken off returns the best point so far, which is no result of the claim."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def heeded() -> Generator[None]:
    """A context that ends in KeyboardInterrupt where Ctrl-C was pressed in it, whoever caught it there."""
    pressed, before = list[int](), signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    try:
        signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread, to which alone Ctrl-C goes
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            raise KeyboardInterrupt
