"""The directions of interior-point steps: Newton directions of one iterate, all with the same factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.clock import check_deadline
from ...terms import Array
from .cones import determinant, max_step, product, quotient, towards
from .kinks import AbstractPulls, times

AIMS = (0.03, 0.3, 0.7)  # of the complementarity: what a step aims at
ENOUGH = 0.7  # of a step, below which it aims at less
CORRECTORS = 3
CENTRAL = (0.1, 10.0)  # of what is aimed at: products of s and y within are left alone
WORTH = 0.1  # a corrector is kept where it brings this share of the longer step that it is for

Solve = Callable[[Array], Array]


@dataclass(frozen=True)
class Move:
    """A direction: x in the order of the system, ds and dy in the scaled coordinates, where s and y are both v; and the
    longest step along it that stays inside."""

    x: Array
    s: list[Array]
    y: list[Array]
    right: Array  # the Newton system times x
    max_step: float

    @property
    def bend(self) -> float:
        """x' (grad^2 f + K'DK) x."""
        return float(self.x @ self.right)


class Directions:
    """Directions from one iterate, all with the same factors.

    In scaled coordinates ds + dy = r, where r is what is asked of the complementarity, and the rest is
    (grad^2 f + K'DK) dw = -slope + K'g (see `AbstractPulls`), or with some flows beside w:
    [H K'; K -D^-1] (dw, du) = (-slope + ..., D^-1 g).
    """

    def __init__(self, pulls: list[AbstractPulls], solve: Solve, slope: Array) -> None:
        self.pulls, self.solve, self.slope = pulls, solve, slope
        self.v = [pull.scaling.v for pull in pulls]
        self.determinants = [determinant(v) for v in self.v]

    def move(self, mu: float) -> Move:
        """The direction to take: of the boldest aim that leaves room for half a step, else of the last."""
        affine = self.direction([-v for v in self.v])
        move = affine
        outside = any(pull.open for pull in self.pulls)  # w may be, which takes more of the middle
        for aim in (*AIMS, 1.0) if outside else AIMS:
            move = self._towards(affine, aim * mu)
            if move.max_step >= ENOUGH:
                break
        return move

    def _towards(self, affine: Move, aim: float) -> Move:
        reach = min(1.0, affine.max_step)
        r: list[Array] = []
        for v, of_v, ds, dy in zip(self.v, self.determinants, affine.s, affine.y, strict=True):
            wanted = -product(v, v) - reach**2 * product(ds, dy)
            wanted[0] += aim
            r.append(quotient(v, wanted, of_v))
        move = self.direction(r)
        for _ in range(CORRECTORS):
            longer = min(1.0, 1.5 * move.max_step + 0.3)
            better = None if move.max_step > 1.0 else self._corrected(move, longer, aim)
            if better is None:
                break
            move = better
        return move

    def _corrected(self, move: Move, longer: float, aim: float) -> Move | None:
        """Centred where a longer step would leave the neighbourhood of the central path; None where it is of no use."""
        r: list[Array] = []
        for v, of_v, ds, dy in zip(self.v, self.determinants, move.s, move.y, strict=True):
            there = product(v + longer * ds, v + longer * dy)
            r.append(quotient(v, towards(there, CENTRAL[0] * aim, CENTRAL[1] * aim), of_v))
        correction = self.direction(r, balancing=0.0)
        s, y = (
            [a + b for a, b in zip(*each, strict=True)] for each in ((move.s, correction.s), (move.y, correction.y))
        )
        new = Move(move.x + correction.x, s, y, move.right + correction.right, self.max_step(s, y))
        return new if new.max_step >= move.max_step + WORTH * (longer - move.max_step) else None

    def direction(self, r: list[Array], balancing: float = 1.0) -> Move:
        """The direction of a right hand side; ``balancing`` is 0 for a correction, which leaves the balance as it
        is."""
        check_deadline()
        right = given = -balancing * self.slope  # of the condensed system, and of that with flows beside
        known = list[tuple[Array | None, Any]]()
        for pull, each in zip(self.pulls, r, strict=True):
            g, of_r = pull.asked(each, balancing)
            right = right + (by := pull.rows.adjoint(g))
            if pull.rows.places is None:
                level, given = None, given + by
            else:
                level, given = pull.level(g, balancing), given.copy()
                given[pull.rows.places] = np.ascontiguousarray(level.T).ravel()
            known.append((level, of_r))
        x = self.solve(given)
        s: list[Array] = []
        for pull, (level, of_r) in zip(self.pulls, known, strict=True):
            if level is None:
                z = pull.rows.apply(x)
            else:
                z = level + times(pull.D, pull.rows.columns(x[pull.rows.places]))
            s.append(pull.moves(z, of_r, balancing))
        y = [each - ds for each, ds in zip(r, s, strict=True)]
        return Move(x, s, y, right, self.max_step(s, y))

    def max_step(self, s: list[Array], y: list[Array]) -> float:
        each = (zip(self.v, moves, self.determinants, strict=True) for moves in (s, y))
        return min((max_step(*one) for moves in each for one in moves), default=np.inf)
