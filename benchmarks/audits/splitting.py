"""Methods for sum_i f_i(w_i) + sum_e c_e phi(w_tail - w_head), as one writes them by hand, in one file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import graphreg as gr

from .reading import Array, Read, begin, parts_of

Points = Iterator[tuple[Array, Array]]


def douglas_rachford(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Points:
    """Douglas-Rachford on copies: every node has a copy of its parameters for each of its edges, and one for itself.

    Lions and Mercier, SIAM J. Numer. Anal. 16, 1979.
    """
    p = read(problem)
    w, tails, heads = begin(p, start), np.maximum(p.K, 0.0), np.maximum(-p.K, 0.0)
    back_tails, back_heads = np.maximum(p.back, 0.0), np.maximum(-p.back, 0.0)
    copies = 1.0 + back_tails.sum(axis=1) + back_heads.sum(axis=1)
    step = copies.mean() / p.oracles.smoothness.mean()
    own, a, b = w, tails @ w, heads @ w
    while True:
        mean = (own + back_tails @ a + back_heads @ b) / copies[:, None]
        w = p.prox(mean, step / copies)
        at, bt = 2.0 * (tails @ w) - a, 2.0 * (heads @ w) - b
        z = p.penalty.prox(at - bt, 2.0 * step * p.weight)
        u = (at - bt - z) / (2.0 * step)
        own, a, b = w, a + (at + bt + z) / 2.0 - tails @ w, b + (at + bt - z) / 2.0 - heads @ w
        yield w, u


def edge_admm(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Points:
    """ADMM with a copy of both ends at every edge (Hallac, Leskovec and Boyd, Network lasso, KDD 2015, algorithm 1)."""
    p = read(problem)
    w, tails, heads = begin(p, start), np.maximum(p.K, 0.0), np.maximum(-p.K, 0.0)
    degree = np.abs(p.back).sum(axis=1)
    rho = p.oracles.smoothness.mean() / (1.0 + degree.mean())
    a, b, y, x = tails @ w, heads @ w, np.zeros_like(tails @ w), np.zeros_like(heads @ w)
    while True:
        w = p.argmin(rho * (w + tails.T @ (a - y) + heads.T @ (b - x)), rho * (1.0 + degree))
        at, bt = tails @ w + y, heads @ w + x
        z = p.penalty.prox(at - bt, 2.0 * p.weight / rho)
        a, b = (at + bt + z) / 2.0, (at + bt - z) / 2.0
        y, x = at - a, bt - b
        yield w, rho * y


def condat_vu(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Points:
    """Gradients of the losses, proxes of the flows: 1 / tau - sigma ||K||^2 >= L / 2.

    Condat, J. Optim. Theory Appl. 158, 2013, algorithm 3.1; Vu, Adv. Comput. Math. 38, 2013.
    """
    p = read(problem)
    w, u, L = begin(p, start), np.zeros((len(p.K), p.shape[1])), p.oracles.smoothness.max()
    sigma = L / (2.0 * p.norm)
    tau = 1.0 / (L / 2.0 + sigma * p.norm)
    while True:
        new = w - tau * (p.gradient(w) + p.back @ u)
        u = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w)), sigma)
        w = new
        yield w, u


def chambolle_pock(
    problem: gr.Problem,
    start: Any = None,
    seed: Any = None,
    read: Read = parts_of,
    product: float = 0.99,
    stretch: float = 1.0,
) -> Points:
    """Proxes of losses and flows; tau sigma ||K||^2 = ``product`` < 1, and the prox's step is ``stretch`` = 1 tau.

    Chambolle and Pock, J. Math. Imaging Vision 40, 2011, algorithm 1.
    """
    p = read(problem)
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = np.sqrt(product / p.norm)
    before = w
    while True:
        new = p.prox(w - tau * (p.back @ u), stretch * tau)
        told = p.differences(new, w)
        u = p.dual_prox(u + sigma * (2.0 * told - p.differences(w, before)), sigma)
        w, before = new, w
        yield w, u


def dual_forward_backward(problem: gr.Problem, start: Any = None, seed: Any = None, read: Read = parts_of) -> Points:
    """Forward-backward on the dual with Nesterov's momentum; f_i strongly convex.

    Beck and Teboulle, A fast dual proximal gradient algorithm, Oper. Res. Lett. 42, 2014.
    """
    p = read(problem)
    u = v = np.zeros((len(p.K), p.shape[1]))
    sigma, t = p.oracles.convexity.min() / p.norm, 1.0
    while True:
        w = p.argmin(-(p.back @ v))
        new, before = p.dual_prox(v + sigma * (p.K @ w), sigma), t
        t = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        v, u = new + (before - 1.0) / t * (new - u), new
        yield w, u
