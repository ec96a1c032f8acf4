"""How the tree of a CVXPY function is read, atom by atom, as an `Entry`: sums of norms, squares, piecewise quadratic
functions, and smooth functions of one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..derivatives import KinkedError
from ..linear import affine_map, dense
from ..records import Array
from ._curves import LINE, NOTHING, Curve, upper_envelope
from ._entries import Entry, NormOf, UnknownError
from ._functions import Atom, Function, Largest, atom_of, function, through


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
    return [_sum([_abs(entry, k) for entry in args[0]])]


def _abs(entry: Entry, k: int) -> Entry:
    try:
        return _ABS(entry)
    except UnknownError:  # of several coordinates?
        return Entry(curves={NormOf(1.0, entry.row(k)[None]): LINE})


def _sum_largest(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    entries, q = [_whose_size(entry) for entry in args[0]], float(atom.k)
    if q >= len(entries):
        return [_sum([_ABS(entry) for entry in entries])]
    return [_norm(1.0, entries, k, q) if q > 1.0 else _norm(np.inf, entries, k).times(q)]


def _norm_inf(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    return [_norm(np.inf, args[0], k)]


def _pnorm(atom: Any, args: list[list[Entry]], k: int) -> list[Entry]:
    _single(atom)
    return [_norm(float(atom.p), args[0], k)]


def _norm(p: float, entries: Sequence[Entry], k: int, largest: float = np.inf) -> Entry:
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
    return Entry(curves={NormOf(1.0 if len(A) == 1 else p, A, largest): LINE})


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
    "abs": lambda atom, args, k: [_abs(entry, k) for entry in args[0]],
    "huber": _huber,
    "Power": _power,
    "maximum": _maximum,
    "max": _max,
    "norm1": _norm1,
    "norm_inf": _norm_inf,
    "sum_largest": _sum_largest,
    "Pnorm": _pnorm,
    "quad_over_lin": _quad_over_lin,
    "QuadForm": _quad_form,
}
