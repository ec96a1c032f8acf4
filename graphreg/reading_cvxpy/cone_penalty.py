"""The general way: what a CVXPY function is on k coordinates, with a prox and a conjugate that are cone programmes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import Array, RecessionCone
from ..terms.penalties import LEAST_SLACK, AbstractOneSided, OneSidedDomain, OwnDomain, beside, column, row_norm
from .conic import ConeProgramme
from .source import AbstractReadPenalty

NEAR = 3e-4  # how far away, relatively, a prox stands for z: what a solver leaves of it is large against shorter ways
LEAST_PULL = 1e-6  # of a prox, relative to step * phi: far less is 0 but where phi does not grow
LEAST_SLOPE = 1e-3  # of phi, relative to its strength, by which a way is measured
NO_GAUGE = 1e-8  # a gauge of unit vectors that is the rounding of 0: whether phi* is finite there is asked again
LEAST_LENGTH = 1e-4  # of a prox, relative to v, as far as a cone programme is scaled for it
OUTWARD = 1e-8  # gauges are inflated by this, and clipped points are put this far inside
ENDS = 120  # lengths of rows are sought between 2^-120 and 2^120
FURTHEST = 2.0 ** (ENDS - 1)  # length from which on there is no minimiser
ROUNDING = 1e-13  # relative; what falls by less does not fall


@dataclass(frozen=True, eq=False, repr=False)
class AbstractConePenalty(OwnDomain, AbstractReadPenalty):
    """phi on rows of k coordinates, for many rows at once: with a prox and a conjugate that Clarabel finds.

    ``phi*`` is evaluated on the safe side: a dual bound of the solver with a relative margin of 1e-9, and +inf unless
    one was found. Its domain is ``gauge(u) <= 1``, where the gauge is
    ``max <u, z>`` over the z at which the recession function of phi is at most 1 (Rockafellar, Convex Analysis, theorem
    13.3), inflated by 1e-8.
    """

    of_rows: Callable[[Array], Array]
    everywhere: bool  # phi* is finite everywhere

    @property
    @abstractmethod
    def is_even(self) -> bool:
        """Whether phi(-z) = phi(z)."""

    @property
    def programme(self) -> ConeProgramme:
        return self.whole.programme

    @property
    def homogeneous(self) -> bool:
        """Whether phi(t z) = t phi(z) for t > 0: phi* is the indicator of {gauge <= 1}."""
        return self.programme.homogeneous

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.called()})"

    # ---- the four ------------------------------------------------------------------------------------------------
    def value(self, z: Array) -> Array:
        return self.of_rows(z)

    def prox(self, v: Array, step: Any) -> Array:
        p, size = np.zeros(v.shape), row_norm(v)
        step = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        live = size >= LEAST_PULL * step * self.programme.strength
        live[~live] = self.gauge_at_zero(v[~live]) > step[~live]  # other short rows are fused, and too short to solve
        if live.any():
            p[live] = self._prox(v[live], step[live], size[live])
        return p

    def _prox(self, v: Array, step: Array, size: Array) -> Array:
        if self.homogeneous:
            p = self.programme.prox(v, step, size, np.maximum(size, LEAST_PULL * step * self.programme.strength))
            p[row_norm(p) <= OUTWARD * size] = 0.0  # what the solver leaves of a fused row
            return p
        start, length = starts(self.value, step, v, 1.0)
        length, pull = np.maximum(length, LEAST_LENGTH * size), np.maximum(self._pull(step, start), size)
        return self.programme.prox(v, step, length, pull)

    def _pull(self, factor: Array, start: Array) -> Array:
        """About the slope of ``factor phi`` where minimisers are sought; just beyond, where it is flat until there."""
        phi = self.value(start)
        slope = np.where(phi > 0.0, phi, self.value(2.0 * start)) / np.maximum(row_norm(start), 1e-300)
        return factor * np.where(np.isfinite(slope), slope, 0.0)

    def conjugate(self, u: Array) -> Array:
        inside = np.flatnonzero(self.gauge(u) <= 1.0)
        out = np.full(len(u), np.inf)
        out[inside] = 0.0 if self.homogeneous else self.largest(self.span(u[inside]))
        return out

    def largest(self, u: Array) -> Array:
        """An upper bound of ``max <u, z> - phi(z)`` for each row, as near as it was found; +inf where none was."""
        out, live = np.zeros(len(u)), np.flatnonzero(u.any(axis=1))
        if not len(live):
            return out
        u, one = u[live], np.ones(len(live))
        start, length = starts(self.value, one, u, 0.0)
        pull = np.maximum(self._pull(one, start), row_norm(u))
        ends = length < FURTHEST
        length = np.maximum(length, self.programme.least_length)
        out[live] = np.inf
        out[live[ends]] = self.programme.conjugate(u[ends], length[ends], pull[ends])
        return out

    def accuracy(self) -> float:
        return 1e-6

    def is_users(self) -> bool:
        return True  # the function is

    # ---- derived ---------------------------------------------------------------------------------------------------
    def gauge(self, u: Array) -> Array:
        if self.everywhere:
            return np.zeros(len(u))
        within = self.span(u)
        # where phi ignores coordinates this is exact; along other directions rounding alone is allowed for
        rounding = 0.0 if self.programme.ignored is not None else 1e-12
        in_span = row_norm(u - within) <= rounding * row_norm(u)
        support = self.programme.support(within) * (1.0 + OUTWARD)
        if not self.homogeneous:
            support = np.where(support * self.programme.strength > NO_GAUGE * row_norm(u), support, 0.0)
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
        size = row_norm(z)  # the way to the prox is a share NEAR of z, or longer
        with np.errstate(all="ignore"):
            slope = np.maximum(self.value(z) / size, LEAST_SLOPE * self.programme.strength)
            step = NEAR * size / np.where(np.isfinite(slope), slope, self.programme.strength)
        u, live = np.zeros(z.shape), z.any(axis=1)  # phi is least at 0
        u[live] = beside(self.prox, z[live], step[live], NEAR * size[live])
        return self.clip(u)

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


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConePenalty(AbstractConePenalty):
    """An even function."""

    @property
    def is_even(self) -> bool:
        return True


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedConePenalty(AbstractConePenalty, OneSidedDomain, AbstractOneSided):
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
            out = np.flatnonzero(~inside)
            middle = 0.5 * (low[out] + high[out])
            ok = np.isfinite(self.conjugate(start[out] + middle[:, None] * (end[out] - start[out])))
            low[out[ok]], high[out[~ok]] = middle[ok], middle[~ok]
        return low


def starts(value: Callable[[Array], Array], factor: Array, linear: Array, near: float) -> tuple[Array, Array]:
    """Where minimisers are sought from: points (m, k) where ``factor phi(p) - <linear, p> + near/2 ||p||^2`` is finite,
    and about as long as the minimisers; and lengths (m,).

    The best points of the row of ``linear`` and of its coordinates, and their largest length. Lengths are powers of 2.
    """
    m, k = linear.shape
    ways = np.vstack([linear, *(linear * axis for axis in np.eye(k))]) if k > 1 else linear
    slope = np.linalg.norm(ways, axis=1)
    e, factor = ways / np.maximum(slope, 1e-300)[:, None], np.tile(factor, len(ways) // m)

    def height(j: Array) -> Array:
        t = 2.0**j
        return factor * value(t[:, None] * e) - slope * t + near / 2.0 * t * t

    low, high = np.full(len(e), -float(ENDS)), np.full(len(e), float(ENDS))
    with np.errstate(all="ignore"):
        while (high - low > 1.0).any():
            middle = np.floor((low + high) / 2.0)
            falls = height(middle + 1.0) < height(middle) - ROUNDING * slope * 2.0**middle
            low, high = np.where(falls, middle, low), np.where(falls, high, middle)
        best = np.nan_to_num(height(high), nan=np.inf).reshape(-1, m).argmin(axis=0)
    points = (2.0 ** high[:, None] * e).reshape(-1, m, k)
    return points[best, np.arange(m)], 2.0 ** high.reshape(-1, m).max(axis=0)
