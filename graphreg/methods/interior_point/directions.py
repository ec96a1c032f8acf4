"""The directions of interior-point steps: Newton directions of one iterate, all with the same factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.clock import check_deadline
from ...oracles import SystemRows
from ...terms import Array
from .cones import Scaling, determinant, max_step, product, quotient, towards

AIMS = (0.03, 0.3)  # of the complementarity: what a step aims at
ENOUGH = 0.7  # of a step, below which it aims at less
CORRECTORS = 5
CENTRAL = (0.1, 10.0)  # of what is aimed at: products of s and y within are left alone
WORTH = 0.1  # a corrector is kept where it brings this share of the longer step that it is for
FREE = 1e-30  # the least curvature of a row between bounds
SHARES = (1.0, 0.5, 0.25)  # of it that are tried

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


class Pull(NamedTuple):
    """The scaling of cones of a block, with their place among all; see `Cone`."""

    place: int
    scaling: Scaling
    side: float
    of: Array | None
    off: Array | float  # s - z; 0 where s is made from w


class AbstractPulls(ABC):
    """What the cones of a block pull with at an iterate: its flows change by D K dw - g, where g is what is asked for.

    Where the flows of the block are unknowns of the system, D is its inverse.
    """

    D: Array  # (m, k, k)

    def __init__(self, rows: SystemRows, pulls: list[Pull]) -> None:
        self.rows, self.pulls = rows, pulls

    @abstractmethod
    def asked(self, r: list[Array], balancing: float) -> Array:
        """g, (k, m)."""

    def level(self, g: Array, balancing: float) -> Array:
        """D^-1 g, where D is the inverse: what K dw is with flows that stay."""
        return times(self.D, g)

    @abstractmethod
    def moves(self, z: Array, r: list[Array], balancing: float) -> Iterator[tuple[int, Array]]:
        """The places of its cones, and their ds where K dw = z, (k, m)."""


class NormPulls(AbstractPulls):
    """The cones t >= ||z||. With q = W^-1 r the first row of dy, which is 0, gives dt = (q_0 - a b'dz) / a, and
    g = q_1 - b q_0."""

    def __init__(self, rows: SystemRows, pulls: list[Pull]) -> None:
        super().__init__(rows, pulls)
        self.place, self.scaling, _, _, self.off = pulls[0]
        self.b, self.a, self.D = self.scaling.reduced()
        if rows.places is not None:
            self.D = self.scaling.inverse()

    def asked(self, r: list[Array], balancing: float) -> Array:
        q = self.scaling.undo(r[self.place])
        return q[1:] - self.b * q[0]

    def level(self, g: Array, balancing: float) -> Array:
        return super().level(g, balancing) + balancing * self.off

    def moves(self, z: Array, r: list[Array], balancing: float) -> Iterator[tuple[int, Array]]:
        q = self.scaling.undo(r[self.place])
        z = z - balancing * self.off
        yield self.place, self.scaling.undo(np.vstack([q[0] / self.a - np.einsum("ij,ij->j", self.b, z), z]))


class SidePulls(AbstractPulls):
    """The bounds of a block: one number a cone, whose s need not be what w says as yet."""

    def __init__(self, rows: SystemRows, pulls: list[Pull]) -> None:
        super().__init__(rows, pulls)
        D = np.zeros(rows.m)
        for pull in pulls:
            D[pull.of] += pull.scaling.eta**-2
        self.D = (D if rows.places is None else 1.0 / np.maximum(D, FREE))[:, None, None]

    def asked(self, r: list[Array], balancing: float) -> Array:
        g = np.zeros((1, self.rows.m))
        for place, scaling, side, of, off in self.pulls:
            g[:, of] += side * (scaling.undo(r[place]) + balancing * off / scaling.eta**2)
        return g

    def moves(self, z: Array, r: list[Array], balancing: float) -> Iterator[tuple[int, Array]]:
        for place, scaling, side, of, off in self.pulls:
            yield place, scaling.undo(side * z[:, of] - balancing * off)


class HeightPulls(AbstractPulls):
    """The cones t - z_j >= 0 and t + z_j >= 0 of the largest of the k numbers of a row, in this order. With their
    curvatures b and a, S = a + b, e = a - b and q = W^-1 r, that the sum of all dy is 0 gives
    dt = (sum q - e'dz) / sum S, and D = diag(S) - e e' / sum S; D and its inverse are written without differences."""

    def __init__(self, rows: SystemRows, pulls: list[Pull]) -> None:
        super().__init__(rows, pulls)
        b, a = (self._rows(pull.scaling.eta**-2) for pull in pulls)
        S, self.e, both, k = a + b, a - b, 4.0 * a * b, np.arange(rows.k)
        self.total = S.sum(axis=1)
        if rows.places is None:
            self.D = np.einsum("mi,mj->mij", -self.e / self.total[:, None], self.e)
            others = np.stack([np.delete(S, j, axis=1).sum(axis=1) for j in k], axis=1)
            self.D[:, k, k] = (S * others + both) / self.total[:, None]
        else:
            v = self.e / S
            self.D = np.einsum("mi,mj->mij", v / (both / S).sum(axis=1)[:, None], v)
            self.D[:, k, k] += 1.0 / S

    def _rows(self, each: Array) -> Array:
        return each.reshape(-1, self.rows.k)

    def _sums(self, r: list[Array]) -> tuple[Array, Array]:
        minus, plus = (self._rows(pull.scaling.undo(r[pull.place])) for pull in self.pulls)
        return plus - minus, (plus + minus).sum(axis=1) / self.total

    def asked(self, r: list[Array], balancing: float) -> Array:
        apart, height = self._sums(r)
        return (apart - self.e * height[:, None]).T

    def moves(self, z: Array, r: list[Array], balancing: float) -> Iterator[tuple[int, Array]]:
        height = self._sums(r)[1] - np.einsum("mi,im->m", self.e, z) / self.total
        for place, scaling, side, _, _ in self.pulls:
            yield place, scaling.undo((height[:, None] + side * z.T).reshape(1, -1))


def pulling(rows: SystemRows, pulls: list[Pull]) -> AbstractPulls:
    """Those of a block, by what cones it has."""
    if not pulls[0].side:
        return NormPulls(rows, pulls)
    return HeightPulls(rows, pulls) if pulls[0].of is None else SidePulls(rows, pulls)


def times(D: Array, u: Array) -> Array:
    return np.einsum("mij,jm->im", D, u)


class Directions:
    """Directions from one iterate, all with the same factors.

    In scaled coordinates ds + dy = r, where r is what is asked of the complementarity, and the rest is
    (grad^2 f + K'DK) dw = -slope + K'g (see `AbstractPulls`), or with some flows beside w:
    [H K'; K -D^-1] (dw, du) = (-slope + ..., D^-1 g).
    """

    def __init__(self, pulls: Iterable[AbstractPulls], solve: Solve, scalings: list[Scaling], slope: Array) -> None:
        self.pulls, self.solve, self.slope = list(pulls), solve, slope
        self.scalings, self.v = scalings, [scaling.v for scaling in scalings]
        self.determinants = [determinant(v) for v in self.v]

    def move(self, mu: float) -> Move:
        """The direction to take: of the boldest aim that leaves room for half a step, else of the last."""
        affine = self.direction([-v for v in self.v])
        move = affine
        outside = any(isinstance(pull, SidePulls) for pull in self.pulls)  # w may be, which takes more of the middle
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
        best = move
        for share in SHARES:
            s, y = (
                [a + share * b for a, b in zip(one, other, strict=True)]
                for one, other in ((move.s, correction.s), (move.y, correction.y))
            )
            new = Move(move.x + share * correction.x, s, y, move.right + share * correction.right, self.max_step(s, y))
            if new.max_step > best.max_step:
                best = new
            if best.max_step >= move.max_step + WORTH * (longer - move.max_step):
                return best
        return None

    def direction(self, r: list[Array], balancing: float = 1.0) -> Move:
        """The direction of a right hand side; ``balancing`` is 0 for a correction, which leaves the balance as it
        is."""
        check_deadline()
        right = given = -balancing * self.slope  # of the condensed system, and of that with flows beside
        levels: list[Array | None] = []
        for pull in self.pulls:
            g = pull.asked(r, balancing)
            by = pull.rows.adjoint(g)
            right = right + by
            levels.append(None if pull.rows.places is None else pull.level(g, balancing))
            if levels[-1] is None:
                given = given + by
            else:
                given = given.copy()
                given[pull.rows.places] = np.ascontiguousarray(levels[-1].T).ravel()
        x = self.solve(given)
        moves: dict[int, Array] = {}
        for pull, level in zip(self.pulls, levels, strict=True):
            if level is None:
                z = pull.rows.apply(x)
            else:
                z = level + times(pull.D, pull.rows.columns(x[pull.rows.places]))
            moves.update(pull.moves(z, r, balancing))
        s = [moves[place] for place in range(len(r))]
        y = [each - ds for each, ds in zip(r, s, strict=True)]
        return Move(x, s, y, right, self.max_step(s, y))

    def max_step(self, s: list[Array], y: list[Array]) -> float:
        each = (zip(self.v, moves, self.determinants, strict=True) for moves in (s, y))
        return min((max_step(*one) for moves in each for one in moves), default=np.inf)
