"""A CVXPY function along lines: its values with the first and second derivatives to the right, through its tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..terms import Array
from .atoms import KinkedError, Smooth, affine_map, dense, smooth


class Line(NamedTuple):
    """Values at points of lines, first and second derivatives to the right, and the sizes of what the values are sums
    of, all (m, s)."""

    value: Array
    slope: Array
    bend: Array
    size: Array


Lines = Callable[[Line], Line]


def along(points: Array, ways: Array) -> Line:
    """The variable itself, at points in some directions."""
    return Line(points, ways, np.zeros(points.shape), np.abs(points))


def lines(expression: Any, z: Any, affine: Callable[[Any, list[Line]], Line] | None = None) -> Lines:
    """What an expression of the variable z is along lines, from what z is; flat in CVXPY's order. ``affine`` tells what
    an affine atom makes of its arguments; by default its matrices do.

    Raises
    ------
    KinkedError
        Where it holds an atom of which that is not known.
    """
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if expression is z:
        return lambda line: line
    if expression.is_constant():
        flat = dense(expression.value).ravel(order="F")[None]
        fixed = Line(flat, np.zeros(flat.shape), np.zeros(flat.shape), np.abs(flat))
        return lambda line: fixed
    args = [lines(arg, z, affine) for arg in expression.args]
    if isinstance(expression, AffAtom):
        act = _matrices(expression) if affine is None else lambda given: affine(expression, given)
    else:
        act = _atom(expression)
    return lambda line: act([arg(line) for arg in args])


def _matrices(atom: Any) -> Callable[[list[Line]], Line]:
    base, matrices = affine_map(atom)

    def act(args: list[Line]) -> Line:
        pairs = [(arg, M.T) for arg, M in zip(args, matrices, strict=True) if M is not None]
        value, slope, bend = (np.add.reduce([arg[part] @ M for arg, M in pairs]) for part in range(3))
        return Line(base + value, slope, bend, np.abs(base) + np.add.reduce([arg.size @ np.abs(M) for arg, M in pairs]))

    return act


def _atom(atom: Any) -> Callable[[list[Line]], Line]:
    kind = type(atom).__name__.removesuffix("Approx")
    if kind == "maximum":
        return lambda args: reduce(_larger, args)
    if kind == "minimum":
        return lambda args: _times(reduce(_larger, [_times(arg, -1.0) for arg in args]), -1.0)
    if kind == "abs":
        return lambda args: _size(args[0])
    if kind in _OF_VECTORS and atom.size == 1 and (kind != "Pnorm" or float(atom.p) == 2.0):
        return lambda args: _OF_VECTORS[kind](*args)
    f = smooth(atom)
    return lambda args: _through(f, args[0])


def _through(f: Smooth, x: Line) -> Line:
    value, df = f.value(x.value), f.slope(x.value)
    bend = _product(f.bend(x.value), x.slope * x.slope) + _product(df, x.bend)
    return Line(value, _product(df, x.slope), bend, np.abs(value) + _product(np.abs(df), x.size))


def _product(a: Array, b: Array) -> Array:
    """a b, 0 where b is, though a be infinite: what does not move has no derivative."""
    return np.where(b == 0.0, 0.0, a * b)


def _times(x: Line, factor: Any) -> Line:
    return Line(factor * x.value, factor * x.slope, factor * x.bend, x.size)


def _size(x: Line) -> Line:
    """Its absolute value."""
    return _larger(x, _times(x, -1.0))


def _larger(x: Line, y: Line) -> Line:
    """The larger one to the right of each point."""
    tied = x.value == y.value
    other = (y.value > x.value) | (tied & ((y.slope > x.slope) | ((y.slope == x.slope) & (y.bend > x.bend))))
    return Line(*(np.where(other, *each) for each in zip(y, x, strict=True)))


def _sum(x: Line) -> Line:
    return Line(*(each.sum(axis=1, keepdims=True) for each in x))


def _largest(x: Line) -> Line:
    return reduce(_larger, [Line(*(each[:, j : j + 1] for each in x)) for j in range(x.value.shape[1])])


def _length(x: Line) -> Line:
    """The Euclidean norm; at 0 that of the slope, as on a ray."""
    most = np.maximum(np.abs(x.value).max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
    length = most * np.sqrt(((x.value / most) ** 2).sum(axis=1, keepdims=True))
    unit = x.value / np.where(length > 0.0, length, 1.0)
    way = np.sqrt((x.slope * x.slope).sum(axis=1, keepdims=True))
    slope = np.where(length > 0.0, (unit * x.slope).sum(axis=1, keepdims=True), way)
    turn = ((x.slope - slope * unit) ** 2).sum(axis=1, keepdims=True) / np.where(length > 0.0, length, np.inf)
    size = length + x.size.max(axis=1, keepdims=True)
    return Line(length, slope, turn + (unit * x.bend).sum(axis=1, keepdims=True), size)


def _squares(x: Line, over: Line) -> Line:
    if over.slope.any() or over.bend.any():
        raise KinkedError("quad_over_lin")
    square = Line(x.value**2, 2.0 * x.value * x.slope, 2.0 * (x.slope**2 + x.value * x.bend), 2.0 * x.size**2)
    return _times(_sum(square), 1.0 / over.value)


_OF_VECTORS: dict[str, Callable[..., Line]] = {
    "norm1": lambda x: _sum(_size(x)),
    "norm_inf": lambda x: _largest(_size(x)),
    "max": _largest,
    "Pnorm": _length,
    "quad_over_lin": _squares,
}
