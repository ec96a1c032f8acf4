"""Section 3.1 and Proposition 3.3: kernels, connectivity, graph fidelity and compatibility factors."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import rows


def _graphs() -> list[nx.Graph]:
    """A path, one with a cycle, one in three parts and one with lonely nodes."""
    parts = nx.disjoint_union_all([nx.path_graph(3), nx.cycle_graph(4), nx.empty_graph(1)])
    lonely = nx.gnm_random_graph(9, 8, seed=3)
    return [nx.path_graph(6), nx.barbell_graph(3, 1), parts, lonely]


@claim("fused.kernel", "section 3.1.1, after Theorem 3.1", stated="span of the 1{C_i}")
def kernel(at: Trial) -> Evidence:
    """Ker(D) is spanned by the indicators of the connected components of G."""
    images, dimensions, counts = list[float](), list[int](), list[int]()
    for graph in map(gr.Graph.of, _graphs()):
        D, part = graph.difference().toarray(), graph.components()
        indicators = (part[:, None] == np.arange(part.max() + 1)).astype(float)
        images.append(float(np.abs(D @ indicators).max(initial=0.0)))
        dimensions.append(graph.n_nodes - int(np.linalg.matrix_rank(D)))
        counts.append(int(part.max()) + 1)
    return Evidence.of(
        at_most("largest entry of D 1{C_i}", images, 0.0),
        equal("dimension of the kernel, and components", dimensions, at.given(np.array(counts)), 1e-12),
    )


@claim("fused.projection", "proof of Theorem 3.1, before (S.18)", stated="D^+ D")
def projection(at: Trial) -> Evidence:
    """The projection on Ker(D) is D^+ D, D^+ the Moore-Penrose inverse.

    Correction (misprint): D^+ D is the projection on the row space; that on the kernel is I - D^+ D.
    """
    # On the kernel a signal becomes its mean over each component: (S.21).
    graph = gr.Graph.of(_graphs()[2])
    D, part, signal = graph.difference().toarray(), graph.components(), at.rng().standard_normal(graph.n_nodes)
    P = np.linalg.pinv(D) @ D
    right = at.given(signal)
    means = np.array([right[part == k].mean() for k in part])
    return Evidence.of(
        equal("D^+ D x, and the means over components", P @ signal, means),
        corrected=[equal("(I - D^+ D) x, and the means over components", signal - P @ signal, means)],
    )


@claim("fused.algebraic-connectivity", "section 3.1.1, end, and Theorem 3.2", stated="gamma_G")
def connectivity(at: Trial) -> Evidence:
    """For a connected graph gamma_G, gamma_G^2 the least positive eigenvalue of D'D, is the algebraic connectivity.

    Correction (misprint): The algebraic connectivity is the second smallest eigenvalue of the Laplacian D'D, which is
    gamma_G^2.
    """
    n = 7  # the path: 2 - 2 cos(pi / n); the complete graph: n
    found = [gr.theory.algebraic_connectivity(g).smallest_positive for g in (nx.path_graph(n), nx.complete_graph(n))]
    stated = np.array([2.0 - 2.0 * np.cos(np.pi / n), n])
    return Evidence.of(
        equal("gamma_G, and the connectivity of path and complete graph", np.sqrt(found), stated),
        corrected=[equal("gamma_G^2, and the connectivity of path and complete graph", found, at.given(stated))],
    )


# ---- graph fidelity --------------------------------------------------------------------------------------------------
@claim("fused.prop3.3", "Proposition 3.3", stated="K(E and E_0)")
def best_subgraph(at: Trial) -> Evidence:
    r"""Over subgraphs of a connected G the least K(E~) + |E~ \ E_0| is K(E and E_0), and (11): every E~ has at least
    that, and at most |E~ \ E_0| + |(E and E_0) \ E~| more."""
    # All subsets of the edges of some connected graphs, by enumeration.
    rng, least, stated, over = at.rng(), list[int](), list[int](), list[int]()
    for _ in range(3):
        graph = nx.random_labeled_tree(6, seed=int(rng.integers(1000)))
        graph.add_edges_from([(0, 5), (1, 4)])
        cluster = dict(enumerate(rng.integers(0, 3, 6).tolist()))
        edges = list(graph.edges())
        kept = gr.theory.graph_fidelity(graph, cluster).kept_components
        sizes: list[int] = []
        for chosen in product((False, True), repeat=len(edges)):
            part = nx.Graph([e for e, c in zip(edges, chosen, strict=True) if c])
            part.add_nodes_from(graph)
            found = gr.theory.graph_fidelity(part, cluster)
            true = sum(cluster[i] == cluster[j] for i, j in edges)
            sizes.append(found.parameters)
            over.append(found.parameters - kept - len(found.false_edges) - (true - len(found.true_edges)))
        least.append(min(sizes))
        stated.append(kept)
    return Evidence.of(
        equal("the least K(E~) + |E~ \\ E_0|", least, at.given(np.array(stated)), 1e-12),
        at_most("what (11) leaves, over all subsets", over, 0.0),
    )


@claim("fused.fidelity-range", "section 3.1.2, after (9)", stated="three regimes")
def regimes(at: Trial) -> Evidence:
    """GF_min = 2 K(E_0) / (|V|^2 (1 - 1/K(E_0)) + 2) <= GF <= 1; GF = 1 for G_0 (the rate of the oracle), K(E_0)/|V|
    without edges (that of local estimates), GF_min for the complete graph, of rate sigma^2 p / n times |V| (1 -
    1/K(E)).

    Correction (misprint): In the rate of the complete graph K(E), which is 1 there and makes the rate 0, stands for
    K(E_0).
    """
    V, K, n, p, rng = 12, 3, 40, 5, at.rng()
    cluster = dict(enumerate(np.repeat(range(K), V // K).tolist()))
    within = nx.Graph([(i, j) for i in range(V) for j in range(i) if cluster[i] == cluster[j]])
    graphs = {"G_0": within, "none": nx.empty_graph(V), "complete": nx.complete_graph(V)}
    of = {name: gr.theory.graph_fidelity(graph, cluster) for name, graph in graphs.items()}
    rates = {name: gr.theory.rate(graph, cluster, n, p) for name, graph in graphs.items()}
    least = 2.0 * K / (V**2 * (1.0 - 1.0 / K) + 2.0)
    values, lows = list[float](), list[float]()
    for _ in range(40):
        uneven = rng.integers(0, 3, V)
        uneven[:3] = range(3)
        graph = nx.gnp_random_graph(V, rng.random(), seed=int(rng.integers(999)))
        found = gr.theory.graph_fidelity(graph, uneven.tolist())
        values.append(found.value)
        lows.append(found.least)
    stated = np.array([1.0, K / V, least])
    in_unit = np.array([each.fused for each in rates.values()]) / (p / n)
    times, of_complete = V * (1.0 - 1.0 / K), "the rate of the complete graph / local"
    return Evidence.of(
        at_least(f"|V| (1 - 1/K(E)) beside {of_complete}", V * (1.0 - 1.0 / 1), in_unit[2]),
        corrected=[
            at_least(f"|V| (1 - 1/K(E_0)), beside {of_complete}", times, in_unit[2]),
            at_most("half of that", times / 2.0, in_unit[2]),
            equal("GF of G_0, no edges and the complete graph", [each.value for each in of.values()], at.given(stated)),
            at_least("GF of random graphs, clusters of any size", values, lows),
            at_most("GF of random graphs", values, 1.0),
            equal("rates over local: G_0 and the oracle, no edges and 1", in_unit[:2], [K / V, 1.0]),
        ],
    )


# ---- compatibility ---------------------------------------------------------------------------------------------------
@claim("fused.kappa-bound", "after Condition 3", stated="1 / (2 min(sqrt d, sqrt |T|))")
def compatibility(at: Trial) -> Evidence:
    """kappa_T >= 1 / (2 min(sqrt d, sqrt |T|)), d the largest degree of G.

    Correction (constant): For the l1 norm of p features kappa_T is that of one feature divided by sqrt(p), and so is
    the bound; it fails from p = 3 on, on a single edge.
    """
    single, star = nx.path_graph(2), nx.star_graph(6)
    printed, library, found, corrected = list[float](), list[float](), list[float](), list[float]()
    for graph, edges in ((single, [(0, 1)]), (star, list(star.edges())), (nx.cycle_graph(5), [(0, 1), (1, 2), (3, 4)])):
        for p in (1, 3, 20):
            factor = gr.theory.compatibility_factor(graph, edges, "l1", p)
            degree = max(d for _, d in graph.degree)
            printed.append(0.5 / np.sqrt(min(degree, len(edges))))
            library.append(gr.theory.printed.compatibility_bound(graph, edges))
            found.append(factor.value)
            corrected.append(printed[-1] / np.sqrt(p))
    p = 3  # on one edge: theta = (1, ..., 1) and its negative
    theta = np.array([np.ones(p), -np.ones(p)])
    quotient = np.linalg.norm(theta) / np.abs(at.given(theta)[0] - theta[1]).sum()
    exact = gr.theory.compatibility_factor(single, [(0, 1)], "l1", p)
    return Evidence.of(
        at_least("kappa_T of the l1 norm, p = 1, 3, 20", found, printed),
        corrected=[
            at_least("kappa_T of the l1 norm, p = 1", found[::3], printed[::3]),
            equal("the bound, gr.theory.printed.compatibility_bound and to the letter", library, printed),
            at_least("kappa_T of the l1 norm, bound divided by sqrt(p)", found, np.array(corrected) * (1.0 - 1e-12)),
            equal("kappa_T on one edge, p = 3: 1/sqrt(6), attained", quotient, exact.value, 1e-6),
        ],
        table=rows({"kappa_T": found, "as printed": printed, "divided by sqrt(p)": corrected}),
    )
