"""A penalty on k coordinates that a CVXPY function is, where its prox and conjugate are cone programmes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...lazy import cp
from ..derivatives import Jets
from ..records import Array, Notation, RecessionCone
from ._conic import ConeProgramme
from ._newton import Problems, minimisers
from ._rows import LEAST_SLACK, column, row_norm
from .base import AbstractOneSided, AbstractPenalty

NEWTON_MARGIN = 1e-12  # relative; of what Newton's method leaves, whose square is missed
NEAR = 3e-4  # step of a prox that stands for z: what a solver leaves of it is large against shorter ones
NO_GAUGE = 1e-8  # a gauge of unit vectors that is the rounding of 0: whether phi* is finite there is asked again
OUTWARD = 1e-8  # gauges are inflated by this, and clipped points are put this far inside


@dataclass(frozen=True, eq=False, repr=False)
class AbstractConePenalty(AbstractPenalty):
    """phi on rows of k coordinates, with a prox and a conjugate that Clarabel finds, for many rows in one solve.

    ``phi*`` is evaluated on the safe side: a dual bound of the solver, with a relative margin of 1e-9, and +inf unless
    the solver proved a bound. Its domain is ``gauge(u) <= 1``, where the gauge is ``max <u, z>`` over the z at which
    the recession function of phi is at most 1 (Rockafellar, Convex Analysis, theorem 13.3), inflated by 1e-8.
    """

    function: Callable[[Any], Any]  # of one row, in CVXPY
    of_rows: Callable[[Array], Array]
    programme: ConeProgramme
    homogeneous: bool  # phi(t z) = t phi(z) for t > 0: phi* is the indicator of {gauge <= 1}
    everywhere: bool  # phi* is finite everywhere
    jets: Jets | None  # of a function that is smooth
    written: Notation

    @property
    @abstractmethod
    def is_even(self) -> bool:
        """Whether phi(-z) = phi(z)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.written.value.replace('%z', 'z')})"

    # ---- the four ------------------------------------------------------------------------------------------------
    def value(self, z: Array) -> Array:
        return self.of_rows(z)

    def prox(self, v: Array, step: Any) -> Array:
        step = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        p, found = self._newton(step, v, 1.0)
        rest = ~found
        p[rest] = self.programme.prox(v[rest], step[rest])
        if self.homogeneous:  # what the solver leaves of a fused row
            p[row_norm(p) <= OUTWARD * row_norm(v)] = 0.0
        return p

    def conjugate(self, u: Array) -> Array:
        inside = np.flatnonzero(self.gauge(u) <= 1.0)
        out = np.full(len(u), np.inf)
        if self.homogeneous:
            out[inside] = 0.0
            return out
        u = self.span(u[inside])
        z, found = self._newton(np.ones(len(u)), u, 0.0)
        top, product = self.value(z), (u * z).sum(axis=1)
        top = product - top + NEWTON_MARGIN * (np.abs(product) + np.abs(top))
        rest = ~(found & np.isfinite(top))
        top[rest] = self.programme.conjugate(u[rest])
        out[inside] = top
        return out

    def _newton(self, factor: Array, linear: Array, near: float) -> tuple[Array, Array]:
        """The minimisers of ``factor phi(p) - <linear, p> + near/2 ||p||^2``, and where they were found."""
        if self.jets is None:
            return np.zeros(linear.shape), np.zeros(len(linear), dtype=bool)
        return minimisers(Problems(self.jets, factor, linear, np.full(len(linear), near)))

    def cvxpy(self, Z: Any) -> Any:
        if self.programme.stacks:
            return self.programme.written(Z)
        return cp.hstack([self.function(Z[i]) for i in range(Z.shape[0])])

    def accuracy(self) -> float:
        return 1e-7 if self.jets is not None and self.is_even else 1e-6

    def called(self) -> str:
        return self.written.value.removesuffix("(%z)")

    def is_users(self) -> bool:
        return True  # the function is

    # ---- derived ---------------------------------------------------------------------------------------------------
    def check(self, k: int) -> None:
        if k != self.programme.k:
            raise TermError(f"this function was read on {self.programme.k} coordinates, and the term has {k}")

    def gauge(self, u: Array) -> Array:
        if self.everywhere:
            return np.zeros(len(u))
        within = self.span(u)
        # where phi ignores coordinates this is exact; along other directions rounding alone is allowed for
        rounding = 0.0 if self.programme.ignored is not None else 1e-12
        in_span = row_norm(u - within) <= rounding * row_norm(u)
        support = self.programme.support(within)
        support = np.where(support > NO_GAUGE * row_norm(u), support * (1.0 + OUTWARD), 0.0)
        return np.where(in_span, support, np.inf)

    def gauge_at_zero(self, u: Array) -> Array:
        return self.gauge(u) if self.homogeneous else self.programme.support_at_zero(u) * (1.0 + OUTWARD)

    def clip(self, u: Array) -> Array:
        u = self.span(u)
        gauge = self.gauge(u)
        out = (gauge > 1.0 - OUTWARD) & np.isfinite(gauge)
        u = np.where(out[:, None], u * ((1.0 - OUTWARD) / np.where(out, gauge, 1.0))[:, None], u)
        return np.where(np.isfinite(gauge)[:, None] | (not self.is_even), u, 0.0)

    def reach(self, start: Array, end: Array) -> Array:
        g0, g1 = self.gauge(start), self.gauge(end)
        limit = np.maximum(1.0 - OUTWARD, g0)  # gauges are known to the solver's accuracy only
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.nan_to_num((limit - g0) / (g1 - g0), nan=0.0, posinf=0.0, neginf=0.0)
        return np.where(g1 <= limit, 1.0, np.clip(t, 0.0, 1.0))

    def subgradient(self, z: Array) -> Array:
        if self.jets is not None:
            return self.clip(self.jets(z).slope[:, 0])
        step, zero = NEAR, (z == 0).all(axis=1)[:, None]
        return self.clip(np.where(zero, 0.0, (z - self.prox(z, step)) / step))

    def conductance(self, u: Array) -> Array:
        slack = np.maximum(1.0 - self.gauge(u), LEAST_SLACK)
        return np.broadcast_to(column(slack), u.shape)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * self.span(z)  # keeps the flow where phi* can be finite

    def recession(self, k: int) -> RecessionCone | None:
        L = self.programme.lineality
        if self.is_even:  # then phi is constant both ways along what it does not grow along
            if L.shape[1] == 0:
                return RecessionCone(np.zeros(k), np.zeros(k))
            if self.programme.ignored is not None:
                bound = np.where(self.programme.ignored, np.inf, 0.0)
                return RecessionCone(-bound, bound)
            return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), np.eye(k) - L @ L.T, exact=False)
        axes = np.vstack([np.eye(k), -np.eye(k)])
        return RecessionCone(np.zeros(k), np.zeros(k)) if np.isfinite(self.gauge(axes)).all() else None

    def span(self, u: Array) -> Array:
        """Projection of each row onto the span of dom phi*: orthogonal to where phi is constant."""
        L = self.programme.lineality
        if self.programme.ignored is not None:
            return np.where(self.programme.ignored, 0.0, u)
        return u - (u @ L) @ L.T if L.shape[1] else u

    @property
    def notation(self) -> Notation:
        return self.written


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConePenalty(AbstractConePenalty):
    """An even function."""

    @property
    def is_even(self) -> bool:
        return True


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedConePenalty(AbstractConePenalty, AbstractOneSided):
    """A function that is not even."""

    @property
    def is_even(self) -> bool:
        return False

    def clip(self, u: Array) -> Array:
        u = super().clip(u)
        out = ~(self.gauge(u) <= 1.0)
        if out.any():
            u, inner = u.copy(), self.interior(u.shape[1])
            u[out] = inner + (1.0 - 1e-6) * (u[out] - self.prox(u[out], 1.0) - inner)
        still = ~np.isfinite(self.conjugate(u))
        return np.where(still[:, None], self.interior(u.shape[1]), u)

    def reach(self, start: Array, end: Array) -> Array:
        inside = self.gauge(end) <= 1.0 - OUTWARD
        low, high = np.where(inside, 1.0, 0.0), np.ones(len(start))
        for _ in range(24):
            open_ = np.flatnonzero(~inside)
            middle = 0.5 * (low[open_] + high[open_])
            points = start[open_] + middle[:, None] * (end[open_] - start[open_])
            ok = np.isfinite(self.conjugate(points))
            low[open_[ok]], high[open_[~ok]] = middle[ok], middle[~ok]
        return low
