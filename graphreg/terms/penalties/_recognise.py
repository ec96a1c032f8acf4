"""What is recognised in the tree of a CVXPY function: sums of norms, squares and piecewise quadratic functions.

The tree is read as ``constant + sum of h(variable) + 1/2 z'Qz``, where a variable is a coordinate of z or a norm of
some coordinates, and each h is piecewise quadratic. What is read so is compared with the function before it is used
(see `closed_form`), so that a tree that was misread costs a closed form and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from ..derivatives import KinkedError
from ..linear import affine_map, dense
from ..records import Array
from ._blocks import blocks
from ._composed import Ridged, Thresholded
from ._curves import LINE, NOTHING, Curve, MixedError, lines_of, upper_envelope
from ._functions import Atom, Function, Largest, atom_of, function, through
from ._radial import radial
from ._rooted import OfNorm, rooted_separable
from ._rooted_norms import EllipsoidNorm, PNorm, ScaledNorm
from ._separable import AbstractSeparable, separable
from .base import AbstractNorm
from .l1 import L1
from .l2 import L2
from .linf import LInf
from .penalty import AbstractPenalty
from .quadratic import Quadratic
from .squared_l2 import SquaredL2

AGREEMENT = 1e-12  # relative; of what was recognised and the function
CANCELLED = 2.0**-48  # of constants that a formula adds and takes away
WELL_POSED = 1e6  # condition number of an R up to which ||Rz|| has a dual norm to speak of


class UnknownError(Exception):
    """A part of the tree that is not recognised."""


@dataclass(frozen=True, eq=False)
class NormOf:
    """The p-norm of Az, A (r, k)."""

    p: float
    A: Array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NormOf) and self.p == other.p and np.array_equal(self.A, other.A)

    def __hash__(self) -> int:
        return hash((self.p, self.A.tobytes()))


Variable = int | NormOf


@dataclass(frozen=True)
class Entry:
    """A constant, functions of variables that are 0 where these are 0, and a quadratic form ``z'Qz / 2``."""

    constant: float = 0.0
    curves: dict[Variable, Curve | Function] = field(default_factory=dict["Variable", "Curve | Function"])
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
    def used(self) -> dict[Variable, Curve | Function]:
        """The variables on which it depends."""
        return {
            v: c
            for v, c in self.curves.items()
            if isinstance(c, Function) or len(c.knots) or c.bend.any() or c.slope.any()
        }

    def row(self, k: int) -> Array:
        """a (k,) where it is a'z."""
        a = np.zeros(k)
        for variable, curve in self.used.items():
            if isinstance(variable, NormOf) or isinstance(curve, Function) or not curve.is_line:
                raise UnknownError
            a[variable] = curve.slope[0]
        if self.constant != 0.0 or np.any(self.Q):
            raise UnknownError
        return a

    def line(self) -> tuple[Variable | None, float, float]:
        """(variable, a, b) where it is ``a * variable + b``."""
        used = self.used
        if len(used) > 1 or np.any(self.Q):
            raise UnknownError
        for variable, curve in used.items():
            if isinstance(curve, Function) or not curve.is_line:
                raise UnknownError
            return variable, float(curve.slope[0]), self.constant
        return None, 0.0, self.constant

    def lines(self) -> tuple[Variable | None, list[tuple[float, float]]]:
        """The variable, and the lines whose maximum it is."""
        used = self.used
        if len(used) > 1 or np.any(self.Q):
            raise UnknownError
        for variable, curve in used.items():
            found = None if isinstance(curve, Function) else lines_of(curve, self.constant)
            if found is None:
                raise UnknownError
            return variable, found
        return None, [(0.0, self.constant)]

    def alone(self, k: int) -> tuple[Variable, Curve | Function]:
        """The variable and the function of it that it is, beside its constant."""
        used, Q = self.used, self.Q * np.ones((k, k))
        if Q.any():
            on = np.flatnonzero(np.diag(Q))
            A, q = np.eye(k)[on], float(Q[on[0], on[0]]) if len(on) else 0.0
            if not np.array_equal(Q, q * A.T @ A):
                raise UnknownError
            return Entry(curves=used).joined(int(on[0]) if len(on) == 1 else NormOf(2.0, A), Curve.of([], [0.0], [q]))
        if len(used) == 1:
            return next(iter(used.items()))
        weights = {j: _weight(curve) for j, curve in used.items() if not isinstance(j, NormOf)}
        if not used or len(weights) < len(used) or len(set(weights.values())) > 1:
            raise UnknownError
        return NormOf(1.0, np.array([weight * np.eye(k)[j] for j, weight in weights.items()])), LINE

    def joined(self, variable: Variable, curve: Curve) -> tuple[Variable, Curve | Function]:
        """With a function of the variable added, if it depends on no other."""
        if any(other != variable for other in self.curves):
            raise UnknownError
        return variable, self.curves.get(variable, NOTHING) + curve


def read(expression: Any, z: Any) -> list[Entry]:
    """The entries of an expression of the variable z, in CVXPY's order."""
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if expression is z:
        return [Entry(curves={j: LINE}) for j in range(z.size)]
    if expression.is_constant():
        return [Entry(float(each)) for each in dense(expression.value).ravel(order="F")]
    if isinstance(expression, AffAtom):
        return _linear(expression, z)
    args = [read(arg, z) for arg in expression.args]
    reader = _READERS.get(type(expression).__name__.removesuffix("Approx"))
    try:
        return (reader or _through)(expression, args, z.size)
    except UnknownError:
        if reader is None:
            raise
    return _through(expression, args, z.size)  # what is not piecewise quadratic may be smooth


def _linear(atom: Any, z: Any) -> list[Entry]:
    base, matrices = affine_map(atom)
    out = [Entry(float(each)) for each in base]
    for arg, matrix in zip(atom.args, matrices, strict=True):
        for entry, column in zip(read(arg, z), matrix.T, strict=True) if matrix is not None else ():
            for row in np.flatnonzero(column):
                out[row] = out[row] + entry.times(float(column[row]))
    return out


# ---- atoms -----------------------------------------------------------------------------------------------------------
def _of_one(f: Callable[[float], float], curve: Curve) -> Callable[[Entry], Entry]:
    """f of ``a * variable + b``, f with this derivative."""

    def composed(entry: Entry) -> Entry:
        variable, a, b = entry.line()
        return Entry(f(b), {} if variable is None else {variable: curve.at(a, b)})

    return composed


_ABS = _of_one(abs, Curve.of([0.0], [-1.0, 1.0]))
_SQUARE = _of_one(lambda x: x * x, Curve.of([], [0.0], [2.0]))


def _through(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    """A smooth atom, of a function of one variable."""
    try:
        f = atom_of(atom)
    except KinkedError as kinked:
        raise UnknownError from kinked
    return [_composed(f, entry, k) for entry in args[0]]


def _composed(f: Atom, entry: Entry, k: int) -> Entry:
    with np.errstate(all="ignore"):
        constant = float(f.value(np.array(entry.constant)))
    if not np.isfinite(constant):
        raise UnknownError
    if not entry.used and not np.any(entry.Q):
        return Entry(constant)
    variable, h = entry.alone(k)
    return Entry(constant, {variable: through(f, h, entry.constant)})


def _huber(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    M = float(atom.M.value)
    curve = Curve.of([-M, M], [-2.0 * M, 0.0, 2.0 * M], [0.0, 2.0, 0.0])
    return [_of_one(lambda x: x * x if abs(x) <= M else M * (2.0 * abs(x) - M), curve)(entry) for entry in args[0]]


def _power(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    if float(atom.p.value) != 2.0:
        raise UnknownError
    return [_SQUARE(entry) for entry in args[0]]


def _maximum(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    size = max(len(arg) for arg in args)
    return [_largest([arg[i if len(arg) > 1 else 0] for arg in args], k) for i in range(size)]


def _largest(entries: Sequence[Entry], k: int) -> Entry:
    try:
        return _largest_line(entries)
    except UnknownError:
        top = max(entry.constant for entry in entries)
        some = [entry.alone(k) for entry in entries if entry.used or np.any(entry.Q)]
        if len({variable for variable, _ in some}) != 1:
            raise
        parts = [
            (function(entry.alone(k)[1] if entry.used or np.any(entry.Q) else NOTHING), entry.constant)
            for entry in entries
        ]
        return Entry(top, {some[0][0]: Function(NOTHING, (Largest(1.0, tuple(parts)),))})


def _largest_line(entries: Sequence[Entry]) -> Entry:
    found = [entry.lines() for entry in entries]
    variables = {variable for variable, _ in found if variable is not None}
    lines = [line for _, each in found for line in each]
    if len(variables) > 1:
        raise UnknownError
    return Entry(max(b for _, b in lines), {variable: upper_envelope(lines) for variable in variables})


def _max(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    try:
        return [_largest(args[0], k)]
    except UnknownError:  # of absolute values?
        return [_norm(np.inf, [_whose_size(entry) for entry in args[0]], k)]


def _whose_size(entry: Entry) -> Entry:
    """a z_j where the entry is ``a |z_j|``."""
    variable, lines = entry.lines()
    low, high = min(lines), max(lines)
    if variable is None or len(lines) != 2 or low != (-high[0], high[1]) or high[1] != 0.0:
        raise UnknownError
    return Entry(curves={variable: LINE.times(high[0])})


def _norm1(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    return [_sum([_ABS(entry) for entry in args[0]])]


def _norm_inf(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    return [_norm(np.inf, args[0], k)]


def _pnorm(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    return [_norm(float(atom.p), args[0], k)]


def _norm(p: float, entries: Sequence[Entry], k: int) -> Entry:
    fixed = np.array([entry.constant for entry in entries if not entry.used and not np.any(entry.Q)])
    if p == 2.0 and fixed.any():  # sqrt(norm^2 + c^2)
        inner, c = _norm(p, [entry for entry in entries if entry.used], k), float(np.linalg.norm(fixed))
        variable, h = inner.alone(k)
        return Entry(c, {variable: through(Atom("hypot", c), h, 0.0)})
    A = np.array([entry.row(k) for entry in entries])
    A = A[A.any(axis=1)]
    if p < 1.0 or not len(A):
        raise UnknownError
    if len(A) == 1 and np.count_nonzero(A) == 1:
        return _ABS(entries[0] if len(entries) == 1 else _entry(A[0]))
    return Entry(curves={NormOf(p, A): Curve.of([], [1.0])})


def _quad_over_lin(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    if not atom.args[1].is_constant():
        raise UnknownError
    over = float(atom.args[1].value)
    try:
        A = np.array([entry.row(k) for entry in args[0]])
    except UnknownError:
        return [_sum([_SQUARE(entry) for entry in args[0]]).times(1.0 / over)]
    return [Entry(Q=A.T @ A * (2.0 / over))]


def _quad_form(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    A, P = np.array([entry.row(k) for entry in args[0]]), dense(atom.args[1].value)
    return [Entry(Q=A.T @ (P + P.T) @ A)]


def _single(atom: Any) -> None:
    if atom.size != 1:
        raise UnknownError


def _sum(entries: Sequence[Entry]) -> Entry:
    return reduce(lambda one, other: one + other, entries, Entry())


def _entry(row: Array) -> Entry:
    return Entry(curves={int(j): LINE.times(float(row[j])) for j in np.flatnonzero(row)})


_READERS: dict[str, Callable[[Any, list[list[Entry]], int], list[Entry]]] = {
    "abs": lambda atom, args, k: [_ABS(entry) for entry in args[0]],
    "huber": _huber,
    "Power": _power,
    "maximum": _maximum,
    "max": _max,
    "norm1": _norm1,
    "norm_inf": _norm_inf,
    "Pnorm": _pnorm,
    "quad_over_lin": _quad_over_lin,
    "QuadForm": _quad_form,
}


# ---- what stands in closed form --------------------------------------------------------------------------------------
def closed_form(expression: Any, z: Any, rows: Array, values: Array) -> AbstractPenalty | None:
    """The penalty that a function of the variable z is, in closed form; None where it is not recognised, or where what
    was recognised has other values (m,) at the rows (m, k)."""
    try:
        entry = read(expression, z)[0]
        phi = _assembled(entry, z.size)
        phi.notation  # noqa: B018 - raises where it has no formula
    except (UnknownError, MixedError):
        return None
    rounding = CANCELLED * sum(h.level for h in entry.curves.values() if isinstance(h, Function))
    with np.errstate(all="ignore"):
        found = phi.value(rows)
        near = np.abs(found - values) <= AGREEMENT * (np.abs(values) + np.abs(rows).max(axis=1)) + rounding
    return phi if (near | (found == values)).all() else None


def _assembled(entry: Entry, k: int) -> AbstractPenalty:
    """The sum over blocks of coordinates that nothing connects."""
    Q = entry.Q * np.ones((k, k))
    curves = [entry.curves.get(j, NOTHING) for j in range(k)]
    norms = [(v, curve) for v, curve in entry.used.items() if isinstance(v, NormOf)]
    plain = not norms and all(isinstance(curve, Curve) and curve.is_line for curve in curves)
    if plain and Q.any():
        return SquaredL2() if np.array_equal(Q, np.eye(k)) else Quadratic(Q)
    return blocks([(columns, _block(columns, curves, Q, norms)) for columns in _connected(k, Q, norms)])


def _connected(k: int, Q: Array, norms: Sequence[tuple[NormOf, Curve | Function]]) -> Iterator[Array]:
    """The classes of coordinates that Q or a norm connects; those that nothing connects are one class."""
    from scipy.sparse.csgraph import connected_components

    tied = (Q != 0.0) & ~np.eye(k, dtype=bool)
    for norm, _ in norms:
        on = norm.A.any(axis=0)
        tied |= np.outer(on, on)
    _, label = connected_components(tied)
    alone = ~tied.any(axis=1)
    if alone.any():
        yield np.flatnonzero(alone)
    for each in np.unique(label[~alone]):
        yield np.flatnonzero(label == each)


def _block(
    columns: Array, curves: Sequence[Curve | Function], Q: Array, norms: Sequence[tuple[NormOf, Curve | Function]]
) -> AbstractPenalty:
    here = [(norm, curve) for norm, curve in norms if norm.A[:, columns].any()]
    own, Q = [curves[j] for j in columns], Q[np.ix_(columns, columns)]
    diagonal = np.diag(Q)
    if not here and np.array_equal(Q, np.diag(diagonal)):
        return _separable([curve + Curve.of([], [0.0], [q]) for curve, q in zip(own, diagonal, strict=True)])
    weights = np.array([_weight(curve) for curve in own])
    if not here:
        if weights.any():
            raise UnknownError
        return Quadratic(Q)
    if len(here) > 1 or not np.array_equal(Q, np.eye(len(columns)) * Q[0, 0]):
        raise UnknownError
    phi = _normed(here[0][0].p, here[0][0].A[:, columns], here[0][1], plain=not weights.any())
    phi = Ridged(phi, float(Q[0, 0])) if Q.any() else phi
    return Thresholded(weights, phi) if weights.any() else phi


def _separable(functions: Sequence[Curve | Function]) -> AbstractPenalty:
    curves = [h for h in functions if isinstance(h, Curve)]
    if len(curves) < len(functions):
        return rooted_separable([function(h) for h in functions])
    phi: AbstractSeparable = separable(curves)
    plain = all(
        np.array_equal(c.knots, [0.0]) and np.array_equal(c.slope, [-1, 1]) and not c.bend.any() for c in curves
    )
    return L1() if plain else phi


def _weight(curve: Curve | Function) -> float:
    """w where the function is ``w |z_j|``."""
    if isinstance(curve, Function):
        raise UnknownError
    if curve.is_line and not curve.slope.any():
        return 0.0
    if curve.bend.any() or not np.array_equal(curve.knots, [0.0]) or curve.slope[0] != -curve.slope[1]:
        raise UnknownError
    return float(curve.slope[1])


def _normed(p: float, A: Array, curve: Curve | Function, plain: bool) -> AbstractPenalty:
    """A function of the p-norm of Az. Unless ``plain`` it may not change with the signs of coordinates."""
    k = A.shape[1]
    scale = _common_size(A) if p != 2.0 or not plain else None
    gram = A.T @ A
    if p == 2.0 and np.allclose(gram, gram[0, 0] * np.eye(k), rtol=1e-15, atol=0.0):
        scale = float(np.sqrt(gram[0, 0]))
    if scale is None and p == 2.0 and plain and len(A) >= k and np.linalg.cond(A) < WELL_POSED:
        return _scaled(EllipsoidNorm(np.linalg.qr(A)[1]), curve)
    if scale is None:
        raise UnknownError
    right = curve.at(scale)
    if p == 2.0 and isinstance(right, Curve) and not right.is_line:
        return radial(right)
    return _scaled({1.0: L1(), 2.0: L2(), np.inf: LInf()}.get(p) or PNorm(p), right)


def _common_size(A: Array) -> float | None:
    """s where the entries of Az are those of s z, up to their signs and their order."""
    sizes = np.abs(A[A != 0.0])
    single = A.shape[0] == A.shape[1] == len(sizes) and (A != 0.0).any(axis=0).all() and (A != 0.0).any(axis=1).all()
    return float(sizes[0]) if single and np.all(sizes == sizes[0]) else None


def _scaled(norm: AbstractNorm, curve: Curve | Function) -> AbstractPenalty:
    """A function of a norm."""
    if isinstance(curve, Function) or not curve.is_line:
        return OfNorm(norm, curve)
    c = float(curve.slope[0])
    return norm if c == 1.0 else ScaledNorm(norm, c)
