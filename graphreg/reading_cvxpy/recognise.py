"""The penalties of a closed form, or of a root of one number, that are recognised in the tree of a CVXPY function.

What is read (see `reading`) is compared with the function before it is used, so that a tree that was misread costs a
closed form and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..base.csgraph import connected_components
from ..terms import Array
from ..terms.penalties import L1, L2, AbstractNorm, AbstractPenalty, LInf, Quadratic, SquaredL2
from .analysis_l1 import AnalysisL1, AnalysisNorm
from .composed import Ridged, Thresholded, of_norm
from .functions import NOTHING, Curve, Function
from .norms import EllipsoidNorm, KLargestNorm, NormBesideL2, PNorm, ScaledNorm
from .reading import Entry, Map, NormOf, UnknownError, factor_of, read, weight_of
from .sums import blocks, separable

AGREEMENT = 1e-12  # relative; of what was recognised and the function
CANCELLED = 2.0**-48  # of constants that a formula adds and takes away
WELL_POSED = 1e6  # condition number of an R up to which ||Rz|| has a dual norm to speak of
WELL_SPREAD = 1e3  # and of an A up to which the Gram matrix of its rows tells them apart

Normed = tuple[NormOf, Map]  # a norm, and the function of it


def closed_form(expression: Any, z: Any, rows: Array, values: Array) -> AbstractPenalty | None:
    """The penalty that a function of the variable z is, in closed form; None where it is not recognised, or where what
    was recognised has other values (m,) at the rows (m, k)."""
    try:
        entry = read(expression, z)[0]
        phi = _assembled(entry, z.size)
    except UnknownError:
        return None
    rounding = CANCELLED * sum(h.level for h in entry.curves.values() if isinstance(h, Function))
    with np.errstate(all="ignore"):
        found = phi.value(rows)
        near = np.abs(found - values) <= AGREEMENT * (np.abs(values) + np.abs(rows).max(axis=1)) + rounding
    return phi if (near | (found == values)).all() else None


def _assembled(entry: Entry, k: int) -> AbstractPenalty:
    """The sum over blocks of coordinates that nothing connects."""
    Q = entry.Q * np.ones((k, k))
    curves = [entry.curves.get(j, NOTHING) for j in range(k)]
    norms = [(v, curve) for v, curve in entry.used.items() if isinstance(v, NormOf)]
    if not norms and Q.any() and all(isinstance(curve, Curve) and curve.is_line for curve in curves):
        return SquaredL2() if np.array_equal(Q, np.eye(k)) else Quadratic(Q)
    return blocks([(columns, _block(columns, curves, Q, norms)) for columns in _connected(k, Q, norms)])


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


def _block(columns: Array, curves: Sequence[Map], Q: Array, norms: Sequence[Normed]) -> AbstractPenalty:
    here = [(norm, norm.A[:, columns], curve) for norm, curve in norms if norm.A[:, columns].any()]
    own, Q = [curves[j] for j in columns], Q[np.ix_(columns, columns)]
    diagonal = np.diag(Q)
    if not here and np.array_equal(Q, np.diag(diagonal)):
        return _separable([curve + Curve.of([], [0.0], [q]) for curve, q in zip(own, diagonal, strict=True)])
    weights = np.array([weight_of(curve) for curve in own])
    if not here and not weights.any():
        return Quadratic(Q)
    if not here or not np.array_equal(Q, np.eye(len(columns)) * Q[0, 0]):
        raise UnknownError
    if all(norm.is_l1 and curve.is_line for norm, _, curve in here):
        rows = [(A, factor_of(curve)) for _, A, curve in here]
        phi = _analysis([*rows, *zip(np.eye(len(columns)), weights, strict=True)])
        weights = np.zeros(len(columns))
    else:
        phi = _together([_normed(norm, A, curve, not weights.any()) for norm, A, curve in here])
    phi = Ridged(phi, float(Q[0, 0])) if Q.any() else phi
    return Thresholded(weights, phi) if weights.any() else phi


def _analysis(rows: Sequence[tuple[Array, float]]) -> AbstractPenalty:
    """The sum of w ``|a'z|`` over rows a, w."""
    A = np.vstack([a for a, w in rows if w])
    w = np.concatenate([np.full(len(np.atleast_2d(a)), w) for a, w in rows if w])
    r, k = A.shape
    if r > k or not np.linalg.cond(w[:, None] * A) < WELL_SPREAD:
        raise UnknownError
    return AnalysisNorm(A, w) if r == k else AnalysisL1(A, w)


def _together(norms: Sequence[AbstractPenalty]) -> AbstractPenalty:
    """The sum of norms of the same coordinates: of one, or of one and a multiple of the Euclidean norm."""
    if len(norms) == 1:
        return norms[0]
    for one, other in (norms, norms[::-1]) if len(norms) == 2 else ():
        norm, c = (other.norm, other.factor) if isinstance(other, ScaledNorm) else (other, 1.0)
        if isinstance(one, AbstractNorm) and isinstance(norm, L2):
            return NormBesideL2(one, c)
    raise UnknownError


def _separable(functions: Sequence[Map]) -> AbstractPenalty:
    rooted = np.array([isinstance(h, Function) for h in functions])
    if rooted.any() and not rooted.all():  # domains of conjugates are open, and closed
        kinds = (np.flatnonzero(rooted), np.flatnonzero(~rooted))
        return blocks([(on, separable([functions[j] for j in on.tolist()])) for on in kinds])
    plain = not rooted.any() and all(_is_size(h) for h in functions)
    return L1() if plain else separable(functions)


def _is_size(h: Map) -> bool:
    """Whether the function is ``|x|``."""
    try:
        return weight_of(h) == 1.0
    except UnknownError:
        return False


def _normed(norm: NormOf, A: Array, curve: Map, plain: bool) -> AbstractPenalty:
    """A function of the norm of Az. Unless ``plain`` it may not change with the signs of coordinates."""
    p, k = norm.p, A.shape[1]
    scale = _common_size(A) if p != 2.0 or not plain else None
    gram = A.T @ A
    if p == 2.0 and np.allclose(gram, gram[0, 0] * np.eye(k), rtol=1e-15, atol=0.0):
        scale = float(np.sqrt(gram[0, 0]))
    if scale is None and p == 2.0 and plain and len(A) >= k and np.linalg.cond(A) < WELL_POSED:
        return _scaled(EllipsoidNorm(np.linalg.qr(A)[1]), curve)
    if scale is None:
        raise UnknownError
    if np.isfinite(norm.largest):
        return _scaled(KLargestNorm(norm.largest), curve.at(scale))
    return _scaled({1.0: L1(), 2.0: L2(), np.inf: LInf()}.get(p) or PNorm(p), curve.at(scale))


def _common_size(A: Array) -> float | None:
    """s where the entries of Az are those of s z, up to their signs and their order."""
    sizes = np.abs(A[A != 0.0])
    single = A.shape[0] == A.shape[1] == len(sizes) and (A != 0.0).any(axis=0).all() and (A != 0.0).any(axis=1).all()
    return float(sizes[0]) if single and np.all(sizes == sizes[0]) else None


def _scaled(norm: AbstractNorm, curve: Map) -> AbstractPenalty:
    """A function of a norm."""
    if isinstance(norm, (L1, L2, LInf)) and not curve.is_line:
        return of_norm(norm, curve)
    c = factor_of(curve)
    return norm if c == 1.0 else ScaledNorm(norm, c)
