"""The kinds of penalties, beside `AbstractPenalty` itself: smooth ones, constraints, norms, and what is not even."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..records import Array, Notation, RecessionCone, names_of
from ._rows import INSIDE, norm_bound, row_norm
from .penalty import AbstractPenalty

HALVINGS = 52  # of an interval, until nothing is between its ends


class AbstractSmoothPenalty(AbstractPenalty):
    """A differentiable penalty."""

    @abstractmethod
    def gradient(self, z: Array) -> Array:
        """The gradient of phi at each row, (m, k)."""

    @abstractmethod
    def curvature(self, z: Array) -> Array:
        """The Hessian of phi at each row (where it jumps: any value between), (m, k, k), or its diagonal (m, k)."""

    @abstractmethod
    def smoothness(self) -> float:
        """The smallest L for which L/2 ||.||^2 - phi is convex."""

    def pieces(self, k: int) -> int | None:
        return None  # norms have kinks

    def quadratic(self, k: int) -> Array | None:
        L = self.smoothness()
        return L * np.eye(k) if self.strong_convexity() == L else None  # then nothing else lies between the two

    def subgradient(self, z: Array) -> Array:
        return self.gradient(z)

    def gauge_at_zero(self, u: Array) -> Array:
        return np.where((u == 0.0).all(axis=1), 0.0, np.inf)  # the gradient at 0, where phi is least


class AbstractSupercoercive(AbstractPenalty):
    """A penalty that outgrows every multiple of a norm: phi* is finite everywhere, so that flows have no capacity."""

    def gauge(self, u: Array) -> Array:
        return np.zeros(len(u))

    def clip(self, u: Array) -> Array:
        return u


class AbstractOneSided(AbstractPenalty):
    """A penalty that is not even, and so may only stand on edges to the ground.

    0 may be on the boundary of dom phi*, where rays to 0 lead nowhere: what is outside is pulled to an inner point.
    """

    def interior(self, k: int) -> Array:
        zero, axes = np.zeros(k), np.vstack([np.eye(k), -np.eye(k)])
        if np.isfinite(self.conjugate(1e-3 * axes)).all():
            return zero
        # v - prox(v, 1) is a subgradient of phi, so in dom phi*; the mean over directions all around is well inside
        around = np.vstack([scale * axes for scale in (0.1, 1.0, 10.0)])
        return (around - self.prox(around, 1.0)).mean(axis=0)

    def clip(self, u: Array) -> Array:
        out = ~np.isfinite(self.conjugate(u))
        if not out.any():
            return u
        inner = np.broadcast_to(self.interior(u.shape[1]), u.shape)
        t = INSIDE * self.reach(inner, u)
        return np.where(out[:, None], inner + t[:, None] * (u - inner), u)

    def reach(self, start: Array, end: Array) -> Array:
        low = np.where(np.isfinite(self.conjugate(end)), 1.0, 0.0)
        high, open_ = np.ones(len(start)), low < 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            inside = np.isfinite(self.conjugate(start + middle[:, None] * (end - start)))
            low, high = np.where(open_ & inside, middle, low), np.where(open_ & ~inside, middle, high)
        return low


class AbstractConstraint(AbstractPenalty):
    """The indicator of a convex set that contains 0 (0 inside, +inf outside): it takes no strength and no weights."""

    @abstractmethod
    def project(self, z: Array) -> Array:
        """The nearest point of the set, exactly inside it."""

    def settle(self, z: list[Any], exact: Callable[[float], Any]) -> list[Any]:
        """A point of the set near z, exactly: z are rationals, and ``exact`` makes one of a float.

        By default slightly towards 0, which lies in the set.
        """
        shrunk = 1 - exact(2.0**-44)
        return [shrunk * each for each in z]

    def value_bound(self, z: Array, spread: Array) -> Array:
        inside = super().value_bound(z, spread)
        return np.where(inside <= 0.0, 0.0, np.inf)

    def is_equality(self, k: int) -> bool:
        return not self.conjugate(np.vstack([np.eye(k), -np.eye(k)])).any()  # as far as the set reaches along the axes

    def prox(self, v: Array, step: Any) -> Array:
        return self.project(v)  # a multiple of an indicator is the same indicator

    def subgradient(self, z: Array) -> Array:
        return np.zeros_like(z)  # at the points of the set; elsewhere there is none

    @property
    def notation(self) -> Notation:
        name, latex = names_of(self)
        return Notation(
            f"[%z in {name}]",
            f"max over p in {name} of <p, %u>",
            latex_value=rf"\iota\{{%z \in {latex}\}}",
            latex_conjugate=rf"\max_{{p \in {latex}}} \langle p, %u \rangle",
        )


class AbstractNorm(AbstractPenalty):
    """A norm: phi* is the indicator of the unit ball of the dual norm, so u_e = 0 ... c_e is a capacity.

    An edge whose flow lies strictly inside its capacity is fused: z_e = 0 at every optimum.
    """

    @abstractmethod
    def dual_norm(self, u: Array) -> Array:
        """The dual norm of each row, (m,)."""

    @abstractmethod
    def project_dual(self, u: Array, radius: Any) -> Array:
        """Euclidean projection of each row onto the dual ball of the radius (a number or one per row)."""

    def prox(self, v: Array, step: Any) -> Array:
        return v - self.project_dual(v, step)

    def conjugate(self, u: Array) -> Array:
        return np.where(self.dual_norm(u) <= 1.0, 0.0, np.inf)

    def gauge(self, u: Array) -> Array:
        return self.dual_norm(u)

    def gauge_at_zero(self, u: Array) -> Array:
        return self.dual_norm(u)

    def clip(self, u: Array) -> Array:
        return self.project_dual(u, INSIDE)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return np.where(norm_bound(self.dual_norm, u, spread) <= 1.0, 0.0, np.inf)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return norm_bound(self.value, z, spread)

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return self.project_dual(v, weight)

    def subgradient(self, z: Array) -> Array:
        # the point of the dual ball furthest along z, for any z that is long against the ball; 0 where z = 0
        length = np.maximum(row_norm(z), 1e-300)[:, None]
        return self.project_dual(z / length * 1e9, 1.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))

    @property
    def notation(self) -> Notation:
        name, latex = names_of(self)
        dual = f"dual norm of {name} at %u <= %c"
        return Notation(f"{name}(%z)", "", dual, f"{latex}(%z)", "", rf"{latex}^\circ(%u) \le %c")
