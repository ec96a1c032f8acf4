"""Arithmetic that pays for its rounding: sums and products without error, bounds that are rounded outwards.

IEEE doubles, to nearest, with gradual underflow; sums and products of matrices in any order, with or without fused
multiply and add. A sum is returned as a pair ``high + low`` and a bound ``error`` of what that misses. By extraction
(Rump, Ogita and Oishi, Accurate floating-point summation, SIAM J. Sci. Comput. 31, 2008) the leading parts of all
summands add up exactly in any order; two layers leave an error of about the unit roundoff squared times the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...terms import Array

EPS = 2.0**-52  # twice the unit roundoff: the other half pays for terms of second order
MORE = 1.0 + 1e-7  # for sums of bounds, which are rounded themselves: enough for 4e8 summands in any order
SPLITTER = 134217729.0  # 2^27 + 1
UNDERFLOW = 1e-280  # products below it may not split exactly
DUST = 1e-300  # what such a product, or any operation at the end of the range, may miss
LARGEST = 1020  # exponent of sums, near the end of the range
CHUNK = 1 << 16  # summands at a time, so that they stay in the cache
PIECE = 512  # summands that are added up plainly; those sums are added up without rounding
RANGE = 1e70  # entries of designs, answers and scales lie within 1/RANGE .. RANGE, so that products do not underflow
MOST = 1e140  # of the numbers of a point, and of targets
LEAST = 1e-110  # of corrections that are not 0


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
    return bool((np.abs(x) < MOST).all())


def upwards(x: Array, roundings: int) -> Array:
    """Not less than what x >= 0 stands for: a value of so many roundings of numbers >= 0, where 0 is exact."""
    return np.where(x > 0.0, x * (1.0 + (roundings + 3) * EPS) + DUST, x)


@dataclass(frozen=True)
class Pair:
    """Numbers ``high + low``, known up to ``error``; arrays of one shape."""

    high: Array
    low: Array
    error: Array

    def within(self, columns: Any, shape: tuple[int, int]) -> Pair:
        """The same in some columns of arrays of a shape, with 0 in the others."""
        out = Pair(*np.zeros((3, *shape)))
        for whole, part in ((out.high, self.high), (out.low, self.low), (out.error, self.error)):
            whole[:, columns] = part
        return out

    def size(self) -> Array:
        """Not less than the magnitudes of the numbers; NaN, of which no comparison holds, where they are not known."""
        value = np.abs(self.high + self.low)
        return np.where((value == 0.0) & (self.error == 0.0), 0.0, (value + self.error) * MORE + DUST)


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


def dust(p: Array, a: Array, b: Array) -> Array | None:
    """What products near the end of the range may miss; None where there are none."""
    small = (np.abs(p) < UNDERFLOW) & (a != 0.0) & (b != 0.0)
    return small * DUST if small.any() else None


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


class Runs:
    """Sums over runs of consecutive entries (along the first axis) of arrays in a given order."""

    def __init__(self, index: Array, size: int) -> None:
        self.size = size
        rising = bool((index[1:] >= index[:-1]).all()) if len(index) else True
        self.order: Array | None = None if rising else np.argsort(index, kind="stable")
        sorted_index = index if self.order is None else index[self.order]
        changes = np.flatnonzero(sorted_index[1:] != sorted_index[:-1]) + 1
        self.starts = np.concatenate([[0], changes]) if len(index) else changes
        self.counts = np.diff(self.starts, append=len(index))
        self.targets = sorted_index[self.starts]

    def chunks(self) -> Iterator[tuple[slice, slice | Array]]:
        """Some runs at a time, and the entries that they hold."""
        ends = self.starts + self.counts
        begin = 0
        while begin < len(self.starts):
            end = int(np.searchsorted(ends, self.starts[begin] + CHUNK, side="right"))
            end = max(end, begin + 1)
            rows = slice(int(self.starts[begin]), int(ends[end - 1]))
            yield slice(begin, end), rows if self.order is None else self.order[rows]
            begin = end

    def products(self, X: Array, a: Array) -> Pair:
        """sum over each run of a_r x_r, for X (L, p) and a (L,): Pair of (size, p)."""
        out = Pair(*(np.zeros((self.size, X.shape[1])) for _ in range(3)))
        for runs, rows in self.chunks():
            x, factor = X[rows], a[rows][:, None]
            p, e = two_product(x, factor)
            self._store(out, runs, p, e, dust(p, x, factor))
        return out

    def sums(self, values: Array) -> Pair:
        """sum over each run of values (L, p) or (L,): Pair of (size, p) or (size,)."""
        out = Pair(*(np.zeros((self.size, *values.shape[1:])) for _ in range(3)))
        for runs, rows in self.chunks():
            self._store(out, runs, values[rows], None, None)
        return out

    def plain(self, values: Array) -> Pair:
        """The same of values (L,), rounded at every step within pieces, which are added up without rounding."""
        values = values if self.order is None else values[self.order]
        starts = np.union1d(self.starts, np.arange(0, len(values), PIECE))
        each, size = (np.add.reduceat(x, starts) if len(x) else x for x in (values, np.abs(values)))
        off = np.diff(starts, append=len(values)) * (EPS * size + DUST * (size > 0.0))
        if len(starts) == len(self.starts) == self.size:
            return Pair(each, np.zeros(len(each)), off * MORE)
        of_pieces = Runs(self.targets[np.searchsorted(self.starts, starts, side="right") - 1], self.size)
        found = of_pieces.sums(each)
        return Pair(found.high, found.low, found.error + of_pieces.most(off))

    def most(self, amounts: Array) -> Array:
        """Not less than the sums of amounts >= 0 (L,) over each run, (size,)."""
        amounts = amounts if self.order is None else amounts[self.order]
        out = np.zeros(self.size)
        if len(amounts):
            out[self.targets] = np.add.reduceat(amounts, self.starts) * MORE
        return out

    def largest(self, values: Array) -> Array:
        """The largest magnitude of each run, for values (L, p): (size, p)."""
        return self._magnitudes(np.maximum, values)

    def magnitudes(self, values: Array) -> Array:
        """The sum of the magnitudes of each run, for values (L, p): (size, p), as rounded."""
        return self._magnitudes(np.add, values)

    def _magnitudes(self, how: np.ufunc, values: Array) -> Array:
        out = np.zeros((self.size, values.shape[1]))
        for runs, rows in self.chunks():
            first = self.starts[runs]
            out[self.targets[runs]] = how.reduceat(np.abs(values[rows]), first - first[0], axis=0)
        return out

    def _store(self, out: Pair, runs: slice, p: Array, e: Array | None, missed: Array | None) -> None:
        starts, counts = self.starts[runs] - self.starts[runs.start], self.counts[runs]
        found = _extracted(p, e, starts, counts)
        target = self.targets[runs]
        out.high[target], out.low[target], out.error[target] = found.high, found.low, found.error
        if missed is not None:
            out.error[target] += np.add.reduceat(missed, starts, axis=0)


def _extracted(p: Array, e: Array | None, starts: Array, counts: Array) -> Pair:
    """Sums over the runs of p + e, where e is small beside p."""
    bits = np.ceil(np.log2(counts + 2.0)).astype(int)
    shape = (-1, *[1] * (p.ndim - 1))
    first, rest = _layer([p], starts, counts, bits.reshape(shape))
    second, rest = _layer([*rest] if e is None else [*rest, e], starts, counts, (bits + 1).reshape(shape))
    high, low = two_sum(first, second)
    left, size = np.zeros_like(high), np.zeros_like(high)
    for part in rest:
        if part.any():
            left = left + np.add.reduceat(part, starts, axis=0)
            size = size + np.add.reduceat(np.abs(part), starts, axis=0)
    error = (2.0 * EPS) * counts.reshape(shape) * size * MORE
    more = low + left
    return Pair(high, more, error + np.where(left != 0.0, EPS * np.abs(more), 0.0))


def _layer(parts: list[Array], starts: Array, counts: Array, bits: Array) -> tuple[Array, list[Array]]:
    """The sum of the leading parts, exactly, and what is left of each."""
    top = np.maximum.reduceat(np.abs(parts[0]), starts, axis=0)
    for part in parts[1:]:
        top = np.maximum(top, np.maximum.reduceat(np.abs(part), starts, axis=0))
    size = bits + np.frexp(top)[1]
    sigma = np.where(top > 0.0, np.ldexp(1.0, np.minimum(size, LARGEST)), 0.0)
    sigma = np.where(size > LARGEST, np.nan, sigma)  # leading parts that may not add up exactly bound nothing
    each = np.repeat(sigma, counts, axis=0)
    found, rest = np.zeros_like(sigma), []
    for part in parts:
        q = (each + part) - each
        found = found + np.add.reduceat(q, starts, axis=0)
        rest.append(part - q)
    return found, rest
