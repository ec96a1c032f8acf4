"""Every loss and every penalty by its formula, in plain numpy: what the library's answers are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphreg.datasets.plain import PlainEdge, PlainSamples

Array = np.ndarray[Any, np.dtype[Any]]

LABELS = ("logistic", "hinge", "squared hinge")  # y is -1 or 1


def predictors(part: PlainSamples, w: Array) -> Array:
    """The predictor of each sample of a node: a number, one per class, or w itself."""
    if part.X is None:
        return np.tile(w, (len(part.y), 1))
    if part.family == "multinomial":
        return part.X @ w.reshape(-1, part.classes)
    return part.X @ w + part.offset


def indicators(part: PlainSamples) -> Array:
    """One column per class, 1 where a sample is of that class."""
    return np.eye(part.classes)[part.y.astype(int)]


def loss_values(part: PlainSamples, x: Array) -> Array:
    """l at the predictor of each sample, without the scale."""
    r = x - (part.y[:, None] if x.ndim > part.y.ndim else part.y)
    margin = part.y * x if part.family in LABELS else r
    match part.family:
        case "mean":
            value = (r**2).sum(axis=1) / 2
        case "squared":
            value = r**2 / 2
        case "huber":
            t = np.abs(r)
            value = np.where(t <= part.delta, t**2 / 2, part.delta * t - part.delta**2 / 2)
        case "quantile":
            value = np.where(r <= 0, -part.tau * r, (1 - part.tau) * r)
        case "poisson":
            value = np.exp(x) - part.y * x
        case "logistic":
            value = np.logaddexp(0.0, -margin)
        case "hinge":
            value = np.maximum(0.0, 1.0 - margin)
        case "squared hinge":
            value = np.maximum(0.0, 1.0 - margin) ** 2 / 2
        case "multinomial":
            own = np.take_along_axis(x, part.y.astype(int)[:, None], axis=1)[:, 0]
            value = np.logaddexp.reduce(x - own[:, None], axis=1)
        case _:
            raise AssertionError(part.family)
    return value


def loss_conjugate(part: PlainSamples, r: int, b: Any) -> float:
    """l* of sample r at the price b (a number, or one per class), without the scale."""
    y, b = part.y[r], np.asarray(b, dtype=float)
    match part.family:
        case "squared" | "mean":
            value = np.sum(b * b / 2 + b * y)
        case "huber":
            value = b * b / 2 + b * y if abs(b) <= part.delta else np.inf
        case "quantile":
            value = b * y if -part.tau <= b <= 1 - part.tau else np.inf
        case "poisson":
            value = _entropy(b + y) - (b + y)
        case "logistic":
            value = _entropy(-y * b) + _entropy(1 + y * b)
        case "hinge":
            value = b * y if -1 <= b * y <= 0 else np.inf
        case "squared hinge":
            value = b * b / 2 + b * y if b * y <= 0 else np.inf
        case "multinomial":
            p = b + (np.arange(part.classes) == y)
            value = sum(map(_entropy, p)) if abs(b.sum()) <= 1e-12 else np.inf
        case _:
            raise AssertionError(part.family)
    return float(value)


def _entropy(q: Any) -> float:
    """q log q, infinite where q < 0."""
    return float(q * np.log(q)) if q > 0 else 0.0 if q == 0 else np.inf


def penalty_value(edge: PlainEdge, z: Array) -> float:
    """phi(z); 0 for constraints, which `excess` judges."""
    norm, p = float(np.sqrt(z @ z)), edge.parameter
    match edge.kind:
        case "L1":
            value = np.abs(z).sum()
        case "L2":
            value = norm
        case "LInf":
            value = np.abs(z).max()
        case "AnalysisL1":
            value = np.abs(p @ z).sum()
        case "SquaredL2":
            value = norm**2 / 2
        case "Quadratic":
            value = ((p @ z) ** 2).sum() / 2
        case "HuberNorm":
            value = norm**2 / 2 if norm <= p else p * norm - p**2 / 2
        case _:
            value = 0.0
    return float(value)


def penalty_conjugate(edge: PlainEdge, u: Array) -> float:
    """phi*(u)."""
    norm, p = float(np.sqrt(u @ u)), edge.parameter
    match edge.kind:
        case "L1":
            value = _indicator(np.abs(u).max() <= 1)
        case "L2":
            value = _indicator(norm <= 1 + 1e-15)
        case "LInf":
            value = _indicator(np.abs(u).sum() <= 1 + 1e-15)
        case "SquaredL2":
            value = norm**2 / 2
        case "Quadratic":  # phi = ||R z||^2 / 2, so phi*(u) = ||v||^2 / 2 with the least v that has R'v = u
            v = np.linalg.lstsq(p.T, u)[0]
            value = v @ v / 2 + _indicator(np.linalg.norm(p.T @ v - u) <= 1e-10 * norm)
        case "HuberNorm":
            value = norm**2 / 2 + _indicator(norm <= p * (1 + 1e-15))
        case "Ball":
            value = p * norm
        case "Zero":
            value = 0.0
        case "NonNegative":
            value = _indicator((u <= 0).all())
        case "Box":
            value = sum(max(low * x, high * x) for low, high, x in zip(*p, u, strict=True) if x != 0)
        case _:
            raise AssertionError(edge.kind)
    return float(value)


def excess(edge: PlainEdge, z: Array) -> float:
    """By how much z leaves the set of a constraint; 0 for penalties with a strength."""
    match edge.kind:
        case "Zero":
            return float(np.abs(z).max())
        case "Ball":
            return max(float(np.sqrt(z @ z)) - edge.parameter, 0.0)
        case "NonNegative":
            return max(float(-z.min()), 0.0)
        case "Box":
            low, high = edge.parameter
            return max(float((low - z).max()), float((z - high).max()), 0.0)
        case _:
            return 0.0


def _indicator(inside: Any) -> float:
    return 0.0 if inside else np.inf
