"""The l1 norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import ULP
from ..records import Array, Notation, Statement, stated
from ._rows import column
from .base import AbstractAbsoluteNorm, AbstractEntrywise
from .domain import Cube


@dataclass(frozen=True)
class L1(AbstractEntrywise, AbstractAbsoluteNorm):
    """The l1 norm: ``phi(z) = sum_j |z_j|``; every coordinate of an edge is fused or split by itself.

    ``phi*(u) = 0`` where ``max_j |u_j| <= 1`` and +inf elsewhere (Parikh and Boyd, Proximal algorithms, 6.5).

    Examples
    --------
    >>> gr.L1().value(np.array([[3.0, -4.0]]))
    array([7.])
    >>> gr.L1().prox(np.array([[3.0, -0.5]]), 1.0)
    array([[2., 0.]])
    """

    def value(self, z: Array) -> Array:
        return np.abs(z).sum(axis=1)

    def dual_norm(self, u: Array) -> Array:
        return np.abs(u).max(axis=1, initial=0.0)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        # coordinate by coordinate, where a sum over the spreads of all would leave the domain for nothing
        top = np.abs(u) + spread
        top = np.where(spread == 0.0, top, top * (1.0 + ULP))  # that sum is rounded, but where it is exact
        return np.where(top.max(axis=1, initial=0.0) <= 1.0, 0.0, np.inf)

    domain = stated(Cube)

    def extent(self, k: int) -> float:
        return 1.0

    def pieces(self, k: int) -> int:
        return 1

    def project_dual(self, u: Array, radius: Any) -> Array:
        r = column(radius)
        return np.clip(u, -r, r)

    def kernel(self) -> str:
        return "box"

    def restricted(self, columns: Array) -> L1:
        return self

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.abs(Z), axis=1)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.abs(U) <= 1]

    def statement(self, k: int) -> Statement:
        return Statement("L1")

    notation = Notation(
        "||%z||_1", domain="||%u||_inf <= %c", latex_value=r"\|%z\|_1", latex_domain=r"\|%u\|_\infty \le %c"
    )
