"""Attainment: whether the infimum is reached, decided on the directions along which the objective does not grow.

Every summand is non-negative up to a linear term, so its recession function is >= 0; the infimum is attained if every
direction v along which all recession functions vanish is one along which all summands are constant. That fails only
through samples whose loss is flat one way (logistic: b x_r'v >= 0). A linear programme finds such a v or shows that
there is none. Coordinates that coercive edges tie together are one unknown there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from ..form import DualPoint, EdgeBlock, Form
from ..terms.records import Array, RecessionCone


def attained(form: Form, point: DualPoint | None = None) -> bool | None:
    """Whether the infimum of P is attained; None where a penalty does not say how it grows.

    ``point`` is a conserved dual point: where the prices of the one-sided samples lie well inside their domains it
    settles the question at once (Gordan: <a, Xv> = -<u, Kv> leaves no room for a direction of recession).
    """
    if not any(_one_sided(block)[0].any() for block in form.samples):
        return True
    if point is not None and _strictly_inside(form, point):
        return True
    cones = [edge.penalty.recession(form.width(edge)) for edge in form.edges]
    if any(cone is None for cone in cones):
        return None
    return not _descends(form, [cone for cone in cones if cone is not None])


def _one_sided(block: object) -> tuple[Array, Array]:
    """Where the loss is flat towards +inf, and towards -inf (the support function of dom l* vanishes there)."""
    low, high = block.loss.domain(block.y)
    return (high == 0) | (low == 0), high == 0


def _strictly_inside(form: Form, point: DualPoint) -> bool:
    left = np.linalg.norm(form.conservation(point), axis=1).sum()
    for block, a in zip(form.samples, point.prices, strict=True):
        flat, _ = _one_sided(block)
        if not flat.any():
            continue
        low, high = block.loss.domain(block.y)
        b = a / block.scale
        depth = np.minimum(b - low, high - b)[flat]
        if not depth.min() > 1e-4 or not (depth * block.scale[flat]).min() > 1e6 * left:
            return False
    return True


@dataclass
class _Unknowns:
    """Entry (i, j) of v is the unknown ``number[i, j]``, or 0 where that is -1."""

    number: Array
    count: int

    def matrix(self, rows: sp.csr_array) -> sp.csr_array:
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


def _descends(form: Form, cones: list[RecessionCone]) -> bool:
    """Whether some direction of recession makes a one-sided sample fall strictly."""
    unknowns = _unknowns(form, cones)
    if unknowns.count == 0:
        return False
    equal: list[sp.csr_array] = []
    fall: list[sp.csr_array] = []
    for block in form.samples:
        flat, up = _one_sided(block)
        flat, up = (np.repeat(x, 1) for x in (flat.ravel(), up.ravel()))
        A = unknowns.matrix(block.A)
        equal.append(A[~flat])
        fall.append(sp.csr_array(sp.diags_array(np.where(up, 1.0, -1.0)[flat]) @ A[flat]))
    more: list[sp.csr_array] = []
    for edge, cone in zip(form.edges, cones, strict=True):
        _cone_rows(form, edge, cone, unknowns, equal, more)
    F = sp.vstack(fall).tocsr()
    top = max(float(abs(F).max()), 1e-300)
    # maximise sum_r min(1, (F v)_r) over F v >= 0 and the other cones: t_r <= (F v)_r, 0 <= t_r <= 1
    rows, count = F.shape
    upper = sp.vstack([sp.hstack([-F / top, sp.eye_array(rows)]), *[sp.hstack([-G, sp.csr_array((G.shape[0], rows))]) for G in more]])
    E = sp.vstack(equal).tocsr()
    E = sp.hstack([E, sp.csr_array((E.shape[0], rows))]).tocsr() if E.shape[0] else None
    result = linprog(
        np.r_[np.zeros(count), -np.ones(rows)],
        A_ub=upper.tocsr(),
        b_ub=np.zeros(upper.shape[0]),
        A_eq=E,
        b_eq=None if E is None else np.zeros(E.shape[0]),
        bounds=[(-1e6, 1e6)] * count + [(0.0, 1.0)] * rows,
        method="highs",
    )
    return bool(result.status == 0 and -result.fun > 0.5)


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
