"""Readings of a problem for an algorithm written by hand: gradients, proxes, the graph and a mixing matrix.

A planted bug is often a wrong reading; so every algorithm takes the function that reads, and most bugs are another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.oracles import NodeGradients, Oracles
from graphreg.terms.losses import AbstractQuadraticLoss

Array = np.ndarray[Any, np.dtype[Any]]
NEWTON_STEPS = 6  # from 0, where a loss is no quadratic


@dataclass(frozen=True)
class Parts:
    """A problem sum_i f_i(w_i) + sum_e c_e phi(w_tail - w_head) of n nodes, m edges and d coordinates."""

    oracles: Oracles
    times: Array  # (n,), factors of the losses: 1
    penalty: Any  # phi
    weight: Array  # (m,), c_e: strength times weight
    K: Array  # (m, n), w -> w_tail - w_head
    back: Array  # (n, m), K' as the algorithm applies it
    late: Array  # (m, n), the part of K that is applied to the point of the round before: 0
    C: Array  # (n, n), the mixing matrix of Metropolis and Hastings

    @property
    def shape(self) -> tuple[int, int]:
        return self.oracles.n, self.oracles.d

    # ---- the losses ------------------------------------------------------------------------------------------------
    def gradient(self, w: Array) -> Array:
        return self.times[:, None] * self.oracles.gradient(w)

    @cached_property
    def _newton(self) -> NodeGradients:
        return NodeGradients(self.oracles.form)

    @cached_property
    def _constant(self) -> Array | None:
        """The Hessians, where they are the same everywhere."""
        quadratic = all(isinstance(block.loss, AbstractQuadraticLoss) for block in self.oracles.form.samples)
        return self._newton.hessians(np.zeros(self.shape)) if quadratic else None

    def argmin(self, pull: Array, bend: Array | float = 0.0) -> Array:
        """argmin f_i(w) + bend_i / 2 ||w||^2 - <pull_i, w>, (n, d), by Newton's method."""
        bends = np.broadcast_to(bend, (self.shape[0],))[:, None]
        eye, w = bends[:, :, None] * np.eye(self.shape[1]), np.zeros(self.shape)
        for _ in range(NEWTON_STEPS if self._constant is None else 1):
            H = self._newton.hessians(w) if self._constant is None else self._constant
            H = self.times[:, None, None] * H + eye
            w = w - np.linalg.solve(H, (self.gradient(w) + bends * w - pull)[:, :, None])[:, :, 0]
        return w

    def prox(self, v: Array, step: Array | float) -> Array:
        """argmin f_i(w) + 1/(2 step_i) ||w - v_i||^2, (n, d)."""
        bend = 1.0 / np.broadcast_to(step, (self.shape[0],))
        return self.argmin(bend[:, None] * v, bend)

    # ---- the edges -------------------------------------------------------------------------------------------------
    def dual_prox(self, u: Array, sigma: float) -> Array:
        """The prox of sigma g*, by Moreau's identity."""
        return u - sigma * self.penalty.prox(u / sigma, self.weight / sigma)

    def differences(self, w: Array, before: Array) -> Array:
        """K w, as the edges are told of w."""
        return (self.K - self.late) @ w + self.late @ before

    @cached_property
    def norm(self) -> float:
        """||K||^2."""
        return float(np.linalg.norm(self.K, 2) ** 2)

    @cached_property
    def neighbours(self) -> Array:
        """The adjacency matrix, (n, n)."""
        linked = np.abs(self.K).T @ np.abs(self.K)
        return linked - np.diag(np.diag(linked))

    @cached_property
    def lazy(self) -> Array:
        """(I + C) / 2, whose eigenvalues are not negative."""
        return (np.eye(len(self.C)) + self.C) / 2.0


Read = Callable[[gr.Problem], Parts]


def parts_of(problem: gr.Problem) -> Parts:
    """A problem with one penalty on its edges."""
    oracles = problem.oracles()
    (edges,) = (edge for edge in oracles.form.edges if not edge.ground)
    K = oracles.K.toarray()
    one = np.ones(oracles.n)
    return Parts(oracles, one, edges.penalty, oracles.weight, K, K.T, np.zeros_like(K), metropolis(K))


def metropolis(K: Array) -> Array:
    """c_ij = 1 / (1 + max(d_i, d_j)) between neighbours, and rows of sum 1."""
    linked = np.abs(K).T @ np.abs(K)
    degree = np.diag(linked)
    C = linked / (1.0 + np.maximum(degree[:, None], degree))
    C = C - np.diag(np.diag(C))
    return C + np.diag(1.0 - C.sum(axis=1))


def begin(parts: Parts, start: Array | None) -> Array:
    """The start: 0, if nothing is said."""
    return np.zeros(parts.shape) if start is None else np.array(start, dtype=float)
