"""A conic programme as CVXPY stores it, and the four systems of equations that say something of its optimal value.

minimise  x'Px / 2 + q'x   over x,  where  A x + s = b  and  s lies in a product of cones
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..terms import Array

Sparse = Any  # an array of scipy.sparse, whose types know no shapes


@dataclass(frozen=True)
class Block:
    """Some entries of a vector, and the cone in which they lie.

    Attributes
    ----------
    kind : str
        "zero", "nonneg", "soc", "psd" (the upper triangle column by column, entries off the diagonal times the square
        root of two), "exp", "pow" (three entries each); or "free", for entries that lie in no cone.
    place : slice
    size : float
        Of matrices the number of rows, of a power cone its exponent, of second-order cones how many entries each of
        them has (there may be several in one block, as of exponential cones); else of no meaning.
    """

    kind: str
    place: slice
    size: float = 0.0

    def moved(self, by: int) -> Block:
        """The same for a vector in which the entries come so many places later."""
        return replace(self, place=slice(self.place.start + by, self.place.stop + by))


@dataclass(frozen=True, eq=False)
class Programme:
    """The data of a conic programme, as stored: P (n, n) symmetric, q (n,), A (m, n), b (m,), and the cones of the m
    rows."""

    P: Sparse
    q: Array
    A: Sparse
    b: Array
    blocks: tuple[Block, ...]

    @cached_property
    def curved(self) -> Array:
        """The variables that stand in P."""
        return np.unique(self.P.nonzero()[0])

    @cached_property
    def in_cones(self) -> Array:
        """The rows that are no equalities."""
        zero = sum(b.place.stop - b.place.start for b in self.blocks if b.kind == "zero")
        return np.arange(zero, len(self.b))

    @property
    def in_lines(self) -> bool:
        """True where all cones are lines."""
        return all(b.kind in ("zero", "nonneg") for b in self.blocks)


@dataclass(frozen=True, eq=False)
class System:
    """M y = c, y in a product of cones: of the dual cones where ``dual``."""

    M: Sparse
    c: Array
    blocks: tuple[Block, ...]
    dual: bool


def _free(start: int, count: int) -> tuple[Block, ...]:
    return (Block("free", slice(start, start + count)),) if count else ()


def _slacks(p: Programme, after: int) -> tuple[Sparse, tuple[Block, ...]]:
    rows, k = p.in_cones, len(p.in_cones)
    E = sp.csr_array((np.ones(k), (rows, np.arange(k))), shape=(len(p.b), k))
    shift = after - (len(p.b) - k)
    return E, tuple(b.moved(shift) for b in p.blocks if b.kind != "zero")


def _prices(p: Programme) -> tuple[Block, ...]:
    return tuple(replace(b, kind="free") if b.kind == "zero" else b for b in p.blocks)


def _stack(rows: Sequence[Sequence[sp.csr_array | None]]) -> Sparse:
    M = sp.csr_array(sp.block_array([list(row) for row in rows]))
    M.sum_duplicates()
    M.eliminate_zeros()
    return M


def primal(p: Programme) -> System:
    """y = (x, s), [A E] y = b: a feasible point, whose value is an upper bound."""
    E, slacks = _slacks(p, len(p.q))
    return System(_stack([[p.A, E]]), p.b, (*_free(0, len(p.q)), *slacks), False)


def dual(p: Programme) -> System:
    """y = (z, u), A'z + P u = -q: -b'z - u'Pu/2 is a lower bound; u has the variables that stand in P."""
    M = _stack([[p.A.T, p.P[:, p.curved]]])
    return System(M, -p.q, (*_prices(p), *_free(len(p.b), len(p.curved))), True)


def contradiction(p: Programme) -> System:
    """A'z = 0: no point is feasible where b'z < 0."""
    return System(_stack([[p.A.T]]), np.zeros(len(p.q)), _prices(p), True)


def descent(p: Programme) -> System:
    """y = (d, s), [A E] y = 0, P d = 0: where q'd < 0 and a point is feasible, the objective has no lower bound."""
    E, slacks = _slacks(p, len(p.q))
    M = _stack([[p.A, E], [p.P[p.curved], None]]) if len(p.curved) else _stack([[p.A, E]])
    return System(M, np.zeros(M.shape[0]), (*_free(0, len(p.q)), *slacks), False)


def optimum(p: Programme) -> System:
    """y = (x, s, z): what `primal` and `dual` ask for at once, at the same x."""
    E, slacks = _slacks(p, len(p.q))
    M = _stack([[p.A, E, None], [p.P, None, p.A.T]])
    prices = tuple(b.moved(len(p.q) + E.shape[1]) for b in _prices(p))
    return System(M, np.concatenate([p.b, -p.q]), (*_free(0, len(p.q)), *slacks, *prices), False)
