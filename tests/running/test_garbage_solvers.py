"""Lies and remains of conic solvers: a status, never a false certificate or an error of another library."""

from __future__ import annotations

import copy
import pickle
import threading
import time

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from cvxpy.settings import INFEASIBLE, OPTIMAL, UNBOUNDED
from factories import named, thinned

import graphreg as gr
from graphreg.compiling.conic import ConicProblem
from graphreg.errors import CheckpointError, MethodError


def posed(loss=gr.SquaredLoss):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(12) if loss is gr.SquaredLoss else rng.integers(2, size=12)
    data = gr.NodeData.from_arrays(rng.standard_normal((12, 2)), y, list(np.arange(12) % 3))
    model = loss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()) + 1e-2 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(model)


def fill(status, value, dual):
    """A solver that leaves ``value(shape)`` in every variable, and ``dual(shape)`` in every dual one."""

    def solve(problem, *_, **__):
        for variable in problem.variables():
            object.__setattr__(variable, "_value", value(variable.shape))
        for constraint in problem.constraints:
            for variable in constraint.dual_variables:
                object.__setattr__(variable, "_value", dual(variable.shape))
        problem._status = status

    return solve


def breaks(error):
    def solve(*_, **__):
        raise error

    return solve


rng = np.random.default_rng(1)
GARBAGE = {
    "zeros": fill(OPTIMAL, np.zeros, np.zeros),
    "not a number": fill(OPTIMAL, lambda s: np.full(s, np.nan), np.zeros),
    "flows that are not numbers": fill(OPTIMAL, np.zeros, lambda s: np.full(s, np.nan)),
    "infinite": fill(OPTIMAL, lambda s: np.full(s, np.inf), lambda s: np.full(s, -np.inf)),
    "huge": fill(OPTIMAL, lambda s: np.full(s, 1e308), lambda s: np.full(s, 1e308)),
    "noise": fill(OPTIMAL, rng.standard_normal, rng.standard_normal),
    "large noise": fill(OPTIMAL, lambda s: 1e9 * rng.standard_normal(s), lambda s: 1e9 * rng.standard_normal(s)),
    "another shape": fill(OPTIMAL, lambda s: np.zeros(7), lambda s: np.zeros(7)),
    "one number": fill(OPTIMAL, lambda s: np.float64(0.0), lambda s: np.float64(0.0)),
    "complex": fill(OPTIMAL, lambda s: np.zeros(s) + 1j, lambda s: np.zeros(s) + 1j),
    "nothing": fill(OPTIMAL, lambda s: None, lambda s: None),
    "infeasible": fill(INFEASIBLE, lambda s: None, lambda s: None),
    "unbounded": fill(UNBOUNDED, np.zeros, np.zeros),
    "no word that is known": fill("splendid", np.zeros, np.zeros),
    "no word": fill(None, np.zeros, np.zeros),
    "texts": fill(OPTIMAL, lambda s: "optimum", lambda s: "flow"),
    "raises ValueError": breaks(ValueError("x")),
    "raises ZeroDivisionError": breaks(ZeroDivisionError("x")),
    "raises KeyError": breaks(KeyError("x")),
    "raises MemoryError": breaks(MemoryError()),
    "raises SolverError": breaks(cp.SolverError("x")),
}


@pytest.mark.parametrize(("garbage", "loss"), thinned(GARBAGE, [gr.SquaredLoss, gr.LogisticLoss], every=2), ids=named)
def test_garbage_is_a_status_and_never_a_false_certificate(monkeypatch, garbage, loss):
    """Each kind with one of the losses; with both with ``make test ARGS=--whole``."""
    truth = posed(loss).solve(gap=1e-9).certificate
    monkeypatch.setattr(cp.Problem, "solve", GARBAGE[garbage])
    found = posed(loss).solve(on_failure="return")
    assert found.status in ("certified", "no_certificate", "failed")
    assert found.certificate.primal >= truth.dual
    assert found.certificate.dual <= truth.primal
    if found.status == "certified":
        assert found.certificate.primal - truth.dual <= 2e-6 * max(abs(truth.primal), abs(truth.dual))


# ---- several at once, copies -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_threads_that_share_a_problem_have_the_same_bits(method):
    problem, found = posed(), {}

    def solve(k):
        found[k] = problem.solve(method, seed=0).coef

    threads = [threading.Thread(target=solve, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(threads)
    assert all(np.array_equal(found[0], each) for each in found.values())


def test_threads_take_turns_with_what_is_compiled(monkeypatch):
    real, inside, most = ConicProblem.solve, [], []

    def solve(self, *given):
        inside.append(None)
        most.append(len(inside))
        time.sleep(0.02)
        found = real(self, *given)
        inside.pop()
        return found

    monkeypatch.setattr(ConicProblem, "solve", solve)
    problem = posed()
    threads = [threading.Thread(target=problem.solve, args=(gr.Exact(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


@pytest.mark.parametrize("solver", ["clarabel", "scs"])
def test_a_second_solve_has_the_bits_of_the_first(solver):
    rng = np.random.default_rng(0)
    samples = {i: (rng.normal(size=(10, 3)), rng.normal(size=10)) for i in range(60)}
    graph = nx.random_regular_graph(3, 60, seed=0)
    loss = gr.SquaredLoss(gr.NodeData.from_dict(samples))
    problem = gr.Problem(loss + 0.1 * gr.TotalVariation(graph, gr.L2()))
    first, second = (problem.solve(gr.Exact(solver), gap=1e-3) for _ in range(2))
    assert np.array_equal(first.coef, second.coef)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_problem_that_was_solved_can_be_copied_and_sent(duplicate):
    strength = gr.Parameter(0.1, "lam")
    problem = gr.Problem(posed().model + strength * gr.NodePenalty(gr.L1()))
    first = problem.solve()
    other = duplicate(problem)
    assert np.array_equal(other.solve().coef, first.coef)
    copied = duplicate(first)
    assert np.array_equal(copied.coef, first.coef)
    assert copied.status == first.status


# ---- what the exact route does with the arguments of solve -----------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rounds": 3}, MethodError),
        ({"callback": print}, MethodError),
        ({"engine": gr.Actors()}, MethodError),
        ({"checkpoint": "run.zip"}, CheckpointError),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_what_the_exact_route_cannot_honour_is_refused(given, error):
    with pytest.raises(error, match=f"Exact .*leave {next(iter(given))} out"):
        posed().solve(gr.Exact(), **given)


def test_the_exact_route_never_ends_at_less_than_its_start(monkeypatch):
    best = posed().solve(gr.PrimalDual(), gap=1e-10)
    monkeypatch.setattr(cp.Problem, "solve", GARBAGE["zeros"])
    found = posed().solve(gr.Exact(), start=best)
    assert found.status == "certified"
    assert found.certificate.primal <= best.certificate.primal * (1 + 1e-12)


def test_the_exact_route_shows_its_progress(capsys):
    posed().solve(gr.Exact(), progress=True)
    assert "Exact" in capsys.readouterr().err
    posed().solve()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("given", "meant"),
    [({"tol": 1e-8}, "gap"), ({"max_iter": 10}, "rounds"), ({"timeout": 1.0}, "seconds"), ({"gpa": 1e-3}, "gap")],
)
def test_arguments_by_the_names_of_other_packages(given, meant):
    with pytest.raises(TypeError, match=f"{next(iter(given))!r}.*{meant}"):
        posed().solve(gr.Exact(), **given)


def test_a_method_that_is_named_instead_of_made():
    with pytest.raises(MethodError, match=r"write PrimalDual\(\)"):
        posed().solve("primaldual")
