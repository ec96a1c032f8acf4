"""Arithmetic that pays for its rounding: sums and products without error, bounds that are rounded outwards.

IEEE doubles, to nearest, with gradual underflow; sums and products of matrices in any order, with or without fused
multiply and add. A sum is returned as a pair ``high + low`` and a bound ``error`` of what that misses. By extraction
(Rump, Ogita and Oishi, Accurate floating-point summation, SIAM J. Sci. Comput. 31, 2008) the leading parts of all
summands add up exactly in any order; two layers leave an error of about the unit roundoff squared times their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...terms import Array

EPS = 2.0**-52  # twice the unit roundoff: the other half pays for terms of second order
MORE = 1.0 + 1e-7  # for sums of bounds, which are rounded themselves: enough for 4e8 summands in any order
SPLITTER = 134217729.0  # 2^27 + 1
UNDERFLOW = 1e-280  # products below it may not split exactly
DUST = 1e-300  # what such a product, or any operation at the end of the range, may miss
PIECE = 512  # numbers that are added up plainly; those sums are added up without rounding
LARGEST = 2.0**1010  # of sums, near the end of the range
RANGE = 1e70  # answers and scales lie within 1/RANGE .. RANGE, and no entry of a design is larger
MOST = 1e140  # of the numbers of a point, and of targets
LEAST = 1e-110  # of corrections that are not 0
SMALL = 1e-200  # a size that times an entry in range is none that underflows


class RefusedError(Exception):
    """A proposal proves nothing; the message says why."""


def need(holds: object, why: str) -> None:
    """Refuse a proposal of which something does not hold."""
    if not holds:
        raise RefusedError(why)


def in_range(x: Array) -> bool:
    """True where all numbers that are not 0 lie within 1/RANGE .. RANGE."""
    size = np.abs(x)
    return bool(((size <= RANGE) & ((size >= 1.0 / RANGE) | (size == 0.0))).all())


def below(x: Array) -> bool:
    """True where all numbers are finite, and not too large; no comparison holds of NaN."""
    return bool((x < MOST).all() and (x > -MOST).all())


def upwards(x: Array, roundings: int) -> Array:
    """Not less than what x >= 0 stands for: a value of so many roundings of numbers >= 0, where 0 is exact."""
    return np.where(x > 0.0, x * (1.0 + (roundings + 3) * EPS) + DUST, x)


@dataclass(frozen=True)
class Pair:
    """Numbers ``high + low``, known up to ``error``; arrays of one shape."""

    high: Array
    low: Array
    error: Array

    def size(self) -> Array:
        """Not less than the magnitudes of the numbers; NaN, of which no comparison holds, where they are not known."""
        value = np.abs(self.high + self.low)
        return np.where((value == 0.0) & (self.error == 0.0), 0.0, (value + self.error) * MORE + DUST)


def magnitudes(x: Array, least: float = SMALL) -> Array:
    """Not less than |x|, nor than ``least`` where it is not 0: no product with an entry in range underflows, and those
    with entries of which 1/RANGE is the least do not either."""
    size = np.abs(x)
    size[(size < least) & (size > 0.0)] = least
    return size


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as its rounded value and what rounding left of it, exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b as its rounded value and what rounding left of it, exactly but for underflow (Dekker, Veltkamp)."""
    p = a * b
    a_high, b_high = _leading(a), _leading(b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def _leading(a: Array) -> Array:
    c = SPLITTER * a
    return c - (c - a)


def product(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """a b as two numbers (see `two_product`), and what these may miss near the end of the range."""
    p, e = two_product(a, b)
    small = np.abs(p) < UNDERFLOW
    if small.any():
        small &= (a != 0.0) & (b != 0.0) & (np.abs(a) != 1.0)
    return p, e, small * DUST


def total(parts: Sequence[Array], errors: Sequence[Array]) -> Pair:
    """The sum of a few arrays of one shape, entry by entry, by cascaded exact sums."""
    high, low, size = parts[0], np.zeros_like(parts[0]), np.zeros_like(parts[0])
    for part in parts[1:]:
        high, left = two_sum(high, part)
        low = low + left
        size = size + np.abs(left)
    error = len(parts) * EPS * size
    for each in errors:
        error = error + each
    return Pair(high, low, error * MORE)


Piece = tuple[slice, Array, Array, Array | float, Array | float]


def extracted(pieces: Callable[[], Iterable[Piece]], size: Array, count: Array) -> Pair:
    """The sums of numbers p + e by their places, of pieces (some, at, p, e, off): ``at`` counts among ``some`` places,
    e is at most a unit of rounding of p, and ``off`` what p + e may miss. Of each place ``size`` is not less than the
    sum of |p|, and ``count`` how many there are.

    With a power of two sigma > 4 size, q = (sigma + p) - sigma is a multiple of u sigma, and p - q is exact and at most
    u sigma. Whatever q are added up, the sum is a multiple of u sigma of at most sigma / 2: exact. What is left, and e,
    are at most u sigma (count + 1) in all, for which a second layer has room.
    """
    sigma = np.where(size <= LARGEST, np.ldexp(4.0, np.frexp(size)[1]), np.nan)  # what may not add up bounds nothing
    second = np.ldexp(sigma, np.ceil(np.log2(count + 1.0)).astype(int) - 50)
    high, low, error = np.zeros((3, len(size)))
    for some, place, p, e, off in pieces():
        at, places = place.astype(np.intp), some.stop - some.start
        s = sigma[some][at]
        q = (s + p) - s
        high[some] += np.bincount(at, q, places)
        s, left = second[some][at], p - q
        q, r = (s + left) - s, (s + e) - s
        low[some] += np.bincount(at, q + r, places)
        rest = np.abs(left - q) + np.abs(e - r) + off
        if rest.any():
            error[some] += np.bincount(at, rest, places)
    high, low = two_sum(high, low)
    return Pair(high, low, error * MORE)


def sums(parts: Sequence[tuple[Array, Pair]], places: int, plain: bool = False) -> Pair:
    """The sums of numbers by their places. Where ``plain``, some of one place in a row are added up before, rounded at
    every step."""
    pieces, size, count = list[tuple[Array, Array, Array]](), *np.zeros((2, places))
    for place, pair in parts:
        each = place, pair.high, pair.error
        pieces.append(_fewer(*each) if plain and len(place) else each)
        if pair.low.any():
            pieces.append((place, np.broadcast_to(pair.low, place.shape), np.zeros(1)))
    for place, p, _ in pieces:
        size += np.bincount(place, np.abs(p), places)
        count += np.bincount(place, minlength=places)
    every = slice(0, places)
    return extracted(lambda: ((every, place, p, 0.0, off) for place, p, off in pieces), size * MORE, count)


def _fewer(place: Array, p: Array, off: Array) -> tuple[Array, Array, Array]:
    new = np.flatnonzero(place[1:] != place[:-1]) + 1
    starts = np.union1d(np.arange(0, len(place), PIECE), new)
    each, size, error = (np.add.reduceat(x, starts) for x in (p, np.abs(p), np.broadcast_to(off, p.shape)))
    steps = np.diff(starts, append=len(place)) - 1
    return place[starts], each, (steps * EPS * size + error) * MORE


def multiples(s: Array, values: Array) -> Pair:
    """-s times values, as they are to be added up; 0 where the values are, and not where they underflow."""
    found = -s * values
    return Pair(found, np.zeros(1), 2 * EPS * np.abs(found) + DUST * (values != 0.0))


def down(found: Pair) -> Array:
    """Numbers, rounded downwards; -inf where they are not known."""
    value = found.high + found.low
    exact = (found.error == 0.0) & (found.low == 0.0)
    with np.errstate(invalid="ignore"):
        lower = np.where(exact, value, value - (found.error * MORE + EPS * np.abs(value) + DUST))
    return np.where(np.isfinite(lower), lower, -np.inf)
