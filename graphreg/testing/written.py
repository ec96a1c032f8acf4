"""The CVXPY laws: what a term writes for CVXPY is the function that it computes, with the same minimiser.

A term writes an expression with one value per row, or the list of its constraints, in which at most one item may be
such an expression.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.messages import shown
from ..certificate import TermRows
from ..terms import Array
from .report import Failures, demand, distance, judge, shaped, size

SOLVED = 1e-6  # tolerance of what Clarabel solves for, at its tightest
BEYOND = 1e-3  # relative; how far beyond a point of infinite value a solver must find none
LARGEST = 1e3  # value, beside which a solver finds those of one over it
ARGMIN_TOLERANCE = 1e-4  # of minimisers, relative to their size: the root of the 1e-8 to which Clarabel knows a minimum
Write = Callable[[Any, Array], Any]  # (expression of some rows, their indices) -> what the term writes for them


def has_the_value(
    rows: TermRows, x: Array, tolerance: float, value: Callable[[Array], Array] | None = None
) -> Failures:
    """The expression that ``cvxpy`` writes equals ``value`` at constants, by default that of the term itself."""
    return _has_the_value(_writer(rows, "cvxpy"), value or rows.value, x, tolerance, "cvxpy")


def conjugate_has_the_value(rows: TermRows, b: Array, tolerance: float) -> Failures:
    """The expression that ``cvxpy_conjugate`` writes equals the conjugate at constants."""
    return _has_the_value(_writer(rows, "cvxpy_conjugate"), rows.conjugate, b, tolerance, "cvxpy_conjugate")


def _writer(rows: TermRows, method: str) -> Write:
    return lambda X, some: getattr(rows.term, method)(X, *rows.take(some).targets)


def _has_the_value(write: Write, value: Callable[[Array], Array], x: Array, tolerance: float, what: str) -> Failures:
    """The written form equals ``value`` at constants; where that is infinite, it is so or breaks a constraint."""
    expected = value(x)
    written = np.full(len(x), np.nan)
    finite = np.flatnonzero(np.isfinite(expected))
    solved = len(finite) > 0 and _has_variables(write, x, finite[:1])
    if solved:
        size = np.abs(expected[finite])
        finite = finite[(size < LARGEST) & ((size == 0.0) | (size > 1.0 / LARGEST))]
    groups = [finite] if len(finite) else []
    outside = np.flatnonzero(~np.isfinite(expected))[:12]
    groups += [np.array([row]) for row in outside]
    if solved:  # on the boundary of the domain a solver finds the logarithm of its tolerance; beyond, nothing is finite
        x = x.copy()
        x[outside] *= 1.0 + BEYOND
    for rows in groups:
        written[rows] = _values(write, x, rows, what)
    tried = np.concatenate(groups) if groups else finite
    floor = 1.0 if solved else 1e-4  # a difference of numbers near 1 is fair
    gap, tolerance = distance(written[tried], expected[tried], floor), max(tolerance, SOLVED if solved else 0.0)
    return judge(
        f"{what} has the value of the function",
        gap,
        tolerance,
        x=x[tried],
        value=expected[tried],
        written=written[tried],
    )


def _has_variables(write: Write, x: Array, rows: Array) -> bool:
    """True where the value is the least that the constraints allow."""
    import cvxpy as cp

    expression = _split(write(cp.Constant(x[rows]), rows))[1]
    return expression is not None and len(expression.variables()) > 0


def _values(write: Write, x: Array, rows: Array, what: str) -> Array:
    """The values of the written form at some rows; +inf where a constraint is broken."""
    import cvxpy as cp

    constraints, expression = _split(write(cp.Constant(x[rows]), rows))
    if expression is not None:
        shaped(what, expression, (len(rows),))
        if expression.variables():
            return _least(write, x, rows)
    allowed = 1e-9 * (1.0 + np.abs(x[rows]).max())
    if any(np.max(each.violation(), initial=0.0) > allowed for each in constraints):
        return np.full(len(rows), np.inf)
    if expression is None:
        return np.zeros(len(rows))
    value = np.asarray(expression.value, dtype=float)
    return np.where(np.isnan(value), np.inf, value)  # CVXPY's formulas have no number outside their domain


def has_the_minimiser(rows: TermRows, v: Array, step: Array) -> Failures:
    """Clarabel's minimiser of ``sum_r step_r f(p_r) + 1/2 ||p_r - v_r||^2`` is ``prox(v, step)``."""
    import cvxpy as cp

    p = cp.Variable(v.shape)
    constraints, expression = _split(_writer(rows, "cvxpy")(p, np.arange(len(v))))
    objective = cp.sum_squares(p - v) / 2
    if expression is not None:
        demand(expression.is_convex(), f"CVXPY does not recognise as convex: {expression}")
        objective = objective + step @ expression
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an inaccurate one: the answer itself is judged, not what is said of it
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    demand(p.value is not None, f"Clarabel finds the prox problem {problem.status}")
    expected = rows.prox(v, step)
    gap = size(p.value - expected) / (1.0 + size(v) + size(expected))
    sentence = "the minimiser of the written form is prox(v, step)"
    return judge(sentence, gap, ARGMIN_TOLERANCE, v=v, step=step, written=p.value)


def _least(write: Write, x: Array, rows: Array) -> Array:
    """The least values that the constraints allow, one per row: together, or where a solver cannot, in halves."""
    import cvxpy as cp

    constraints, expression = _split(write(cp.Constant(x[rows]), rows))
    problem = cp.Problem(cp.Minimize(cp.sum(expression)), constraints)
    with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    if expression.value is not None:
        return np.asarray(expression.value)
    if len(rows) == 1:
        return np.full(1, np.inf)
    half = len(rows) // 2
    return np.concatenate([_least(write, x, rows[:half]), _least(write, x, rows[half:])])


def _split(written: Any) -> tuple[list[Any], Any]:
    """Constraints, and the expression with one value per row (None where there is none)."""
    from cvxpy.constraints.constraint import Constraint
    from cvxpy.expressions.expression import Expression

    items = written if isinstance(written, (list, tuple)) else [written]
    constraints = [item for item in items if isinstance(item, Constraint)]
    rest = [item for item in items if not isinstance(item, Constraint)]
    demand(len(rest) < 2, f"a term writes at most one expression beside its constraints, got {len(rest)}")
    for item in rest:
        demand(isinstance(item, Expression), f"what it writes for CVXPY is no expression of CVXPY, but {shown(item)}")
    return constraints, rest[0] if rest else None
