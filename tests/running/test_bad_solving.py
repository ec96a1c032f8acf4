"""Mistakes in calls of solve: each has an error of its own, which names the guilty part and what to do."""

from __future__ import annotations

import re

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from bad_input import FUSION, problem, refusals, refused
from own_terms import OwnEquality, OwnL1

import graphreg as gr
from graphreg.compiling.conic import ConicProblem
from graphreg.compiling.emptiness import rows_apart, torn
from graphreg.compiling.solvers import SolverOutcome
from graphreg.errors import FailedError, InfeasibleError, MethodError, ModelError, SolverError, UnattainedError
from graphreg.methods.splitting import fixed_point

# ---- solving ---------------------------------------------------------------------------------------------------------
BAD_CALLS = {
    "class": ({"method": gr.PrimalDual}, MethodError, ["write PrimalDual()"]),
    "text": ({"method": "exact"}, MethodError, ["gr.PrimalDual()", "'exact'"]),
    "negative gap": ({"gap": -1e-6}, ModelError, ["gap", "-1e-06"]),
    "nan gap": ({"gap": np.nan}, ModelError, ["gap", "nan"]),
    "infinite gap": ({"gap": np.inf}, ModelError, ["gap", "inf"]),
    "text gap": ({"gap": "small"}, ModelError, ["gap", "'small'"]),
    "no gap": ({"gap": None}, ModelError, ["gap", "None"]),
    "no rounds": ({"rounds": 0}, ModelError, ["rounds", "at least 1", "0"]),
    "half a round": ({"rounds": 2.5}, ModelError, ["rounds", "whole", "2.5"]),
    "text rounds": ({"rounds": "ten"}, ModelError, ["rounds", "'ten'"]),
    "no seconds": ({"seconds": 0}, ModelError, ["seconds", "positive"]),
    "nan seconds": ({"seconds": np.nan}, ModelError, ["seconds", "nan"]),
    "text seconds": ({"seconds": "1"}, ModelError, ["seconds", "'1'"]),
    "start shape": ({"start": np.zeros((2, 3))}, ModelError, ["(3, 3)", "(2, 3)"]),
    "start number": ({"start": 0.0}, ModelError, ["(3, 3)", "()"]),
    "start nan": ({"start": np.full((3, 3), np.nan)}, ModelError, ["start", "finite", "nan"]),
    "start text": ({"start": "warm"}, ModelError, ["start", "'warm'"]),
    "start ragged": ({"start": [[1, 2], [3]]}, ModelError, ["start", "array"]),
    "on_failure": ({"on_failure": "ignore"}, ModelError, ["on_failure", "'ignore'", "'return'"]),
    "callback": ({"callback": 3}, ModelError, ["callback", "3"]),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_calls_of_solve(case):
    arguments, error, parts = BAD_CALLS[case]
    posed = problem(0.1 * FUSION)
    refused(lambda: posed.solve(**({"method": gr.PrimalDual()} | arguments)), error, *parts)


@refusals(
    {
        "not installed": (lambda: problem(FUSION).solve(gr.Exact("nosuch")), SolverError, "'nosuch'", "clarabel"),
        "form of Exact": (lambda: gr.Exact(form="lagrange"), MethodError, "'primal' or 'dual'", "'lagrange'"),
        "balance": (lambda: gr.PrimalDual(balance=0), MethodError, "balance", "positive"),
        "relaxation": (lambda: gr.PrimalDual(relaxation=2), MethodError, "relaxation", "(0, 2)"),
        "form of compile": (lambda: problem(FUSION).compile("both"), ModelError, "'primal' or 'dual'", "'both'"),
        "read too early": (lambda: problem(FUSION).compile().read(), FailedError, "no answer", ".solve("),
    }
)
def test_methods(build, error, parts):
    refused(build, error, *parts)


SEPARABLE = gr.NodeData.from_dict({"a": ([[1.0], [-1.0]], [1, 0]), "b": ([[1.0], [-2.0]], [1, 0])})
PAIR = nx.Graph([("a", "b")])


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_separable_classes_without_a_ridge(method):
    posed = gr.Problem(gr.LogisticLoss(SEPARABLE) + 0.1 * gr.TotalVariation(PAIR, gr.L2()))
    error = refused(lambda: posed.solve(method), UnattainedError, "not attained", "separable", "add a ridge")
    assert error.solution.status == "unattained"
    returned = posed.solve(method, on_failure="return")
    assert returned.status == "unattained"
    assert returned.message == str(error) == error.solution.message
    ridge = gr.NodePenalty(gr.SquaredL2())
    assert gr.Problem(posed.model + 1e-3 * ridge).solve(method).status == "certified"


MEANS = gr.MeanLoss(gr.NodeData.from_dict({"a": (None, [1.0]), "b": (None, [2.0])}))
INFEASIBLE = {
    "fixed apart, and tied": MEANS + gr.Consensus(PAIR) + gr.NodePenalty(gr.Zero(), center={"a": [0.0], "b": [1.0]}),
    "two boxes": MEANS + gr.NodePenalty(gr.Box(2, 3)) + gr.NodePenalty(gr.Box(-1, 1)),
    "ball and box": MEANS + gr.NodePenalty(gr.Ball(1.0), center=[5.0]) + gr.NodePenalty(gr.Box(-1, 1)),
    "far apart, and tied": MEANS
    + gr.TotalVariation(PAIR, gr.Ball(1.0))
    + gr.NodePenalty(gr.Ball(1.0), center={"a": [0.0], "b": [10.0]}),
}


@pytest.mark.parametrize(
    "case",  # two boxes are those of test_solution.py
    [pytest.param(case, marks=pytest.mark.whole if case == "two boxes" else ()) for case in INFEASIBLE],
)
def test_constraints_that_no_point_satisfies(case):
    posed = gr.Problem(INFEASIBLE[case])
    for method in (None, gr.PrimalDual()):
        error = refused(lambda method=method: posed.solve(method), InfeasibleError, "No point satisfies")
        assert error.solution.status == "infeasible"
        assert not error.solution.certificate.valid
        assert error.solution.rounds == 0


W, AROUND = gr.w, nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")])
THREE = gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros((3, 2)), ["a", "b", "c"]))
THREE_APART = gr.MeanLoss(gr.NodeData.from_arrays(None, np.array([[0.0, 1.0], [2.0, -1.0], [1.0, 3.0]]), list("abc")))
CIRCLES = {
    "boxes around": (gr.Box(0.9, 1.1)(W.across(AROUND)), ("('a', 'b')", "('b', 'c')", "('c', 'a')"), 2.7),
    "three terms": (
        sum(gr.Box(1.0, 1.0)(W.at([b], ["y1"]) - W.at([a], ["y1"])) for a, b in AROUND.edges),
        ("at ('b', 'a')", "at ('c', 'b')", "at ('a', 'c')"),
        3.0,
    ),
    "one way and the other": (
        gr.NonNegative()(W.at("b") - W.at("a") - 1.0) + gr.NonNegative()(W.at("a") - W.at("b")),
        ("('b', 'a')", "('a', 'b')"),
        1.0,
    ),
    "a number from above": (
        gr.NonNegative()(W.at(["b", "c"], ["y0"]) - W.at(["a", "b"], ["y0"]) - 2.0)
        + gr.Zero()(W.at("a", ["y0"]))
        + gr.NonNegative()(3.0 - W.at("c", ["y0"])),
        ("('b', 'a')", "('c', 'b')", "at 'a'", "at 'c'"),
        1.0,
    ),
    "ends that are held": (
        gr.Consensus(nx.path_graph(["a", "b", "c"]), features=["y0"])
        + gr.Zero()(W.at(["a", "c"], ["y0"]) - np.array([[1.0], [1.5]])),
        ("at 'a'", "at 'c'", "('a', 'b') on 'y0'", "('b', 'c') on 'y0'"),
        0.5,
    ),
}


@pytest.mark.parametrize("case", CIRCLES)
def test_circles_of_rows_that_no_numbers_fit_are_named(case):
    constraints, named, off = CIRCLES[case]
    form = gr.Problem(THREE + constraints).form
    rows = torn(form)
    assert all(name in rows for name in named), rows
    assert rows.endswith(f"by {off:.3g} in all (the least sum of their violations)")
    assert rows.count(" at ") == len(named)


@pytest.mark.parametrize("low", [1.0 / 3.0, 0.1])
def test_circles_that_close_but_for_rounding_are_no_contradiction(low):
    sides = {("a", "b"): low, ("b", "c"): low, ("c", "a"): -2.0 * low}
    closed = sum(gr.Box(b, b)(W.at([j]) - W.at([i])) for (i, j), b in sides.items())
    assert not torn(gr.Problem(THREE + closed).form)
    assert not torn(gr.Problem(THREE + gr.NonNegative()(W.along(["a", "b", "c"]) - 1.0)).form)
    open_ = sum(gr.Box(b - 1.0, b - 0.5)(W.at([j]) - W.at([i])) for (i, j), b in sides.items())
    assert torn(gr.Problem(THREE + open_).form)


def test_a_constraint_of_the_user_whose_conjugate_is_rounded_is_no_contradiction():
    """The support functions of {0} around offsets that just close: a little too small, as a search for them leaves."""

    class Rounded(OwnEquality):
        def conjugate(self, u):
            return super().conjugate(u) - 1e-9 * np.abs(u).sum(axis=1)

    closed = sum(
        Rounded()(W.at([j]) - W.at([i]) - b) for i, j, b in [("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", -2.0)]
    )
    assert not torn(gr.Problem(THREE + closed).form)


@pytest.mark.parametrize("method", [gr.ADMM(), gr.PrimalDual()], ids=["ADMM", "PrimalDual"])
def test_rounds_that_run_to_infinity_say_who_tells_whether_there_is_a_point(monkeypatch, method):
    """Rows of three numbers are no circle. Round by round, flows grow, and the balance of the steps goes to 0."""
    balanced = fixed_point._balanced
    monkeypatch.setattr(fixed_point, "_balanced", lambda s, dw, du: balanced(5e-324, 1e-300 * dw, du))
    rows = gr.NonNegative()(W.at("a") + W.at("b") - W.at("c") - 1.0) + gr.NonNegative()(
        W.at("c") - W.at("a") - W.at("b")
    )
    error = refused(lambda: gr.Problem(THREE + rows).solve(method), FailedError, "Exact() tells whether there is one")
    assert "ZeroDivision" not in str(error)
    assert "run to infinity" in str(error)


def test_long_chains_are_gone_through():
    """What a constraint at one end says of the other."""
    nodes = list(range(60))
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros(60), nodes))
    rises = gr.NonNegative()(W.along(nodes) - 1.0)
    assert not torn(gr.Problem(loss + rises + gr.Box(0.0, 59.0)(W)).form)
    assert "by 0.5 in all" in torn(gr.Problem(loss + rises + gr.Box(0.0, 58.5)(W)).form)


def test_constraints_of_one_name_are_told_apart():
    """By their bounds, and of the problem as CVXPY has it too, where variables and matrices are none of the user's."""
    problem = gr.Problem(THREE + gr.NodePenalty(gr.Box(0.0, 1.0)) + gr.NodePenalty(gr.Box(2.0, 3.0)))
    said = problem.solve(on_failure="return").message
    assert "NodePenalty(Box) [0 <= z <= 1] at 'c' on 'y1'; NodePenalty(Box) [2 <= z <= 3] at 'c' on 'y1', by" in said
    found = gr.certify(problem.compile().cvxpy)
    named = {f"`NodePenalty(Box) [{low} <= z <= {high}]`" for low, high in ((0, 1), (2, 3))}
    assert found.status == "infeasible"
    assert set(re.findall("`[^`]*`", found.message)) == named


def test_where_no_point_is_the_answer_is_returned_if_asked_for():
    returned = gr.Problem(INFEASIBLE["two boxes"]).solve(on_failure="return")
    assert (returned.status, returned.certificate.valid) == ("infeasible", False)


@pytest.mark.parametrize("far", [0.0, 1e8])
@pytest.mark.parametrize("apart", [False, True])
def test_only_what_is_proved_excludes_every_point(far, apart):
    """Two nodes in balls around ``far``, tied on one coordinate: the centers are 2 or 3 radii apart there."""
    X = np.ones((2, 2))
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, [0.0, 1.0], ["a", "b"]))
    center = {"a": [far, 0.0], "b": [far + (3.0 if apart else 1.0), 5.0]}
    tied = gr.TotalVariation(PAIR, gr.Zero(), features=["x0"])
    form = gr.Problem(loss + tied + gr.NodePenalty(gr.Ball(1.0), center=center)).form
    rows = rows_apart(form, "clarabel", None)
    assert bool(rows) is apart
    assert not apart or all(name in rows for name in ("at 'a'", "at 'b'", "at ('a', 'b')"))


@pytest.mark.parametrize("constraint", [gr.Zero(), gr.Ball(1.0), gr.Box(-1.0, 1.0)], ids=lambda c: type(c).__name__)
def test_losses_beyond_the_largest_float_exclude_no_point(constraint):
    counts = gr.PoissonLoss(gr.NodeData.from_dict({"a": ([[1.0]], [3]), "b": ([[1.0]], [2])}))
    posed = gr.Problem(counts + gr.NodePenalty(constraint, center={"a": [0.0], "b": [1e6]}))
    error = refused(posed.solve, FailedError, "PoissonLoss is beyond the largest float", "'b'", "1e+06")
    assert error.solution.status == "failed"


@pytest.mark.parametrize("method", [gr.Auto(), gr.Exact()])
def test_losses_of_rows_beyond_the_largest_float_are_named_too(method):
    counts = gr.PoissonLoss(1000.0 * gr.w.at(["a"]), np.array([1.0]))
    posed = gr.Problem(MEANS + counts + gr.Zero()(gr.w.at(["a"]) - 1.0))
    refused(lambda: posed.solve(method), FailedError, "PoissonLoss is beyond the largest float", "row 0", "1e+03")


@pytest.mark.parametrize("word", ["infeasible", "unbounded", "infeasible_inaccurate"])
def test_a_solver_that_is_wrong_about_the_problem_is_not_believed(monkeypatch, word):
    monkeypatch.setattr(ConicProblem, "solve", lambda *_: SolverOutcome(word))
    boxes = gr.NodePenalty(gr.Box(-1, 1), center={"a": [3.0], "b": [5.0]})
    solution = gr.Problem(MEANS + gr.TotalVariation(PAIR, gr.L2()) + boxes).solve(gr.Exact())
    assert solution.status == "certified"
    assert np.allclose(solution.coef.ravel(), [2.0, 4.0], atol=1e-4)
    assert word in solution.message
    assert "refined by" in solution.message


def test_a_breakdown_whose_text_has_the_words_of_a_status_is_a_breakdown(monkeypatch):
    monkeypatch.setattr(ConicProblem, "solve", lambda *_: SolverOutcome(cause="unbounded (or infeasible)"))
    boxes = gr.NodePenalty(gr.Box(-1, 1), center={"a": [3.0], "b": [5.0]})
    solution = gr.Problem(MEANS + gr.TotalVariation(PAIR, gr.L2()) + boxes).solve(gr.Exact(), on_failure="return")
    assert solution.status == "failed"
    assert "No finite answer was found (unbounded (or infeasible))" in solution.message
    assert "said: failed (unbounded (or infeasible))" in solution.message


class Spread(gr.Penalty):
    """max - min, whose conjugate is finite on a plane alone."""

    def value(self, z):
        return z.max(axis=1) - z.min(axis=1)

    def prox(self, v, step):
        """Of two numbers: both go half of the way to each other, at most."""
        half = np.minimum(np.reshape(step, (-1, 1)), np.abs(v[:, :1] - v[:, 1:]) / 2.0)
        return v - half * np.sign(v - v.mean(axis=1, keepdims=True))

    def conjugate(self, u):
        return np.where((u.sum(axis=1) == 0.0) & (np.abs(u).max(axis=1) <= 1.0), 0.0, np.inf)

    def cvxpy(self, Z):
        return cp.max(Z, axis=1) - cp.min(Z, axis=1)

    def check(self, k):
        if k != 2:
            raise gr.errors.TermError(f"two numbers, got {k}")


class Sloped(OwnL1):
    """As the l1 norm, but that no dual bound is found: the conjugate is infinite but at 0."""

    def conjugate(self, u):
        return np.where((u == 0.0).all(axis=1), 0.0, np.inf)


def test_what_may_be_wrong_with_terms_of_the_users_own_is_said():
    """Of a penalty that is constant along a direction: who proves bounds of it. Of others: who tries their methods."""
    spread = gr.Problem(THREE_APART + 0.3 * gr.NodePenalty(Spread()))
    message = spread.solve(gr.PrimalDual(), rounds=2000, on_failure="return").message
    assert "Spread is constant along a direction; gr.certify(problem.compile().cvxpy) proves such bounds" in message
    assert "standardise" not in message
    assert gr.certify(spread.compile().cvxpy).status == "certified"
    sloped = gr.Problem(THREE_APART + 0.3 * gr.NodePenalty(Sloped())).solve(gr.PrimalDual(), on_failure="return")
    assert sloped.status == "no_certificate"
    assert "gr.testing.check_penalty tells whether the methods of your own term agree" in sloped.message
    plain = gr.Problem(THREE_APART + 0.3 * gr.NodePenalty(gr.L1())).solve(gr.PrimalDual(), gap=1e-300)
    assert plain.status == "no_certificate"
    assert "your own" not in plain.message


@pytest.mark.parametrize("apart", [1e-9, 1e-12, 1e-3])
def test_features_that_are_alike_are_named(apart):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["age", "cost", "years"])
    X["years"] = X["age"] + apart * rng.normal(size=60)
    data = gr.NodeData.from_arrays(X, rng.normal(size=60), np.repeat(range(4), 15))
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(4), gr.L2()))
    said = problem.solve(gr.PrimalDual(), gap=1e-12, rounds=5, on_failure="return").message
    assert ("allow more, drop one of age, years (which are collinear but for" in said) == (apart < 1e-5)
    assert "standardise" not in said


@pytest.mark.parametrize("classes", [1, 3])
def test_features_in_other_units_are_named(classes):
    rng = np.random.default_rng(0)
    sizes = {"rate": 1e-6, "age": 1.0, "gdp": 1e12}
    X = pd.DataFrame({name: size * rng.normal(size=40) for name, size in sizes.items()})
    X["empty"] = 0.0
    y = rng.normal(size=40) if classes == 1 else rng.integers(classes, size=40)
    data = gr.NodeData.from_arrays(X, y, np.arange(40) % 8)
    loss = gr.SquaredLoss(data) if classes == 1 else gr.MultinomialLoss(data)
    problem = gr.Problem(loss + 0.1 * gr.TotalVariation(nx.path_graph(8), gr.L2()))
    solution = problem.solve(gr.PrimalDual(), gap=1e-9, rounds=5, on_failure="return")
    assert solution.status == "budget"
    assert "standardise the features" in solution.message
    assert "in 'rate' to" in solution.message
    assert "in 'gdp')" in solution.message
