"""Breakdowns of computations: which exceptions are the numbers' fault, and what they are called in a sentence.

What numpy, CVXPY or a solver raises in the midst of a solve is told as a status with its cause. What the user's own
code raises, a callback or a term, is the user's to see as it is; so is a defect of this library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError

from ..errors import GraphregError

NUMERICAL = (np.linalg.LinAlgError, ArithmeticError, MemoryError, ArpackError)
LIBRARIES = {
    *("numpy", "scipy", "numba", "pandas", "networkx"),
    *("cvxpy", "sparsediffpy", "qdldl", "clarabel", "scs", "osqp", "ecos", "highspy", "mosek", "gurobipy"),
    "pyo3_runtime",
}
OWN = __name__.partition(".")[0]


def numerical(error: BaseException) -> bool:
    """True where an exception tells of numbers: a singular matrix, an overflow, a division by 0, no memory."""
    return isinstance(error, NUMERICAL)


def panic(error: BaseException) -> bool:
    """True where a solver written in Rust has given up; that is no ``Exception``."""
    return type(error).__name__ == "PanicException"


def foreign(error: BaseException) -> bool:
    """True where an exception was raised within a library that this one calls, and not through the user's code."""
    return alone(error) and _roots(error)[-1] in LIBRARIES


def alone(error: BaseException) -> bool:
    """True where an exception was raised by this library and those that it calls, and not through the user's code."""
    after, standard = _roots(error), sys.stdlib_module_names - {"__main__"}
    return bool(after) and all(root == OWN or root in LIBRARIES or root in standard for root in after)


def broken(error: Exception, *functions: Callable[..., Any] | None) -> bool:
    """True where an exception tells of a computation that broke down, and is neither an answer, nor a defect, nor
    what one of the user's functions raised."""
    if isinstance(error, GraphregError) or raised_by(error, *functions):
        return False
    return numerical(error) or foreign(error)


def raised_by(error: BaseException, *functions: Callable[..., Any] | None) -> bool:
    """True where one of the user's functions raised an exception."""
    return any(isinstance(each, Watched) and error is each.raised for each in functions)


def _roots(error: BaseException) -> list[str]:
    """The packages on the way from where this library was called to where an exception was raised."""
    roots = [frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in walk_tb(error.__traceback__)]
    return roots[roots.index(OWN) :] if OWN in roots else []


def cause(error: BaseException) -> str:
    """The exception in a few words: its kind and the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__


@dataclass
class Watched:
    """A function of the user's, and what it raised last: that is never taken for a breakdown."""

    function: Callable[..., Any]
    raised: BaseException | None = None

    def __call__(self, *args: Any) -> Any:
        try:
            return self.function(*args)
        except BaseException as error:
            self.raised = error
            raise
