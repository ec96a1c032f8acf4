"""The yardstick of a relative gap where the losses at 0 say nothing: they grow with the units of targets, or are
infinite."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate import common
from graphreg.certificate.common_model.best_common import common_by_sums

CHAIN = gr.Graph.chain(4)


def gamma(unit, offset=0.0):
    rng = np.random.default_rng(0)
    X = np.c_[np.ones(40), rng.normal(size=40)]
    y = np.exp(0.5 * X[:, 1]) * rng.gamma(3, 1 / 3, size=40)
    data = gr.NodeData.from_arrays(X, unit * y, np.repeat(range(4), 10), offset=np.full(40, offset))
    return gr.Problem(gr.GammaLoss(data) + 0.1 * gr.TotalVariation(CHAIN, gr.L2()))


@pytest.mark.parametrize("unit", [1e-12, 1e3, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("method", [gr.Auto(), gr.PrimalDual(), gr.Exact()], ids=lambda method: method.name)
def test_units_of_targets_of_a_gamma_loss_move_the_intercepts_alone(unit, method):
    here, there = gamma(1.0).solve(gap=1e-9), gamma(unit).solve(method)
    expected = here.objective + 4.0 * np.log(unit)  # each of four means of log(mu)
    assert there.status == "certified"
    assert abs(there.objective - expected) <= 2e-6 * abs(expected)


@pytest.mark.parametrize("offset", [-30.0, -300.0, 20.0])
def test_an_offset_moves_the_intercepts_alone(offset):
    here, there = gamma(1.0).solve(gap=1e-9), gamma(1.0, offset).solve()
    assert there.status == "certified"
    assert abs(there.objective - here.objective) <= 2e-6 * abs(here.objective)
    assert common(gamma(1.0, offset).form).floor <= 1e-2 * abs(here.objective)


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e12])
def test_by_sums_over_nodes_the_yardstick_is_of_the_same_size(unit):
    form = gamma(unit).form
    assert common_by_sums(form, lambda x: x.sum(axis=0)).floor <= 10.0 * common(form).floor


def test_a_loss_that_is_infinite_at_0_has_a_finite_yardstick():
    data = gr.NodeData.from_dict({0: ([[1.0], [2.0]], [1.0, 2.0]), 1: ([[1.0], [3.0]], [2.0, 7.0])})
    loss = gr.Loss.from_cvxpy(lambda x, y: x - cp.multiply(y, cp.log(x)), data, name="log")
    tv = gr.TotalVariation(gr.Graph.chain(2), gr.L2())
    problem = gr.Problem(loss + 0.3 * tv + 0.1 * gr.SquaredL2()(gr.w))
    assert np.isfinite(common(problem.form).floor)
    judged = problem.certify(np.array([[50.0], [80.0]]))
    assert not judged.holds(1e-6)
    assert judged.relative_gap > 0.1
