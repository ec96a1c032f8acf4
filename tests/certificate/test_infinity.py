"""Prices and flows that are 0 at every dual point: what falls away at infinity, and what is certified without it."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from graphreg.certificate import Certifier, at_infinity, attained, common
from graphreg.certificate.repairing.repair import Repair
from graphreg.datasets import random_problem
from graphreg.form.form import Form

METHODS = {"exact": gr.Exact(), "primal-dual": gr.PrimalDual(), "admm": gr.ADMM()}
PAIR = nx.path_graph(["a", "b"])


def samples(y, *columns, node=None):
    return gr.NodeData.from_arrays(np.column_stack(columns), y, node or ["a"] * len(y))


def fused(strength=0.1, **options):
    return strength * gr.TotalVariation(PAIR, gr.L2(), **options)


LABELS = [1, 1, 0, 0]
SEPARATED = [1.0, 2.0, -1.0, -3.0]
MIXED = [1.0, -1.0, 2.0, -0.5]


def separable_hinge(loss=gr.HingeLoss, **options):
    """The first coordinate separates two of four samples from each other; the second moves the others."""
    return loss(samples(LABELS, [1.0, 0.0, -1.0, 0.0], MIXED), **options)


def hinge_by_hand():
    w, y = cp.Variable(2), 2 * np.array(LABELS) - 1
    X = np.column_stack([[1.0, 0.0, -1.0, 0.0], MIXED])
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, X @ w))) / 4))
    return problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


def classes_that_may_only_grow(penalty):
    """All classes of a multinomial model may grow together: no flow of a constraint that only holds them down."""
    rng = np.random.default_rng(2)
    loss = gr.MultinomialLoss(samples(rng.integers(3, size=60), np.ones(60), rng.normal(size=60), node=["a", "b"] * 30))
    return loss + fused() + gr.NodePenalty(penalty)


SLACK = {
    "hinge": lambda: separable_hinge() + fused(),
    "hinge without edges": lambda: gr.Problem(separable_hinge()).model,
    "squared hinge": lambda: separable_hinge(gr.SquaredHingeLoss) + fused(),
    "classes and a cone": lambda: classes_that_may_only_grow(gr.NonNegative()),
    "classes and half a box": lambda: classes_that_may_only_grow(
        gr.Box([0.1, 0.0, -0.2, -np.inf, -np.inf, -np.inf], np.inf)
    ),
    "a node without data in a cone": lambda: (
        gr.SquaredLoss(samples([1.0, -1.0, 0.5], [1.0, 2.0, -1.0]))
        + gr.TotalVariation(nx.Graph([("a", "c")]), gr.L2())
        + gr.NodePenalty(gr.NonNegative(), weights=None)
        + gr.TotalVariation(nx.Graph([("b", "d")]), gr.SquaredL2())
    ),
}


@pytest.mark.parametrize("name", SLACK)
def test_something_falls_away_and_the_minimum_is_attained(name):
    form = gr.Problem(SLACK[name]()).form
    assert attained(form) is True
    infinity = at_infinity(form)
    assert infinity is not None
    assert infinity.attained
    lost = sum((~kept).sum() for kept in infinity.samples)
    left = sum(len(rows) * len(columns) for _, rows, columns in infinity.edges)
    assert lost or left < sum(len(edge.tail) * form.width(edge) for edge in form.edges)


@pytest.mark.parametrize(("name", "method"), thinned(SLACK, METHODS, every=2))
def test_every_method_certifies_it(name, method):
    solution = gr.Problem(SLACK[name]()).solve(METHODS[method], gap=1e-7)
    assert solution.status == "certified", solution
    assert solution.certificate.holds(1e-7)
    assert np.abs(solution.coef).max() < 1e3


def test_the_value_is_that_of_cvxpy():
    solution = gr.Problem(separable_hinge()).solve()
    assert solution.objective == pytest.approx(hinge_by_hand(), rel=1e-6)


def without(form: Form, problem: gr.Problem):
    """The certificate of a conic solution by the repair alone."""
    compiled = problem.compile()
    compiled.cvxpy.solve(solver="CLARABEL")
    w, point = compiled.conic.read_back()
    return Certifier(form).certify(w, point.flows, point.prices, 1e-7)


def test_the_repair_alone_has_nothing_to_pull_back_to():
    problem = random_problem(247).problem
    assert not without(problem.form, problem).holds(1e-3)
    assert problem.solve(gap=1e-7).status == "certified"


REDUCED = (7, 86, 247, 286, 349, 877)


@pytest.mark.parametrize("seed", REDUCED)
def test_points_of_the_rest_are_points_of_the_whole(seed):
    form = random_problem(seed).problem.form
    infinity = at_infinity(form)
    rest, v = infinity.rest, infinity.direction
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(form.shape)
    prices = rest.gradient_prices(w)
    flows = tuple(rng.standard_normal((len(e.tail), rest.width(e))) for e in rest.edges)
    point = type(rest.nothing())(flows, prices)
    whole = infinity.extend(point)
    np.testing.assert_allclose(form.conservation(whole), rest.conservation(point), atol=1e-9)
    falls = [b.loss.prices.descent(b.y).falls @ b.apply(v).ravel() for b in form.samples]
    assert all((each > -1e-7).all() for each in falls if len(each))
    # along v the whole loses what fell away, and nothing else
    kept = form.primal(w + 1e5 * v) if np.isfinite(form.primal(w)) else None
    if kept is not None:
        assert rest.primal(w) <= kept * (1 + 1e-6) + 1e-6 * 1e3 * common(form).floor


def test_hinges_fall_beside_samples_that_fall_for_ever():
    """One node's classes are separated by a logistic loss, the other's by hinges: the infimum is what cannot fall."""
    hinge = gr.HingeLoss(samples(LABELS, SEPARATED, node=["b"] * 4))
    logistic = gr.LogisticLoss(samples(LABELS, SEPARATED))
    for method in METHODS.values():
        solution = gr.Problem(hinge + logistic + fused()).solve(method, gap=1e-6, on_failure="return")
        assert solution.status == "unattained"
        assert solution.objective == pytest.approx(0.0, abs=1e-5)
        assert "fall for ever at the node 'a' (" in solution.message  # hinges reach their least


@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.PoissonLoss])
@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_the_nodes_whose_losses_fall_for_ever_are_named(loss, count):
    """Of one feature the classes of a node are separable iff it has the sign of the class, or the other one; counts of
    features of one sign fall for ever iff all are 0. What unit a feature has plays no part."""
    unit = [1e-4, 1.0, 1e4, 1.0, 1e4, 1.0, 1.0, 1e-4, 1.0]
    rows = [(k < count, unit[k] * x, k) for k in range(9) for x in (1.0, 2.0, 3.0)]
    y = [0 if falls else k % 2 for k, (falls, *_) in enumerate(rows)]
    data = gr.NodeData.from_arrays([[x] for _, x, _ in rows], y, [f"n{k}" for *_, k in rows])
    solution = gr.Problem(loss(data)).solve(on_failure="return", progress=False)
    if not count:
        assert solution.status == "certified"
        return
    names = [f"'n{k}'" for k in range(min(count, 5))]
    said = f"at the node{'s' * (count > 1)} {', '.join(names)}{' and 2 more' * (count == 7)} ("
    assert said in solution.message
    assert "add a ridge" in solution.message


@pytest.mark.parametrize("limit", [-1.0, 0.0, 2.0])
def test_what_falls_away_costs_its_limit(limit):
    """Counts that are all 0 cost no more than the limit far out, of either sign."""

    class Shifted(gr.PoissonLoss):
        def value(self, x, y):
            return super().value(x, y) + limit

        def conjugate(self, b, y):
            return super().conjugate(b, y) - limit

        def value_bound(self, r, spread, y):
            return super().value_bound(r, spread, y) + limit + 1e-15

        def conjugate_bound(self, b, spread, y):
            return super().conjugate_bound(b, spread, y) - limit + 1e-15

    loss = Shifted(samples([0.0, 0.0, 3.0, 3.0], np.ones(4), node=["a", "a", "b", "b"]))
    infinity = at_infinity(gr.Problem(loss).form)
    assert infinity.lower(7.0) == pytest.approx(7.0 + limit, abs=1e-12)
    assert infinity.lower(7.0) <= 7.0 + limit
    solution = gr.Problem(loss).solve(gr.PrimalDual(), on_failure="return", gap=1e-6)
    assert solution.status == "unattained"
    assert solution.certificate.holds(1e-6)
    least = 2 * limit + 3.0 * (1.0 - np.log(3.0))
    assert solution.certificate.dual <= least + 1e-12
    assert solution.objective == pytest.approx(least, rel=1e-5)


def test_classes_that_leave_one_after_the_other():
    """The first feature separates class 0 from the others, the second 1 from 2 but for the samples at 0."""
    x0 = [-5.0, -4.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    x1 = [0.0, 0.0, -1.0, -2.0, 1.0, 2.0, 0.0]
    data = samples([0, 0, 1, 1, 2, 2, 1], x0, x1)
    solution = gr.Problem(gr.MultinomialLoss(data, scale="sum")).solve(gap=1e-6, on_failure="return")
    assert solution.status == "unattained"
    assert "The infimum is certified" in solution.message


def test_a_box_is_restricted_to_the_coordinates_that_are_left():
    box = gr.Box([0.0, -1.0, -np.inf], [np.inf, np.inf, 2.0]).restricted(np.array([0, 2]))
    np.testing.assert_array_equal(box.low, [0.0, -np.inf])
    np.testing.assert_array_equal(box.high, [np.inf, 2.0])
    assert gr.NonNegative().restricted(np.array([1])) == gr.NonNegative()
    assert not hasattr(gr.L2(), "restricted")


@pytest.mark.parametrize("rounds", [pytest.param(300, marks=pytest.mark.whole), 450])
def test_the_rounds_at_infinity_are_part_of_the_budget(rounds):
    """Seed 369 goes on at infinity after its first repair, at round 400 or so, and is hard there too."""
    solution = random_problem(369).problem.solve(gr.PrimalDual(), rounds=rounds, on_failure="return")
    assert solution.status == "budget"
    assert solution.rounds == rounds
    assert f"({rounds} rounds) at a relative gap of {solution.certificate.relative_gap:.2g}" in solution.message


def test_prices_that_do_not_sum_to_zero_over_the_classes_are_out_of_balance():
    """An equal share of all classes is in no domain: what rounding leaves of it is charged like an imbalance."""
    form = gr.Problem(gr.MultinomialLoss(samples([0, 1, 2], [3.0, 0.5, -1.0], [4.0, 0.0, 0.0]))).form
    point = form.nothing()
    point.prices[0][:] = [[0.1, 0.1, 0.1], [0.2, -0.1, -0.1], [0.0, 0.0, 0.0]]
    left = np.linalg.norm(form.conservation(point))
    assert Repair(form).unbalance(point) == pytest.approx(left + 5.0 * 0.3 / np.sqrt(3))
