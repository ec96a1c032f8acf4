"""What an algorithm written by hand reads of a problem: gradients, proxes, the graph and a mixing matrix.

A planted bug is often a wrong reading; so every algorithm takes the function that reads, and most bugs are another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.form import EdgeBlock, SampleBlock
from graphreg.terms.losses import AbstractQuadraticLoss
from graphreg.terms.penalties import AbstractSmoothPenalty

Array = np.ndarray[Any, np.dtype[Any]]
NEWTON_STEPS = 12  # from 0, where a loss is no quadratic


@dataclass(frozen=True)
class Parts:
    """A problem of n nodes, m edges and d coordinates, as losses f_i, a penalty on the edges, and one on the nodes."""

    shape: tuple[int, int]
    samples: tuple[SampleBlock, ...]
    nodes: tuple[EdgeBlock, ...]  # penalties on nodes
    penalty: Any
    weight: Array  # (m,), strength times weight of each edge
    K: Array  # (m, n), w -> w_tail - w_head
    back: Array  # (n, m), K' as the algorithm applies it
    C: Array  # (n, n), the mixing matrix of Metropolis and Hastings
    late: Array  # (m, n), the part of K that is applied to the point of the round before: none

    # ---- the losses ------------------------------------------------------------------------------------------------
    @cached_property
    def ridges(self) -> tuple[EdgeBlock, ...]:
        """Penalties on nodes that are smooth, and so part of f."""
        return tuple(edge for edge in self.nodes if isinstance(edge.penalty, AbstractSmoothPenalty))

    def gradient(self, w: Array) -> Array:
        """The gradients of f, (n, d)."""
        return sum((block.adjoint(block.prices(w), self.shape) for block in self.samples), self.shrinkage(w))

    def shrinkage(self, w: Array) -> Array:
        """The gradients of the smooth penalties on nodes, (n, d)."""
        out = np.zeros(self.shape)
        for edge in self.ridges:
            edge.add_adjoint(edge.gradients(w), out)
        return out

    @cached_property
    def quadratic(self) -> bool:
        return all(isinstance(block.loss, AbstractQuadraticLoss) for block in self.samples)

    @cached_property
    def _ridge(self) -> Array:
        """The Hessians of the smooth penalties on nodes, (n, d, d)."""
        out = np.zeros((*self.shape, self.shape[1]))
        for edge in self.ridges:
            j = edge.columns(self.shape[1])
            out[np.ix_(edge.tail, j, j)] += edge.curvatures(np.zeros(self.shape))
        return out

    def hessian(self, w: Array) -> Array:
        """(n, d, d)."""
        return sum((block.sums(block.curvatures(w)) for block in self.samples), self._ridge)

    @cached_property
    def flat(self) -> Array:
        """The Hessians at 0."""
        return self.hessian(np.zeros(self.shape))

    @cached_property
    def smoothness(self) -> Array:
        """L_i, bounds of the curvature of f, (n,); of X alone."""
        most = (block.sums(block.scale * block.loss.smoothness()) for block in self.samples)
        return np.linalg.eigvalsh(sum(most, self._ridge)).max(axis=1)

    @cached_property
    def convexity(self) -> Array:
        """mu_i, (n,); of X alone."""
        least = (block.sums(block.scale * block.loss.least_curvature()) for block in self.samples)
        return np.linalg.eigvalsh(sum(least, self._ridge)).min(axis=1)

    def argmin(self, pull: Array, bend: Array | float = 0.0) -> Array:
        """argmin f_i(w) + bend_i / 2 ||w||^2 - <pull_i, w>, (n, d), by Newton's method."""
        bends = np.broadcast_to(bend, (self.shape[0],))[:, None]
        eye, w = bends[:, :, None] * np.eye(self.shape[1]), np.zeros(self.shape)
        for _ in range(1 if self.quadratic else NEWTON_STEPS):
            H = self.flat if self.quadratic else self.hessian(w)
            w = w - np.linalg.solve(H + eye, (self.gradient(w) + bends * w - pull)[:, :, None])[:, :, 0]
        return w

    def prox(self, v: Array, step: Array | float) -> Array:
        """argmin f_i(w) + 1/(2 step_i) ||w - v_i||^2, (n, d)."""
        bend = 1.0 / np.broadcast_to(step, (self.shape[0],))
        return self.argmin(bend[:, None] * v, bend)

    # ---- the penalties ---------------------------------------------------------------------------------------------
    def dual_prox(self, u: Array, sigma: float) -> Array:
        """The prox of sigma g*, by Moreau's identity."""
        return u - sigma * self.penalty.prox(u / sigma, self.weight / sigma)

    def node_prox(self, v: Array, step: float) -> Array:
        """The prox of step times the penalties on nodes that are not smooth."""
        out = v.copy()
        for edge in self.nodes:
            if edge not in self.ridges:
                j = np.ix_(edge.tail, edge.columns(self.shape[1]))
                out[j] = edge.penalty.prox(out[j], step * edge.weight)
        return out

    # ---- the graph -------------------------------------------------------------------------------------------------
    def differences(self, w: Array, before: Array) -> Array:
        """K w, as the edges are told of w."""
        return (self.K - self.late) @ w + self.late @ before

    @cached_property
    def norm(self) -> float:
        """||K||^2."""
        return float(np.linalg.norm(self.K, 2) ** 2) if len(self.K) else 1.0

    @cached_property
    def lazy(self) -> Array:
        """(I + C) / 2, whose eigenvalues are not negative."""
        return (np.eye(len(self.C)) + self.C) / 2.0


def parts_of(problem: gr.Problem) -> Parts:
    """A problem with one penalty on its edges."""
    form = problem.form.frozen()
    (edges,) = (edge for edge in form.edges if not edge.ground)
    K = edges.K.toarray()
    linked = np.abs(K).T @ np.abs(K)
    degree = np.diag(linked).copy()
    C = linked / (1.0 + np.maximum(degree[:, None], degree))
    np.fill_diagonal(C, 0.0)
    np.fill_diagonal(C, 1.0 - C.sum(axis=1))
    grounds = tuple(edge for edge in form.edges if edge.ground)
    return Parts(form.shape, form.samples, grounds, edges.penalty, edges.weight, K, K.T, C, np.zeros_like(K))


def begin(parts: Parts, start: Array | None) -> Array:
    """Where to begin: 0, if nothing is said."""
    return np.zeros(parts.shape) if start is None else np.array(start, dtype=float)
