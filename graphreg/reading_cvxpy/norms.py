"""Multiples of norms, p-norms, whose prox is the root of one number per row, and norms of Rz."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone
from ..terms.penalties import INSIDE, AbstractNorm, AbstractPenalty, OwnDomain, by_row, column, row_norm
from .source import AbstractReadPenalty

STEPS = 60  # of Newton's method
ROUNDS = 4000  # of projected gradients
ROUNDING = 1e-12  # of a flow's length: what is off the row space by less is taken for rounding, as in `Quadratic`
NEARLY = 1e-6  # relative; far more than a pseudo-inverse is off
SURE = 64.0 * ULP  # relative; more than a dual norm is off


@dataclass(frozen=True, eq=False)
class AbstractReadNorm(AbstractReadPenalty, AbstractNorm):
    """A norm that was read."""


@final
@dataclass(frozen=True, eq=False)
class ScaledNorm(AbstractReadNorm):
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

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]]:
        return [(self.factor, self.norm)]


@final
@dataclass(frozen=True, eq=False)
class PNorm(AbstractReadNorm):
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


@final
@dataclass(frozen=True, eq=False)
class MappedNorm(OwnDomain, AbstractReadPenalty):
    """``phi(z) = norm(Rz)`` with R (r, k) of full row rank, and a norm that depends on the sizes of entries alone.

    ``phi*(u) = 0`` where ``u = R'y`` with a dual norm of y of at most 1, and +inf elsewhere; there is one y at most.
    The prox with step t is ``v - R'y`` for the y with a dual norm of at most t whose R'y is nearest to v.
    """

    R: Array
    norm: AbstractNorm

    @cached_property
    def _inverse(self) -> tuple[Array, float]:
        """The pseudo-inverse (k, r) of R, and more than its spectral norm."""
        return np.linalg.pinv(self.R), (1.0 + NEARLY) / float(np.linalg.norm(self.R, -2))

    @cached_property
    def _pace(self) -> tuple[float, float]:
        """The step of projected gradients, and their momentum (Nesterov, Introductory lectures, 2.2.3)."""
        most, least = float(np.linalg.norm(self.R, 2)), float(np.linalg.norm(self.R, -2))
        return 1.0 / most**2, (most - least) / (most + least)

    def value(self, z: Array) -> Array:
        return self.norm.value(by_row(z, self.R.T))

    def prox(self, v: Array, step: Any) -> Array:
        r = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        y = by_row(v, self._inverse[0])
        free = self.norm.dual_norm(y) <= r
        out = np.flatnonzero(~free)
        y[out] = self._nearest(y[out], by_row(v[out], self.R.T), r[out])
        return v - np.where(free[:, None], self.span(v), by_row(y, self.R))

    def _nearest(self, y: Array, Rv: Array, r: Array) -> Array:
        """The y of the ball with the radius r at which ``||v - R'y||_2`` is least, from points beyond."""
        pace, momentum = self._pace
        G, y, live = self.R @ self.R.T, self.norm.project_dual(y, r), np.arange(len(y))
        at, least = y.copy(), 8.0 * ULP * (r + pace * np.abs(Rv).max(axis=1, initial=0.0))
        for _ in range(ROUNDS):
            x = at[live]
            new = self.norm.project_dual(x - pace * (by_row(x, G) - Rv[live]), r[live])
            moved = new - y[live]
            at[live], y[live] = new + momentum * moved, new
            live = live[np.abs(new - x).max(axis=1) > least[live]]
            if not len(live):
                break
        return y

    def prices(self, u: Array) -> tuple[Array, Array]:
        """Not less than ``|y_i|`` for the y whose R'y is nearest to u, (m, r), and how far from u that is, (m,)."""
        P, norm = self._inverse
        y = u @ P
        left = u - y @ self.R
        lost = (len(self.R) + 4) * ULP * (np.abs(u) + np.abs(y) @ np.abs(self.R))
        moved = np.abs(left @ P) + NEARLY * (np.abs(left) @ np.abs(P))
        return np.abs(y) + moved + norm * row_norm(lost)[:, None], row_norm(left)

    def conjugate(self, u: Array) -> Array:
        return np.where(self.gauge(u) <= 1.0, 0.0, np.inf)

    def gauge(self, u: Array) -> Array:
        y, off = self.prices(u)
        return np.where(off <= ROUNDING * row_norm(u), self.norm.dual_norm(y) * (1.0 + SURE), np.inf)

    def gauge_at_zero(self, u: Array) -> Array:
        return self.gauge(u)

    def clip(self, u: Array) -> Array:
        out = ~(self.gauge(u) <= 1.0)
        if out.any():
            u = u.copy()
            flow = by_row(self.norm.project_dual(by_row(u[out], self._inverse[0]), INSIDE), self.R)
            u[out] = flow * column(INSIDE / np.maximum(self.gauge(flow), INSIDE))
        return u

    def value_bound(self, z: Array, spread: Array) -> Array:
        R, lost = self.R, (z.shape[1] + 3) * ULP
        each = np.abs(z @ R.T) + (lost * np.abs(z) + (1.0 + lost) * spread) @ np.abs(R.T)
        return self.norm.value_bound(each, np.zeros(each.shape))

    def subgradient(self, z: Array) -> Array:
        return by_row(self.norm.subgradient(by_row(z, self.R.T)), self.R)

    def composed(self) -> tuple[Array, AbstractPenalty] | None:
        return (self.R, self.norm) if len(self.R) < self.R.shape[1] else None

    def span(self, u: Array) -> Array:
        return by_row(by_row(u, self._inverse[0]), self.R)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * self.span(z)  # keeps the flow in the row space

    def recession(self, k: int) -> RecessionCone:
        if len(self.R) == k:
            return RecessionCone(np.zeros(k), np.zeros(k))
        return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), self.R)
