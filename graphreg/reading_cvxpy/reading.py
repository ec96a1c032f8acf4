"""The tree of a CVXPY function, read atom by atom as an `Entry`: sums of norms, squares, piecewise quadratic functions,
and smooth functions of one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np

from ..terms import Array
from .atoms import affine_map, dense, folded, kind_of
from .curve import LINE, NOTHING, SQUARE, Curve, UnknownError, composed
from .lines import Action, action, combined, hypotenuse, largest, square


@dataclass(frozen=True)
class NormOf:
    """The p-norm of Az, by the rows of A (r, k)."""

    p: float
    rows: tuple[tuple[float, ...], ...]

    @staticmethod
    def of(p: float, A: Array) -> NormOf:
        return NormOf(p, tuple(map(tuple, A.tolist())))

    @property
    def A(self) -> Array:  # noqa: N802 - the letter of the formula
        return np.array(self.rows)


Variable = int | NormOf


@dataclass(frozen=True)
class Entry:
    """``constant + sum of h(variable) + z'Qz / 2``: each h is 0 at 0, a variable is a coordinate of z or a norm."""

    constant: float = 0.0
    curves: dict[Variable, Curve] = field(default_factory=dict["Variable", "Curve"])
    Q: Any = 0.0

    def __add__(self, other: Entry) -> Entry:
        curves = dict(self.curves)
        for variable, curve in other.curves.items():
            curves[variable] = curves[variable] + curve if variable in curves else curve
        return Entry(self.constant + other.constant, curves, self.Q + other.Q)

    def times(self, factor: float) -> Entry:
        if factor == 0.0:
            return Entry()
        curves = {variable: curve.times(factor) for variable, curve in self.curves.items()}
        return Entry(factor * self.constant, curves, factor * self.Q)

    @property
    def used(self) -> dict[Variable, Curve]:
        """The variables on which it depends."""
        return {variable: h for variable, h in self.curves.items() if not h.is_zero}

    @property
    def is_fixed(self) -> bool:
        """True where it is its constant."""
        return not self.used and not np.any(self.Q)

    def row(self, k: int) -> Array:
        """a (k,) where it is a'z."""
        a, curves = np.zeros(k), {j: curve for j, curve in self.used.items() if not isinstance(j, NormOf)}
        if self.constant != 0.0 or np.any(self.Q) or len(curves) < len(self.used):
            raise UnknownError
        for j, curve in curves.items():
            a[j] = curve.factor
        return a

    def alone(self, k: int) -> tuple[Variable, Curve]:
        """The variable and the function of it that it is, beside its constant."""
        used, Q = self.used, self.Q * np.ones((k, k))
        if Q.any():
            on = np.flatnonzero(np.diag(Q))
            A, q = np.eye(k)[on], float(Q[on[0], on[0]]) if len(on) else 0.0
            variable: Variable = int(on[0]) if len(on) == 1 else NormOf.of(2.0, A)
            if not np.array_equal(Q, q * A.T @ A) or any(other != variable for other in used):
                raise UnknownError
            return variable, used.get(variable, NOTHING) + SQUARE.times(0.5 * q)
        if len(used) == 1:
            return next(iter(used.items()))
        weights = {j: curve.weight for j, curve in used.items() if not isinstance(j, NormOf)}
        if not used or len(weights) < len(used) or len(set(weights.values())) > 1:
            raise UnknownError
        return NormOf.of(1.0, np.array([weight * np.eye(k)[j] for j, weight in weights.items()])), LINE


def read(expression: Any, z: Any) -> list[Entry]:
    """The entries of an expression of the variable z, in CVXPY's order."""

    def constant(values: Array) -> list[Entry]:
        return [Entry(value) for value in values[0].tolist()]

    found = folded(
        expression, z, constant, lambda atom: partial(_linear, atom), lambda atom: partial(_atom, atom, z.size)
    )
    return found([Entry(curves={j: LINE}) for j in range(z.size)])


def _atom(atom: Any, k: int, args: list[list[Entry]]) -> list[Entry]:
    if kind_of(atom) in _OF_VECTORS and atom.size == 1:
        return [_OF_VECTORS[kind_of(atom)](atom, args[0], k)]
    size = max(len(arg) for arg in args)
    return [_of_entries(atom, [arg[i % len(arg)] for arg in args], k) for i in range(size)]


def _linear(atom: Any, args: list[list[Entry]]) -> list[Entry]:
    base, matrices = affine_map(atom)
    out = [Entry(float(each)) for each in base]
    for arg, matrix in zip(args, matrices, strict=True):
        for entry, column in zip(arg, matrix.T, strict=True) if matrix is not None else ():
            for row in np.flatnonzero(column):
                out[row] = out[row] + entry.times(float(column[row]))
    return out


def _sum(entries: Sequence[Entry]) -> Entry:
    return reduce(lambda one, other: one + other, entries, Entry())


# ---- functions of functions of one variable --------------------------------------------------------------------------
def _composed(act: Action, entries: Sequence[Entry], k: int, levels: Sequence[float] | None, bends: bool) -> Entry:
    """A function of functions of one variable. It is quadratic where none of them crosses another one or a level, and
    none bends, if it ``bends`` itself; with None for ``levels`` nowhere."""
    found = [(None, NOTHING) if entry.is_fixed else entry.alone(k) for entry in entries]
    variables = {variable for variable, _ in found if variable is not None}
    parts = [curve.plus(entry.constant) for entry, (_, curve) in zip(entries, found, strict=True)]
    if len(variables) > 1:
        raise UnknownError
    curve = composed(act, parts, None if bends and not all(part.is_straight for part in parts) else levels)
    if not np.isfinite(curve.start):
        raise UnknownError
    return Entry(curve.start, {variable: curve.plus(-curve.start) for variable in variables})


def _of_entries(atom: Any, entries: Sequence[Entry], k: int) -> Entry:
    kind = kind_of(atom)
    if kind == "abs":
        return _abs(entries[0], k)
    levels: Any = () if kind in ("maximum", "minimum") or (kind == "Power" and float(atom.p.value) == 2.0) else None
    if kind == "huber":
        levels = (-float(atom.M.value), float(atom.M.value))
    return _composed(action(atom), entries, k, levels, kind in ("huber", "Power"))


def _abs(entry: Entry, k: int) -> Entry:
    try:
        return _composed(lambda args: largest([args[0], combined(args, (-1.0,))]), [entry], k, (0.0,), False)
    except UnknownError:  # of several coordinates?
        return Entry(curves={NormOf.of(1.0, entry.row(k)[None]): LINE})


# ---- atoms of vectors ------------------------------------------------------------------------------------------------
def _max(atom: Any, entries: list[Entry], k: int) -> Entry:
    try:
        return _composed(largest, entries, k, (), False)
    except UnknownError:  # of absolute values?
        return _norm(np.inf, [_inner(entry) for entry in entries], k)


def _inner(entry: Entry) -> Entry:
    """a z_j where the entry is ``a |z_j|``."""
    weights = {v: LINE.times(curve.weight) for v, curve in entry.used.items()}
    if len(weights) != 1 or entry.constant != 0.0 or np.any(entry.Q):
        raise UnknownError
    return Entry(curves=weights)


def _norm(p: float, entries: Sequence[Entry], k: int) -> Entry:
    fixed = np.array([entry.constant for entry in entries if entry.is_fixed])
    if p == 2.0 and fixed.any():  # sqrt(norm^2 + c^2)
        inner = _norm(p, [entry for entry in entries if not entry.is_fixed], k)
        return _composed(lambda args: hypotenuse(args[0], float(np.linalg.norm(fixed))), [inner], k, None, True)
    A = np.array([entry.row(k) for entry in entries])
    A = A[A.any(axis=1)]
    if p < 1.0 or not len(A):
        raise UnknownError
    if len(A) == 1:
        return _abs(Entry(curves={int(j): LINE.times(float(A[0, j])) for j in np.flatnonzero(A[0])}), k)
    return Entry(curves={NormOf.of(p, A): LINE})


def _quad_over_lin(atom: Any, entries: list[Entry], k: int) -> Entry:
    if not atom.args[1].is_constant():
        raise UnknownError
    over = float(atom.args[1].value)
    try:
        A = np.array([entry.row(k) for entry in entries])
    except UnknownError:
        squares = [_composed(lambda args: square(args[0]), [entry], k, (), True) for entry in entries]
        return _sum(squares).times(1.0 / over)
    return Entry(Q=A.T @ A * (2.0 / over))


def _quad_form(atom: Any, entries: list[Entry], k: int) -> Entry:
    A, P = np.array([entry.row(k) for entry in entries]), dense(atom.args[1].value)
    return Entry(Q=A.T @ (P + P.T) @ A)


_OF_VECTORS: dict[str, Callable[[Any, list[Entry], int], Entry]] = {
    "max": _max,
    "norm1": lambda atom, entries, k: _sum([_abs(entry, k) for entry in entries]),
    "norm_inf": lambda atom, entries, k: _norm(np.inf, entries, k),
    "Pnorm": lambda atom, entries, k: _norm(float(atom.p), entries, k),
    "quad_over_lin": _quad_over_lin,
    "QuadForm": _quad_form,
}
