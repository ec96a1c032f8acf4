"""Penalties from value and prox: the conjugate is derived, from above."""

from __future__ import annotations

import numpy as np
import pytest
from factories import chain

import graphreg as gr
from graphreg.errors import MethodError, TermError
from graphreg.testing import check_penalty

FORMULAS = [gr.L1(), gr.L2(), gr.LInf(), gr.HuberNorm(0.5), gr.SquaredL2(), gr.Quadratic(np.diag([1.0, 4.0]))]


def given(phi):
    return gr.Penalty.from_prox(phi.value, phi.prox, phi.cvxpy, name=type(phi).__name__.lower())


@pytest.mark.parametrize("phi", FORMULAS, ids=lambda phi: type(phi).__name__)
def test_the_derived_conjugate_is_never_too_small_and_close(phi):
    u = np.random.default_rng(0).normal(size=(60, 2)) * np.logspace(-3, 1, 60)[:, None]
    derived, true = given(phi).conjugate(u), phi.conjugate(u)
    assert (derived >= true * (1.0 - 1e-13)).all()
    clear = np.isfinite(true) & (np.abs(phi.gauge(u) - 1.0) > 1e-6)
    np.testing.assert_allclose(derived[clear], true[clear], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("phi", FORMULAS[:5], ids=lambda phi: type(phi).__name__)
def test_it_obeys_the_laws_and_is_solved_by_both_routes(phi):
    penalty = given(phi)
    check_penalty(penalty).raise_if_failed()
    for method in (gr.Exact(), gr.PrimalDual()):
        solution, plain = (chain(penalty=each).solve(method) for each in (penalty, phi))
        assert solution.status == "certified"
        assert solution.certificate.dual <= plain.objective
        assert plain.certificate.dual <= solution.objective


def test_laws_of_a_form_that_was_not_given_are_not_tried_and_said_so():
    report = check_penalty(gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, name="mine"))
    assert report.ok, report
    assert set(report.untried) == {"cvxpy value", "cvxpy argmin", "as written"}
    assert "every law holds; 3 not tried" in str(report)
    assert "skip  cvxpy value: not tried, the penalty mine has no form in CVXPY" in str(report)
    assert not check_penalty(given(gr.L1())).untried


def test_a_prox_of_another_function_is_found_out():
    wrong = gr.Penalty.from_prox(gr.L2().value, lambda v, step: gr.L2().prox(v, 2.0 * np.asarray(step)))
    failed = {failure.law for failure in check_penalty(wrong).failures}
    assert "fenchel young everywhere" in failed
    solution = chain(penalty=wrong).solve(gr.PrimalDual(), on_failure="return")
    assert solution.status == "failed"


def test_what_does_not_grow_is_refused():
    first = np.array([1.0, 0.0])
    flat = gr.Penalty.from_prox(
        lambda z: np.abs(z[:, 0]), lambda v, step: np.where(first, gr.L1().prox(v, step), v), name="flat"
    )
    with pytest.raises(TermError, match="flat on 2 coordinates: it does not grow in every direction"):
        flat.check(2)


def test_without_a_form_in_cvxpy_the_exact_route_does_not_apply_and_says_why():
    problem = chain(penalty=gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, name="mine"))
    with pytest.raises(MethodError, match=r"mine has no form in CVXPY.*pass cvxpy= to from_prox.*gr.PrimalDual"):
        problem.solve()
    listed = problem.methods().loc["Exact"]
    assert not listed["applies"]
    assert "the penalty mine has no form in CVXPY" in listed["missing"]
    assert problem.solve(gr.PrimalDual()).status == "certified"
    with pytest.raises(TermError, match="mine has no form in CVXPY"):
        problem.compile()


def test_all_that_apply_are_compared_and_judged_without_the_exact_route():
    problem = chain(penalty=gr.Penalty.from_prox(gr.L1().value, gr.L1().prox, name="mine"))
    compared = gr.compare(problem, seconds=1.0, rounds=50)
    assert "PrimalDual" in str(compared)
    assert not any(name.startswith("Exact") for name in compared.entries)
    judged = problem.certify(np.ones((8, 3)), gap=1e-14)
    assert judged.valid
    assert "exact route" not in [step.name for step in judged.steps]


@pytest.mark.parametrize(
    ("arguments", "named"), [((1, np.abs), "value"), ((np.abs, "p"), "prox"), ((np.abs, np.abs, 3), "cvxpy")]
)
def test_what_is_no_function_is_refused(arguments, named):
    with pytest.raises(TermError, match=f"{named} of from_prox must be a function"):
        gr.Penalty.from_prox(*arguments)
