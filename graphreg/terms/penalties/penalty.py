"""What every penalty is: a convex function phi >= 0 with phi(0) = 0, applied to the rows of an array.

A new penalty is one file in this folder (or one class of the user's): a frozen dataclass that derives from
`AbstractPenalty` (or `AbstractNorm`, ...) and has ``value``, ``prox``, ``conjugate`` and ``cvxpy``. What is derived
from these four below may be overridden where a closed form is better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...checks import check_fields
from ...declaring import in_library, is_private
from ...errors import TermError
from ...shortcuts import shortcut
from ..bounds import largest_around
from ..records import Array, Notation, RecessionCone, Stated, names_of
from ._rows import INSIDE, LEAST_SLACK, beside, column, gauge_of, pieces_of, row_norm


class AbstractPenalty(ABC):
    """A convex penalty phi >= 0, phi(0) = 0, on the rows of an (m, k) array.

    Between two nodes phi must be even; a penalty that is not derives from `AbstractOneSided`.
    """

    def __post_init__(self) -> None:
        """Refuses parameters that are not what their fields say they must be (see `graphreg.checks`)."""
        check_fields(self, TermError)

    @abstractmethod
    def value(self, z: Array) -> Array:
        """phi of each row, shape (m,); +inf outside its domain."""

    @abstractmethod
    def prox(self, v: Array, step: Any) -> Array:
        """argmin over p of ``step * phi(p) + 1/2 ||p - v||^2`` for each row; ``step`` is a number or one per row."""

    @abstractmethod
    def conjugate(self, u: Array) -> Array:
        """phi*(u) = sup over z of <u, z> - phi(z) for each row; +inf outside its domain, with zero tolerance."""

    @abstractmethod
    def cvxpy(self, Z: Any) -> Any:
        """A convex CVXPY expression with one value per row of the (m, k) expression Z; for an indicator, the list
        of its constraints."""

    # ---- derived; override where a closed form exists ----------------------------------------------------------
    def subgradient(self, z: Array) -> Array:
        """A subgradient of phi at each row; by default that of the nearby point prox(z, 1e-4), near enough, and far
        enough for a prox that is known to a solver's accuracy only; where phi is so steep that this lies far from z,
        that of a shorter step."""
        u = beside(self.prox, z, np.full(len(z), 1e-4), 1e-3 * np.maximum(row_norm(z), 1.0))
        return np.where((z == 0).all(axis=1)[:, None], 0.0, u)  # where phi is least

    def check(self, k: int) -> None:
        """Raise `TermError` where the penalty cannot act on k coordinates (a Quadratic of another size, ...)."""

    def acting_on(self, k: int) -> AbstractPenalty:
        """The penalty as it acts on k coordinates: what stands in the form of a problem. Itself, after `check`, where
        it is one formula for every k."""
        self.check(k)
        return self

    def accuracy(self) -> float:
        """The relative accuracy of ``value``, ``prox`` and ``conjugate``, to which the check holds them."""
        return 1e-8

    def gauge(self, u: Array) -> Array:
        """inf {t >= 0 : u / t in dom phi*} for each row: 0 where no multiple of u leaves the domain."""
        return gauge_of(u, lambda rows: np.isfinite(self.conjugate(rows)))

    def gauge_at_zero(self, u: Array) -> Array:
        """The pull at 0 that the flow u takes up: inf {t >= 0 : u / t is a subgradient of phi at 0} for each row.

        As phi >= 0 and phi(0) = 0, the subgradients at 0 are the u with ``phi*(u) = 0``, that is with
        ``phi(z) >= <u, z>`` for every z (Rockafellar, Convex Analysis, theorem 23.5). So
        ``phi(z) - <u, z> >= (1 - t) phi(z)`` with t = gauge_at_zero(u): a norm gives its dual norm, a penalty that is
        smooth at 0 gives +inf but for u = 0.

        By default from ``conjugate``, by doubling and bisection, and with zero tolerance: a conjugate of which rounding
        leaves anything above 0 makes the answer larger, and what lies outside is never called inside. What overrides
        this may be too large, and never too small.
        """
        none = ~(self.value(np.zeros((1, u.shape[1]))) == 0.0).all()  # a set that does not contain 0
        return np.full(len(u), np.inf) if none else gauge_of(u, lambda rows: self.conjugate(rows) <= 0.0)

    def pull(self, k: int) -> Array:
        """What each of the k coordinates must pull by to move from 0: t_j (k,) with ``phi(z) >= |z_j| / t_j`` for every
        z; +inf where phi has no kink at 0 along coordinate j."""
        eye = np.eye(k)
        return np.maximum(self.gauge_at_zero(eye), self.gauge_at_zero(-eye))

    def extent(self, k: int) -> float:
        """An R with ``||z||_2 <= R phi(z)`` for every z, the smaller the better; +inf where there is no kink at 0 along
        some direction."""
        return float(np.linalg.norm(self.pull(k)))

    def has_kink(self, k: int) -> bool:
        """Whether phi on k coordinates has a kink at 0 in every direction: 0 is interior to its subgradients at 0, so
        that an edge whose flow is small enough is fused."""
        return bool(np.isfinite(self.pull(k)).all())  # then the subgradients hold the hull of all +-e_j / t_j

    def is_equality(self, k: int) -> bool:
        """Whether phi on k coordinates is the indicator of {0}: z = 0 is all that it allows."""
        return False

    def pieces(self, k: int) -> int | None:
        """p where phi(z) on k coordinates is the sum of the Euclidean norms of the consecutive pieces of p coordinates
        of z, as was tried: 1 for the l1 norm, k for the Euclidean norm; None where phi is no such sum.

        Each piece is the height of a second-order cone, and by itself 0 or smooth.
        """
        return pieces_of(self.value, k)

    def quadratic(self, k: int) -> Array | None:
        """Q (k, k) where phi(z) = 1/2 z'Qz on k coordinates; None elsewhere."""
        return None

    def slope_at_zero(self, z: Array) -> Array:
        """The growth of phi from 0 along each row, ``phi'(0; z) = lim phi(s z) / s`` as s falls to 0, to about eight
        digits and from above; phi itself where it is homogeneous. It is the support function of what
        ``gauge_at_zero`` is the gauge of."""
        largest = np.abs(z).max(axis=1, initial=0.0)
        s = 2.0 ** (-26.0 - np.ceil(np.log2(np.where(largest > 0, largest, 1.0))))  # exact: a power of 2
        return self.value(z * s[:, None]) / s

    def gauge_around(self, u: Array, eta: Array) -> Array:
        """An upper bound of gauge_at_zero(v) over all v with |v_j - u_j| <= eta_j, for each row."""
        pull = self.pull(u.shape[1])
        with np.errstate(invalid="ignore"):
            more = np.where((eta > 0) & (pull > 0), eta * pull, 0.0)
        return self.gauge_at_zero(u) + more.sum(axis=1)

    def clip(self, u: Array) -> Array:
        """A point of dom phi* near each row; the row itself where it is inside. By default along the ray to 0."""
        out = ~np.isfinite(self.conjugate(u))
        if out.any():
            u = u.copy()
            gauge = self.gauge(u[out])
            u[out] = np.where(np.isfinite(gauge), INSIDE / np.maximum(gauge, 1e-300), 0.0)[:, None] * u[out]
        return u

    def reach(self, start: Array, end: Array) -> Array:
        """For each row a t in [0, 1] with start + t (end - start) in dom phi* (start lies in it).

        By convexity of the gauge, gauge(start + t (end - start)) <= (1 - t) gauge(start) + t gauge(end), which is
        kept at or below `INSIDE`; the largest t where start = 0.
        """
        g0, g1 = self.gauge(start), self.gauge(end)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = (INSIDE - g0) / (g1 - g0)
        return np.where(g1 <= INSIDE, 1.0, np.where(np.isfinite(t), np.clip(t, 0.0, 1.0), 0.0))

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        """prox of ``step * (weight phi)*`` at each row of v, by Moreau's identity; both are of shape (m,)."""
        return v - column(step) * self.prox(v / column(step), weight / step)

    def kernel(self) -> str:
        """What a compiled `dual_prox` is (see `graphreg.kernels`): "box" or "ball" of the radius ``weight``, "square"
        for v / (1 + step / weight); empty where there is none."""
        return ""

    def conductance(self, u: Array) -> Array:
        """How readily the flow u (at weight 1) gives way in the repair: non-negative, one number per coordinate
        (m, k), or per row (m, 1)."""
        return np.maximum(1.0 - self.gauge(u), LEAST_SLACK)[:, None]

    def conduct(self, conductance: Array, z: Array) -> Array:
        """The linear map of the repair from potentials to flows; a matrix penalty mixes coordinates here."""
        return conductance * z

    def span(self, u: Array) -> Array:
        """The projection of each row onto the span of dom phi*: u itself, but where phi is flat along a subspace."""
        return u

    # ---- bounds that hold whatever rounding does; what a certificate rests on ----------------------------------------
    def room(self, u: Array) -> Array:
        """How far each coordinate of the flow u (at weight 1) may move either way inside dom phi*, (m, k): 0 where it
        may not, inf where nothing stops it. From the gauge: gauge(u +- t e_j) <= gauge(u) + t gauge(+-e_j)."""
        k = u.shape[1]
        unit = np.maximum(self.gauge(np.eye(k)), self.gauge(-np.eye(k)))
        left = np.maximum(1.0 - self.gauge(u), 0.0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(unit == 0.0, np.where(left > 0.0, np.inf, 0.0), left / unit)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        """An upper bound of phi* over each box ``u +- spread``, (m,); +inf where that is not all inside dom phi*.

        By default from `conjugate`, whose values are trusted to 16 units in the last place: phi* is convex, and largest
        at the ends.
        """
        return largest_around(self.conjugate, u, spread, rowwise=True)

    def value_bound(self, z: Array, spread: Array) -> Array:
        """An upper bound of phi over each box ``z +- spread``, (m,). By default from `value`, trusted as `conjugate`
        is."""
        return largest_around(self.value, z, spread, rowwise=True)

    def squares(self) -> Array | None:
        """R (r, k) with r < k where phi is 1/2 ||Rz||^2: its flows are R'q with r free numbers q. None elsewhere."""
        return None

    def composed(self) -> tuple[Array, AbstractPenalty] | None:
        """R (r, k) with r < k independent rows, and a penalty h on r coordinates, where phi(z) = h(Rz): its flows are
        R'q with r free numbers q, and phi*(R'q) = h*(q). None elsewhere, and where `squares` says it."""
        return None

    def interior(self, k: int) -> Array:
        """A flow (k,) well inside dom phi*."""
        return np.zeros(k)

    def strong_convexity(self) -> float:
        """The largest mu for which phi - mu/2 ||.||^2 is convex."""
        return 0.0

    def restricted(self, columns: Array) -> AbstractPenalty | None:
        """The penalty on some of its coordinates, where it is a sum over coordinates; None where it is none."""
        return None

    def recession(self, k: int) -> RecessionCone | None:
        """The directions along which phi does not grow; None where that is not known.

        {0} exactly where 0 is interior to dom phi*, which is probed here.
        """
        probe = 1e-6 * np.vstack([np.eye(k), -np.eye(k)])
        zero = np.zeros(k)
        return RecessionCone(zero, zero) if np.isfinite(self.conjugate(probe)).all() else None

    def cvxpy_conjugate(self, U: Any) -> Any:
        """phi* as a CVXPY expression with one value per row of the (m, k) expression U, or as a list: the constraints
        of its domain, then the expression (left out where it is 0). Needed only for the dual form.
        """
        raise TermError(
            f"{self.called()} has no method cvxpy_conjugate, which the dual form needs; "
            "add one, or compile the primal form"
        )

    def called(self) -> str:
        """What messages and tables call the penalty: the name of its class, or its formula."""
        kind = type(self)
        return (
            self.notation.value.replace("%z", "z")
            if in_library(kind) and is_private(kind.__module__)
            else kind.__name__
        )

    @property
    def notation(self) -> Notation:
        """How the penalty is printed."""
        name, latex = names_of(self)
        return Notation(f"{name}(%z)", f"%c {name}*(%u / %c)", "", f"{latex}(%z)", rf"%c \, {latex}^*(%u / %c)", "")

    def unwritten(self) -> str:
        """Why `cvxpy` can write nothing, and the remedy, as a sentence that begins small; empty where it can."""
        return ""

    def is_users(self) -> bool:
        """Whether the user wrote phi, so that solves try its laws at their points (see `certificate.spot_checks`)."""
        return not in_library(type(self))

    # ---- proofs ----------------------------------------------------------------------------------------------------
    def stated(self, k: int) -> Stated | None:
        """How a proof states the penalty on k coordinates; None where it cannot (see `parts`)."""
        return None

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]] | None:
        """Positive numbers and penalties of the library, where this is the sum of their products: a proof is then of
        that sum. None where it is none."""
        return None

    def exact_room(self, u: Array) -> Array:
        """How far each coordinate of the flow u (at weight 1) may be moved both ways before it leaves dom phi*, as a
        share of the domain: 0 where it may not, 1 at most, shaped (m, k) or (m, 1)."""
        return np.clip(1.0 - self.gauge(u), 0.0, 1.0)[:, None]

    def flow_root(self) -> Array | None:
        """R where a proof states the flow u by t, u = c R't, because not every u is a flow; else None."""
        return None

    # ---- penalties from less ------------------------------------------------------------------------------------
    @staticmethod
    def from_cvxpy(function: Any, *, rows: bool = False, name: str | None = None) -> AbstractPenalty:
        """A penalty whose four methods are derived from a convex CVXPY function of one row.

        With ``rows=True`` the function takes the stacked (m, k) matrix and returns one value per row; see
        `graphreg.terms.penalties.from_cvxpy.from_cvxpy`.
        """
        return shortcut("Penalty.from_cvxpy")(function, rows=rows, name=name)

    @staticmethod
    def from_prox(value: Any, prox: Any, cvxpy: Any = None, *, name: str | None = None) -> AbstractPenalty:
        """A penalty from its value and its prox, whose conjugate is derived; see
        `graphreg.terms.penalties.from_prox.from_prox`."""
        from .from_prox import from_prox

        return from_prox(value, prox, cvxpy, name)

    # ---- a penalty is no term ------------------------------------------------------------------------------------
    __array_ufunc__ = None  # numpy scalars leave `number * penalty` to __rmul__

    def __mul__(self, other: Any) -> Any:
        raise TermError(
            f"{self.called()} is a penalty, a function of one vector, and no term; scale or add the sum that it "
            "stands in, for instance 0.1 * TotalVariation(graph, L2())"
        )

    __rmul__ = __truediv__ = __add__ = __radd__ = __mul__
