"""Deadlines of the work of this moment, its progress, and its end before time: compiled code looks at no clock
of ours, and Python's Ctrl-C waits until it returns."""

from __future__ import annotations

import atexit
import contextvars
import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from .. import checks
from ..errors import BudgetError
from .escaping import visible

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 0.25  # seconds that a piece of work is given at least, so that small ones are done even when time is up
PATIENCE = 0.05  # seconds between two looks at the clock and at Ctrl-C
LOOK = 0.1  # seconds between two looks of a worker whether its parent is there
STEPS = 100  # within which Python raises what another thread has asked it to raise
FAREWELL = 0.5  # seconds that the interpreter waits at its end for compiled work that was broken off
LAST = 1.0  # seconds for the last word on what is there when the time is up
SHORT = 0.4  # the same when Ctrl-C is pressed

_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)
_uncounted = [0.0]  # seconds of this process


class OutOfTimeError(Exception):
    """The time allowed is used up; never seen by a user, who is given a status."""


class _Stopped(BaseException):
    """Raised within work whose result nobody waits for any more."""


@contextmanager
def within(seconds: float | None) -> Generator[None]:
    """A context in which `left` counts down from so many seconds; None leaves what holds already, and less wins."""
    before = _deadline.get()
    mine = None if seconds is None else _now() + seconds
    known = [each for each in (before, mine) if each is not None]
    with _until(min(known) if known else None):
        yield


@contextmanager
def afresh(seconds: float | None = LAST) -> Generator[None]:
    """A context with so many seconds from now (None: without end), whatever was used up: for the last word on what is
    there."""
    with _until(None if seconds is None else _now() + seconds), alarm():
        yield


def uncounted(work: Callable[[], Any]) -> None:
    """Do ``work`` that is no part of any time allowed: an import, which the first run of a process pays for all
    others."""
    began = time.monotonic()
    try:
        work()
    finally:
        _uncounted[0] += time.monotonic() - began


def _now() -> float:
    return time.monotonic() - _uncounted[0]


@contextmanager
def _until(end: float | None) -> Generator[None]:
    token = _deadline.set(end)
    try:
        yield
    finally:
        _deadline.reset(token)


def left() -> float | None:
    """Seconds until the deadline, negative beyond it; None where there is none."""
    end = _deadline.get()
    return None if end is None else end - _now()


@contextmanager
def until(deadline: float | None) -> Generator[None]:
    """`within` what is left until another process's `deadline`."""
    with within(None if deadline is None else deadline - time.monotonic()):
        yield


def deadline() -> float | None:
    """The time at which the deadline falls, for `until`; None where it never is."""
    end = _deadline.get()
    return None if end is None else end + _uncounted[0]


def check_deadline() -> None:
    """Raises `OutOfTimeError` where the deadline has passed; for loops within one round of a method."""
    seconds = left()
    if seconds is not None and seconds <= 0.0:
        raise OutOfTimeError


@contextmanager
def alarm() -> Generator[None]:
    """A context in which `OutOfTimeError` is raised when the deadline passes, wherever in Python this thread is then:
    for work that does not `check_deadline`. Not around functions of the user's, which it would strike, too."""
    seconds = left()
    if seconds is None or seconds > threading.TIMEOUT_MAX:
        yield
        return
    thread, ringing = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    over = rung = caught = False

    class RungError(OutOfTimeError):
        """The error of this alarm, and of no other."""

    def ring() -> None:
        nonlocal rung
        with _starting, ringing:
            if not over:
                rung = True
                _raise_in(thread, RungError)

    timer = threading.Timer(max(seconds, 0.0), ring)
    timer.daemon = True
    with _starting:
        timer.start()
    try:
        yield
    except RungError:
        caught = True
        raise
    finally:
        try:
            timer.cancel()
            with ringing:
                over = True
            # What has rung is raised here at the latest. It must not be taken back: Python 3.11 would look for it at
            # every step from then on, and a profiler would hang.
            for _ in range(STEPS if rung and not caught else 0):
                time.sleep(0.0)
        except RungError:
            pass


@contextmanager
def needed(what: str) -> Generator[None]:
    """A context for work without which there is nothing to give.

    Raises
    ------
    BudgetError
        Where the deadline passes first.
    """
    try:
        with alarm():
            yield
    except OutOfTimeError:
        raise nothing_yet(what) from None


@contextmanager
def cut_short(what: str = "", enough: Callable[[], object] = lambda: True) -> Generator[list[str]]:
    """A context that Ctrl-C and the deadline end; the list that it gives has the word for which of them did.

    Where what there is by then is not ``enough``, Ctrl-C goes on.

    Raises
    ------
    BudgetError
        Where the deadline passes before there is enough of ``what``.
    """
    said = list[str]()
    try:
        yield said
    except KeyboardInterrupt:
        if not enough():
            raise
        said.append("interrupted")
    except OutOfTimeError:
        if not enough():
            raise nothing_yet(what) from None
        said.append("out of time")


def nothing_yet(what: str) -> BudgetError:
    """The error where the time is up before there is anything to give."""
    return BudgetError(f"{what}: the time was used up before there was anything to give; allow more seconds")


def in_time(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose argument ``seconds`` binds; there is nothing to give before its end."""

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        seconds: Any = given.get("seconds")
        (checks.seconds | None)(seconds, "seconds")
        with within(seconds), needed(function.__name__):
            return function(*args, **given)

    return call


@contextmanager
def progress_bar(shown: bool | None, **how: Any) -> Generator[Callable[..., None]]:
    """A bar on stderr where ``shown``, in notebooks a widget where there are widgets; None: where stderr is a terminal,
    and in notebooks after a second. ``how`` are arguments of tqdm.

    What it gives is called with the number of steps that are done, and with a text to show beside the bar, or a
    function that gives it.
    """
    if not (sys.stderr.isatty() or in_notebook() if shown is None else shown):
        yield lambda steps, text="": None
        return
    if shown is None and in_notebook():
        how = {"delay": 1.0, **how}  # a bar that comes and goes leaves an empty line in the page
    with _bar(leave=False, **how) as bar:

        def tell(steps: int, text: str | Callable[[], str] = "") -> None:
            said = text() if callable(text) else text
            bar.set_postfix_str(visible(said), refresh="delay" not in how)  # a refresh would not wait
            bar.update(steps)

        yield tell


def _bar(**how: Any) -> Any:
    """The bar that fits the place: in a notebook a widget, or a line of text where there are no widgets."""
    if not in_notebook():
        from tqdm import tqdm

        return tqdm(**how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm warns where there are no widgets
        auto: Any = import_module("tqdm.auto")
    widgets = auto.notebook_tqdm is not auto.std_tqdm
    return auto.tqdm(**how) if widgets else auto.tqdm(file=LastLine(), **how)


def in_notebook() -> bool:
    """True where this is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


class LastLine:
    """A file of which the last line is shown; a blank one leaves nothing in the page.

    What goes to stderr instead stays in notebooks that are stored, every state of it.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self.handle: Any = None
        self.shown = ""

    def write(self, text: str) -> int:
        line = text.strip()
        if line != self.shown:
            self.shown, content = line, {"text/plain": line}
            if self.handle is None:
                self.handle = import_module("IPython.display").display(content, raw=True, display_id=True)
            else:
                self.handle.update(content, raw=True)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


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
    done, awaited = threading.Event(), _Awaited()
    context = contextvars.copy_context()
    context.run(_awaited.set, awaited)

    def run() -> None:
        # Held here, and so for ever where the work never comes back: the interpreter, at its end, would drop it in the
        # main thread, where scipy's SuperLU then raises an error, whence a line on stderr and the exit status 120.
        own = ctypes.cast(_own(), ctypes.py_object).value
        try:
            results.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised again, where it is waited for
            errors.append(error)
        finally:
            del own
            done.set()

    thread = threading.Thread(target=run, daemon=True, name="graphreg work")
    with _starting:
        thread.start()
    try:
        _await(done)
    except BaseException:
        stop(thread, awaited)
        raise
    if errors:
        raise errors[0]
    return results[0]


# What compiled code keeps for a thread: Python's dictionary of the thread that asks.
_own = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_GetDict", ctypes.pythonapi))


def _await(done: threading.Event) -> None:
    seconds = left()
    until = None if seconds is None else time.monotonic() + max(seconds, GRACE)
    while not done.wait(PATIENCE):
        if (handler := signal.getsignal(signal.SIGINT)) is not None:
            signal.signal(signal.SIGINT, handler)  # again: SCS takes Ctrl-C for itself
        if until is not None and time.monotonic() > until and not done.is_set():
            raise OutOfTimeError


@dataclass
class _Awaited:
    """A wait for the result of some work: whether it is still on, and whether the work asks for that itself."""

    still: bool = True
    asks: bool = False


_awaited: contextvars.ContextVar[_Awaited | None] = contextvars.ContextVar("awaited", default=None)


def awaited() -> Callable[[], bool]:
    """A function that tells whether the result of this work is still waited for: for a solver that can ask. From
    here on the work is not struck in the midst of Python."""
    known = _awaited.get()
    if known is None:
        return lambda: True
    known.asks = True
    return lambda: known.still


@cache
def end_with(parent: int) -> None:
    """Let this process end from now on with the one that has started it, whatever it is at."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="graphreg watch").start()


def stop(thread: threading.Thread, awaited: _Awaited | None = None) -> None:
    """Ask a thread to stop at its next step in Python, or when it asks."""
    if awaited is not None:
        awaited.still = False
    if thread.ident is not None and thread.is_alive():
        if not _stopped:
            atexit.register(_wait)
        _stopped.append(thread)
        if awaited is not None and awaited.asks:
            return
        _raise_in(ctypes.c_ulong(thread.ident), _Stopped)


# Held while a thread is started, so that no alarm rings then: Python knows the new thread by the number of the one that
# starts it for a moment, and would raise the error in that, which the other waits for for ever.
_starting = threading.Lock()


def _raise_in(thread: ctypes.c_ulong, error: type[BaseException]) -> None:
    """Raise an error at the next step of a thread in Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(error))


_stopped: list[threading.Thread] = []


def _wait() -> None:
    """An interpreter that ends under compiled code aborts when that comes back: after a moment it is put to sleep, so
    that nothing is lost of what ends with the interpreter, its exit status included."""
    until = time.monotonic() + FAREWELL
    for thread in _stopped:
        thread.join(max(until - time.monotonic(), 0.0))
    if hasattr(signal, "pthread_kill"):  # on Windows threads end with their process
        _put_to_sleep([thread.ident or 0 for thread in _stopped if thread.is_alive()])


def _put_to_sleep(threads: list[int]) -> None:
    """Threads that are in compiled code and stay there: a signal comes to each, whose handler is C's ``pause``."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    for thread in threads:
        libc.signal(signal.SIGUSR2, ctypes.cast(libc.pause, ctypes.c_void_p))
        with suppress(ProcessLookupError):
            signal.pthread_kill(thread, signal.SIGUSR2)
