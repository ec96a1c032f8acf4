"""Penalties made of another one: functions of a norm, and thresholds before a penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone, shown
from ..terms.penalties import INSIDE, L1, L2, AbstractNorm, AbstractPenalty, OwnDomain, norm_bound, row_norm
from .sides import RootedSides, Sides
from .source import AbstractReadPenalty


@final
@dataclass(frozen=True, eq=False)
class OfNorm(OwnDomain, AbstractReadPenalty):
    """``phi(z) = h(norm(z))`` for the norm L1, L2 or LInf, with h >= 0, h(0) = 0, convex and increasing on x >= 0.

    ``phi*(u) = h*(dual norm of u)`` (Rockafellar, Convex Analysis, theorem 15.3).
    """

    norm: AbstractNorm
    h: Sides | RootedSides

    @property
    def last(self) -> float:
        """The slope of h at infinity."""
        return float(self.h.last[0])

    def value(self, z: Array) -> Array:
        return _of_numbers(self.h.value, self.norm.value(z))

    def conjugate(self, u: Array) -> Array:
        return _of_numbers(self.h.conjugate, self.norm.dual_norm(u))

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

    def gauge(self, u: Array) -> Array:
        return self.norm.dual_norm(u) / self.last

    def gauge_at_zero(self, u: Array) -> Array:
        size = self.norm.dual_norm(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size == 0.0, 0.0, size / self.h.first[0])

    def clip(self, u: Array) -> Array:
        return self.norm.project_dual(u, INSIDE * self.last) if np.isfinite(self.last) else u

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return _bound(self.h.conjugate_bound, norm_bound(self.norm.dual_norm, u, spread))

    def value_bound(self, z: Array, spread: Array) -> Array:
        return _bound(self.h.value_bound, norm_bound(self.norm.value, z, spread))

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))

    def accuracy(self) -> float:
        return self.h.accuracy

    def strong_convexity(self) -> float:
        # on the whole line beyond a kink at 0, if h bends everywhere
        return self.h.least_bend if isinstance(self.norm, L2) else 0.0


def _of_numbers(what: Callable[[Array], Array], x: Array) -> Array:
    """A function of numbers, (m,)."""
    return what(x[:, None])[:, 0]


def _bound(what: Callable[[Array], Array], r: Array) -> Array:
    top = _of_numbers(what, r)
    return shown(top * (1.0 + 16.0 * ULP), (top > 0.0) & (r > 0.0))


@final
@dataclass(frozen=True, eq=False)
class Thresholded(OwnDomain, AbstractReadPenalty):
    """``phi(z) = sum_j w_j |z_j| + rest(z)``, w >= 0, where rest does not change with the signs of coordinates.

    With S the soft threshold, ``prox(v, t) = rest.prox(S(v, t w), t)`` (Yu, On decomposing the proximal map, 2013,
    theorem 1: rest keeps signs) and ``phi*(u) = rest*(S(u, w))``, as rest* grows with every |u_j|.
    """

    weights: Array
    rest: AbstractPenalty

    def value(self, z: Array) -> Array:
        return np.abs(z) @ self.weights + self.rest.value(z)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return self.rest.prox(_soft(v, t[:, None] * self.weights), t)

    def conjugate(self, u: Array) -> Array:
        return self.rest.conjugate(_soft(u, self.weights))

    def clip(self, u: Array) -> Array:
        out = ~np.isfinite(self.conjugate(u))
        if out.any():
            rest = self.rest.domain.clip(_soft(u, self.weights))
            moved = np.clip(u, -self.weights, self.weights) + (1.0 - 1e-12) * rest
            u = super().clip(np.where(out[:, None], moved, u))
        return u

    def recession(self, k: int) -> RecessionCone | None:
        return RecessionCone(np.zeros(k), np.zeros(k)) if self.weights.all() else self.rest.domain.recession(k)

    def strong_convexity(self) -> float:
        return self.rest.strong_convexity()


def _soft(v: Array, threshold: Array) -> Array:
    return v - np.clip(v, -threshold, threshold)
