"""Attainment: whether the infimum is reached, decided on the directions along which the objective does not grow.

Every summand is non-negative up to a linear term, so its recession function is >= 0; the infimum is attained if every
direction v along which all recession functions vanish is one along which all summands are constant, or fall to a
minimum that they reach (hinges). That fails only through samples whose loss falls for ever (logistic: b x_r'v >= 0;
each loss says so by its `descent`). A linear programme finds such a v or shows that there is none. Coordinates that
coercive edges tie together are one unknown there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..form import DualPoint, EdgeBlock, Form, SampleBlock
from ..terms.records import Array, RecessionCone

FAR = (1e6, 1e3)  # bounds on the entries of a direction, the second where HiGHS gets lost within the first


def attained(form: Form, point: DualPoint | None = None) -> bool | None:
    """Whether the infimum of P is attained; None where a penalty does not say how it grows.

    ``point`` is a conserved dual point: where the prices of the one-sided samples lie well inside their domains it
    settles the question at once (Gordan: <a, Xv> = -<u, Kv> leaves no room for a direction of recession).
    """
    if not any(block.loss.descent(block.y).for_ever.any() for block in form.samples):
        return True
    if point is not None and _strictly_inside(form, point):
        return True
    cones = _cones(form)
    return None if cones is None else _direction(form, cones) is None


@dataclass(frozen=True)
class AtInfinity:
    """A problem whose infimum is not attained, and what is left of it along a direction of recession.

    Along ``direction`` (n, d) the losses of some samples fall for ever and all else stays as it is. ``rest`` is the
    problem without what falls away (samples, or classes of samples): its infimum is that of the whole. ``kept`` are
    masks over the samples, one per block.
    """

    form: Form
    direction: Array
    rest: Form
    kept: tuple[Array, ...]

    def extend(self, point: DualPoint) -> DualPoint:
        """A dual point of the rest as one of the whole: samples that run away have the price 0."""
        remaining = iter(point.prices)
        prices: list[Array] = []
        for block, kept in zip(self.form.samples, self.kept, strict=True):
            a = np.zeros_like(block.offset)
            if kept.any():
                a[kept] = next(remaining)
            prices.append(a)
        return DualPoint(point.flows, tuple(prices))

    def push(self, w: Array, gap: float) -> Array:
        """w moved along the direction until P is near the infimum: to a tenth of the relative gap, and no further,
        so that the coefficients stay as small as the gap allows."""
        steps = np.r_[0.0, np.logspace(-2, 6, 60)]
        values = np.array([self.form.primal(w + t * self.direction) for t in steps])
        low = float(np.nanmin(values))
        near = values <= low + 0.1 * gap * max(abs(low), 1e-3 * self.form.at_zero())
        return w + steps[int(np.argmax(near))] * self.direction


def at_infinity(form: Form) -> AtInfinity | None:
    """What is left of a problem at infinity; None where its infimum is attained (or that is not known)."""
    cones = _cones(form)
    v = None if cones is None else _direction(form, cones)
    if v is None:
        return None
    kept: list[Array] = []
    blocks: list[SampleBlock] = []
    for block in form.samples:
        descent = block.loss.descent(block.y)
        falls = descent.falls @ block.apply(v).ravel()
        rows, y = block.loss.remains(block.y, falls > np.where(descent.for_ever, 0.5, 1e-3))
        kept.append(rows)
        if rows.any():
            blocks.append(_subset(block, rows, y))
    return AtInfinity(form, v, replace(form, samples=tuple(blocks)), tuple(kept))


def _subset(block: SampleBlock, rows: Array, y: Array) -> SampleBlock:
    """The samples of a mask, with their targets."""
    X = None if block.X is None else block.X[rows]
    lines = rows if block.offset.ndim == 1 else np.repeat(rows, block.offset.shape[1])
    return replace(
        block,
        node=block.node[rows],
        X=X,
        y=y,
        offset=block.offset[rows],
        base_scale=block.base_scale[rows],
        A=block.A[np.flatnonzero(lines)],
    )


def _cones(form: Form) -> list[RecessionCone] | None:
    cones = [edge.penalty.recession(form.width(edge)) for edge in form.edges]
    return None if any(cone is None for cone in cones) else [cone for cone in cones if cone is not None]


def _strictly_inside(form: Form, point: DualPoint) -> bool:
    left = np.linalg.norm(form.conservation(point), axis=1).sum()
    for block, a in zip(form.samples, point.prices, strict=True):
        if not block.loss.descent(block.y).for_ever.any():
            continue
        low, high = block.loss.domain(block.y)
        s = block.column(block.scale)
        depth = np.where((low == 0) != (high == 0), np.abs(a / s), np.inf)  # from the end 0 of the domain
        if not depth.min() > 1e-8 or not (depth * s).min() > 1e6 * left:
            return False
    return True


@dataclass
class _Unknowns:
    """Entry (i, j) of v is the unknown ``number[i, j]``, or 0 where that is -1."""

    number: Array
    count: int

    def matrix(self, rows: Any) -> sp.csr_array:
        """A sparse matrix on vec(v) as one on the unknowns."""
        flat = self.number.ravel()
        kept = np.flatnonzero(flat >= 0)
        pick = sp.csr_array((np.ones(len(kept)), (kept, flat[kept])), shape=(len(flat), self.count))
        return sp.csr_array(rows @ pick)


def _unknowns(form: Form, cones: list[RecessionCone]) -> _Unknowns:
    """Coercive edges between nodes make coordinates equal, coercive ground edges make them 0."""
    index = np.arange(form.n * form.d).reshape(form.shape)
    ground = form.n * form.d
    tails: list[Array] = []
    heads: list[Array] = []
    for edge, cone in zip(form.edges, cones, strict=True):
        columns = np.arange(form.d) if edge.features is None else edge.features
        columns = columns[(cone.lower == 0) & (cone.upper == 0)]
        tails.append(index[np.ix_(edge.tail, columns)].ravel())
        heads.append(np.full(len(tails[-1]), ground) if edge.ground else index[np.ix_(edge.head, columns)].ravel())
    t, h = (np.concatenate(p) if p else np.zeros(0, dtype=int) for p in (tails, heads))
    links = sp.coo_array((np.ones(len(t)), (t, h)), shape=(ground + 1, ground + 1))
    count, member = connected_components(links, directed=False)
    rename = np.full(count, -1)
    others = np.delete(np.arange(count), member[ground])
    rename[others] = np.arange(len(others))
    return _Unknowns(rename[member[:ground]].reshape(form.shape), len(others))


def _direction(form: Form, cones: list[RecessionCone]) -> Array | None:
    """A direction of recession (n, d) along which every sample that can fall for ever falls by 1 or more."""
    unknowns = _unknowns(form, cones)
    if unknowns.count == 0:
        return None
    equal: list[sp.csr_array] = []
    fall: list[sp.csr_array] = []
    more: list[sp.csr_array] = []
    for block in form.samples:
        descent = block.loss.descent(block.y)
        A = unknowns.matrix(block.A)
        equal.append(A[descent.still])
        falls = sp.csr_array(descent.falls @ A)
        if descent.for_ever.any():
            fall.append(falls[np.flatnonzero(descent.for_ever)])
        if not descent.for_ever.all():
            more.append(falls[np.flatnonzero(~descent.for_ever)])
    for edge, cone in zip(form.edges, cones, strict=True):
        _cone_rows(form, edge, cone, unknowns, equal, more)
    F = sp.csr_array(sp.vstack(fall))
    result = _programme(F, sp.csr_array(sp.vstack(equal)), more)
    if result is None:
        return None
    falls = F @ result
    result = result / falls[falls > 0.5].min()
    return np.where(unknowns.number >= 0, result[np.maximum(unknowns.number, 0)], 0.0)


def _programme(F: Any, E: Any, more: list[Any]) -> Array | None:
    """v that maximises sum_r min(1, (F v)_r) over F v >= 0, E v = 0, G v >= 0; None where only 0 is reached."""
    from scipy.optimize import linprog  # half of the time that importing graphreg would take

    rows, count = F.shape
    free = [sp.hstack([-G, sp.csr_array((G.shape[0], rows))]) for G in more]
    upper: Any = sp.csr_array(sp.vstack([sp.hstack([-F, sp.eye_array(rows)]), *free]))
    equal = sp.csr_array(sp.hstack([E, sp.csr_array((E.shape[0], rows))])) if E.shape[0] else None
    for far in FAR:
        result = linprog(
            np.r_[np.zeros(count), -np.ones(rows)],
            A_ub=upper,
            b_ub=np.zeros(upper.shape[0]),
            A_eq=equal,
            b_eq=None if equal is None else np.zeros(E.shape[0]),
            bounds=[(-far, far)] * count + [(0.0, 1.0)] * rows,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status == 0:
            return result.x[:count] if -result.fun > 0.5 else None
    return None


def _cone_rows(
    form: Form,
    edge: EdgeBlock,
    cone: RecessionCone,
    unknowns: _Unknowns,
    equal: list[sp.csr_array],
    more: list[sp.csr_array],
) -> None:
    """The conditions of an edge block on v that are not merely equalities between coordinates."""
    columns = np.arange(form.d) if edge.features is None else edge.features
    pick = np.zeros((len(columns), form.d))
    pick[np.arange(len(columns)), columns] = 1.0
    if cone.equations is not None:
        equal.append(unknowns.matrix(sp.kron(edge.K, cone.equations @ pick, format="csr")))
    for bound, sign in ((cone.lower, 1.0), (cone.upper, -1.0)):
        chosen = (bound == 0) & ~((cone.lower == 0) & (cone.upper == 0))
        if chosen.any():
            more.append(unknowns.matrix(sp.kron(edge.K, sign * pick[chosen], format="csr")))
