"""The squared Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import half_square
from ..records import Array, Notation, Statement
from ._rows import column
from .base import AbstractSmoothPenalty, AbstractSupercoercive


@dataclass(frozen=True)
class SquaredL2(AbstractSupercoercive, AbstractSmoothPenalty):
    """The squared Euclidean norm with its half: ``phi(z) = 1/2 ||z||_2^2``; edges pull, and never fuse.

    ``phi*(u) = 1/2 ||u||_2^2`` everywhere (Parikh and Boyd, Proximal algorithms, 6.1.1).

    Examples
    --------
    >>> gr.SquaredL2().value(np.array([[3.0, -4.0]]))
    array([12.5])
    >>> gr.SquaredL2().prox(np.array([[3.0, -4.0]]), 1.0)
    array([[ 1.5, -2. ]])
    """

    def value(self, z: Array) -> Array:
        return 0.5 * np.einsum("ij,ij->i", z, z)

    def gradient(self, z: Array) -> Array:
        return z

    def curvature(self, z: Array) -> Array:
        return np.ones_like(z)

    def smoothness(self) -> float:
        return 1.0

    def prox(self, v: Array, step: Any) -> Array:
        return v / (1.0 + column(step))

    def conjugate(self, u: Array) -> Array:
        return 0.5 * np.einsum("ij,ij->i", u, u)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.square(Z), axis=1) / 2

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return v / (1.0 + column(step / weight))

    def kernel(self) -> str:
        return "square"

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return half_square(np.abs(u) + spread)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return half_square(np.abs(z) + spread)

    def strong_convexity(self) -> float:
        return 1.0

    def cvxpy_conjugate(self, U: Any) -> Any:
        return self.cvxpy(U)  # its own conjugate

    def statement(self, k: int) -> Statement:
        return Statement("SquaredL2")

    notation = Notation(
        "||%z||_2^2 / 2",
        "||%u||_2^2 / (2 %c)",
        latex_value=r"\tfrac{1}{2} \|%z\|_2^2",
        latex_conjugate=r"\frac{1}{2 %c} \|%u\|_2^2",
        gradient="(%z)",
        latex_gradient="(%z)",
    )
