"""Fidelity, connectivity and mixing of graphs: equal to brute force, dense numpy and networkx, and invariant."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import weighted

import graphreg as gr
from graphreg.errors import GraphError, MethodError
from graphreg.network.mixing import spectral_gap

theory = gr.theory


def renamed(graph, seed=0):
    """The same graph with other labels in another order."""
    rng = np.random.default_rng(seed)
    names = {label: f"n{k}" for label, k in zip(graph.nodes, rng.permutation(len(graph)), strict=True)}
    out = nx.Graph()
    out.add_nodes_from(names[label] for label in rng.permutation(list(graph.nodes)))
    out.add_edges_from((names[b], names[a], data) for a, b, data in graph.edges(data=True))
    return out, names


# ---- fidelity --------------------------------------------------------------------------------------------------------
def count(nodes, edges):
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return nx.number_connected_components(graph)


@pytest.mark.parametrize("seed", range(12))
def test_fidelity_is_its_definition_and_true_edges_are_the_best_choice(seed):
    """Proposition 3.3 over all subsets of edges."""
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(6, int(rng.integers(0, 10)), seed=seed)
    cluster = dict(zip(graph.nodes, rng.integers(0, 3, 6).tolist(), strict=True))
    found = theory.graph_fidelity(graph, cluster)
    false = {frozenset(edge) for edge in graph.edges if cluster[edge[0]] != cluster[edge[1]]}
    K0 = len(set(cluster.values()))
    assert {frozenset(edge) for edge in found.false_edges} == false
    assert len(found.true_edges) + len(false) == graph.number_of_edges()
    assert found.value == K0 / (count(graph, graph.edges) + len(false))
    everything = list(graph.edges)
    fewest = min(
        count(graph, kept) + sum(frozenset(edge) in false for edge in kept)
        for r in range(len(everything) + 1)
        for kept in itertools.combinations(everything, r)
    )
    assert found.best == K0 / fewest
    assert found.least - 1e-12 <= found.value <= 1.0


def test_fidelity_of_the_three_regimes():
    labels = [f"n{k}" for k in range(12)]
    cluster = {label: k % 3 for k, label in enumerate(labels)}
    cliques = nx.Graph([(a, b) for a in labels for b in labels if a < b and cluster[a] == cluster[b]])
    empty, complete = nx.empty_graph(labels), nx.complete_graph(labels)
    oracle, local, worst = (theory.graph_fidelity(graph, cluster) for graph in (cliques, empty, complete))
    assert oracle.value == 1.0
    assert oracle.regime.startswith("oracle")
    assert local.value == local.local == 3 / 12
    assert local.regime.startswith("local")
    assert worst.value == pytest.approx(worst.least, abs=1e-15)  # clusters of one size: GF_min is attained
    assert worst.regime.startswith("misleading")
    false = list(itertools.combinations(labels[:3], 2))
    two = theory.graph_fidelity(nx.Graph([*cliques.edges, *false[:2]]), cluster)
    assert two.value == 3 / (1 + 2)  # two false edges join three cliques: what they add they save in components
    assert two.regime.startswith("oracle")
    three = theory.graph_fidelity(nx.Graph([*cliques.edges, *false]), cluster)
    assert three.value == 3 / (1 + 3)
    assert three.regime.startswith("between")
    assert "12 nodes in 3 clusters" in str(three)
    assert "assumed:" in str(three)


def test_fidelity_with_all_nodes_in_one_cluster():
    found = theory.graph_fidelity(nx.empty_graph(5), [0] * 5)
    assert (found.value, found.least, found.local) == (0.2, 0.2, 0.2)


def test_clusters_may_be_written_in_many_ways():
    graph = weighted(nx.gnm_random_graph(9, 16, seed=3))
    names = {k: "abc"[k % 3] for k in graph}
    groups = {name: [k for k in graph if names[k] == name] for name in "abc"}
    cliques = nx.Graph()
    cliques.add_nodes_from(reversed(list(graph)))
    cliques.add_edges_from(pair for group in groups.values() for pair in itertools.combinations(group, 2))
    ways = [names, groups, pd.Series(names), list(names.values()), np.array(list(names.values())), cliques]
    found = [theory.graph_fidelity(graph, way) for way in ways]
    assert len({(f.value, f.false_edges, f.true_edges) for f in found}) == 1
    path = nx.Graph([(0, 3), (3, 6), (1, 4), (4, 7), (2, 5), (5, 8)])
    chained = theory.graph_fidelity(graph, path)
    assert chained.false_edges == found[0].false_edges
    assert "completed" in chained.assumed[0]
    assert "completed" not in found[-1].assumed[0]
    other, new = renamed(graph)
    assert theory.graph_fidelity(other, {new[k]: name for k, name in names.items()}).value == found[0].value


def test_clusters_of_a_solution():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(
        None, np.repeat([[0.0], [5.0]], 20, axis=0) + rng.normal(size=(40, 1)) / 9, np.repeat(range(4), 10)
    )
    solution = gr.Problem(gr.MeanLoss(data) + 0.2 * gr.TotalVariation(nx.path_graph(4), gr.L2())).solve()
    found = theory.graph_fidelity(nx.path_graph(4), solution.clusters())
    assert found.false_edges == ((1, 2),)


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        ({0: "a", 1: "a"}, "no entry for the node 2"),
        ({0: "a", 1: "a", "2": "b"}, "'2', which is not a node"),
        ({0: "a", 1: "a", 2: "b", 3: "b"}, "3, which is not a node"),
        ({"a": [0, 1], "b": [1, 2]}, "1 twice"),
        (["a", "b"], "2 entries for 3 nodes"),
        ("abc", "mapping from labels"),
        ({0: "a", 1: np.nan, 2: "a"}, "entry nan at the node 1"),
        ({0: "a", 1: ["b"], 2: "a"}, r"entry \['b'\] at the node 1"),
        (nx.path_graph(2), "no entry for the node 2"),
        (nx.path_graph(4), "names 3, which is not a node"),
    ],
)
def test_clusters_that_do_not_fit_are_named(truth, said):
    with pytest.raises(GraphError, match=said):
        theory.graph_fidelity(nx.path_graph(3), truth)


# ---- connectivity ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(6))
def test_connectivity_is_that_of_dense_eigenvalues(seed):
    graph = weighted(nx.connected_watts_strogatz_graph(30, 4, 0.3, seed=seed), seed)
    values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray())
    found = theory.algebraic_connectivity(graph)
    assert found.value == found.smallest_positive == pytest.approx(values[1], rel=1e-10)
    assert float(theory.algebraic_connectivity(renamed(graph)[0])) == pytest.approx(values[1], rel=1e-10)
    plain = np.linalg.eigvalsh(nx.laplacian_matrix(graph, weight=None).toarray())
    assert float(theory.algebraic_connectivity(graph, weighted=False)) == pytest.approx(plain[1], rel=1e-10)
    assert (found.components["residual"] < 1e-12).all()


@pytest.mark.parametrize(
    "graph", [nx.cycle_graph(1500), nx.path_graph(900), nx.grid_2d_graph(30, 40), nx.star_graph(800)]
)
def test_large_graphs_by_inverse_iteration(graph):
    n = len(graph)
    exact = {
        1500: 2 - 2 * np.cos(2 * np.pi / 1500),
        900: 2 - 2 * np.cos(np.pi / 900),
        1200: 2 - 2 * np.cos(np.pi / 40),
        801: 1.0,
    }[n]
    found = theory.algebraic_connectivity(graph)
    assert found.value == pytest.approx(exact, rel=1e-8)
    assert found.components["counted"].all()
    assert found.components["residual"].iloc[0] <= 1e-10


@pytest.mark.parametrize("K", [256, 512])
def test_rings_whose_count_meets_a_pivot_of_0(K):
    """A path of K/2 - 1 nodes with fixed ends has the second eigenvalue of the ring."""
    found = gr.theory.mixing(nx.cycle_graph(K))
    assert found.gap == pytest.approx(2.0 / 3.0 * (1.0 - np.cos(2.0 * np.pi / K)), rel=1e-9)


def test_an_eigenvalue_that_was_passed_over_is_counted():
    """The law of inertia: below the third eigenvalue there are two, so that it is not taken for the second."""
    from graphreg.theory.spectrum import _count_below, laplacian

    graph = gr.Graph.of(weighted(nx.path_graph(300)))
    L = laplacian(graph.tail, graph.head, graph.weight, 300)
    values = np.linalg.eigvalsh(L.toarray())
    for k in (1, 2, 5, 200):
        assert _count_below(L, 0.5 * (values[k - 1] + values[k])) == k


def test_connectivity_by_component():
    graph = nx.disjoint_union_all([nx.complete_graph(4), nx.path_graph(3), nx.empty_graph(1)])
    found = theory.algebraic_connectivity(graph)
    assert found.value == 0.0
    assert found.smallest_positive == pytest.approx(1.0)
    np.testing.assert_allclose(found.components["connectivity"], [4.0, 1.0, np.nan], rtol=1e-12)
    assert found.components["nodes"].tolist() == [4, 3, 1]
    assert found.components.index.tolist() == [0, 4, 7]
    assert "assumed" in str(found.components)
    assert "3 components" in str(found)
    alone = theory.algebraic_connectivity(nx.empty_graph(["x"]))
    assert np.isnan(alone.value)
    assert alone.smallest_positive == np.inf
    nothing = theory.algebraic_connectivity(nx.empty_graph(3))
    assert (nothing.value, nothing.smallest_positive) == (0.0, np.inf)


# ---- mixing ----------------------------------------------------------------------------------------------------------
def metropolis(graph):
    n, place = len(graph), {label: k for k, label in enumerate(graph)}
    C = np.zeros((n, n))
    for a, b in graph.edges:
        C[place[a], place[b]] = C[place[b], place[a]] = 1 / (max(graph.degree(a), graph.degree(b)) + 1)
    return C + np.diag(1 - C.sum(axis=1))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_is_that_of_the_written_matrix(seed, lazy):
    graph = weighted(nx.connected_watts_strogatz_graph(20, 4, 0.4, seed=seed), seed)
    C = metropolis(graph)
    C = (C + np.eye(len(C))) / 2 if lazy else C
    values = np.linalg.eigvalsh(C)
    for each in (graph, renamed(graph)[0]):
        found = theory.mixing(each, lazy=lazy)
        assert found.gap == pytest.approx(spectral_gap(C), rel=1e-10)
        assert (found.second, found.least) == pytest.approx((values[-2], values[0]), abs=1e-12)
        assert found.rho == pytest.approx(1 - found.gap, abs=1e-15)
    v = np.linalg.eigh(C)[1][:, -2 if values[-2] >= -values[0] else 0]  # the slowest signal
    for accuracy in (0.5, 0.1, 1e-4):
        t = int(found.time(accuracy))
        left = [np.linalg.norm(np.linalg.matrix_power(C, k) @ v) for k in (t - 1, t)]
        assert left[1] <= accuracy * (1 + 1e-9)
        assert left[0] > accuracy * (1 - 1e-9)


def test_large_graphs_mix_as_small_ones():
    ring = theory.mixing(nx.cycle_graph(900))
    assert ring.gap == pytest.approx((2 - 2 * np.cos(2 * np.pi / 900)) / 3, rel=1e-8)
    assert ring.least == pytest.approx(1 - 4 / 3, abs=1e-6)


def test_a_matrix_of_the_users_own():
    graph = nx.path_graph(["a", "b", "c"])
    C = pd.DataFrame([[0.5, 0.5, 0.0], [0.5, 0.2, 0.3], [0.0, 0.3, 0.7]], index=list("abc"), columns=list("abc"))
    expected = spectral_gap(C.to_numpy())
    assert theory.mixing(graph, C).gap == pytest.approx(expected, rel=1e-12)
    assert theory.mixing(graph, C.loc[list("cab"), list("cab")]).gap == pytest.approx(expected, rel=1e-12)
    wrong = C.copy()
    wrong.loc["a", "c"] = wrong.loc["c", "a"] = 0.1
    with pytest.raises(GraphError, match=r"\('a', 'c'\), which have no edge"):
        theory.mixing(graph, wrong)


def test_the_mixing_matrix_is_that_of_the_methods():
    """A gossip of LocalSGD alone, with steps of nearly 0, is theta <- C theta."""
    graph = nx.relabel_nodes(nx.random_geometric_graph(7, 0.6, seed=3), dict(enumerate("gfedcba")))
    data = gr.NodeData.from_arrays(None, np.zeros((7, 1)), list(graph))
    problem, theta = gr.Problem(gr.MeanLoss(data) + gr.Consensus(graph)), np.arange(7.0)[:, None] ** 2
    C = theory.mixing_matrix(graph)
    assert list(C.index) == list(C.columns) == list(graph)
    seen = problem.solve(gr.LocalSGD(1e-300), start=theta, rounds=3, gap=0, observe="state.theta").observed
    np.testing.assert_allclose(seen["state.theta"][3], np.linalg.matrix_power(C.to_numpy(), 3) @ theta, rtol=1e-12)
    d = dict(graph.degree)
    for i in graph:
        for j in graph:
            if i != j:
                assert C.loc[i, j] == pytest.approx(graph.has_edge(i, j) / (max(d[i], d[j]) + 1), abs=1e-15)
    np.testing.assert_allclose(C.sum(), 1.0)
    pd.testing.assert_frame_equal(theory.mixing_matrix(graph, lazy=True), (C + np.eye(7)) / 2)
    assert theory.mixing(graph).gap == pytest.approx(spectral_gap(C.to_numpy()), rel=1e-9)


def test_mixing_matrices_of_few_edges_and_of_the_users_own():
    assert theory.mixing_matrix(nx.empty_graph(3)).to_numpy().tolist() == np.eye(3).tolist()
    path = nx.path_graph(["a", "b", "c"])
    C = {"a": {"a": 0.5, "b": 0.5}, "b": {"a": 0.5, "b": 0.2, "c": 0.3}, "c": {"b": 0.3, "c": 0.7}}
    assert theory.mixing_matrix(path, C).loc["c"].tolist() == pytest.approx([0.0, 0.3, 0.7])
    C["a"] = {"a": 0.9, "b": 0.5}
    with pytest.raises(GraphError, match=r"the row of 'a' in the mixing matrix sums to 1\.4"):
        theory.mixing_matrix(path, C)
    with pytest.raises(MethodError, match="lazy must be True or False"):
        theory.mixing_matrix(path, lazy="no")


def test_graphs_that_never_agree_and_that_agree_at_once():
    apart = theory.mixing(nx.empty_graph(4))
    assert (apart.gap, apart.rho, apart.time()) == (0.0, 1.0, np.inf)
    assert np.isnan(apart.exponent)
    assert "4 components" in str(apart)
    swing = theory.mixing(nx.path_graph(2), [[0.0, 1.0], [1.0, 0.0]])  # the eigenvalue -1
    assert (swing.gap, swing.time()) == (0.0, np.inf)
    one = theory.mixing(nx.empty_graph(1))
    assert (one.gap, one.time()) == (1.0, 1.0)
    pair = theory.mixing(nx.path_graph(2))
    assert (pair.gap, pair.exponent, pair.time()) == pytest.approx((1.0, 0.0, 1.0), abs=1e-12)
    with pytest.raises(MethodError, match="accuracy"):
        pair.time(1.5)


@pytest.mark.parametrize("K", [3, 10, 41, 600])
def test_the_gap_of_a_star_is_1_over_2K(K):
    """Hence q = 1, where Table 1 of the slides prints 2."""
    assert theory.mixing(nx.star_graph(K - 1), lazy=True).gap == pytest.approx(1 / (2 * K), rel=1e-9)


def test_sparseness_exponents():
    ring = theory.sparseness_exponent(nx.cycle_graph, [40, 80, 160, 320])
    assert ring.value == pytest.approx(2.0, abs=0.01)
    star = theory.sparseness_exponent(lambda K: nx.star_graph(K - 1), [40, 80, 160, 320])
    assert float(star) == pytest.approx(1.0, abs=1e-9)
    assert star.std_error < 1e-9
    assert star.table["nodes"].tolist() == [40, 80, 160, 320]
    np.testing.assert_allclose(star.table["exponent"][1:], 1.0)
    complete = theory.sparseness_exponent(nx.complete_graph, [5, 10, 20])
    assert float(complete) == pytest.approx(0.0, abs=1e-12)
    assert "Metropolis" in str(star)


def test_families_without_an_exponent():
    with pytest.raises(GraphError, match="size 3 has 3 components"):
        theory.sparseness_exponent(nx.empty_graph, [3, 4])
    with pytest.raises(GraphError, match="size 1 has one node"):
        theory.sparseness_exponent(nx.path_graph, [1, 4])
    with pytest.raises(MethodError, match="list of sizes"):
        theory.sparseness_exponent(nx.path_graph, 5)
    with pytest.raises(MethodError, match="lazy must be True or False"):
        theory.mixing(nx.path_graph(4), lazy="no")
    with pytest.raises(MethodError, match="two different numbers"):
        theory.sparseness_exponent(nx.path_graph, [4, 4])


def test_largest_networks():
    """Theorems 3, 5 and 6, and Table 1 with the star corrected."""
    assert theory.largest_network(1000).order == 1.0
    assert theory.largest_network(1000).nodes == 1000
    assert theory.largest_network(1000, alpha=0.75, estimator="average").order == pytest.approx(0.5)
    assert theory.largest_network(1000, exponent=1).order == pytest.approx(1 / 7)
    assert theory.largest_network(1000, exponent=2).order == pytest.approx(1 / 13)
    for k in (1, 2, 3):  # k-dimensional torus
        assert theory.largest_network(10, exponent=2 / k).order == pytest.approx(k / (12 + k))
    assert theory.largest_network(10**7, exponent=1).nodes == pytest.approx(10)
    assert "constant is unknown" in str(theory.largest_network(1000))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"T": 0}, "T must be a whole number"),
        ({"T": 100, "estimator": "mean"}, "'average' or 'one-step'"),
        ({"T": 100, "estimator": "average"}, "give alpha"),
        ({"T": 100, "estimator": "average", "alpha": 0.5}, "alpha of the average"),
        ({"T": 100, "estimator": "average", "alpha": 0.8, "exponent": 1}, "no theorem on averages"),
        ({"T": 100, "alpha": 0.8}, "alpha = 1"),
        ({"T": 100, "exponent": -1.0}, "exponent"),
        ({"T": 100, "exponent": np.nan}, "exponent"),
    ],
)
def test_where_no_theorem_says_anything(arguments, said):
    with pytest.raises(MethodError, match=said):
        theory.largest_network(**arguments)
