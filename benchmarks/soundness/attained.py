"""Whether a minimum is attained, by exact arithmetic.

P falls for ever along v where ``F v >= 0``, one of them positive, ``S v >= 0`` and ``E v = 0`` (the rows of
`recessions`); then no minimum is attained. There is no such v exactly where some y > 0 and z >= 0 have ``F'y + S'z`` in
the span of E's rows (Stiemke). Floats suggest v, or (y, z); what they suggest is made exact and verified, or nothing is
said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from .exact import ExactEdge, ExactProblem, ExactSamples
from .linear import Matrix, kernel, solved
from .reals import ONE, ZERO, Rational, approximately, dot, rational

LARGEST = 150  # coordinates, and
MOST_ROWS = 400
CLEAR = 1e-7  # relative: what floats take for positive


@dataclass(frozen=True)
class Recessions:
    """The rows of F (a loss falls for ever), S (a loss falls to its minimum; a bound) and E (what must not move)."""

    falls: Matrix
    stays: Matrix
    equal: Matrix


def attained(problem: ExactProblem) -> bool | None:
    """Whether the minimum is attained; None where exact arithmetic does not tell, or would take too long."""
    size = len(problem.nodes) * problem.d
    rows = sum(len(part.y) * max(1, part.classes - 1) for part in problem.samples)
    if size > LARGEST or rows > MOST_ROWS:
        return None
    found = recessions(problem)
    if not found.falls:
        return True
    basis = kernel(found.equal, size)
    if not basis:
        return True
    rows = [[dot(row, v) for v in basis] for row in [*found.falls, *found.stays]]
    columns = [_normal(list(column)) for column in zip(*rows, strict=True)]  # other units of the coordinates
    rows = [_normal(list(row)) for row in zip(*columns, strict=True)]
    F, S = rows[: len(found.falls)], rows[len(found.falls) :]
    if recedes(F, S, len(basis)):
        return False
    return True if stands(F, S, len(basis)) else None


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


def recedes(F: Matrix, S: Matrix, width: int) -> bool:
    """Whether a direction was found and verified: t with ``F t >= 0``, not all 0, and ``S t >= 0``."""
    A = _floats([*F, *S], width)
    if not A.any():
        return False
    m, q = len(F), len(A)
    found = linprog(  # the sum of min(slack, 1) is largest where as many slacks as can be are positive
        np.r_[np.zeros(width), -np.ones(q)],
        A_ub=np.hstack([-A, np.eye(q)]),
        b_ub=np.zeros(q),
        bounds=[(-1e6, 1e6)] * width + [(0.0, 1.0)] * q,
    )
    if found.status != 0:
        return False
    slack = A @ found.x[:width]
    flat = slack <= CLEAR
    if flat[:m].all():
        return False
    basis = kernel([row for row, zero in zip([*F, *S], flat, strict=True) if zero], width)
    if not basis:
        return False
    N = _floats(basis, width)
    t = [rational(x) for x in np.linalg.lstsq(N.T, found.x[:width])[0].tolist()]
    v = [dot(t, column) for column in zip(*basis, strict=True)]
    values = [dot(row, v) for row in [*F, *S]]
    return min(values) >= 0 and any(value > 0 for value in values[:m])


def stands(F: Matrix, S: Matrix, width: int) -> bool:
    """Whether multipliers were found and verified that exclude such a direction: ``F'y + S'z = 0``, y > 0, z >= 0."""
    A = _floats([*F, *S], width)
    m, q = len(F), len(A)
    found = linprog(  # the least y is as large as it can be
        np.r_[np.zeros(q), -1.0],
        A_ub=np.hstack([-np.eye(q)[:m], np.ones((m, 1))]),
        b_ub=np.zeros(m),
        A_eq=np.hstack([A.T, np.zeros((width, 1))]),
        b_eq=np.zeros(width),
        bounds=[(0.0, 1.0)] * q + [(0.0, 1.0)],
    )
    if found.status != 0 or found.x[-1] <= CLEAR:
        return False
    rows = [*F, *S]
    y = [rational(x) if x > CLEAR * found.x[-1] else ZERO for x in found.x[:q].tolist()]
    free = [k for k in np.argsort(-found.x[:q]).tolist() if y[k] != 0]
    left = [-dot(y, column) for column in zip(*rows, strict=True)]
    columns = [[rows[k][j] for k in free] for j in range(width)]
    change = solved(columns, left, len(free))
    if change is None:
        return False
    for k, delta in zip(free, change, strict=True):
        y[k] = y[k] + delta
    exact = all(dot(y, column) == 0 for column in zip(*rows, strict=True))
    return exact and min(y) >= 0 and all(value > 0 for value in y[:m])


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
    elif edge.kind == "Quadratic":
        for _, root in edge.parameter:
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


def _floats(rows: Matrix, width: int) -> Any:
    return np.array([[approximately(v) for v in row] for row in rows], dtype=float).reshape(-1, width)
