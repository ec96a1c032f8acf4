"""A quadratic form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import numbers
from ...errors import TermError
from ..bounds import ULP, half_square, shown
from ..records import Array, Notation, RecessionCone, Statement, stated
from ._rows import by_row, column, longest, row_norm
from .base import AbstractSmoothPenalty
from .domain import FlowDomain
from .squared_l2 import SquaredL2

ROUNDING = 1e-12  # relative to the largest eigenvalue: below it an eigenvalue is 0


class Range(FlowDomain):
    """The range of Q."""

    def gauge(self, u: Array) -> Array:
        return np.where(np.isfinite(self.phi.conjugate(u)), 0.0, np.inf)

    def clip(self, u: Array) -> Array:
        return self.span(u)

    def span(self, u: Array) -> Array:
        return self.phi.onto_range(u)

    def recession(self, k: int) -> RecessionCone:
        root = self.phi.root
        if len(root) == k:  # triangular with a positive diagonal, so not singular
            return RecessionCone(np.zeros(k), np.zeros(k))
        # as many equations as the rank: Q itself, once rounded, may vanish along no direction at all
        return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), root)

    def conductance(self, u: Array) -> Array:
        return np.ones_like(u)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * (z @ self.phi.Q)  # keeps the flow in range(Q)

    def share(self, u: Array) -> Array:
        # the flow of a singular Q stays in its range; that of a definite one is moved where no other can be
        rank, k = self.phi.root.shape
        return np.full(u.shape, 1e-6 if rank == k else 0.0)


@dataclass(frozen=True, eq=False)
class Quadratic(AbstractSmoothPenalty):
    """A quadratic form: ``phi(z) = 1/2 z'Qz`` with Q symmetric and positive semidefinite.

    What is minimised is ``1/2 ||Rz||^2`` with the root R, ``R'R = Q`` up to rounding, which is computed once. (As
    floats, a Q of lower rank is seldom semidefinite; R'R is for every R.)

    ``phi*(u) = 1/2 ||t||^2`` for the shortest t with ``u = R't``, which is ``1/2 u'Q^+u``, and +inf where there is none
    (Boyd and Vandenberghe, Convex Optimization, example 3.22, with the pseudo-inverse for a singular Q).

    Parameters
    ----------
    Q : array_like (k, k)
        Symmetric, positive semidefinite, not 0; k is the number of coordinates that it acts on.

    Attributes
    ----------
    root : array (rank, k)
        R: the Cholesky factor of a definite Q, else scaled eigenvectors. ``Q`` is R'R.

    Examples
    --------
    >>> gr.Quadratic([[2.0, 0.0], [0.0, 1.0]]).value(np.array([[3.0, -4.0]]))
    array([17.])
    """

    Q: Any
    root: Array = field(init=False, repr=False)
    _values: Array = field(init=False, repr=False)  # (k,) eigenvalues of R'R, ascending, 0 beyond the rank
    _vectors: Array = field(init=False, repr=False)  # (k, k) eigenvectors in the columns

    def __post_init__(self) -> None:
        root = _root(_symmetric(self.Q))
        _, sigma, V = np.linalg.svd(root)
        values = np.concatenate([np.zeros(len(V) - len(root)), sigma[::-1] ** 2])
        vars(self).update(Q=root.T @ root, root=root, _values=values, _vectors=V[::-1].T.copy())

    def value(self, z: Array) -> Array:
        return 0.5 * (by_row(z, self.root.T) ** 2).sum(axis=1)

    def gradient(self, z: Array) -> Array:
        return by_row(z, self.Q)

    def curvature(self, z: Array) -> Array:
        return np.broadcast_to(self.Q, (len(z), *self.Q.shape))

    def smoothness(self) -> float:
        return float(self._values[-1])

    def prox(self, v: Array, step: Any) -> Array:
        V = self._vectors
        return by_row(by_row(v, V) / (1.0 + column(step) * self._values), V.T)

    def conjugate(self, u: Array) -> Array:
        V, positive = self._vectors, self._values > 0
        value = 0.5 * (u @ V[:, positive]) ** 2 @ (1.0 / self._values[positive])
        # Membership allows for rounding alone: what `clip` and `conduct` put into range(Q) is in it to about 1e-16
        # of ||u||, and up to 1e-12 ||u|| is taken for that.
        inside = row_norm(u @ V[:, ~positive]) <= 1e-12 * row_norm(u)
        return np.where(inside, value, np.inf)

    def onto_range(self, u: Array) -> Array:
        """The projection of each row onto the range of Q."""
        V = self._vectors[:, self._values > 0]
        return u if V.shape[0] == V.shape[1] else by_row(by_row(u, V), V.T)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.square(Z @ self.root.T), axis=1) / 2

    def check(self, k: int) -> None:
        if k != len(self._values):
            raise TermError(f"the Q of Quadratic is for {len(self._values)} coordinates, and the term has {k}")

    domain = stated(Range)

    def composed(self) -> tuple[Array, SquaredL2] | None:
        return (self.root, SquaredL2()) if len(self.root) < self.root.shape[1] else None

    def value_bound(self, z: Array, spread: Array) -> Array:
        R, k = self.root, self.root.shape[1]
        size, live = np.abs(z) @ np.abs(R).T, ((z != 0.0) | (spread != 0.0)) @ (R != 0.0).T
        top = np.abs(z @ R.T) + (k + 2) * ULP * size + spread @ np.abs(R).T * (1.0 + (k + 2) * ULP)
        return half_square(shown(top, live))

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        """A definite Q has ``phi*(u) = 1/2 ||R^-T u||^2``; ``||R^-T u|| <= ||t|| + ||R^-1|| ||u - R't||`` for any t."""
        norm = self._inverse_norm
        if not np.isfinite(norm):
            return np.full(len(u), np.inf)
        k = len(self.root)
        t = np.linalg.solve(self.root.T, u.T).T
        left = np.abs(u - t @ self.root) + (k + 3) * ULP * (np.abs(u) + np.abs(t) @ np.abs(self.root)) + spread
        r = (longest(t, np.zeros(t.shape)) + norm * longest(left, np.zeros(left.shape))) * (1.0 + 4 * ULP)
        return shown(r * r * (0.5 + ULP), r > 0.0)

    @cached_property
    def _inverse_norm(self) -> float:
        """Not less than the spectral norm of R^-1, by a residual: ``R^-1 = V (I - E)^-1`` with E = I - RV; inf where R
        is not square or that proves nothing."""
        R = self.root
        k = R.shape[1]
        if len(R) < k:
            return np.inf
        V = np.linalg.inv(R)
        E = np.abs(np.eye(k) - R @ V) + (k + 2) * ULP * (np.eye(k) + np.abs(R) @ np.abs(V))
        off = float(np.linalg.norm(E)) * (1.0 + k * k * ULP)
        return float(np.linalg.norm(V)) / (1.0 - off) * (1.0 + k * k * ULP) if off < 0.5 else np.inf

    def quadratic(self, k: int) -> Array:
        return self.Q

    def strong_convexity(self) -> float:
        return float(self._values[0])

    def cvxpy_conjugate(self, U: Any) -> Any:
        V, positive = self._vectors, self._values > 0
        value = cp.sum(cp.square(U @ (V[:, positive] / np.sqrt(self._values[positive]))), axis=1) / 2
        return value if positive.all() else [U @ V[:, ~positive] == 0, value]

    def statement(self, k: int) -> Statement:
        return Statement("Quadratic", self.root.tolist(), self.root)

    @property
    def notation(self) -> Notation:
        singular = self._values[0] == 0
        return Notation(
            "%z' Q %z / 2",
            "%u' Q^+ %u / (2 %c)" if singular else "%u' Q^-1 %u / (2 %c)",
            "%u in range(Q)" if singular else "",
            r"\tfrac{1}{2} %z^\top Q %z",
            r"\frac{1}{2 %c} %u^\top Q^{+} %u" if singular else r"\frac{1}{2 %c} %u^\top Q^{-1} %u",
            r"%u \in \mathrm{range}(Q)" if singular else "",
            "Q (%z)",
            "Q (%z)",
        )


def _root(Q: Array) -> Array:
    """R with R'R = Q up to rounding, (rank, k)."""
    values, vectors = np.linalg.eigh(Q)
    if values[0] < -ROUNDING * np.abs(values).max():
        raise TermError(f"the Q of Quadratic is not positive semidefinite: it has the eigenvalue {values[0]:.6g}")
    if values[-1] <= 0:
        raise TermError("the Q of Quadratic is 0; leave the term out")
    positive = values > ROUNDING * values[-1]
    if positive.all():
        return np.linalg.cholesky(Q).T.copy()
    return np.sqrt(values[positive])[:, None] * vectors[:, positive].T


def _symmetric(Q: Any) -> Array:
    """Q as an exactly symmetric array of floats, refused where it is no finite symmetric matrix."""
    Q = numbers(Q, "the Q of Quadratic", "a matrix of numbers", TermError)
    if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or Q.size == 0:
        raise TermError(f"the Q of Quadratic must be a square matrix, got shape {Q.shape}")
    if not np.isfinite(Q).all():
        raise TermError("the Q of Quadratic has NaN or infinite entries")
    asymmetry = np.abs(Q - Q.T)
    if asymmetry.max() > ROUNDING * np.abs(Q).max():
        i, j = np.unravel_index(asymmetry.argmax(), Q.shape)
        raise TermError(
            f"the Q of Quadratic is not symmetric: Q[{i}, {j}] = {Q[i, j]:.6g} but Q[{j}, {i}] = {Q[j, i]:.6g}; "
            "pass (Q + Q.T) / 2"
        )
    return 0.5 * (Q + Q.T)
