"""Sums that are taken plainly: they pay for what that misses, and the boxes next to a point hold a conserved one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from box_cases import BOXES, carried, each_for_itself, moved, number, prices_stay, pulls, widened

import graphreg as gr
from graphreg.certificate import Enclosure
from graphreg.certificate.enclosure import boxes as enclosed_boxes
from graphreg.certificate.enclosure.arcs import Forest
from graphreg.certificate.enclosure.boxes import Box, box_value
from graphreg.certificate.enclosure.closing import Closing
from graphreg.certificate.enclosure.plain import boxes_near
from graphreg.certificate.enclosure.rows import Prices, SampleRows
from graphreg.certificate.enclosure.structure import Structure
from graphreg.certificate.enclosure.sums import PIECE, Runs
from graphreg.form.form import DualPoint

terms = enclosed_boxes._terms


@pytest.mark.parametrize("size", [PIECE + 1, 3 * PIECE, 5001])
def test_the_exact_sum_lies_within_the_error_of_a_plain_one(size):
    rng = np.random.default_rng(size)
    values = rng.standard_normal(size) * 10.0 ** rng.integers(-8, 8, size)
    found = Runs(np.zeros(size, dtype=int), 1).sums(values, plain=True)
    high, low, error = (Fraction(float(part[0])) for part in (found.high, found.low, found.error))
    assert abs(high + low - sum(map(Fraction, values.tolist()))) <= error


def pulls_hold(seed, columns=3):
    """X'a over 60 samples of two nodes, which nearly cancel, against rationals."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, columns)) * 10.0 ** rng.integers(-6, 7, columns)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, np.zeros(60), np.arange(60) % 2))
    form = gr.Problem(loss + gr.TotalVariation(nx.path_graph(2), gr.L2())).form
    rows = Structure(form).rows(form)[0]
    block, a = form.samples[0], rng.standard_normal(60)
    a -= block.X @ np.linalg.lstsq(block.X, a, rcond=None)[0]
    found, error = rows.plain_pull(a)
    for i in range(2):
        for j in range(columns):
            mine = block.node == i
            exact = sum((number(x) * number(y) for x, y in zip(block.X[mine, j], a[mine], strict=True)), Fraction(0))
            assert abs(number(found[i, j]) - exact) <= number(error[i, j])


@pytest.mark.parametrize("seed", range(5))
def test_a_plain_pull_pays_for_its_rounding(seed):
    pulls_hold(seed)


def test_a_pull_that_is_taken_for_exact(monkeypatch):
    monkeypatch.setattr(SampleRows, "most", lambda self, a: np.zeros((self.n, self.d)))
    with pytest.raises(AssertionError):
        pulls_hold(0)


# ---- values ----------------------------------------------------------------------------------------------------------
def values_hold(seed, off):
    """In rational arithmetic the bound over a box is not above Q at some corners of it. Every other sample takes away
    what the one before it adds, and all of a kind are rounded the same way."""
    rng = np.random.default_rng(seed)
    n, m = 5, 400
    first, second = 1e6 * rng.standard_normal(2)
    y = np.tile([first, second], m // 2)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(rng.standard_normal((m, 2)), y, np.arange(m) % n))
    centers = {i: 1e6 * rng.standard_normal(2) for i in range(n)}
    pulled = gr.NodePenalty(gr.L1(), center=centers)
    form = gr.Problem(loss + 0.3 * gr.TotalVariation(nx.path_graph(n), gr.L2()) + 0.7 * pulled).form
    flows = tuple(0.3 * edge.weight[:, None] * rng.uniform(-1, 1, (len(edge.tail), 2)) for edge in form.edges)
    (block,) = form.samples
    prices = block.scale * np.tile([1.0, -first / second], m // 2) * rng.standard_normal()
    box = Box(flows, tuple(off * np.abs(u) for u in flows), (prices,), (off * np.abs(prices),))
    (lower,) = box_value(form, Structure(form), box).lower
    for _ in range(4):
        total = Fraction(0)
        for a, s, t in zip(prices * (1.0 + corner(rng, off, m)), block.scale, y, strict=True):
            total -= number(a) ** 2 / (2 * number(s)) + number(a) * number(t)
        for edge, u in zip(form.edges, flows, strict=True):
            moved = u * (1.0 + corner(rng, off, u.shape))
            if edge.center is not None:
                total -= sum(number(a) * number(b) for a, b in zip(moved.flat, edge.center.flat, strict=True))
        assert number(lower) <= total


def corner(rng, off, shape):
    return 0.999 * off * rng.choice([-1.0, 1.0], shape)


@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_a_value_holds_over_all_of_its_box(off):
    all_values_hold(off)


def all_values_hold(off):
    for seed in range(20):
        values_hold(seed, off)


def no_rounding(value, a, off, t):
    lower, error = terms(value, a, off, t)
    return lower, 0.0 * error


def one_point(value, a, off, t):
    return terms(value, a, 0.0 * off, t)


@pytest.mark.parametrize(("wrong", "off"), [(no_rounding, 0.0), (one_point, 1e-9)])
def test_a_value_that_pays_for_less(wrong, off, monkeypatch):
    monkeypatch.setattr(enclosed_boxes, "_terms", wrong)
    monkeypatch.setattr(enclosed_boxes, "PIECE", 1)  # sums without rounding
    with pytest.raises(AssertionError):
        all_values_hold(off)


# ---- boxes -----------------------------------------------------------------------------------------------------------
def boxes(form, point, enclosure=None):
    enclosure = enclosure or Enclosure(form)
    return list(boxes_near(enclosure.structure, form, enclosure.attempt.rows, point))


def holds(form, box):
    """In exact arithmetic what the centre of the box leaves of the conservation is within the reach of its sides, at
    every coordinate; and in all of a component without a way to the ground within the reach of the prices alone."""
    prices = [Prices(a, 0.0 * a, off) for a, off in zip(box.prices, box.off, strict=True)]
    total, reach = pulls(form, prices)
    carried(form, box.flows, total)
    room = widened(form, reach, box.spread)
    grounded = {
        (int(form.component[i]), int(j))
        for edge in form.edges
        if edge.ground
        for i in edge.tail
        for j in (range(form.d) if edge.features is None else edge.features)
    }
    assert all(abs(t) <= r for t, r in zip(total.flat, room.flat, strict=True))
    for c in range(form.n_components):
        for j in range(form.d):
            if (c, j) not in grounded:
                inside = form.component == c
                assert abs(sum(total[inside, j])) <= sum(reach[inside, j])


@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-12, 1e-9])
@pytest.mark.parametrize("name", BOXES)
def test_a_box_holds_a_conserved_point(name, noise):
    form, point = moved(name, noise)
    found = boxes(form, point)
    assert found or name == "classes alone"  # a group without flows: prices alone must balance it
    for box in found:
        holds(form, box)


def test_totals_count_what_rounding_leaves_of_dependent_prices(monkeypatch):
    """The price of a sample's own class is minus the sum of the others: 1/4 and six numbers that it swallows."""
    k, n = 8, 24
    y = np.array(list("abcdefgh") * 3)
    loss = gr.MultinomialLoss(gr.NodeData.from_arrays(np.ones((n, 1)), y, np.arange(n)), scale="sum")
    form = gr.Problem(loss + gr.TotalVariation(nx.path_graph(n), gr.L2())).form
    block = form.samples[0]
    others = np.arange(k) != block.loss.prices.dependent(block.y)[:, None]
    prices = np.zeros((n, k))
    prices[others] = np.tile([0.25, *[2.0**-55] * 6], n)
    taken = []

    def move(self, prices, T):
        total, _ = pulls(form, prices)
        taken.append((total.sum(axis=0), T))

    monkeypatch.setattr(Closing, "move", move)
    boxes(form, DualPoint(form.nothing().flows, (prices,)))
    exact, T = taken[0]
    for j in range(k):
        assert abs(exact[j] - number(T.high[j]) - number(T.low[j])) <= number(T.error[j])


def shuffled(form, point):
    """The same flows in arrays that lie in memory column by column."""
    return type(point)(tuple(np.asfortranarray(u) for u in point.flows), point.prices)


@pytest.mark.parametrize("name", BOXES)
def test_the_layout_of_the_flows_is_none_of_the_boxes_business(name):
    form, point = moved(name, 1e-9)
    for one, other in zip(boxes(form, point), boxes(form, shuffled(form, point)), strict=True):
        assert all(np.array_equal(u, v) for u, v in zip(one.flows, other.flows, strict=True))


def test_what_one_point_prepared_serves_the_next():
    form, point = moved("squares along a path", 1e-9)
    enclosure = Enclosure(form)
    boxes(form, point, enclosure)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        prices = tuple(a * (1.0 + 1e-7 * rng.standard_normal(a.shape)) for a in point.prices)
        for box in boxes(form, type(point)(point.flows, prices), enclosure):
            holds(form, box)


def test_a_strength_that_vanishes_leaves_no_way():
    """Flows along edges of strength 0 cannot move: what was kept for another strength does not serve."""
    form = moved("squares along a path", 1e-9)[0]
    structure = Structure(form)
    all_move = [np.full((3, 3), True)]
    assert structure.ways(all_move) is structure.ways([all_move[0].copy()])
    assert structure.ways([~all_move[0]]).forest.count > structure.ways(all_move).forest.count


BROKEN = {
    "flows carry nothing on": (Forest, "gather", each_for_itself),
    "totals are left": (Closing, "move", prices_stay),
}


@pytest.mark.parametrize("name", BROKEN)
def test_boxes_without_a_conserved_point(name, monkeypatch):
    owner, method, broken = BROKEN[name]
    form, point = moved("a strong fusion", 1e-9)

    def hold():
        found = boxes(form, point)
        assert found
        for box in found:
            holds(form, box)

    hold()
    monkeypatch.setattr(owner, method, broken)
    with pytest.raises(AssertionError):
        hold()


# ---- the same bound in two forms -------------------------------------------------------------------------------------
def test_a_component_without_a_bound_has_none_in_another_form():
    """Its box need not hold a conserved point: nothing carries over."""
    form, point = moved("squares along a path", 1e-9)
    enclosure = Enclosure(form)
    found = enclosure(point)
    assert np.isfinite(enclosure.beside(found).value)
    assert enclosure.beside(replace(found, lower=np.full(form.n_components, -np.inf))).value == -np.inf


def test_a_bound_around_the_common_fit_is_one_of_the_problem():
    """Targets around 1e6: the run is around the common fit, and its flows and prices are worth as much here."""
    graph, rng = nx.path_graph(30), np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.standard_normal(300)])
    data = gr.NodeData.from_arrays(X, 1e6 + rng.standard_normal(300), np.arange(300) % 30)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))
    certificate = problem.solve(gr.PrimalDual(), gap=1e-6).certificate
    again = Enclosure(problem.form)(certificate.dual_point)
    assert certificate.dual <= again.value * (1 + 1e-12)
    assert certificate.dual >= again.value * (1 - 1e-7)
