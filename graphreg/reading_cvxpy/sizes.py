"""Functions of sizes: of a norm of the coordinates, or of how far each of them is from 0."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone, ends, shown
from ..terms.penalties import (
    INSIDE,
    L1,
    L2,
    LEAST_SLACK,
    AbstractNorm,
    AbstractOneSided,
    AbstractPenalty,
    AbstractSmoothPenalty,
    DualBall,
    Everywhere,
    FlowDomain,
    HuberNorm,
    OneSidedDomain,
    SquaredL2,
    norm_bound,
    row_norm,
)
from .sides import RootedSides, Sides
from .source import AbstractReadPenalty


@dataclass(frozen=True, eq=False, repr=False)
class AbstractOfSizes(AbstractReadPenalty):
    """``phi(z) = sum_i h_i(s_i)`` of sizes s_i >= 0 of z, with h_i >= 0, h_i(0) = 0, convex and increasing.

    ``phi*(u) = sum_i h_i*(t_i)`` of the dual sizes t_i of u (Rockafellar, Convex Analysis, theorem 15.3).
    """

    h: Sides | RootedSides

    @abstractmethod
    def sizes(self, z: Array, spread: Array | None = None, dual: bool = False) -> Array:
        """The sizes of each row, or the dual ones, (m, q); with a ``spread`` not less than any in its box."""

    def value(self, z: Array) -> Array:
        return self.h.value(self.sizes(z)).sum(axis=1)

    def conjugate(self, u: Array) -> Array:
        return self.h.conjugate(self.sizes(u, dual=True)).sum(axis=1)

    def gauge_at_zero(self, u: Array) -> Array:
        return _shares(self.sizes(u, dual=True), self.h.first).max(axis=1, initial=0.0)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return _bound(self.h.conjugate(self.sizes(u, spread, dual=True)))

    def value_bound(self, z: Array, spread: Array) -> Array:
        return _bound(self.h.value_bound(self.sizes(z, spread)))

    def accuracy(self) -> float:
        return self.h.accuracy


def _bound(tops: Array) -> Array:
    """A sum of values that are trusted to 16 ulp, (m,)."""
    top = (tops * (1.0 + (16.0 + tops.shape[1]) * ULP)).sum(axis=1)
    return shown(top, top > 0.0)


def _shares(u: Array, most: Array) -> Array:
    """u / most, and 0 where u is, (m, q)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(u == 0.0, 0.0, u / most)


Parts = Sequence[tuple[float, AbstractPenalty]]


def _multiples(h: Sides | RootedSides, norm: AbstractNorm, square: bool, huber: bool) -> Parts | None:
    """Sizes that are all alike, as multiples of the library's own: ``norm`` is the sum of the sizes, ``square`` says
    whether that of their squares is ||z||_2^2, ``huber`` whether one size is ||z||_2."""
    if not isinstance(h, Sides) or any((each != each[0]).any() for each in (h.length, h.low, h.jump, h.bend)):
        return None
    low, jump, bend = h.low[0], h.jump[0], h.bend[0]
    if len(low) == 1 and (square or bend[0] == 0.0):
        return [(float(by), phi) for by, phi in ((low[0], norm), (bend[0], SquaredL2())) if by > 0.0]
    if huber and len(low) == 2 and low[0] == jump[1] == bend[1] == 0.0:
        return [(float(bend[0]), HuberNorm(float(h.length[0, 0])))]
    return None


@final
@dataclass(frozen=True, eq=False, repr=False)
class OfNorm(AbstractOfSizes):
    """``phi(z) = h(norm(z))`` for the norm L1, L2 or LInf."""

    norm: AbstractNorm

    def sizes(self, z: Array, spread: Array | None = None, dual: bool = False) -> Array:
        norm = self.norm.dual_norm if dual else self.norm.value
        return (norm(z) if spread is None else norm_bound(norm, z, spread))[:, None]

    @property
    def domain(self) -> FlowDomain:
        last = float(self.h.last[0])
        return DualBall(self, self.norm, last) if np.isfinite(last) else Everywhere(self)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        if isinstance(self.norm, L2):
            r = row_norm(v)[:, None]
            return v * (self.h.prox(r, t) / np.maximum(r, 1e-300))
        level = self._level(v, t)
        cut = np.clip(v, -level, level)
        return v - cut if isinstance(self.norm, L1) else cut

    def _level(self, v: Array, t: Array) -> Array:
        """The threshold s that the l1 norm leaves behind, or the level at which the maximum norm cuts, (m, 1).

        Where j entries, with the sum S, are above it, the norm of the prox is r = S - j s with s = t h'(r), so that r
        is the prox of j t h at S; and of the maximum norm ``S - j r = t h'(r)``, so that r is that of h t / j at S / j.
        """
        size = -np.sort(-np.abs(v), axis=1)
        total, j = size.cumsum(axis=1), np.arange(1.0, v.shape[1] + 1.0)
        sums = isinstance(self.norm, L1)
        at, pace = (total, j) if sums else (total / j, 1.0 / j)
        r = self.h.prox(at.reshape(-1, 1), (t[:, None] * pace).ravel()).reshape(v.shape)
        level = (total - r) / j if sums else r
        above = (size > level).sum(axis=1, keepdims=True)
        return np.where(above > 0, np.take_along_axis(level, np.maximum(above - 1, 0), axis=1), size[:, :1])

    def parts(self) -> Parts | None:
        euclidean = isinstance(self.norm, L2)
        return _multiples(self.h, self.norm, square=euclidean, huber=euclidean)

    def strong_convexity(self) -> float:
        # on the whole line beyond a kink at 0, if h bends everywhere
        return self.h.least_bend if isinstance(self.norm, L2) else 0.0


# ---- functions of each coordinate ------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class AbstractSeparable(AbstractOfSizes):
    """``phi(z) = sum_j h_j(z_j)``, each h_j >= 0 and h_j(0) = 0; the slopes of h_j at -inf and +inf are the ends of its
    domain."""

    @abstractmethod
    def signed(self, sizes: Array, z: Array) -> Array:
        """The row that has these sizes, on the sides of 0 on which z is, (m, k)."""

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return self.signed(self.h.prox(self.sizes(v), t), v)

    def subgradient(self, z: Array) -> Array:
        return self.signed(self.h.slope(self.sizes(z)), z)

    def strong_convexity(self) -> float:
        return self.h.least_bend


class OfAbsolute:
    """Mixed into sums of functions of |z_j|."""

    h: Any

    def sizes(self, z: Array, spread: Array | None = None, dual: bool = False) -> Array:
        low, high = (z, z) if spread is None else ends(z, spread)
        return np.maximum(high, -low)

    def signed(self, sizes: Array, z: Array) -> Array:
        return np.copysign(sizes, z)

    @property
    def domain(self) -> FlowBox:
        return FlowBox(self, -self.h.last, self.h.last)

    def parts(self) -> Parts | None:
        return _multiples(self.h, L1(), square=True, huber=len(self.h.last) == 1)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Separable(OfAbsolute, AbstractSeparable):
    """Even functions of the coordinates."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SmoothSeparable(OfAbsolute, AbstractSeparable, AbstractSmoothPenalty):
    """Even piecewise quadratic functions of the coordinates without kinks."""

    h: Sides

    def gradient(self, z: Array) -> Array:
        return self.subgradient(z)

    def curvature(self, z: Array) -> Array:
        return self.h.curvature(np.abs(z))

    def smoothness(self) -> float:
        return float(self.h.bend.max())


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedSeparable(AbstractSeparable, AbstractOneSided):
    """Functions of the coordinates that are not all even: of their positive parts, and then of their negative parts."""

    def sizes(self, z: Array, spread: Array | None = None, dual: bool = False) -> Array:
        low, high = (z, z) if spread is None else ends(z, spread)
        return np.maximum(np.hstack([high, -low]), 0.0)

    def signed(self, sizes: Array, z: Array) -> Array:
        right, left = np.hsplit(sizes, 2)
        return right - left

    @property
    def domain(self) -> FlowBox:
        right, left = np.split(self.h.last, 2)
        return OneSidedFlowBox(self, -left, right)


class FlowBox(FlowDomain):
    """The flows between two ends in each coordinate, (k,)."""

    def __init__(self, phi: Any, low: Array, high: Array) -> None:
        super().__init__(phi)
        self.low, self.high = low, high

    def _each(self, u: Array) -> Array:
        return _shares(u, np.where(u > 0.0, self.high, self.low))

    def gauge(self, u: Array) -> Array:
        return self._each(u).max(axis=1, initial=0.0)

    def conductance(self, u: Array) -> Array:
        return np.maximum(1.0 - self._each(u), LEAST_SLACK) * (self.high > self.low)

    def clip(self, u: Array) -> Array:
        return np.clip(u, INSIDE * self.low, INSIDE * self.high)

    def slacks(self, u: Array) -> Array:
        return np.maximum(np.minimum(self.high - u, u - self.low), 0.0)

    def span(self, u: Array) -> Array:
        return np.where(self.high > self.low, u, 0.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.where(self.low < 0.0, 0.0, -np.inf), np.where(self.high > 0.0, 0.0, np.inf))


class OneSidedFlowBox(FlowBox, OneSidedDomain):
    """Such flows, where 0 may be an end."""
