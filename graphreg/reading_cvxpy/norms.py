"""Norms with a prox in closed form, or that is the root of one number per row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ..base.lazy import cp
from ..terms import ULP, Array
from ..terms.penalties import L2, AbstractAbsoluteNorm, AbstractNorm, AbstractPenalty, by_row, column, row_norm
from .source import AbstractReadPenalty

STEPS = 60  # of Newton's method


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


# ---- a root for each row ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class AbstractRootedNorm(AbstractReadNorm):
    """A norm whose prox with step 1 at v is s y, where s is such that norm(y) = 1."""

    @abstractmethod
    def direction(self, v: Array, s: Array) -> tuple[Array, Array, Array]:
        """At a size s (m,) of the prox: y (m, k), the flow v - s y, and norm(y), which falls as s grows."""

    @abstractmethod
    def fall(self, y: Array, s: Array) -> Array:
        """How fast norm(y) falls as s grows, (m,)."""

    @abstractmethod
    def longest_flow(self, k: int) -> float:
        """The largest norm(u) over the ball of the dual norm."""

    def project_dual(self, u: Array, radius: Any) -> Array:
        r = np.broadcast_to(np.asarray(radius, dtype=float), (len(u),))
        flow, out = np.array(u, dtype=float), np.flatnonzero(self.dual_norm(u) > r)
        if len(out):
            with np.errstate(all="ignore"):
                flow[out] = r[out, None] * self._flow(u[out] / r[out, None])
        return flow * column(radius / np.maximum(self.dual_norm(flow), radius))  # the root carries rounding

    def _flow(self, v: Array) -> Array:
        """The flow at the s where norm(y) = 1: Newton's steps on 1 / norm(y), which is close to linear in s (More and
        Sorensen, Computing a trust region step, 1983), from below."""
        s = np.maximum(self.value(v) - self.longest_flow(v.shape[1]), 0.0)
        for _ in range(STEPS):
            y, _, n = self.direction(v, s)
            new = np.maximum(s + n * (n - 1.0) / self.fall(y, s), 0.0)
            new = np.where(np.isfinite(new), new, s)
            still = np.abs(new - s) <= 4.0 * ULP * (s + 1.0)  # of rows that are longer than 1
            s = new
            if still.all():
                break
        return self.direction(v, s)[1]


@final
@dataclass(frozen=True, eq=False)
class PNorm(AbstractRootedNorm):
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

    def direction(self, v: Array, s: Array) -> tuple[Array, Array, Array]:
        if self.p >= 2.0:
            y = power_root(s[:, None], 1.0, self.p - 1.0, np.abs(v))
            dual = y ** (self.p - 1.0)
        else:
            dual = power_root(1.0, s[:, None], self.q - 1.0, np.abs(v))
            y = dual ** (self.q - 1.0)
        return np.copysign(y, v), np.copysign(dual, v), _p_norm(y, self.p)

    def fall(self, y: Array, s: Array) -> Array:
        y = np.abs(y)
        each = np.where(y > 0.0, y / (s[:, None] + (self.p - 1.0) * y ** (self.p - 2.0)), 0.0)
        size = np.maximum(_p_norm(y, self.p), 1e-300)[:, None]
        return ((y / size) ** (self.p - 1.0) * each).sum(axis=1)

    def longest_flow(self, k: int) -> float:
        return max(1.0, float(k) ** (1.0 / self.p - 1.0 / self.q))

    def subgradient(self, z: Array) -> Array:
        y = np.abs(z) / np.maximum(self.value(z), 1e-300)[:, None]
        return np.copysign(y ** (self.p - 1.0), z) * (z != 0.0)


@final
@dataclass(frozen=True, eq=False)
class EllipsoidNorm(AbstractRootedNorm):
    """``phi(z) = ||Rz||_2`` with a square R that has an inverse.

    ``phi*(u) = 0`` where ``||R^-T u||_2 <= 1`` and +inf elsewhere. With ``R'R = V diag(l) V'`` its prox p = s V y with
    step 1 has ``(s + l_j) y_j = (V'v)_j`` and ``sum_j l_j y_j^2 = 1``.
    """

    root: Array

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """The squares of the singular values of R, V, and ``V diag(1 / singular values)``."""
        _, sigma, V = np.linalg.svd(self.root)
        return sigma**2, V.T, V.T / sigma

    def value(self, z: Array) -> Array:
        return row_norm(by_row(z, self.root.T))

    def dual_norm(self, u: Array) -> Array:
        return row_norm(by_row(u, self._parts[2]))

    def direction(self, v: Array, s: Array) -> tuple[Array, Array, Array]:
        l, V, _ = self._parts
        y = by_row(v, V) / (s[:, None] + l)
        return by_row(y, V.T), by_row(l * y, V.T), row_norm(np.sqrt(l) * y)

    def fall(self, y: Array, s: Array) -> Array:
        l, V, _ = self._parts
        y = by_row(y, V)
        size = np.maximum(row_norm(np.sqrt(l) * y), 1e-300)
        return (l * y * y / (s[:, None] + l)).sum(axis=1) / size

    def longest_flow(self, k: int) -> float:
        return float(self._parts[0].max())

    def subgradient(self, z: Array) -> Array:
        R = self.root
        return by_row(by_row(z, R.T), R) / np.maximum(self.value(z), 1e-300)[:, None]


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


# ---- in closed form --------------------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, eq=False)
class KLargestNorm(AbstractReadNorm, AbstractAbsoluteNorm):
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
        """With c the q-th largest ``|u_j|`` the t lies between c - r and c."""
        r = np.broadcast_to(np.asarray(radius, dtype=float), (len(u),))[:, None]
        size, flow = np.abs(u), np.array(u, dtype=float)
        out = np.flatnonzero(self.dual_norm(u) > r[:, 0])
        if len(out):
            size, r = size[out], r[out]
            place = min(int(np.ceil(self.q)), size.shape[1]) - 1
            c = -np.sort(-size, axis=1)[:, place, None]
            x = np.clip(size - c, -r, r)  # what is further from c is 0, or r
            level = np.maximum(self._level(x, r), -c)
            flow[out] = np.copysign(np.minimum(np.clip(x - level, 0.0, r), size), flow[out])
        return flow * column(radius / np.maximum(self.dual_norm(flow), radius))  # the sum carries rounding

    def _level(self, x: Array, r: Array) -> Array:
        """The t (m, 1) in [-r, 0] with ``sum_j min(max(x_j - t, 0), r) = q r``: from the piece, between two knots of
        this function of t, that holds it."""
        knots = np.sort(np.clip(np.hstack([x, x - r, np.zeros_like(r), -r]), -r, 0.0), axis=1)
        sums = np.clip(x[:, None] - knots[:, :, None], 0.0, r[:, None]).sum(axis=2)
        low = np.maximum((sums > self.q * r).sum(axis=1, keepdims=True) - 1, 0)
        high = np.minimum(low + 1, knots.shape[1] - 1)
        within = 0.5 * (np.take_along_axis(knots, low, axis=1) + np.take_along_axis(knots, high, axis=1))
        full = x - within >= r
        some = (x > within) & ~full
        left = (self.q - full.sum(axis=1, keepdims=True)) * r
        count = some.sum(axis=1, keepdims=True)
        return np.where(count > 0, ((x * some).sum(axis=1, keepdims=True) - left) / np.maximum(count, 1), within)

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [cp.abs(U) <= 1, cp.sum(cp.abs(U), axis=1) <= self.q]


@final
@dataclass(frozen=True, eq=False)
class NormBesideL2(AbstractReadNorm):
    """``phi(z) = norm(z) + factor ||z||_2`` with factor > 0.

    ``prox(v, t) = L2().prox(norm.prox(v, t), t factor)`` (Yu, On decomposing the proximal map, 2013, theorem 4). The
    dual ball is the sum of the dual ball B of the norm and of the ball of radius factor, so that the dual norm of u is
    the t at which u is at the distance ``factor t`` from t B.
    """

    norm: AbstractNorm
    factor: float

    def value(self, z: Array) -> Array:
        return self.norm.value(z) + self.factor * row_norm(z)

    def dual_norm(self, u: Array) -> Array:
        """From above, whatever rounding does: from any s and p with u = s + p (see `_most`).

        The distance of u to t B is convex in t, and a step of Newton's method leads from t to ``<u, p> / phi(p)`` with
        p = u - s and s the point of t B nearest to u: that is no more than the dual norm.
        """
        with np.errstate(all="ignore"):
            t, best = (u * u).sum(axis=1) / self.value(u), np.full(len(u), np.inf)
            for _ in range(STEPS):
                s = self.norm.project_dual(u, np.where(t > 0.0, t, 1.0))
                p = u - s
                best = np.fmin(best, self._most(s, p))
                new = np.fmax((u * p).sum(axis=1) / self.value(p), t)
                if not (new > t * (1.0 + 2.0 * ULP)).any():
                    break
                t = new
        return np.where(u.any(axis=1), best, 0.0)

    def _most(self, s: Array, p: Array) -> Array:
        """Not less than the dual norm of s + p: the larger of ``a = dual_norm(s)`` and ``b = ||p||_2 / factor``, less
        what is won by moving a share of the larger part to the other."""
        a, b = self.norm.dual_norm(s), row_norm(p) / self.factor
        to_a, to_b = self.norm.dual_norm(p), row_norm(s) / self.factor
        return np.where(a < b, b * ((a + to_a) / (b + to_a)), a * ((b + to_b) / (a + to_b)))

    def extent(self, k: int) -> float:
        return 1.0 / (1.0 / self.norm.extent(k) + self.factor)

    def project_dual(self, u: Array, radius: Any) -> Array:
        s = self.norm.project_dual(u, radius)
        rest = L2().project_dual(u - s, self.factor * np.asarray(radius, dtype=float))
        top = np.maximum(self.norm.dual_norm(s), row_norm(rest) / self.factor)
        return (s + rest) * column(radius / np.maximum(top, radius))  # both carry rounding

    def prox(self, v: Array, step: Any) -> Array:
        return L2().prox(self.norm.prox(v, step), self.factor * np.asarray(step, dtype=float))

    def subgradient(self, z: Array) -> Array:
        return self.norm.subgradient(z) + self.factor * z / np.maximum(row_norm(z), 1e-300)[:, None]

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]]:
        return [(1.0, self.norm), (self.factor, L2())]
