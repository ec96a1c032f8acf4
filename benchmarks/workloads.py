"""The workloads: seeded problems that graphreg and its rivals are given in the same arrays.

    minimise over w in R^(n x d):   sum_i f_i(w_i) + strength sum_e weight_e phi(w_tail - w_head)

with squared losses ``scale/2 sum_r (x_r'w_i - y_r)^2``, logistic losses ``scale sum_r log(1 + exp(-y_r x_r'w_i))`` or
means ``1/2 ||w_i - y_i||^2`` (X is None).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

import graphreg as gr
from graphreg.graph import difference_matrix

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Workload:
    """One problem. ``edges`` (m, 2) has the tail before the head; X (n, s, d) or None, y (n, s) or (n, d)."""

    name: str
    edges: Array
    weight: Array
    strength: float
    penalty: str  # "l1" or "l2"
    loss: str  # "squared", "logistic" or "mean"
    X: Array | None
    y: Array
    scale: float

    @property
    def shape(self) -> tuple[int, int]:
        """n, d."""
        return (self.y.shape[0], self.y.shape[1]) if self.X is None else (self.X.shape[0], self.X.shape[2])

    def describe(self) -> str:
        n, d = self.shape
        return f"{n} nodes, {len(self.edges)} edges, d = {d}, {self.loss} + {self.penalty}"

    def difference(self) -> Any:
        """K, (m, n), sparse."""
        return difference_matrix(self.edges[:, 0], self.edges[:, 1], self.shape[0])

    def objective(self, w: Array) -> float:
        """P(w), written out independently of graphreg."""
        z = w[self.edges[:, 0]] - w[self.edges[:, 1]]
        size = np.abs(z).sum(axis=1) if self.penalty == "l1" else np.sqrt((z * z).sum(axis=1))
        return self._losses(w) + float(self.strength * (self.weight @ size))

    def _losses(self, w: Array) -> float:
        if self.X is None:
            return float(self.scale / 2 * ((w - self.y) ** 2).sum())
        x = np.einsum("nsd,nd->ns", self.X, w)
        if self.loss == "logistic":
            return float(self.scale * np.logaddexp(0.0, -self.y * x).sum())
        return float(self.scale / 2 * ((x - self.y) ** 2).sum())

    def problem(self) -> gr.Problem:
        """The same as a graphreg problem."""
        n, d = self.shape
        graph = gr.Graph(tuple(range(n)), self.edges[:, 0], self.edges[:, 1], self.weight)
        penalty = gr.L1() if self.penalty == "l1" else gr.L2()
        return gr.Problem(self._loss_term(n, d) + self.strength * gr.TotalVariation(graph, penalty))

    def _loss_term(self, n: int, d: int) -> Any:
        if self.X is None:
            return gr.MeanLoss(gr.NodeData.from_arrays(None, self.y, np.arange(n)), scale=self.scale)
        node = np.repeat(np.arange(n), self.X.shape[1])
        data = gr.NodeData.from_arrays(self.X.reshape(-1, d), self.y.ravel(), node)
        loss = gr.LogisticLoss if self.loss == "logistic" else gr.SquaredLoss
        return loss(data, scale=self.scale)


# ---- graphs ----------------------------------------------------------------------------------------------------------
def _blocks(sizes: list[int], p_in: float, p_out: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """A stochastic block model: its edges and the block of each node."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    if label.size <= 3000:
        i, j = np.triu_indices(label.size, 1)
        chosen = rng.random(i.size) < np.where(label[i] == label[j], p_in, p_out)
        return np.column_stack([i[chosen], j[chosen]]), label
    inner: list[Array] = []
    start = 0
    for size in sizes:
        i, j = np.triu_indices(size, 1)
        chosen = rng.random(i.size) < p_in
        inner.append(np.column_stack([i[chosen], j[chosen]]) + start)
        start += size
    pairs = (label.size * (label.size - 1) - sum(size * (size - 1) for size in sizes)) // 2
    outer = _cross_edges(label, int(rng.binomial(pairs, p_out)), rng)
    return np.concatenate([*inner, outer]), label


def _cross_edges(label: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` distinct edges between blocks, by rejection."""
    n, found = label.size, set[tuple[int, int]]()
    while len(found) < count:
        ends = rng.integers(0, n, 2 * count), rng.integers(0, n, 2 * count)
        for a, b in zip(*(e.tolist() for e in ends), strict=True):
            if label[a] != label[b]:
                found.add((min(a, b), max(a, b)))
                if len(found) >= count:
                    break
    return np.array(sorted(found)).reshape(-1, 2)


def _neighbours(points: Array, k: int) -> tuple[Array, Array]:
    """k nearest neighbours with Gaussian weights."""
    distance, near = KDTree(points).query(points, k + 1)
    pairs = np.column_stack([np.repeat(np.arange(len(points)), k), near[:, 1:].ravel()])
    edges, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    square = distance[:, 1:].ravel()[first] ** 2
    return edges, np.exp(-square / np.median(square))


# ---- the workloads ---------------------------------------------------------------------------------------------------
def w1(penalty: str) -> Workload:
    """Two clusters of 100 nodes, d = 100 with 10 samples per node (rank-deficient)."""
    rng = np.random.default_rng(0)
    edges, label = _blocks([100, 100], 0.5, 0.01, rng)
    truth = (0.5 * rng.integers(0, 2, (2, 100)))[label]
    X = rng.standard_normal((200, 10, 100))
    y = np.einsum("nsd,nd->ns", X, truth) + 1e-3 * rng.standard_normal((200, 10))
    return Workload(f"W1-{penalty}", edges, np.ones(len(edges)), 1e-2, penalty, "squared", X, y, 2.0 / 10)


def w2() -> Workload:
    """60 nodes in 5 complete clusters, a tenth of all pairs flipped; averaged losses."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(5), 12)
    i, j = np.triu_indices(60, 1)
    on = (label[i] == label[j]) ^ (rng.random(i.size) < 0.1)
    edges = np.column_stack([i[on], j[on]])
    centers = rng.standard_normal((5, 20))
    X = rng.standard_normal((60, 100, 20))
    y = np.einsum("nsd,nd->ns", X, centers[label]) + 0.5 * rng.standard_normal((60, 100))
    return Workload("W2", edges, np.full(len(edges), 1.0 / len(edges)), 0.03, "l1", "squared", X, y, 1.0 / 100 / 60)


def w3(side: int = 300) -> Workload:
    """A noisy piecewise constant image, its total variation along the four-neighbour grid."""
    rng = np.random.default_rng(0)
    image = np.zeros((side, side))
    v, h = np.mgrid[:side, :side] / side
    for _ in range(12):
        x, y, r, level = rng.random(), rng.random(), 0.05 + 0.25 * rng.random(), rng.random()
        if rng.random() < 0.5:
            image[(h - x) ** 2 + (v - y) ** 2 < r * r] = level
        else:
            image[(abs(h - x) < r) & (abs(v - y) < r)] = level
    noisy = image + 0.3 * rng.standard_normal(image.shape)
    number = np.arange(side * side).reshape(side, side)
    across = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    down = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
    edges = np.concatenate([across, down])
    return Workload(f"W3-{side}", edges, np.ones(len(edges)), 0.3, "l1", "mean", None, noisy.reshape(-1, 1), 1.0)


def w4() -> Workload:
    """Convex clustering of 1000 points (three arcs in 10 dimensions) on a nearest-neighbour graph."""
    rng = np.random.default_rng(0)
    n = 1000
    angle = rng.random(n) * np.pi
    arc = np.arange(n) % 3
    points = np.zeros((n, 10))
    points[:, 0] = np.cos(angle) * np.where(arc == 1, -1, 1) + arc
    points[:, 1] = np.sin(angle) * np.where(arc == 1, -1, 1) + 0.4 * (arc == 1)
    points += 0.1 * rng.standard_normal((n, 10))
    edges, weight = _neighbours(points, 10)
    return Workload("W4", edges, weight, 0.3, "l2", "mean", None, points, 1.0)


def w5() -> Workload:
    """10,000 nodes in 20 clusters, about 100,000 edges, linear regression."""
    rng = np.random.default_rng(0)
    n = 10_000
    edges, label = _blocks([500] * 20, 18.0 / 499, 2.0 / (n - 500), rng)
    centers = rng.standard_normal((20, 10))
    X = rng.standard_normal((n, 20, 10))
    y = np.einsum("nsd,nd->ns", X, centers[label]) + 0.5 * rng.standard_normal((n, 20))
    return Workload("W5", edges, np.ones(len(edges)), 0.1, "l2", "squared", X, y, 2.0 / 20)


def w6() -> Workload:
    """Logistic regression at 200 nodes of a ring (three neighbours on each side), four clusters."""
    rng = np.random.default_rng(0)
    n = 200
    ring = np.array([(i, (i + step) % n) for i in range(n) for step in (1, 2, 3)])
    edges = np.unique(np.sort(ring, axis=1), axis=0)
    centers = rng.standard_normal((4, 10))
    X = rng.standard_normal((n, 50, 10))
    p = 1.0 / (1.0 + np.exp(-np.einsum("nsd,nd->ns", X, centers[np.arange(n) * 4 // n])))
    y = np.where(rng.random((n, 50)) < p, 1.0, -1.0)
    return Workload("W6", edges, np.ones(len(edges)), 2e-2, "l2", "logistic", X, y, 1.0 / 50)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "W1-l2": lambda: w1("l2"),
    "W1-l1": lambda: w1("l1"),
    "W2": w2,
    "W3-300": w3,
    "W4": w4,
    "W5": w5,
    "W6": w6,
}
