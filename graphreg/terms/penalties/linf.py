"""The maximum norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...lazy import cp
from ..records import Array, Notation, Stated
from ._rows import column
from .base import AbstractNorm


@dataclass(frozen=True)
class LInf(AbstractNorm):
    """The maximum norm: ``phi(z) = max_j |z_j|``.

    ``phi*(u) = 0`` where ``||u||_1 <= 1`` and +inf elsewhere (Parikh and Boyd, Proximal algorithms, 6.5.2). The prox
    cuts |v| at the level t that leaves ``sum_j max(|v_j| - t, 0) = step``.
    """

    def value(self, z: Array) -> Array:
        return np.abs(z).max(axis=1, initial=0.0)

    def dual_norm(self, u: Array) -> Array:
        return np.abs(u).sum(axis=1)

    def gauge_around(self, u: Array, eta: Array) -> Array:
        return self.dual_norm(np.abs(u) + eta)

    def project_dual(self, u: Array, radius: Any) -> Array:
        level = _level(u, radius)
        inner = u - np.clip(u, -level, level)
        # the level carries the rounding of large rows, so the radius is enforced once more
        return inner * column(radius / np.maximum(self.dual_norm(inner), radius))

    def prox(self, v: Array, step: Any) -> Array:
        level = _level(v, step)
        return np.where(self.dual_norm(v)[:, None] <= column(step), 0.0, np.clip(v, -level, level))

    def cvxpy(self, Z: Any) -> Any:
        return cp.max(cp.abs(Z), axis=1)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.sum(cp.abs(U), axis=1) <= 1]

    def stated(self, k: int) -> Stated:
        return Stated("LInf")

    @property
    def notation(self) -> Notation:
        return Notation(
            "||%z||_inf", domain="||%u||_1 <= %c", latex_value=r"\|%z\|_\infty", latex_domain=r"\|%u\|_1 \le %c"
        )


def _level(v: Array, radius: Any) -> Array:
    """The level t >= 0 of each row, (m, 1), with sum_j max(|v_j| - t, 0) <= radius; 0 for rows inside the ball."""
    ordered = -np.sort(-np.abs(v), axis=1)
    levels = (np.cumsum(ordered, axis=1) - column(radius)) / np.arange(1, v.shape[1] + 1)
    last = np.maximum((ordered > levels).sum(axis=1) - 1, 0)
    return np.maximum(np.take_along_axis(levels, last[:, None], axis=1), 0.0)
