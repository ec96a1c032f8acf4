"""The one place that decides whether loops are compiled: where numba is installed (the extra ``fast``), and where that
does not take longer than to do without.

A package of kernels is offered here, and never imported from below: `offered` finds it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

Kernel = Callable[..., Any]
T = TypeVar("T")

LARGE = 30_000  # numbers from which on a recursion is compiled that is at hand; Python takes .01 s for fewer
SPEED = 2_000_000  # numbers that Python goes through in a second
COMPILING = 0.8  # seconds, a recursion
LONG = 1_000_000  # numbers from which on it takes so long that the clock and Ctrl-C are to be heard meanwhile
PLAINLY_LONG = 200_000  # and in Python
Numbers = Any  # an array where a recursion is compiled, else a list, which Python reads faster

LOADING = 0.35  # seconds that numba takes to be imported, and to load the first code from disk
EARLY = os.environ.get("GRAPHREG_COMPILE") == "early"  # code costs nothing, so that bits depend on nothing before

_rooms: list[str] = []


def offer(room: str) -> None:
    """Declare a package of kernels; the one that was declared last is taken."""
    _rooms.append(room)


def offered() -> Any:
    """The package of kernels; None where there is none, or nothing compiles."""
    return import_module(_rooms[-1]) if _rooms and compiles() else None


@cache
def compiles() -> bool:
    """True where numba is there and allowed to compile (it is not where NUMBA_DISABLE_JIT is set)."""
    if find_spec("numba") is None:
        return False
    try:
        return not import_module("numba").config.DISABLE_JIT
    except ImportError:  # numba refuses a version of numpy that is newer than itself
        return False


class Code:
    """Some compiled code, which is bought as soon as doing without it has cost as much. The ``price`` is what is left
    of the seconds that it takes to be compiled, or loaded where a file says that it is on disk; 0 or less at hand."""

    loaded = EARLY  # whatever code

    def __init__(self, name: str, seconds: float) -> None:
        self.place, self.bought = _folder() / name, False
        self.price = 0.0 if EARLY else seconds if not self.place.exists() else 0.0 if Code.loaded else LOADING

    def buy(self) -> None:
        """Note that it is taken from now on."""
        self.price = 0.0
        if not self.bought and compiles():
            self.bought = Code.loaded = True
            with suppress(OSError):
                self.place.parent.mkdir(parents=True, exist_ok=True)
                self.place.touch()


@cache
def _folder() -> Path:
    """Where it is noted which code of this package numba keeps on disk, if that can be written to."""
    here = Path(__file__)
    seen = repr((str(here), here.stat().st_mtime_ns, sys.version)).encode()
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or here.with_name("__pycache__"))
    return folder / f"graphreg-{hashlib.sha256(seen).hexdigest()[:16]}"


def kept(function: Kernel, how: dict[str, Any]) -> Kernel:
    """Compiled, and kept on disk where there is a place that can be written to."""
    njit = import_module("numba").njit
    try:
        return njit(cache=True, **how)(function)
    except RuntimeError:
        return njit(**how)(function)


def linked(function: Any, kind: type[T], version: Callable[[T], Kernel]) -> Any:
    """The function with a version of what it calls of a kind in its place; itself where it calls none."""
    known: dict[str, Any] = function.__globals__
    called = {name: known[name] for name in function.__code__.co_names if isinstance(known.get(name), kind)}
    return copied(function, {**known, **{name: version(each) for name, each in called.items()}}) if called else function


def copied(function: Any, known: dict[str, Any]) -> Any:
    """A copy of the function with other globals."""
    copy = FunctionType(function.__code__, known, function.__name__, closure=function.__closure__)
    copy.__qualname__ = function.__qualname__
    return copy


class Recursion:
    """A function of numbers and arrays that calls no others but recursions, as it is and compiled.

    Sums of two floats rest on the order of their additions, so that it is compiled without any licence to change it.
    Both leave the same bits.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Any = function

    @cached_property
    def code(self) -> Code:
        """What it costs to compile it."""
        return Code(f"{self.function.__module__}.{self.function.__qualname__}", COMPILING)

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function in Python."""
        return linked(self.function, Recursion, lambda other: other.plain)

    @cached_property
    def machine(self) -> Callable[..., Any]:
        """The function as machine code, which is kept on disk for the next process."""
        function = linked(self.function, Recursion, lambda other: other.machine)
        # recursions make no arrays: references need not be counted, which took two thirds of the time of a tree
        return kept(function, {"nogil": True, "error_model": "numpy", "_nrt": False})

    def __call__(self, *groups: Any) -> Any:
        """The value for some groups of arrays, tuples of them, and what is left in these; it only reads the first."""
        from .gate import QUICK, heavy

        size = sum(len(each) for group in groups for each in group)
        if size >= LARGE and size / SPEED >= self.code.price and compiles():
            self.code.buy()
            given = tuple(_read_only(each) for each in groups[0])
            return heavy(QUICK * size / LONG, lambda: self.machine(given, *groups[1:]))
        self.code.price -= size / SPEED
        return heavy(QUICK * size / PLAINLY_LONG, self._in_python, *groups)

    def _in_python(self, *groups: Any) -> Any:
        lists = [tuple(each.tolist() for each in group) for group in groups]
        found = self.plain(*lists)
        for group, changed in zip(groups[1:], lists[1:], strict=True):
            for array, numbers in zip(group, changed, strict=True):
                array[:] = numbers
        return found


def _read_only(array: Any) -> Any:
    """A view that may not be written to, as some of the user's data may not: numba compiles anew for either kind."""
    view = array.view()
    view.flags.writeable = False
    return view
