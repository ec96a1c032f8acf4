"""The interior-point method: Newton steps on the optimality conditions of the whole problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...form import Form, Held, parts_of
from ...network import LocalView
from ...running import AbstractIteration, Costs, Point, Start
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import row_norm
from ._interior import InteriorBlocks, State, fits, has_pieces
from .kinks import NormCones

LITTLE = 1e-2  # of the largest parameters: beside it differences are large, where all nodes may be one
PATIENCE = 15  # steps in which complementarity or the imbalance falls to a half, where steps lead anywhere


@dataclass(frozen=True)
class InteriorPoint(AbstractIteration):
    """Newton's method on the whole problem, in one place: a second exact route.

    With t_e >= ||z_e||, z = Kw - center, the model is a sum of smooth terms f(w) and of c_e t_e over edges with kinks.
    Its optimality conditions, with complementarity relaxed to mu > 0, are

        grad f(w) + K'u = 0,   s_e o y_e = mu (1, 0),   s_e = (t_e, z_e),   y_e = (c_e, -u_e)

    with s_e and y_e in the second-order cone (`L1`: one cone per coordinate; see `pieces` of penalties; a sum of such
    penalties, see `parts`, is as many terms; `LInf`: t_e - z_j >= 0 and t_e + z_j >= 0 for each j). Bounds
    (`NonNegative`, `Box`) are numbers s >= 0 and y >= 0, which w need not meet at first; nodes that `Zero` fixes do not
    move. Losses whose derivative is piecewise linear (Huber, quantile, hinges) are boxes: each piece is
    max over 0 <= b <= width of b r - q b^2 / 2, and b and width - b are such numbers y. A step solves
    their linearisation, symmetrised by the scaling of Nesterov and Todd, with one sparse factorisation of

        H + K' diag(D_e) K    or of    [ H   K'        ]
                                       [ K   -D_e^-1   ],

    H the Hessian of f, the latter for rows that are no edges (see `graphreg.w`), whose squares would lose digits; a
    sample of boxes adds x x' / (q + z_b / b + z_c / (width - b)), z their multipliers. It
    predicts and corrects (Mehrotra 1992), and then corrects on, with the same factors, while that lengthens the step
    (Gondzio 1996; Colombo and Gondzio 2008). Where smooth losses turn out to bend more along a step than their Hessian
    says, it is cut back.
    Flows and prices follow from the linearisation, so that they are conserved and need no repair; what rounding of the
    factors leaves of an imbalance is solved for again with the same ones (iterative refinement). Where edges bend a
    column so much more than the losses do that factors lose the latter, as they do one of 1e-9, moves of all nodes
    together are unknowns of their own.

    A round is one step; nothing is decentralised about it. On a `path` a start between the iterates of two
    neighbouring strengths needs about four steps.

    References
    ----------
    Vandenberghe, The CVXOPT linear and quadratic cone program solvers, 2010 (scalings and directions).

    Examples
    --------
    >>> run = problem.solve(gr.InteriorPoint(), gap=1e-9)
    >>> run.rounds < 30, run.certificate.relative_gap <= 1e-9
    (True, True)
    """

    needs = (
        "losses that are smooth, or of lines and parabolas; penalties L1, L2, LInf, costs by unit, smooth ones, sums "
        "of these; bounds, fixed nodes; factors of a matrix of all parameters in memory"
    )
    sends = "nothing: all data are in one place"
    central: ClassVar[bool] = True
    rows = True
    every: ClassVar[int] = 1
    most_rounds: ClassVar[int] = 100

    def missing(self, form: Form) -> tuple[str, ...]:
        rough = [b for b in form.samples if not isinstance(b.loss, AbstractSmoothLoss) and not has_pieces(b)]
        out = [f"{b.name} has neither second derivatives, which Newton steps need, nor says its bends" for b in rough]
        out += [
            f"{edge.name} has the penalty {edge.penalty.called()}, and the method takes L1, L2 and smooth ones, LInf, "
            "costs by unit, bounds, and fixed nodes"
            for edge in form.edges
            if parts_of(edge, fits(form)) is None
        ]
        out += [f"{name} gives a node two values" for name in Held(form).torn]
        return tuple(dict.fromkeys(out))

    def centres(self) -> bool:
        return True

    def cost(self, costs: Costs) -> tuple[float, float]:
        return costs.interior, costs.arrays + costs.factors

    def init(self, view: LocalView, start: Start | None) -> State:
        blocks = InteriorBlocks.of(view)
        w, flows = (np.zeros(view.form.shape), None) if start is None else start
        w = w if blocks.held is None else blocks.held.at(w)
        flows = flows if blocks.form is view.form else None
        return blocks.begun(w, flows)

    def resume(self, view: LocalView, state: State, start: Start | None) -> State:
        """The state from the early iterate there, its flows as large a share of the capacities here as there."""
        blocks, early = InteriorBlocks.of(view), state.early
        y = tuple(cones.resized(each) for cones, each in zip(blocks.cones.values(), early.y, strict=True))
        return blocks.state(replace(early, y=y))

    def step(self, state: State) -> State:
        if not state.stuck:
            try:
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    after = InteriorBlocks.of(state.view).step(state)
                least = state.fell[1:]
                now = after.gap, float(np.abs(after.slope).max(initial=0.0))
                fallen = any(a < 0.5 * b for a, b in zip(now, least, strict=True))
                return replace(after, fell=(after.round, *map(min, now, least)) if fallen else state.fell)
            except ArithmeticError:  # where many losses are flat, say
                state = replace(state, stuck=True)
        return replace(state, round=state.round + 1)

    def inside_flows(self, state: State) -> tuple[Array, ...]:
        blocks = InteriorBlocks.of(state.view)
        flows, many = list(state.point[1] or ()), len(blocks.form.samples)
        unit = LITTLE * float(row_norm(state.point[0]).max(initial=0.0))
        for (k, cones), s, y in zip(blocks.cones.items(), state.at.s, state.at.y, strict=True):
            if isinstance(cones, NormCones) and not cones.is_soft:
                flows[k - many] = cones.kept(s, y, unit)
        return blocks.joined(flows)

    def known_gap(self, state: State) -> tuple[float, float] | None:
        return (state.gap, state.primal) if not state.stuck and 0.0 < state.gap < np.inf else None

    def over(self, state: State) -> bool:
        still = 0.0 < state.gap < np.inf and state.round > state.fell[0] + PATIENCE  # 0 where nothing has cones
        return state.stuck or still

    def point(self, state: State) -> Point:
        w, flows, prices = state.point
        return w, InteriorBlocks.of(state.view).joined(flows or ()), prices
