"""The prox of piecewise linear losses: by its optimality conditions, by CVXPY, and by what a step relies on."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from factories import thinned
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphreg.errors import MethodError
from graphreg.oracles import boxprox
from graphreg.oracles.boxprox import PiecewiseProx

KINDS = ("quantile", "hinge")
STEPS = (1e-8, 1e-2, 1.0, 1e2, 1e8)
SHAPES = ((1, 1), (1, 4), (9, 1), (5, 20), (30, 5), (200, 10), (500, 60))  # samples, features
TRAITS = (  # of the samples of a node
    (),
    ("integer",),  # and so ties
    ("collinear",),
    ("almost collinear",),
    ("zero column",),
    ("duplicates",),
    ("exact",),  # every residual is 0 at v
    ("integer", "exact"),
    ("integer", "collinear", "zero column", "duplicates"),
    ("duplicates", "exact", "collinear"),
)


@dataclass(frozen=True)
class Case:
    """The samples of g nodes, and where the prox is taken."""

    X: np.ndarray
    shift: np.ndarray
    low: np.ndarray
    high: np.ndarray
    v: np.ndarray

    def prox(self) -> PiecewiseProx:
        return PiecewiseProx(np.arange(len(self.v)), self.X, self.shift, self.low, self.high)

    def take(self, nodes) -> Case:
        return Case(*(each[nodes] for each in (self.X, self.shift, self.low, self.high, self.v)))


def draw(rng, g, m, d, kind="quantile", traits=(), decades=0) -> Case:
    X = rng.normal(size=(g, m, d))
    X[:, :, 0] = 1.0
    w = rng.normal(size=(g, d))
    if "integer" in traits:
        X, w = np.round(X), np.round(w)
    if d > 2 and "collinear" in traits:
        X[:, :, 2] = 2.0 * X[:, :, 1]
    if d > 2 and "almost collinear" in traits:
        X[:, :, 2] = 2.0 * X[:, :, 1] + 1e-8 * rng.normal(size=(g, m))
    if "zero column" in traits:
        X[:, :, d - 1] = 0.0
    half = m // 2
    if "duplicates" in traits:
        X[:, half : 2 * half] = X[:, :half]
    y = np.matmul(X, w[:, :, None])[:, :, 0]
    if "exact" not in traits:
        y = y + rng.standard_t(3, size=(g, m))
    if "integer" in traits:
        y = np.round(y)
    if "duplicates" in traits:
        y[:, half : 2 * half] = y[:, :half]
    v = w if "exact" in traits else w + rng.normal(size=(g, d))
    scale = 10.0 ** rng.uniform(-decades, 0.0, size=(g, m)) / m
    if kind == "quantile":
        return Case(X, -y, -0.3 * scale, 0.7 * scale, v)
    sign = np.where(y > 0, 1.0, -1.0)
    return Case(X, -sign, np.where(sign > 0, -scale, 0.0), np.where(sign > 0, 0.0, scale), v)


def pulled(case: Case, tau):
    """The most that X'a can be, sample by sample, and the rounding of tau X'a: a w below it is 0."""
    force = (np.linalg.norm(case.X, axis=2) * np.maximum(np.abs(case.low), np.abs(case.high))).sum(axis=1)
    return force, 2.0**-52 * tau * force


def conditions(case: Case, tau, w, a) -> float:
    """The largest violation of the optimality conditions, relative to the terms of each; the boxes hold exactly."""
    assert (a >= case.low).all()
    assert (a <= case.high).all()
    norms = np.linalg.norm(case.X, axis=2)
    force, rounding = pulled(case, tau)
    length = np.linalg.norm(w, axis=1) + np.linalg.norm(case.v, axis=1) + rounding
    x = np.einsum("gmd,gd->gm", case.X, w) + case.shift
    wrong = np.maximum(np.where(a < case.high, x, 0.0), np.where(a > case.low, -x, 0.0))
    sign = wrong / (norms * length[:, None] + np.abs(case.shift) + 1e-300)
    off = np.linalg.norm(w - case.v + tau[:, None] * np.einsum("gmd,gm->gd", case.X, a), axis=1)
    return float(max(sign.max(), (off / (length + tau * force + 1e-300)).max()))


def fenchel_young(case: Case, tau, w, a) -> float:
    """sum_r [l_r(x_r) + l_r*(a_r) - a_r x_r], relative to what the terms can be, the largest of all nodes."""
    x = np.einsum("gmd,gd->gm", case.X, w) + case.shift
    residual = (np.maximum(case.low * x, case.high * x) - a * x).sum(axis=1)
    length = np.linalg.norm(w, axis=1) + pulled(case, tau)[1]
    size = np.linalg.norm(case.X, axis=2) * length[:, None] + np.abs(case.shift)
    assert (residual >= 0).all()
    return float((residual / ((np.maximum(-case.low, case.high) * size).sum(axis=1) + 1e-300)).max())


def cold(case: Case, tau):
    prox = case.prox()
    w, memory = prox(case.v, tau, np.zeros_like(case.v), None)
    return prox, w, memory


# ---- the optimum ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("shape", "traits"), thinned(SHAPES, TRAITS, every=4))
def test_the_conditions_hold_on_every_shape(shape, traits):
    """Each shape with every fourth trait; with all of them with ``make test ARGS=--whole``."""
    (m, d), rng = shape, np.random.default_rng(sum(shape))
    for kind in KINDS:
        for decades in (0, 3):
            case = draw(rng, 1 if m > 400 else 3 if m > 100 else 10, m, d, kind, traits, decades)
            for step in STEPS:
                tau = np.full(len(case.v), step)
                prox, w, memory = cold(case, tau)
                a = prox.prices(memory)
                assert conditions(case, tau, w, a) <= 1e-12, (kind, decades, step)
                assert fenchel_young(case, tau, w, a) <= 1e-10, (kind, decades, step)


def test_a_node_at_0_with_nothing_but_ties_has_its_face(monkeypatch):
    """What is left of it in floats, 1e-68, is 0: no search finds less."""
    case, tau = draw(np.random.default_rng(79), 4, 2, 3, "quantile", ["integer", "exact"]), np.geomspace(0.1, 10, 4)
    prox, w, memory = cold(case, tau)
    monkeypatch.setattr(boxprox, "_search", None)
    again, _ = prox(case.v, tau, w, memory)
    np.testing.assert_allclose(again, w, atol=1e-15)


@settings(max_examples=60, deadline=None)
@example(seed=79, m=2, d=3, kind="quantile", traits=["integer", "exact"], decades=0, power=0.0)  # 0, and only ties
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 40),
    d=st.integers(1, 12),
    kind=st.sampled_from(KINDS),
    traits=st.lists(st.sampled_from(["integer", "collinear", "zero column", "duplicates", "exact"]), max_size=4),
    decades=st.integers(0, 3),
    power=st.floats(-8, 8),
)
def test_the_conditions_hold_whatever_is_drawn(seed, m, d, kind, traits, decades, power):
    case = draw(np.random.default_rng(seed), 4, m, d, kind, traits, decades)
    tau = 10.0 ** (power + np.linspace(-1, 1, 4))
    prox, w, memory = cold(case, tau)
    a = prox.prices(memory)
    # Where v is a tie itself and the optimum has prices at an end of their box with a residual of 0, rounding of the
    # residuals shows in the prices: to 1e-11 of their box.
    assert conditions(case, tau, w, a) <= (1e-11 if "exact" in traits else 1e-12)
    assert fenchel_young(case, tau, w, a) <= 1e-10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "d"), [(1, 1), (4, 7), (25, 3), (60, 8)])
def test_cvxpy_agrees(kind, m, d):
    case = draw(np.random.default_rng(m * d), 2, m, d, kind, decades=1)
    for step in (1e-2, 1.0, 30.0):
        _, w, _ = cold(case, np.full(2, step))
        for i in range(2):
            W = cp.Variable(d)
            x = case.X[i] @ W + case.shift[i]
            loss = cp.sum(cp.maximum(cp.multiply(case.low[i], x), cp.multiply(case.high[i], x)))
            problem = cp.Problem(cp.Minimize(loss + cp.sum_squares(W - case.v[i]) / (2 * step)))
            tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
            best = problem.solve(solver=cp.CLARABEL, **tight)
            assert W.value is not None
            np.testing.assert_allclose(w[i], W.value, rtol=1e-5, atol=1e-6)
            x = case.X[i] @ w[i] + case.shift[i]
            value = np.maximum(case.low[i] * x, case.high[i] * x).sum() + ((w[i] - case.v[i]) ** 2).sum() / (2 * step)
            assert value == pytest.approx(best, rel=1e-8, abs=1e-10)


def test_a_median_is_found():
    """One feature, the constant: the prox of sum |w - y_r| / 2 with a long step is the median, on a tie or not."""
    y = np.array([[3.0, 1.0, 7.0, 2.0, 9.0], [4.0, 4.0, 4.0, 1.0, 8.0]])
    prox = PiecewiseProx(np.arange(2), np.ones((2, 5, 1)), -y, np.full((2, 5), -0.5), np.full((2, 5), 0.5))
    w, _ = prox(np.full((2, 1), 100.0), np.full(2, 1e4), np.zeros((2, 1)), None)
    assert w[:, 0].tolist() == [3.0, 4.0]


def test_zeros_come_out_as_zeros():
    """With more free rows than features and all of them through 0, w is 0, and no rounding of anything else."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(20, 30, 5)))
    scale = np.full((20, 30), 1 / 30)
    case = Case(X, np.zeros((20, 30)), -0.3 * scale, 0.7 * scale, np.full((20, 5), 0.01))
    tau = np.full(20, 3.0)
    prox, w, memory = cold(case, tau)
    assert conditions(case, tau, w, prox.prices(memory)) <= 1e-12
    assert (w == 0.0).all()


def test_the_judge_refuses_what_is_wrong():
    case = draw(np.random.default_rng(0), 3, 20, 4)
    tau = np.ones(3)
    prox, w, memory = cold(case, tau)
    a = prox.prices(memory)
    assert conditions(case, tau, w + 1e-9, a) > 1e-11
    free = (a > case.low) & (a < case.high)
    assert free.any()
    assert conditions(case, tau, w, np.where(free, case.high, a)) > 1e-6


def test_where_rounding_decides_the_best_point_comes_back():
    """Near-collinear columns and v on exact ties: the face cannot be told in 16 digits; what comes back is close."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(40):
        case = draw(rng, 10, 9, 4, traits=("integer", "almost collinear", "exact"), decades=1)
        tau = np.full(10, 1.0)
        prox, w, memory = cold(case, tau)
        worst = max(worst, conditions(case, tau, w, prox.prices(memory)))
    assert worst <= 1e-6


# ---- what a step relies on ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("traits", [(), ("integer",), ("duplicates", "collinear")], ids=" ".join)
def test_warm_equals_cold(kind, traits):
    rng = np.random.default_rng(11)
    case = draw(rng, 12, 40, 6, kind, traits, decades=1)
    prox, memory, w = case.prox(), None, np.zeros_like(case.v)
    tau = np.full(12, 3.0)
    for move in (1.0, 0.1, 1e-2, 1e-4, 0.0, 1e-6, 1.0):
        case = Case(case.X, case.shift, case.low, case.high, case.v + move * rng.normal(size=case.v.shape))
        tau = tau * np.exp(0.1 * move * rng.normal(size=12))
        w, memory = prox(case.v, tau, w, memory)
        assert conditions(case, tau, w, prox.prices(memory)) <= 1e-12
        np.testing.assert_allclose(w, cold(case, tau)[1], rtol=0, atol=1e-10)


def test_errors_do_not_pile_up_over_many_rounds():
    rng = np.random.default_rng(5)
    case = draw(rng, 5, 30, 4)
    prox, tau = case.prox(), np.full(5, 5.0)
    w, memory = prox(case.v, tau, case.v, None)
    for _ in range(2000):
        v = case.v + 1e-3 * rng.normal(size=case.v.shape)
        w, memory = prox(v, tau, w, memory)
    assert conditions(Case(case.X, case.shift, case.low, case.high, v), tau, w, prox.prices(memory)) <= 1e-12


def test_a_face_that_still_holds_is_not_searched_for(monkeypatch):
    case = draw(np.random.default_rng(2), 20, 30, 5)
    tau = np.full(20, 10.0)
    prox, w, memory = cold(case, tau)

    def refuse(*_):
        raise AssertionError("searched")

    monkeypatch.setattr(boxprox, "_search", refuse)
    v = case.v * (1 + 1e-9)
    near, kept = prox(v, tau, w, memory)
    assert conditions(Case(case.X, case.shift, case.low, case.high, v), tau, near, prox.prices(kept)) <= 1e-12
    with pytest.raises(AssertionError, match="searched"):
        prox(case.v + 1.0, tau, w, memory)


def test_a_call_can_be_repeated_bit_for_bit():
    rng = np.random.default_rng(4)
    case = draw(rng, 15, 25, 4)
    tau = np.full(15, 2.0)
    prox, w, memory = cold(case, tau)
    v = case.v + 0.05 * rng.normal(size=case.v.shape)
    before = [each.copy() for each in (v, tau, w, *memory)]
    once, after = prox(v, tau, w, memory)
    for mine, was in zip((v, tau, w, *memory), before, strict=True):
        np.testing.assert_array_equal(mine, was)
    restored = tuple(np.frombuffer(each.tobytes()).reshape(each.shape) for each in memory)  # as from a file
    for again, its in (prox(v, tau, w, memory), case.prox()(v, tau, w, restored)):
        np.testing.assert_array_equal(again, once)
        for mine, was in zip(its, after, strict=True):
            np.testing.assert_array_equal(mine, was)


@pytest.mark.parametrize("traits", [(), ("integer",), ("duplicates",)], ids=" ".join)
def test_a_node_does_not_see_who_else_is_in_the_batch(traits):
    rng = np.random.default_rng(6)
    case = draw(rng, 20, 30, 5, traits=traits, decades=2)
    tau = 10.0 ** rng.uniform(-2, 2, size=20)
    prox, w, memory = cold(case, tau)
    v = case.v + 0.1 * rng.normal(size=case.v.shape)
    w2, _ = prox(v, tau, w, memory)
    for nodes in (np.array([7]), np.arange(0, 20, 3)):
        part = case.take(nodes)
        mates, w_part, kept = cold(part, tau[nodes])
        np.testing.assert_allclose(w_part, w[nodes], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mates(v[nodes], tau[nodes], w_part, kept)[0], w2[nodes], rtol=1e-12, atol=1e-12)


def test_padding_changes_nothing_and_has_no_price():
    case = draw(np.random.default_rng(8), 6, 12, 3)
    wider = [
        np.concatenate([each, np.zeros((6, 9, *each.shape[2:]))], axis=1) for each in (case.X, case.low, case.high)
    ]
    anything = np.concatenate([case.shift, np.full((6, 9), 1e3)], axis=1)
    padded = Case(wider[0], anything, wider[1], wider[2], case.v)
    tau = np.full(6, 4.0)
    _, w, _ = cold(case, tau)
    prox, w_padded, memory = cold(padded, tau)
    np.testing.assert_allclose(w_padded, w, rtol=1e-12, atol=1e-12)
    assert (prox.prices(memory)[:, 12:] == 0.0).all()
    np.testing.assert_allclose(prox.curvature(), case.prox().curvature(), rtol=1e-12)


def test_the_curvature_has_the_units_of_one():
    """f(w) -> c f(w / b) has curvature c / b^2: scaling the targets and the losses must do the same to it."""
    case = draw(np.random.default_rng(9), 8, 20, 4)
    curvature = case.prox().curvature()
    assert (curvature > 0).all()
    b, c = 50.0, 3.0
    scaled = Case(case.X, b * case.shift, c / b * case.low, c / b * case.high, case.v)
    np.testing.assert_allclose(scaled.prox().curvature(), c / b**2 * curvature, rtol=1e-12)
    nothing = Case(case.X, case.shift, 0 * case.low, 0 * case.high, case.v)
    assert (nothing.prox().curvature() == 0).all()


def test_an_empty_box_is_refused_by_name():
    case = draw(np.random.default_rng(10), 3, 4, 2)
    low = case.low.copy()
    low[1, 2] = 5.0
    with pytest.raises(MethodError, match="sample 2 of node 11"):
        PiecewiseProx(np.array([10, 11, 12]), case.X, case.shift, low, case.high)


@pytest.mark.parametrize("seed", range(6))
def test_the_bits_of_a_node_depend_on_no_other(seed):
    """Whoever has a part of the nodes finds what whoever has all of them finds: ties in columns of wild scales, at
    which searches have very different lengths."""
    rng = np.random.default_rng(seed)
    g, m, d = 60, 12, 4
    X = rng.standard_normal((g, m, d)) * 10.0 ** rng.uniform(-6, 6, d)
    y = np.round(rng.standard_normal((g, m)))
    tau, v = 10.0 ** rng.uniform(-3, 8, g), rng.standard_normal((g, d))

    def found(some):
        low, high = np.full((len(some), m), -0.3), np.full((len(some), m), 0.7)
        return PiecewiseProx(np.arange(len(some)), X[some], -y[some], low, high)(v[some], tau[some], v[some], None)[0]

    whole = found(np.arange(g))
    for some in (np.arange(0, g, 2), np.arange(7), *np.arange(0, g, 3)[:, None]):
        np.testing.assert_array_equal(found(some), whole[some])
