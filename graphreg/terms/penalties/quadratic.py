"""A quadratic form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import TermError
from ..records import Array, Notation, RecessionCone
from ._base import AbstractSmoothPenalty, column, row_norm

ROUNDING = 1e-12  # relative to the largest eigenvalue: below it an eigenvalue is 0


@dataclass(frozen=True, eq=False)
class Quadratic(AbstractSmoothPenalty):
    """A quadratic form: ``phi(z) = 1/2 z'Qz`` with Q symmetric and positive semidefinite.

    ``phi*(u) = 1/2 u'Q^+u`` where u is in range(Q) and +inf elsewhere (Boyd and Vandenberghe, Convex Optimization,
    example 3.22, with the pseudo-inverse for a singular Q).

    Parameters
    ----------
    Q : array_like (k, k)
        Symmetric, positive semidefinite, not 0; k is the number of coordinates that it acts on.
    """

    Q: Any
    _values: Array = field(init=False, repr=False)  # (k,) eigenvalues, ascending, those within rounding set to 0
    _vectors: Array = field(init=False, repr=False)  # (k, k) eigenvectors in the columns

    def __post_init__(self) -> None:
        Q = _symmetric(self.Q)
        values, vectors = np.linalg.eigh(Q)
        if values[0] < -ROUNDING * np.abs(values).max():
            raise TermError(f"the Q of Quadratic is not positive semidefinite: it has the eigenvalue {values[0]:.6g}")
        if values[-1] <= 0:
            raise TermError("the Q of Quadratic is 0; leave the term out")
        values = np.where(values > ROUNDING * values[-1], values, 0.0)
        object.__setattr__(self, "Q", (vectors * values) @ vectors.T)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_vectors", vectors)

    def value(self, z: Array) -> Array:
        return 0.5 * (z @ self._vectors) ** 2 @ self._values

    def gradient(self, z: Array) -> Array:
        return z @ self.Q

    def curvature(self, z: Array) -> Array:
        return np.broadcast_to(self.Q, (len(z), *self.Q.shape))

    def smoothness(self) -> float:
        return float(self._values[-1])

    def prox(self, v: Array, step: Any) -> Array:
        V = self._vectors
        return ((v @ V) / (1.0 + column(step) * self._values)) @ V.T

    def conjugate(self, u: Array) -> Array:
        V, positive = self._vectors, self._values > 0
        value = 0.5 * (u @ V[:, positive]) ** 2 @ (1.0 / self._values[positive])
        # Membership allows for rounding alone: what `clip` and `conduct` put into range(Q) is in it to about 1e-16
        # of ||u||, and up to 1e-12 ||u|| is taken for that.
        inside = row_norm(u @ V[:, ~positive]) <= 1e-12 * row_norm(u)
        return np.where(inside, value, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        import cvxpy as cp

        positive = self._values > 0
        root = self._vectors[:, positive] * np.sqrt(self._values[positive])
        return cp.sum(cp.square(Z @ root), axis=1) / 2

    def check(self, k: int) -> None:
        if k != len(self._values):
            raise TermError(f"the Q of Quadratic is for {len(self._values)} coordinates, and the term has {k}")

    def gauge(self, u: Array) -> Array:
        return np.where(np.isfinite(self.conjugate(u)), 0.0, np.inf)

    def clip(self, u: Array) -> Array:
        return self.span(u)

    def span(self, u: Array) -> Array:
        V = self._vectors[:, self._values > 0]
        return u if V.shape[0] == V.shape[1] else (u @ V) @ V.T

    def conductance(self, u: Array) -> Array:
        return np.ones_like(u)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return conductance * (z @ self.Q)  # keeps the flow in range(Q)

    def strong_convexity(self) -> float:
        return float(self._values[0])

    def recession(self, k: int) -> RecessionCone:
        # as many equations as the rank: Q itself, once rounded, may vanish along no direction at all
        V = self._vectors[:, self._values > 0]
        return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf), V.T)

    def cvxpy_conjugate(self, U: Any) -> Any:
        import cvxpy as cp

        V, positive = self._vectors, self._values > 0
        value = cp.sum(cp.square(U @ (V[:, positive] / np.sqrt(self._values[positive]))), axis=1) / 2
        return value if positive.all() else [U @ V[:, ~positive] == 0, value]

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
        )


def _symmetric(Q: Any) -> Array:
    """Q as an exactly symmetric array of floats, refused where it is no finite symmetric matrix."""
    try:
        Q = np.array(Q, dtype=float)
    except (TypeError, ValueError):
        raise TermError("the Q of Quadratic must be a matrix of numbers") from None
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
