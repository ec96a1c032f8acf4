"""How long the work of this moment may take, how far it is, and how it is broken off: compiled code looks at no clock
of ours, and Python's Ctrl-C waits until it returns."""

from __future__ import annotations

import atexit
import contextvars
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from .escaping import visible

T = TypeVar("T")

GRACE = 0.25  # seconds that a piece of work is given at least, so that small ones are done even when time is up
PATIENCE = 0.05  # seconds between two looks at the clock and at Ctrl-C
FAREWELL = 20.0  # seconds that the interpreter waits at its end for compiled work that was broken off

_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)


class OutOfTimeError(Exception):
    """The time allowed is used up; never seen by a user, who is given a status."""


class _Stopped(BaseException):
    """Raised within work whose result nobody waits for any more."""


@contextmanager
def within(seconds: float | None) -> Generator[None]:
    """A context in which `left` counts down from so many seconds; None leaves what holds already, and less wins."""
    before = _deadline.get()
    mine = None if seconds is None else time.monotonic() + seconds
    known = [each for each in (before, mine) if each is not None]
    token = _deadline.set(min(known) if known else None)
    try:
        yield
    finally:
        _deadline.reset(token)


def left() -> float | None:
    """Seconds until the deadline, negative beyond it; None where there is none."""
    deadline = _deadline.get()
    return None if deadline is None else deadline - time.monotonic()


def look() -> None:
    """Raises `OutOfTimeError` where the deadline has passed; for loops within one round of a method."""
    seconds = left()
    if seconds is not None and seconds <= 0.0:
        raise OutOfTimeError


@contextmanager
def progress_bar(shown: bool | None, **how: Any) -> Generator[Callable[..., None]]:
    """A bar on stderr where ``shown``; None: where that is a terminal. ``how`` are arguments of tqdm.

    What it gives is called with the number of steps that are done, and with a text to show beside the bar.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda steps, text="": None
        return
    from tqdm import tqdm

    with tqdm(leave=False, **how) as bar:

        def tell(steps: int, text: str = "") -> None:
            bar.set_postfix_str(visible(text), refresh="delay" not in how)  # a refresh would not wait
            bar.update(steps)

        yield tell


def carry_out(work: Callable[[], T]) -> T:
    """``work()``, in a thread of its own where this is the main one, so that the clock and Ctrl-C are heard meanwhile.

    The compiled solvers let go of Python's lock while they work. What is broken off is told to stop as soon as it is
    back in Python; nobody waits for it.

    Raises
    ------
    OutOfTimeError
        Where the deadline passes first (at the earliest after `GRACE`).
    KeyboardInterrupt
        At once, where Ctrl-C is pressed.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # Ctrl-C goes to the main thread alone
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised again, where it is waited for
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, daemon=True, name="graphreg work")
    thread.start()
    try:
        _await(done)
    except BaseException:
        stop(thread)
        raise
    if errors:
        raise errors[0]
    return results[0]


def _await(done: threading.Event) -> None:
    seconds = left()
    until = None if seconds is None else time.monotonic() + max(seconds, GRACE)
    while not done.wait(PATIENCE):
        if until is not None and time.monotonic() > until and not done.is_set():
            raise OutOfTimeError


def stop(thread: threading.Thread) -> None:
    """Ask a thread to stop at its next step in Python."""
    if thread.ident is not None and thread.is_alive():
        if not _stopped:
            atexit.register(_wait)
        _stopped.append(thread)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped))


_stopped: list[threading.Thread] = []


def _wait() -> None:
    """An interpreter that ends under compiled code aborts."""
    until = time.monotonic() + FAREWELL
    for thread in _stopped:
        thread.join(max(until - time.monotonic(), 0.0))
