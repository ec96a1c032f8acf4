"""Problems that algorithms are audited on: irregular in degrees, weights and sample counts, with three clusters."""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr

KINDS = ("edges", "consensus", "composite", "smooth")
N, D = 12, 3
CHORDS = ((0, 2), (0, 3), (0, 5), (4, 6), (5, 7), (8, 10))


def graph() -> nx.Graph:
    """A cycle with chords: degrees from 2 to 5."""
    out = nx.cycle_graph(N)
    out.add_edges_from(CHORDS)
    return out


def instance(kind: str, seed: int) -> gr.Problem:
    """One of three problems of a kind.

    Of "edges": total variation by L2, L1 and SquaredL2, weights from 0.4 to 2.5; about half of the edges are split. Of
    "consensus": squared losses without and with a ridge, logistic ones with a ridge. "composite": squared losses and an
    l1 norm on the nodes. "smooth": squared differences.
    """
    rng = np.random.default_rng([KINDS.index(kind), seed])
    links = graph()
    nx.set_edge_attributes(links, {edge: float(np.exp(rng.uniform(-0.9, 0.9))) for edge in links.edges}, "weight")
    data = _data(rng, binary=kind == "consensus" and seed == 1)
    if kind == "smooth":
        return gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(links, gr.SquaredL2()))
    if kind == "edges":
        penalty, strength = ((gr.L2(), 0.3), (gr.L1(), 0.2), (gr.SquaredL2(), 0.3))[seed]
        return gr.Problem(gr.SquaredLoss(data) + strength * gr.TotalVariation(links, penalty))
    links = nx.Graph(links.edges())
    if kind == "composite":
        return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.NodePenalty(gr.L1()) + gr.Consensus(links))
    if seed == 0:
        return gr.Problem(gr.SquaredLoss(data) + gr.Consensus(links))
    loss = gr.LogisticLoss(data) if seed == 1 else gr.SquaredLoss(data)
    return gr.Problem(loss + (0.1, 0.05)[seed - 1] * gr.NodePenalty(gr.SquaredL2()) + gr.Consensus(links))


def _data(rng: np.random.Generator, binary: bool) -> gr.NodeData:
    """Three clusters of neighbours along the cycle, 5 to 12 samples per node."""
    centers = 1.5 * rng.normal(size=(3, D))
    samples = {}
    for i in range(N):
        X = rng.normal(size=(int(rng.integers(5, 13)), D))
        y = X @ (centers[3 * i // N] + 0.4 * rng.normal(size=D)) + 0.5 * rng.normal(size=len(X))
        samples[i] = X, (y > 0).astype(float) if binary else y
    return gr.NodeData.from_dict(samples)
