"""The maximum norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..records import Array, Notation, Statement
from ._rows import column
from .base import AbstractAbsoluteNorm


@dataclass(frozen=True)
class LInf(AbstractAbsoluteNorm):
    """The maximum norm: ``phi(z) = max_j |z_j|``.

    ``phi*(u) = 0`` where ``||u||_1 <= 1`` and +inf elsewhere (Parikh and Boyd, Proximal algorithms, 6.5.2). The prox
    cuts |v| at the level t that leaves ``sum_j max(|v_j| - t, 0) = step``.

    Examples
    --------
    >>> gr.LInf().value(np.array([[3.0, -4.0]]))
    array([4.])
    >>> gr.LInf().prox(np.array([[3.0, -4.0]]), 1.0)
    array([[ 3., -3.]])
    """

    is_maximum = True

    def value(self, z: Array) -> Array:
        return np.abs(z).max(axis=1, initial=0.0)

    def dual_norm(self, u: Array) -> Array:
        return np.abs(u).sum(axis=1)

    def project_dual(self, u: Array, radius: Any) -> Array:
        # from the largest entry downwards, which keeps the digits of a ball that is small beside u
        size = np.abs(u)
        depth = size.max(axis=1, keepdims=True, initial=0.0) - size
        inner = np.copysign(np.minimum(np.maximum(_depth(depth, radius) - depth, 0.0), size), u)
        return inner * column(radius / np.maximum(self.dual_norm(inner), radius))

    def prox(self, v: Array, step: Any) -> Array:
        size = np.abs(v)
        top = size.max(axis=1, keepdims=True, initial=0.0)
        level = np.maximum(top - _depth(top - size, step), 0.0)
        return np.where(self.dual_norm(v)[:, None] <= column(step), 0.0, np.clip(v, -level, level))

    def cvxpy(self, Z: Any) -> Any:
        return cp.max(cp.abs(Z), axis=1)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.sum(cp.abs(U), axis=1) <= 1]

    def statement(self, k: int) -> Statement:
        return Statement("LInf")

    notation = Notation(
        "||%z||_inf", domain="||%u||_1 <= %c", latex_value=r"\|%z\|_\infty", latex_domain=r"\|%u\|_1 \le %c"
    )


def _depth(depth: Array, radius: Any) -> Array:
    """The t of each row, (m, 1), with sum_j max(t - depth_j, 0) = radius; the least depth is 0."""
    ordered = np.sort(depth, axis=1)
    found = (np.cumsum(ordered, axis=1) + column(radius)) / np.arange(1, depth.shape[1] + 1)
    last = np.maximum((ordered < found).sum(axis=1) - 1, 0)
    return np.take_along_axis(found, last[:, None], axis=1)
