"""Functions of one number, told along its line, and where they are quadratic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..terms import Array
from .lines import Line, Lines, along, combined, constant, square

ROUNDING = 1e-14  # relative; a slope that changes by less at a knot does not change


class UnknownError(Exception):
    """A part of the tree that is not recognised."""


@dataclass(frozen=True)
class Curve:
    """A function of one number, by what it is along a line; ``knots`` are where it may bend or jump, if it is quadratic
    between them, and None for any other."""

    lines: Lines
    knots: Array | None

    def __add__(self, other: Curve) -> Curve:
        return composed(lambda args: combined(args, (1.0, 1.0)), (self, other), (), apart=True)

    def times(self, factor: float) -> Curve:
        """``factor * h``."""
        return Curve(lambda x: combined([self.lines(x)], (factor,)), self.knots)

    def plus(self, number: float) -> Curve:
        """``h + number``."""
        return Curve(lambda x: combined([self.lines(x)], (1.0,), number), self.knots)

    def at(self, factor: float) -> Curve:
        """``h(factor * x)``."""
        knots = None if self.knots is None else np.sort(self.knots / factor)
        return Curve(lambda x: self.lines(combined([x], (factor,))), knots)

    def on(self, x: Array) -> Line:
        """The function at numbers x, (n,)."""
        with np.errstate(all="ignore"):
            found = self.lines(along(x[:, None], np.ones((len(x), 1))))
        return Line(*(np.broadcast_to(each, (len(x), 1))[:, 0] for each in found))

    @property
    def start(self) -> float:
        """The value at 0."""
        return float(self.on(np.zeros(1)).value[0])

    @cached_property
    def pieces(self) -> tuple[Array, Array, Array, Array]:
        """The knots (r,), and the value, slope and second derivative that each piece (r + 1,) would have at 0."""
        if self.knots is None:
            raise UnknownError
        x, knots = np.zeros(1), self.knots
        if len(knots):
            x = np.concatenate([knots[:1] - 1.0, 0.5 * (knots[1:] + knots[:-1]), knots[-1:] + 1.0])
        value, slope, bend, _ = self.on(x)
        parts = value - (slope - 0.5 * bend * x) * x, slope - bend * x, bend
        least = ROUNDING * np.abs(slope).max(initial=0.0), ROUNDING * np.abs(bend).max(initial=0.0)
        kept = np.logical_or(*(np.abs(np.diff(part)) > by for part, by in zip(parts[1:], least, strict=True)))
        value, slope, bend = (part[np.append(True, kept)] for part in parts)
        return knots[kept], value, slope, bend

    def roots(self) -> Array:
        """The numbers inside of pieces at which the function is 0."""
        knots, *parts = self.pieces
        ends = np.concatenate([[-np.inf], knots, [np.inf]])
        found = [np.roots([0.5 * bend, slope, value]) for value, slope, bend in zip(*parts, strict=True)]
        return np.array([x.real for i, xs in enumerate(found) for x in xs if ends[i] < x.real < ends[i + 1]])

    @property
    def is_straight(self) -> bool:
        """True where it is piecewise linear."""
        return self.knots is not None and not self.pieces[3].any()

    @property
    def is_line(self) -> bool:
        """True where it is affine."""
        return self.is_straight and not len(self.pieces[0])

    @property
    def is_zero(self) -> bool:
        """True where it is constant."""
        return self.is_line and not self.pieces[2].any()

    @property
    def factor(self) -> float:
        """c where it is ``c x``, beside a constant."""
        if not self.is_line:
            raise UnknownError
        return float(self.pieces[2][0])

    @property
    def weight(self) -> float:
        """w where it is ``w |x|``, beside a constant."""
        if self.is_zero:
            return 0.0
        knots, _, slope, _ = self.pieces
        if not self.is_straight or not np.array_equal(knots, [0.0]) or slope[0] != -slope[1]:
            raise UnknownError
        return float(slope[1])


def composed(
    act: Callable[[list[Line]], Line], parts: Sequence[Curve], levels: Sequence[float] | None, apart: bool = False
) -> Curve:
    """A function of some functions, which is one formula, and quadratic, where none of them crosses another one or a
    level; of nothing that is known where ``levels`` is None. ``apart``: or crosses none at all."""
    knots = None
    if levels is not None and all(part.knots is not None for part in parts):
        rivals = [] if apart else [*parts, *(NOTHING.plus(level) for level in levels)]
        crossings = [(one + other.times(-1.0)).roots() for one, other in combinations(rivals, 2)]
        knots = np.unique(np.concatenate([*(part.knots for part in parts if part.knots is not None), *crossings]))
    return Curve(lambda x: act([part.lines(x) for part in parts]), knots)


LINE = Curve(lambda x: x, np.empty(0))
NOTHING = Curve(lambda x: constant(np.zeros((1, 1))), np.empty(0))
SQUARE = composed(lambda args: square(args[0]), [LINE], ())
