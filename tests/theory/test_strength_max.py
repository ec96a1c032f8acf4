"""strength_max against its definition: flows, directions, better points, certificates, and solves around the value."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned
from own_terms import Elastic

import graphreg as gr
from graphreg.errors import MethodError, TermError, UnattainedError
from graphreg.theory import strength_max

PENALTIES = {"l1": gr.L1, "l2": gr.L2, "linf": gr.LInf}


def graph_of(kind, rng, n=9):
    if kind == "tree":
        graph = nx.random_labeled_tree(n, seed=int(rng.integers(1000)))
    elif kind == "disconnected":
        graph = nx.disjoint_union(nx.cycle_graph(n // 2), nx.path_graph(n - n // 2))
        graph.add_node(n)  # isolated
    else:
        graph = nx.grid_2d_graph(3, n // 3) if kind == "grid" else nx.gnp_random_graph(n, 0.5, seed=3)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = float(rng.uniform(0.3, 3.0))
    return graph


def loss_of(kind, graph, rng, d=3, empty=()):
    m = 7 if kind == "squared" else 40  # enough for classes that overlap
    rows = {}
    for k, label in enumerate(graph.nodes):
        if label in empty:
            continue
        X = rng.normal(size=(m, d))
        score = X @ (np.ones(d) * (1.0 if k % 3 else -0.5)) + rng.normal(size=m)
        rows[label] = (X, score if kind == "squared" else (score > 0).astype(float))
    return (gr.SquaredLoss if kind == "squared" else gr.LogisticLoss)(gr.NodeData.from_dict(rows), scale="sum")


def problem_of(kind, penalty, shape, seed=0, lam=1.0, **more):
    rng = np.random.default_rng(seed)
    graph = graph_of(shape, rng)
    return gr.Problem(loss_of(kind, graph, rng, **more) + lam * gr.TotalVariation(graph, penalty))


def value_by_cvxpy(found):
    """min t with conserved flows of load at most t, over all components at once; with the dual norms by hand."""
    form, network = found.vary.form, found.vary.network
    c = found.consensus.certificate.w
    rest = found.vary.rest
    r = rest.conservation(
        gr.form.DualPoint(
            tuple(e.weight[:, None] * e.penalty.gradient(e.difference(c)) for e in rest.edges), rest.gradient_prices(c)
        )
    )
    t, balance, constraints = cp.Variable(), r, []
    for block, A in zip(network.blocks, network.weights, strict=True):
        u = cp.Variable((len(A), form.width(block)))
        dual = {"L1": "inf", "L2": 2, "LInf": 1}[type(block.penalty).__name__]
        constraints.append(cp.norm(u, dual, axis=1) <= t * A)
        columns = np.arange(form.d) if block.features is None else block.features
        balance = balance + block.K.T @ u @ np.eye(form.d)[columns]
    size = np.abs(r).max()
    cp.Problem(cp.Minimize(t), [*constraints, cp.abs(balance) <= 1e-9 * size]).solve(solver="CLARABEL")
    return float(t.value)


def is_consensus(problem, found, strength):
    """By the library's own exact solution: the largest difference across an edge, over the size of the coefficients."""
    form = found.vary.at(strength)
    from graphreg.compiling.conic import Compiler
    from graphreg.running.driver import Budget
    from graphreg.running.solving import solve

    w = solve(form, gr.Exact(), Budget(1e-10), Compiler(form)).certificate.w
    gaps = [np.abs(b.apply(w)).max() for b in found.vary.network.blocks]
    return max(gaps) / np.abs(w).max()


def check(found, rtol=1e-6):
    """Both sides: bounds that meet, a better point below, a certificate above."""
    assert found.lower <= found.upper == found.value == float(found)
    assert found.lower >= (1.0 - rtol) * found.upper
    better = found.better(0.999)
    assert better.decrease > 0
    assert found.certificate(1.001).holds(1e-9)
    assert found.certificate().holds(1e-9)
    form, flows = found.consensus.form, found.consensus.certificate.dual_point.flows
    loads = found.vary.network.loads(tuple(flows[k] for k in found.vary.places))
    assert max(load.max() for load in loads) <= found.upper * (1 + 1e-12)
    left = form.conservation(found.consensus.certificate.dual_point)
    assert np.abs(left).max() <= 1e-9 * max(np.abs(u).max() for u in flows)


@pytest.mark.parametrize("seed", thinned(range(30), every=4))
def test_thirty_problems_from_both_sides(seed):
    """Each kind, shape and penalty once; twice with ``make test ARGS=--whole``."""
    penalty = (gr.L1, gr.L2)[seed % 2]()
    kind = ("squared", "logistic")[seed // 2 % 2]
    shape = ("tree", "disconnected", "grid", "random")[seed // 4 % 4]
    found = strength_max(problem_of(kind, penalty, shape, seed))
    check(found)


@pytest.mark.parametrize(("name", "shape"), thinned(PENALTIES, ["tree", "disconnected", "random"], every=3))
def test_the_value_is_that_of_the_definition(name, shape):
    found = strength_max(problem_of("squared", PENALTIES[name](), shape, 5))
    np.testing.assert_allclose(found.value, value_by_cvxpy(found), rtol=1e-6)
    check(found)


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_solves_around_the_value(name):
    problem = problem_of("logistic", PENALTIES[name](), "grid", 2)
    found = strength_max(problem)
    assert is_consensus(problem, found, 1.02 * found.value) < 1e-4 * is_consensus(problem, found, 0.9 * found.value)


def test_the_decrease_is_that_of_the_objective():
    problem = problem_of("logistic", gr.L2(), "grid", 3)
    found = strength_max(problem)
    better = found.better(0.5)  # far enough for a difference of two large numbers
    form, c = found.vary.at(better.strength), found.consensus.certificate.w
    np.testing.assert_allclose(form.primal(c) - form.primal(better.coef), better.decrease, rtol=1e-8)
    near = found.better(0.999)
    form = found.vary.at(near.strength)
    np.testing.assert_allclose(form.primal(c) - form.primal(near.coef), near.decrease, rtol=1e-3, atol=1e-12)


def test_a_tree_by_hand():
    """Three means on a path, scale 1: the pooled mean is 0, the flows are the sums of what lies to the left."""
    rows = {k: (None, [[y]]) for k, y in enumerate([1.0, 2.0, -3.0])}
    data = gr.NodeData.from_dict(rows)
    found = strength_max(gr.Problem(gr.MeanLoss(data) + 5.0 * gr.TotalVariation(nx.path_graph(3), gr.L1())))
    np.testing.assert_allclose([found.lower, found.upper], 3.0, rtol=1e-12)
    assert found.consensus.flows[0, 1] == pytest.approx(1.0)
    assert found.consensus.flows[1, 2] == pytest.approx(3.0)
    assert found.table()["how"].tolist() == ["closed form on a tree"]


def test_trees_agree_with_the_conic_programme():
    problem = problem_of("squared", gr.L2(), "tree", 8)
    found = strength_max(problem)
    assert found.table()["how"].tolist() == ["closed form on a tree"]
    np.testing.assert_allclose(found.value, value_by_cvxpy(found), rtol=1e-6)


def test_units_of_parameters_and_numbers():
    rng = np.random.default_rng(1)
    graph = graph_of("grid", rng)
    loss, tv = loss_of("squared", graph, rng), gr.TotalVariation(graph, gr.L2())
    plain = float(strength_max(gr.Problem(loss + tv)))
    lam = gr.Parameter(0.7, "lam")
    assert float(strength_max(gr.Problem(loss + 0.3 * tv))) == pytest.approx(plain)
    assert float(strength_max(gr.Problem(loss + 4 * lam * tv))) == pytest.approx(plain / 4)
    assert float(gr.strength_max(gr.Problem(loss + 4 * lam * tv), lam)) == pytest.approx(plain / 4)
    assert lam.value == 0.7
    assert float(strength_max(gr.Problem(3.0 * loss + tv))) == pytest.approx(3 * plain)


def test_feature_subsets_other_edges_ridges_and_nodes_without_data():
    rng = np.random.default_rng(2)
    graph = graph_of("grid", rng)
    loss = loss_of("logistic", graph, rng, empty=[(1, 1)])
    ridge = 0.1 * gr.NodePenalty(gr.SquaredL2()) + 0.2 * gr.TotalVariation(graph, gr.HuberNorm(0.3))
    found = strength_max(gr.Problem(loss + 0.4 * gr.TotalVariation(graph, gr.L2(), features=["x0", "x2"]) + ridge))
    check(found)
    c = found.consensus.coef
    assert np.ptp(c[:, [0, 2]], axis=0).max() == 0.0
    assert np.ptp(c[:, 1]) > 1e-3
    np.testing.assert_allclose(found.value, value_by_cvxpy(found), rtol=1e-6)


def test_several_terms_of_one_parameter():
    rng = np.random.default_rng(4)
    graph, chain = graph_of("grid", rng), nx.Graph()
    nx.add_path(chain, graph.nodes)
    lam = gr.Parameter(1.0)
    both = lam * gr.TotalVariation(graph, gr.L2()) + 2 * lam * gr.TotalVariation(chain, gr.L1(), features=["x1"])
    found = strength_max(gr.Problem(loss_of("squared", graph, rng) + both))
    check(found)
    np.testing.assert_allclose(found.value, value_by_cvxpy(found), rtol=1e-6)


def test_a_hierarchy_with_a_norm():
    rng = np.random.default_rng(5)
    graph = graph_of("tree", rng)
    clusters = {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7, 8]}
    term = 0.2 * gr.Hierarchy(clusters, (1.0, 2.0), gr.L2())
    found = strength_max(gr.Problem(loss_of("squared", graph, rng) + term))
    check(found)
    np.testing.assert_allclose(found.value, value_by_cvxpy(found), rtol=1e-6)
    level = gr.Parameter(1.0, "upper")
    mixed = gr.Problem(loss_of("squared", graph, rng) + gr.Hierarchy(clusters, (1.0, level), gr.L2()))
    with pytest.raises(MethodError, match="level 1"):
        strength_max(mixed)


class Mixed(gr.Penalty):
    """phi(z) = ||z||_1 + ||z||_2, which says nowhere that it is a norm."""

    def value(self, z):
        return np.abs(z).sum(axis=1) + np.linalg.norm(z, axis=1)

    def prox(self, v, step):
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))[:, None]
        p = np.sign(v) * np.maximum(np.abs(v) - t, 0.0)
        return p * np.maximum(1.0 - t / np.maximum(np.linalg.norm(p, axis=1, keepdims=True), 1e-300), 0.0)

    def conjugate(self, u):  # u = a + b, ||a||_inf <= 1, ||b||_2 <= 1
        left = np.maximum(np.abs(u) - 1.0, 0.0)
        return np.where(np.linalg.norm(left, axis=1) <= 1.0, 0.0, np.inf)

    def cvxpy(self, Z):
        return cp.sum(cp.abs(Z), axis=1) + cp.norm(Z, 2, axis=1)


@pytest.mark.parametrize("shape", ["tree", "random"])
def test_norms_of_the_users_own(shape):
    values = [
        strength_max(problem_of("squared", penalty, shape, 6))
        for penalty in (Mixed(), gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 1) + cp.norm(z, 2)))
    ]
    for found in values:
        check(found, rtol=1e-5)
    np.testing.assert_allclose(values[0].value, values[1].value, rtol=1e-6)


@pytest.mark.parametrize("shape", thinned(["random", "tree", "disconnected"], every=3))
def test_a_norm_that_cvxpy_does_not_know(shape):
    """Trees need no conic programme; elsewhere both bounds hold, and it is said that they are loose."""
    unwritten = gr.Penalty.from_prox(lambda z: np.linalg.norm(z, axis=1), gr.L2().prox, name="length")
    true, found = (strength_max(problem_of("squared", phi, shape, 6)) for phi in (gr.L2(), unwritten))
    loose = shape != "tree"
    check(found, 0.3 if loose else 1e-6)
    assert found.lower <= true.upper * (1.0 + 1e-6)
    assert true.lower <= found.upper <= true.upper * 1.02
    assert ("levelled flows" in set(found.table()["how"])) == loose
    assert ("length has no form in CVXPY" in str(found)) == loose
    assert not loose or any("length has no form" in each for each in found.assumed)


def test_a_large_graph_with_few_busy_edges():
    rng = np.random.default_rng(7)
    graph = nx.grid_2d_graph(15, 15)
    for penalty in (gr.L1(), gr.L2()):
        found = strength_max(gr.Problem(loss_of("squared", graph, rng, d=2) + gr.TotalVariation(graph, penalty)))
        check(found)
        np.testing.assert_allclose(found.value, value_by_cvxpy(found), rtol=1e-6)


@pytest.mark.parametrize(("decades", "apart"), [(2, 1e-6), (8, 0.05)])
def test_weights_of_very_different_sizes(decades, apart):
    """The wider they are spread, the further apart the conic solver leaves the bounds; they hold all the same."""
    rng = np.random.default_rng(8)
    graph = nx.gnp_random_graph(12, 0.4, seed=1)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = float(10.0 ** rng.uniform(-decades / 2, decades / 2))
    for penalty in (gr.L1(), gr.L2()):
        found = strength_max(gr.Problem(loss_of("squared", graph, rng) + gr.TotalVariation(graph, penalty)))
        check(found, apart)


def test_what_is_printed():
    found = strength_max(problem_of("squared", gr.L2(), "disconnected"))
    text = str(found)
    assert "assumed: the strength of TotalVariation alone varies" in text
    assert "<= it <=" in text
    assert repr(found).startswith("<StrengthMax")
    table = found.table()
    assert table["nodes"].tolist() == [4, 5, 1]
    assert table["how"].tolist() == ["conic", "closed form on a tree", "no edges"]
    assert table["upper"].max() == found.value
    assert "assumed:" in str(table)
    assert "better than the consensus by" in str(found.better())


def test_nodes_that_agree_already():
    data = gr.NodeData.from_dict({k: (np.eye(2), [1.0, 2.0]) for k in range(4)})
    found = strength_max(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(4), gr.L2())))
    assert found.value == pytest.approx(0.0, abs=1e-15)
    if found.lower == 0:
        with pytest.raises(MethodError, match="consensus already"):
            found.better()


def refused():
    rng = np.random.default_rng(0)
    graph = graph_of("grid", rng)
    loss, tv = loss_of("squared", graph, rng), gr.TotalVariation(graph, gr.L2())
    lam, mu = gr.Parameter(1.0, "lam"), gr.Parameter(1.0, "mu")
    kinks = gr.QuantileLoss(loss.data, tau=0.5)
    bare = nx.create_empty_copy(graph)
    return {
        "squared": (loss + gr.TotalVariation(graph, gr.SquaredL2()), None, TermError, "SquaredL2 has no strength"),
        "no edges": (loss + gr.TotalVariation(bare, gr.L2()), None, TermError, "no edges between nodes"),
        "constraint": (loss + gr.Consensus(graph), None, TermError, "Consensus is a constraint"),
        "two terms": (loss + tv + gr.TotalVariation(graph, gr.L1()), None, TermError, "2 norms between nodes.*L2.*L1"),
        "two parameters": (loss + lam * tv + mu * tv, None, TermError, "'lam', 'mu'"),
        "another's": (loss + tv, mu, TermError, "'mu' scales no term"),
        "no parameter": (loss + tv, 0.3, TermError, "must be a gr.Parameter"),
        "a ridge's": (loss + tv + mu * gr.NodePenalty(gr.SquaredL2()), mu, TermError, "scales NodePenalty"),
        "the loss's": (mu * loss + mu * tv, mu, TermError, "scales SquaredLoss"),
        "kinks": (kinks + tv, None, MethodError, "QuantileLoss has no gradient"),
        "sparsity": (loss + tv + gr.NodePenalty(gr.L1()), None, MethodError, r"NodePenalty\(L1\) has kinks"),
        "a ball": (loss + tv + gr.NodePenalty(gr.Ball(1.0)), None, MethodError, "is a constraint"),
        "another norm": (loss + lam * tv + gr.TotalVariation(graph, gr.L1()), lam, MethodError, r"\(L1\) has kinks"),
    }


@pytest.mark.parametrize("case", refused())
def test_what_has_no_strength_max_is_refused(case):
    model, parameter, error, message = refused()[case]
    with pytest.raises(error, match=message):
        strength_max(gr.Problem(model), parameter)


def test_no_best_consensus():
    X = np.array([[1.0], [2.0], [-1.0]])
    data = gr.NodeData.from_dict({k: (X, (X[:, 0] > 0).astype(float)) for k in range(3)})
    model = gr.LogisticLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L2())
    with pytest.raises(UnattainedError, match=r"no best consensus.*component of the node 0"):
        strength_max(gr.Problem(model))
    strength_max(gr.Problem(model + 1e-3 * gr.NodePenalty(gr.SquaredL2())))


@pytest.mark.parametrize("factor", [0.0, 1.0, -1.0, np.nan, "x"])
def test_factors(factor):
    found = strength_max(problem_of("squared", gr.L2(), "tree"))
    with pytest.raises((MethodError, TermError)):
        found.better(factor)
    if factor != 1.0:
        with pytest.raises((MethodError, TermError)):
            found.certificate(factor)
    with pytest.raises(MethodError, match="better"):
        found.certificate(0.9)


@pytest.mark.parametrize("shape", ["tree", "random"])
@pytest.mark.parametrize("penalty", [Elastic(2.0), gr.Penalty.from_cvxpy(lambda z: cp.norm1(z) + cp.sum_squares(z))])
def test_an_elastic_net_has_that_of_its_norm(penalty, shape):
    """At 0 only its kink counts."""
    norm = strength_max(problem_of("squared", gr.L1(), shape, 6))
    found = strength_max(problem_of("squared", penalty, shape, 6))
    assert found.lower <= found.upper
    assert found.upper == pytest.approx(norm.upper, rel=1e-5)
    assert found.lower == pytest.approx(norm.lower, rel=1e-5)
    assert found.certificate(1.001).holds(1e-6)
    assert found.better(0.99).decrease > 0


def test_where_newton_ends_far_off_the_exact_answer_is_taken(monkeypatch):
    rng, graph = np.random.default_rng(0), nx.path_graph(4)
    lam = gr.Parameter(1.0)
    problem = gr.Problem(loss_of("squared", graph, rng) + lam * gr.TotalVariation(graph, gr.L2()))
    known = strength_max(problem)
    monkeypatch.setattr("graphreg.theory.pooled.newton", lambda smooth, ties, w: w + 0.1)
    found = strength_max(problem)
    assert found.consensus.certificate.holds(1e-8)
    assert found.value == pytest.approx(known.value, rel=1e-3)


def test_bounds_that_are_apart_are_no_smallest_value():
    rng = np.random.default_rng(44)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(m, 3)), rng.normal(size=m)) for i, m in enumerate((7, 8, 6, 9))})
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], weights=[2.0, 1.0, 0.3, 1.0])

    def prox(v, step):
        return np.sign(v) * np.maximum(np.abs(v) - np.reshape(step, (-1, 1)), 0.0)

    said = []
    for penalty in (gr.L1(), gr.Penalty.from_prox(lambda z: np.abs(z).sum(axis=1), prox)):
        found = gr.strength_max(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(graph, penalty)))
        said.append((found.upper > 1.001 * found.lower, "an upper bound of the smallest value" in str(found)))
    assert said == [(False, False), (True, True)]
