"""What is said of edges holds at the optimum, which is known exactly: rational data, all patterns of signs tried."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from types import SimpleNamespace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from own_terms import Elastic, OwnL1

import graphreg as gr
from graphreg.certificate import cluster_count
from graphreg.certificate.edges.clusters import _together, clusters, joined
from graphreg.certificate.edges.fusion import _forest


# ---- exact optima ----------------------------------------------------------------------------------------------------
def solved(matrix, right):
    """x with matrix x = right, in fractions, for a positive definite matrix."""
    A = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(A):
        for row in A[i + 1 :]:
            factor = row[i] / pivot[i]
            row[:] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    x = [Fraction(0)] * len(A)
    for i in reversed(range(len(A))):
        x[i] = (A[i][-1] - sum(A[i][j] * x[j] for j in range(i + 1, len(A)))) / A[i][i]
    return x


def optimum(targets, edges, capacity, quadratic=0):
    """The minimiser of sum 1/2 (w_i - y_i)^2 + sum_e c_e (|z_e| + quadratic z_e^2 / 2): of all patterns of signs of z
    the stationary points on which these hold, the best; the pattern of the optimum is among them."""
    y, c, q = [Fraction(t) for t in targets], [Fraction(x) for x in capacity], Fraction(quadratic)

    def value(w):
        z = [w[i] - w[j] for i, j in edges]
        terms = (each * (abs(x) + q * x * x / 2) for each, x in zip(c, z, strict=True))
        return sum((a - b) ** 2 for a, b in zip(w, y, strict=True)) / 2 + sum(terms)

    best = None
    for signs in product((-1, 0, 1), repeat=len(edges)):
        graph = nx.Graph([edge for edge, s in zip(edges, signs, strict=True) if s == 0])
        graph.add_nodes_from(range(len(y)))
        member = {i: k for k, group in enumerate(nx.connected_components(graph)) for i in group}
        size = len(set(member.values()))
        A, b = [[Fraction(0)] * size for _ in range(size)], [Fraction(0)] * size
        for i, t in enumerate(y):
            A[member[i]][member[i]] += 1
            b[member[i]] += t
        for (i, j), s, each in zip(edges, signs, c, strict=True):
            for own, other, sign in ((i, j, s), (j, i, -s)):
                b[member[own]] -= sign * each
                A[member[own]][member[own]] += q * each
                A[member[own]][member[other]] -= q * each
        theta = solved(A, b)
        w = [theta[member[i]] for i in range(len(y))]
        if best is None or value(w) < value(best):
            best = w
    return best


def judged(found, edges, exact):
    """Every claim against the exact optimum; how many edges are near or fused, fused, and split."""
    states = found.edges["state"].tolist()
    for (i, j), row in zip(edges, found.edges.itertuples(), strict=True):
        z = exact[i] - exact[j]
        assert np.isinf(row.bound) or abs(z) <= Fraction(row.bound)
        assert row.certain == (row.state in ("fused", "split"))
        if row.state == "fused":
            assert z == 0
        if row.state == "split":
            assert z != 0
    graph = nx.Graph([edge for edge in edges if exact[edge[0]] == exact[edge[1]]])
    graph.add_nodes_from(range(len(exact)))
    low, high = found.count_range
    assert low <= nx.number_connected_components(graph) <= high
    assert found.certain == all(state in ("fused", "split") for state in states)
    if not found.certain:
        assert "every edge is decided" not in str(found)
    return np.array([states.count("near") + states.count("fused"), states.count("fused"), states.count("split")])


def drawn(seed):
    """Targets, edges and weights that are short binary fractions, so that the floats are the rationals."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    graph = nx.path_graph(n) if seed % 2 else nx.cycle_graph(n) if n > 2 else nx.path_graph(n)
    edges = [tuple(sorted(edge)) for edge in graph.edges]
    y = rng.integers(-16, 17, n) / 8.0
    weights = rng.integers(1, 9, len(edges)) / 8.0
    return y, edges, weights


@cache
def optimum_of(seed, quadratic):
    """The optimum of what is drawn; the penalties that are |z| on numbers share it."""
    return optimum(*drawn(seed), quadratic)


def problem_of(y, edges, weights, penalty):
    graph = nx.Graph()
    graph.add_nodes_from(range(len(y)))
    graph.add_weighted_edges_from((i, j, c) for (i, j), c in zip(edges, weights, strict=True))
    data = gr.NodeData.from_arrays(None, y, np.arange(len(y)))
    return gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(graph, penalty))


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), OwnL1(), Elastic()], ids=lambda p: type(p).__name__)
def test_claims_hold_at_the_exact_optimum(penalty, whole):
    """On 4 problems; on 40 with ``make test ARGS=--whole``."""
    total, edges_in_all = np.zeros((2, 3)), 0
    for seed in range(0, 40, 1 if whole else 10):
        y, edges, weights = drawn(seed)
        exact = optimum_of(seed, int(isinstance(penalty, Elastic)))
        problem = problem_of(y, edges, weights, penalty)
        for budget in ({"rounds": 3, "gap": 0}, {"gap": 1e-2}, {"gap": 1e-8}):
            solution = problem.solve(gr.PrimalDual(), **budget)
            counts = [judged(solution.clusters(prove), edges, exact) for prove in (False, True)]
        total += counts
        edges_in_all += len(edges)
    (near, _, split), (_, fused, split_too) = total
    assert near + split > 0.9 * edges_in_all
    assert fused + split_too > 0.8 * edges_in_all


@pytest.mark.parametrize("apart", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), OwnL1()], ids=lambda p: type(p).__name__)
def test_a_point_as_far_apart_as_its_gap_allows_proves_no_split(penalty, apart):
    """Where the flow is at its capacity, and the optimum fused, P(w) - P* = apart^2 / 4, so that the optimum may be
    sqrt(2 gap (1 + 1)) = apart nearer: no less than that decides."""
    problem = problem_of(np.array([0.0, 2.0]), [(0, 1)], np.array([1.0]), penalty)
    w = np.array([[1.0 - apart / 2.0], [1.0 + apart / 2.0]])
    certificate = problem.certify(w, flows=[np.array([[-1.0]])])
    assert certificate.gap == pytest.approx(apart**2 / 4.0, rel=1e-3)
    assert clusters(certificate).edges["state"].tolist() == ["undecided"]


@pytest.mark.parametrize("apart", [2e-5, 1e-7, 1e-9, 0.0, -1e-9, -1e-3])
def test_an_edge_that_is_hardly_split_is_not_called_fused(apart):
    """Two targets 2 c + apart away from each other: the optimum is ``apart`` wide, or fused."""
    y, edges, weights = np.array([0.0, 2.0 + apart]), [(0, 1)], np.array([1.0])
    exact = optimum(y, edges, weights)
    for gap in (1e-3, 1e-6, 1e-10):
        solution = problem_of(y, edges, weights, gr.L1()).solve(gap=gap)
        for prove in (False, True):
            judged(solution.clusters(prove), edges, exact)
    tight = problem_of(y, edges, weights, gr.L1()).solve(gap=1e-12, on_failure="return").clusters(prove=True)
    if apart in (2e-5, -1e-3):
        assert tight.edges["state"].tolist() == ["split" if apart > 0 else "fused"]


# ---- the words -------------------------------------------------------------------------------------------------------
def shifted(offset):
    """Three states whose targets have slopes +.46, 0 and -.46 around an offset; hardly any penalty."""
    x = np.linspace(-1.0, 1.0, 12)
    data = {k: (np.stack([np.ones(12), x], axis=1), offset + slope * x) for k, slope in enumerate((0.46, 0.0, -0.46))}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data))
    return gr.Problem(loss + 1e-3 * gr.TotalVariation(nx.path_graph(3), gr.L2()))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_opposite_slopes_are_never_fused_by_a_proof(offset):
    solution = shifted(offset).solve(on_failure="return")
    for prove in (False, True):
        found = solution.clusters(prove)
        assert not set(found.edges["state"]) & {"near", "fused"}
        assert found.count == 3
    if offset == 0.0:
        assert found.edges["state"].tolist() == ["split", "split"]


def test_shifts_and_units_do_not_change_what_is_near():
    """The scale of a coordinate is how far nodes differ in it, not how large its numbers are."""
    rng = np.random.default_rng(4)
    X, slope = rng.standard_normal((60, 2)), np.repeat([[1.0, 2.0], [1.0, -2.0]], 30, axis=0)
    y = (X * slope).sum(axis=1) + 0.1 * rng.standard_normal(60)
    states = []
    for shift, unit in ((0.0, 1.0), (100.0, 1.0), (0.0, 1e3), (0.0, 1e-3)):
        A = np.column_stack([np.ones(60), X[:, 0], X[:, 1] * unit])
        data = gr.NodeData.from_arrays(A, y + shift, np.arange(60) // 15, features=["one", "a", "b"])
        model = gr.SquaredLoss(data) + sum(
            [
                0.2 * factor * gr.TotalVariation(nx.path_graph(4), gr.L1(), features=[name])
                for name, factor in (("one", 1.0), ("a", 1.0), ("b", unit))
            ]
        )
        states.append(gr.Problem(model).solve(gap=1e-9).clusters().edges["state"].tolist())
    assert states[1:] == states[:-1]
    assert {"near", "split"} <= set(states[0])


def own_and_built_in():
    euclidean = gr.Penalty.from_cvxpy(lambda Z: cp.norm(Z, 2, axis=1), rows=True)
    return [(OwnL1(), gr.L1()), (euclidean, gr.L2())]


@pytest.mark.parametrize(("own", "ours"), own_and_built_in(), ids=["own l1", "from CVXPY"])
def test_a_penalty_of_the_users_fuses_as_ours_does(own, ours):
    rng = np.random.default_rng(1)
    truth = np.repeat([[2.0, -1.0], [-2.0, 1.0]], 3, axis=0)
    data = {i: ((X := rng.normal(size=(20, 2))), X @ w + 0.1 * rng.normal(size=20)) for i, w in enumerate(truth)}
    loss = gr.SquaredLoss(gr.NodeData.from_dict(data))
    found = [
        gr.Problem(loss + 0.2 * gr.TotalVariation(nx.path_graph(6), penalty)).solve().clusters()
        for penalty in (own, ours)
    ]
    assert (
        found[0].edges["state"].tolist() == found[1].edges["state"].tolist() == ["near"] * 2 + ["split"] + ["near"] * 2
    )
    np.testing.assert_allclose(found[0].edges["slack"], found[1].edges["slack"], atol=1e-4)
    assert found[0].labels == found[1].labels


def test_proofs_that_rest_on_own_terms_say_so():
    for penalty, said in ((OwnL1(), "; value and conjugate of OwnL1 are taken at their word"), (gr.L1(), "")):
        solution = problem_of(np.array([0.0, 0.1, 5.0]), [(0, 1), (1, 2)], np.ones(2), penalty).solve()
        for prove in (False, True):
            found = solution.clusters(prove)
            assert found.note in solution.certificate.note
            assert bool(found.note) == bool(said)
            assert said in str(found)


def test_losses_that_are_not_strongly_convex_are_split_by_a_tied_problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2))
    slope = np.repeat([[1.5, -1.0], [-1.5, 1.0]], 60, axis=0)
    y = rng.random(120) < 1 / (1 + np.exp(-(X * slope).sum(axis=1)))
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, np.arange(120) // 30))
    solution = gr.Problem(loss + 0.05 * gr.TotalVariation(nx.path_graph(4), gr.L2())).solve(gap=1e-9)
    assert solution.clusters().edges["state"].tolist()[1] == "undecided"
    assert solution.clusters().count_range == (1, 4)
    found = solution.clusters(prove=True)
    assert found.edges["state"].tolist()[1] == "split"
    assert "every edge is decided by a proof" in str(found) or not found.certain


def test_the_sentence_says_what_is_proved():
    problem = problem_of(np.array([0.0, 0.1, 5.0]), [(0, 1), (1, 2)], np.ones(2), gr.L2())
    near = problem.solve(gap=1e-6).clusters()
    assert near.edges["state"].tolist() == ["near", "split"]
    assert not near.certain
    assert near.count == 2
    assert near.count_range == (2, 3)
    assert "1 near, 1 split, 0 undecided (near: proved to be at most" in str(near)
    assert "proved: between 2 and 3 clusters" in str(near)
    proved = problem.solve(gap=1e-6).clusters(prove=True)
    assert proved.count_range == (2, 2)
    assert (
        str(proved)
        == "2 clusters of sizes 2, 1; edges: 1 fused, 1 split, 0 undecided (every edge is decided by a proof)"
    )


@pytest.mark.parametrize("seed", range(6))
def test_clusters_are_components_of_what_is_tied_on_all_coordinates(seed):
    """By hand, of states drawn at random: a pair that one term splits, or that no term ties on some coordinate, is
    apart."""
    rng, graph = np.random.default_rng(seed), nx.gnm_random_graph(12, 18, seed=seed)
    data = gr.NodeData.from_arrays(np.ones((12, 2)), np.zeros(12), np.arange(12), features=["a", "b"])
    which = [["a"], ["b"], None] if seed % 2 else [["a"], ["b"]]
    tied = sum([gr.TotalVariation(graph, gr.L1(), features=features) for features in which], start=gr.SquaredLoss(data))
    form = gr.Problem(tied).form
    share = {"fused": 0.4, "near": 0.4, "split": 0.1, "undecided": 0.1}
    ends = [(edge, rng.choice(list(share), 18, p=list(share.values()))) for edge in form.edges]
    ties, split = {}, set()
    for edge, states in ends:
        for *pair, state in zip(edge.tail, edge.head, states, strict=True):
            if state in ("near", "fused"):
                ties.setdefault(tuple(pair), set()).update((0, 1) if edge.features is None else edge.features)
            if state == "split":
                split.add(tuple(pair))
    by_hand = nx.Graph([pair for pair, columns in ties.items() if len(columns) == 2 and pair not in split])
    by_hand.add_nodes_from(range(12))
    claims = [SimpleNamespace(edge=edge, state=state, difference=np.ones(len(state))) for edge, state in ends]
    number = joined(form, claims, _together)
    groups = {frozenset(np.flatnonzero(number == k).tolist()) for k in set(number.tolist())}
    assert groups == {frozenset(map(int, group)) for group in nx.connected_components(by_hand)}


def test_a_coefficient_shared_along_other_edges_counts_at_all_that_they_connect():
    """Intercepts tied along a path, slopes equal along a star whose edges are others, at all nodes but the last."""
    rng = np.random.default_rng(0)
    node, X = np.arange(70) // 10, np.column_stack([np.ones(70), rng.standard_normal(70)])
    y = X[:, 1] + np.where(node < 3, 0.0, 5.0) + 0.1 * rng.standard_normal(70)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node, features=["level", "slope"]))
    levels = gr.TotalVariation(nx.path_graph(7), gr.L1(), features=["level"])
    equal = gr.Consensus(nx.star_graph([5, 0, 2, 4, 1, 3]), features=["slope"])
    clusters = gr.Problem(loss + 0.5 * levels + equal).solve(gap=1e-10).clusters(prove=True)
    assert sorted(map(sorted, clusters.members())) == [[0, 1, 2], [3, 4, 5], [6]]
    assert clusters.count_range == (3, 3)


def test_the_count_alone_is_that_of_the_clusters():
    y = np.repeat([0.0, 3.0, 4.0], 8) + 0.1 * np.random.default_rng(0).standard_normal(24)
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, np.arange(24) // 4))
    for strength, count in ((1e-3, 6), (0.3, 3), (30.0, 1)):
        solution = gr.Problem(loss + strength * gr.TotalVariation(nx.path_graph(6), gr.L1())).solve(gap=1e-9)
        assert cluster_count(solution.certificate) == solution.clusters().count == count


def test_an_edge_with_two_terms_is_counted_once():
    """A consensus on the slopes and an L1 on the intercepts of the same four edges."""
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(5), 6)
    X = np.column_stack([np.ones(30), rng.standard_normal(30)])
    y = X @ [0.0, 1.0] + np.where(node < 3, -4.0, 4.0) + 0.1 * rng.standard_normal(30)
    data = gr.NodeData.from_arrays(X, y, node, features=["level", "slope"])
    graph = nx.path_graph(5)
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph, gr.L1(), features=["level"])
    found = gr.Problem(model + gr.Consensus(graph, features=["slope"])).solve(gap=1e-9).clusters()
    assert len(found.edges) == 8
    assert "; pairs of nodes, over all terms: 0 fused, 3 near, 1 split, 0 undecided (" in str(found)
    assert found.count == 2
    alone = gr.Problem(model).solve(gap=1e-9).clusters()
    assert sum(alone.counts.values()) == 4
    assert "; edges: " in str(alone)


def test_what_is_proved_of_one_cluster_is_not_in_the_plural():
    """An edge between nodes that others make equal is left open."""
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, [0.0, 1.0, 2.0], [0, 1, 2]))
    model = loss + gr.Consensus(nx.path_graph(3)) + gr.TotalVariation(gr.Graph.from_edges([(0, 2)]), gr.SquaredL2())
    found = gr.Problem(model).solve().clusters()
    assert not found.certain
    assert str(found).endswith("proved: 1 cluster)")


def test_undecided_edges_are_said_to_count_as_apart():
    """At a gap that proves little."""
    y = np.repeat([0.0, 3.0, 4.0], 8) + 0.1 * np.random.default_rng(0).standard_normal(24)
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, np.arange(24) // 4))
    problem = gr.Problem(loss + 0.3 * gr.TotalVariation(nx.path_graph(6), gr.L1()))
    rough = problem.solve(gr.PrimalDual(), rounds=3, gap=0).clusters()
    assert "undecided: apart unless they are the same in this answer" in str(rough)
    assert "undecided: apart" not in str(problem.solve(gap=1e-9).clusters())


def test_spanning_trees_of_many_nodes_are_those_of_their_clusters():
    """Pairs of nodes are more than 32 bits number."""
    n = 70_000
    tail = np.delete(np.arange(n - 1, dtype=np.int32), 40_000)
    member = np.append((np.arange(n) > 40_000).astype(int), 2)
    tree = _forest(tail, tail + np.int32(1), np.ones(n - 2), member)
    assert (tree.arc >= 0).sum() == n - 2
    assert sorted(tree.arc[tree.arc >= 0].tolist()) == list(range(n - 2))
    sizes = tree.gather(np.ones(n))[tree.arc < 0]
    assert sorted(sizes.tolist()) == [n - 40_001, 40_001]


@pytest.mark.parametrize("prove", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_said_beside_rows_of_another_kind_is_true(seed, prove):
    """Of the edges of a total variation beside arrows along which w must not fall, at a much closer answer."""
    rng = np.random.default_rng(seed)
    n = 6
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(np.ones((n, 1)), 2.0 * rng.standard_normal(n), range(n)))
    loss += 0.1 * gr.NodePenalty(gr.SquaredL2())
    arrows = nx.DiGraph([(0, 1), (1, 2), (4, 5)])
    rise = gr.NonNegative()(gr.w.across(arrows))
    problem = gr.Problem(loss + 0.2 * gr.TotalVariation(nx.path_graph(n), gr.L1()) + rise)
    edges = problem.solve(gap=1e-8).clusters(prove).edges
    w = problem.solve(gap=1e-12, on_failure="return").coef[:, 0]
    apart = np.abs(w[edges["tail"].astype(int)] - w[edges["head"].astype(int)])
    state = edges["state"].to_numpy()
    assert set(state) <= ({"fused", "split"} if prove else {"near", "split", "undecided"})
    assert (apart[state == "fused"] <= 1e-5).all()
    assert (apart[state == "split"] >= 1e-5).all()
    assert (apart <= edges["bound"] + 1e-5).all()


def test_a_graph_is_drawn_beside_rows_of_another_kind(pyplot):
    data = gr.NodeData.from_arrays(np.ones((3, 1)), [4.0, 1.0, 0.0], list("abc"))
    edges = gr.TotalVariation(nx.path_graph(["a", "b", "c"]), gr.L1())
    rise = gr.NonNegative()(gr.w.across(nx.DiGraph([("a", "b")])))
    solution = gr.Problem(gr.SquaredLoss(data) + 0.1 * edges + rise).solve()
    assert "3 nodes in 2 clusters" in gr.plots.plot_graph(solution).get_title()


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf()], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_what_rows_say_of_edges_clusters_say_too(penalty, seed):
    """An edge that is split in one coordinate left those fused in another without their spanning tree."""
    rng, node = np.random.default_rng(seed), np.repeat(range(12), 4)
    X, slope = rng.normal(size=(48, 2)), np.where(node < 6, 1.0, -1.0)
    data = gr.NodeData.from_arrays(X, X[:, 0] * slope + 0.3 * rng.normal(size=48), node)
    solution = gr.Problem(gr.SquaredLoss(data) + 0.6 * gr.TotalVariation(gr.Graph.chain(12), penalty)).solve(gap=1e-9)
    rows = solution.held().table
    fused = {row for row, states in rows.groupby("row")["state"] if (states == "held").all()}
    edges = solution.clusters(prove=True).edges
    said = {
        (a, b) for a, b, state in zip(edges["tail"], edges["head"], edges["state"], strict=True) if state == "fused"
    }
    assert fused == said
    assert len(fused) >= 5
    assert "split" in edges["state"].tolist()
