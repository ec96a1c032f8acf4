"""The Euclidean ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import checked, positive
from ..bounds import ULP, shown
from ..records import Array, Notation, Statement, stated
from ._rows import column, longest, row_norm
from .base import AbstractConstraint, AbstractSupercoercive
from .domain import Everywhere

MARGIN = 1e-14  # relative; points that are projected land twice as far inside, so that rounding never leaves the ball
LEAST_CONDUCTANCE = 0.1  # of an edge without flow, whose conjugate has a kink there


class _Free(Everywhere):
    """Flows of which those near 0, where phi* has a kink, give way less."""

    def conductance(self, u: Array) -> Array:
        return np.maximum(row_norm(u), LEAST_CONDUCTANCE)[:, None]


@dataclass(frozen=True)
class Ball(AbstractSupercoercive, AbstractConstraint):
    """The constraint ``||z||_2 <= radius``: phi is 0 inside and +inf outside.

    ``phi*(u) = radius ||u||_2`` everywhere (the support function of the ball).

    Parameters
    ----------
    radius : float
        In units of z; positive.

    Examples
    --------
    >>> gr.Ball(radius=1.0).prox(np.array([[3.0, -4.0]]), 1.0)
    array([[ 0.6, -0.8]])
    """

    radius: float = checked(positive, 1.0)

    def value(self, z: Array) -> Array:
        return np.where(row_norm(z) <= self.radius, 0.0, np.inf)

    def project(self, z: Array) -> Array:
        # rows outside, or within rounding of it, land a few ulps inside; others stay exactly as they are
        r = row_norm(z)
        outside = r * (1.0 + MARGIN) > self.radius
        return z * np.where(outside, (1.0 - 2 * MARGIN) * self.radius / np.where(outside, r, 1.0), 1.0)[:, None]

    def conjugate(self, u: Array) -> Array:
        return self.radius * row_norm(u)

    def cvxpy(self, Z: Any) -> Any:
        return [cp.norm(Z, 2, axis=1) <= self.radius]

    def gauge_at_zero(self, u: Array) -> Array:
        return np.where((u == 0.0).all(axis=1), 0.0, np.inf)  # 0 is interior to the ball

    domain = stated(_Free)

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        threshold = step * self.radius
        return v * column(1.0 - threshold / np.maximum(row_norm(v), threshold))

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        r = longest(u, spread)
        return shown(self.radius * r * (1.0 + ULP), r > 0.0)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return np.where(longest(z, spread) <= self.radius, 0.0, np.inf)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return self.radius * cp.norm(U, 2, axis=1)

    def statement(self, k: int) -> Statement:
        return Statement("Ball", float(self.radius))

    @property
    def notation(self) -> Notation:
        r = f"{self.radius:g}"
        return Notation(
            f"[||%z||_2 <= {r}]",
            "||%u||_2" if r == "1" else f"{r} ||%u||_2",
            latex_value=rf"\iota\{{\|%z\|_2 \le {r}\}}",
            latex_conjugate=r"\|%u\|_2" if r == "1" else rf"{r} \, \|%u\|_2",
        )
