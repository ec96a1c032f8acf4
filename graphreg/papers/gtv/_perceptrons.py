"""The networks (40) at all nodes, with two dense layers, and how the compared methods train them.

The losses are not convex: nothing here has a certificate. All nodes begin at the same random weights, as parameters of
networks that began apart cannot be averaged (and w = 0, with which Algorithm 1 begins, has gradient 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

import graphreg as gr

Array = np.ndarray[Any, np.dtype[Any]]
TINY = 1e-9
RATE, MOMENTS, LEAST = 0.003, (0.9, 0.999), 1e-8  # of Adam


@dataclass(frozen=True)
class Perceptrons:
    """h(x; w) = SoftMax(W_2 ReLU(W_1 x)) at each node, w = (W_1, W_2) in a row.

    Attributes
    ----------
    X : (n, m, p)
    label : (n, m)
        The class of each sample, 0 to classes - 1.
    classes, hidden : int
    """

    X: Array
    label: Array
    classes: int
    hidden: int

    def start(self, rng: np.random.Generator) -> Array:
        """Random weights, the same at all nodes, (n, hidden (p + classes))."""
        p, h, c = self.X.shape[2], self.hidden, self.classes
        one = np.concatenate([rng.standard_normal(h * p) * np.sqrt(2.0 / p), rng.standard_normal(c * h) / np.sqrt(h)])
        return np.tile(one, (len(self.X), 1))

    def _forward(self, w: Array, X: Array) -> tuple[Array, Array, Array]:
        """What the first layer gives, W_2, and the probabilities."""
        n, p, h = len(w), X.shape[2], self.hidden
        first, second = w[:, : h * p].reshape(n, h, p), w[:, h * p :].reshape(n, self.classes, h)
        inner = np.maximum(X @ first.transpose(0, 2, 1), 0.0)
        return inner, second, softmax(inner @ second.transpose(0, 2, 1), axis=2)

    def losses(self, w: Array) -> Array:
        """L_i(w_i): the formula after (40), summed over the entries of h and of y in one-hot form, (n,)."""
        *_, h = self._forward(w, self.X)
        y = np.eye(self.classes)[self.label]
        return -(y * np.log(h + TINY) + (1.0 - y) * np.log(1.0 - h + TINY)).sum(axis=2).mean(axis=1)

    def gradients(self, w: Array) -> Array:
        """grad L_i(w_i), (n, hidden (p + classes))."""
        inner, second, h = self._forward(w, self.X)
        y = np.eye(self.classes)[self.label]
        by_h = ((1.0 - y) / (1.0 - h + TINY) - y / (h + TINY)) / self.X.shape[1]
        by_logits = h * (by_h - (h * by_h).sum(axis=2, keepdims=True))
        by_inner = (by_logits @ second) * (inner > 0.0)
        parts = by_inner.transpose(0, 2, 1) @ self.X, by_logits.transpose(0, 2, 1) @ inner
        return np.concatenate([part.reshape(len(w), -1) for part in parts], axis=1)

    def accuracy(self, w: Array, X: Array, label: Array) -> float:
        """The share of samples whose class has the largest probability."""
        return float((self._forward(w, X)[2].argmax(axis=2) == label).mean())


@dataclass(frozen=True)
class Training:
    """What all methods have in common: the networks, the start, gradient steps in each round, and how long they are."""

    of: Perceptrons
    start: Array
    inner: int
    step: float

    def near(self, w: Array, v: Array, weight: Any) -> Array:
        """argmin of L_i(z) + weight_i/2 ||v_i - z||^2, by gradient steps from w: inexact."""
        for _ in range(self.inner):
            w = w - self.step / (1.0 + self.step * weight) * (self.of.gradients(w) + weight * (w - v))
        return w

    def algorithm_1(self, tail: Array, head: Array, A: Array, lam: float) -> Iterator[Array]:
        """Algorithm 1 with the l2 norm, step (4) inexact."""
        w, u, sigma = self.start, np.zeros((len(A), self.start.shape[1])), np.full(len(A), 0.5)
        degree = np.maximum(np.bincount(np.concatenate([tail, head]), minlength=len(w)), 1)[:, None].astype(float)
        while True:
            back = np.zeros_like(w)
            np.add.at(back, tail, u)
            np.subtract.at(back, head, u)
            new = self.near(w, w - back / degree, degree)
            ahead = 2.0 * new - w
            if lam > 0.0:
                u = gr.L2().dual_prox(u + 0.5 * (ahead[tail] - ahead[head]), sigma, lam * A)
            w = new
            yield w

    def ifca(self, k: int, rng: np.random.Generator) -> Iterator[Array]:
        """IFCA: every node takes the model with the least loss, and steps; the server averages those who took it."""
        models = np.stack([self.of.start(rng)[0] for _ in range(k)])
        while True:
            losses = [self.of.losses(np.tile(model, (len(self.start), 1))) for model in models]
            taken = np.argmin(losses, axis=0)
            w = self.near(models[taken], models[taken], 0.0)
            models = np.stack([w[taken == j].mean(axis=0) if (taken == j).any() else models[j] for j in range(k)])
            yield models[taken]

    def pfedme(self, weight: float) -> Iterator[Array]:
        """pFedMe: theta_i near the server's model w, and w <- the mean of the theta_i."""
        server = self.start
        while True:
            theta = self.near(server, server, weight)
            server = np.tile(theta.mean(axis=0), (len(theta), 1))
            yield theta

    def adam(self, tail: Array, head: Array, A: Array, lam: float) -> Iterator[Array]:
        """A general optimiser (Adam) on (16), by its subgradients."""
        w, first, second, k = self.start, 0.0, 0.0, 0
        while True:
            for _ in range(self.inner):
                z, k = w[tail] - w[head], k + 1
                flow = (lam * A / np.maximum(np.linalg.norm(z, axis=1), TINY))[:, None] * z
                g = self.of.gradients(w)
                np.add.at(g, tail, flow)
                np.subtract.at(g, head, flow)
                first = MOMENTS[0] * first + (1.0 - MOMENTS[0]) * g
                second = MOMENTS[1] * second + (1.0 - MOMENTS[1]) * g**2
                ahead = first / (1.0 - MOMENTS[0] ** k), second / (1.0 - MOMENTS[1] ** k)
                w = w - RATE * ahead[0] / (np.sqrt(ahead[1]) + LEAST)
            yield w
