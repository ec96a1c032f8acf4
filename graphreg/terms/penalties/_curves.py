"""Functions of one number that are piecewise quadratic, as a calculus of derivatives: sums, multiples and changes of
variable are a line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from ...lazy import cp
from ..derivatives import Line
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

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Curve):
            return NotImplemented  # a `Function` adds itself
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

    def at(self, factor: float, shift: float = 0.0) -> Curve:
        """The derivative of ``h(factor * x + shift)``."""
        way = slice(None, None, 1 if factor > 0.0 else -1)
        slope = factor * (self.slope + self.bend * shift)
        return Curve(((self.knots - shift) / factor)[way], slope[way], (factor * factor * self.bend)[way])

    def jet(self, x: Array) -> Line:
        """Values from 0 at 0, slopes, curvatures, and the sizes of what the values are sums of, at x (n,); at a knot
        what is to its right."""
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

    def written(self, x: Any) -> Any:
        """The function in CVXPY, 0 at 0, of each entry; of one that bends everywhere alike, or nowhere."""
        line, kinks, bend = self.parts()
        parts = [line * x] if line else []
        parts += [jump * (cp.abs(x) if size else cp.pos(x - knot) - max(-knot, 0.0)) for knot, jump, size in kinks]
        parts += [0.5 * bend * cp.square(x)] if bend else []
        return sum(parts[1:], parts[0]) if parts else 0.0 * x

    def parts(self) -> tuple[float, list[tuple[float, float, bool]], float]:
        """A slope, kinks (knot, jump, whether it is of the absolute value) and a curvature, whose sum it is."""
        if (self.bend != self.bend[0]).any():
            raise MixedError
        jumps = np.diff(self.slope)
        if np.array_equal(self.knots, [0.0]) and self.slope[0] == -self.slope[1]:
            return 0.0, [(0.0, float(self.slope[1]), True)], float(self.bend[0])
        kinks = [(float(knot), float(jump), False) for knot, jump in zip(self.knots, jumps, strict=True)]
        return float(self.slope[0]), kinks, float(self.bend[0])


class MixedError(Exception):
    """A piece of a quadratic function inside of another function: it has no formula here."""


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


def total(curves: Sequence[Curve]) -> Curve:
    """The derivative of a sum."""
    return reduce(lambda one, other: one + other, curves, NOTHING)
