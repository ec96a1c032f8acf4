"""Every solver of the benchmarks that is installed ends at the certified optimum of tiny workloads of every kind."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from factories import thinned

from benchmarks.datasets import STRENGTHS, WORKLOADS, find, tiny
from benchmarks.docs import machine
from benchmarks.generators import grid_edges
from benchmarks.goals import GOALS, gaps, goals_table
from benchmarks.operations import OPERATIONS, kept, operations_rows
from benchmarks.ratios import Ratio, ratio_table, ratios, regressions, store, stored
from benchmarks.report import accuracy
from benchmarks.solvers import OURS, PREFIX, SOLVERS, as_problem
from benchmarks.solvers.conic import programme
from benchmarks.sweep import SIZES, draw_sweep, exponent, exponents, names
from benchmarks.taking_turns import take_turns
from benchmarks.worker import Limits, Run, measure

KINDS = (
    "W1-l2",
    "W1-l1",
    "W2",
    "W3-300",
    "W4",
    "W6",
    "chain-1e3",
    "tree-1e6",
    "geometric-0.3",
    "counties-3",
    "big-4e5",
)
TIGHT = {"CVXPY + Clarabel": 1e-8, "Clarabel": 1e-8}
FAR = {"pycut-pursuit": 1e-3}  # of vectors: its cuts follow few directions
LIMITS = Limits(6.0, 120.0)


@cache
def optimum(name):
    """A lower bound of the optimum of a tiny workload, near it."""
    return as_problem(tiny(name)).solve(gap=1e-8, progress=False).certificate.dual


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # inside the rivals' packages
@pytest.mark.parametrize(("solver", "name"), thinned(SOLVERS, KINDS, every=3))
def test_answers_are_at_the_optimum(solver, name):
    objective, chosen = tiny(name), SOLVERS[solver]
    if not chosen.applies(objective):
        pytest.skip("it solves another problem")
    try:
        answer = chosen.run(objective, TIGHT.get(solver, chosen.ladder[-1]))
    except ImportError as error:
        pytest.skip(f"not installed: {error}")
    reached = accuracy(objective.value(answer.w), optimum(name))
    assert answer.w.shape == objective.shape
    assert reached <= (FAR.get(solver, 1e-5) if objective.penalty == "l2" else 1e-5)
    assert answer.solve >= 0.0


def test_cut_pursuit_takes_vectors_with_absolute_values_by_coordinates():
    pytest.importorskip("pycut_pursuit")
    objective = replace(tiny("W4"), penalty="l1")
    lower = as_problem(objective).solve(gap=1e-8, progress=False).certificate.dual
    answer = SOLVERS["pycut-pursuit"].run(objective, 1e-7)
    assert accuracy(objective.value(answer.w), lower) <= 1e-5


def test_solvers_given_matrices_are_given_the_objective():
    """At feasible numbers the programme has the objective's value, but for a constant."""
    rng = np.random.default_rng(0)
    for name in ("W1-l1", "W2", "W4", "W3-300"):
        objective = tiny(name)
        given, n = programme(objective), objective.shape[0]
        assert given.A.shape == (given.b.size, given.q.size)
        assert given.b.size == given.zero + given.least + sum(given.second) + 3 * given.exponential
        values = []
        for w in rng.standard_normal((3, *objective.shape)):
            z = objective.difference() @ w
            sizes = np.abs(z).ravel() if objective.penalty == "l1" else np.linalg.norm(z, axis=1)
            assert objective.X is None or objective.y.size == n * objective.X.shape[1]
            more = given.q.size - w.size - sizes.size
            rest = (np.einsum("nsd,nd->ns", objective.X, w) - objective.y).ravel() if more else np.zeros(0)
            x = np.concatenate([w.ravel(), rest, sizes])
            slack = given.b - given.A @ x
            np.testing.assert_allclose(slack[: given.zero], 0.0, atol=1e-12)
            assert (slack[given.zero : given.zero + given.least] >= -1e-12).all()
            values.append(x @ (given.P @ x) / 2 + given.q @ x - objective.value(w))
        np.testing.assert_allclose(values, values[0], rtol=1e-12, atol=1e-9)


def test_who_takes_part_on_chains_trees_and_grids():
    def takers(name):
        return {solver.name for solver in SOLVERS.values() if solver.applies(tiny(name))}

    assert {"scikit-learn", "skglm", "prox_tv", "pycut-pursuit", f"{PREFIX}DynamicProgramming"} <= takers("chain-1e5")
    assert takers("tree-1e6").isdisjoint({"scikit-learn", "skglm", "prox_tv", "scikit-image"})
    assert f"{PREFIX}DynamicProgramming" in takers("tree-1e6")
    assert f"{PREFIX}DynamicProgramming" not in takers("W3-1000")
    assert takers("W6").isdisjoint({"OSQP", "pyproximal PDHG", "pyproximal ADMM", "pycut-pursuit"})
    assert {"Clarabel", "SCS"} <= takers("W6")


def test_a_long_chain_is_no_lasso():
    chain = tiny("chain-1e3")
    long = replace(chain, y=np.zeros((2001, 1)))
    with pytest.raises(RuntimeError, match="dense"):
        SOLVERS["skglm"].run(long, 1e-3)


# ---- workloads -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*WORKLOADS, "deep-1-1e3", "shallow-10-1e3"])
def test_tiny_workloads_are_of_their_kind(name):
    objective = tiny(name)
    ends = np.sort(objective.edges, axis=1)
    assert objective.name == name
    assert objective.components <= 10_000
    assert (objective.edges[:, 0] != objective.edges[:, 1]).all()
    assert len(np.unique(ends, axis=0)) == len(ends)
    assert ends.max() < objective.shape[0]


@pytest.mark.parametrize("name", ["deep-1-1e4", "deep-10-1e4", "shallow-1-1e4", "shallow-50-1e4"])
def test_sweeps_have_the_size_they_are_named_by(name):
    assert find(name).components == pytest.approx(1e4, rel=0.2)


def test_grids_join_neighbours():
    side = 4
    edges = grid_edges(side)
    place = np.column_stack(np.divmod(np.arange(side**2), side))
    assert len(edges) == 2 * side * (side - 1)
    np.testing.assert_array_equal(np.abs(place[edges[:, 0]] - place[edges[:, 1]]).sum(axis=1), 1)


def test_large_problems_are_not_given_to_solvers_of_small_ones():
    objective = replace(tiny("W7"), edges=np.zeros((1_500_001, 2), dtype=int), weight=np.zeros(1_500_001))
    said = take_turns(objective, [SOLVERS["Clarabel"]], 1, LIMITS, small=True)[-1]
    assert said.status == "not tried: 1,500,001 edge components"


def test_first_calls_are_apart():
    run = measure(tiny("chain-1e3"), OURS, 1e-6, LIMITS, small=True)
    assert run.status.startswith("certified; Auto(")  # which method it took
    assert 0.0 < run.before <= run.megabytes
    assert run.first > 0.0


# ---- goals and ratios ------------------------------------------------------------------------------------------------
def made_up(ours=0.5, theirs=1.0, workload="W3-300"):
    own = Run(workload, OURS, 1e-6, "certified; Auto(PrimalDual)", 10.0, 0.1, ours, 50, 10.0 - 1e-7, 1e-7)
    named = replace(own, solver=f"{PREFIX}PrimalDual", solve=0.9 * ours)
    rival = Run(workload, "pycut-pursuit", 1e-5, "", 10.0 + 1e-8, 0.0, theirs)
    rough = replace(rival, solver="SCS", value=10.1, solve=theirs / 10)
    return [replace(run, megabytes=1024.0, first=2 * run.solve) for run in (own, named, rival, rough)]


def lines(text):
    return [line for line in text.splitlines() if line.startswith("W3-300")]


def test_goals_are_judged():
    (line, tight) = lines(goals_table(made_up()))
    assert "PrimalDual" in line
    assert line.endswith("yes (1 of it)")  # half the rival's time was asked for; SCS is faster, but far off
    assert "pycut-pursuit" in line
    assert tight.endswith("no")  # 1e-8 was not certified
    assert lines(goals_table(made_up(ours=2.0)))[0].endswith("no (4 of it)")
    (alone, _) = lines(goals_table(made_up()[:2]))
    assert alone.endswith("pycut-pursuit gave no answer")


def test_goals_name_what_is_there():
    assert {goal.workload for goal in GOALS} <= set(WORKLOADS)
    assert {goal.rival for goal in GOALS if goal.rival} <= set(SOLVERS)
    assert all(goal.asked() for goal in GOALS)
    assert gaps("W4") == (1e-6, 1e-8, 1e-10)
    assert gaps("W7") == (1e-6,)
    assert len(STRENGTHS) == 3


def test_ratios_beside_those_that_are_stored(tmp_path):
    path = tmp_path / "ratios.json"
    assert stored(path)[0] == {}
    before = ratios(made_up())
    assert before == {"W3-300": Ratio(0.5, 1.0, "pycut-pursuit")}
    store(before, path)
    known, words = stored(path)
    assert known == before
    assert machine() in words
    assert json.loads(path.read_text())["ratios"].keys() == {"W3-300"}
    assert regressions(ratios(made_up(ours=0.59)), known) == []
    slower = ratios(made_up(ours=0.61))
    assert regressions(slower, known) == ["W3-300"]
    assert lines(ratio_table(slower, known))[0].endswith("+22%    SLOWER")
    assert regressions({"W3-300": Ratio(9.0, 1.0, "prox_tv")}, known) == []  # of another rival nothing is known
    store({"W4": Ratio(1.0, 2.0, "SCS")}, path)
    assert stored(path)[0].keys() == {"W3-300", "W4"}


# ---- other measurements ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_run(name):
    operation = OPERATIONS[name]
    given = operation.prepare(True)
    assert operation.run(given) is not None
    assert operation.run(given) is not None


def test_operations_have_rows(tmp_path):
    (row,) = operations_rows(["again"], 1, LIMITS, small=True)
    assert row[0] == OPERATIONS["again"].what
    assert row[5].endswith("of it)")
    (failed,) = operations_rows(["again"], 1, Limits(0.05, 60.0), small=True)
    assert failed[4:] == ("0.002 s", "no", "out of memory")
    path = tmp_path / "operations.json"
    other = (OPERATIONS["build"].what, *row[1:])
    assert kept(path, [row]) == [row]
    assert kept(path, [failed, other]) == [other, failed] == kept(path, [])  # in their order, those of now


def test_exponents_are_fitted(tmp_path):
    def run(name, size):
        seconds = 1e-7 * size**1.5
        return Run(name, OURS, 1e-4, "", 1.0, 0.0, seconds, 100, gap=1e-7, megabytes=90 + size / 1e4, before=90)

    runs = [run(name, size) for family in names() for name, size in zip(family, SIZES, strict=True)]
    runs.append(replace(runs[0], gap=1.0, solve=1e9))  # what was not certified does not count
    assert exponent(np.array([1e4, 1e6]), np.array([1.0, 100.0]), "solve") == pytest.approx(1.0)
    assert np.isnan(exponent(np.array([1e3, 1e4]), np.array([1.0, 100.0]), "solve"))  # small ones are left out
    assert np.isnan(exponent(np.array([1e4, 1e6]), np.array([1.0, 100.0]), "memory"))
    body = exponents(runs).splitlines()[2:]
    assert len(body) == 6
    for line in body:
        time, rounds, memory = map(float, line.split()[4:7])
        assert (time, memory) == (1.5, 1.0)
        assert rounds == 0.0
    draw_sweep(runs, tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
