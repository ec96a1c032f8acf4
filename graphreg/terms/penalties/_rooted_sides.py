"""`Sides` of functions that have no closed form: proxes and conjugates are roots of one number, by Newton's method
within a bracket, for all rows and coordinates together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..bounds import ULP
from ..derivatives import Line
from ..records import Array
from ..roots import HUGE
from ._functions import Function, Key
from ._rooted_norms import power_root

TRUSTED = 6.0 * ULP  # of what values are sums of
SURE = 1.5  # times that in bounds, so that they are above values that are rounded otherwise
CANCELS = 8.0  # times as large as their sum may parts be
RULES = tuple((0.5 * (1.0 + nodes), 0.5 * weights) for nodes, weights in map(np.polynomial.legendre.leggauss, (6, 9)))
STEPS = 200
SETTLED = 1e-12
FAR_OUT = (1e300, 1e150, 1e75, 1e12, 700.0)  # where slopes have reached their limits, in floats at one of them
NEAR = 2.0**-32  # relative width of a bracket of a root: of values its square is missed
SMALL, LEFT = 1e-6, 1e-4  # a last step of Newton's, relative, and what it leaves of its length

Rising = Callable[[Array, Array], tuple[Array, Array]]  # values and slopes at points, of some of the problems


@dataclass(frozen=True, eq=False)
class RootedSides:
    """h_j >= 0, h_j(0) = 0, convex, at x >= 0; +inf where it is not finite. ``groups`` are the coordinates on which it
    is the same function."""

    groups: tuple[tuple[Array, Function], ...]
    q: int

    @staticmethod
    def of(functions: Sequence[Function]) -> RootedSides:
        """The side x >= 0 of functions that are least at 0."""
        alike: dict[Key, list[int]] = {}
        for j, h in enumerate(functions):
            alike.setdefault(h.key(), []).append(j)
        return RootedSides(tuple((np.array(on), functions[on[0]]) for on in alike.values()), len(functions))

    @cached_property
    def first(self) -> Array:
        """The slope at 0, (q,)."""
        return self._numbers(lambda h: max(float(jet(h, np.zeros(1)).slope[0]), 0.0))

    @cached_property
    def last(self) -> Array:
        """The slope at infinity, (q,): the end of the domain of the conjugate."""
        return self._numbers(_limit)

    def value(self, x: Array) -> Array:
        """h_j at x >= 0, (m, q)."""
        return self._each(lambda h, x: np.where(x == 0.0, 0.0, np.maximum(sharp(h, x).value, 0.0)), x)

    def error(self, x: Array) -> Array:
        """What rounding may have taken of `value`."""
        return self._each(lambda h, x: TRUSTED * sharp(h, x).size, x)

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
        last = self.last
        inside = (u < last) | (u == 0.0)
        found = self._each(lambda h, u: _conjugate(h, u, trusted), np.where(inside, u, 0.0))
        return np.where(inside, found, np.inf)

    def _numbers(self, number: Callable[[Function], float]) -> Array:
        out = np.empty(self.q)
        for on, h in self.groups:
            out[on] = number(h)
        return out

    def _each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """A function of the entries of arrays (m, q) that belong to one group, for each group."""
        out = np.empty(arrays[0].shape)
        for on, h in self.groups:
            rows = [np.ascontiguousarray(array[:, on]) for array in arrays]
            out[:, on] = np.reshape(function(h, *(each.ravel() for each in rows)), rows[0].shape)
        return out


def jet(h: Function, x: Array) -> Line:
    """Values, slopes and curvatures; +inf where h is not finite."""
    line = h.jet(x)
    out = np.isnan(line.value) | np.isnan(line.slope) | (line.value == np.inf)
    if not out.any():
        return line
    return Line(*(np.where(out, np.inf, each) for each in line))


def sharp(h: Function, x: Array) -> Line:
    """The same; values and slopes that are small against what they are sums of are integrals of the curvature instead,
    h(x) = h'(0) x + integral of (x - s) h''(s), up to the first knot, by two rules of Gauss that must agree."""
    line = jet(h, x)
    cancels = (line.size > CANCELS * np.abs(line.value)) & np.isfinite(line.size)
    near = np.flatnonzero(cancels & (x > 0.0) & (x < h.smooth_until))
    if not len(near):
        return line
    y = x[near]
    slopes, values = np.transpose([_integrals(h, y, *rule) for rule in RULES], (1, 0, 2))
    agree = (np.abs(values[0] - values[1]) <= TRUSTED * values[1]) & (
        np.abs(slopes[0] - slopes[1]) <= TRUSTED * slopes[1]
    )
    value, slope, size = (np.array(each) for each in (line.value, line.slope, line.size))
    value[near[agree]], slope[near[agree]], size[near[agree]] = values[1, agree], slopes[1, agree], values[1, agree]
    return Line(value, slope, line.bend, size)


def _integrals(h: Function, x: Array, s: Array, w: Array) -> tuple[Array, Array]:
    """h' and h from the integrals of h'' and of (x - s) h'' from 0 to x, by a rule with nodes s and weights w."""
    bend = h.jet(np.outer(x, s).ravel()).bend.reshape(len(x), len(s))
    first = max(float(jet(h, np.zeros(1)).slope[0]), 0.0)
    return first + x * (bend @ w), x * (first + x * (bend @ (w * (1.0 - s))))


def _limit(h: Function) -> float:
    """The slope far out, where conjugates are as large as floats are; +inf where it is huge, or where h ends before."""
    line = h.jet(np.array(FAR_OUT))
    slopes = np.where(np.isnan(line.value), np.inf, line.slope)
    seen = slopes[np.isfinite(slopes)]
    return float(seen[0]) if len(seen) and np.isfinite(slopes[-1]) and seen[0] < HUGE else np.inf


def _prox(h: Function, v: Array, step: Array) -> Array:
    power = h.power()
    if power is not None:
        return _power_prox(*power, v, step)
    at_zero = jet(h, np.zeros(1))
    first, bend = max(float(at_zero.slope[0]), 0.0), float(at_zero.bend[0])
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


def _power_prox(c: float, e: float, v: Array, step: Array) -> Array:
    """The p with ``p + step c e p^(e - 1) = v``."""
    if e >= 2.0:
        return power_root(1.0, c * e * step, e - 1.0, v)
    return power_root(c * e * step, 1.0, 1.0 / (e - 1.0), v) ** (1.0 / (e - 1.0))


def _conjugate(h: Function, u: Array, trusted: float) -> Array:
    power = h.power()
    if power is not None:
        factor, e = power
        return (1.0 - 1.0 / e) * u * (u / (factor * e)) ** (1.0 / (e - 1.0)) * (1.0 + trusted)
    at_zero = jet(h, np.zeros(1))
    first, bend = float(at_zero.slope[0]), float(at_zero.bend[0])
    out = np.zeros(u.shape)
    live = np.flatnonzero(u > first)
    c = u[live]
    start = (c - first) / bend if 0.0 < bend < np.inf else np.ones(len(live))
    p = _roots(lambda x, on: _excess(jet(h, x), c[on]), np.full(len(live), np.inf), start)[0]
    top, sure = _largest(h, c, p, trusted)
    rest = np.flatnonzero(~sure)  # kinks, and slopes that are rounding
    if len(rest):
        c = c[rest]
        roots = _roots(lambda x, on: _excess(sharp(h, x), c[on]), np.full(len(rest), np.inf), start[rest])
        top[rest] = np.fmin(top[rest], _largest(h, c, roots[0], trusted)[0])
        top[rest] = np.fmin(top[rest], _between(h, c, roots[1], roots[2], trusted)[0])
    out[live] = np.where(np.isfinite(top), np.maximum(top, 0.0), np.inf)
    return out


def _excess(line: Line, u: Array) -> tuple[Array, Array]:
    return line.slope - u, line.bend


def _largest(h: Function, u: Array, x: Array, trusted: float) -> tuple[Array, Array]:
    """sup over x of ``u x - h(x)``, rounded upwards, from where it is attained but for rounding; +inf unless slopes
    show that it is, between the ends of a narrow bracket. And whether the bracket is as narrow as rounding."""
    with np.errstate(all="ignore"):
        line = sharp(h, x)
        step = (u - line.slope) / line.bend
        width = np.clip(np.sqrt(ULP * u * x / line.bend), 4.0 * ULP * x, NEAR * x) + LEFT * np.abs(step)
        low, high = np.maximum(x + step - width, 0.0), x + step + width
        found = (np.abs(step) <= SMALL * x) & (sharp(h, low).slope <= u) & (sharp(h, high).slope >= u)
        top, over = _between(h, u, low, high, trusted)
        return np.where(found, top, np.inf), found & (over <= trusted * u * low)


def _between(h: Function, u: Array, low: Array, high: Array, trusted: float) -> tuple[Array, Array]:
    """A bound of sup over x of ``u x - h(x)``, which is attained between low and high: as h is convex, at most its
    value at low and (u - h'(low)) times the width; and that product."""
    with np.errstate(all="ignore"):
        line = sharp(h, low)
        over = np.where(high > low, (u - line.slope) * (high - low), 0.0)
        return u * low - line.value + over + trusted * (u * low + line.size), over


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
