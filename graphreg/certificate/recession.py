"""The directions along which nothing grows, as linear conditions in well-scaled unknowns, and what decides them exactly.

    still v = 0,    falls v >= 0 (samples that fall for ever),    slack v >= 0 (hinges that fall to 0, one-sided cones)

Either some direction has falls v != 0, or (Motzkin) there are multipliers with

    falls' l + slack' m + still' k = 0,    l > 0,  m >= 0

and then there is no such direction. Rows and columns are scaled by powers of two, which changes no digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.sparse.csgraph import connected_components

from ..form import DualPoint, EdgeBlock, Form
from ..terms.records import Array, RecessionCone
from .rationals import ROUNDING, correction, null_point, products, rational, signs

TIGHT = 1e-7  # of the largest row: rows that a programme's direction moves by less are taken to stay
MOST_EXACT = 60  # unknowns that hang together, up to which rationals are tried
MOST_DENSE = 1500  # and up to which a dense inverse is
ROUNDS = 4  # of scaling rows and columns in turn


@dataclass(frozen=True)
class Unknowns:
    """Entry (i, j) of v is ``scale`` of its unknown times the unknown ``number[i, j]``, or 0 where that is -1."""

    number: Array
    count: int

    def matrix(self, rows: Any) -> sp.csr_array:
        """A sparse matrix on vec(v) as one on the unknowns."""
        flat = self.number.ravel()
        kept = np.flatnonzero(flat >= 0)
        pick = sp.csr_array((np.ones(len(kept)), (kept, flat[kept])), shape=(len(flat), self.count))
        return sp.csr_array(rows @ pick)

    def spread(self, x: Array) -> Array:
        return np.where(self.number >= 0, x[np.maximum(self.number, 0)], 0.0) if self.count else 0.0 * self.number


@dataclass(frozen=True)
class Rows:
    """Conditions of one kind, a matrix (rows, unknowns), scaled; ``across`` are the factors of the rows as they were
    before, 0 for rows of zeros, which are left out."""

    matrix: sp.csr_array
    across: Array

    @property
    def kept(self) -> Array:
        return self.across > 0.0

    def moved(self, x: Array) -> Array:
        """By how much each row moves along x, those of zeros by 0, as scaled."""
        out = np.zeros(len(self.across))
        out[self.kept] = self.matrix @ x
        return out

    def multipliers(self, given: Array) -> Array:
        """Multipliers of the rows as they were, for the scaled ones."""
        return given[self.kept] / self.across[self.kept]


@dataclass(frozen=True)
class Conditions:
    """The conditions of a form (or a part of them), scaled; v is ``scale`` times the unknowns.

    ``exact`` says whether the matrices hold the data as stored, and nothing that is known to rounding only.
    """

    unknowns: Unknowns
    scale: Array
    falls: Rows
    slack: Rows
    still: Rows
    exact: bool = True

    @property
    def kinds(self) -> tuple[Rows, Rows, Rows]:
        return self.falls, self.slack, self.still

    def spread(self, x: Array) -> Array:
        """The direction (n, d) of given unknowns."""
        return self.unknowns.spread(self.scale * x)

    def parts(self) -> list[Part]:
        """The conditions by unknowns that share no row, those of which some fall for ever."""
        rows = sp.csr_array(sp.vstack([kind.matrix for kind in self.kinds]))
        q, count = rows.shape
        links = sp.block_array([[None, rows], [sp.csr_array((count, q)), None]])
        label = connected_components(links, directed=False)[1][q:]
        local = np.empty(count, dtype=np.intp)
        columns = _grouped(label, int(label.max(initial=-1)) + 1)
        for each in columns:
            local[each] = np.arange(len(each))
        split = [_split(kind.matrix, label, local, columns) for kind in self.kinds]
        parts = [Part(columns[k], *(kind[k] for kind in split), exact=self.exact) for k in range(len(columns))]
        return [part for part in parts if part.falls.shape[0]]


def _grouped(label: Array, groups: int) -> list[Array]:
    order = np.argsort(label, kind="stable")
    return np.split(order, np.searchsorted(label[order], np.arange(1, groups))) if groups else []


def _split(matrix: sp.csr_array, label: Array, local: Array, columns: list[Array]) -> list[tuple[Array, sp.csr_array]]:
    """The rows of each part, with their places in the whole."""
    rows = _grouped(label[matrix.indices[matrix.indptr[:-1]]], len(columns))
    out: list[tuple[Array, sp.csr_array]] = []
    for mine, across in zip(rows, columns, strict=True):
        part = matrix[mine]
        out.append((mine, sp.csr_array((part.data, local[part.indices], part.indptr), shape=(len(mine), len(across)))))
    return out


class Part:
    """Conditions on unknowns that hang together; each kind with the places of its rows in the whole."""

    def __init__(
        self,
        columns: Array,
        falls: tuple[Array, sp.csr_array],
        slack: tuple[Array, sp.csr_array],
        still: tuple[Array, sp.csr_array],
        exact: bool,
    ) -> None:
        self.columns = columns
        self.exact = exact
        self.places = (falls[0], slack[0], still[0])
        self.falls, self.slack, self.still = falls[1], slack[1], still[1]

    # ---- exactly ---------------------------------------------------------------------------------------------------
    def verified(self, x: Array) -> list[Fraction] | None:
        """A direction near x along which nothing grows, in exact arithmetic; None where none is found."""
        size = float(np.abs(x).max(initial=0.0))
        if not (np.isfinite(size) and size > 0.0):
            return None
        x = np.round(x / size, 9)  # what a solver leaves of zeros is none of the direction
        moved = [self.falls @ x, self.slack @ x]
        most = max((float(np.abs(part).max(initial=0.0)) for part in moved), default=0.0)
        for tight in (TIGHT, 1e-4, 1e-10):
            pairs = zip((self.falls, self.slack), moved, strict=True)
            kept = [sp.csr_array(M[np.flatnonzero(np.abs(part) <= tight * most)]) for M, part in pairs]
            held = sp.csr_array(sp.vstack([self.still, *kept]))
            if held.shape[0] and len(x) > MOST_EXACT and signs(held, [Fraction(float(y)) for y in x]).any():
                continue
            point = null_point(held, x)
            if allowed(self.falls, self.slack, self.still, point):
                return point
        return None

    def excluded(self, falls: Array, slack: Array, still: Array) -> bool:
        """Whether multipliers near those given prove that there is no direction, in exact arithmetic or enclosed."""
        size = float(max((np.abs(part).max(initial=0.0) for part in (falls, slack, still)), default=0.0))
        if not (np.isfinite(size) and len(falls) and falls.min() > 0.0):
            return False
        slack = np.where(slack > 1e-9 * size, slack, 0.0)
        room = np.concatenate([falls, np.where(slack > 0.0, slack, 0.0), np.full(len(still), np.inf)])
        rows = sp.csr_array(sp.vstack([self.falls, self.slack, self.still]))
        given = np.concatenate([falls, slack, still])
        return _corrected(rows, given, room)


def allowed(falls: Any, slack: Any, still: Any, x: Sequence[Fraction]) -> bool:
    """Whether nothing grows along x and some sample falls for ever, in exact arithmetic."""
    moved = signs(falls, x)
    grows = signs(still, x).any() or (moved < 0).any() or (signs(slack, x) < 0).any()
    return bool(not grows and (moved > 0).any())


# ---- multipliers -----------------------------------------------------------------------------------------------------
def _corrected(rows: sp.csr_array, given: Array, room: Array) -> bool:
    """Whether some x with rows'x = 0 exactly has |x - given| < room: found from a few rows, which all may move."""
    count = rows.shape[1]
    if count == 0:
        return True
    movable = np.flatnonzero(room > 0.0)
    if len(movable) < count and count > MOST_EXACT:
        return False
    weights = np.minimum(room[movable], max(float(np.median(room[np.isfinite(room)])), 1e-300) if len(movable) else 1.0)
    chosen = _independent(rows, movable, weights)
    return _enclosed(rows, chosen, given, room) or (
        count <= MOST_EXACT and _rationally(rows, chosen, given, room)
    )


def _independent(rows: sp.csr_array, movable: Array, weights: Array) -> Array:
    """Rows that span the others, those with the most room first."""
    count = rows.shape[1]
    if count > MOST_DENSE:
        return movable[:0]
    if len(movable) > 40 * count + 400:  # a sample of them will do
        order = np.argsort(-weights * np.sqrt(np.asarray(rows[movable].power(2).sum(axis=1)).ravel()), kind="stable")
        movable, weights = movable[order[: 40 * count + 400]], weights[order[: 40 * count + 400]]
    dense = rows[movable].toarray() * weights[:, None]
    R, order = scipy.linalg.qr(dense.T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > 1e-13 * max(float(diagonal.max(initial=0.0)), 1e-300)).sum())
    return movable[order[:rank]]


def _enclosed(rows: sp.csr_array, chosen: Array, given: Array, room: Array) -> bool:
    """A correction by as many rows as there are unknowns, enclosed: |B^-1 r| <= |C r| / (1 - ||I - C B||)."""
    count = rows.shape[1]
    if len(chosen) != count:
        return False
    B = rows[chosen].toarray().T
    try:
        C = np.linalg.inv(B)
    except np.linalg.LinAlgError:
        return False
    off = np.abs(np.eye(count) - C @ B) + (count + 4) * ROUNDING * (np.abs(C) @ np.abs(B))
    norm = float(off.sum(axis=1).max()) * (1.0 + 1e-9)
    if not norm < 0.5:
        return False
    doubt = (rows.shape[0] + 4) * ROUNDING * (abs(rows).T @ np.abs(given)) + 1e-290
    left = np.abs(C) @ (np.abs(rows.T @ given) + doubt) * (1.0 + 1e-9)
    return bool((left + norm / (1.0 - norm) * left.max(initial=0.0) < 0.99 * room[chosen]).all())


def _rationally(rows: sp.csr_array, chosen: Array, given: Array, room: Array) -> bool:
    if not len(chosen):
        return False
    left = products(rows, given)
    found = correction(rows[chosen].T, [-x for x in left])
    return found is not None and all(
        np.isinf(limit) or abs(x) < Fraction(float(limit)) for x, limit in zip(found, room[chosen], strict=True)
    )


# ---- the conditions of a form ----------------------------------------------------------------------------------------
def cones_of(form: Form) -> list[RecessionCone] | None:
    """Along which directions the penalty of each edge block does not grow; None where one does not say."""
    cones = [edge.penalty.recession(form.width(edge)) for edge in form.edges]
    return None if any(cone is None for cone in cones) else [cone for cone in cones if cone is not None]


def conditions(form: Form, cones: list[RecessionCone], everything: bool = False) -> Conditions:
    """The conditions of a form; where ``everything``, what slackens is among what falls."""
    unknowns = _unknowns(form, cones)
    still: list[sp.csr_array] = []
    falls: list[sp.csr_array] = []
    slack: list[sp.csr_array] = []
    for block in form.samples:
        descent = block.loss.descent(block.y)
        A = unknowns.matrix(block.A)
        still.append(A[descent.still])
        fall = sp.csr_array(descent.falls @ A)
        falls.append(fall[np.flatnonzero(descent.for_ever)])
        slack.append(fall[np.flatnonzero(~descent.for_ever)])
    for edge, cone in zip(form.edges, cones, strict=True):
        _cone_rows(form, edge, cone, unknowns, still, slack)
    if everything:
        falls, slack = falls + slack, []
    empty = sp.csr_array((0, unknowns.count))
    stacked = [sp.csr_array(sp.vstack([empty, *rows])) for rows in (falls, slack, still)]
    return _scaled(unknowns, stacked, all(cone.exact for cone in cones))


def multipliers(form: Form, cones: list[RecessionCone], point: DualPoint) -> tuple[Array, Array, Array]:
    """Of the rows of `conditions`, as they were, by kind: prices and flows are multipliers of their own balance."""
    falls: list[Array] = []
    slack: list[Array] = []
    still: list[Array] = []
    for block, a in zip(form.samples, point.prices, strict=True):
        descent = block.loss.descent(block.y)
        inner = -np.asarray(descent.falls @ a.ravel())
        gram = sp.csc_array(descent.falls @ descent.falls.T)
        if gram.nnz > gram.shape[0]:  # classes share the price of the sample's own
            inner = sp.linalg.spsolve(gram, inner)
        falls.append(inner[descent.for_ever])
        slack.append(inner[~descent.for_ever])
        still.append(-a.ravel()[descent.still])
    for cone, u in zip(cones, point.flows, strict=True):
        if cone.equations is not None:
            still.append(-np.linalg.lstsq(cone.equations.T, u.T)[0].T.ravel())
        for bound, sign in ((cone.lower, 1.0), (cone.upper, -1.0)):
            chosen = (bound == 0) & ~((cone.lower == 0) & (cone.upper == 0))
            if chosen.any():
                slack.append(-sign * u[:, chosen].ravel())
    return tuple(np.concatenate([np.zeros(0), *kind]) for kind in (falls, slack, still))  # type: ignore[return-value]


def recedes_exactly(form: Form, v: Any) -> bool:
    """Whether nothing grows along v and some sample falls for ever, in exact arithmetic on the data as stored.

    Then the infimum is not attained: any minimiser could be moved along v to where P is smaller.

    Parameters
    ----------
    form : Form
    v : array (n, d)
        Of floats, or of rational numbers (``fractions.Fraction`` or python-flint's), as objects.
    """
    v = np.asarray(v)
    cones = cones_of(form)
    if v.shape != form.shape or cones is None or not all(cone.exact for cone in cones):
        return False
    found = conditions(form, cones)
    exact = [rational(x) for x in v.ravel()]
    number = found.unknowns.number.ravel()
    first = {int(q): x for q, x in zip(number[::-1], reversed(exact), strict=True)}
    if any(x != (first[int(q)] if q >= 0 else 0) for q, x in zip(number, exact, strict=True)):
        return False  # coordinates that edges tie together, or hold at 0, move apart
    x = [first[q] / rational(float(found.scale[q])) for q in range(found.unknowns.count)]
    return allowed(found.falls.matrix, found.slack.matrix, found.still.matrix, x)


def _scaled(unknowns: Unknowns, kinds: list[sp.csr_array], exact: bool) -> Conditions:
    """Rows and columns scaled by powers of two to a largest entry of about 1."""
    for part in kinds:
        part.eliminate_zeros()
        part.sort_indices()
    filled = [np.diff(part.indptr) > 0 for part in kinds]
    kept = [sp.csr_array(part[np.flatnonzero(full)]) for part, full in zip(kinds, filled, strict=True)]
    rows = abs(sp.csr_array(sp.vstack(kept)))
    across, down = np.ones(rows.shape[0]), np.ones(unknowns.count)
    for _ in range(ROUNDS if rows.nnz else 0):
        down /= _root(_times(rows, across, down).max(axis=0).toarray().ravel())
        across /= _root(_times(rows, across, down).max(axis=1).toarray().ravel())
    across, down = _power(across), _power(down)
    ends = np.cumsum([0, *(part.shape[0] for part in kept)])
    scaled: list[Rows] = []
    for part, full, a, b in zip(kept, filled, ends[:-1], ends[1:], strict=True):
        factors = np.zeros(len(full))
        factors[full] = across[a:b]
        scaled.append(Rows(_times(part, across[a:b], down), factors))
    return Conditions(unknowns, down, *scaled, exact=exact)


def _times(matrix: sp.csr_array, across: Array, down: Array) -> sp.csr_array:
    """diag(across) matrix diag(down)."""
    data = matrix.data * np.repeat(across, np.diff(matrix.indptr)) * down[matrix.indices]
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _root(largest: Array) -> Array:
    return np.where(largest > 0.0, np.sqrt(largest), 1.0)


def _power(x: Array) -> Array:
    return np.exp2(np.round(np.log2(x)))


def _unknowns(form: Form, cones: list[RecessionCone]) -> Unknowns:
    """Coercive edges between nodes make coordinates equal, coercive ground edges make them 0."""
    index = np.arange(form.n * form.d).reshape(form.shape)
    ground = form.n * form.d
    tails: list[Array] = []
    heads: list[Array] = []
    for edge, cone in zip(form.edges, cones, strict=True):
        columns = np.arange(form.d) if edge.features is None else edge.features
        columns = columns[(cone.lower == 0) & (cone.upper == 0)]
        tails.append(index[np.ix_(edge.tail, columns)].ravel())
        heads.append(np.full(len(tails[-1]), ground) if edge.ground else index[np.ix_(edge.head, columns)].ravel())
    t, h = (np.concatenate(p) if p else np.zeros(0, dtype=int) for p in (tails, heads))
    links = sp.coo_array((np.ones(len(t)), (t, h)), shape=(ground + 1, ground + 1))
    count, member = connected_components(links, directed=False)
    rename = np.full(count, -1)
    others = np.delete(np.arange(count), member[ground])
    rename[others] = np.arange(len(others))
    return Unknowns(rename[member[:ground]].reshape(form.shape), len(others))


def _cone_rows(
    form: Form,
    edge: EdgeBlock,
    cone: RecessionCone,
    unknowns: Unknowns,
    still: list[sp.csr_array],
    slack: list[sp.csr_array],
) -> None:
    """The conditions of an edge block on v that are not merely equalities between coordinates."""
    columns = np.arange(form.d) if edge.features is None else edge.features
    pick = np.zeros((len(columns), form.d))
    pick[np.arange(len(columns)), columns] = 1.0
    if cone.equations is not None:
        still.append(unknowns.matrix(sp.kron(edge.K, cone.equations @ pick, format="csr")))
    for bound, sign in ((cone.lower, 1.0), (cone.upper, -1.0)):
        chosen = (bound == 0) & ~((cone.lower == 0) & (cone.upper == 0))
        if chosen.any():
            slack.append(unknowns.matrix(sp.kron(edge.K, sign * pick[chosen], format="csr")))
