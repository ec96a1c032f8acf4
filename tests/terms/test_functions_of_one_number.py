"""Penalties built of smooth functions of one number, or of a norm: what is recognised, its laws, its numbers."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from scipy.special import factorial, lambertw

import graphreg as gr
from graphreg.reading_cvxpy.examine import values
from graphreg.terms.penalties import AbstractOneSided, AbstractPenalty
from graphreg.terms.penalties.tried import points

own = AbstractPenalty.from_cvxpy

SEPARABLE = {
    "power": lambda z: cp.sum(cp.power(cp.abs(z), 1.5)),
    "cube": lambda z: 3 * cp.sum(cp.power(cp.abs(2 * z), 3)),
    "log cosh": lambda z: cp.sum(cp.logistic(2 * z) - z) - z.size * np.log(2.0),
    "log barrier": lambda z: -cp.sum(cp.log(1 - z / 9) + cp.log(1 + z / 9)),
    "log of a square": lambda z: -cp.sum(cp.log(1 - cp.square(z))),
    "exponential of |z|": lambda z: cp.sum(cp.exp(cp.abs(z)) - 1),
    "largest of |z| and z^2": lambda z: cp.sum(cp.maximum(cp.abs(z), cp.square(z))),
    "fourth power and |z|": lambda z: cp.sum(cp.power(z, 4)) + cp.norm1(z),
    "beyond a dead zone": lambda z: cp.sum(cp.power(cp.pos(cp.abs(z) - 0.1), 3)),
    "steep": lambda z: 1e3 * (cp.sum(cp.logistic(2e3 * z) - 1e3 * z) - z.size * np.log(2.0)),
    "faint": lambda z: 1e-4 * (cp.sum(cp.logistic(2e-3 * z) - 1e-3 * z) - z.size * np.log(2.0)),
}
ONE_SIDED = {
    "exponential of a sum": lambda z: cp.sum(cp.exp(z + cp.square(z)) - z) - z.size,
    "exponential": lambda z: cp.sum(cp.exp(z) - z - 1),
    "entropy": lambda z: cp.sum(-cp.entr(1 + z) - z),
    "power of the positive part": lambda z: cp.sum(cp.power(cp.pos(z), 1.5)),
    "power where it is defined": lambda z: cp.sum(cp.power(z, 1.5)),
}
OF_NORM = {
    "power of norm 2": lambda z: cp.power(cp.norm(z, 2), 1.5),
    "exponential of norm 2": lambda z: cp.exp(cp.norm(z, 2)) - 1,
    "pseudo-Huber": lambda z: cp.norm(cp.hstack([z, np.ones(1)])) - 1,
    "largest of norm and square": lambda z: cp.maximum(cp.norm(z, 2), cp.sum_squares(z)),
    "square of norm 1": lambda z: cp.square(cp.norm1(z)),
    "square of norm inf": lambda z: cp.square(cp.norm_inf(z)),
    "cube of norm 1": lambda z: cp.power(cp.norm1(2 * z), 3),
    "exponential of norm inf": lambda z: cp.exp(cp.norm_inf(z)) - 1,
}
ALL = {**SEPARABLE, **ONE_SIDED, **OF_NORM}
QUICK = ("power", "pseudo-Huber", "exponential of norm inf")


@pytest.mark.parametrize("name", ALL)
def test_it_is_recognised_and_has_the_values_of_the_function(name):
    phi = own(ALL[name]).acting_on(3)
    kind = "OfNorm" if name in OF_NORM else "OneSidedSeparable" if name in ONE_SIDED else "Separable"
    assert type(phi).__name__ == kind
    assert isinstance(phi, AbstractOneSided) == (name in ONE_SIDED)
    z = points(3)
    want = values(ALL[name], False, 3)(z)
    np.testing.assert_allclose(phi.value(z), want, rtol=1e-11, atol=1e-11 if name == "steep" else 1e-14)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.whole) for name in ALL]
)
def test_it_passes_the_check(name):
    report = gr.testing.check_penalty(own(ALL[name], name=name))
    assert report.ok, str(report)


def test_groups_of_coordinates_have_functions_of_their_own():
    phi = own(lambda z: cp.exp(cp.norm(z[:2])) - 1 + cp.power(cp.abs(z[2]), 1.5)).acting_on(3)
    assert type(phi).__name__ == "Blocks"
    np.testing.assert_allclose(phi.value(np.array([[3.0, 4.0, 4.0]])), [np.exp(5.0) - 1.0 + 8.0])


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 30.0])
def test_conjugates_and_proxes_are_those_of_formulas(scale):
    u = scale * np.array([0.3, 0.5, 0.7, 1.0])[:, None]
    bound = np.minimum(u, 1.0 - 1e-9)
    phi = own(SEPARABLE["log cosh"]).acting_on(1)
    want = 0.5 * ((1 + bound) * np.log1p(bound) + (1 - bound) * np.log1p(-bound))[:, 0]
    want = want if scale >= 1e-3 else 0.5 * u[:, 0] ** 2  # the formula cancels below
    excess = phi.conjugate(bound) - want  # of what is added for the rounding of log(1 + exp(2 z)) - z
    assert (excess >= -1e-12 * want).all()
    assert (excess <= 1e-14 + 1e-12 * want).all()
    phi = own(SEPARABLE["exponential of |z|"]).acting_on(1)
    v = 1.0 + 10.0 * u
    want = v - lambertw(np.exp(v)).real  # p + exp(p) = v
    np.testing.assert_allclose(phi.prox(v, 1.0), want, rtol=1e-9, atol=1e-12)
    assert phi.prox(np.array([[0.999]]), 1.0)[0, 0] == 0.0


def test_values_near_zero_are_off_by_the_rounding_of_their_parts_and_bounds_are_not():
    z = np.logspace(-6, -1, 11)[:, None]
    curved = own(ONE_SIDED["exponential of a sum"]).acting_on(1)
    z0 = z[:, 0]
    y = z0 + z0**2  # exp(y) - 1 - z = z^2 + y^2 / 2 + y^3 / 6 + ...
    rest = sum(y**n / factorial(n) for n in range(2, 14))
    barrier = own(SEPARABLE["log barrier"]).acting_on(1)
    for phi, want in ((curved, z0**2 + rest), (barrier, -np.log1p(-((z0 / 9.0) ** 2)))):
        np.testing.assert_allclose(phi.value(z), want, rtol=1e-13, atol=1e-15)
        assert (phi.value_bound(z, 0.0 * z) >= want * (1.0 - 1e-15)).all()


@pytest.mark.parametrize("knot", [0.0, 1e-3])
def test_kinks_count_where_the_rest_cancels(knot):
    def function(z):
        return cp.sum(cp.logistic(2 * z) - z) - z.size * np.log(2.0) + 0.1 * cp.sum(cp.pos(cp.abs(z) - knot))

    phi, z = own(function).acting_on(1), np.geomspace(1e-7, 0.3, 400)[:, None]
    assert type(phi).__name__ == "Separable"
    want = np.log(np.cosh(z[:, 0])) + 0.1 * np.maximum(z[:, 0] - knot, 0.0)
    np.testing.assert_allclose(phi.value(z), want, rtol=1e-9, atol=1e-15)
    u = np.array([[0.05], [0.1004], [0.11]])
    best = phi.prox(1e6 * u, 1e6)
    below = (u * np.hstack([best, 0.999 * best, 1.001 * best])).T - np.array(
        [phi.value(t) for t in (best, 0.999 * best, 1.001 * best)]
    )
    assert (below <= phi.conjugate(u) + 1e-17).all()


def test_a_prox_stays_where_the_function_is_finite():
    phi = own(ONE_SIDED["power where it is defined"]).acting_on(1)
    v = np.array([[-1e6], [-1.0], [-1e-9], [0.0]])
    np.testing.assert_array_equal(phi.prox(v, 1.0), np.zeros((4, 1)))
    phi = own(SEPARABLE["log of a square"]).acting_on(1)
    assert np.isfinite(phi.value(phi.prox(np.array([[1e3], [1e9], [-1e15]]), 1e-3))).all()


def test_a_conjugate_is_infinite_at_the_slope_that_is_never_reached():
    phi = own(SEPARABLE["log cosh"]).acting_on(1)
    assert phi.conjugate(np.array([[1.0], [1.5]])).tolist() == [np.inf, np.inf]
    inside = phi.conjugate(phi.domain.clip(np.array([[1.0]])))
    np.testing.assert_allclose(inside, np.log(2.0), rtol=1e-11)


@pytest.mark.parametrize("name", ["log cosh", "entropy", "largest of |z| and z^2", "exponential of norm 2"])
def test_no_point_is_above_the_conjugate(name):
    phi, rng = own(ALL[name]).acting_on(2), np.random.default_rng(3)
    u = phi.domain.clip(rng.normal(size=(60, 2)) * np.logspace(-6, 2, 60)[:, None])
    top = phi.conjugate(u)
    best = phi.prox(1e6 * u, 1e6)  # close to where it is attained
    for z in (best, 0.999 * best, 1.001 * best, rng.normal(size=(60, 2))):
        below = (u * z).sum(axis=1) - phi.value(z)
        assert (below <= top + 1e-15 * np.abs(u * z).sum(axis=1)).all()
    assert np.isfinite(top).all()


@pytest.mark.parametrize("name", ["log cosh", "square of norm inf", "pseudo-Huber"])
def test_both_routes_agree(name):
    rng = np.random.default_rng(5)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(8, 2)), rng.normal(size=8)) for i in range(6)})
    problem = gr.Problem(gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(nx.cycle_graph(6), own(ALL[name], name=name)))
    exact, primal_dual = problem.solve(gr.Exact()), problem.solve(gr.PrimalDual(), gap=1e-9)
    both = (exact, primal_dual)
    assert [each.status for each in both] == ["certified", "certified"]
    assert max(each.certificate.dual for each in both) <= min(each.certificate.primal for each in both)


def test_coordinates_of_either_kind_are_one_sum():
    phi = own(lambda z: cp.exp(cp.abs(z[0])) - 1 + cp.abs(z[1]) + cp.power(cp.pos(z[2]), 3)).acting_on(3)
    assert type(phi).__name__ == "OneSidedBlocks"
    z = np.array([[1.0, -2.0, 2.0], [-1.0, 0.5, -3.0]])
    np.testing.assert_allclose(phi.value(z), [np.e - 1.0 + 2.0 + 8.0, np.e - 1.0 + 0.5])
    u = (z - phi.prox(z, 1.0)) + 0.0
    p = phi.prox(z, 1.0)
    np.testing.assert_allclose(phi.value(p) + phi.conjugate(u), (p * u).sum(axis=1), rtol=1e-10)
