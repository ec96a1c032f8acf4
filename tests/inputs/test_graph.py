"""Graphs: construction, the difference operator, and every refusal."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from graphreg.errors import GraphError
from graphreg.inputs.graph import GROUND, Graph, difference_matrix, groups_of, means_of


def triples(graph):
    return {frozenset(edge): w for edge, w in zip(graph.edges(), graph.weight.tolist(), strict=True)}


@pytest.fixture
def triangle():
    return Graph.from_edges([("a", "b", 2.0), ("c", "b"), ("a", "c", 0.5)], nodes=["a", "b", "c", "alone"])


# ---- the difference operator -----------------------------------------------------------------------------------------
def test_difference_is_tail_minus_head_and_its_transpose_the_adjoint(triangle):
    rng = np.random.default_rng(0)
    K = triangle.difference()
    w, u = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    assert K.shape == (3, 4)
    assert K.format == "csr"
    np.testing.assert_allclose(K @ w, w[triangle.tail] - w[triangle.head])
    np.testing.assert_allclose(np.sum((K @ w) * u), np.sum(w * (K.T @ u)))
    np.testing.assert_array_equal(K @ np.ones(4), np.zeros(3))


def test_difference_to_the_ground_is_the_node_itself():
    w = np.array([1.0, 10.0, 100.0])
    K = difference_matrix(np.array([0, 2, 1]), np.array([1, GROUND, GROUND]), 3)
    np.testing.assert_array_equal(K @ w, [-9.0, 100.0, 10.0])


def test_difference_without_edges_is_empty():
    assert Graph.chain(1).difference().shape == (0, 1)


def test_relabelling_permutes_the_difference():
    graph = Graph.grid(3, 4)
    order = np.random.default_rng(1).permutation(graph.n_nodes)
    other = Graph.from_edges(graph.edges(), nodes=[graph.labels[i] for i in order])
    w = np.random.default_rng(2).normal(size=graph.n_nodes)
    np.testing.assert_allclose(np.abs(graph.difference() @ w), np.abs(other.difference() @ w[order]))
    assert triples(graph) == triples(other)


# ---- constructors ----------------------------------------------------------------------------------------------------
def test_edges_are_stored_with_the_tail_first(triangle):
    assert triangle.edges() == [("a", "b"), ("b", "c"), ("a", "c")]
    assert (triangle.tail < triangle.head).all()
    assert triangle.weight.tolist() == [2.0, 1.0, 0.5]
    assert triangle.index == {"a": 0, "b": 1, "c": 2, "alone": 3}
    assert (triangle.n_nodes, triangle.n_edges) == (4, 3)


def test_from_networkx_and_back(triangle):
    graph = Graph.from_networkx(triangle.to_networkx())
    assert graph.labels == triangle.labels
    assert triples(graph) == triples(triangle)


def test_from_networkx_reads_the_named_attribute_and_defaults_to_one():
    g = nx.Graph()
    g.add_edge(1, 2, weight=3.0, cost=7.0)
    g.add_edge(2, 3)
    assert Graph.from_networkx(g).weight.tolist() == [3.0, 1.0]
    assert Graph.from_networkx(g, weight="cost").weight.tolist() == [7.0, 1.0]
    assert Graph.from_networkx(g, weight=None).weight.tolist() == [1.0, 1.0]


def test_from_edges_takes_weights_apart_and_arrays():
    graph = Graph.from_edges(np.array([[5, 3], [3, 4]]), weights=[1.5, 2])
    assert graph.labels == (5, 3, 4)
    assert type(graph.labels[0]) is int
    assert graph.weight.tolist() == [1.5, 2.0]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_matrix, np.asarray])
def test_from_sparse_reads_each_edge_once_and_zeros_as_no_edge(kind):
    A = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.1 + 0.2], [0.0, 0.3, 0.0]])
    graph = Graph.from_sparse(kind(A), labels="xyz")
    assert graph.edges() == [("x", "y"), ("y", "z")]
    assert graph.weight[0] == 2.0


def test_from_sparse_ignores_stored_zeros():
    A = sp.coo_array(([0.0, 0.0, 1.0, 1.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    assert Graph.from_sparse(A).edges() == [(1, 2)]


def test_grid_is_that_of_networkx():
    assert triples(Graph.grid(3, 5)) == triples(Graph.of(nx.grid_2d_graph(3, 5)))
    assert Graph.grid(1, 1).n_edges == 0


def test_a_large_grid():
    assert Graph.grid(300, 300).n_edges == 2 * 300 * 299


def test_chain():
    assert Graph.chain(3).edges() == [(0, 1), (1, 2)]
    assert Graph.chain(["p", "q"]).edges() == [("p", "q")]


def test_nearest_neighbours_is_the_symmetric_union():
    points = np.random.default_rng(0).normal(size=(40, 2))
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    near = np.argsort(squares, axis=1)[:, 1:4]
    expected = {frozenset((i, int(j))) for i in range(40) for j in near[i]}
    graph = Graph.nearest_neighbours(points, 3)
    assert set(triples(graph)) == expected
    d2 = squares[graph.tail, graph.head]
    gaussian = Graph.nearest_neighbours(points, 3, weight="gaussian")
    np.testing.assert_allclose(gaussian.weight, np.exp(-d2 / np.median(d2)))
    inverse = Graph.nearest_neighbours(points, 3, weight=lambda s: 1 / (1 + s))
    np.testing.assert_allclose(inverse.weight, 1 / (1 + d2))


def test_nearest_neighbours_of_equal_points_has_no_self_loops():
    graph = Graph.nearest_neighbours(np.zeros(6), 2, labels="abcdef")
    assert (np.bincount(np.concatenate([graph.tail, graph.head]), minlength=6) >= 2).all()


def test_numpy_labels_become_python_scalars():
    graph = Graph.from_edges([(np.int64(1), np.str_("b"))])
    assert [type(label) for label in graph.labels] == [int, str]
    assert type(Graph.chain(np.arange(2)).labels[0]) is int


def test_components_are_counted_by_first_appearance():
    graph = Graph.from_edges([("c", "e"), ("b", "d")], nodes="abcde")
    assert graph.components().tolist() == [0, 1, 2, 1, 2]


def test_of_accepts_graph_networkx_and_sparse(triangle):
    assert Graph.of(triangle) is triangle
    assert Graph.of(nx.path_graph(3)).edges() == [(0, 1), (1, 2)]
    assert Graph.of(sp.csr_array(np.ones((2, 2)) - np.eye(2))).edges() == [(0, 1)]


def test_input_arrays_are_not_shared():
    weight = np.ones(1)
    graph = Graph((0, 1), np.array([1]), np.array([0]), weight)
    weight[0] = -1.0
    assert graph.weight.tolist() == [1.0]
    assert (graph.tail[0], graph.head[0]) == (0, 1)


def test_repr_shows_sizes(triangle):
    assert repr(triangle) == "Graph: 4 nodes, 3 edges, weights 0.5 to 2"
    assert repr(Graph.chain(2)) == "Graph: 2 nodes, 1 edges"


# ---- refusals --------------------------------------------------------------------------------------------------------
def networkx_of(edge, **attributes):
    g = nx.Graph()
    g.add_edge(*edge, **attributes)
    return g


def asymmetric():
    return sp.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]))


REFUSALS = {
    "self loop": (lambda: Graph.from_edges([("a", "b"), ("b", "b")]), ["'b'", "self loop", "remove"]),
    "self loop networkx": (lambda: Graph.of(networkx_of("xx")), ["'x'", "self loop"]),
    "self loop sparse": (lambda: Graph.from_sparse(np.diag([0.0, 1.0]), "pq"), ["'q'", "self loop"]),
    "directed": (lambda: Graph.of(nx.DiGraph([(0, 1)])), ["directed", "graph.to_undirected()"]),
    "multigraph": (lambda: Graph.of(nx.MultiGraph([(0, 1), (1, 0)])), ["0 - 1", "twice", "sum the weights"]),
    "duplicate": (lambda: Graph.from_edges([("a", "b"), ("b", "a")]), ["'a' - 'b'", "twice", "sum the weights"]),
    "zero weight": (lambda: Graph.from_edges([("a", "b", 0)]), ["'a' - 'b'", "weight 0", "positive"]),
    "negative": (lambda: Graph.from_edges([("b", "a", -1.5)]), ["'b' - 'a'", "-1.5"]),
    "nan": (lambda: Graph.of(networkx_of("ab", weight=np.nan)), ["'a' - 'b'", "nan", "finite"]),
    "inf": (lambda: Graph.from_edges([(0, 1)], [np.inf]), ["0 - 1", "inf"]),
    "text weight": (lambda: Graph.of(networkx_of("ab", weight="3")), ["'a' - 'b'", "'3'", "number"]),
    "none weight": (lambda: Graph.from_edges([("a", "b", None)]), ["'a' - 'b'", "None", "number"]),
    "sparse negative": (lambda: Graph.from_sparse(-np.ones((2, 2)) + np.eye(2), "pq"), ["'p' - 'q'", "-1"]),
    "sparse nan": (lambda: Graph.from_sparse(np.array([[0, 0], [np.nan, 0]]), "pq"), ["'q' - 'p'", "nan"]),
    "asymmetric": (
        lambda: Graph.from_sparse(asymmetric(), "pq"),
        ["not symmetric", "('p', 'q')", "2", "3", "from_edges"],
    ),
    "not square": (lambda: Graph.from_sparse(np.ones((2, 3))), ["square", "(2, 3)"]),
    "not numeric": (lambda: Graph.from_sparse(np.array([["a"]])), ["numbers"]),
    "label count": (lambda: Graph.from_sparse(np.zeros((2, 2)), "abc"), ["3 labels", "2 rows"]),
    "empty": (lambda: Graph.of(nx.Graph()), ["empty", "no nodes"]),
    "empty edges": (lambda: Graph.from_edges([]), ["empty"]),
    "unknown node": (lambda: Graph.from_edges([("a", "z")], nodes="ab"), ["'a' - 'z'", "'z'", "nodes="]),
    "repeated node": (lambda: Graph.from_edges([], nodes="aba"), ["'a'", "twice"]),
    "unhashable": (lambda: Graph.from_edges([(["a"], "b")]), ["['a']", "not hashable"]),
    "unhashable with nodes": (lambda: Graph.from_edges([(["a"], "b")], nodes="ab"), ["['a']", "not hashable"]),
    "missing label": (lambda: Graph.from_edges([("a", float("nan"))]), ["missing", "node 1"]),
    "none label": (lambda: Graph.chain([None]), ["missing", "None"]),
    "not an edge": (lambda: Graph.from_edges([("a", "b"), "ab"]), ["entry 1", "'ab'", "(a, b)"]),
    "both weights": (lambda: Graph.from_edges([("a", "b", 2)], [1]), ["'a' - 'b'", "weights="]),
    "weight count": (lambda: Graph.from_edges([("a", "b")], [1, 2]), ["1 edges", "2 weights"]),
    "of a text": (lambda: Graph.of("a - b"), ["str", "networkx", "adjacency", "edges"]),
    "from_networkx of a list": (lambda: Graph.from_networkx([(0, 1)]), ["networkx", "list"]),
    "grid size": (lambda: Graph.grid(0, 3), ["rows", "0"]),
    "chain size": (lambda: Graph.chain(2.5), ["2.5"]),
    "empty chain": (lambda: Graph.chain([]), ["empty"]),
    "k too large": (lambda: Graph.nearest_neighbours(np.arange(3.0), 3), ["k is 3", "3 points"]),
    "k zero": (lambda: Graph.nearest_neighbours(np.arange(3.0), 0), ["k", "0"]),
    "nan point": (lambda: Graph.nearest_neighbours([[0.0], [np.nan]], 1, "ab"), ["'b'", "not finite"]),
    "text point": (lambda: Graph.nearest_neighbours(["a", "b"], 1), ["points", "numbers"]),
    "cube of points": (lambda: Graph.nearest_neighbours(np.zeros((2, 2, 2)), 1), ["(n, q)", "(2, 2, 2)"]),
    "weighting": (lambda: Graph.nearest_neighbours(np.arange(3.0), 1, weight="cosine"), ["'cosine'", "gaussian"]),
    "equal points": (lambda: Graph.nearest_neighbours(np.zeros(3), 1, weight="gaussian"), ["median", "Gaussian"]),
    "weighting gives zero": (lambda: Graph.nearest_neighbours([0.0, 1], 1, weight=lambda s: 0 * s), ["0 - 1", "0.0"]),
    "position outside": (lambda: Graph((0, 1), np.array([0]), np.array([2]), np.ones(1)), ["head[0]", "2"]),
    "positions not whole": (lambda: Graph((0, 1), np.array([0.5]), np.array([1]), np.ones(1)), ["tail", "whole"]),
    "tail and head": (lambda: Graph((0, 1), np.array([0]), np.array([]), np.ones(1)), ["1 entries", "has 0"]),
    "weight matrix": (lambda: Graph((0, 1), np.array([0]), np.array([1]), np.ones((1, 1))), ["(1, 1)"]),
    "fewer weights": (lambda: Graph((0, 1), np.array([0]), np.array([1]), np.ones(0)), ["1 edges", "0 weights"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_names_the_guilty_part(case):
    build, parts = REFUSALS[case]
    with pytest.raises(GraphError) as caught:
        build()
    for part in parts:
        assert part in str(caught.value)


# ---- positions by number ---------------------------------------------------------------------------------------------
def test_positions_stand_in_groups_by_their_number():
    found = [group.tolist() for group in groups_of(np.array([2, 0, 2, 0]), 4)]
    assert found == [[1, 3], [], [0, 2], []]
    assert groups_of(np.zeros(0, dtype=int)) == []


def test_rows_of_one_number_have_their_mean():
    values = np.array([[1.0, 0.0], [5.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(means_of(np.array([0, 1, 0]), values), [[2.0, 2.0], [5.0, 2.0], [2.0, 2.0]])


def test_points_of_a_frame_have_the_labels_of_its_index():
    points = pd.DataFrame({"x": [0.0, 1.0, 5.0]}, index=["a", "b", "c"])
    assert Graph.nearest_neighbours(points, k=1).edges() == [("a", "b"), ("b", "c")]
    assert Graph.nearest_neighbours(points, k=1, labels=[7, 8, 9]).labels == (7, 8, 9)
