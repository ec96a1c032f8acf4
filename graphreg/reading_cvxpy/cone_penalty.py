"""The general way: what a CVXPY function is on k coordinates, with a prox and a conjugate that are cone programmes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ..errors import SolverError
from ..terms import ULP, Array, RecessionCone, bisected
from ..terms.penalties import (
    AbstractNorm,
    AbstractOneSided,
    AbstractPenalty,
    FlowDomain,
    OneSidedDomain,
    OwnDomain,
    by_row,
    nearby_subgradients,
    row_norm,
)
from .conic import ConeProgramme, Optima
from .source import AbstractReadPenalty

NEAR = 3e-4  # how far away, relatively, a prox stands for z: what a solver leaves of it is large against shorter ways
LEAST_PULL = 1e-6  # of a prox, relative to step * phi: far less is 0 but where phi does not grow
LEAST_SLOPE = 1e-3  # of phi, relative to its strength, by which a way is measured
NO_GAUGE = 1e-8  # a gauge of unit vectors that is the rounding of 0: whether phi* is finite there is asked again
LEAST_LENGTH = 1e-4  # of a prox, relative to v, as far as a cone programme is scaled for it
OUTWARD = 1e-8  # gauges are inflated by this, and clipped points are put this far inside
HALVINGS = 24  # of a way to the end of a domain, which is known to the solver's accuracy only
ENDS = 120  # lengths of rows are sought between 2^-120 and 2^120
OFF_SPAN = 1e-12  # of a flow's length: what is off the row space by less is taken for rounding, as in `Quadratic`
NEARLY = 1e-6  # relative; far more than a pseudo-inverse is off
ROUNDS = 4000  # of projected gradients
SURE = 64.0 * ULP  # relative; more than a dual norm is off
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
    way = "by cone programmes"

    @property
    def programme(self) -> ConeProgramme:
        return self.whole.programme

    @property
    def homogeneous(self) -> bool:
        """True where phi(t z) = t phi(z) for t > 0: phi* is the indicator of {gauge <= 1}."""
        return self.programme.homogeneous

    # ---- the four ------------------------------------------------------------------------------------------------
    def value(self, z: Array) -> Array:
        return np.maximum(self.of_rows(z), 0.0)  # phi >= 0, and rounding may take it below

    def prox(self, v: Array, step: Any) -> Array:
        p, size = np.zeros(v.shape), row_norm(v)
        step = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        live = size >= LEAST_PULL * step * self.programme.strength
        live[~live] = self.gauge_at_zero(v[~live]) > step[~live]  # other short rows are fused, and too short to solve
        if live.any():
            best = self._best(step[live], v[live], 1.0)
            if not best.found.all():
                i = int(np.flatnonzero(live)[best.found.argmin()])
                raise SolverError(f"Clarabel could not evaluate the prox at v = {v[i]} with step {step[i]:g}")
            p[live] = best.x[:, : self.programme.k] * best.length[:, None]
        if self.homogeneous:
            p[row_norm(p) <= OUTWARD * size] = 0.0  # what the solver leaves of a fused row
        return p

    def _best(self, factor: Array, linear: Array, near: float) -> Optima:
        """The optima of ``factor phi(p) - <linear, p> + near/2 ||p||^2`` for each row of ``linear``, none of them
        0."""
        size, programme = row_norm(linear), self.programme
        if self.homogeneous:
            pull = np.maximum(size, LEAST_PULL * factor * programme.strength)
            return programme.scaled(factor, linear, near, size, pull)
        start, length = starts(self.value, factor, linear, near)
        units = np.maximum(length, programme.least_length + near * LEAST_LENGTH * size)
        start = start * (units / length)[:, None]
        phi = self.value(start)  # its slope is pulled by; just beyond, where it is flat until there
        slope = np.where(phi > 0.0, phi, self.value(2.0 * start)) / np.maximum(row_norm(start), 1e-300)
        pull = factor * np.where(np.isfinite(slope), slope, 0.0)
        return programme.scaled(factor, linear, near, units, np.maximum(pull, size))

    def conjugate(self, u: Array) -> Array:
        inside = np.flatnonzero(self.gauge(u) <= 1.0)
        out = np.full(len(u), np.inf)
        out[inside] = 0.0 if self.homogeneous else self.largest(self.span(u[inside]))
        return out

    def largest(self, u: Array) -> Array:
        """An upper bound of ``max <u, z> - phi(z)`` for each row, as near as it was found; +inf where none was."""
        out, live = np.zeros(len(u)), np.flatnonzero(u.any(axis=1))
        if len(live):
            out[live] = self.programme.least_above(u[live], self._best(np.ones(len(live)), u[live], 0.0))
        return out

    def accuracy(self) -> float:
        return 1e-6

    def is_users(self) -> bool:
        return True  # the function is

    # ---- derived ---------------------------------------------------------------------------------------------------
    def gauge(self, u: Array) -> Array:
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
        most = 1.0 - OUTWARD
        return u * (most / np.maximum(self.gauge(u), most))[:, None]

    def step_to_boundary(self, start: Array, end: Array) -> Array:
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
        u[live] = nearby_subgradients(self.prox, z[live], step[live], NEAR * size[live])
        return self.clip(u)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * self.span(z)  # keeps the flow where phi* can be finite

    @abstractmethod
    def recession(self, k: int) -> RecessionCone | None:
        """The directions along which phi does not grow."""

    def span(self, u: Array) -> Array:
        """Projection of each row onto the span of dom phi*: orthogonal to where phi is constant."""
        L = self.programme.lineality
        if self.programme.ignored is not None:
            return np.where(self.programme.ignored, 0.0, u)
        return u - (u @ L) @ L.T


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConePenalty(AbstractConePenalty):
    """An even function: constant both ways along what it does not grow along."""

    def recession(self, k: int) -> RecessionCone:
        L, ignored = self.programme.lineality, self.programme.ignored
        if ignored is not None:
            return RecessionCone(np.where(ignored, -np.inf, 0.0), np.where(ignored, np.inf, 0.0))
        return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), np.eye(k) - L @ L.T, exact=False)


@final
@dataclass(frozen=True, eq=False, repr=False)
class MappedNorm(AbstractConePenalty):
    """``phi(z) = norm(Rz)`` with R (r, k) of full row rank, and a norm that depends on the sizes of entries alone.

    Its flows are R'y with a dual norm of y of at most 1; there is one y at most. The prox with step t is ``v - R'y``
    for the y with a dual norm of at most t whose R'y is nearest to v.
    """

    way = "by projected gradients"

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
            at[live], y[live] = new + momentum * (new - y[live]), new
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

    def gauge(self, u: Array) -> Array:
        y, off = self.prices(u)
        return np.where(off <= OFF_SPAN * row_norm(u), self.norm.dual_norm(y) * (1.0 + SURE), np.inf)

    def value_bound(self, z: Array, spread: Array) -> Array:
        R, lost = self.R, (z.shape[1] + 3) * ULP
        each = np.abs(z @ R.T) + (lost * np.abs(z) + (1.0 + lost) * spread) @ np.abs(R.T)
        return self.norm.value_bound(each, np.zeros(each.shape))

    def accuracy(self) -> float:
        return 1e-8

    def subgradient(self, z: Array) -> Array:
        return by_row(self.norm.subgradient(by_row(z, self.R.T)), self.R)

    def composed(self) -> tuple[Array, AbstractPenalty] | None:
        return (self.R, self.norm) if len(self.R) < self.R.shape[1] else None

    def span(self, u: Array) -> Array:
        return by_row(by_row(u, self._inverse[0]), self.R)

    def recession(self, k: int) -> RecessionCone:
        if len(self.R) == k:
            return RecessionCone(np.zeros(k), np.zeros(k))
        return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), self.R)


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedConePenalty(OneSidedDomain, AbstractConePenalty, AbstractOneSided):
    """A function that is not even."""

    def accuracy(self) -> float:
        return 4e-4  # of the prox where phi does not grow: roots of the 1e-8 to which Clarabel knows a minimum

    def clip(self, u: Array) -> Array:
        return self.span(super().clip(self.span(u)))

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        def inside(t: Array) -> Array:
            return np.isfinite(self.conjugate(start + t[:, None] * (end - start)))

        one = np.ones(len(start))
        t = bisected(inside, np.where(inside(one), 1.0, 0.0), one, HALVINGS)[0]
        return np.where(t < 1.0, (1.0 - OUTWARD) * t, t)

    def recession(self, k: int) -> RecessionCone | None:
        return FlowDomain.recession(self, k)


def starts(value: Callable[[Array], Array], factor: Array, linear: Array, near: float) -> tuple[Array, Array]:
    """Starts for minimisers: points (m, k) where ``factor phi(p) - <linear, p> + near/2 ||p||^2`` is finite,
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
