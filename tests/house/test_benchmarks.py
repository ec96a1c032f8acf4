"""The benchmarks measure what they say: one objective for all, failures as rows, a table and a figure. No times."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from factories import thinned
from places import ROOT

from benchmarks import messy
from benchmarks.datasets import WORKLOADS, tiny
from benchmarks.docs import machine, write_docs
from benchmarks.figure import draw
from benchmarks.mutants_of_rooms import marked, places
from benchmarks.profiling import profile
from benchmarks.report import HEADER, accuracy, headline, load, lower_bound, merged, rows, rungs, save, table
from benchmarks.solvers import CLARABEL, OURS, SOLVERS, as_problem
from benchmarks.worker import Limits, Run, failure, measure

LIMITS = Limits(6.0, 60.0)
FIRST = (OURS, CLARABEL, "CVXPY + SCS", "CVXPY + OSQP")


@pytest.mark.parametrize("name", WORKLOADS)
def test_objective_is_that_of_graphreg(name):
    objective = tiny(name)
    form = as_problem(objective).form
    rng = np.random.default_rng(0)
    for w in (np.zeros(objective.shape), rng.standard_normal(objective.shape)):
        assert objective.value(w) == pytest.approx(form.primal(w), rel=1e-12)
    w = rng.standard_normal(objective.shape)
    np.testing.assert_array_equal(objective.difference() @ w, w[objective.edges[:, 0]] - w[objective.edges[:, 1]])


@pytest.mark.parametrize("name", thinned(WORKLOADS, every=3))
def test_every_solver_minimises_the_objective(name):
    """Whatever is installed ends within its tolerance of the certified optimum of each workload it takes part in."""
    objective = tiny(name)
    problem = as_problem(objective).solve(gap=1e-7)
    for solver in SOLVERS.values():
        exact = solver.name in FIRST or solver.name == "prox_tv"
        if not (exact and solver.applies(objective)):
            continue
        try:
            w = solver.run(objective, {CLARABEL: 1e-8}.get(solver.name, solver.ladder[-1])).w
        except ImportError:
            continue
        reached = accuracy(objective.value(w), problem.certificate.dual)
        assert w.shape == objective.shape
        assert reached <= 1e-5, f"{solver.name} is {reached:.1e} from the optimum"


def test_solvers_only_take_part_where_they_solve_the_objective():
    def takers(name):
        return {solver.name for solver in SOLVERS.values() if solver.applies(tiny(name))}

    assert takers("W6").isdisjoint({"CVXPY + OSQP", "prox_tv", "pycut-pursuit", "scikit-image"})  # logistic + l2
    assert "CVXPY + OSQP" in takers("W2")
    assert "CVXPY + OSQP" not in takers("W4")
    assert "prox_tv" in takers("W3-300") & takers("W7")
    assert "prox_tv" not in takers("W4")
    assert "scikit-image" in takers("W7")
    assert "scikit-image" not in takers("W3-300")
    assert all({OURS, CLARABEL} <= takers(name) for name in WORKLOADS)


def test_a_run_in_its_own_process():
    objective = tiny("W7")
    run = measure(objective, "graphreg PrimalDual", 1e-6, LIMITS, small=True)
    assert run.status == "certified"
    assert run.gap <= 1e-6
    assert run.lower <= run.value <= run.lower + 2e-6 * abs(run.value)
    assert run.trace
    assert all(lower <= run.value + 1e-9 for _, _, lower in run.trace)
    assert run.solve > 0
    assert run.megabytes > 0
    assert 0 <= run.checks <= 1


def test_a_solver_without_memory_is_a_row():
    run = measure(tiny("W7"), OURS, 1e-6, Limits(0.05, 60.0), small=True)
    assert not run.answered
    assert run.status == "out of memory"
    (row,) = rows([run])
    assert row[-1] == run.status
    assert row[2] == ""


def test_a_solver_without_time_is_a_row():
    run = measure(tiny("W7"), "CVXPY + SCS", 1e-7, Limits(6.0, 0.05), small=True)
    assert not run.answered
    assert run.status.startswith("more than")


@pytest.mark.parametrize(
    ("code", "said", "status"),
    [
        (1, "Traceback ...\nModuleNotFoundError: No module named 'prox_tv'", "not installed"),
        (1, "Traceback ...\nImportError: numpy.core failed", "not usable: ImportError: numpy.core failed"),
        (1, "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB", "out of memory"),
        (1, "ValueError: ScsWork allocation error!", "out of memory"),
        (-9, "", "out of memory"),
        (-6, "free(): double free\nFatal Python error: Aborted", "crashed (SIGABRT: free(): double free)"),
        (1, "Traceback ...\nRuntimeError: no point, it said infeasible", "RuntimeError: no point, it said infeasible"),
        (3, "", "exit code 3"),
    ],
)
def test_how_a_process_failed(code, said, status):
    assert failure(code, said) == status


# ---- table and figure ------------------------------------------------------------------------------------------------
def made_up():
    """Two workloads; one rival that is accurate, one that is not, one that fails."""
    own = Run("W2", OURS, 1e-6, "certified", 10.0 + 2e-6, 0.1, 1.0, 50, 10.0, 2e-7, 0.1, ((0.5, 11.0, 9.0),), 80.0)
    tight = replace(own, setting=1e-8, value=10.0 + 1e-9, solve=2.0, lower=10.0 - 1e-9, gap=2e-10)
    loose = Run("W2", CLARABEL, 1e-3, "optimal", 10.1, 0.1, 3.0, megabytes=90.0)
    sharp = Run("W2", CLARABEL, 1e-8, "optimal", 10.0 + 1e-8, 0.1, 5.0, megabytes=90.0)
    far = Run("W2", "CVXPY + SCS", 1e-3, "optimal", 10.1, 0.1, 0.5, megabytes=90.0)
    gone = Run("W4", "CVXPY + SCS", 1e-3, "out of memory")
    return [own, tight, loose, sharp, far, replace(own, workload="W4"), gone]


def test_rows_compare_at_the_accuracy_that_is_reached():
    found = {row[:2]: dict(zip(HEADER, row, strict=True)) for row in rows(made_up())}
    assert found["W2", OURS]["setting"] == "1e-06"
    assert found["W2", OURS]["ratio"] == ""
    assert found["W2", CLARABEL]["setting"] == "1e-08"
    assert found["W2", CLARABEL]["ratio"] == "5"
    assert found["W2", "CVXPY + SCS"]["ratio"] == "> 0.5"
    assert "too slow to be asked for" in found["W2", "CVXPY + SCS"]["status"]  # at one of its settings only
    assert found["W4", "CVXPY + SCS"]["status"] == "out of memory"


def test_accuracy_is_judged_by_the_best_bound_of_all():
    runs = [run for run in made_up() if run.workload == "W2"]
    assert lower_bound(runs) == 10.0
    assert headline(rungs(runs, CLARABEL)).accuracy == pytest.approx(1e-9, rel=1e-3)


def test_graphreg_has_to_certify_what_it_reaches():
    runs = [replace(run, gap=1e-3) if run.solver == OURS else run for run in made_up()]
    assert "too slow to be asked for 1e-06" in rows(runs)[0][-1]


def test_what_is_written(tmp_path):
    runs = made_up()
    body = rows(runs)
    draw(runs, tmp_path / "speed.png")
    text = write_docs(runs, body, tmp_path / "docs").read_text()
    for path in (tmp_path / "speed.png", tmp_path / "docs" / "benchmarks.png"):
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert all(f"| {row[0]} | {row[1]} |" in text for row in body)
    assert "| W2 | 1e-06 |" in text  # a goal
    assert machine() in text
    assert str(ROOT) not in text
    assert len(table(body).splitlines()) == len(body) + 2


def test_stored_runs_are_kept_unless_measured_anew(tmp_path):
    runs = made_up()
    save(runs, tmp_path / "deep" / "runs.json")
    back = load(tmp_path / "deep" / "runs.json")
    assert [run.trace for run in back] == [run.trace for run in runs]
    assert rows(back) == rows(runs)
    again = replace(runs[4], status="again")
    new = merged(back, [again], list(WORKLOADS).index)
    assert [run.status for run in new if run.workload == "W2" and run.solver == again.solver] == ["again"]
    assert len(new) == len(runs)


def test_the_profile_names_functions():
    text = profile("W2")
    assert "certified" in text
    assert "graphreg/" in text
    assert str(ROOT) not in text


def test_the_lines_that_are_changed_follow_from_the_seed():
    drawn = places("judging", seed=1, lines=4)
    assert list(map(str, drawn)) == list(map(str, places("judging", seed=1, lines=4)))
    assert list(map(str, drawn)) != list(map(str, places("judging", seed=2, lines=4)))
    assert len({(place.path, place.change.line.lineno) for place in drawn}) == 4
    for place in drawn:
        text = ast.unparse(marked(place.tree, {id(place.change.line): 3}))
        assert text.count("_come_by(3)") == 1
        assert ast.unparse(place.change.made(place.tree)) != ast.unparse(place.tree)


def test_the_predictions_of_the_command_line_are_those_of_python():
    """From the table of coefficients that it writes, as a user would make them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.repeat(list("abc"), 20), "x": rng.normal(size=60), "kind": ["old", "new"] * 30})
    frame["y"] = np.where(frame["shop"] < "c", 1.0, 3.0) * frame["x"] + (frame["kind"] == "old") + rng.normal(size=60)
    edges = pd.DataFrame([("a", "b"), ("b", "c")], columns=["from", "to"])
    table = messy.Table("shops", frame, edges, "y", "shop", ["x"], ["kind"])
    found = [door(table, frame[:50], frame[50:]) for door in (messy.by_command, messy.by_python)]
    np.testing.assert_allclose(*found, rtol=1e-4)
