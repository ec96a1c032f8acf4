"""The linear system of squared losses and squared penalties alone: one Newton step, by rounds or by factors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.clock import alarm, at_least
from ..certificate import Certifier, System, center, centred
from ..form import DualPoint, EdgeBlock, Form, Held, fixes
from ..oracles import NewtonSystem
from ..running import AbstractDirectMethod, Costs, Outcome, Task
from ..terms import Array
from ..terms.losses import AbstractQuadraticLoss
from ..terms.penalties import FlowDomain, squares

REFINEMENTS = 5
ENOUGH = 1e-13  # relative: the residual that is left to the flows
CLOSE, ROUNDED = 1e-13, 1e-16  # of a residual, and of the first: what conjugate gradients leave
MOST = 4000  # rounds of these


@dataclass(frozen=True)
class LinearSystem(AbstractDirectMethod):
    """The minimiser of a sum of squares: what makes the gradient vanish, by conjugate gradients or one factorisation.

        (sum_r s_r x_r x_r'  +  K' C Q K) w  =  sum_r s_r x_r (y_r - o_r)  +  K' C Q center

    with a Gram matrix per node, and a Laplacian of the graph for each penalty ``1/2 z'Qz`` (`SquaredL2`, `Quadratic`).
    Rows of any kind are part of K. Nodes that `Zero` fixes are taken out, and the others solved for.
    It is solved around the best common model, and refined while that makes the residual smaller: by conjugate
    gradients, preconditioned by the blocks of nodes, while as many rounds as take as long as factors promise to be
    enough, else by factors of the system of `InteriorPoint`.
    Flows and prices are the gradients there; where a bound needs it they are balanced by one more solve, so that they
    are conserved and need no repair.

    References
    ----------
    Zhu, Ghahramani and Lafferty, Semi-supervised learning using Gaussian fields and harmonic functions, ICML 2003.

    Examples
    --------
    >>> smooth = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.SquaredL2()))
    >>> smooth.solve(gr.LinearSystem()).table().round(2)
          rain  temp
    node
    a     0.97 -0.01
    b     0.92 -0.01
    c    -0.70 -0.03
    d    -1.03  0.03
    """

    needs = (
        "squared losses or MeanLoss; penalties SquaredL2 or Quadratic alone, nodes may be fixed (Zero); factors of a "
    )
    needs += "sparse matrix in memory"
    refusing = "a factorisation needs all data in one place", "a factorisation cannot be resumed"
    rows = True

    def missing(self, form: Form) -> tuple[str, ...]:
        out = [f"{name} is no squared loss" for name in form.losses_beside(AbstractQuadraticLoss)]
        out += [
            f"{edge.name} has the penalty {edge.penalty.called()}, which is no sum of squares"
            for edge in form.edges
            if squares(edge.penalty, form.width(edge)) is None and not fixes(form, edge)
        ]
        out += [f"{name} gives a node two values" for name in Held(form).torn]
        return tuple(dict.fromkeys(out))

    def cost(self, costs: Costs) -> tuple[float, float]:
        return costs.step, costs.arrays + costs.factors

    def run(self, task: Task) -> Outcome:
        began, form, certifier, gap = time.perf_counter(), task.form, task.certifier, task.budget.gap
        v = center(form)[0]
        there = centred(form, v) if v.any() else form
        with alarm():
            w, point, hessian = minimised(there)
        best = np.where(form.free[:, None], 0.0, w + v)
        with at_least():  # losses that are strictly convex absorb what is left of the gradient
            certain = certifier.from_flows(best, point.flows, gap).holds(gap)
        if not certain:
            with alarm():
                point = balanced(there, point, hessian)
            with at_least():
                certifier.certify(best, point.flows, point.prices, gap)
                if v.any() and not certifier.best().holds(gap):  # large targets have cost the bound its last digits
                    near = Certifier(there, certifier)
                    near.certify(w, point.flows, point.prices, gap)
                    certifier.propose_from(near, v, gap)
        return Outcome(certifier.best(), certifier, "limit", seconds=time.perf_counter() - began)


def minimised(form: Form) -> tuple[Array, DualPoint, Hessian]:
    """The minimiser, the gradients there, and the Hessian."""
    held, hessian = Held(form), Hessian(form)

    def at(w: Array) -> tuple[DualPoint, Array]:
        flows = (0.0 * edge.difference(w) if fixes(form, edge) else edge.gradients(w) for edge in form.edges)
        point = DualPoint(tuple(flows), form.gradient_prices(w))
        return point, np.where(held.mask, 0.0, form.conservation(point))

    w = held.values
    point, left = at(w)
    enough = ENOUGH * np.linalg.norm(left)
    for _ in range(REFINEMENTS):
        new = w - hessian.solve(left)
        there, rest = at(new)
        if not np.linalg.norm(rest) < np.linalg.norm(left):
            break
        w, point, left = new, there, rest
        if np.linalg.norm(left) <= enough:
            break
    return w, point, hessian


def balanced(form: Form, point: DualPoint, hessian: Hessian) -> DualPoint:
    """Gradients near the minimiser, with what balances them."""
    held = Held(form)
    left = np.where(held.mask, 0.0, form.conservation(point))
    point = form.mapped(lambda _, x, by: x + by, point, hessian.system.currents(-hessian.solve(left)))
    if not held.mask.any():
        return point
    return DualPoint(held.flows(form, point.flows, form.conservation(point)), point.prices)


def affordable(form: Form) -> int:
    """How many rounds of conjugate gradients take as long as factors, as predicted."""
    costs = Costs(form)
    return int(min(costs.step / costs.conjugate, MOST))


class Hessian:
    """Solves with the Hessian of the problem: by conjugate gradients while these promise to take no longer than factors
    would; else by factors."""

    def __init__(self, form: Form) -> None:
        self.form, self.least = form, 0.0
        self.C = DualPoint(
            tuple(_weights(form, edge) for edge in form.edges),
            tuple(b.column(b.scale) + np.zeros_like(b.offset) for b in form.samples),
        )
        self.system = System(form, self.C)
        self.rounds = 0 if Held(form).mask.any() else affordable(form)

    def solve(self, left: Array) -> Array:
        size = float(np.linalg.norm(left))
        self.least = self.least or ROUNDED * size
        if self.rounds:
            tolerance = max(CLOSE, self.least / max(size, self.least))
            found, rounds = self.system.solve(left, tolerance, self.rounds, promising=True)
            if rounds < self.rounds:
                return found
            self.rounds = 0
        return self._factors(left)

    @cached_property
    def _factors(self) -> Callable[[Array], Array]:
        system = NewtonSystem(self.form, condensed=True)
        D = list(self.C.prices)
        for edge, rows in zip(self.form.edges, system.edges, strict=True):
            Q = squares(edge.penalty, k := self.form.width(edge))
            Q = np.zeros((k, k)) if Q is None else Q
            D.append(edge.weight[:, None, None] * (Q if rows.k > 1 else np.diag(Q)[:, None]))
        every = zip(D, (*system.samples, *system.edges), strict=True)
        solve = system.factorised([each.reshape(-1, rows.k, rows.k) for each, rows in every])
        return lambda left: system.matrix(solve(system.vector(left)))


def _weights(form: Form, edge: EdgeBlock) -> Array:
    """What the repair conducts as the gradients of the penalties change, (m, 1)."""
    if fixes(form, edge):
        return np.zeros((edge.count, 1))
    alike = type(edge.penalty.domain).conduct is FlowDomain.conduct  # else Q is in it
    return edge.weight[:, None] * (squares(edge.penalty, form.width(edge))[0, 0] if alike else 1.0)  # pyright: ignore[reportOptionalSubscript]  (what is missing is refused)
