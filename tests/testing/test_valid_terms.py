"""Valid terms, written as a user may write them, that the laws must not condemn."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import expit, rel_entr, wrightomega, xlogy

import graphreg as gr
from graphreg.testing import check_loss, check_penalty, losses


def halved(v, off, most):
    """The p in [0, most] at which an increasing function changes its sign."""
    low, high = np.zeros_like(most), np.array(most)
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = off(middle) < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.sign(v) * 0.5 * (low + high)


class Quartic(gr.Penalty):
    """sum z^4 / 4: far from 0 so steep that a short step of its prox leads far away."""

    def value(self, z):
        return (z**4).sum(axis=1) / 4

    def prox(self, v, step):
        t = np.broadcast_to(step, len(v))[:, None]
        return halved(v, lambda p: p + t * p**3 - np.abs(v), np.abs(v))

    def conjugate(self, u):
        return 0.75 * (np.abs(u) ** (4 / 3)).sum(axis=1)

    def cvxpy(self, Z):
        return cp.sum(cp.power(Z, 4), axis=1) / 4


class Insensitive(gr.Penalty):
    """max(||z|| - 1/2, 0): its conjugate ends at ||u|| = 1, where it is not 0."""

    slack = 0.0

    def value(self, z):
        return np.maximum(np.linalg.norm(z, axis=1) - 0.5, 0.0)

    def prox(self, v, step):
        t, r = np.broadcast_to(step, len(v))[:, None], np.linalg.norm(v, axis=1, keepdims=True)
        return v * np.where(r <= 0.5, r, np.maximum(r - t, 0.5)) / np.maximum(r, 1e-300)

    def conjugate(self, u):
        r = np.linalg.norm(u, axis=1)
        return np.where(r <= 1.0 + self.slack, 0.5 * r, np.inf)

    def cvxpy(self, Z):
        return cp.pos(cp.norm(Z, 2, axis=1) - 0.5)


class Cosh(gr.Penalty):
    """sum cosh(1000 z_j) - 1."""

    def value(self, z):
        return 2.0 * (np.sinh(500.0 * z) ** 2).sum(axis=1)

    def prox(self, v, step):
        t = 1e6 * np.broadcast_to(step, len(v))[:, None]
        a = np.abs(1000.0 * v)
        return halved(v, lambda p: p + t * np.sinh(p) - a, np.minimum(a, np.arcsinh(a / t))) / 1000.0

    def conjugate(self, u):
        u = u / 1000.0
        return (u * np.arcsinh(u) - u**2 / (1.0 + np.sqrt(1.0 + u**2))).sum(axis=1)

    def cvxpy(self, Z):
        return cp.sum(cp.exp(1000 * Z) + cp.exp(-1000 * Z) - 2, axis=1) / 2


class Linex(gr.AbstractOneSided):
    """sum exp(z_j) - z_j - 1: beside a slope as huge as that of one coordinate those of others are rounding."""

    def value(self, z):
        return (np.expm1(z) - z).sum(axis=1)

    def prox(self, v, step):
        t = np.broadcast_to(step, len(v))[:, None]
        q = wrightomega(v + t + np.log(t))
        return np.where(q > 1.0, np.log(np.maximum(q, 1.0) / t), v + t - q)

    def conjugate(self, u):
        return np.where((u >= -1.0).all(axis=1), (xlogy(1.0 + u, 1.0 + u) - u).sum(axis=1), np.inf)

    def cvxpy(self, Z):
        return cp.sum(cp.exp(Z) - Z - 1, axis=1)


MAP = np.random.default_rng(5).normal(size=(2, 3))
VALID = {
    "z^4/4": Quartic(),
    "insensitive": Insensitive(),
    "||Mz||": gr.Penalty.from_cvxpy(lambda z: cp.norm(MAP @ z, 2)),
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_penalty_passes(name):
    check_penalty(VALID[name], 3).raise_if_failed()


@pytest.mark.parametrize(("penalty", "k"), [(Cosh(), 1), (Linex(), 1), (Linex(), 3)])
def test_exponentials_have_subgradients(penalty, k):
    assert "FAIL  subgradient" not in str(check_penalty(penalty, k))


def test_a_penalty_by_its_prox_has_a_conjugate_where_it_is_flat_along_a_coordinate():
    """At u_1 = 0 the proximal point method converges slowly."""
    own = gr.Penalty.from_prox(Quartic().value, lambda v, step: Quartic().prox(v, step))
    u = np.array([[0.0, 0.0426, -0.0979], [-8.8e-13, 0.0426, -0.0979]])
    np.testing.assert_allclose(own.conjugate(u), Quartic().conjugate(u), rtol=1e-6)


@pytest.mark.parametrize("slack", [1e-12, 1e-6, 1e-2])
def test_a_tolerance_on_a_domain_is_refused_where_the_conjugate_is_not_0_inside(slack):
    class Loose(Insensitive):
        pass

    Loose.slack = slack
    report = check_penalty(Loose(), 2)
    assert {each.law for each in report.failures} >= {"ends of the domain"}
    assert "finite no further than the slopes" in str(report)


# ---- losses ----------------------------------------------------------------------------------------------------------
def samples(target):
    rng = np.random.default_rng(0)
    return gr.NodeData.from_dict({i: (rng.normal(size=(6, 1)), target(rng.normal(size=6))) for i in range(3)})


def gamma(x, y):
    return cp.multiply(y, cp.exp(-x)) + x


def half_logistic(x, y):
    return 0.5 * cp.logistic(-cp.multiply(y, x))


@pytest.mark.parametrize(("function", "target"), [(gamma, np.exp), (half_logistic, np.sign)])
def test_predictions_that_nobody_wrote_are_not_tried(monkeypatch, function, target):
    few = {name: losses.LAWS[name] for name in ("slopes", "response", "classify")}
    monkeypatch.setattr(losses, "LAWS", few)
    report = check_loss(gr.Loss.from_cvxpy(function, samples(target)))
    report.raise_if_failed()
    assert list(report.untried) == ["response", "classify"]
    assert "response: not tried, no response was given" in str(report)


class NegativeBinomial(gr.AbstractCounts, gr.Loss):
    """(y + 2) log(2 + e^x) - y x: where y = 0 it falls to 2 log 2."""

    def value(self, x, y):
        return (y + 2.0) * np.logaddexp(np.log(2.0), x) - y * x

    def gradient(self, x, y):
        return (y + 2.0) * expit(x - np.log(2.0)) - y

    def curvature(self, x, y):
        t = x - np.log(2.0)
        return (y + 2.0) * expit(t) * expit(-t)

    def conjugate(self, b, y):
        p, q = b + y, 2.0 - b
        inside, n = (p >= 0.0) & (q >= 0.0), y + 2.0
        return np.where(inside, rel_entr(p, n) + rel_entr(q, n) - q * np.log(2.0), np.inf)

    def cvxpy(self, x, y):
        return cp.multiply(y + 2.0, np.log(2.0) + cp.logistic(x - np.log(2.0))) - cp.multiply(y, x)


def test_a_loss_may_fall_to_another_limit_than_0():
    loss = NegativeBinomial(gr.NodeData.from_arrays(np.ones((4, 1)), [0.0, 1.0, 3.0, 8.0], [0, 0, 1, 1]))
    assert "FAIL  remains" not in str(check_loss(loss))


def test_a_response_that_was_written_is_tried(monkeypatch):
    class Wrong(gr.PoissonLoss):
        def response(self, x):
            return x

    monkeypatch.setattr(losses, "LAWS", {name: losses.LAWS[name] for name in ("response", "classify")})
    report = check_loss(Wrong(samples(lambda z: np.round(np.exp(z)))))
    assert [each.law for each in report.failures] == ["response"]
    assert list(report.untried) == ["classify"]


def expectile(x, y):
    return 0.8 * cp.square(cp.neg(x - y)) + 0.2 * cp.square(cp.pos(x - y))


def test_squares_of_both_sides_are_smooth():
    loss = gr.Loss.from_cvxpy(expectile, samples(np.asarray))
    x, y = np.array([-3.0, 0.0, 0.5, 2.0]), np.array([0.0, 0.0, 0.5, -1.0])
    np.testing.assert_allclose(loss.gradient(x, y), [-4.8, 0.0, 0.0, 1.2])
    np.testing.assert_allclose(loss.value(x, y), [7.2, 0.0, 0.0, 1.8])
    np.testing.assert_allclose(loss.conjugate(np.array([1.6, -1.6]), np.zeros(2)), [3.2, 0.8])
    exact = gr.Problem(loss).solve(gr.Exact())
    assert exact.status == "certified"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: cp.pos(x - y),
        lambda x, y: cp.square(cp.pos(x - y) + 1.0),
        lambda x, y: cp.square(cp.maximum(x - y, 1.0)),
        lambda x, y: cp.power(cp.pos(x - y), 1.5),
    ],
)
def test_other_kinks_are_refused(function):
    with pytest.raises(gr.errors.TermError, match="the atom maximum, which is not smooth"):
        gr.Loss.from_cvxpy(function, samples(np.asarray))


@pytest.mark.parametrize(
    ("term", "check"),
    [
        (type("Gauged", (gr.L2,), {"gauge": lambda self, u: np.linalg.norm(u, axis=1)})(), check_penalty),
        (type("Reaching", (gr.HuberLoss,), {"interior": lambda self, y: 0.0 * y}), check_loss),
    ],
    ids=["penalty", "loss"],
)
def test_a_method_that_only_a_domain_is_asked_for_is_named(term, check):
    if check is check_loss:
        rng = np.random.default_rng(0)
        term = term(gr.NodeData.from_dict({k: (rng.normal(size=(9, 2)), rng.normal(size=9)) for k in range(3)}))
    report = check(term)
    assert [failure.law for failure in report.failures] == ["methods of the domain"] * len(report.failures) != []
    assert f"nothing asks {term.called()} for" in str(report)


def test_after_a_wrong_shape_nothing_is_tried():
    """Arrays grow in every law that takes the numbers of the one before: they filled the memory."""

    class Sheet(gr.L1):
        def conjugate(self, u):
            return np.where(np.abs(u) <= 1.0, 0.0, np.inf)

    report = check_penalty(Sheet())
    assert {failure.law for failure in report.failures} == {"shapes and rows"}
    assert "conjugate has the shape (24, 1), expected (24,)" in str(report)
    assert str(report).count("skip") == 1
    assert "laws: not tried, mend shapes and rows first" in str(report)


@pytest.mark.parametrize("unit", [1e6, 1e12])
@pytest.mark.parametrize("loss", [gr.GammaLoss, gr.SquaredLoss])
def test_laws_know_no_units_of_targets(loss, unit):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(np.ones((12, 1)), unit * rng.gamma(2.0, size=12), np.repeat([0, 1, 2], 4))
    assert check_loss(loss(data)).ok


def test_a_report_says_where_rounding_alone_may_break_laws():
    report = check_loss(gr.PoissonLoss(gr.NodeData.from_arrays(np.ones((2, 1)), [1e12, 2e12], [0, 1])))
    assert not report.ok
    assert "The targets are at most 2.0e+12: rounding alone may break laws there." in str(report)
    assert "rounding" not in str(
        check_loss(gr.PoissonLoss(gr.NodeData.from_arrays(np.ones((2, 1)), [1.0, 2.0], [0, 1])))
    )


class Band(gr.AbstractConstraint):
    """|z_1 + z_2| <= 1."""

    def value(self, z):
        return np.where(np.abs(z.sum(axis=1)) <= 1.0, 0.0, np.inf)

    def project(self, v):
        s = v.sum(axis=1, keepdims=True)
        return v - np.where(np.abs(s) > 1.0, s - np.sign(s) * (1.0 - 1e-9), 0.0) / 2.0

    def conjugate(self, u):
        return np.where(u[:, 0] == u[:, 1], np.abs(u[:, 0]), np.inf)

    def cvxpy(self, Z):
        return [cp.abs(cp.sum(Z, axis=1)) <= 1]

    def composed(self):
        return np.ones((1, 2)), gr.Box(-1.0, 1.0)


class HalfSpace(Band, gr.AbstractOneSided):
    """z_1 + z_2 <= 1."""

    def value(self, z):
        return np.where(z.sum(axis=1) <= 1.0, 0.0, np.inf)

    def project(self, v):
        s = v.sum(axis=1, keepdims=True)
        return v - np.where(s > 1.0, s - 1.0 + 1e-9, 0.0) / 2.0

    def conjugate(self, u):
        return np.where((u[:, 0] == u[:, 1]) & (u[:, 0] >= 0.0), u[:, 0], np.inf)

    def cvxpy(self, Z):
        return [cp.sum(Z, axis=1) <= 1]

    def composed(self):
        return np.ones((1, 2)), gr.Box(high=1.0)


class Difference(gr.Penalty):
    """|z_1 - z_2|."""

    def value(self, z):
        return np.abs(z[:, 0] - z[:, 1])

    def prox(self, v, step):
        d = v[:, 0] - v[:, 1]
        m = np.sign(d) * np.minimum(np.broadcast_to(step, len(v)), np.abs(d) / 2.0)
        return v - np.column_stack([m, -m])

    def conjugate(self, u):
        return np.where((u[:, 0] == -u[:, 1]) & (np.abs(u[:, 0]) <= 1.0), 0.0, np.inf)

    def cvxpy(self, Z):
        return cp.abs(Z[:, 0] - Z[:, 1])

    def composed(self):
        return np.array([[1.0, -1.0]]), gr.L1()


@pytest.mark.parametrize("penalty", [Band(), HalfSpace(), Difference()], ids=lambda each: type(each).__name__)
def test_what_is_constant_along_a_direction_passes_where_it_says_what_it_is_of(penalty):
    check_penalty(penalty, k=2).raise_if_failed()


@pytest.mark.parametrize("method", [gr.Exact(), gr.ADMM()], ids=["exact", "admm"])
def test_what_is_constant_along_a_direction_is_certified(method):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 6, 2)), rng.normal(size=(5, 6))
    data = gr.NodeData.from_dict({i: (X[i], y[i]) for i in range(5)})
    found = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(gr.Graph.chain(5), Difference())).solve(method)
    assert found.status == "certified"
    w = cp.Variable((5, 2))
    fit = sum(cp.sum_squares(X[i] @ w[i] - y[i]) / 12 for i in range(5))
    apart = cp.sum(cp.abs((w[1:] - w[:-1]) @ np.array([1.0, -1.0])))
    assert found.objective == pytest.approx(cp.Problem(cp.Minimize(fit + 0.3 * apart)).solve(), rel=1e-5)


def test_a_prox_of_a_cone_programme_is_as_exact_as_a_minimiser_is():
    """Minima are known to 1e-6, so minimisers to 1e-3: a right line failed, its rows solved in another order."""

    def spread(z):
        levels = cp.hstack([0, z[0], z[0] + z[1]])
        return cp.max(levels) - cp.min(levels)

    assert check_penalty(gr.Penalty.from_cvxpy(spread), k=2, seed=0).ok
