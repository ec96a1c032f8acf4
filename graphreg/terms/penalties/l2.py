"""The Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..records import Array, Notation, Statement
from ._rows import longest, onto_ball, row_norm
from .base import AbstractAbsoluteNorm


@dataclass(frozen=True)
class L2(AbstractAbsoluteNorm):
    """The Euclidean norm, not squared: ``phi(z) = ||z||_2``; an edge is fused or split as a whole.

    ``phi*(u) = 0`` where ``||u||_2 <= 1`` and +inf elsewhere (Parikh and Boyd, Proximal algorithms, 6.5.1).

    Examples
    --------
    >>> gr.L2().value(np.array([[3.0, -4.0]]))
    array([5.])
    >>> gr.L2().prox(np.array([[3.0, -4.0]]), 1.0)
    array([[ 2.4, -3.2]])
    """

    def value(self, z: Array) -> Array:
        return row_norm(z)

    def dual_norm(self, u: Array) -> Array:
        return row_norm(u)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return np.where(longest(u, spread) <= 1.0, 0.0, np.inf)

    def extent(self, k: int) -> float:
        return 1.0

    def pieces(self, k: int) -> int:
        return k

    def project_dual(self, u: Array, radius: Any) -> Array:
        return onto_ball(u, radius)

    def kernel(self) -> str:
        return "ball"

    def cvxpy(self, Z: Any) -> Any:
        return cp.norm(Z, 2, axis=1)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.norm(U, 2, axis=1) <= 1]

    def statement(self, k: int) -> Statement:
        return Statement("L2")

    notation = Notation("||%z||_2", domain="||%u||_2 <= %c", latex_value=r"\|%z\|_2", latex_domain=r"\|%u\|_2 \le %c")
