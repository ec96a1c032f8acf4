"""Small linear systems (Y'SY) z = T, solved with a bound of the error: how prices move so that totals vanish exactly.

The matrix is never formed: with a triangle V that nearly orthonormalises the columns of S^1/2 Y, Z = YV has
``Z'SZ = I + E`` with a small E, and the error grows with the condition of Y and not with its square. V may be any
matrix of floats: the bound of E proves that it is nonsingular.

Of a system of very many columns, few of them shared, cells of private columns come first, then the shared ones. So it
is where features that a penalty ties across the graph (shared columns) stand beside features that each node has for
itself (private ones). Triangle and inverse are arrows: linear work in the number of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...inputs import components_of, groups_of
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


# ---- very many columns, few of them shared ---------------------------------------------------------------------------
OFTEN = 4  # times the median number of entries: columns with more are shared
SHARED = 400  # the most of them


@dataclass(frozen=True)
class Cell:
    """One cell: its rows and private columns, V of these, N of the shared ones there, and Z = Y V with its error."""

    rows: Array
    columns: Array
    V: Array
    N: Array
    Z: Array
    DZ: Array


@dataclass(frozen=True)
class Arrow:
    """The system (Y'SY) z = T with V as an arrow; see `Systems`."""

    S: Array
    cells: list[Cell]
    shared: Array
    V: Array
    Z: Array
    DZ: Array
    E: float

    @staticmethod
    def of(Y: sp.csr_array, S: Array) -> Arrow | None:
        """None where the columns do not fall into cells, or no bound is found."""
        count = np.diff(sp.csc_array(Y).indptr)
        often = count > OFTEN * np.median(count)
        if often.sum() > SHARED:
            return None
        shared, private = np.flatnonzero(often), np.flatnonzero(~often)
        Ys = Y[:, shared].toarray()
        raw = _cells(sp.csr_array(Y[:, private]), S, Ys)
        if raw is None:
            return None
        found = _joined(raw, Ys, S, shared, private)
        return found if found is not None and found.E < ENOUGH else None

    def solve(self, T: Array, tau: Array) -> tuple[Array, Array]:
        """As `Systems.solve`, for a stack of one."""
        T, tau = T[0], tau[0]
        q = len(self.shared)
        hs = self.V.T @ T[self.shared]
        es = np.abs(self.V).T @ (tau[self.shared] + (q + 1) * EPS * np.abs(T[self.shared]))
        own: list[tuple[Array, Array]] = []
        for cell in self.cells:
            t = T[cell.columns]
            e = tau[cell.columns] + (len(t) + 1) * EPS * np.abs(t)
            hs, es = hs + cell.N.T @ t, es + np.abs(cell.N).T @ e + EPS * np.abs(hs)
            own.append((cell.V.T @ t, np.abs(cell.V).T @ e))
        es = es + (len(self.cells) + 2) * EPS * (np.abs(hs) + es)
        top = max([float((np.abs(h) + e).max(initial=0.0)) for h, e in [*own, (hs, es)]])
        dz = self.E / (1.0 - self.E) * top * MORE
        move = self.Z @ hs
        error = (q + 2) * EPS * (np.abs(self.Z) @ np.abs(hs)) + self.DZ @ (np.abs(hs) + es + dz)
        error = error + np.abs(self.Z) @ (es + dz)
        for cell, (h, e) in zip(self.cells, own, strict=True):
            aZ = np.abs(cell.Z)
            move[cell.rows] += cell.Z @ h
            error[cell.rows] += (len(h) + 2) * EPS * (aZ @ np.abs(h)) + cell.DZ @ (np.abs(h) + e + dz) + aZ @ (e + dz)
        error = error + 4 * EPS * np.abs(move)
        return (-self.S * move)[None], (self.S * error * MORE)[None]


def _cells(Y: sp.csr_array, S: Array, Ys: Array) -> list[Any] | None:
    """Rows, columns, Y, V and the shared part of the triangle for each cell; what it leaves of S^1/2 Ys in place."""
    M, p = Y.shape  # pyright: ignore[reportGeneralTypeIssues]  (scipy has no types)
    links = Y.tocoo()
    count, label = components_of(links.row, M + links.col, M + p)
    root, out = np.sqrt(S), []
    left = root[:, None] * Ys
    for rows, columns in zip(groups_of(label[:M], count), groups_of(label[M:], count), strict=True):
        if not len(columns):
            continue
        cell = Y[rows][:, columns].toarray()
        if len(rows) < len(columns):
            return None
        W = root[rows][:, None] * cell
        size = np.sqrt((W * W).sum(axis=0))
        if not size.min() > 0.0:
            return None
        Q, R = np.linalg.qr(W / size)
        diagonal = np.abs(np.diag(R))
        if not diagonal.min() > 10 * RANK * diagonal.max():
            return None
        side = Q.T @ left[rows]
        left[rows] -= Q @ side
        out.append((rows, columns, cell, np.linalg.inv(R) / size[:, None], side))
    return [out, left]


def _joined(raw: list[Any], Ys: Array, S: Array, shared: Array, private: Array) -> Arrow | None:
    found, left = raw
    q = len(shared)
    V = np.zeros((0, 0))
    if q:
        size = np.sqrt((left * left).sum(axis=0))
        if not size.min() > 0.0:
            return None
        R = np.linalg.qr(left / size, mode="r")
        if len(R) < q or not np.abs(np.diag(R)).min() > 10 * RANK:
            return None
        V = np.linalg.inv(R) / size[:, None]
    Zs, DZs = Ys @ V, (q + 1) * EPS * (np.abs(Ys) @ np.abs(V))
    cells: list[Cell] = []
    for rows, columns, Y, Vc, side in found:
        N = -Vc @ (side @ V)
        k = len(columns) + q + 2
        Zs[rows] += Y @ N
        DZs[rows] += k * EPS * (np.abs(Y) @ np.abs(N)) + EPS * np.abs(Zs[rows])
        cells.append(Cell(rows, private[columns], Vc, N, Y @ Vc, k * EPS * (np.abs(Y) @ np.abs(Vc))))
    return Arrow(S, cells, shared, V, Zs, DZs, _off(cells, Zs, DZs, S))


def _off(cells: list[Cell], Zs: Array, DZs: Array, S: Array) -> float:
    """A bound of the largest row sum of |I - Z'SZ|."""
    worst, cross = 0.0, np.zeros(Zs.shape[1])
    for cell in cells:
        s, zs, dzs = S[cell.rows][:, None], Zs[cell.rows], DZs[cell.rows]
        own = deviation(cell.Z, cell.DZ, s)
        a = np.abs(cell.Z).T
        other = np.abs(cell.Z.T @ (s * zs)) + (len(cell.rows) + 3) * EPS * (a @ (s * np.abs(zs)))
        other = other + cell.DZ.T @ (s * np.abs(zs)) + a @ (s * dzs) + cell.DZ.T @ (s * dzs)
        worst = max(worst, float((own.sum(axis=1) + other.sum(axis=1)).max()))
        cross = cross + other.sum(axis=0)
    if len(cross):
        worst = max(worst, float((deviation(Zs, DZs, S[:, None]).sum(axis=1) + cross).max()))
    return worst * MORE if np.isfinite(worst) else np.inf
