"""The user's own penalty, written in CVXPY."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest

import graphreg as gr
from graphreg import L1, L2, LInf, SquaredL2
from graphreg.errors import ConvexityError, ProofError, TermError
from graphreg.terms.penalties import AbstractNorm, AbstractOneSided
from graphreg.terms.penalties.base import AbstractPenalty

own = AbstractPenalty.from_cvxpy
MIX = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]])


def norm3(z):
    return cp.norm(z, 3)


FUNCTIONS = {
    "norm3": norm3,
    "half_square": lambda z: cp.sum_squares(z) / 2,
    "elastic_net": lambda z: cp.norm1(z) + cp.sum_squares(z) / 2,
    "huber": lambda z: cp.sum(cp.huber(z, 0.5)),
    "log_cosh": lambda z: cp.sum(cp.logistic(z) + cp.logistic(-z)) - 2 * z.size * np.log(2),
    "seminorm": lambda z: cp.norm(MIX @ z),
    "dead_zone": lambda z: cp.pos(cp.norm(z) - 0.3),
    "pinball": lambda z: cp.sum(cp.maximum(0.3 * z, -0.7 * z)),
    "positive_part": lambda z: cp.sum(cp.pos(z)),
}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_prox_and_conjugate_agree(name, rng):
    penalty = own(FUNCTIONS[name])
    v = rng.normal(size=(12, 3)) * np.logspace(-2, 2, 12)[:, None]
    v[0], v[1, 1:] = 0.0, 0.0
    step = rng.uniform(0.2, 3.0, size=12)
    p = penalty.prox(v, step)
    u = penalty.domain.clip((v - p) / step[:, None])
    residual = penalty.value(p) + penalty.conjugate(u) - (p * u).sum(axis=1)
    assert np.all(residual >= -1e-13)
    assert np.all(residual <= 5e-6 * (1.0 + np.abs(p * u).sum(axis=1) + np.abs(v).max(axis=1)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_conjugate_is_never_too_small(name, rng):
    penalty = own(FUNCTIONS[name])
    for far in (0.0, 1.0, 1e3, 1e6):
        u = rng.normal(size=(20, 3)) * rng.choice([0.1, 1.0, 10.0], size=(20, 1))
        z = rng.normal(size=(20, 3)) + far * u
        residual = penalty.value(z) + penalty.conjugate(u) - (z * u).sum(axis=1)
        assert np.all(residual >= -1e-12 * np.abs(z * u).sum(axis=1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_clip_and_reach_end_in_the_domain(name, rng):
    penalty = own(FUNCTIONS[name])
    end = 20.0 * rng.normal(size=(10, 3))
    assert np.isfinite(penalty.conjugate(penalty.domain.clip(end))).all()
    start = penalty.domain.clip(np.tile(0.9 * penalty.domain.interior(3), (10, 1)))
    t = penalty.domain.step_to_boundary(start, end)
    assert np.all((t >= 0) & (t <= 1))
    assert np.isfinite(penalty.conjugate(start + t[:, None] * (end - start))).all()


@pytest.mark.parametrize(
    ("function", "closed"),
    [
        (lambda z: cp.norm(z, 2), L2()),
        (lambda z: cp.norm(z, 1), L1()),
        (lambda z: cp.norm(z, "inf"), LInf()),
        (lambda z: cp.sum_squares(z) / 2, SquaredL2()),
    ],
)
def test_equals_the_closed_form(function, closed, rng):
    penalty = own(function)
    z = rng.normal(size=(10, 4))
    np.testing.assert_allclose(penalty.value(z), closed.value(z), rtol=1e-12)
    np.testing.assert_allclose(penalty.prox(z, 0.8), closed.prox(z, 0.8), atol=1e-5)
    np.testing.assert_allclose(penalty.domain.gauge(z), closed.domain.gauge(z), rtol=1e-7)
    u = closed.domain.clip(z) * (0.99 if isinstance(closed, AbstractNorm) else 1.0)
    np.testing.assert_allclose(penalty.conjugate(u), closed.conjugate(u), rtol=1e-8)
    assert np.all(penalty.conjugate(u) >= closed.conjugate(u))


def test_rows_at_once_equal_rows_one_by_one(rng):
    one = own(lambda z: cp.norm(z) + cp.norm1(z))
    stacked = own(lambda Z: cp.norm(Z, axis=1) + cp.norm1(Z, axis=1), rows=True)
    z = rng.normal(size=(6, 3))
    np.testing.assert_allclose(stacked.value(z), one.value(z), rtol=1e-12)
    np.testing.assert_allclose(stacked.prox(z, 0.5), one.prox(z, 0.5), atol=1e-8)
    np.testing.assert_array_equal(stacked.conjugate(z), one.conjugate(z))
    Z = cp.Constant(z)
    for penalty in (one, stacked):
        expression = penalty.cvxpy(Z)
        assert expression.shape == (6,)
        np.testing.assert_allclose(expression.value, penalty.value(z), rtol=1e-12)


def test_what_phi_ignores_carries_no_flow(rng):
    penalty = own(FUNCTIONS["seminorm"]).acting_on(3)
    ignored = np.linalg.svd(MIX)[2][2]
    assert np.isinf(penalty.conjugate(ignored[None]))[0]
    flow = penalty.domain.conduct(np.ones((5, 3)), rng.normal(size=(5, 3)))
    np.testing.assert_allclose(flow @ ignored, 0.0, atol=1e-14)
    cone = penalty.domain.recession(3)
    assert cone is not None
    assert cone.equations is not None
    np.testing.assert_allclose(cone.equations @ ignored, 0.0, atol=1e-14)


def test_a_penalty_that_is_not_even_is_one_sided():
    assert isinstance(own(FUNCTIONS["pinball"]), AbstractOneSided)
    assert not isinstance(own(norm3), AbstractOneSided)


def test_a_function_for_one_size_only():
    penalty = own(FUNCTIONS["seminorm"], name="mix")
    penalty.check(3)
    with pytest.raises(TermError, match="mix cannot act on 4 coordinates"):
        penalty.check(4)


@pytest.mark.parametrize(
    ("function", "guilty"),
    [
        (lambda z: cp.sum(cp.sqrt(cp.abs(z))), r"abs\(z\), 0.5\) is neither convex nor concave"),
        (lambda z: cp.sum(cp.log(1 + cp.square(z))), "nor is it: halfway between a = .* the mean of its values"),
        (lambda z: cp.sqrt(1e-2 + cp.sum_squares(z)) - 0.1, "write it with convex atoms"),
        (lambda z: cp.norm1(z) - cp.sum_squares(z), r"-\(sum_squares\(z\)\) is concave"),
        (lambda z: cp.norm1(z) + cp.log(cp.norm(z) + 1), r"log\(.*\) is neither"),
        (lambda z: cp.sum(cp.multiply(z, z)), r"is cp.square\(z\), which the rules know"),
        (lambda z: cp.sum(cp.multiply(z, z + 1)), "is a product of unknowns, which is not convex"),
    ],
)
def test_what_is_not_convex_is_named(function, guilty):
    with pytest.raises(ConvexityError, match=guilty):
        own(function)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (cp.abs, "a scalar; it returned the shape"),
        (lambda z: [cp.norm(z) <= 1], "AbstractConstraint"),
        (lambda z: 1.0, "must return a CVXPY expression"),
        (lambda z: cp.norm(z) + 1, "must be 0 at z = 0; of 3 numbers it is 1; subtract"),
        (lambda z: -cp.sum(cp.log(z)), "it is inf; where it is smallest at a"),
        (cp.sum, "must not be negative"),
        (lambda z: cp.norm(z) + cp.Variable(nonneg=True), "of its own"),
        (lambda z: cp.Parameter(nonneg=True) * cp.norm(z), "of its own"),
    ],
)
def test_what_is_no_penalty_is_refused(function, message):
    with pytest.raises(TermError, match=message):
        own(function)


def test_a_penalty_about_another_point_is_told_what_to_write():
    """And what is told is taken, and is the model that was meant."""
    for constant in (0.0, 3.0**0.5):
        with pytest.raises(TermError, match=r"write phi\(z \+ a\) without the constant, and give center=a"):
            own(lambda z, constant=constant: cp.norm(z - np.ones(z.shape[0])) - constant)
    a, y = np.array([1.0, 1.0]), np.array([[0.2, 0.5], [3.0, 1.0]])
    data = gr.NodeData.from_arrays(None, y, [0, 1])
    about = gr.Penalty.from_cvxpy(lambda z: cp.norm((z + a) - a))
    problem = gr.Problem(gr.MeanLoss(data) + gr.NodePenalty(about, center=a))
    w = np.array([[0.3, 0.1], [2.0, 4.0]])
    meant = ((w - y) ** 2).sum() / 2 + np.linalg.norm(w - a, axis=1).sum()
    assert problem.value(w) == pytest.approx(meant)
    assert problem.solve(gr.Exact()).status == "certified"


def test_what_cvxpy_itself_refuses_is_passed_on():
    with pytest.raises(TermError, match="axis parameter is only supported for p=2"):
        own(lambda Z: cp.norm(Z, 3, axis=1), rows=True)


def test_rows_must_be_independent():
    with pytest.raises(TermError, match="treat each row by itself"):
        own(lambda Z: cp.sum(cp.abs(Z), axis=1) + cp.norm(Z, "fro"), rows=True)
    with pytest.raises(TermError, match="one value per row"):
        own(lambda Z: cp.sum(cp.abs(Z)), rows=True)


def test_what_is_no_function_is_refused():
    with pytest.raises(TermError, match="takes a function"):
        own("norm")


def test_it_prints():
    assert repr(own(norm3)) == "CvxpyPenalty(norm3)"
    assert repr(own(cp.norm, name="mine")) == "CvxpyPenalty(mine)"
    norm = own(norm3).notation
    assert norm.value.startswith("norm3(%z) where norm3(z) = norm(z, 3)")
    assert norm.domain == "norm3^o(%u) <= %c where norm3^o(u) = max over norm3(z) <= 1 of <u, z>"
    smooth = own(lambda z: cp.log_sum_exp(cp.hstack([z, -z])) - np.log(2.0 * z.size)).notation
    assert smooth.conjugate.startswith("%c phi*(%u / %c) where phi*(u) = ")
    assert own(cp.norm).notation == L2().notation


def test_a_function_that_works_the_other_way_is_told_the_option():
    with pytest.raises(TermError, match=r"axis 1 is out of bounds.*pass rows=True"):
        gr.Penalty.from_cvxpy(lambda Z: cp.norm1(Z, axis=1))
    with pytest.raises(TermError, match=r"axis 7 is out of bounds[^;]*$"):
        gr.Penalty.from_cvxpy(lambda Z: cp.norm1(Z, axis=7))


# ---- how it is printed -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "formula", "way"),
    [
        (lambda z: cp.norm(z) + 0.5 * cp.norm1(z), "norm(z, 2) + 0.5 * norm1(z)", "in closed form"),
        (lambda z: cp.sum(cp.huber(z, 0.5)), "sum(huber(z, 0.5))", "in closed form"),
        (lambda z: cp.maximum(cp.norm(z) - 0.1, 0), "maximum(norm(z, 2) - 0.1, 0)", "in closed form"),
        (lambda z: cp.norm1(z) + 2 * cp.sum_squares(z), "norm1(z) + 2 * sum_squares(z)", "in closed form"),
        (lambda z: cp.sum(cp.logistic(2 * z) - z) - 3 * np.log(2), None, "in closed form"),
        (lambda z: cp.norm1(cp.diff(z)), "norm1(z[1:3] - z[0:2])", "by projected gradients"),
        (lambda z: cp.sum_largest(cp.abs(z), 2), "sum_largest(abs(z), 2)", "by cone programmes"),
    ],
)
def test_what_was_recognised_is_printed_as_a_user_writes_it(function, formula, way):
    acting = own(function).acting_on(3)
    said = repr(acting)
    assert formula is None or f": {formula} of 3 numbers, {way}" in said
    assert said.endswith("; proofs can state it>" if acting.parts() else "; no proof can state it>")
    assert way in said
    assert not re.search(r"Approx|Promote|None|array|object at", said), said


def test_a_name_with_a_space_is_told_below_the_formula():
    data = gr.NodeData.from_arrays(np.ones((4, 2)), np.arange(4.0), [0, 0, 1, 1])
    group = own(lambda z: cp.norm(z) + 0.5 * cp.norm1(z), name="sparse group")
    loss = gr.Loss.from_cvxpy(lambda x, y: cp.logistic(2 * (x - y)) - (x - y), data, name="log cosh")
    said = str(gr.Problem(loss + gr.TotalVariation(gr.Graph.chain(2), group)))
    assert "\n      with log cosh(x; y) = logistic(2 * (x - y)) - (x - y)\n" in said
    assert "\n      with sparse group(z) = norm(z, 2) + 0.5 * norm1(z)\n" in said
    of_numbers = gr.Loss.from_cvxpy(lambda x, y: cp.square(x - np.log1p(y)), data)  # no symbol has a logarithm of numpy
    assert " l(x_r'w_i; y_r)\n" in str(gr.Problem(of_numbers + gr.TotalVariation(gr.Graph.chain(2), group)))


@pytest.mark.parametrize(
    "function", [cp.norm, lambda z: 2 * cp.norm(z), lambda z: cp.norm(z, 3), lambda z: 2 * cp.norm1(z)]
)
def test_what_it_acts_as_says_whether_a_proof_can_state_it(function):
    data = gr.NodeData.from_arrays(np.ones((2, 2)), [0.0, 1.0], [0, 1])
    acting = own(function).acting_on(2)
    try:
        gr.Problem(gr.SquaredLoss(data) + own(function)(gr.w)).hash()
    except ProofError:
        assert "; no proof can state it" in repr(acting)
    else:
        assert "no proof" not in repr(acting)
