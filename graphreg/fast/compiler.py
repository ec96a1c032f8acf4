"""How kernels are compiled.

A kernel is a plain Python function of numbers and flat arrays that do not overlap. `specialised` makes one for a given
width: its loops over the coordinates then have a length that the compiler knows, and become vector instructions.

A ``strict`` kernel takes every operation as it is written. What it leaves at an edge or a node then depends on nothing
else, wherever that stands among the others: parts of a graph rest on this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..base.compiled import Kernel, compiles, copied, kept, linked

WIDEST = 32  # coordinates up to which a kernel is compiled for their number alone
# sums over the coordinates of an edge may be taken in any order; NaN and infinity stay what they are
FAST = {"contract", "reassoc", "nsz", "arcp"}


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
    function = linked(function, Step, lambda step: _part(step, strict))
    if strict:  # numba keeps code on disk by names, whatever it was told of its arithmetic
        function = copied(function, function.__globals__)
        function.__qualname__ += "_strict"
    return kept(function, _arithmetic(strict))


def _arithmetic(strict: bool) -> dict[str, Any]:
    how: dict[str, Any] = {"error_model": "numpy", "pipeline_class": _compiler(), "nogil": True}
    return how if strict else {**how, "fastmath": FAST}


@cache
def _part(step: Step, strict: bool) -> Kernel:
    function = linked(step.function, Step, lambda other: _part(other, strict))
    return import_module("numba").njit(inline="always", **_arithmetic(strict))(function)


class Step:
    """A function that kernels of the same file call: where they are compiled it becomes a part of them, so that what
    is constant there is constant in it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Any = function

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)


@cache
def specialised(make: Callable[..., Kernel], *constants: int | tuple[int, ...], strict: bool = False) -> Kernel:
    """The compiled kernel that ``make`` returns for these constants."""
    return compiled(make(*constants), strict)


def width_of(d: int) -> int:
    """The width for which a kernel of d coordinates is compiled: d itself, or 0 for any."""
    return d if d <= WIDEST else 0
