"""Terms that a user writes get what the terms of the library get: nothing outside `terms` asks for a class."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from own_terms import OwnEquality, OwnL1, OwnPairs, OwnSquare

import graphreg as gr
from graphreg.certificate import Certifier
from graphreg.methods._polish import _tied, applies, polish
from graphreg.testing import check_penalty


def joined(penalty, strength=0.3, d=2, loss=gr.SquaredLoss, graph=None):
    """Six nodes on a path in two groups, tied by the penalty."""
    rng = np.random.default_rng(1)
    truth = np.repeat(np.array([[1.0], [-1.0]]) * [2.0, 1.0, 0.0, 0.0][:d], 3, axis=0)
    data = {i: ((X := rng.normal(size=(20, d))), X @ w + 0.3 * rng.normal(size=20)) for i, w in enumerate(truth)}
    if loss is gr.LogisticLoss:
        data = {i: (X, y > 0) for i, (X, y) in data.items()}
    graph = nx.cycle_graph(6) if graph is None else graph
    return gr.Problem(loss(gr.NodeData.from_dict(data)) + strength * gr.TotalVariation(graph, penalty))


# ---- sums of norms ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("penalty", "k", "p"),
    [
        (OwnL1(), 3, 1),
        (OwnPairs(), 4, 2),
        (OwnPairs(), 2, 2),
        (gr.L1(), 3, 1),
        (gr.L2(), 3, 3),
        (gr.LInf(), 3, None),
        (gr.HuberNorm(1e-9), 3, None),
        (gr.SquaredL2(), 3, None),
        (gr.Ball(), 3, None),
        (gr.NonNegative(), 1, None),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, gr.Penalty) else str(x),
)
def test_sums_of_norms_are_seen_in_values(penalty, k, p):
    assert penalty.pieces(k) == p


def test_a_group_lasso_of_the_users_obeys_the_laws():
    report = check_penalty(OwnPairs(), k=(2, 4))
    assert report.ok, report


@pytest.mark.parametrize(("own", "ours", "d"), [(OwnL1(), gr.L1(), 3), (OwnPairs(), gr.L2(), 2)], ids=["l1", "l2"])
@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_a_norm_of_the_users_is_polished_as_ours_is(own, ours, d, loss):
    found = []
    for penalty in (own, ours):
        problem = joined(penalty, 0.1, d, loss)
        assert applies(problem.form)
        run = problem.solve(gr.PrimalDual(), gap=1e-9)
        assert run.status == "certified"
        found.append(run)
    plain = joined(own, 0.1, d, loss).solve(gr.PrimalDual(polish=False), gap=1e-9)
    assert max(found[0].rounds, found[1].rounds) < plain.rounds
    np.testing.assert_allclose(found[0].coef, found[1].coef, rtol=1e-6)


def test_pieces_are_fused_one_by_one():
    """Four coordinates in pairs: on the third edge of a path the first pair is split and the second fused, and the
    polish solves the rest to rounding."""
    problem = joined(OwnPairs(), 0.5, 4, graph=nx.path_graph(6))
    form, certifier = problem.form, Certifier(problem.form)
    exact = problem.solve(gr.Exact(), gap=1e-9)
    found = _tied(form, tuple(u * (1.0 + 1e-6) for u in exact.certificate.point.flows), form.n * form.d)
    assert found.fused[0].tolist() == [[True] * 4] * 2 + [[False, False, True, True]] + [[True] * 4] * 2
    polished = polish(certifier.repair, exact.certificate.w, found)
    assert polished.point is not None
    certifier.admit(polished.w, polished.point)
    assert certifier.best().holds(1e-13)


@pytest.mark.parametrize(
    ("penalty", "d"), [(OwnL1(), 2), (OwnPairs(), 2), (OwnPairs(), 4)], ids=["l1", "one pair", "two pairs"]
)
def test_a_norm_of_the_users_has_cones(penalty, d):
    problem = joined(penalty, 0.2, d)
    found = problem.solve(gr.InteriorPoint(), gap=1e-9)
    assert found.status == "certified"
    assert found.objective == pytest.approx(problem.solve(gr.Exact(), gap=1e-9).objective, rel=1e-8)


def test_theory_takes_a_norm_of_the_users():
    """Error bounds, compatibility factors and the constants of recovery are those of the l1 norm."""
    own, ours = (joined(penalty, 5.0) for penalty in (OwnL1(), gr.L1()))
    w = np.repeat([[2.0, 1.0], [-2.0, -1.0]], 3, axis=0)
    bounds = [gr.theory.error_bound(problem, w) for problem in (own, ours)]
    assert bounds[0].holds
    assert bounds[0].bound == pytest.approx(bounds[1].bound, rel=1e-12)
    assert str(bounds[0].compatibility) == str(bounds[1].compatibility)
    edges = [(0, 1), (1, 2)]
    factors = [gr.theory.compatibility_factor(nx.cycle_graph(6), edges, p, 3).value for p in (OwnL1(), "l1")]
    assert factors[0] == factors[1]
    tables = [gr.theory.recovery(problem, [0] * 3 + [1] * 3).table for problem in (own, ours)]
    np.testing.assert_allclose(tables[0]["alpha"], tables[1]["alpha"], rtol=1e-12)


# ---- equations -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("penalty", "found"),
    [
        (OwnEquality(), True),
        (gr.Zero(), True),
        (gr.Box(0.0, 0.0), True),
        (gr.Box([0.0, 0.0], [0.0, 1.0]), False),
        (gr.Ball(1e-300), False),
        (gr.NonNegative(), False),
        (gr.L1(), False),
    ],
    ids=lambda x: repr(x) if isinstance(x, gr.Penalty) else str(x),
)
def test_equations_are_seen_by_how_far_they_reach(penalty, found):
    assert penalty.is_equality(2) == found


def test_an_equation_of_the_users_is_a_consensus():
    own, ours = (joined(penalty, 1.0) for penalty in (OwnEquality(), gr.Zero()))
    assert own.methods()["applies"].equals(ours.methods()["applies"])
    for method in (gr.Exact(), gr.GradientTracking(), gr.ExactDiffusion(), gr.PrimalDual()):
        found = [problem.solve(method, gap=1e-8) for problem in (own, ours)]
        assert [each.status for each in found] == ["certified"] * 2, method
        np.testing.assert_allclose(found[0].coef, found[1].coef, rtol=1e-6)
        np.testing.assert_array_equal(found[0].coef, np.tile(found[0].coef[0], (6, 1)))
        assert found[0].clusters().edges["state"].tolist() == ["fused"] * 6
    assert "is free: it is the price of being equal" in str(own.kkt())


# ---- squares ---------------------------------------------------------------------------------------------------------
def test_a_square_of_the_users_is_a_square():
    """Known clusters, latent nodes at their means, constants that are exact."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({k: (rng.normal(size=(8, 2)), rng.normal(size=8)) for k in range(4)})
    clusters = {k: "ab"[k // 2] for k in range(4)}

    def problem(penalty):
        return gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy(clusters, (1.0, 0.5), penalty))

    own, ours = problem(OwnSquare()), problem(gr.SquaredL2())
    assert own.methods()["applies"].equals(ours.methods()["applies"])
    for method in (gr.AsyncL2GD(), gr.AsyncAL2SGD(), gr.LocalOnly()):
        found = [each.solve(method, gap=0, rounds=40, seed=1) for each in (own, ours)]
        np.testing.assert_array_equal(found[0].certificate.w, found[1].certificate.w)
    ridged = [gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(each)) for each in (OwnSquare(), gr.SquaredL2())]
    assert [list(gr.theory.constants(each).nodes["kind"]) for each in ridged] == [["exact"] * 4] * 2


@pytest.mark.parametrize(
    ("penalty", "Q"),
    [
        (OwnSquare(), np.eye(2)),
        (gr.Quadratic([[2.0, 1.0], [1.0, 3.0]]), [[2.0, 1.0], [1.0, 3.0]]),
        (gr.HuberNorm(), None),
        (gr.L2(), None),
        (gr.Zero(), None),
    ],
    ids=lambda x: type(x).__name__,
)
def test_quadratics(penalty, Q):
    found = penalty.quadratic(2)
    assert found is None if Q is None else found == pytest.approx(np.array(Q), rel=1e-14)
