"""Methods for min_w sum_i f_i(w) on a communication graph, as one writes them by hand.

Steps come from L = max_i L_i and mixing matrices from the graph; a round is one exchange with the neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import graphreg as gr

from .reading import Array, Read, begin, parts_of


def decreasing(k: int) -> float:
    """Steps that are not summable, and decrease to 0."""
    return float((1.0 + k) ** -0.75)


def dgd(
    problem: gr.Problem,
    start: Any = None,
    seed: Any = None,
    read: Read = parts_of,
    step: Callable[[int], float] = decreasing,
) -> Iterator[Array]:
    """Decentralised gradient descent with steps that decrease (Nedic and Ozdaglar, IEEE TAC 54, 2009, equation (3))."""
    p = read(problem)
    w, k = begin(p, start), 0
    while True:
        w, k = p.C @ w - step(k) / p.oracles.smoothness.max() * p.gradient(w), k + 1
        yield w


def extra(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """EXTRA (Shi, Ling, Wu and Yin, SIAM J. Optim. 25, 2015, algorithm 1), W = (I + C) / 2."""
    p = read(problem)
    old, W, a = begin(p, start), p.lazy, 1.0 / p.oracles.smoothness.max()
    half = (np.eye(len(W)) + W) / 2.0
    w = W @ old - a * p.gradient(old)
    while True:
        yield w
        w, old = w + W @ w - half @ old - a * (p.gradient(w) - p.gradient(old)), w


def diging(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """DIGing: gradients are tracked (Nedic, Olshevsky and Shi, SIAM J. Optim. 27, 2017, algorithm 1)."""
    p = read(problem)
    w, W, a = begin(p, start), p.lazy, 0.2 / p.oracles.smoothness.max()
    g = p.gradient(w)
    y = g
    while True:
        w = W @ w - a * y
        new = p.gradient(w)
        y, g = W @ y + new - g, new
        yield w


def nids(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """NIDS, with a step for each node (Li, Shi and Yan, IEEE Trans. Signal Process. 67, 2019, algorithm 1).

    Steps a_i = 1 / L_i; the mixing matrix is I - D (I - C) / (2 max a), D = diag(a), as there.
    """
    p = read(problem)
    old, a = begin(p, start), (1.0 / p.oracles.smoothness)[:, None]
    M = np.eye(len(p.C)) - a * (np.eye(len(p.C)) - p.C) / (2.0 * a.max())
    g = p.gradient(old)
    w = old - a * g
    while True:
        yield w
        new = p.gradient(w)
        w, old, g = M @ (2.0 * w - old - a * (new - g)), w, new


def pg_extra(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """PG-EXTRA, for penalties on nodes (Shi, Ling, Wu and Yin, IEEE Trans. Signal Process. 63, 2015, algorithm 1)."""
    p = read(problem)
    old, W, a = begin(p, start), p.lazy, 1.0 / p.oracles.smoothness.max()
    half = (np.eye(len(W)) + W) / 2.0
    z = W @ old - a * p.gradient(old)
    w = p.oracles.node_prox(z, a)
    while True:
        yield w
        z = z + W @ w - half @ old - a * (p.gradient(w) - p.gradient(old))
        w, old = p.oracles.node_prox(z, a), w


def exact_diffusion(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """Exact diffusion (Yuan, Ying, Zhao and Sayed, IEEE Trans. Signal Process. 67, 2019, algorithm 1)."""
    p = read(problem)
    w, a = begin(p, start), 1.0 / p.oracles.smoothness.max()
    psi = w
    while True:
        new = w - a * p.gradient(w)
        w, psi = p.lazy @ (new + w - psi), new
        yield w


def consensus_admm(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """Decentralised ADMM (Shi, Ling, Yuan, Wu and Yin, IEEE Trans. Signal Process. 62, 2014, equation (11))."""
    p = read(problem)
    w, price = begin(p, start), np.zeros(p.shape)
    A, degree = p.neighbours, p.neighbours.sum(axis=1, keepdims=True)
    rho = p.oracles.smoothness.mean() / (2.0 * degree.mean())
    while True:
        w = p.argmin(rho * (degree * w + A @ w) - price, 2.0 * rho * degree[:, 0])
        price = price + rho * (degree * w - A @ w)
        yield w


def ssda(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Iterator[Array]:
    """Single-step dual accelerated method (Scaman, Bach, Bubeck, Lee and Massoulie, ICML 2017, algorithm 2)."""
    p = read(problem)
    W, mu, L = np.eye(len(p.C)) - p.lazy, p.oracles.convexity.min(), p.oracles.smoothness.max()
    low, high = np.linalg.eigvalsh(W)[[1, -1]]
    kappa = np.sqrt(L * high / (mu * low))
    x = y = np.zeros(p.shape)
    while True:
        w = p.argmin(x)
        new = x - mu / high * (W @ w)
        x, y = new + (kappa - 1.0) / (kappa + 1.0) * (new - y), new
        yield w


def evenly(rng: np.random.Generator, n: int) -> Array:
    """A number in [0, 1) for each node, that says which of its samples is drawn."""
    return rng.random((n, 1))


def stochastic(
    problem: gr.Problem,
    start: Any = None,
    seed: Any = None,
    read: Read = parts_of,
    draw: Callable[[np.random.Generator, int], Array] = evenly,
) -> Iterator[Array]:
    """DGD with one sample per node and round, in steps of the order 1/k; yields the weighted mean of the points so far.

    Lian et al., NeurIPS 2017; the mean as in Lacoste-Julien, Schmidt and Bach, arXiv 1212.2002.
    """
    p = read(problem)
    rng, w, mean, k = np.random.default_rng(seed), begin(p, start), begin(p, start), 0
    while True:
        k += 1
        step = 1.0 / (p.oracles.smoothness.max() * (2.0 + 0.05 * k))
        w = p.C @ w - step * p.oracles.sampled(w, draw(rng, p.shape[0]))
        mean = mean + 2.0 / (k + 1.0) * (w - mean)
        yield mean


def fed_avg(
    problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of, local_steps: int = 1
) -> Iterator[Array]:
    """Federated averaging by a server (McMahan et al., AISTATS 2017); with one local step it is gradient descent."""
    p = read(problem)
    w, a = begin(p, start), 1.0 / p.oracles.smoothness.max()
    while True:
        for _ in range(local_steps):
            w = w - a * p.gradient(w)
        w = np.tile(w.mean(axis=0), (p.shape[0], 1))
        yield w
