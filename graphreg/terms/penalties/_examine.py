"""What is found out about a user's CVXPY function: whether it is a penalty, and what its conjugate is like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ConvexityError, TermError
from ...lazy import cp
from ..records import Array
from ._conic import ConeProgramme, cone_programme
from ._domain import evaluated, inside, refuse_inexact

ROUNDING = 1e-9  # relative; within it a function is 0 at 0, even, homogeneous
AGREEMENT = 1e-7  # relative; CVXPY's cones, solved, against its values


@dataclass(frozen=True)
class FunctionTraits:
    """What was found out about a function on rows of k coordinates."""

    programme: ConeProgramme
    even: bool
    homogeneous: bool  # phi(t z) = t phi(z) for t > 0: phi* is the indicator of {gauge <= 1}
    everywhere: bool  # phi* is finite everywhere


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
        guilty = _guilty(expression)
        why = "concave" if guilty.is_concave() else "neither convex nor concave by its rules"
        raise ConvexityError(
            f"CVXPY's rules do not show that the penalty is convex: {guilty} is {why}; "
            "write it with convex atoms (https://www.cvxpy.org/tutorial/dcp)"
        )
    return expression


def _guilty(expression: Any) -> Any:
    """The smallest sub-expression that breaks convexity."""
    while True:
        worse = [part for part in expression.args if not part.is_dcp()]
        if not worse and isinstance(expression, cp.AddExpression):
            worse = [part for part in expression.args if not part.is_convex()]
        if not worse:
            return expression
        expression = worse[0]


def values(function: Callable[[Any], Any], rows: bool, z: Array) -> Array:
    """The function at each row of numbers; +inf outside its domain, with zero tolerance."""
    with np.errstate(all="ignore"):
        if not rows:
            return np.array([evaluated(function(cp.Constant(row)), 1)[0] for row in z], dtype=float)
        together = function(cp.Constant(z))
        if inside(together):
            return evaluated(together, len(z))
        return np.array([evaluated(function(cp.Constant(row[None])), 1)[0] for row in z], dtype=float)


def examine(function: Callable[[Any], Any], rows: bool, k: int, name: str) -> FunctionTraits:
    """Check the function on rows of k coordinates, and find out what its conjugate is like."""
    try:
        apply(function, rows, k)
    except (ValueError, IndexError) as problem:
        if isinstance(problem, TermError):
            raise
        raise TermError(f"the penalty {name} cannot act on {k} coordinates: {problem}") from problem
    rng = np.random.default_rng(0)
    z = rng.standard_normal((12, k)) * np.r_[np.logspace(-2, 2, 8), 1e-5, 1e4, 1e6, 1e9][:, None]
    at_zero, phi = values(function, rows, np.zeros((1, k)))[0], values(function, rows, z)
    if not abs(at_zero) <= ROUNDING:
        raise TermError(f"the penalty {name} must be 0 at z = 0; it is {at_zero:.6g}; subtract the constant")
    if (phi < -ROUNDING * (1.0 + np.abs(z).max(axis=1))).any():
        i = int(phi.argmin())
        raise TermError(f"the penalty {name} must not be negative; it is {phi[i]:.6g} at z = {z[i]}")
    if rows and not _close(phi, np.concatenate([values(function, rows, row[None]) for row in z])):
        raise TermError(f"the penalty {name} with rows=True must treat each row by itself; it mixes them")

    def row_function(row: Any) -> Any:
        return cp.sum(function(cp.reshape(row, (1, k), order="C"))) if rows else cp.sum(function(row))

    programme = cone_programme(row_function, k)
    for row, value in zip(z[2:6], phi[2:6], strict=True):
        cones = programme.value(row)
        if np.isfinite(value) and abs(cones - value) > AGREEMENT * (1.0 + abs(value)):
            raise TermError(
                f"the penalty {name} is {value:.9g} at z = {row} and CVXPY's cones make it {cones:.9g}; "
                "where an atom is approximated, pass it approx=False"
            )
    even = _close(phi, values(function, rows, -z))
    homogeneous = programme.homogeneous and all(
        _close(t * phi, values(function, rows, t * z)) for t in (1e-3, 0.37, 7.0, 1e3)
    )
    return FunctionTraits(programme, even, homogeneous, not homogeneous and _everywhere(programme))


def _close(a: Array, b: Array) -> bool:
    return bool(np.isclose(a, b, rtol=ROUNDING, atol=ROUNDING * 1e-3).all())


def _everywhere(programme: ConeProgramme) -> bool:
    """Whether phi* is finite everywhere: far beyond where the gauge of any axis ends, if it does."""
    for axis in np.vstack([np.eye(programme.k), -np.eye(programme.k)]):
        gauge = programme.support(axis)
        if gauge > 1e-2 or not np.isfinite(programme.conjugate(axis * max(1e3, 10.0 / max(gauge, 1e-7)))):
            return False
    return True
