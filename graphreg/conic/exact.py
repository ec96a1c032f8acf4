"""What a stored programme would be in real numbers: how far each stored number may be from what the formula says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..certificate import EPS, Pair, sums
from ..terms import Array
from .affine import ONE, Map, NotFollowedError, constant, divided, follow, stacked, units, variables, words
from .canonical import Canonical
from .programme import Sparse

Entries = tuple[Array, Array, Array]  # rows, columns, numbers


@dataclass(frozen=True, eq=False)
class Off:
    """Not less than what the numbers of a programme, and its offset, may be off."""

    P: Sparse
    q: Array
    A: Sparse
    b: Array
    offset: float

    def none(self) -> bool:
        """True where what is stored is what the formula says."""
        return not (self.P.nnz or self.A.nnz or self.q.any() or self.b.any() or self.offset)


def off(stored: Canonical, objective: Any, order: list[Any]) -> Off:
    """How far the stored numbers are from those of the expressions of which CVXPY made them: the constraints that it
    keeps, and the objective in variables of the same order.

    Raises
    ------
    NotFollowedError
        Where an expression is not followed.
    """
    p, own, n = stored.programme, stored.data["param_prob"], len(stored.programme.q)
    starts = np.cumsum([0, *(v.size for v in order)]).tolist()
    line, curved = _objective(objective, {v.id: at for v, at in zip(order, starts, strict=False)}, n)
    m, A, P = len(p.b), p.A.tocoo(), p.P.tocoo()
    given, told = _rows(own.constraints, own.var_id_to_col), ~np.isposinf(stored.data["b"])  # the others always hold
    given = Map(given.shape, *(x[told[given.row]] for x in (given.row, given.column, given.value, given.error)))
    rows = stacked([given, line])  # the objective's is the last one
    right = np.arange(m + 1), np.full(m + 1, n), np.append(p.b * told, stored.offset)
    both = _differences(rows, (m + 1, n + 1), (A.row, A.col, -A.data), right, (np.full(n, m), np.arange(n), p.q))
    bent = _differences(curved, (n, n), (P.row, P.col, P.data))
    last = both[m:].toarray()[0]
    return Off(bent, last[:n], both[:m, :n], both[:m, n:].toarray().ravel(), float(last[n]))


def _differences(m: Map, shape: tuple[int, int], *stored: Entries) -> Sparse:
    """Not less than the differences between coefficients, those of the constants last, and what is stored."""
    (i, j, data), width = (np.concatenate(x) for x in zip(*stored, strict=True)), shape[1]
    place, which = np.unique(
        np.concatenate([m.row * width + np.where(m.column == ONE, width - 1, m.column), i * width + j]).astype(int),
        return_inverse=True,
    )
    k = len(m.row)
    parts = [(which[:k], Pair(m.value, 0.0 * m.value, m.error)), (which[k:], Pair(-data, 0.0 * data, 0.0 * data))]
    found = sums(parts, len(place)).size()
    found = np.where(np.isnan(found), np.inf, np.where(found > 0.0, np.maximum(found, 1e-100), 0.0))
    some = found > 0.0
    return sp.csr_array((found[some], (place[some] // width, place[some] % width)), shape=shape)


def _rows(constraints: list[Any], columns: Mapping[int, int]) -> Map:
    """b - A x, row by row as they are stored; of equalities the negative."""
    leaf, parts = variables(columns), list[Map]()
    for each in constraints:
        kind = type(each).__name__
        args = [_scaled_triangle(arg, leaf) if kind == "SvecPSD" else follow(arg, leaf) for arg in each.args]
        all_ = stacked(args)
        size, k = all_.shape[0], each.args[0].size
        order = np.arange(size)
        if kind == "Zero":
            all_ = replace(all_, value=-all_.value)
        elif kind == "SOC":
            order = np.vstack([order[:k], order[k:].reshape((-1, k), order="F")]).ravel(order="F")
        elif kind in ("ExpCone", "PowCone3D"):
            order = order.reshape((3, k)).ravel(order="F")
        parts.append(all_.taken(order, (size,)))
    return stacked(parts) if parts else constant(np.zeros(0))


def _scaled_triangle(e: Any, leaf: Any) -> Map:
    """The triangle of a matrix, times the square root of two off the diagonal, of which CVXPY stores a double."""
    given = getattr(e.args[0], "value", None)
    if type(e).__name__ != "MulExpression" or given is None or e.args[0].variables():
        raise NotFollowedError(words(e))
    factor = sp.coo_array(given)
    root = ~np.isin(factor.data, (0.5, 1.0))
    if (np.abs(factor.data[root] ** 2 - 0.5) > EPS).any():  # half the root, of either triangle
        raise NotFollowedError(words(e))
    scale = replace(constant(factor), error=np.where(root, EPS, 0.0))
    return follow(e.args[1], leaf).joined(factor.col, factor.row, scale, e.shape)


def _objective(e: Any, columns: Mapping[int, int], n: int) -> tuple[Map, Map]:
    """The linear part, and the entries of the matrix that stands between x' and x / 2: each quadratic form is a column
    of its own at first."""
    forms, plain = list[tuple[Any, int]](), variables(columns)

    def leaf(e: Any) -> Map | None:
        if type(e).__name__ != "SymbolicQuadForm":
            return plain(e)
        forms.append((e, n + sum(form.size for form, _ in forms)))
        return units(e.shape, forms[-1][1] + np.arange(e.size))

    line, none = follow(e, leaf), np.zeros(0, int)
    parts = [Map((n, n), none, none, np.zeros(0), np.zeros(0))]
    for form, start in forms:
        k, at, P = form.args[0].size, columns[form.args[0].id], _matrix(form)
        of = np.zeros(k, int) if form.size == 1 else np.arange(k)
        for j, indices in enumerate(form.block_indices or ()):
            of[indices] = j
        inside = np.flatnonzero(of[P.row] == of[P.column])
        cells = Map((form.size,), of[P.row[inside]], *(x[inside] for x in (P.row * k + P.column, P.value, P.error)))
        own = np.flatnonzero((line.column >= start) & (line.column < start + form.size))
        factor = Map((len(own),), own, own, line.value[own], line.error[own])
        each = cells.joined(line.column[own] - start, own, factor, (n, n))
        i, j = at + each.column // k, at + each.column % k
        parts += [replace(each, row=i, column=j), replace(each, row=j, column=i)]
    straight = line.column < n
    line = Map(line.shape, *(x[straight] for x in (0 * line.row, line.column, line.value, line.error)))
    all_ = stacked(parts)
    return line, replace(all_, shape=(n, n), row=all_.row % (n * n))


def _matrix(form: Any) -> Map:
    """The matrix of a quadratic form; that of squares over a constant is divided by it once more, as CVXPY rounds."""
    given, of = form.args[1], form.original_expression
    if type(of).__name__ == "quad_over_lin":
        below = follow(of.args[1], lambda _: None)
        if len(below.value) != 1:
            raise NotFollowedError(words(of))
        eye = units(given.shape, np.arange(form.args[0].size))
        return divided(eye, *(np.repeat(x, len(eye.row)) for x in (below.value, below.error)))
    P = follow(given, lambda _: None)
    k = given.shape[0]
    return Map(P.shape, P.row % k, P.row // k, P.value, P.error)
