"""Second-order cones: the Jordan algebra, the scalings of Nesterov and Todd, and how far a step may go."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from graphreg.methods.interior_point.cones import Scaling, determinant, lengths, max_step, product, quotient, towards

WIDTHS = (1, 2, 3, 5)
DIGITS = 60  # of the exact arithmetic beside which the scalings are held


def inside(rng, k, m=200):
    """Points in the cones, small ones and large ones, with t - ||z|| of the size of t."""
    z = rng.standard_normal((k, m)) * 10.0 ** rng.uniform(-3, 3, m)
    return np.vstack([lengths(z) * (1.0 + rng.uniform(0.05, 2.0, m)), z])


def dense(scaling, k):
    """W as a matrix per cone, (m, 1 + k, 1 + k)."""
    m = scaling.q.shape[1]
    columns = [scaling.apply(np.repeat(unit[:, None], m, axis=1)) for unit in np.eye(1 + k)]
    return np.stack(columns, axis=2).transpose(1, 0, 2)


def largest(a, b):
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


@pytest.fixture(params=WIDTHS)
def k(request):
    return request.param


@pytest.fixture
def rng(k):
    return np.random.default_rng(k)


# ---- the algebra -----------------------------------------------------------------------------------------------------
def test_products_and_quotients_undo_each_other(rng, k):
    x, y = inside(rng, k), rng.standard_normal((1 + k, 200))
    r = product(x, y)
    assert r[0] == pytest.approx((x * y).sum(axis=0))
    assert np.allclose(r[1:], x[0] * y[1:] + y[0] * x[1:])
    assert np.allclose(quotient(x, r, determinant(x)), y, rtol=1e-9, atol=1e-9)
    assert np.allclose(product(x, quotient(x, y, determinant(x))), y, rtol=1e-9, atol=1e-9)


def test_determinants_do_not_cancel_at_the_boundary():
    z = np.array([[3.0], [4.0]])
    for distance in (1e-3, 1e-8, 1e-13):
        t = 5.0 + distance
        exact = (Decimal(t) - 5) * (Decimal(t) + 5)
        assert determinant(np.vstack([[t], z]))[0] == pytest.approx(float(exact), rel=1e-14)


# ---- scalings --------------------------------------------------------------------------------------------------------
def test_a_scaling_maps_both_points_to_one(rng, k):
    s, y = inside(rng, k), inside(rng, k)
    W = Scaling.of(s, y)
    size = np.abs(W.v).max(axis=0)
    for image in (W.apply(y), W.undo(s)):
        assert (np.abs(image - W.v).max(axis=0) <= 1e-10 * size).all()
    assert (W.v * W.v).sum(axis=0) == pytest.approx((s * y).sum(axis=0), rel=1e-10)
    assert (determinant(W.v) > 0).all()
    assert (W.v[0] > 0).all()


def test_a_scaling_is_symmetric_positive_definite_and_keeps_the_cone(rng, k):
    W = Scaling.of(inside(rng, k), inside(rng, k))
    matrix = dense(W, k)
    scale = np.abs(matrix).max(axis=(1, 2))
    assert (np.abs(matrix - matrix.transpose(0, 2, 1)).max(axis=(1, 2)) <= 1e-13 * scale).all()
    assert (np.linalg.eigvalsh(matrix)[:, 0] > 0).all()
    J = np.diag([1.0] + [-1.0] * k)
    for one, eta in zip(matrix, W.eta, strict=True):  # W J W = eta^2 J
        assert np.allclose(one @ J @ one, eta**2 * J, atol=1e-9 * np.abs(one).max() ** 2)


def test_undo_is_the_inverse_of_apply(rng, k):
    W, x = Scaling.of(inside(rng, k), inside(rng, k)), rng.standard_normal((1 + k, 200))
    condition = np.linalg.cond(dense(W, k))
    for there in (W.undo(W.apply(x)), W.apply(W.undo(x))):
        assert (np.abs(there - x).max(axis=0) <= 1e-14 * condition * np.abs(x).max(axis=0)).all()


def test_a_carried_scaling_is_that_of_the_points(rng, k):
    W = Scaling.of(inside(rng, k), inside(rng, k))
    s, y = inside(rng, k), inside(rng, k)  # in scaled coordinates
    moved, anew = W.moved(s, y), Scaling.of(W.apply(s), W.undo(y))
    for name in ("q", "eta", "v"):
        a, b = getattr(moved, name), getattr(anew, name)
        assert (np.abs(a - b) <= 1e-7 * np.abs(b).max(axis=0)).all(), name
    assert np.allclose(moved.mirrored, np.vstack([moved.q[:1], -moved.q[1:]]))


def test_to_stay_is_to_carry_nothing_on(rng, k):
    W = Scaling.of(inside(rng, k), inside(rng, k))
    same = W.moved(W.v, W.v)
    assert np.allclose(same.q, W.q, rtol=1e-9)
    assert np.allclose(same.eta, W.eta, rtol=1e-9)
    assert np.allclose(same.v, W.v, rtol=1e-9, atol=1e-9 * np.abs(W.v).max())


class Exact:
    """The scaling of one cone in decimal arithmetic."""

    def __init__(self, s, y):
        self.s, self.y = s, y
        of_s, of_y = (self.determinant(x).sqrt() for x in (s, y))
        one, two = [a / of_s for a in s], [a / of_y for a in y]
        gamma = ((1 + self.inner(one, two)) / 2).sqrt()
        mean = [(a + b) / (2 * gamma) for a, b in zip(one, self.mirror(two), strict=True)]
        mean[0] += 1
        self.q, self.eta = [a / (2 * mean[0]).sqrt() for a in mean], (of_s / of_y).sqrt()
        self.v = self.apply(y)

    @staticmethod
    def mirror(x):
        return [x[0], *(-a for a in x[1:])]

    @staticmethod
    def inner(x, y):
        return sum((a * b for a, b in zip(x, y, strict=True)), Decimal(0))

    def determinant(self, x):
        return self.inner(x, self.mirror(x))

    def apply(self, x):
        along = 2 * self.inner(self.q, x)
        return [self.eta * (along * a - b) for a, b in zip(self.q, self.mirror(x), strict=True)]

    def undo(self, x):
        along, q = 2 * self.inner(self.mirror(self.q), x), self.mirror(self.q)
        return [(along * a - b) / self.eta for a, b in zip(q, self.mirror(x), strict=True)]


def decimals(x):
    return [Decimal(float(a)) for a in x[:, 0]]


def floats(x):
    return np.array([[float(a)] for a in x])


@pytest.mark.parametrize("seed", range(4))
def test_carried_scalings_stay_accurate_where_points_have_lost_theirs(seed, k):
    """Steps to the boundary, until <s, y> is 1e-20 of |s| |y|, beside decimals of 60 digits."""
    rng = np.random.default_rng([seed, k])
    s, y = (np.vstack([[1.0], 0.1 * rng.uniform(-1, 1, (k, 1))]) for _ in range(2))
    e = rng.standard_normal((k, 1))
    e, up = np.vstack([[0.0], e / np.linalg.norm(e)]), np.vstack([[1.0], np.zeros((k, 1))])
    with localcontext() as context:
        context.prec = DIGITS
        W, exact = Scaling.of(s, y), Exact(decimals(s), decimals(y))
        for _ in range(20):
            one, two = (W.v[0] * (0.55 * up + 0.45 * ahead) for ahead in (e, -e))
            one[1:] += 0.02 * W.v[0] * rng.uniform(-1, 1, (k, 1))
            two[1:] += 0.02 * W.v[0] * rng.uniform(-1, 1, (k, 1))
            exact = Exact(exact.apply(decimals(one)), exact.undo(decimals(two)))
            W = W.moved(one, two)
            assert float(exact.inner(exact.s, exact.y)) == pytest.approx(float(np.vdot(W.v, W.v)), rel=1e-12)
            assert largest(W.q, floats(exact.q)) < 1e-13
            assert largest(W.v, floats(exact.v)) < 1e-15 * (10.0 + np.vdot(W.q, W.q))  # anew it is that squared
            assert float(W.eta[0]) == pytest.approx(float(exact.eta), rel=1e-12)
        assert max(abs(float(a - b)) for a, b in zip(exact.undo(exact.s), exact.v, strict=True)) < 1e-40
        size = float((exact.inner(exact.s, exact.s) * exact.inner(exact.y, exact.y)).sqrt())
        assert float(exact.inner(exact.s, exact.y)) < 1e-18 * size
        with np.errstate(all="ignore"):
            anew = Scaling.of(floats(exact.s), floats(exact.y))
        assert not largest(anew.v, floats(exact.v)) < 1e-1  # what is carried is there no more


# ---- what is left of a cone when its first coordinate is eliminated --------------------------------------------------
def test_reduced_is_the_schur_complement(rng, k):
    W = Scaling.of(inside(rng, k), inside(rng, k))
    b, a, D = W.reduced()
    assert D.shape == (200, k, k)
    for one, b_one, a_one, D_one in zip(dense(W, k), b.T, a, D, strict=True):
        inverse = np.linalg.inv(one)
        H = inverse @ inverse
        schur = H[1:, 1:] - np.outer(H[1:, 0], H[0, 1:]) / H[0, 0]
        tolerance = 1e-13 * np.linalg.cond(one) ** 2
        assert a_one == pytest.approx(H[0, 0], rel=tolerance)
        assert np.abs(b_one - H[1:, 0] / H[0, 0]).max() <= tolerance
        assert np.abs(D_one - schur).max() <= tolerance * np.abs(H).max()
        assert np.linalg.eigvalsh(D_one)[0] > 0


# ---- how far a step may go -------------------------------------------------------------------------------------------
def margin(x):
    return x[0] - lengths(x[1:])


def test_room_ends_at_the_boundary(rng, k):
    x, step = inside(rng, k), rng.standard_normal((1 + k, 200)) * 10.0 ** rng.uniform(-3, 3, 200)
    ended = 0
    for j in range(200):
        one, d = x[:, j : j + 1], step[:, j : j + 1]
        t = max_step(one, d, determinant(one))
        if np.isinf(t):
            assert margin(d)[0] >= -1e-9 * np.abs(d).max()  # the step is in the cone itself
            assert margin(one + 1e6 * d)[0] >= -1e-9 * np.abs(one + 1e6 * d).max()
            continue
        ended += 1
        assert abs(margin(one + t * d)[0]) <= 1e-9 * (np.abs(one) + t * np.abs(d)).max()
        assert margin(one + (1.0 - 1e-6) * t * d)[0] > 0
        assert margin(one + (1.0 + 1e-6) * t * d)[0] < 0
    assert 50 < ended < 200


def test_room_of_many_cones_is_that_of_the_nearest(rng, k):
    x, step = inside(rng, k), rng.standard_normal((1 + k, 200))
    each = [max_step(x[:, [j]], step[:, [j]], determinant(x[:, [j]])) for j in range(200)]
    assert max_step(x, step, determinant(x)) == pytest.approx(min(each), rel=1e-12)
    nothing = np.zeros_like(x)
    assert max_step(x, nothing, determinant(x)) == np.inf
    assert max_step(x, x, determinant(x)) == np.inf
    assert max_step(x, -x, determinant(x)) == pytest.approx(1.0)
    assert max_step(x[:, :0], x[:, :0], np.zeros(0)) == np.inf


def test_towards_moves_eigenvalues_into_the_box(rng, k):
    low, high = 0.5, 3.0
    p = rng.standard_normal((1 + k, 500)) * 10.0 ** rng.uniform(-2, 2, 500)
    p[1:, :5] = 0.0
    step = towards(p, low, high)
    for sign in (-1.0, 1.0):
        size = lengths(p[1:])
        before = p[0] + sign * size
        direction = np.divide(p[1:], size, out=np.zeros_like(p[1:]), where=size > 0)
        after = (p + step)[0] + sign * np.einsum("ij,ij->j", direction, (p + step)[1:])
        wanted = np.maximum(np.clip(before, low, high), before - high)
        assert np.allclose(after, wanted, atol=1e-9)
    centre = np.vstack([[0.5 * (low + high)], np.zeros((k, 1))])
    assert np.allclose(towards(centre, low, high), 0.0)  # what is in the box stays
