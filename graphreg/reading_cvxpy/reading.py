"""The tree of a CVXPY function, read atom by atom as an `Entry`: sums of norms, squares, piecewise quadratic functions,
and smooth functions of one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from ..terms import Array
from .atoms import KinkedError, affine_map, dense, smooth
from .curve import LINE, NOTHING, Curve, Map, Rooted, larger


class UnknownError(Exception):
    """A part of the tree that is not recognised."""


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
    curves: dict[Variable, Map] = field(default_factory=dict["Variable", "Map"])
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
    def used(self) -> dict[Variable, Map]:
        """The variables on which it depends."""
        return {variable: h for variable, h in self.curves.items() if not h.is_zero}

    @property
    def is_fixed(self) -> bool:
        """True where it is its constant."""
        return not self.used and not np.any(self.Q)

    def row(self, k: int) -> Array:
        """a (k,) where it is a'z."""
        a = np.zeros(k)
        for variable, curve in self.used.items():
            if isinstance(variable, NormOf):
                raise UnknownError
            a[variable] = factor_of(curve)
        if self.constant != 0.0 or np.any(self.Q):
            raise UnknownError
        return a

    def line(self, k: int) -> tuple[Variable, float]:
        """The variable and a where it is ``a * variable``, beside its constant."""
        variable, h = self.alone(k)
        return variable, factor_of(h)

    def alone(self, k: int) -> tuple[Variable, Map]:
        """The variable and the function of it that it is, beside its constant."""
        used, Q = self.used, self.Q * np.ones((k, k))
        if Q.any():
            on = np.flatnonzero(np.diag(Q))
            A, q = np.eye(k)[on], float(Q[on[0], on[0]]) if len(on) else 0.0
            variable: Variable = int(on[0]) if len(on) == 1 else NormOf.of(2.0, A)
            if not np.array_equal(Q, q * A.T @ A) or any(other != variable for other in used):
                raise UnknownError
            return variable, used.get(variable, NOTHING) + Curve.of([], [0.0], [q])
        if len(used) == 1:
            return next(iter(used.items()))
        weights = {j: weight_of(curve) for j, curve in used.items() if not isinstance(j, NormOf)}
        if not used or len(weights) < len(used) or len(set(weights.values())) > 1:
            raise UnknownError
        return NormOf.of(1.0, np.array([weight * np.eye(k)[j] for j, weight in weights.items()])), LINE


def factor_of(curve: Map) -> float:
    """c where the function is ``c x``."""
    if isinstance(curve, Rooted) or not curve.is_line:
        raise UnknownError
    return float(curve.slope[0])


def weight_of(curve: Map) -> float:
    """w where the function is ``w |x|``."""
    if isinstance(curve, Rooted):
        raise UnknownError
    if curve.is_zero:
        return 0.0
    if curve.bend.any() or not np.array_equal(curve.knots, [0.0]) or curve.slope[0] != -curve.slope[1]:
        raise UnknownError
    return float(curve.slope[1])


def read(expression: Any, z: Any) -> list[Entry]:
    """The entries of an expression of the variable z, in CVXPY's order."""
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if expression is z:
        return [Entry(curves={j: LINE}) for j in range(z.size)]
    if expression.is_constant():
        return [Entry(float(each)) for each in dense(expression.value).ravel(order="F")]
    args = [read(arg, z) for arg in expression.args]
    if isinstance(expression, AffAtom):
        return _linear(expression, args)
    try:
        return _piecewise(expression, args, z.size)
    except UnknownError:
        return _smooth(expression, args[0], z.size)


def _piecewise(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    """An atom that makes norms, quadratic forms or piecewise quadratic functions of what is in it."""
    kind = type(atom).__name__.removesuffix("Approx")
    if kind in ("maximum", "minimum"):
        size, sign = max(len(arg) for arg in args), 1.0 if kind == "maximum" else -1.0
        return [_largest([arg[i % len(arg)].times(sign) for arg in args], k).times(sign) for i in range(size)]
    if kind in _OF_VECTORS and atom.size == 1:
        return [_OF_VECTORS[kind](atom, args[0], k)]
    if kind not in _OF_ENTRIES:
        raise UnknownError
    return [_OF_ENTRIES[kind](atom, entry, k) for entry in args[0]]


def _smooth(atom: Any, entries: list[Entry], k: int) -> list[Entry]:
    """A smooth atom of each entry."""
    try:
        f = smooth(atom).value
    except KinkedError as kinked:
        raise UnknownError from kinked
    return [_rooted(f, entry, k) for entry in entries]


def _linear(atom: Any, args: list[list[Entry]]) -> list[Entry]:
    base, matrices = affine_map(atom)
    out = [Entry(float(each)) for each in base]
    for arg, matrix in zip(args, matrices, strict=True):
        for entry, column in zip(arg, matrix.T, strict=True) if matrix is not None else ():
            for row in np.flatnonzero(column):
                out[row] = out[row] + entry.times(float(column[row]))
    return out


def _rooted(f: Callable[[Array], Array], entry: Entry, k: int) -> Entry:
    """A function of a function of one variable."""
    with np.errstate(all="ignore"):
        constant = float(f(np.array(entry.constant)))
    if not np.isfinite(constant):
        raise UnknownError
    return Entry(constant) if entry.is_fixed else Entry(constant, {entry.alone(k)[0]: Rooted()})


def _sum(entries: Sequence[Entry]) -> Entry:
    return reduce(lambda one, other: one + other, entries, Entry())


# ---- atoms of each entry ---------------------------------------------------------------------------------------------
SQUARE = Curve.of([], [0.0], [2.0])


def _of_line(curve: Curve, entry: Entry, k: int) -> Entry:
    """A function that is 0 at 0 of ``a * variable + b``."""
    constant = float(curve.value(np.array(entry.constant)))
    if entry.is_fixed:
        return Entry(constant)
    variable, a = entry.line(k)
    return Entry(constant, {variable: curve.at(a, entry.constant)})


def _abs(entry: Entry, k: int) -> Entry:
    try:
        return _of_line(Curve.of([0.0], [-1.0, 1.0]), entry, k)
    except UnknownError:  # of several coordinates?
        return Entry(curves={NormOf.of(1.0, entry.row(k)[None]): LINE})


def _power(atom: Any, entry: Entry, k: int) -> Entry:
    if float(atom.p.value) != 2.0:
        raise UnknownError
    return _of_line(SQUARE, entry, k)


def _huber(atom: Any, entry: Entry, k: int) -> Entry:
    M = float(atom.M.value)
    return _of_line(Curve.of([-M, M], [-2.0 * M, 0.0, 2.0 * M], [0.0, 2.0, 0.0]), entry, k)


_OF_ENTRIES: dict[str, Callable[[Any, Entry, int], Entry]] = {
    "abs": lambda atom, entry, k: _abs(entry, k),
    "huber": _huber,
    "Power": _power,
}


# ---- atoms of vectors ------------------------------------------------------------------------------------------------
def _largest(entries: Sequence[Entry], k: int) -> Entry:
    """The largest of piecewise quadratic functions of one variable."""
    found = [(None, NOTHING) if entry.is_fixed else entry.alone(k) for entry in entries]
    variables = {variable for variable, _ in found if variable is not None}
    top, best = entries[0].constant, found[0][1]
    for entry, (_, curve) in zip(entries[1:], found[1:], strict=True):
        if isinstance(best, Curve) and isinstance(curve, Curve):
            best = larger(best, curve, entry.constant - top)
        else:
            best = Rooted()
        top = max(top, entry.constant)
    if len(variables) > 1:
        raise UnknownError
    return Entry(top, dict.fromkeys(variables, best))


def _max(atom: Any, entries: list[Entry], k: int) -> Entry:
    try:
        return _largest(entries, k)
    except UnknownError:  # of absolute values?
        return _norm(np.inf, [_inner(entry) for entry in entries], k)


def _inner(entry: Entry) -> Entry:
    """a z_j where the entry is ``a |z_j|``."""
    weights: dict[Variable, Map] = {v: LINE.times(weight_of(curve)) for v, curve in entry.used.items()}
    if len(weights) != 1 or entry.constant != 0.0 or np.any(entry.Q):
        raise UnknownError
    return Entry(curves=weights)


def _norm1(atom: Any, entries: list[Entry], k: int) -> Entry:
    return _sum([_abs(entry, k) for entry in entries])


def _norm(p: float, entries: Sequence[Entry], k: int) -> Entry:
    fixed = np.array([entry.constant for entry in entries if entry.is_fixed])
    if p == 2.0 and fixed.any():  # sqrt(norm^2 + c^2)
        inner = _norm(p, [entry for entry in entries if not entry.is_fixed], k)
        return _rooted(lambda x: np.hypot(x, np.linalg.norm(fixed)), inner, k)
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
        return _sum([_of_line(SQUARE, entry, k) for entry in entries]).times(1.0 / over)
    return Entry(Q=A.T @ A * (2.0 / over))


def _quad_form(atom: Any, entries: list[Entry], k: int) -> Entry:
    A, P = np.array([entry.row(k) for entry in entries]), dense(atom.args[1].value)
    return Entry(Q=A.T @ (P + P.T) @ A)


_OF_VECTORS: dict[str, Callable[[Any, list[Entry], int], Entry]] = {
    "max": _max,
    "norm1": _norm1,
    "norm_inf": lambda atom, entries, k: _norm(np.inf, entries, k),
    "Pnorm": lambda atom, entries, k: _norm(float(atom.p), entries, k),
    "quad_over_lin": _quad_over_lin,
    "QuadForm": _quad_form,
}
