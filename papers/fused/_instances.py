"""The model of section 5: linear regressions in clusters, and a graph of which edges were flipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import graphreg as gr

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Study:
    """y = x'theta_u + noise at every node, x ~ N(0, I), and equal theta_u within a cluster.

    Attributes
    ----------
    X : (V, n, p)
    y : (V, n)
    truth : (V, p)
        Theta*.
    cluster : (V,)
    edges : (m, 2)
        Of the graph G, the smaller node first.
    """

    X: Array
    y: Array
    truth: Array
    cluster: Array
    edges: Array

    @staticmethod
    def drawn(
        rng: np.random.Generator,
        V: int = 20,
        n: int = 50,
        corruption: float = 0.1,
        p: int = 20,
        K: int = 5,
        noise: float = 1.0,
    ) -> Study:
        """As section 5 has it: clusters of one size, centres from N(0, p^(-1/2) I), and each pair of nodes joined
        as in G_0, or flipped, with probability ``corruption``."""
        cluster = np.arange(V) * K // V
        truth = (p**-0.25 * rng.standard_normal((K, p)))[cluster]
        X = rng.standard_normal((V, n, p))
        y = np.einsum("ukj,uj->uk", X, truth) + noise * rng.standard_normal((V, n))
        i, j = np.triu_indices(V, 1)
        joined = (cluster[i] == cluster[j]) != (rng.random(len(i)) < corruption)
        return Study(X, y, truth, cluster, np.stack([i, j], axis=1)[joined])

    # ---- in the library ----------------------------------------------------------------------------------------------
    @property
    def data(self) -> gr.NodeData:
        V, n, p = self.X.shape
        return gr.NodeData.from_arrays(self.X.reshape(V * n, p), self.y.ravel(), np.repeat(np.arange(V), n))

    @property
    def graph(self) -> gr.Graph:
        """G."""
        return self.joined(self.edges)

    @property
    def clusters(self) -> gr.Graph:
        """G_0, the characteristic graph."""
        i, j = np.triu_indices(len(self.cluster), 1)
        return self.joined(np.stack([i, j], axis=1)[self.cluster[i] == self.cluster[j]])

    def joined(self, edges: Array) -> gr.Graph:
        return gr.Graph.from_edges(map(tuple, edges.tolist()), nodes=range(len(self.X)))

    def loss(self, whole: bool = False) -> gr.SquaredLoss:
        """(1/V) sum_u M_u; with ``whole`` the sum of the M_u."""
        V, n, _ = self.X.shape
        return gr.SquaredLoss(self.data, scale=1.0 / n if whole else 1.0 / (V * n))

    def problem(self, strength: Any, penalty: Any = None, graph: Any = None, whole: bool = False) -> gr.Problem:
        """(4), with l1 as in section 5; ``graph``: another one than G."""
        tied = gr.TotalVariation(self.graph if graph is None else graph, penalty or gr.L1())
        return gr.Problem(self.loss(whole) + strength * tied)

    # ---- to the letter -----------------------------------------------------------------------------------------------
    def gradients(self, theta: Array) -> Array:
        """grad M_u(theta_u), (V, p)."""
        residual = np.einsum("ukj,uj->uk", self.X, theta) - self.y
        return np.einsum("ukj,uk->uj", self.X, residual) / self.X.shape[1]

    def hessians(self) -> Array:
        """Those of the M_u, (V, p, p)."""
        return np.einsum("ukj,ukl->ujl", self.X, self.X) / self.X.shape[1]

    def error(self, theta: Array) -> float:
        """||Theta - Theta*||_F^2 / V."""
        return float(((theta - self.truth) ** 2).sum()) / len(theta)


def squared(a: Array, b: Array) -> float:
    """||a - b||_F^2 / V."""
    return float(((a - b) ** 2).sum()) / len(a)
