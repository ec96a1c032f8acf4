"""Small systems: which of the free variables answer for the totals of trees without the ground.

Of a system the rows are trees, the columns free variables, and the entries what a variable adds to the total of a tree.
Systems of one size are solved together, in floats; where these leave a doubt whether rows depend on others, a system
is looked at alone, in rational numbers. Nothing here is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import qr

from ...terms import Array
from ..kernel.balance import Combination
from ..rationals import number, rational

DEPENDENT = 1e-10  # pivots below that, of equilibrated rows, count as 0
MANY = 6  # columns for one row, among which those of a large system are looked for first
EXACT = 40  # rows of a system, up to which it is solved in rational numbers where floats leave a doubt
MOST = 300  # rows of a system, beyond which it is not solved


@dataclass(frozen=True)
class Solved:
    """``X`` (columns, rows) with A X = I on the rows that are ``kept``; for each other row g that follows from these a
    combination y with y_g = 1 and y'A = 0."""

    kept: Array
    X: Array
    combinations: dict[int, Combination]


def right_inverses(A: Array, w: Array) -> tuple[Array, Array]:
    """X (systems, columns, rows) with A X = I, the smallest in the norm of 1/w, for A (systems, rows, columns) and w
    (systems, columns); and for which systems floats leave no doubt of that."""
    M, length = _equilibrated(A, w)
    Q, R = np.linalg.qr(np.swapaxes(M, -1, -2))
    pivots = np.abs(np.diagonal(R, axis1=-2, axis2=-1))
    sure = pivots.min(axis=-1, initial=np.inf) > DEPENDENT * pivots.max(axis=-1, initial=0.0)
    R = np.where(sure[..., None, None], R, np.eye(R.shape[-1]))
    with np.errstate(over="ignore"):  # the kernel refuses what is too large
        X = np.sqrt(w)[..., None] * (Q @ np.swapaxes(np.linalg.inv(R), -1, -2)) / length[..., None, :]
    return X, sure


def _equilibrated(A: Array, w: Array) -> tuple[Array, Array]:
    """A W^1/2 with rows of length 1, and the lengths that these had."""
    M = A * np.sqrt(w)[..., None, :]
    top = np.abs(M).max(axis=-1, initial=0.0)
    top = np.where(top > 0.0, top, 1.0)
    length = top * np.sqrt(((M / top[..., None]) ** 2).sum(axis=-1))
    length = np.where(length > 0.0, length, 1.0)
    return M / length[..., None], length


def independent(A: Array, w: Array) -> Array:
    """Rows of A that are independent, as far as floats tell."""
    if not A.size:
        return np.zeros(0, dtype=int)
    found: Any = qr(_equilibrated(A, w)[0].T, mode="r", pivoting=True)
    R, order = found
    pivots = np.zeros(len(A))
    k = min(R.shape)
    pivots[:k] = np.abs(np.diagonal(R[:k, :k]))
    return np.sort(order[pivots > DEPENDENT * max(float(pivots.max()), 1e-300)])


def solved(A: Array, w: Array, node: Array) -> Solved:
    """One system, whose rows may depend on one another; ``node`` is that of each row's root."""
    kept = np.flatnonzero(A.any(axis=1)) if A.shape[1] else np.zeros(0, dtype=int)
    kept = kept[independent(A[kept], w)] if len(kept) <= MOST else kept[:0]
    X = right_inverses(A[kept][None], w[None])[0][0] if len(kept) else np.zeros((A.shape[1], 0))
    combinations: dict[int, Combination] = {int(g): {int(g): Fraction(1)} for g in np.flatnonzero(~A.any(axis=1))}
    rest = np.setdiff1d(np.arange(len(A)), [*kept, *combinations])
    if not len(rest):
        return Solved(kept, X, combinations)
    if (plain := _by_signs(A, X, kept, rest)) is not None:
        return Solved(kept, X, combinations | plain)
    if len(A) > EXACT:
        return Solved(kept, X, combinations | _at_nodes(A, kept, rest, node))
    wide = np.argsort(-w, kind="stable")[: MANY * len(A) + 10]
    while True:  # until what is found holds of all columns
        found, pivots, more = eliminated(A[:, wide], [*kept.tolist(), *rest.tolist()])
        other = _against(A, more)
        if not len(other) or np.isin(other, wide).any():
            break
        wide = np.append(wide, other)
    if len(found) > len(kept):  # rows that nearly depend on others
        kept, X = np.array(found), np.zeros((A.shape[1], len(found)))
        X[wide[pivots]] = _inverse(A[np.ix_(kept, wide[pivots])])
    return Solved(kept, X, combinations | more)


def _by_signs(A: Array, X: Array, kept: Array, rest: Array) -> dict[int, Combination] | None:
    """Combinations that vanish exactly, one for each other row, where all take sums and differences of rows alone, as
    of classes; None elsewhere."""
    out: dict[int, Combination] = {}
    for g in rest.tolist():
        y = np.rint(A[g] @ X)
        some = np.flatnonzero(y)
        terms = np.vstack([A[g], -y[some, None] * A[kept[some]]])
        columns = terms[:, terms.any(axis=0)].T
        if np.abs(y).max(initial=0.0) > 1.0 or any(map(math.fsum, columns.tolist())):
            return None
        out[g] = {g: Fraction(1)} | {int(kept[k]): Fraction(-int(y[k])) for k in some}
    return out


def signs(one: Solved, rows: int) -> Array | None:
    """The combinations of a system as rows of a matrix, where there are any, of sums and differences; else None."""
    out = np.zeros((len(one.combinations), rows))
    for y, (g, combination) in zip(out, one.combinations.items(), strict=True):
        if combination[g] != 1 or any(abs(x) != 1 for x in combination.values()):
            return None
        y[list(combination)] = [float(x) for x in combination.values()]
    return out if len(out) else None


def _against(A: Array, combinations: dict[int, Combination]) -> Array:
    """For each combination that does not vanish on all columns one on which it does not."""
    out = []
    for y in combinations.values():
        each = np.array([float(x) for x in y.values()])[:, None] * A[list(y)]
        left, size = np.abs(each.sum(axis=0)), np.abs(each).sum(axis=0)
        off = np.where(left > 1e-15 * size, left, 0.0)
        if off.any():
            out.append(int(np.argmax(off)))
    return np.unique(np.array(out, dtype=int))


def _at_nodes(A: Array, kept: Array, rest: Array, node: Array) -> dict[int, Combination]:
    """Combinations of the rows at one node, for rows of a large system."""
    out: dict[int, Combination] = {}
    for i in np.unique(node[rest]).tolist():
        some = np.concatenate([kept[node[kept] == i], rest[node[rest] == i]])
        if len(some) > EXACT:
            continue
        columns = np.flatnonzero(A[some].any(axis=0))
        found = eliminated(A[np.ix_(some, columns)], range(len(some)))[2]
        named = {int(some[g]): {int(some[k]): x for k, x in y.items()} for g, y in found.items()}
        out |= {g: y for g, y in named.items() if g in rest}
    return out


def eliminated(A: Array, order: Sequence[int]) -> tuple[list[int], list[int], dict[int, Combination]]:
    """Rows of A that are independent of those before, in an order, by elimination in integers; the columns of their
    pivots; and combinations for the others."""
    found: list[int] = []
    pivots: list[int] = []
    reduced: list[list[int]] = []
    combinations: dict[int, Combination] = {}
    size = A.shape[1]
    for g in order:
        pairs = [x.as_integer_ratio() for x in A[g].tolist()]
        scale = max((bottom for _, bottom in pairs), default=1)  # a power of two
        row = [top * (scale // bottom) for top, bottom in pairs] + [scale * (g == k) for k in range(len(A))]
        for column, other in zip(pivots, reduced, strict=True):
            if t := row[column]:
                p = other[column]
                row = _reduced([p * a - t * b for a, b in zip(row, other, strict=True)])
        at = max(range(size), key=lambda c: abs(row[c]), default=-1)
        if at < 0 or not row[at]:
            combinations[g] = {k: Fraction(x, row[size + g]) for k, x in enumerate(row[size:]) if x}
            continue
        found.append(g)
        pivots.append(at)
        reduced.append(row)
    return found, pivots, combinations


def _reduced(row: list[int]) -> list[int]:
    common = math.gcd(*row)
    return [x // common for x in row] if common > 1 else row


def _inverse(A: Array) -> Array:
    """The inverse of a square matrix, in rational numbers, rounded."""
    k = len(A)
    rows = [[number(Fraction(x)) for x in [*row, *np.eye(k)[i].tolist()]] for i, row in enumerate(A.tolist())]
    for c in range(k):
        at = next(r for r in range(c, k) if rows[r][c])
        rows[c], rows[at] = rows[at], rows[c]
        t = rows[c][c]
        rows[c] = [x / t for x in rows[c]]
        for r in range(k):
            if r != c and (t := rows[r][c]):
                rows[r] = [a - t * b for a, b in zip(rows[r], rows[c], strict=True)]
    return np.array([[float(rational(x)) for x in row[k:]] for row in rows])
