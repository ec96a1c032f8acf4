"""Compatibility factors, and the operator D."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from factories import thinned, weighted
from scipy.optimize import minimize

import graphreg as gr
from graphreg.errors import GraphError, MethodError

theory = gr.theory


# ---- compatibility ---------------------------------------------------------------------------------------------------
def scaled_rows(graph, edges):
    """diag(A) D_T, dense."""
    place, out = {label: k for k, label in enumerate(graph)}, np.zeros((len(edges), len(graph)))
    for row, (a, b) in zip(out, edges, strict=True):
        row[place[a]] = graph.edges[a, b].get("weight", 1.0)
        row[place[b]] = -row[place[a]]
    return out


def ratio(D, theta, norm):
    """sqrt(|T|) ||Theta||_F / R((D Theta)_T)."""
    Z = D @ theta
    lengths = np.abs(Z).sum() if norm == "l1" else np.linalg.norm(Z, axis=1).sum()
    return np.sqrt(len(D)) * np.linalg.norm(theta) / lengths


def slope(D, theta):
    """The gradient of the ratio, l2."""
    Z, size = D @ theta, np.linalg.norm(theta)
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    R = lengths.sum()
    return np.sqrt(len(D)) * (theta / (size * R) - size / R**2 * D.T @ (Z / np.maximum(lengths, 1e-12)))


def chosen(graph, share, rng):
    edges = list(graph.edges)
    return [edge for edge in edges if rng.random() < share] or edges[:1]


@pytest.mark.parametrize("seed", range(12))
def test_one_feature_is_the_best_choice_of_signs(seed):
    rng = np.random.default_rng(seed)
    graph = weighted(nx.gnm_random_graph(7, 11, seed=seed), seed)
    T = chosen(graph, 0.8, rng)
    D = scaled_rows(graph, T)
    most = max(np.linalg.norm(D.T @ np.array(s)) for s in itertools.product((-1.0, 1.0), repeat=len(T)))
    found = theory.compatibility_factor(graph, T)
    assert found.exact
    assert found.value == found.upper == pytest.approx(np.sqrt(len(T)) / most, rel=1e-12)
    assert theory.compatibility_factor(graph, [edge[::-1] for edge in T], gr.L2()).value == pytest.approx(found.value)
    for p in (2, 5):
        several = theory.compatibility_factor(graph, T, "l1", p)
        assert several.value == pytest.approx(found.value / np.sqrt(p), rel=1e-12)


@pytest.mark.parametrize(
    ("graph", "p"),
    thinned([nx.complete_graph(5), nx.cycle_graph(5), nx.petersen_graph(), nx.wheel_graph(8)], [2, 3, 5], every=2),
)
def test_conic_bounds_are_bounds(graph, p):
    """No signal does better than the lower bound, and one that is found by descent comes near the upper one."""
    graph, rng = weighted(graph, 1), np.random.default_rng(p)
    T = list(graph.edges)
    D, found = scaled_rows(graph, T), theory.compatibility_factor(graph, T, gr.L2(), p)
    best = np.inf
    for _ in range(5):
        start = rng.standard_normal((len(graph), p))
        run = minimize(
            lambda x: ratio(D, x.reshape(-1, p), "l2"), start.ravel(), jac=lambda x: slope(D, x.reshape(-1, p)).ravel()
        )
        best = min(best, run.fun)
    assert found.value <= best * (1 + 1e-12)
    assert found.upper <= best * (1 + 1e-4)
    assert found.value <= found.upper * (1 + 1e-12)
    if p * (p + 1) / 2 >= len(T):  # then the conic bound is attained (Barvinok, Pataki)
        assert found.exact


def test_odd_cycles_in_the_plane():
    """Three edges of a triangle at 120 degrees: sum ||theta_i - theta_j|| = 3 sqrt(3) r at ||Theta||_F = sqrt(3) r."""
    T = list(nx.complete_graph(3).edges)
    assert theory.compatibility_factor(nx.complete_graph(3), T, "l2", 2).value == pytest.approx(3**-0.5, rel=1e-6)
    assert theory.compatibility_factor(nx.complete_graph(3), T, "l2", 1).value == pytest.approx(0.375**0.5, rel=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_every_lower_bound_of_the_table_is_one(norm, p, seed):
    rng = np.random.default_rng(seed)
    graph = weighted(nx.gnm_random_graph(8, 14, seed=seed), seed)
    T = chosen(graph, 0.7, rng)
    found = theory.compatibility_factor(graph, T, norm, p)
    lower = found.bounds[found.bounds["kind"] != "no bound"]
    assert (lower["value"] <= found.upper * (1 + 1e-12)).all()
    assert found.bounds.loc["best", "value"] == found.value
    assert found.bounds.loc["corrected", "value"] <= found.bounds.loc["degrees", "value"] * (1 + 1e-12)
    assert found.bounds.loc["degrees", "value"] <= found.value * (1 + 1e-12)
    for _ in range(20):
        assert found.value <= ratio(scaled_rows(graph, T), rng.standard_normal((8, p)), norm) * (1 + 1e-12)


def test_the_printed_bound_fails_for_l1_with_three_features():
    path = nx.path_graph(2)
    found = theory.compatibility_factor(path, [(0, 1)], gr.L1(), 3)
    signal = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
    attained = ratio(scaled_rows(path, [(0, 1)]), signal, "l1")
    assert found.value == pytest.approx(attained)
    printed = found.bounds.loc["as printed"]
    assert printed["value"] > attained
    assert printed["kind"] == "no bound"
    assert theory.compatibility_factor(path, [(0, 1)], "l1", 2).bounds.loc["as printed", "kind"] == "lower bound"


def test_components_of_many_edges():
    """Bipartite ones of any size are exact; of others beyond the conic bound the degrees are left."""
    grid = nx.grid_2d_graph(20, 20)
    found = theory.compatibility_factor(grid, list(grid.edges), "l2", 3)
    assert found.exact
    assert found.value == pytest.approx(np.sqrt(len(grid.edges) / sum(d**2 for _, d in grid.degree)))
    dense = nx.complete_graph(14)
    rough = theory.compatibility_factor(dense, list(dense.edges))
    assert not rough.exact
    assert rough.value == pytest.approx(np.sqrt(91 / (14 * 13**2)))
    assert rough.upper >= np.sqrt(91 / (4 * 7 * 7 * 7)) * 0.9  # near the halves set against each other
    both = nx.disjoint_union(nx.complete_graph(3), nx.path_graph(3))
    assert theory.compatibility_factor(both, list(both.edges)).value == pytest.approx(np.sqrt(5 / (8 + 6)))
    assert len(theory.compatibility_factor(both, list(both.edges)).parts) == 2


def test_compatibility_of_nothing_and_of_what_is_not_there():
    path = nx.path_graph(3)
    nothing = theory.compatibility_factor(path, [])
    assert (nothing.value, nothing.exact) == (1.0, True)
    for edges, said in (
        ([(0, 2)], "0 - 2"),
        ([(0, "1")], "'1', which is not a node"),
        ([3], "pairs of labels"),
        (None, "list"),
    ):
        with pytest.raises(GraphError, match=said):
            theory.compatibility_factor(path, edges)
    with pytest.raises(MethodError, match="'l1' and 'l2'"):
        theory.compatibility_factor(path, [(0, 1)], gr.LInf(), 2)
    one = theory.compatibility_factor(path, [(0, 1)], gr.LInf())  # of one feature all norms are the same
    assert one.value == theory.compatibility_factor(path, [(0, 1)], "l1").value
    assert "the absolute value of one feature" in str(one)
    with pytest.raises(MethodError, match=r"write L1\(\)"):
        theory.compatibility_factor(path, [(0, 1)], gr.L1)
    with pytest.raises(MethodError, match="features"):
        theory.compatibility_factor(path, [(0, 1)], features=0)


# ---- the operator D --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(5))
def test_projection_and_lift_are_those_of_the_pseudo_inverse(seed):
    rng = np.random.default_rng(seed)
    graph = gr.Graph.of(weighted(nx.gnm_random_graph(9, 7 + seed, seed=seed), seed))
    D = np.diag(graph.weight) @ graph.difference().toarray()
    g = rng.standard_normal((9, 2))
    data = gr.NodeData.from_arrays(None, g, range(9))
    (edge,) = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(graph, gr.L2())).form.edges
    network = theory.Network((edge,), (graph.weight,), g.shape)
    plus = np.linalg.pinv(D)
    np.testing.assert_allclose(network.means(g), g - plus @ D @ g, atol=1e-10)
    _, (flow,) = network.electrical(network.balanced(g))
    np.testing.assert_allclose(-flow / graph.weight[:, None], plus.T @ g, atol=1e-10)
