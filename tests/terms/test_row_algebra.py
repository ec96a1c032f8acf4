"""Rows of gr.w: their algebra against dense matrices, their keys, and every refusal; special cases to the last bit."""

import copy
import pickle
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphreg as gr
from graphreg.errors import GraphError, TermError
from graphreg.terms import Differences, Matrix, Selection
from graphreg.terms.records import Space

w, N = gr.w, 7
RNG = np.random.default_rng(0)
ONE = Space({i: i for i in range(N)}, ("y",), np.array([0]))
TWO = Space({i: i for i in range(N)}, ("a", "b"), np.array([0, 1]))
GRAPH = nx.cycle_graph(N)
GRAPH.add_edge(0, 3)
WEIGHTED = nx.empty_graph(N)
WEIGHTED.add_weighted_edges_from((i, j, 0.5 + i) for i, j in GRAPH.edges)
ARROWS = nx.DiGraph(list(GRAPH.edges))
A, B, R = RNG.standard_normal((3, N)), RNG.standard_normal((2, 4)), RNG.standard_normal((2, 2))
TIMES = np.cumsum(RNG.uniform(0.2, 2.0, N))
POINT = RNG.standard_normal((N, 2))


def incidence(graph):
    D = np.zeros((graph.number_of_edges(), N))
    for e, (i, j) in enumerate(graph.edges):
        D[e, i], D[e, j] = 1.0, -1.0
    return D


def divided(v):
    """Second divided differences, by hand."""
    slope = np.diff(v, axis=0) / np.diff(TIMES)[:, None]
    return np.diff(slope, axis=0)


def third(v):
    return np.diff(divided(v) * (2.0 / (TIMES[2:] - TIMES[:-2]))[:, None], axis=0)


D, DA = incidence(GRAPH), -incidence(ARROWS)
L, LW = D.T @ D, nx.laplacian_matrix(WEIGHTED, nodelist=range(N)).toarray()
NUMBERED = {e: float(k) for k, e in enumerate(ARROWS.edges)}

K2 = np.array([[1.0, 2.0], [0.0, -1.0]])

ALGEBRA = {
    "w": (w, lambda v: v),
    "nodes": (w.at([3, 1, 3]), lambda v: v[[3, 1, 3]]),
    "features": (w.at(None, ["b"]), lambda v: v[:, 1:]),
    "one node": (w.at(2), lambda v: v[[2]]),
    "difference": (w.at(0) - w.at(1) @ R.T, lambda v: v[[0]] - v[[1]] @ R.T),
    "one to several": (w.at([1, 2]) - w.at(0), lambda v: v[1:3] - v[0]),
    "several to one": (w.at(0) - w.at([1, 2]), lambda v: v[0] - v[1:3]),
    "sum": (sum([w.at([0, 1]), w.at([2, 2])]), lambda v: v[:2] + v[[2, 2]]),
    "negative": (-(2.0 * w.at([0, 1])) / 4.0, lambda v: -v[:2] / 2.0),
    "offset": (w - 3.0, lambda v: v - 3.0),
    "offsets": (
        w.at([0, 1]) + np.array([[1.0, 2.0], [3.0, 4.0]]),
        lambda v: v[:2] + np.array([[1.0, 2.0], [3.0, 4.0]]),
    ),
    "one offset": (np.array([1.0, 2.0]) - w, lambda v: np.array([1.0, 2.0]) - v),
    "offset by row": (w.at(None, ["a"]) - np.arange(N), lambda v: v[:, :1] - np.arange(N)[:, None]),
    "offset by node": (w.at([2, 0]) - {0: 1.0, 2: 5.0}, lambda v: v[[2, 0]] - [[5.0], [1.0]]),
    "offset by arrow": (w.across(ARROWS) - NUMBERED, lambda v: DA @ v - np.arange(len(D))[:, None]),
    "of nodes": (A @ w, lambda v: A @ v),
    "of numbers": (w @ B, lambda v: v @ B),
    "both, sparse": (sp.csr_array(A) @ w @ sp.coo_array(B) - 1.0, lambda v: A @ v @ B - 1.0),
    "shifted, then mixed": (A @ (w - 1.0) @ B, lambda v: A @ (v - 1.0) @ B),
    "any": (gr.Rows(np.kron(A, np.eye(2)), k=2), lambda v: A @ v),
    "arrows": (w.across(ARROWS), lambda v: DA @ v),
    "edges": (w.across(GRAPH), lambda v: D @ v),
    "edges of a feature": (w.at(None, ["b"]).across(GRAPH), lambda v: D @ v[:, 1:]),
    "Laplacian": (w.across(GRAPH, 2), lambda v: L @ v),
    "third": (w.across(GRAPH, 3), lambda v: D @ L @ v),
    "fourth": (w.across(GRAPH, 4), lambda v: L @ L @ v),
    "fifth": (w.across(GRAPH, 5), lambda v: D @ L @ L @ v),
    "weighted Laplacian": (w.across(WEIGHTED, 2), lambda v: LW[list(WEIGHTED)] @ v),
    "Laplacian twice": (w.across(GRAPH, 2).across(GRAPH, 2), lambda v: L @ L @ v),
    "along": (w.along(range(N)), lambda v: np.diff(v, axis=0)),
    "along a path of some": (w.along([4, 0, 2]), lambda v: np.diff(v[[4, 0, 2]], axis=0)),
    "along 3": (w.along(range(N), 3), lambda v: np.diff(v, 3, axis=0)),
    "along times": (w.along(range(N), 2, at=TIMES), divided),
    "along times 3": (w.along(range(N), 3, at=TIMES), third),
    "along whole times": (w.along(range(N), 3, at=range(1, N + 1)), lambda v: np.diff(v, 3, axis=0)),
    "rows of some": (gr.Rows([[1.0, 2.0], [0.0, -1.0]], nodes=[4, 1], features=["b"]), lambda v: K2 @ v[[4, 1], 1:]),
    "rows of pairs": (gr.Rows(np.eye(4), 2, [4, 1], ["b", "a"], ["x", "y"]), lambda v: v[[4, 1], ::-1]),
    "too short": (w.along(range(N), N), lambda v: np.zeros((0, 2))),
}


@pytest.mark.parametrize("name", ALGEBRA)
def test_rows_are_what_numpy_says(name):
    rows, dense = ALGEBRA[name]
    made, expected = rows.made(TWO), np.asarray(dense(POINT))
    values = (made.K @ POINT.ravel()).reshape(made.shape) - made.b
    sign = np.sign(values * expected).clip(-1) if made.signless else 1.0  # either way round, as a row
    assert made.shape == expected.shape
    assert (np.ptp(sign * np.ones(made.shape), axis=1) == 0).all()
    np.testing.assert_allclose(values, sign * expected, atol=1e-12)
    assert len(made.keys) == len(made.c) == made.shape[0]
    assert rows.text() in repr(rows)


def test_sums_of_rows_and_numbers_are_those_of_vectors():
    """Random expressions: the same operations on rows and on the array."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows, v = w, POINT
        for _ in range(5):
            what, m, k = int(rng.integers(6)), *v.shape
            M, b = rng.standard_normal((int(rng.integers(1, 5)), m)), rng.standard_normal((m, k))
            Q, c = rng.standard_normal((k, int(rng.integers(1, 4)))), float(rng.standard_normal())
            rows = (M @ rows, rows @ Q, rows - b, c * rows, rows + 2.0 * rows, b - rows)[what]
            v = (M @ v, v @ Q, v - b, c * v, v + 2.0 * v, b - v)[what]
        made = rows.made(TWO)
        np.testing.assert_allclose((made.K @ POINT.ravel()).reshape(v.shape) - made.b, v, atol=1e-10)


def sums_of_rows(rows, space=ONE):
    """What the same number everywhere gives, in rationals."""
    K = rows.made(space).K.tocsr()
    each = (K.data[a:b].tolist() for a, b in pairwise(K.indptr))
    return {sum(map(Fraction, entries)) for entries in each}


@pytest.mark.parametrize("order", [2, 3])
def test_differences_of_what_is_the_same_everywhere_are_0_exactly(order):
    """Else classes, of which a common number changes no loss, have another infimum than the one that is meant, 1e16
    away."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        graph = GRAPH.copy()
        weight = {edge: 10.0 ** rng.uniform(-1.5, 1.5) for edge in graph.edges}
        nx.set_edge_attributes(graph, weight, "weight")
        assert sums_of_rows(w.across(graph, order)) == {0}
        exact = nx.laplacian_matrix(graph, nodelist=range(N)).toarray()
        exact = exact if order == 2 else incidence(graph) @ exact
        np.testing.assert_allclose(w.across(graph, order).made(ONE).K.toarray(), exact, rtol=0, atol=1e-12)
        if order == 2:
            assert sums_of_rows(w.along(range(N), 2, at=np.cumsum(rng.uniform(0.1, 3.0, N)))) == {0}


def test_weights_that_sums_would_lose_stay_as_they_are():
    graph = nx.path_graph(N)
    nx.set_edge_attributes(graph, {edge: 10.0 ** (-6 * k) / 3.0 for k, edge in enumerate(graph.edges)}, "weight")
    K = w.across(graph, 2).made(ONE).K
    for i, j, c in graph.edges(data="weight"):
        assert K[i, j] == -c


def test_keys():
    assert w.at([3, 1]).made(ONE).keys == (3, 1)
    assert w.across(ARROWS).made(ONE).keys == tuple(ARROWS.edges)
    assert w.across(GRAPH, 2).made(ONE).keys == tuple(range(N))
    assert w.along([4, 0, 2, 1], 2).made(ONE).keys == ((4, 0, 2), (0, 2, 1))
    assert (w.at(0) - w.at([1, 2])).made(ONE).keys == ((0, 1), (0, 2))
    assert (A @ w).made(ONE).keys == (0, 1, 2)
    assert gr.Rows(np.eye(2), 1, ["x", 0], names=["p", "q"]).labels() == ("x", 0)
    assert gr.Rows(np.eye(2), 1, [3, 0], names=["p", "q"]).made(ONE).keys == ("p", "q")


def test_weights():
    np.testing.assert_array_equal(w.across(WEIGHTED).made(ONE).c, [d for _, _, d in WEIGHTED.edges(data="weight")])
    made = w.at([3, 1, 0]).weighted([2.0, 0.0, 1.0]).made(ONE)
    assert made.keys == (3, 1, 0)
    np.testing.assert_array_equal(made.c, [2.0, 0.0, 1.0])  # 0 leaves the row out of the term
    made = w.across(ARROWS).weighted(NUMBERED).made(ONE)
    assert dict(zip(made.keys, made.c, strict=True)) == NUMBERED
    assert w.at([0, 1]).weighted(2.0).weighted([3.0, 4.0]).made(ONE).c.tolist() == [3.0, 4.0]  # in their place


def test_groups_of_different_sizes():
    rows = w.across(ARROWS).grouped(lambda arrow: arrow[0])
    each = {key: made for made in rows.each(TWO) for key in made.keys}
    for i in ARROWS:
        heads = list(ARROWS.successors(i))
        if heads:
            made = each[i]
            line = list(made.keys).index(i)
            values = (made.K @ POINT.ravel()).reshape(made.shape)[line]
            np.testing.assert_allclose(values, np.concatenate([POINT[j] - POINT[i] for j in heads]))
    data = gr.NodeData.from_arrays(None, POINT, range(N))
    form = gr.Problem(gr.MeanLoss(data) + gr.L2()(rows.weighted({i: 1.0 + i for i in each}))).form
    by_hand = sum(
        (1 + i) * np.sqrt(sum(((POINT[j] - POINT[i]) ** 2).sum() for j in ARROWS.successors(i))) for i in each
    )
    assert form.primal(POINT[list(form.labels)]) == pytest.approx(by_hand, rel=1e-14)


# ---- what is special ------------------------------------------------------------------------------------------------
def means(*more):
    return gr.Problem(sum(more, start=gr.MeanLoss(gr.NodeData.from_arrays(None, POINT, range(N)))))


CENTERS = np.arange(2.0 * N).reshape(N, 2)
ALIKE = {
    "TotalVariation": (gr.L2()(w.across(WEIGHTED)), gr.TotalVariation(WEIGHTED, gr.L2()), Differences),
    "of a feature": (
        gr.L1()(w.at(None, ["y1"]).across(GRAPH)),
        gr.TotalVariation(GRAPH, gr.L1(), features=["y1"]),
        Differences,
    ),
    "Consensus": (gr.Zero()(w.across(GRAPH)), gr.Consensus(GRAPH), Differences),
    "NodePenalty": (gr.L1()(w), gr.NodePenalty(gr.L1()), Selection),
    "centers": (
        gr.SquaredL2()(w - CENTERS),
        gr.NodePenalty(gr.SquaredL2(), center=dict(enumerate(CENTERS))),
        Selection,
    ),
}
ALIKE |= {
    "some nodes": (
        (gr.L1()(w.at([4, 1], ["y1"]).weighted([2.0, 3.0]))),
        gr.NodePenalty(gr.L1(), {1: 3.0, 4: 2.0}, features=["y1"], nodes=[4, 1]),
        Selection,
    ),
    "constraint at a node": (
        gr.Zero()(w.at(3) - [1.0, 2.0]),
        gr.NodePenalty(gr.Zero(), center={3: [1.0, 2.0]}, nodes=3),
        Selection,
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_terms_on_rows_are_the_usual_ones_to_the_last_bit(name):
    rows, usual, kind = ALIKE[name]
    one, two = means(rows), means(usual)
    (a,), (b,) = one.form.edges, two.form.edges
    assert type(a.map) is type(b.map) is kind
    assert abs(a.flat(2) - b.flat(2)).nnz == 0
    np.testing.assert_array_equal(a.weight, b.weight)
    np.testing.assert_array_equal(*(0.0 if e.center is None else e.center for e in (a, b)))
    first, second = (p.solve(gr.PrimalDual(polish=False), rounds=40, gap=0, progress=False) for p in (one, two))
    np.testing.assert_array_equal(first.coef, second.coef)
    assert first.objective == second.objective


def test_letters_of_different_nodes_differ():
    several = w.at([0, 1])
    assert (several - w.at([2, 3])).text() == "w_i - w_j"
    assert (several + w.at([2, 3]) - w.at(4) - 2 * several).text() == "w_i + w_j - w_4 - 2 w_k"
    assert (several - (w.at([2, 3]) - w.at([1, 2]))).text() == "w_i - (w_k - w_j)"
    assert (w - w @ np.eye(2)).text() == "w_i - w_i B"
    assert w.along([0, 1, 2]).grouped([0, 0]).text() == "((D w)_t)_(in g)"
    assert w.at(features="rain").text() == "w_i[rain]"


def test_equations_and_rows_are_no_terms():
    fit = means(gr.L1()(w)).model
    for given, said in ((w == 0.0, r"an equation of rows is gr.Zero\(\)"), (w, r"call a penalty on rows")):
        with pytest.raises(TermError, match=said):
            fit + given


def test_steps_along_a_path_are_edges():
    """Where a penalty has no direction, as those of arrows are."""
    (block,) = means(gr.L1()(w.along([2, 0, 1]))).form.edges
    assert (block.map.tail.tolist(), block.map.head.tolist()) == ([0, 1], [1, 2])
    for rows in (w.along(range(N)) - 1.0, w.along([0, 1, 1, 2]), w.along(range(N), 2)):
        (block,) = means(gr.L1()(rows)).form.edges
        assert type(block.map) is Matrix
    (block,) = means(gr.NonNegative()(w.along(range(N)))).form.edges
    assert type(block.map) is Matrix


def test_other_rows_are_matrices():
    for rows in (w.across(GRAPH, 2), 2.0 * w, w.along(range(N), 2), w @ B, A @ w):
        (block,) = means(gr.L1()(rows)).form.edges
        assert type(block.map) is Matrix


def test_zeros_are_no_ends():
    """Of sums that cancel, of a factor 0, and of a matrix that stores them."""
    stored = sp.csr_array((np.array([1.0, 0.0]), np.array([0, 2]), np.array([0, 2])), shape=(1, N))
    (block,) = means(gr.L1()(stored @ w)).form.edges
    assert (block.map.degree > 0).sum() == 1
    assert block.map.pairs[0].size == 0
    assert not means(gr.L1()(0.0 * w)).form.edges
    (block,) = means(gr.L1()(w.at([0, 1]) - w.at([0, 2]))).form.edges
    assert block.count == 1


def test_matrices_are_the_terms_own():
    K = sp.csr_array(np.eye(2 * N))
    rows = gr.Rows(K, k=2)
    K.data[:] = 7.0
    assert rows.made(TWO).K.max() == 1.0
    twice = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, N))
    assert (twice @ w).made(ONE).K.nnz == 1
    assert twice.nnz == 2


# ---- refusals -------------------------------------------------------------------------------------------------------
def lowered(term, space=TWO):
    return term.lower(space, gr.terms.Strength(1.0))


MIXED = gr.Quadratic(np.array([[2.0, 1.0], [1.0, 2.0]]))
PAIRS = w.at(None, ["a"]).across(nx.path_graph(3)).grouped([0, 0])
SIGN = "w_i - w_j of an undirected graph has no sign: give a DiGraph, whose arrow i -> j means w_j - w_i"
REFUSED = {
    "unknown node": (lambda: w.at("x").made(TWO), TermError, "the node 'x', which the problem does not have"),
    "look-alike": (lambda: w.at("1").made(TWO), TermError, "the node '1'"),
    "tuple": (lambda: w.at((0, 1)).made(TWO), TermError, "a tuple is one label: for several nodes give a list"),
    "unknown feature": (lambda: w.at(0, ["c"]).made(TWO), TermError, "c"),
    "unknown node of a path": (lambda: w.along([0, 9]).made(TWO), TermError, "the node 9"),
    "unknown node of a graph": (lambda: w.across(nx.path_graph(9)).made(TWO), GraphError, "7"),
    "text for a path": (
        lambda: w.along("day"),
        TermError,
        "must be a list of nodes, the path in its order, got the text",
    ),
    "twice running": (lambda: w.along([0, 1, 1, 2], 2), TermError, "the path names the node 1 twice running"),
    "a date": (lambda: w.along([0], at=np.array(["2026-01-01"], dtype="M8[D]")), TermError, "dates as days since"),
    "no place": (lambda: w.along([0, 1], at={0: 1.0}), TermError, "at has no entry for the row 1"),
    "order": (lambda: w.along([0, 1], 0), TermError, "the order of differences must be a whole number from 1, got 0"),
    "order of a graph": (lambda: w.across(GRAPH, 1.5), TermError, "a whole number from 1, got 1.5"),
    "times": (lambda: w.along([0, 1, 2], at=[0, 2, 1]), TermError, "2 at 1 follows 1 at 2"),
    "equal times": (lambda: w.along([0, 1], at=[1, 1]), TermError, "at must increase along the path"),
    "few times": (lambda: w.along([0, 1, 2], at=[0, 1]), TermError, "at must be 3 finite numbers"),
    "no time": (lambda: w.along([0, 1], at=[0, np.nan]), TermError, "at must be 2 finite numbers"),
    "lengths": (lambda: (w.at([0, 1]) + w.at([0, 1, 2])).made(TWO), TermError, "2 rows of 2 numbers and 3 rows of"),
    "widths": (lambda: (w - w.at(None, ["a"])).made(TWO), TermError, "give as many of each"),
    "offsets": (lambda: (w - np.ones(3)).made(TWO), TermError, "has the shape (3,), and there are 7 rows of 2"),
    "offsets of one": (lambda: (w.at(0) - np.ones(3)).made(TWO), TermError, "and there is 1 row of 2 numbers; give"),
    "either way": (lambda: (w.at([0, 1]) - [1.0, 2.0]).made(TWO), TermError, "a number per row as b[:, None]"),
    "infinite offset": (lambda: (w - np.inf).made(TWO), TermError, "must be finite"),
    "offset of no arrow": (lambda: (w.across(ARROWS) - {**NUMBERED, (0, 5): 1}).made(TWO), TermError, "(0, 5)"),
    "no offset of an arrow": (lambda: (w.across(ARROWS) - {(0, 1): 1}).made(TWO), TermError, "no entry for the row"),
    "sign of an offset": (lambda: (w.across(GRAPH) - 1.0).made(TWO), TermError, SIGN),
    "sign of a sum": (lambda: (w.across(GRAPH) + w.across(GRAPH)).made(TWO), TermError, SIGN),
    "sign in a mix": (lambda: (np.ones((1, 8)) @ w.across(GRAPH)).made(TWO), TermError, SIGN),
    "sign of one side": (lambda: lowered(gr.NonNegative()(w.across(GRAPH))), TermError, SIGN),
    "sign of a box": (lambda: lowered(gr.Box(-1, 2)(w.across(GRAPH))), TermError, SIGN),
    "signs in a group": (lambda: lowered(MIXED(PAIRS)), TermError, f"mixes the rows of a group, and {SIGN}"),
    "signs of a group": (lambda: lowered(gr.L1()(PAIRS @ np.ones((2, 1)))), TermError, SIGN),
    "product": (lambda: w.at(0) * w.at(1), TermError, "product of unknowns, which is not convex; give one as a number"),
    "bilinear form": (lambda: w.at(0) @ w.at(1), TermError, "product of unknowns, which is not convex"),
    "product with a list": (lambda: w.at(0) * [1.0], TermError, "rows are scaled by a number"),
    "division": (lambda: w / 0, TermError, "divided by a number other than 0"),
    "A": (lambda: (np.ones((3, 5)) @ w).made(TWO), TermError, "A in A @ rows has 5 columns, and there are 7 rows w_i"),
    "B": (lambda: (w @ np.ones((3, 1))).made(TWO), TermError, "B in rows @ B has 3 lines, and the rows w_i 2 numbers"),
    "vector": (lambda: w @ np.ones(2), TermError, "must be a matrix, got 1 dimension"),
    "infinite A": (lambda: np.array([[np.inf] * N]) @ w, TermError, "must be finite"),
    "K": (lambda: gr.Rows(np.eye(3)).made(TWO), TermError, "3 columns, and w has 7 nodes x 2 coordinates = 14 numbers"),
    "k": (lambda: gr.Rows(np.eye(3), 2), TermError, "k must divide the 3 lines of K, got 2"),
    "K of some": (lambda: gr.Rows(np.eye(3), nodes=[0]).made(TWO), TermError, "it is of 1 nodes x 2 coordinates = 2"),
    "names": (lambda: gr.Rows(np.eye(3), names=["a"]), TermError, "there are 3 rows and 1 names; give one per row"),
    "nodes as one": (lambda: gr.Rows(np.eye(3), nodes=3), TermError, "nodes must be a list of labels"),
    "negative weight": (lambda: w.weighted(-1.0).made(TWO), TermError, "finite and not negative, got -1 at 0"),
    "weights": (lambda: w.weighted([1.0, 2.0]).made(TWO), TermError, "have the shape (2,), and there are 7 rows"),
    "weight of no node": (lambda: w.weighted(dict.fromkeys(range(10), 1.0)).made(TWO), TermError, "name 7"),
    "weights inside": (lambda: (w.weighted(2.0) + w).made(TWO), TermError, "has weights, which come last"),
    "group of no row": (lambda: w.grouped({0: 0}).made(TWO), TermError, "no entry for the row 1"),
    "keys of groups": (lambda: w.grouped([0]).made(TWO), TermError, "one key per row, got 1 for 7 rows"),
    "weights in a group": (lambda: w.weighted(range(1, 8)).grouped([0] * N).made(TWO), TermError, "different weights"),
    "sizes": (lambda: w.grouped([0] * 3 + [1] * 4).made(TWO), TermError, "have [6, 8] numbers"),
    "array of sizes": (
        lambda: w.grouped([0] * 3 + [1] * 4).weighted([1, 2]).each(TWO),
        TermError,
        "give a mapping by group",
    ),
    "graph of no nodes": (lambda: w.across(GRAPH).across(GRAPH).made(TWO), TermError, "not rows of one node each"),
    "path of no nodes": (lambda: (A @ w).along([0, 1]).made(TWO), TermError, "not rows of one node each"),
    "a node twice": (lambda: w.at([0, 0]).along([0, 0]).made(TWO), TermError, "not rows of one node each"),
    "loop": (lambda: w.across(nx.DiGraph([(0, 0)])), GraphError, "leads from a node to itself; drop it"),
    "negative arrow": (lambda: w.across(nx.DiGraph([(0, 1, {"weight": -1})])), GraphError, "has the weight -1"),
    "parallel arrows": (lambda: w.across(nx.MultiDiGraph([(0, 1)])), GraphError, "parallel arrows"),
    "no rows": (lambda: gr.L1()(np.ones(3)), TermError, "is called on rows of gr.w"),
    "weights of a constraint": (lambda: lowered(gr.Ball(1.0)(w.weighted(2.0))), TermError, "leave the weights out"),
    "strength of a constraint": (lambda: means(2.0 * gr.Ball(1.0)(w)).form, TermError, "no strength"),
    "equations": (lambda: lowered(gr.Zero()(w.along(range(N), 2))), TermError, "others to rounding only"),
    "constant": (lambda: lowered(gr.L1()(0.0 * w - 1.0)), TermError, "the row 0 of L1(0 w_i - 1) does not depend on w"),
    "never": (lambda: lowered(gr.Box(-1, 1)(0.0 * w - 2.0)), TermError, "can never hold; give it the weight 0"),
}


REFUSED |= {
    "data": (lambda: gr.L1()(means().model.terms[0][1].data), TermError, "is called on rows of gr.w"),
    "a graph": (lambda: gr.L1()(GRAPH), TermError, "such as gr.w.across(graph), got <networkx"),
    "rows of a class": (lambda: gr.L1(w), TermError, "L1 is a class: make a penalty and call it on the rows, as in L1"),
    "rows as a parameter": (lambda: gr.HuberNorm(w.at(0)), TermError, "as in HuberNorm(...)(w_0)"),
    "a penalty alone": (lambda: 0.1 * gr.L2(), TermError, "or 0.1 * gr.L2()(gr.w)"),
    "at least": (
        lambda: w.at("a") >= 0,
        TermError,
        "a comparison of w_a is no term: that rows are at least b says gr.No",
    ),
    "at most": (lambda: w <= np.ones(2), TermError, "a comparison of w_i is no term"),
    "less": (lambda: w < 1.0, TermError, "gr.Box(low, high)(rows)"),
    "abs": (lambda: abs(w), TermError, "write gr.L1()(rows)"),
    "power": (lambda: w**2, TermError, "for squares write gr.SquaredL2()(rows)"),
    "index": (lambda: w[0, 1], TermError, "w_i is not indexed: write gr.w.at(nodes, features)"),
    "iterated": (lambda: next(iter(w.along([0, 1]))), TermError, "(D w)_t is not indexed"),
    "length": (lambda: len(w), TermError, "is known when the problem is made"),
    "shape": (lambda: w.shape, TermError, "w_i are rows of a symbol, no array, and have no shape"),
    "transposed": (lambda: w.T, AttributeError, "have no T"),
    "misspelt": (lambda: w.accross(GRAPH), AttributeError, "rows have no attribute 'accross'; did you mean 'across'?"),
}


def test_rows_are_true_and_can_be_copied():
    assert w
    rows = pickle.loads(pickle.dumps(copy.deepcopy(2.0 * w.at([1]) - 1.0)))
    assert rows.text() == "2 w_i - 1"
    assert not hasattr(rows, "shape")
    sparse = sp.csr_array(A)
    assert abs((sparse @ w).made(ONE).K - (A @ w).made(ONE).K).max() == 0.0


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    build, error, said = REFUSED[name]
    with pytest.raises(error) as caught:
        build()
    assert said in str(caught.value)


def test_groups_of_undirected_rows_take_what_is_even_in_each():
    for phi in (gr.L1(), gr.L2(), gr.LInf(), gr.SquaredL2(), gr.HuberNorm(0.5), gr.Quadratic(np.diag([1.0, 2.0]))):
        assert lowered(phi(PAIRS)).edges[0].count == 1


def test_paths_and_graphs_of_a_path_differ_at_its_ends():
    along, across = (rows.made(ONE).K.toarray() for rows in (w.along(range(N), 2), w.across(nx.path_graph(N), 2)))
    np.testing.assert_array_equal(-across[1:-1], along)
    assert all(i < j for i, j in pairwise(w.across(nx.path_graph(N), 2).made(ONE).keys))


def test_nodes_are_in_the_order_of_graphs_and_paths_then_of_data_then_of_what_rows_name():
    data = gr.NodeData.from_arrays(None, np.arange(3.0), ["c", "a", "b"])
    for rows, wanted in (
        (w.at("z") - w.at("a"), ("c", "a", "b", "z")),
        (w.along(["b", "y", "c"]), ("b", "y", "c", "a")),
        (w.at("a") - w.along(["y", "b"]), ("a", "y", "b", "c")),
        (w.across(nx.path_graph(["x", "a"])) @ [[2.0]], ("x", "a", "c", "b")),
    ):
        assert gr.Problem(gr.MeanLoss(data) + gr.L1()(rows)).form.labels == wanted


def test_terms_of_rows_are_shown_as_they_are_written():
    assert repr(gr.HuberNorm(delta=2.0)(w.at("a") - w.at("b"))) == "HuberNorm(delta=2.0)(w_a - w_b)"
    assert repr(gr.QuantileLoss(w.at(["a", "b"]), [1.0, 2.0], tau=0.9)) == "QuantileLoss(w_i, y, tau=0.9)"
    assert repr(0.5 * gr.L1()(w)) == "Model: 0.5 * L1()(w_i)"


def test_the_advice_on_equal_nodes_holds_exactly():
    data = gr.NodeData.from_dict({i: ([[1.0]], [y]) for i, y in zip("ac", (4.0, -2.0), strict=True)})
    loss = gr.SquaredLoss(data)
    with pytest.raises(TermError, match=r"by Zero\(\)\(w\.across\(\[\(i, j\)\]\)\) or Consensus\(\[\(i, j\)\]\)"):
        gr.Problem(loss + gr.Zero()(w.at("a") - w.at("c")))
    for tie in (gr.Zero()(w.across([("a", "c")])), gr.Consensus([("a", "c")])):
        solution = gr.Problem(loss + tie).solve()
        assert solution.status == "certified"
        assert solution.clusters().edges["state"].tolist() == ["fused"]
