"""Instances of GTV minimisation: (1/m_i) ||X_i w - y_i||^2 at the nodes of a weighted graph, and (6) to the letter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

Array = np.ndarray[Any, np.dtype[Any]]
LOSS = "L_i(w) = (1/m_i) ||X_i w - y_i||^2"


@dataclass(frozen=True)
class Instance:
    """Samples and a weighted graph.

    Attributes
    ----------
    X : (n, m, d)
    y : (n, m)
    tail, head : (E,)
        tail < head: e_+ and e_- of the paper.
    A : (E,)
        The weights of the edges.
    """

    X: Array
    y: Array
    tail: Array
    head: Array
    A: Array

    @staticmethod
    def drawn(rng: np.random.Generator, n: int = 6, m: int = 5, d: int = 2, graph: Any = None) -> Instance:
        """Random data; by default a cycle with a chord, weights in [0.5, 2], no two of them equal."""
        given = graph or nx.Graph([*((i, (i + 1) % n) for i in range(n)), (0, n // 2)])
        edges = np.array(sorted(tuple(sorted(e)) for e in given.edges))
        X, w = rng.standard_normal((n, m, d)), 2.0 * rng.standard_normal((n, d))
        y = np.einsum("imj,ij->im", X, w) + 0.3 * rng.standard_normal((n, m))
        return Instance(X, y, edges[:, 0], edges[:, 1], rng.uniform(0.5, 2.0, len(edges)))

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def degree(self) -> Array:
        """|N_i|, (n,)."""
        return np.bincount(np.concatenate([self.tail, self.head]), minlength=self.n)

    @property
    def incidence(self) -> Array:
        """The incidence matrix (6), (E, n)."""
        out = np.zeros((len(self.A), self.n))
        out[np.arange(len(self.A)), self.tail] = 1.0
        out[np.arange(len(self.A)), self.head] = -1.0
        return out

    # ---- in the library ----------------------------------------------------------------------------------------------
    def graph(self) -> nx.Graph:
        out = nx.Graph()
        out.add_nodes_from(range(self.n))
        out.add_weighted_edges_from(zip(self.tail.tolist(), self.head.tolist(), self.A.tolist(), strict=True))
        return out

    def problem(self, penalty: Any, lam: float) -> gr.Problem:
        """(16)."""
        return gr.Problem(self.loss() + lam * gr.TotalVariation(self.graph(), penalty))

    def loss(self) -> Any:
        n, m, d = self.X.shape
        data = gr.NodeData.from_arrays(self.X.reshape(n * m, d), self.y.ravel(), np.repeat(np.arange(n), m))
        return gr.SquaredLoss(data, scale=2.0 / m)

    # ---- the losses to the letter ------------------------------------------------------------------------------------
    @property
    def hessians(self) -> Array:
        """(n, d, d)."""
        return 2.0 / self.X.shape[1] * np.einsum("imj,imk->ijk", self.X, self.X)

    def gradients(self, w: Array) -> Array:
        """grad L_i(w_i), (n, d)."""
        off = np.einsum("imj,ij->im", self.X, w) - self.y
        return 2.0 / self.X.shape[1] * np.einsum("imj,im->ij", self.X, off)

    def losses(self, w: Array) -> Array:
        """L_i(w_i), (n,)."""
        return ((np.einsum("imj,ij->im", self.X, w) - self.y) ** 2).mean(axis=1)

    def conjugates(self, v: Array) -> Array:
        """L_i*(v_i), (n,), where m >= d."""
        zero = np.zeros_like(v)
        off = v - self.gradients(zero)
        return 0.5 * np.einsum("ij,ij->i", off, np.linalg.solve(self.hessians, off[..., None])[..., 0]) - self.losses(
            zero
        )

    def proxes(self, v: Array, rho: Array) -> Array:
        """argmin of L_i(z) + (rho_i / 2) ||v_i - z||^2, (n, d): (32)."""
        right = rho[:, None] * v - self.gradients(np.zeros_like(v))
        ridge = rho[:, None, None] * np.eye(v.shape[1])
        return np.linalg.solve(self.hessians + ridge, right[..., None])[..., 0]

    def pooled(self, nodes: Any = slice(None)) -> Array:
        """The minimiser (9) of the sum of the losses of some nodes, (d,)."""
        zero = self.gradients(np.zeros((self.n, self.X.shape[2])))
        return -np.linalg.solve(self.hessians[nodes].sum(axis=0), zero[nodes].sum(axis=0))

    def with_weights(self, A: Array) -> Instance:
        return replace(self, A=A)


def flows(solution: gr.Solution) -> Array:
    """The certified flows of the only penalty, (E, d)."""
    return solution.certificate.dual_point.flows[0]
