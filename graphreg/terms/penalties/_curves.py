"""Convex functions of one number that are piecewise quadratic: as a calculus of derivatives, and as what a prox needs.

A `Curve` is a derivative, so that sums, multiples and changes of variable are a line each. `Sides` are several such
functions h_j >= 0 with h_j(0) = 0, one for each coordinate, told outwards from 0: every number in it is >= 0, so that
values, proxes and conjugates are sums without cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..records import Array


@dataclass(frozen=True)
class Curve:
    """The derivative ``slope[i] + bend[i] x`` between the knots i - 1 and i, (r,) knots and (r + 1,) pieces."""

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

    def __add__(self, other: Curve) -> Curve:
        knots = np.union1d(self.knots, other.knots)
        starts = np.concatenate([[-np.inf], knots])
        pieces = [np.searchsorted(each.knots, starts, side="right") for each in (self, other)]
        slope, bend = (
            sum(getattr(each, name)[at] for each, at in zip((self, other), pieces, strict=True))
            for name in ("slope", "bend")
        )
        return Curve(knots, np.asarray(slope), np.asarray(bend))

    def times(self, factor: float) -> Curve:
        """The derivative of ``factor * h``."""
        return Curve(self.knots, factor * self.slope, factor * self.bend)

    def at(self, factor: float, shift: float) -> Curve:
        """The derivative of ``h(factor * x + shift)``."""
        way = slice(None, None, 1 if factor > 0.0 else -1)
        slope = factor * (self.slope + self.bend * shift)
        return Curve(((self.knots - shift) / factor)[way], slope[way], (factor * factor * self.bend)[way])


LINE = Curve.of([], [1.0])
NOTHING = Curve.of([], [0.0])


def upper_envelope(lines: Sequence[tuple[float, float]]) -> Curve:
    """The largest of the lines ``a x + b``."""
    best: list[tuple[float, float]] = []
    knots: list[float] = []
    for a, b in sorted(set(lines)):
        while best:
            a0, b0 = best[-1]
            crossing = (b0 - b) / (a - a0) if a > a0 else -np.inf
            if a == a0 or (knots and crossing <= knots[-1]):  # the last line is nowhere the largest
                best.pop()
                if knots:
                    knots.pop()
                continue
            knots.append(crossing)
            break
        best.append((a, b))
    return Curve.of(knots, [a for a, _ in best])


def lines_of(curve: Curve, at_zero: float) -> list[tuple[float, float]] | None:
    """The lines (a, b) whose maximum a convex function is, from its value at 0; None where it bends."""
    if curve.bend.any():
        return None
    here = int(np.searchsorted(curve.knots, 0.0, side="right"))
    lines, b = {here: (float(curve.slope[here]), at_zero)}, at_zero
    for i in range(here, len(curve.knots)):
        b = b + (curve.slope[i] - curve.slope[i + 1]) * curve.knots[i]
        lines[i + 1] = (float(curve.slope[i + 1]), float(b))
    b = at_zero
    for i in range(here - 1, -1, -1):
        b = b + (curve.slope[i + 1] - curve.slope[i]) * curve.knots[i]
        lines[i] = (float(curve.slope[i]), float(b))
    return list(lines.values())


@dataclass(frozen=True, eq=False)
class Sides:
    """h_j >= 0, h_j(0) = 0 for x >= 0, for each of q coordinates, all (q, r): piece i begins at ``start`` and is
    ``length`` long; there the slope jumps by ``jump`` to ``low``, and from there on grows by ``rise`` at the rate
    ``bend``. Where a coordinate has fewer pieces the rest is 0."""

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
    piece = np.searchsorted(curve.knots, start, side="right")
    bend = curve.bend[piece]
    low = np.maximum(curve.slope[piece] + bend * start, 0.0)  # of a function that is least at 0
    rise = np.where(bend > 0.0, bend * np.where(bend > 0.0, length, 0.0), 0.0)
    jump = np.maximum(low - np.append(0.0, (low + rise)[:-1]), 0.0)
    return start, length, low, jump, rise, bend


def total(curves: Sequence[Curve]) -> Curve:
    """The derivative of a sum."""
    return reduce(lambda one, other: one + other, curves, NOTHING)
