"""The k-largest norm, a norm beside the Euclidean one, and the l1 norm of Az, against programmes and on wild rows."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

import graphreg as gr
import graphreg.testing  # pyright: ignore[reportUnusedImport]  (gr.testing)
from graphreg.reading_cvxpy import analysis_l1
from graphreg.reading_cvxpy.analysis_l1 import AnalysisL1, AnalysisNorm
from graphreg.reading_cvxpy.norms import EllipsoidNorm, KLargestNorm, NormBesideL2, PNorm, ScaledNorm
from graphreg.terms.penalties import AbstractNorm

own = gr.Penalty.from_cvxpy
STEPS = (1e-3, 1.0, 50.0)


def differences(k, w=1.0):
    return AnalysisL1(np.diff(np.eye(k), axis=0), np.broadcast_to(w, k - 1))


def cases(k):
    rng = np.random.default_rng(k)
    yield from (KLargestNorm(q) for q in (1.2, 2.0))
    for c in (1e-4, 0.5, 1e3):
        yield NormBesideL2(gr.LInf(), c)
        yield NormBesideL2(ScaledNorm(KLargestNorm(2.0), 3.0), c)
        yield NormBesideL2(PNorm(3.0), c)
        yield NormBesideL2(EllipsoidNorm(rng.normal(size=(k, k))), c)
    yield from (differences(k), differences(k, np.linspace(0.1, 10.0, k - 1)))
    yield AnalysisL1(rng.normal(size=(max(1, k - 2), k)), np.ones(max(1, k - 2)))
    yield AnalysisNorm(np.vstack([np.diff(np.eye(k), axis=0), np.eye(k)[:1]]), np.linspace(0.5, 2.0, k))


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
    for phi in cases(k):
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
    for phi in cases(k):
        if isinstance(phi, AbstractNorm):
            for radius in STEPS:
                flow = phi.project_dual(v, radius)
                assert (phi.dual_norm(flow) <= radius * (1.0 + 1e-13)).all(), phi
                off = np.abs(v - flow - phi.prox(v, radius)).max(axis=1)
                assert (off <= 1e-12 * np.abs(v).max(axis=1)).all(), phi


def test_the_flow_keeps_its_digits_beside_a_long_row():
    phi, r = KLargestNorm(2.0), 1.0
    flow = phi.project_dual(np.array([[1e16, 1e16, 1.5e16, 3.0], [1e9 + 0.25, 1e9, -2e9, 1.0]]), r)
    np.testing.assert_allclose(flow, [[0.5, 0.5, 1.0, 0.0], [0.625, 0.375, -1.0, 0.0]], rtol=1e-15)
    ball = gr.LInf().project_dual(np.array([[1e16, 1e16, 3.0], [1e9 + 0.25, 1e9, 1.0]]), r)
    np.testing.assert_allclose(ball, [[0.5, 0.5, 0.0], [0.625, 0.375, 0.0]], rtol=1e-15)


def exact_product(u, z):
    return sum((Fraction(a) * Fraction(b) for a, b in zip(u, z, strict=True)), Fraction(0))


def exact_value(phi, z):
    """phi at a row of floats, without rounding; for those that are polyhedral."""
    if isinstance(phi, KLargestNorm):
        size = sorted((abs(Fraction(x)) for x in z), reverse=True)
        share = [min(max(Fraction(phi.q) - j, Fraction(0)), Fraction(1)) for j in range(len(z))]
        return sum(a * b for a, b in zip(size, share, strict=True))
    return sum(abs(exact_product(row, z)) for row in phi.scaled)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_gauge_is_not_below_what_any_point_shows_in_exact_numbers(k):
    for phi in cases(k):
        if not isinstance(phi, (KLargestNorm, AnalysisL1, AnalysisNorm)):
            continue
        u = phi.domain.span(wild(k)[::6])
        gauge = phi.domain.gauge(u)
        for z in np.vstack([np.sign(u), np.eye(k), u[:4], phi.prox(u, 1.0)]):
            value = exact_value(phi, z)
            for row, g in zip(u, gauge, strict=True):
                short = exact_product(row, z) - value * Fraction(g)  # <u, z> <= phi(z) gauge(u)
                assert short <= Fraction(1, 10**15) * sum(
                    abs(Fraction(a) * Fraction(b)) for a, b in zip(row, z, strict=True)
                )


@pytest.mark.parametrize("phi", [KLargestNorm(2.0), differences(4, [1.0, 0.1, 30.0])], ids=["largest", "differences"])
def test_the_gauge_is_that_of_a_linear_programme(phi):
    """max <u, z> over phi(z) <= 1: by q t + sum_j s_j with s_j >= |z_j| - t, or by ``|(Rz)_i| <= s_i``."""
    k = 4
    for u in phi.domain.span(np.random.default_rng(0).standard_normal((8, k))):
        if isinstance(phi, KLargestNorm):
            extra, cost = k + 1, np.r_[np.ones(k), phi.q]
            rows = [np.hstack([sign * np.eye(k), -np.eye(k), -np.ones((k, 1))]) for sign in (1.0, -1.0)]
        else:
            extra, cost = len(phi.scaled), np.ones(len(phi.scaled))
            rows = [np.hstack([sign * phi.scaled, -np.eye(extra)]) for sign in (1.0, -1.0)]
        above = np.vstack([*rows, np.r_[np.zeros(k), cost]])
        bounds = [(None, None)] * k + [(0.0, None)] * extra
        found = linprog(np.r_[-u, np.zeros(extra)], above, np.r_[np.zeros(len(above) - 1), 1.0], bounds=bounds)
        assert abs(phi.domain.gauge(u[None])[0] + found.fun) <= 1e-9 * abs(found.fun)


@pytest.mark.parametrize("k", [2, 3])
def test_the_gauge_of_a_sum_lies_between_what_any_point_and_any_split_show(k):
    u = wild(k)[:-1]
    for phi in cases(k):
        if not isinstance(phi, NormBesideL2):
            continue
        gauge = phi.domain.gauge(u)
        p = phi.prox(u, gauge * (1.0 - 1e-7))  # not 0, and along the z at which <u, z> / phi(z) is largest
        shown = (u * p).sum(axis=1) / phi.value(p)
        assert (gauge >= shown * (1.0 - 1e-14)).all(), phi
        assert (gauge <= shown * (1.0 + 1e-6)).all(), phi
        assert (np.abs(phi.domain.gauge(3.0 * u) - 3.0 * gauge) <= 1e-13 * gauge).all(), phi


def test_the_prox_of_differences_is_that_of_bounded_least_squares(monkeypatch):
    rng = np.random.default_rng(1)
    for k in (3, 9):
        phi, v = differences(k, np.linspace(0.3, 3.0, k - 1)), 3.0 * rng.standard_normal((20, k))
        y = np.array([lsq_linear(phi.scaled.T, row, (-0.7, 0.7), method="bvls", tol=1e-15).x for row in v])
        np.testing.assert_allclose(phi.prox(v, 0.7), v - y @ phi.scaled, atol=1e-12)
        monkeypatch.setattr(analysis_l1, "EXCHANGES", 0)  # what the exchanges do not end is solved row by row
        np.testing.assert_allclose(differences(k, phi.w).prox(v, 0.7), v - y @ phi.scaled, atol=1e-12)
        monkeypatch.undo()


FUNCTIONS = {
    "largest": lambda z: cp.sum_largest(cp.abs(z), 2),
    "beside": lambda z: cp.norm_inf(z) + 0.5 * cp.norm(z),
    "differences": lambda z: cp.norm1(cp.diff(z)),
    "from the first": lambda z: cp.norm1(cp.diff(z)) + 0.2 * cp.abs(z[0]),
}


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1000.0])
@pytest.mark.parametrize("name", FUNCTIONS)
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


def test_a_sum_with_the_euclidean_norm_is_proved(tmp_path):
    data = gr.NodeData.from_dict({i: (np.eye(2), [float(i), 1.0 - i]) for i in range(3)})
    penalty = own(lambda z: 2 * cp.norm_inf(z) + 0.5 * cp.norm(z))
    solution = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), penalty)).solve()
    solution.prove(tmp_path / "proof.json")
    assert (tmp_path / "proof.json").exists()


def test_what_depends_on_other_rows_is_left_to_cones():
    for function in (
        lambda z: cp.norm1(cp.diff(z)) + cp.abs(z[0] - z[2]),
        lambda z: cp.norm1(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 1e-5]]) @ z),
        lambda z: cp.norm1(cp.diff(z)) + cp.norm(z),
    ):
        assert type(own(function).acting_on(3)).__name__ == "ConePenalty"


def test_as_many_as_there_are_is_the_l1_norm_and_one_the_maximum():
    assert isinstance(own(lambda z: cp.sum_largest(cp.abs(z), 3)).acting_on(3), gr.L1)
    assert isinstance(own(lambda z: cp.sum_largest(cp.abs(z), 1)).acting_on(3), gr.LInf)
    assert own(lambda z: cp.sum_largest(cp.abs(z), 0.5)).acting_on(3).value(np.array([[1.0, -4.0, 2.0]])) == 2.0


def test_other_sizes_are_refused_by_name():
    with pytest.raises(gr.errors.TermError, match="was read on 3 coordinates, and the term has 2"):
        own(FUNCTIONS["differences"]).acting_on(3).check(2)
