"""The interior-point method: Newton steps on the optimality conditions of the whole problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...form import Form, Held, parts_of
from ...network import LocalView
from ...running import AbstractIteration, Point, Start
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ._interior import Interior, InteriorBlocks, State, fits
from .cones import TINY, lengths

PATIENCE = 60  # steps in which complementarity falls to a half, where steps lead anywhere
FAR = 100.0  # times a gap: relative complementarity from which on it is not looked for
CLEARLY = 0.03  # of the share of a capacity that is left, below which a length relative to the longest is taken for 0


@dataclass(frozen=True)
class InteriorPoint(AbstractIteration):
    """Newton's method on the whole problem, in one place: a second exact route, for smooth losses.

    With t_e >= ||z_e||, z = Kw - center, the model is a sum of smooth terms f(w) and of c_e t_e over edges with kinks.
    Its optimality conditions, with complementarity relaxed to mu > 0, are

        grad f(w) + K'u = 0,   s_e o y_e = mu (1, 0),   s_e = (t_e, z_e),   y_e = (c_e, -u_e)

    with s_e and y_e in the second-order cone (`L1`: one cone per coordinate; see `pieces` of penalties; a sum of such
    penalties, see `parts`, is as many terms; `LInf`: t_e - z_j >= 0 and t_e + z_j >= 0 for each j). Bounds
    (`NonNegative`, `Box`) are numbers s >= 0 and y >= 0, which w need not meet at first; nodes that `Zero` fixes do not
    move. A step solves
    their linearisation, symmetrised by the scaling of Nesterov and Todd, with one sparse factorisation of

        H + K' diag(D_e) K    or of    [ H   K'        ]
                                       [ K   -D_e^-1   ],

    H the Hessian of f, the latter for rows that are no edges (see `graphreg.w`), whose squares would lose digits. It
    predicts and corrects (Mehrotra 1992), and then corrects on, with the same factors, while that lengthens the step
    (Gondzio 1996; Colombo and Gondzio 2008). Where losses that are not quadratic turn out to bend more along a step
    than their Hessian says, it is cut back, and the next Hessians are moved towards the largest ones.
    Flows and prices follow from the linearisation, so that they are conserved and need no repair.

    A round is one step; nothing is decentralised about it. On a `path` a start between the iterates of two
    neighbouring strengths needs about four steps.

    References
    ----------
    Vandenberghe, The CVXOPT linear and quadratic cone program solvers, 2010 (scalings and directions).
    """

    needs = (
        "smooth losses; penalties L1, L2, LInf, smooth ones, sums of these; bounds, fixed nodes; factors of a matrix "
        "of all parameters in memory"
    )
    sends = "nothing: all data are in one place"
    central: ClassVar[bool] = True
    rows = True
    every: ClassVar[int] = 1
    most_rounds: ClassVar[int] = 100

    def missing(self, form: Form) -> tuple[str, ...]:
        rough = form.losses_beside(AbstractSmoothLoss)
        out = [f"{name} has no second derivatives, which Newton steps need" for name in rough]
        out += [
            f"{edge.name} has the penalty {edge.penalty.called()}, and the method takes L1, L2 and smooth ones, LInf, "
            "bounds, and fixed nodes"
            for edge in form.edges
            if parts_of(edge, fits(form)) is None
        ]
        out += [f"{name} gives a node two values" for name in Held(form).torn]
        return tuple(dict.fromkeys(out))

    def centres(self) -> bool:
        return True

    def init(self, view: LocalView, start: Start | None) -> State:
        blocks = InteriorBlocks(view)
        w, flows = (np.zeros(view.form.shape), None) if start is None else start
        w = w if blocks.held is None else blocks.held.at(w)
        flows = flows if blocks.form is view.form else None
        far, pull = view.form.step_length, blocks.typical_pull(w)
        s, y = [], []
        for cone in blocks.cones:
            z = blocks.differences(cone, w)
            if cone.side:
                bounds = cone.of is not None  # begun as far inside as w is outside
                s.append(np.maximum(z, max(far, -float(z.min()))) if bounds else z + far)
                y.append(np.full(z.shape, pull) if bounds else cone.even())
                continue
            s.append(np.vstack([np.sqrt(far**2 + lengths(z) ** 2), z]))
            u = np.zeros_like(z) if flows is None else cone.columns(flows[cone.number])
            y.append(np.vstack([cone.c, -0.5 * u * np.minimum(1.0, cone.c / np.maximum(lengths(u), TINY))]))
        return blocks.state(Interior(w, tuple(s), tuple(y)))

    def resume(self, view: LocalView, state: State, start: Start | None) -> State:
        """The state from the early iterate there, its flows as large a share of the capacities here as there."""
        del start
        cones, early = InteriorBlocks(view), state.early
        return cones.state(replace(early, y=cones.resized(early.y)))

    def step(self, state: State) -> State:
        if not state.stuck:
            try:
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    after = InteriorBlocks(state.view, state.most).step(state)
                fallen = after.gap < 0.5 * state.fell[1]
                return replace(after, fell=(after.round, after.gap) if fallen else state.fell)
            except ArithmeticError:  # where many losses are flat, say
                state = replace(state, damped=1.0, stuck=state.damped == 1.0)
        return replace(state, round=state.round + 1)

    def inside_flows(self, state: State) -> tuple[Array, ...]:
        blocks = InteriorBlocks(state.view, state.most)
        flows = list(state.point[1] or ())
        for cone, s, y in zip(blocks.cones, state.at.s, state.at.y, strict=True):
            if cone.side:
                continue
            slack, size = 1.0 - lengths(y[1:]) / cone.c, s[0] / max(float(s[0].max(initial=0.0)), TINY)
            inside = np.where(slack * CLEARLY > size, 0.0, cone.c)  # of a cone only one of the two tends to 0
            kept = np.broadcast_to(inside / np.sqrt(len(y) - 1.0), y[1:].shape)
            flows[cone.number] = blocks.rows(cone.number, kept)
        return blocks.joined(flows)

    def early(self, state: State, gap: float) -> bool:
        return not state.stuck and 0.0 < FAR * gap < state.gap < np.inf

    def over(self, state: State) -> bool:
        still = 0.0 < state.gap < np.inf and state.round > state.fell[0] + PATIENCE  # 0 where nothing has cones
        return state.stuck or still

    def point(self, state: State) -> Point:
        w, flows, prices = state.point
        return w, InteriorBlocks(state.view, state.most).joined(flows or ()), prices
