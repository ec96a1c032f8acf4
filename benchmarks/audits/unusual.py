"""Algorithms that are right, in unusual forms: relaxed, averaged, restarted, with steps that adapt, in random blocks,
with points that come rarely, in one array, in single precision, as lists or as data frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr

from .consensus import extra
from .reading import Array, begin, parts_of
from .splitting import chambolle_pock, condat_vu

Points = Iterator[Any]


# ---- other forms of what is yielded ----------------------------------------------------------------------------------
def rarely(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Only every tenth point of Condat and Vu's method."""
    return islice(condat_vu(problem, start, seed), 9, None, 10)


def ends_early(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """1500 points, and no more."""
    return islice(chambolle_pock(problem, start, seed), 1500)


def one_array(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The same array again and again, into which every round writes."""
    p = parts_of(problem)
    w = begin(p, start)
    for new, _ in condat_vu(problem, start, seed):
        w[:] = new
        yield w


def lists(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Lists of lists of numbers."""
    return (w.tolist() for w in extra(problem, start, seed))


def frames(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Data frames whose rows are in another order, which their labels tell."""
    labels, names = list(problem.form.labels), list(problem.form.space.names)
    for w, _ in condat_vu(problem, start, seed):
        yield pd.DataFrame(w[::-1], index=labels[::-1], columns=names)


def single_precision(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Parameters and flows of 32 bits."""
    p = parts_of(problem)
    w, u, L = (
        begin(p, start).astype(np.float32),
        np.zeros((len(p.K), p.shape[1]), np.float32),
        p.oracles.smoothness.max(),
    )
    sigma = L / (2.0 * p.norm)
    tau = 1.0 / (L / 2.0 + sigma * p.norm)
    while True:
        new = (w - tau * (p.gradient(w) + p.back @ u)).astype(np.float32)
        u = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w)), sigma).astype(np.float32)
        w = new
        yield w


def start_first(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The point where it begins is yielded, too."""
    yield begin(parts_of(problem), start)
    yield from chambolle_pock(problem, start, seed)


# ---- other rounds ----------------------------------------------------------------------------------------------------
def over_relaxed_admm(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """ADMM with z = K w, over-relaxed by 1.7, whose steps at nodes are proximal (Eckstein and Bertsekas, Math. Program.
    55, 1992, theorem 8)."""
    p = parts_of(problem)
    w = begin(p, start)
    tails, heads = np.maximum(p.K, 0.0), np.maximum(-p.K, 0.0)
    degree = np.abs(p.back).sum(axis=1)
    rho, relax = p.oracles.smoothness.mean() / (1.0 + degree.mean()), 1.7
    a, b, y, x = tails @ w, heads @ w, np.zeros_like(tails @ w), np.zeros_like(heads @ w)
    while True:
        w = p.argmin(rho * (tails.T @ (a - y) + heads.T @ (b - x)), rho * degree)
        at, bt = relax * (tails @ w) + (1 - relax) * a, relax * (heads @ w) + (1 - relax) * b
        z = p.penalty.prox(at + y - bt - x, 2.0 * p.weight / rho)
        total = at + y + bt + x
        a, b = (total + z) / 2.0, (total - z) / 2.0
        y, x = y + at - a, x + bt - b
        yield w


def averaged(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The mean of all points of Chambolle and Pock's method so far."""
    mean = 0.0
    for k, (w, _) in enumerate(chambolle_pock(problem, start, seed), 1):
        mean = mean + (w - mean) / k
        yield mean


def dual_ascent(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Uzawa's method: losses minimised at the flows, a projected step of the flows."""
    p = parts_of(problem)
    u, sigma = np.zeros((len(p.K), p.shape[1])), 1.8 * p.oracles.convexity.min() / p.norm
    while True:
        w = p.argmin(-(p.back @ u))
        u = p.dual_prox(u + sigma * (p.K @ w), sigma)
        yield w, u


def restarted(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Dual forward-backward, accelerated, whose momentum is dropped where a sum over all edges says that it points
    back (O'Donoghue and Candes, Found. Comput. Math. 15, 2015)."""
    p = parts_of(problem)
    u = v = np.zeros((len(p.K), p.shape[1]))
    sigma, t = p.oracles.convexity.min() / p.norm, 1.0
    while True:
        w = p.argmin(-(p.back @ v))
        new, before = p.dual_prox(v + sigma * (p.K @ w), sigma), t
        if np.sum((v - new) * (new - u)) > 0.0:
            before = t = 1.0
        t = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        v, u = new + (before - 1.0) / t * (new - u), new
        yield w, u


def balanced_steps(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The primal-dual method whose steps are balanced by the sizes of the residuals, ever less (Goldstein, Li and Yuan,
    NeurIPS 2015, algorithm 1)."""
    p = parts_of(problem)
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = 0.99 / np.sqrt(p.norm)
    alpha = 0.5
    while True:
        new = p.prox(w - tau * (p.back @ u), tau)
        to = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w)), sigma)
        primal = np.linalg.norm((w - new) / tau - p.back @ (u - to))
        dual = np.linalg.norm((u - to) / sigma - p.K @ (w - new))
        w, u = new, to
        if primal > 1.5 * dual:
            tau, sigma, alpha = tau / (1 - alpha), sigma * (1 - alpha), 0.95 * alpha
        elif dual > 1.5 * primal:
            tau, sigma, alpha = tau * (1 - alpha), sigma / (1 - alpha), 0.95 * alpha
        yield w, u


def random_edges(problem: gr.Problem, start: Any = None, seed: Any = None, share: float = 0.5) -> Points:
    """Dual ascent at a random half of the edges in every round."""
    p, rng = parts_of(problem), np.random.default_rng(seed)
    u, sigma = np.zeros((len(p.K), p.shape[1])), p.oracles.convexity.min() / p.norm
    while True:
        awake = rng.random((len(p.K), 1)) < share
        w = p.argmin(-(p.back @ u))
        u = np.where(awake, p.dual_prox(u + sigma * (p.K @ w), sigma), u)
        yield w, u


def random_nodes(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Asynchronous: in every round one node at random takes a step; for smooth penalties."""
    p, rng = parts_of(problem), np.random.default_rng(seed)
    w = begin(p, start)
    bend = p.oracles.smoothness + np.abs(p.back) @ p.weight
    while True:
        chosen = rng.permutation(len(w))[:1]
        slope = p.gradient(w) + p.back @ p.oracles.edge_gradient(p.K @ w)
        w = w.copy()
        w[chosen] -= slope[chosen] / bend[chosen, None]
        yield w


def sweeps(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Nodes take their turns: each minimises over its own parameters with the newest of its neighbours (Gauss and
    Seidel); for squared differences."""
    p = parts_of(problem)
    w = begin(p, start)
    weights = np.abs(p.back) @ p.weight
    links = p.neighbours.copy()
    for e, row in enumerate(p.K):
        i, j = np.flatnonzero(row)
        links[i, j] = links[j, i] = p.weight[e]
    while True:
        w = w.copy()
        for i in range(len(w)):
            w[i] = p.argmin(links @ w, weights)[i]
        yield w


def heavy_ball(problem: gr.Problem, start: Any = None, seed: Any = None, momentum: float = 0.7) -> Points:
    """Gradients with momentum, of losses and smooth penalties (Polyak, 1964)."""
    p = parts_of(problem)
    w = old = begin(p, start)
    step = 1.0 / (p.oracles.smoothness.max() + p.weight.max() * p.norm)
    while True:
        slope = p.gradient(w) + p.back @ p.oracles.edge_gradient(p.K @ w)
        w, old = w - step * slope + momentum * (w - old), w
        yield w


def spectral_steps(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Gradient descent by steps of Barzilai and Borwein, whose inner products are sums over all nodes."""
    p = parts_of(problem)

    def slope(w: Array) -> Array:
        return p.gradient(w) + p.back @ p.oracles.edge_gradient(p.K @ w)

    old, step = begin(p, start), 1.0 / (p.oracles.smoothness.max() + p.weight.max() * p.norm)
    before = slope(old)
    w = old - step * before
    while True:
        yield w
        now = slope(w)
        s, y = w - old, now - before
        if np.sum(s * y) > 0.0:
            step = np.sum(s * s) / np.sum(s * y)
        w, old, before = w - step * now, w, now


# ---- a server --------------------------------------------------------------------------------------------------------
def scaffold(problem: gr.Problem, start: Any = None, seed: Any = None, steps: int = 5) -> Points:
    """Local steps whose drift is corrected, and a server (Karimireddy et al., ICML 2020, algorithm 1, option II)."""
    p = parts_of(problem)
    w, a = begin(p, start).mean(axis=0), 0.2 / p.oracles.smoothness.max()
    own = np.zeros(p.shape)
    while True:
        y = np.tile(w, (p.shape[0], 1))
        for _ in range(steps):
            y = y - a * (p.gradient(y) - own + own.mean(axis=0))
        own = own - own.mean(axis=0) + (w - y) / (steps * a)
        w = y.mean(axis=0)
        yield np.tile(w, (p.shape[0], 1))


def accelerated_server(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Nesterov's method at a server that adds up the gradients."""
    p = parts_of(problem)
    w = v = begin(p, start).mean(axis=0, keepdims=True)
    L, mu = p.oracles.smoothness.mean(), p.oracles.convexity.mean()
    beta = (np.sqrt(L) - np.sqrt(mu)) / (np.sqrt(L) + np.sqrt(mu))
    while True:
        new = v - p.gradient(np.tile(v, (p.shape[0], 1))).mean(axis=0, keepdims=True) / L
        v, w = new + beta * (new - w), new
        yield np.tile(w, (p.shape[0], 1))


def global_admm(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Consensus by a server: proxes at the nodes, a mean (Boyd et al., 2011, section 7.1)."""
    p = parts_of(problem)
    z, u, rho = begin(p, start).mean(axis=0), np.zeros(p.shape), p.oracles.smoothness.mean()
    while True:
        w = p.argmin(rho * (z - u), rho)
        z = (w + u).mean(axis=0)
        u = u + w - z
        yield np.tile(z, (p.shape[0], 1))


def gradient_tables(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """A server whose table of gradients is refreshed at a random half of the nodes in every round (as in SAG)."""
    p, rng = parts_of(problem), np.random.default_rng(seed)
    w = begin(p, start).mean(axis=0)
    table = p.gradient(np.tile(w, (p.shape[0], 1)))
    a = 0.3 / p.oracles.smoothness.max()
    while True:
        awake = rng.random((p.shape[0], 1)) < 0.5
        table = np.where(awake, p.gradient(np.tile(w, (p.shape[0], 1))), table)
        w = w - a * table.mean(axis=0)
        yield np.tile(w, (p.shape[0], 1))


def twice_mixed(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Gradient tracking whose every round mixes twice: two exchanges."""
    p = parts_of(problem)
    w, a = begin(p, start), 0.2 / p.oracles.smoothness.max()
    W = p.lazy @ p.lazy
    g = p.gradient(w)
    y = g
    while True:
        w = W @ (w - a * y)
        new = p.gradient(w)
        y, g = W @ (y + new - g), new
        yield w


UNUSUAL = {
    **dict.fromkeys((rarely, ends_early, one_array, frames, single_precision, start_first, over_relaxed_admm), "edges"),
    **dict.fromkeys((averaged, dual_ascent, restarted, balanced_steps, random_edges), "edges"),
    **dict.fromkeys((random_nodes, sweeps, heavy_ball, spectral_steps), "smooth"),
    **dict.fromkeys((lists, scaffold, accelerated_server, global_admm, gradient_tables, twice_mixed), "consensus"),
}
