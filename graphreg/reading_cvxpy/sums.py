"""Sums over coordinates of functions of one number, and of penalties of disjoint blocks of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone, ends
from ..terms.penalties import (
    INSIDE,
    LEAST_SLACK,
    AbstractOneSided,
    AbstractPenalty,
    AbstractSmoothPenalty,
    OneSidedDomain,
    OwnDomain,
)
from .sides import RootedSides, Sides
from .source import AbstractReadPenalty


@dataclass(frozen=True, eq=False)
class AbstractSeparable(OwnDomain, AbstractReadPenalty):
    """``phi(z) = sum_j h_j(z_j)``, each h_j >= 0 and h_j(0) = 0.

    ``phi*(u) = sum_j h_j*(u_j)``; the slopes of h_j at -inf and +inf are the ends of its domain.
    """

    right: Sides | RootedSides  # h_j at x >= 0
    left: Sides | RootedSides  # h_j(-x) at x >= 0; where the functions are even, the right side itself

    def added(self, what: str, x: Array) -> Array:
        """The sum of what both sides tell, (m, k)."""
        right, left = getattr(self.right, what), getattr(self.left, what)
        return right(np.abs(x)) if self.left is self.right else right(np.maximum(x, 0.0)) + left(np.maximum(-x, 0.0))

    def signed(self, what: str, x: Array, *args: Array) -> Array:
        """The sum of both sides with a minus on the left, (m, k)."""
        right, left = getattr(self.right, what), getattr(self.left, what)
        if self.left is self.right:
            return np.copysign(right(np.abs(x), *args), x)
        return right(np.maximum(x, 0.0), *args) - left(np.maximum(-x, 0.0), *args)

    def value(self, z: Array) -> Array:
        return self.added("value", z).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        return self.signed("prox", v, np.broadcast_to(np.asarray(step, dtype=float), (len(v),)))

    def conjugate(self, u: Array) -> Array:
        return self.added("conjugate", u).sum(axis=1)

    def subgradient(self, z: Array) -> Array:
        return self.signed("slope", z)

    def gauge(self, u: Array) -> Array:
        return _gauges(u, self.right.last, self.left.last).max(axis=1, initial=0.0)

    def gauge_at_zero(self, u: Array) -> Array:
        return _gauges(u, self.right.first, self.left.first).max(axis=1, initial=0.0)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return self._bound("conjugate", u, spread)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return self._bound("value_bound", z, spread)

    def _bound(self, what: str, x: Array, spread: Array) -> Array:
        """The bound of each h_j, which is least at 0, at the two ends of its interval; values are trusted to 16 ulp."""
        low, high = ends(x, spread)
        right, left = (getattr(side, what) for side in (self.right, self.left))
        top = np.maximum(right(np.maximum(high, 0.0)), left(np.maximum(-low, 0.0)))
        return (top * (1.0 + (16.0 + x.shape[1]) * ULP)).sum(axis=1)

    def clip(self, u: Array) -> Array:
        return np.clip(u, -INSIDE * self.left.last, INSIDE * self.right.last)

    def slacks(self, u: Array) -> Array:
        return np.maximum(np.minimum(self.right.last - u, self.left.last + u), 0.0)

    def conductance(self, u: Array) -> Array:
        slack = np.maximum(1.0 - _gauges(u, self.right.last, self.left.last), LEAST_SLACK)
        return slack * (self.right.last + self.left.last > 0.0)

    def span(self, u: Array) -> Array:
        return np.where(self.right.last + self.left.last > 0.0, u, 0.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.where(self.left.last > 0.0, 0.0, -np.inf), np.where(self.right.last > 0.0, 0.0, np.inf))

    def interior(self, k: int) -> Array:
        low, high = -self.left.last, self.right.last
        return np.where((low < 0.0) & (high > 0.0), 0.0, 0.5 * (np.maximum(low, -1.0) + np.minimum(high, 1.0)))

    def accuracy(self) -> float:
        return max(self.right.accuracy, self.left.accuracy)

    def strong_convexity(self) -> float:
        return min(side.least_bend if isinstance(side, Sides) else 0.0 for side in (self.right, self.left))


def _gauges(u: Array, high: Array, low: Array) -> Array:
    """inf {t : -low <= u_j / t <= high}, (m, k)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(u == 0.0, 0.0, np.where(u > 0.0, u / high, -u / low))


@final
@dataclass(frozen=True, eq=False)
class Separable(AbstractSeparable):
    """Even functions of the coordinates."""


@final
@dataclass(frozen=True, eq=False)
class OneSidedSeparable(AbstractSeparable, OneSidedDomain, AbstractOneSided):
    """Functions of the coordinates that are not all even."""


@final
@dataclass(frozen=True, eq=False)
class SmoothSeparable(AbstractSeparable, AbstractSmoothPenalty):
    """Even piecewise quadratic functions of the coordinates without kinks."""

    def gradient(self, z: Array) -> Array:
        return self.subgradient(z)

    def curvature(self, z: Array) -> Array:
        return self.added("curvature", z)

    def smoothness(self) -> float:
        assert isinstance(self.right, Sides)
        return float(self.right.bend.max())


def separable(right: Sides | RootedSides, left: Sides | RootedSides) -> AbstractSeparable:
    """The sum over coordinates of functions with these two sides."""
    x, digits, least = np.geomspace(1e-3, 1e3, 25)[:, None], 1e-9, 1e-12
    if isinstance(right, Sides) and isinstance(left, Sides):
        x, digits, least = np.concatenate([side.start.ravel() for side in (right, left)]), 1e-12, 0.0
        x = np.unique(np.concatenate([x, x + 0.5, 2.0 * x + 1.0]))[:, None]
    x = x * np.ones(len(right.last))
    even = np.allclose(right.value(x), left.value(x), rtol=digits, atol=least, equal_nan=True)
    if not (even and np.allclose(right.last, left.last, rtol=1e-15, atol=0.0)):
        return OneSidedSeparable(right, left)
    return (SmoothSeparable if isinstance(right, Sides) and right.is_smooth else Separable)(right, right)


# ---- blocks ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class AbstractBlocks(OwnDomain, AbstractReadPenalty):
    """``phi(z) = sum_g phi_g(z_g)`` over blocks of coordinates that are disjoint and hold all of them."""

    blocks: tuple[tuple[Array, AbstractPenalty], ...]

    def on(self, what: Callable[..., Any], *rows: Array) -> list[Any]:
        """The values of ``what`` for each block, from the block and its columns of some rows."""
        return [what(phi, *(each[:, columns] for each in rows)) for columns, phi in self.blocks]

    def each(self, what: Callable[..., Array], *rows: Array) -> Array:
        """The values of each coordinate, (m, k)."""
        out = np.empty(np.broadcast_shapes(*(each.shape for each in rows)))
        for (columns, _), found in zip(self.blocks, self.on(what, *rows), strict=True):
            out[:, columns] = found
        return out

    def value(self, z: Array) -> Array:
        return np.add.reduce(self.on(lambda phi, z: phi.value(z), z))

    def prox(self, v: Array, step: Any) -> Array:
        return self.each(lambda phi, v: phi.prox(v, step), v)

    def conjugate(self, u: Array) -> Array:
        return np.add.reduce(self.on(lambda phi, u: phi.conjugate(u), u))

    def gauge(self, u: Array) -> Array:
        return np.maximum.reduce(self.on(lambda phi, u: phi.domain.gauge(u), u))

    def gauge_at_zero(self, u: Array) -> Array:
        return np.maximum.reduce(self.on(lambda phi, u: phi.gauge_at_zero(u), u))

    def clip(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.clip(u), u)

    def slacks(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.slacks(u), u)

    def span(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.span(u), u)

    def conductance(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.conductance(u), u)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return self.each(lambda phi, c, z: phi.domain.conduct(c, z), np.broadcast_to(conductance, z.shape), z)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return self._bound(lambda phi, u, spread: phi.conjugate_bound(u, spread), u, spread)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return self._bound(lambda phi, z, spread: phi.value_bound(z, spread), z, spread)

    def _bound(self, what: Callable[..., Array], *rows: Array) -> Array:
        return np.add.reduce(self.on(what, *rows)) * (1.0 + len(self.blocks) * ULP)

    def recession(self, k: int) -> RecessionCone | None:
        low, high = np.zeros(k), np.zeros(k)
        for columns, phi in self.blocks:
            cone = phi.domain.recession(len(columns))
            if cone is None or cone.equations is not None:
                return None
            low[columns], high[columns] = cone.lower, cone.upper
        return RecessionCone(low, high)

    def interior(self, k: int) -> Array:
        return self.each(lambda phi, rows: phi.domain.interior(rows.shape[1]), np.zeros((1, k)))[0]

    def accuracy(self) -> float:
        return max(phi.accuracy() for _, phi in self.blocks)

    def strong_convexity(self) -> float:
        return min(phi.strong_convexity() for _, phi in self.blocks)


@final
@dataclass(frozen=True, eq=False)
class Blocks(AbstractBlocks):
    """A sum of even functions of blocks of coordinates."""


@final
@dataclass(frozen=True, eq=False)
class OneSidedBlocks(AbstractBlocks, OneSidedDomain, AbstractOneSided):
    """A sum of functions of blocks of coordinates that are not all even."""


def blocks(parts: Sequence[tuple[Array, AbstractPenalty]]) -> AbstractPenalty:
    """The sum of functions of disjoint blocks of coordinates; the function itself where there is one block."""
    if len(parts) == 1:
        return parts[0][1]
    one_sided = any(isinstance(phi, AbstractOneSided) for _, phi in parts)
    return (OneSidedBlocks if one_sided else Blocks)(tuple(parts))
