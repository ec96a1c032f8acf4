"""The fast way to squares on forests: taut strings, orders of trees, flows; and where it is given up."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from forest_cases import ONE_SIDED

import graphreg as gr
from graphreg.base import compiled
from graphreg.methods.dynamic_programming import _squares
from graphreg.methods.dynamic_programming._chains import along_chains
from graphreg.methods.dynamic_programming._forest import CoordinateForest
from graphreg.methods.dynamic_programming._squares import squares, taut_string
from graphreg.methods.dynamic_programming.dynamic_programming import solved

METHOD = gr.DynamicProgramming()


def line(y, s, c, times=(1.0, 1.0)):
    """w and u of `taut_string`."""
    w, u = np.full(len(y), np.nan), np.full(len(y) - 1, np.nan)
    fall, rise = np.broadcast_to(np.asarray(c, float), (2, len(y) - 1))
    given = np.asarray(y, float), np.asarray(s, float), fall, rise, np.array([times[0], times[1], times[1]])
    assert taut_string(given, (w, u))
    return w, u


def chained(y, s, costs):
    """w of `along_chains`."""
    n, w = len(y), np.zeros(len(y))
    least, most = (np.append(0.0, each) for each in (-costs[0], costs[1]))
    nodes = (s, -s * y, least, most, np.arange(-1, n - 1, dtype=np.int32))
    along_chains(nodes, (w, *np.zeros((2, n))), tuple(np.zeros((5, 2 * n))))
    return w


def exact(y, s, c):
    """The minimiser in rational arithmetic, by Johnson's recursion on lists of knots; c are capacities, or what it
    costs to fall and what to rise."""
    fall, rise = np.broadcast_to(np.asarray(c, float), (2, len(y) - 1)).tolist()
    y, s = ([Fraction(float(x)) for x in each] for each in (y, s))
    n, ends = len(y), []
    lines = [(None, Fraction(0), Fraction(0))]  # from each place on: slope, height
    for i in range(n):
        lines = [(x, a + s[i], b - s[i] * y[i]) for x, a, b in lines]
        least, most = (-rise[i], fall[i]) if i < n - 1 else (0.0, 0.0)
        low, high = (_crossing(lines, Fraction(v)) if np.isfinite(v) else v for v in (least, most))
        ends.append((low, high))
        inside = [(x, a, b) for x, a, b in lines if x is not None and low < x < high]
        first = next((a, b) for x, a, b in reversed(lines) if x is None or x <= low)
        begin = [(None, *first)] if low == -np.inf else [(None, Fraction(0), Fraction(least)), (low, *first)]
        lines = [*begin, *inside, *([] if high == np.inf else [(high, Fraction(0), Fraction(most))])]
    w = [ends[-1][0]]
    for low, high in reversed(ends[:-1]):
        w.append(min(max(w[-1], low), high))
    return [float(x) for x in reversed(w)]


def _crossing(lines, level):
    """The first point from which on a rising, piecewise linear function is no less than a value; -inf or inf where
    that is everywhere or nowhere."""
    for k, (x, a, b) in enumerate(lines):
        end = lines[k + 1][0] if k + 1 < len(lines) else None
        if x is not None and a * x + b >= level:
            return x
        if x is None and a == 0 and b >= level:
            return -np.inf
        place = (level - b) / a if a > 0 else np.inf
        if a > 0 and (end is None or place <= end):
            return place
    return np.inf


# ---- lines -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", thinned(range(80), every=4))
def test_the_string_is_that_of_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n, decades = int(rng.integers(1, 25)), rng.choice([0.0, 1.0, 4.0])
    y = rng.integers(0, 4, n) * 1.0 if seed % 3 == 0 else rng.standard_normal(n)
    s, c = (10.0 ** rng.uniform(-decades, decades, m) for m in (n, n - 1))
    if seed % 5 == 0:
        c[rng.random(n - 1) < 0.3] = 0.0  # several chains
    w, _ = line(y, s, c)
    np.testing.assert_allclose(w, exact(y, s, c), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("seed", thinned(range(60), every=2))
def test_strings_and_chains_of_uneven_costs_are_those_of_exact_arithmetic(seed):
    """What falls, what rises, what may do neither, and edges that cost nothing, side by side."""
    rng = np.random.default_rng(seed)
    n, decades = int(rng.integers(2, 25)), [0.0, 1.0, 4.0, 10.0][seed % 4]
    y = rng.integers(0, 4, n) * 1.0 if seed % 3 == 0 else rng.standard_normal(n)
    s, costs = (10.0 ** rng.uniform(-decades, decades, shape) for shape in (n, (2, n - 1)))
    costs = np.where(rng.random((2, n - 1)) < 0.2, 0.0, np.where(rng.random((2, n - 1)) < 0.3, np.inf, costs))
    found = exact(y, s, costs)
    if decades < 10.0:  # in plain floats
        w, u = line(y, s, costs)
        np.testing.assert_allclose(w, found, rtol=1e-12, atol=1e-12)
        assert ((u <= costs[1]) & (u >= -costs[0])).all()
    np.testing.assert_allclose(chained(y, s, costs), found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", thinned(range(200), every=5))
def test_chains_of_nodes_without_data_and_heavy_ones(seed):
    """Where messages jump over both ends of an edge, or are flat: no point is better, in rational arithmetic."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 16))
    y = rng.integers(0, 4, n) * 1.0 if seed % 3 == 0 else rng.standard_normal(n)
    s, costs = (10.0 ** rng.uniform(-1.0, 1.0, shape) for shape in (n, (2, n - 1)))
    s *= rng.choice([0.0, 1.0, 1e18], n)
    s[rng.integers(n)] = 1.0
    costs = np.where(rng.random((2, n - 1)) < 0.2, np.inf, costs)

    def value(w):
        w = [Fraction(float(x)) for x in w]
        up, down = ([max(side * (a - b), 0) for a, b in pairwise(w)] for side in (1, -1))
        ties = sum(Fraction(c) * x for c, x in zip([*costs[1], *costs[0]], [*up, *down], strict=True) if x)  # finite
        return ties + sum(Fraction(a) / 2 * (x - Fraction(t)) ** 2 for a, x, t in zip(s, w, y, strict=True))

    assert value(chained(y, s, costs)) <= value(exact(y, s, costs)) * (1 + Fraction(1e-12)) + Fraction(1e-20)


def test_a_heavy_node_leaves_a_message_of_one_knot():
    s, costs = np.array([1.0, 1e20, 1.0]), np.array([[3.0, 3.0], [0.5, 0.5]])
    for y in ([5.0, 1.0, 0.0], [0.0, 1.0, 5.0], [-5.0, 1.0, -5.0]):
        assert chained(np.array(y), s, costs).tolist() == exact(np.array(y), s, costs)


@pytest.mark.parametrize("seed", range(12))
def test_flows_are_at_their_capacities_where_values_differ_and_balance_the_rest(seed):
    rng = np.random.default_rng(seed)
    n = 40
    y, s, c = rng.standard_normal(n) + 1e6 * (seed % 2), rng.uniform(0.5, 2.0, n), rng.uniform(0.1, 1.0, n - 1)
    w, u = line(y, s, c)
    falls = np.sign(w[:-1] - w[1:])
    assert (u[falls != 0.0] == (falls * c)[falls != 0.0]).all()
    assert (np.abs(u) <= c).all()
    left = np.diff(u, prepend=0.0, append=0.0) + s * (w - y)
    assert np.abs(left).max() <= 1e-13 * max(1.0, np.abs(y).max())


def test_ties_that_rounding_moves_stay_within_capacities():
    rng = np.random.default_rng(0)
    for _ in range(100):
        y, c = rng.integers(0, 5, 12) * 0.1, rng.integers(1, 4, 11) * 0.1
        assert (np.abs(line(y, np.full(12, 0.7), c)[1]) <= c).all()


def test_factors_are_those_of_scales_and_capacities():
    rng = np.random.default_rng(0)
    y, s, c = rng.standard_normal(30), rng.uniform(0.5, 2.0, 30), rng.uniform(0.1, 1.0, 29)
    for one, other in zip(line(y, s, c, (2.0, 0.25)), line(y, 2.0 * s, 0.25 * c), strict=True):
        np.testing.assert_array_equal(one, other)


def test_steps_ramps_and_ties():
    assert line([0, 0, 4, 4], np.ones(4), np.ones(3))[0].tolist() == [0.5, 0.5, 3.5, 3.5]
    for c in (4.0, 5.0):  # at 4 the two have just met
        assert line([0, 0, 4, 4], np.ones(4), np.full(3, c))[0].tolist() == [2.0] * 4
    assert line([7.0], [3.0], [])[0].tolist() == [7.0]
    ramp = line(np.arange(9.0), np.ones(9), np.full(8, 1.0))[0]
    assert ramp.tolist() == [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.0]
    assert line([1.0, 5.0, 5.0], np.ones(3), [0.0, 1.0])[0].tolist() == [1.0, 5.0, 5.0]
    assert np.signbit(line([-0.0, -0.0], np.ones(2), [1.0])[0]).sum() in (0, 2)


def test_compiled_or_not_the_string_is_the_same():
    pytest.importorskip("numba")
    rng = np.random.default_rng(1)
    given = rng.standard_normal(200), rng.uniform(0.5, 2.0, 200), rng.uniform(0.1, 9.0, 199)
    plain = line(*given)
    with mock.patch.object(compiled, "LARGE", 0):
        machine = line(*given)
    for one, other in zip(plain, machine, strict=True):
        np.testing.assert_array_equal(one, other)


# ---- in use ----------------------------------------------------------------------------------------------------------
def simple(graph, y, strength=0.4, weights=None):
    data = gr.NodeData.from_arrays(None, y, np.arange(len(y)), weights=weights)
    return gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L1()))


def forests(rng):
    order = dict(enumerate(rng.permutation(30).tolist()))
    yield nx.path_graph(30)
    yield nx.relabel_nodes(nx.path_graph(30), order)
    yield nx.relabel_nodes(nx.random_labeled_tree(30, seed=3), order)
    yield nx.star_graph(29)
    several = nx.relabel_nodes(nx.disjoint_union(nx.path_graph(12), nx.path_graph(13)), order)
    several.add_nodes_from(range(30))
    yield several


@pytest.mark.parametrize("d", [1, 3])
def test_it_finds_what_the_recursions_find_and_is_certified(d):
    rng = np.random.default_rng(0)
    for graph in forests(rng):
        problem = simple(graph, rng.standard_normal((30, d)) + 5.0, weights=rng.uniform(0.1, 3.0, 30))
        w, flows = squares(problem.form)
        there, others, _ = solved(problem.form)
        np.testing.assert_allclose(w, there, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(flows[0], others[0], rtol=0.0, atol=1e-13)
        found = problem.solve(METHOD, gap=1e-12)
        assert found.status == "certified"
        np.testing.assert_array_equal(found.coef, w)


@pytest.mark.parametrize("penalty", ONE_SIDED)
@pytest.mark.parametrize("shape", [0, 2])
def test_one_sided_costs_of_lines_and_trees(shape, penalty):
    """Both ways to an answer, and both ways round: a string is given up where it looks at too much in vain."""
    rng = np.random.default_rng(shape)
    edges = list(list(forests(rng))[shape].edges)
    for arrows in (edges, [(j, i) for i, j in edges]):
        data = gr.NodeData.from_arrays(None, rng.standard_normal((30, 2)) + 5.0, np.arange(30))
        form = gr.Problem(gr.MeanLoss(data) + ONE_SIDED[penalty](gr.w.across(nx.DiGraph(arrows)))).form
        (w, flows), (there, others, _) = squares(form), solved(form)
        np.testing.assert_allclose(w, there, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(flows[0], others[0], rtol=0.0, atol=1e-12)
        assert np.isfinite(form.primal(w))


def test_coordinates_with_graphs_of_their_own():
    rng = np.random.default_rng(0)
    frame = {"node": np.arange(8), "a": rng.standard_normal(8), "b": rng.standard_normal(8)}
    import pandas as pd

    data = gr.NodeData.from_frame(pd.DataFrame(frame), "node", ["a", "b"])
    ties = [gr.TotalVariation(graph, gr.L1(), features=[name]) for graph, name in ((nx.path_graph(8), "b"),)]
    problem = gr.Problem(gr.MeanLoss(data) + 0.3 * ties[0])
    w, _ = squares(problem.form)
    np.testing.assert_array_equal(w[:, 0], frame["a"])
    np.testing.assert_allclose(w[:, 1], exact(frame["b"], np.ones(8), np.full(7, 0.3)), atol=1e-14)
    assert problem.solve(gap=1e-12).method == "Auto(DynamicProgramming)"


@pytest.mark.parametrize("graph", [nx.path_graph(50), nx.relabel_nodes(nx.path_graph(50), {0: 49, 49: 0})])
def test_where_it_takes_too_long_the_other_recursion_follows(graph):
    problem = simple(graph, np.random.default_rng(0).standard_normal((50, 1)), strength=3.0)
    w, flows = squares(problem.form)
    with mock.patch.object(_squares, "WASTED", 0), mock.patch.object(_squares, "taut_string", impatient()):
        again, others = squares(problem.form)
        assert problem.solve(METHOD, gap=1e-12).status == "certified"
    np.testing.assert_allclose(again, w, atol=1e-14)
    np.testing.assert_allclose(others[0], flows[0], atol=1e-13)


def test_smooth_signals_take_too_long():
    y = np.arange(400.0)
    w, u = np.empty(400), np.empty(399)
    assert not taut_string((y, np.ones(400), *np.full((2, 399), 9e3), np.ones(3)), (w, u))
    found = simple(nx.path_graph(400), y[:, None], strength=9e3).solve(METHOD, gap=1e-12)
    np.testing.assert_allclose(found.coef.ravel(), exact(y, np.ones(400), np.full(399, 9e3)), rtol=1e-13)


def impatient():
    """The recursion anew, with what is in its module now."""
    return compiled.Recursion(taut_string.function)


def test_a_node_without_a_square_is_left_to_the_others():
    data = gr.NodeData.from_arrays(None, np.array([[0.0], [4.0]]), np.array([0, 3]))
    problem = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(4), gr.L1()))
    assert squares(problem.form) is None
    assert problem.solve(METHOD, gap=1e-12).status == "certified"


def test_a_certificate_that_is_too_weak_is_followed_by_one_without_rounding():
    rng = np.random.default_rng(0)
    problem = simple(nx.path_graph(30), rng.standard_normal((30, 1)))
    found = problem.solve(METHOD, gap=1e-15, on_failure="return").certificate
    with mock.patch.object(_squares, "squares", return_value=None):
        alone = problem.solve(METHOD, gap=1e-15, on_failure="return").certificate
    assert found.gap <= alone.gap <= problem.solve(METHOD, gap=1e-12).certificate.gap


def test_no_answer_is_worse_than_the_start():
    rng = np.random.default_rng(0)
    problem = simple(nx.path_graph(20), rng.standard_normal((20, 1)))
    start = problem.solve(METHOD, gap=1e-12)
    assert problem.solve(METHOD, gap=1e-2, start=start).objective <= start.objective


def test_lines_and_samples_in_order_are_recognised():
    def form(order, tail, head, node, X=None):
        graph = gr.Graph(tuple(order), np.array(tail), np.array(head), np.ones(len(tail)))
        if X is None:
            loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros((len(node), 1)), np.array(node)))
        else:
            loss = gr.SquaredLoss(gr.NodeData.from_arrays(np.array(X)[:, None], np.zeros(len(node)), np.array(node)))
        return gr.Problem(loss + gr.TotalVariation(graph, gr.L1())).form

    def recognised(*given):
        found = form(*given)
        assert (found.component == found.component[0]).all()
        return found.edges[0].in_line, found.samples[0].map.one_each

    nodes = range(4)
    assert recognised(nodes, [0, 1, 2], [1, 2, 3], [0, 1, 2, 3]) == (True, True)
    assert recognised(nodes, [0, 1, 1], [1, 2, 3], [0, 1, 2, 3]) == (False, True)
    assert recognised(nodes, [0, 2, 1], [1, 3, 2], [0, 1, 2, 3]) == (False, True)
    assert recognised(nodes, [0, 1, 2, 0], [1, 2, 3, 3], [0, 1, 2]) == (False, False)
    assert recognised(nodes, [0, 1, 2], [1, 2, 3], [0, 1, 1, 3]) == (True, False)
    assert recognised(nodes, [0, 1, 2], [1, 2, 3], [1, 0, 2, 3])[0]
    assert recognised(nodes, [0, 1, 2], [1, 2, 3], [0, 1, 2, 3], [1.0] * 4) == (True, True)
    assert recognised(nodes, [0, 1, 2], [1, 2, 3], [0, 1, 2, 3], [1.0, 1.0, 2.0, 1.0]) == (True, False)


# ---- the order of a forest -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
def test_parents_come_first_and_what_hangs_below_follows(seed):
    rng = np.random.default_rng(seed)
    n = 25
    graph = nx.random_labeled_tree(n, seed=seed)
    graph.remove_edges_from([edge for edge in list(graph.edges) if rng.random() < 0.15])
    ends = np.array([e if rng.random() < 0.5 else e[::-1] for e in graph.edges], dtype=int).reshape(-1, 2)
    forest = CoordinateForest.of(ends[:, 0], ends[:, 1], n)
    assert sorted(forest.order.tolist()) == list(range(n))
    assert forest.order[forest.place].tolist() == list(range(n))
    assert forest.lines == (max(dict(graph.degree).values()) <= 2)
    assert (forest.parent < np.arange(n)).all()
    assert (forest.parent < 0).sum() == nx.number_connected_components(graph)
    for i, (p, e, sign) in enumerate(zip(forest.parent, forest.up, forest.sign, strict=True)):
        if p >= 0:
            here, there = forest.order[i], forest.order[p]
            assert (ends[e] == ([here, there] if sign > 0.0 else [there, here])).all()
            inner = nx.descendants(nx.DiGraph([(q, k) for k, q in enumerate(forest.parent.tolist()) if q >= 0]), i)
            assert inner == set(range(i + 1, i + 1 + len(inner)))


def test_circles_are_no_forest():
    for graph, n in (
        (nx.cycle_graph(5), 5),
        (nx.disjoint_union(nx.cycle_graph(4), nx.path_graph(3)), 9),  # fewer edges than nodes
        (nx.disjoint_union(nx.lollipop_graph(3, 2), nx.path_graph(3)), 10),
    ):
        tail, head = np.array(graph.edges).T
        assert CoordinateForest.of(tail, head, n) is None
    double = np.array([0, 0]), np.array([1, 1])
    assert CoordinateForest.of(*double, 4) is None
