"""Linear systems in rational numbers: Gauss-Jordan elimination."""

from __future__ import annotations

from typing import Any

from .reals import ONE, ZERO

Matrix = list[list[Any]]


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
