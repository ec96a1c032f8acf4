"""Functions of the Euclidean norm that are piecewise quadratic."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ...lazy import cp
from ..bounds import ULP, shown
from ..records import Array, Notation, RecessionCone
from ._curves import Curve
from ._formulas import conjugated, outwards, times, typeset, with_hubers
from ._rows import INSIDE, longest, onto_ball, row_norm
from ._separable import written
from ._sides import Sides
from .base import AbstractSmoothPenalty
from .domain import OwnDomain
from .penalty import AbstractPenalty


@dataclass(frozen=True, eq=False)
class AbstractRadial(OwnDomain, AbstractPenalty):
    """``phi(z) = h(||z||_2)`` with h >= 0 piecewise quadratic on r >= 0, given by its derivative.

    ``phi*(u) = h*(||u||_2)`` (Parikh and Boyd, Proximal algorithms, 6.5.1 and 6.7).
    """

    curve: Curve

    @cached_property
    def h(self) -> Sides:
        return Sides.of([self.curve])

    @property
    def last(self) -> float:
        """The slope of h at infinity."""
        return float(self.h.last[0])

    def value(self, z: Array) -> Array:
        return self.h.value(row_norm(z)[:, None])[:, 0]

    def prox(self, v: Array, step: Any) -> Array:
        r = row_norm(v)[:, None]
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return v * (self.h.prox(r, t) / np.maximum(r, 1e-300))

    def conjugate(self, u: Array) -> Array:
        return self.h.conjugate(row_norm(u)[:, None])[:, 0]

    @abstractmethod
    def subgradient(self, z: Array) -> Array: ...

    def along(self, z: Array) -> Array:
        """h'(||z||) z / ||z||, with the smaller slope where it jumps, and 0 at 0."""
        r = np.maximum(row_norm(z), 1e-300)[:, None]
        return z * (self.h.slope(r) / r)

    def cvxpy(self, Z: Any) -> Any:
        r = cp.reshape(cp.norm(Z, 2, axis=1), (Z.shape[0], 1), order="C")
        return cp.sum(written(self.h, r, r), axis=1)

    def gauge(self, u: Array) -> Array:
        return row_norm(u) / self.last

    def gauge_at_zero(self, u: Array) -> Array:
        return _ratio(row_norm(u), float(self.h.first[0]))

    def clip(self, u: Array) -> Array:
        return onto_ball(u, INSIDE * self.last) if np.isfinite(self.last) else u

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        r = longest(u, spread)
        top = self.h.conjugate(r[:, None])[:, 0]
        return shown(top * (1.0 + 16.0 * ULP), (top > 0.0) & (r > 0.0))

    def value_bound(self, z: Array, spread: Array) -> Array:
        r = longest(z, spread)
        top = self.h.value(r[:, None])[:, 0]
        return shown(top * (1.0 + 16.0 * ULP), top > 0.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))

    def strong_convexity(self) -> float:
        return float(self.h.bend.min()) if not self.h.jump[:, 1:].any() or self.h.bend.all() else 0.0

    @property
    def notation(self) -> Notation:
        domain = (f"||%u||_2 <= {times(self.last)}%c", rf"\|%u\|_2 \le {times(self.last)}%c")
        domain = domain if np.isfinite(self.last) else ("", "")
        value = with_hubers(outwards(self.h, 0, "||%z||_2", "||%z||_2"))
        conjugate = with_hubers(conjugated("||%u||_2", "x >= 0", outwards(self.h, 0, "x", "x")))
        return Notation(value, conjugate, domain[0], typeset(value), typeset(conjugate), domain[1])


@final
@dataclass(frozen=True, eq=False)
class Radial(AbstractRadial):
    """A function of the Euclidean norm with a kink."""

    def subgradient(self, z: Array) -> Array:
        return self.along(z)


@final
@dataclass(frozen=True, eq=False)
class SmoothRadial(AbstractRadial, AbstractSmoothPenalty):
    """A function of the Euclidean norm without kinks."""

    def gradient(self, z: Array) -> Array:
        return self.along(z)

    def subgradient(self, z: Array) -> Array:
        return self.along(z)

    def curvature(self, z: Array) -> Array:
        r = np.maximum(row_norm(z), 1e-300)[:, None]
        along, across = self.h.curvature(r)[:, :, None], (self.h.slope(r) / r)[:, :, None]
        unit = z / r
        return across * np.eye(z.shape[1]) + (along - across) * unit[:, :, None] * unit[:, None, :]

    def smoothness(self) -> float:
        return float(self.h.bend.max())


def radial(curve: Curve) -> AbstractRadial:
    """h(||z||_2) for the h with this derivative."""
    return (SmoothRadial if Sides.of([curve]).is_smooth else Radial)(curve)


def _ratio(size: Array, most: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size == 0.0, 0.0, size / most)
