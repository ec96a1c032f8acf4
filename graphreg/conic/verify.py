"""The verifier: what a proposal proves of the optimal value, every rounding paid. It imports nothing that proposes.

**Lemma.** Let M be (m, N), y = high + low, and the rows of M be shared out among *pairs* (row i, column j(i)), the
*core* C and rows that are *left*. Let D, W be diagonal, W 0 at the columns of pairs, B = D M_C W, M_C 0 at the columns
of pairs, B B' >= f I with f > 0, and r >= |c - M y|. Put rho = W |D r_C| / sqrt(f) at the columns without a pair. If
at the columns of pairs rho >= 0 obeys

    r_i + sum over j != j(i) of |M_ij| rho_j  <=  |M_ij(i)| rho_j(i)      for each pair,

then there is y* with |y* - y| <= rho and (M y*)_i = c_i for all i in pairs and core.
*Proof.* v = B'(BB')^-1 D(c - M y)_C solves the core, |v| <= |D r_C| / sqrt(f). With these corrections W v elsewhere,
the map d_j(i) <- ((c - M y)_i - sum over j != j(i) of M_ij d_j) / M_ij(i) is continuous and maps the box |d| <= rho
into itself: Brouwer gives a fixed point. (Pairs that come from peeling are triangular: then it ends, and no theorem is
needed.)

y is a pair of doubles and its residual is known to about the square of the unit roundoff, so that any f that is not 0
leaves a tiny rho: no scaling by the cones is needed here, boxes do. What is near the boundary is the proposer's care.

Arithmetic: IEEE doubles, to nearest, gradual underflow; U = EPS / 2 is the unit roundoff. A sum of k products that are
rounded, in any order, with or without fused multiply-add, misses at most k U / (1 - k U) times the sum of magnitudes;
(k + 3) EPS pays that twice, which covers what bounds of this kind lose when they are rounded themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..certificate import (
    DUST,
    EPS,
    MORE,
    Pair,
    RefusedError,
    below,
    down,
    in_range,
    magnitudes,
    need,
    product,
    sums,
    upwards,
)
from ..terms import Array
from .programme import Block, Programme, Sparse, System

LN2 = 0.6931471805599453  # the double nearest to log 2, which misses less than 2.4e-17
LEAST = 1e-200  # of a radius that is not 0
EXACTLY = 40  # rows of a matrix that is looked at in rational numbers, within a second or so
TERMS = 11  # of the series of log


@dataclass(frozen=True, eq=False)
class Factor:
    """L L' is near S - shift I; L is an array of numpy or scipy.sparse."""

    L: Any
    shift: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """A point near which the equations of a system are thought to be solved, see the lemma.

    Attributes
    ----------
    high, low : (N,) arrays
        y = high + low; what is exactly 0, in no pair and of weight 0 stays 0.
    rows, columns : (k,) arrays
        The pairs.
    radius : (k,) array
        rho at the columns of the pairs.
    core : array
        The rows of the core.
    scale, weight : arrays
        The diagonals of D and W, powers of two or 0.
    factor : Factor or None
        Of B B'; None without a core.
    left : array
        The rows that are left.
    witness : tuple
        For each of them the multiples of other rows whose sum it is thought to be, by row.
    """

    high: Array
    low: Array
    rows: Array
    columns: Array
    radius: Array
    core: Array
    scale: Array
    weight: Array
    factor: Factor | None
    left: Array
    witness: tuple[dict[int, Fraction], ...]


@dataclass(frozen=True, eq=False)
class Reached:
    """An exact solution y* lies within ``radius`` of high + low, inside the cones; of the rows that were left, M y* - c
    is at most ``missed``."""

    proposal: Proposal
    radius: Array
    missed: Array

    @property
    def high(self) -> Array:
        """The leading part of the point."""
        return self.proposal.high

    def pair(self, beyond: int | None = None) -> Pair:
        """The entries of y*, or the first of them."""
        return Pair(self.high[:beyond], self.proposal.low[:beyond], self.radius[:beyond])

    def live(self) -> Array:
        """True at entries that are not exactly 0."""
        return (self.high != 0.0) | (self.proposal.low != 0.0) | (self.radius != 0.0)


def reach(system: System, given: Proposal, slack: Array | None = None) -> Reached:
    """An exact solution near a proposal, inside the cones; also where in the box rows differ by at most ``slack`` from
    what is stored, see the lemma in `graphreg.conic.formula`.

    Raises
    ------
    RefusedError
        Where the proposal proves none.
    """
    M, (m, N) = system.M, system.M.shape
    slack = np.zeros(m) if slack is None else slack
    shares = np.sort(np.concatenate([given.rows, given.core, given.left]))
    need(np.array_equal(shares, np.arange(m)), "the rows are not shared out")
    need(len(np.unique(given.columns)) == len(given.columns) == len(given.rows), "two rows share a column")
    need(
        all(map(below, (M.data, system.c, given.high, given.low, given.radius, given.weight, slack))),
        "numbers that are too large",
    )
    need(((given.columns >= 0) & (given.columns < N)).all(), "a column that is none")
    need((slack >= 0.0).all(), "rows that differ by less than nothing")
    need((given.radius >= LEAST).all() and not given.weight[given.columns].any(), "a pair of no room")
    r = (residual(M, system.c, given.high, given.low).size() + slack) * MORE  # which pays for the core's radius too
    radius = core_radius(M, r, given) if len(given.core) else np.zeros(N)
    radius[given.columns] = given.radius
    own, others = pairs(M, given.rows, given.columns)
    taken = (r[given.rows] + sizes(others) @ radius) * MORE
    need((taken < np.abs(own) * given.radius).all(), "a correction leaves its room")
    missed = (r[given.left] + sizes(M[given.left]) @ radius) * MORE
    found = Reached(given, radius, missed)
    for k, (row, witness) in enumerate(zip(given.left.tolist(), given.witness, strict=True)):
        if slack[[row, *witness]].any() or not witness.keys().isdisjoint(given.left.tolist()):
            continue
        if excess(system, row, witness, found.live()) == 0:
            missed[k] = 0.0
    for block in system.blocks:
        need(inside(block, found, system.dual), f"not inside a {block.kind} cone")
    return found


def pairs(M: Sparse, rows: Array, columns: Array) -> tuple[Array, Sparse]:
    """The entries of pairs, 0 where there are none, and their rows without them."""
    G, entries = M[rows], np.zeros(len(rows))
    at = np.repeat(np.arange(len(rows)), np.diff(G.indptr))
    own = G.indices == columns[at]
    entries[at[own]] = G.data[own]
    G.data[own] = 0.0
    return entries, G


def residual(M: Sparse, c: Array, high: Array, low: Array) -> Pair:
    """M (high + low) - c by exact products, and sums with two exact layers."""
    place, j, data = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr)), M.indices, M.data
    p, e, off = product(data, high[j])
    rest, rows = np.append(data * low[j], -c), np.append(place, np.arange(len(c)))
    missed = np.append(EPS * np.abs(data * low[j]) + DUST * (low[j] != 0.0), 0.0 * c)
    return sums([(place, Pair(p, e, off)), (rows, Pair(rest, 0.0 * rest, missed))], len(c))


def sizes(M: Sparse) -> Sparse:
    """Not less than |M|, and so large that no product with a radius underflows."""
    return sp.csr_array((magnitudes(M.data, 1e-100), M.indices, M.indptr), shape=M.shape)


def _times(x: Array, y: Array) -> Array:
    """Not less than x y, of powers of two, or 0, and numbers that are at least 0; 0 or at least `LEAST`."""
    return np.where((x > 0.0) & (y > 0.0), np.maximum(x * y, LEAST), 0.0)


def longest(M: Sparse) -> int:
    return int(np.diff(M.indptr).max(initial=0))


def core_radius(M: Sparse, r: Array, given: Proposal) -> Array:
    """rho at the columns without a pair, by the core's least singular value."""
    C, D, W = M[given.core], given.scale, given.weight
    paired = np.zeros(M.shape[1], bool)
    paired[given.columns] = True
    need(not paired[C.indices].any(), "a pair's column in the core")
    for x in (D, W):
        need((np.frexp(x)[0][x != 0.0] == 0.5).all() and below(x), "scales that are no powers of two")
    B = scaled(C, D, W)
    need(in_range(B.data), "a core that is badly scaled")  # no product underflows
    if given.factor is None:
        raise RefusedError("a core without a factor")
    f = floor(*squared(B), given.factor)
    need(f > 0.0, "a core that may be singular")
    most = float(_times(D, r[given.core]).max())
    return _times(W, np.array(most * np.sqrt(len(D) / f)))  # a sum of squares is at most their number's worth


def scaled(M: Sparse, D: Array, W: Array) -> Sparse:
    """D M W, of diagonals D and W."""
    data = M.data * np.repeat(D, np.diff(M.indptr)) * W[M.indices]
    return sp.csr_array((data, M.indices, M.indptr), shape=M.shape)


def squared(B: Sparse) -> tuple[Sparse, Array]:
    """B B', and how far its rows may be off, in the sum of magnitudes."""
    size = abs(B)
    return sp.csr_array(B @ B.T), (longest(B) + 3) * EPS * (size @ (size.T @ np.ones(B.shape[0])))


def curvature(P: Sparse, factor: Factor | None) -> float:
    """At most 0, and at most the least eigenvalue of P, of the variables that stand in it."""
    d = P.diagonal()
    if P.nnz == np.count_nonzero(d):
        return float(d.min(initial=0.0))
    if factor is None or (P != P.T).nnz:
        raise RefusedError("a matrix that is not symmetric, or without a factor")
    found = floor(P, np.zeros(len(d)), factor)
    return 0.0 if found >= 0.0 or (len(d) <= EXACTLY and semidefinite(P)) else found


def semidefinite(P: Sparse) -> bool:
    """True where P is positive semidefinite: by elimination in rational numbers, for the sake of singular matrices."""
    rows = [[Fraction(x) for x in row] for row in P.toarray().tolist()]
    while rows:
        first, *rest = rows
        if first[0] < 0 or (first[0] == 0 and any(first)):
            return False
        rows = [row[1:] if not row[0] else _less(row, first) for row in rest]
    return True


def _less(row: list[Fraction], first: list[Fraction]) -> list[Fraction]:
    """A row less that multiple of the first one which leaves nothing in the first column; without that column."""
    times = row[0] / first[0]
    return [a - times * b if b else a for a, b in zip(row[1:], first[1:], strict=True)]


def floor(S: Sparse, off: Array, factor: Factor) -> float:
    """A lower bound of the eigenvalues of every symmetric matrix whose row i is within ``off[i]``, in the sum of
    magnitudes, of that of S: S - shift I - L L' is computed, and the norm of a symmetric matrix is at most its greatest
    sum of a row's magnitudes. L L' itself has no negative eigenvalue, whatever L is. Each of its entries has at most as
    many products as a row of L has entries, and S and what is left in between are rounded by EPS / 2 of themselves."""
    n, L, shift = len(off), factor.L, factor.shift
    need(L.shape[0] == n, "no factor")
    rest = S - L @ L.T - shift * sp.eye_array(n)
    worst = float((abs(rest) @ np.ones(n) + roundings(S, factor) + off).max()) * MORE + n * DUST
    return shift - worst if np.isfinite(worst) else -np.inf


def roundings(S: Sparse, factor: Factor) -> Array:
    """What floats may miss of S - shift I - L L', in the sums of magnitudes of its rows."""
    size, ones = abs(factor.L), np.ones(S.shape[0])
    magnitudes = abs(S) @ ones + size @ (size.T @ ones)
    return (longest(sp.csr_array(size)) + 8) * EPS * (magnitudes + abs(factor.shift))


# ---- cones -----------------------------------------------------------------------------------------------------------
def inside(block: Block, found: Reached, dual: bool) -> bool:
    """True where the whole box of a block lies in its cone, or in the dual of it."""
    at = block.place
    if block.kind in ("free", "zero"):
        return block.kind == "free"
    if block.kind == "nonneg":
        return bool((down(Pair(found.high[at], found.proposal.low[at], found.radius[at])) >= 0.0).all())
    v = found.high[at] + found.proposal.low[at]
    off = upwards(found.radius[at] + EPS * np.abs(v), 3)
    if not (v.any() or off.any()):
        return True
    if block.kind == "soc":
        return in_second_order(v.reshape(-1, int(block.size)), off.reshape(-1, int(block.size)))
    if block.kind == "psd":
        return in_semidefinite(v, off, int(block.size))
    x, y, z = v.reshape(-1, 3).T
    rx, ry, rz = off.reshape(-1, 3).T
    return bool((in_power if block.kind == "pow" else in_exponential)((x, y, z), (rx, ry, rz), block.size, dual).all())


def in_second_order(V: Array, off: Array) -> bool:
    """True where t >= |u| for all (t, u) in the box of each row; the cone is its own dual."""
    t, u = V[:, 0] - off[:, 0], np.abs(V[:, 1:]) + off[:, 1:]  # t may be 0, exactly, where u is
    squares = upwards((u * u).sum(axis=1), V.shape[1] + 7)  # with those of u, of t, of t t, and of what is left of that
    return bool(((t >= 0.0) & (~u.any(axis=1) | (squares <= t * t - DUST))).all())


def in_semidefinite(v: Array, off: Array, k: int) -> bool:
    """True where every matrix in the box is positive semidefinite; the cone is its own dual. Entries off the diagonal
    are divided by the square root of two, or by the double next to it: both lie within 4 EPS."""
    j, i = np.tril_indices(k)
    share = np.where(i == j, 1.0, 0.7071067811865476)
    S, R = np.zeros((2, k, k))
    S[i, j] = S[j, i] = v * share
    R[i, j] = R[j, i] = off + 4 * EPS * np.abs(v)  # the floor pays for its sums
    small = np.abs(S) < 1e-140  # so that no scaling underflows
    S, R = np.where(small, 0.0, S), R + np.where(small, np.abs(S), 0.0)
    live = R.any(axis=0)  # which covers S
    S, R = S[np.ix_(live, live)], R[np.ix_(live, live)]
    scale = 2.0 ** -np.round(np.log2(np.maximum(np.diag(S), 1e-200)) / 2)  # powers of two: without rounding
    S, off = S * scale * scale[:, None], (R * scale * scale[:, None]) @ np.ones(len(S))
    shift = 2.0 * float(off.max()) + 8 * len(S) * (len(S) + 8) * EPS  # more than what the floor takes off
    try:
        factor = Factor(np.linalg.cholesky(S - shift * np.eye(len(S))), shift)
    except np.linalg.LinAlgError:
        return False
    return floor(S, off, factor) >= 0.0


def log_bounds(r: Array) -> tuple[Array, Array]:
    """log r for r > 0, and what it misses: with r = 2^k m, |log m| <= log(2) / 2 and t = (m - 1) / (m + 1), it is
    k log 2 + 2 (t + t^3/3 + ...). m - 1 is exact, t misses 2 units of roundoff of itself, what is cut off after 11
    terms less than t (.0295)^11 / 23 < 1e-18 t, Horner's rule with t^2 < .03 at most 4 units, the two products and the
    sum 1 each, the constant 1: fewer than 16 units of |k| log 2 + |log m| in all."""
    m, k = np.frexp(r)
    low = m < np.sqrt(0.5)
    m, k = np.where(low, 2 * m, m), k - low
    t = (m - 1.0) / (m + 1.0)
    series = np.zeros_like(t)
    for i in reversed(range(TERMS)):
        series = series * (t * t) + 1.0 / (2 * i + 1)
    fine, coarse = 2.0 * t * series, k * LN2
    return coarse + fine, 8 * EPS * (np.abs(coarse) + np.abs(fine)) + DUST


Three = tuple[Array, Array, Array]


def in_exponential(v: Three, off: Three, size: float, dual: bool) -> Array:
    """True where y log(z / y) >= x, y, z > 0 in the whole box; of the dual cone, where y - x (1 + log(z / -x)) >= 0,
    x < 0 < z. Both are concave, falling in x resp. rising in y, and rising in z: two corners are enough. Or in the
    face of the limit, where y, resp. x, is exactly 0: there x <= 0, resp. y >= 0, and z >= 0."""
    del size
    (x, y, z), (rx, ry, rz) = v, off
    falls, rests, fall, rest = (y, x, ry, rx) if not dual else (-x, -y, rx, ry)  # p log(z / p) - rests, or + p
    ok = np.ones(len(x), bool)
    top, last = rests + rest, z - rz
    for p in (falls - fall, falls + fall):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratio = last / p
            log, missing = log_bounds(np.where((p > 0.0) & (ratio > 1e-280) & (ratio < 1e280), ratio, np.nan))
            # corners are rounded, by EPS / 2 of themselves each, the ratio by 3 of these, its log by as much; what is
            # rounded of the product is at most that of top and of the difference
            error = p * (missing + 8 * EPS) + 8 * EPS * np.abs(top) + DUST
            ok &= p * (log + float(dual)) - top >= error
    return ok | (falls == 0.0) & (fall == 0.0) & (top <= 0.0) & (last >= 0.0)


def in_power(v: Three, off: Three, a: float, dual: bool) -> Array:
    """True where x^a y^(1-a) >= |z|, x, y > 0 in the whole box; of the dual cone with x / a and y / (1 - a)."""
    x, y, z = v[0] - off[0], v[1] - off[1], np.abs(v[2]) + off[2]
    if dual:
        x, y = x / a, y / (1.0 - a)
    some = (np.where(t > 1e-290, t, np.nan) for t in (x, y, np.maximum(z, 1e-280)))
    (x, y, z), missing = zip(*map(log_bounds, some), strict=True)
    error = sum(missing) + 8 * EPS * (1.0 + sum(map(np.abs, (x, y, z))))
    return (0.0 < a < 1.0) & (a * x + (1.0 - a) * y - z >= error)


# ---- values ----------------------------------------------------------------------------------------------------------
def linear(a: Array, x: Pair) -> Pair:
    """a'x over a box."""
    at = residual(sp.csr_array(a[None]), np.zeros(1), x.high, x.low)
    return Pair(at.high, at.low, (at.error + np.abs(a) @ x.error) * MORE + len(a) * DUST)


def quadratic(P: Sparse, x: Pair) -> tuple[float, float]:
    """x'Px / 2 and how far off it is, over a box."""
    if not P.nnz:
        return 0.0, 0.0
    v, radius = x.high, np.abs(x.low) + x.error
    g, size = P @ v, abs(P)
    value, most = float(v @ g) / 2.0, np.abs(v)
    rounding = (len(v) + longest(P) + 6) * EPS * float(most @ (size @ most)) / 2.0
    moved = float(radius @ (np.abs(g) + (longest(P) + 3) * EPS * (size @ most) + (size @ radius) / 2.0))
    return value, (rounding + moved) * MORE + len(v) * DUST


def upper_value(p: Programme, found: Reached) -> float:
    """Not less than the objective at the exact point of `primal`."""
    need(not found.missed.any(), "an equality that is not met")
    x = found.pair(len(p.q))
    value, error = quadratic(p.P, x)
    return -_below(linear(-p.q, x), -value, error)


def lower_value(p: Programme, found: Reached, curvature: float, most: Array, far: Array) -> float:
    """Not more than the optimal value, by the exact point of `dual`.

    With A'z + Pu + q = e and z in the dual cones, x'Px/2 + q'x >= -b'z - u'Pu/2 + e'x + (x - u)'P(x - u)/2 wherever x
    is feasible. ``curvature`` is at most 0 and no eigenvalue of P is less; ``most`` bounds |x| and ``far`` |x - u|,
    both rounded upwards, inf where nothing is known.
    """
    m, y, left = len(p.b), found.pair(), found.proposal.left
    u = np.zeros((3, len(p.q)))
    u[:, p.curved] = y.high[m:], y.low[m:], y.error[m:]
    value, error = quadratic(p.P, Pair(*u))
    owed = found.missed > 0.0
    paid = float(found.missed[owed] @ most[left][owed])
    if curvature < 0.0:
        paid -= curvature * float(far[p.curved] @ far[p.curved])
    return _below(linear(-p.b, found.pair(m)), -value, error + paid)


def _below(first: Pair, second: float, error: float) -> float:
    """Not more than the sum of a pair and a number that is known up to an error."""
    start = down(first).item()
    return start + second - (error + 2 * EPS * (abs(start) + abs(second)) + DUST) * MORE


def contradicts(p: Programme, found: Reached) -> bool:
    """True where the exact point of `contradiction` proves that no x is feasible."""
    return not found.missed.any() and down(linear(-p.b, found.pair())).item() > 0.0


def descends(p: Programme, found: Reached) -> bool:
    """True where the exact point of `descent` is a direction in which the objective falls without end."""
    return not found.missed.any() and down(linear(-p.q, found.pair(len(p.q)))).item() > 0.0


# ---- rows that follow from others, in exact arithmetic ---------------------------------------------------------------
def excess(system: System, row: int, witness: dict[int, Fraction], live: Array) -> Fraction | None:
    """c_row less what the other rows say it is, where the row is exactly the sum of the witness's multiples of them at
    all columns that are live; None where it is not."""
    M, total, right = system.M, dict[int, Fraction](), Fraction(float(system.c[row]))
    for i, times in ((row, Fraction(1)), *((i, -t) for i, t in witness.items() if i != row)):
        at = slice(M.indptr[i], M.indptr[i + 1])
        for j, a in zip(M.indices[at].tolist(), M.data[at].tolist(), strict=True):
            if live[j]:
                total[j] = total.get(j, Fraction(0)) + times * Fraction(a)
        if i != row:
            right += times * Fraction(float(system.c[i]))
    return None if any(total.values()) else right
