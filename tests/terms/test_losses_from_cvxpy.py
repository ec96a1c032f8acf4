"""The user's own loss, written in CVXPY."""

from __future__ import annotations

import decimal

import cvxpy as cp
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from graphreg.errors import ConvexityError, DataError, TermError

X = np.random.default_rng(0).normal(size=(4, 8, 2))
Y = X @ np.array([1.0, -1.0]) + 0.3 * np.random.default_rng(1).normal(size=(4, 8))
COUNTS = np.random.default_rng(2).poisson(np.exp(0.5 * Y)).astype(float)


def data(y):
    return gr.NodeData.from_dict({i: (X[i], y[i]) for i in range(4)})


CASES = {
    "SquaredLoss": (lambda x, y: cp.square(x - y) / 2, Y),
    "PoissonLoss": (lambda x, y: cp.exp(x) - cp.multiply(y, x), COUNTS),
    "LogisticLoss": (lambda x, y: cp.logistic(-cp.multiply(y, x)), np.sign(Y)),
    "HuberLoss": (lambda x, y: cp.huber(x - y, 1.0) / 2, Y),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_built_in_loss(name):
    function, y = CASES[name]
    own, built_in = gr.Loss.from_cvxpy(function, data(y), name="own"), getattr(gr, name)(data(y))
    x, targets = np.linspace(-3.0, 3.0, 32), y.ravel()
    for method in ("value", "gradient", "curvature"):
        mine, theirs = (getattr(loss, method)(x, targets) for loss in (own, built_in))
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    b = 0.3 * built_in.gradient(x, targets)
    np.testing.assert_allclose(own.conjugate(b, targets), built_in.conjugate(b, targets), rtol=1e-9, atol=1e-9)
    outside = np.isinf(built_in.conjugate(3.0 * b + 2.0, targets))
    assert np.isinf(own.conjugate(3.0 * b + 2.0, targets))[outside].all()


@pytest.mark.parametrize("name", CASES)
def test_both_routes_bound_the_optimum_of_the_built_in_loss(name):
    function, y = CASES[name]
    graph = 0.2 * gr.TotalVariation(gr.Graph.chain(4), gr.L2()) + 0.01 * gr.NodePenalty(gr.SquaredL2())
    optimum = gr.Problem(getattr(gr, name)(data(y)) + graph).solve()
    for method in (gr.Exact(), gr.PrimalDual()):
        solution = gr.Problem(gr.Loss.from_cvxpy(function, data(y)) + graph).solve(method)
        assert solution.status == "certified"
        assert solution.certificate.dual <= optimum.objective
        assert optimum.certificate.dual <= solution.objective


# Each with its minimum over x of l(x; y), y > 0, in closed form.
WITH_DOMAINS = {
    "exponential": (lambda x, y: cp.multiply(y, x) - cp.log(x), lambda y: 1.0 + np.log(y)),
    "inverse": (lambda x, y: x + cp.multiply(y, cp.inv_pos(x)), lambda y: 2.0 * np.sqrt(y)),
    "barriers": (lambda x, y: -cp.log(x) - cp.log(8.0 - x), lambda y: -np.log(16.0) + 0.0 * y),
    "entropy": (lambda x, y: -cp.entr(x) - cp.multiply(1.0 + np.log(y), x), lambda y: -y),
}
POSITIVE = np.exp(0.5 * Y)


def of_positive_predictors(name, offset):
    """Whose predictors have an intercept."""
    rows = {
        "X": np.hstack([np.ones((32, 1)), X.reshape(32, 2)]),
        "y": POSITIVE.ravel(),
        "node": np.repeat(range(4), 8),
        "offset": np.full(32, offset),
    }
    return gr.Loss.from_cvxpy(WITH_DOMAINS[name][0], gr.NodeData.from_arrays(**rows), name=name)


@pytest.mark.parametrize("name", thinned(WITH_DOMAINS, every=2))
def test_the_laws_hold_with_a_domain(name):
    assert gr.testing.check_loss(of_positive_predictors(name, 1.0)).ok


@pytest.mark.parametrize("name", WITH_DOMAINS)
def test_a_loss_has_a_domain(name):
    """Values outside were no numbers, and neither conjugates nor proxes were right."""
    loss, y = of_positive_predictors(name, 1.0), POSITIVE.ravel()
    np.testing.assert_allclose(loss.conjugate(np.zeros(32), y), -WITH_DOMAINS[name][1](y), rtol=1e-12)
    assert (loss.value(np.full(32, -1e-9), y) == np.inf).all()
    assert (loss.prox(np.full(32, -1e3), 1.0, y) >= 0.0).all()


@pytest.mark.parametrize("method", [gr.Auto(), gr.Exact(), gr.PrimalDual(), gr.ADMM(), gr.InteriorPoint()])
@pytest.mark.parametrize("name", WITH_DOMAINS)
def test_all_methods_stay_in_the_domain(name, method):
    problem = gr.Problem(of_positive_predictors(name, 1.0) + 0.05 * gr.TotalVariation(gr.Graph.chain(4), gr.L1()))
    w, node = cp.Variable((4, 3)), np.repeat(range(4), 8)
    predictor = 1.0 + cp.sum(cp.multiply(np.hstack([np.ones((32, 1)), X.reshape(32, 2)]), w[node]), axis=1)
    by_hand = cp.sum(WITH_DOMAINS[name][0](predictor, POSITIVE.ravel())) / 8 + 0.05 * cp.sum(cp.abs(w[:-1] - w[1:]))
    optimum = cp.Problem(cp.Minimize(by_hand)).solve(solver="CLARABEL")
    solution = problem.solve(method)
    assert solution.status == "certified"
    assert solution.objective == pytest.approx(optimum, rel=2e-6)


def test_methods_begin_inside_the_domain():
    loss = of_positive_predictors("exponential", 0.0)
    problem = gr.Problem(loss + 0.05 * gr.TotalVariation(gr.Graph.chain(4), gr.L1()))
    with pytest.raises(DataError, match=r"predictor of exponential at w = 0 is 0 at the node 0, row 0.* offset="):
        problem.solve()


def test_a_domain_is_not_empty():
    with pytest.raises(TermError, match=r"no predictor .* the loss nowhere is finite for the target "):
        gr.Loss.from_cvxpy(lambda x, y: -cp.log(x - 1) - cp.log(-x), data(Y), name="nowhere")


def entropy(t):
    """t log t, in 40 digits."""
    return t * t.ln() if t else t


@pytest.mark.parametrize("times", [1, 100, 10_000])
@pytest.mark.parametrize("kind", ["counts", "upper end", "classes"])
def test_conjugates_are_bounds_up_to_the_ends_of_their_domains(kind, times):
    """l* is convex: a tangent next to an end, where it is steep, says less than it is there."""
    functions = {
        "counts": lambda x, y: times * cp.exp(x),
        "upper end": lambda x, y: times * cp.logistic(x) - times * x,
        "classes": lambda x, y: times * cp.logistic(-cp.multiply(y, x)),
    }
    own = gr.Loss.from_cvxpy(functions[kind], data(np.sign(Y)))
    shares = [0.0, 1e-300, 1e-20, 1e-14, 9e-14, 2e-13, 1e-9, 0.3]
    sign = 1.0 if kind == "counts" else -1.0
    found = own.conjugate(sign * times * np.array(shares), np.ones(len(shares)))
    with decimal.localcontext() as context:
        context.prec = 40
        for share, value in zip(shares, found, strict=True):
            p = abs(decimal.Decimal(float(times * share)) / times)
            true = times * (entropy(p) - p if kind == "counts" else entropy(p) + entropy(1 - p))
            assert 0 <= decimal.Decimal(float(value)) - true <= times * decimal.Decimal("4e-12")


def test_no_bound_lies_above_an_infimum_far_out():
    none = gr.NodeData.from_dict({i: (np.ones((4, 1)), np.zeros(4)) for i in range(4)})
    own = gr.Loss.from_cvxpy(lambda x, y: cp.exp(x) - cp.multiply(y, x), none)
    problem = gr.Problem(own + 0.2 * gr.TotalVariation(gr.Graph.chain(4), gr.L2()))
    for method in (gr.Exact(), gr.InteriorPoint()):
        assert problem.solve(method, on_failure="return").certificate.dual <= 0.0


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        ("log", TermError, "takes a function of predictors and targets"),
        (lambda x, y: cp.abs(x - y), TermError, "the loss l holds the atom abs, which is not smooth"),
        (
            lambda x, y: cp.square(np.tri(len(y)) @ x - y),
            TermError,
            "holds the atom MulExpression, which is not smooth, or",
        ),
        (lambda x, y: cp.sum(cp.square(x - y)), TermError, r"one value per sample; it returned the shape \(\)"),
        (lambda x, y: cp.log(1 + cp.exp(x)), ConvexityError, "do not show that the loss l is convex"),
        (lambda x, y: cp.square(x - y) + cp.Variable(2, nonneg=True), TermError, "no CVXPY Variable"),
        (lambda x, y: x.nothing, TermError, "cannot be written in CVXPY"),
        (lambda x, y: 1.0, TermError, "it returned 1.0"),
    ],
)
def test_what_is_no_smooth_loss_is_refused(function, error, said):
    with pytest.raises(error, match=said):
        gr.Loss.from_cvxpy(function, data(Y))


def test_a_loss_that_reaches_its_least_value_does_not_fall_for_ever():
    data = gr.NodeData.from_arrays(np.ones((6, 1)), [1, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1])
    squared = gr.Loss.from_cvxpy(lambda x, y: cp.square(cp.pos(1 - cp.multiply(2 * y - 1, x))), data)
    assert gr.testing.check_loss(squared).ok
    assert not squared.prices.descent(squared.targets()).for_ever.any()
    ever = gr.Loss.from_cvxpy(lambda x, y: cp.logistic(-cp.multiply(2 * y - 1, x)), data)
    assert ever.prices.descent(ever.targets()).for_ever.all()


def test_what_is_not_convex_by_the_rules_is_named_with_the_next_step():
    data = gr.NodeData.from_arrays(np.ones((4, 1)), [1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1])
    with pytest.raises(ConvexityError) as error:
        gr.Loss.from_cvxpy(lambda x, y: cp.exp(x) + cp.sqrt(cp.square(x - y) + 1), data)
    assert "power(power(x - [0.5 1. ], 2) + 1, 0.5) is neither convex nor concave by its rules; write it" in str(
        error.value
    )
    with pytest.raises(ConvexityError, match=r"x \* x is cp.square\(x\).*; write it with convex atoms .* from gr.Loss"):
        gr.Loss.from_cvxpy(lambda x, y: cp.multiply(x, x) - y, data)


def test_a_loss_says_how_accurately_it_is_known():
    class Rough(gr.SquaredLoss):
        def conjugate(self, b, y):
            return (1.0 + 1e-6) * super().conjugate(b, y)

    class Known(Rough):
        def accuracy(self):
            return 1e-5

    data = gr.NodeData.from_arrays(np.ones((4, 1)), [1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1])
    laws = "gradient fenchel young"
    assert laws in {each.law for each in gr.testing.check_loss(Rough(data)).failures}
    assert laws not in {each.law for each in gr.testing.check_loss(Known(data)).failures}


def test_a_loss_with_a_kink_is_told_what_to_be_instead():
    """What the message names is that function, and says so."""
    absolute = data(Y)
    with pytest.raises(TermError, match=r"gr.AbstractPiecewiseLinearLoss \(2 \* gr.QuantileLoss\(data, tau=0.5\) is"):
        gr.Loss.from_cvxpy(lambda x, y: cp.abs(x - y), absolute)
    w = np.random.default_rng(3).normal(size=(4, 2))
    named = gr.Problem(2 * gr.QuantileLoss(absolute, tau=0.5))
    assert named.value(w) == pytest.approx(np.abs((X @ w[:, :, None])[:, :, 0] - Y).mean(axis=1).sum())


def test_a_function_of_rows_is_told_the_call_that_works():
    with pytest.raises(
        TermError, match=r"takes NodeData, and no rows; .*gr.Penalty.from_cvxpy\(lambda z: cp.sum\(f\(z\)\)\)"
    ):
        gr.Loss.from_cvxpy(lambda x, y: cp.square(x - y), gr.w.at([0, 1]) - gr.w.at([2, 3]))
    means, y = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(4.0), range(4))), np.array([[0.5], [-1.0]])
    f, rows = cp.square, gr.w.at([0, 1]) - gr.w.at([2, 3])
    named = gr.Problem(means + gr.Penalty.from_cvxpy(lambda z: cp.sum(f(z)))(rows - y))
    w = np.random.default_rng(3).normal(size=(4, 1))
    off = ((w[:2] - w[2:] - y) ** 2).sum()
    assert named.value(w) == pytest.approx(gr.Problem(means).value(w) + off)
