"""The one place that decides whether loops are compiled: where numba is installed (the extra ``fast``), on first use.

A kernel is a plain Python function of numbers and flat arrays that do not overlap. `specialised` makes one for a given
width: its loops over the coordinates then have a length that the compiler knows, and become vector instructions.

A ``strict`` kernel takes every operation as it is written. What it leaves at an edge or a node then depends on nothing
else, wherever that stands among the others: parts of a graph rest on this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any

WIDEST = 32  # coordinates up to which a kernel is compiled for their number alone
# sums over the coordinates of an edge may be taken in any order; NaN and infinity stay what they are
FAST = {"contract", "reassoc", "nsz", "arcp"}

Kernel = Callable[..., Any]


@cache
def compiles() -> bool:
    """Whether numba is there and allowed to compile (it is not where NUMBA_DISABLE_JIT is set)."""
    if find_spec("numba") is None:
        return False
    try:
        return not import_module("numba").config.DISABLE_JIT
    except ImportError:  # numba refuses a version of numpy that is newer than itself
        return False


@cache
def _compiler() -> Any:
    """numba's compiler, told that arrays do not overlap and to look for vectors in unrolled loops, which it does not do
    by itself: a round of edges with ten coordinates takes .4 of the time."""
    config: Any = import_module("numba.core.config")
    numbas: Any = import_module("numba.core.compiler").Compiler

    class VectorCompiler(numbas):
        def compile_extra(self, func: Any) -> Any:
            self.state.flags.noalias = True
            before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
            try:
                return super().compile_extra(func)
            finally:
                config.SLP_VECTORIZE = before

    return VectorCompiler


@cache
def compiled(function: Kernel, strict: bool = False) -> Kernel:
    """The function as machine code, which is kept on disk for the next process; itself where nothing compiles."""
    if not compiles():
        return function
    numba, how = import_module("numba"), {"error_model": "numpy", "pipeline_class": _compiler()}
    if strict:
        function = _strict(function)
    else:
        how["fastmath"] = FAST
    try:
        return numba.njit(cache=True, **how)(function)
    except RuntimeError:  # there is no place on the disk that can be written to
        return numba.njit(**how)(function)


def _strict(function: Any) -> Kernel:
    """The function under another name: numba keeps code on disk by names, whatever it was told of its arithmetic."""
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, closure=function.__closure__)
    copy.__qualname__ = f"{function.__qualname__}_strict"
    return copy


@cache
def specialised(make: Callable[..., Kernel], *constants: int, strict: bool = False) -> Kernel:
    """The compiled kernel that ``make`` returns for these constants."""
    return compiled(make(*constants), strict)


def width_of(d: int) -> int:
    """The width for which a kernel of d coordinates is compiled: d itself, or 0 for any."""
    return d if d <= WIDEST else 0
