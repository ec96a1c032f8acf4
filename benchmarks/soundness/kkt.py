"""Whether a point is an optimum, exactly: prices and flows that are subgradients there and balance at every node.

Written from the definitions alone, in rational numbers. Of a forest of differences the flows follow from the prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .exact import ExactEdge, ExactProblem, ExactSamples, difference, predictor
from .linear import Matrix
from .reals import HALF, ONE, ZERO, dot, rationals

Slopes = tuple[Any, Any]  # the least and the largest subgradient


def optimal(
    problem: ExactProblem, w: Any, prices: Sequence[Any], flows: Sequence[Any], beside: Matrix | None = None
) -> bool:
    """True where ``prices`` (of each sample, by part) and ``flows`` (of each edge) prove that w is optimal; with
    what other terms leave ``beside`` them at each node."""
    w, prices, flows = rationals(w), rationals(prices), rationals(flows)
    left = [list(row) for row in beside] if beside else [[ZERO] * problem.d for _ in problem.nodes]
    for part, a in zip(problem.samples, prices, strict=True):
        for r, (s, price) in enumerate(zip(part.scale, a, strict=True)):
            found = slopes(part, r, predictor(part, r, w[part.node]))
            if found is None or not s * found[0] <= price <= s * found[1]:
                return False
            _add(left[part.node], part.X[r] if part.X else [], price)
    for edge, u in zip(problem.edges, flows, strict=True):
        if not subgradient(edge, difference(edge, w), [v / edge.weight for v in u]):
            return False
        _add(left[edge.tail], list(zip(edge.columns, u, strict=True)), ONE)
        if edge.head >= 0:
            _add(left[edge.head], list(zip(edge.columns, u, strict=True)), -ONE)
    return all(v == 0 for row in left for v in row)


def _add(row: list[Any], entries: Sequence[tuple[int, Any]], factor: Any) -> None:
    for j, v in entries:
        row[j] = row[j] + factor * v


def slopes(part: ExactSamples, r: int, x: Any) -> Slopes | None:  # noqa: PLR0911  (one for each loss)
    """The ends of the subdifferential of a loss at x; None where they are not rational, or not known here."""
    y = part.y[r]
    t = x - y if part.family in ("squared", "huber", "quantile") else 1 - y * x
    match part.family:
        case "squared":
            return t, t
        case "huber":
            t = max(-part.delta, min(part.delta, t))
            return t, t
        case "quantile":
            return (-part.tau if t <= 0 else 1 - part.tau), (1 - part.tau if t >= 0 else -part.tau)
        case "hinge":
            ends = [-y * (ONE if t > 0 else ZERO), -y * (ONE if t >= 0 else ZERO)]
            return min(ends), max(ends)
        case "squared hinge":
            return (-y * t, -y * t) if t > 0 else (ZERO, ZERO)
        case "logistic" if x == 0:
            return -y * HALF, -y * HALF
        case "poisson" if x == 0:
            return 1 - y, 1 - y
    return None


def subgradient(edge: ExactEdge, z: list[Any], u: list[Any]) -> bool:  # noqa: PLR0911  (one for each penalty)
    """True where u is a subgradient of phi at z."""
    along, square, size = dot(u, z), dot(z, z), dot(u, u)
    match edge.kind:
        case "L1":
            return all(abs(a) <= 1 and a * b == abs(b) for a, b in zip(u, z, strict=True))
        case "LInf":
            return sum(map(abs, u), ZERO) <= 1 and along == max(map(abs, z))
        case "L2":
            return size <= 1 and along >= 0 and along * along == square
        case "SquaredL2":
            return u == z
        case "HuberNorm":
            top = edge.parameter
            far = size <= top * top and along >= 0 and along * along == top * top * square
            return u == z if square <= top * top else far
        case "Zero":
            return square == 0
    return False


def balanced_on_forest(problem: ExactProblem, w: Any) -> tuple[list[Any], list[Any]] | None:
    """The prices and flows that w has where losses are differentiable and the edges are a forest; None elsewhere, and
    where trees do not balance."""
    w = rationals(w)
    if any(edge.head < 0 or len(edge.columns) != problem.d for edge in problem.edges):
        return None
    left, prices = [[ZERO] * problem.d for _ in problem.nodes], []
    for part in problem.samples:
        found = [slopes(part, r, predictor(part, r, w[part.node])) for r in range(len(part.y))]
        if part.X is None or any(pair is None or pair[0] != pair[1] for pair in found):
            return None
        prices.append([s * pair[0] for s, pair in zip(part.scale, found, strict=True) if pair is not None])
        for row, a in zip(part.X, prices[-1], strict=True):
            _add(left[part.node], row, a)
    open_, flows = dict(enumerate(problem.edges)), [[ZERO] * problem.d for _ in problem.edges]
    degree = [sum(i in (e.tail, e.head) for e in problem.edges) for i in range(len(problem.nodes))]
    while leaves := [k for k, e in open_.items() if 1 in (degree[e.tail], degree[e.head])]:
        k = leaves[0]
        edge = open_.pop(k)
        out, other, sign = (edge.tail, edge.head, -1) if degree[edge.tail] == 1 else (edge.head, edge.tail, 1)
        flows[k] = [sign * v for v in left[out]]
        left[other] = [a + b for a, b in zip(left[other], left[out], strict=True)]
        left[out] = [ZERO] * problem.d
        degree[out], degree[other] = 0, degree[other] - 1
    return None if open_ or any(v != 0 for row in left for v in row) else (prices, flows)
