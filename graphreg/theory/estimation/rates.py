"""The rate of Theorem 3.2: how the error of graph-fused M-estimation scales with samples, nodes and false edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import checks
from ...errors import MethodError
from ...inputs import Graph
from ...tables import Stated
from ..arguments import edge_positions
from ..spectra.connectivity import algebraic_connectivity
from .compatibility import CompatibilityFactor, factor
from .fidelity import GraphFidelity, graph_fidelity


@dataclass(frozen=True, eq=False)
class Rate(Stated):
    """How the squared error per node scales; constants are unknown, so that only ratios mean something.

    Attributes
    ----------
    fused : float
        sigma^2 p (K(E) + |S|) / (n |V|), as after (9).
    oracle, local : float
        sigma^2 p K(E_0) / (n |V|) of estimates that know the clusters, and sigma^2 p / n of each node by itself.
    pooling, false_edges : float
        The two terms of (9) without their unknown constants, at xi = 1/e: sigma^2 p K(E) / (n |V|), and
        4 sigma^2 |S| (log(p |E|) + 1) / (kappa_S^2 gamma_G^2 n |V|) with kappa_S of the l1 norm and p features.
    fidelity : GraphFidelity
    compatibility : CompatibilityFactor
        kappa_S, a lower bound where it is not exact.
    connectivity : float
        gamma_G^2, the smallest positive eigenvalue of D'D, weights 1.
    assumed : tuple of str
    """

    fused: float
    oracle: float
    local: float
    pooling: float
    false_edges: float
    fidelity: GraphFidelity = field(repr=False)
    compatibility: CompatibilityFactor = field(repr=False)
    connectivity: float

    def _lines(self) -> list[str]:
        return [
            "how the squared error per node scales",
            f"  fused {self.fused:.4g}, known clusters {self.oracle:.4g}, local {self.local:.4g}",
            f"  terms of (9): pooling {self.pooling:.4g}, false edges {self.false_edges:.4g} "
            f"(kappa_S {self.compatibility.value:.3g}, gamma_G^2 {self.connectivity:.3g})",
        ]


def rate(graph: Any, truth: Any, samples: int, features: int, noise: float = 1.0) -> Rate:
    """The rate of Theorem 3.2 for a graph and the clusters of nodes that share their parameters.

    Parameters
    ----------
    graph, truth
        As for `graph_fidelity`.
    samples : int
        n, the least number of samples of a node.
    features : int
        p, the number of coordinates.
    noise : float
        sigma, the sub-Gaussian size of the gradient of one sample's loss.
    """
    graph = Graph.of(graph)
    n, p = (int(checks.count(x, what, MethodError)) for x, what in ((samples, "samples"), (features, "features")))
    sigma = float(checks.positive(noise, "the noise", MethodError))
    graph = Graph(graph.labels, graph.tail, graph.head, np.ones(graph.n_edges))
    found = graph_fidelity(graph, truth)
    kappa = factor(graph, edge_positions(graph, found.false_edges, "the edges"), "l1", p)
    gamma = algebraic_connectivity(graph).smallest_positive
    unit = sigma**2 / (n * graph.n_nodes)
    S, logs = len(found.false_edges), float(np.log(p * max(graph.n_edges, 1))) + 1.0
    assumed = (
        "constants are unknown: only ratios of these numbers mean something, for comparable losses and designs",
        "sub-Gaussian gradients, Hessians between fixed positive bounds, kappa_S of the false edges (Theorem 3.2)",
        "log(p |E|) where (8) prints p log |E|, and kappa_S^2, which has the factor 1/p of l1, where it prints kappa_0",
        *found.assumed[:1],
    )
    return Rate(
        fused=unit * p * found.parameters,
        oracle=unit * p * found.clusters,
        local=unit * p * found.nodes,
        pooling=unit * p * found.components,
        false_edges=unit * 4.0 * S * logs / (kappa.value**2 * gamma) if S else 0.0,
        fidelity=found,
        compatibility=kappa,
        connectivity=gamma,
        assumed=assumed,
    )
