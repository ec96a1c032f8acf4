"""Functions h_j >= 0 of one number with h_j(0) = 0, one for each coordinate, told outwards from 0, as a prox and a
conjugate need them.

Of a piecewise quadratic function every number is >= 0, so that values, proxes and conjugates are sums without
cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from ._curves import Curve


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

    def error(self, x: Array) -> Array:
        """What rounding may have taken of `value`, beside a share of it."""
        return np.zeros(x.shape)

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
    piece = np.searchsorted(curve.knots, start, side="right")
    bend = curve.bend[piece]
    low = np.maximum(curve.slope[piece] + bend * start, 0.0)  # of a function that is least at 0
    rise = np.where(bend > 0.0, bend * np.where(bend > 0.0, length, 0.0), 0.0)
    jump = np.maximum(low - np.append(0.0, (low + rise)[:-1]), 0.0)
    return start, length, low, jump, rise, bend
