"""The k-largest norm: the sum of the largest absolute values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...lazy import cp
from ..records import Array, Notation
from ._formulas import typeset
from ._rows import column
from .base import AbstractAbsoluteNorm


@final
@dataclass(frozen=True, eq=False)
class KLargestNorm(AbstractAbsoluteNorm):
    """The sum of the q largest ``|z_j|``; a q between two integers takes that share of the next one.

    ``phi*(u) = 0`` where ``max_j |u_j| <= 1`` and ``sum_j |u_j| <= q``, and +inf elsewhere (Bhatia, Matrix analysis,
    exercise IV.2.12). The projection of v onto that ball times r has ``|u_j| = min(max(|v_j| - t, 0), r)`` with the
    least t >= 0 at which these add up to q r at most.
    """

    q: float

    def value(self, z: Array) -> Array:
        share = np.clip(self.q - np.arange(z.shape[1]), 0.0, 1.0)
        return -np.sort(-np.abs(z), axis=1) @ share

    def dual_norm(self, u: Array) -> Array:
        size = np.abs(u)
        return np.maximum(size.max(axis=1, initial=0.0), size.sum(axis=1) / self.q)

    def extent(self, k: int) -> float:
        return max(1.0, float(np.sqrt(k)) / self.q)  # at the corners of the unit ball, e_j and (1, ..., 1) / q

    def project_dual(self, u: Array, radius: Any) -> Array:
        flow = self._flow(u, radius)
        return flow * column(radius / np.maximum(self.dual_norm(flow), radius))  # the sum carries rounding

    def prox(self, v: Array, step: Any) -> Array:
        return v - self._flow(v, step)

    def _flow(self, v: Array, radius: Any) -> Array:
        """The projection, up to rounding. With c the q-th largest ``|v_j|`` the t lies between c - r and c."""
        r = np.broadcast_to(np.asarray(radius, dtype=float), (len(v),))[:, None]
        size, flow = np.abs(v), np.array(v, dtype=float)
        out = np.flatnonzero(self.dual_norm(v) > r[:, 0])
        if len(out):
            size, r = size[out], r[out]
            place = min(int(np.ceil(self.q)), size.shape[1]) - 1
            c = -np.sort(-size, axis=1)[:, place, None]
            x = np.clip(size - c, -r, r)  # what is further from c is 0, or r
            level = np.maximum(self._level(x, r), -c)
            flow[out] = np.copysign(np.minimum(np.clip(x - level, 0.0, r), size), flow[out])
        return flow

    def _level(self, x: Array, r: Array) -> Array:
        """The t (m, 1) in [-r, 0] with ``sum_j min(max(x_j - t, 0), r) = q r``, by bisection over the ends of its
        pieces, which are linear."""
        knots = np.sort(np.clip(np.hstack([x, x - r, np.zeros_like(r), -r]), -r, 0.0), axis=1)
        low, high = np.zeros((len(x), 1), dtype=int), np.full((len(x), 1), knots.shape[1] - 1)
        while (high > low + 1).any():
            middle = (low + high) // 2
            over = (
                np.clip(x - np.take_along_axis(knots, middle, axis=1), 0.0, r).sum(axis=1, keepdims=True) > self.q * r
            )
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        within = 0.5 * (np.take_along_axis(knots, low, axis=1) + np.take_along_axis(knots, high, axis=1))
        full = x - within >= r
        some = (x > within) & ~full
        left = (self.q - full.sum(axis=1, keepdims=True)) * r
        count = some.sum(axis=1, keepdims=True)
        return np.where(count > 0, ((x * some).sum(axis=1, keepdims=True) - left) / np.maximum(count, 1), within)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum_largest(cp.abs(Z), min(self.q, Z.shape[1]), axis=1)  # of more it is unbounded there

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.abs(U) <= 1, cp.sum(cp.abs(U), axis=1) <= self.q]

    @property
    def notation(self) -> Notation:
        q = f"{self.q:g}"
        domain = f"||%u||_inf <= %c, ||%u||_1 / {q} <= %c"
        return Notation(
            f"sum of {q} largest(|%z|)",
            "",
            domain,
            rf"\|%z\|_{{({q})}}",
            "",
            typeset(domain),
        )
