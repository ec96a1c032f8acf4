"""The examination of a user's CVXPY function: whether it is a penalty, and what its conjugate is like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.lazy import cp
from ..compiling import not_convex
from ..errors import ConvexityError, TermError
from ..terms import Array
from ..terms.penalties import AbstractOneSided, AbstractPenalty, row_norm, tried
from .cone_penalty import ConePenalty, OneSidedConePenalty
from .conic import ConeProgramme
from .evaluating import evaluator, refuse_inexact
from .recognise import closed_form
from .source import AbstractReadPenalty, FunctionSource

AGREEMENT = 1e-7  # relative; CVXPY's cones, solved, against its values


def apply(function: Callable[[Any], Any], rows: bool, k: int) -> Any:
    """The expression on rows of k coordinates, refused where it is no expression of the right shape."""
    z = cp.Variable((2, k) if rows else k, name="z")
    expression = function(z)
    if not isinstance(expression, cp.Expression):
        raise TermError(
            f"the function of from_cvxpy returned {expression!r}; it must return a CVXPY expression, "
            "and a constraint is a class of its own that derives from AbstractConstraint"
        )
    if (expression.shape != (2,)) if rows else (expression.size != 1):
        wanted = "one value per row, shape (2,) for two rows" if rows else "a scalar"
        raise TermError(f"the function of from_cvxpy must return {wanted}; it returned the shape {expression.shape}")
    if expression.parameters() or any(variable is not z for variable in expression.variables()):
        raise TermError("the function of from_cvxpy may hold no CVXPY Variable or Parameter of its own; use numbers")
    refuse_inexact(expression)
    if not expression.is_convex():
        value, z = values(function, rows, k), tried.moderate(k)
        shown = tried.unconvex(value, z, value(z))
        raise ConvexityError(
            f"CVXPY's rules do not show that the penalty is convex: {not_convex(expression)}; "
            + (f"nor is it: {shown}" if shown else "write it with convex atoms (https://www.cvxpy.org/tutorial/dcp)")
        )
    return expression


def of_row(function: Callable[[Any], Any], rows: bool, k: int) -> Callable[[Any], Any]:
    """The function of one row, a scalar."""

    def of_row(row: Any) -> Any:
        found = function(cp.reshape(row, (1, k), order="C") if rows else row)
        return cp.sum(found) if found.shape else found

    return of_row


def values(function: Callable[[Any], Any], rows: bool, k: int) -> Callable[[Array], Array]:
    """The function at rows of numbers; +inf outside its domain, with zero tolerance."""
    variable = cp.Variable(k, name="z")
    return evaluator(of_row(function, rows, k)(variable), variable)


def examine(function: Callable[[Any], Any], rows: bool, k: int, name: str) -> AbstractPenalty:
    """Check the function on rows of k coordinates, and find the penalty that it is there: in closed form where it is
    recognised, else by cone programmes."""
    try:
        apply(function, rows, k)
    except TermError:
        raise
    except Exception as problem:  # whatever CVXPY, or the function, raises on rows of this size
        raise tried.SizeError(f"the penalty {name} cannot act on {k} coordinates: {problem}") from problem
    source = FunctionSource(of_row(function, rows, k), k, name)
    variable = cp.Variable(k, name="z")
    expression = source.function(variable)
    value, z = evaluator(expression, variable), tried.points(k)
    phi = value(z)
    fine = np.isfinite(phi)
    if rows and not _close(np.asarray(function(cp.Constant(z[fine])).value, dtype=float), phi[fine]):
        raise TermError(f"the penalty {name} with rows=True must treat each row by itself; it mixes them")
    tried.refuse_values(name, z, phi)
    even = _close(phi, value(-z))
    source = replace(source, strength=_strength(z, phi))
    closed = closed_form(expression, variable, z, phi, even)
    if closed is not None and isinstance(closed, AbstractOneSided) != even:
        return replace(closed, source=source) if isinstance(closed, AbstractReadPenalty) else closed
    if wrong := _disagreement(source.programme, z[2:6], phi[2:6]):
        raise TermError(f"the penalty {name} {wrong}; where an atom is approximated, pass it approx=False")
    return (ConePenalty if even else OneSidedConePenalty)(value, source=source)


def _strength(z: Array, phi: Array) -> float:
    """The power of 2 next to phi(z) / ||z|| at the rows z nearest to length 1."""
    fair = np.isfinite(phi) & (phi > 0.0)
    if not fair.any():
        return 1.0
    length = row_norm(z[fair])
    i = int(np.abs(np.log(length)).argmin())
    return 2.0 ** float(np.rint(np.log2(phi[fair][i] / length[i])))


def _disagreement(programme: ConeProgramme, z: Array, phi: Array) -> str:
    """The difference, in words, between a value by CVXPY's formulas and by its cones; empty where they agree."""
    finite = np.isfinite(phi)
    cones = programme.value(z)
    off = finite & ~(np.abs(cones - np.where(finite, phi, 0.0)) <= AGREEMENT * (programme.strength + np.abs(phi)))
    i = int(off.argmax())
    return f"is {phi[i]:.9g} at z = {z[i]} and CVXPY's cones make it {cones[i]:.9g}" if off.any() else ""


def _close(a: Array, b: Array) -> bool:
    return bool(np.isclose(a, b, rtol=tried.ROUNDING, atol=tried.ROUNDING * 1e-3).all())
