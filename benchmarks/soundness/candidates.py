"""Points at which P is evaluated exactly: a lower bound above any of them is a lie.

Where they come from does not matter; better ones see more. Squared losses alone are solved in rational numbers: the
best common fit of all nodes, and, where all terms are quadratic and there are few coordinates, the optimum itself. For
the rest a naive CVXPY model is asked, moved to the common fit so that numbers are of the size that counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from graphreg.datasets.plain import PlainEdge, PlainProblem, PlainSamples

from .exact import ExactProblem, ExactSamples
from .formulas import Array
from .linear import solved
from .objective import repaired
from .reals import ONE, ZERO, approximately, rational, rationals
from .reference import solve_once

SHIFTED = ("squared", "huber", "quantile", "mean")  # losses of residuals
WORK = 400_000  # rational products in a Gram matrix
COORDINATES = 40  # of an optimum in rational numbers
ASKED = 160  # coordinates of what CVXPY is asked
SECONDS = 5.0
INWARDS = (ONE, 1 - ONE / 2**50, 1 - ONE / 2**40, 1 - ONE / 2**20, 1 - ONE / 2**8, ONE / 2)

Points = dict[str, Any]


def candidates(plain: PlainProblem, problem: ExactProblem, ask: bool = True) -> Points:
    """Points by name, all of them feasible; what the naive model says among them where ``ask``."""
    n = len(plain.nodes)
    points: Points = {"the inner point": np.tile(plain.inner, (n, 1)), "zero": np.zeros((n, plain.d))}
    common = common_fit(problem)
    center = np.zeros(plain.d)
    if common is not None:
        points["the common fit"] = [common] * n
        center = np.array([approximately(v) for v in common])
    if n * plain.d <= COORDINATES:
        points["the rational optimum"] = rational_optimum(problem)
    if ask and n * plain.d <= ASKED:
        points["the naive model"] = asked(plain, np.zeros(plain.d))
        points["the naive model around the common fit"] = asked(plain, center) if center.any() else None
    inside = {name: None if w is None else inwards(plain, problem, w) for name, w in points.items()}
    return {name: w for name, w in inside.items() if w is not None}


def inwards(plain: PlainProblem, problem: ExactProblem, w: Any) -> Any | None:
    """A feasible point near w, by exact arithmetic; w itself where it is feasible."""
    w, inner = rationals(w), rationals(plain.inner)
    if not problem.violated(w):
        return w
    floats = np.array([[approximately(v) for v in row] for row in w])
    if not np.isfinite(floats).all():
        return None
    near = rationals(repaired(plain, floats))
    for t in INWARDS:
        point = [[c + t * (v - c) for v, c in zip(row, inner, strict=True)] for row in near]
        if not problem.violated(point):
            return point
    return None


def common_fit(problem: ExactProblem) -> list[Any] | None:
    """The least-squares fit of one parameter vector to all samples of residuals, in rational numbers."""
    parts = [part for part in problem.samples if part.family in SHIFTED]
    count = sum(len(part.y) for part in parts)
    if not parts or count * problem.d**2 > WORK:
        return None
    gram, right = _zeros(problem.d)
    for part in parts:
        _add_squares(part, 0, problem.d, gram, right)
    return solved(gram, right, problem.d)


def rational_optimum(problem: ExactProblem) -> list[list[Any]] | None:
    """The optimum where all losses are squared and all penalties quadratic."""
    d, size = problem.d, len(problem.nodes) * problem.d
    if any(part.family not in ("squared", "mean") for part in problem.samples):
        return None
    if any(edge.kind not in ("SquaredL2", "Quadratic") for edge in problem.edges):
        return None
    gram, right = _zeros(size)
    for part in problem.samples:
        _add_squares(part, part.node * d, d, gram, right)
    for edge in problem.edges:
        k = len(edge.columns)
        roots = edge.parameter or [(ONE, [ONE if i == j else ZERO for j in range(k)]) for i in range(k)]
        for weight, root in roots:
            row = {edge.tail * d + j: v for j, v in zip(edge.columns, root, strict=True) if v != 0}
            if edge.head >= 0:
                row |= {edge.head * d + j: -v for j, v in zip(edge.columns, root, strict=True) if v != 0}
            target = sum((v * c for v, c in zip(root, edge.center, strict=True)), ZERO)
            _add(row, target, edge.weight * weight, gram, right)
    w = solved(gram, right, size)
    return None if w is None else [w[i : i + d] for i in range(0, size, d)]


def asked(plain: PlainProblem, center: Array) -> Array | None:
    """The answer of Clarabel to the naive model in ``w - center``; None where it says nothing."""
    moved = _moved(plain, center)
    options = {"time_limit": SECONDS, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "tol_gap_abs": 1e-14}
    scale = sum(float(part.scale @ _typical(part)) for part in moved.samples)
    try:
        found = solve_once(moved, scale if 0 < scale < np.inf else 1.0, True, options)
    except (ValueError, ArithmeticError, cp.error.DCPError, np.linalg.LinAlgError):
        return None  # numbers that CVXPY or the solver does not take
    return None if found is None else found[0] + center


# ---- the parts -------------------------------------------------------------------------------------------------------
def _typical(part: PlainSamples) -> Array:
    y = part.y if part.X is not None else np.linalg.norm(part.y, axis=1)
    return np.maximum(np.minimum((y - part.offset) ** 2, 1e300), 1e-300) if part.family in SHIFTED else np.ones(len(y))


def _moved(plain: PlainProblem, center: Array) -> PlainProblem:
    """The problem in ``w - center``, where losses are of residuals; numbers may be rounded."""
    samples = tuple(_moved_samples(part, center) for part in plain.samples)
    edges = tuple(_moved_edge(edge, center) for edge in plain.edges)
    return replace(plain, samples=samples, edges=edges, inner=plain.inner - center)


def _moved_samples(part: PlainSamples, center: Array) -> PlainSamples:
    if part.X is None:
        return replace(part, y=part.y - center)
    if part.family == "multinomial":
        return part
    offset = part.offset + part.X @ center
    if part.family in SHIFTED:
        return replace(part, y=part.y - offset, offset=np.zeros(len(offset)))
    return replace(part, offset=offset)


def _moved_edge(edge: PlainEdge, center: Array) -> PlainEdge:
    return edge if edge.head is not None else replace(edge, center=edge.center - center[edge.columns])


def _zeros(size: int) -> tuple[list[list[Any]], list[Any]]:
    return [[ZERO] * size for _ in range(size)], [ZERO] * size


def _add_squares(part: ExactSamples, at: int, d: int, gram: list[list[Any]], right: list[Any]) -> None:
    for r, (y, s) in enumerate(zip(part.y, part.scale, strict=True)):
        if part.X is None:
            for j in range(d):
                _add({at + j: rational(1.0)}, y[j], s, gram, right)
        else:
            _add({at + j: v for j, v in part.X[r]}, y - part.offset[r], s, gram, right)


def _add(row: dict[int, Any], target: Any, weight: Any, gram: list[list[Any]], right: list[Any]) -> None:
    """weight (row w - target)^2 / 2, to the normal equations."""
    for i, v in row.items():
        heavy = weight * v
        right[i] = right[i] + heavy * target
        for j, u in row.items():
            gram[i][j] = gram[i][j] + heavy * u
