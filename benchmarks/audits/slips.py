"""Planted bugs of other kinds than in `bugs`: wrong indices, data, momenta, balls, numbers, coins and memories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import graphreg as gr

from .bugs import Bug, misread
from .consensus import consensus_admm, dgd, extra
from .reading import Array, Parts, begin, parts_of
from .splitting import chambolle_pock, condat_vu, douglas_rachford

Points = Iterator[Any]


# ---- what is read of the problem -------------------------------------------------------------------------------------
def weights_squared(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The weight of an edge is taken twice."""
    (edges,) = (edge for edge in problem.form.edges if not edge.ground)
    return condat_vu(problem, start, seed, misread(lambda p: replace(p, weight=p.weight * edges.base_weight)))


def mean_over_edges(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The mean over the edges is penalised, and not their sum."""
    return chambolle_pock(problem, start, seed, misread(lambda p: replace(p, weight=p.weight / len(p.weight))))


def off_by_one(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Every edge ends at the node after its head."""

    def mistake(p: Parts) -> Parts:
        tails, heads = np.maximum(p.K, 0.0), np.maximum(-p.K, 0.0)
        K = tails - np.roll(heads, 1, axis=1)
        return replace(p, K=K, back=K.T)

    return condat_vu(problem, start, seed, misread(mistake))


def off_by_one_edge(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """One edge ends at the node after its head."""

    def mistake(p: Parts) -> Parts:
        K, e = p.K.copy(), 2
        K[e] = np.maximum(K[e], 0.0) - np.roll(np.maximum(-K[e], 0.0), 1)
        return replace(p, K=K, back=K.T)

    return condat_vu(problem, start, seed, misread(mistake))


def order_of_data(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Every node has the data of the one before."""
    p = parts_of(problem)
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = 0.99 / np.sqrt(p.norm)
    while True:
        new = np.roll(p.prox(np.roll(w - tau * (p.back @ u), -1, axis=0), tau), 1, axis=0)
        u = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w)), sigma)
        w = new
        yield w


def two_nodes_exchanged(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Two nodes have the data of each other."""
    p, place = parts_of(problem), np.arange(len(problem.form.labels))
    place[[2, 6]] = 6, 2
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = 0.99 / np.sqrt(p.norm)
    while True:
        new = p.prox((w - tau * (p.back @ u))[place], tau)[place]
        u = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w)), sigma)
        w = new
        yield w


def sum_for_mean_gradient(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Gradients without 1 / m_i."""
    counts = np.bincount(problem.form.samples[0].node)
    p = parts_of(problem)
    w, u, L = begin(p, start), np.zeros((len(p.K), p.shape[1])), (counts * p.oracles.smoothness).max()
    sigma = L / (2.0 * p.norm)
    tau = 1.0 / (L / 2.0 + sigma * p.norm)
    while True:
        new = w - tau * (counts[:, None] * p.gradient(w) + p.back @ u)
        u = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w)), sigma)
        w = new
        yield w


def penalty_on_nodes(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The penalty is one of the parameters, not of their differences."""

    def mistake(p: Parts) -> Parts:
        eye = np.eye(p.shape[0])
        return replace(p, K=eye, back=eye, weight=np.full(len(eye), p.weight.mean()), late=0.0 * eye)

    return condat_vu(problem, start, seed, misread(mistake))


def wrong_ball(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Flows are projected onto a ball of another norm, entry by entry."""
    p = parts_of(problem)
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = 0.99 / np.sqrt(p.norm)
    while True:
        new = p.prox(w - tau * (p.back @ u), tau)
        u = u + sigma * (p.K @ (2.0 * new - w))
        c = p.weight[:, None]
        if isinstance(p.penalty, gr.L1):
            u = u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True) / c, 1.0)
        else:
            u = np.clip(u, -c, c)
        w = new
        yield w


def wrong_radius(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Flows are projected onto a ball whose radius has the step in it."""
    return chambolle_pock(problem, start, seed, misread(lambda p: replace(p, weight=p.weight * np.sqrt(0.99 / p.norm))))


def degree_forgotten(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The step of the network lasso's proxes is the same at all nodes, whatever their degree."""
    p = parts_of(problem)
    w, tails, heads = begin(p, start), np.maximum(p.K, 0.0), np.maximum(-p.K, 0.0)
    degree = np.abs(p.back).sum(axis=1)
    rho = p.oracles.smoothness.mean() / degree.mean()
    a, b, y, x = tails @ w, heads @ w, np.zeros_like(tails @ w), np.zeros_like(heads @ w)
    while True:
        w = p.argmin(rho * (tails.T @ (a - y) + heads.T @ (b - x)), rho * degree.mean())
        at, bt = tails @ w + y, heads @ w + x
        z = p.penalty.prox(at - bt, 2.0 * p.weight / rho)
        a, b = (at + bt + z) / 2.0, (at + bt - z) / 2.0
        y, x = at - a, bt - b
        yield w


def self_loops(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Decentralised ADMM whose adjacency has every node as its own neighbour, and its degrees do not."""
    p = parts_of(problem)
    w, price = begin(p, start), np.zeros(p.shape)
    degree = p.neighbours.sum(axis=1, keepdims=True)
    A = p.neighbours + np.eye(len(w))
    rho = p.oracles.smoothness.mean() / (2.0 * degree.mean())
    while True:
        w = p.argmin(rho * (degree * w + A @ w) - price, 2.0 * rho * degree[:, 0])
        price = price + rho * (degree * w - A @ w)
        yield w


def another_center(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The differences are taken from one, not from zero: an offset that was never taken out."""
    p = parts_of(problem)
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = 0.99 / np.sqrt(p.norm)
    while True:
        new = p.prox(w - tau * (p.back @ u), tau)
        u = p.dual_prox(u + sigma * (p.K @ (2.0 * new - w) - 0.3), sigma)
        w = new
        yield w


def two_mistakes(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The weights are forgotten, and the losses added up."""
    (edges,) = (edge for edge in problem.form.edges if not edge.ground)
    counts = np.bincount(problem.form.samples[0].node)
    strength = np.full(len(edges.tail), float(edges.strength))
    return douglas_rachford(problem, start, seed, misread(lambda p: replace(p, weight=strength, times=counts)))


def factor_and_edge(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The strength is doubled, and one edge left out."""

    def mistake(p: Parts) -> Parts:
        return replace(p, K=p.K[:-1], back=p.back[:, :-1], weight=2.0 * p.weight[:-1], late=p.late[:-1])

    return condat_vu(problem, start, seed, misread(mistake))


# ---- steps -----------------------------------------------------------------------------------------------------------
def decays_too_fast(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """DGD with steps of the order k^-2, whose sum is finite."""
    return dgd(problem, start, seed, step=lambda k: (1.0 + k) ** -2.0)


def wrong_extrapolation(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The momentum of the primal-dual method has the wrong sign, and steps are long."""
    p = parts_of(problem)
    w, u = begin(p, start), np.zeros((len(p.K), p.shape[1]))
    tau = sigma = 0.99 / np.sqrt(p.norm)
    while True:
        new = p.prox(w - 3.0 * tau * (p.back @ u), 3.0 * tau)
        u = p.dual_prox(u + 3.0 * sigma * (p.K @ (2.0 * w - new)), 3.0 * sigma)
        w = new
        yield w


def tracking_forgets(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """DIGing whose tracked gradient is not mixed at the start: y begins at 0."""
    p = parts_of(problem)
    w, W, a = begin(p, start), p.lazy, 0.2 / p.oracles.smoothness.max()
    g, y = p.gradient(w), np.zeros(p.shape)
    while True:
        w = W @ w - a * y
        new = p.gradient(w)
        y, g = W @ y + new - g, new
        yield w


def clipped_gradients(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """EXTRA with gradients cut at 0.2 in every node."""

    def cut(g: Array) -> Array:
        return g / np.maximum(np.linalg.norm(g, axis=1, keepdims=True) / 0.2, 1.0)

    p = parts_of(problem)
    w, W, a = begin(p, start), p.lazy, 0.2 / p.oracles.smoothness.max()
    g = cut(p.gradient(w))
    y = g
    while True:
        w = W @ w - a * y
        new = cut(p.gradient(w))
        y, g = W @ y + new - g, new
        yield w


# ---- numbers, coins and memories -------------------------------------------------------------------------------------
def half_precision(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """What neighbours tell each other has 16 bits."""
    p = parts_of(problem)
    w, u, L = begin(p, start), np.zeros((len(p.K), p.shape[1])), p.oracles.smoothness.max()
    sigma = L / (2.0 * p.norm)
    tau = 1.0 / (L / 2.0 + sigma * p.norm)
    while True:
        new = w - tau * (p.gradient(w) + p.back @ u)
        told = (2.0 * new - w).astype(np.float16).astype(float)
        u = p.dual_prox(u + sigma * (p.K @ told), sigma)
        w = new
        yield w


def half_precision_consensus(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """What neighbours mix has 16 bits."""
    p = parts_of(problem)
    w, W, a = begin(p, start), p.lazy, 0.2 / p.oracles.smoothness.max()
    g = p.gradient(w)
    y = g
    while True:
        w = W @ w.astype(np.float16).astype(float) - a * y
        new = p.gradient(w)
        y, g = W @ y.astype(np.float16).astype(float) + new - g, new
        yield w


def lost_messages(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """One in ten messages is lost, and 0 read in its place."""
    p, rng = parts_of(problem), np.random.default_rng(seed)
    w, u, L = begin(p, start), np.zeros((len(p.K), p.shape[1])), p.oracles.smoothness.max()
    sigma = L / (2.0 * p.norm)
    tau = 1.0 / (L / 2.0 + sigma * p.norm)
    while True:
        new = w - tau * (p.gradient(w) + p.back @ u)
        comes = rng.random((len(u), 1)) > 0.1
        u = p.dual_prox(u + sigma * np.where(comes, p.K @ (2.0 * new - w), 0.0), sigma) * comes
        w = new
        yield w


def lost_gossip(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """One in ten messages of a gossip is lost on its way in one direction, so that the mean drifts."""
    p, rng = parts_of(problem), np.random.default_rng(seed)
    w, a = begin(p, start), 0.2 / p.oracles.smoothness.max()
    g = p.gradient(w)
    y = g
    while True:
        W = p.lazy * (rng.random(p.lazy.shape) > 0.1)
        np.fill_diagonal(W, np.diag(p.lazy))
        W = W / W.sum(axis=1, keepdims=True)
        w = W @ w - a * y
        new = p.gradient(w)
        y, g = W @ y + new - g, new
        yield w


def seed_ignored(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The coins are thrown anew in every run, whatever the seed."""
    p, rng = parts_of(problem), np.random.default_rng()
    u, sigma = np.zeros((len(p.K), p.shape[1])), p.oracles.convexity.min() / p.norm
    while True:
        awake = rng.random((len(p.K), 1)) < 0.5
        w = p.argmin(-(p.back @ u))
        u = np.where(awake, p.dual_prox(u + sigma * (p.K @ w), sigma), u)
        yield w


_kept: dict[Any, Any] = {}


def remembers(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Begins where the run before has ended, whatever the problem."""
    for w, _ in chambolle_pock(problem, _kept.get("w", start), seed):
        _kept["w"] = w
        yield w


def shared_memory(state: Any, node: Any, messages: Any, shared: dict[Any, Any] = {}) -> Any:  # noqa: B006 - the bug
    """A step at a node that reads what all others keep in one place: their mean pulls."""
    w = np.zeros(node.d) if state is None else state
    if state is None:
        shared.clear()
    pull = sum((node.weight[j] * (w - v) for j, v in messages.items()), np.zeros(node.d))
    if messages or not node.neighbours:
        w = w - (node.gradient(w) + pull) / (node.smoothness + 2.0 * sum(node.weight.values()))
    shared[node.label] = w
    w = w + 1e-3 * (np.mean(list(shared.values()), axis=0) - w)
    return w, w


def neighbour_of_neighbour(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """EXTRA whose mixing has one link more, between neighbours of a node."""

    def mistake(p: Parts) -> Parts:
        A = p.neighbours
        far = np.argwhere((A @ A > 0) & (A == 0) & ~np.eye(len(A), dtype=bool))
        i, j = far[len(far) // 2]
        link = np.zeros((1, len(A)))
        link[0, [i, j]] = 1.0, -1.0
        return replace(p, C=p.C - 0.1 * link.T @ link)

    return extra(problem, start, seed, misread(mistake))


def columns_only(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """EXTRA whose mixing matrix has columns of sum 1, not rows."""

    def mistake(p: Parts) -> Parts:
        C = np.eye(p.shape[0]) + p.neighbours
        return replace(p, C=C / C.sum(axis=0, keepdims=True))

    return extra(problem, start, seed, misread(mistake))


def node_twice(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The losses of one node count twice."""
    times = 1.0 + (np.arange(len(problem.form.labels)) == 4)
    return consensus_admm(problem, start, seed, misread(lambda p: replace(p, times=times)))


UNNAMED = "(?!)"  # of what is found, and has no name
SLIPS = (
    Bug(weights_squared, "edges", "weights squared"),
    Bug(mean_over_edges, "edges", r"strength.* x 0\.05556"),
    Bug(off_by_one, "edges", "nothing crosses"),
    Bug(off_by_one_edge, "edges", r"nothing crosses \[\(0, 2\)\]"),
    Bug(order_of_data, "edges", "non-neighbour"),
    Bug(two_nodes_exchanged, "edges", "node (2 of 6|6 of 2)"),
    Bug(sum_for_mean_gradient, "edges", "sum.*mean"),
    Bug(penalty_on_nodes, "edges", "no messages"),
    Bug(wrong_ball, "edges", "penalty L[12] for"),
    Bug(wrong_radius, "edges", r"strength.* x 0\.3907"),
    Bug(degree_forgotten, "edges", UNNAMED),
    Bug(another_center, "edges", UNNAMED),
    Bug(two_mistakes, "edges", UNNAMED),
    Bug(factor_and_edge, "edges", "missing edge"),
    Bug(wrong_extrapolation, "edges", "step or relaxation too long"),
    Bug(half_precision, "edges", "few digits"),
    Bug(lost_messages, "edges", "messages that are lost"),
    Bug(seed_ignored, "edges", "hidden state"),
    Bug(remembers, "edges", "hidden state"),
    Bug(shared_memory, "smooth", "outside of its arguments"),
    Bug(self_loops, "consensus", UNNAMED),
    Bug(decays_too_fast, "consensus", "steps die out"),
    Bug(tracking_forgets, "consensus", "begins wrongly"),
    Bug(clipped_gradients, "consensus", "gradients that are cut"),
    Bug(half_precision_consensus, "consensus", "few digits"),
    Bug(lost_gossip, "consensus", UNNAMED),
    Bug(neighbour_of_neighbour, "consensus", "non-neighbour"),
    Bug(columns_only, "consensus", "asymmetric mixing"),
    Bug(node_twice, "consensus", "losses of the node 3 x 2"),
)
