"""What proposes witnesses: forests that carry what is missing, and small systems that answer for it.

Nothing rests on it, but bounds are as good as it is.
"""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from kernel_cases import FORMS, form_of, numbers, times

import graphreg as gr
from graphreg.certificate import Certifier, Enclosure
from graphreg.certificate.kernel.balance import Witness, balanced
from graphreg.certificate.kernel.system import System
from graphreg.certificate.proposing import systems
from graphreg.certificate.proposing.arcs import Arcs, forest
from graphreg.certificate.proposing.enclosure import ALIKE
from graphreg.certificate.proposing.plan import Planner, Totals
from graphreg.certificate.proposing.slack import Slack, without_dust
from graphreg.certificate.proposing.systems import eliminated, independent, right_inverses
from graphreg.certificate.proposing.systems import solved as answered
from graphreg.certificate.proposing.ties import tied, ties_of
from graphreg.certificate.rationals import Echelon


# ---- forests ---------------------------------------------------------------------------------------------------------
def grown(graph, penalty, rooms=None, **options):
    data = gr.NodeData.from_dict({i: (np.ones((1, 2)), [0.0]) for i in graph})
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(graph, penalty, **options)).form
    arcs = Arcs.of(System(form))
    room = np.ones(len(arcs.tail)) if rooms is None else rooms(arcs)
    return arcs, forest(arcs, room, np.ones(2), np.zeros(len(arcs.tail), dtype=bool))


def subtree_sums(tree, values):
    """By climbing from every vertex."""
    out = np.zeros(len(values))
    for vertex, value in enumerate(values):
        at = vertex
        while True:
            out[at] += value
            if tree.parent[at] in {at, len(values)}:
                break
            at = tree.parent[at]
    return out


@pytest.mark.parametrize("graph", [nx.path_graph(70), nx.star_graph(30), nx.random_labeled_tree(60, seed=1)])
def test_subtree_sums(graph):
    _, tree = grown(graph, gr.L1())
    values = np.random.default_rng(14).integers(0, 1000, 2 * len(graph)).astype(float)
    np.testing.assert_array_equal(tree.gather(values), subtree_sums(tree, values))


@pytest.mark.parametrize("features", [None, ["x1", "x0"]])
def test_trees_span_their_groups_and_parents_lie_across_arcs(features):
    graph = nx.disjoint_union(nx.gnm_random_graph(20, 40, seed=2), nx.path_graph(5))
    arcs, tree = grown(graph, gr.L2(), features=features)
    assert arcs.starts(np.arange(len(arcs.tail)), arcs.tail).all()
    assert not arcs.starts(np.arange(len(arcs.tail)), arcs.head).any()
    roots = tree.parent == np.arange(len(tree.parent))
    assert roots.sum() == 2 * nx.number_connected_components(graph)
    for vertex in np.flatnonzero(~roots):
        arc = tree.arc[vertex]
        assert {arcs.tail[arc], arcs.head[arc]} == {vertex, tree.parent[vertex]}
        assert tree.group[vertex] == tree.group[tree.parent[vertex]]
        assert tree.depth[vertex] == tree.depth[tree.parent[vertex]] + 1
    assert not tree.depth[roots].any()


def test_narrow_arcs_are_gone_through_where_there_is_no_other_way():
    """A ring whose arc (0, 1) has next to no room, and a path with such an arc in the middle."""

    def narrow(arcs):
        return np.where((arcs.tail // 2 == 0) & (arcs.head // 2 == 1), 1e-14, 1.0)

    arcs, tree = grown(nx.cycle_graph(6), gr.L1(), narrow)
    assert not narrow(arcs)[tree.arc[tree.arc >= 0]].min() < 1.0
    arcs, tree = grown(nx.path_graph(6), gr.L1(), narrow)
    assert narrow(arcs)[tree.arc[tree.arc >= 0]].min() == pytest.approx(1e-14)


def test_arcs_without_room_divide_the_groups():
    def closed(arcs):
        return np.where(arcs.tail // 2 == 2, 0.0, 1.0)

    arcs, tree = grown(nx.path_graph(6), gr.L1(), closed)
    assert len(np.unique(tree.group[:-1])) == 4
    assert not tree.movable[arcs.tail // 2 == 2].any()


# ---- small systems ---------------------------------------------------------------------------------------------------
def dummies(rng, M=40):
    """An intercept, two groups and a covariate; the groups add up to the intercept."""
    group = rng.integers(0, 2, M)
    return np.column_stack([np.ones(M), group == 0, group == 1, rng.standard_normal(M)]).astype(float)


def systems_hold(A, found):
    """A X = I on the rows that are kept, nearly; and exactly each other row is a combination of these."""
    left = A[found.kept] @ found.X - np.eye(len(found.kept))
    size = np.abs(A[found.kept]) @ np.abs(found.X)
    assert (np.abs(left) <= 1e-9 * np.maximum(size, 1.0)).all()
    for g, y in found.combinations.items():
        assert y[g] != 0
        assert set(y) <= {g, *found.kept.tolist()}
        rows = [numbers(A[k]) for k in y]
        assert not any(times(list(zip(*rows, strict=True)), numbers(list(y.values()))))


def test_right_inverses_of_many_systems():
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((9, 3, 7)), rng.uniform(0.1, 2.0, (9, 7))
    A[4, 2] = A[4, 0] + A[4, 1]
    X, sure = right_inverses(A, w)
    assert sure.tolist() == [k != 4 for k in range(9)]
    np.testing.assert_allclose(A[sure] @ X[sure], np.broadcast_to(np.eye(3), (8, 3, 3)), atol=1e-12)
    for k in np.flatnonzero(sure):  # the smallest in the norm of 1 / w
        W = np.diag(w[k])
        np.testing.assert_allclose(X[k], W @ A[k].T @ np.linalg.inv(A[k] @ W @ A[k].T), atol=1e-10)


def test_dummies_beside_an_intercept_follow_exactly():
    A = dummies(np.random.default_rng(10)).T
    found = answered(A, np.ones(A.shape[1]), np.zeros(4, dtype=int))
    assert len(found.kept) == 3
    assert len(found.combinations) == 1
    systems_hold(A, found)


@pytest.mark.parametrize("off", [2.0**-52, 1e-12, 1e-6])
def test_almost_dummies_do_not_pass_for_dummies(off):
    A = dummies(np.random.default_rng(11)).T
    A[1, int(np.argmax(A[1]))] += off
    found = answered(A, np.ones(A.shape[1]), np.zeros(4, dtype=int))
    assert not found.combinations
    assert len(found.kept) == 4


def uneven(rng, decades):
    """Small whole numbers of a known rank, rows and columns times powers of 2 within so many decades."""
    rank, p, M = int(rng.integers(1, 5)), int(rng.integers(5, 8)), int(rng.integers(8, 30))
    B = rng.integers(-3, 4, (M, rank)) @ rng.integers(-2, 3, (rank, p))
    scales = [np.exp2(np.rint(rng.uniform(-1, 1, size) * decades / np.log10(2.0))) for size in (M, p)]
    return (scales[0][:, None] * B * scales[1]).T


def exact_rank(A):
    system = Echelon(A.shape[1])
    return sum(bool(system.add([Fraction(x) for x in row])) for row in A.tolist())


@pytest.mark.parametrize("decades", [3, 8, 12])
def test_the_rank_is_found_where_rows_and_columns_are_uneven(decades):
    rng, whole = np.random.default_rng(decades), 0
    for _ in range(20):
        A = uneven(rng, decades)
        found = answered(A, np.ones(A.shape[1]), np.zeros(len(A), dtype=int))
        systems_hold(A, found)
        whole += len(found.kept) == exact_rank(A) and len(found.kept) + len(found.combinations) == len(A)
    assert whole >= 16


def test_elimination_is_exact():
    rng = np.random.default_rng(13)
    A = rng.integers(-8, 8, (3, 10)).astype(float)
    A = np.vstack([A, [0.5, -3.0, 0.25] @ A, np.zeros(10)])
    kept, pivots, combinations = eliminated(A, range(5))
    assert kept == [0, 1, 2]
    assert len(set(pivots)) == 3
    assert set(combinations) == {3, 4}
    for g, y in combinations.items():
        assert y[g]
        assert not any(times(list(zip(*(numbers(A[k]) for k in y), strict=True)), numbers(list(y.values()))))
    assert independent(A, np.ones(10)).tolist() in ([0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3])
    assert not len(independent(np.zeros((2, 0)), np.zeros(0)))


# ---- plans -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "apart"), [(n, a) for n in FORMS for a in (False, True) if not a or "classes" not in n]
)
def test_plans_close_what_they_are_asked_to(name, apart):
    """At 0, or near it, where everything may move; and the kernel takes the sizes that follow from the tree."""
    form = form_of(name)
    enclosure, system = Enclosure(form), System(form)
    assert system.shape == enclosure.system.shape
    rng = np.random.default_rng(15)
    v = 1e-3 * rng.standard_normal(system.size)
    slack = Slack(np.ones(system.size), np.ones(system.size))
    plan = enclosure.planner.near(v, slack, np.zeros(system.size, dtype=bool), apart)
    left = enclosure.system.residual(v, 0.0 * v).size().ravel()
    z = plan.sizes(left)
    box = balanced(enclosure.system, Witness(v, 0.0 * v, plan.answers, z, plan.dropped))
    assert not box.lost.any()


def test_plans_for_all_points_are_kept():
    form = form_of("squares along a path")
    planner = Planner(System(form))
    slack = Slack.of(planner.system, np.zeros(planner.system.size), flows=False)
    plan = planner.everywhere(slack)
    assert planner.everywhere(slack) is plan
    assert plan.kept.all()
    assert planner.everywhere(Slack(slack.room, 2.0 * slack.weight)) is not plan
    assert planner.everywhere(Slack(np.zeros(len(slack.room)), slack.weight)).tree.movable.sum() == 0


def test_rough_weights_are_the_same_where_prices_move_a_little():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({i: (rng.standard_normal((4, 2)), [0, 1, 0, 1]) for i in range(3)})
    system = System(gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2())).form)
    (one,) = system.prices
    deep = np.zeros(system.size)
    one.taken(deep)[:] = (one.scale * np.where(one.block.y > 0.5, -0.4, 0.4))[:, None]
    assert np.isfinite(one.block.conjugates(one.given(one.taken(deep)).ravel())).all()
    near, far, shallow, none = (
        one.taken(Slack.of(system, share * deep, flows=False, rough=True).weight) for share in (1.0, 1.1, 1e-5, 0.0)
    )
    np.testing.assert_array_equal(near, one.scale[:, None])
    np.testing.assert_array_equal(near, far)
    assert ((shallow > 0.0) & (shallow < 1e-6 * near)).all()
    assert not none.any()


def test_room_is_what_domains_leave():
    form = form_of("a consensus")
    system, (block,) = System(form), form.samples
    v = np.zeros(system.size)
    v[2], v[3], v[4] = 0.5 * block.scale[2], 0.25 * block.scale[3], -0.7 * block.scale[4]
    slack = Slack.of(system, v)
    np.testing.assert_allclose(slack.room[[0, 2, 3, 4]], block.scale[[0, 2, 3, 4]] * [0.5, 0.0, 0.25, 0.0])
    assert (slack.weight[[2, 4]] == 0.0).all()
    assert (slack.room[24:] > 1e100).all()  # flows of a consensus
    classes = System(form_of("classes alone"))
    (one,) = classes.prices
    room = Slack.of(classes, np.full(classes.size, 0.2) * np.repeat(one.scale, 2)).room.reshape(one.shape)
    np.testing.assert_allclose(
        room, np.broadcast_to(0.2 * one.scale[:, None], one.shape)
    )  # -0.4 of the own class is farther


def test_many_groups_are_answered_together():
    """One by one, the groups of a chain of a million nodes would take minutes."""
    n = 20_000
    data = gr.NodeData.from_arrays(None, np.random.default_rng(0).normal(size=n), np.arange(n))
    form = gr.Problem(gr.MeanLoss(data) + 1e-5 * gr.TotalVariation(gr.Graph.chain(n), gr.L1())).form
    enclosure = Enclosure(form)
    (edge,) = form.edges
    u = edge.clip(np.random.default_rng(1).standard_normal((n - 1, 1)))
    v = enclosure.system.flat(type(form.nothing())((u,), form.nothing().prices))
    held = np.zeros(len(v), dtype=bool)
    held[n + np.arange(0, n - 1, 2)] = True  # every other flow stays
    plan = enclosure.planner.near(v, Slack(np.ones(len(v)), np.ones(len(v))), held, False)
    assert plan.tree.count > n // 3
    assert plan.answers.width <= 8


# ---- one behind the other --------------------------------------------------------------------------------------------
def test_a_long_row_of_enclosures_keeps_none_of_those_between():
    """Each look at a part makes one like the one before."""
    form = form_of("flows of a root")
    first = Enclosure(form)
    between = Enclosure(form, first)
    gone, last = weakref.ref(between), between
    for _ in range(2 * sys.getrecursionlimit()):
        last = Enclosure(form, last)
    del between
    gc.collect()
    assert gone() is None
    assert last.planner is first.planner


def test_nor_does_a_row_of_certifiers():
    form = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(np.eye(2), [1.0, 2.0], [0, 1]))).form
    first = Certifier(form)
    last = Certifier(form, first)
    gone = weakref.ref(last)
    for _ in range(2 * sys.getrecursionlimit()):
        last = Certifier(form, last)
    gc.collect()
    assert gone() is None
    assert last.enclosure.planner is first.enclosure.planner


# ---- columns that depend on one another, and equations that determine flows ------------------------------------------
def certified(loss, penalty, rows, X, y, where):
    problem = gr.Problem(loss(gr.NodeData.from_arrays(X, y, where)) + 0.2 * penalty(rows))
    return problem.solve(gr.InteriorPoint(), gap=1e-6, progress=False, on_failure="return").status == "certified"


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss, gr.QuantileLoss])
@pytest.mark.parametrize("columns", ["twice", "all categories"])
def test_rows_of_columns_that_depend_on_one_another_are_certified(columns, loss):
    rng, n = np.random.default_rng(0), 30  # more equations than are looked at in rationals
    x, group = rng.normal(size=n), rng.integers(0, 3, n)[:, None]
    X = np.column_stack([x, 1.0 + x**2, x] if columns == "twice" else [np.ones(n), group == range(3)])
    graph = nx.random_regular_graph(3, n, seed=1)
    for rows in (gr.w.along([*range(n)], 2), gr.w.across(graph, 2)):
        assert certified(loss, gr.L1(), rows, X, x + 0.3 * rng.normal(size=n), range(n))


def test_flows_that_nodes_without_data_determine_to_be_0_are_let_go():
    """Some nodes have no data, others a sample for two coordinates: more equations than the flows of three rows."""
    rng, n = np.random.default_rng(0), 30
    where = rng.integers(0, n, 60)
    X, y = rng.normal(size=(60, 2)), np.exp(rng.normal(size=60))
    assert certified(gr.GammaLoss, gr.L1(), rng.normal(size=(3, n)).round(1) @ gr.w.at([*range(n)]), X, y, where)


def test_ties_are_found_and_kept_exactly():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 40)[:, None] == range(3)
    X = np.column_stack([rng.normal(size=40), np.ones(40), group, 2.0 * np.ones(40)])
    data = gr.NodeData.from_arrays(X, rng.normal(size=40), range(40))
    form = gr.Problem(gr.SquaredLoss(data) + gr.L1()(gr.w.along([*range(40)], 2))).form
    ties, system = ties_of(form), System(form)
    assert len(ties) == 2
    assert all((X @ nu == 0.0).all() and nu[j] == 1.0 for j, nu in ties.items())
    v = tied(system, rng.normal(size=system.size), ties, free=False)
    u = system.flows[0].taken(v)
    for nu in ties.values():
        assert not any(times([numbers(nu)], row)[0] for row in map(numbers, u))


def test_dependencies_are_looked_for_among_rows_alone(monkeypatch):
    """Of edges between nodes that would be a factorisation of all samples in every proof, for nothing."""
    monkeypatch.setattr("graphreg.certificate.proposing.enclosure.ties_of", lambda form: pytest.fail("looked for"))
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.normal(size=(60, 2)), rng.integers(0, 3, 60), np.repeat(range(6), 10))
    edges = gr.TotalVariation(nx.cycle_graph(6), gr.L2())
    assert gr.Problem(gr.MultinomialLoss(data) + 0.5 * edges).solve(gr.PrimalDual(), gap=1e-6).status == "certified"


def test_flows_that_are_off_what_classes_want_are_brought_back():
    """By more than rounding: by equal shares, to sums that are 0."""
    rng, graph = np.random.default_rng(0), nx.gnm_random_graph(40, 80, seed=1)
    data = gr.NodeData.from_arrays(rng.normal(size=(600, 2)), rng.integers(0, 3, 600), np.repeat(range(40), 15))
    problem = gr.Problem(gr.MultinomialLoss(data) + 0.2 * gr.L2()(gr.w.across(graph, 2)))
    known = problem.solve(gr.InteriorPoint(), gap=1e-8).certificate
    (u,) = known.dual_point.flows
    for size in (1e-10, 1e-7):
        off = replace(known.dual_point, flows=(u + size * rng.normal(size=u.shape) * np.abs(u).max(),))
        assert Enclosure(problem.form)(off).value >= known.dual - 1e-6 * abs(known.dual)


@pytest.mark.parametrize("penalty", [gr.L1(), gr.LInf(), gr.L2()])
@pytest.mark.parametrize("rows", ["second", "third", "first and second"])
def test_classes_with_differences_over_a_weighted_graph(rows, penalty):
    """Sums over classes of their flows are no zeros at the optimum, but balance."""
    rng, graph = np.random.default_rng(1), nx.gnm_random_graph(40, 70, seed=1)
    nx.set_edge_attributes(graph, {edge: 10.0 ** rng.uniform(-1, 1) for edge in graph.edges}, "weight")
    data = gr.NodeData.from_arrays(rng.normal(size=(400, 2)), rng.integers(0, 3, 400), np.repeat(range(40), 10))
    rough = penalty(gr.w.across(graph, 3 if rows == "third" else 2))
    rough = rough + penalty(gr.w.across(graph)) if rows == "first and second" else rough
    assert gr.Problem(gr.MultinomialLoss(data) + 0.3 * rough).solve(gr.InteriorPoint(), gap=1e-6).status == "certified"


# ---- prices near their ends ------------------------------------------------------------------------------------------
def hinges():
    """A node with two samples that are fitted, and one without data, whose row leaves its flow no room: the enclosure,
    and its prices."""
    data = gr.NodeData.from_arrays([[1.0], [-1.0]], [1, 1], ["b", "b"])
    rows = sp.csr_array([[0.7, 0.3]]) @ gr.w.at(["a", "b"])
    enclosure = Enclosure(gr.Problem(gr.HingeLoss(data, scale="sum") + gr.L1()(rows)).form)
    return enclosure, enclosure.system.prices[0]


def test_prices_near_their_ends_answer_where_there_are_too_few_others():
    enclosure, prices = hinges()
    v = np.zeros(enclosure.system.size)
    prices.taken(v)[:, 0] = [-1e-10, -1e-10 * (1.0 + 1e-6)]
    whole = {p: [found.lower for found, _ in enclosure._jointly(v, power=p, plain=False)] for p in (1.0, ALIKE)}
    assert whole[1.0] == []  # squares of rooms of 1e-10 are lost beside 1
    assert np.isfinite(whole[ALIKE][0]).all()


def test_prices_that_are_0_but_for_rounding_are_0():
    enclosure, prices = hinges()
    v = np.zeros(enclosure.system.size)
    prices.taken(v)[:, 0] = [-1e-20, -1e-3]
    np.testing.assert_array_equal(prices.taken(without_dust(enclosure.system, v))[:, 0], [0.0, -1e-3])
    squares = gr.SquaredLoss(gr.NodeData.from_arrays([[1.0]], [1.0], ["b"]))
    system = System(gr.Problem(squares).form)  # whose prices have no ends
    np.testing.assert_array_equal(without_dust(system, np.full(system.size, 1e-20)), np.full(system.size, 1e-20))


def test_rows_that_are_sums_and_differences_of_others_need_no_elimination(monkeypatch):
    """As those of classes; what is so but for rounding is looked at in integers."""
    B = np.random.default_rng(0).standard_normal((3, 12))
    B[:, ::2] = 0.0
    A = np.vstack([B, C := np.roll(B, 1, axis=1), -(B + C)])
    monkeypatch.setattr(systems, "eliminated", lambda *given: pytest.fail("by elimination"))
    found = answered(A, np.ones(12), np.zeros(9, dtype=int))
    assert len(found.combinations) == 3
    for g, y in found.combinations.items():
        assert y[g] == 1
        for column in A.T.tolist():
            assert not sum(Fraction(column[k]) * x for k, x in y.items())
    A[-1, 3] = np.nextafter(A[-1, 3], 9.0)
    with pytest.raises(pytest.fail.Exception):
        answered(A, np.ones(12), np.zeros(9, dtype=int))


def test_systems_in_which_the_same_rows_follow_from_others_are_solved_together(monkeypatch):
    """Of classes at every node those of one class; at some nodes a column twice, too, which is found first."""
    alone, rng, n = [], np.random.default_rng(0), 16
    of_one = Totals._alone
    monkeypatch.setattr(Totals, "_alone", lambda self, *given: alone.append(1) or of_one(self, *given))
    X, node = rng.standard_normal((12 * n, 2)), np.repeat(range(n), 12)
    X[node < 3, 1] = X[node < 3, 0]
    y = rng.integers(0, 3, 12 * n)
    problem = gr.Problem(
        gr.MultinomialLoss(gr.NodeData.from_arrays(X, y, node)) + 0.01 * gr.TotalVariation(gr.Graph.chain(n), gr.L2())
    )
    form = problem.form
    planner = Planner(System(form))
    exact = problem.solve(gr.InteriorPoint(), gap=1e-9, on_failure="return").certificate
    v = planner.system.flat(exact.dual_point)
    alone.clear()
    plan = planner.near(v, Slack.of(planner.system, v), np.zeros(len(v), dtype=bool), apart=True)
    assert len(alone) <= 6
    zero = np.zeros(len(v))  # which balances, so that all depends on what is dropped
    box = plan.box(planner.system, zero, zero, plan.sizes(np.zeros(planner.system.shape[0])))
    assert len(plan.dropped) >= 2 * n
    assert not box.lost.any(), box.why
