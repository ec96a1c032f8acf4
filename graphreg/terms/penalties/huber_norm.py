"""Huber's function of the Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import checked, positive
from ..bounds import ULP, half_square, shown
from ..records import Array, Notation, Statement
from ._rows import column, longest, onto_ball, row_norm
from .base import AbstractSmoothPenalty
from .domain import DualBall
from .l2 import L2


@dataclass(frozen=True)
class HuberNorm(AbstractSmoothPenalty):
    """Quadratic near 0 and a norm far from it: ``1/2 ||z||_2^2`` up to ``||z||_2 = delta``, then
    ``delta ||z||_2 - delta^2/2``. It does not fuse edges, and pulls at
    large differences as hard as ``delta`` times `L2` does.

    ``phi*(u) = 1/2 ||u||_2^2`` where ``||u||_2 <= delta`` and +inf elsewhere: it is the Moreau envelope of
    ``delta ||.||_2`` (Parikh and Boyd, Proximal algorithms, 3.1).

    Parameters
    ----------
    delta : float
        Where it turns from quadratic to linear, in units of z; positive.

    Examples
    --------
    >>> gr.HuberNorm(delta=1.0).value(np.array([[0.5], [3.0]]))  # 1/2 0.5^2; 3 - 1/2
    array([0.125, 2.5  ])
    """

    delta: float = checked(positive, 1.0)

    def value(self, z: Array) -> Array:
        r = row_norm(z)
        return np.where(r <= self.delta, r * r / 2, self.delta * (r - self.delta / 2))

    def gradient(self, z: Array) -> Array:
        return onto_ball(z, self.delta)

    def curvature(self, z: Array) -> Array:
        r = np.maximum(row_norm(z), self.delta)[:, None]
        far = (r > self.delta)[:, :, None]
        unit = z / r
        return (np.eye(z.shape[1]) - far * unit[:, :, None] * unit[:, None, :]) * (self.delta / r)[:, :, None]

    def smoothness(self) -> float:
        return 1.0

    def envelope(self) -> float:
        return self.delta

    def prox(self, v: Array, step: Any) -> Array:
        # v / (1 + t) up to ||v|| = (1 + t) delta, then v (1 - t delta / ||v||): always the larger factor
        t = np.asarray(step, dtype=float)
        far = 1.0 - t * self.delta / np.maximum(row_norm(v), t * self.delta)
        return v * column(np.maximum(1.0 / (1.0 + t), far))

    def conjugate(self, u: Array) -> Array:
        r = row_norm(u)
        return np.where(r <= self.delta, r * r / 2, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return cp.huber(cp.norm(Z, 2, axis=1), self.delta) / 2  # pyright: ignore[reportArgumentType]

    @property
    def domain(self) -> DualBall:
        return DualBall(self, L2(), self.delta)

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return onto_ball(v / (1.0 + column(step / weight)), weight * self.delta)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return np.where(longest(u, spread) <= self.delta, half_square(np.abs(u) + spread), np.inf)

    def value_bound(self, z: Array, spread: Array) -> Array:
        r = longest(z, spread)
        far = shown(self.delta * (r - self.delta / 2) * (1.0 + 4 * ULP), live=True)
        return np.where(r <= self.delta, shown(r * r * (0.5 + ULP), r > 0.0), far)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.norm(U, 2, axis=1) <= self.delta, cp.sum(cp.square(U), axis=1) / 2]

    def statement(self, k: int) -> Statement:
        return Statement("HuberNorm", float(self.delta))

    @property
    def notation(self) -> Notation:
        d, rest = f"{self.delta:g}", f"{self.delta**2 / 2:g}"
        times, dot = ("", "") if d == "1" else (f"{d} ", rf"{d} \, ")
        return Notation(
            f"huber_{d}(||%z||_2) where huber_{d}(t) = t^2 / 2 up to t = {d}, then {times}t - {rest}",
            "||%u||_2^2 / (2 %c)",
            f"||%u||_2 <= {times}%c",
            rf"h_{{{d}}}(\|%z\|_2) \text{{ where }} h_{{{d}}}(t) = t^2 / 2 \text{{ up to }} t = {d}, "
            rf"\text{{ then }} {dot}t - {rest}",
            r"\frac{1}{2 %c} \|%u\|_2^2",
            rf"\|%u\|_2 \le {dot}%c",
            f"(%z) * min(1, {d} / ||%z||_2)",
            rf"(%z) \min(1, {d} / \|%z\|_2)",
        )
