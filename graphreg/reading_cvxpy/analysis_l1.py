"""The l1 norm of Az, and the quadratic programmes over the cube that its prox is."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone
from ..terms.penalties import INSIDE, L1, AbstractNorm, AbstractPenalty, OwnDomain, by_row, column, row_norm
from .source import AbstractReadPenalty

ROUNDING = 1e-12  # of a flow's length: what is off the row space by less is taken for rounding, as in `Quadratic`
NEARLY = 1e-6  # relative; far more than a pseudo-inverse is off
TOGETHER = 10  # rounds that exchange all that is wrong at once
EXCHANGES = 30  # and per coordinate; what has not ended by then is solved row by row
TABLED = 6  # coordinates up to which the inverses of all principal blocks are kept


@dataclass(frozen=True, eq=False)
class BoxProgramme:
    """The least ``1/2 y'Gy - b'y`` over ``max_i |y_i| <= 1`` for a positive definite G (r, r) and rows b.

    Block principal pivoting (Judice and Pires, A block principal pivoting algorithm for large-scale strictly monotone
    linear complementarity problems, 1994): what is wrong of the free coordinates and of those at an end is exchanged,
    all of it at once in some rounds, and then the last of it alone, which ends (Murty, 1974).
    """

    G: Array

    @cached_property
    def _blocks(self) -> Array | None:
        """The inverse of the block of G on each set of coordinates, 0 elsewhere, by the bits of the set."""
        r = len(self.G)
        if r > TABLED:
            return None
        sets = (np.arange(2**r)[:, None] >> np.arange(r)) & 1 == 1
        return self._inverse(sets)

    @cached_property
    def _tolerance(self) -> float:
        """What counts as rounding, of y."""
        return 16.0 * len(self.G) * ULP * float(np.linalg.cond(self.G))

    def solve(self, b: Array, size: Array) -> Array:
        """y for each row of b (m, r), of which the rounding is relative to ``size``."""
        size = size + np.abs(self.G).sum(axis=1)
        y = np.clip(np.linalg.solve(self.G, b.T).T, -1.0, 1.0)
        end = np.where(np.abs(y) < 1.0, 0.0, np.sign(y))  # -1 or 1 where a coordinate is held there, else 0
        live = np.arange(len(b))
        for i in range(EXCHANGES * (1 + len(self.G))):
            y[live] = self._at(b[live], end[live])
            wrong = self._wrong(b[live], size[live], y[live], end[live])
            if i >= TOGETHER:
                wrong &= np.arange(len(self.G)) == len(self.G) - 1 - wrong[:, ::-1].argmax(axis=1)[:, None]
            end[live] = np.where(wrong, np.where(end[live] == 0.0, np.sign(y[live]), 0.0), end[live])
            live = live[wrong.any(axis=1)]
            if not len(live):
                break
        y[live] = self._one_by_one(b[live])
        return np.clip(y, -1.0, 1.0)

    def _at(self, b: Array, end: Array) -> Array:
        """The least over the coordinates that are free."""
        free = end == 0.0
        right = np.where(free, b - by_row(end, self.G), 0.0)
        if self._blocks is None:
            inverse = self._inverse(free)
        else:
            inverse = self._blocks[free @ (1 << np.arange(len(self.G)))]
        return end + np.einsum("mij,mj->mi", inverse, right)

    def _inverse(self, free: Array) -> Array:
        both = free[:, :, None] & free[:, None, :]
        eye = np.eye(len(self.G))
        return np.where(both, np.linalg.inv(np.where(both, self.G, eye)), 0.0)

    def _wrong(self, b: Array, size: Array, y: Array, end: Array) -> Array:
        """Free coordinates that are beyond an end, and those at an end that the gradient pulls inside."""
        beyond = np.abs(y) > 1.0 + self._tolerance
        pulled = end * (b - by_row(y, self.G)) < -self._tolerance * size
        return np.where(end == 0.0, beyond, pulled)

    def _one_by_one(self, b: Array) -> Array:
        from scipy.optimize import lsq_linear

        R = np.linalg.cholesky(self.G).T
        right = np.linalg.solve(R.T, b.T).T
        return np.array([lsq_linear(R, row, (-1.0, 1.0), method="bvls", tol=1e-15).x for row in right]).reshape(b.shape)


@dataclass(frozen=True, eq=False)
class AbstractAnalysisL1(OwnDomain, AbstractReadPenalty):
    """``phi(z) = sum_i w_i |(Az)_i|`` with w > 0 and A (r, k) of full row rank.

    With R = diag(w) A, ``phi*(u) = 0`` where ``u = R'y`` with ``max_i |y_i| <= 1``, and +inf elsewhere; there is one y
    at most. The prox is ``v - R'y`` for the y with ``|y_i| <= step`` whose R'y is nearest to v (Tibshirani and Taylor,
    The solution path of the generalized lasso, 2011, section 4).
    """

    A: Array  # with the differences of coordinates as they are, whose digits products with w would lose
    w: Array

    @cached_property
    def scaled(self) -> Array:
        """R."""
        return self.w[:, None] * self.A

    @cached_property
    def _inverse(self) -> tuple[Array, float]:
        """The pseudo-inverse (k, r) of R, and more than its spectral norm."""
        sigma = np.linalg.svd(self.scaled, compute_uv=False)
        return np.linalg.pinv(self.scaled), (1.0 + NEARLY) / float(sigma[-1])

    @cached_property
    def _programme(self) -> BoxProgramme:
        return BoxProgramme(self.scaled @ self.scaled.T)

    def value(self, z: Array) -> Array:
        return np.abs(z @ self.A.T) @ self.w

    def prox(self, v: Array, step: Any) -> Array:
        flow, free = self.nearest(v, step)
        return v - np.where(free[:, None], self.span(v), flow)

    def nearest(self, u: Array, radius: Any) -> tuple[Array, Array]:
        """The point of the dual ball of the radius that is nearest to each row, and where no end of it is met."""
        r = np.broadcast_to(np.asarray(radius, dtype=float), (len(u),))[:, None]
        y = by_row(u, self._inverse[0]) / r
        free: Array = np.asarray((np.abs(y) <= 1.0).all(axis=1))
        out = np.flatnonzero(~free)
        if len(out):
            v = u[out] / r[out]
            y[out] = self._programme.solve(by_row(v, self.scaled.T), by_row(np.abs(v), np.abs(self.scaled.T)))
        return r * by_row(y, self.scaled), free

    def prices(self, u: Array) -> tuple[Array, Array]:
        """Not less than ``|y_i|`` for the y whose R'y is nearest to u, (m, r), and how far from u that is, (m,)."""
        P, norm = self._inverse
        y = u @ P
        left = u - y @ self.scaled
        lost = (len(self.scaled) + 4) * ULP * (np.abs(u) + np.abs(y) @ np.abs(self.scaled))
        moved = np.abs(left @ P) + NEARLY * (np.abs(left) @ np.abs(P))
        return np.abs(y) + moved + norm * row_norm(lost)[:, None], row_norm(left)

    @abstractmethod
    def gauge(self, u: Array) -> Array: ...

    def gauge_at_zero(self, u: Array) -> Array:
        return self.gauge(u)

    def conjugate(self, u: Array) -> Array:
        return np.where(self.gauge(u) <= 1.0, 0.0, np.inf)

    def clip(self, u: Array) -> Array:
        out = ~(self.gauge(u) <= 1.0)
        if out.any():
            u = u.copy()
            flow = self.nearest(u[out], INSIDE)[0]
            u[out] = flow * column(INSIDE / np.maximum(self.gauge(flow), INSIDE))
        return u

    def value_bound(self, z: Array, spread: Array) -> Array:
        R, lost = self.scaled, (z.shape[1] + 3) * ULP
        each = np.abs(z @ R.T) + (lost * np.abs(z) + (1.0 + lost) * spread) @ np.abs(R.T)
        return each.sum(axis=1) * (1.0 + len(R) * ULP)

    def subgradient(self, z: Array) -> Array:
        return by_row(np.sign(by_row(z, self.A.T)), self.scaled)


@final
@dataclass(frozen=True, eq=False)
class AnalysisL1(AbstractAnalysisL1):
    """With fewer rows than coordinates: phi is constant along the z with Az = 0."""

    def gauge(self, u: Array) -> Array:
        y, off = self.prices(u)
        return np.where(off <= ROUNDING * row_norm(u), y.max(axis=1), np.inf)

    def composed(self) -> tuple[Array, AbstractPenalty]:
        return self.scaled, L1()

    def span(self, u: Array) -> Array:
        return by_row(by_row(u, self._inverse[0]), self.scaled)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * self.span(z)  # keeps the flow in the row space

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), self.A)


@final
@dataclass(frozen=True, eq=False)
class AnalysisNorm(AbstractAnalysisL1, AbstractNorm):
    """With an A that has an inverse."""

    def dual_norm(self, u: Array) -> Array:
        return self.prices(u)[0].max(axis=1)

    def gauge(self, u: Array) -> Array:
        return self.dual_norm(u)

    def project_dual(self, u: Array, radius: Any) -> Array:
        flow = self.nearest(u, radius)[0]
        return flow * column(radius / np.maximum(self.dual_norm(flow), radius))  # the product carries rounding

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        top = self.prices(u)[0] + spread @ np.abs(self._inverse[0]) * (1.0 + NEARLY)
        return np.where(top.max(axis=1) <= 1.0, 0.0, np.inf)
