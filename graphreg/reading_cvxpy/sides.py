"""Functions h_j >= 0 of one number with h_j(0) = 0, one for each coordinate, told outwards from 0, as a prox and a
conjugate need them: `Sides` of piecewise quadratic functions, in closed form, and `RootedSides` of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..terms import ULP, Array, slopes_far_out
from .functions import Curve, Function, Key, Line
from .norms import power_root

TRUSTED = 6.0 * ULP  # of what values are sums of
SURE = 1.5  # times that in bounds, so that they are above values that are rounded otherwise
CANCELS = 8.0  # times as large as their sum may parts be
RULES = tuple((0.5 * (1.0 + nodes), 0.5 * weights) for nodes, weights in map(np.polynomial.legendre.leggauss, (6, 9)))
STEPS = 200
SETTLED = 1e-12
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

    def conjugate_bound(self, u: Array) -> Array:
        """Not less than `conjugate` but for a few units in the last place."""
        return self.conjugate(u)


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
    """h_j >= 0, h_j(0) = 0, convex, at x >= 0; +inf where it is not finite. Proxes and conjugates are roots of one
    number, by Newton's method within a bracket. ``groups`` are the coordinates on which it is the same function."""

    groups: tuple[tuple[Array, Function], ...]
    q: int

    @staticmethod
    def of(functions: Sequence[Function]) -> RootedSides:
        """The side x >= 0 of functions that are least at 0."""
        alike: dict[Key, list[int]] = {}
        for j, h in enumerate(functions):
            alike.setdefault(h.key, []).append(j)
        return RootedSides(tuple((np.array(on), functions[on[0]]) for on in alike.values()), len(functions))

    @cached_property
    def first(self) -> Array:
        """The slope at 0, (q,)."""
        return self._each(lambda h, x: np.maximum(jet(h, x).slope, 0.0), np.zeros((1, self.q)))[0]

    @cached_property
    def last(self) -> Array:
        """The slope at infinity, (q,): the end of the domain of the conjugate."""
        far = self._each(lambda h, x: slopes_far_out(lambda x: jet(h, x).slope, x.shape)[1], np.zeros((1, self.q)))
        return far[0]

    def value(self, x: Array) -> Array:
        """h_j at x >= 0, (m, q)."""
        return self._each(lambda h, x: np.where(x == 0.0, 0.0, np.maximum(sharp(h, x).value, 0.0)), x)

    def value_bound(self, x: Array) -> Array:
        """The same, and what rounding may have taken of it."""
        return self.value(x) + self._each(lambda h, x: TRUSTED * sharp(h, x).size, x)

    def slope(self, x: Array) -> Array:
        """h_j' at x >= 0, and 0 at 0; where it jumps that to the right."""
        return self._each(lambda h, x: np.where(x == 0.0, 0.0, sharp(h, x).slope), x)

    def prox(self, v: Array, step: Array) -> Array:
        """The p with ``p + step h_j'(p) = v``, for v >= 0."""
        return self._each(_prox, v, np.broadcast_to(step[:, None], v.shape))

    def conjugate(self, u: Array) -> Array:
        """h_j* at u >= 0, rounded upwards."""
        return self._conjugate(u, TRUSTED)

    def conjugate_bound(self, u: Array) -> Array:
        """The same, and more than what rounding may have left of `conjugate` at another point."""
        return self._conjugate(u, SURE * TRUSTED)

    def _conjugate(self, u: Array, trusted: float) -> Array:
        inside = (u < self.last) | (u == 0.0)
        found = self._each(lambda h, u: _conjugate(h, u, trusted), np.where(inside, u, 0.0))
        return np.where(inside, found, np.inf)

    def _each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """A function of the entries of arrays (m, q) that belong to one group, for each group."""
        out = np.empty(arrays[0].shape)
        for on, h in self.groups:
            out[:, on] = np.reshape(function(h, *(array[:, on].ravel() for array in arrays)), (-1, len(on)))
        return out


def jet(h: Function, x: Array) -> Line:
    """Values, slopes and curvatures; +inf where h is not finite."""
    line = h.jet(x)
    out = np.isnan(line.value) | np.isnan(line.slope) | (line.value == np.inf)
    return Line(*(np.where(out, np.inf, each) for each in line)) if out.any() else line


def sharp(h: Function, x: Array) -> Line:
    """The same; values and slopes that are small against what they are sums of are integrals of the curvature instead,
    h(x) = h'(0) x + integral of (x - s) h''(s), up to the first knot, by two rules of Gauss that must agree."""
    line = jet(h, x)
    cancels = (line.size > CANCELS * np.abs(line.value)) & np.isfinite(line.size)
    near = np.flatnonzero(cancels & (x > 0.0) & (x < h.smooth_until))
    if not len(near):
        return line
    y, first = x[near], _at_zero(h)[0]
    found: list[Array] = []  # slopes and values by each rule
    for s, w in RULES:
        bend = h.jet(np.outer(y, s).ravel()).bend.reshape(len(y), len(s))
        found.append(np.array([first + y * (bend @ w), y * (first + y * (bend @ (w * (1.0 - s))))]))
    agree = (np.abs(found[0] - found[1]) <= TRUSTED * found[1]).all(axis=0)
    value, slope, size = (np.array(each) for each in (line.value, line.slope, line.size))
    slope[near[agree]], value[near[agree]] = found[1][:, agree]
    size[near[agree]] = found[1][1, agree]
    return Line(value, slope, line.bend, size)


def _at_zero(h: Function) -> tuple[float, float]:
    """The slope and the curvature at 0."""
    line = jet(h, np.zeros(1))
    return max(float(line.slope[0]), 0.0), float(line.bend[0])


def _prox(h: Function, v: Array, step: Array) -> Array:
    """For a power the p with ``p + step c e p^(e - 1) = v``."""
    if power := h.power():
        c, e = power
        if e >= 2.0:
            return power_root(1.0, c * e * step, e - 1.0, v)
        return power_root(c * e * step, 1.0, 1.0 / (e - 1.0), v) ** (1.0 / (e - 1.0))
    first, bend = _at_zero(h)
    out = np.zeros(v.shape)
    live = np.flatnonzero(v > step * first)
    high, t = v[live], step[live]
    start = (high - t * first) / (1.0 + t * max(bend, 0.0)) if np.isfinite(bend) else 0.5 * high

    def excess(p: Array, on: Array) -> tuple[Array, Array]:
        line = jet(h, p)
        return p + t[on] * line.slope - high[on], 1.0 + t[on] * line.bend

    p, low, _ = _roots(excess, high, start)
    out[live] = np.where(np.isfinite(jet(h, p).value), p, low)
    return out


def _conjugate(h: Function, u: Array, trusted: float) -> Array:
    if power := h.power():
        c, e = power
        return (1.0 - 1.0 / e) * u * (u / (c * e)) ** (1.0 / (e - 1.0)) * (1.0 + trusted)
    first, bend = _at_zero(h)
    out = np.zeros(u.shape)
    live = np.flatnonzero(u > first)
    u = u[live]

    def excess(x: Array, on: Array) -> tuple[Array, Array]:
        line = sharp(h, x)
        return line.slope - u[on], line.bend

    start = (u - first) / bend if 0.0 < bend < np.inf else np.ones(len(u))
    x, low, high = _roots(excess, np.full(len(u), np.inf), start)
    top = np.fmin(_between(h, u, *_around(h, u, x), trusted), _between(h, u, low, high, trusted))
    out[live] = np.where(np.isfinite(top), np.maximum(top, 0.0), np.inf)
    return out


def _around(h: Function, u: Array, x: Array) -> tuple[Array, Array]:
    """The ends of a narrow bracket of where the slope is u, near x, where slopes show that it is one; else nan."""
    with np.errstate(all="ignore"):
        line = sharp(h, x)
        step = (u - line.slope) / line.bend
        width = np.clip(np.sqrt(ULP * u * x / line.bend), 4.0 * ULP * x, NEAR * x) + LEFT * np.abs(step)
        low, high = np.maximum(x + step - width, 0.0), x + step + width
        found = (np.abs(step) <= SMALL * x) & (sharp(h, low).slope <= u) & (sharp(h, high).slope >= u)
    return np.where(found, low, np.nan), np.where(found, high, np.nan)


def _between(h: Function, u: Array, low: Array, high: Array, trusted: float) -> Array:
    """A bound of sup over x of ``u x - h(x)``, which is attained between low and high: as h is convex, at most its
    value at low and (u - h'(low)) times the width."""
    with np.errstate(all="ignore"):
        line = sharp(h, low)
        over = np.where(high > low, (u - line.slope) * (high - low), 0.0)
        return u * low - line.value + over + trusted * (u * low + line.size)


def _roots(function: Rising, high: Array, start: Array) -> tuple[Array, Array, Array]:
    """Where rising functions are 0 between 0 and high, and the brackets that are left.

    Newton's steps; one that leaves the bracket, or is longer than half the one before the last, is replaced by the
    middle: the geometric one of a wide bracket, since roots may be smaller or larger than the start by any factor.
    """
    p, low, high = np.array(start), np.zeros(len(start)), np.array(high)
    last, before, live = np.full(len(p), np.inf), np.full(len(p), np.inf), np.arange(len(p))
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            if not len(live):
                break
            x = p[live]
            value, slope = function(x, live)
            a = low[live] = np.where(value <= 0.0, x, low[live])
            b = high[live] = np.where(value >= 0.0, x, high[live])
            step = value / slope
            new = x - step
            fair = (new > a) & (new < b) & (2.0 * np.abs(step) <= before[live])
            # Newton's steps square what is left, unless they are short because the slope is huge
            squared = np.isfinite(last[live]) & (np.abs(step) <= np.minimum(SETTLED * x, 1e-3 * last[live]))
            done = squared | (np.abs(step) <= 2.0 * ULP * x)
            middle = np.where(a > 0.0, np.sqrt(a) * np.sqrt(b), b / 1024.0)
            middle = np.where((a > 0.0) & (b <= 4.0 * a), 0.5 * (a + b), middle)
            middle = np.where(np.isinf(b), np.minimum(4.0 * x * np.maximum(x / start[live], 1.0), 1e300), middle)
            done |= value == 0.0
            new = np.where(done, np.clip(new, a, b), np.where(fair, new, middle))
            before[live], last[live] = last[live], np.abs(new - x)
            p[live] = np.where(value == 0.0, x, new)
            live = live[~(done | (b - a <= ULP * a) | (b <= 1e-300))]
    return p, low, high
