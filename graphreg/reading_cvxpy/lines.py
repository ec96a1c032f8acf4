"""A CVXPY function along lines: its values with the first and second derivatives to the right, through its tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..terms import Array
from .atoms import SQUARE, KinkedError, Smooth, affine_map, folded, kind_of, smooth


class Line(NamedTuple):
    """Values at points of lines, first and second derivatives to the right, and the sizes of what the values are sums
    of, all (m, s)."""

    value: Array
    slope: Array
    bend: Array
    size: Array


Lines = Callable[[Line], Line]
Action = Callable[[list[Line]], Line]  # of an atom


def along(points: Array, ways: Array) -> Line:
    """The variable itself, at points in some directions."""
    return Line(points, ways, np.zeros(points.shape), np.abs(points))


def constant(value: Array) -> Line:
    """What does not move."""
    return Line(value, np.zeros(value.shape), np.zeros(value.shape), np.abs(value))


def lines(expression: Any, z: Any, each: bool = False) -> Lines:
    """What an expression of the variable z is along lines, from what z is; flat in CVXPY's order. ``each``: affine
    atoms act on each entry by itself, of many.

    Raises
    ------
    KinkedError
        Where it holds an atom of which that is not known.
    """
    return folded(expression, z, constant, lambda atom: _affine(atom, each), action)


def _affine(atom: Any, each: bool) -> Action:
    base, matrices = affine_map(atom, each)

    def act(args: list[Line]) -> Line:
        pairs = [(arg, M) for arg, M in zip(args, matrices, strict=True) if M is not None]
        value, slope, bend = (
            np.add.reduce([arg[part] * M if each else arg[part] @ M.T for arg, M in pairs]) for part in range(3)
        )
        sizes = [arg.size * np.abs(M) if each else arg.size @ np.abs(M.T) for arg, M in pairs]
        return Line(base + value, slope, bend, np.abs(base) + np.add.reduce(sizes))

    return act


def action(atom: Any) -> Action:
    """What an atom that is not affine makes of lines.

    Raises
    ------
    KinkedError
        Where that is not known.
    """
    kind = kind_of(atom)
    if kind in _OF_MANY:
        return _OF_MANY[kind]
    if kind in _OF_VECTORS and atom.size == 1 and (kind != "Pnorm" or float(atom.p) == 2.0):
        return lambda args: _OF_VECTORS[kind](*args)
    f = smooth(atom)
    return lambda args: _through(f, args[0])


def combined(args: Sequence[Line], factors: Sequence[float], number: float = 0.0) -> Line:
    """A sum of multiples and a number."""
    value, slope, bend = (reduce(np.add, [c * arg[i] for c, arg in zip(factors, args, strict=True)]) for i in range(3))
    size = reduce(np.add, [abs(c) * arg.size for c, arg in zip(factors, args, strict=True)])
    return Line(value + number, slope, bend, size + abs(number))


def _through(f: Smooth, x: Line) -> Line:
    value, df = f.value(x.value), f.slope(x.value)
    bend = _product(f.bend(x.value), x.slope * x.slope) + _product(df, x.bend)
    return Line(value, _product(df, x.slope), bend, np.abs(value) + _product(np.abs(df), x.size))


def _product(a: Array, b: Array) -> Array:
    """a b, 0 where b is, though a be infinite: what does not move has no derivative."""
    return np.where(b == 0.0, 0.0, a * b)


def _negative(x: Line) -> Line:
    return combined([x], (-1.0,))


def _larger(x: Line, y: Line) -> Line:
    """The larger one to the right of each point."""
    tied = x.value == y.value
    other = (y.value > x.value) | (tied & ((y.slope > x.slope) | ((y.slope == x.slope) & (y.bend > x.bend))))
    return Line(*(np.where(other, *each) for each in zip(y, x, strict=True)))


def _size(x: Line) -> Line:
    """Its absolute value."""
    return _larger(x, _negative(x))


def largest(args: Sequence[Line]) -> Line:
    """The largest of them to the right of each point."""
    return reduce(_larger, args)


def _sum(x: Line) -> Line:
    return Line(*(each.sum(axis=1, keepdims=True) for each in x))


def _max(x: Line) -> Line:
    return largest([Line(*(each[:, j : j + 1] for each in x)) for j in range(x.value.shape[1])])


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


def hypotenuse(x: Line, side: float) -> Line:
    """The square root of the sum of the squares of an entry and of a number."""
    return _length(Line(*(np.hstack(each) for each in zip(x, constant(np.full(x.value.shape, side)), strict=True))))


def square(x: Line) -> Line:
    """The square of each entry."""
    return _through(SQUARE, x)


def _squares(x: Line, over: Line) -> Line:
    if over.slope.any() or over.bend.any():
        raise KinkedError("quad_over_lin")
    return _sum(Line(*(each / over.value for each in square(x))))


_OF_MANY: dict[str, Action] = {
    "maximum": largest,
    "minimum": lambda args: _negative(largest([_negative(arg) for arg in args])),
    "abs": lambda args: _size(args[0]),
}
_OF_VECTORS: dict[str, Callable[..., Line]] = {
    "norm1": lambda x: _sum(_size(x)),
    "norm_inf": lambda x: _max(_size(x)),
    "max": _max,
    "Pnorm": _length,
    "quad_over_lin": _squares,
}
