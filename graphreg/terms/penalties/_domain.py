"""Where a CVXPY function is finite, decided in numpy with zero tolerance.

CVXPY's atoms are evaluated by formulas that may give a number outside their domain (1/x at x < 0, x^3 at x < 0, the
log-determinant of -I), and some to a tolerance (an indicator to 1e-3). Each atom states its domain as constraints;
these are evaluated here, and what can only be evaluated to a tolerance is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import TermError
from ..records import Array

ROUNDED = 1e-14  # of an exponent: a float that is taken for the fraction it was meant to be
# Atoms that CVXPY evaluates to a tolerance of its own, or by a solver.
TOLERANT = ("SuppFuncAtom", "perspective", "quantum_rel_entr", "quantum_cond_entr", "length")
CONSTRAINT = (
    "a constraint is a term of its own (Box, Ball, NonNegative, or a class that derives from AbstractConstraint)"
)


def refuse_inexact(expression: Any) -> None:
    """Raises a TermError that names the first part whose value, or whose cones, are known to a tolerance only."""
    from cvxpy.atoms.atom import Atom
    from cvxpy.expressions.leaf import Leaf

    for part in _parts(expression):
        kind = type(part).__name__
        if kind == "indicator":
            raise TermError(
                f"the function of from_cvxpy holds {part}, which CVXPY takes for satisfied within {part.err_tol:g}: no "
                f"certificate can rest on that; leave it out and add it to the model: {CONSTRAINT}"
            )
        if not isinstance(part, (Atom, Leaf)) or kind in TOLERANT:
            raise TermError(
                f"the function of from_cvxpy holds {kind} ({_short(part)}), which CVXPY evaluates to a tolerance, or "
                "by a solver; write it out with other atoms"
            )
        rounded = float(getattr(part, "approx_error", 0.0))
        if rounded > ROUNDED:
            raise TermError(
                f"the function of from_cvxpy holds {_short(part)}, whose exponent CVXPY rounds (by "
                f"{rounded:.2g}); pass it approx=False"
            )
    _stated(expression.domain)


def _parts(expression: Any) -> Iterator[Any]:
    yield expression
    if type(expression).__name__ != "indicator":
        for part in expression.args:
            yield from _parts(part)


def _short(part: Any) -> str:
    said = str(part)
    return said if len(said) <= 60 else f"{said[:57]}..."


def _stated(domain: list[Any]) -> None:
    """Raises where a domain is stated by another kind of constraint than can be evaluated here."""
    for constraint in domain:
        if type(constraint).__name__ not in _JUDGES:
            raise TermError(
                f"the function of from_cvxpy is finite only where {_short(constraint)}, a "
                f"{type(constraint).__name__} that cannot be decided exactly; write it with other atoms"
            )


def inside(expression: Any) -> bool:
    """Whether an expression of constants lies in its domain."""
    return all(_JUDGES[type(constraint).__name__](constraint) for constraint in expression.domain)


def evaluated(expression: Any, m: int) -> Array:
    """The values (m,) of an expression of constants; +inf outside its domain, and where CVXPY has no number."""
    if not inside(expression):
        return np.full(m, np.inf)
    value = np.asarray(expression.value, dtype=float)
    value = value.reshape(m) if value.size == m else np.array([value.sum()])
    return np.where(np.isnan(value) | (value == -np.inf), np.inf, value)


def _inequality(constraint: Any) -> bool:
    low, high = (np.asarray(arg.value, dtype=float) for arg in constraint.args)
    return bool((low <= high).all())


def _equality(constraint: Any) -> bool:
    one, other = (np.asarray(arg.value, dtype=float) for arg in constraint.args)
    return bool((one == other).all())


def _semidefinite(constraint: Any) -> bool:
    """By more than the rounding of eigenvalues, so that what passes is positive semidefinite indeed."""
    M = np.asarray(constraint.args[0].value, dtype=float)
    if not (np.isfinite(M).all() and (M == M.T).all()):
        return False
    values = np.linalg.eigvalsh(M)
    return bool(values[0] >= 4.0 * len(M) * np.finfo(float).eps * np.abs(values).max())


_JUDGES = {"Inequality": _inequality, "Equality": _equality, "PSD": _semidefinite}
