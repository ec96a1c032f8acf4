"""Proposals: a point from somewhere, moved to where the equations hold and the cones have room, and what `verify` asks
of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from qdldl import Solver
from scipy.linalg import qr

from .. import verify
from ..certificate import EPS, MORE, RefusedError
from ..terms import Array
from .canonical import Answer
from .cones import held, inward, projected, scaling
from .programme import Programme, Sparse, System, optimum
from .verify import (
    EXACTLY,
    LEAST,
    Factor,
    Proposal,
    Reached,
    excess,
    floor,
    pairs,
    reach,
    residual,
    roundings,
    scaled,
    squared,
)

FACES = (1e-7, 1e-5)  # below which, of the largest entry, parts are held at 0
SHIFTS, ON_FACES = range(-9, 0), 5  # powers of ten by which a start is shifted inwards; so many of them on faces
SLOW = 5  # steps that do not shorten what is left by a third, after which a start is given up
Solve = Callable[[Array], Array] | None
Slack = Callable[[Array], Array]

ROUNDS = 20  # of steps from one start
ALLOWED = 1e-6  # of the largest entry: a radius for which there is slack from the start
ROUNDED = 4 * EPS  # of the sum of magnitudes of an equation: what it misses by rounding
SWEEPS = 20  # in which a radius and the slack at it settle
STIFF = tuple(16.0**-k for k in range(1, 9))  # shifts that are tried, of rows of length 1, where residuals are not tiny
REGULAR = (1e-20, 1e-16, 1e-13, 1e-10)  # what is added to the equations' diagonal, of rows of length 1
SIMPLE = 1e-3  # the least multiple of a row that is looked for where another is a sum of such
DENSE = 0.15  # of all entries of a factor: where more of them are not 0, it is no sparse one
PEELINGS = 40  # rounds in which pairs are found


def near(system: System, start: Array, least: float = 1.0, slack: Slack | None = None) -> Iterator[Reached]:
    """What is proved near a point: as it is, on coordinate faces of the cones, and further inside them; by how much is
    relative to its largest entry, or ``least``. With ``slack`` it holds of all systems whose rows differ by at most so
    much at sizes of y, see `graphreg.conic.formula`."""
    if not np.isfinite(start).all():
        return
    y = projected(start, system.blocks)
    e = inward(system.blocks, len(y))
    scale = max(least, float(np.abs(y[e != 0.0]).max(initial=0.0)))
    steps, some, tried = _Steps(system), False, set[bytes]()

    def found(shift: float, face: float = 0.0) -> list[Reached]:
        below = face * scale if face or shift else LEAST  # what is 0 has no room to be moved
        zero = held(y, system.blocks, below, system.dual)
        if shift == 0.0 and zero.tobytes() in tried:
            return []
        tried.add(zero.tobytes())
        at = settled(steps, np.where(zero, 0.0, y + shift * scale * e))
        try:
            return [] if at is None else [reached(system, proposal(system, at, zero), slack)]
        except RefusedError:
            return []

    for face in (0.0, *FACES):
        for each in found(0.0, face):
            some = True
            yield each
    for face, shifts in ((0.0, SHIFTS), *product(FACES, [SHIFTS[:ON_FACES]])):
        for k in () if face and some else shifts:
            each = found(10.0**k, face)
            yield from each
            if each:
                some = some or not face
                break


def reached(system: System, given: Proposal, slack: Slack | None) -> Reached:
    """What a proposal proves: what the slack may be depends on the radius, and that on the slack.

    Raises
    ------
    RefusedError
        Where that is nothing.
    """
    if slack is None:
        return reach(system, given)
    given, y = _stiff(system, given), np.abs(given.high)
    size = y + ALLOWED * y.max(initial=0.0)
    for _ in range(SWEEPS):
        d = slack(size * MORE)
        found = reach(system, _with_radius(system, given, d), d)
        if (slack(found.pair().size()) <= d).all():
            return found
        size = size + 2.0 * found.radius
    raise RefusedError("rounded numbers leave no room in the rows")


def settled(steps: _Steps, y: Array) -> Array | None:
    """The point after steps of least length, measured by the cones (see `scaling`), until rounding is what is left."""
    least, slow = np.inf, 0
    for _ in range(ROUNDS):
        T = scaling(y, steps.system.blocks, steps.system.dual, steps.unit)
        if T is None:
            return None
        step, inner, longest = steps.step(y, T)
        if not np.isfinite(longest):
            return None
        if longest < 1e-6 and (longest > 0.3 * least or longest < 1e-13):
            return y
        slow = slow + 1 if longest > 0.7 * least else 0
        if slow == SLOW:
            return None
        least = min(least, longest)
        y = y + min(1.0, 0.6 / max(inner, 1e-300)) * step
    return None


def polished(p: Programme, answer: Answer) -> Iterator[Answer]:
    """The point at which all equations hold that of each slack and its price the larger one leaves, as measured by the
    units of the equations, where all cones are lines."""
    if answer.ray or not p.in_lines:
        return
    system, n, k = optimum(p), len(p.q), len(p.in_cones)
    steps = _Steps(system)
    s, z = (p.b - p.A @ answer.x)[p.in_cones], answer.z[p.in_cones]
    units = steps.unit[n : n + k], steps.unit[len(steps.unit) - k :]
    sizes = [
        np.abs(v / u) / max(float(np.abs(v / u).max(initial=0.0)), 1e-300) for v, u in zip((s, z), units, strict=True)
    ]
    tight = sizes[0] < sizes[1]
    y = np.concatenate([answer.x, np.where(tight, 0.0, s), answer.z])
    y[len(y) - k :] = np.where(tight, z, 0.0)
    found = settled(steps, y)
    if found is not None:
        yield Answer(found[:n], found[n + k :], by=f"a corner near {answer.by}")


class _Steps:
    """Least corrections v of M (y + T v) = c, from the quasidefinite system of [[0, B], [B', -I]], B = D M T."""

    def __init__(self, system: System) -> None:
        self.system, self.unit, self.sizes = system, even(system.M)[1], abs(system.M)
        self.cone = np.zeros(system.M.shape[1], int)  # the number of the cone in which an entry lies, 0 where in none
        for block in system.blocks:
            count = block.place.stop - block.place.start
            each = {"free": 0, "nonneg": 1, "soc": int(block.size), "psd": count}.get(block.kind, 3)
            if each:
                self.cone[block.place] = self.cone.max() + 1 + np.arange(count) // each

    def step(self, y: Array, T: Sparse) -> tuple[Array, float, float]:
        """T v, the length of the longest part of v that belongs to one cone, and that of the longest of all parts; none
        where what the equations miss is what rounding leaves."""
        M, c, (m, n) = self.system.M, self.system.c, self.system.M.shape
        r = residual(M, -c, -y, np.zeros(n))
        r = r.high + r.low
        if (np.abs(r) <= ROUNDED * (self.sizes @ np.abs(y) + np.abs(c))).all():
            return 0.0 * y, 0.0, 0.0
        B = sp.csc_array(M @ T)
        length = np.sqrt(np.bincount(B.indices, B.data * B.data, m))
        D = 1.0 / np.where(length > 0.0, length, 1.0)
        B.data = B.data * D[B.indices]
        solve, r, v = _least(B), D * r, np.zeros(n)
        for _ in range(2):
            v = v + solve(np.concatenate([r - B @ v, np.zeros(n)]))[m:]
        parts = np.sqrt(np.bincount(self.cone, v * v))
        inner, free = float(parts[1:].max(initial=0.0)), float(np.abs(v[self.cone == 0]).max(initial=0.0))
        return T @ v, inner, max(inner, free)


def _least(B: Sparse) -> Callable[[Array], Array]:
    """How to solve the system, with as little on its diagonal as can be: rows may follow from others."""
    (m, n), data = B.shape, np.insert(B.data, B.indptr[1:], -1.0)
    indices = np.concatenate([np.arange(m), np.insert(B.indices, B.indptr[1:], m + np.arange(n))])
    starts = np.concatenate([np.arange(m), m + B.indptr + np.arange(n + 1)])
    for regular in REGULAR:
        K = sp.csc_matrix((np.concatenate([np.full(m, regular), data]), indices, starts), shape=(m + n, m + n))
        try:
            return Solver(K, upper=True).solve
        except RuntimeError:
            continue
    return lambda r: np.full(len(r), np.nan)


# ---- what the verifier asks for --------------------------------------------------------------------------------------
def peeled(M: Sparse, room: Array) -> tuple[Array, Array, Array]:
    """Pairs of a row and a column that stands in no other row of those that are left, round by round, and the rows that
    are left in the end; ``room`` says how much a column can be moved, 0 for none."""
    M = M.tocsc()
    left, rows, columns = np.ones(M.shape[0], bool), list[Array](), list[Array]()
    row, column = M.indices, np.repeat(np.arange(M.shape[1]), np.diff(M.indptr))
    size = np.abs(M.data)
    for _ in range(PEELINGS):
        alive = left[row] & (size > 0.0)
        row, column, size = row[alive], column[alive], size[alive]
        single = (np.bincount(column, minlength=M.shape[1]) == 1)[column] & (room[column] > 0.0)
        if not single.any():
            break
        i, j, weight = row[single], column[single], size[single] * room[column[single]]
        order = np.lexsort((-weight, i))
        first = order[np.unique(i[order], return_index=True)[1]]
        rows.append(i[first])
        columns.append(j[first])
        left[i[first]] = False
    none = [np.zeros(0, int)]
    return np.concatenate(rows or none), np.concatenate(columns or none), np.flatnonzero(left)


def proposal(system: System, y: Array, zero: Array) -> Proposal:
    """How the equations are solved near a point: by pairs, and by least squares in the core of the other rows."""
    M, N = system.M, system.M.shape[1]
    rows, columns, rest = peeled(M, np.where(zero, 0.0, np.abs(y) + _free_room(system, y)))
    weight = np.where(zero, 0.0, 1.0)
    weight[columns] = 0.0
    core, scale, weight, factor, solve = _core(M, rest, weight)
    left = np.setdiff1d(rest, core)
    witness = tuple(_combination(system, row, core, (scale, weight), solve, ~zero) for row in left.tolist())
    low, C, (own, others) = np.zeros(N), M[core], pairs(M, rows, columns)
    for _ in range(1 if solve is None else 2):  # once is enough where rows follow from each other
        r = residual(M, -system.c, -y, -low)
        r, more = r.high + r.low, np.zeros(N)
        if solve is not None:
            more = weight**2 * (C.T @ (scale * solve(scale * r[core])))
        low = low + _followed(others, -own, -r[rows], more, columns)
    given = Proposal(y, low, rows, columns, np.zeros(len(rows)), core, scale, weight, factor, left, witness)
    return _with_radius(system, given, np.zeros(len(system.c)))


def _with_radius(system: System, given: Proposal, slack: Array) -> Proposal:
    """With room for what rows are off, and some slack more."""
    M, core, factor = system.M, given.core, given.factor
    r = residual(M, system.c, given.high, given.low).size() + slack
    radius = np.zeros(M.shape[1])
    if len(core) and factor is not None:
        radius = given.weight * float((given.scale * r[core]).max()) * np.sqrt(8 * len(core) / factor.shift)
        radius = np.where(given.weight > 0.0, np.maximum(radius, LEAST), 0.0)
    own, others = pairs(M, given.rows, given.columns)
    own = np.abs(own) * (1 - 1e-6)
    _followed(abs(others), own, r[given.rows] + 2 * LEAST * own, radius, given.columns)
    return replace(given, radius=radius[given.columns])


def _followed(others: Sparse, own: Array, r: Array, x: Array, columns: Array) -> Array:
    """x with (others x + r) / own at the columns of pairs, which follow from those of later rounds."""
    for _ in range(PEELINGS + 1):
        before, x[columns] = x[columns], (others @ x + r) / own
        if np.array_equal(before, x[columns]):
            break
    return x


def _stiff(system: System, given: Proposal) -> Proposal:
    """With a factor that proves much of the core's least singular value, where there is one."""
    if not len(given.core):
        return given
    B = scaled(system.M[given.core], given.scale, given.weight)
    return replace(given, factor=next(definite(sp.csr_array(B @ B.T), STIFF), given.factor))


def _combination(
    system: System, row: int, core: Array, scales: tuple[Array, Array], solve: Solve, live: Array
) -> dict[int, Fraction]:
    """The multiples of the core's rows of which a row may be the sum; of data that people write they are simple, and
    of any data they are found among rational numbers where there are few."""
    if solve is None:
        return {}
    C, own, (scale, weight) = system.M[core], system.M[[row]].toarray().ravel(), scales
    u = scale * solve(scale * (C @ (weight**2 * own)))
    some = np.flatnonzero(np.abs(u) > 1e-9 * np.abs(u).max(initial=0.0))
    found, few = _simple(core[some], u[some]), 0 < len(some) <= EXACTLY
    if not few or (found and excess(system, row, found, live) is not None):
        return found
    A = np.where(live, C[some].toarray(), 0.0)
    columns = pivots(A * scale[some, None] * weight)[: len(some)]
    verify.begin(False)
    numbers = [[verify.exact(x) for x in each] for each in np.vstack([A, own])[:, columns].T.tolist()]
    try:
        times = verify.solved([each[:-1] for each in numbers], [each[-1] for each in numbers])
    except ZeroDivisionError:
        return found
    return dict(zip(core[some].tolist(), times, strict=True))


def _simple(rows: Array, times: Array) -> dict[int, Fraction]:
    """The simple fractions near some multiples of rows; none where one is not simple."""
    found = dict[int, Fraction]()
    for i, x in zip(rows.tolist(), times.tolist(), strict=True):
        near = Fraction(x).limit_denominator(round(1 / SIMPLE))
        if abs(x - float(near)) > SIMPLE**2 / 10:
            return {}
        found |= {i: near} if near else {}
    return found


def pivots(M: Array) -> Array:
    """The columns of a matrix, those first that depend least on others."""
    factors: Any = qr(M, mode="r", pivoting=True)
    return factors[1]


def _free_room(system: System, y: Array) -> Array:
    room = np.zeros(len(y))
    for block in system.blocks:
        if block.kind == "free":
            room[block.place] = max(1.0, float(np.abs(y).max(initial=0.0)))
    return room


def _core(M: Sparse, rows: Array, weight: Array) -> tuple[Array, Array, Array, Factor | None, Solve]:
    """Scales and a factor of the core; rows that follow from others, as far as floats tell, are left out."""
    while True:
        C = M[rows]
        C.data = C.data * weight[C.indices]
        D, W = even(C)
        i = np.repeat(np.arange(len(rows)), np.diff(C.indptr))
        square = np.bincount(i, (C.data * D[i] * W[C.indices]) ** 2, len(rows))
        if not square.all():
            rows = rows[square > 0.0]
            continue
        if not len(rows):
            return rows, np.ones(0), np.zeros(len(weight)), None, None
        D, W = 2.0 ** np.round(np.log2(D / np.sqrt(square))), np.where(weight > 0.0, 2.0 ** np.round(np.log2(W)), 0.0)
        C.data = C.data * D[i] * W[C.indices]
        factor, solve, bad = factored(*squared(C))
        if not bad.any():
            return rows, D, W, factor, solve
        rows = rows[~bad]


def even(M: Sparse) -> tuple[Array, Array]:
    """Scales of rows and columns that bring all entries to about 1."""
    i, j, size = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr)), M.indices, np.abs(M.data)
    D, W = np.ones(M.shape[0]), np.ones(M.shape[1])
    for _ in range(2):
        W = W / _root(size * D[i] * W[j], j, len(W))
        D = D / _root(size * D[i] * W[j], i, len(D))
    return D, W


def _root(size: Array, at: Array, count: int) -> Array:
    """The roots of the largest sizes at each place, 1 where there are none."""
    most = np.zeros(count)
    np.maximum.at(most, at, size)
    return np.sqrt(np.where(most > 0.0, most, 1.0))


def factored(S: Sparse, off: Array) -> tuple[Factor | None, Solve, Array]:
    """A factor of S less a shift, how to solve with S, and the rows that seem to
    depend on others. What is proved is the shift less all that rounding may do, so that it must be some of that."""
    n = S.shape[0]
    shift = 8.0 * float(off.max()) + 1e-13 + 8.0 * n * EPS * float(abs(S).sum(axis=1).max())
    while True:
        factor, bad, F = _factor(S, shift)
        if factor is None:
            shift *= 1.0625
            continue
        if bad.any():
            return None, None, bad
        lost = float((roundings(S, factor) + off).max())
        if 2 * lost < shift or shift > 1e-6:
            break
        shift = 4 * lost

    def solve(r: Array) -> Array:
        x = np.zeros(n)
        for _ in range(2):
            x = x + F.solve(r - S @ x)
        return x

    return factor, solve, bad


def bent(P: Sparse) -> Factor | None:
    """A factor of P for `verify.curvature`: less a little where it is positive definite, else more."""
    if P.nnz == np.count_nonzero(P.diagonal()):
        return None
    size, n = float(abs(P).max()), P.shape[0]
    best, value = None, -np.inf
    for factor in definite(P, (shift * size for shift in (1e-13, -1e-15, -1e-14, -1e-12, -1e-9))):
        found = floor(P, np.zeros(n), factor)
        if found > value:
            best, value = factor, found
        if found >= min(2 * factor.shift, 0.0):
            break
    return best


def definite(S: Sparse, shifts: Iterable[float]) -> Iterator[Factor]:
    """Factors of S less a shift, where that is positive definite."""
    for factor, bad, _ in (_factor(S, shift) for shift in shifts):
        if factor is not None and not bad.any():
            yield factor


def _factor(S: Sparse, shift: float) -> tuple[Factor | None, Array, Any]:
    """A factor of S less a shift, the rows at which that is not positive definite, and what solves with it; None where
    a pivot is exactly 0."""
    n = S.shape[0]
    eye, bad = sp.eye_array(n), np.zeros(n, bool)
    try:
        F = Solver(sp.csc_matrix(sp.triu(S - shift * eye)), upper=True)
    except RuntimeError:
        return None, bad, None
    L, d, order = F.factors()
    bad[order] = ~(d > 0.0)
    L = sp.csc_array(L + eye)
    data = L.data * np.repeat(np.sqrt(np.maximum(d, 0.0)), np.diff(L.indptr))
    L = sp.csr_array(sp.csc_array((data, np.asarray(order)[L.indices], L.indptr), shape=L.shape))
    return Factor(L.toarray() if L.nnz > DENSE * n * n else L, shift), bad, F
