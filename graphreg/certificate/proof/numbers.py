"""Exact numbers: how they are written, and linear systems of them."""

from __future__ import annotations

from typing import Any

from ...verify import STATE, rational
from ..rationals import Echelon


def exact(x: float) -> Any:
    """The rational that a float is."""
    return rational(*float(x).as_integer_ratio())


def exactly(values: Any) -> Any:
    """Nested lists of floats as rationals."""
    return [exactly(value) for value in values] if isinstance(values, list) else exact(values)


def nearest(x: Any) -> float:
    """A float near a rational, of any size."""
    p, q = int(x.numerator), int(x.denominator)
    try:
        return p / q
    except OverflowError:
        return float("inf") if p > 0 else float("-inf")


def text(x: Any) -> str:
    """A rational in the spelling of proofs: hexadecimal digits, a power of two, an odd denominator."""
    p, q = int(x.numerator), int(x.denominator)
    if p == 0:
        return "0"
    up, down = (p & -p).bit_length() - 1, (q & -q).bit_length() - 1
    digits = f"{'-' * (p < 0)}{abs(p) >> up:x}"
    return digits + (f"p{up - down}" if up != down else "") + (f"/{q >> down:x}" if q >> down > 1 else "")


def texts(values: Any) -> Any:
    return [texts(value) for value in values] if isinstance(values, list) else text(values)


def truncated(x: Any, bits: int) -> Any:
    """A multiple of 2^-bits near x."""
    return rational((int(x.numerator) << bits) // int(x.denominator), 1 << bits)


def solve(A: list[list[Any]], b: list[Any]) -> list[Any]:
    """The solution of a square system of rationals; ZeroDivisionError where the matrix is singular."""
    n = len(b)
    if STATE.flint:
        from flint import fmpq_mat

        z = fmpq_mat(n, n, [x for row in A for x in row]).solve(fmpq_mat(n, 1, b))
        return [z[k, 0] for k in range(n)]
    system = Echelon(n)
    if not all(system.add(row, right) for row, right in zip(A, b, strict=True)):
        raise ZeroDivisionError("the matrix is singular")
    return system.solution([rational(0)] * n)
