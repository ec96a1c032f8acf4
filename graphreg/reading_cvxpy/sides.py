"""Functions h_j >= 0 of one number with h_j(0) = 0, one for each coordinate, told outwards from 0, as a prox and a
conjugate need them: `Sides` of piecewise quadratic functions, in closed form, and `RootedSides` of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..terms import ULP, Array, slopes_far_out
from .curve import Curve
from .lines import Line, Lines, along

TRUSTED = 9.0 * ULP  # of what values are sums of
LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class Sides:
    """h_j >= 0, h_j(0) = 0 for x >= 0, for each of q coordinates, all (q, r): piece i begins at ``start`` and is
    ``length`` long; there the slope jumps by ``jump`` to ``low``, and from there on grows by ``rise`` at the rate
    ``bend``. Where a coordinate has fewer pieces the rest is 0. Every number is >= 0, so that values, proxes and
    conjugates are sums without cancellation."""

    start: Array
    length: Array
    low: Array
    jump: Array
    rise: Array
    bend: Array
    last: Array  # (q,), the slope at infinity: the end of the domain of the conjugate

    accuracy = 1e-8

    @staticmethod
    def of(curves: Sequence[Curve]) -> Sides:
        """The side x >= 0 of functions that are least at 0."""
        sides = [_outwards(curve) for curve in curves]
        r = max(len(side[0]) for side in sides)
        start, length, low, jump, rise, bend = (
            np.array([np.pad(side[i], (0, r - len(side[i]))) for side in sides]) for i in range(6)
        )
        last = np.array([side[2][-1] + side[4][-1] for side in sides])
        return Sides(start, length, low, jump, rise, bend, last)

    @property
    def first(self) -> Array:
        """The slope at 0, (q,)."""
        return self.low[:, 0]

    @property
    def least_bend(self) -> float:
        """The least second derivative."""
        return float(self.bend[self.length > 0.0].min())

    @property
    def is_smooth(self) -> bool:
        """Whether no slope jumps."""
        return bool((self.jump <= 1e-15 * self.low).all())

    def value(self, x: Array) -> Array:
        """h_j at x >= 0, (m, q)."""
        d = np.clip(x[:, :, None] - self.start, 0.0, self.length)
        return ((self.low + 0.5 * self.bend * d) * d).sum(axis=2)

    def value_bound(self, x: Array) -> Array:
        """Not less than `value` but for a few units in the last place."""
        return self.value(x)

    def slope(self, x: Array) -> Array:
        """h_j' at x >= 0; that to the left where it jumps, and 0 at 0."""
        on = x[:, :, None] > self.start
        d = np.clip(x[:, :, None] - self.start, 0.0, self.length)
        return np.where(on, self.jump + self.bend * d, 0.0).sum(axis=2)

    def curvature(self, x: Array) -> Array:
        """h_j'' at x >= 0; where it jumps, that to the right."""
        d = x[:, :, None] - self.start
        return (self.bend * ((d >= 0.0) & (d < self.length))).sum(axis=2)

    def prox(self, v: Array, step: Array) -> Array:
        """The p with ``p + step h_j'(p) = v``, for v >= 0: along each piece as far as v reaches."""
        t = step[:, None, None]
        room = v[:, :, None] - self.start - t * self.low
        return np.clip(room / (1.0 + t * self.bend), 0.0, self.length).sum(axis=2)

    def conjugate(self, u: Array) -> Array:
        """h_j* at u >= 0: the integral of what has the slope u."""
        over = u[:, :, None] - self.low
        across = self.start * np.clip(over + self.jump, 0.0, self.jump)
        c = np.clip(over, 0.0, self.rise)
        along = c * (self.start + 0.5 * c / np.where(self.bend > 0.0, self.bend, np.inf))
        return np.where(u <= self.last, (across + along).sum(axis=2), np.inf)


def _outwards(curve: Curve) -> tuple[Array, ...]:
    """Starts, lengths, slopes at the starts, jumps there, what they rise by, and bends of the pieces of x >= 0."""
    start = np.concatenate([[0.0], curve.knots[curve.knots > 0.0]])
    length = np.append(np.diff(start), np.inf)
    slope, bend = curve.on(start)
    low = np.maximum(slope + bend * start, 0.0)  # of a function that is least at 0
    rise = np.where(bend > 0.0, bend * np.where(bend > 0.0, length, 0.0), 0.0)
    jump = np.maximum(low - np.append(0.0, (low + rise)[:-1]), 0.0)
    return start, length, low, jump, rise, bend


@dataclass(frozen=True, eq=False)
class RootedSides:
    """h_j >= 0, h_j(0) = 0, convex, at x >= 0; +inf where it is not finite: a function along the lines of ``ways``
    (q, k). Proxes and conjugates are roots of one number, by Newton's method within a bracket."""

    function: Lines
    ways: Array

    accuracy = 1e-7  # values near 0 may be differences of large numbers
    least_bend = 0.0  # as far as is known

    def line(self, x: Array, j: Array) -> Line:
        """What h_j is at x, all (n,)."""
        ways = self.ways[j]
        with np.errstate(all="ignore"):
            found = self.function(along(x[:, None] * ways, ways))
            line = Line(*(np.broadcast_to(each, (len(x), 1))[:, 0] for each in found))
        out = np.isnan(line.value) | (line.value == np.inf)
        ends = out | np.isnan(line.slope)  # as at the end of a domain
        return Line(*(np.where(by, np.inf, each) for by, each in zip((out, ends, ends, out), line, strict=True)))

    @cached_property
    def first(self) -> Array:
        """The slope at 0, (q,)."""
        return np.maximum(self.line(np.zeros(len(self.ways)), np.arange(len(self.ways))).slope, 0.0)

    @cached_property
    def last(self) -> Array:
        """The slope at infinity, (q,): the end of the domain of the conjugate."""
        j = np.arange(len(self.ways))
        return slopes_far_out(lambda x: self.line(x, j).slope, j.shape)[1]

    def value(self, x: Array) -> Array:
        """h_j at x >= 0, (m, q)."""
        return self._each(lambda x, j: np.where(x == 0.0, 0.0, np.maximum(self.line(x, j).value, 0.0)), x)

    def value_bound(self, x: Array) -> Array:
        """The same, and what rounding may have taken of it."""
        return self.value(x) + self._each(lambda x, j: np.where(x == 0.0, 0.0, TRUSTED * self.line(x, j).size), x)

    def slope(self, x: Array) -> Array:
        """h_j' at x >= 0, and 0 at 0; where it jumps that to the right."""
        return self._each(lambda x, j: np.where(x == 0.0, 0.0, self.line(x, j).slope), x)

    def prox(self, v: Array, step: Array) -> Array:
        """The p with ``p + step h_j'(p) = v``, for v >= 0."""
        return self._each(self._prox, v, np.broadcast_to(step[:, None], v.shape))

    def _prox(self, v: Array, step: Array, j: Array) -> Array:
        most = np.maximum(v - step * self.first[j], 0.0)

        def beyond(p: Array) -> Array:
            return p + step * (self.line(p, j).slope - self.first[j]) > most

        return _between(beyond, np.nextafter(most, np.inf))[0]

    def conjugate(self, u: Array) -> Array:
        """h_j* at u >= 0, rounded upwards."""
        return self._each(self._conjugate, u)

    def _conjugate(self, u: Array, j: Array) -> Array:
        """The sup over x of ``u x - h_j(x)`` is attained between two ends that slopes show: as h_j is convex, it is at
        most its value at the lower one and (u - h_j') times the width."""
        low, high = _between(lambda x: self.line(x, j).slope >= u, np.where(u > self.first[j], LARGEST, 0.0))
        line = self.line(low, j)
        with np.errstate(all="ignore"):
            over = np.where(high > low, (u - line.slope) * (high - low), 0.0)
            top = u * low - line.value + over + TRUSTED * (u * low + line.size)
        fine = (u < self.last[j]) & np.isfinite(top)
        return np.where(u <= self.first[j], 0.0, np.where(fine, np.maximum(top, 0.0), np.inf))

    def _each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """A function of the entries of arrays (m, q), and of the number of their column."""
        shape = arrays[0].shape
        j = np.broadcast_to(np.arange(shape[1]), shape).ravel()
        return np.reshape(function(*(array.ravel() for array in arrays), j), shape)


def _between(reached: Callable[[Array], Array], high: Array) -> tuple[Array, Array]:
    """Neighbours among the floats from 0 to high, between which something is reached: by halving what lies between
    them, as the bits of floats >= 0 are integers in the same order."""
    low, high = np.zeros(len(high), dtype=np.int64), np.array(high, dtype=float).view(np.int64)
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        over = reached(middle.view(float))
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return low.view(float), high.view(float)
