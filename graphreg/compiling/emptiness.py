"""The reason for which there is no point with a finite objective: the constraints exclude each other, which is shown
and not only computed, or a loss is beyond what floats can hold.

The constraints alone, with no losses, are a problem whose optimum is 0 where a point satisfies them. The least squares

    minimise sum_e 1/2 ||s_e||^2    subject to    (K_e w - center_e) - s_e in C_e

always have a solution, and their residuals are flows u = s with K'u = 0 and Q(u) = -sum_e sup over C_e + center_e of
<u_e, .> = ||s||^2 (the projection theorem). Next to these an enclosed Q(u) > 0 proves that no point satisfies all
constraints: a Farkas certificate (Boyd and Vandenberghe, Convex Optimization, section 5.8).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.lazy import cp
from ..certificate import Enclosure, feasible
from ..form import DualPoint, Form
from ..terms import Array
from ..terms.penalties import AbstractConstraint, split
from .solvers import breakdown_of, solver_name, time_limit


def proves_no_point(form: Form, solver: str, seconds: float | None) -> bool:
    """True where it is proved that no point satisfies all constraints; False where that is not known."""
    edges = tuple(edge for edge in form.edges if isinstance(edge.penalty, AbstractConstraint))
    if all(edge.map.noun == "edge" for edge in edges):
        return False  # 0 satisfies what is between nodes
    constraints = replace(form, samples=(), edges=edges)
    flows = _residuals(constraints, solver, seconds)
    size = max((float(np.abs(u).max(initial=0.0)) for u in flows), default=0.0) if flows is not None else 0.0
    if flows is None or not (np.isfinite(size) and size > 0.0):
        return False
    found = Enclosure(constraints)(DualPoint(tuple(u / size for u in flows), ()))
    return bool((found.lower > 0.0).any())


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
