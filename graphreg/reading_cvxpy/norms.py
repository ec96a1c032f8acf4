"""Multiples of norms, and p-norms, whose prox is the root of one number per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import ULP, Array
from ..terms.penalties import AbstractNorm, AbstractPenalty, column
from .source import AbstractReadPenalty

STEPS = 60  # of Newton's method


@final
@dataclass(frozen=True, eq=False, repr=False)
class ScaledNorm(AbstractReadPenalty, AbstractNorm):
    """``phi(z) = factor * norm(z)``."""

    norm: AbstractNorm
    factor: float

    def value(self, z: Array) -> Array:
        return self.factor * self.norm.value(z)

    def dual_norm(self, u: Array) -> Array:
        return self.norm.dual_norm(u) / self.factor

    def project_dual(self, u: Array, radius: Any) -> Array:
        return self.norm.project_dual(u, self.factor * np.asarray(radius, dtype=float))

    def prox(self, v: Array, step: Any) -> Array:
        return self.norm.prox(v, self.factor * np.asarray(step, dtype=float))

    def extent(self, k: int) -> float:
        return self.norm.extent(k) / self.factor

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]] | None:
        return None if isinstance(self.norm, AbstractReadPenalty) else [(self.factor, self.norm)]


@final
@dataclass(frozen=True, eq=False, repr=False)
class PNorm(AbstractReadPenalty, AbstractNorm):
    """``phi(z) = (sum_j |z_j|^p)^(1/p)`` with 1 < p < inf.

    ``phi*(u) = 0`` where ``||u||_q <= 1`` with 1/p + 1/q = 1, and +inf elsewhere. Its prox p = s y with step 1 has
    ``s y_j + y_j^(p - 1) = |v_j|`` and ``||y||_p = 1``.
    """

    p: float

    @property
    def q(self) -> float:
        """The exponent of the dual norm."""
        return self.p / (self.p - 1.0)

    def value(self, z: Array) -> Array:
        return _p_norm(z, self.p)

    def dual_norm(self, u: Array) -> Array:
        return _p_norm(u, self.q)

    def project_dual(self, u: Array, radius: Any) -> Array:
        r = np.broadcast_to(np.asarray(radius, dtype=float), (len(u),))
        flow, out = np.array(u, dtype=float), np.flatnonzero(self.dual_norm(u) > r)
        if len(out):
            with np.errstate(all="ignore"):
                flow[out] = np.copysign(r[out, None] * self._flow(np.abs(u[out]) / r[out, None]), u[out])
        return flow * column(radius / np.maximum(self.dual_norm(flow), radius))  # the root carries rounding

    def _flow(self, v: Array) -> Array:
        """The flow at the s where ||y||_p = 1, for v >= 0: Newton's steps on 1 / ||y||_p, which is close to linear in s
        (More and Sorensen, Computing a trust region step, 1983), from below."""
        p, longest = self.p, max(1.0, float(v.shape[1]) ** (1.0 / self.p - 1.0 / self.q))
        s = np.maximum(self.value(v) - longest, 0.0)
        for _ in range(STEPS):
            y = self._direction(v, s)[0]
            n = self.value(y)
            each = np.where(y > 0.0, y / (s[:, None] + (p - 1.0) * y ** (p - 2.0)), 0.0)
            fall = ((y / np.maximum(n, 1e-300)[:, None]) ** (p - 1.0) * each).sum(axis=1)
            new = np.maximum(s + n * (n - 1.0) / fall, 0.0)
            new = np.where(np.isfinite(new), new, s)
            still = np.abs(new - s) <= 4.0 * ULP * (s + 1.0)  # of rows that are longer than 1
            s = new
            if still.all():
                break
        return self._direction(v, s)[1]

    def _direction(self, v: Array, s: Array) -> tuple[Array, Array]:
        """At a size s (m,) of the prox: y, and the flow v - s y."""
        if self.p >= 2.0:
            y = power_root(s[:, None], 1.0, self.p - 1.0, v)
            return y, y ** (self.p - 1.0)
        flow = power_root(1.0, s[:, None], self.q - 1.0, v)
        return flow ** (self.q - 1.0), flow

    def subgradient(self, z: Array) -> Array:
        y = np.abs(z) / np.maximum(self.value(z), 1e-300)[:, None]
        return np.copysign(y ** (self.p - 1.0), z) * (z != 0.0)


def _p_norm(z: Array, p: float) -> Array:
    """The p-norm of each row, far from overflow."""
    size = np.maximum(np.abs(z).max(axis=1, initial=0.0), 1e-300)
    return size * ((np.abs(z) / size[:, None]) ** p).sum(axis=1) ** (1.0 / p)


def power_root(a: Any, b: Any, e: float, v: Array) -> Array:
    """y >= 0 with ``a y + b y^e = v``, e >= 1, by Newton's method from above: the function is convex."""
    if e == 1.0:
        return v / (a + b)
    if e == 2.0:
        return np.where(v > 0.0, 2.0 * v / (a + np.sqrt(a * a + 4.0 * b * v)), 0.0)
    y = np.where(v > 0.0, np.fmin(v / a, (v / b) ** (1.0 / e)), 0.0)
    for _ in range(STEPS):
        power = b * y ** (e - 1.0)
        new = np.where(v > 0.0, (v + (e - 1.0) * power * y) / (a + e * power), 0.0)
        if not (new < y * (1.0 - 2.0**-52)).any():
            break
        y = np.fmin(new, y)
    return y
