"""Planted optima, perturbed points, edge claims, general rows: they are what they say, and lies are caught."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from factories import thinned

from benchmarks.soundness import edges, perturbed, row_bounds, tally
from benchmarks.soundness.exact import exact
from benchmarks.soundness.kkt import balanced_on_forest, optimal, subgradient
from benchmarks.soundness.planted import KINDS, LOSSES, TRAITS, with_proof
from benchmarks.soundness.reals import ONE, approximately, rational, rationals
from benchmarks.soundness.refined import refined
from benchmarks.soundness.rows import planted_rows, proves, random_rows
from benchmarks.soundness.stored import as_stored
from graphreg.certificate.kernel.balance import balanced
from graphreg.certificate.kernel.system import System
from graphreg.certificate.proposing import plan

LAST = 2.0**-52


def holds(row):
    assert not row.error, row.error
    assert not row.false
    assert not row.raised


# ---- planted optima --------------------------------------------------------------------------------------------------
def test_planted_optima_have_every_trait_loss_and_penalty():
    drawn = [with_proof(seed).drawn for seed in range(120)]
    assert {trait for p in drawn for trait in p.traits} >= {*TRAITS, "gap 0"}
    assert {part.family for p in drawn for part in p.plain.samples} == set(LOSSES)
    assert {edge.kind for p in drawn for edge in p.plain.edges if edge.head is not None} == set(KINDS)
    assert any(len(part.y) < p.plain.d for p in drawn for part in p.plain.samples)
    assert max(abs(p.optimum).max() for p in drawn) > 1e9
    assert max(abs(np.log2(abs(part.X[part.X != 0])).max(initial=0)) for p in drawn for part in p.plain.samples) >= 39


@pytest.mark.parametrize("seed", range(12))
def test_planted_optima_are_proved_by_what_is_stored(seed):
    found = with_proof(seed)
    problem = exact(as_stored(found.drawn.plain, found.drawn.problem.form))
    w = found.drawn.optimum
    assert optimal(problem, w, found.prices, found.flows)
    least = problem.at(w).lower  # exact but for exp and log
    for near in (*refined(problem, w), *refined(problem, w * (1 + 1e-9))):
        assert problem.at(near).lower is None or least <= problem.at(near).upper


def test_what_is_off_by_a_last_bit_proves_nothing():
    found = with_proof(0)
    problem, w = exact(found.drawn.plain), found.drawn.optimum
    k = next(k for k, a in enumerate(found.prices) if a.any())
    prices = [a * (1 + LAST) if i == k else a for i, a in enumerate(found.prices)]
    assert not optimal(problem, w, prices, found.flows)
    flows = [u + LAST if i == 0 else u for i, u in enumerate(found.flows)]
    assert not optimal(problem, w, found.prices, flows)


@pytest.mark.parametrize(
    ("kind", "z", "inside", "outside"),
    [
        ("L1", [0.0, 2.0], [-1.0, 1.0], [-1.0 - LAST, 1.0]),
        ("L1", [0.0, 2.0], [0.5, 1.0], [0.5, 1.0 - LAST]),
        ("L2", [0.0, 0.0], [0.0, 1.0], [2.0**-40, 1.0]),
        ("L2", [0.0, 2.0], [0.0, 1.0], [0.0, -1.0]),
        ("LInf", [1.0, -1.0], [0.5, -0.5], [0.5, 0.5]),
        ("SquaredL2", [1.0, 2.0], [1.0, 2.0], [1.0, 2.0 + 2 * LAST]),
        ("HuberNorm", [0.0, 2.0], [0.0, 0.5], [0.0, 0.5 + LAST]),
        ("HuberNorm", [0.25, 0.0], [0.25, 0.0], [0.5, 0.0]),
        ("Zero", [0.0, 0.0], [7.0, -1.0], None),
    ],
)
def test_subgradients_are_told_from_what_is_near(kind, z, inside, outside):
    edge = replace(exact(with_proof(0).drawn.plain).edges[0], kind=kind, parameter=rational(0.5))
    assert subgradient(edge, rationals(z), rationals(inside))
    assert outside is None or not subgradient(edge, rationals(z), rationals(outside))
    assert kind != "Zero" or not subgradient(edge, rationals([0.0, LAST]), rationals(inside))


# ---- perturbed points ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", thinned(range(8), every=3))
def test_no_perturbed_point_has_a_false_bound(seed):
    row = perturbed.examine(seed, each=12)
    holds(row)
    assert row.tries == 12
    assert row.finite > 3


def test_planted_points_are_where_the_form_has_them():
    for seed in (0, 1, 2, 8, 9, 10):
        drawn, proof = perturbed.drawn_for(seed)
        form = drawn.problem.form
        point = perturbed.placed(form, proof)
        at = exact(as_stored(drawn.plain, form)).at(drawn.optimum)
        assert form.dual(point) == pytest.approx(approximately(at.upper), rel=1e-9)


def test_a_bound_that_is_too_high_is_caught(monkeypatch):
    def lying(self, kind, *args):
        return (1e300, "") if kind == "kernel" else (-np.inf, "the upper bound is wrong")

    monkeypatch.setattr(perturbed._Tries, "__call__", lying)
    row = perturbed.examine(0, each=8)
    assert any("exceeds P" in what for what in row.false)
    assert any("the upper bound is wrong" in what for what in row.false)
    assert not tally.sound([asdict(row)])


def test_what_is_raised_is_a_finding(monkeypatch):
    def raising(self, *args):
        raise ZeroDivisionError

    monkeypatch.setattr(perturbed._Tries, "__call__", raising)
    row = perturbed.examine(0, each=4)
    assert len(row.raised) == 4
    assert not tally.sound([asdict(row)])
    assert "raised: 4" in tally.volume([asdict(row)], perturbed.counted([asdict(row)]))


@pytest.mark.parametrize(
    ("seed", "faulty"),
    [
        (18, lambda box: replace(box, lost=np.zeros_like(box.lost))),
        (1, lambda box: replace(box, spread=np.zeros_like(box.spread))),
    ],
    ids=["balance is not asked for", "corrections are not paid for"],
)
def test_a_kernel_that_is_faulty_is_found_out(seed, faulty, monkeypatch):
    for module in (perturbed, plan):
        monkeypatch.setattr(module, "balanced", lambda system, witness: faulty(balanced(system, witness)))
    row = perturbed.examine(seed)
    assert row.false or row.raised


# ---- edges -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0, 1, 3, 6])
def test_no_claim_about_an_edge_is_false(seed):
    row = edges.examine(seed)
    holds(row)
    assert row.known
    assert sum(row.claims.values()) > 0


def test_false_claims_about_edges_are_caught():
    claim = {"state": "fused", "bound": 0.0, "split_in": ""}
    none, some = rationals([0.0, 0.0]), rationals([0.0, 2.0**-200])
    names = ["x0", "x1"]
    assert edges.lies(claim, none, names) == []
    assert len(edges.lies(claim, some, names)) == 2
    assert len(edges.lies(claim | {"state": "split", "bound": 1.0}, none, names)) == 1
    assert len(edges.lies(claim | {"state": "split", "bound": 1.0, "split_in": "x0, x1"}, some, names)) == 1
    assert edges.lies(claim | {"state": "near", "bound": 2.0**-200}, some, names) == []
    assert len(edges.lies(claim | {"state": "near", "bound": 2.0**-201}, some, names)) == 1


def test_optima_on_forests_are_proved_exactly():
    for seed in (1, 3, 7):
        drawn = edges.forest(seed)
        problem = exact(drawn.plain)
        w = edges.optimum(problem, drawn.problem.solve(gap=1e-9).coef)
        assert w is not None
        w[0][0] = w[0][0] + ONE / 2**200
        found = balanced_on_forest(problem, w)
        assert found is None or not optimal(problem, w, *found)


# ---- general rows ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [3, 5, 14, 25])
def test_rows_of_any_kind_are_certified(seed):
    row = row_bounds.examine(seed)
    holds(row)
    assert row.certified, row.why


def test_planted_optima_of_rows_are_proved():
    for seed in range(2, 32, 3):
        drawn = planted_rows(seed)
        assert proves(drawn)
        flows = drawn.flows.copy()
        flows[0, 0] += LAST
        assert not proves(replace(drawn, flows=flows))


def test_rows_are_pulled_back_as_the_matrix_says():
    drawn = random_rows(0)
    system, rng = System(drawn.form), np.random.default_rng(0)
    (one,) = system.flows
    v = np.concatenate([np.zeros(one.first), rng.standard_normal(one.size)])
    want = (drawn.block.K.T @ v[one.columns]).reshape(drawn.n, drawn.d)
    exact, plain = system.residual(v, 0.0 * v), system.residual(v, 0.0 * v, plain=True)
    np.testing.assert_allclose(exact.high, want, rtol=1e-12, atol=1e-12)
    assert (np.abs(exact.high - plain.high) <= plain.error).all()
    np.testing.assert_allclose((system.kind.B @ v).reshape(want.shape), want, rtol=1e-12, atol=1e-12)


def test_rows_whose_balance_is_not_asked_for_are_found_out(monkeypatch):
    def closed(system, witness):
        box = balanced(system, witness)
        return replace(box, lost=np.zeros_like(box.lost))

    monkeypatch.setattr(row_bounds, "balanced", closed)
    assert row_bounds.examine(2).false


def test_a_false_bound_of_rows_is_caught(monkeypatch):
    monkeypatch.setattr(row_bounds, "proved", lambda *_: (1e300, ""))
    row = row_bounds.examine(5)
    assert row.false
    assert not tally.sound([asdict(row)])
    assert "false: " in tally.volume([asdict(row)], row_bounds.counted([asdict(row)]))
