"""Domains of CVXPY functions hold with zero tolerance, and what is evaluated to a tolerance is refused by its name."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize
from factories import thinned

import graphreg as gr
from graphreg.errors import TermError
from graphreg.terms.penalties import AbstractPenalty

own = AbstractPenalty.from_cvxpy
FAR = 1e6

# Each with the interval of t at which it is finite along (t, 0).
BOUNDED = {
    "log barrier": (lambda z: -cp.sum(cp.log(1 - z) + cp.log(1 + z)), -1.0, 1.0, False),
    "inverse": (lambda z: cp.sum(cp.inv_pos(1 - z) + cp.inv_pos(1 + z)) - 2 * z.size, -1.0, 1.0, False),
    "square roots": (lambda z: 2 * z.size - cp.sum(cp.sqrt(1 - z) + cp.sqrt(1 + z)), -1.0, 1.0, True),
    "powers": (lambda z: cp.sum(cp.power(1 + z, 1.5) + cp.power(1 - z, 1.5)) - 2 * z.size, -1.0, 1.0, True),
    "cubes": (lambda z: cp.sum(cp.power(1 + z, 3)) - z.size - 3 * cp.sum(z), -1.0, np.inf, True),
    "power -2": (lambda z: cp.sum(cp.power(1 + z, -2)) - z.size + 2 * cp.sum(z), -1.0, np.inf, False),
    "kl_div": (lambda z: cp.sum(cp.kl_div(1 + z, 1)), -1.0, np.inf, True),
    "entropy": (lambda z: cp.norm1(z) - cp.sum(cp.entr(1 + z)) - cp.sum(z), -1.0, np.inf, True),
    "two entropies": (lambda z: cp.sum(cp.rel_entr(1 + z, 1 - z) + cp.rel_entr(1 - z, 1 + z)), -1.0, 1.0, False),
    "quad over lin": (lambda z: cp.quad_over_lin(z, 1 - cp.max(z)), -np.inf, 1.0, False),
    "log det": (lambda z: cp.sum(z) - cp.log_det(np.eye(z.size) + cp.diag(z)), -1.0, np.inf, False),
}


def along(t):
    t = np.atleast_1d(np.asarray(t, dtype=float))
    return np.column_stack([t, np.zeros(len(t))])


@pytest.mark.parametrize("name", BOUNDED)
def test_a_value_is_infinite_outside_with_zero_tolerance(name):
    function, low, high, closed = BOUNDED[name]
    penalty = own(function)
    for end, outward in ((low, -1.0), (high, 1.0)):
        if np.isfinite(end):
            beyond = end + outward * np.array([2.3e-16, 1e-12, 1e-6, 5e-4, 0.1, 3.0, 1e6])
            assert np.isposinf(penalty.value(along(beyond))).all()
            assert np.isfinite(penalty.value(along(end - outward * np.array([1e-9, 1e-3, 0.3])))).all()
            assert np.isfinite(penalty.value(along(end)))[0] == closed
    assert np.isposinf(penalty.value(along(np.nan)))[0]


@pytest.mark.parametrize("name", BOUNDED)
def test_residuals_are_never_negative(name):
    """With values in the domain alone, however near its end: a conjugate that is too small fabricates certificates."""
    function, low, high, _ = BOUNDED[name]
    penalty = own(function)
    rng = np.random.default_rng(0)
    z = rng.uniform(max(low, -3.0), min(high, 3.0), size=(24, 2))
    for end, inward in ((low, 1.0), (high, -1.0)):
        if np.isfinite(end):
            z = np.vstack([z, along(end + inward * np.array([0.0, 1e-12, 1e-6]))])
    u = rng.standard_normal((len(z), 2)) * rng.choice([0.1, 1.0, 20.0], size=(len(z), 1))
    value, conjugate = penalty.value(z), penalty.conjugate(u)
    residual = value[:, None] + conjugate[None] - z @ u.T
    assert (residual >= -1e-12 * (1.0 + np.abs(z @ u.T)))[np.isfinite(value)].all()


@pytest.mark.parametrize("name", ["log barrier", "inverse", "kl_div", "power -2"])
def test_all_rows_at_once(name):
    function, low, _, _ = BOUNDED[name]
    together = own(lambda Z: cp.sum(_rowwise(name, Z), axis=1), rows=True)
    z = np.vstack([along([0.0, 0.4, low - 1e-12, low - 0.5]), [[0.3, low - 1e-9]]])
    np.testing.assert_allclose(together.value(z), own(function).value(z), rtol=1e-12)
    assert np.isinf(together.value(z)).tolist() == [False, False, True, True, True]


def _rowwise(name, Z):
    return {
        "log barrier": lambda: -cp.log(1 - Z) - cp.log(1 + Z),
        "inverse": lambda: cp.inv_pos(1 - Z) + cp.inv_pos(1 + Z) - 2,
        "kl_div": lambda: cp.kl_div(1 + Z, 1),
        "power -2": lambda: cp.power(1 + Z, -2) - 1 + 2 * Z,
    }[name]()


# ---- a domain that no sample of rows sees ----------------------------------------------------------------------------
DISTANT = {
    "barrier": lambda z: cp.norm1(z) - 1e-13 * cp.sum(cp.log(1 - z / FAR) + cp.log(1 + z / FAR)),
    "inverse": lambda z: cp.norm1(z) + 1e-16 * (cp.inv_pos(1 - cp.norm_inf(z) / FAR) - 1),
    "kink": lambda z: cp.norm1(z) + cp.pos(cp.norm_inf(z) - FAR),
}


@pytest.mark.parametrize("name", DISTANT)
def test_what_looks_homogeneous_may_end_far_out(name):
    """phi* is no indicator then: sup over |z_1| < 1e6 of 2 z_1 - |z_1| is 1e6, and not 0."""
    penalty = own(DISTANT[name])
    at = {"kink": 2.0 * FAR}.get(name, 0.999 * FAR)
    residual = penalty.value(along(at)) + penalty.conjugate(along(2.0)) - 2.0 * at
    assert residual[0] >= 0.0


# ---- refusals --------------------------------------------------------------------------------------------------------
REFUSED = {
    "a box": (lambda z: cp.norm1(z) + indicator([z <= 1, z >= -1]), "Indicator"),
    "a ball in a maximum": (lambda z: cp.maximum(cp.norm(z), indicator([cp.norm(z) <= 1])), "Indicator"),
    "an equality": (lambda z: cp.sum_squares(z) + indicator([z[0] == 0]), "Indicator"),
    "a small tolerance": (lambda z: cp.norm1(z) + indicator([z >= 0], err_tol=1e-12), "Indicator"),
    "alone": (lambda z: indicator([z >= 0]), "Indicator"),
    "an exponent": (lambda z: cp.norm(z, 3.14159265), "PnormApprox"),
    "an exponent near 1": (lambda z: cp.power(cp.norm(z), 1.0000001), "PowerApprox"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_known_to_a_tolerance_is_refused_by_its_name(name):
    function, guilty = REFUSED[name]
    with pytest.raises(TermError, match=guilty):
        own(function)


def test_a_solver_within_a_function_is_refused():
    def function(z):
        t = cp.Variable(nonneg=True)
        return partial_optimize(cp.Problem(cp.Minimize(t), [cp.norm(z) <= t]), [t], [z])

    with pytest.raises(TermError, match=r"PartialProblem|of its own"):
        own(function)


def test_exponents_that_are_fractions_are_taken():
    for p in (1.5, 1.25, 3, 2.5):
        assert np.isfinite(own(lambda z, p=p: cp.norm(z, p)).value(along(1.0)))[0]


# ---- certificates ----------------------------------------------------------------------------------------------------
def terms(rng):
    """A random sum of atoms with and without a domain."""
    names = list(BOUNDED)
    chosen = rng.choice(names, size=int(rng.integers(1, 3)), replace=False)
    more = [cp.norm1, cp.norm, cp.sum_squares][int(rng.integers(3))]
    factors = rng.uniform(0.1, 2.0, size=len(chosen) + 1)

    def function(z):
        return sum((c * BOUNDED[name][0](z) for c, name in zip(factors, chosen, strict=False)), factors[-1] * more(z))

    return function


@pytest.mark.parametrize("seed", thinned(range(5), every=2))
def test_the_bounds_hold_whatever_the_domain(seed):
    """Lower bound <= CVXPY's own optimum <= upper bound, to the accuracy of the latter."""
    rng = np.random.default_rng(seed)
    function = terms(rng)
    X, y = rng.standard_normal((8, 2)), 3.0 * rng.standard_normal(8)
    data = gr.NodeData.from_arrays(X, y, list("aaaabbbb"))
    model = gr.SquaredLoss(data, scale="sum") + gr.NodePenalty(own(function))
    model += 0.2 * gr.TotalVariation(nx.path_graph(["a", "b"]), gr.L2())
    certificate = gr.Problem(model).solve(on_failure="return", seconds=20).certificate
    w = [cp.Variable(2), cp.Variable(2)]
    fit = sum(cp.sum_squares(X[4 * i : 4 * i + 4] @ w[i] - y[4 * i : 4 * i + 4]) / 2 for i in range(2))
    whole = cp.Problem(cp.Minimize(fit + function(w[0]) + function(w[1]) + 0.2 * cp.norm(w[0] - w[1])))
    optimum = whole.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9)
    assert certificate.dual <= certificate.primal
    assert certificate.dual <= optimum + 1e-6 * (1.0 + abs(optimum))
    assert certificate.primal >= optimum - 1e-6 * (1.0 + abs(optimum))
    assert certificate.relative_gap < 1e-5
