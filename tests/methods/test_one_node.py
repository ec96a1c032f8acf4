"""One node: lasso, logistic regression, bounds and their kin, against the conic route and against conditions."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate import common
from graphreg.certificate.common_model import best_common
from graphreg.form import DualPoint
from graphreg.methods import one_node
from graphreg.methods.one_node import OneNode

LOSSES = {
    "squared": gr.SquaredLoss,
    "huber": lambda data: gr.HuberLoss(data, delta=0.5),
    "logistic": gr.LogisticLoss,
    "poisson": gr.PoissonLoss,
    "squared hinge": gr.SquaredHingeLoss,
}
PENALTIES = {
    "lasso": lambda: 0.1 * gr.NodePenalty(gr.L1()),
    "far from the center": lambda: 0.1 * gr.NodePenalty(gr.L1(), center=np.full(8, 0.2)),
    "elastic net": lambda: 0.05 * gr.NodePenalty(gr.L1()) + 0.05 * gr.NodePenalty(gr.SquaredL2()),
    "ridge": lambda: 0.1 * gr.NodePenalty(gr.SquaredL2()),
    "quadratic": lambda: 0.1 * gr.NodePenalty(gr.Quadratic(np.eye(8) + 0.5)),
    "groups": lambda: sum(0.1 * gr.NodePenalty(gr.L2(), features=[f"x{j}" for j in g]) for g in ((0, 1, 2), (4, 5))),
    "signs": lambda: gr.NodePenalty(gr.NonNegative()) + 1e-2 * gr.NodePenalty(gr.SquaredL2()),
    "bounds": lambda: gr.NodePenalty(gr.Box(-0.1, 0.3)),
}


def data(loss="squared", M=60, d=8, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, d))
    x = X @ (rng.normal(size=d) * (rng.random(d) < 0.6))
    y = {"poisson": rng.poisson(np.exp(np.clip(x, -3, 2))), "logistic": (x + rng.normal(size=M) > 0).astype(float)}
    y["squared hinge"] = 2.0 * y["logistic"] - 1.0
    return gr.NodeData.from_arrays(X, y.get(loss, x + 0.3 * rng.normal(size=M) + shift), np.zeros(M, dtype=int))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_the_conic_route(loss, penalty):
    problem = gr.Problem(LOSSES[loss](data(loss)) + PENALTIES[penalty]())
    found, exact = problem.solve(gap=1e-8), problem.solve(gr.Exact(), gap=1e-7)
    assert found.method == "Auto(OneNode)"
    assert found.certificate.relative_gap <= 1e-8
    assert found.objective == pytest.approx(exact.objective, rel=2e-7)


@pytest.mark.parametrize("M", [1, 5, 40])
@pytest.mark.parametrize("seed", range(4))
def test_more_features_than_samples(M, seed):
    model = gr.SquaredLoss(data(M=M, d=60, seed=seed)) + 0.1 * gr.NodePenalty(gr.L1())
    found = gr.Problem(model).solve(OneNode(), gap=1e-8)
    assert found.status == "certified"
    assert np.count_nonzero(found.coef) <= M


def test_coordinates_at_kinks_are_exactly_there():
    found = gr.Problem(gr.SquaredLoss(data()) + 0.3 * gr.NodePenalty(gr.L1())).solve()
    assert 0 < np.count_nonzero(found.coef) < 8
    found = gr.Problem(gr.SquaredLoss(data()) + gr.NodePenalty(gr.Box(-0.1, 0.3))).solve()
    assert set(np.round(found.coef[(found.coef == 0.3) | (found.coef == -0.1)], 12)) == {-0.1, 0.3}


@pytest.mark.parametrize("penalty", ["signs", "lasso", "groups"])
def test_the_dual_point_is_inside_its_domains_and_balanced(penalty):
    """Also where a step is left out at the end, so that some flow is beyond its capacity, or against no bound."""
    form = gr.Problem(gr.SquaredLoss(data()) + PENALTIES[penalty]()).form
    node = one_node._Node(form, 1e-2)
    at = node.tilted(node.minimiser(np.zeros(form.d)), 1e-9)
    flows, prices = node.dual(at)
    point = DualPoint(flows, prices)
    assert np.isfinite(form.dual(point))
    assert np.abs(form.conservation(point)).max() <= 1e-14 * np.abs(prices[0]).sum()


def test_large_targets_cost_no_digits():
    """An intercept without a penalty, and targets around 1e9."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(40), rng.normal(size=(40, 3))])
    y, node = X @ [0.0, 1.0, 0.0, -2.0] + 0.1 * rng.normal(size=40), np.zeros(40, dtype=int)
    penalty = 0.1 * gr.NodePenalty(gr.L1(), features=["x1", "x2", "x3"])
    near, far = (
        gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, y + s, node)) + penalty).solve(OneNode())
        for s in (0.0, 1e9)
    )
    assert far.status == "certified"
    assert far.objective == pytest.approx(near.objective, rel=1e-6)
    assert far.coef[0, 1:] == pytest.approx(near.coef[0, 1:], abs=1e-6)


def test_steps_take_factors_where_columns_are_nearly_collinear():
    given = data(M=200, d=30)
    X = given.X @ (np.eye(30) + 3.0)
    model = gr.LogisticLoss(gr.NodeData.from_arrays(X, (given.y > 0).astype(float), given.node))
    problem = gr.Problem(model + 1e-3 * gr.NodePenalty(gr.SquaredL2()))
    with mock.patch.object(one_node, "cho_factor", wraps=one_node.cho_factor) as factor:
        assert problem.solve(OneNode(), gap=1e-9).status == "certified"
    assert factor.called


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: gr.QuantileLoss(data()) + 0.1 * gr.NodePenalty(gr.L1()), "is not smooth"),
        (lambda: gr.SquaredLoss(data()) + 0.1 * gr.NodePenalty(gr.LInf()), "is no norm L1 or L2"),
        (
            lambda: gr.SquaredLoss(data()) + 0.1 * gr.NodePenalty(gr.L1()) + gr.NodePenalty(gr.Box(-1, 1)),
            "have kinks on the same coordinates",
        ),
        (lambda: gr.MeanLoss(gr.NodeData.from_arrays(None, np.ones((2, 3)), np.zeros(2, int))), "no predictors of one"),
    ],
)
def test_what_it_takes(model, why):
    problem = gr.Problem(model())
    assert any(why in each for each in OneNode().lacks(problem.form))
    assert problem.solve().status == "certified"


# ---- the floor of a relative gap -------------------------------------------------------------------------------------
@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_common_model_is_found_only_where_its_floor_may_count(loss, strength):
    problem = gr.Problem(LOSSES[loss](data(loss)) + strength * gr.NodePenalty(gr.L1()))
    with mock.patch.object(best_common, "_common", side_effect=AssertionError("found for nothing")):
        assert problem.solve().certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("seed", range(60))
def test_the_floor_is_that_of_the_common_model_where_it_counts(seed):
    form = gr.datasets.random_problem(seed).problem.form
    sizes = 10.0 ** np.arange(12.0, -12.0, -0.25)  # from above: nothing is known of the common model at first
    found = [best_common.floor(form, size) for size in sizes]
    least = common(form).floor
    assert all(each == least or (each == 0.0 and size >= least) for each, size in zip(found, sizes, strict=True))
