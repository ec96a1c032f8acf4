"""Linear algebra in exact arithmetic, for systems of some dozens of unknowns.

A float is a rational number, so what is shown here holds for the data as stored.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.clock import check_deadline
from ..terms import Array

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
    return [[Fraction(x) for x in row] for row in M.toarray().tolist()]


def signs(M: Any, v: Sequence[Fraction]) -> Array:
    """The sign of each entry of M v, exactly: from floats where their rounding leaves no doubt, else from rationals."""
    M = sp.csr_array(M)
    floats = np.array([float(x) for x in v])
    with np.errstate(over="ignore", invalid="ignore"):
        value = M @ floats
        doubt = (np.diff(M.indptr) + 4) * ROUNDING * (abs(M) @ np.abs(floats)) + LEAST
        clear = np.abs(value) > doubt  # False where anything overflows
    out = np.where(clear, np.sign(value), 0.0)
    for r in np.flatnonzero(~clear).tolist():
        total = _product(M, r, v)
        out[r] = (total > 0) - (total < 0)
    return out


def _product(M: Any, r: int, v: Sequence[Fraction]) -> Fraction:
    """Entry r of M v, exactly."""
    if r % 256 == 0:
        check_deadline()
    entries = slice(M.indptr[r], M.indptr[r + 1])
    pairs = zip(M.data[entries], (v[j] for j in M.indices[entries]), strict=True)
    return sum((Fraction(float(a)) * x for a, x in pairs if a and x), Fraction(0))


def null_point(M: Any, start: list[Fraction]) -> list[Fraction]:
    """A rational point x with M x = 0 near one for which it is about 0.

    Equations join one after the other, those that the point breaks, so that what depends on others costs nothing.
    """
    M = sp.csr_array(M)
    system, point = Echelon(len(start)), start
    while True:
        check_deadline()
        broken = np.flatnonzero(signs(M, point))
        if not len(broken):
            return point
        floats = np.array([float(x) for x in point])
        worst = broken[np.argmax(np.abs(M[broken] @ floats))]
        system.add(exactly(M[[worst]])[0])
        point = system.solution(start)


class Echelon:
    """Linear equations in row echelon form, to which one after the other is added; each is [row | right], with 0 at the
    pivots of those before."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: list[list[Fraction]] = []
        self.pivots: list[int] = []

    def add(self, row: list[Fraction], right: Fraction = Fraction(0)) -> bool | None:
        """True where the equation is new; None where it contradicts the others."""
        new = [*row, right]
        for pivot, known in zip(self.pivots, self.rows, strict=True):
            if times := new[pivot]:
                for j, x in enumerate(known):
                    if x:
                        new[j] -= times * x
        best = max(range(self.count), key=lambda j: abs(new[j]), default=0)
        if not self.count or not new[best]:
            return None if new[-1] else False
        head = new[best]
        self.rows.append([x / head if x else x for x in new])
        self.pivots.append(best)
        return True

    def solution(self, free: Sequence[Fraction]) -> list[Fraction]:
        """The solution whose entries beside the pivots are those given."""
        out = list(free)
        for pivot, (*row, right) in zip(reversed(self.pivots), reversed(self.rows), strict=True):
            out[pivot] = Fraction(0)
            out[pivot] = right - sum((a * x for a, x in zip(row, out, strict=True) if a and x), Fraction(0))
        return out


def correction(M: Any, right: Sequence[Fraction]) -> list[Fraction] | None:
    """A rational x with M x = right, M (q, s) with few columns; None where there is none."""
    system = Echelon(M.shape[1])
    for row, value in zip(exactly(M), right, strict=True):
        check_deadline()
        if system.add(row, value) is None:
            return None
    return system.solution([Fraction(0)] * system.count)


def products(M: Any, x: Array) -> list[Fraction]:
    """M'x in exact arithmetic, for float x: sums of integers, a tenth of the work of sums of fractions."""
    turned: Any = sp.csr_array(M.T)
    (entries, below), (numbers, under) = _integers(turned.data), _integers(x)
    out, ends, columns = list[Fraction](), turned.indptr.tolist(), turned.indices.tolist()
    for r, (start, end) in enumerate(pairwise(ends)):
        if r % 256 == 0:
            check_deadline()
        total = sum(entries[k] * numbers[columns[k]] for k in range(start, end))
        out.append(Fraction(total, 1 << (below + under)))
    return out


def _integers(x: Array) -> tuple[list[int], int]:
    """Integers, and the k with which they are 2^k x."""
    part, exponent = np.frexp(x)
    whole, least = (part * 2.0**53).astype(np.int64), min(int(exponent.min(initial=0)), 0)
    return [m << s for m, s in zip(whole.tolist(), (exponent - least).tolist(), strict=True)], 53 - least
