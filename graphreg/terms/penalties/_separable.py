"""Sums over coordinates of functions of one number: weighted l1 norms, Huber functions, elastic nets, and what is built
of smooth atoms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...lazy import cp
from ..bounds import ULP, ends
from ..records import Array, Notation, RecessionCone
from ._curves import Curve
from ._formulas import conjugated, on_both_sides, summed, typeset, weighted, weighted_l1, with_hubers
from ._rooted_sides import RootedSides
from ._rows import INSIDE, LEAST_SLACK
from ._sides import Sides
from .base import AbstractOneSided, AbstractSmoothPenalty
from .domain import OwnDomain
from .penalty import AbstractPenalty


@dataclass(frozen=True, eq=False)
class AbstractSeparable(OwnDomain, AbstractPenalty):
    """``phi(z) = sum_j h_j(z_j)``, each h_j >= 0 and h_j(0) = 0.

    ``phi*(u) = sum_j h_j*(u_j)``; the slopes of h_j at -inf and +inf are the ends of its domain.
    """

    @abstractmethod
    def sides(self, sign: float) -> Sides | RootedSides:
        """h_j(sign x) at x >= 0."""

    @cached_property
    def right(self) -> Sides | RootedSides:
        """h_j at x >= 0."""
        return self.sides(1.0)

    @cached_property
    def left(self) -> Sides | RootedSides:
        """h_j(-x) at x >= 0."""
        return self.sides(-1.0)

    def check(self, k: int) -> None:
        if k != len(self.right.last):
            raise TermError(f"this sum has {len(self.right.last)} coordinates, and the term has {k}")

    def value(self, z: Array) -> Array:
        return (self.right.value(np.maximum(z, 0.0)) + self.left.value(np.maximum(-z, 0.0))).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return self.right.prox(np.maximum(v, 0.0), t) - self.left.prox(np.maximum(-v, 0.0), t)

    def conjugate(self, u: Array) -> Array:
        return (self.right.conjugate(np.maximum(u, 0.0)) + self.left.conjugate(np.maximum(-u, 0.0))).sum(axis=1)

    def gauge(self, u: Array) -> Array:
        return self._gauges(u, self.right.last, self.left.last).max(axis=1, initial=0.0)

    def gauge_at_zero(self, u: Array) -> Array:
        return self._gauges(u, self.right.first, self.left.first).max(axis=1, initial=0.0)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return self._bound(self.right.conjugate_bound, self.left.conjugate_bound, u, spread)

    def value_bound(self, z: Array, spread: Array) -> Array:
        right, left = self.right, self.left
        return self._bound(
            lambda x: right.value(x) + right.error(x), lambda x: left.value(x) + left.error(x), z, spread
        )

    @staticmethod
    def _bound(right: Callable[[Array], Array], left: Callable[[Array], Array], x: Array, spread: Array) -> Array:
        """Of each h_j, which is least at 0, at the two ends of its interval; values are trusted to 16 ulp."""
        low, high = ends(x, spread)
        top = np.maximum(right(np.maximum(high, 0.0)), left(np.maximum(-low, 0.0)))
        return (top * (1.0 + (16.0 + x.shape[1]) * ULP)).sum(axis=1)

    def subgradient(self, z: Array) -> Array:
        return self.right.slope(np.maximum(z, 0.0)) - self.left.slope(np.maximum(-z, 0.0))

    def clip(self, u: Array) -> Array:
        return np.clip(u, -INSIDE * self.left.last, INSIDE * self.right.last)

    def room(self, u: Array) -> Array:
        return np.maximum(np.minimum(self.right.last - u, self.left.last + u), 0.0)

    def conductance(self, u: Array) -> Array:
        slack = np.maximum(1.0 - self._gauges(u, self.right.last, self.left.last), LEAST_SLACK)
        return slack * (self.right.last + self.left.last > 0.0)

    def span(self, u: Array) -> Array:
        return np.where(self.right.last + self.left.last > 0.0, u, 0.0)

    @abstractmethod
    def interior(self, k: int) -> Array: ...

    def reach(self, start: Array, end: Array) -> Array:
        low, high = -self.left.last, self.right.last
        inner = (1.0 - INSIDE) * np.minimum(high - low, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(end > high, (np.maximum(high - inner, start) - start) / (end - start), 1.0)
            t = np.where(end < low, (np.minimum(low + inner, start) - start) / (end - start), t)
        return np.clip(np.nan_to_num(t, nan=0.0), 0.0, 1.0).min(axis=1, initial=1.0)

    def share(self, u: Array) -> Array:
        with np.errstate(invalid="ignore"):
            share = self.room(u) / np.minimum(self.right.last, self.left.last)
        return np.clip(np.nan_to_num(share, nan=1.0), 0.0, 1.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.where(self.left.last > 0.0, 0.0, -np.inf), np.where(self.right.last > 0.0, 0.0, np.inf))

    def middle(self) -> Array:
        """A flow well inside dom phi*."""
        low, high = -self.left.last, self.right.last
        return np.where((low < 0.0) & (high > 0.0), 0.0, 0.5 * (np.maximum(low, -1.0) + np.minimum(high, 1.0)))

    @staticmethod
    def _gauges(u: Array, high: Array, low: Array) -> Array:
        """inf {t : -low <= u_j / t <= high}, (m, k)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(u == 0.0, 0.0, np.where(u > 0.0, u / high, -u / low))


@dataclass(frozen=True, eq=False)
class AbstractPiecewise(AbstractSeparable):
    """Each h_j is piecewise quadratic, given by its derivative."""

    curves: tuple[Curve, ...]

    def sides(self, sign: float) -> Sides:
        return Sides.of([curve.at(sign) for curve in self.curves])

    @cached_property
    def both(self) -> tuple[Sides, Sides]:
        return self.sides(1.0), self.sides(-1.0)

    def cvxpy(self, Z: Any) -> Any:
        right, left = self.both
        if all(np.array_equal(getattr(right, name), getattr(left, name)) for name in ("start", "low", "bend")):
            each = written(right, Z, cp.abs(Z))
        else:
            each = written(right, cp.pos(Z), cp.pos(Z)) + written(left, cp.neg(Z), cp.neg(Z))
        return cp.sum(each, axis=1)

    def strong_convexity(self) -> float:
        return min(float(curve.bend.min()) for curve in self.curves)

    @property
    def notation(self) -> Notation:
        right, left = self.both
        if all(h.start.shape[1] == 1 and not h.bend.any() for h in (right, left)) and (
            np.array_equal(right.last, left.last)
        ):
            return self._notation_of_l1(right.last)
        each = [on_both_sides(right, left, j) for j in range(len(self.curves))]
        value = with_hubers(summed(each, "[%z]_j"))
        duals = [lambda s, h=h: conjugated(s, "x", h("x")) for h in each]
        conjugate = with_hubers(summed(duals, "[%u]_j"))
        return Notation(value, conjugate, "", typeset(value), typeset(conjugate))

    @staticmethod
    def _notation_of_l1(weights: Array) -> Notation:
        value, most = weighted_l1(weights), weighted(weights)
        domain = f"|%u| <= {most}" if most.startswith("%c (") else f"||%u||_inf <= {most}"
        return Notation(value, "", domain, typeset(value), "", typeset(domain))


def written(sides: Sides, signed: Any, x: Any) -> Any:
    """``h_j`` in CVXPY at x >= 0, which is a part of ``signed``, (m, q)."""
    parts: list[Any] = []
    for i in range(sides.start.shape[1]):
        start, jump, bend, length = (
            np.broadcast_to(each[:, i], x.shape) for each in (sides.start, sides.jump, sides.bend, sides.length)
        )
        past = x if not sides.start[:, i].any() else cp.pos(x - start)
        parts += [cp.multiply(jump, past)] if jump.any() else []
        for size in np.unique(sides.length[:, i][sides.bend[:, i] > 0.0]):
            here = np.where(length == size, bend, 0.0) / 2.0
            base = signed if past is x else past
            parts.append(cp.multiply(here, cp.square(base) if np.isinf(size) else cp.huber(base, size)))
    return sum(parts[1:], parts[0]) if parts else 0.0 * x


@final
@dataclass(frozen=True, eq=False)
class Separable(AbstractPiecewise):
    """Even functions of the coordinates, one of them with a kink at least."""

    def interior(self, k: int) -> Array:
        return np.zeros(k)


@final
@dataclass(frozen=True, eq=False)
class OneSidedSeparable(AbstractPiecewise, AbstractOneSided):
    """Functions of the coordinates that are not all even."""

    def interior(self, k: int) -> Array:
        return self.middle()


@final
@dataclass(frozen=True, eq=False)
class SmoothSeparable(AbstractPiecewise, AbstractSmoothPenalty):
    """Even functions of the coordinates without kinks."""

    def interior(self, k: int) -> Array:
        return np.zeros(k)

    def gradient(self, z: Array) -> Array:
        return self.subgradient(z)

    def curvature(self, z: Array) -> Array:
        right, left = self.both
        return np.where(z >= 0.0, right.curvature(np.abs(z)), left.curvature(np.abs(z)))

    def smoothness(self) -> float:
        return max(float(curve.bend.max()) for curve in self.curves)


def separable(curves: Sequence[Curve]) -> AbstractPiecewise:
    """The sum over coordinates of the functions that have these derivatives."""
    right, left = Sides.of(curves), Sides.of([curve.at(-1.0) for curve in curves])
    x = np.concatenate([s.start.ravel() for s in (right, left)])
    x = np.unique(np.concatenate([x, x + 0.5, 2.0 * x + 1.0]))[:, None] * np.ones(len(curves))
    if not (np.allclose(right.value(x), left.value(x), rtol=1e-12) and np.array_equal(right.last, left.last)):
        return OneSidedSeparable(tuple(curves))
    return (SmoothSeparable if right.is_smooth and left.is_smooth else Separable)(tuple(curves))
