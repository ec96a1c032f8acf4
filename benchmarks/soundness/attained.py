"""The attainment of a minimum, by exact arithmetic.

P falls for ever along v where ``F v >= 0``, one of them positive, ``S v >= 0`` and ``E v = 0`` (the rows of
`recessions`); then no minimum is attained. There is no such v exactly where some y > 0 and z >= 0 have ``F'y + S'z`` in
the span of E's rows (Stiemke). A simplex method in rational numbers finds one or the other, and what it finds is
verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .exact import ExactEdge, ExactProblem, ExactSamples
from .linear import Matrix, kernel, nonnegative
from .reals import ONE, ZERO, Rational, approximately, dot

LARGEST = 150  # coordinates
MOST_ROWS = 400
CELLS = 6_000  # of a tableau


@dataclass(frozen=True)
class Recessions:
    """The rows of F (a loss falls for ever), S (a loss falls to its minimum; a bound) and E (what must not move)."""

    falls: Matrix
    stays: Matrix
    equal: Matrix


def attained(problem: ExactProblem, still: Matrix | None = None) -> bool | None:
    """True where the minimum is attained; None where exact arithmetic does not tell, or would take too long.

    ``still`` are rows beside those of the problem that must not move.
    """
    size = len(problem.nodes) * problem.d
    rows = sum(len(part.y) * max(1, part.classes - 1) for part in problem.samples)
    if size > LARGEST or rows > MOST_ROWS:
        return None
    found = recessions(problem)
    found.equal.extend(still or [])
    if not found.falls:
        return True
    basis = kernel(found.equal, size)
    if not basis:
        return True
    if len(basis) * rows > CELLS:
        return None
    rows = [[dot(row, v) for v in basis] for row in [*found.falls, *found.stays]]
    columns = [_normal(list(column)) for column in zip(*rows, strict=True)]  # other units of the coordinates
    rows = [_normal(list(row)) for row in zip(*columns, strict=True)]
    return not _recedes(rows, len(found.falls))


def _recedes(rows: Matrix, falls: int) -> bool:
    """True where there is t with ``rows t >= 0`` and one of the first ``falls`` of them positive; either is
    verified."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    ones = [-sum(column[:falls], ZERO) for column in columns]  # y = 1 + more, more >= 0
    more, t = nonnegative(columns, ones)
    if more is not None:
        y = [value + (k < falls) for k, value in enumerate(more)]
        if min(more) < 0 or any(dot(y, column) != 0 for column in columns):
            raise ArithmeticError("the multipliers are wrong")
        return False
    values = [-dot(row, t) for row in rows]
    if min(values) < 0 or not any(value > 0 for value in values[:falls]):
        raise ArithmeticError("the direction is wrong")
    return True


def recessions(problem: ExactProblem) -> Recessions:
    """The directions along which no term grows."""
    out = Recessions([], [], [])
    size = len(problem.nodes) * problem.d
    for part in problem.samples:
        for kind, rows in zip((out.falls, out.stays, out.equal), _descent(part, problem.d), strict=True):
            kind.extend(_wide(row, part.node * problem.d, size) for row in rows if any(v != 0 for v in row))
    for edge in problem.edges:
        _edge(edge, problem.d, size, out)
    return out


# ---- rows ------------------------------------------------------------------------------------------------------------
def _descent(part: ExactSamples, d: int) -> tuple[Matrix, Matrix, Matrix]:
    """F, S, E of the samples of a node, in its own coordinates."""
    eye = [[ONE if i == j else ZERO for j in range(d)] for i in range(d)]
    if part.X is None:
        return [], [], eye
    if part.family == "multinomial":
        return _classes(part, d), [], []
    X = [[dict(row).get(j, ZERO) for j in range(d)] for row in part.X]
    signed = [[y * v for v in row] for row, y in zip(X, part.y, strict=True)]
    match part.family:
        case "logistic":
            return signed, [], []
        case "hinge" | "squared hinge":
            return [], signed, []
        case "poisson":  # counts of 0 alone leave the predictor a way to fall
            falls = [[-v for v in row] for row, y in zip(X, part.y, strict=True) if y == 0]
            return falls, [], [row for row, y in zip(X, part.y, strict=True) if y != 0]
        case _:
            return [], [], X


def _classes(part: ExactSamples, d: int) -> Matrix:
    """The class of a sample gains on each of the others."""
    rows: Matrix = []
    for row, own in zip(part.X or [], part.y, strict=True):
        for other in range(part.classes):
            if other != own:
                v = [ZERO] * d
                for j, x in row:
                    v[j * part.classes + own], v[j * part.classes + other] = x, -x
                rows.append(v)
    return rows


def _edge(edge: ExactEdge, d: int, size: int, out: Recessions) -> None:
    rows: Matrix = []
    for j in edge.columns:
        row = [ZERO] * size
        row[edge.tail * d + j] = ONE
        if edge.head >= 0:
            row[edge.head * d + j] = -ONE
        rows.append(row)
    if edge.kind == "NonNegative":
        out.stays.extend(rows)
    elif edge.kind == "Box":
        for row, low, high in zip(rows, *edge.parameter, strict=True):
            out.stays.extend([row] * (low is not None) + [[-v for v in row]] * (high is not None))
    elif edge.kind in ("Quadratic", "AnalysisL1"):
        for root in edge.parameter if edge.kind == "AnalysisL1" else [root for _, root in edge.parameter]:
            out.equal.append([dot(root, column) for column in zip(*rows, strict=True)])
    else:
        out.equal.extend(rows)


def _wide(row: list[Any], at: int, size: int) -> list[Any]:
    return [ZERO] * at + row + [ZERO] * (size - at - len(row))


def _normal(row: list[Any]) -> list[Any]:
    """The row times a power of two that makes its largest entry moderate: the same half-space."""
    top = max((abs(approximately(v)) for v in row), default=0.0)
    if top == 0.0 or not np.isfinite(top):
        return row
    k = int(np.frexp(top)[1])
    factor = Rational(1, 1 << k) if k >= 0 else Rational(1 << -k, 1)
    return [v * factor for v in row]
