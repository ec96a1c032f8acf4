"""All equations together are answered by what may move, where that spans them well enough.

Let the variables have weights root_j^2 >= 0, and H = B diag(root^2) B'. With q = Bv the point v - diag(root^2) B'H^-1 q
balances exactly, and is off by root_j y_j, y'y = q'H^-1 q. So if S H S - least I is positive semidefinite for some
diagonal S, then it is within

    root_j |Sq| / sqrt(least)

of v. An equation of which no variable may move takes no part: it holds as it is, or its component is lost.

Equations may be dropped that follow from others: variables without weights, which stand in such equations alone, move
with the others by a matrix M, of which these have their row of I. Where y'Bv = 0 and y'BM = 0 exactly, y_i != 0, and y
is else supported on what is kept, equation i holds at the balanced point too.

S H S - mu I - GG' is near 0 for a G that is proposed: no eigenvalue of it is larger than its rows' sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...terms import Array
from .arithmetic import DUST, EPS, MORE, RANGE, below, in_range, magnitudes, need, upwards
from .balance import Balanced, Combination, follows
from .system import System


def far_from_square(A: Any, G: Any) -> float:
    """Not less than any eigenvalue of A - GG', for a symmetric sparse A; NaN where that is not known."""
    one, width = np.ones(A.shape[0]), int(np.diff(G.indptr).max(initial=0))
    rounded = abs(A) @ one + (width + 4) * (abs(G) @ (abs(G).T @ one))
    return float(((abs(A - G @ G.T) @ one + EPS * rounded) * MORE).max(initial=0.0))


@dataclass(frozen=True)
class Dropped:
    """What says of each dropped equation from which combination of equations it follows, and M (V, V); and the
    components that are ``lost``."""

    combinations: Mapping[int, Combination]
    moves: sp.csr_array | None = None
    lost: Array | None = None


NOTHING = Dropped({})


class Joint:
    """What may move: ``root`` (V,), and a proof by G (N, any) that its weights span all equations, of which ``scale``
    (N,) is the diagonal of S; but for those that are ``dropped``."""

    def __init__(
        self, system: System, root: Array, scale: Array, G: sp.csr_array, mu: float, dropped: Dropped = NOTHING
    ) -> None:
        N, V = system.shape
        need(root.shape == (V,) and scale.shape == (N,) and G.format == "csr" and G.shape[0] == N, "another shape")  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        need(mu > 0.0 and (root >= 0.0).all(), "a weight is out of range")
        need(all(in_range(x) for x in (root, scale, np.array([mu]))), "a weight is out of range")
        self.root, self.scale, self.least, self.kind = root, scale, 0.5 * mu, system.kind
        lost = dropped.lost
        self.lost = np.zeros(system.form.n_components, dtype=bool) if lost is None else lost
        need(self.lost.shape == (system.form.n_components,) and self.lost.dtype == bool, "another shape")
        A, self.kept = system.kind.rows(np.arange(V)), np.ones(N, dtype=bool)
        A.sum_duplicates()  # as abs() does, which sorts the entries of each row
        self.dropped = dropped
        self._drop(dropped, A)
        moves = np.repeat(root > 0.0, np.diff(A.indptr))
        self.empty = (np.bincount(A.indices, moves, N) == 0) & self.kept  # no variable of them may move
        apart = ~self.kept | self.lost[system.component]
        each, size = np.repeat(root, np.diff(A.indptr)) * scale[A.indices], abs(A)
        each = np.where(apart[A.indices], 0.0, each)
        A.data, size.data = A.data * each, magnitudes(A.data, 1.0 / RANGE) * each
        lost_digits = EPS * (system.count.max(initial=0.0) + 8) * (size.T @ (size @ np.ones(N))) * MORE
        rest = sp.diags_array((self.empty | apart) - mu)
        off = far_from_square(sp.csr_array(A.T @ A + rest), G) + lost_digits.max(initial=0.0)
        need(off <= 0.49 * mu, "what may move does not span all equations")

    def _drop(self, dropped: Dropped, A: sp.csr_array) -> None:
        """Which equations are kept; and that what moves with others stands in none of them, and leads nothing."""
        N, V = len(self.kept), len(self.root)
        at = np.fromiter(dropped.combinations, dtype=int, count=len(dropped.combinations))
        need(((at >= 0) & (at < N)).all(), "an equation is dropped that is none")
        self.kept[at] = False
        M = self.moves = sp.csr_array(sp.eye_array(V)) if dropped.moves is None else dropped.moves
        need(M.format == "csr" and M.shape == (V, V) and in_range(M.data), "another shape")  # pyright: ignore[reportUnnecessaryComparison]  (scipy has no types)
        need(((M.indices >= 0) & (M.indices < V)).all(), "an entry of M is nowhere")
        M.sum_duplicates()
        row = np.repeat(np.arange(V), np.diff(M.indptr))
        own, led = row == M.indices, np.ones(V, dtype=bool)
        led[row[own]] = False
        need((M.data[own] == 1.0).all() and led[row[~own]].all(), "what moves by itself moves with others")
        need(not led[M.indices].any() and not self.root[led].any(), "what moves with others leads some")
        need(not self.kept[A[np.flatnonzero(led)].indices].any(), "what moves with others is in what is kept")

    def spread(self, left: Array) -> Array:
        """How far an exactly balanced point is at most, where |Bv| <= left (N,)."""
        with np.errstate(over="ignore"):
            square = (((left * self.scale) ** 2).sum() + DUST * left.any()) / self.least
        own = self.root * (np.sqrt(square) * MORE)
        if not self.dropped.combinations:
            return own
        return upwards(abs(self.moves) @ own, int(np.diff(self.moves.indptr).max(initial=0)) + 2)

    def balanced(self, system: System, high: Array, low: Array, plain: bool = False) -> Balanced:
        """The box around ``high + low`` that this proves; where ``plain``, rounding is paid for and low parts are 0."""
        need(self.kind is system.kind, "another system")
        need(below(high) and below(low) and not (plain and low.any()), "prices or flows are too large")
        left, lost = system.residual(high, low, plain).size().ravel(), self.lost.copy()
        open_ = self.empty & ~(left == 0.0)
        of, point = self.dropped.combinations, (high, low)
        open_[[i for i, y in of.items() if not follows(system, i, y, self.kept, point, self.moves)]] = True
        lost[system.component[open_]] = True
        spread = self.spread(np.where(lost[system.component] | ~self.kept, 0.0, left))
        need(below(spread) and not lost.all(), "prices and flows are not balanced")
        return Balanced(high, low, spread, lost)
