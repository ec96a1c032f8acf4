"""Directions that linear conditions allow and along which something falls for ever, shown and not only computed.

    still x = 0,    falls x >= 0,    slack x >= 0

Either some x has falls x != 0, or (Motzkin's theorem) there are multipliers with

    falls' l + slack' m + still' k = 0,    l > 0,  m >= 0

and then there is no such x. A linear programme finds one or the other to its tolerance; here the point next to it that
is exact is found, in rational numbers, or for multipliers enclosed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...base.gate import heavy
from ...terms import Array
from ..rationals import LEAST, ROUNDING, correction, null_point, products, signs

TIGHT = (1e-7, 1e-4, 1e-10)  # of the largest: rows that a programme's direction moves by less are taken to stay
MOST_EXACT = 60  # unknowns that hang together, up to which rationals are tried; or as much work by fewer equations
MOST_DENSE = 1500  # and up to which a dense inverse is


@dataclass(frozen=True)
class ConditionPart:
    """Conditions on unknowns that hang together; ``places`` are those of the rows of each kind in the whole."""

    columns: Array
    places: tuple[Array, ...]
    falls: Any
    slack: Any
    still: Any

    def recedes(self, x: Array) -> bool:
        """True where near x there is a direction along which nothing grows and a sample falls for ever: enclosed, or in
        exact arithmetic."""
        rounded = significant(x)
        return rounded is not None and (self._encloses(rounded) or self.exact_direction(x) is not None)

    def _encloses(self, x: Array) -> bool:
        """True where a small correction of x makes still x = 0 exactly and leaves all falls and slacks positive."""
        if not self.falls.shape[0]:  # nothing falls
            return False
        doubt = np.zeros(len(x))
        if self.still.shape[0]:
            across = sp.csr_array(self.still.T)
            chosen = _independent(across, np.arange(len(x)), np.ones(len(x)))
            moved = _correction_bound(across, chosen, x)
            if moved is None:
                return False
            doubt[chosen] = moved
        signed = sp.csr_array(sp.vstack([self.falls, self.slack]))
        rounding = (np.diff(signed.indptr) + 4) * ROUNDING * (abs(signed) @ (np.abs(x) + doubt)) + LEAST
        return bool((signed @ x - (abs(signed) @ doubt) * (1.0 + 1e-9) - rounding > 0.0).all())

    def exact_direction(self, x: Array) -> list[Fraction] | None:
        """A direction near x along which nothing grows, in exact arithmetic; None where none is found."""
        rounded = significant(x)
        if rounded is None:
            return None
        return self.near([Fraction(float(y)) for y in rounded], self.falls @ rounded, self.slack @ rounded)

    def near(self, x: list[Fraction], falls: Array, slack: Array) -> list[Fraction] | None:
        """A direction near a rational x, given by how much the rows move along it."""
        most = float(max(np.abs(falls).max(initial=0.0), np.abs(slack).max(initial=0.0)))
        for tight in TIGHT:
            pairs = zip((self.falls, self.slack), (falls, slack), strict=True)
            kept = [sp.csr_array(M[np.flatnonzero(np.abs(moved) <= tight * most)]) for M, moved in pairs]
            held: Any = sp.csr_array(sp.vstack([self.still, *kept]))
            work = min(held.shape[0], len(x)) ** 2 * len(x)
            if len(x) > MOST_EXACT and work > MOST_EXACT**3 / 4 and signs(held, x).any():
                continue
            point = null_point(held, x)
            if allowed(self.falls, self.slack, self.still, point):
                return point
        return None

    @property
    def rows(self) -> Any:
        return sp.csr_array(sp.vstack([self.falls, self.slack, self.still]))

    def has_no_direction(self, falls: Array, slack: Array, still: Array) -> bool:
        """True where multipliers near those given prove that there is no direction, in exact arithmetic or enclosed."""
        size = float(max((np.abs(part).max(initial=0.0) for part in (falls, slack, still)), default=0.0))
        if not (np.isfinite(size) and len(falls) and falls.min() > 0.0):
            return False
        slack = np.where(slack > 1e-9 * size, slack, 0.0)
        room = np.concatenate([falls, np.where(slack > 0.0, slack, 0.0), np.full(len(still), np.inf)])
        return _corrected(self.rows, np.concatenate([falls, slack, still]), room)


def significant(x: Array) -> Array | None:
    """x to nine digits of its largest entry: what a solver leaves of zeros is none of a direction."""
    size = float(np.abs(x).max(initial=0.0))
    return np.round(x / size, 9) if np.isfinite(size) and size > 0.0 else None


def allowed(falls: Any, slack: Any, still: Any, x: Sequence[Fraction]) -> bool:
    """True where nothing grows along x and some sample falls for ever, in exact arithmetic."""
    moved = signs(falls, x)
    grows = signs(still, x).any() or (moved < 0).any() or (signs(slack, x) < 0).any()
    return bool(not grows and (moved > 0).any())


# ---- multipliers -----------------------------------------------------------------------------------------------------
def _corrected(rows: Any, given: Array, room: Array) -> bool:
    """True where some x with rows'x = 0 exactly has |x - given| < room: found from a few rows, which all may move."""
    count = rows.shape[1]
    if count == 0:
        return True
    movable = np.flatnonzero(room > 0.0)
    if len(movable) < count and count > MOST_EXACT:
        return False
    finite = room[np.isfinite(room) & (room > 0.0)]
    weights = np.minimum(room[movable], float(np.median(finite)) if len(finite) else 1.0)
    chosen = _independent(rows, movable, weights)
    moved = _correction_bound(rows, chosen, given)
    if moved is not None and (moved < 0.99 * room[chosen]).all():
        return True
    return count <= MOST_EXACT and _rationally(rows, chosen, given, room)


def _independent(rows: Any, movable: Array, weights: Array) -> Array:
    """Rows that span the others, those with the most room first."""
    count = rows.shape[1]
    if count > MOST_DENSE:
        return movable[:0]
    if len(movable) > 40 * count + 400:  # a sample of them will do
        order = np.argsort(-weights * np.sqrt(np.asarray(rows[movable].power(2).sum(axis=1)).ravel()), kind="stable")
        movable, weights = movable[order[: 40 * count + 400]], weights[order[: 40 * count + 400]]
    dense = rows[movable].toarray() * weights[:, None]
    found: Any = heavy(2.0 * dense.size * count, lambda: scipy.linalg.qr(dense.T, mode="r", pivoting=True))
    R, order = found
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > 1e-13 * max(float(diagonal.max(initial=0.0)), 1e-300)).sum())
    return movable[order[:rank]]


def _correction_bound(rows: Any, chosen: Array, given: Array) -> Array | None:
    """A bound of how far the chosen entries of x = given move until rows'x = 0: with B the chosen rows' transpose and C
    about its inverse, |B^-1 r| <= |C r| / (1 - ||I - C B||). None where they are not as many as the equations, or
    nearly dependent."""
    count = rows.shape[1]
    if len(chosen) != count:
        return None
    B = rows[chosen].toarray().T
    try:
        C, product, sizes = heavy(4.0 * count**3, _inverse, B)
    except np.linalg.LinAlgError:
        return None
    off = np.abs(np.eye(count) - product) + (count + 4) * ROUNDING * sizes
    norm = float(off.sum(axis=1).max(initial=0.0)) * (1.0 + 1e-9)
    if not norm < 0.5:
        return None
    doubt = (rows.shape[0] + 4) * ROUNDING * (abs(rows).T @ np.abs(given)) + 1e-290
    left = np.abs(C) @ (np.abs(rows.T @ given) + doubt) * (1.0 + 1e-9)
    return left + norm / (1.0 - norm) * left.max(initial=0.0)


def _inverse(B: Array) -> tuple[Array, Array, Array]:
    """C, about the inverse, C B and |C| |B|."""
    C = np.linalg.inv(B)
    return C, C @ B, np.abs(C) @ np.abs(B)


def _rationally(rows: Any, chosen: Array, given: Array, room: Array) -> bool:
    if not len(chosen):
        return False
    left = products(rows, given)
    found = correction(rows[chosen].T, [-x for x in left])
    return found is not None and all(
        np.isinf(limit) or abs(x) < Fraction(float(limit)) for x, limit in zip(found, room[chosen], strict=True)
    )
