"""Section VI: stochastic block models, chains and stars of linear models, and Algorithm 1 on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from ..computing import watched

Array = np.ndarray[Any, np.dtype[Any]]
PENALTIES = ("l1", "l2", "squared")
LABELS = {"l1": "||u||_1", "l2": "||u||_2 (nLasso)", "squared": '||u||_2^2 ("MOCHA")'}


def block_model(rng: np.random.Generator, sizes: tuple[int, ...], p_in: float, p_out: float) -> nx.Graph:
    """G^(SBM): edges with probability p_in within a cluster and p_out between clusters, of weight 1."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    i, j = np.triu_indices(len(label), 1)
    there = rng.random(len(i)) < np.where(label[i] == label[j], p_in, p_out)
    return _weighted(len(label), i[there], j[there], np.ones(int(there.sum())))


def chain(n: int, eps: float) -> nx.Graph:
    """G^(chain) of 2 n nodes; the edge between the clusters has the weight eps, and is left out where that is 0."""
    i = np.arange(2 * n - 1)
    A = np.where(i == n - 1, eps, 1.0)
    return _weighted(2 * n, i[A > 0], i[A > 0] + 1, A[A > 0])


def _weighted(n: int, tail: Array, head: Array, A: Array) -> nx.Graph:
    graph = nx.empty_graph(n)
    graph.add_weighted_edges_from(zip(tail.tolist(), head.tolist(), A.tolist(), strict=True))
    return graph


@dataclass(frozen=True)
class LinearModels:
    """Labels (37) at the nodes of a graph, of which some are accessible.

    Attributes
    ----------
    graph : networkx.Graph
    truth : (n, d)
    X : (n, m, d)
    y : (n, m)
    accessible : (n,) of bool
        The set M of (38).
    """

    graph: nx.Graph
    truth: Array
    X: Array
    y: Array
    accessible: Array

    @staticmethod
    def drawn(
        rng: np.random.Generator,
        graph: nx.Graph,
        truth: Array,
        m: int,
        sigma: float = 0.0,
        rho: float = 1.0,
        roots: Array | None = None,
    ) -> LinearModels:
        """Features from N(0, I), or N(0, R_i R_i') with ``roots`` R (n, d, d); ceil(rho n) nodes are accessible."""
        n, d = truth.shape
        X = rng.standard_normal((n, m, d))
        if roots is not None:
            X = np.einsum("imk,ijk->imj", X, roots)
        y = np.einsum("imj,ij->im", X, truth) + sigma * rng.standard_normal((n, m))
        seen = rng.permutation(n) < np.ceil(rho * n)
        return LinearModels(graph, truth, X, y, seen)

    def problem(self, penalty: str, lam: float, scale: float | None = None) -> gr.Problem:
        """(16) with the losses (38), 2/m in our scale; ``scale`` 2: sums of squares, without 1/m."""
        n, m, d = self.X.shape
        node = np.repeat(np.arange(n)[self.accessible], m)
        data = gr.NodeData.from_arrays(self.X[self.accessible].reshape(-1, d), self.y[self.accessible].ravel(), node)
        phi = {"l1": gr.L1(), "l2": gr.L2(), "squared": gr.SquaredL2()}[penalty]
        strength = 2.0 * lam if penalty == "squared" else lam  # ||u||^2, where SquaredL2 is half of it
        return gr.Problem(gr.SquaredLoss(data, scale=scale or 2.0 / m) + strength * gr.TotalVariation(self.graph, phi))

    def mse(self, w: Array) -> float:
        """(39)."""
        return float(((w - self.truth) ** 2).sum(axis=1).mean())

    def label_error(self, w: Array) -> float:
        """The mean squared error of the labels."""
        return float(((np.einsum("imj,ij->im", self.X, w) - self.y) ** 2).mean())


def algorithm_1(problem: gr.Problem, rounds: int) -> Array:
    """w after so many rounds of Algorithm 1, in the order of the nodes 0, 1, ..."""
    method = gr.PrimalDual(balance=1.0, relaxation=1.0)
    return in_order(problem, watched(problem, method, rounds, gr.Observer("w", rounds=[rounds]))["w"][-1])


def in_order(problem: gr.Problem, w: Array) -> Array:
    """Rows by node, 0, 1, ..."""
    return w[np.argsort(np.array(problem.form.labels))]
