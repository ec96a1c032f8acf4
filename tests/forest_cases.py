"""Forests with losses of one coordinate at a time: what dynamic programming takes, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr

SHAPES = ("chain", "bushy", "any")
LOSSES = (gr.MeanLoss, gr.SquaredLoss, gr.HuberLoss, gr.QuantileLoss)
ONE_SIDED = {
    "rises": gr.NonNegative(),
    "falls": gr.Box(-np.inf, 0.0),
    "falling is dear": gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.neg(z)), name="falling"),
    "both, not alike": gr.Penalty.from_cvxpy(lambda z: cp.sum(0.25 * cp.neg(z) + 2.0 * cp.pos(z)), name="uneven"),
}


@dataclass(frozen=True)
class Drawn:
    """Arrays of a problem: so that it can be written down again in another order."""

    n: int
    tail: np.ndarray
    head: np.ndarray
    weight: np.ndarray
    node: np.ndarray
    X: np.ndarray | None
    y: np.ndarray
    scale: np.ndarray
    loss: type
    extra: str

    def with_arrows(self, penalty):
        """With a penalty of `ONE_SIDED` on arrows, in place of the l1 norm on edges."""
        arrows = nx.DiGraph()
        arrows.add_nodes_from(range(self.n))
        weight = np.ones(len(self.tail)) if penalty in ("rises", "falls") else self.weight  # constraints take none
        arrows.add_weighted_edges_from(zip(self.tail.tolist(), self.head.tolist(), weight.tolist(), strict=True))
        data = gr.NodeData.from_arrays(self.X, self.y, self.node, weights=self.scale)
        return gr.Problem(self._whole(data, ONE_SIDED[penalty](gr.w.across(arrows))))

    def problem(self, order=None, turned=None, strength=1.0):
        """With the nodes in another order, and some edges turned round."""
        label = np.arange(self.n) if order is None else np.asarray(order)
        turned = np.zeros(len(self.tail), bool) if turned is None else turned
        tail, head = np.where(turned, self.head, self.tail), np.where(turned, self.tail, self.head)
        graph = gr.Graph(tuple(range(self.n)), label[tail], label[head], self.weight)
        data = gr.NodeData.from_arrays(self.X, self.y, label[self.node], weights=self.scale)
        return gr.Problem(self._whole(data, strength * gr.TotalVariation(graph, gr.L1())))

    def _whole(self, data, edges):
        model = self.loss(data, scale="sum") + edges
        if self.extra:
            model = model + 0.3 * gr.NodePenalty({"ridge": gr.SquaredL2(), "lasso": gr.L1()}[self.extra])
        return model


def forest(rng, n, shape, missing=0.1):
    """Tails and heads of random trees, in a random order of nodes and in random directions."""
    ends = []
    for i in range(1, n):
        if rng.random() >= missing:
            j = i - 1 if shape == "chain" else rng.integers(max(0, i - 6), i) if shape == "any" else rng.integers(0, i)
            ends.append((i, int(j)) if rng.random() < 0.5 else (int(j), i))
    tail, head = np.array(ends, dtype=int).reshape(-1, 2).T
    order = rng.permutation(n)
    return order[tail], order[head]


def drawn(seed, loss=None, *, n=30, decades=2.0, offset=0.0, d=None):
    """A random problem: weights of edges and of samples over twice so many decades, a fifth of the nodes without data,
    several samples at a node, whole numbers (and so ties) now and then."""
    rng = np.random.default_rng(seed)
    loss = LOSSES[seed % 4] if loss is None else loss
    tail, head = forest(rng, n, SHAPES[int(rng.integers(3))])
    node = rng.choice(np.flatnonzero(rng.random(n) < 0.8), size=2 * n)
    d = int(rng.integers(1, 3)) if d is None else d
    X, y = None, rng.standard_normal((len(node), d))
    if loss is not gr.MeanLoss:
        X, y = np.zeros((len(node), d)), y[:, 0]
        X[np.arange(len(node)), rng.integers(d, size=len(node))] = 1.0 if offset else rng.choice([1.0, -0.5, 2.0])
    y = (np.round(2.0 * y) if rng.random() < 0.4 else y) + offset
    weight, scale = (10.0 ** rng.uniform(-decades, decades, m) for m in (len(tail), len(node)))
    extra = "" if offset else ("", "", "ridge", "lasso")[int(rng.integers(4))]
    return Drawn(n, tail, head, weight, node, X, y, scale, loss, extra)
