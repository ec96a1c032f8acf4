"""All equations together are answered by what may move, where that spans them well enough.

Let the variables have weights root_j^2 >= 0, and H = B diag(root^2) B'. With q = Bv the point v - diag(root^2) B'H^-1 q
balances exactly, and is off by root_j y_j, y'y = q'H^-1 q. So if S H S - least I is positive semidefinite for some
diagonal S, then it is within

    root_j |Sq| / sqrt(least)

of v. An equation of which no variable may move takes no part: it holds as it is, or its component is lost.

S H S - mu I - GG' is near 0 for a G that is proposed: no eigenvalue of it is larger than its rows' sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...terms import Array
from .arithmetic import DUST, EPS, MORE, RANGE, below, in_range, magnitudes, need
from .balance import Balanced
from .system import System


def far_from_square(A: Any, G: Any) -> float:
    """Not less than any eigenvalue of A - GG', for a symmetric sparse A; NaN where that is not known."""
    one, width = np.ones(A.shape[0]), int(np.diff(G.indptr).max(initial=0))
    rounded = abs(A) @ one + (width + 4) * (abs(G) @ (abs(G).T @ one))
    return float(((abs(A - G @ G.T) @ one + EPS * rounded) * MORE).max(initial=0.0))


class Joint:
    """What may move: ``root`` (V,), and a proof by G (N, any) that its weights span all equations, of which ``scale``
    (N,) is the diagonal of S; but for those of components that are ``lost``."""

    def __init__(
        self, system: System, root: Array, scale: Array, G: sp.csr_array, mu: float, lost: Array | None = None
    ) -> None:
        N, V = system.shape
        need(root.shape == (V,) and scale.shape == (N,) and G.format == "csr" and G.shape[0] == N, "another shape")  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        need(mu > 0.0 and (root >= 0.0).all(), "a weight is out of range")
        need(all(in_range(x) for x in (root, scale, np.array([mu]))), "a weight is out of range")
        self.root, self.scale, self.least, self.kind = root, scale, 0.5 * mu, system.kind
        self.lost = np.zeros(system.form.n_components, dtype=bool) if lost is None else lost
        need(self.lost.shape == (system.form.n_components,) and self.lost.dtype == bool, "another shape")
        A, self._left_out = system.kind.rows(np.arange(V)), self.lost[system.component]
        moves = np.repeat(root > 0.0, np.diff(A.indptr))
        self.empty = np.bincount(A.indices, moves, N) == 0  # equations without variables that may move
        each, size = np.repeat(root, np.diff(A.indptr)) * scale[A.indices], abs(A)
        each = np.where(self._left_out[A.indices], 0.0, each)
        A.data, size.data = A.data * each, magnitudes(A.data, 1.0 / RANGE) * each
        lost = EPS * (system.count.max(initial=0.0) + 8) * (size.T @ (size @ np.ones(N))) * MORE
        rest = sp.diags_array((self.empty | self._left_out) - mu)
        off = far_from_square(sp.csr_array(A.T @ A + rest), G) + lost.max(initial=0.0)
        need(off <= 0.49 * mu, "what may move does not span all equations")

    def spread(self, left: Array) -> Array:
        """How far an exactly balanced point is at most, where |Bv| <= left (N,)."""
        with np.errstate(over="ignore"):
            square = (((left * self.scale) ** 2).sum() + DUST * left.any()) / self.least
        return self.root * (np.sqrt(square) * MORE)

    def balanced(self, system: System, high: Array, low: Array, plain: bool = False) -> Balanced:
        """The box around ``high + low`` that this proves; where ``plain``, rounding is paid for and low parts are 0."""
        need(self.kind is system.kind, "another system")
        need(below(high) and below(low) and not (plain and low.any()), "prices or flows are too large")
        left, lost = system.residual(high, low, plain).size().ravel(), self.lost.copy()
        lost[system.component[self.empty & ~(left == 0.0)]] = True
        spread = self.spread(np.where(lost[system.component], 0.0, left))
        need(below(spread) and not lost.all(), "prices and flows are not balanced")
        return Balanced(high, low, spread, lost)
