"""The non-negative cone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array, Notation, RecessionCone, Stated
from .base import INSIDE, LEAST_SLACK, AbstractConstraint, AbstractOneSided


@dataclass(frozen=True)
class NonNegative(AbstractOneSided, AbstractConstraint):
    """The constraint ``z >= 0`` in every coordinate: phi is 0 there and +inf elsewhere. On ground edges only.

    ``phi*(u) = 0`` where ``u <= 0`` and +inf elsewhere (the indicator of the polar cone).
    """

    def value(self, z: Array) -> Array:
        return np.where((z >= 0).all(axis=1), 0.0, np.inf)

    def project(self, z: Array) -> Array:
        return np.maximum(z, 0.0)

    def conjugate(self, u: Array) -> Array:
        return np.where((u <= 0).all(axis=1), 0.0, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return [Z >= 0]

    def gauge(self, u: Array) -> Array:
        return self.conjugate(u)  # of a cone: 0 inside, +inf outside

    def gauge_at_zero(self, u: Array) -> Array:
        return self.conjugate(u)

    def clip(self, u: Array) -> Array:
        return np.minimum(u, 0.0)

    def reach(self, start: Array, end: Array) -> Array:
        leaves = end > 0
        t = np.where(leaves, INSIDE * start / np.where(leaves, start - end, 1.0), 1.0)
        return t.min(axis=1, initial=1.0)

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return np.minimum(v, 0.0)

    def conductance(self, u: Array) -> Array:
        return np.maximum(np.abs(u), LEAST_SLACK)

    def room(self, u: Array) -> Array:
        return np.maximum(-u, 0.0)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return np.where((u + spread <= 0.0).all(axis=1), 0.0, np.inf)

    def interior(self, k: int) -> Array:
        return np.full(k, -1.0)

    def restricted(self, columns: Array) -> NonNegative:
        return self

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.full(k, np.inf))

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [U <= 0]

    def stated(self, k: int) -> Stated:
        return Stated("NonNegative")

    def exact_room(self, u: Array) -> Array:
        return np.clip(-u / (np.abs(u).mean() + 1e-300), 0.0, 1.0)

    def settle(self, z: list[Any], exact: Callable[[float], Any]) -> list[Any]:
        return [max(each, exact(0.0)) for each in z]

    @property
    def notation(self) -> Notation:
        return Notation("[%z >= 0]", domain="%u <= 0", latex_value=r"\iota\{%z \ge 0\}", latex_domain=r"%u \le 0")
