"""What is found out about a user's CVXPY function: whether it is a penalty, and what its conjugate is like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ConvexityError, TermError
from ...escaping import upright
from ...lazy import cp
from ..convexity import not_convex
from ..derivatives import KinkedError, jets
from ..records import Array, Notation
from ._cone_penalty import AbstractConePenalty, ConePenalty, OneSidedConePenalty
from ._conic import ConeProgramme, cone_programme
from ._domain import evaluated, inside, refuse_inexact
from ._recognise import closed_form
from ._rows import row_norm
from ._rowwise import domain_of, rowwise
from .base import AbstractOneSided
from .penalty import AbstractPenalty

SIZES = (3, 2, 1, *range(4, 33))  # the sizes of rows on which a function is tried when the penalty is made
MODERATE = 10.0  # entries of the rows on which convexity is tried
ROUNDING = 1e-9  # relative; within it a function is 0 at 0, even, homogeneous
ABOUT = "where it is smallest at a, write phi(z + a) without the constant, and give center=a to NodePenalty"
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
        z = moderate(k)
        with np.errstate(all="ignore"):
            shown = unconvex(lambda rows_of: values(function, rows, rows_of), z, values(function, rows, z))
        raise ConvexityError(
            f"CVXPY's rules do not show that the penalty is convex: {not_convex(expression)}; "
            + (f"nor is it: {shown}" if shown else "write it with convex atoms (https://www.cvxpy.org/tutorial/dcp)")
        )
    return expression


def values(function: Callable[[Any], Any], rows: bool, z: Array) -> Array:
    """The function at each row of numbers; +inf outside its domain, with zero tolerance."""
    with np.errstate(all="ignore"):
        if not rows:
            return np.array([evaluated(function(cp.Constant(row)), 1)[0] for row in z], dtype=float)
        together = function(cp.Constant(z))
        if inside(together):
            return evaluated(together, len(z))
        return np.array([evaluated(function(cp.Constant(row[None])), 1)[0] for row in z], dtype=float)


def examine(function: Callable[[Any], Any], rows: bool, k: int, name: str) -> AbstractPenalty:
    """Check the function on rows of k coordinates, and find the penalty that it is there: in closed form where it is
    recognised, else by cone programmes."""
    try:
        apply(function, rows, k)
    except Exception as problem:  # whatever CVXPY, or the function, raises on rows of this size
        if isinstance(problem, TermError):
            raise
        raise TermError(f"the penalty {name} cannot act on {k} coordinates: {problem}") from problem
    z = points(k)
    phi = values(function, rows, z)
    if rows and not _close(phi, np.concatenate([values(function, rows, row[None]) for row in z])):
        raise TermError(f"the penalty {name} with rows=True must treat each row by itself; it mixes them")
    refuse_values(name, z, phi)

    def row_function(row: Any) -> Any:
        return cp.sum(function(cp.reshape(row, (1, k), order="C"))) if rows else cp.sum(function(row))

    variable = cp.Variable(k, name="z")
    expression = row_function(variable)
    even = _close(phi, values(function, rows, -z))
    closed = closed_form(expression, variable, z, phi)
    if closed is not None and isinstance(closed, AbstractOneSided) != even:
        return closed
    programme = replace(cone_programme(row_function, k), strength=_strength(z, phi))
    if wrong := _disagreement(programme, z[2:6], phi[2:6]):
        raise TermError(f"the penalty {name} {wrong}; where an atom is approximated, pass it approx=False")
    homogeneous = programme.homogeneous and all(
        _close(t * phi, values(function, rows, t * z)) for t in (1e-3, 0.37, 7.0, 1e3)
    )
    kind = ConePenalty if even else OneSidedConePenalty
    together = _together(expression, variable, z, phi) or (lambda z: values(function, rows, z))
    try:
        smooth = jets(expression, variable)
    except KinkedError:
        smooth = None
    found = kind(row_function, together, programme, homogeneous, False, smooth, notation(name, homogeneous))
    return replace(found, everywhere=True) if _is_finite_everywhere(found, k) else found


def _strength(z: Array, phi: Array) -> float:
    """The power of 2 next to phi(z) / ||z|| at the rows z nearest to length 1."""
    fair = np.isfinite(phi) & (phi > 0.0)
    if not fair.any():
        return 1.0
    length = row_norm(z[fair])
    i = int(np.abs(np.log(length)).argmin())
    return 2.0 ** float(np.rint(np.log2(phi[fair][i] / length[i])))


def points(k: int) -> Array:
    """Rows on which a function is tried: random ones from tiny to huge, 0, axes, ties of both signs, one long axis."""
    rng = np.random.default_rng(0)
    random = rng.standard_normal((12, k)) * np.r_[np.logspace(-2, 2, 8), 1e-5, 1e4, 1e6, 1e9][:, None]
    signs = np.where(rng.random((6, k)) < 0.5, -1.0, 1.0) * np.r_[1.0, 0.3, 0.05, 1e-3, 3.0, 1e3][:, None]
    return np.vstack([random, np.zeros((1, k)), np.eye(k), -0.7 * np.eye(k), np.ones((1, k)), signs])


def moderate(k: int) -> Array:
    """Those of the `points` that are not large: of larger entries a function may well be infinite."""
    z = points(k)
    return z[np.abs(z).max(axis=1) <= MODERATE]


def unconvex(value: Callable[[Array], Array], z: Array, phi: Array) -> str:
    """Where a function with the values phi at the rows z is not convex, in words; "" where that is not seen.

    By the midpoints of all pairs of rows, 0 and multiples of an axis among them."""
    first, second = np.triu_indices(len(z), 1)
    middle, ends = np.asarray(value((z[first] + z[second]) / 2.0), dtype=float), (phi[first] + phi[second]) / 2.0
    above = np.isfinite(ends) & ~(middle <= ends + ROUNDING * (1.0 + ends))
    if not above.any():
        return ""
    i = int(np.where(above, middle - ends, -np.inf).argmax())
    return (
        f"halfway between a = {z[first[i]]} and b = {z[second[i]]} its value is "
        f"{middle[i]:.6g}, more than {ends[i]:.6g}, the mean of its values at a and b"
    )


def refuse_values(name: str, z: Array, phi: Array) -> None:
    """Raises where the values phi at the rows z are none of a penalty."""
    at_zero = phi[~z.any(axis=1)][0]
    if (phi < at_zero - ROUNDING * (1.0 + abs(at_zero) + np.abs(z).max(axis=1))).any():
        i = int(phi.argmin())
        raise TermError(
            f"the penalty {name} must not be negative, and 0 at z = 0: it is {at_zero:.6g} there and smaller, "
            f"{phi[i]:.6g}, at z = {z[i]}; {ABOUT}"
        )
    if not abs(at_zero) <= ROUNDING:
        raise TermError(f"the penalty {name} must be 0 at z = 0; it is {at_zero:.6g}; subtract the constant")


def _disagreement(programme: ConeProgramme, z: Array, phi: Array) -> str:
    """What CVXPY's cones make of a value that its formulas give, where that is something else."""
    finite = np.isfinite(phi)
    cones = programme.value(z)
    off = finite & ~(np.abs(cones - np.where(finite, phi, 0.0)) <= AGREEMENT * (programme.strength + np.abs(phi)))
    i = int(off.argmax())
    return f"is {phi[i]:.9g} at z = {z[i]} and CVXPY's cones make it {cones[i]:.9g}" if off.any() else ""


def _together(expression: Any, variable: Any, z: Array, phi: Array) -> Callable[[Array], Array] | None:
    """The function at all rows at once, where that is what CVXPY gives row by row."""
    try:
        each, within = rowwise(expression, variable), domain_of(expression, variable)

        def value(z: Array) -> Array:
            with np.errstate(all="ignore"):
                found = each(z)[:, 0]
                return np.where(within(z) & ~np.isnan(found) & (found > -np.inf), found, np.inf)

        return value if np.isclose(value(z), phi, rtol=1e-13, atol=1e-15).all() else None
    except Exception:  # noqa: BLE001 - an atom of which CVXPY's formula takes numbers in another way
        return None


def _close(a: Array, b: Array) -> bool:
    return bool(np.isclose(a, b, rtol=ROUNDING, atol=ROUNDING * 1e-3).all())


def _is_finite_everywhere(phi: AbstractConePenalty, k: int) -> bool:
    """Whether phi* is finite far beyond where the gauge of any axis ends, if it does."""
    axes = np.vstack([np.eye(k), -np.eye(k)])
    if phi.homogeneous or phi.programme.lineality.shape[1]:
        return False
    strength = phi.programme.strength
    far = strength * np.maximum(1e3, 10.0 / np.maximum(phi.domain.gauge(axes) * strength, 1e-7))
    return bool(np.isfinite(phi.largest(axes * far[:, None])).all())


def notation(name: str, homogeneous: bool) -> Notation:
    """How a function that has a name is printed, with what its conjugate is."""
    latex = name if len(name) == 1 and name.isalpha() else {"phi": r"\phi"}.get(name, upright(name))
    if homogeneous:
        polar = f"{name}^o(%u) <= %c where {name}^o(u) = max over {name}(z) <= 1 of <u, z>"
        typeset = rf"{latex}^\circ(%u) \le %c \text{{ where }} {latex}^\circ(u) = \max_{{{latex}(z) \le 1}} "
        return Notation(f"{name}(%z)", "", polar, rf"{latex}(%z)", "", typeset + r"\langle u, z \rangle")
    star = f"{name}*(u) = max over z of <u, z> - {name}(z)"
    typeset = rf"{latex}^*(u) = \max_z \langle u, z \rangle - {latex}(z)"
    return Notation(
        f"{name}(%z)",
        f"%c {name}*(%u / %c) where {star}",
        latex_value=rf"{latex}(%z)",
        latex_conjugate=rf"%c \, {latex}^*(%u / %c) \text{{ where }} {typeset}",
    )
