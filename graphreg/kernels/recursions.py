"""Recursions over arrays of numbers, compiled where numba is installed and there is enough to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

from ..clock import carry_out
from ..terms import Array
from .compiled import compiles

LARGE = 30_000  # numbers from which on it pays to load numba; fewer take Python a few hundredths of a second
LONG = 1_000_000  # numbers from which on it takes so long that the clock and Ctrl-C are to be heard meanwhile
Numbers = Any  # an array where it is compiled, else a list, which Python reads faster


class Recursion:
    """A function of numbers and arrays that calls no others but recursions, as it is and compiled.

    Sums of two floats rest on the order of their additions, so that it is compiled without any licence to change it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Any = function

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """In Python."""
        return self._calling(lambda other: other.plain)

    @cached_property
    def machine(self) -> Callable[..., Any]:
        """As machine code, which is kept on disk for the next process."""
        njit: Any = import_module("numba").njit
        function, how = self._calling(lambda other: other.machine), {"nogil": True, "error_model": "numpy"}
        try:
            return njit(cache=True, **how)(function)
        except RuntimeError:  # there is no place on the disk that can be written to
            return njit(**how)(function)

    def _calling(self, version: Callable[[Recursion], Callable[..., Any]]) -> Any:
        """The function with a version of those that it calls in their places."""
        known: dict[str, Any] = self.function.__globals__
        called = {name: known[name] for name in self.function.__code__.co_names if name in known}
        others = {name: version(each) for name, each in called.items() if isinstance(each, Recursion)}
        return FunctionType(self.function.__code__, {**known, **others}, self.function.__name__)

    def __call__(self, *groups: Any) -> Any:
        """What it returns for some groups of arrays, tuples of them, and leaves in these; it only reads the first."""
        size = sum(len(each) for group in groups for each in group)
        if size >= LARGE and compiles():
            given = tuple(_read_only(each) for each in groups[0])
            return (
                self.machine(given, *groups[1:]) if size < LONG else carry_out(lambda: self.machine(given, *groups[1:]))
            )
        lists = [tuple(each.tolist() for each in group) for group in groups]
        found = self.plain(*lists)
        for group, changed in zip(groups[1:], lists[1:], strict=True):
            for array, numbers in zip(group, changed, strict=True):
                array[:] = numbers
        return found


def _read_only(array: Array) -> Array:
    """A view that may not be written to, as some of the user's data may not: numba compiles anew for either kind."""
    view = array.view()
    view.flags.writeable = False
    return view
