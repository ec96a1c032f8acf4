"""The p-norms and the norms of Rz, against programmes and on wild rows."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned
from scipy.optimize import linprog, lsq_linear

import graphreg as gr
import graphreg.testing  # pyright: ignore[reportUnusedImport]  (gr.testing)
from graphreg.reading_cvxpy.cone_penalty import MappedNorm
from graphreg.reading_cvxpy.norms import PNorm, ScaledNorm

own = gr.Penalty.from_cvxpy
STEPS = (1e-3, 1.0, 50.0)


def mapped(R, norm):
    """What `own` makes of the norm of Rz, but for its prox."""
    return MappedNorm(lambda z: norm.value(z @ R.T), R, norm)


def differences(k, w=1.0):
    R = np.broadcast_to(w, k - 1)[:, None] * np.diff(np.eye(k), axis=0)
    return own(lambda z: cp.norm1(R @ z)).acting_on(k)


def p_norms():
    return (PNorm(1.5), ScaledNorm(PNorm(3.0), 5.0))


def mapped_norms(k):
    turned = np.linalg.qr(np.random.default_rng(k).normal(size=(k, k)))[0]
    uneven = np.linspace(1.0, 8.0, k)[:, None] * turned
    steps = np.diff(np.eye(k), axis=0)
    for R in (steps, np.linspace(0.5, 5.0, k - 1)[:, None] * steps, np.vstack([steps, np.eye(k)[:1]])):
        yield mapped(R, gr.L1())
    for norm in (gr.L1(), gr.LInf()):
        yield from (mapped(uneven, norm), mapped(uneven[: k - 1], norm))


def wild(k):
    """Rows from 1e-8 to 1e8, ties, zeros, a huge entry beside tiny ones."""
    rng = np.random.default_rng(0)
    signs = np.sign(rng.standard_normal((6, k)))
    huge = 1e-8 * rng.standard_normal((4, k))
    huge[np.arange(4), rng.integers(k, size=4)] = 1e8
    zeros = rng.standard_normal((4, k)) * np.array([1e-8, 1.0, 1.0, 1e8])[:, None]
    zeros[:, 0] = 0.0
    rows = [rng.standard_normal((4, k)) * 10.0**s for s in (-8, -4, 0, 4, 8)]
    mixed = 10.0 ** rng.uniform(-8.0, 8.0, (8, k)) * np.sign(rng.standard_normal((8, k)))
    levels = np.array([1e-8, 1e-3, 0.3, 1.0, 3.0, 1e8])[:, None]
    return np.vstack([*rows, signs * levels, huge, zeros, mixed, np.eye(k), np.zeros((1, k))])


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_prox_is_optimal_to_rounding_on_wild_rows(k):
    v = wild(k)[:-1]
    for phi in p_norms():
        apart = sum(phi.value(v * unit) for unit in np.eye(k))  # of which phi may be a difference
        for step in STEPS:
            p = phi.prox(v, np.full(len(v), step))
            flow = v - p
            size = np.abs(v).max(axis=1)
            outside = np.maximum(phi.domain.gauge(phi.domain.span(flow)) - step, 0.0) / size
            missed = np.abs(step * phi.value(p) - (p * flow).sum(axis=1)) / (size**2 + step * apart)
            assert max(outside.max(), missed.max()) <= 1e-12, (phi, step)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_projection_is_what_the_prox_leaves(k):
    v = wild(k)
    for phi in p_norms():
        for radius in STEPS:
            flow = phi.project_dual(v, radius)
            assert (phi.dual_norm(flow) <= radius * (1.0 + 1e-13)).all(), phi
            off = np.abs(v - flow - phi.prox(v, radius)).max(axis=1)
            assert (off <= 1e-12 * np.abs(v).max(axis=1)).all(), phi


def exact_product(u, z):
    return sum((Fraction(a) * Fraction(b) for a, b in zip(u, z, strict=True)), Fraction(0))


def exact_value(phi, z):
    """The l1 or the maximum norm of Rz at a row of floats, without rounding."""
    each = [abs(exact_product(row, z)) for row in phi.R]
    return sum(each) if isinstance(phi.norm, gr.L1) else max(each)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_gauge_is_not_below_what_any_point_shows_in_exact_numbers(k):
    for phi in mapped_norms(k):
        u = phi.domain.span(wild(k)[::6])
        gauge = phi.domain.gauge(u)
        for z in np.vstack([np.sign(u), np.eye(k), u[:4]]):
            value = exact_value(phi, z)
            for row, g in zip(u, gauge, strict=True):
                short = exact_product(row, z) - value * Fraction(g)  # <u, z> <= phi(z) gauge(u)
                assert short <= Fraction(1, 10**15) * sum(
                    abs(Fraction(a) * Fraction(b)) for a, b in zip(row, z, strict=True)
                )


def test_the_gauge_is_that_of_a_linear_programme():
    """max <u, z> over phi(z) <= 1, by ``|(Rz)_i| <= s_i``."""
    k, phi = 4, differences(4, [1.0, 0.1, 3.0])
    for u in phi.domain.span(np.random.default_rng(0).standard_normal((8, k))):
        extra = len(phi.R)
        rows = [np.hstack([sign * phi.R, -np.eye(extra)]) for sign in (1.0, -1.0)]
        above = np.vstack([*rows, np.r_[np.zeros(k), np.ones(extra)]])
        bounds = [(None, None)] * k + [(0.0, None)] * extra
        found = linprog(np.r_[-u, np.zeros(extra)], above, np.r_[np.zeros(len(above) - 1), 1.0], bounds=bounds)
        assert abs(phi.domain.gauge(u[None])[0] + found.fun) <= 1e-9 * abs(found.fun)


def test_the_prox_of_differences_is_that_of_bounded_least_squares():
    rng = np.random.default_rng(1)
    for k in (3, 9):
        phi, v = differences(k, np.linspace(0.3, 3.0, k - 1)), 3.0 * rng.standard_normal((20, k))
        y = np.array([lsq_linear(phi.R.T, row, (-0.7, 0.7), method="bvls", tol=1e-15).x for row in v])
        np.testing.assert_allclose(phi.prox(v, 0.7), v - y @ phi.R, atol=1e-12)


FUNCTIONS = {
    "largest": lambda z: cp.sum_largest(cp.abs(z), 2),
    "beside": lambda z: cp.norm_inf(z) + 0.5 * cp.norm(z),
    "differences": lambda z: cp.norm1(cp.diff(z)),
    "from the first": lambda z: cp.norm1(cp.diff(z)) + 0.2 * cp.abs(z[0]),
}


@pytest.mark.parametrize(("factor", "name"), thinned([1e-4, 1.0, 1000.0], FUNCTIONS, every=3))
def test_multiples_pass_the_check(name, factor, whole):
    penalty = own(lambda z: factor * FUNCTIONS[name](z))
    gr.testing.check_penalty(penalty, k=(2, 3, 7) if whole else 3).raise_if_failed()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nodes_without_data_and_without_edges_are_certified(name):
    """No float need lie in the row space of A: the flows that are bounded are R'q."""
    rng = np.random.default_rng(0)
    graph = nx.random_regular_graph(3, 8, seed=0)
    graph.add_node(8)
    X = {i: rng.normal(size=(5, 3)) for i in (0, 1, 2, 4, 5, 7, 8)}
    data = gr.NodeData.from_dict({i: (x, x @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=5)) for i, x in X.items()})
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, own(FUNCTIONS[name])))
    exact, run = problem.solve(), problem.solve(gr.PrimalDual(), gap=1e-8, seconds=20)
    assert exact.status == run.status == "certified"
    assert max(exact.certificate.dual, run.certificate.dual) <= min(exact.objective, run.objective)


def test_a_share_of_the_largest_is_that_share():
    z = np.array([[1.0, -4.0, 2.0]])
    for q, value in ((0.5, 2.0), (1, 4.0), (2, 6.0), (3, 7.0)):
        assert own(lambda z, q=q: cp.sum_largest(cp.abs(z), q)).acting_on(3).value(z) == value


def test_other_sizes_are_refused_by_name():
    with pytest.raises(gr.errors.TermError, match="was read on 3 coordinates, and the term has 2"):
        own(FUNCTIONS["differences"]).acting_on(3).check(2)
