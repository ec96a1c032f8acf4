"""The reference: a naive CVXPY model with one expression per node and edge, solved tightly, and judged by numpy.

``upper`` is P, by `objective`, at a point that satisfies every constraint: a bound of the optimum whatever the solver
did. ``lower`` is the dual value that the solver reports, which is as good as the solver: answers that it calls solved
at 1e-11 were seen to differ by 2e-8. So ``lower`` says how tight the reference is, and proves nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from graphreg.datasets.plain import PlainEdge, PlainProblem, PlainSamples

from .formulas import Array, indicators
from .objective import objective, repaired

TIGHT = 1e-9  # relative
# tried in this order until the answer is tight: tolerance, factor of the objective, whether squares stay squares, and
# the longest step (shorter ones get past stalls with logistic losses)
ATTEMPTS = ((1e-11, 1.0, True, 0.99), (1e-11, 10.0, False, 0.99), (1e-10, 1.0, True, 0.9), (1e-8, 10.0, False, 0.9))


@dataclass(frozen=True)
class Reference:
    """``lower <= optimum <= upper``, the lower one on the solver's word.

    Attributes
    ----------
    upper, lower : float
    floor : float
        Gaps are relative to ``max(|upper|, floor)``; see `graphreg.certificate.common`.
    w : (n, d) array
        Feasible; upper is P there.
    status : str
        The solver's.
    """

    upper: float
    lower: float
    floor: float
    w: Array
    status: str

    @property
    def yardstick(self) -> float:
        return max(abs(self.upper), self.floor) or 1.0

    @property
    def gap(self) -> float:
        """The relative distance of the two; infinite where the solver gave nothing."""
        return abs(self.upper - self.lower) / self.yardstick if np.isfinite(self.lower) else np.inf

    @property
    def tight(self) -> bool:
        return self.status == "Solved" and self.gap <= TIGHT


def solve(plain: PlainProblem, floor: float = 0.0) -> Reference:
    """The lowest feasible point of several attempts; they end at the first that is tight."""
    inner = np.tile(plain.inner, (len(plain.nodes), 1))
    at_zero = objective(plain, np.zeros_like(inner))
    best = Reference(objective(plain, inner), -np.inf, floor, inner, "none")
    for tolerance, factor, squares, step in ATTEMPTS:
        options = {"tol_gap_abs": tolerance * 1e-3, "tol_gap_rel": tolerance, "tol_feas": tolerance, "time_limit": 60.0}
        options |= {"max_step_fraction": step, "min_terminate_step_length": 1e-8}
        found = solve_once(plain, (abs(at_zero) or 1.0) / factor, squares, options)
        if found is None:
            continue
        w, lower, status = found
        w = repaired(plain, w)
        here = Reference(objective(plain, w), lower, floor, w, status)
        if here.tight or here.upper < best.upper:
            best = here
        if best.tight:
            break
    return best


def solve_once(
    plain: PlainProblem, scale: float, squares: bool, options: dict[str, float]
) -> tuple[Array, float, str] | None:
    """The solver's point, its dual value and its status; None where it found nothing."""
    model, v = _model(plain, scale)
    data, chain, inverse = model.get_problem_data(
        cp.CLARABEL, solver_opts={"accept_unknown": True, "use_quad_obj": squares}
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": judged by `objective`
            raw = chain.solve_via_data(model, data, warm_start=False, verbose=False, solver_opts=options)
            model.unpack_results(raw, chain, inverse)
    except cp.error.SolverError:
        return None
    w = np.tile(plain.inner, (len(plain.nodes), 1))
    for i, part in enumerate(v):
        if part.value is not None:  # no term speaks of an isolated node without data
            w[i] = part.value * plain.size
    if not np.isfinite(w).all():
        return None
    lower = float(raw.obj_val_dual) + float(model.value) - float(raw.obj_val)
    return w, lower * scale, str(raw.status)


def _model(plain: PlainProblem, scale: float) -> tuple[cp.Problem, list[cp.Variable]]:
    """The problem in units of ``plain.size`` and ``scale``, one variable per node."""
    v = {label: cp.Variable(plain.d) for label in plain.nodes}
    terms: list[Any] = [loss_of(part, v[part.node], plain.size, scale) for part in plain.samples]
    constraints: list[Any] = []
    for edge in plain.edges:
        z = cp.multiply(plain.size, v[edge.tail])[edge.columns]
        if edge.head is not None:
            z = z - cp.multiply(plain.size, v[edge.head])[edge.columns]
        unit = float(np.median(plain.size))
        value, domain = penalty_of(edge, (z - edge.center) / unit, unit)
        terms += [] if value is None else [(edge.weight / scale) * value]
        constraints += domain
    return cp.Problem(cp.Minimize(sum(terms)), constraints), list(v.values())


def loss_of(part: PlainSamples, v: Any, size: Array, scale: float) -> Any:
    """The losses of a node, over ``scale``, at w = size v."""
    s = part.scale / scale
    if part.X is None:
        return sum(s[r] * cp.sum_squares(cp.multiply(size, v) - part.y[r]) / 2 for r in range(len(part.y)))
    if part.family == "multinomial":
        x = part.X @ cp.reshape(cp.multiply(size, v), (part.X.shape[1], part.classes), order="C")
        return s @ (cp.log_sum_exp(x, axis=1) - cp.sum(cp.multiply(indicators(part), x), axis=1))
    x = (part.X * size) @ v + part.offset
    match part.family:
        case "logistic":
            value = s @ cp.logistic(-cp.multiply(part.y, x))
        case "squared":
            value = cp.sum_squares(cp.multiply(np.sqrt(s), x - part.y)) / 2
        case "huber":
            value = (s * part.delta**2) @ cp.huber((x - part.y) / part.delta) / 2
        case "poisson":
            value = s @ (cp.exp(x) - cp.multiply(part.y, x))
        case "quantile":
            unit = float(np.median(size))
            r = (part.y - x) / unit
            value = (s * unit) @ cp.maximum(part.tau * r, (part.tau - 1) * r)
        case "hinge":
            value = s @ cp.pos(1 - cp.multiply(part.y, x))
        case "squared hinge":
            value = cp.sum_squares(cp.multiply(np.sqrt(s), cp.pos(1 - cp.multiply(part.y, x)))) / 2
        case _:
            raise AssertionError(part.family)
    return value


def penalty_of(edge: PlainEdge, z: Any, unit: float) -> tuple[Any, list[Any]]:
    """phi(unit z) and the constraints on z."""
    match edge.kind:
        case "L1":
            value = unit * cp.norm1(z)
        case "L2":
            value = unit * cp.norm2(z)
        case "LInf":
            value = unit * cp.norm_inf(z)
        case "AnalysisL1":
            value = unit * cp.norm1(edge.parameter @ z)
        case "SquaredL2":
            value = unit**2 * cp.sum_squares(z) / 2
        case "Quadratic":
            value = unit**2 * cp.sum_squares(edge.parameter @ z) / 2
        case "HuberNorm":
            value = edge.parameter**2 * cp.huber(unit / edge.parameter * cp.norm2(z)) / 2
        case _:
            return None, _constraint(edge, z, unit)
    return value, []


def _constraint(edge: PlainEdge, z: Any, unit: float) -> list[Any]:
    if edge.kind == "Zero":
        return [z == 0]
    if edge.kind == "Ball":
        return [cp.norm2(z) <= edge.parameter / unit]
    if edge.kind == "NonNegative":
        return [z >= 0]
    low, high = edge.parameter
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    sides = [z[below] >= low[below] / unit] if len(below) else []
    return sides + ([z[above] <= high[above] / unit] if len(above) else [])
