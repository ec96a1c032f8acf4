"""Deadlines of the work of this moment, and its progress."""

from __future__ import annotations

import contextvars
import ctypes
import gc
import inspect
import math
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from types import FrameType
from typing import Any, ClassVar, ParamSpec, TypeVar

from .. import checks
from ..errors import BudgetError
from .escaping import visible

P = ParamSpec("P")
T = TypeVar("T")

PAUSE = 0.01  # seconds between looks at a thread that imports
STEPS = 100  # within which Python raises what another thread has asked it to raise
BEAT = 1.0  # seconds after which a bar is shown anew
SHORTEST = 0.1  # of several last words
LAST = 0.2  # seconds for the last word on what is there when the time is up, or Ctrl-C is pressed

_deadline: contextvars.ContextVar[float] = contextvars.ContextVar("deadline", default=math.inf)
# The ends of the last words that were said since this deadline was set.
_words: contextvars.ContextVar[list[float] | None] = contextvars.ContextVar("words", default=None)
_uncounted = [0.0]  # seconds of this process
_told: contextvars.ContextVar[bool] = contextvars.ContextVar("told", default=False)


class OutOfTimeError(Exception):
    """The time allowed is used up; never seen by a user, who is given a status."""


@contextmanager
def within(seconds: float | None) -> Generator[None]:
    """A context in which `left` counts down from so many seconds; None leaves what holds already, and less wins."""
    until, before = _from_now(seconds), _deadline.get()
    words = [] if until < before or _words.get() is None else _words.get()
    with setting(_deadline, min(before, until)), setting(_words, words):
        yield


@contextmanager
def afresh(seconds: float | None = LAST) -> Generator[None]:
    """A context with so many seconds from now (None: without end), whatever was used up: for the last word on what is
    there. Each gets half of what the one before it got since the deadline was set, and shares it with compiled work
    that was broken off and is still at it; a tenth of a second is the least."""
    words = _words.get()
    words = [] if seconds is None or words is None else words
    shares = 2 ** len(words) * (1 + sum(thread.is_alive() for thread in stopped))
    words.append(_from_now(None if seconds is None else max(seconds / shares, min(seconds, SHORTEST))))
    with setting(_deadline, words[-1]), alarm():
        yield


stopped: list[threading.Thread] = []  # whose results nobody waits for


@contextmanager
def at_least(seconds: float = LAST) -> Generator[None]:
    """A context with what time is left, and so many seconds at least; a last word gets no more than it has."""
    rest, words = left(), _words.get()
    said = words and words[-1] == _deadline.get()
    with alarm() if said or rest is None or rest >= seconds else afresh(seconds):
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


def _from_now(seconds: float | None) -> float:
    return math.inf if seconds is None else _now() + seconds


@contextmanager
def setting(variable: contextvars.ContextVar[T], value: T) -> Generator[None]:
    """A context in which a variable has a value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def left() -> float | None:
    """Seconds until the deadline, negative beyond it; None where there is none."""
    end = _deadline.get()
    return None if end == math.inf else end - _now()


def check_deadline() -> None:
    """Raises `OutOfTimeError` where the deadline has passed; for loops within one round of a method."""
    seconds = left()
    if seconds is not None and seconds <= 0.0:
        raise OutOfTimeError


# Held while a thread is started, so that no alarm rings then: Python knows the new thread by the number of the one that
# starts it for a moment, and would raise the error in that, which the other waits for for ever.
starting = threading.Lock()


def raise_in(thread: ctypes.c_ulong, error: type[BaseException], imports: int = 0) -> None:
    """Raise an error at the next step of a thread in Python, but in no import beyond those that it is in anyway: what
    is half imported stays so."""
    while _imports(_frame_of(thread.value)) > imports:
        time.sleep(PAUSE)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(error))


_looking = threading.Lock()  # so that what one thread turns on again, no other has turned off


def _frame_of(thread: int | None) -> FrameType | None:
    """Where a thread is; without the garbage collector, under which Python 3.11 waits for itself here, for ever
    (gh-106883)."""
    with _looking:
        collects = gc.isenabled()
        try:
            gc.disable()
            return sys._current_frames().get(thread or 0)  # pyright: ignore[reportPrivateUsage]  (no other way)
        finally:
            if collects:
                gc.enable()


def _imports(frame: FrameType | None) -> int:
    """How deep in imports a frame is."""
    files = [each.f_code.co_filename for each, _ in traceback.walk_stack(frame)] if frame else []
    return files.count("<frozen importlib._bootstrap>")


class _AlarmError(OutOfTimeError):
    """The error of an alarm, which rings again where it is lost."""

    lost: ClassVar[bool] = False


@dataclass
class _Heard:
    """What Python calls with an error that it takes nowhere, as in ``__del__`` or while it collects garbage: of an
    alarm it is noted, and any other goes where it went before."""

    before: Callable[[Any], object]

    def __call__(self, ignored: Any) -> None:
        """Note, or pass on, what `sys.unraisablehook` is given."""
        if issubclass(ignored.exc_type, _AlarmError):
            ignored.exc_type.lost = True
        else:
            self.before(ignored)


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
    imports = _imports(inspect.currentframe())  # of a module that solves something when it is imported

    class RungError(_AlarmError):
        """The error of this alarm, and of no other."""

    def ring() -> None:
        nonlocal rung
        while not over:
            with starting, ringing:
                if not over:
                    rung, RungError.lost = True, False
                    if not isinstance(sys.unraisablehook, _Heard):
                        sys.unraisablehook = _Heard(sys.unraisablehook)
                    raise_in(thread, RungError, imports)
            while not (over or RungError.lost):
                time.sleep(PAUSE)

    timer = threading.Timer(max(seconds, 0.0), ring)
    timer.daemon = True
    with starting:
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


AGAIN = "the same call begins anew, and fewer strengths or folds, or a larger gap, take less time"


@contextmanager
def cut_short(what: str = "", enough: Callable[[], object] = lambda: True) -> Generator[list[str]]:
    """A context that Ctrl-C and the deadline end; the list that it gives has the word for which of them did.

    Where what there is by then is not ``enough``, Ctrl-C goes on, and says so.

    Raises
    ------
    BudgetError
        Where the deadline passes before there is enough of ``what``.
    """
    said = list[str]()
    try:
        yield said
    except KeyboardInterrupt as error:
        if not enough():
            error.args = error.args or (f"{what}: nothing was finished; {AGAIN}",)
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

        ended = threading.Event()

        def beat() -> None:  # a step may take long by itself: the clock beside it goes on
            wait = how.get("delay", 0.0)
            while not ended.wait(wait):
                with suppress(OSError, ValueError), bar.get_lock():  # tqdm keeps its lock where writing fails
                    bar.refresh(nolock=True)
                bar.delay, wait = 0.0, BEAT  # what was shown is taken away at the end, which tqdm else leaves

        threading.Thread(target=beat, daemon=True).start()
        try:
            yield tell
        finally:
            ended.set()


@contextmanager
def stages(what: str, shown: bool | None = None, first: str = "") -> Generator[Callable[[str], None]]:
    """A line on stderr, where a bar would be ``shown``, that says after a second what a call is at. What it gives is
    called with the name of each stage when it begins, but for the ``first``. One line at a time: the calls that a stage
    makes show none unasked (None)."""
    shown = False if shown is None and _told.get() else shown
    how: dict[str, Any] = {"desc": what, "bar_format": "{desc} [{elapsed}{postfix}]", "delay": 1.0}
    with setting(_told, True), progress_bar(shown, **how) as tell:
        tell(1, first)
        yield lambda stage: tell(1, stage)


def _bar(**how: Any) -> Any:
    """The bar that fits the place: in a notebook a widget, or a line of text where there are no widgets."""
    if not in_notebook():
        from tqdm import tqdm

        with suppress(OSError, ValueError, AttributeError):  # no terminal
            if 0 in os.get_terminal_size(sys.stderr.fileno()):  # it tells no size, and tqdm would show nothing
                how = {"ncols": 80, "nrows": 24, **how}
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
