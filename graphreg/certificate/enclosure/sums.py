"""Sums without cancellation: products split exactly, sums by extraction, what is left bounded.

A sum is returned as a pair ``high + low`` and a bound ``error`` of what that misses. By extraction (Rump, Ogita and
Oishi, Accurate floating-point summation, SIAM J. Sci. Comput. 31, 2008) the leading parts of all summands add up
exactly in any order; two layers leave an error of about the unit roundoff squared times the largest summand.
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

    def upper(self) -> Array:
        """Not less than the numbers."""
        value = self.high + self.low
        return value + (self.error * MORE + EPS * np.abs(value))


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
        first = np.concatenate([[0], changes]) if len(index) else changes
        self.starts = first
        self.counts = np.diff(first, append=len(index))
        self.targets = sorted_index[first]

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

    def sums(self, values: Array, plain: bool = False) -> Pair:
        """sum over each run of values (L, p) or (L,): Pair of (size, p) or (size,)."""
        if plain and self.size == 1 and values.ndim == 1 and len(values) > 2 * PIECE:
            return _in_pieces(values)
        out = Pair(*(np.zeros((self.size, *values.shape[1:])) for _ in range(3)))
        for runs, rows in self.chunks():
            if plain:
                self._add(out, runs, values[rows], 1)
            else:
                self._store(out, runs, values[rows], None, None)
        return out

    def _add(self, out: Pair, runs: slice, p: Array, roundings: int) -> None:
        starts, counts = self.starts[runs] - self.starts[runs.start], self.counts[runs]
        target = self.targets[runs]
        out.high[target] = np.add.reduceat(p, starts, axis=0)
        size = np.add.reduceat(np.abs(p), starts, axis=0)
        steps = (counts + roundings).reshape(-1, *[1] * (p.ndim - 1))
        out.error[target] = steps * (EPS * size + DUST * (size > 0.0)) * MORE

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


def _in_pieces(values: Array) -> Pair:
    """The sum of all values (L,) as a pair of (1,), plainly within pieces."""
    starts = np.arange(0, len(values), PIECE)
    each, size = np.add.reduceat(values, starts), np.add.reduceat(np.abs(values), starts)
    found = Runs(np.zeros(len(starts), dtype=int), 1).sums(each)
    return Pair(found.high, found.low, found.error + PIECE * EPS * MORE * float(size.sum()) + DUST * len(values))


def dust(p: Array, a: Array, b: Array) -> Array | None:
    """What products near the end of the range may miss; None where there are none."""
    small = (np.abs(p) < UNDERFLOW) & (a != 0.0) & (b != 0.0)
    return small * DUST if small.any() else None


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
