"""Certificates along runs of random problems: bounds, units, distances, the primal repair."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pytest
from core_cases import iterate, random_dual, random_w, written_balance, written_dual, written_primal

import graphreg as gr
from benchmarks.soundness import reference
from benchmarks.soundness.exact import above, below, exact
from benchmarks.soundness.stored import as_stored
from graphreg.certificate import Certifier
from graphreg.certificate.proposing.enclosure import Enclosure
from graphreg.certificate.repairing.feasible import feasible
from graphreg.certificate.repairing.repair import Repair
from graphreg.datasets import random_problem
from graphreg.datasets.random_problems import LOSSES, PENALTIES, STRUCTURES
from graphreg.form import DualPoint
from graphreg.terms.penalties.zero import Zero

# every loss and every penalty, every structure; twice more with ``make test ARGS=--whole``
SEEDS = (540, 431, 162, 383, 214, 355, 476, 97, 408, 129)
MORE = (
    *(250, 171, 502, 233, 364, 145, 516, 427, 388, 299),
    *(310, 291, 432, 173, 504, 425, 156, 367, 548, 389),
)
ALL = [*SEEDS, *(pytest.param(seed, marks=pytest.mark.whole) for seed in MORE)]
ROUNDS = (1, 3, 10, 30, 100, 300)
ROUNDING = 1e-12


@cache
def case(seed):
    """A small problem whose minimum is attained, and a naive CVXPY model of it, solved tightly."""
    drawn = random_problem(seed)
    return drawn, reference.solve(drawn.plain)


def exactly(drawn):
    """P in exact arithmetic, at parameters in the order of the form."""
    form = drawn.problem.form
    problem = exact(as_stored(drawn.plain, form))
    order = [form.labels.index(label) for label in drawn.plain.nodes]
    return lambda w: problem.at(w[order])


@cache
def states(seed):
    return tuple(gr.PrimalDual().point(state) for state in iterate(gr.PrimalDual(), case(seed)[0].problem.form, ROUNDS))


@cache
def certificates(seed):
    """Of each state by itself, not the best so far."""
    form = case(seed)[0].problem.form
    return tuple(Certifier(form).certify(*point, 1e-6) for point in states(seed))


def test_the_cases_cover_every_kind():
    kinds = {(case(seed)[0].loss, case(seed)[0].penalty) for seed in SEEDS}
    assert {loss for loss, _ in kinds} == set(LOSSES)
    assert {penalty for _, penalty in kinds} == set(PENALTIES)
    assert {case(seed)[0].structure for seed in SEEDS} == set(STRUCTURES)


# ---- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", ALL)
def test_bounds_along_a_run(seed):
    drawn, known = case(seed)
    assert known.gap <= 1e-8
    best, P = np.inf, exactly(drawn)
    for certificate in certificates(seed):
        computed = certificate.primal - certificate.rounding
        assert computed == pytest.approx(written_primal(drawn, certificate.w), rel=ROUNDING)
        assert certificate.primal >= known.lower - 1e-8 * known.yardstick
        assert certificate.dual <= known.upper + ROUNDING * known.yardstick
        there = P(certificate.w)  # in exact arithmetic, without a tolerance
        assert above(certificate.primal, there)
        assert below(certificate.dual, there)
        best = min(best, (known.upper - certificate.dual) / known.yardstick)
    assert best <= 0.2  # and the bounds are not bounds by being far away


@pytest.mark.parametrize("seed", ALL)
def test_repaired_points_are_conserved_and_inside(seed):
    drawn, _ = case(seed)
    form = drawn.problem.form
    for certificate in certificates(seed):
        if not certificate.valid:
            continue
        point = certificate.dual_point
        value = written_dual(drawn, point)
        assert np.isfinite(value)
        left = float(np.linalg.norm(written_balance(drawn, point), axis=1).sum())
        assert left <= 1e-8 * sum(np.linalg.norm(u) for u in (*point.flows, *point.prices))
        size = sum(np.abs(part).sum() for part in form.dual_parts(point))
        charged = certificate.charge - certificate.rounding
        assert 0.0 <= charged <= 1e-8 * size
        assert certificate.dual + charged == pytest.approx(value, abs=1e-11 * size)


def test_enough_of_the_repairs_gave_a_certificate():
    assert np.mean([certificate.valid for seed in SEEDS for certificate in certificates(seed)]) > 0.9


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_the_gap_is_the_sum_of_the_residuals(seed):
    drawn, _ = case(seed)
    for c in certificates(seed)[2:]:
        total = sum(float(part.sum()) for parts in c.residuals for part in parts)
        form = drawn.problem.form
        summed = sum(np.abs(part).sum() for part in form.dual_parts(c.dual_point))
        for block, a in zip(form.samples, c.dual_point.prices, strict=True):
            x = np.abs(block.predict(c.w))  # losses are differences of predictors and targets
            summed += np.abs(a * x).sum() + (block.column(block.scale) * (1.0 + x)).sum()
        rounding = 1e-10 * max(abs(c.primal), abs(c.dual)) + 1e-15 * summed
        assert total == pytest.approx(c.gap - c.charge, abs=rounding + c.charge)
        edges = c.per_edge()
        nodes = c.per_node()
        assert nodes.sum() + edges["residual"].sum() == pytest.approx(total, rel=1e-9, abs=1e-12 * abs(c.primal))


def few_samples(huber):
    """Fewer samples than coordinates at every node, and coordinates without edges."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 8)), rng.standard_normal(24) + 3
    data = gr.NodeData.from_arrays(X, y, np.repeat(range(6), 4))
    loss = gr.HuberLoss(data, delta=0.3) if huber else gr.SquaredLoss(data)
    return gr.Problem(loss + 0.3 * gr.TotalVariation(nx.path_graph(6), gr.L2(), features=data.features[:6]))


@pytest.mark.parametrize("huber", [False, True])
def test_the_repair_where_coordinates_have_neither_edges_nor_enough_samples(huber):
    form = few_samples(huber).form
    rng = np.random.default_rng(1)
    repair = Repair(form)
    point = repair(rng.standard_normal(form.shape), random_dual(form, rng))
    assert repair.unbalance(point) <= 1e-9 * sum(np.linalg.norm(u) for u in (*point.flows, *point.prices))


def test_an_imbalance_is_no_bound_at_zero_either(monkeypatch):
    """A repair that fails must not give a bound above the optimum."""
    monkeypatch.setattr(Repair, "__call__", lambda self, w, point, gap=0.0: point)
    form, optimum = few_samples(huber=True).form, few_samples(huber=True).solve(on_failure="return").objective
    w = np.zeros(form.shape)
    certificate = Certifier(form).certify(w, form.nothing().flows, form.gradient_prices(w), 1e-6)
    assert not certificate.valid or certificate.dual <= optimum


def test_nothing_near_the_optimum_is_needed():
    """Any parameters, flows and prices give bounds, however poor."""
    for seed in (162, 431, 355, 476, 97, 214):
        drawn, known = case(seed)
        form, rng, P = drawn.problem.form, np.random.default_rng(seed), exactly(drawn)
        for _ in range(5):
            point = random_dual(form, rng)
            flows = tuple(100.0 * u for u in point.flows)
            certificate = Certifier(form).certify(random_w(drawn, rng), flows, point.prices, 1e-6)
            assert certificate.primal >= known.lower - 1e-8 * known.yardstick
            assert above(certificate.primal, P(certificate.w))
            assert not certificate.valid or below(certificate.dual, P(certificate.w))
            assert not certificate.valid or certificate.dual <= known.upper + ROUNDING * known.yardstick


def test_points_that_are_not_finite_give_no_certificate():
    form = case(431)[0].problem.form
    w, flows, prices = states(431)[-1]
    broken = tuple(np.full_like(u, np.nan) for u in flows)
    certificate = Certifier(form).certify(w, broken, prices, 1e-6)
    assert certificate.dual == Certifier(form).enclosure(form.nothing()).value  # they add nothing to no flow at all
    assert not certificate.holds(0.5)


# ---- units -----------------------------------------------------------------------------------------------------------
def in_units(response, factor, loss=gr.HuberLoss):
    """A problem with its responses and its objective in other units."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    data = gr.NodeData.from_arrays(X, response * y, np.repeat(range(10), 6))
    fit = loss(data, delta=0.5 * response) if loss is gr.HuberLoss else loss(data)
    graph = nx.cycle_graph(10)
    model = fit + 0.1 * response * gr.TotalVariation(graph, gr.L2()) + 0.01 * gr.TotalVariation(graph, gr.SquaredL2())
    return gr.Problem(factor * (model + gr.NodePenalty(gr.Ball(2.0 * response))))


@pytest.mark.parametrize("loss", [gr.HuberLoss, gr.SquaredLoss])
@pytest.mark.parametrize("response", [1e-4, 1e4])
def test_units_of_the_responses_change_nothing(loss, response):
    same_gaps(in_units(1.0, 1.0, loss), in_units(response, 1.0, loss), response**2)


@pytest.mark.parametrize("factor", [1e-6, 1e5])
def test_units_of_the_objective_change_nothing(factor):
    with pytest.raises(gr.errors.TermError, match="strength"):
        in_units(1.0, factor)  # a constraint takes no strength, so that models with one are scaled term by term
    one, other = (ridge_units(f) for f in (1.0, factor))
    same_gaps(one, other, factor)


def ridge_units(factor):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    data = gr.NodeData.from_arrays(X, (y > 0).astype(int), np.repeat(range(10), 6))
    fused = 0.05 * gr.TotalVariation(nx.cycle_graph(10), gr.L1())
    return gr.Problem(factor * (gr.LogisticLoss(data) + fused + 0.1 * gr.NodePenalty(gr.SquaredL2())))


def same_gaps(one, other, unit):
    for rounds in (10, 40, 100):
        found = [problem.solve(gr.PrimalDual(), gap=0, rounds=rounds).certificate for problem in (one, other)]
        assert found[1].primal == pytest.approx(unit * found[0].primal, rel=1e-6)
        ratio = found[1].relative_gap / found[0].relative_gap
        assert 0.5 < ratio < 2
    exact = [problem.solve(gap=1e-7) for problem in (one, other)]
    assert [solution.status for solution in exact] == ["certified"] * 2
    assert exact[1].objective == pytest.approx(unit * exact[0].objective, rel=1e-6)


# ---- distances -------------------------------------------------------------------------------------------------------
def strongly_convex():
    """Problems with mu > 0 from losses, from ridges, through edges, and with latent nodes."""
    rng = np.random.default_rng(8)
    X, y, node = rng.standard_normal((48, 2)), rng.standard_normal(48), np.repeat(range(8), 6)
    data = gr.NodeData.from_arrays(X, y, node)
    classes = gr.NodeData.from_arrays(X, (y > 0).astype(int), node)
    few = gr.NodeData.from_arrays(X[:12], y[:12], node[:12])
    points = gr.NodeData.from_arrays(None, X, node)
    ring = nx.cycle_graph(8)
    fused = 0.1 * gr.TotalVariation(ring, gr.L2())
    return {
        "losses": gr.SquaredLoss(data) + fused,
        "means": gr.MeanLoss(points) + fused,
        "ridge": gr.LogisticLoss(classes) + 0.05 * gr.NodePenalty(gr.SquaredL2()) + fused,
        "edges": gr.SquaredLoss(few) + 0.3 * gr.TotalVariation(ring, gr.SquaredL2()),
        "latent": gr.SquaredLoss(data) + gr.Hierarchy({i: i % 3 for i in range(8)}, (0.4, 0.7)),
        "quadratic": gr.HuberLoss(data) + 0.2 * gr.NodePenalty(gr.Quadratic([[2.0, 0.5], [0.5, 1.0]])) + fused,
    }


@pytest.mark.parametrize("name", strongly_convex())
def test_the_distance_to_the_optimum_is_bounded(name):
    problem = gr.Problem(strongly_convex()[name])
    exact = problem.solve(gap=1e-10, on_failure="return").certificate
    assert exact.relative_gap <= 1e-8
    assert exact.strong_convexity > 0
    for rounds in (5, 20, 60):
        certificate = problem.solve(gr.PrimalDual(), gap=0, rounds=rounds).certificate
        away = float(np.linalg.norm(certificate.w - exact.w))
        assert away <= certificate.distance + exact.distance
    assert certificate.distance <= 0.1 * float(np.linalg.norm(exact.w))


@pytest.mark.parametrize("name", ["losses", "means", "edges", "latent"])
def test_the_modulus_is_the_least_eigenvalue_of_the_hessian(name):
    """Of the quadratic part, by second differences of P; the norms are left out."""
    form = gr.Problem(strongly_convex()[name]).form
    quadratic = [b for b in form.edges if isinstance(b.penalty, gr.SquaredL2)]

    def value(w):
        return sum(b.values(w).sum() for b in (*form.samples, *quadratic))

    size, zero = form.n * form.d, np.zeros(form.shape)
    E = np.eye(size).reshape(size, *form.shape)
    first = np.array([value(e) for e in E])
    H = np.array([[value(a + b) for b in E] for a in E]) - first[:, None] - first[None] + value(zero)
    solution = gr.Problem(strongly_convex()[name]).solve(gap=1e-6)
    assert solution.certificate.strong_convexity == pytest.approx(np.linalg.eigvalsh(H)[0], rel=1e-8)


def test_no_modulus_no_distance():
    data = gr.NodeData.from_arrays(np.ones((4, 2)), np.arange(4.0), [0, 0, 1, 1])
    solution = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(2), gr.L2())).solve()
    assert solution.certificate.strong_convexity == 0
    assert solution.certificate.distance == np.inf


# ---- the primal repair -----------------------------------------------------------------------------------------------
def constrained(*constraints, d=3, n=6):
    rng = np.random.default_rng(9)
    X, y = rng.standard_normal((n * d, d)), rng.standard_normal(n * d)
    model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, np.repeat(range(n), d))) + sum(constraints)
    return gr.Problem(model).form


LINE = nx.path_graph(6)
CONSTRAINED = {
    "shared and in balls": (gr.TotalVariation(LINE, gr.Zero(), features=["x0", "x2"]), gr.NodePenalty(gr.Ball(0.7))),
    "consensus in balls": (gr.Consensus(LINE), gr.NodePenalty(gr.Ball(0.7))),
    "consensus in a box": (gr.Consensus(LINE), gr.NodePenalty(gr.Box([-0.2, 0.3, -np.inf], [0.1, 0.5, 0.4]))),
    "shared and in a box": (gr.Consensus(LINE, features=["x1"]), gr.NodePenalty(gr.Box(-0.2, 0.1))),
    "non-negative": (gr.NodePenalty(gr.NonNegative()),),
    "non-negative consensus": (gr.Consensus(LINE), gr.NodePenalty(gr.NonNegative(), features=["x0", "x1"])),
    "a ball along edges": (gr.TotalVariation(LINE, gr.Ball(0.2)), gr.NodePenalty(gr.Ball(1.0))),
    "fixed nodes": (gr.NodePenalty(gr.Zero(), center=[0.3, -0.2, 0.1]),),
    "a ball with a center": (gr.NodePenalty(gr.Ball(0.3), center=[5.0, 1.0, -2.0]),),
    "a ball and a cone": (gr.NodePenalty(gr.Ball(0.5)), gr.NodePenalty(gr.NonNegative()), gr.Consensus(LINE)),
}


def primal_repair(form):
    """Finite P, exact consensus, and points that are feasible stay as they are."""
    rng = np.random.default_rng(4)
    for size in (1e-3, 1.0, 1e3):
        w = feasible(form, size * rng.standard_normal(form.shape))
        assert np.isfinite(form.primal(w))
        for edge in form.edges:
            assert not isinstance(edge.penalty, Zero) or not edge.difference(w).any()
        assert np.array_equal(feasible(form, w), w)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_primal_repair(name):
    primal_repair(constrained(*CONSTRAINED[name]))


def test_the_primal_repair_moves_no_further_than_it_must():
    form = constrained(gr.Consensus(LINE, features=["x1"]), gr.NodePenalty(gr.Box(-1.0, 1.0), features=["x0"]))
    w = np.random.default_rng(0).standard_normal(form.shape)
    moved = feasible(form, w)
    np.testing.assert_array_equal(moved[:, 2], w[:, 2])
    np.testing.assert_array_equal(moved[:, 0], np.clip(w[:, 0], -1, 1))
    np.testing.assert_allclose(moved[:, 1], w[:, 1].mean())


def test_an_optimum_of_0_is_certified_where_nothing_says_how_large_numbers_are():
    """Targets of 0 at a vertex of the simplex, and a node without data."""
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, [[0.0, 0.0]], [0]))
    B, e = np.c_[np.eye(2), [-1.0, -1.0]], np.array([[0.0, 0.0, 1.0]])
    ridge = 0.2 * gr.SquaredL2()(gr.w.at(0) - gr.w.at(1))
    solution = gr.Problem(loss + gr.NonNegative()(gr.w @ B + e) + ridge).solve(gr.Exact(), progress=False, gap=1e-7)
    assert solution.certificate.primal < 1e-290
    assert solution.certificate.relative_gap == 0.0


def test_what_a_gap_is_relative_to_is_said_where_it_is_not_the_larger_bound():
    """Hinges of weight 1e12: a gap as large as the bounds is little beside what these are at 0."""
    rng, nodes = np.random.default_rng(3), list(range(8))
    A = rng.normal(size=(12, 8))
    y = np.sign(A @ rng.normal(size=8) + 0.5 * rng.normal(size=12))
    weights = np.where(np.arange(12) % 3 == 0, 1e12, 1.0)
    loss = gr.HingeLoss(A @ gr.w.at(nodes), y, weights=weights)
    problem = gr.Problem(loss + gr.L1()(gr.w.along(nodes, 2)) + 0.1 * gr.SquaredL2()(gr.w))
    found = Certifier(problem.form)
    found.propose_primal(problem.solve(gr.Exact(), on_failure="return").certificate.w)
    found.propose_dual(problem.form.nothing())
    crude = found.best()
    assert crude.dual == 0.0 < crude.primal < 20.0
    assert "of 4e+07, by the best common model" in str(crude)
    assert "of 4e+07" in repr(crude)
    assert "of 4e+07" in repr(replace(crude, dual=0.999 * crude.primal))
    assert " of " not in repr(replace(crude, dual=-1e9)).replace("optimum", "")


def test_a_point_is_not_proved_twice(monkeypatch):
    problem, proofs = random_problem(0).problem, []
    answer = problem.solve(gr.Exact()).certificate
    call = Enclosure.__call__
    monkeypatch.setattr(Enclosure, "__call__", lambda self, *of: proofs.append(of) or call(self, *of))
    found = Certifier(problem.form)
    flows, prices = answer.dual_point.flows, answer.dual_point.prices
    for _ in range(3):
        found.propose_dual(DualPoint(tuple(map(np.copy, flows)), tuple(map(np.copy, prices))))
    assert len(proofs) == 1
    found.propose_dual(answer.dual_point, gap=1e-3)  # by other sums
    assert len(proofs) == 2
    other = Certifier(problem.form)
    for share in (0.9, 1.0):  # other points
        other.propose_dual(DualPoint(tuple(share * x for x in flows), tuple(share * x for x in prices)))
    assert len(proofs) == 4
    assert other.best().dual == pytest.approx(answer.dual, rel=1e-9)


def test_parameters_that_are_the_same_but_for_rounding_are_tried_as_the_same():
    node = np.repeat(np.arange(5), 4)
    X = 1e-9 * np.random.default_rng(0).uniform(1.0, 2.0, (20, 1))
    data = gr.NodeData.from_arrays(X, np.where(node < 3, 1.0, 2.0), node)
    form = gr.Problem(gr.SquaredLoss(data) + 1e3 * gr.TotalVariation(nx.Graph([(0, 1), (1, 2), (3, 4)]), gr.L2())).form
    of = np.array([0, 0, 0, 1, 1])
    fused = np.array([[6e8], [1.4e9]])[of]
    apart = fused * (1.0 + 1e-15 * np.array([[0.0], [1.0], [3.0], [0.0], [2.0]]))
    assert form.primal(apart) > 1e-3 + form.primal(fused)
    found = Certifier(form).certify(apart, None, None, 1e-9)
    assert found.primal == pytest.approx(form.primal(fused), rel=1e-12)
    assert (found.w == fused).all()
    far = fused * (1.0 + 1e-9 * np.array([[0.0], [1.0], [3.0], [0.0], [2.0]]))
    assert Certifier(form).certify(far, None, None, 1e-9).primal >= form.primal(far)  # these are not
