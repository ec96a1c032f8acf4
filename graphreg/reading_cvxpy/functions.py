"""Functions of one number, 0 at 0: piecewise quadratic ones, and sums of these and of f(g(x) + b) with smooth f.

They tell their values, slopes and curvatures at any x; at a kink those to the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..terms import Array
from .atoms import Smooth

Key = tuple[Any, ...]


class Line(NamedTuple):
    """Values of a function of one number, its first and second derivative, and the sizes of what the values are sums
    of."""

    value: Array
    slope: Array
    bend: Array
    size: Array


@dataclass(frozen=True)
class Curve:
    """A piecewise quadratic function by its derivative, ``slope[i] + bend[i] x`` between the knots i - 1 and i:
    (r,) knots and (r + 1,) pieces."""

    knots: Array
    slope: Array
    bend: Array

    @staticmethod
    def of(knots: Sequence[float], slope: Sequence[float], bend: Sequence[float] | None = None) -> Curve:
        """A curve of lists; without ``bend`` a piecewise linear function."""
        return Curve(*(np.array(each, dtype=float) for each in (knots, slope, bend or [0.0] * len(slope))))

    @property
    def is_line(self) -> bool:
        """Whether the function is affine."""
        return not len(self.knots) and not self.bend.any()

    @property
    def is_zero(self) -> bool:
        """Whether the function is constant."""
        return self.is_line and not self.slope.any()

    @property
    def smooth_until(self) -> float:
        """An x > 0 up to which it has no knot beyond 0."""
        return float(self.knots[self.knots > 0.0].min(initial=np.inf))

    @property
    def key(self) -> Key:
        """Equal for functions that are alike."""
        return tuple(each.tobytes() for each in (self.knots, self.slope, self.bend))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Curve):
            return NotImplemented  # a `Function` adds itself
        knots = np.union1d(self.knots, other.knots)
        (a, b), (c, d) = (each.on(np.concatenate([[-np.inf], knots])) for each in (self, other))
        return Curve(knots, a + c, b + d)

    def on(self, x: Array) -> tuple[Array, Array]:
        """The slope and the bend of the piece to the right of each x."""
        piece = np.searchsorted(self.knots, x, side="right")
        return self.slope[piece], self.bend[piece]

    def times(self, factor: float) -> Curve:
        """The derivative of ``factor * h``."""
        return Curve(self.knots, factor * self.slope, factor * self.bend)

    def at(self, factor: float, shift: float = 0.0) -> Curve:
        """The derivative of ``h(factor * x + shift)``."""
        way = slice(None, None, 1 if factor > 0.0 else -1)
        slope = factor * (self.slope + self.bend * shift)
        return Curve(((self.knots - shift) / factor)[way], slope[way], (factor * factor * self.bend)[way])

    def jet(self, x: Array) -> Line:
        """The function that is 0 at 0 at x (n,); at a knot what is to its right."""
        if not len(self.knots):  # in half the time
            value = (self.slope[0] + 0.5 * self.bend[0] * x) * x
            return Line(value, self.slope[0] + self.bend[0] * x, np.broadcast_to(self.bend[0], x.shape), np.abs(value))
        piece = np.searchsorted(self.knots, x, side="right")
        anchor, base = (each[piece] for each in self._anchors)
        slope, bend, on = self.slope[piece], self.bend[piece], x - anchor
        mean = slope + 0.5 * bend * (x + anchor)
        return Line(base + mean * on, slope + bend * x, bend, np.abs(base) + np.abs(mean * on))

    @cached_property
    def _anchors(self) -> tuple[Array, Array]:
        """Where each piece is begun from, on the side of 0, and the value there."""
        here = int(np.searchsorted(self.knots, 0.0, side="right"))
        anchor, base = np.zeros(len(self.slope)), np.zeros(len(self.slope))
        for i in [*range(here, len(self.knots)), *range(here - 1, -1, -1)]:
            piece, beyond = (i, i + 1) if i >= here else (i + 1, i)
            mean = self.slope[piece] + 0.5 * self.bend[piece] * (self.knots[i] + anchor[piece])
            anchor[beyond] = self.knots[i]
            base[beyond] = base[piece] + mean * (self.knots[i] - anchor[piece])
        return anchor, base

    def roots(self, constant: float) -> Array:
        """Where ``h + constant`` is 0, for the h that is 0 at 0."""
        anchor, base = self._anchors
        level = base - (self.slope + 0.5 * self.bend * anchor) * anchor + constant
        ends = np.concatenate([[-np.inf], self.knots, [np.inf]])
        found = [np.roots(each) for each in np.transpose([0.5 * self.bend, self.slope, level])]
        return np.array([x.real for i, xs in enumerate(found) for x in xs if ends[i] < x.real < ends[i + 1]])


def larger(one: Curve, other: Curve, shift: float) -> Curve:
    """The derivative of ``max(one, other + shift)``."""
    more = other + one.times(-1.0)
    knots = np.unique(np.concatenate([more.knots, more.roots(shift)]))
    if not len(knots):
        return other if more.slope[0] + shift > 0.0 else one
    within = np.concatenate([knots[:1] - 1.0, 0.5 * (knots[1:] + knots[:-1]), knots[-1:] + 1.0])
    chosen = more.jet(within).value + shift > 0.0
    slope, bend = (np.where(chosen, *each) for each in zip(other.on(within), one.on(within), strict=True))
    kept = (np.diff(slope) != 0.0) | (np.diff(bend) != 0.0)  # at the other knots nothing changes
    return Curve(knots[kept], *(each[np.append(True, kept)] for each in (slope, bend)))


LINE = Curve.of([], [1.0])
NOTHING = Curve.of([], [0.0])


# ---- sums of parts ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Through:
    """``factor (f(g(scale x) + shift) - f(shift))``; near 0 a difference that does not cancel."""

    f: Smooth
    inner: Curve | Function
    shift: float
    power: float | None = None  # p where f(x) = x^p
    factor: float = 1.0
    scale: float = 1.0

    @property
    def level(self) -> float:
        """How large the constants are that are taken off, and what the rounding of a shift adds to them."""
        at = np.array(self.shift)
        slope = float(np.nan_to_num(self.f.slope(at), posinf=0.0))
        inner = self.inner.level if isinstance(self.inner, Function) else 0.0
        return abs(self.factor) * (abs(float(self.f.value(at))) + abs(slope) * (abs(self.shift) + inner))

    @property
    def key(self) -> Key:
        """Equal for parts that are built alike."""
        return (self.f, self.inner.key, self.shift, self.factor, self.scale)

    def jet(self, x: Array) -> Line:
        inner = self.inner.jet(self.scale * x)
        at, steep = self.shift + inner.value, self.scale * inner.slope
        df, ddf = self.factor * self.f.slope(at), self.factor * self.f.bend(at)
        rise = self.factor * self.f.rise(self.shift, inner.value)
        bend = ddf * steep * steep + df * self.scale * self.scale * inner.bend
        return Line(rise, df * steep, bend, np.abs(rise) + np.abs(df) * inner.size)


@dataclass(frozen=True, eq=False)
class Function:
    """A piecewise quadratic function and other parts beside it, which need not be convex: their sum is."""

    curve: Curve
    parts: tuple[Through, ...] = ()

    is_line = is_zero = False

    def __add__(self, other: Curve | Function) -> Function:
        if isinstance(other, Curve):
            return Function(self.curve + other, self.parts)
        return Function(self.curve + other.curve, (*self.parts, *other.parts))

    __radd__ = __add__

    @property
    def smooth_until(self) -> float:
        """An x > 0 up to which it has no knot beyond 0."""
        inner = [part.inner.at(part.scale).smooth_until for part in self.parts]
        return min([self.curve.smooth_until, *inner])

    @property
    def level(self) -> float:
        """How large the constants are that cancel."""
        return sum(part.level for part in self.parts)

    @property
    def key(self) -> Key:
        """Equal for functions that are built alike."""
        return (self.curve.key, *(part.key for part in self.parts))

    def power(self) -> tuple[float, float] | None:
        """c and p where it is ``c x^p`` at x >= 0, with p > 1."""
        if len(self.parts) != 1 or not self.curve.is_zero:
            return None
        part = self.parts[0]
        line, p = part.inner.at(part.scale), part.power
        if p is None or not p > 1.0 or part.shift != 0.0 or not isinstance(line, Curve):
            return None
        straight = not (line.knots > 0.0).any() and not line.bend[-1] and line.slope[-1] > 0.0
        return (part.factor * float(line.slope[-1]) ** p, p) if straight else None

    def times(self, factor: float) -> Function:
        parts = tuple(replace(part, factor=factor * part.factor) for part in self.parts)
        return Function(self.curve.times(factor), parts)

    def at(self, factor: float) -> Function:
        """``h(factor x)``."""
        return Function(self.curve.at(factor), tuple(replace(part, scale=factor * part.scale) for part in self.parts))

    def jet(self, x: Array) -> Line:
        """Values, slopes, curvatures, and the sizes of what the values are sums of, at numbers x (n,)."""
        with np.errstate(all="ignore"):
            each = [self.curve.jet(x), *(part.jet(x) for part in self.parts)]
            return Line(*(np.add.reduce([getattr(jet, name) for jet in each]) for name in Line._fields))


def through(f: Smooth, inner: Curve | Function, shift: float, power: float | None = None) -> Function:
    """f(g(x) + shift) - f(shift)."""
    return Function(NOTHING, (Through(f, inner, shift, power),))
