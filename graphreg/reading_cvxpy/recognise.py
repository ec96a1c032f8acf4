"""The penalties of a closed form, or of a root of one number, that are recognised in the tree of a CVXPY function.

What is read (see `reading`) is compared with the function before it is used, so that a tree that was misread costs a
closed form and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.csgraph import connected_components
from ..terms import Array
from ..terms.penalties import L1, L2, AbstractNorm, AbstractPenalty, LInf, Quadratic, SquaredL2, by_row
from .atoms import KinkedError
from .cone_penalty import MappedNorm
from .curve import LINE, NOTHING, SQUARE, Curve, UnknownError
from .lines import lines
from .norms import PNorm, ScaledNorm
from .reading import Entry, NormOf, read
from .sides import RootedSides, Sides
from .sizes import OfNorm, OneSidedSeparable, Separable, SmoothSeparable
from .sums import Thresholded, blocks

AGREEMENT = 1e-12  # relative; of what was recognised and the function
ROUNDED = 8.0  # times what a bound allows for rounding, of values
WELL_SPREAD = 100.0  # condition number of an R up to which projected gradients end soon

Normed = tuple[NormOf, Curve]  # a norm, and the function of it


def closed_form(expression: Any, z: Any, rows: Array, values: Array, even: bool) -> AbstractPenalty | None:
    """The penalty that a function of the variable z is, in closed form; None where it is not recognised, or where what
    was recognised has other values (m,) at the rows (m, k)."""
    try:
        phi = Reading(expression, z, read(expression, z)[0], even).penalty()
    except (UnknownError, KinkedError):
        return None
    with np.errstate(all="ignore"):
        found = phi.value(rows)
        rounding = ROUNDED * (phi.value_bound(rows, np.zeros(rows.shape)) - found)
        near = np.abs(found - values) <= AGREEMENT * (np.abs(values) + np.abs(rows).max(axis=1)) + rounding
    return phi if (near | (found == values)).all() else None


@dataclass(frozen=True)
class Reading:
    """A function of the variable z, and what its tree was read as."""

    expression: Any
    z: Any
    entry: Entry
    even: bool

    def penalty(self) -> AbstractPenalty:
        """The sum over blocks of coordinates that nothing connects."""
        k = self.z.size
        Q = self.entry.Q * np.ones((k, k))
        own = [self.entry.curves.get(j, NOTHING) for j in range(k)]
        norms = [(v, curve) for v, curve in self.entry.used.items() if isinstance(v, NormOf)]
        if not norms and Q.any() and all(curve.is_line for curve in own):
            return SquaredL2() if np.array_equal(Q, np.eye(k)) else Quadratic(Q)
        return blocks([(on, self._block(on, [own[j] for j in on], Q, norms)) for on in _connected(k, Q, norms)])

    def _block(self, on: Array, own: Sequence[Curve], Q: Array, norms: Sequence[Normed]) -> AbstractPenalty:
        here = [(NormOf.of(norm.p, norm.A[:, on]), curve) for norm, curve in norms if norm.A[:, on].any()]
        Q = Q[np.ix_(on, on)]
        diagonal = np.diag(Q)
        if not here and np.array_equal(Q, np.diag(diagonal)):
            return self._separable(on, [h + SQUARE.times(0.5 * q) for h, q in zip(own, diagonal, strict=True)])
        weights = np.array([curve.weight for curve in own])
        if not here and not weights.any():
            return Quadratic(Q)
        if here and not Q.any() and all(norm.p == 1.0 and curve.is_line for norm, curve in here):
            alone = [(NormOf.of(1.0, a[None]), LINE.times(w)) for a, w in zip(np.eye(len(on)), weights, strict=True)]
            return _analysis([*here, *alone])
        if len(here) != 1:
            raise UnknownError
        phi = self._of_norm(on, *here[0], Q, not weights.any())
        return Thresholded(weights, phi) if weights.any() else phi

    def _separable(self, on: Array, functions: Sequence[Curve]) -> AbstractPenalty:
        rooted = np.array([h.knots is None for h in functions])
        if rooted.any() and not rooted.all():  # domains of conjugates are open, and closed
            kinds = (np.flatnonzero(rooted), np.flatnonzero(~rooted))
            return blocks([(i, self._separable(on[i], [functions[j] for j in i.tolist()])) for i in kinds])
        ways = np.eye(self.z.size)[on]
        if not self.even:
            mirrored = [*functions, *(h.at(-1.0) for h in functions)]
            return OneSidedSeparable(self._rooted(np.vstack([ways, -ways])) if rooted.any() else Sides.of(mirrored))
        if rooted.any():
            return Separable(self._rooted(ways))
        sides = Sides.of(functions)
        if (sides.low == 1.0).all() and not sides.bend.any():
            return L1()
        return SmoothSeparable(sides) if sides.is_smooth else Separable(sides)

    def _rooted(self, ways: Array) -> RootedSides:
        return RootedSides(lines(self.expression, self.z), ways)

    def _of_norm(self, on: Array, of: NormOf, curve: Curve, Q: Array, plain: bool) -> AbstractPenalty:
        """A function of the norm of Az. Unless ``plain`` it may not change with the signs of coordinates."""
        A, p, k = of.A, of.p, len(on)
        gram = A.T @ A
        turned = p == 2.0 and np.allclose(gram, gram[0, 0] * np.eye(k), rtol=1e-15, atol=0.0)
        scale = float(np.sqrt(gram[0, 0])) if turned else _common_size(A)
        norm = {1.0: L1(), 2.0: L2(), np.inf: LInf()}.get(p) or PNorm(p)
        if scale is not None and not isinstance(norm, PNorm):
            if curve.knots is None and plain:
                return OfNorm(self._rooted(np.eye(self.z.size)[on[:1]]), norm)
            if turned and np.array_equal(Q, Q[0, 0] * np.eye(k)):
                curve, Q, scale = curve.at(scale) + SQUARE.times(0.5 * Q[0, 0]), np.zeros((k, k)), 1.0
            if curve.knots is not None and not curve.is_line and not Q.any():
                return OfNorm(Sides.of([curve.at(scale)]), norm)
        if Q.any() or (scale is None and not plain):
            raise UnknownError
        if scale is not None:
            return _scaled(norm, curve.factor * scale)
        return _mapped(np.linalg.qr(A)[1] if p == 2.0 and len(A) > k else A, _scaled(norm, curve.factor))


def _scaled(norm: AbstractNorm, c: float) -> AbstractNorm:
    return norm if c == 1.0 else ScaledNorm(norm, c)


def _connected(k: int, Q: Array, norms: Sequence[Normed]) -> Iterator[Array]:
    """The classes of coordinates that Q or a norm connects; those that nothing connects are one class."""
    tied = (Q != 0.0) & ~np.eye(k, dtype=bool)
    for norm, _ in norms:
        on = norm.A.any(axis=0)
        tied |= np.outer(on, on)
    _, label = connected_components(tied)
    alone = ~tied.any(axis=1)
    if alone.any():
        yield np.flatnonzero(alone)
    for each in np.unique(label[~alone]):
        yield np.flatnonzero(label == each)


def _analysis(norms: Sequence[Normed]) -> AbstractPenalty:
    """The sum of l1 norms of rows. The largest factor of those of several coordinates is left out of them: their
    differences then keep their digits."""
    factors = [curve.factor for _, curve in norms]
    most = max(c for (norm, _), c in zip(norms, factors, strict=True) if (norm.A != 0.0).sum(axis=1).max() > 1)
    rows = [c / most * norm.A for (norm, _), c in zip(norms, factors, strict=True) if c]
    return _mapped(np.vstack(rows), _scaled(L1(), most))


def _mapped(R: Array, norm: AbstractNorm) -> AbstractPenalty:
    if len(R) > R.shape[1] or not np.linalg.cond(R) < WELL_SPREAD:
        raise UnknownError
    return MappedNorm(lambda z: norm.value(by_row(z, R.T)), R, norm)


def _common_size(A: Array) -> float | None:
    """s where the entries of Az are those of s z, up to their signs and their order."""
    sizes = np.abs(A[A != 0.0])
    single = A.shape[0] == A.shape[1] == len(sizes) and (A != 0.0).any(axis=0).all() and (A != 0.0).any(axis=1).all()
    return float(sizes[0]) if single and np.all(sizes == sizes[0]) else None
