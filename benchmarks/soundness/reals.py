"""Rational numbers, and intervals with rational ends that contain exp, log and sqrt: arithmetic that cannot be wrong.

Rationals are those of python-flint where it is installed, else of `fractions`. ``decimal`` rounds exp and ln correctly,
so that the neighbours of its results are bounds.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Any

try:
    import flint
except ImportError:
    flint = None

DIGITS = 60  # of exp and log
BITS = 240  # of the ends of intervals
FAR = 4096  # beyond, exp is at least HUGE, or at most 1 / HUGE
LEAST = Decimal("1e-1800")  # below 1 / HUGE
DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR, Emin=-999_999, Emax=999_999)
UP = Context(prec=DIGITS, rounding=ROUND_CEILING, Emin=-999_999, Emax=999_999)

Rational: Any = Fraction if flint is None else flint.fmpq
Interval = tuple[Any, Any]  # of rationals; None as the upper end is +inf

ZERO, ONE, HALF = Rational(0), Rational(1), Rational(1, 2)
HUGE = Rational(2**5909)  # <= exp(4096)


def rational(x: Any) -> Any:
    """A float as the rational number that it is; rationals as they are."""
    return Rational(*float(x).as_integer_ratio()) if isinstance(x, (float, int)) else x


def rationals(values: Any) -> Any:
    """Nested lists of floats (or an array) as nested lists of rationals."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [rationals(v) for v in values] if isinstance(values, (list, tuple)) else rational(values)


def ends(x: Any) -> tuple[int, int]:
    """Numerator and denominator."""
    return (int(x.p), int(x.q)) if hasattr(x, "p") else (int(x.numerator), int(x.denominator))


def approximately(x: Any) -> float:
    """The nearest float; infinite where it is None or too large."""
    if x is None:
        return float("inf")
    p, q = ends(x)
    try:
        return p / q
    except OverflowError:
        return float("inf") if p > 0 else -float("inf")


def dot(a: Any, b: Any) -> Any:
    return sum((p * q for p, q in zip(a, b, strict=True)), ZERO)


def exp(x: Any) -> Interval:
    """exp(x) lies between the two; the upper one may be None, which is +inf."""
    if x > FAR:
        return HUGE, None
    if x < -FAR:
        return ZERO, ONE / HUGE
    low, high = _decimals(x)
    return _dyadic(DOWN.next_minus(DOWN.exp(low)), up=False), _dyadic(UP.next_plus(UP.exp(high)), up=True)


def log(x: Any) -> Interval:
    """log(x) lies between the two, x > 0."""
    low, high = _decimals(x)
    return _dyadic(DOWN.next_minus(DOWN.ln(low)), up=False), _dyadic(UP.next_plus(UP.ln(high)), up=True)


def sqrt(x: Any) -> Interval:
    """sqrt(x) lies between the two, which are equal where it is rational."""
    p, q = ends(x)
    n, m = isqrt(p), isqrt(q)
    if n * n == p and m * m == q:
        return Rational(n, m), Rational(n, m)
    shift = max(0, BITS - (p.bit_length() - q.bit_length()) // 2)
    n = isqrt((p << 2 * shift) // q)
    return Rational(n, 1 << shift), Rational(n + 1, 1 << shift)


def _decimals(x: Any) -> tuple[Decimal, Decimal]:
    p, q = map(Decimal, ends(x))
    return DOWN.divide(p, q), UP.divide(p, q)


def _dyadic(x: Decimal, up: bool) -> Any:
    """x rounded down or up to a multiple of 2^-k: without that, sums would gather denominators."""
    if abs(x) < LEAST:  # neighbours of 0 have a million digits
        return ZERO if up == (x <= 0) else ONE / HUGE if up else -ONE / HUGE
    p, q = x.as_integer_ratio()
    k = max(0, BITS - p.bit_length() + q.bit_length())
    n = -((-p << k) // q) if up else (p << k) // q
    return Rational(n, 1 << k)
