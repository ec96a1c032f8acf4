"""Linear systems in rational numbers: Gauss-Jordan elimination, and the simplex method where signs are asked for."""

from __future__ import annotations

from typing import Any

from .reals import ONE, ZERO

Matrix = list[list[Any]]
STALLED = 20  # pivots without progress, after which Bland's rule excludes cycles


def reduced(rows: Matrix, width: int) -> tuple[Matrix, list[int]]:
    """The non-zero rows of the reduced echelon form over the first ``width`` columns, and their pivots."""
    rows, pivots = [list(row) for row in rows], []
    for j in range(width):
        done = len(pivots)
        best = next((i for i in range(done, len(rows)) if rows[i][j] != 0), None)
        if best is None:
            continue
        rows[done], rows[best] = rows[best], rows[done]
        factor = ONE / rows[done][j]
        rows[done] = [v * factor if v != 0 else v for v in rows[done]]
        for i, row in enumerate(rows):
            if i != done and row[j] != 0:
                rows[i] = [v - row[j] * p if p != 0 else v for v, p in zip(row, rows[done], strict=True)]
        pivots.append(j)
    return rows[: len(pivots)], pivots


def kernel(rows: Matrix, width: int) -> Matrix:
    """A basis of {v : rows v = 0}, in rows."""
    echelon, pivots = reduced(rows, width)
    basis: Matrix = []
    for free in sorted(set(range(width)) - set(pivots)):
        v = [ZERO] * width
        v[free] = ONE
        for row, pivot in zip(echelon, pivots, strict=True):
            v[pivot] = -row[free]
        basis.append(v)
    return basis


def solved(rows: Matrix, right: list[Any], width: int) -> list[Any] | None:
    """A solution v of rows v = right, 0 where it is free; None where there is none."""
    wide = [[*row, value] for row, value in zip(rows, right, strict=True)]
    echelon, pivots = reduced(wide, width + 1)
    if width in pivots:
        return None
    v = [ZERO] * width
    for row, pivot in zip(echelon, pivots, strict=True):
        v[pivot] = row[width]
    return v


def nonnegative(rows: Matrix, right: list[Any]) -> tuple[list[Any] | None, list[Any]]:
    """Either ``(x, [])`` with ``rows x = right``, ``x >= 0``; or ``(None, t)`` with ``rows't <= 0``, ``t'right > 0``,
    which shows that there is no such x (Farkas). By the first phase of the simplex method."""
    width, m = len(rows[0]), len(rows)
    sign = [-1 if value < 0 else 1 for value in right]
    table = [
        [*(s * v for v in row), *(ONE if k == i else ZERO for k in range(m)), s * value]
        for i, (row, value, s) in enumerate(zip(rows, right, sign, strict=True))
    ]
    basis = list(range(width, width + m))
    cost = [-sum(column, ZERO) for column in zip(*table, strict=True)]
    cost[width : width + m] = [ZERO] * m
    stalled = 0
    while (j := _entering(cost, width, stalled)) is not None:
        pivot = _leaving(table, basis, j)
        before = cost[-1]
        cost = _pivoted(table, cost, pivot, j)
        basis[pivot] = j
        stalled = stalled + 1 if cost[-1] == before else 0
    if cost[-1] != 0:
        return None, [s * (1 - c) for s, c in zip(sign, cost[width : width + m], strict=True)]
    x = [ZERO] * (width + m)
    for row, k in zip(table, basis, strict=True):
        x[k] = row[-1]
    return x[:width], []


def _entering(cost: list[Any], width: int, stalled: int) -> int | None:
    falling = [j for j in range(width) if cost[j] < 0]
    if not falling:
        return None
    return falling[0] if stalled > STALLED else min(falling, key=lambda j: cost[j])


def _leaving(table: Matrix, basis: list[int], j: int) -> int:
    """The row that bounds the step first; there is one, since the cost is bounded from below."""
    return min((row[-1] / row[j], basis[i], i) for i, row in enumerate(table) if row[j] > 0)[2]


def _pivoted(table: Matrix, cost: list[Any], pivot: int, j: int) -> list[Any]:
    """Eliminates column j from all other rows, in place, and from the cost, which is returned."""
    factor = ONE / table[pivot][j]
    own = table[pivot] = [v * factor if v != 0 else v for v in table[pivot]]
    for i, row in enumerate(table):
        if i != pivot and row[j] != 0:
            table[i] = [v - row[j] * p if p != 0 else v for v, p in zip(row, own, strict=True)]
    return [v - cost[j] * p if p != 0 else v for v, p in zip(cost, own, strict=True)]
