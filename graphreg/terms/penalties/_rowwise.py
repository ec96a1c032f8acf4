"""A CVXPY function of one row, evaluated at many rows at once: its tree, with numpy at the nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..linear import affine_map, dense
from ..records import Array

Rows = Callable[[Array], Array]  # (m, k) -> (m, size of the expression), flat in CVXPY's order


def rowwise(expression: Any, z: Any) -> Rows:
    """The values of an expression of the variable z at each row; what CVXPY's formula gives, whatever the domain."""
    from cvxpy.atoms.affine.affine_atom import AffAtom
    from cvxpy.atoms.elementwise.elementwise import Elementwise

    if expression is z:
        return lambda rows: rows
    if expression.is_constant():
        flat = dense(expression.value).ravel(order="F")
        return lambda rows: np.broadcast_to(flat, (len(rows), len(flat)))
    args = [rowwise(arg, z) for arg in expression.args]
    if isinstance(expression, AffAtom):
        base, matrices = affine_map(expression)
        return lambda rows: base + sum(arg(rows) @ M.T for arg, M in zip(args, matrices, strict=True) if M is not None)
    if isinstance(expression, Elementwise):
        numeric: Any = expression.numeric  # pyright: ignore[reportAttributeAccessIssue]  (of every atom)
        return lambda rows: np.asarray(numeric([arg(rows) for arg in args]), dtype=float)
    return lambda rows: _one_by_one(expression, [arg(rows) for arg in args])


def _one_by_one(atom: Any, args: list[Array]) -> Array:
    kind = type(atom).__name__.removesuffix("Approx")
    if kind == "Pnorm" and atom.size == 1 and float(atom.p) == 2.0:
        return np.linalg.norm(args[0], axis=1)[:, None]
    known = _TOGETHER.get(kind)
    if known is not None and atom.size == 1:
        return known(*args)[:, None]
    shapes = [arg.shape for arg in atom.args]
    return np.array(
        [
            dense(
                atom.numeric([row.reshape(shape, order="F") for row, shape in zip(rows, shapes, strict=True)])
            ).ravel()
            for rows in zip(*args, strict=True)
        ]
    ).reshape(len(args[0]), atom.size)


_TOGETHER: dict[str, Callable[..., Array]] = {
    "norm1": lambda x: np.abs(x).sum(axis=1),
    "norm_inf": lambda x: np.abs(x).max(axis=1),
    "max": lambda x: x.max(axis=1),
    "quad_over_lin": lambda x, y: (x * x).sum(axis=1) / y[:, 0],
    "log_sum_exp": lambda x: np.logaddexp.reduce(x, axis=1),
}


def domain_of(expression: Any, z: Any) -> Callable[[Array], Array]:
    """Which rows lie in the domain that CVXPY states for an expression, with zero tolerance."""
    judges = [
        (type(each).__name__, [rowwise(arg, z) for arg in each.args], [arg.shape for arg in each.args])
        for each in expression.domain
    ]

    def inside(rows: Array) -> Array:
        found = np.full(len(rows), True)
        for kind, args, shapes in judges:
            found &= _JUDGES[kind]([arg(rows) for arg in args], shapes)
        return found

    return inside


def _semidefinite(args: list[Array], shapes: list[tuple[int, ...]]) -> Array:
    """By more than the rounding of eigenvalues, so that what passes is positive semidefinite indeed."""
    M = args[0].reshape(-1, *shapes[0])
    fine = np.isfinite(M).all(axis=(1, 2)) & (M.transpose(0, 2, 1) == M).all(axis=(1, 2))
    values = np.linalg.eigvalsh(np.where(fine[:, None, None], M, 0.0))
    return fine & (values[:, 0] >= 4.0 * M.shape[1] * np.finfo(float).eps * np.abs(values).max(axis=1))


_JUDGES: dict[str, Callable[[list[Array], list[tuple[int, ...]]], Array]] = {
    "Inequality": lambda args, _: np.all(args[0] <= args[1], axis=1),
    "Equality": lambda args, _: np.all(args[0] == args[1], axis=1),
    "PSD": _semidefinite,
}
