"""P, its constraints and its attainment from the plain description: one node and one edge after the other, in numpy."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linprog

from graphreg.datasets.plain import CONSTRAINTS, PlainEdge, PlainProblem, PlainSamples

from .formulas import LABELS, Array, excess, indicators, loss_values, penalty_value, predictors

FAR = (1e6, 1e4, 1e2)  # bounds on directions, smaller ones where HiGHS gets lost
BITS = 1e-15  # relative
ROUNDING = 1e-15  # by so much a repaired point stays inside its constraints


def objective(plain: PlainProblem, w: Array) -> float:
    """The sum of all terms that are not constraints, at w (n, d)."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    with np.errstate(over="ignore"):  # of counts, at points far away
        parts = [float(part.scale @ loss_values(part, predictors(part, w[index[part.node]]))) for part in plain.samples]
    parts += [edge.weight * penalty_value(edge, _argument(edge, w, index)) for edge in plain.edges]
    return float(sum(parts))


def rounding(plain: PlainProblem, w: Array) -> float:
    """The change of P(w) by the last bits of predictors, differences and Q = R'R, where w is far away."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    total = 0.0
    for part in plain.samples:
        if part.X is None:
            continue
        own = w[index[part.node]]
        x = predictors(part, own)
        size = np.abs(part.X) @ np.abs(own).reshape(part.X.shape[1], -1)
        shift = BITS * (size.max(axis=1) + np.abs(part.offset))
        if part.family == "multinomial":
            total += 2.0 * float(part.scale @ shift)  # l grows at most by 1 for each of the class and its rival
        else:
            both = np.maximum(loss_values(part, x + shift), loss_values(part, x - shift))
            total += float(part.scale @ (both - loss_values(part, x)))
    for edge in plain.edges:
        size = np.abs(w[index[edge.tail], edge.columns])
        size = size if edge.head is None else size + np.abs(w[index[edge.head], edge.columns])
        z = _argument(edge, w, index)
        if edge.kind not in CONSTRAINTS:
            total += edge.weight * (penalty_value(edge, z + BITS * size * np.sign(z)) - penalty_value(edge, z))
        if edge.kind == "Quadratic":
            total += BITS * edge.weight * float((z**2).sum() * (edge.parameter**2).sum())
    return total


def violation(plain: PlainProblem, w: Array) -> float:
    """The largest violation of a constraint, relative to the size of what it constrains."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    worst = 0.0
    for edge in plain.edges:
        if edge.kind in CONSTRAINTS:
            scale = max(float(np.abs(w[index[edge.tail], edge.columns]).max()), float(plain.size.min()))
            worst = max(worst, excess(edge, _argument(edge, w, index)) / scale)
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
    """True where P falls for ever along some direction, so that its infimum is not attained (a linear programme)."""
    index = {label: i for i, label in enumerate(plain.nodes)}
    size = len(plain.nodes) * plain.d
    falls: list[Array] = []
    stays: list[Array] = []
    equal: list[Array] = []
    bounds: list[list[float]] = [[-np.inf, np.inf] for _ in range(size)]
    for part in plain.samples:
        at = index[part.node] * plain.d
        for kind, rows in zip((falls, stays, equal), _descent(part, plain.d), strict=True):
            wide = np.zeros((len(rows), size))
            wide[:, at : at + plain.d] = rows
            kind.append(wide)
    F, S = np.concatenate(falls), np.concatenate(stays)
    if not len(F):
        return False
    for edge in plain.edges:
        _recession(edge, plain.d, index, equal, bounds)
    rows = len(F)
    E = np.hstack([np.concatenate(equal), np.zeros((sum(map(len, equal)), rows))]) if equal else None
    for far in FAR:
        free = [(max(low, -far), min(high, far)) for low, high in bounds]
        result = linprog(
            np.r_[np.zeros(size), -np.ones(rows)],
            A_ub=np.vstack([np.hstack([-F, np.eye(rows)]), np.hstack([-S, np.zeros((len(S), rows))])]),
            b_ub=np.zeros(rows + len(S)),
            A_eq=E,
            b_eq=None if E is None else np.zeros(len(E)),
            bounds=[*free, *[(0.0, 1.0)] * rows],
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status == 0:
            return bool(-result.fun > 0.5)
    raise ArithmeticError(f"no linear programme tells whether P recedes: {result.message}")


def _descent(part: PlainSamples, d: int) -> tuple[Array, Array, Array]:
    """Rows F, S, E with F v >= 0, S v >= 0 and E v = 0 for the directions v along which no sample of a node grows.

    Where a row of F is positive a loss falls for ever; where one of S is so, to 0 and no further (hinges).
    """
    none = np.zeros((0, d))
    if part.X is None:
        return none, none, np.eye(d)
    X = part.X / np.maximum(np.linalg.norm(part.X, axis=1, keepdims=True), 1e-300)
    if part.family == "multinomial":  # the class of a sample gains on each of the others
        others = (indicators(part)[:, None, :] - np.eye(part.classes)).reshape(len(X), -1, 1, part.classes)
        rows = (X[:, None, :, None] * others).reshape(-1, d)
        return rows[np.abs(rows).any(axis=1)], none, none
    if part.family == "poisson":  # counts of 0 alone leave the predictor a way to fall
        return -X[part.y == 0], none, X[part.y > 0]
    if part.family in LABELS:
        rows = part.y[:, None] * X
        return (rows, none, none) if part.family == "logistic" else (none, rows, none)
    return none, none, X


def _argument(edge: PlainEdge, w: Array, index: dict[Any, int]) -> Array:
    z = w[index[edge.tail], edge.columns]
    return (z if edge.head is None else z - w[index[edge.head], edge.columns]) - edge.center


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
