"""From bounds of a stored programme to bounds of the user's formula: what is stored is rounded, and where it is, all
that it may be rounded from is meant; and what the formula itself says of a point is compared with it.

**Lemma, of rounded numbers.** Let the lemma of `verify` hold of M, c and y with r + d in place of r, where for all y'
in the box |c' - c| + |M' - M| |y'| <= d. Then M' y* = c' has a solution in the box, in the same rows. *Proof.* In the
map of that lemma replace c by c' - (M' - M) y', which is continuous in the box and within d of c: the map goes into
the box still, and Brouwer gives a fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..certificate import DUST, MORE, Pair, RefusedError, down, need, upwards
from ..terms import Array
from . import programme, verify
from .affine import NotFollowedError, follow, variables, words
from .atoms import exactly_stored
from .canonical import Canonical
from .certificate import PROVED
from .exact import Off, off
from .programme import Programme, Sparse, System
from .steps import near, reached
from .verify import Reached


class Said(NamedTuple):
    """Bounds of the programme's value, one of the user's at the point (inf where it is not known), and what they are
    about."""

    lower: float
    upper: float
    most: float
    scope: str
    found: Reached | None  # where the upper one is reached


FORMULA = "of your formula"
SAME = 1e-12  # of coefficients: what they differ by rounding
# What CVXPY does to it, none of which computes numbers that are not followed.
REDUCTIONS = (
    "FlipObjective EvalParams Dcp2Cone CvxAttr2Constr ExactCone2Cone EliminateZeroSized ConeMatrixStuffing CLARABEL"
)


@dataclass
class Known:
    """What is proved so far, of the programme as stored."""

    lower: float = -np.inf
    upper: float = np.inf
    status: str = ""
    evidence: dict[str, Reached] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)  # whose answer each of these was found near
    why: dict[str, str] = field(default_factory=dict)
    row: int = -1  # an equality, or the dual's, that follows from others, but for its right-hand side
    excess: float = 0.0  # by which that differs
    loose: int = -1  # a variable of which no range is known
    tight: Array = field(default_factory=lambda: np.zeros(0, int))  # rows without room at the last answer
    curvature: float = -np.inf

    def gap(self) -> float:
        if not np.isfinite(self.upper - self.lower):
            return np.inf
        return (self.upper - self.lower) / max(1.0, abs(self.upper), abs(self.lower))


class _Rounded:
    """What is proved of every programme whose numbers are off by no more than is known."""

    def __init__(self, p: Programme, o: Off, curvature: float) -> None:
        self.p, self.off, self.curvature = p, o, curvature
        n, m, A, P = len(p.q), len(p.b), o.A, o.P
        turned, bent = sp.csr_array(A.T), sp.csr_array(P[:, p.curved])
        self.uses: dict[str, tuple[Callable[[Programme], System], Callable[[Array], Array]]] = {
            "primal": (programme.primal, lambda y: _up(A, y[:n], o.b)),
            "dual": (programme.dual, lambda y: _up(turned, y[:m], _up(bent, y[m:], o.q))),
            "contradiction": (programme.contradiction, lambda y: _up(turned, y, 0.0 * o.q)),
            "descent": (programme.descent, self._along),
        }

    def _along(self, y: Array) -> Array:
        n, p, o = len(self.p.q), self.p, self.off
        return np.concatenate([_up(o.A, y[:n], 0.0 * o.b), _up(o.P[p.curved], y[:n], np.zeros(len(p.curved)))])

    def near(self, use: str, found: Reached) -> Iterator[Reached]:
        """What holds of all of them at what holds of one, or near it."""
        make, slack = self.uses[use]
        system = make(self.p)
        first = list[Reached]()
        with suppress(RefusedError):
            first.append(reached(system, found.proposal, slack))
        for each in chain(first, near(system, found.high + found.proposal.low, slack=slack)):
            if not each.missed.any():
                yield each

    def upper(self, found: Reached) -> tuple[float, Reached]:
        """An upper bound of the values, and the point where they are so small."""
        for each in self.near("primal", found):
            x, o = each.pair(len(self.p.q)).size(), self.off
            more = _paid(o.q, x) + _paid(_up(o.P, x, 0.0 * x), x) / 2.0 + o.offset
            return float(np.nextafter(verify.upper_value(self.p, each) + more * MORE, np.inf)), each
        raise RefusedError("no feasible point is proved of what is rounded")

    def lower(self, found: Reached) -> float:
        """A lower bound of the values."""
        p, o, none = self.p, self.off, np.full(len(self.p.q), np.inf)
        d = p.P.diagonal()
        flat = p.P.nnz == np.count_nonzero(d) and (o.P - sp.diags_array(d)).max() <= 0.0
        need(self.curvature == 0.0 and (not o.P.nnz or flat), "a quadratic form that is rounded may not be convex")
        for each in self.near("dual", found):
            y, m = each.pair().size(), len(p.b)
            u = np.zeros(len(p.q))
            u[p.curved] = y[m:]
            less = _paid(o.b, y[:m]) + _paid(_up(o.P, u, 0.0 * u), u) / 2.0 + o.offset
            return float(np.nextafter(verify.lower_value(p, each, 0.0, none, none) - less * MORE, -np.inf))
        raise RefusedError("no multipliers are proved of what is rounded")

    def bounds(self, known: Known) -> tuple[float, float, Reached | None]:
        """What is proved of all of them, as it is of one."""
        lower, upper, found, have = known.lower, known.upper, None, known.evidence
        if known.status:
            use = {"infeasible": "contradiction", "unbounded": "descent"}.get(known.status, "")
            need(use in have and self.none(use, have[use]), "and more is proved only of the rounded ones")
        elif "dual" in have:
            lower = self.lower(have["dual"])
        if "primal" in have:
            above, found = self.upper(have["primal"])
            upper = upper if known.status else above
        return lower, upper, found

    def none(self, use: str, found: Reached) -> bool:
        """True where it is proved of all of them that no point, or no optimum, is there."""
        along, spread = (-self.p.b, self.off.b) if use == "contradiction" else (-self.p.q, self.off.q)
        for each in self.near(use, found):
            y = each.pair(len(along))
            if float(down(verify.linear(along, y))[0]) > _paid(spread, y.size()) * MORE:
                return True
        return False


def _up(M: Sparse, y: Array, more: Array) -> Array:
    """Not less than M y + more, of numbers that are at least 0; no product underflows."""
    return upwards(M @ np.where(y > 0.0, np.maximum(y, 1e-150), 0.0) + more, verify.longest(M) + 3)


def _paid(a: Array, b: Array) -> float:
    return float(upwards(a @ b, len(a) + 3)) + DUST * bool(a.any())


# ---- the user's expressions ------------------------------------------------------------------------------------------
def said(stored: Canonical, known: Known) -> Said:
    """What is proved of the user's formula; where that is not enough, what is proved of what is stored."""
    from cvxpy.reductions.dcp2cone.canonicalizers import CANON_METHODS
    from cvxpy.transforms.partial_optimize import PartialProblem

    lower, upper, found = known.lower, known.upper, known.evidence.get("primal")
    strange = [name for name in (type(r).__name__ for r in stored.chain.reductions) if name not in REDUCTIONS.split()]
    try:
        if strange:
            raise NotFollowedError(f"CVXPY's {strange[0]}")
        objective, order = stored.last()
        o = off(stored, objective, order)
        if not o.none():
            lower, upper, found = _Rounded(stored.programme, o, known.curvature).bounds(known)
    except NotFollowedError as unknown:
        return Said(known.lower, known.upper, np.inf, f"{PROVED}: {unknown} is not followed", found)
    except RefusedError as refused:
        return Said(known.lower, known.upper, np.inf, f"{PROVED}: some of its numbers are rounded, {refused}", found)
    own = [e for part in (stored.problem.objective, *stored.problem.constraints) for e in _atoms(part)]
    kept = {id(e.original_expression) for e in _atoms(objective) if type(e).__name__ == "SymbolicQuadForm"}
    stored_so = [*CANON_METHODS, PartialProblem]
    changed = [words(e) for e in own if type(e) in stored_so and not (exactly_stored(e) and _kept(e, kept, stored))]
    if changed:
        return Said(lower, upper, np.inf, f"{FORMULA} but for {_named(changed)}, as CVXPY stores it", found)
    with np.errstate(invalid="ignore"):  # of infinite numbers nothing is known
        most, by_cones = _value(stored, found) if found is not None else (np.inf, [])
    more = f"; at the point CVXPY's cones stand for {_named(by_cones)}"
    return Said(lower, upper, most, FORMULA + (more if by_cones else ""), found)


def _kept(e: Any, kept: set[int], stored: Canonical) -> bool:
    """False where a quadratic form was stored by a factor of its matrix, which is rounded, and of a determinant where
    its matrix is not symmetric, of which the cones take the symmetric part."""
    if type(e).__name__ == "log_det":
        return _symmetric(e.args[0], stored)
    return type(e).__name__ != "QuadForm" or id(e) in kept


def _symmetric(e: Any, stored: Canonical) -> bool:
    """True where a matrix is symmetric, or misses that by rounding."""
    n, p = e.shape[0], stored.programme
    try:
        m = follow(e, variables(stored.columns()))
    except NotFollowedError:
        return bool(e.is_symmetric())
    M = sp.csr_array((m.value, (m.row, m.column % (len(p.q) + 1))), shape=(n * n, len(p.q) + 1))
    T = M[np.arange(n * n).reshape(n, n).T.ravel()]
    return bool((abs(M - T) - SAME * (abs(M) + abs(T))).max() <= 0.0)


def _named(some: list[str]) -> str:
    return ", ".join(dict.fromkeys(some))


def _atoms(e: Any) -> Iterator[Any]:
    """An expression, or a constraint, and those in it, as far as they are not constant."""
    if not getattr(e, "is_constant", bool)():
        yield e
        for arg in e.args if type(e).__name__ != "PartialProblem" else ():
            yield from _atoms(arg)


def _value(stored: Canonical, found: Reached) -> tuple[float, list[str]]:
    """Not less than what the user's objective, or its negative where it is maximised, is at the exact point of
    `primal`; and the parts of which that, or that the point is feasible, is not known from themselves."""
    y, problem = found.pair(len(stored.programme.q)), stored.problem
    point = Pair(np.append(y.high, 1.0), np.append(y.low, 0.0), np.append(y.error, 0.0))
    leaf, by_cones, most = variables(stored.columns()), list[str](), np.inf
    for each in problem.constraints:  # rows that are affine are the same in the programme
        if not all(arg.is_affine() for arg in each.args):
            try:
                if type(each).__name__ != "Inequality":
                    raise NotFollowedError(words(each))
                _, high = follow(each.expr, leaf, point).at(point)
                by_cones += [] if (high <= 0.0).all() else [words(each)]
            except NotFollowedError as unknown:
                by_cones.append(str(unknown))
    try:
        low, high = follow(problem.objective.expr, leaf, point).at(point)
        most = float(np.squeeze(high if stored.sign > 0.0 else -low))
        by_cones += [] if np.isfinite(most) else [words(problem.objective.expr)]
    except NotFollowedError as unknown:
        by_cones.append(str(unknown))
    return most, by_cones
