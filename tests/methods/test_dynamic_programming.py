"""Dynamic programming: optima of forests, in whatever order they are written, exact messages, ties, refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from unittest import mock

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from factories import thinned
from forest_cases import LOSSES, ONE_SIDED, drawn
from sklearn.isotonic import isotonic_regression

import graphreg as gr
from graphreg.base import compiled
from graphreg.certificate import common
from graphreg.errors import MethodError
from graphreg.form.form import DualPoint
from graphreg.methods.dynamic_programming.dynamic_programming import solved

METHOD = gr.DynamicProgramming()
SEEDS = range(80)


def exactly(recursion, *groups):
    """Calls a recursion in Python, the messages on fractions of which it keeps nothing but the last floats."""
    exact = recursion.function.__name__ in ("along_chains", "along_trees")

    def number(v):
        return Fraction(v) if exact and isinstance(v, float) and np.isfinite(v) else v

    lists = [tuple([number(v) for v in x.tolist()] for x in g) for g in groups]
    found = recursion.plain(*lists)
    for group, changed in zip(groups, lists, strict=True):
        for array, numbers in zip(group, changed, strict=True):
            array[:] = [float(v) for v in numbers] if exact and array.dtype == float else numbers
    return found


def exact_value(form, w):
    """P(w) of quantile losses, in rational arithmetic."""
    total, block = Fraction(0), form.samples[0]
    x, predicted = (np.vectorize(Fraction, otypes=[object])(each) for each in (block.X, w))
    for r, (i, s, y, o) in enumerate(zip(block.node, block.scale, block.y, block.offset, strict=True)):
        away = x[r] @ predicted[i] + Fraction(float(o)) - Fraction(float(y))
        total += Fraction(float(s)) * abs(away) / 2
    for edge in form.edges:
        for tail, head, c in zip(edge.tail, edge.head, edge.weight, strict=True):
            total += Fraction(float(c)) * abs(predicted[tail] - predicted[head]).sum()
    return total


def in_python(form, *, exact):
    """A solution without numba."""
    if exact:
        with mock.patch.object(compiled.Recursion, "__call__", exactly):
            return solved(form)
    with mock.patch.object(compiled, "compiles", return_value=False):
        return solved(form)


# ---- optima ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", thinned(SEEDS, every=2))
def test_the_optimum_to_the_last_digits(seed):
    found = drawn(seed).problem().solve(METHOD, gap=1e-12)
    assert found.status == "certified"
    assert found.certificate.relative_gap <= 1e-12
    assert found.rounds == 0


@pytest.mark.parametrize("seed", thinned(range(16), every=4))
def test_the_optimum_of_a_conic_solver(seed):
    problem = drawn(seed, n=12).problem()
    found, exact = problem.solve(METHOD, gap=1e-12), problem.solve(gr.Exact(), gap=1e-7, on_failure="return")
    size = max(abs(found.objective), common(problem.form).floor)
    assert exact.certificate.dual - 1e-12 * size <= found.objective <= exact.certificate.primal + 1e-12 * size


@pytest.mark.parametrize(("loss", "decades", "offset"), [*product(LOSSES, (3.0, 10.0), (0.0, 1e9))])
def test_wild_weights_and_large_targets_cost_no_digits(loss, decades, offset, whole):
    gaps = []
    for seed in range(10 if whole else 4):
        wild = drawn(seed, loss, decades=decades, offset=offset, d=1)
        one = np.unique(wild.node, return_index=True)[1]  # a sample a node: what several leave is the data's own
        single = {name: getattr(wild, name)[one] for name in ("node", "y", "scale")}
        X = None if wild.X is None else np.ones((len(one), 1))
        problem = type(wild)(**{**vars(wild), **single, "X": X, "extra": ""}).problem()
        found = problem.solve(METHOD, gap=1e-11, on_failure="return")
        gaps.append(found.certificate.relative_gap)
    assert max(gaps) <= 1e-11
    assert np.median(gaps) <= 6e-13


@pytest.mark.parametrize(
    ("loss", "offset", "seed"),
    [
        *[(gr.SquaredLoss, 0.0, seed) for seed in (5, 11, 12, 25)],
        *[(gr.MeanLoss, 1e9, seed) for seed in (9, 10, 19)],
        *[(gr.HuberLoss, 0.0, 11), (gr.HuberLoss, 1e9, 19), (gr.QuantileLoss, 1e9, 10), (gr.QuantileLoss, 0.0, 2)],
    ],
)
def test_what_rounding_leaves_at_heavy_samples_goes_through_no_light_edge(loss, offset, seed):
    """Weights over twenty decades, nodes without data, several samples at a node: none of it costs any digits."""
    problem = drawn(seed, loss, decades=10.0, offset=offset).problem()
    found = problem.solve(METHOD, gap=1e-12)
    assert found.status == "certified"
    if loss is gr.QuantileLoss:  # whose optimum no other point is below
        lowest = exact_value(problem.form, solved(problem.form)[0])
        assert Fraction(found.certificate.dual) <= lowest <= Fraction(found.certificate.primal) * (1 + Fraction(1e-9))


@pytest.mark.parametrize("seed", thinned(range(24), every=4))
def test_neither_the_order_of_the_nodes_nor_the_directions_of_edges_matter(seed):
    rng, case = np.random.default_rng(seed), drawn(seed, LOSSES[seed % 2])
    order, turned = rng.permutation(case.n), rng.random(len(case.tail)) < 0.5
    here, there = case.problem(), case.problem(order, turned)
    w, again = solved(here.form)[0], solved(there.form)[0]
    tied = ~here.form.free
    size = np.abs(w).max()
    np.testing.assert_allclose(again[order][tied], w[tied], rtol=1e-9, atol=1e-11 * size)
    assert here.form.primal(w) == pytest.approx(there.form.primal(again), rel=1e-13)


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_flows_and_prices_are_conserved_and_optimal(seed):
    form = drawn(seed).problem().form
    w, flows, prices = solved(form)
    point = DualPoint(flows, prices)
    through = max(float(np.abs(u).max(initial=0.0)) for u in (*flows, *prices))
    assert np.abs(form.conservation(point)).max() <= 1e-13 * through
    assert form.primal(w) - form.dual(point) <= 1e-12 * abs(form.primal(w))
    norms = [(edge, u) for edge, u in zip(form.edges, flows, strict=True) if edge.penalty.pieces(form.width(edge))]
    assert all((np.abs(u) < edge.weight[:, None]).all() for edge, u in norms)  # so that no clip unbalances them


def test_plateaus_and_ties_are_exact():
    data = gr.NodeData.from_arrays(None, np.array([[0.0], [0.0], [4.0], [4.0]]), np.arange(4))
    for c, w in ((1.0, [0.5, 0.5, 3.5, 3.5]), (4.0, [2.0] * 4), (5.0, [2.0] * 4)):  # at 4 the two have just met
        problem = gr.Problem(gr.MeanLoss(data) + c * gr.TotalVariation(nx.path_graph(4), gr.L1()))
        assert solved(problem.form)[0].ravel().tolist() == w


def test_a_median_on_a_tree():
    """Prices anywhere between the ends of their domain: all nodes agree on the weighted median."""
    y = np.array([3.0, -1.0, 2.0, 7.0, 5.0])
    graph = nx.star_graph(4)
    data = gr.NodeData.from_arrays(np.ones((5, 1)), y, np.arange(5), weights=[1.0, 1.0, 3.0, 1.0, 1.0])
    problem = gr.Problem(gr.QuantileLoss(data, scale="sum") + 100.0 * gr.TotalVariation(graph, gr.L1()))
    found = problem.solve(METHOD, gap=1e-12)
    assert found.coef.ravel().tolist() == [2.0] * 5


def test_nodes_that_nothing_ties_get_0():
    graph = gr.Graph(tuple(range(6)), np.array([0, 3, 4]), np.array([1, 4, 5]), np.ones(3))
    data = gr.NodeData.from_arrays(None, np.array([[1.0], [3.0]]), np.array([0, 2]))
    found = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(graph, gr.L1())).solve(METHOD, gap=1e-12)
    assert found.coef.ravel().tolist() == [1.0, 1.0, 3.0, 0.0, 0.0, 0.0]


def test_coordinates_may_have_trees_of_their_own():
    rng = np.random.default_rng(0)
    node, y = np.arange(8), rng.standard_normal((8, 3))
    path, star = nx.path_graph(8), nx.star_graph(7)
    data = gr.NodeData.from_frame(pd.DataFrame(y, columns=list("abc")).assign(node=node), "node", ["a", "b", "c"])
    ties = 0.3 * gr.TotalVariation(path, gr.L1(), features=["a"]) + 0.2 * gr.TotalVariation(
        star, gr.L1(), features=["c"]
    )
    problem = gr.Problem(gr.MeanLoss(data) + ties)
    found = problem.solve(METHOD, gap=1e-12)
    np.testing.assert_array_equal(found.coef[:, 1], y[:, 1])
    for column, graph, strength in ((0, path, 0.3), (2, star, 0.2)):
        one = gr.NodeData.from_arrays(None, y[:, [column]], node)
        alone = gr.Problem(gr.MeanLoss(one) + strength * gr.TotalVariation(graph, gr.L1())).solve(METHOD, gap=1e-12)
        np.testing.assert_allclose(found.coef[:, column], alone.coef[:, 0], rtol=1e-13)


def test_hierarchies_of_l1_are_trees_too():
    y = np.random.default_rng(1).standard_normal((9, 1))
    data = gr.NodeData.from_arrays(None, y, np.arange(9))
    tree = gr.Hierarchy({k: "abc"[k // 3] for k in range(9)}, weights=(0.4, 0.7), penalty=gr.L1())
    assert gr.Problem(gr.MeanLoss(data) + tree).solve(METHOD, gap=1e-12).status == "certified"


@pytest.mark.parametrize("loss", [*LOSSES, gr.HingeLoss, gr.SquaredHingeLoss])
def test_bends_are_those_of_the_gradient(loss):
    rng = np.random.default_rng(0)
    x, y = 3.0 * rng.standard_normal(40), rng.choice([-1.0, 1.0], 40)
    data = gr.NodeData.from_arrays(np.ones((40, 1)), (y > 0).astype(int) if loss is gr.HingeLoss else y, np.arange(40))
    if loss is gr.MeanLoss:
        data = gr.NodeData.from_arrays(None, y[:, None], np.arange(40))
    one = loss(data)
    bends, r = one.bends(y), x - one.anchor(y)
    np.testing.assert_allclose(bends.at(r), one.gradient(x, y), rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(-bends.mirrored().at(-r), one.gradient(x, y), rtol=1e-14, atol=1e-15)
    assert gr.LogisticLoss.bends(one, y) is None


# ---- one-sided costs along arrows ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seed", "penalty"), thinned(range(40), ONE_SIDED, every=4))
def test_the_optimum_of_one_sided_costs_to_the_last_digits(seed, penalty):
    found = drawn(seed).with_arrows(penalty).solve(METHOD, gap=1e-12)
    assert found.status == "certified"
    assert found.certificate.relative_gap <= 1e-12


@pytest.mark.parametrize(("seed", "penalty"), thinned(range(11, -1, -1), ONE_SIDED, every=3))
def test_the_messages_of_one_sided_costs_are_those_of_exact_arithmetic(seed, penalty):
    form = drawn(seed, decades=(2.0, 10.0)[seed % 2]).with_arrows(penalty).form
    w, exact = solved(form)[0], in_python(form, exact=True)[0]
    np.testing.assert_allclose(w[~form.free], exact[~form.free], rtol=1e-14, atol=1e-14 * np.abs(exact).max())


@pytest.mark.parametrize("seed", range(12))
def test_isotonic_regression_is_that_of_pooled_violators(seed):
    rng, n = np.random.default_rng(seed), 200
    y, weight = rng.normal(size=n) + np.arange(n) / 50.0, 10.0 ** rng.uniform(-2.0, 2.0, n)
    y = np.round(y) if seed % 3 == 0 else y
    data = gr.NodeData.from_arrays(None, y[:, None], np.arange(n), weights=weight)
    ordered = gr.w.along(range(n)) if seed % 2 else gr.w.across(nx.path_graph(n, create_using=nx.DiGraph))
    found = gr.Problem(gr.MeanLoss(data, scale="sum") + gr.NonNegative()(ordered)).solve(gap=1e-12)
    assert found.certificate.relative_gap <= 1e-12
    assert (np.diff(found.coef[:, 0]) >= 0.0).all()
    np.testing.assert_allclose(found.coef[:, 0], isotonic_regression(y, sample_weight=weight), rtol=0.0, atol=1e-9)
    assert "DynamicProgramming" in found.method


@pytest.mark.parametrize("penalty", ONE_SIDED)
def test_arrows_turned_round_are_those_of_the_negative(penalty):
    rng, n = np.random.default_rng(1), 20
    y = rng.normal(size=(n, 2))
    tree = nx.random_labeled_rooted_tree(n, seed=3) if hasattr(nx, "random_labeled_rooted_tree") else nx.path_graph(n)
    arrows = nx.DiGraph(list(tree.edges))

    def fitted(y, arrows):
        data = gr.NodeData.from_arrays(None, y, np.arange(n))
        return gr.Problem(gr.MeanLoss(data) + ONE_SIDED[penalty](gr.w.across(arrows))).solve(METHOD, gap=1e-12).coef

    np.testing.assert_allclose(fitted(y, arrows), -fitted(-y, arrows.reverse()), rtol=1e-12, atol=1e-12)


def test_arrows_of_some_coordinates_beside_edges_of_others():
    y = np.random.default_rng(0).standard_normal((8, 2))
    data = gr.NodeData.from_frame(pd.DataFrame(y, columns=list("ab")).assign(node=np.arange(8)), "node", ["a", "b"])
    rising = gr.NonNegative()(gr.w.at(features=["a"]).along(range(8)))
    steps = 0.3 * gr.TotalVariation(nx.star_graph(7), gr.L1(), features=["b"])
    found = gr.Problem(gr.MeanLoss(data) + rising + steps).solve(METHOD, gap=1e-12)
    np.testing.assert_allclose(found.coef[:, 0], isotonic_regression(y[:, 0]), rtol=1e-12, atol=1e-12)


def test_nodes_that_are_held_together_are_one():
    data = gr.NodeData.from_arrays(None, np.array([[0.0], [1.0], [5.0]]), np.arange(3))
    path = nx.path_graph(3, create_using=nx.DiGraph)
    found = gr.Problem(gr.MeanLoss(data) + gr.Zero()(gr.w.across(path))).solve(METHOD, gap=1e-12)
    assert found.coef.ravel().tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (lambda path: gr.w.across(path) - 1.0, "rows that are no edges"),
        (lambda path: 2.0 * gr.w.across(path), "rows that are no edges"),
        (lambda path: gr.w.along(range(6), 2), "rows that are no edges"),
        (lambda path: gr.w.across(nx.DiGraph([(0, 1), (1, 2), (0, 2)])), "circles"),
    ],
)
def test_rows_that_are_no_arrows_of_a_forest_are_refused(rows, said):
    data = gr.NodeData.from_arrays(None, np.arange(6.0)[:, None], np.arange(6))
    problem = gr.Problem(gr.MeanLoss(data) + gr.NonNegative()(rows(nx.path_graph(6, create_using=nx.DiGraph))))
    with pytest.raises(MethodError, match=said):
        problem.solve(METHOD)


# ---- the recursions --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", thinned(SEEDS, every=4))
def test_the_messages_are_those_of_exact_arithmetic(seed):
    for decades in (2.0, 10.0):
        form = drawn(seed, decades=decades).problem().form
        w = solved(form)[0]
        exact = in_python(form, exact=True)[0]
        np.testing.assert_allclose(w[~form.free], exact[~form.free], rtol=1e-14, atol=1e-14 * np.abs(exact).max())


@pytest.mark.parametrize("shape", ["chain", "star"])
@pytest.mark.parametrize("loss", [gr.MeanLoss, gr.QuantileLoss])
def test_small_whole_numbers_against_all_that_there_are(loss, shape):
    """Some optimum of absolute losses is among the targets; that of squares is no worse than any quarter."""
    graph, rng = nx.path_graph(4) if shape == "chain" else nx.star_graph(3), np.random.default_rng(4)
    quantile = loss is gr.QuantileLoss
    step = 1.0 if quantile else 0.25
    w = np.stack(np.meshgrid(*[np.arange(0.0, 3.0 + step, step)] * 4, indexing="ij"))
    for _ in range(10):
        y, c = rng.integers(0, 4, 4).astype(float), float(rng.integers(1, 3)) / 4
        data = gr.NodeData.from_arrays(*((np.ones((4, 1)), y) if quantile else (None, y[:, None])), np.arange(4))
        form = gr.Problem(loss(data) + c * gr.TotalVariation(graph, gr.L1())).form
        r = w - y[:, None, None, None, None]
        values = (np.abs(r) if quantile else r * r).sum(axis=0) / 2 + c * sum(abs(w[i] - w[j]) for i, j in graph.edges)
        found = form.primal(solved(form)[0])
        assert found <= values.min() + 1e-15
        if quantile:
            assert found == pytest.approx(values.min(), abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_compiled_or_not_the_numbers_are_the_same(seed):
    pytest.importorskip("numba")
    form = drawn(seed).problem().form
    with mock.patch.object(compiled, "LARGE", 0):
        machine = solved(form)
    plain = in_python(form, exact=False)
    np.testing.assert_array_equal(machine[0], plain[0])
    for one, other in zip((*machine[1], *machine[2]), (*plain[1], *plain[2]), strict=True):
        np.testing.assert_array_equal(one, other)


# ---- in use ----------------------------------------------------------------------------------------------------------
def simple(graph=None, loss=None, penalty=None, d=1):
    data = gr.NodeData.from_arrays(None, np.random.default_rng(0).standard_normal((6, d)), np.arange(6))
    edges = gr.TotalVariation(nx.path_graph(6) if graph is None else graph, penalty or gr.L1())
    return gr.Problem((gr.MeanLoss(data) if loss is None else loss) + 0.5 * edges)


def squares(X):
    return gr.SquaredLoss(gr.NodeData.from_arrays(X, np.ones(6), np.arange(6)))


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (simple(nx.cycle_graph(6)), r"circles \(1 edges more than a forest\)"),
        (simple(penalty=gr.L2(), d=2), "the method takes L1, NonNegative and other costs by unit"),
        (simple(penalty=gr.SquaredL2()), "the method takes L1, NonNegative and other costs by unit"),
        (simple(loss=squares(np.ones((6, 2)))), "several features"),
        (
            simple(loss=gr.LogisticLoss(gr.NodeData.from_arrays(np.ones((6, 1)), [0, 1] * 3, np.arange(6)))),
            "LogisticLoss is no piecewise quadratic",
        ),
    ],
)
def test_what_it_lacks_is_said(problem, said):
    assert not problem.methods().loc["DynamicProgramming", "applies"]
    with pytest.raises(MethodError, match=said):
        problem.solve(METHOD)


def test_what_it_takes():
    for problem in (simple(), simple(penalty=gr.L2()), simple(loss=squares(np.ones((6, 1))))):
        assert problem.methods().loc["DynamicProgramming", "applies"]


@pytest.mark.parametrize(
    ("budget", "said"), [({"rounds": 3}, "has no rounds"), ({"callback": print}, "has no rounds after which")]
)
def test_budgets_that_it_cannot_keep(budget, said):
    with pytest.raises(MethodError, match=said):
        simple().solve(METHOD, **budget)


def test_a_path_of_strengths():
    strength = gr.Parameter(0.5, name="c")
    data = gr.NodeData.from_arrays(None, np.arange(6.0)[:, None], np.arange(6))
    problem = gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(nx.path_graph(6), gr.L1()))
    path = gr.path(problem, strengths=[1.0, 0.3, 0.1], method=METHOD, gap=1e-10)
    assert (path.table()["status"] == "certified").all()
    first = problem.solve(METHOD).objective
    strength.value = 0.1
    assert problem.solve(METHOD, gap=1e-12).objective < first
