"""Next to proposed prices and flows there are some that balance exactly: how near, equation by equation.

A witness is v = high + low, a sparse R (variables x equations) that says how an imbalance is taken up, z >= 0 that says
how large each correction may be, and equations that are dropped since they follow from others. Let every equation be
kept or dropped, z = 0 and R = 0 at the dropped ones. If, for every equation i that is kept,

    |(Bv)_i| + sum_j |I - BR|_ij z_j <= z_i,                                                                    (A)

then x -> -(Bv) + (I - BR) x maps the box |x| <= z into itself; at a fixed point x of it (Brouwer) B(v + Rx) vanishes at
all kept equations, and v + Rx lies within |R| z of v. If for each dropped equation i there is y with y_i != 0, else
supported on kept equations, such that

    (y'B)_j = 0 exactly at every variable j that is not 0 or moves (v_j != 0, or row j of R is not 0),           (B)

then y'B(v + Rx) = 0, and with the kept equations the dropped one vanishes too. Nothing is assumed of v, R and z.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from graphreg.certificate.enclosure.sums import two_product
from graphreg.terms import Array

from .arithmetic import LARGEST, LEAST, SMALL, TINY, U, in_range, need, run_sums, upwards
from .system import System

BITS = 1074  # every float is an integer over 2^BITS
CHUNK = 1 << 15  # products at a time, so that they stay in the cache
Combination = Mapping[int, Fraction]


class Answers:
    """How an imbalance is taken up: R (variables, equations), and a bound E of |I - BR|, entry by entry (iv)."""

    def __init__(self, system: System, R: sp.csr_array) -> None:
        need(R.shape == system.transposed.shape, "R has another shape")
        need(in_range(R.data), "an entry of R is out of range")
        self.R = sp.csr_array(abs(R))
        self.moves = np.diff(self.R.indptr) > 0
        some = np.flatnonzero(self.moves)
        across = sp.csr_array(system.transposed[some].T)  # B at the variables that move
        within = sp.csr_array(R[some])
        entries = np.bincount(within.indices, minlength=R.shape[1]) + 4.0
        off = abs(sp.eye_array(R.shape[1], format="csr") - across @ within) * (1.0 + 4 * U)
        size = (abs(across) @ abs(within)) @ sp.diags_array(entries)
        self.E = sp.csr_array(off + size * (2 * U))
        need(np.isfinite(self.E.data).all(), "BR overflows")
        self.width = max(int(np.diff(M.indptr).max(initial=0)) for M in (self.E, self.R))


@dataclass
class Witness:
    """What is proposed; ``dropped`` says of each dropped equation from which combination of equations it follows."""

    high: Array
    low: Array
    answers: Answers
    z: Array
    dropped: Mapping[int, Combination] = field(default_factory=dict)


@dataclass(frozen=True)
class Balanced:
    """An exactly balanced point lies within ``spread`` of ``high + low``; but for components that are ``lost``.

    That is a matter of B alone: it holds in every form with the same graph and designs.
    """

    high: Array
    low: Array
    spread: Array
    lost: Array
    why: str = ""


def balanced(system: System, w: Witness) -> Balanced:
    """The box that a witness proves; a component whose equations it does not close is lost, and no other."""
    V, N = system.transposed.shape
    need(w.high.shape == w.low.shape == (V,) and w.z.shape == (N,), "a witness of another shape")
    need(np.isfinite(w.high).all() and np.isfinite(w.low).all(), "prices or flows are not finite")
    need(max(np.abs(x).max(initial=0.0) for x in (w.high, w.low)) < LARGEST, "prices or flows are too large")
    need(((w.z == 0.0) | (w.z >= LEAST)).all() and (w.z < LARGEST).all(), "corrections are out of range")
    at = np.fromiter(w.dropped, dtype=int, count=len(w.dropped))
    need(((at >= 0) & (at < N)).all(), "an equation is dropped that is none")
    kept = np.ones(N, dtype=bool)
    kept[at] = False
    need((w.z[~kept] == 0.0).all(), "a dropped equation is corrected")
    value, error = residual(system.B, w.high, w.low)
    through = upwards(w.answers.E @ w.z, w.answers.width + 2)
    closed = upwards(np.abs(value) + error + through, 3) <= w.z
    live = (w.high != 0.0) | (w.low != 0.0) | w.answers.moves
    open_ = kept & ~closed
    open_[[i for i in w.dropped if not _follows(system, i, w.dropped[i], kept, live)]] = True
    lost = np.zeros(system.form.n_components, dtype=bool)
    lost[system.component[open_]] = True
    spread = upwards(w.answers.R @ w.z, w.answers.width + 2)
    return Balanced(w.high, w.low, spread, lost, _named(system, open_))


def _named(system: System, open_: Array) -> str:
    if not open_.any():
        return ""
    i, j = divmod(int(np.argmax(open_)), system.form.d)
    label, column = system.form.labels[i], system.form.space.names[j]
    return f"prices and flows are not balanced (column {column!r} at node {label!r})"


def residual(B: sp.csr_array, high: Array, low: Array) -> tuple[Array, Array]:
    """Bv by equations: floats, and bounds of their errors; both 0 where all products are (iii)."""
    value, error = np.zeros(B.shape[0]), np.zeros(B.shape[0])
    for rows, entries, starts, counts in _chunks(B):
        a, x, y = B.data[entries], high[B.indices[entries]], low[B.indices[entries]]
        p, e = two_product(a, x)
        q, f = two_product(a, y)
        missed = ((np.abs(p) < SMALL) & (x != 0.0)) | ((np.abs(q) < SMALL) & (y != 0.0))
        value[rows], error[rows] = run_sums([p, e, q, f], starts, counts)
        error[rows] += 4 * TINY * np.add.reduceat(missed, starts, dtype=float)
    return value, upwards(error, 1)


def _chunks(B: sp.csr_array) -> Iterator[tuple[Array, slice, Array, Array]]:
    """Some equations at a time, the entries that they hold, and where each begins in these."""
    counts = np.diff(B.indptr)
    rows = np.flatnonzero(counts > 0)
    ends = B.indptr[1:][rows]
    at = 0
    while at < len(rows):
        begin = int(B.indptr[rows[at]])
        stop = max(int(np.searchsorted(ends, begin + CHUNK, side="right")), at + 1)
        some = rows[at:stop]
        yield some, slice(begin, int(ends[stop - 1])), B.indptr[:-1][some] - begin, counts[some]
        at = stop


def _follows(system: System, i: int, combination: Combination, kept: Array, live: Array) -> bool:
    """Whether y'B = 0 exactly at all live variables, y_i != 0, and y is else supported on kept equations (B).

    In integers: y times its common denominator, the floats of B times 2^BITS.
    """
    if not combination.get(i) or any(not 0 <= j < len(kept) or (j != i and not kept[j]) for j in combination):
        return False
    whole = math.lcm(*(y.denominator for y in combination.values()))
    total: dict[int, int] = {}
    B = system.B
    for j, y in combination.items():
        factor = y.numerator * (whole // y.denominator)
        entries = slice(B.indptr[j], B.indptr[j + 1])
        for variable, x in zip(B.indices[entries].tolist(), B.data[entries].tolist(), strict=True):
            if live[variable]:
                top, bottom = x.as_integer_ratio()
                total[variable] = total.get(variable, 0) + factor * top * ((1 << BITS) // bottom)
    return not any(total.values())
