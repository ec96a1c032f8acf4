"""The reason for which there is no point with a finite objective: the constraints exclude each other, which is shown
and not only computed, or a loss is beyond what floats can hold.

Rows that are numbers of w, or differences of two, bound these like roads of a length: around a circle of negative
length, which is added up exactly, no numbers fit (R. Bellman, On a routing problem, 1958).

The constraints alone, with no losses, are a problem whose optimum is 0 where a point satisfies them. The least squares

    minimise sum_e 1/2 ||s_e||^2    subject to    (K_e w - center_e) - s_e in C_e

always have a solution, and their residuals are flows u = s with K'u = 0 and Q(u) = -sum_e sup over C_e + center_e of
<u_e, .> = ||s||^2 (the projection theorem). Next to these an enclosed Q(u) > 0 proves that no point satisfies all
constraints: a Farkas certificate (Boyd and Vandenberghe, Convex Optimization, section 5.8).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.lazy import cp
from ..certificate import Enclosure, differences, feasible
from ..form import DualPoint, Form
from ..terms import Array, EdgeBlock, notation_of
from ..terms.penalties import AbstractConstraint, split
from .solvers import breakdown_of, solver_name, time_limit

LONGEST = 100  # rows of a circle that is looked for
MANY = 6  # rows that are named
ROUNDED = 1e-12  # of the lengths of a circle: less than that may be what rounding left of numbers that fit
LITTLE = 1e-6  # of the largest flow: less has no part in a proof


def torn(form: Form) -> str:
    """The rows of a circle that no point satisfies, named; empty where none is found, and nothing is shown then."""
    boxes = [edge for edge in form.edges if _bounds(edge, form.d)]
    if all(np.isfinite(edge.values(np.zeros(form.shape))).all() for edge in boxes):
        return ""
    tail, head, length, *said = _roads(form, boxes)
    distance, last = np.zeros(form.n * form.d + 1), np.full(form.n * form.d + 1, -1)
    for _ in range(LONGEST):
        nearest = distance.copy()
        np.minimum.at(nearest, tail, distance[head] + length)
        taken = (distance[head] + length == nearest[tail]) & (nearest < distance)[tail]
        last[tail[taken]], distance = np.flatnonzero(taken), nearest
        road = _circle(last, head)
        lengths = [Fraction(x) for x in length[road].tolist()]
        if sum(lengths) < -ROUNDED * sum(map(abs, lengths)):
            missed = f"by {float(-sum(lengths)):.3g} in all (the least sum of their violations)"
            return f"{_named(form, boxes, *(x[road] for x in said))}, {missed}"
        if not taken.any():
            break
    return ""


def _bounds(edge: EdgeBlock, d: int) -> tuple[Array, ...]:
    """Bounds of each number of the rows of a block, as far as its set reaches along the axes, where it has one; none
    of a user's, whose conjugate may be rounded more than a circle that just closes bears."""
    if not isinstance(edge.penalty, AbstractConstraint) or edge.penalty.is_users():
        return ()
    axes = np.eye(edge.map.width(d))
    return -edge.penalty.conjugate(-axes), edge.penalty.conjugate(axes)


def _roads(form: Form, boxes: list[EdgeBlock]) -> list[Array]:
    """x_tail <= x_head + length: the ends, the length, and the block and the line of K that say so."""
    found: list[tuple[Array, ...]] = []
    for number, edge in enumerate(boxes):
        shape = edge.count, form.width(edge)
        K = edge.flat(form.d)
        turned = (np.diff(K.indptr) == 1) & (K.sum(axis=1) == -1.0)  # -x <= length is x >= -length
        line, tail, head = differences(sp.diags_array(np.where(turned, -1.0, 1.0)) @ K)
        center = np.zeros(shape) if edge.center is None else edge.center
        low, high = ((np.broadcast_to(end, shape) + center).ravel()[line] for end in _bounds(edge, form.d))
        low, high = np.where(turned[line], (-high, -low), (low, high))
        block = np.full(len(line), number)
        found += [(tail, head, high, block, line), (head, tail, -low, block, line)]
    every = [np.concatenate(x) for x in zip(*found, strict=True)]
    return [x[np.isfinite(every[2])] for x in every]


def _circle(last: Array, head: Array) -> list[int]:
    """The roads around a circle of those by which numbers were reached last, where there is one."""
    nowhere = len(last)
    far = np.append(np.append(head, nowhere)[last], nowhere)
    for _ in range(nowhere.bit_length()):
        far = far[far]
    at, road = int(far.min()), list[int]()
    while at < nowhere and (not road or head[road[-1]] != at):
        road.append(int(last[head[road[-1]] if road else at]))
    return road


def _named(form: Form, edges: Sequence[EdgeBlock], block: Array, line: Array) -> str:
    """Rows by the names of their terms and their own, some of them."""
    rows, names = dict[str, None](), names_apart(edges)
    for edge, name, r in ((edges[k], names[k], r) for k, r in zip(block.tolist(), line.tolist(), strict=True)):
        row, j = divmod(r, form.width(edge))
        column = f" on {form.space.names[edge.columns(form.d)[j]]!r}" if edge.map.edges and form.d > 1 else ""
        rows[f"{name} at {form.keys(edge)[row]!r}{column}"] = None
    return "; ".join([*rows][:MANY]) + f" and {len(rows) - MANY} more" * (len(rows) > MANY)


def names_apart(edges: Sequence[EdgeBlock]) -> list[str]:
    """The names of the terms, with the formula of the penalty where there are several of one name."""
    times = Counter(edge.name for edge in edges)
    formulas = (notation_of(edge.penalty).value.replace("%z", "z") if times[edge.name] > 1 else "" for edge in edges)
    return [f"{edge.name} {formula}".rstrip() for edge, formula in zip(edges, formulas, strict=True)]


def rows_apart(form: Form, solver: str, seconds: float | None) -> str:
    """The rows that no point satisfies together, where that is proved: those with a part in it; empty where that is not
    known."""
    edges = tuple(edge for edge in form.edges if isinstance(edge.penalty, AbstractConstraint))
    if all(edge.map.noun == "edge" for edge in edges):
        return ""  # 0 satisfies what is between nodes
    constraints = replace(form, samples=(), edges=edges)
    flows = _residuals(constraints, solver, seconds)
    size = max((float(np.abs(u).max(initial=0.0)) for u in flows), default=0.0) if flows is not None else 0.0
    if flows is None or not (np.isfinite(size) and size > 0.0):
        return ""
    found = Enclosure(constraints)(DualPoint(tuple(u / size for u in flows), ()))
    if not (found.lower > 0.0).any():
        return ""
    lines = [np.flatnonzero(np.abs(u) > LITTLE * size) for u in flows]
    return _named(form, edges, np.repeat(np.arange(len(lines)), [len(x) for x in lines]), np.concatenate(lines))


def _residuals(form: Form, solver: str, seconds: float | None) -> tuple[Array, ...] | None:
    """The amounts by which the best point misses the constraints of each edge block, in units of the centers."""
    size = max([1.0, *(float(np.abs(edge.center).max()) for edge in form.edges if edge.center is not None)])
    w = cp.Variable(form.shape)
    missed: list[Any] = []
    constraints: list[Any] = []
    for edge in form.edges:
        z, s = (cp.Variable((edge.count, form.width(edge))) for _ in range(2))
        center = 0.0 if edge.center is None else edge.center / size
        Kw = cp.reshape(edge.flat(form.d) @ cp.vec(w, order="C"), z.shape, order="C")
        constraints += [Kw - center - z == s, *split(edge.penalty.cvxpy(size * z))[1]]
        missed.append(s)
    problem = cp.Problem(cp.Minimize(sum(cp.sum_squares(s) for s in missed)), constraints)
    with warnings.catch_warnings(action="ignore"):  # "may be inaccurate": the enclosure decides
        try:
            breakdown_of(lambda: problem.solve(solver=solver_name(solver), **time_limit(solver, seconds)))
        except cp.SolverError:
            return None
    found = [s.value for s in missed]
    return None if any(s is None for s in found) else tuple(np.asarray(s, dtype=float) for s in found)


def overflow(form: Form) -> str:
    """The loss that is infinite in floats at a point that satisfies all constraints, as the cause of a failure."""
    w = feasible(form, np.zeros(form.shape))
    for block in form.samples:
        with np.errstate(over="ignore", invalid="ignore"):
            x = block.predict(w)
            lost = np.flatnonzero(~np.isfinite(block.scale * block.loss.value(x, block.y)))
        if len(lost):
            r = lost[0]
            largest = float(x[r].flat[np.argmax(np.abs(x[r]))])
            place = f"node {form.labels[block.node[r]]!r}" if block.map.noun == "sample" else f"row {r}"
            return (
                f"{block.loss.called()} is beyond the largest float at {place}, whose constraints lead to "
                f"a predictor of {largest:.3g}"
            )
    return ""
