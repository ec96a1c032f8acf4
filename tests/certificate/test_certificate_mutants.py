"""Deliberately broken certificates. Each is refused by a check that the true code passes, and by which it is said."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import iterate
from factories import noise

import graphreg as gr
from graphreg.certificate import Certifier, Enclosed, Enclosure, attained, certify, record
from graphreg.certificate.repairing import feasible
from graphreg.certificate.repairing import repair as repair_module
from graphreg.certificate.repairing.repair import Repair
from graphreg.datasets import random_problem
from graphreg.form.form import DualPoint
from graphreg.problem import Compiled
from graphreg.running.solution import Solution
from graphreg.terms.penalties.domain import DualBall, Everywhere

GAP = 1e-6
LINE = nx.path_graph(6)


def logistic():
    return gr.Problem(gr.LogisticLoss(noise(6, 6, 2, binary=True)) + 0.05 * gr.TotalVariation(LINE, gr.L2()))


def huber():
    return gr.Problem(gr.HuberLoss(noise(6, 6, 2)) + 0.1 * gr.TotalVariation(LINE, gr.L2()))


def singular(kernel):
    """A singular Quadratic on the edges, or (kernel) with its kernel tied as well: a problem with a larger optimum."""
    model = gr.SquaredLoss(noise(6, 6, 2)) + gr.TotalVariation(LINE, gr.Quadratic(np.diag([1.0, 0.0])))
    return gr.Problem(model + gr.Consensus(LINE, features=["x1"]) if kernel else model)


# ---- the checks: AssertionError where the certificate lies or falls short --------------------------------------------
def certifies(problem, rounds):
    """After so many rounds of the primal-dual method the gap is certified to 1e-6."""
    certificate = problem.solve(gr.PrimalDual(), gap=GAP, rounds=rounds).certificate
    assert certificate.holds(GAP)


def bounds(problem, certificate, optimum):
    """The dual value is not above the optimum (known to 1e-9)."""
    assert certificate.dual <= optimum + 1e-9 * abs(optimum)
    assert certificate.primal >= optimum - 1e-9 * abs(optimum)


def conserved_and_inside(form, point):
    """Flows and prices balance to rounding and every conjugate is finite."""
    size = sum(np.linalg.norm(u) for u in (*point.flows, *point.prices))
    assert np.linalg.norm(form.conservation(point)) <= 1e-9 * size
    assert np.isfinite(form.dual(point))


def optimum_of(problem):
    solution = problem.solve(gap=1e-9, on_failure="return")
    assert solution.certificate.relative_gap <= 1e-8
    return solution.objective


def refuses(check, *arguments):
    """By the check, or by the bounds' own contradiction."""
    with pytest.raises((AssertionError, gr.errors.InternalError)):
        check(*arguments)


# ---- (a) over-relaxed points -----------------------------------------------------------------------------------------
def stay(self, point):
    return point


def gaps():
    """Of each of the rounds 20 to 59 by itself."""
    problem, method = huber(), gr.PrimalDual()
    states = iterate(method, problem.form, range(20, 60))
    return np.array([Certifier(problem.form).certify(*method.point(state), GAP).relative_gap for state in states])


def over_relaxed(self, state):
    return state.hat.w, state.x.u, state.view.form.gradient_prices(state.hat.w)


def small_gaps():
    found = gaps()
    assert np.isfinite(found).all()
    assert np.median(found) < 1e-6


def test_over_relaxed_flows_without_clipping(monkeypatch):
    small_gaps()
    monkeypatch.setattr(gr.PrimalDual, "point", over_relaxed)
    monkeypatch.setattr(Repair, "clip", stay)
    refuses(small_gaps)


def test_over_relaxed_flows_as_they_are(monkeypatch):
    """Not even repaired: outside the capacities the conjugates are infinite, and nothing is certified."""
    small_gaps()
    monkeypatch.setattr(gr.PrimalDual, "point", over_relaxed)
    monkeypatch.setattr(Repair, "__call__", lambda self, w, point, gap=0.0: point)
    refuses(small_gaps)


# ---- (b) the Slater centre -------------------------------------------------------------------------------------------
def near_the_optimum():
    """Hinges, whose prices keep a sign: 0 is on the boundary, and so is much of the optimum."""
    problem, method = random_problem(577).problem, gr.PrimalDual()
    state = iterate(method, problem.form, [300])[0]
    assert Certifier(problem.form).certify(*method.point(state), GAP).holds(1e-3)


def test_a_centre_of_zero_for_hinges(monkeypatch):
    near_the_optimum()
    monkeypatch.setattr(Repair, "center", property(lambda self: self.form.nothing()))
    refuses(near_the_optimum)


# ---- (c) the primal repair -------------------------------------------------------------------------------------------
def in_balls():
    shared = gr.TotalVariation(LINE, gr.Zero(), features=["x0"])
    return gr.Problem(gr.SquaredLoss(noise(6, 6, 2, scale=5.0)) + shared + gr.NodePenalty(gr.Ball(0.5))).form


def finite_and_shared(form):
    """And not by falling back to 0."""
    for seed in range(20):
        w = feasible.feasible(form, np.random.default_rng(seed).standard_normal(form.shape))
        assert np.isfinite(form.primal(w))
        assert np.ptp(w[:, 0]) == 0
        assert np.linalg.norm(w, axis=1).max() > 0.4


def test_balls_node_by_node_after_the_averaging(monkeypatch):
    def each(form, constraints, w, margin):
        for edge in constraints:
            if edge.ground:
                w = feasible._project(edge, w)
        return w

    finite_and_shared(in_balls())
    monkeypatch.setattr(feasible, "_shrink", each)
    monkeypatch.setattr(feasible, "ROUNDS", 1)
    refuses(finite_and_shared, in_balls())


# ---- (d) the balance -------------------------------------------------------------------------------------------------
def slightly_off():
    """An optimal dual point, moved a little along its gradient: off the balance, and better than the optimum."""
    problem = gr.Problem(gr.SquaredLoss(noise(6, 6, 2), scale="sum") + 0.1 * gr.TotalVariation(LINE, gr.SquaredL2()))
    best = problem.solve(gap=1e-12, on_failure="return").certificate
    move = 1e-7
    prices = tuple(
        a - move * (a / b.scale + b.y - b.offset)
        for a, b in zip(best.dual_point.prices, problem.form.samples, strict=True)
    )
    certifier = Certifier(problem.form)
    certifier.propose_dual(DualPoint(best.dual_point.flows, prices))
    return certifier.best().dual, best.primal


def no_higher(dual, primal):
    """Without a tolerance: both are proved."""
    assert dual <= primal


def as_it_is(self, point, center=None, least=np.inf):
    """The value of the point as it was computed, whatever rounding or a method left of the balance."""
    per_component = np.full(self.form.n_components, -np.inf)
    per_component[:1] = self.form.dual(point)
    return Enclosed(per_component, point, tuple(0.0 * u for u in point.flows))


def test_a_point_off_the_balance_is_taken_as_it_is(monkeypatch):
    monkeypatch.setattr(certify, "BALANCED", 1.0)  # so that the point is admitted at all
    no_higher(*slightly_off())
    monkeypatch.setattr(Enclosure, "__call__", as_it_is)
    refuses(lambda: no_higher(*slightly_off()))


# ---- (e, f) conjugates -----------------------------------------------------------------------------------------------
def off_the_range():
    """The flows of the tied problem, which leave the range of Q, offered to the untied one."""
    tied = singular(kernel=True).solve(gap=1e-9).certificate
    quadratic, zero = tied.dual_point.flows
    flow = quadratic.copy()
    flow[:, 1] += zero[:, 0]
    problem = singular(kernel=False)
    certificate = Certifier(problem.form).certify(tied.w, (flow,), tied.dual_point.prices, GAP)
    return problem, certificate, optimum_of(singular(kernel=False))


def test_the_pseudo_inverse_off_the_range(monkeypatch):
    bounds(*off_the_range())
    optimum = optimum_of(singular(kernel=False))

    def pseudo_inverse(self, u, spread=None):
        return np.einsum("ij,jk,ik->i", u, np.linalg.pinv(self.Q), u) / 2

    monkeypatch.setattr(gr.Quadratic, "conjugate", pseudo_inverse)
    monkeypatch.setattr(gr.Quadratic, "conjugate_bound", pseudo_inverse)
    monkeypatch.setattr(gr.Quadratic, "composed", lambda self: None)
    monkeypatch.setattr(gr.Quadratic, "domain", property(Everywhere))
    refuses(lambda: bounds(*off_the_range()[:2], optimum))


def fused(strength):
    return gr.Problem(gr.SquaredLoss(noise(6, 6, 2, scale=100.0)) + strength * gr.TotalVariation(LINE, gr.L2()))


def over_capacity(strength):
    """The flows of a problem with a larger strength, offered to the problem itself."""
    given = fused(strength).solve(gap=1e-9).certificate
    problem = fused(1.0)
    return problem, Certifier(problem.form).certify(given.w, given.dual_point.flows, given.dual_point.prices, GAP)


@pytest.mark.parametrize("stand_in", [0.0, 1e-3, 1.0])
def test_a_finite_number_for_infinity(stand_in, monkeypatch):
    optimum = optimum_of(fused(1.0))
    bounds(*over_capacity(10.0), optimum)
    monkeypatch.setattr(gr.L2, "conjugate", lambda self, u: np.where(self.dual_norm(u) <= 1.0, 0.0, stand_in))
    monkeypatch.setattr(gr.L2, "conjugate_bound", lambda self, u, spread: gr.L2.conjugate(self, u))
    monkeypatch.setattr(gr.L2, "domain", property(Everywhere))
    refuses(lambda: bounds(*over_capacity(10.0), optimum))


def test_a_tolerance_at_the_capacity(monkeypatch):
    """Flows that exceed their capacities by one per mille, called inside, fabricate a bound."""
    optimum, tolerance = optimum_of(fused(1.0)), 1.001
    bounds(*over_capacity(tolerance), optimum)
    monkeypatch.setattr(gr.L2, "conjugate", lambda self, u: np.where(self.dual_norm(u) <= tolerance, 0.0, np.inf))
    monkeypatch.setattr(gr.L2, "conjugate_bound", lambda self, u, spread: gr.L2.conjugate(self, u))
    monkeypatch.setattr(gr.L2, "domain", property(lambda self: DualBall(self, self, tolerance)))
    refuses(lambda: bounds(*over_capacity(tolerance), optimum))


# ---- (g) trust -------------------------------------------------------------------------------------------------------
def loosely_solved():
    problem = logistic()
    compiled = problem.compile()
    compiled.cvxpy.solve(solver="SCS", eps_abs=1e-2, eps_rel=1e-2)
    assert compiled.cvxpy.status == "optimal"
    return problem, compiled


def earns_its_status(problem, solution):
    """What is called certified is within 1e-6 of the optimum."""
    optimum = optimum_of(problem)
    assert solution.status != "certified" or solution.objective <= optimum * (1 + GAP)


def test_the_word_of_a_solver(monkeypatch):
    def trust(self):
        w, point = self.conic.read_back()
        certifier = Certifier(self.conic.form)
        certificate = certifier.certify(w, point.flows, point.prices, GAP)
        status = "certified" if self.cvxpy.status == "optimal" else "no_certificate"
        return Solution(self.conic.form, certificate, status, "", "CVXPY")

    problem, compiled = loosely_solved()
    earns_its_status(problem, compiled.read())
    assert compiled.read().status == "no_certificate"
    assert not compiled.read().certificate.holds(GAP)
    monkeypatch.setattr(Compiled, "read", trust)
    refuses(earns_its_status, problem, compiled.read())


# ---- (h) the repair --------------------------------------------------------------------------------------------------
def repaired():
    problem, method = huber(), gr.PrimalDual()
    w, flows, _ = method.point(iterate(method, problem.form, [15])[0])
    return problem.form, Repair(problem.form)(w, DualPoint(flows, problem.form.gradient_prices(w)))


def test_flows_clipped_after_the_last_correction(monkeypatch):
    true = Repair.__call__
    conserved_and_inside(*repaired())
    monkeypatch.setattr(Repair, "pull_back", lambda self, point: point)
    monkeypatch.setattr(Repair, "__call__", lambda self, w, point, gap=0.0: self.clip(true(self, w, point, gap)))
    monkeypatch.setattr(repair_module, "CYCLES", 1)
    refuses(conserved_and_inside, *repaired())


def test_no_pull_back(monkeypatch):
    conserved_and_inside(*repaired())
    monkeypatch.setattr(Repair, "pull_back", lambda self, point: point)
    monkeypatch.setattr(repair_module, "CYCLES", 1)
    refuses(conserved_and_inside, *repaired())


def test_clipping_without_correction(monkeypatch):
    conserved_and_inside(*repaired())
    monkeypatch.setattr(Repair, "__call__", lambda self, w, point, gap=0.0: self.clip(point))
    refuses(conserved_and_inside, *repaired())


def test_a_balance_that_overlooks_the_prices(monkeypatch):
    conserved_and_inside(*repaired())
    monkeypatch.setattr(gr.form.Form, "conservation", _without_prices(gr.form.Form.conservation))
    form, point = repaired()
    monkeypatch.undo()
    refuses(conserved_and_inside, form, point)


def _without_prices(true):
    return lambda self, point: true(self, DualPoint(point.flows, tuple(0.0 * a for a in point.prices)))


# ---- further ---------------------------------------------------------------------------------------------------------
def test_offsets_left_out_of_the_dual(monkeypatch):
    rng = np.random.default_rng(2)
    shifted = gr.NodeData.from_arrays(
        rng.standard_normal((36, 2)), rng.standard_normal(36), np.repeat(range(6), 6), offset=5.0 + rng.random(36)
    )
    problem = gr.Problem(gr.HuberLoss(shifted) + 0.1 * gr.TotalVariation(LINE, gr.L2()))
    certifies(problem, 3000)
    optimum = optimum_of(problem)

    def parts(self, point):
        out = [-block.conjugates(a) for block, a in zip(self.samples, point.prices, strict=True)]
        return out + [-edge.conjugates(u) for edge, u in zip(self.edges, point.flows, strict=True)]

    monkeypatch.setattr(type(problem.form), "dual_parts", parts)
    certificate = problem.solve(gr.PrimalDual(), gap=GAP, rounds=3000).certificate
    refuses(both, problem, certificate, optimum)


def both(problem, certificate, optimum):
    bounds(problem, certificate, optimum)
    assert certificate.holds(GAP)


def separable():
    X = np.array([[1.0], [-1.0], [2.0], [-0.5]])
    return gr.Problem(gr.LogisticLoss(gr.NodeData.from_arrays(X, [1, 0, 1, 0], [0, 0, 1, 1])))


def says_unattained(problem):
    solution = problem.solve(gap=1e-4, on_failure="return")
    assert solution.status == "unattained"


def test_attainment_is_taken_for_granted(monkeypatch):
    says_unattained(separable())
    monkeypatch.setattr(certify, "attained", lambda form, point=None: True)
    refuses(says_unattained, separable())


def test_attainment_that_overlooks_a_ridge(monkeypatch):
    """A recession function that leaves out the penalty calls an attained minimum unattained."""
    model = gr.LogisticLoss(gr.NodeData.from_arrays(np.array([[1.0], [-1.0]]), [1, 0], [0, 0]))
    model = model + 0.1 * gr.NodePenalty(gr.SquaredL2())

    def certified(problem):
        assert attained(problem.form)

    certified(gr.Problem(model))
    whole = gr.terms.records.RecessionCone(np.array([-np.inf]), np.array([np.inf]))
    monkeypatch.setattr(Everywhere, "recession", lambda self, k: whole)
    refuses(certified, gr.Problem(model))


def test_the_largest_curvature_for_the_least(monkeypatch):
    problem = gr.Problem(
        gr.HuberLoss(noise(6, 6, 2)) + 0.01 * gr.NodePenalty(gr.SquaredL2(), weights=dict.fromkeys(range(6), 1.0))
    )
    exact = problem.solve(gap=1e-12, on_failure="return").certificate

    def near(certificate):
        assert np.linalg.norm(certificate.w - exact.w) <= certificate.distance + exact.distance

    rough = problem.solve(gr.PrimalDual(), gap=0, rounds=3).certificate
    near(rough)
    monkeypatch.setattr(record, "strong_convexity", lambda form: 100.0)
    rough.__dict__.pop("strong_convexity")
    exact.__dict__.pop("strong_convexity")
    refuses(near, rough)
