"""A CVXPY function of one row, evaluated at many rows at once with zero tolerance: its tree, with numpy at the nodes.

CVXPY's atoms are evaluated by formulas that may give a number outside their domain (1/x at x < 0, x^3 at x < 0, the
log-determinant of -I), and some to a tolerance (an indicator to 1e-3). Each atom states its domain as constraints;
these are evaluated here, and what can only be evaluated to a tolerance is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..errors import TermError
from ..terms import Array
from .atoms import affine_map, dense, folded, kind_of

Rows = Callable[[Array], Array]  # (m, k) -> (m, size of the expression), flat in CVXPY's order

ROUNDED = 1e-14  # of an exponent: a float that is taken for the fraction it was meant to be
# Atoms that CVXPY evaluates to a tolerance of its own, or by a solver.
TOLERANT = ("SuppFuncAtom", "perspective", "quantum_rel_entr", "quantum_cond_entr", "length")
CONSTRAINT = (
    "a constraint is a term of its own (Box, Ball, NonNegative, or a class that derives from AbstractConstraint)"
)


def evaluator(expression: Any, z: Any) -> Callable[[Array], Array]:
    """The values (m,) of an expression of the variable z at rows (m, k); +inf outside its domain, and where CVXPY has
    no number."""
    each = _rowwise(expression, z)
    judges = [
        (_JUDGES[type(constraint).__name__], [_rowwise(arg, z) for arg in constraint.args], constraint.args[0].shape)
        for constraint in expression.domain
    ]

    def value(rows: Array) -> Array:
        with np.errstate(all="ignore"):
            found = np.broadcast_to(each(rows), (len(rows), 1))[:, 0]
            fine = ~np.isnan(found) & (found > -np.inf)
            for judge, args, shape in judges:
                fine &= judge([arg(rows) for arg in args], shape)
            return np.where(fine, found, np.inf)

    return value


def _rowwise(expression: Any, z: Any) -> Rows:
    """The values of an expression of the variable z at each row; what CVXPY's formula gives, whatever the domain."""
    return folded(expression, z, lambda values: values, _affine, lambda atom: partial(_of_rows, atom))


def _affine(atom: Any) -> Callable[[list[Array]], Array]:
    base, matrices = affine_map(atom)
    return lambda args: base + sum(arg @ M.T for arg, M in zip(args, matrices, strict=True) if M is not None)


def _of_rows(atom: Any, args: list[Array]) -> Array:
    from cvxpy.atoms.elementwise.elementwise import Elementwise

    kind = kind_of(atom)
    if isinstance(atom, Elementwise):
        numeric: Any = atom.numeric  # pyright: ignore[reportAttributeAccessIssue]  (of every atom)
        return np.asarray(numeric(args), dtype=float)
    if kind == "Pnorm" and atom.size == 1 and float(atom.p) == 2.0:
        return np.linalg.norm(args[0], axis=1)[:, None]
    if kind in _TOGETHER and atom.size == 1:
        return _TOGETHER[kind](*args)[:, None]
    m, shapes = max(map(len, args)), [arg.shape for arg in atom.args]
    given = (
        [row.reshape(shape, order="F") for row, shape in zip(rows, shapes, strict=True)]
        for rows in zip(*(np.broadcast_to(arg, (m, arg.shape[1])) for arg in args), strict=True)
    )
    return np.array([dense(atom.numeric(each)).ravel(order="F") for each in given]).reshape(m, atom.size)


_TOGETHER: dict[str, Callable[..., Array]] = {
    "norm1": lambda x: np.abs(x).sum(axis=1),
    "norm_inf": lambda x: np.abs(x).max(axis=1),
    "max": lambda x: x.max(axis=1),
    "quad_over_lin": lambda x, y: (x * x).sum(axis=1) / y[:, 0],
    "log_sum_exp": lambda x: np.logaddexp.reduce(x, axis=1),
}


# ---- domains ---------------------------------------------------------------------------------------------------------
def _semidefinite(args: list[Array], shape: tuple[int, ...]) -> Array:
    """True where eigenvalues exceed 0 by more than their rounding, so that what passes is positive semidefinite
    indeed."""
    M = args[0].reshape(-1, *shape)
    fine = np.isfinite(M).all(axis=(1, 2)) & (M.transpose(0, 2, 1) == M).all(axis=(1, 2))
    values = np.linalg.eigvalsh(np.where(fine[:, None, None], M, 0.0))
    return fine & (values[:, 0] >= 4.0 * M.shape[1] * np.finfo(float).eps * np.abs(values).max(axis=1))


_JUDGES: dict[str, Callable[[list[Array], tuple[int, ...]], Array]] = {
    "Inequality": lambda args, _: np.all(args[0] <= args[1], axis=1),
    "Equality": lambda args, _: np.all(args[0] == args[1], axis=1),
    "PSD": _semidefinite,
}


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
    for constraint in expression.domain:
        if type(constraint).__name__ not in _JUDGES:
            raise TermError(
                f"the function of from_cvxpy is finite only where {_short(constraint)}, a "
                f"{type(constraint).__name__} that cannot be decided exactly; write it with other atoms"
            )


def _parts(expression: Any) -> Iterator[Any]:
    yield expression
    if type(expression).__name__ != "indicator":
        for part in expression.args:
            yield from _parts(part)


def _short(part: Any) -> str:
    said = str(part)
    return said if len(said) <= 60 else f"{said[:57]}..."
