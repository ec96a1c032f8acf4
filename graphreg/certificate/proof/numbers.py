"""Exact numbers: how they are written, and linear systems of them."""

from __future__ import annotations

from typing import Any

from ... import verify
from ...verify import rational


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
    if verify.State.flint:
        from flint import fmpq_mat

        z = fmpq_mat(n, n, [x for row in A for x in row]).solve(fmpq_mat(n, 1, b))
        return [z[k, 0] for k in range(n)]
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next((r for r in range(k, n) if rows[r][k] != 0), None)
        if pivot is None:
            raise ZeroDivisionError("the matrix is singular")
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for r in range(k + 1, n):
            if rows[r][k] != 0:
                factor = rows[r][k] / rows[k][k]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[k], strict=True)]
    z = [rational(0)] * n
    for k in range(n - 1, -1, -1):
        rest = sum((rows[k][j] * z[j] for j in range(k + 1, n)), rational(0))
        z[k] = (rows[k][n] - rest) / rows[k][k]
    return z
