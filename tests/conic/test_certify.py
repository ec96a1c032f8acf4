"""`graphreg.certify` as users see it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.conic import canonical
from graphreg.conic.canonical import Answer
from graphreg.conic.proving import proved
from graphreg.datasets import random_problem
from graphreg.errors import ConvexityError, ModelError, SolverError
from graphreg.verify import check

R = np.random.default_rng(11)
A, B = R.normal(size=(12, 3)), R.normal(size=12)


def lasso(x, sense=cp.Minimize):
    value = cp.sum_squares(A @ x - B) + cp.norm1(x) + 7
    return cp.Problem(sense(value if sense is cp.Minimize else -value), [x <= 0.1])


def settled(problem, **options):
    found = gr.certify(problem, **options)
    assert found.status == "certified", str(found)
    assert found.holds(1e-6), str(found)
    assert not found.message, str(found)
    assert found.lower <= found.upper
    return found


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP", "HIGHS"])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_all_solvers_lead_to_bounds_that_meet(solver, capfd):
    x = cp.Variable(3, name="x")
    least, most = settled(lasso(x), solver=solver), settled(lasso(x, cp.Maximize), solver=solver)
    capfd.readouterr()
    assert x.value is not None
    assert max(least.lower, -most.upper) <= min(least.upper, -most.lower)
    assert least.reported is not None
    value = np.sum((A @ least.point["x"] - B) ** 2) + np.abs(least.point["x"]).sum() + 7
    assert least.lower - 1e-12 <= value <= least.upper + 1e-12
    assert (least.point["x"] <= 0.1).all()
    assert least.evidence.keys() == {"primal", "dual"}


def test_a_solvers_loose_answer_is_told_apart_from_what_is_proved():
    x = cp.Variable(3, name="x")
    problem = lasso(x)
    with pytest.warns(UserWarning, match="inaccurate"):
        found = settled(problem, solver="SCS", max_iters=3)
    assert found.reported == problem.value
    assert not found.lower <= found.reported <= found.upper
    assert "the solver's own value" in str(found)


def test_a_problem_that_is_solved_keeps_its_answer():
    x = cp.Variable(3, name="x")
    problem = lasso(x)
    problem.solve(solver="SCS", eps_abs=1e-3, eps_rel=1e-3)
    before, value = x.value.copy(), problem.value
    found = settled(problem)
    assert np.array_equal(x.value, before)
    assert found.reported == problem.value == value


@pytest.mark.parametrize("sense", [cp.Minimize, cp.Maximize])
def test_values_that_the_user_claims_stay_and_are_told_apart(sense):
    x = cp.Variable(3, name="x")
    problem, cap = lasso(x, sense), 0.1
    best = settled(lasso(x, sense), solver="CLARABEL").point["x"]
    texts = []
    for claimed in (best, best + 0.3):
        x.value = claimed
        found = settled(problem)
        assert np.array_equal(x.value, claimed)
        assert (problem.value, problem.status) == (None, None)
        assert found.reported == pytest.approx(float(problem.objective.value))
        texts.append(str(found))
    missed = (best + 0.3 - cap).max()
    assert "by at most 0\n" in f"{texts[0]}\n"
    assert f"they miss your constraints by at most {missed:.2g}: `x <= 0.1`" in texts[1]


def test_the_value_of_other_parameters_is_told_apart():
    x, p = cp.Variable(3, name="x"), cp.Parameter(nonneg=True, name="p", value=1.0)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - B) + p * cp.norm1(x)))
    problem.solve(solver="CLARABEL")
    said = f"problem.value, {problem.value:.10g}, is of other parameters or values"
    assert said not in str(settled(problem))
    p.value = 9.0
    found = settled(problem)
    assert said in str(found)
    assert found.reported == pytest.approx(problem.objective.value)
    assert found.lower <= found.reported
    assert "below the lower bound" not in str(found)


X, S = cp.Variable(3, name="x"), cp.Variable((3, 3), name="S", PSD=True)
C = A[:3] + A[:3].T
MODELS = {
    "lines": cp.Problem(cp.Minimize(cp.norm_inf(A @ X - B))),
    "none": cp.Problem(cp.Minimize(cp.sum_squares(A @ X - B))),
    "second order": cp.Problem(cp.Minimize(cp.norm(A @ X - B) + cp.norm(X)), [cp.norm(A[:4] @ X) <= 2]),
    "exponential": cp.Problem(cp.Minimize(cp.sum(cp.logistic(A @ X)) + cp.sum_squares(X))),
    "entropy": cp.Problem(cp.Maximize(cp.sum(cp.entr(X))), [cp.sum(X) == 1, X[0] <= 0.2]),
    "matrices": cp.Problem(cp.Minimize(cp.trace(C @ S)), [cp.trace(S) == 1]),
    "log det": cp.Problem(cp.Maximize(cp.log_det(S) - cp.trace((C @ C + np.eye(3)) @ S))),
    "powers": cp.Problem(
        cp.Maximize(X[2]), [cp.PowCone3D(X[0], X[1], X[2], 0.3), X[0] + X[1] <= 2]
    ),
    "powers, dual": cp.Problem(cp.Minimize(cp.power(X[0], 2.7, approx=False) - X[0]), [X[1:] == 0]),
    "constant": cp.Problem(cp.Minimize(0), [X >= 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_all_cones(name):
    found = settled(MODELS[name], solver="CLARABEL")
    value = MODELS[name].value
    assert found.lower - 1e-6 <= value <= found.upper + 1e-6


def test_parameters_have_the_values_of_the_moment():
    p, x = cp.Parameter(nonneg=True, name="p"), cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(cp.square(x - p)), [x <= 1])
    with pytest.raises(ModelError, match="parameters without a value: p"):
        gr.certify(problem)
    for value in (3.0, 5.0):
        p.value = value
        found = settled(problem, solver="CLARABEL")
        assert found.lower - 1e-9 <= (value - 1) ** 2 <= found.upper + 1e-9


def test_refusals_say_why():
    x, k = cp.Variable(2, name="x"), cp.Variable(integer=True, name="k")
    with pytest.raises(ModelError, match="k must be integers"):
        gr.certify(cp.Problem(cp.Minimize(k), [k >= 0.5]))
    with pytest.raises(ConvexityError, match="is_dcp"):
        gr.certify(cp.Problem(cp.Minimize(cp.sqrt(x[0]))))
    with pytest.raises(ModelError, match="takes a problem of CVXPY, not int"):
        gr.certify(3)
    with pytest.raises(SolverError, match="none of the solvers"):
        gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0]), solver="GUESS")
    with pytest.raises(SolverError, match="OSQP does not take this problem"):
        gr.certify(cp.Problem(cp.Minimize(cp.norm(x)), [x >= 1]), solver="OSQP")
    with pytest.raises(ModelError, match="more than three dimensions"):
        gr.certify(cp.Problem(cp.Maximize(x[0]), [cp.PowConeND(cp.Variable(3), x[0], [0.2, 0.3, 0.5])]))


def test_problems_without_numbers_to_bound_are_refused():
    x = cp.Variable(2, name="x")
    with pytest.raises(ModelError, match="no variables"):
        gr.certify(cp.Problem(cp.Minimize(3)))
    with pytest.raises(ModelError, match=r"`FiniteSet\(.*must be integers"):
        gr.certify(cp.Problem(cp.Minimize(x[0]), [cp.FiniteSet(x[0], [1, 2])]))
    for objective, constraints in (
        (cp.sum(np.nan * x), [x >= 1]),
        (cp.sum(x) + np.inf, [x >= 1]),
        (cp.sum(x), [x >= np.inf]),
        (cp.sum(x), [x == np.inf]),
    ):
        with pytest.raises(ModelError, match="NaN, or infinite"):
            gr.certify(cp.Problem(cp.Minimize(objective), constraints))


@pytest.mark.filterwarnings("ignore:Forming a nonconvex expression")
def test_breakdowns_of_cvxpy_and_of_solvers_are_told(monkeypatch):
    x = cp.Variable(2, name="x")
    with pytest.raises(SolverError, match="SCS stopped with ValueError: m must be"):
        gr.certify(cp.Problem(cp.Minimize(cp.sum_squares(x) - x[0])), solver="SCS")
    bent = cp.quad_form(x, np.diag([1.0, -1.0]), assume_PSD=True)
    with pytest.raises(SolverError, match="CVXPY cannot bring this problem into the form of CLARABEL: ValueError"):
        gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [bent <= 1]))
    mixed = cp.quad_form(cp.cumsum(x)[[0, 0]], np.eye(2))
    with pytest.raises(SolverError, match=r"CVXPY cannot bring .*: NotImplementedError"):
        gr.certify(cp.Problem(cp.Minimize(mixed)))
    M = cp.Variable((2, 2), name="M")
    tilted = cp.Problem(cp.Maximize(cp.log_det(M)), [M - np.array([[1.0, 5.0], [-5.0, 1.0]]) == 0])
    assert gr.certify(tilted).status == "certified"  # CVXPY has no value of it

    class PanicException(BaseException):
        """As solvers that are written in Rust raise it."""

    def given_up(*_):
        raise PanicException

    monkeypatch.setattr("clarabel.DefaultSolver", given_up)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.norm(x) <= 1])
    found = gr.certify(problem)
    assert (found.status, found.message) == ("refused", "no solver has an answer")
    settled(problem, solver="SCS", eps_abs=1e-9, eps_rel=1e-9)


def test_bounds_that_are_infinite_and_variables_without_entries():
    x, none = cp.Variable(3, name="x"), cp.Variable(0, name="none")
    top = [x <= np.array([1.0, np.inf, np.inf]), x >= -np.inf, cp.norm(x) <= np.inf]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 3) + cp.norm1(none)), top)
    found = settled(problem)
    assert found.scope.startswith("of your formula")
    assert found.lower <= 4 <= found.upper
    assert settled(cp.Problem(cp.Minimize(cp.sum(x)), [x >= [0, 1, 2], x <= np.inf])).scope == "of your formula"


def test_answers_that_overflow_prove_nothing():
    S = cp.Variable((3, 3), PSD=True)
    stored = canonical.canonical(cp.Problem(cp.Minimize(cp.trace(S)), [1e10 * (S - 1e-9 * cp.trace(S)) >> np.eye(3)]))
    p = stored.programme
    huge = Answer(np.full(len(p.q), 1e300), np.full(len(p.b), 1e300))
    with np.errstate(over="ignore", invalid="ignore"):
        assert proved(p, huge, 1e-6, helped=False).status == ""


def test_what_has_no_value_is_named():
    x = cp.Variable(2, name="x")
    assert gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, cp.sum(x) <= 1.5])).status == "infeasible"
    found = gr.certify(cp.Problem(cp.Maximize(cp.sum(x)), [x >= 1, cp.sum(x) <= 1.5]))
    assert (found.status, found.lower, found.upper) == ("infeasible", -np.inf, -np.inf)
    found = gr.certify(cp.Problem(cp.Maximize(cp.sum(x)), [x >= 1]))
    assert (found.status, found.lower, found.upper) == ("unbounded", np.inf, np.inf)
    assert found.evidence.keys() == {"descent", "primal"}
    assert repr(found) == "<ConicCertificate: unbounded>"


def test_contradictory_equalities_are_named():
    x = cp.Variable(3, name="x")
    supply = (x[0] + 2 * x[1] + x[2] == 0.3).set_label("supply")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [x[0] + x[1] == 0.1, x[1] + x[2] == 0.2, supply])
    found = gr.certify(problem)
    assert found.status == "infeasible as stored"
    assert "drop one of the equalities of `supply`" in found.message
    assert "2.8e-17" in found.message


ROWS, COUNTS = np.random.default_rng(0).normal(size=(2, 3)), np.array([3.0, 1.0])


@pytest.mark.parametrize("rounded_by", ["the user", "CVXPY"])
def test_linear_terms_that_should_cancel_are_named(rounded_by, tmp_path):
    x = cp.Variable(3, name="x")
    tilt = (COUNTS @ ROWS) @ x if rounded_by == "the user" else COUNTS @ (ROWS @ x)
    value = cp.sum(cp.exp(ROWS @ x)) - tilt
    found = gr.certify(cp.Problem(cp.Minimize(value)))
    assert (found.status, found.lower, found.upper) == ("unbounded as stored", -np.inf, -np.inf)
    assert found.message.startswith("bound `x`, or leave out what has no influence there")
    assert found.scope.startswith("of your formula" if rounded_by == "the user" else "of the problem as CVXPY stores")
    proved = found.prove(tmp_path / "falls.json")
    assert proved.claims == ("the optimal value has no lower bound",)
    assert check((tmp_path / "falls.json").read_bytes()).said == list(proved.claims)
    assert gr.certify(cp.Problem(cp.Maximize(-value))).upper == np.inf
    assert gr.certify(cp.Problem(cp.Minimize(value), [cp.abs(x) <= 5])).status == "certified"


def test_what_excludes_each_other_and_what_falls_is_named():
    x, y = cp.Variable(8, name="x"), cp.Variable(name="y")
    cap, free = (x <= 0.1).set_label("cap"), (y <= 3).set_label("free")
    found = gr.certify(cp.Problem(cp.Minimize(y), [(cp.sum(x) == 1).set_label("budget"), cap, free, y >= 0]))
    assert found.status == "infeasible"
    assert "no point meets" in found.message
    assert "`budget`" in found.message
    assert "`cap`" in found.message
    falls = gr.certify(cp.Problem(cp.Minimize(y + cp.norm(x)), [y <= 3, x >= 0]))
    assert falls.status == "unbounded"
    assert "falls without end along `y`" in falls.message


def test_no_more_constraints_are_named_than_contradict_each_other():
    x, y = cp.Variable(8, name="x"), cp.Variable(name="y")
    needed = [(cp.sum(x) == 1).set_label("budget"), (x <= 0.1).set_label("cap")]
    others = [x >= 0, y <= 3, y >= 0, cp.norm(x) <= 5, cp.sum(x[:4]) >= 0.45, x[0] + x[1] >= 0.25]
    found = gr.certify(cp.Problem(cp.Minimize(y), [*others, *needed]))
    assert found.message in [
        f"no point meets `{a}`, `{b}` together: relax one" for a, b in permutations(("budget", "cap"))
    ]
    nothing = gr.certify(cp.Problem(cp.Minimize(y), [(0 * y >= 1).set_label("never"), y >= 0]))
    assert nothing.message == "no point meets `never` together: relax one"


def test_an_objective_that_falls_beside_an_exponential():
    x = cp.Variable(2, name="x")
    found = gr.certify(cp.Problem(cp.Minimize(x[0] + x[1]), [cp.exp(x[0]) <= 2]))
    assert (found.status, found.upper) == ("unbounded", -np.inf)


@pytest.mark.parametrize("ray", ["infeasible", "unbounded", "none"])
def test_an_answer_that_proves_nothing_is_told(ray, monkeypatch):
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [x >= 1])
    problem.solve(solver="CLARABEL")
    wrong = Answer(np.ones(2), np.ones(canonical.canonical(problem).programme.b.shape), ray)
    monkeypatch.setattr(canonical, "helped", lambda *_, **__: wrong)
    found = gr.certify(problem)
    assert found.status == "refused"
    said = "no solver has an answer" if ray == "none" else f"a solver says {ray}, and near what it says no proof of"
    assert found.message.startswith(said)


def test_a_solver_that_does_not_get_on_is_asked_for_shorter_steps():
    """The counts of a Poisson loss are large, and Clarabel gives up far from the optimum."""
    drawn = random_problem(144)
    found = drawn.problem.compile().certify()
    assert found.status == "certified"
    assert found.relative_gap < 1e-4


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_one_side_and_what_is_in_the_way():
    x = cp.Variable(2, name="x")
    found = gr.certify(cp.Problem(cp.Minimize(x[0]), [cp.quad_over_lin(1, x[1]) <= x[0]]))
    assert found.status == "one side only"
    assert "no constraint bounds `x`" in found.message
    assert repr(found).startswith("<ConicCertificate: optimal value <= ")
    tangent = gr.certify(cp.Problem(cp.Maximize(-cp.sum(x)), [cp.norm(x) <= 1, (x[0] >= 1).set_label("edge")]))
    assert tangent.status == "one side only"
    assert tangent.upper < -0.999
    assert tangent.lower == -np.inf
    assert "`edge`" in tangent.message
    assert tangent.point == {}
    assert not tangent.holds(1.0)


def test_problems_of_graphreg_are_certified_a_second_time():
    graph = gr.Graph(tuple(range(4)), np.arange(3), np.arange(1, 4), np.ones(3))
    data = gr.NodeData.from_arrays(R.normal(size=(20, 2)), R.normal(size=20), np.repeat(np.arange(4), 5))
    problem = gr.Problem(gr.SquaredLoss(data) + 0.5 * gr.TotalVariation(graph, gr.L2()))
    with pytest.raises(ModelError, match=r"problem.certify\(w\)"):
        gr.certify(problem)
    ours = problem.solve(gap=1e-9).certificate
    for form in ("primal", "dual"):
        found = problem.compile(form).certify()
        assert found.holds(1e-6), (form, str(found))
        assert max(ours.dual, found.lower) <= min(ours.primal, found.upper), form


def test_values_that_miss_the_bounds_of_variables_are_no_obstacle():
    """CVXPY hands them on to variables of its own for solvers that take bounds, and then refuses them."""
    x = cp.Variable(3, bounds=[0, 1])
    problem = cp.Problem(cp.Minimize(cp.sum(cp.maximum(x, 0.1)) - cp.sum(x) / 2), [cp.sum(x) >= 1])
    x.save_value(np.array([-1e-3, 2.2, 0.0]))
    found = gr.certify(problem, solver="HIGHS")
    assert found.status == "certified"
    assert found.lower - 1e-12 <= 0.5 <= found.upper + 1e-12


def test_the_multipliers_of_what_excludes_each_other_are_told_by_constraint():
    """w_v >= 1 and 0 <= w_v <= 0.1: in the sum with these factors w_v cancels, and -1 >= 0 is left."""
    u, v = gr.w.at("u"), gr.w.at("v")
    means = gr.MeanLoss(gr.NodeData.from_arrays(None, [0.0, 0.0], ["u", "v"]))
    found = gr.Problem(means + gr.NonNegative()(v - 1.0) + gr.NonNegative()(u + 5.0) + gr.Box(0.0, 0.1)(v))
    told = found.compile().certify().multipliers
    (rise,), (lower, upper) = told["NonNegative(w_v - 1)"], told["Box(w_v)"]
    assert min(rise, lower, upper) >= 0.0
    assert np.isclose(rise + lower, upper)
    assert np.isclose(-rise + 0.1 * upper, -1.0)
    assert told["NonNegative(w_u + 5)"] == 0.0
    x = cp.Variable(name="x")
    assert gr.certify(cp.Problem(cp.Minimize(x), [x >= 1])).multipliers == {}


def test_the_multipliers_of_equations_are_told_twice_and_of_boxes_by_side():
    """Of K w - b = z and of z = 0 the same number, and all lower bounds before all upper ones."""
    zeros = gr.NodeData.from_arrays(None, np.zeros(3), list("abc"))
    rises = gr.NonNegative()(gr.w.across(nx.DiGraph([("a", "b"), ("b", "c")])) - 2.0)
    held = gr.Zero()(gr.w.at("a")) + gr.NonNegative()(3.0 - gr.w.at("c"))
    first, second = gr.Problem(gr.MeanLoss(zeros) + rises + held).compile().certify().multipliers["Zero(w_a)"]
    assert first == pytest.approx(second) != 0.0
    boxed = gr.Problem(gr.MeanLoss(zeros) + rises + gr.Box(-1.0, 1.0)(gr.w)).compile().certify().multipliers
    (box,) = (y for name, y in boxed.items() if name.startswith("Box"))
    (rise,) = (y for name, y in boxed.items() if name.startswith("NonNegative"))
    pulls = np.array([-rise[0], rise[0] - rise[1], rise[1]])  # of the arrows on w
    assert (box >= 0.0).all()
    np.testing.assert_allclose(box[:3] - box[3:], -pulls, atol=1e-6)


def test_of_what_is_infeasible_no_distance_to_a_bound_is_told():
    x = cp.Variable(3)
    rows = [x[0] + x[1] == 0.1, x[1] + x[2] == 0.2, x[0] + 2 * x[1] + x[2] == 0.3]
    found = gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [*rows, x >= 0]))
    assert found.status == "infeasible as stored"
    assert "own value" not in str(found)


R = np.random.default_rng(1)
WILD, TARGET = R.normal(size=(20, 7)) * 10.0 ** np.arange(-6, 7, 2), R.normal(size=20)
V, W = cp.Variable(7, name="v"), cp.Variable(3, name="w")
ROUGH = {  # answers of solvers are good to a few digits
    "wild columns, absolute values": cp.Problem(cp.Minimize(cp.sum_squares(WILD @ V - TARGET) / 2 + cp.norm1(V))),
    "wild columns": cp.Problem(cp.Minimize(cp.sum_squares((A * np.array([1e-9, 1.0, 1e12])) @ W - B))),
    "Klee and Minty": cp.Problem(
        cp.Maximize(1e8 * W[0] + 1e4 * W[1] + W[2]),
        [W >= 0, W[0] <= 1, 2e4 * W[0] + W[1] <= 1e8, 2e8 * W[0] + 2e4 * W[1] + W[2] <= 1e16],
    ),
}


@pytest.mark.parametrize("name", ROUGH)
def test_gaps_where_the_sizes_of_numbers_differ(name):
    settled(ROUGH[name])


def test_whose_answers_the_bounds_rest_on_and_what_the_gap_is_relative_to_are_printed():
    x = cp.Variable(3, name="x")
    problem = lasso(x)
    text = str(settled(problem, solver="SCS", eps_abs=1e-9, eps_rel=1e-9))
    assert "proved at points near the answer of SCS" in text
    assert " of 1)" not in text
    with pytest.warns(UserWarning, match="inaccurate"):
        assert "near an answer of Clarabel" in str(settled(lasso(x), solver="SCS", max_iters=3))
    assert "near a second solve, by Clarabel" in str(settled(problem))
    small = settled(cp.Problem(cp.Minimize(cp.sum_squares(A @ x - A @ [1, 2, 3]) + 1e-2 * cp.norm1(x))))
    larger = f"{small.gap / small.upper:.3g} of the larger bound, as `graphreg verify` does"
    assert f"(relative {small.gap:.3g} of 1, as solvers measure values below 1, and {larger})" in str(small)
    assert " of the larger bound" in repr(small)
    two = replace(small, by={"primal": "an answer of A", "dual": "that of B"})
    assert "near an answer of A (upper bound), and that of B (lower bound)" in str(two)
    assert "near an answer of A (lower bound), and that of B (upper bound)" in str(replace(two, sign=-1.0))


@pytest.mark.parametrize(
    ("objective", "constraints", "said"),
    [
        (X[0] * X[1], [], "x[0] * x[1] is a product of unknowns, which is not convex; give one as a number"),
        (-cp.square(X[0]), [], "` is not convex"),
        (X[0], [cp.sqrt(X[0]) <= 1.0], "<= 1.0` is not convex"),
    ],
)
def test_what_is_not_convex_is_named(objective, constraints, said):
    with pytest.raises(ConvexityError, match=re.escape(said)):
        gr.certify(cp.Problem(cp.Minimize(objective), constraints))


def test_a_linear_objective_without_constraints_is_unbounded():
    assert gr.certify(cp.Problem(cp.Minimize(cp.sum(cp.Variable(3))))).status == "unbounded"
