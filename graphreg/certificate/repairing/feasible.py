"""The primal point, repaired where constraints (Zero, Ball, Box, NonNegative) ask for it.

Coordinates that equations tie are averaged over their components; what a ground edge constrains is projected; what
balls constrain is scaled with its whole component by one common factor towards 0 (where nothing ties it to the ground,
towards the best common model), which every penalty tolerates.
(Projecting each node onto its own ball after the averaging breaks a consensus.)
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from ...form import EdgeBlock, Form, held_together
from ...inputs import components_of, means_of
from ...terms import Array, bisected
from ...terms.penalties import (
    AbstractConstraint,
    AbstractNorm,
    AbstractSmoothPenalty,
    gauge_of,
    is_equality,
    row_norm,
    slopes,
)
from ..common_model.best_common import center
from ..kernel.system import Flows
from .linear import factor_of, factored

ROUNDS = 100
ROW_ROUNDS = 20  # where rows of any kind are constrained: what is far from their sets is not brought there
PROJECTED = 5  # of these: nodes by themselves
HALVINGS = 60  # of a factor
MARGIN = 2e-14  # by so much a component is scaled further than its constraints ask for
WIDENED = 10  # times that rows are moved with those that they push outside
REFINED = 2  # times that a factor solves
KNOWN = AbstractConstraint, AbstractNorm, AbstractSmoothPenalty  # of others alone it is not known where they are finite
LONGEST = 1000  # ways along arrows by which a larger end is moved on
ULPS = 4  # by which a projected coordinate may be moved on


def feasible(form: Form, w: Array) -> Array:
    """A point near w at which P is finite, where one is found."""
    constraints = [edge for edge in form.edges if isinstance(edge.penalty, AbstractConstraint)]
    ties = [edge for edge in constraints if is_equality(edge.penalty, form.width(edge))]
    of_rows = [edge for edge in constraints if edge.map.noun == "row"]
    tied: list[tuple[Array, Array]] | None = None
    for k in range(ROW_ROUNDS if of_rows else ROUNDS):
        if all(satisfied(edge, w).all() for edge in constraints):
            break
        tied = tied_parts(form, ties) if tied is None else tied
        w = tied_means(tied, w)
        w = _moved_inside(form, of_rows, w, MARGIN * 2.0**k) if of_rows else w
        for edge in of_rows:
            w = _in_order(form, edge, w)
        for edge in constraints:
            if edge.map.noun == "node" and not (of_rows and k >= PROJECTED):  # which moves rows apart again
                w = _project(edge, w)
        w = tied_means(tied, w)
        w = _shrink(form, constraints, w, min(MARGIN * 2.0**k, 0.5))  # more, where rounding undoes it
    own = [edge for edge in form.edges if not isinstance(edge.penalty, KNOWN)]
    return w if all(satisfied(edge, w).all() for edge in own) else _shrink_all(form, w)


def tied_parts(form: Form, ties: list[EdgeBlock]) -> list[tuple[Array, Array]]:
    """The coordinates and nodes that edges hold equal: for each set of coordinates that the same of them tie, the
    component of every node, and the coordinates."""
    between = [edge for edge in ties if edge.map.noun == "edge"]
    found: list[tuple[Array, Array]] = []
    for touching, columns in held_together([edge.columns(form.d) for edge in between], form.d) if between else ():
        tail = np.concatenate([between[k].tail for k in touching])
        head = np.concatenate([between[k].head for k in touching])
        found.append((components_of(tail, head, form.n)[1], columns))
    return found


def tied_means(tied: list[tuple[Array, Array]], w: Array) -> Array:
    """Equal values across every edge that ties, exactly: the mean over each component, per coordinate; coordinates that
    none ties as they are."""
    w = w.copy()
    for member, columns in tied:
        w[:, columns] = means_of(member, w[:, columns])
    return w


def satisfied(edge: EdgeBlock, w: Array) -> Array:
    """A mask of the edges whose penalties are finite at these very numbers, whatever rounding does to their
    differences, (m,)."""
    one = Flows(edge, w.shape[1], whole=True)
    each = [np.isfinite(one.value(z, around, some)) for some, z, around in one.predicted(w)]
    return np.concatenate([np.zeros(0, dtype=bool), *each])


def _project(edge: EdgeBlock, w: Array) -> Array:
    """Each node of a ground constraint to the nearest point of its set; coordinates that rounding leaves outside are
    moved on by a unit in the last place."""
    w = w.copy()
    columns = edge.columns(w.shape[1])
    outside = ~satisfied(edge, w)
    if not outside.any():
        return w
    place = np.ix_(edge.tail[outside], columns)
    before = w[place]
    center = 0.0 if edge.center is None else edge.center[outside]
    z = edge.penalty.project(before - center)  # pyright: ignore[reportAttributeAccessIssue]  (constraints only)
    w[place] = z + center
    inward = np.where(w[place] < before, -np.inf, np.inf)
    for _ in range(ULPS):
        left = ~satisfied(edge, w)[outside]
        if not left.any():
            break
        moved = (w[place] != before) & left[:, None]
        w[place] = np.where(moved, np.nextafter(w[place], inward), w[place])
    return w


def _moved_inside(form: Form, edges: list[EdgeBlock], w: Array, margin: float) -> Array:
    """The nearest w whose rows lie inside of their sets, as far as least squares find it: those outside, and those that
    come to be so when these are moved (which would be at the cost of each other, one after the other)."""
    rows, moved = [np.zeros(edge.count, dtype=bool) for edge in edges], w
    for _ in range(WIDENED):
        outside = [~satisfied(edge, moved) for edge in edges]
        if not any((out & ~own).any() for out, own in zip(outside, rows, strict=True)):
            break
        rows = [own | out for out, own in zip(outside, rows, strict=True)]
        some = [edge.part(np.flatnonzero(own)) for edge, own in zip(edges, rows, strict=True) if own.any()]
        K, wanted = zip(*(_inwards(part, w, margin) for part in some), strict=True)
        moved = w + _shortest(form, sp.csr_array(sp.vstack(K)), np.concatenate(wanted)).reshape(w.shape)
    return moved


def _in_order(form: Form, edge: EdgeBlock, w: Array) -> Array:
    """Where rows w_i - w_j must keep a sign, the larger end no lower than the other: what rounding has left to do."""
    arrows, costs = edge.map.differences, slopes(edge.penalty, form.width(edge))
    if arrows is None or costs is None or (edge.center is not None and edge.center.any()):
        return w
    w, ends = w.copy(), (arrows.tail, arrows.head)
    for j, column in enumerate(arrows.columns(form.d)):
        for cost, (high, low) in zip(costs, (ends, ends[::-1]), strict=True):
            for _ in range(LONGEST if np.isinf(cost[j]) else 0):
                off = np.flatnonzero(w[low, column] > w[high, column])
                if not len(off):
                    break
                np.maximum.at(w[:, column], high[off], w[low[off], column])
    return w


def _shortest(form: Form, K: sp.csr_array, b: Array) -> Array:
    """The shortest x with K x = b, nearly, or with the least squares left of it."""
    if not factored(form):
        return lsqr(K, b, atol=1e-15, btol=1e-15)[0]
    L, z = sp.csr_array(K @ K.T), np.zeros((len(b), 1))
    solve = factor_of(L)
    for _ in range(REFINED):
        z += solve(b[:, None] - L @ z)
    return K.T @ z[:, 0]


def _inwards(part: EdgeBlock, w: Array, margin: float) -> tuple[sp.csr_array, Array]:
    """K of some rows, and how they would be moved: by as much again as they are outside, and by a share of the numbers
    that they are made of."""
    z, project = part.difference(w), part.penalty.project  # pyright: ignore[reportAttributeAccessIssue]  (constraints only)
    K = part.flat(w.shape[1])
    size = (abs(K) @ np.abs(w).ravel()).reshape(z.shape).max(axis=1, keepdims=True) + row_norm(z)[:, None]
    near = project(z)
    inner = (project(near + size) + project(near - size)) / 2.0  # between two points of the set
    depth = np.maximum(row_norm(near - z)[:, None], margin * size) / np.maximum(row_norm(inner - near)[:, None], 1e-300)
    return K, (near + np.minimum(depth, 0.5) * (inner - near) - z).ravel()


def _shrink(form: Form, constraints: list[EdgeBlock], w: Array, margin: float) -> Array:
    """Every component scaled towards the center of the form (see `center`; 0 where nodes are tied to the ground) until
    its centred constraints hold: so a shift of all targets changes nothing."""
    factor = np.ones(form.n_components)
    for edge in constraints:
        if edge.map.noun == "row" or edge.center is not None or is_equality(edge.penalty, form.width(edge)):
            continue
        z = edge.difference(w)
        outside = ~satisfied(edge, w)
        if outside.any():
            factor_of = 1.0 / np.maximum(_excess(edge, z[outside]), 1.0)
            np.minimum.at(factor, form.component[edge.tail[outside]], factor_of)
    if (factor == 1.0).all():
        return w
    v, factor = center(form)[0], factor[form.component][:, None]
    return np.where(factor < 1.0, v + (w - v) * (factor * (1.0 - margin)), w)


def _excess(edge: EdgeBlock, z: Array) -> Array:
    """The smallest t with z / t inside, per row (the set contains 0); inf where there is none."""
    return gauge_of(z, lambda rows: np.isfinite(edge.penalty.value_bound(rows, np.zeros(rows.shape))))


def _shrink_all(form: Form, w: Array) -> Array:
    """The shrinking for penalties of the user that are +inf somewhere: one common factor towards 0, by bisection."""
    if not np.isfinite(form.primal(0.0 * w)):
        return w
    low, _ = bisected(lambda t: np.isfinite([form.primal(t[0] * w)]), np.zeros(1), np.ones(1), HALVINGS)
    return low[0] * w
