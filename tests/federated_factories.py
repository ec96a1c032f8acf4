"""Makers of what the tests of Fed-ADMM need: problems, who is away, and the printed algorithms with all their
copies, by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.distributed import InProcess
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.streams import Streams
from graphreg.network.view import LocalView

N, M, D = 6, 8, 3
P = dict(zip(range(N), (0.3, 0.9, 0.5, 1.0, 0.7, 0.4), strict=True))
SEED = 3


def graph_of(n=N):
    graph = nx.cycle_graph(n)
    graph.add_edge(0, n // 2, weight=2.5)
    return graph


def data_of(n=N, m=M, d=D, seed=0, kind="number"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m * n, d))
    theta = np.repeat(rng.standard_normal((2, d)), -(-n // 2), axis=0)[:n]
    x = (X * np.repeat(theta, m, axis=0)).sum(axis=1)
    y = {
        "number": x + rng.standard_normal(m * n),
        "class": (x + rng.logistic(size=m * n) > 0).astype(int),
        "count": rng.poisson(np.exp(np.minimum(0.5 * x, 3.0))),
        "three": rng.integers(0, 3, m * n),
    }[kind]
    return gr.NodeData.from_arrays(X, y, np.repeat(range(n), m))


def squared(strength=0.2, penalty=None, **more):
    return gr.Problem(gr.SquaredLoss(data_of(**more)) + strength * gr.TotalVariation(graph_of(), penalty or gr.L2()))


CLASSES = {
    "squared, L2": squared,
    "logistic, L1, sparse": lambda: gr.Problem(
        gr.LogisticLoss(data_of(kind="class"))
        + 0.05 * gr.TotalVariation(graph_of(), gr.L1())
        + 0.02 * gr.NodePenalty(gr.L1())
        + 0.02 * gr.NodePenalty(gr.SquaredL2())
    ),
    "Huber, clusters": lambda: gr.Problem(
        gr.HuberLoss(data_of(), delta=0.8)
        + gr.Hierarchy({"a": [0, 1, 2], "b": [3, 4, 5]}, weights=(0.5, 0.2))
        + 0.05 * gr.NodePenalty(gr.SquaredL2())
    ),
    "Poisson, L2, non-negative": lambda: gr.Problem(
        gr.PoissonLoss(data_of(kind="count"))
        + 0.1 * gr.TotalVariation(graph_of(), gr.L2())
        + gr.NodePenalty(gr.NonNegative(), features=["x0"])
    ),
    "multinomial, HuberNorm": lambda: gr.Problem(
        gr.MultinomialLoss(data_of(kind="three"))
        + 0.2 * gr.TotalVariation(graph_of(), gr.HuberNorm(0.5))
        + 0.05 * gr.NodePenalty(gr.SquaredL2())
    ),
}


AWAY = {
    "all there": None,
    "known": P,
    "one number": 0.6,
    "to be estimated": gr.Availability(P, known=False),
    "correlated": lambda t, labels, uniform, common: (common.random() < 0.5) | (uniform < 0.4),
}


ESTIMATED = gr.Availability(P, known=False)


def run_of(method, form, marks, seed=SEED):
    """The points of a method after the given rounds."""
    view = LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), seed)
    state, out = method.init(view, None), []
    for k in range(1, max(marks) + 1):
        state = method.step(state)
        if k in marks:
            out.append(method.point(state)[0])
    return out


def iterate_seeded(method, form, rounds, seed=SEED):
    view = LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), seed)
    state = method.init(view, None)
    for _ in range(rounds):
        state = method.step(state)
    return state


PROX = {  # of c phi, one row
    "L1": lambda x, c: np.sign(x) * np.maximum(np.abs(x) - c, 0.0),
    "L2": lambda x, c: max(0.0, 1.0 - c / max(np.linalg.norm(x), 1e-300)) * x,
    "SquaredL2": lambda x, c: x / (1.0 + c),
    "Zero": lambda x, c: 0.0 * x,
}


class ByHand:
    """(17) to (19) and (21) for 1/m sum 1/2 (x'theta - y)^2 at every node: loops, theta, beta and alpha.

    An edge is (tail, head or None, kind, c, columns). ``steps(i, t)`` is the step; ``mode`` says what happens to nodes
    that are away: "freeze", "ipw" (as printed, on a server), "waiting" (as printed, and edges wait for both their
    ends), or one of the wrong variants "unweighted" and "frozen but weighted".
    """

    def __init__(self, data, edges, rho, steps, batch=None, p=None, mode="freeze", seed=SEED):
        self.edges, self.rho, self.steps, self.batch, self.p, self.mode = edges, rho, steps, batch, p, mode
        X, y = data.X, np.asarray(data.y)
        self.parts = [(X[data.node == i], y[data.node == i]) for i in range(N)]
        self.theta = np.zeros((N, X.shape[1]))
        self.beta = {(e, i): np.zeros(len(edge[4])) for e, edge in enumerate(edges) for i in edge[:2] if i is not None}
        self.alpha = {key: np.zeros_like(value) for key, value in self.beta.items()}
        self.samples, self.coins = (Streams(seed, kind, range(N)) for kind in ("samples", "availability"))
        self.t, self.visited = 0, []

    def present(self):
        return np.full(N, True) if self.p is None else self.coins.uniform(self.t, 1)[:, 0] < self.p

    def gradient(self, i):
        X, y = self.parts[i]
        if self.batch is not None:
            k = (self.samples.uniform(self.t, self.batch)[i] * len(y)).astype(int)
            X, y = X[k], y[k]
        return X.T @ (X @ self.theta[i] - y) / len(y)

    def node(self, i, present):
        factor = 1.0 / self.p[i] if self.mode in ("ipw", "waiting", "frozen but weighted") else 1.0
        move = factor * self.gradient(i) if present else np.zeros_like(self.theta[i])
        for (e, j), beta in self.beta.items():
            if j == i:
                c = self.edges[e][4]
                move[c] += self.rho * (self.theta[i, c] - beta - self.alpha[e, i] / self.rho)
        still = not present and self.mode in ("freeze", "frozen but weighted")
        return self.theta[i] if still else self.theta[i] - self.steps(i, self.t) * move

    def round(self):
        self.t += 1
        self.visited.append(self.theta)
        present = self.present()
        self.theta = np.array([self.node(i, present[i]) for i in range(N)])
        for e, (i, j, kind, c, columns) in enumerate(self.edges):
            ends = [k for k in (i, j) if k is not None]
            if self.mode != "ipw" and not present[ends].all():
                continue
            at = {k: self.theta[k, columns] - self.alpha[e, k] / self.rho for k in ends}
            if j is None:
                new = {i: PROX[kind](at[i], c / self.rho)}
            else:
                d = PROX[kind](at[i] - at[j], 2.0 * c / self.rho)
                new = {i: (at[i] + at[j] + d) / 2, j: (at[i] + at[j] - d) / 2}
            for k in ends:
                self.alpha[e, k] = self.alpha[e, k] - self.rho * (self.theta[k, columns] - new[k])
                self.beta[e, k] = new[k]


def edges_of(form):
    """The edges of a form that have copies, row by row."""
    out = []
    for block in form.edges:
        columns = np.arange(form.d) if block.features is None else block.features
        for i, j, c in zip(block.tail, block.head, block.weight, strict=True):
            out.append((int(i), None if j < 0 else int(j), type(block.penalty).__name__, c, columns))
    return out


def L_of(data, batch=None):
    parts = [data.X[data.node == i] for i in range(N)]
    full = np.array([np.linalg.eigvalsh(X.T @ X / len(X))[-1] for X in parts])
    if batch is None:
        return full
    return (1 - 1 / batch) * full + np.array([(X**2).sum(axis=1).max() for X in parts]) / batch


def form_degree(form):
    return np.array([sum(i in edge[:2] for edge in edges_of(form)) for i in range(N)])
