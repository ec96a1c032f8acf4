"""What breaks down in the midst of a solve is a status with its cause; what the user's own code raises is passed on."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned
from scipy.sparse.linalg import ArpackNoConvergence

import graphreg as gr
from graphreg.errors import FailedError
from graphreg.running.schedule import Schedule
from graphreg.terms.penalties import AbstractPenalty

METHODS = {"exact": gr.Exact(), "primal-dual": gr.PrimalDual(), "admm": gr.ADMM(), "fed-admm": gr.FedADMM()}
NUMERICAL = [
    np.linalg.LinAlgError("Singular matrix"),
    FloatingPointError("underflow"),
    MemoryError("too much"),
    ArpackNoConvergence("no convergence", [], []),
]


def problem(penalty=None):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((12, 2)), rng.standard_normal(12), list(np.arange(12) % 3))
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), penalty or gr.L2()))


def raises(error):
    def function(*args, **options):
        raise error

    return function


class Panic(BaseException):
    """As pyo3's, which is no Exception."""


Panic.__name__ = "PanicException"


# ---- solvers and CVXPY -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "error", [ValueError("bad"), RuntimeError("odd"), cp.SolverError("lost"), AssertionError(), Panic("at"), *NUMERICAL]
)
@pytest.mark.parametrize("where", ["solve", "get_problem_data"])
def test_a_solver_that_breaks_down(monkeypatch, error, where):
    if isinstance(error, cp.SolverError) and where == "get_problem_data":
        pytest.skip("then the solver cannot take the problem, which is an error of its own")
    monkeypatch.setattr(cp.Problem, where, raises(error))
    solution = problem().solve(gr.Exact(), on_failure="return")
    assert solution.status == "failed"
    assert str(error) in solution.message
    assert not solution.certificate.holds(1e-6)
    with pytest.raises(FailedError):
        problem().solve(gr.Exact())


def test_a_later_attempt_that_breaks_down_costs_nothing(monkeypatch):
    real, calls = cp.Problem.solve, []

    def solve(self, **options):
        calls.append(None)
        if len(calls) > 1:
            raise np.linalg.LinAlgError("Singular matrix")
        return real(self, **options)

    monkeypatch.setattr(cp.Problem, "solve", solve)
    solution = problem().solve(gr.Exact(), gap=1e-13, on_failure="return")
    assert len(calls) > 1
    assert solution.status in ("certified", "no_certificate")
    assert np.isfinite(solution.certificate.primal)


# ---- iterative methods -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("error", NUMERICAL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", ["init", "step", "point"])
def test_a_method_that_breaks_down(monkeypatch, error, place):
    monkeypatch.setattr(gr.PrimalDual, place, raises(error))
    solution = problem().solve(gr.PrimalDual(), on_failure="return")
    assert solution.status == "failed"
    assert type(error).__name__ in solution.message
    assert ("a smaller problem" if isinstance(error, MemoryError) else "rescale the features") in solution.message


def test_what_was_known_before_a_breakdown_is_kept(monkeypatch):
    real = gr.PrimalDual.step

    def step(self, state):
        if step.round > 60:
            raise np.linalg.LinAlgError("SVD did not converge")
        step.round += 1
        return real(self, state)

    step.round = 0
    monkeypatch.setattr(gr.PrimalDual, "step", step)
    solution = problem().solve(gr.PrimalDual(), gap=1e-15, on_failure="return")
    assert solution.status == "failed"
    assert "SVD did not converge" in solution.message


@pytest.mark.parametrize("method", METHODS)
def test_the_certificate_breaks_down(monkeypatch, method):
    from graphreg.certificate.repairing.repair import Repair

    monkeypatch.setattr("graphreg.certificate.certify.FlowDual.of", lambda form: None)
    monkeypatch.setattr(Repair, "__call__", raises(np.linalg.LinAlgError("Singular matrix")))
    monkeypatch.setattr(Repair, "clip", raises(np.linalg.LinAlgError("Singular matrix")))
    solution = problem().solve(METHODS[method], rounds=None if method == "exact" else 500, on_failure="return")
    assert solution.status == "failed"
    assert "LinAlgError: Singular matrix" in solution.message


# ---- the user's own code ---------------------------------------------------------------------------------------------
OWN = [AssertionError("mine"), TypeError("mine"), ValueError("mine"), ZeroDivisionError("mine"), KeyError("mine")]


@pytest.mark.parametrize("error", [*OWN, *NUMERICAL], ids=lambda error: type(error).__name__)
def test_what_a_callback_raises_is_passed_on(error):
    with pytest.raises(type(error)) as caught:
        problem().solve(gr.PrimalDual(), callback=raises(error))
    assert caught.value is error


class Own(AbstractPenalty):
    """An l2 norm that goes wrong where it is told to."""

    wrong, error = "", None

    def _may(self, name):
        if type(self).wrong == name:
            raise type(self).error

    def value(self, z):
        self._may("value")
        return gr.L2().value(z)

    def prox(self, v, step):
        self._may("prox")
        return gr.L2().prox(v, step)

    def conjugate(self, u):
        return gr.L2().conjugate(u)

    def cvxpy(self, Z):
        self._may("cvxpy")
        return gr.L2().cvxpy(Z)


@pytest.mark.parametrize("error", [AssertionError("mine"), TypeError("mine"), IndexError("mine")])
@pytest.mark.parametrize(("place", "method"), [("value", "exact"), ("cvxpy", "exact"), ("prox", "primal-dual")])
def test_defects_of_a_users_term_are_passed_on(monkeypatch, error, place, method):
    own = problem(Own())
    monkeypatch.setattr(Own, "wrong", place)
    monkeypatch.setattr(Own, "error", error)
    with pytest.raises(type(error), match="mine"):
        own.solve(METHODS[method])


def test_numbers_that_break_down_in_a_users_term_are_a_status(monkeypatch):
    own = problem(Own())
    monkeypatch.setattr(Own, "wrong", "prox")
    monkeypatch.setattr(Own, "error", np.linalg.LinAlgError("Singular matrix"))
    assert own.solve(gr.PrimalDual(), on_failure="return").status == "failed"


def test_a_term_that_is_not_convex_is_an_error_of_ours(monkeypatch):
    class Concave(Own):
        def cvxpy(self, Z):
            return -cp.norm(Z, 2, axis=1)

    with pytest.raises(gr.errors.GraphregError, match="not convex"):
        problem(Concave()).solve(gr.Exact())


# ---- the schedule ----------------------------------------------------------------------------------------------------
NUMBERS = [-1e-3, -1e-16, -0.0, 0.0, 5e-324, 1e-16, 1e-8, 1.0, 1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("target", [0.0, 1e-16, 1e-10, 1e-2, 1e300])
def test_the_schedule_takes_any_numbers(target):
    """P - Q is negative where rounding decides, and a screen is not a number where inf - inf is."""
    for gap in NUMBERS:
        for screen in NUMBERS:
            schedule = Schedule(target, polishes=False)
            k = 0
            for first in (1e-3, gap, gap, 1e-5):
                k = max(k + 50, schedule.next_screen)
                assert schedule.screen_now(k)
                schedule.note_screen(k, screen)
                schedule.note_screen(k + 1, screen / 2)
                assert schedule.worth_a_repair(k + 1, screen) in (True, False)
                schedule.note_repair(k + 2, screen, first)
                assert k < schedule.next_repair <= 5 * k
                assert k < schedule.next_screen <= 2 * k + 10
                assert isinstance(schedule.power, float)
                assert 1.0 <= schedule.power <= 2.0


@pytest.mark.parametrize(("gap", "method"), thinned([1e-10, 1e-13, 1e-15, 1e-17], ["exact", "primal-dual"], every=2))
def test_gaps_that_only_rounding_decides(gap, method):
    for scale in (1e-6, 1.0, 1e6):
        rng = np.random.default_rng(1)
        X, y = rng.standard_normal((12, 2)) * [1.0, scale], rng.standard_normal(12)
        data = gr.NodeData.from_arrays(X, y, list(np.arange(12) % 3))
        model = gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2())
        solution = gr.Problem(model).solve(
            METHODS[method], gap=gap, rounds=None if method == "exact" else 600, on_failure="return"
        )
        assert solution.status in ("certified", "no_certificate", "budget")


@pytest.mark.filterwarnings("ignore:the step_size:graphreg.errors.MethodWarning")
@pytest.mark.parametrize("rounds", [400, 900])
def test_iterates_that_diverge_are_said_to(rounds):
    """Beyond 1e150 the objective is no float: the answer was 0, at the objective there, "budget", for constraints."""
    rng = np.random.default_rng(1)
    data = gr.NodeData.from_dict({v: (rng.normal(size=(20, 3)), rng.normal(size=20)) for v in range(8)})
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.cycle_graph(8), gr.L2()))
    method = gr.FedAvg(local_steps=3, step_size=1.5)
    found = problem.solve(method, rounds=rounds, gap=0, on_failure="return")
    assert found.status == "failed"
    assert found.objective == np.inf
    assert "constraints" not in found.message
    assert ("the iterates diverged" in found.message) == (np.abs(found.coef).max() > 1e100)
    table = gr.compare(problem, {"far": method, "near": gr.LocalOnly()}, rounds=rounds, gap=0, seed=0).table()
    assert np.isnan(table.loc["far", "objective"])
