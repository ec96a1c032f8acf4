"""Next to proposed prices and flows there are some that balance exactly: how near, equation by equation.

A witness is v = high + low, a sparse R (variables x equations) that says how an imbalance is taken up, z >= 0 that says
how large each correction may be, and equations that are dropped since they follow from others. Let every equation be
kept or dropped, z = 0 and R = 0 at the dropped ones. If, for every equation i that is kept,

    |(Bv)_i| + sum_j |I - BR|_ij z_j <= z_i,                                                                    (A)

then x -> -(Bv) + (I - BR) x maps the box |x| <= z into itself; at a fixed point x of it (Brouwer) B(v + Rx) vanishes at
all kept equations, and v + Rx lies within |R| z of v. If for each dropped equation i there is y with y_i != 0, else
supported on kept equations, such that

    y'Bv = 0 and y'BR = 0, exactly,                                                                               (B)

then y'B(v + Rx) = 0, and with the kept equations the dropped one vanishes too. Nothing is assumed of v, R and z.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from ...terms import Array
from .arithmetic import EPS, LEAST, RANGE, below, in_range, magnitudes, need, upwards
from .system import System

DIGITS = 2.0**53  # the mantissa of a float times this is an integer
Combination = Mapping[int, Fraction]


class Answers:
    """How an imbalance is taken up: R (variables, equations), and a bound E of |I - BR|, entry by entry."""

    def __init__(self, system: System, R: sp.csr_array) -> None:
        N, V = system.shape
        need(R.format == "csr" and R.shape == (V, N), "R has another shape")  # pyright: ignore[reportUnnecessaryComparison]  (scipy has no types)
        need(in_range(R.data), "an entry of R is out of range")
        need(((R.indices >= 0) & (R.indices < N)).all(), "an entry of R is nowhere")
        R.sum_duplicates()
        self.R, self.kind = R, system.kind
        self.moves = np.diff(R.indptr) > 0
        some = np.flatnonzero(self.moves)
        across, within = sp.csr_array(system.kind.rows(some).T), sp.csr_array(R[some])
        count = np.bincount(within.indices, minlength=N) + 4.0
        off = abs(sp.eye_array(N, format="csr") - across @ within) * (1.0 + 4 * EPS)
        across.data = magnitudes(across.data, 1.0 / RANGE)
        size = across @ abs(within)
        size.data *= count[size.indices]
        self.E = sp.csr_array(off + size * (2 * EPS))
        self.reach = sp.csr_array(abs(within))
        self.width = max(int(np.diff(M.indptr).max(initial=0)) for M in (self.E, within))

    def passed(self, z: Array) -> Array:
        """Not less than E z."""
        return upwards(self.E @ z, self.width + 2)

    def moved(self, z: Array) -> Array:
        """Not less than |R| z."""
        out = np.zeros(len(self.moves))
        out[self.moves] = upwards(self.reach @ z, self.width + 2)
        return out


@dataclass
class Witness:
    """What is proposed; ``dropped`` says of each dropped equation from which combination of equations it follows, and
    ``plain`` that rounding may be paid for instead of avoided: low parts are 0."""

    high: Array
    low: Array
    answers: Answers
    z: Array
    dropped: Mapping[int, Combination] = field(default_factory=dict)
    plain: bool = False


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
    open: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))  # of each equation whether it is not closed


def balanced(system: System, w: Witness) -> Balanced:
    """The box that a witness proves; a component whose equations it does not close is lost, and no other."""
    N, V = system.shape
    need(w.high.shape == w.low.shape == (V,) and w.z.shape == (N,), "a witness of another shape")
    need(w.answers.kind is system.kind, "answers to another system")
    need(all(below(x) for x in (w.high, w.low, w.z)), "prices, flows or corrections are too large")
    need(((w.z == 0.0) | (w.z >= LEAST)).all(), "corrections are out of range")
    need(not (w.plain and w.low.any()), "plain sums are of high parts alone")
    at = np.fromiter(w.dropped, dtype=int, count=len(w.dropped))
    need(((at >= 0) & (at < N)).all(), "an equation is dropped that is none")
    kept = np.ones(N, dtype=bool)
    kept[at] = False
    need((w.z[~kept] == 0.0).all(), "a dropped equation is corrected")
    left = system.residual(w.high, w.low, w.plain).size().ravel()
    closed = upwards(left + w.answers.passed(w.z), 2) <= w.z
    open_ = kept & ~closed
    point = w.high, w.low
    open_[[i for i, y in w.dropped.items() if not follows(system, i, y, kept, point, w.answers.R)]] = True
    lost = np.zeros(system.form.n_components, dtype=bool)
    lost[system.component[open_]] = True
    return Balanced(w.high, w.low, w.answers.moved(w.z), lost, _named(system, open_), open_)


def _named(system: System, open_: Array) -> str:
    if not open_.any():
        return ""
    i, j = divmod(int(np.argmax(open_)), system.form.d)
    label, column = system.form.labels[i], system.form.space.names[j]
    return f"prices and flows are not balanced (column {column!r} at node {label!r})"


def follows(
    system: System, i: int, combination: Combination, kept: Array, point: tuple[Array, Array], R: sp.csr_array
) -> bool:
    """True where y'Bv = 0 and y'BR = 0 exactly, y_i != 0, and y is else supported on kept equations (B)."""
    if not combination.get(i) or any(not 0 <= j < len(kept) or (j != i and not kept[j]) for j in combination):
        return False
    if system.outside is not None and any(_outside(system, j) for j in combination):
        return False
    some, total = _combined(system, combination)
    both = _integers(np.concatenate([each[some] for each in point]))
    if sum([y * x for y, x in zip([*total, *total], both, strict=True)]):
        return False
    there = np.flatnonzero(R.indptr[some + 1] > R.indptr[some])
    return not len(there) or not _summed([total[j] for j in there.tolist()], R[some[there]])


def _combined(system: System, combination: Combination) -> tuple[Array, list[int]]:
    """The variables at which y'B is not 0, and what it is there, in integers over one number; remembered, one for each
    first equation."""
    known = system.kind.combined.get(first := min(combination))
    if known is None or known[0] != combination:
        whole = math.lcm(*(y.denominator for y in combination.values()))
        y = [each.numerator * (whole // each.denominator) for each in combination.values()]
        total = _summed(y, system.kind.B[list(combination)])
        known = dict(combination), (np.array(list(total), dtype=int), list(total.values()))
        system.kind.combined[first] = known
    return known[1]


def _summed(factors: Sequence[int], rows: sp.csr_array) -> dict[int, int]:
    """Where f'A is not 0, and what it is there, in integers over one power of 2."""
    out: dict[int, int] = {}
    factor = np.repeat(np.array(factors, dtype=object), np.diff(rows.indptr)).tolist()
    for j, f, x in zip(rows.indices.tolist(), factor, _integers(rows.data), strict=True):
        out[j] = out.get(j, 0) + f * x
    return {j: x for j, x in out.items() if x}


def _integers(x: Array) -> list[int]:
    """The floats of an array as integers, all over one power of 2."""
    part, exponent = np.frexp(x)
    whole, shift = (part * DIGITS).astype(np.int64), exponent - exponent.min(initial=0)
    return [m << s for m, s in zip(whole.tolist(), shift.tolist(), strict=True)]


def _outside(system: System, j: int) -> bool:
    """True where something outside B v is taken from an equation."""
    given = system.outside
    return given is not None and any(bool(x.ravel()[j]) for x in (given.high, given.low, given.error))
