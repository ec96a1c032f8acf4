"""The domain of a conjugate, dom phi*: where the flows of a penalty may lie.

A penalty says nothing of it but ``conjugate``, from which `FlowDomain` derives the rest. One that knows more says so
by its property ``domain``: one of the kinds below, or a class of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Array, RecessionCone
from ..roots import bisected
from ._rows import INSIDE, LEAST_SLACK, both_ways, by_row, gauge_of, row_norm

if TYPE_CHECKING:
    from .penalty import AbstractPenalty

ROUNDING = 1e-12  # of a flow that lies in a subspace, relative to its length
HALVINGS = 52  # of an interval, until nothing is between its ends


class FlowDomain:
    """dom phi* of a penalty. Flows u (at weight 1) are rows, (m, k).

    Examples
    --------
    >>> gr.L2().domain.gauge(np.array([[0.3, 0.4], [3.0, 4.0]]))  # of capacity 1: inside, and 5 times too large
    array([0.5, 5. ])
    """

    def __init__(self, phi: AbstractPenalty) -> None:
        self.phi: Any = phi

    def gauge(self, u: Array) -> Array:
        """inf {t >= 0 : u / t in dom phi*} for each row: 0 where no multiple of u leaves the domain."""
        return gauge_of(u, lambda rows: np.isfinite(self.phi.conjugate(rows)))

    def clip(self, u: Array) -> Array:
        """A point of the domain near each row; the row itself where it is inside. By default along the ray to 0."""
        out = ~np.isfinite(self.phi.conjugate(u))
        if out.any():
            u = u.copy()
            gauge = self.gauge(u[out])
            u[out] = np.where(np.isfinite(gauge), INSIDE / np.maximum(gauge, 1e-300), 0.0)[:, None] * u[out]
        return u

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        """For each row a t in [0, 1] with start + t (end - start) in the domain (start lies in it).

        By convexity of the gauge, gauge(start + t (end - start)) <= (1 - t) gauge(start) + t gauge(end), which is
        kept at or below `INSIDE`; the largest t where start = 0.
        """
        g0, g1 = self.gauge(start), self.gauge(end)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = (INSIDE - g0) / (g1 - g0)
        return np.where(g1 <= INSIDE, 1.0, np.where(np.isfinite(t), np.clip(t, 0.0, 1.0), 0.0))

    def span(self, u: Array) -> Array:
        """The projection of each row onto the span of the domain: u itself, but where phi is flat along a subspace."""
        return u

    def interior(self, k: int) -> Array:
        """A flow (k,) well inside."""
        return np.zeros(k)

    def recession(self, k: int) -> RecessionCone | None:
        """The directions along which phi does not grow, the polar cone of the domain; None where that is not known.

        {0} exactly where 0 is interior to the domain, which is probed here.
        """
        zero, probed = np.zeros(k), both_ways(lambda unit: self.phi.conjugate(1e-6 * unit), k)
        return RecessionCone(zero, zero) if np.isfinite(probed).all() else None

    # ---- how much a flow gives way: what repairs, bounds and proofs begin with, and no bound rests on ----------------
    def conductance(self, u: Array) -> Array:
        """The readiness of the flow u to give way in the repair: non-negative, one number per coordinate (m, k), or
        per row (m, 1)."""
        return np.maximum(1.0 - self.gauge(u), LEAST_SLACK)[:, None]

    def conduct(self, conductance: Array, z: Array) -> Array:
        """The linear map of the repair from potentials to flows; a matrix penalty mixes coordinates here."""
        return conductance * z

    def slacks(self, u: Array) -> Array:
        """The distance by which each coordinate of the flow u may move either way inside the domain, (m, k): 0 where
        it may not, inf where nothing stops it. From the gauge: gauge(u +- t e_j) <= gauge(u) + t gauge(+-e_j)."""
        unit = both_ways(self.gauge, u.shape[1])
        left = np.maximum(1.0 - self.gauge(u), 0.0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(unit == 0.0, np.where(left > 0.0, np.inf, 0.0), left / unit)

    def share(self, u: Array) -> Array:
        """The distance by which each coordinate of the flow u may move both ways before it leaves the domain, as a
        share of the domain: 0 where it may not, 1 at most, shaped (m, k) or (m, 1)."""
        return np.clip(1.0 - self.gauge(u), 0.0, 1.0)[:, None]


class OwnDomain(FlowDomain):
    """Mixed into a penalty, whose own methods then say what its domain is."""

    phi = property(lambda self: self)
    domain = property(lambda self: self)


class Mixtures(FlowDomain):
    """The flows R'q of a penalty h(Rz), with q in the domain of h; what rounding leads out of their span is taken
    back."""

    def __init__(self, phi: AbstractPenalty) -> None:
        super().__init__(phi)
        self.R, h = self.phi.composed()
        self.inner, self.inverse = h.domain, np.linalg.pinv(self.R)

    def span(self, u: Array) -> Array:
        return by_row(by_row(u, self.inverse), self.R)

    def gauge(self, u: Array) -> Array:
        out = row_norm(u - self.span(u)) > ROUNDING * row_norm(u)
        return np.where(out, np.inf, self.inner.gauge(by_row(u, self.inverse)))

    def clip(self, u: Array) -> Array:
        return by_row(self.inner.clip(by_row(u, self.inverse)), self.R)

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        return self.inner.step_to_boundary(by_row(start, self.inverse), by_row(end, self.inverse))

    def interior(self, k: int) -> Array:
        return self.inner.interior(len(self.R)) @ self.R

    def conduct(self, conductance: Array, z: Array) -> Array:
        return by_row(self.inner.conduct(conductance, by_row(z, self.R.T)), self.R)


class Everywhere(FlowDomain):
    """All flows: of a penalty that outgrows every multiple of a norm."""

    def gauge(self, u: Array) -> Array:
        return np.zeros(len(u))

    def clip(self, u: Array) -> Array:
        return u


class DualBall(FlowDomain):
    """The ball of the dual norm of a norm, by default of the penalty itself."""

    def __init__(self, phi: AbstractPenalty, norm: Any = None, radius: float = 1.0) -> None:
        super().__init__(phi)
        self.norm, self.radius = norm or self.phi, radius

    def gauge(self, u: Array) -> Array:
        return self.norm.dual_norm(u) / self.radius

    def clip(self, u: Array) -> Array:
        return self.norm.project_dual(u, INSIDE * self.radius)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))


class Cube(DualBall):
    """The flows with max_j |u_j| <= 1, of which each coordinate moves by itself."""

    def slacks(self, u: Array) -> Array:
        return np.maximum(1.0 - np.abs(u), 0.0)

    def share(self, u: Array) -> Array:
        return np.clip(1.0 - np.abs(u), 0.0, 1.0)


class OneSidedDomain(FlowDomain):
    """A domain with 0 on its boundary, perhaps, where rays to 0 lead nowhere: what is outside is pulled to an inner
    point."""

    def interior(self, k: int) -> Array:
        zero, axes = np.zeros(k), np.vstack([np.eye(k), -np.eye(k)])
        if np.isfinite(self.phi.conjugate(1e-3 * axes)).all():
            return zero
        # v - prox(v, 1) is a subgradient of phi, so in dom phi*; the mean over directions all around is well inside
        around = np.vstack([scale * axes for scale in (0.1, 1.0, 10.0)])
        return (around - self.phi.prox(around, 1.0)).mean(axis=0)

    def clip(self, u: Array) -> Array:
        out = ~np.isfinite(self.phi.conjugate(u))
        if not out.any():
            return u
        inner = np.broadcast_to(self.interior(u.shape[1]), u.shape)
        t = INSIDE * self.step_to_boundary(inner, u)
        return np.where(out[:, None], inner + t[:, None] * (u - inner), u)

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        def inside(t: Array) -> Array:
            return np.isfinite(self.phi.conjugate(start + t[:, None] * (end - start)))

        low = np.where(np.isfinite(self.phi.conjugate(end)), 1.0, 0.0)
        return bisected(inside, low, np.ones(len(start)), HALVINGS)[0]


def domain_of(phi: AbstractPenalty, plain: type[FlowDomain] = FlowDomain) -> FlowDomain:
    """What is known of dom phi* by default: from its composition, else from its conjugate alone."""
    return plain(phi) if phi.composed() is None else Mixtures(phi)
