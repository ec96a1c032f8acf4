"""A point near an answer that is better than floats can say: Newton's steps in rational numbers on a guessed face.

Kinks are guessed from the answer: what is nearly 0 is tied, everything else keeps its sign or its region. A wrong guess
gives a bad point, never a wrong verdict, since P is evaluated exactly at whatever comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .exact import ExactEdge, ExactProblem, ExactSamples
from .linear import Matrix, solved
from .reals import ONE, ZERO, Rational, approximately, dot, ends, exp, flint, rational, rationals, sqrt

BITS = 256  # of each number
DENSE, SPARSE = 48, 256  # variables, where nodes have several coordinates or one
NEAR = (0.0, 1e-9)  # relative: what is tied
STEPS = 7
RIDGE = ONE / 2**120  # of the diagonal: Hessians may be singular
STIFF = Rational(2**100)  # of a square that ties what a root makes of a difference

Row = dict[int, Any]  # a linear form of the variables
SMOOTH = ("squared", "mean", "huber", "logistic", "poisson", "squared hinge")
KINDS = ("L1", "L2", "SquaredL2", "Quadratic", "AnalysisL1", "HuberNorm", "Zero")


def refined(problem: ExactProblem, w: Any, nears: tuple[float, ...] = NEAR) -> list[Any]:
    """Points to be judged at, one for each guess of what is tied; none where a term is not known here."""
    if any(p.family not in SMOOTH for p in problem.samples) or any(e.kind not in KINDS for e in problem.edges):
        return []
    faces = {}
    for near in nears:
        face = _face(problem, np.asarray(w, dtype=float), near)
        if face.size <= (DENSE if problem.d > 1 else SPARSE):
            faces[face.size] = face
    found = [_newton(problem, face, rationals(w)) for face in faces.values()]
    return [point for point in found if point is not None]


@dataclass(frozen=True)
class _Face:
    """Coordinates that are tied share a variable; those that are tied to the ground have a value instead."""

    variable: list[list[int]]  # by node and column; -1 where it is fixed
    size: int
    fixed: dict[tuple[int, int], Any]

    def row(self, node: int, columns: Any) -> Row:
        """A linear form of one node's coordinates, pairs of column and factor, as one of the variables."""
        out: Row = {}
        for j, v in columns:
            k = self.variable[node][j]
            if k >= 0:
                out[k] = out.get(k, ZERO) + v
        return out


def _face(problem: ExactProblem, w: Any, near: float) -> _Face:
    n, d = w.shape
    parent = list(range(n * d))
    ground: dict[int, Any] = {}

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    scale = np.abs(w).max(axis=0)
    for edge in problem.edges:
        if edge.kind not in ("L1", "L2", "Zero") or (any(edge.center) and edge.head >= 0):
            continue
        z = [w[edge.tail, j] - (w[edge.head, j] if edge.head >= 0 else approximately(c)) for j, c in _where(edge)]
        tied = [abs(v) <= near * scale[j] or edge.kind == "Zero" for v, (j, _) in zip(z, _where(edge), strict=True)]
        if edge.kind == "L2" and not all(tied):
            continue
        for (j, c), is_tied in zip(_where(edge), tied, strict=True):
            if is_tied and edge.head >= 0:
                parent[root(edge.tail * d + j)] = root(edge.head * d + j)
            elif is_tied:
                ground[edge.tail * d + j] = c
    values = {root(k): c for k, c in ground.items()}
    free = sorted({root(k) for k in range(n * d)} - values.keys())
    number = {k: i for i, k in enumerate(free)}
    variable = [[number.get(root(i * d + j), -1) for j in range(d)] for i in range(n)]
    fixed = {(i, j): values[root(i * d + j)] for i in range(n) for j in range(d) if variable[i][j] < 0}
    return _Face(variable, len(free), fixed)


def _where(edge: ExactEdge) -> list[tuple[int, Any]]:
    return list(zip(edge.columns, edge.center, strict=True))


def _newton(problem: ExactProblem, face: _Face, w: Any) -> Any | None:
    point = _tied(face, w)
    for _ in range(STEPS):
        system = _System([[ZERO] * face.size for _ in range(face.size)], [ZERO] * face.size)
        if not all(_loss(part, face, point, system) for part in problem.samples):
            return None
        for edge in problem.edges:
            _penalty(edge, face, point, system)
        for k in range(face.size):
            system.hessian[k][k] = system.hessian[k][k] * (1 + RIDGE) or ONE
        step = _solution(system.hessian, [-_short(g) for g in system.gradient])
        if step is None:
            return None
        point = [
            [v if k < 0 else _short(v + step[k]) for v, k in zip(row, keys, strict=True)]
            for row, keys in zip(point, face.variable, strict=True)
        ]
    return point


def _solution(rows: Matrix, right: list[Any]) -> list[Any] | None:
    if flint is None:
        return solved(rows, right, len(right))
    try:
        x = flint.fmpq_mat([[_short(v) for v in row] for row in rows]).solve(flint.fmpq_mat([[v] for v in right]))
    except ZeroDivisionError:
        return None
    return [x[k, 0] for k in range(len(right))]


def _tied(face: _Face, w: Any) -> Any:
    """The point on the face: tied coordinates take the value of the first of them."""
    first: dict[int, Any] = {}
    return [
        [face.fixed[i, j] if k < 0 else first.setdefault(k, w[i][j]) for j, k in enumerate(keys)]
        for i, keys in enumerate(face.variable)
    ]


@dataclass(frozen=True)
class _System:
    hessian: Matrix
    gradient: list[Any]

    def add(self, row: Row, slope: Any, curvature: Any) -> None:
        slope, curvature = _short(slope), _short(curvature)
        for i, v in row.items():
            self.gradient[i] = self.gradient[i] + slope * v
            if curvature != 0:
                for j, u in row.items():
                    self.hessian[i][j] = self.hessian[i][j] + curvature * v * u


# ---- slopes and curvatures -------------------------------------------------------------------------------------------
def _loss(part: ExactSamples, face: _Face, w: Any, system: _System) -> bool:
    """Adds a node's samples; False where exp overflows."""
    own = w[part.node]
    for r, (y, s) in enumerate(zip(part.y, part.scale, strict=True)):
        if part.X is None:
            for j, (v, t) in enumerate(zip(own, y, strict=True)):
                system.add(face.row(part.node, [(j, ONE)]), s * (v - t), s)
            continue
        x = sum((v * own[j] for j, v in part.X[r]), part.offset[r])
        found = _sample(part, x, y)
        if found is None:
            return False
        system.add(face.row(part.node, part.X[r]), s * found[0], s * found[1])
    return True


def _sample(part: ExactSamples, x: Any, y: Any) -> tuple[Any, Any] | None:
    match part.family:
        case "squared":
            return x - y, ONE
        case "huber":
            t = x - y
            return (t, ONE) if abs(t) <= part.delta else (part.delta if t > 0 else -part.delta, ZERO)
        case "squared hinge":
            t = 1 - y * x
            return (-y * t, ONE) if t > 0 else (ZERO, ZERO)
        case "logistic":
            e = exp(-abs(x))[0]
            q = ONE / (1 + e) if y * x < 0 else e / (1 + e)
            return -y * q, q * (1 - q)
    _, high = exp(x)
    return None if high is None else (high - y, high)


def _penalty(edge: ExactEdge, face: _Face, w: Any, system: _System) -> None:
    head = [ZERO] * len(w[0]) if edge.head < 0 else w[edge.head]
    z = [w[edge.tail][j] - head[j] - c for j, c in _where(edge)]
    rows = [_apart(face, edge, [(j, ONE)]) for j in edge.columns]
    one = edge.weight
    if edge.kind == "L1":
        for v, row in zip(z, rows, strict=True):
            system.add(row, ZERO if v == 0 else one if v > 0 else -one, ZERO)
    elif edge.kind == "AnalysisL1":
        for root in edge.parameter:
            row = _apart(face, edge, list(zip(edge.columns, root, strict=True)))
            v, size = dot(root, z), sum((abs(a) * abs(b) for a, b in zip(root, w[edge.tail], strict=False)), ZERO)
            tied = abs(v) <= rational(NEAR[-1]) * size
            system.add(row, STIFF * v if tied else one if v > 0 else -one, STIFF if tied else ZERO)
    elif edge.kind == "Quadratic":
        for weight, root in edge.parameter:
            row = _apart(face, edge, list(zip(edge.columns, root, strict=True)))
            system.add(row, one * weight * dot(root, z), one * weight)
    elif edge.kind in ("SquaredL2", "HuberNorm", "L2"):
        square = dot(z, z)
        if edge.kind == "SquaredL2" or (edge.kind == "HuberNorm" and square <= edge.parameter**2):
            for v, row in zip(z, rows, strict=True):
                system.add(row, one * v, one)
        elif square != 0:
            _norm(one if edge.kind == "L2" else one * edge.parameter, z, sqrt(square)[0], rows, system)


def _norm(factor: Any, z: list[Any], size: Any, rows: list[Row], system: _System) -> None:
    """factor ||z||: slopes z / size, curvatures (I - zz' / size^2) / size."""
    for v, row in zip(z, rows, strict=True):
        system.add(row, factor * v / size, factor / size)
    along: Row = {}
    for v, row in zip(z, rows, strict=True):
        for k, u in row.items():
            along[k] = along.get(k, ZERO) + u * _short(v / size)
    system.add(along, ZERO, -factor / size)


def _apart(face: _Face, edge: ExactEdge, columns: list[tuple[int, Any]]) -> Row:
    row = face.row(edge.tail, columns)
    if edge.head >= 0:
        for k, v in face.row(edge.head, columns).items():
            row[k] = row.get(k, ZERO) - v
    return {k: v for k, v in row.items() if v != 0}


def _short(x: Any) -> Any:
    """x rounded to so many bits."""
    p, q = ends(x)
    k = BITS - p.bit_length() + q.bit_length()
    if p == 0 or (q.bit_length() <= 1 and p.bit_length() <= BITS):
        return x
    return Rational((p << k) // q, 1 << k) if k >= 0 else Rational((p // (q << -k)) << -k, 1)
