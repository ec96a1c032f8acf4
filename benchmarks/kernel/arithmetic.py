"""Arithmetic that pays for its rounding: sums and products without error, bounds that are rounded outwards.

IEEE doubles, to nearest, with gradual underflow; sums and sparse products in any order, with or without fused multiply
and add. ``U = 2^-52`` is twice the unit roundoff. The rules (i) to (vi) are those of docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphreg.certificate.enclosure.sums import two_sum
from graphreg.terms import Array

U = 2.0**-52
TINY = 1e-300  # more than a product, or any operation at the end of the range, may lose
SMALL = 1e-270  # products of at least that size split exactly
RANGE = 1e70  # entries of B, R and scales lie within 1/RANGE .. RANGE, so that their products do not underflow
LARGEST = 1e140  # of the numbers of a point and of targets
LEAST = 1e-110  # of what is multiplied by them and is not 0
LAYERS = 2  # of leading parts that are added up exactly


class RefusedError(Exception):
    """A proposal proves nothing; the message says why."""


def need(holds: object, why: str) -> None:
    if not holds:
        raise RefusedError(why)


def upwards(x: Array, roundings: int) -> Array:
    """Not less than what x >= 0 stands for: a value of so many roundings of numbers >= 0, where 0 is exact (i)."""
    return np.where(x > 0.0, x * (1.0 + (roundings + 3) * U) + TINY, x)


def in_range(x: Array) -> bool:
    """Whether all numbers that are not 0 lie within 1/RANGE .. RANGE (ii)."""
    x = np.abs(x[x != 0.0])
    return bool(((x >= 1.0 / RANGE) & (x <= RANGE)).all())


def run_sums(parts: Sequence[Array], starts: Array, counts: Array) -> tuple[Array, Array]:
    """Sums over runs of the entries of several arrays together: a float for each run, and a bound of its error (iii).

    Extraction (Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31, 2008): sigma is a power of two of at least (count + 2)
    times the largest summand, so that the q = fl(fl(sigma + p) - sigma) are multiples of ulp(sigma) / 2 whose sums stay
    below sigma: they are exact in any order. What two layers leave is added up plainly.
    """
    many = counts * len(parts)
    bits = np.ceil(np.log2(many + 2.0)).astype(int) + 1
    exact: list[Array] = []
    for _ in range(LAYERS):
        top = np.zeros(len(starts))
        for part in parts:
            top = np.maximum(top, np.maximum.reduceat(np.abs(part), starts))
        need(np.isfinite(top).all() and (top < 1e290).all(), "numbers are too large")
        sigma = np.where(top > 0.0, np.ldexp(1.0, np.frexp(top)[1] + bits), 0.0)
        each, found, rest = np.repeat(sigma, counts), np.zeros(len(starts)), []
        for part in parts:
            q = (each + part) - each
            found = found + np.add.reduceat(q, starts)
            rest.append(part - q)
        exact.append(found)
        parts = rest
    left, size = np.zeros(len(starts)), np.zeros(len(starts))
    for part in parts:
        left = left + np.add.reduceat(part, starts)
        size = size + np.add.reduceat(np.abs(part), starts)
    high, low = two_sum(*exact)
    low, lost = two_sum(low, left)
    value, off = two_sum(high, low)
    most = int(many.max(initial=0))
    return value, upwards(upwards(size, most) * most * U + np.abs(lost) + np.abs(off), 6)
