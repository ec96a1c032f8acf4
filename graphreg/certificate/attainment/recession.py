"""The directions along which nothing grows, as linear conditions on well-scaled unknowns.

    still v = 0,    falls v >= 0 (samples that fall for ever),    slack v >= 0 (hinges that fall to 0, one-sided cones)

Rows and columns are scaled by powers of two, which changes no digit. What decides them stands in `directions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import connected_components
from ...form import DualPoint, EdgeBlock, Form
from ...inputs import components_of, groups_of
from ...terms import Array, RecessionCone
from .directions import ConditionPart

ROUNDS = 4  # of scaling rows and columns in turn


@dataclass(frozen=True)
class Unknowns:
    """Entry (i, j) of v is ``scale`` of its unknown times the unknown ``number[i, j]``, or 0 where that is -1."""

    number: Array
    count: int

    def matrix(self, rows: Any) -> Any:
        """A sparse matrix on vec(v) as one on the unknowns."""
        flat = self.number.ravel()
        kept = np.flatnonzero(flat >= 0)
        pick = sp.csr_array((np.ones(len(kept)), (kept, flat[kept])), shape=(len(flat), self.count))
        return sp.csr_array(rows @ pick)

    def spread(self, x: Array) -> Array:
        return np.where(self.number >= 0, x[np.maximum(self.number, 0)], 0.0) if self.count else 0.0 * self.number


@dataclass(frozen=True)
class ConditionRows:
    """Conditions of one kind, a matrix (rows, unknowns), scaled; ``across`` are the factors of the rows as they were
    before, 0 for rows of zeros, which are left out."""

    matrix: Any
    across: Array

    @property
    def kept(self) -> Array:
        return self.across > 0.0

    def moved(self, x: Array) -> Array:
        """The amount by which each row moves along x, those of zeros by 0, as scaled."""
        out = np.zeros(len(self.across))
        out[self.kept] = self.matrix @ x
        return out


@dataclass(frozen=True)
class Conditions:
    """The conditions of a form, scaled; v is ``scale`` times the unknowns."""

    unknowns: Unknowns
    scale: Array
    falls: ConditionRows
    slack: ConditionRows
    still: ConditionRows

    @property
    def kinds(self) -> tuple[ConditionRows, ConditionRows, ConditionRows]:
        return self.falls, self.slack, self.still

    @property
    def matrices(self) -> tuple[Any, Any, Any]:
        return self.falls.matrix, self.slack.matrix, self.still.matrix

    def spread(self, x: Array) -> Array:
        """The direction (n, d) of given unknowns."""
        return self.unknowns.spread(self.scale * x)

    def parts(self) -> list[ConditionPart]:
        """The conditions by unknowns that share no row, those of which some fall for ever."""
        rows = sp.csr_array(sp.vstack([kind.matrix for kind in self.kinds]))
        q, count = rows.shape  # pyright: ignore[reportGeneralTypeIssues]  (scipy has no types)
        links = sp.block_array([[None, rows], [sp.csr_array((count, q)), None]])
        label = connected_components(links, directed=False)[1][q:]
        local = np.empty(count, dtype=np.intp)
        columns = groups_of(label)
        for each in columns:
            local[each] = np.arange(len(each))
        split = [_split(kind.matrix, label, local, columns) for kind in self.kinds]
        parts: list[ConditionPart] = []
        for mine, *kinds in zip(columns, *split, strict=True):
            places, matrices = zip(*kinds, strict=True)
            if matrices[0].shape[0]:
                parts.append(ConditionPart(mine, places, *matrices))
        return parts


def _split(matrix: Any, label: Array, local: Array, columns: list[Array]) -> list[tuple[Array, Any]]:
    """The rows of each part, with their places in the whole."""
    rows = groups_of(label[matrix.indices[matrix.indptr[:-1]]], len(columns))
    out: list[tuple[Array, Any]] = []
    for mine, across in zip(rows, columns, strict=True):
        part = matrix[mine]
        out.append((mine, sp.csr_array((part.data, local[part.indices], part.indptr), shape=(len(mine), len(across)))))
    return out


# ---- the conditions of a form ----------------------------------------------------------------------------------------
def cones_of(form: Form) -> list[RecessionCone] | None:
    """Along which directions the penalty of each edge block does not grow; None where one does not say, or classes see
    the same numbers."""
    cones = [_cone(edge, form.width(edge)) for edge in form.edges]
    known = [cone for cone in cones if cone is not None]
    apart = all(block.apart for block in form.samples)  # else differences of classes would be rounded
    return known if len(known) == len(cones) and apart else None


def _cone(edge: EdgeBlock, k: int) -> RecessionCone | None:
    """Equations of rows that are no edges are products of matrices, and as such rounded."""
    cone = edge.penalty.domain.recession(k)
    rounded = cone is not None and cone.equations is not None and edge.map.edges is None
    return replace(cone, exact=False) if cone is not None and rounded else cone


def conditions(form: Form, cones: list[RecessionCone], everything: bool = False) -> Conditions:
    """The conditions of a form; where ``everything``, what slackens is among what falls."""
    unknowns = _unknowns(form, cones)
    still: list[Any] = []
    falls: list[Any] = []
    slack: list[Any] = []
    for block in form.samples:
        descent = block.loss.prices.descent(block.y)
        A = unknowns.matrix(block.A)
        still.append(A[descent.still])
        fall = sp.csr_array(descent.falls @ A)
        falls.append(fall[np.flatnonzero(descent.for_ever)])
        slack.append(fall[np.flatnonzero(~descent.for_ever)])
    for edge, cone in zip(form.edges, cones, strict=True):
        held, loose = _cone_rows(form, edge, cone, unknowns)
        still += held
        slack += loose
    if everything:
        falls, slack = falls + slack, []
    empty = sp.csr_array((0, unknowns.count))
    return _scaled(unknowns, [sp.csr_array(sp.vstack([empty, *rows])) for rows in (falls, slack, still)])


def multipliers(form: Form, cones: list[RecessionCone], point: DualPoint) -> tuple[Array, Array, Array]:
    """The multipliers of the rows of `conditions`, as they were, by kind: prices and flows are multipliers of their
    own balance."""
    falls: list[Array] = []
    slack: list[Array] = []
    still: list[Array] = []
    for block, a in zip(form.samples, point.prices, strict=True):
        descent = block.loss.prices.descent(block.y)
        inner = -np.asarray(descent.falls @ a.ravel())
        gram = sp.csc_array(descent.falls @ descent.falls.T)
        if gram.nnz > gram.shape[0]:  # pyright: ignore[reportOptionalSubscript]  # classes share the price of the sample's own
            inner = sp.linalg.spsolve(gram, inner)
        falls.append(inner[descent.for_ever])
        slack.append(inner[~descent.for_ever])
        still.append(-a.ravel()[descent.still])
    for edge, cone, u in zip(form.edges, cones, point.flows, strict=True):
        if edge.map.edges is None:
            still.append(-u[:, cone.still].ravel())
        if cone.equations is not None:
            still.append(-np.linalg.lstsq(cone.equations.T, u.T)[0].T.ravel())
        for chosen, sign in cone.one_sided:
            if chosen.any():
                slack.append(-sign * u[:, chosen].ravel())
    return tuple(np.concatenate([np.zeros(0), *kind]) for kind in (falls, slack, still))  # type: ignore[return-value]


def _scaled(unknowns: Unknowns, kinds: list[Any]) -> Conditions:
    """Rows and columns scaled by powers of two to a largest entry of about 1."""
    for part in kinds:
        part.eliminate_zeros()
        part.sort_indices()
    filled = [np.diff(part.indptr) > 0 for part in kinds]
    kept = [sp.csr_array(part[np.flatnonzero(full)]) for part, full in zip(kinds, filled, strict=True)]
    across, down = _factors(abs(sp.csr_array(sp.vstack(kept))))
    ends = np.cumsum([0, *(part.shape[0] for part in kept)])  # pyright: ignore[reportOptionalSubscript]
    scaled: list[ConditionRows] = []
    for part, full, a, b in zip(kept, filled, ends[:-1], ends[1:], strict=True):
        factors = np.zeros(len(full))
        factors[full] = across[a:b]
        scaled.append(ConditionRows(_times(part, across[a:b], down), factors))
    return Conditions(unknowns, down, *scaled)


def _factors(rows: Any) -> tuple[Array, Array]:
    """Powers of two for the rows and the columns of a non-negative matrix without rows of zeros."""
    across, down = np.ones(rows.shape[0]), np.ones(rows.shape[1])
    telling = np.diff(rows.indptr) > 1  # a row of one entry fits any unit of its column
    shared = sp.csr_array(rows[np.flatnonzero(telling)])
    for _ in range(ROUNDS if shared.nnz else 0):
        across[telling] /= _root(_times(shared, across[telling], down).max(axis=1).toarray().ravel())
        down /= _root(_times(shared, across[telling], down).max(axis=0).toarray().ravel())
    down = _power(down)
    if rows.nnz:
        across = _power(1.0 / _times(rows, np.ones(len(across)), down).max(axis=1).toarray().ravel())
    return across, down


def _times(matrix: Any, across: Array, down: Array) -> Any:
    """diag(across) matrix diag(down)."""
    data = matrix.data * np.repeat(across, np.diff(matrix.indptr)) * down[matrix.indices]
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _root(largest: Array) -> Array:
    return np.sqrt(np.where(largest > 0.0, largest, 1.0))


def _power(x: Array) -> Array:
    return np.exp2(np.round(np.log2(x)))


def _unknowns(form: Form, cones: list[RecessionCone]) -> Unknowns:
    """Coercive edges between nodes make coordinates equal, coercive ground edges make them 0."""
    index = np.arange(form.n * form.d).reshape(form.shape)
    ground = form.n * form.d
    tails: list[Array] = []
    heads: list[Array] = []
    for edge, cone in zip(form.edges, cones, strict=True):
        if edge.map.edges is None:
            continue  # coordinates of rows are conditions of their own
        columns = edge.columns(form.d)[cone.still]
        tails.append(index[np.ix_(edge.tail, columns)].ravel())
        heads.append(np.full(len(tails[-1]), ground) if edge.ground else index[np.ix_(edge.head, columns)].ravel())
    t, h = (np.concatenate(p) if p else np.zeros(0, dtype=int) for p in (tails, heads))
    count, member = components_of(t, h, ground + 1)
    rename = np.full(count, -1)
    others = np.delete(np.arange(count), member[ground])
    rename[others] = np.arange(len(others))
    return Unknowns(rename[member[:ground]].reshape(form.shape), len(others))


def _cone_rows(form: Form, edge: EdgeBlock, cone: RecessionCone, unknowns: Unknowns) -> tuple[list[Any], list[Any]]:
    """The conditions of an edge block on v that are not merely equalities between coordinates: still, and slack."""
    k, rows = form.width(edge), sp.eye_array(edge.count)
    pick, alike = np.eye(k), edge.map.edges is not None
    still = ([] if alike else [pick[cone.still]]) + ([] if cone.equations is None else [cone.equations])
    slack = [sign * pick[chosen] for chosen, sign in cone.one_sided if chosen.any()]
    flat = edge.flat(form.d)
    of_rows = [[unknowns.matrix(sp.kron(rows, each, format="csr") @ flat) for each in kind] for kind in (still, slack)]
    return of_rows[0], of_rows[1]
