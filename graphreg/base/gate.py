"""The gate to all that leaves Python for long: compiled solvers, factors, linear programmes.

Nothing there looks at a clock of ours, Python's Ctrl-C waits until it returns, and want of memory may end the process.
So what it takes is weighed before it begins (`refuse`); it is done in a thread, for which nobody waits when the time is
up or Ctrl-C is pressed (`carry_out`), and where it is long by a process that is killed then (`aside`).
"""

from __future__ import annotations

import atexit
import contextvars
import ctypes
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import checks
from .clock import OutOfTimeError, left, raise_in, setting, starting, stopped, within

T = TypeVar("T")

GB = 1e9
LESS = "take a smaller problem, more memory, or in place of factors a method of rounds such as PrimalDual()"
LITTLE = 5e7  # bytes that any machine has: it need not be asked
USABLE = 0.8  # of the memory of the machine
CGROUP = Path("/sys/fs/cgroup/memory.max")
MAPPED = Path("/proc/self/statm")
QUICK = 1e8  # multiplications, some tenth of a second: neither Ctrl-C nor the clock is heard meanwhile
GRACE = 0.15  # seconds that a piece of work is given at least, so that small ones are done even when time is up
PATIENCE = 0.05  # seconds between two looks at the clock and at Ctrl-C
BEGINNING = 0.3  # seconds that a process takes to begin: for less none is started
LOOK = 0.1  # seconds between two looks of a worker whether its parent is there
FAREWELL = 0.5  # seconds that the interpreter waits at its end for compiled work that was broken off

_allowed: contextvars.ContextVar[float] = contextvars.ContextVar("allowed", default=np.inf)


# ---- memory ----------------------------------------------------------------------------------------------------------
@contextmanager
def allowing(memory: float | None, seconds: float | None = None) -> Generator[None]:
    """A context in which no more than so many bytes may be taken, and so many seconds; None leaves what holds already,
    and less wins."""
    if memory is not None:
        checks.positive(memory, "memory")
    with within(seconds), setting(_allowed, min(_allowed.get(), np.inf if memory is None else memory)):
        yield


def usable_memory() -> float:
    """The number of bytes that may be taken: of the machine, of the group of processes, by ``ulimit -v``, and by
    ``memory=``; inf where nobody tells."""
    try:
        found = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # no such call on Windows
        return _allowed.get()
    with suppress(OSError, ValueError):  # no group, or one without a limit ("max")
        found = min(found, float(CGROUP.read_text(encoding="ascii")))
    with suppress(ImportError):  # on Windows
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        own, _ = getrlimit(RLIMIT_AS)
        found = found if own == RLIM_INFINITY else min(found, float(own))
    return min(USABLE * found if found > 0.0 else np.inf, _allowed.get())


def too_much(numbers: float, what: str, about: str = "") -> str:
    """The reason for which so many numbers are too many, in words; empty where there is room for them."""
    size = 8.0 * numbers
    if size <= min(LITTLE, _allowed.get()):
        return ""
    limit = usable_memory()
    return "" if size <= limit else f"{what} would take {about}{size / GB:.3g} GB, and {limit / GB:.3g} GB may be used"


def refuse(numbers: float, what: str, about: str = "") -> None:
    """Raise `MemoryError` where so many numbers are too many, before they are computed."""
    if said := too_much(numbers, what, about):
        raise MemoryError(f"{said}; {LESS}")


# ---- time ------------------------------------------------------------------------------------------------------------
def carry_out(work: Callable[[], T], after: Callable[[], object] = lambda: None) -> T:
    """``work()``, in a thread of its own, so that the clock and Ctrl-C are heard meanwhile.

    The compiled solvers let go of Python's lock while they work. What is broken off is told to stop as soon as it is
    back in Python; nobody waits for it. Nor for what its thread does ``after`` it.

    Raises
    ------
    OutOfTimeError
        Where the deadline passes first (at the earliest after `GRACE`).
    KeyboardInterrupt
        At once, where Ctrl-C is pressed.
    """
    main = threading.current_thread() is threading.main_thread()
    if _inside.get() or not (main or left()):  # Ctrl-C goes to the main thread alone
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done, context = threading.Event(), contextvars.copy_context()
    context.run(_inside.set, True)

    def run() -> None:
        # Held here, and so for ever where the work never comes back: the interpreter, at its end, would drop it in the
        # main thread, where scipy's SuperLU then raises an error, whence a line on stderr and the exit status 120.
        own = ctypes.cast(_own(), ctypes.py_object).value
        try:
            results.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised again, where it is waited for
            errors.append(error)
        finally:
            done.set()
        after()
        del own

    thread = threading.Thread(target=run, daemon=True, name="graphreg work")
    with starting:
        thread.start()
    try:
        _await(done)
    except BaseException:
        stop(thread)
        raise
    if errors:
        raise errors[0]
    return results[0]


class Factor:
    """The factors of a sparse matrix by SuperLU, which are carried out. Scipy never frees what SuperLU allocated in
    another thread than the one that drops it: so the thread that made them keeps them while they are needed.

    Raises
    ------
    RuntimeError
        Where the matrix is singular.
    """

    def __init__(self, A: Any, **options: Any) -> None:
        from scipy.sparse.linalg import splu  # here, since not every process factorises

        made: list[Any] = []
        self._made, unneeded = made, threading.Event()
        weakref.finalize(self, unneeded.set).atexit = False

        def drop() -> None:
            unneeded.wait()
            made.clear()

        carry_out(lambda: made.append(splu(A, **options)), drop)

    def solve(self, right: Any) -> Any:
        return self._made[0].solve(right)  # not its own method, which would keep the factors for itself

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made[0], name)


def heavy(multiplications: float, work: Callable[..., T], *given: Any) -> T:
    """``work(*given)`` of so many multiplications, which is carried out where these take long."""
    return carry_out(partial(work, *given)) if multiplications > QUICK else work(*given)


# What compiled code keeps for a thread: Python's dictionary of the thread that asks.
_own = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_GetDict", ctypes.pythonapi))


def _await(done: threading.Event) -> None:
    until, main = _end(), threading.current_thread() is threading.main_thread()
    while not done.wait(PATIENCE):
        if main and (handler := signal.getsignal(signal.SIGINT)) is not None:
            signal.signal(signal.SIGINT, handler)  # again: SCS takes Ctrl-C for itself
        if time.monotonic() > until and not done.is_set():
            raise OutOfTimeError


def _end() -> float:
    """The time until which work that begins now is waited for."""
    seconds = left()
    return np.inf if seconds is None else time.monotonic() + max(seconds, GRACE)


class _Stopped(BaseException):
    """Raised within work whose result nobody waits for any more."""


_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("inside", default=False)  # work that is waited for


def stop(thread: threading.Thread) -> None:
    """Ask a thread to stop at its next step in Python."""
    if thread.ident is not None and thread.is_alive():
        if not stopped:
            atexit.register(_wait)
        stopped.append(thread)
        raise_in(ctypes.c_ulong(thread.ident), _Stopped)


def _wait() -> None:
    """An interpreter that ends under compiled code aborts when that comes back: after a moment it is put to sleep, so
    that nothing is lost of what ends with the interpreter, its exit status included."""
    until = time.monotonic() + FAREWELL
    for thread in stopped:
        thread.join(max(until - time.monotonic(), 0.0))
    if hasattr(signal, "pthread_kill"):  # on Windows threads end with their process
        _put_to_sleep([thread.ident or 0 for thread in stopped if thread.is_alive()])


def _put_to_sleep(threads: list[int]) -> None:
    """Threads that are in compiled code and stay there: a signal comes to each, whose handler is C's ``pause``."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    for thread in threads:
        libc.signal(signal.SIGUSR2, ctypes.cast(libc.pause, ctypes.c_void_p))
        with suppress(ProcessLookupError):
            signal.pthread_kill(thread, signal.SIGUSR2)


# ---- threads ---------------------------------------------------------------------------------------------------------
# Who has passes over many nodes or edges cuts them by the sizes of the problem alone, so that each part writes where no
# other does, and takes what they give in their order. So no bit depends on how many threads there are.
Part = TypeVar("Part")


class _Team(NamedTuple):
    size: int
    others: Any = None  # an executor of all threads but the one that waits for them


_team: contextvars.ContextVar[_Team | None] = contextvars.ContextVar("team", default=None)


@contextmanager
def threads(count: int | None) -> Generator[None]:
    """A context with so many threads; None leaves those that are there, and at first has as many as the variable
    ``GRAPHREG_THREADS`` says, else one. None of them is left when it is over, so that processes may fork."""
    if count is None and _team.get() is not None:
        yield
        return
    if count is None:
        said = os.environ.get("GRAPHREG_THREADS", "")
        count = max(int(said), 1) if said.isdecimal() else 1
    if count == 1:
        with setting(_team, _Team(1)):
            yield
        return
    from concurrent.futures import ThreadPoolExecutor  # here, since one thread needs none

    with ThreadPoolExecutor(count - 1, "graphreg part") as others, setting(_team, _Team(count, others)):
        yield


def dealt(work: Callable[[Part], T], parts: Iterable[Part]) -> list[T]:
    """``work`` of each of the parts, in their order, by as many threads as there are. Numpy and compiled code, which
    let go of Python's lock, then run side by side."""
    parts, team = list(parts), _team.get()
    if team is None or team.size == 1 or len(parts) < 2:
        return list(map(work, parts))
    found: list[Any] = [None] * len(parts)
    numbers = iter(range(len(parts)))  # of which each is given to one thread

    def run() -> None:
        for k in numbers:
            found[k] = work(parts[k])

    others: list[Any] = []
    try:
        with starting:
            for _ in range(min(team.size, len(parts)) - 1):
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


# ---- processes that can be killed ------------------------------------------------------------------------------------
def aside(function: Callable[..., T], *args: Any) -> T:
    """``function(*args)``, all of which is pickled, by a process of its own. It is killed when the deadline passes,
    Ctrl-C is pressed, or nobody waits for its result any more; and it is given no more memory than may be used.

    Raises
    ------
    OutOfTimeError
        Where the deadline passes first, or before it could begin.
    MemoryError
        Where it dies, as compiled code does where memory runs out.
    """
    import subprocess  # here, since nothing else needs it
    from multiprocessing import spawn
    from tempfile import TemporaryFile

    if (seconds := left()) is not None and seconds < BEGINNING:
        raise OutOfTimeError
    until = _end()
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(each or os.getcwd() for each in sys.path)}
    command = [spawn.get_executable(), "-c", f"from {__name__} import answer; answer()"]
    pipe: Any = subprocess.PIPE
    with TemporaryFile() as given:  # a pipe is not written to any more by a `communicate` that begins again
        for each in ((os.getpid(), usable_memory()), (function, args)):
            pickle.dump(each, given)
        given.seek(0)
        child: Any = subprocess.Popen(command, env=there, stdin=given, stdout=pipe, stderr=pipe, start_new_session=True)
    with child:  # in a session of its own, deaf to Ctrl-C at the terminal
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    found, noise = child.communicate(timeout=PATIENCE)
                    break
                if time.monotonic() > until or threading.current_thread() in stopped:  # `_Stopped` may have been lost
                    raise OutOfTimeError
        finally:
            child.kill()
    if child.returncode != 0:
        why = noise.decode(errors="replace").strip().rpartition("\n")[2]
        raise MemoryError(f"the process that worked on it died (exit status {child.returncode}){why and f': {why}'}")
    value, error = pickle.loads(found)
    if error is not None:
        raise error
    return value


def answer() -> None:
    """Carry out what the process that has started this one asks for, see `aside`."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what solvers print is no answer
        parent, memory = pickle.load(sys.stdin.buffer)
        end_with(parent)
        function, args = pickle.load(sys.stdin.buffer)
        with suppress(ImportError, OSError, ValueError, OverflowError):  # no such limit, or none at all
            from resource import RLIMIT_AS, getpagesize, getrlimit, setrlimit

            mapped = int(MAPPED.read_text(encoding="ascii").split()[0]) * getpagesize()
            setrlimit(RLIMIT_AS, (mapped + int(memory), getrlimit(RLIMIT_AS)[1]))
        try:
            found = function(*args), None
        except Exception as error:  # noqa: BLE001 - it is raised again, where it is waited for
            found = None, error
        out.write(pickle.dumps(found))


@cache
def end_with(parent: int) -> None:
    """Let this process end from now on with the one that has started it, whatever it is at."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="graphreg watch").start()
