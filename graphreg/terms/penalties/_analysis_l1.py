"""The l1 norm of Az, for an A whose rows are independent: absolute differences of coordinates, and their kin."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...lazy import cp
from ..bounds import ULP
from ..records import Array, Notation, RecessionCone
from ._box_programme import BoxProgramme
from ._formulas import FEW, typeset, vector
from ._rows import INSIDE, by_row, column, row_norm
from .base import AbstractNorm
from .domain import OwnDomain
from .l1 import L1
from .penalty import AbstractPenalty

ROUNDING = 1e-12  # of a flow's length: what is off the row space by less is taken for rounding, as in `Quadratic`
NEARLY = 1e-6  # relative; far more than a pseudo-inverse is off


@dataclass(frozen=True, eq=False)
class AbstractAnalysisL1(OwnDomain, AbstractPenalty):
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

    def check(self, k: int) -> None:
        if k != self.A.shape[1]:
            raise TermError(f"this norm is for {self.A.shape[1]} coordinates, and the term has {k}")

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

    def cvxpy(self, Z: Any) -> Any:
        return cp.abs(Z @ self.A.T) @ self.w

    @property
    def notation(self) -> Notation:
        rows = "; ".join(vector(row) for row in self.scaled[:FEW]) + ("; ..." if len(self.scaled) > FEW else "")
        text, latex = f" where R = [{rows}]", rf" \text{{ where }} R = [{typeset(rows)}]"
        return Notation(
            "||R %z||_1" + text,
            "",
            "%u = R'y, ||y||_inf <= %c" + text,
            r"\|R %z\|_1" + latex,
            "",
            r"%u = R^\top y,\ \|y\|_\infty \le %c" + latex,
        )


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
