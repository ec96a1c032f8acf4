"""Losses against the programs that are known for them."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from scipy import special

import graphreg as gr
import graphreg.testing
from graphreg.errors import DataError
from graphreg.testing import losses

RNG = np.random.default_rng(0)
X = np.c_[np.ones(200), RNG.normal(size=(200, 3))]
MEANS = np.exp(X @ [0.3, 0.5, -0.3, 0.2])
AMOUNTS = MEANS * RNG.gamma(2.0, 0.5, 200)
NUMBERS = X @ [0.5, 1.0, 2.0, -1.0] + 0.3 * RNG.normal(size=200)


def data(y):
    return gr.NodeData.from_arrays(X, y, ["all"] * len(y))


def test_gamma_regression_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    family = sm.families.Gamma(sm.families.links.Log())
    theirs = sm.GLM(AMOUNTS, X, family=family).fit(tol=1e-14, maxiter=200)
    ours = gr.Problem(gr.GammaLoss(data(AMOUNTS))).solve(gap=1e-13)
    np.testing.assert_allclose(ours.coef[0], theirs.params, atol=2e-7)
    np.testing.assert_allclose(gr.GammaLoss(data(AMOUNTS)).response(X @ ours.coef[0]), theirs.predict(X), rtol=1e-6)


def test_expectiles_are_those_of_scipy():
    from scipy.stats import expectile

    for tau in (0.1, 0.5, 0.95):
        one = gr.NodeData.from_arrays(np.ones((200, 1)), NUMBERS, ["all"] * 200)
        ours = gr.Problem(gr.ExpectileLoss(one, tau=tau)).solve(gap=1e-13)
        assert ours.coef[0, 0] == pytest.approx(expectile(NUMBERS, tau), abs=1e-6)


def test_support_vector_regression_is_that_of_sklearn():
    svm = pytest.importorskip("sklearn.svm")
    theirs = svm.LinearSVR(
        loss="squared_epsilon_insensitive", epsilon=0.2, C=1.0, fit_intercept=False, tol=1e-10, max_iter=100_000
    ).fit(X, NUMBERS)
    loss = gr.SquaredEpsilonInsensitiveLoss(data(NUMBERS), epsilon=0.2, scale="sum")
    ours = gr.Problem(2.0 * loss + gr.NodePenalty(gr.SquaredL2())).solve(gap=1e-13)
    np.testing.assert_allclose(ours.coef[0], theirs.coef_, atol=1e-7)


LOSSES = {
    "gamma": gr.GammaLoss,
    "expectile": lambda d: gr.ExpectileLoss(d, tau=0.8),
    "tube": lambda d: gr.SquaredEpsilonInsensitiveLoss(d, epsilon=0.2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_all_routes_agree_on_a_graph(name):
    nodes = np.repeat(range(8), 25)
    samples = gr.NodeData.from_arrays(X, AMOUNTS, nodes)
    problem = gr.Problem(LOSSES[name](samples) + 0.1 * gr.TotalVariation(nx.cycle_graph(8), gr.L2()))
    methods = (gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual(), gr.ADMM(), gr.InteriorPoint())
    answers = [problem.solve(method, gap=1e-8) for method in methods]
    assert [answer.status for answer in answers] == ["certified"] * len(methods)
    objectives = [answer.objective for answer in answers]
    assert max(objectives) - min(objectives) <= 1e-7 * abs(objectives[0])


def test_amounts_are_positive():
    with pytest.raises(DataError, match="GammaLoss takes targets > 0, got 0 in row 1; use PoissonLoss, or drop"):
        gr.GammaLoss(gr.NodeData.from_arrays(np.ones((2, 1)), [1.0, 0.0], [0, 0]))


@pytest.mark.parametrize("tau", [5e-324, 1e-310, 1e-300])
def test_expectiles_of_the_least_levels_are_not_worth_nothing(tau):
    """Values that underflow do not look like 0: else P = 0 would be certified of a point at which P > 0."""
    fit = gr.ExpectileLoss(gr.NodeData.from_arrays([[1.0]], [1e-9], [0]), tau=tau)
    found = gr.Problem(fit + gr.NodePenalty(gr.Box(-1.0, 0.0))).solve(gr.PrimalDual(), on_failure="return").certificate
    value = Fraction(tau) * (Fraction(float(found.w[0, 0])) - Fraction(1e-9)) ** 2 / 2
    assert 0 < value <= Fraction(found.primal)


def test_losses_of_the_user_take_one_entry_per_sample():
    """As their page says: rounds had asked for the curvature of a stack of samples by node."""

    class Root(gr.Loss):
        def value(self, x, y):
            assert x.shape == y.shape == (len(x),)
            return np.sqrt(1.0 + (x - y) ** 2) - 1.0

        def gradient(self, x, y):
            assert x.shape == y.shape == (len(x),)
            return (x - y) / np.sqrt(1.0 + (x - y) ** 2)

        def curvature(self, x, y):
            return np.array([(1.0 + (x[r] - y[r]) ** 2) ** -1.5 for r in range(len(x))]).reshape(len(x))

        def conjugate(self, b, y):
            inside = np.abs(b) <= 1.0
            return np.where(inside, b * y + 1.0 - np.sqrt(np.maximum(1.0 - b * b, 0.0)), np.inf)

        def cvxpy(self, x, y):
            return cp.norm(cp.vstack([np.ones(len(y)), x - y]), 2, axis=0) - 1.0

    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.normal(size=(20, 2)), rng.normal(size=20), np.repeat(range(5), 4))
    problem = gr.Problem(Root(data) + 0.3 * gr.TotalVariation(gr.Graph.chain(5), gr.L2()))
    found = [problem.solve(method).objective for method in (gr.Exact(), gr.PrimalDual(), gr.ADMM())]
    np.testing.assert_allclose(found, found[0], rtol=2e-6)


def test_squares_of_own_penalties_are_taken_where_they_have_gradients():
    class Form(gr.Penalty):
        def value(self, z):
            return (z**2).sum(axis=1)

        def prox(self, v, step):
            return v / (1.0 + 2.0 * np.reshape(step, (-1, 1)))

        def conjugate(self, u):
            return (u**2).sum(axis=1) / 4.0

        def cvxpy(self, Z):
            return cp.sum(cp.square(Z), axis=1)

        def quadratic(self, k):
            return 2.0 * np.eye(k)

    data = gr.NodeData.from_arrays(np.eye(2), [1.0, 2.0], [0, 1])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation([(0, 1)], Form()))
    plain = gr.Problem(gr.SquaredLoss(data) + 2.0 * gr.TotalVariation([(0, 1)], gr.SquaredL2()))
    assert problem.solve().objective == pytest.approx(plain.solve().objective, rel=2e-6)
    report = gr.testing.check_penalty(Form())
    assert {each.law for each in report.failures} == {"quadratic"}
    assert "take only that of a gr.AbstractSmoothPenalty" in str(report)


class Short(gr.AbstractPiecewiseLinearLoss):
    """max(0, y - x): slopes -1 and 0."""

    notation = "max(0, %y - %z)"

    def domain(self, y):
        return np.full(y.shape, -1.0), np.zeros(y.shape)


class FallsForEver(gr.Loss):
    """log(1 + exp(-x)), its infimum attained nowhere."""

    def value(self, x, y):
        return np.logaddexp(0.0, -x)

    def gradient(self, x, y):
        return -1.0 / (1.0 + np.exp(x))

    def curvature(self, x, y):
        return 1.0 / (2.0 + np.exp(x) + np.exp(-x))

    def conjugate(self, b, y):
        p = np.clip(-b, 0.0, 1.0)
        entropy = -(special.entr(p) + special.entr(1.0 - p))
        return np.where((b >= -1.0) & (b <= 0.0), entropy, np.inf)

    def cvxpy(self, x, y):
        return cp.logistic(-x)


class FallsSlowly(gr.Loss):
    """(1 + x^2)^(1/2) - x, whose slope is 0 in floats from 1e8 on, by cancellation."""

    def value(self, x, y):
        return np.where(x > 0.0, 1.0 / (np.sqrt(1.0 + x * x) + np.abs(x)), np.sqrt(1.0 + x * x) - x)

    def gradient(self, x, y):
        return x / np.sqrt(1.0 + x * x) - 1.0

    def curvature(self, x, y):
        return (1.0 + x * x) ** -1.5

    def conjugate(self, b, y):
        c = b + 1.0
        return np.where(np.abs(c) <= 1.0, -np.sqrt(np.maximum(1.0 - c * c, 0.0)), np.inf)

    def cvxpy(self, x, y):
        return cp.norm(cp.vstack([np.ones(len(y)), x]), 2, axis=0) - x


def test_a_slope_that_rounding_takes_to_0_reaches_no_infimum():
    data = gr.NodeData.from_arrays(np.ones((3, 1)), [1.0, 2.0, 3.0], [0, 0, 1])
    assert FallsSlowly(data).prices.descent(np.array([1.0, 2.0])).for_ever.all()
    assert not Short(data).prices.descent(np.array([1.0, 2.0])).for_ever.any()


@pytest.mark.parametrize("size", [1.0, 1e4])
@pytest.mark.parametrize(("kind", "status"), [(Short, "certified"), (FallsForEver, "unattained")])
def test_an_own_loss_that_reaches_its_infimum_attains_it(kind, status, size):
    data = gr.NodeData.from_dict({"a": ([[1.0], [1.0]], [size, -3.0 * size]), "b": ([[1.0]], [2.0 * size])})
    loss = kind(data)
    problem = gr.Problem(loss + 0.1 * gr.TotalVariation(gr.Graph.chain(["a", "b"]), gr.L2()))
    assert problem.solve(on_failure="return").status == status
    assert "descent" not in {each.law for each in gr.testing.check_loss(loss).failures}


@pytest.mark.parametrize("seed", range(3))
def test_a_line_of_squares_of_positive_parts_obeys_all_laws(seed):
    data = gr.NodeData.from_arrays(np.ones((8, 1)), 3.0 * np.random.default_rng(seed).normal(size=8), [0, 1] * 4)
    assert gr.testing.check_loss(gr.Loss.from_cvxpy(lambda x, y: cp.square(cp.pos(y - x)), data)).ok


def test_a_formula_that_cancels_far_out_has_bounds_that_are_as_near_as_it_is(monkeypatch):
    """The log-cosh of the page, at targets of 66: its bound holds, and says what a sum of terms of 132 rounds."""
    data = gr.NodeData.from_arrays(np.ones((3, 1)), 66.0 + np.random.default_rng(0).normal(size=3), [0, 1, 2])
    loss = gr.Loss.from_cvxpy(lambda x, y: cp.logistic(2 * (x - y)) - (x - y) - np.log(2.0), data)
    name = "value bound of losses"
    monkeypatch.setattr(losses, "LAWS", {name: losses.LAWS[name]})
    assert gr.testing.check_loss(loss).ok
