"""Algorithms written by hand, and problems for them, which the tests of audits share."""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr

PENALTIES = {"l2": gr.L2(), "l1": gr.L1(), "squared": gr.SquaredL2(), "linf": gr.LInf()}


def network(penalty="l2", seed=0, n=9, d=2, isolated=False):
    """Squared losses on a cycle with chords, irregular in weights and counts, in three groups."""
    rng = np.random.default_rng(seed)
    graph = nx.cycle_graph(n)
    graph.add_edges_from([(0, 2), (0, 4), (5, 7)])
    for edge in graph.edges:
        graph.edges[edge]["weight"] = float(np.exp(rng.uniform(-0.9, 0.9)))
    if isolated:
        graph.add_node("alone")
    centers = 1.5 * rng.normal(size=(3, d))
    samples = {}
    for k, label in enumerate(graph):
        X = rng.normal(size=(int(rng.integers(4, 10)), d))
        samples[label] = X, X @ (centers[min(3 * k // n, 2)] + 0.3 * rng.normal(size=d)) + 0.3 * rng.normal(size=len(X))
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    if penalty == "consensus":
        return gr.Problem(loss + gr.Consensus(nx.Graph(graph.edges())))
    return gr.Problem(loss + 0.3 * gr.TotalVariation(graph, PENALTIES[penalty]))


def primal_dual(problem, start=None, seed=None, factor=1.0, late=False, limit=None):
    """Chambolle and Pock's method; ``factor`` times the flows, one edge ``late`` by a round."""
    o = problem.oracles()
    w = np.zeros((o.n, o.d)) if start is None else np.array(start, dtype=float)
    u, before = np.zeros((len(o.tail), o.d)), w
    step, transposed = 0.99 / np.linalg.norm(o.K.toarray(), 2), o.K.T
    while limit is None or limit > 0:
        new = o.prox(w - step * factor * (transposed @ u), step)
        z = o.K @ (2.0 * new - w)
        if late:
            z[3] = (o.K @ (2.0 * w - before))[3]
        u = o.dual_prox(u + step * z, step)
        w, before = new, w
        limit = None if limit is None else limit - 1
        yield w, u


def gradient_step(state, node, messages):
    """A round of gradient descent at one node, of a problem with squared differences."""
    w = np.zeros(node.d) if state is None else state
    pull = sum((node.weight[j] * (w - v) for j, v in messages.items()), np.zeros(node.d))
    if messages or not node.neighbours:
        w = w - (node.gradient(w) + pull) / (node.smoothness + 2.0 * sum(node.weight.values()))
    return w, w


def metropolis(problem):
    o = problem.oracles()
    linked = np.abs(o.K.toarray()).T @ np.abs(o.K.toarray())
    degree = np.diag(linked).copy()
    C = linked / (1.0 + np.maximum(degree[:, None], degree))
    np.fill_diagonal(C, 0.0)
    np.fill_diagonal(C, 1.0 - C.sum(axis=1))
    return C


def gossip(problem, start=None, seed=None, mixing=metropolis, noise=0.0, power=0.75):
    """Decentralised gradient descent with steps k^-power / (2 L)."""
    o, rng = problem.oracles(), np.random.default_rng(seed)
    w, C, L = (
        np.zeros((o.n, o.d)) if start is None else np.array(start, dtype=float),
        mixing(problem),
        o.smoothness.max(),
    )
    k = 0
    while True:
        k += 1
        w = C @ w - k**-power / (2.0 * L) * (o.gradient(w) + noise * rng.normal(size=w.shape))
        yield w
