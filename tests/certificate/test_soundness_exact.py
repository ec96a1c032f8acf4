"""The exact judge of the soundness study: it catches what is wrong by one last bit, and lets pass what is right."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import time
from dataclasses import asdict, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from benchmarks.soundness import judged, pool, reals, tally
from benchmarks.soundness.attained import attained
from benchmarks.soundness.candidates import candidates, rational_optimum
from benchmarks.soundness.exact import above, below, exact
from benchmarks.soundness.failures import FAILURES, almost_collinear, near_fusion, separable, small_overlap
from benchmarks.soundness.linear import kernel, nonnegative, solved
from benchmarks.soundness.objective import objective, recedes, repaired
from benchmarks.soundness.stored import StoredOtherwiseError, as_stored
from benchmarks.wild.problems import ALL_STRUCTURES, WILD, wild_problem
from graphreg.datasets import random_problem
from graphreg.datasets.plain import PlainEdge, PlainProblem, PlainSamples
from graphreg.datasets.random_problems import LOSSES, PENALTIES

UP, DOWN = np.inf, -np.inf


@cache
def cycle():
    """Problems that have every trait with every loss that it fits."""
    return [wild_problem(seed) for seed in range(150)]


def without_flint():
    """The module of rational numbers as it is where python-flint is not installed."""
    spec = importlib.util.spec_from_file_location("reals_without_flint", reals.__file__)
    module = importlib.util.module_from_spec(spec)
    there = sys.modules.get("flint")
    sys.modules["flint"] = None
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop("flint")
        if there is not None:
            sys.modules["flint"] = there
    assert module.Rational is Fraction
    return module


def two_nodes(kind="L1", weight=0.25, parameter=None, y=(0.0, 1.0), family="squared"):
    """One sample at each of two nodes, and an edge between them."""
    one, y = np.ones(1), np.asarray(y)
    samples = tuple(PlainSamples(i, family, np.ones((1, 1)), y[i : i + 1], one, np.zeros(1)) for i in (0, 1))
    edge = PlainEdge(0, 1, kind, weight, np.array([0]), np.zeros(1), parameter)
    return exact(PlainProblem((0, 1), 1, samples, (edge,), np.zeros(1), one))


# ---- numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("module", [reals, without_flint()], ids=["as installed", "fractions"])
@pytest.mark.parametrize("x", [1e-300, 1e-17, 0.3, 1.0, 1 + 2**-52, 2.0, 700.0, 4000.0, 1e18, 1e300])
def test_intervals_contain_the_function_and_are_narrow(module, x):
    for f, g, at in (
        (module.log, math.log, x),
        (module.sqrt, math.sqrt, x),
        (module.exp, math.exp, x if x < 700 else -x),
        (module.exp, math.exp, -x),
    ):
        low, high = (module.approximately(end) for end in f(module.rational(at)))
        assert low <= np.nextafter(g(at), UP)
        assert high >= np.nextafter(g(at), DOWN)
        assert high - low <= 1e-15 * abs(g(at)) + 1e-300


def test_both_arithmetics_give_the_same_ends():
    other = without_flint()
    for name in ("exp", "log", "sqrt"):
        for x in (0.125, 3.7, 19.25):
            both = [[m.ends(end) for end in getattr(m, name)(m.rational(x))] for m in (reals, other)]
            assert both[0] == both[1]


def test_ends_are_strictly_apart_and_in_order_where_the_function_is_irrational():
    exp_low, exp_high = reals.exp(reals.ONE)
    assert exp_low < reals.log(exp_high)[1] * exp_high  # log e = 1
    assert reals.log(exp_low)[0] < 1 < reals.log(exp_high)[1]
    low, high = reals.sqrt(reals.rational(2.0))
    assert low * low < 2 < high * high
    assert reals.sqrt(reals.rational(2.25)) == (reals.rational(1.5), reals.rational(1.5))


def test_what_is_too_large_or_small_for_exp_is_bounded():
    low, high = reals.exp(reals.rational(1e9))
    assert high is None
    assert low == reals.HUGE < reals.exp(reals.rational(4096.0))[1]
    low, high = reals.exp(reals.rational(-1e9))
    assert low == 0 < high == 1 / reals.HUGE
    assert reals.log(reals.ONE)[0] <= 0 <= reals.log(reals.ONE)[1]


def test_linear_systems_in_rational_numbers():
    rows = reals.rationals([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1e-12, 1.0]])
    for v in kernel(rows, 3):
        assert all(reals.dot(row, v) == 0 for row in rows)
    w = solved(rows, [reals.ONE, 2 * reals.ONE, reals.ZERO], 3)
    assert [reals.dot(row, w) for row in rows] == [1, 2, 0]
    assert solved(rows, [reals.ONE, reals.ONE, reals.ZERO], 3) is None
    x, _ = nonnegative(rows[1:], reals.rationals([2.0, 1e-12]))
    assert min(x) >= 0
    none, t = nonnegative(rows[:1], reals.rationals([-1.0]))
    assert none is None
    assert all(value <= 0 for value in (t[0] * v for v in rows[0]))
    assert -t[0] > 0


# ---- P ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(0, 1000, 37))
def test_exact_values_agree_with_the_float_formulas(seed):
    drawn = random_problem(seed)
    rng = np.random.default_rng(seed)
    shape = (len(drawn.plain.nodes), drawn.plain.d)
    inner, w = drawn.plain.inner, drawn.plain.size * rng.standard_normal(shape)
    w = inner + (1 - 1e-9) * (repaired(drawn.plain, inner + w) - inner)  # balls are left by a last bit otherwise
    stored = as_stored(drawn.plain, drawn.problem.form)
    at = exact(stored).at(w)
    if drawn.penalty != "Zero":  # equal values are no longer equal after the last step
        assert at.feasible
        assert reals.approximately(at.lower) == pytest.approx(objective(drawn.plain, w), rel=1e-9)
        assert 0 <= reals.approximately(at.upper - at.lower) <= 1e-40 * abs(reals.approximately(at.upper))


def test_a_bound_that_is_wrong_by_its_last_bit_is_caught():
    problem = two_nodes("L2", 1 / 3)
    for w in ([[0.3], [0.7]], [[1 / 3], [2 / 3]], [[0.1], [1e-300]]):
        at = problem.at(w)
        assert at.lower == at.upper  # nothing irrational here
        value = reals.approximately(at.upper)
        higher, lower = float(np.nextafter(value, UP)), float(np.nextafter(value, DOWN))
        assert not below(higher, at)
        assert below(lower, at)
        assert above(higher, at)
        assert not above(lower, at)


def test_the_nearest_floats_of_an_irrational_value_are_told_apart():
    problem = two_nodes("L1", 0.25, y=(-1.0, 1.0), family="logistic")
    at = problem.at([[-0.5], [0.5]])
    value = reals.approximately(at.upper)
    assert at.lower < at.upper
    assert below(float(np.nextafter(value, DOWN)), at)
    assert not below(float(np.nextafter(value, UP)), at)
    assert not above(float(np.nextafter(value, DOWN)), at)


def test_infinities_and_nan_as_bounds():
    at = two_nodes().at([[0.0], [1.0]])
    assert below(-np.inf, at)
    assert not below(np.inf, at)
    assert not below(np.nan, at)
    assert above(np.inf, at)
    assert not above(-np.inf, at)
    assert not above(np.nan, at)


@pytest.mark.parametrize(
    ("kind", "parameter", "inside", "outside"),
    [
        ("Zero", None, 0.5, np.nextafter(0.5, UP)),
        ("Ball", 0.25, 0.25, np.nextafter(0.25, DOWN)),
        ("NonNegative", None, 0.5, np.nextafter(0.5, UP)),
        ("Box", (np.array([-np.inf]), np.array([0.25])), 0.25, np.nextafter(0.25, DOWN)),
    ],
)
def test_constraints_hold_to_the_last_bit(kind, parameter, inside, outside):
    problem = two_nodes(kind, 1.0, parameter)
    assert problem.at([[0.5], [inside]]).feasible
    at = problem.at([[0.5], [outside]])
    assert not at.feasible
    assert not above(1e9, at)
    assert above(np.inf, at)


def test_a_violated_constraint_makes_an_upper_bound_wrong():
    answer = judged.Answer("planted", "certified", primal=10.0, dual=0.0)
    judged.judge_bounds(answer, two_nodes("Zero", 1.0).at([[0.5], [np.nextafter(0.5, UP)]]), {})
    assert [what.split(":")[0] for what in answer.wrong] == ["upper"]


def test_the_judge_says_what_is_wrong():
    problem = near_fusion(0.25)
    rows = exact(problem.plain)
    optimum = rows.at([[0.25], [0.75]])
    assert optimum.upper == reals.rational(0.1875)
    known = {"the optimum": optimum}
    for dual, primal, kinds in (
        (0.1875, 0.1875, []),
        (np.nextafter(0.1875, UP), 0.1875, ["crossed", "lower"]),
        (np.nextafter(0.1875, UP), 0.2, ["lower"]),
        (0.0, np.nextafter(0.1875, DOWN), ["upper"]),
        (np.nan, np.nan, []),
    ):
        answer = judged.Answer("planted", "certified", primal=float(primal), dual=float(dual))
        judged.judge_bounds(answer, optimum, known)
        assert [what.split(":")[0] for what in answer.wrong] == kinds


@pytest.mark.parametrize(
    ("make", "status", "primal", "kinds"),
    [
        (separable, "certified", 0.0, ["status"]),
        (separable, "unattained", 0.0, []),
        (small_overlap, "unattained", 0.4, ["status"]),
        (small_overlap, "infeasible", 0.4, ["status"]),
        (near_fusion, "certified", 0.25, []),
        (near_fusion, "certified", 0.26, ["unit"]),
        (near_fusion, "budget", 0.26, []),
    ],
)
def test_statuses_are_judged(make, status, primal, kinds):
    drawn = make()
    problem = exact(drawn.plain)
    known = {name: problem.at(w) for name, w in candidates(drawn.plain, problem, ask=False).items()}
    best = min(reals.approximately(at.upper) for at in known.values())
    row = judged.Row(0, "", "", "", [], 1, 1, 1, drawn.gap, None, attained(problem), best)
    answer = judged.Answer("planted", status, primal=primal, dual=primal, relative_gap=0.0)
    judged._judge_status(answer, drawn, row, known)
    assert [what.split(":")[0] for what in answer.misjudged] == kinds


def test_known_points_see_a_bound_of_an_eighth_where_the_optimum_is_0():
    drawn = almost_collinear(1e-10)
    problem = exact(as_stored(drawn.plain, drawn.problem.form))
    known = {name: problem.at(w) for name, w in candidates(drawn.plain, problem, ask=False).items()}
    assert known["the common fit"].upper == 0
    answer = judged.Answer("planted", "certified", primal=0.125, dual=0.125)
    judged.judge_bounds(answer, problem.at(np.array([[0.25, 0.25]])), known)
    assert [what.split(":")[0] for what in answer.wrong] == ["lower"]


def test_a_rational_optimum_is_one():
    drawn = random_problem(30)
    assert (drawn.loss, drawn.penalty) == ("squared", "SquaredL2")
    problem = exact(drawn.plain)
    w = rational_optimum(problem)
    least = problem.at(w).upper
    for i, j in ((0, 0), (1, 0)):
        for step in (reals.rational(1e-9), -reals.rational(1e-9)):
            other = [list(row) for row in w]
            other[i][j] = other[i][j] + step
            assert problem.at(other).lower > least


# ---- data as stored --------------------------------------------------------------------------------------------------
def test_data_that_are_stored_otherwise_are_seen():
    drawn = random_problem(10)
    form = drawn.problem.form
    assert exact(as_stored(drawn.plain, form)).d == drawn.plain.d
    part, edge = drawn.plain.samples[0], drawn.plain.edges[0]
    y = part.y.copy()
    y[0] = np.nextafter(y[0], UP)
    for changed in (replace(part, y=y), replace(part, scale=part.scale * 1.01)):
        with pytest.raises(StoredOtherwiseError):
            as_stored(replace(drawn.plain, samples=(changed, *drawn.plain.samples[1:])), form)
    for edges in (
        (replace(edge, weight=1.01 * edge.weight), *drawn.plain.edges[1:]),
        drawn.plain.edges[1:],
        (replace(edge, kind="L2" if edge.kind == "L1" else "L1"), *drawn.plain.edges[1:]),
    ):
        with pytest.raises(StoredOtherwiseError):
            as_stored(replace(drawn.plain, edges=edges), form)


# ---- attainment ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", range(0, 16, 3))
def test_attainment_does_not_depend_on_units(k):
    assert attained(exact(separable(10.0**-k).plain)) is False
    assert attained(exact(small_overlap(10.0 ** -max(k, 1)).plain)) is True


@pytest.mark.parametrize("seed", [1, 4, 6, 14, 21, 41, 64, 81, 104, 144, 161, 204, 254, 301, 304])
def test_attainment_agrees_with_a_linear_programme_in_floats(seed):
    plain = random_problem(seed).plain
    said = attained(exact(plain))
    assert said is None or said is not recedes(plain)


# ---- the generator ---------------------------------------------------------------------------------------------------
def test_a_seed_decides_a_wild_problem():
    one, other = wild_problem(32), wild_problem(32)
    w = np.ones((len(one.plain.nodes), one.plain.d))
    assert one.description == other.description
    assert (one.gap, one.rounds, one.from_zero) == (other.gap, other.rounds, other.from_zero)
    at = [exact(p.plain).at(w) for p in (one, other)]
    assert (at[0].lower, at[0].upper) == (at[1].lower, at[1].upper)


def test_wild_problems_have_every_trait_with_every_loss_that_it_fits():
    drawn = cycle()
    found = {(trait, p.loss) for p in drawn for trait in p.wild}
    assert found == {(trait, loss) for trait, losses in WILD.items() for loss in losses if loss in LOSSES}
    assert {p.loss for p in drawn} == set(LOSSES)
    assert {p.penalty for p in drawn} == set(PENALTIES)
    assert {p.rounds for p in drawn} == {1, 2, 5, None}
    assert {p.from_zero for p in drawn} == {False, True}
    assert min(p.gap for p in drawn) < 1e-9
    assert max(p.gap for p in drawn) > 1e-3
    sizes = [len(p.plain.nodes) * p.plain.d for p in drawn if "many coordinates" in p.wild]
    assert max(sizes) > 1000


def test_wild_problems_have_every_structure():
    # they change every 100 seeds
    assert {wild_problem(seed).structure for seed in range(0, 600, 25)} == set(ALL_STRUCTURES)


@pytest.mark.parametrize("seed", [*range(0, 150, 10), *range(1, 600, 59)])
def test_wild_data_are_stored_as_they_were_drawn(seed):
    drawn = wild_problem(seed)
    problem = exact(as_stored(drawn.plain, drawn.problem.form))
    assert problem.at(np.tile(drawn.plain.inner, (len(drawn.plain.nodes), 1))).feasible


@pytest.mark.parametrize(
    ("trait", "holds"),
    [
        ("zero column", lambda X: (X == 0).all(axis=0).any()),
        ("near-collinear columns", lambda X: np.linalg.svd(X / np.linalg.norm(X, axis=0))[1][-1] < 1e-8),
        ("dummies and intercept", lambda X: np.linalg.matrix_rank(X) < X.shape[1]),
        ("dollars and rates", lambda X: np.ptp(np.log10(np.abs(X).max(axis=0))) > 10),
    ],
)
def test_traits_are_what_they_are_called(trait, holds):
    alone = [p for p in cycle() if p.wild == (trait,)]
    designs = [np.concatenate([part.X for part in p.plain.samples]) for p in alone]
    enough = [X for X in designs if len(X) >= X.shape[1]]
    assert enough
    for X in enough:
        assert holds(X)


# ---- the run ---------------------------------------------------------------------------------------------------------
def test_one_wild_seed_is_judged():
    row = judged.wild(32, ("primal-dual",))
    assert not row.error, row.error
    assert [answer.method for answer in row.answers] == ["primal-dual"]
    assert row.attained is True
    text = tally.report([json.loads(json.dumps(asdict(row)))])
    assert "wild weights" in text


def test_wrong_answers_and_broken_rows_fail_the_study():
    good = {"error": "", "answers": [{"wrong": [], "misjudged": [], "status": "budget"}]}
    wrong = {"error": "", "answers": [{"wrong": ["lower: 1"], "misjudged": [], "status": "certified"}]}
    assert tally.sound([good])
    assert not tally.sound([good, wrong])
    assert not tally.sound([good, {"error": "killed", "answers": []}])
    assert tally.outcome(wrong["answers"][0]) == "wrong"
    for also in ({"misjudged": ["status: 1"]}, {"status": "exception"}):
        assert not tally.sound([{"error": "", "answers": [good["answers"][0] | also]}])


def test_a_run_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"seed": seed, "error": "", "answers": []} for seed in (0, 1)]
    lines = [json.dumps(row) for row in ({"code": pool.code()}, *rows)]
    path.write_text("\n".join(lines) + '\n{"seed": 2, "err')  # the last line was broken off
    assert list(pool.run(judged.standard, range(2), path, 1, 60.0, fresh=False)) == rows
    assert pool.kept(path, fresh=False).keys() == {0, 1}
    path.write_text(json.dumps({"code": "of another day"}) + "\n" + json.dumps(rows[0]) + "\n")
    assert pool.kept(path, fresh=False) == {}


def test_a_seed_that_takes_too_long_is_killed(tmp_path):
    (row,) = pool.run(time.sleep, [30], tmp_path / "rows.jsonl", 1, 0.0, fresh=True)
    assert "was killed" in row["error"]
    assert not tally.sound([row])


def test_known_failures_are_built_over_their_whole_sweep():
    for name, failure in FAILURES.items():
        for value in (failure.sweep[0], failure.sweep[-1]):
            drawn = failure.make(value)
            assert drawn.traits == (name,)
            assert len(drawn.plain.samples) >= 1
