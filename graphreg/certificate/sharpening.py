"""Better unknowns for linear conditions whose columns nearly cancel: years beside an intercept, columns that agree to
many digits, samples that lie on top of each other.

With x = C t, C nonsingular, the conditions M x are (M C) t. C is found in floats, by QR of what M C was before, and is
taken as exact; M C is worked out in rational numbers and only then rounded, so that no digit cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.linalg

from ..clock import look
from ..terms.records import Array
from .directions import Part
from .rationals import exactly

MOST_WORK = 400_000  # products of rational numbers
ROUNDS = 3  # each takes the condition number by 16 digits further


@dataclass(frozen=True)
class Sharpened:
    """The rows of a part in the unknowns t: falls, slack and still, scaled by ``across``; x = ``basis`` t."""

    matrix: Array
    across: Array
    basis: list[list[Fraction]]

    def back(self, t: Array) -> list[Fraction]:
        exact = [Fraction(float(x)) for x in t]
        return [sum((c * x for c, x in zip(row, exact, strict=True) if c and x), Fraction(0)) for row in self.basis]


def sharpened(part: Part) -> Sharpened | None:
    """A part in better unknowns; None where it is too large for that."""
    M = part.rows
    q, k = M.shape
    if ROUNDS * q * k * k > MOST_WORK:
        return None
    rows = exactly(M)
    basis = [[Fraction(int(i == j)) for j in range(k)] for i in range(k)]
    for _ in range(ROUNDS):
        look()
        D, _ = _floats(rows)
        C = _triangular(D)
        rows, basis = _product(rows, C), _product(basis, C)
        sizes = [max((abs(row[j]) for row in rows), default=Fraction(0)) for j in range(k)]
        shrink = [_power(size) for size in sizes]
        rows = [[x * s for x, s in zip(row, shrink, strict=True)] for row in rows]
        basis = [[x * s for x, s in zip(row, shrink, strict=True)] for row in basis]
    matrix, across = _floats(rows)
    return Sharpened(matrix, across, basis)


def _power(size: Fraction) -> Fraction:
    """The power of two that takes a number to about 1."""
    if not size:
        return Fraction(1)
    e = size.denominator.bit_length() - size.numerator.bit_length()
    return Fraction(2) ** e


def _floats(rows: list[list[Fraction]]) -> tuple[Array, Array]:
    """The rows as floats with largest entries of about 1, and the powers of two that made them so."""
    out = np.zeros((len(rows), len(rows[0]) if rows else 0))
    across = np.ones(len(rows))
    for r, row in enumerate(rows):
        scale = _power(max((abs(x) for x in row), default=Fraction(0)))
        out[r] = [float(x * scale) for x in row]
        across[r] = float(scale)
    return out, across


def _triangular(D: Array) -> Array:
    """C with D C about orthonormal, nonsingular in any case."""
    k = D.shape[1]
    R, order = scipy.linalg.qr(np.vstack([D, np.zeros((k, k))]), mode="r", pivoting=True)
    R = R[:k]
    least = 1e-17 * max(float(np.abs(R).max(initial=0.0)), 1e-300)
    diagonal = np.diag(R).copy()
    R[np.diag_indices(k)] = np.where(np.abs(diagonal) > least, diagonal, least)
    inverse = scipy.linalg.solve_triangular(R, np.eye(k))
    C = np.zeros((k, k))
    C[order] = inverse
    return C


def _product(rows: list[list[Fraction]], C: Array) -> list[list[Fraction]]:
    columns = [[(i, Fraction(float(x))) for i, x in enumerate(column) if x] for column in C.T]
    return [[sum((row[i] * x for i, x in column if row[i]), Fraction(0)) for column in columns] for row in rows]

