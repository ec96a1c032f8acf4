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
STEPS = 200
SETTLED = 1e-12
FURTHER = 10.0  # logarithm of how much longer a step of Newton's may lead
NEAR = 2.0**-32  # relative width of a bracket of a root: of values its square is missed
SMALL, LEFT = 1e-6, 1e-4  # a last step of Newton's, relative, and what it leaves of its length

Rising = Callable[[Array, Array], tuple[Array, Array]]  # values and slopes at points, of some of the problems


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
        """True where no slope jumps."""
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
    knots, _, slope, bend = curve.pieces
    start = np.concatenate([[0.0], knots[knots > 0.0]])
    length = np.append(np.diff(start), np.inf)
    piece = np.searchsorted(knots, start, side="right")
    slope, bend = slope[piece], bend[piece]
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
        """The value, and what rounding may have taken of it."""
        size = self._each(lambda x, j: np.where(x == 0.0, 0.0, self.line(x, j).size), x)
        return self.value(x) + TRUSTED * np.where(np.isnan(size), np.inf, size)  # at the end of the domain

    def slope(self, x: Array) -> Array:
        """h_j' at x >= 0, and 0 at 0; where it jumps that to the right."""
        return self._each(lambda x, j: np.where(x == 0.0, 0.0, self.line(x, j).slope), x)

    def prox(self, v: Array, step: Array) -> Array:
        """The p with ``p + step h_j'(p) = v``, for v >= 0."""
        return self._each(self._prox, v, np.broadcast_to(step[:, None], v.shape))

    def _prox(self, v: Array, step: Array, j: Array) -> Array:
        high = v - step * self.first[j]
        out, live = np.zeros(v.shape), np.flatnonzero(high > 0.0)

        def rise(p: Array, on: Array) -> tuple[Array, Array]:
            line, t = self.line(p, j[live[on]]), step[live[on]]
            return p + t * (line.slope - self.first[j[live[on]]]), 1.0 + t * line.bend

        p, low, _ = _roots(rise, high[live], high[live], np.array(high[live]))
        out[live] = np.where(np.isfinite(self.line(p, j[live]).value), p, low)
        return out

    def conjugate(self, u: Array) -> Array:
        """h_j* at u >= 0, rounded upwards."""
        return self._each(self._conjugate, u)

    def _conjugate(self, u: Array, j: Array) -> Array:
        """The sup over x of ``u x - h_j(x)`` is attained between two ends that slopes show: as h_j is convex, it is at
        most its value at the lower one and (u - h_j') times the width."""
        ends = u < self.last[j]
        out, live = np.where(ends | (u == 0.0), 0.0, np.inf), np.flatnonzero(ends & (u > self.first[j]))
        u, j = u[live], j[live]
        first = self.first[j]

        def rise(x: Array, on: Array) -> tuple[Array, Array]:
            line = self.line(x, j[on])
            return line.slope - first[on], line.bend

        with np.errstate(all="ignore"):
            x, low, high = _roots(rise, u - first, np.full(len(u), np.inf), np.ones(len(u)))
            line = self.line(x, j)
            step = (u - line.slope) / line.bend
            width = np.clip(np.sqrt(ULP * u * x / line.bend), 4.0 * ULP * x, NEAR * x) + LEFT * np.abs(step)
            below, above = np.maximum(x + step - width, 0.0), x + step + width
            near = (np.abs(step) <= SMALL * x) & (self.line(below, j).slope <= u) & (self.line(above, j).slope >= u)
            low, high = np.where(near, below, low), np.where(near, above, high)
            line = self.line(low, j)
            over = np.where(high > low, (u - line.slope) * (high - low), 0.0)
            top = u * low - line.value + over + TRUSTED * (u * low + line.size)
        out[live] = np.where(np.isfinite(top), np.maximum(top, 0.0), np.inf)
        return out

    def _each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """A function of the entries of arrays (m, q), and of the number of their column."""
        shape = arrays[0].shape
        j = np.broadcast_to(np.arange(shape[1]), shape).ravel()
        return np.reshape(function(*(array.ravel() for array in arrays), j), shape)


def _roots(function: Rising, target: Array, high: Array, start: Array) -> tuple[Array, Array, Array]:
    """Where functions that rise from 0 at 0 reach a target > 0 below high, and the brackets that are left.

    Newton's steps on logarithms, which powers are lines in; one that leaves the bracket, or is longer than half the one
    before the last, is replaced by the middle: the geometric one of a wide bracket.
    """
    p, low, high = start, np.zeros(len(start)), np.array(high)
    last, before, live = np.full(len(p), np.inf), np.full(len(p), np.inf), np.arange(len(p))
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            if not len(live):
                break
            x, aim = p[live], target[live]
            value, slope = function(x, live)
            a = low[live] = np.where(value <= aim, x, low[live])
            b = high[live] = np.where(value >= aim, x, high[live])
            power = -np.log1p((value - aim) / aim) * (value / (x * slope))
            step = x * np.expm1(np.minimum(power, FURTHER))
            new = x + step
            fair = (new > a) & (new < b) & (2.0 * np.abs(step) <= before[live])
            # Newton's steps square what is left, unless they are short because the slope is huge
            squared = np.isfinite(last[live]) & (np.abs(step) <= np.minimum(SETTLED * x, 1e-3 * last[live]))
            done = squared | (np.abs(step) <= 16.0 * ULP * x) | (value == aim)
            middle = np.where(a > 0.0, np.sqrt(a) * np.sqrt(b), b / 1024.0)
            middle = np.where((a > 0.0) & (b <= 4.0 * a), 0.5 * (a + b), middle)
            middle = np.where(np.isinf(b), np.minimum(4.0 * x * np.maximum(x, 1.0), 1e300), middle)
            new = np.where(done, np.clip(new, a, b), np.where(fair, new, middle))
            before[live], last[live] = last[live], np.abs(new - x)
            p[live] = np.where(value == aim, x, new)
            live = live[~(done | (b - a <= ULP * a) | (b <= 1e-300))]
    return p, low, high
