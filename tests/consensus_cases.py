"""The shared parts of the tests of consensus methods: networks whose nodes differ, and the methods."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
from core_cases import view_of

import graphreg as gr

CORRECTED = [gr.GradientTracking(), gr.ExactDiffusion()]
EVERY = [gr.LocalSGD(), *CORRECTED]
EVERY_KIND = [type(method) for method in EVERY]
SEEDS = (70, 71, 78, 570, 571, 573, 578, 579)  # random problems that are a smooth consensus, of all kinds of losses


def network(n=8, m=12, loss=gr.SquaredLoss, graph=None, ridge=0.0, scales=0.6, seed=0, labels=None, **more):
    """A consensus whose nodes differ in coefficients and in the scales of their covariates."""
    rng = np.random.default_rng(seed)
    X = np.exp(scales * rng.standard_normal((n, 1, 2))) * rng.standard_normal((n, m, 2))
    x = np.einsum("nmd,nd->nm", X, 0.5 + 0.5 * rng.standard_normal((n, 2))) + 0.7 * rng.standard_normal((n, m))
    y = {gr.LogisticLoss: x > 0, gr.MultinomialLoss: np.digitize(x, [-0.7, 0.7])}.get(loss, x)
    y = rng.poisson(np.exp(np.clip(0.5 * x, -2, 2))) if loss is gr.PoissonLoss else y
    labels = list(range(n)) if labels is None else labels
    graph = nx.circulant_graph(n, [1, 2]) if graph is None else graph
    data = gr.NodeData.from_arrays(X.reshape(-1, 2), np.asarray(y, dtype=float).ravel(), np.repeat(labels, m))
    model = loss(data, **more) + gr.Consensus(graph)
    return gr.Problem(model + ridge * gr.NodePenalty(gr.SquaredL2()) if ridge else model)


def run(method, problem, rounds, seed=0, start=None):
    """The state after so many rounds, with the step's bounds left to their own tests."""
    state = method.init(replace(view_of(problem.form), seed=seed), start)
    for _ in range(rounds):
        state = method.step(state)
    return state
