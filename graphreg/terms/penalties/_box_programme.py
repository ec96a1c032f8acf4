"""Quadratic programmes over the cube that share their matrix, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..bounds import ULP
from ..records import Array
from ._rows import by_row

CHANCES = 3  # exchanges of all that is wrong at once that may fail to make less of it wrong
EXCHANGES = 30  # and per coordinate; what has not ended by then is solved row by row
TABLED = 6  # coordinates up to which the inverses of all principal blocks are kept


@dataclass(frozen=True, eq=False)
class BoxProgramme:
    """The least ``1/2 y'Gy - b'y`` over ``max_i |y_i| <= 1`` for a positive definite G (r, r) and rows b.

    Block principal pivoting (Judice and Pires, A block principal pivoting algorithm for large-scale strictly monotone
    linear complementarity problems, 1994): what is wrong of the free coordinates and of those at an end is exchanged,
    all of it at once while that makes less wrong, else the last of it alone, which ends (Murty, 1974).
    """

    G: Array

    @cached_property
    def _blocks(self) -> Array | None:
        """The inverse of the block of G on each set of coordinates, 0 elsewhere, by the bits of the set."""
        r = len(self.G)
        if r > TABLED:
            return None
        sets = (np.arange(2**r)[:, None] >> np.arange(r)) & 1 == 1
        return self._inverse(sets)

    @cached_property
    def _tolerance(self) -> float:
        """What counts as rounding, of y."""
        return 16.0 * len(self.G) * ULP * float(np.linalg.cond(self.G))

    def solve(self, b: Array, size: Array) -> Array:
        """y for each row of b (m, r), of which the rounding is relative to ``size``."""
        size = size + np.abs(self.G).sum(axis=1)
        y = np.clip(np.linalg.solve(self.G, b.T).T, -1.0, 1.0)
        end = np.where(np.abs(y) < 1.0, 0.0, np.sign(y))  # -1 or 1 where a coordinate is held there, else 0
        fewest, chances = np.full(len(b), len(self.G) + 1), np.full(len(b), CHANCES)
        live = np.arange(len(b))
        for _ in range(EXCHANGES * (1 + len(self.G))):
            y[live] = self._at(b[live], end[live])
            wrong = self._wrong(b[live], size[live], y[live], end[live])
            count = wrong.sum(axis=1)
            fewer = count < fewest[live]
            chances[live] = np.where(fewer, CHANCES, chances[live] - 1)
            fewest[live] = np.where(fewer, count, fewest[live])
            alone = chances[live] < 0
            last = np.arange(len(self.G)) == len(self.G) - 1 - wrong[:, ::-1].argmax(axis=1)[:, None]
            exchanged = wrong & (last | ~alone[:, None])
            end[live] = np.where(exchanged, np.where(end[live] == 0.0, np.sign(y[live]), 0.0), end[live])
            live = live[count > 0]
            if not len(live):
                break
        y[live] = self._one_by_one(b[live])
        return np.clip(y, -1.0, 1.0)

    def _at(self, b: Array, end: Array) -> Array:
        """The least over the coordinates that are free."""
        free = end == 0.0
        right = np.where(free, b - by_row(end, self.G), 0.0)
        if self._blocks is None:
            inverse = self._inverse(free)
        else:
            inverse = self._blocks[free @ (1 << np.arange(len(self.G)))]
        return end + np.einsum("mij,mj->mi", inverse, right)

    def _inverse(self, free: Array) -> Array:
        both = free[:, :, None] & free[:, None, :]
        eye = np.eye(len(self.G))
        return np.where(both, np.linalg.inv(np.where(both, self.G, eye)), 0.0)

    def _wrong(self, b: Array, size: Array, y: Array, end: Array) -> Array:
        """Free coordinates that are beyond an end, and those at an end that the gradient pulls inside."""
        beyond = np.abs(y) > 1.0 + self._tolerance
        pulled = end * (b - by_row(y, self.G)) < -self._tolerance * size
        return np.where(end == 0.0, beyond, pulled)

    def _one_by_one(self, b: Array) -> Array:
        from scipy.optimize import lsq_linear

        R = np.linalg.cholesky(self.G).T
        right = np.linalg.solve(R.T, b.T).T
        return np.array([lsq_linear(R, row, (-1.0, 1.0), method="bvls", tol=1e-15).x for row in right]).reshape(b.shape)
