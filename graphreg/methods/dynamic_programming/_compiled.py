"""Recursions over arrays of numbers, compiled where numba is installed. Importing this imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...clock import carry_out
from ...terms import Array

Numbers = Any  # an array where it is compiled, else a list, which Python reads faster

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])

    def compiled(function: F) -> F: ...

    fast: bool
else:
    try:
        from numba import njit
    except ImportError:
        fast = False

        def compiled(function):
            return function
    else:
        fast = True
        compiled = njit(cache=True, nogil=True, error_model="numpy")


def called(function: Callable[..., Any], *groups: tuple[Array, ...]) -> Any:
    """What a recursion returns for some groups of arrays, and leaves in these."""
    if fast:
        return carry_out(lambda: function(*groups))
    lists = [tuple(each.tolist() for each in group) for group in groups]
    found = function(*lists)
    for group, changed in zip(groups, lists, strict=True):
        for array, numbers in zip(group, changed, strict=True):
            array[:] = numbers
    return found
