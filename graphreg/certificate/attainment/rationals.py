"""Linear algebra in exact arithmetic, for systems of some dozens of unknowns.

A float is a rational number, so what is shown here holds for the data as stored.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...clock import look
from ...terms import Array

ROUNDING = 2.0**-52  # twice the unit roundoff, which pays for terms of second order
LEAST = 1e-290  # products below it may have lost digits


def rational(value: Any) -> Fraction:
    """A float, or a rational number of any library, as a Fraction."""
    if isinstance(value, Fraction):
        return value
    if hasattr(value, "as_integer_ratio"):
        return Fraction(*value.as_integer_ratio())
    return Fraction(int(value.p), int(value.q))  # python-flint


@cache
def _quick() -> Any:
    """python-flint's rational numbers, where it is installed; they are some ten times as fast."""
    try:
        return importlib.import_module("flint").fmpq
    except ImportError:
        return Fraction


def number(x: Fraction) -> Any:
    """A rational number in the quickest arithmetic that is installed."""
    return _quick()(x.numerator, x.denominator)


def exactly(M: Any) -> list[list[Fraction]]:
    """A sparse matrix of floats as rows of rational numbers."""
    M = sp.csr_array(M)
    rows = [[Fraction(0)] * M.shape[1] for _ in range(M.shape[0])]
    for r, row in enumerate(rows):
        for j, value in zip(*_entries(M, r), strict=True):
            row[j] += Fraction(float(value))
    return rows


def signs(M: Any, v: Sequence[Fraction]) -> Array:
    """The sign of each entry of M v, exactly: from floats where their rounding leaves no doubt, else from rationals."""
    M = sp.csr_array(M)
    floats = np.array([float(x) for x in v])
    with np.errstate(over="ignore", invalid="ignore"):
        value = M @ floats
        doubt = (np.diff(M.indptr) + 4) * ROUNDING * (abs(M) @ np.abs(floats)) + LEAST
        clear = np.abs(value) > doubt  # False where anything overflows
    out = np.where(clear, np.sign(value), 0.0)
    for r in np.flatnonzero(~clear):
        entries = slice(M.indptr[r], M.indptr[r + 1])
        out[r] = _sign(M.data[entries], [v[j] for j in M.indices[entries]])
        if r % 256 == 0:
            look()
    return out


def _sign(a: Array, x: list[Fraction]) -> int:
    total = sum((Fraction(float(b)) * y for b, y in zip(a, x, strict=True) if b and y), Fraction(0))
    return (total > 0) - (total < 0)


def null_point(M: Any, start: list[Fraction]) -> list[Fraction]:
    """A rational point x with M x = 0 near one for which it is about 0.

    Equations join one after the other, those that the point breaks, so that what depends on others costs nothing.
    """
    M = sp.csr_array(M)
    system, point = Echelon(len(start)), start
    while True:
        look()
        broken = np.flatnonzero(signs(M, point))
        if not len(broken):
            return point
        floats = np.array([float(x) for x in point])
        worst = broken[np.argmax(np.abs(M[broken] @ floats))]
        system.add(exactly(M[[worst]])[0])
        point = system.solution(start)


def _entries(M: Any, r: int) -> tuple[Array, Array]:
    entries = slice(M.indptr[r], M.indptr[r + 1])
    return M.indices[entries], M.data[entries]


class Echelon:
    """Linear equations in reduced row echelon form, to which one after the other is added; each is [row | right]."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: list[list[Fraction]] = []
        self.pivots: list[int] = []

    def add(self, row: list[Fraction], right: Fraction = Fraction(0)) -> bool | None:
        """Whether the equation is new; None where it contradicts the others."""
        new = [*row, right]
        for pivot, known in zip(self.pivots, self.rows, strict=True):
            _subtract(new, known, new[pivot])
        best = max(range(self.count), key=lambda j: abs(new[j]), default=0)
        if not self.count or not new[best]:
            return None if new[-1] else False
        head = new[best]
        new = [x / head if x else x for x in new]
        for known in self.rows:
            _subtract(known, new, known[best])
        self.rows.append(new)
        self.pivots.append(best)
        return True

    def solution(self, free: Sequence[Fraction]) -> list[Fraction]:
        """The solution whose entries beside the pivots are those given."""
        out = list(free)
        rest = [j for j in range(self.count) if j not in set(self.pivots)]
        for pivot, row in zip(self.pivots, self.rows, strict=True):
            out[pivot] = row[-1] - sum((row[j] * free[j] for j in rest if row[j]), Fraction(0))
        return out


def _subtract(row: list[Fraction], other: list[Fraction], times: Fraction) -> None:
    if times:
        for j, x in enumerate(other):
            if x:
                row[j] -= times * x


def correction(M: Any, right: Sequence[Fraction]) -> list[Fraction] | None:
    """A rational x with M x = right, M (q, s) with few columns; None where there is none."""
    M = sp.csr_array(M)
    s = M.shape[1]
    system = Echelon(s)
    for r, row in enumerate(exactly(M)):
        look()
        if system.add(row, right[r]) is None:
            return None
    return system.solution([Fraction(0)] * s)


def products(M: Any, x: Array) -> list[Fraction]:
    """M'x in exact arithmetic, for float x."""
    M = sp.csr_array(M)
    out = [Fraction(0)] * M.shape[1]
    for r in range(M.shape[0]):
        if x[r]:
            for j, value in zip(*_entries(M, r), strict=True):
                out[j] += Fraction(float(value)) * Fraction(float(x[r]))
        if r % 256 == 0:
            look()
    return out
