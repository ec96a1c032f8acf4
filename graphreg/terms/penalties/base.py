"""The kinds of penalties, beside `AbstractPenalty` itself: smooth ones, constraints, norms, and what is not even; and
what is known of the kink at 0 of any of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..records import Array, Notation, names_of, stated
from ._rows import at_units, both_ways, norm_bound, row_norm, slopes_of
from .domain import DualBall, Everywhere, OneSidedDomain, domain_of
from .penalty import AbstractPenalty


class AbstractSmoothPenalty(AbstractPenalty):
    """A penalty with a Lipschitz gradient; one whose gradient grows faster, as that of cosh, is a `Penalty`.

    Examples
    --------
    >>> [issubclass(each, gr.AbstractSmoothPenalty) for each in (gr.SquaredL2, gr.HuberNorm, gr.L2)]
    [True, True, False]
    """

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


def squares(phi: AbstractPenalty, k: int) -> Array | None:
    """Q where phi(z) = 1/2 z'Qz on k coordinates, and its gradients may be asked for; else None."""
    return phi.quadratic(k) if isinstance(phi, AbstractSmoothPenalty) else None


class AbstractSupercoercive(AbstractPenalty):
    """A penalty that outgrows every multiple of a norm: phi* is finite everywhere, so that flows have no capacity."""

    domain = stated(Everywhere)


class AbstractOneSided(AbstractPenalty):
    """A penalty that is not even, and so not for undirected edges: at nodes, along arrows, on rows with a sign.

    0 may be on the boundary of dom phi*.

    Examples
    --------
    >>> issubclass(gr.NonNegative, gr.AbstractOneSided), issubclass(gr.L2, gr.AbstractOneSided)
    (True, False)
    """

    domain = stated(lambda self: domain_of(self, OneSidedDomain))


class AbstractEntrywise(AbstractPenalty):
    """A sum over the coordinates."""

    @abstractmethod
    def restricted(self, columns: Array) -> AbstractPenalty:
        """The penalty on some of its coordinates."""


class AbstractConstraint(AbstractPenalty):
    """The indicator of a convex set that contains 0 (0 inside, +inf outside): it takes no strength and no weights.

    Examples
    --------
    >>> [issubclass(each, gr.AbstractConstraint) for each in (gr.Ball, gr.Box, gr.L2)]
    [True, True, False]
    """

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
        return np.where(super().value_bound(z, spread) <= 0.0, 0.0, np.inf)

    def prox(self, v: Array, step: Any) -> Array:
        return self.project(v)  # a multiple of an indicator is the same indicator

    def subgradient(self, z: Array) -> Array:
        return np.zeros_like(z)  # at the points of the set; elsewhere there is none

    def _notation(self) -> Notation:
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

    Examples
    --------
    >>> [issubclass(each, gr.AbstractNorm) for each in (gr.L1, gr.L2, gr.SquaredL2)]
    [True, True, False]
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

    domain = stated(DualBall)

    def gauge_at_zero(self, u: Array) -> Array:
        return self.dual_norm(u)

    def extent(self, k: int) -> float:
        """An R with ``||z||_2 <= R phi(z)`` for every z of k coordinates, the smaller the better."""
        return float(np.linalg.norm(at_units(self.dual_norm, k)))

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return np.where(norm_bound(self.dual_norm, u, spread) <= 1.0, 0.0, np.inf)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return norm_bound(self.value, z, spread)

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return self.project_dual(v, weight)

    def subgradient(self, z: Array) -> Array:
        # the point of the dual ball furthest along z, for any z that is long against the ball; 0 where z = 0
        return self.project_dual(z / np.maximum(row_norm(z), 1e-300)[:, None] * 1e9, 1.0)

    def _notation(self) -> Notation:
        name, latex = names_of(self)
        dual = f"dual norm of {name} at %u <= %c"
        return Notation(f"{name}(%z)", "", dual, f"{latex}(%z)", "", rf"{latex}^\circ(%u) \le %c")


class AbstractAbsoluteNorm(AbstractNorm):
    """A norm of the sizes ``|z_j|`` alone. So is its dual norm, which over a box is largest at one of its corners."""


# ---- the kink at 0, by its gauge: how strongly a flow must pull before z moves from 0 --------------------------------
def pulls_at_zero(phi: AbstractPenalty, k: int) -> Array:
    """The price of moving each of the k coordinates from 0: t_j (k,) with ``phi(z) >= |z_j| / t_j`` for every z;
    +inf where phi has no kink at 0 along coordinate j."""
    return both_ways(phi.gauge_at_zero, k)


def has_kink(phi: AbstractPenalty, k: int) -> bool:
    """True where phi on k coordinates has a kink at 0 in every direction: 0 is interior to its subgradients at 0, so
    that an edge whose flow is small enough is fused."""
    if isinstance(phi, AbstractAbsoluteNorm) and k:  # its dual norm grows with the sizes: e_j counts no more than all
        return bool(np.isfinite(phi.dual_norm(np.ones((1, k)))).all())
    return bool(np.isfinite(pulls_at_zero(phi, k)).all())  # then the subgradients hold the hull of all +-e_j / t_j


def extent(phi: AbstractPenalty, k: int) -> float:
    """An R with ``||z||_2 <= R phi(z)`` for every z, the smaller the better; +inf where there is no kink at 0 along
    some direction."""
    known = phi.extent(k) if isinstance(phi, AbstractNorm) else None
    return float(np.linalg.norm(pulls_at_zero(phi, k))) if known is None else known


def gauge_around(phi: AbstractPenalty, u: Array, eta: Array) -> Array:
    """An upper bound of gauge_at_zero(v) over all v with |v_j - u_j| <= eta_j, for each row."""
    if isinstance(phi, AbstractAbsoluteNorm):
        return phi.dual_norm(np.abs(u) + eta)
    pull = pulls_at_zero(phi, u.shape[1])
    with np.errstate(invalid="ignore"):
        more = np.where((eta > 0) & (pull > 0), eta * pull, 0.0)
    return phi.gauge_at_zero(u) + more.sum(axis=1)


def slopes(phi: AbstractPenalty, k: int) -> tuple[Array, Array] | None:
    """What each of the k coordinates costs by unit where it falls below 0, and where it rises above, (k,) each and +inf
    where it may not: of a penalty that is a sum of such costs. None of any other."""
    pieces = phi.pieces(k)
    if pieces is not None or isinstance(phi, AbstractSmoothPenalty):
        return (np.ones(k), np.ones(k)) if pieces == 1 else None
    return slopes_of(phi.value, k)


def is_interval(phi: AbstractPenalty) -> bool:
    """True of bounds of each coordinate by itself."""
    return isinstance(phi, AbstractConstraint) and isinstance(phi, AbstractEntrywise)


def is_equality(phi: AbstractPenalty, k: int) -> bool:
    """True where phi on k coordinates is the indicator of {0}: z = 0 is all that it allows."""
    if not isinstance(phi, AbstractConstraint):
        return False
    return not both_ways(phi.conjugate, k).any()  # as far as the set reaches along the axes
