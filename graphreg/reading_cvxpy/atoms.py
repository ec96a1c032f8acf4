"""The meaning of CVXPY's atoms: affine ones matrices, others smooth functions of each entry, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, xlogy

from ..terms import Array

Map = Callable[[Array], Array]


class KinkedError(Exception):
    """An atom that is not known to be smooth."""


class Smooth(NamedTuple):
    """f, f' and f''."""

    value: Map
    slope: Map
    bend: Map


def kind_of(atom: Any) -> str:
    """The name of an atom, without how its exponent is found."""
    return type(atom).__name__.removesuffix("Approx")


def smooth(atom: Any) -> Smooth:
    """The function that an atom of CVXPY applies to each entry.

    Raises
    ------
    KinkedError
        Where it is not known to be smooth, or to act on each entry.
    """
    kind = kind_of(atom)
    if kind == "Power":
        return _power(float(atom.p.value))
    if kind == "huber":
        return _huber(float(atom.M.value))
    if kind not in _ATOMS:
        raise KinkedError(kind)
    return _ATOMS[kind]


@cache
def _power(p: float) -> Smooth:
    whole = p > 0.0 and p % 2.0 == 0.0

    def power(x: Array, e: float) -> Array:
        return (x if whole else np.where(x >= 0.0, x, np.nan)) ** e  # where it is smooth

    return Smooth(lambda x: power(x, p), lambda x: p * power(x, p - 1.0), lambda x: p * (p - 1.0) * power(x, p - 2.0))


SQUARE = _power(2.0)


@cache
def _huber(M: float) -> Smooth:
    """The Huber function, whose second derivative jumps at -M and M."""

    def value(x: Array) -> Array:
        return np.where(np.abs(x) <= M, x * x, M * (2.0 * np.abs(x) - M))

    return Smooth(value, lambda x: 2.0 * np.clip(x, -M, M), lambda x: np.where(np.abs(x) <= M, 2.0, 0.0))


_ATOMS = {
    "exp": Smooth(np.exp, np.exp, np.exp),
    "log": Smooth(np.log, lambda x: 1.0 / x, lambda x: -1.0 / (x * x)),
    "log1p": Smooth(np.log1p, lambda x: 1.0 / (1.0 + x), lambda x: -1.0 / (1.0 + x) ** 2),
    "entr": Smooth(lambda x: -xlogy(x, x), lambda x: -np.log(x) - 1.0, lambda x: -1.0 / x),
    "logistic": Smooth(lambda x: np.logaddexp(0.0, x), expit, lambda x: expit(x) * expit(-x)),
}


# ---- trees ----------------------------------------------------------------------------------------------------------
def folded(
    expression: Any,
    z: Any,
    constant: Callable[[Array], Any],
    affine: Callable[[Any], Callable[[list[Any]], Any]],
    other: Callable[[Any], Callable[[list[Any]], Any]],
) -> Callable[[Any], Any]:
    """What an expression of the variable z is, from what z is: that of its constants (1, size), flat in CVXPY's order,
    of its affine atoms, and of other atoms, from their arguments."""
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if expression is z:
        return lambda x: x
    if expression.is_constant():
        fixed = constant(dense(expression.value).ravel(order="F")[None])
        return lambda _: fixed
    args = [folded(arg, z, constant, affine, other) for arg in expression.args]
    act = affine(expression) if isinstance(expression, AffAtom) else other(expression)
    return lambda x: act([arg(x) for arg in args])


# ---- affine atoms ----------------------------------------------------------------------------------------------------
def affine_map(atom: Any, each: bool = False) -> tuple[Array, list[Array | None]]:
    """(size,) and a (size, size of the argument) matrix for each argument that is not constant, flat in CVXPY's order;
    None for those that are. ``each``: the diagonals (size,) of matrices that are diagonal."""
    fixed = [arg.value if arg.is_constant() else np.zeros(arg.shape) for arg in atom.args]
    base = dense(atom.numeric(fixed)).ravel(order="F")
    matrices: list[Array | None] = []
    for i, arg in enumerate(atom.args):
        if arg.is_constant():
            matrices.append(None)
            continue
        columns = [
            dense(atom.numeric([*fixed[:i], unit.reshape(arg.shape, order="F"), *fixed[i + 1 :]])).ravel(order="F")
            for unit in (np.ones((1, arg.size)) if each else np.eye(arg.size))
        ]
        matrices.append(columns[0] - base if each else np.array(columns).T - base[:, None])
    return base, matrices


def dense(value: Any) -> Array:
    """A value of CVXPY as an array of floats."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)
