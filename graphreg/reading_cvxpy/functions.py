"""Functions of one number that are built of smooth atoms: sums of a piecewise quadratic one and of f(g(x) + b).

A part is 0 at 0, and tells its values, slopes and curvatures at any x; at a kink those to the right. Values near 0 are
differences f(b + d) - f(b) that do not cancel. A part need not be convex: their sum is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..terms import Array
from .atoms import Smooth
from .curves import NOTHING, Curve, Key, Line


@dataclass(frozen=True, eq=False)
class Through:
    """``factor (f(g(scale x) + shift) - f(shift))``."""

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
    """A piecewise quadratic function, given by its derivative, and other parts beside it; 0 at 0."""

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
        return min(self.curve.smooth_until, *inner)

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
        part = self.parts[0]
        if len(self.parts) > 1 or not self.curve.is_zero or part.power is None or part.shift != 0.0:
            return None
        line = part.inner.at(part.scale)
        steep = isinstance(line, Curve) and not (line.knots > 0.0).any() and not line.bend[-1] and line.slope[-1] > 0.0
        return (part.factor * float(line.slope[-1]) ** part.power, part.power) if steep and part.power > 1.0 else None

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
