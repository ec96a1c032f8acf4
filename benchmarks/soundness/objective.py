"""P, its constraints and its attainment from the plain description: one node and one edge after the other, in numpy."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linprog

from graphreg.datasets._plain import CONSTRAINTS, PlainEdge, PlainProblem, PlainSamples

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDING = 1e-15  # by so much a repaired point stays inside its constraints


def objective(plain: PlainProblem, w: Array) -> float:
    """The sum of all terms that are not constraints, at w (n, d)."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    parts = [_loss(part, w[index[part.node]]) for part in plain.samples]
    parts += [edge.weight * _penalty(edge, _argument(edge, w, index)) for edge in plain.edges]
    return float(sum(parts))


def rounding(plain: PlainProblem, w: Array) -> float:
    """What the last bits of Q = R'R can change in P(w), where w is far away in the kernel of Q."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    squares = [
        edge.weight * float((_argument(edge, w, index) ** 2).sum() * (edge.parameter**2).sum())
        for edge in plain.edges
        if edge.kind == "Quadratic"
    ]
    return 1e-15 * sum(squares)


def violation(plain: PlainProblem, w: Array) -> float:
    """The largest violation of a constraint, relative to the size of what it constrains."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    worst = 0.0
    for edge in plain.edges:
        if edge.kind in CONSTRAINTS:
            scale = max(float(np.abs(w[index[edge.tail], edge.columns]).max()), float(plain.size.min()))
            worst = max(worst, _excess(edge, _argument(edge, w, index)) / scale)
    return worst


def repaired(plain: PlainProblem, w: Array) -> Array:
    """A feasible point near w: cut to bounds, averaged where Zero edges tie, drawn inwards for balls."""
    w = _average(plain, _cut(plain, w))
    inner = np.tile(plain.inner, (len(plain.nodes), 1))
    if violation(plain, w) <= ROUNDING:
        return w
    low, high = 0.0, 1.0  # of inner + t (w - inner)
    for _ in range(60):
        t = 0.5 * (low + high)
        low, high = (t, high) if violation(plain, inner + t * (w - inner)) <= ROUNDING else (low, t)
    return inner + low * (w - inner)


def recedes(plain: PlainProblem) -> bool:
    """Whether P falls for ever along some direction, so that its infimum is not attained (a linear programme)."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    size = len(plain.nodes) * plain.d
    falls: list[Array] = []
    equal: list[Array] = []
    bounds: list[list[float | None]] = [[-1e6, 1e6] for _ in range(size)]
    for part in plain.samples:
        at = index[part.node] * plain.d
        for r in range(len(part.y)):
            rows = np.eye(plain.d) if part.X is None else part.X[r : r + 1] / (np.linalg.norm(part.X[r]) or 1.0)
            wide = np.zeros((len(rows), size))
            wide[:, at : at + plain.d] = rows
            if part.family == "logistic":
                falls.append(part.y[r] * wide)
            else:
                equal.append(wide)
    if not falls:
        return False
    for edge in plain.edges:
        _recession(edge, plain.d, index, equal, bounds)
    F = np.concatenate(falls)
    rows = len(F)
    E = np.hstack([np.concatenate(equal), np.zeros((sum(map(len, equal)), rows))]) if equal else None
    result = linprog(
        np.r_[np.zeros(size), -np.ones(rows)],
        A_ub=np.hstack([-F, np.eye(rows)]),
        b_ub=np.zeros(rows),
        A_eq=E,
        b_eq=None if E is None else np.zeros(len(E)),
        bounds=[*map(tuple, bounds), *[(0.0, 1.0)] * rows],
    )
    return bool(result.status == 0 and -result.fun > 0.5)


def _argument(edge: PlainEdge, w: Array, index: dict[Any, int]) -> Array:
    z = w[index[edge.tail], edge.columns]
    return (z if edge.head is None else z - w[index[edge.head], edge.columns]) - edge.center


def _loss(part: PlainSamples, w: Array) -> float:
    if part.X is None:
        return float(part.scale @ ((w - part.y) ** 2).sum(axis=1)) / 2
    x = part.X @ w + part.offset
    if part.family == "logistic":
        each = np.logaddexp(0.0, -part.y * x)
    else:
        r = np.abs(x - part.y)
        each = r * r / 2
        if part.family == "huber":
            each = np.where(r <= part.delta, each, part.delta * r - part.delta**2 / 2)
    return float(part.scale @ each)


def _penalty(edge: PlainEdge, z: Array) -> float:
    """phi(z); 0 for constraints, which `violation` judges."""
    norm = float(np.sqrt(z @ z))
    match edge.kind:
        case "L1":
            value = np.abs(z).sum()
        case "L2":
            value = norm
        case "LInf":
            value = np.abs(z).max()
        case "SquaredL2":
            value = norm**2 / 2
        case "Quadratic":
            value = ((edge.parameter @ z) ** 2).sum() / 2
        case "HuberNorm":
            delta = edge.parameter
            value = norm**2 / 2 if norm <= delta else delta * norm - delta**2 / 2
        case _:
            value = 0.0
    return float(value)


def _excess(edge: PlainEdge, z: Array) -> float:
    """By how much z leaves the set of a constraint."""
    if edge.kind == "Zero":
        return float(np.abs(z).max())
    if edge.kind == "Ball":
        return max(float(np.sqrt(z @ z)) - edge.parameter, 0.0)
    if edge.kind == "NonNegative":
        return max(float(-z.min()), 0.0)
    low, high = edge.parameter
    return max(float((low - z).max()), float((z - high).max()), 0.0)


def _cut(plain: PlainProblem, w: Array) -> Array:
    w, index = w.copy(), {label: i for i, label in enumerate(plain.nodes)}
    for edge in plain.edges:
        if edge.kind in ("NonNegative", "Box"):
            low, high = (0.0, np.inf) if edge.kind == "NonNegative" else edge.parameter
            at = index[edge.tail]
            w[at, edge.columns] = np.clip(w[at, edge.columns], low + edge.center, high + edge.center)
    return w


def _average(plain: PlainProblem, w: Array) -> Array:
    w = w.copy()
    for j in range(plain.d):
        graph = nx.Graph()
        fixed: dict[int, float] = {}
        index = {label: i for i, label in enumerate(plain.nodes)}
        for edge in plain.edges:
            if edge.kind == "Zero" and j in edge.columns:
                if edge.head is None:
                    fixed[index[edge.tail]] = float(edge.center[list(edge.columns).index(j)])
                else:
                    graph.add_edge(index[edge.tail], index[edge.head])
        for part in nx.connected_components(graph):
            w[list(part), j] = w[list(part), j].mean()
        for i, value in fixed.items():
            w[i, j] = value
    return w


def _recession(edge: PlainEdge, d: int, index: dict[Any, int], equal: list[Array], bounds: list[list[Any]]) -> None:
    """The directions along which one edge's term does not grow, as equations or bounds."""
    at = index[edge.tail] * d + edge.columns
    if edge.kind in ("NonNegative", "Box"):
        low, high = (0.0, np.inf) if edge.kind == "NonNegative" else edge.parameter
        for k, lowest, highest in zip(at, *np.broadcast_arrays(low, high, edge.center)[:2], strict=True):
            if np.isfinite(lowest):
                bounds[k][0] = 0.0
            if np.isfinite(highest):
                bounds[k][1] = 0.0
        return
    rows = np.zeros((len(at), len(bounds)))
    rows[np.arange(len(at)), at] = 1.0
    if edge.head is not None:
        rows[np.arange(len(at)), index[edge.head] * d + edge.columns] = -1.0
    if edge.kind == "Quadratic":
        rows = edge.parameter @ rows
    equal.append(rows)
