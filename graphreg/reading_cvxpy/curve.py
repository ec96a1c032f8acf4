"""Functions of one number, 0 at 0: piecewise quadratic ones by their pieces, and others, which only the tree tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..terms import Array


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
        """True where the function is affine."""
        return not len(self.knots) and not self.bend.any()

    @property
    def is_zero(self) -> bool:
        """True where the function is constant."""
        return self.is_line and not self.slope.any()

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Curve):
            return NotImplemented  # what is `Rooted` adds itself
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

    def value(self, x: Array) -> Array:
        """The function that is 0 at 0 at x (n,)."""
        piece = np.searchsorted(self.knots, x, side="right")
        anchor, base = (each[piece] for each in self._anchors)
        return base + (self.slope[piece] + 0.5 * self.bend[piece] * (x + anchor)) * (x - anchor)

    @cached_property
    def _anchors(self) -> tuple[Array, Array]:
        """The points from which the pieces begin, on the side of 0, and the values there."""
        here = int(np.searchsorted(self.knots, 0.0, side="right"))
        anchor, base = np.zeros(len(self.slope)), np.zeros(len(self.slope))
        for i in [*range(here, len(self.knots)), *range(here - 1, -1, -1)]:
            piece, beyond = (i, i + 1) if i >= here else (i + 1, i)
            mean = self.slope[piece] + 0.5 * self.bend[piece] * (self.knots[i] + anchor[piece])
            anchor[beyond] = self.knots[i]
            base[beyond] = base[piece] + mean * (self.knots[i] - anchor[piece])
        return anchor, base

    def roots(self, constant: float) -> Array:
        """The roots of ``h + constant``, for the h that is 0 at 0."""
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
    chosen = more.value(within) + shift > 0.0
    slope, bend = (np.where(chosen, *each) for each in zip(other.on(within), one.on(within), strict=True))
    kept = (np.diff(slope) != 0.0) | (np.diff(bend) != 0.0)  # at the other knots nothing changes
    return Curve(knots[kept], *(each[np.append(True, kept)] for each in (slope, bend)))


LINE = Curve.of([], [1.0])
NOTHING = Curve.of([], [0.0])


class Rooted:
    """Any other function: its derivatives along the tree tell what it is (see `lines`), and so of all that it is added
    to."""

    is_line = is_zero = False

    def times(self, factor: float) -> Rooted:
        return self

    def __add__(self, other: Curve | Rooted) -> Rooted:
        return self

    __radd__ = __add__


Map = Curve | Rooted
