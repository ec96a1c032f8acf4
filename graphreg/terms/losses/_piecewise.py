"""Losses of two straight lines: their prices are a box, and their prox a clip."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...lazy import cp
from ..bounds import ULP, ends, shown
from ..records import Array, Bends
from .loss import INSIDE, AbstractLoss


@dataclass(frozen=True)
class AbstractPiecewiseLinearLoss(AbstractLoss):
    """``l(x; y) = max over b in [low, high] of b (x - y)``: two straight lines that meet at the target.

    Its conjugate is ``l*(b; y) = b y`` on [low, high], the `domain`, and +inf elsewhere.
    """

    @abstractmethod
    def domain(self, y: Array) -> tuple[Array, Array]: ...

    def value(self, x: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.maximum(low * (x - y), high * (x - y))

    def gradient(self, x: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.where(x > y, high, np.where(x < y, low, np.clip(0.0, low, high)))

    def conjugate(self, b: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.where((b >= low) & (b <= high), b * y, np.inf)

    def clip(self, b: Array, y: Array) -> Array:
        low, high = self.domain(y)  # around 0; most prices are at the ends, where that of 0 is exact
        return np.clip(b, INSIDE * low, INSIDE * high)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        low, high = self.domain(y)
        return v - np.clip(v - y, step * low, step * high)

    def conductance(self, b: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return np.maximum(2.0 * np.minimum(b - low, high - b) / (high - low), 1e-3)

    def anchor(self, y: Array) -> Array:
        return y

    def bends(self, y: Array) -> Bends:
        low, high = self.domain(y)
        zero = np.zeros(y.shape)
        return Bends(zero, low, ((zero, zero, high - low),))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        low, high = self.domain(y)
        top = np.maximum(low * (r - spread), high * (r + spread))
        rises = ((low < 0.0) & (r < spread)) | ((high > 0.0) & (r > -spread))
        return shown(np.maximum(top, 0.0) * (1.0 + 4 * ULP), rises)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        low, high = self.domain(y)
        least, most = ends(b, spread)
        return np.where((least >= low) & (most <= high), 0.0, np.inf)

    def _width(self, y: Array) -> float:
        """How far from its kink the loss is smoothed: a scale of the targets."""
        return float(np.abs(y).mean()) or 1.0

    def typical_curvature(self, x: Array, y: Array) -> Array:
        low, high = self.domain(y)
        return (high - low) / self._width(y - x)

    def smoothed(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        low, high = self.domain(y)
        h = self._width(y)
        rise, slope, bend = smooth_rise((x - y) / h)
        value = low * (x - y) + (high - low) * h * rise
        return value, low + (high - low) * slope, (high - low) * bend / h

    def cvxpy(self, x: Any, y: Array) -> Any:
        low, high = self.domain(y)
        return cp.maximum(cp.multiply(low, x - y), cp.multiply(high, x - y))

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        low, high = self.domain(y)
        return [b >= low, b <= high, cp.multiply(b, y)]


def smooth_rise(t: Array) -> tuple[Array, Array, Array]:
    """(t + sqrt(1 + t^2)) / 2 for max(0, t), with its slope in (0, 1) and its curvature.

    Far out the slope is 1 / (4 t^2) away from 0 or 1. (That of log(1 + exp(t)) is exp(-t): prices that small lie on
    the boundary of their domain but for their name.)
    """
    root = np.sqrt(1.0 + t * t)
    far = 0.5 / (root * (root + np.abs(t)))  # 1/2 (1 - |t| / root), free of cancellation
    rise = np.where(t > 0.0, 0.5 * (t + root), 0.5 / (root + np.abs(t)))
    return rise, np.where(t > 0.0, 1.0 - far, far), 0.5 / root**3
