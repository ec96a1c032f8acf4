"""Penalties of a user's that are not even, as a class: refused between nodes, where an edge has no direction.

Taken, they make the optimum depend on the order in which edges are listed. Each is drawn beside its even twin, which
must be taken, as it must itself on the ground; without that, refusing everything would pass.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.special import wrightomega, xlogy

import graphreg as gr
from graphreg.datasets.plain import Array

from .judged import Answer, Row, raised


def _t(step: Any) -> Array:
    return np.asarray(step, dtype=float).reshape(-1, 1)


@dataclass(frozen=True)
class Pinball(gr.Penalty):
    """max(up z, -down z), summed; one-sided where one slope is 0."""

    up: float
    down: float

    def value(self, z: Array) -> Array:
        return np.maximum(self.up * z, -self.down * z).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        return v - np.clip(v, -_t(step) * self.down, _t(step) * self.up)

    def conjugate(self, u: Array) -> Array:
        return np.where(((u <= self.up) & (u >= -self.down)).all(axis=1), 0.0, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.maximum(self.up * Z, -self.down * Z), axis=1)


@dataclass(frozen=True)
class TwoHubers(gr.Penalty):
    """z^2 / 2 up to another delta on each side, and linear beyond; even between them."""

    up: float
    down: float

    def value(self, z: Array) -> Array:
        near = np.clip(z, -self.down, self.up)
        return (near * z - near**2 / 2).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        t = _t(step)
        return v - t * np.clip(v / (1 + t), -self.down, self.up)

    def conjugate(self, u: Array) -> Array:
        inside = ((u <= self.up) & (u >= -self.down)).all(axis=1)
        return np.where(inside, (u**2).sum(axis=1) / 2, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.huber(cp.pos(Z), self.up) + cp.huber(cp.neg(Z), self.down), axis=1) / 2


@dataclass(frozen=True)
class TwoSquares(gr.Penalty):
    """up z^2 / 2 where z > 0 and down z^2 / 2 elsewhere."""

    up: float
    down: float

    def value(self, z: Array) -> Array:
        return (np.where(z > 0, self.up, self.down) * z**2).sum(axis=1) / 2

    def prox(self, v: Array, step: Any) -> Array:
        return v / (1 + _t(step) * np.where(v > 0, self.up, self.down))

    def conjugate(self, u: Array) -> Array:
        return (u**2 / np.where(u > 0, self.up, self.down)).sum(axis=1) / 2

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(self.up * cp.square(cp.pos(Z)) + self.down * cp.square(cp.neg(Z)), axis=1) / 2


@dataclass(frozen=True)
class Interval(gr.Penalty):
    """The distance to [-down, up], summed: |z - s| less a constant, shifted."""

    up: float
    down: float

    def value(self, z: Array) -> Array:
        return np.abs(z - np.clip(z, -self.down, self.up)).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        far = v - np.clip(v, -self.down, self.up)
        return v - np.clip(far, -_t(step), _t(step))

    def conjugate(self, u: Array) -> Array:
        inside = (np.abs(u) <= 1).all(axis=1)
        return np.where(inside, np.maximum(self.up * u, -self.down * u).sum(axis=1), np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.pos(Z - self.up) + cp.pos(-self.down - Z), axis=1)


@dataclass(frozen=True)
class Exponential(gr.Penalty):
    """exp(a z) - a z - 1, summed (linex); its even twin is the sum of both signs."""

    up: float
    down: float = 0.0

    def value(self, z: Array) -> Array:
        with np.errstate(over="ignore"):
            return (np.expm1(self.up * z) - self.up * z).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        a, t = self.up, _t(step)
        shifted = v + t * a
        return shifted - wrightomega(a * shifted + np.log(t * a * a)) / a

    def conjugate(self, u: Array) -> Array:
        q = 1 + u / self.up
        with np.errstate(invalid="ignore"):
            return np.where((q >= 0).all(axis=1), (xlogy(q, q) - q + 1).sum(axis=1), np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return cp.sum(cp.exp(self.up * Z) - self.up * Z - 1, axis=1)


@dataclass(frozen=True)
class Ball(gr.Penalty):
    """The distance to a ball around a point that is not 0, with 0 inside: even in no coordinate, and no sum."""

    up: float
    down: float

    def _parts(self, z: Array) -> tuple[Array, Array, float]:
        far = z - (self.up - self.down) / 2 / np.sqrt(z.shape[1])
        return far, np.linalg.norm(far, axis=1, keepdims=True), (self.up + self.down) / 2

    def value(self, z: Array) -> Array:
        _, norm, radius = self._parts(z)
        return np.maximum(norm - radius, 0.0)[:, 0]

    def prox(self, v: Array, step: Any) -> Array:
        far, norm, radius = self._parts(v)
        return v - np.clip(norm - radius, 0.0, _t(step)) * far / np.where(norm > 0, norm, 1.0)

    def conjugate(self, u: Array) -> Array:
        shift, radius = (self.up - self.down) / 2 / np.sqrt(u.shape[1]), (self.up + self.down) / 2
        norm = np.sqrt((u**2).sum(axis=1))
        return np.where(norm <= 1, shift * u.sum(axis=1) + radius * norm, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        shift = (self.up - self.down) / 2 / np.sqrt(Z.shape[1])
        return cp.pos(cp.norm(Z - shift, axis=1) - (self.up + self.down) / 2)


KINDS: tuple[type[Any], ...] = (Pinball, TwoHubers, TwoSquares, Interval, Ball, Exponential)


@dataclass(frozen=True)
class Drawn:
    """A penalty that is not even, its even twin (None: it has none), and the problem around them."""

    penalty: Any
    even: Any
    data: gr.NodeData
    graph: gr.Graph
    p: int

    def problem(self, penalty: Any) -> gr.Problem:
        return gr.Problem(gr.SquaredLoss(self.data) + 0.3 * gr.TotalVariation(self.graph, penalty))

    def grounded(self) -> gr.Problem:
        """With the penalty on the nodes, where a direction is given."""
        terms = gr.TotalVariation(self.graph, gr.L1()) + 0.3 * gr.NodePenalty(self.penalty)
        return gr.Problem(gr.SquaredLoss(self.data) + 0.3 * terms)


def uneven(seed: int) -> Drawn:
    """Sides that differ by a factor of 2 to 1 + 1e-6, or are 0; sizes of 1e-2 to 1e2."""
    rng = np.random.default_rng([seed, 12])
    kind = KINDS[seed % len(KINDS)]
    size = float(10.0 ** rng.uniform(-2, 2)) if kind is not Exponential else float(10.0 ** rng.uniform(-2, 0.5))
    factor = 1.0 + float(10.0 ** rng.uniform(-6, 0)) if rng.random() < 0.5 else float(rng.uniform(2, 10))
    sides = (size, size / factor) if rng.random() < 0.5 else (size / factor, size)
    if kind is Pinball and rng.random() < 0.3:
        sides = (size, 0.0) if rng.random() < 0.5 else (0.0, size)
    n, p = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    rows = {k: (rng.standard_normal((p + 2, p)), 3.0 * rng.standard_normal(p + 2)) for k in range(n)}
    even = None if kind is Exponential else kind(size, size)
    return Drawn(kind(*sides), even, gr.NodeData.from_dict(rows), gr.Graph.chain(n), p)


def examine(seed: int) -> Row:
    """The answers to whether it is refused between nodes, and only there."""
    began = time.perf_counter()
    drawn = uneven(seed)
    kind = type(drawn.penalty).__name__
    size = (drawn.graph.n_nodes, drawn.graph.n_edges, drawn.p)
    row = Row(seed, "squared", kind, "one graph", [repr(drawn.penalty)], *size, 0.0, None)
    row.answers.append(_said("between nodes", lambda: drawn.problem(drawn.penalty), refused=True))
    if drawn.even is not None:
        row.answers.append(_said("even twin", lambda: drawn.problem(drawn.even)))
    row.answers.append(_said("on the ground", drawn.grounded))
    row.seconds = time.perf_counter() - began
    return row


def _said(name: str, make: Any, refused: bool = False) -> Answer:
    try:
        problem = make()
        problem.form  # noqa: B018  (it is made here)
        answer = Answer(name, "taken")
    except Exception as error:  # noqa: BLE001  (whatever it is, it belongs into the table)
        answer = raised(name, error)
    if answer.status == "exception":
        return answer
    if refused != (answer.status == "refused"):
        answer.wrong.append(f"{answer.status}: {answer.message or 'a penalty that is not even, between nodes'}")
    return answer
