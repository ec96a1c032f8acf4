"""Attainment: whether the infimum is reached, decided on the directions along which the objective does not grow.

Every summand is non-negative up to a linear term, so its recession function is >= 0; the infimum is attained if every
direction v along which all recession functions vanish is one along which all summands are constant, or fall to a
minimum that they reach (hinges). That fails only through samples whose loss falls for ever (logistic: b x_r'v >= 0;
each loss says so by its `descent`). A linear programme finds such a v or shows that there is none. Coordinates that
coercive edges tie together are one unknown there. Where nothing falls for ever, but hinges fall to 0 or constraints
slacken, the infimum is attained and the same programme finds the prices and flows that are 0 at every dual point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..form import DualPoint, EdgeBlock, Form, SampleBlock
from ..terms.records import Array, RecessionCone
from .best_common import common

# Bounds on the entries of a direction, and tolerances: the next where HiGHS gets lost within the one before.
LOOKS = ((1e6, 1e-10), (1e3, 1e-10), (1e3, 1e-7))


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
    """A problem that does not change along some direction but that samples fall and constraints slacken, and what is
    left of it far out along that direction.

    At every dual point the prices and flows of what falls away are 0: <a, Xv> + <u, Kv> = 0 is a sum of numbers that
    are all <= 0. So no dual point lies well inside all domains, and none can be repaired; but those of ``rest``, the
    problem without what falls away, can. Its infimum is that of the whole.

    Attributes
    ----------
    attained : bool
        Whether the whole attains its infimum: nothing that falls away falls for ever (hinges fall to 0).
    samples : tuple of masks
        The samples that are left, one mask per block.
    edges : tuple of (block, rows, columns)
        Where each edge block of the rest stands in the whole.
    """

    form: Form
    direction: Array
    rest: Form
    attained: bool
    samples: tuple[Array, ...]
    edges: tuple[tuple[int, Array, Array], ...]

    def extend(self, point: DualPoint) -> DualPoint:
        """A dual point of the rest as one of the whole: what has fallen away has no price and no flow."""
        whole = self.form.nothing()
        remaining = iter(point.prices)
        for a, kept in zip(whole.prices, self.samples, strict=True):
            if kept.any():
                a[kept] = next(remaining)
        for (block, rows, columns), u in zip(self.edges, point.flows, strict=True):
            whole.flows[block][np.ix_(rows, columns)] = u
        return whole

    def dropped(self) -> float:
        """An upper bound of the sum of s_r l_r*(0) over the samples that have fallen away: they are nowhere less than
        minus that (0, for losses >= 0)."""
        total = 0.0
        for block, kept in zip(self.form.samples, self.samples, strict=True):
            y = block.y[~kept]
            zero = np.zeros(y.shape)
            each = block.scale[~kept] * np.maximum(block.loss.conjugate_bound(zero, zero, y), 0.0)
            total += float(each.sum()) * (1.0 + 1e-9)
        return total

    def push(self, w: Array, gap: float) -> Array:
        """w moved along the direction until P is near the infimum: to a tenth of the relative gap, and no further,
        so that the coefficients stay as small as the gap allows."""
        steps = np.r_[0.0, np.logspace(-2, 6, 60)]
        values = np.array([self.form.primal(w + t * self.direction) for t in steps])
        low = float(np.nanmin(values))
        near = values <= low + 0.1 * gap * max(abs(low), common(self.form).floor)
        return w + steps[int(np.argmax(near))] * self.direction


def at_infinity(form: Form) -> AtInfinity | None:
    """What is left of a problem at infinity; None where nothing falls away (or that is not known)."""
    cones = _cones(form)
    v = None if cones is None else _direction(form, cones, everything=True)
    if v is None or cones is None:
        return None
    masks: list[Array] = []
    blocks: list[SampleBlock] = []
    attained = True
    for block in form.samples:
        descent = block.loss.descent(block.y)
        fallen = np.asarray(descent.falls @ block.apply(v).ravel() > 0.5)
        attained = attained and not (fallen & descent.for_ever).any()
        rows, y = block.loss.remains(block.y, fallen)
        masks.append(rows)
        if rows.any():
            blocks.append(_subset(block, rows, y))
    places: list[tuple[int, Array, Array]] = []
    edges: list[EdgeBlock] = []
    for k, (edge, cone) in enumerate(zip(form.edges, cones, strict=True)):
        for rows, columns, part in _tight(edge, cone, edge.apply(v)):
            places.append((k, rows, columns))
            edges.append(part)
    rest = replace(form, samples=tuple(blocks), edges=tuple(edges))
    return AtInfinity(form, v, rest, attained, tuple(masks), tuple(places))


def _tight(edge: EdgeBlock, cone: RecessionCone, z: Array) -> list[tuple[Array, Array, EdgeBlock]]:
    """What is left of an edge block whose constraints slacken along z, by the coordinates that are left: rows,
    columns within the block, and the block."""
    m, k = z.shape
    slack = ((cone.lower == 0) & (z > 0.5)) | ((cone.upper == 0) & (z < -0.5))
    if not slack.any():
        return [(np.arange(m), np.arange(k), edge)]
    out: list[tuple[Array, Array, EdgeBlock]] = []
    for pattern in np.unique(slack, axis=0):
        rows, columns = np.flatnonzero((slack == pattern).all(axis=1)), np.flatnonzero(~pattern)
        penalty = edge.penalty if not pattern.any() else edge.penalty.restricted(columns) if len(columns) else None
        if penalty is None and len(columns):  # not a sum over coordinates: it stays as it is
            penalty, columns = edge.penalty, np.arange(k)
        if penalty is not None:
            features = columns if edge.features is None else edge.features[columns]
            center = None if edge.center is None else edge.center[np.ix_(rows, columns)]
            K = edge.K[rows]
            cut = {"tail": edge.tail[rows], "head": edge.head[rows], "base_weight": edge.base_weight[rows], "K": K}
            out.append((rows, columns, replace(edge, penalty=penalty, features=features, center=center, **cut)))
    return out


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


def _direction(form: Form, cones: list[RecessionCone], everything: bool = False) -> Array | None:
    """A direction (n, d) along which nothing grows and every sample that can fall for ever falls by 1 or more; of all
    such directions, where ``everything``, one along which all samples fall and constraints slacken that can."""
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
    if everything:
        fall, more = fall + more, []
    if not fall:
        return None
    F = sp.csr_array(sp.vstack(fall))
    result = _programme(F, sp.csr_array(sp.vstack(equal)), more)
    if result is None:
        return None
    falls = F @ result
    result = result / falls[falls > 0.5].min()
    return np.where(unknowns.number >= 0, result[np.maximum(unknowns.number, 0)], 0.0)


def _programme(F: Any, E: Any, more: list[Any]) -> Array | None:
    """v that maximises sum_r min(1, (F v)_r) over F v >= 0, E v = 0, G v >= 0, and of these one whose largest entry is
    small; None where only 0 is reached."""
    rows, count = F.shape
    free = [sp.hstack([-G, sp.csr_array((G.shape[0], rows))]) for G in more]
    upper: Any = sp.vstack([sp.hstack([-F, sp.eye_array(rows)]), *free])
    equal = sp.hstack([E, sp.csr_array((E.shape[0], rows))])
    for far, tolerance in LOOKS:
        bounds = [(-far, far)] * count + [(0.0, 1.0)] * rows
        c = np.r_[np.zeros(count), -np.ones(rows)]
        x = _minimiser(c, upper, np.zeros(upper.shape[0]), equal, bounds, tolerance)
        if x is not None:
            return _smallest(x[:count], F, E, more, tolerance) if x[count:].sum() > 0.5 else None
    return None  # not known: what follows is then what would follow if there were no such v, and is certified


def _smallest(v: Array, F: Any, E: Any, more: list[Any], tolerance: float) -> Array:
    """minimise max |v| where the rows that fall along the given v fall by 1 at least; entries that no row needs are at
    their bounds in that v, and coefficients that run along it would be huge for nothing."""
    falls = (F @ v > 0.5).astype(float)
    G: Any = sp.vstack([F, *more])
    least = np.r_[falls, np.zeros(G.shape[0] - len(falls))]
    count = len(v)
    one, eye = np.ones((count, 1)), sp.eye_array(count)
    upper = sp.vstack([sp.hstack([-G, sp.csr_array((G.shape[0], 1))]), sp.hstack([eye, -one]), sp.hstack([-eye, -one])])
    right = np.r_[-least, np.zeros(2 * count)]
    equal = sp.hstack([E, sp.csr_array((E.shape[0], 1))])
    bounds = [(None, None)] * count + [(0.0, None)]
    x = _minimiser(np.r_[np.zeros(count), 1.0], upper, right, equal, bounds, tolerance)
    return v if x is None else x[:count]


def _minimiser(c: Array, upper: Any, right: Array, equal: Any, bounds: list[Any], tolerance: float) -> Array | None:
    """argmin c'x over upper x <= right, equal x = 0; None where HiGHS gets lost."""
    from scipy.optimize import linprog  # half of the time that importing graphreg would take

    result = linprog(
        c,
        A_ub=sp.csr_array(upper),
        b_ub=right,
        A_eq=sp.csr_array(equal) if equal.shape[0] else None,
        b_eq=np.zeros(equal.shape[0]) if equal.shape[0] else None,
        bounds=bounds,
        method="highs",
        options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
    )
    return result.x if result.status == 0 else None


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
