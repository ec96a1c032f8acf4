"""The simplex method in exact arithmetic, for linear conditions on a hundred unknowns: it decides what no float can.

    is there x with  still x = 0,  falls x >= 0,  slack x >= 0  and  falls x != 0 ?

Everything is homogeneous, so that x = 0 is a vertex, every step stays there, and the first column along which no row
falls is the direction that was asked for. Rows and columns are exchanged as in Stiefel, Einfuehrung in die numerische
Mathematik, section 1.1; Bland's rule (1977) ends it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...base.clock import check_deadline
from ...terms import Array
from ..rationals import Echelon, exactly, number, rational
from .directions import ConditionPart

MOST_ENTRIES = 12_000  # of the tableau
MOST_WORK = 2_000_000  # products of numbers, to find what the equations leave free
MOST_STEPS = 300


def find_direction(part: ConditionPart) -> list[Fraction] | bool | None:
    """A direction; False where there is none; None where the part is too large for it."""
    falls, slack, still = (matrix.shape[0] for matrix in (part.falls, part.slack, part.still))
    k = part.falls.shape[1]
    if (falls + slack) * k > MOST_ENTRIES or still * k * k > MOST_WORK:
        return None
    lift = _null_space(part)
    rows = np.array([[number(x) for x in row] for row in exactly(part.rows)[: falls + slack]], dtype=object)
    tableau = np.vstack([rows.reshape(-1, k) @ lift, lift]) if lift.shape[1] else np.zeros((0, 0))
    if not tableau.size:
        return False
    found = _Tableau(tableau, falls, falls + slack).run()
    return [rational(x) for x in found] if isinstance(found, list) else found


def _null_space(part: ConditionPart) -> Array:
    """A basis, in its columns, of the x with still x = 0."""
    k = part.falls.shape[1]
    system = Echelon(k)
    for row in exactly(part.still):
        check_deadline()
        system.add(row)
    free = [j for j in range(k) if j not in set(system.pivots)]
    columns = [system.solution([Fraction(int(i == j)) for i in range(k)]) for j in free]
    return np.array([[number(x) for x in column] for column in columns], dtype=object).reshape(len(free), k).T


class _Tableau:
    """Rows (those that fall, those that slacken, then the unknowns) as sums of columns, which are rows by and by."""

    def __init__(self, tableau: Array, falls: int, signed: int) -> None:
        self.T = tableau
        self.falls, self.signed = falls, signed  # rows before them count, and rows before them must not be negative
        self.row = list(range(len(tableau)))  # what stands in each row, and in each column: -1 for an unknown
        self.column = [-1] * tableau.shape[1]

    def run(self) -> list[Fraction] | bool | None:
        self._begin()
        for _ in range(MOST_STEPS):
            check_deadline()
            gain = self._gain()
            rising = [s for s, g in enumerate(gain) if g > 0]
            if not rising:
                return False
            s = min(rising, key=lambda s: self.column[s])
            falling = [i for i, name in enumerate(self.row) if 0 <= name < self.signed and self.T[i, s] < 0]
            if not falling:
                return list(self.T[[i for i, name in enumerate(self.row) if name >= self.signed], s])
            self._exchange(min(falling, key=lambda i: self.row[i]), s)
        return None

    def _begin(self) -> None:
        """Rows take the places of the unknowns; what no row needs stays 0."""
        for s in range(self.T.shape[1]):
            signed = [i for i, name in enumerate(self.row) if 0 <= name < self.signed and self.T[i, s] != 0]
            if signed:
                self._exchange(max(signed, key=lambda i: abs(self.T[i, s])), s)
        used = [s for s, name in enumerate(self.column) if name >= 0]
        self.T, self.column = self.T[:, used], [self.column[s] for s in used]

    def _gain(self) -> list[Fraction]:
        """The sum by which the rows that fall for ever fall, along each column."""
        mine = [i for i, name in enumerate(self.row) if 0 <= name < self.falls]
        total = self.T[mine].sum(axis=0) if mine else [number(Fraction(0))] * len(self.column)
        return [total[s] + (1 if name < self.falls else 0) for s, name in enumerate(self.column)]

    def _exchange(self, r: int, s: int) -> None:
        pivot = self.T[r, s]
        row, column = self.T[r] / pivot, self.T[:, s].copy()
        self.T = self.T - np.multiply.outer(column, row)
        self.T[:, s] = column / pivot
        self.T[r] = -row
        self.T[r, s] = 1 / pivot
        self.row[r], self.column[s] = self.column[s], self.row[r]
