"""P(w) in exact arithmetic: rational bounds on both sides, equal but for exp, log and sqrt.

Written from the formulas alone. It shares no code with the library, nor with the float formulas beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphreg.datasets.plain import PlainEdge, PlainProblem, PlainSamples

from .reals import HALF, ZERO, Interval, approximately, dot, exp, log, rational, rationals, sqrt

Point = Sequence[Sequence[Any]]  # one row of rationals per node


@dataclass(frozen=True)
class Bounds:
    """``lower <= P(w) <= upper``. Both are None where w violates a constraint; ``upper`` alone where exp overflows."""

    lower: Any
    upper: Any

    @property
    def feasible(self) -> bool:
        return self.lower is not None


@dataclass(frozen=True)
class ExactSamples:
    """`PlainSamples`, its node as a position, with rational entries; the design by rows of pairs (column, value)."""

    family: str
    node: int
    X: list[list[tuple[int, Any]]] | None
    y: list[Any]
    scale: list[Any]
    offset: list[Any]
    delta: Any
    tau: Any
    classes: int


@dataclass(frozen=True)
class ExactEdge:
    """`PlainEdge` with positions and rational entries; head -1 is the ground."""

    tail: int
    head: int
    kind: str
    weight: Any
    columns: list[int]
    center: list[Any]
    parameter: Any


@dataclass(frozen=True)
class ExactProblem:
    """`PlainProblem` with rational entries."""

    nodes: tuple[Hashable, ...]
    d: int
    samples: tuple[ExactSamples, ...]
    edges: tuple[ExactEdge, ...]

    def at(self, w: Any) -> Bounds:
        """Bounds of P at w, (n, d) floats or rationals in the order of ``nodes``."""
        w = rationals(w)
        low, high = ZERO, ZERO
        parts = [(c, i) for part in self.samples for c, i in _sample_values(part, w[part.node])]
        for edge in self.edges:
            value = penalty(edge, difference(edge, w))
            if value is None:
                return Bounds(None, None)
            parts.append((edge.weight, value))
        for weight, (lower, upper) in parts:
            low = low + weight * lower
            high = None if high is None or upper is None else high + weight * upper
        return Bounds(low, high)

    def violated(self, w: Any) -> list[int]:
        """The edges whose constraints w violates."""
        w = rationals(w)
        return [k for k, edge in enumerate(self.edges) if penalty(edge, difference(edge, w)) is None]


def exact(plain: PlainProblem) -> ExactProblem:
    """The plain numbers, taken for what they are."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    samples = tuple(_exact_samples(part, index[part.node]) for part in plain.samples)
    edges = tuple(_exact_edge(edge, index) for edge in plain.edges)
    return ExactProblem(plain.nodes, plain.d, samples, edges)


def below(lower: float, at: Bounds) -> bool:
    """True where a lower bound may be true, given P at a point. Only what exact arithmetic contradicts is refused."""
    if np.isnan(lower) or lower == np.inf:
        return not at.feasible
    return lower == -np.inf or at.upper is None or rational(lower) <= at.upper


def above(upper: float, at: Bounds) -> bool:
    """True where an upper bound may be true, given P at the point that it was found at."""
    if np.isnan(upper) or upper == -np.inf:
        return False
    return upper == np.inf or (at.feasible and rational(upper) >= at.lower)


def excess(lower: float, at: Bounds) -> float:
    """By how much a lower bound passes P at a point, as a float."""
    return approximately(rational(lower) - at.upper) if np.isfinite(lower) else np.inf


# ---- data ------------------------------------------------------------------------------------------------------------
def _exact_samples(part: PlainSamples, node: int) -> ExactSamples:
    X = None
    if part.X is not None:
        X = [[(j, rational(v)) for j, v in enumerate(row) if v != 0.0] for row in part.X.tolist()]
    y = [int(v) for v in part.y] if part.family == "multinomial" else rationals(part.y)
    one = (rational(part.delta), rational(part.tau))
    return ExactSamples(part.family, node, X, y, rationals(part.scale), rationals(part.offset), *one, part.classes)


def _exact_edge(edge: PlainEdge, index: dict[Hashable, int]) -> ExactEdge:
    head = -1 if edge.head is None else index[edge.head]
    columns, center = [int(j) for j in edge.columns], rationals(edge.center)
    parameter = _parameter(edge)
    return ExactEdge(index[edge.tail], head, edge.kind, rational(edge.weight), columns, center, parameter)


def _parameter(edge: PlainEdge) -> Any:
    """Rational; a Quadratic's is the list of its ``(weight, row)``, phi(z) = sum of weight (row z)^2 / 2."""
    p = edge.parameter
    if edge.kind == "Quadratic":
        pairs = p if isinstance(p, list) else [(1.0, row) for row in p]
        return [(rational(float(weight)), rationals(row)) for weight, row in pairs]
    if edge.kind == "AnalysisL1":
        return rationals(p)
    if edge.kind == "Box":
        sides = (np.broadcast_to(side, len(edge.columns)).tolist() for side in p)
        return [[None if np.isinf(v) else rational(v) for v in side] for side in sides]
    return None if p is None else rational(float(p))


# ---- losses ----------------------------------------------------------------------------------------------------------
def _sample_values(part: ExactSamples, w: Sequence[Any]) -> list[tuple[Any, Interval]]:
    """The scale of each sample of a node, and bounds of its loss."""
    loss = {"multinomial": _multinomial, "logistic": _logistic, "poisson": _poisson}.get(part.family, _rational_loss)
    return [(part.scale[r], loss(part, r, predictor(part, r, w))) for r in range(len(part.y))]


def predictor(part: ExactSamples, r: int, w: Sequence[Any]) -> Any:
    """x_r'w + o_r; a list, one entry per class or coordinate, for multinomial samples and means."""
    if part.X is None:
        return w
    row = part.X[r]
    if part.family == "multinomial":
        return [sum((v * w[j * part.classes + k] for j, v in row), ZERO) for k in range(part.classes)]
    return sum((v * w[j] for j, v in row), part.offset[r])


def _rational_loss(part: ExactSamples, r: int, x: Any) -> Interval:
    value = _piecewise_quadratic(part, x, part.y[r])
    return value, value


def _piecewise_quadratic(part: ExactSamples, x: Any, y: Any) -> Any:
    match part.family:
        case "mean":
            t = [p - q for p, q in zip(x, y, strict=True)]
            return dot(t, t) * HALF
        case "squared":
            return (x - y) * (x - y) * HALF
        case "huber":
            t = abs(x - y)
            return t * t * HALF if t <= part.delta else part.delta * (t - part.delta * HALF)
        case "quantile":
            rest = rational(1.0 - float(part.tau))  # as the loss and proofs define it
            return max(part.tau * (y - x), rest * (x - y))
        case "hinge":
            return max(ZERO, 1 - y * x)
        case "squared hinge":
            t = max(ZERO, 1 - y * x)
            return t * t * HALF
        case _:
            raise AssertionError(part.family)


def _logistic(part: ExactSamples, r: int, x: Any) -> Interval:
    """log(1 + exp(-y x)) = max(0, -y x) + log(1 + exp(-|x|))."""
    low, high = exp(-abs(x))
    rest = max(ZERO, -part.y[r] * x)
    return rest + log(1 + low)[0], rest + log(1 + high)[1]


def _poisson(part: ExactSamples, r: int, x: Any) -> Interval:
    low, high = exp(x)
    return low - part.y[r] * x, None if high is None else high - part.y[r] * x


def _multinomial(part: ExactSamples, r: int, x: Any) -> Interval:
    top = max(x)
    each = [exp(v - top) for v in x]
    rest = top - x[part.y[r]]
    return rest + log(sum((low for low, _ in each), ZERO))[0], rest + log(sum((high for _, high in each), ZERO))[1]


# ---- penalties -------------------------------------------------------------------------------------------------------
def difference(edge: ExactEdge, w: Point) -> list[Any]:
    """w_tail - w_head less the centre, on the columns of the edge."""
    tail = w[edge.tail]
    if edge.head < 0:
        return [tail[j] - c for j, c in zip(edge.columns, edge.center, strict=True)]
    head = w[edge.head]
    return [tail[j] - head[j] - c for j, c in zip(edge.columns, edge.center, strict=True)]


def penalty(edge: ExactEdge, z: list[Any]) -> Interval | None:
    """Bounds of phi(z); None outside a constraint."""
    p = edge.parameter
    match edge.kind:
        case "L1":
            value = sum(map(abs, z), ZERO)
        case "LInf":
            value = max(map(abs, z))
        case "AnalysisL1":
            value = sum((abs(dot(row, z)) for row in p), ZERO)
        case "L2":
            return sqrt(dot(z, z))
        case "SquaredL2":
            value = dot(z, z) * HALF
        case "Quadratic":
            value = sum((weight * dot(row, z) ** 2 for weight, row in p), ZERO) * HALF
        case "HuberNorm":
            return _huber_norm(p, dot(z, z))
        case _:
            return (ZERO, ZERO) if _inside(edge, z) else None
    return value, value


def _huber_norm(delta: Any, square: Any) -> Interval:
    if square <= delta * delta:
        return square * HALF, square * HALF
    low, high = sqrt(square)
    return delta * (low - delta * HALF), delta * (high - delta * HALF)


def _inside(edge: ExactEdge, z: list[Any]) -> bool:
    p = edge.parameter
    match edge.kind:
        case "Zero":
            return all(v == 0 for v in z)
        case "Ball":
            return dot(z, z) <= p * p
        case "NonNegative":
            return min(z) >= 0
        case "Box":
            rows = zip(z, *p, strict=True)
            return all((low is None or low <= v) and (high is None or v <= high) for v, low, high in rows)
        case _:
            raise AssertionError(edge.kind)
