"""The yardstick of a relative gap and the numbers that a problem is solved in: neither shifts nor units change them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from benchmarks import invariance
from benchmarks.wild import wild_problem
from graphreg.certificate import common, common_by_sums, lengths, relative
from graphreg.certificate.common_model.centring import centred
from graphreg.certificate.common_model.pooled import Pool
from graphreg.datasets import random_problem
from graphreg.network.engine import summed

SHIFTS = (1e3, 1e6, 1e9)
LOSSES = {"squared": gr.SquaredLoss, "huber": gr.HuberLoss, "quantile": gr.QuantileLoss}


def table(n=12, m=6, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n * m), rng.normal(size=(n * m, d - 1))])
    return X, X @ rng.normal(size=d) + rng.normal(size=n * m), np.repeat(np.arange(n), m)


def form(X, y, node, loss=gr.SquaredLoss, strength=1.0):
    data = gr.NodeData.from_arrays(X, y, node)
    graph = nx.path_graph(int(node.max()) + 1)
    return gr.Problem(strength * loss(data) + strength * gr.TotalVariation(graph, gr.L2())).form


def exact_objective(X, y, node, w, strength):
    """P(w) of squared losses (means per node) and a network lasso on a path, with exact sums, as a float."""
    total, count = Fraction(0), np.bincount(node)
    for x, target, i in zip(X, y, node, strict=True):
        residual = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, w[i], strict=True)), Fraction(0))
        total += (residual - Fraction(float(target))) ** 2 / (2 * int(count[i]))
    squares = [
        sum(((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(w[i], w[i + 1], strict=True)), Fraction(0))
        for i in range(len(w) - 1)
    ]
    return float(total) + strength * sum(float(square) ** 0.5 for square in squares)


# ---- the best common model -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_shift_of_the_targets_changes_no_yardstick(loss, shift):
    X, y, node = table()
    before, after = common(form(X, y, node, LOSSES[loss])), common(form(X, y + shift, node, LOSSES[loss]))
    assert after.value == pytest.approx(before.value, rel=1e-7)
    assert after.floor == pytest.approx(before.floor, rel=1e-7 if shift < 1e9 else 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("decades", [6, 10])
def test_units_of_the_columns_change_no_yardstick(loss, decades):
    X, y, node = table()
    units = 10.0 ** np.linspace(-decades, decades, X.shape[1])
    one, other = form(X, y, node, LOSSES[loss]), form(X * units, y, node, LOSSES[loss])
    before, after = common(one), common(other)
    assert after.value == pytest.approx(before.value, rel=1e-10)
    assert lengths(other)[0] * units == pytest.approx(lengths(one)[0], rel=1e-10)


@pytest.mark.parametrize("strength", [1e-6, 1e6])
def test_a_multiple_of_the_objective_has_that_multiple_for_yardstick(strength):
    X, y, node = table()
    before, after = common(form(X, y, node)), common(form(X, y, node, strength=strength))
    assert after.floor == pytest.approx(strength * before.floor, rel=1e-10)


def test_it_is_least_squares_where_losses_are_squared():
    X, y, node = table()
    w = np.linalg.lstsq(X, y, rcond=None)[0]  # as many samples at each node
    found = common(form(X, y, node))
    assert found.w == pytest.approx(w, rel=1e-10)
    assert found.value == pytest.approx(float(((X @ w - y) ** 2).sum()) / 12, rel=1e-12)


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9])
def test_nearly_collinear_columns_are_no_obstacle(spread):
    X, y, node = table()
    new = np.random.default_rng(1).normal(size=len(y))
    near, apart = np.column_stack([X, X[:, 1] + spread * new]), np.column_stack([X, new])  # the same span
    assert common(form(near, y, node)).value == pytest.approx(common(form(apart, y, node)).value, rel=1e-6)


def test_a_column_that_is_the_sum_of_others_adds_nothing():
    X, y, node = table()
    dummies = np.column_stack([X, X[:, 1] + X[:, 2], 1.0 - X[:, 3], np.zeros(len(y))])
    assert common(form(dummies, y, node)).value == pytest.approx(common(form(X, y, node)).value, rel=1e-12)


def test_more_columns_than_samples():
    X, y, node = table(n=2, m=3, d=3)
    wide = np.random.default_rng(1).normal(size=(len(X), 40))
    found = common(form(wide, y, node))
    assert found.exact
    assert wide @ found.w == pytest.approx(y, abs=1e-10)


@pytest.mark.parametrize("seed", range(0, 300, 7))
def test_no_other_common_point_is_clearly_better(seed):
    drawn = random_problem(seed)
    here = drawn.problem.form
    found, rng = common(here), np.random.default_rng(seed)
    value = here.primal(_rows(here, found.w))
    if np.isinf(value):
        pytest.skip("the common model violates a constraint, which it leaves out")
    assert value == pytest.approx(found.value, rel=1e-9, abs=1e-12 * found.size)
    if found.size > abs(found.value):
        pytest.skip("the classes are separable: steps end early")
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(5):
            other = here.primal(_rows(here, found.w + size * lengths(here)[0] * rng.normal(size=here.d)))
            assert value <= other + 0.05 * max(abs(value), found.size)


def _rows(here, w):
    return np.tile(w, (here.n, 1))


def test_a_fit_that_is_exact_leaves_the_rounding_for_yardstick():
    X, _, node = table()
    y = X @ np.array([1e5, 1.0, -2.0, 3.0])
    found = common(form(X, y, node))
    assert found.exact
    assert 0.0 < found.floor < 1e-15 * float(y @ y)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_that_repeats_adds_no_huge_coefficients(loss):
    X = np.tile([[1.0, 0.3, -2.0, 0.7]], (2, 1))  # fewer rows than columns, and of rank one
    found = common(form(X, np.array([5.0, 5.0]), np.arange(2), LOSSES[loss]))
    assert found.exact
    assert np.abs(found.w).max() < 5.0
    assert 0.0 < found.floor < 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_the_floor_of_an_exact_fit_counts_kinks_on_both_sides(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(1, 3)), 1e3 * rng.normal(size=1)  # the residual is what rounding leaves, of any sign
    found = common(form(X, y, np.zeros(1, dtype=int), gr.QuantileLoss))
    assert 1e-9 * abs(y[0]) < found.floor < 1e-3 * abs(y[0])


@pytest.mark.parametrize("strength", [1e4, 1e9, 1e14])
@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf(), gr.SquaredL2(), gr.HuberNorm(1e-3)], ids=repr)
@pytest.mark.parametrize("loss", [*LOSSES.values(), gr.SquaredHingeLoss], ids=lambda loss: loss.__name__)
def test_a_penalty_far_stronger_than_the_data_leaves_the_intercept(loss, penalty, strength):
    X, y, node = table()
    y = np.where(y > 1.0, 1.0, -1.0) if loss is gr.SquaredHingeLoss else y + 50.0
    graph = nx.path_graph(12)
    terms = [loss(gr.NodeData.from_arrays(columns, y, node)) for columns in (X, X[:, :1])]
    strong = strength * gr.NodePenalty(penalty, features=["x1", "x2", "x3"])
    here = gr.Problem(terms[0] + strong + gr.TotalVariation(graph, gr.L2())).form
    alone = common(gr.Problem(terms[1] + gr.TotalVariation(graph, gr.L2())).form).value
    assert common(here).value == pytest.approx(alone, rel=0.02)


def test_what_no_penalty_acts_on_fits_exactly():
    data = gr.NodeData.from_arrays(np.array([[1.0, 0.5, 2.0]]), np.array([7e5]), np.array([0]))
    graph = nx.path_graph(1)
    for penalty in (gr.SquaredL2(), gr.L1()):
        model = (
            gr.SquaredLoss(data) + gr.NodePenalty(penalty, features=["x1", "x2"]) + gr.TotalVariation(graph, gr.L2())
        )
        assert common(gr.Problem(model).form).exact


@pytest.mark.parametrize("seed", [179, 518, 555, 1028, 1052, 1379, 1582, 1626, 1640, 1694, 1730, 2228, 2279, 2305])
def test_neither_overflow_nor_extreme_penalties_make_it_worse_than_zero(seed):
    here = wild_problem(seed).problem.form
    found, pool = common(here), Pool(here)
    zero = pool.value(np.zeros(here.d), [*pool.smooth, *pool.kinked])
    assert found.value <= zero
    assert found.floor <= 1e-3 * max(abs(found.value), abs(zero))


@pytest.mark.parametrize("seed", [155, 290, 690, 1372, 1397, 2392])
def test_no_floor_is_made_of_coefficients_that_no_fit_needs(seed):
    here = wild_problem(seed).problem.form
    found = common(here)
    assert np.abs(found.w).max() < 1e3
    assert found.floor <= 1e-5 * Pool(here).value(np.zeros(here.d), [])


def test_the_relative_gap_is_by_the_largest_of_three():
    assert relative(1.0, 10.0, -20.0, 5.0) == pytest.approx(0.05)
    assert relative(1.0, 0.0, 0.0, 4.0) == pytest.approx(0.25)
    assert relative(0.0, 0.0, 0.0, 0.0) == 0.0
    assert relative(1e-290, 0.0, 0.0, 0.0) == np.inf
    assert relative(1e-299, 0.0, 0.0, 0.0) == 0.0  # what bounds add where values may have underflowed


def test_a_strength_of_the_edges_changes_no_common_model():
    X, y, node = table()
    lam, data = gr.Parameter(0.1), gr.NodeData.from_arrays(X, y, node)
    problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(nx.path_graph(12), gr.L2()))
    first = common(problem.form.frozen())
    lam.value = 7.0
    assert common(problem.form.frozen()) is first  # found once for all


def test_a_ridge_counts_and_follows_its_strength():
    X, y, node = table()
    mu, data = gr.Parameter(0.1), gr.NodeData.from_arrays(X, y, node)
    problem = gr.Problem(gr.SquaredLoss(data) + mu * gr.NodePenalty(gr.SquaredL2()))
    first = common(problem.form.frozen()).value
    mu.value = 10.0
    assert common(problem.form.frozen()).value > 1.1 * first


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 17])
def test_sums_over_nodes_alone_tell_the_same_size(seed):
    here = random_problem(seed).problem.form
    best, found = common(here), common_by_sums(here, summed)
    smooth = not any(block.loss.called() in ("QuantileLoss", "HingeLoss", "SquaredHingeLoss") for block in here.samples)
    assert found.value >= best.value - 1e-4 * best.size
    assert found.value <= best.value + (1e-3 if smooth else 0.5) * best.size
    assert found.floor == pytest.approx(best.floor, rel=1e-3 if smooth else 0.5)


# ---- centring --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0, 1, 4, 11, 26, 38, 66, 87, 205])
def test_a_centred_form_is_the_same_problem(seed):
    here = random_problem(seed).problem.form
    rng = np.random.default_rng(seed)
    v, w = (lengths(here)[0] * rng.normal(size=here.d) for _ in range(2))
    moved = centred(here, v)
    before, after = here.primal(_rows(here, v + w)), moved.primal(_rows(here, w))
    assert after == pytest.approx(before, rel=1e-9) or before == after == np.inf
    point = here.nothing()
    prices = here.gradient_prices(_rows(here, v + w))
    for a, b in zip(prices, moved.gradient_prices(_rows(here, w)), strict=True):
        assert b == pytest.approx(a, abs=1e-8 * max(np.abs(a).max(initial=0.0), 1e-300))
    flows = tuple(rng.normal(size=u.shape) for u in point.flows)
    some = replace(point, flows=flows, prices=prices)
    inner = float((here.conservation(some) * v).sum())  # 0 where the point is conserved
    if np.isfinite(here.dual(some)):
        assert moved.dual(some) == pytest.approx(here.dual(some) + inner, rel=1e-8, abs=1e-8 * common(here).size)


def test_centring_loses_nothing_where_targets_are_huge():
    """Against rationals: what is left of targets around 1e9 is right to its own last digits."""
    X, y, node = table()
    present = form(X, y + 2.0**30, node)
    v = common(present).w
    block = present.samples[0]
    products = [sum((Fraction(a) * Fraction(b) for a, b in zip(x, v, strict=True)), Fraction(0)) for x in block.X]
    left = [float(Fraction(a) - b) for a, b in zip(block.y, products, strict=True)]
    assert np.abs(left).max() < 10.0
    assert centred(present, v).samples[0].y == pytest.approx(left, rel=1e-15)


# ---- what is answered ------------------------------------------------------------------------------------------------
def regions(shift):
    """Three regions with an intercept and one feature; the slopes are +.46, +.46 and -.46."""
    rng = np.random.default_rng(0)
    node, x = np.repeat(np.arange(3), 8), rng.normal(size=24)
    y = shift + np.array([0.46, 0.46, -0.46])[node] * x + 0.1 * rng.normal(size=24)
    return np.column_stack([np.ones(24), x]), y, node


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual(), gr.ADMM(), gr.InteriorPoint()], ids=lambda m: m.name)
@pytest.mark.parametrize("shift", [1e3, 1e5, 1e6, 1e7, 1e9])
def test_targets_far_from_zero_are_fitted_as_those_near_it(method, shift):
    graph, answers = nx.path_graph(3), []
    for by in (0.0, shift):
        X, y, node = regions(by)
        model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node)) + 0.1 * gr.TotalVariation(graph, gr.L2())
        solution = gr.Problem(model).solve(method, on_failure="return", rounds=None if method == gr.Exact() else 500)
        answers.append((exact_objective(X, y, node, solution.coef, 0.1), solution.coef, solution.rounds))
    (one, coef, rounds), (two, present, rounds_there) = answers
    assert two == pytest.approx(one, rel=2e-6 if shift < 1e9 else 1e-5)  # 1.8 times as much, by the yardstick of P(0)
    assert present[:, 1] == pytest.approx(coef[:, 1], abs=2e-5)
    assert present[2, 1] < -0.2 < 0.3 < present[0, 1]
    assert rounds_there == rounds


@pytest.mark.parametrize(("seed", "method"), thinned([3, 10, 13, 20, 25], ["Exact", "PrimalDual"], every=2))
def test_random_problems_shifted(seed, method):
    drawn = random_problem(seed)
    before = invariance.solved(drawn.problem, method)
    for shift in (1e3, 1e7):
        row = invariance.shifted(drawn, shift, method, before)
        assert row.worse <= 1e-6
        assert abs(row.rounds[1] - row.rounds[0]) <= 0.1 * row.rounds[0]


@pytest.mark.parametrize("seed", [12, 20, 35])
def test_random_problems_in_other_units(seed):
    drawn = random_problem(seed)
    row = invariance.rescaled(drawn, "Exact", invariance.solved(drawn.problem, "Exact"))
    assert row is not None
    assert row.worse <= 1e-6


def test_a_gross_domestic_product_in_dollars():
    rng = np.random.default_rng(3)
    node = np.repeat(np.arange(3), 6)
    gdp, rate = 10.0 ** rng.uniform(11, 13, 18), rng.uniform(0.0, 0.1, 18)
    y = 1.0 + 3e-14 * gdp + rate + 0.05 * rng.normal(size=18)
    X = np.column_stack([np.ones(18), gdp, rate])
    model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node)) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2())
    solution = gr.Problem(model).solve(on_failure="return")
    pooled = np.tile(np.linalg.lstsq(X / X.max(axis=0), y, rcond=None)[0] / X.max(axis=0), (3, 1))
    assert exact_objective(X, y, node, solution.coef, 0.1) <= exact_objective(X, y, node, pooled, 0.1) * (1 + 1e-9)
