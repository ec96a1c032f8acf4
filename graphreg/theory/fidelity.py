"""Graph fidelity: how faithful a graph is to the clusters of nodes that share their parameters."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..base.messages import count, unmatched
from ..base.tables import NumberWithAssumptions, ResultWithAssumptions
from ..errors import GraphError, MethodError
from ..inputs import Graph, components_of, is_networkx
from ..terms import Array
from .arguments import edge_positions, read_clusters
from .compatibility import CompatibilityFactor, factor
from .spectrum import algebraic_connectivity

Edge = tuple[Hashable, Hashable]


@dataclass(frozen=True)
class GraphFidelity(NumberWithAssumptions):
    """The fidelity of a graph G = (V, E) to the clusters of nodes with the same parameters, E_0 (graph-fused
    M-estimation, Section 3.1).

        GF(G) = K(E_0) / (K(E) + |E \\ E_0|),      0 < GF <= 1

    K counts connected components. Up to constants and logarithms the squared error of graph-fused M-estimation is
    sigma^2 p / (n |V|) per vector to be estimated, and there are K(E) + |E \\ E_0| of these in effect.

    Attributes
    ----------
    value : float
        GF.
    nodes, clusters, components : int
        |V|, K(E_0), K(E).
    true_edges, false_edges : tuple of pairs of labels
        The edges of G within clusters, E and E_0, and between them, E \\ E_0.
    kept_components : int
        K(E and E_0), the components of the graph of the true edges alone.
    assumed : tuple of str
    """

    nodes: int
    clusters: int
    components: int
    true_edges: tuple[Edge, ...] = field(repr=False)
    false_edges: tuple[Edge, ...] = field(repr=False)
    kept_components: int

    @property
    def parameters(self) -> int:
        """K(E) + |E \\ E_0|, the number of vectors that are estimated in effect: K(E_0) where G is faithful, |V| for
        local estimates."""
        return self.components + len(self.false_edges)

    @property
    def local(self) -> float:
        """K(E_0) / |V|, the fidelity of a graph without edges: below it local estimates have the better rate."""
        return self.clusters / self.nodes

    @property
    def least(self) -> float:
        """GF_min = 2 K(E_0) / (|V|^2 (1 - 1 / K(E_0)) + 2), below which no graph is, whatever the sizes of its
        clusters; attained by the complete graph on clusters of one size. With one cluster there are no false edges,
        and it is 1 / |V|."""
        k, n = self.clusters, self.nodes
        return 1.0 / n if k == 1 else 2.0 * k / (n**2 * (1.0 - 1.0 / k) + 2.0)

    @property
    def best(self) -> float:
        """The largest fidelity of a graph with some of the edges of G: that of its true edges (Proposition 3.3)."""
        return self.clusters / self.kept_components

    @property
    def regime(self) -> str:
        """The rate of Section 3.1 that the graph is good for."""
        if self.parameters == self.clusters:
            return "oracle: the rate of estimates that know the clusters"
        if self.parameters < self.nodes:
            return "between: a better rate than that of local estimates, but not that of known clusters"
        if self.parameters == self.nodes:
            return "local: the rate of estimates from each node's data alone"
        return "misleading: a worse rate than that of local estimates; select edges first"

    def _lines(self) -> list[str]:
        n, true, false = self.nodes, len(self.true_edges), len(self.false_edges)
        return [
            f"graph fidelity {self.value:.4g} (from {self.least:.3g} to 1; {self.local:.3g} without edges)",
            f"  {n} nodes in {count(self.clusters, 'cluster')}; {count(self.components, 'component')}, {true} true and "
            f"{false} false edges: {count(self.parameters, 'vector')} to estimate in effect",
            f"  {self.regime}",
            f"  with its true edges alone: {self.best:.4g}",
        ]


def graph_fidelity(graph: Any, truth: Any) -> GraphFidelity:
    """The fidelity of a graph with respect to the clusters of nodes that share their parameters.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        G. Its weights are of no concern.
    truth : clusters or a graph
        The cluster of each node (a mapping from labels, a Series, one name per node in node order, lists of labels by
        cluster, or the ``clusters()`` of a solution), or the graph G_0 on the same nodes, whose components then are
        the clusters.

    Raises
    ------
    GraphError
        Where the two are not over the same labels; it names one that is missing.

    Examples
    --------
    >>> gr.theory.graph_fidelity(graph, {"a": 1.0, "b": 1.0, "c": 2.0, "d": 2.0})
    GraphFidelity(value=1.0, nodes=4, clusters=2, components=1, kept_components=2)
    """
    graph = Graph.of(graph)
    cluster, assumed = _clusters(graph, truth)
    inside = cluster[graph.tail] == cluster[graph.head]
    edges = graph.edges()
    K, K0 = int(graph.components().max()) + 1, int(cluster.max()) + 1
    false = tuple(edge for edge, true in zip(edges, inside.tolist(), strict=True) if not true)
    return GraphFidelity(
        value=K0 / (K + len(false)),
        nodes=graph.n_nodes,
        clusters=K0,
        components=K,
        true_edges=tuple(edge for edge, true in zip(edges, inside.tolist(), strict=True) if true),
        false_edges=false,
        kept_components=components_of(graph.tail[inside], graph.head[inside], graph.n_nodes)[0],
        assumed=assumed,
    )


def _clusters(graph: Graph, truth: Any) -> tuple[Array, tuple[str, ...]]:
    """The number of each node's cluster, and what was assumed of them."""
    rates = "rates are up to constants and logarithms, for comparable numbers of samples and bounded compatibility"
    if not (isinstance(truth, Graph) or sp.issparse(truth) or is_networkx(truth)):
        _, numbers = read_clusters(truth, graph.labels, "the clusters")
        return numbers, ("nodes of a cluster have equal parameters, those of different clusters do not", rates)
    other = Graph.of(truth)
    for said in unmatched("the true graph", other.index, graph.index):
        raise GraphError(said)
    component = other.components()
    sizes = np.bincount(component)
    closed = other.n_edges == int((sizes * (sizes - 1) // 2).sum())
    said = "the clusters are the components of the true graph"
    said += "" if closed else ", which is not a union of cliques: equality is transitive, so it was completed to one"
    place = [other.index[label] for label in graph.labels]
    return read_clusters(component[place].tolist(), graph.labels, "the clusters")[1], (said, rates)


# ---- the rate of Theorem 3.2: how the error of graph-fused M-estimation scales with samples, nodes and false edges
@dataclass(frozen=True, eq=False)
class Rate(ResultWithAssumptions):
    """The scaling of the squared error per node; constants are unknown, so that only ratios mean something.

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

    Examples
    --------
    >>> found = gr.theory.rate(graph, {"a": 1.0, "b": 1.0, "c": 2.0, "d": 2.0}, samples=100, features=1)
    >>> found.fused, found.local
    (0.005, 0.01)
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
