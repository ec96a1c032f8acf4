"""Small linear systems (Y'SY) z = T, solved with a bound of the error: how prices move so that totals vanish exactly.

The matrix is never formed: with a triangle V that nearly orthonormalises the columns of S^1/2 Y, Z = YV has
``Z'SZ = I + E`` with a small E, and the error grows with the condition of Y and not with its square. V may be any
matrix of floats: the bound of E proves that it is nonsingular.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...terms import Array
from ..rationals import Echelon, number
from .sums import EPS, MORE, total

ENOUGH = 0.5  # ||E||_inf below it proves Z'SZ nonsingular
RANK = 1e-14  # of the largest entry on the diagonal of the triangle
VANISHING = 1e-9  # of the largest coefficient: in a dependency between columns, one that is 0
MOST_COLUMNS, MOST_ENTRIES = 30, 50_000  # of a dependency that is proved in rational arithmetic
MOST_CELLS = 4_000  # of a system whose rank is found in rational arithmetic
EVENED = 10  # rounds of weights of rows


@dataclass(frozen=True)
class Systems:
    """A stack of g systems of one shape, Y (g, M, p) and S (g, M), with their triangles. ``ok`` (g,) tells which are
    proved nonsingular."""

    Y: Array
    S: Array
    V: Array
    Z: Array
    DZ: Array
    E: Array  # (g,)

    @property
    def ok(self) -> Array:
        return self.E < ENOUGH

    @staticmethod
    def of(Y: Array, S: Array, V: Array) -> Systems:
        Z, DZ = Y @ V, Y.shape[2] * EPS * (np.abs(Y) @ np.abs(V))
        off = deviation(Z, DZ, S[:, :, None]).sum(axis=2).max(axis=1, initial=0.0) * MORE
        return Systems(Y, S, V, Z, DZ, np.where(np.isfinite(off), off, np.inf))

    def solve(self, T: Array, tau: Array) -> tuple[Array, Array]:
        """(da, spread), both (g, M): prices that move by exactly da +- spread take the totals T +- tau (g, p) away."""
        p = T.shape[1]
        h = np.einsum("gij,gi->gj", self.V, T)
        dh = np.einsum("gij,gi->gj", np.abs(self.V), tau + p * EPS * np.abs(T)) * MORE
        E = np.minimum(self.E, ENOUGH)
        dz = dh + (E / (1.0 - E) * (np.abs(h) + dh).max(axis=1, initial=0.0))[:, None] * MORE
        move = np.einsum("gmi,gi->gm", self.Z, h)
        aZ = np.abs(self.Z)
        error = (p + 2) * EPS * np.einsum("gmi,gi->gm", aZ, np.abs(h))
        error = error + np.einsum("gmi,gi->gm", self.DZ, np.abs(h) + dz) + np.einsum("gmi,gi->gm", aZ, dz)
        return -self.S * move, self.S * error * MORE


def deviation(Z: Array, DZ: Array, s: Array) -> Array:
    """A bound of |I - Z'SZ|, entry by entry, for any Z within DZ of the one given; of one or a stack."""
    a, M = np.abs(Z), Z.shape[-2]
    turned = a.mT @ (s * DZ)
    E = np.abs(np.eye(Z.shape[-1]) - Z.mT @ (s * Z)) + (M + 3) * EPS * (a.mT @ (s * a))
    return E + turned + turned.mT + DZ.mT @ (s * DZ)


def _equilibrated(Y: Array, S: Array) -> tuple[Array, Array]:
    """S^1/2 Y D, of one or a stack, with columns of length 1 (or 0), and the diagonal of D."""
    W = np.sqrt(S)[..., None] * Y
    size = np.sqrt(np.einsum("...mi,...mi->...i", W, W))
    D = 1.0 / np.where(size > 0.0, size, 1.0)
    return W * D[..., None, :], D


def triangles(Y: Array, S: Array) -> Array:
    """V for a stack, by QR of the equilibrated S^1/2 Y; NaN where it is singular."""
    W, D = _equilibrated(Y, S)
    if W.shape[1] < W.shape[2]:
        return np.full((len(Y), Y.shape[2], Y.shape[2]), np.nan)
    R: Any = np.linalg.qr(W, mode="r")
    diagonal = np.abs(np.einsum("gii->gi", R))
    singular = ~(diagonal.min(axis=1, initial=np.inf) > RANK)
    R[singular] = np.eye(R.shape[2])
    V = D[:, :, None] * np.linalg.inv(R)
    V[singular] = np.nan
    return V


@dataclass(frozen=True)
class Reduced:
    """One system (M, p) on independent columns ``chosen``; those left out are exact combinations of them.

    ``ok`` where the totals of the chosen columns can be taken away; ``why`` says why not.
    """

    chosen: Array
    system: Systems | None
    why: str = ""


def reduced(Y: Array, S: Array, fixed: Array | None) -> Reduced:
    """A system whose columns may depend on one another. ``fixed`` (p,) are the totals of what does not move; None for
    none: then every dependency between columns is one between totals.

    A dependency (dummies that add up to the intercept, classes that add up to nothing, coordinates that a singular
    quadratic form does not see) is looked for in floating point and proved in rational arithmetic. Where rows of very
    different sizes hide the rank from floating point, they are weighted alike, and rational arithmetic finds it.
    """
    found = _triangular(Y, S, fixed)
    if not found.why or not S.any() or Y.size > MOST_CELLS or not (fixed is None or np.isfinite(fixed).all()):
        return found
    again = _triangular(Y, _evened(Y, S), fixed, exactly=True)
    return found if again.why else again


def _triangular(Y: Array, S: Array, fixed: Array | None, exactly: bool = False) -> Reduced:
    """A system on as many columns as seem independent, in the order of their pivots, or ``exactly`` those that are."""
    from scipy.linalg import qr, solve_triangular

    W, D = _equilibrated(Y, S)
    if not np.isfinite(W).all():
        return Reduced(np.arange(0), None, "columns are of sizes beyond all floats")
    W = W[np.argsort(-np.abs(W).max(axis=1))]
    with np.errstate(invalid="ignore"):
        found: Any = qr(W, mode="r", pivoting=True)
    R: Any = found[0]
    pivots = found[1]
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > RANK * diagonal.max(initial=0.0)).sum()) if diagonal.max(initial=0.0) > 0.0 else 0
    if rank == 0:
        return Reduced(pivots[:0], None, "no price has room")
    chosen, rest = pivots[:rank], pivots[rank:]
    if exactly:
        independent = _independent(Y, pivots, fixed)
        if independent is None:
            return Reduced(pivots, None, "columns depend on one another up to rounding")
        chosen, rest, rank = independent, pivots[:0], len(independent)
        R = np.linalg.qr(W[:, chosen], mode="r")
        if not np.diag(R).all():  # independent by prices that may not move
            return Reduced(chosen, None, "columns are nearly dependent")
    if len(rest):
        T = solve_triangular(R[:rank, :rank], R[:rank, rank:])
        combination = T * D[chosen][:, None] / D[rest]
        if not all(_proved(Y, chosen, c, j, fixed) for j, c in zip(rest, combination.T, strict=True)):
            return Reduced(rest, None, "columns depend on one another up to rounding")
    V = D[chosen][:, None] * solve_triangular(R[:rank, :rank], np.eye(rank))
    system = Systems.of(Y[None][:, :, chosen], S[None], V[None])
    return Reduced(chosen, system, "" if system.ok[0] else "columns are nearly dependent")


def _evened(Y: Array, S: Array) -> Array:
    """Weights of the rows that have one, so that the entries of S^1/2 Y D are as near to 1 as factors make them."""
    some = Y != 0.0
    size = np.log2(np.abs(np.where(some, Y, 1.0)))
    rows = np.zeros(len(Y))
    for _ in range(EVENED):
        columns = ((size + rows[:, None]) * some).sum(axis=0) / np.maximum(some.sum(axis=0), 1)
        rows = ((columns - size) * some).sum(axis=1) / np.maximum(some.sum(axis=1), 1)
    return np.where(S > 0.0, np.exp2(2.0 * rows), 0.0)


def _independent(Y: Array, order: Array, fixed: Array | None) -> Array | None:
    """The columns of Y that are, exactly, no combination of those before in the order; None where one is and its fixed
    total is not the same one."""
    rows = np.unique(Y, axis=0)
    system = Echelon(len(rows))
    totals = np.zeros(Y.shape[1]) if fixed is None else fixed
    new = [
        system.add([number(Fraction(x)) for x in rows[:, j].tolist()], number(Fraction(float(totals[j]))))
        for j in order
    ]
    return None if None in new else order[np.array(new)]


def _proved(Y: Array, chosen: Array, combination: Array, j: int, fixed: Array | None) -> bool:
    """Whether column j of Y is, exactly, a combination of the chosen ones, and its fixed total the same one."""
    size = np.abs(combination)
    if not np.isfinite(size).all() or not (fixed is None or np.isfinite(fixed).all()):
        return False
    some = np.flatnonzero(size > VANISHING * size.max(initial=0.0))
    columns, near = chosen[some], np.rint(combination[some])
    if fixed is None and np.abs(near).max(initial=1.0) == 1.0 and _adds_up(Y, columns, near, j):
        return True
    rows = np.unique(np.column_stack([Y[:, columns], Y[:, j]]), axis=0)
    if len(columns) > MOST_COLUMNS or rows.size > MOST_ENTRIES:
        return False
    exact = _rational(rows)
    if exact is None or fixed is None:
        return exact is not None
    totals = [Fraction(x) for x in fixed[columns].tolist()]
    return sum((c * x for c, x in zip(exact, totals, strict=True)), Fraction(0)) == Fraction(float(fixed[j]))


def _rational(rows: Array) -> list[Fraction] | None:
    """c with ``rows[:, :-1] c = rows[:, -1]`` exactly; None where there is none, or more than one."""
    system = Echelon(rows.shape[1] - 1)
    for row in rows.tolist():
        *left, right = map(Fraction, row)
        if system.add(left, right) is None:
            return None
    return system.solution([Fraction(0)] * system.count) if len(system.pivots) == system.count else None


def _adds_up(Y: Array, columns: Array, signs: Array, j: int) -> bool:
    """The same for coefficients -1, 0, 1, by sums that are exact or show that they are not."""
    parts = [sign * Y[:, k] for k, sign in zip(columns, signs, strict=True) if sign] + [-Y[:, j]]
    found = total(parts, [])
    return not (found.high.any() or found.low.any() or found.error.any())
