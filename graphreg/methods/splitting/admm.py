"""The network-lasso ADMM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ...checks import checked, inside, positive
from ...form import Form
from ...network import Memories
from ...oracles import without_prox
from ...terms import Array
from ._halpern import Flows, Iterate
from .fixed_point import AbstractFixedPoint, Acceleration, State


@dataclass(frozen=True)
class ADMM(AbstractFixedPoint):
    """Network-lasso ADMM (Hallac, Leskovec and Boyd, KDD 2015, section 3), for every loss, penalty and structure.

    Each edge e = (t, h) has a copy of the parameters of both ends, z_t = w_t and z_h = w_h, with scaled multipliers
    y_t and y_h. A round is

        w_i+  = prox of f_i / (rho deg_i)  at the mean over the edges of i of  z_i - y_i                           (1)
        (z_t+, z_h+) = argmin g_e(z_t - z_h) + rho/2 (||z_t - a||^2 + ||z_h - b||^2),   a = r_t + y_t,  b = r_h + y_h
        y_t+  = a - z_t+,   y_h+ = b - z_h+,      r = relaxation w+ + (1 - relaxation) z                           (2)

    (over-relaxation: Boyd et al., Distributed optimization via ADMM, 3.4.3). As
    ||z_t - a||^2 + ||z_h - b||^2 = 1/2 ||z_t + z_h - a - b||^2 + 1/2 ||d - (a - b)||^2 with d = z_t - z_h,

        z_t+ + z_h+ = a + b,      d+ = prox of g_e / sigma  at  a - b,      sigma = rho/2.                         (3)

    So y_t+ + y_h+ = 0: one flow u = rho y_t = -rho y_h per edge, which is a subgradient of g_e at d (the certificate's
    u_e), and (z_t + z_h)/2 follows the parameters, (q_t + q_h)/2 with q+ = q + relaxation (w+ - q). What is left, with
    x = u - sigma (K q - center - d) and Moreau's identity for (3), is

        w+ = prox of tau f  at  q - tau K'(2 u - x),      tau_i = 1 / (rho deg_i)                                  (1)
        (q+, x+) = (q, x) + relaxation ((w+, u) - (q, x))
        u+ = prox of sigma g*  at  x+ + sigma (K q+ - center)                                                  (2), (3)

    Edges to the ground have one copy: the same with sigma = rho. Coordinates that an edge does not couple have copies
    that no penalty holds, z = q: they leave (1) where it is, and need no variables. Both ends of an edge keep its u
    and x, and compute the same; so a round sends q+ across every edge, in both directions, and nothing else.

    With relaxation 1 this is the primal-dual method of Chambolle and Pock with steps 1 / (rho deg_i) and rho/2, the
    dual step first: `PrimalDual` with balance 1/rho, up to the order of the two half steps.

    Parameters
    ----------
    rho : float, optional
        The penalty parameter, in units of curvature. None (default) starts at mean curvature over mean degree and
        adapts: at rounds 10, 20, ..., later every quarter of the rounds so far, rho moves towards the ratio of the
        distances that multipliers and copies travelled since the last change. (The balance of the residuals of one
        round, Boyd et al., 3.4.1, takes a quarter more rounds on random problems.)
    relaxation : float
        In (0, 2); 1.7 by default. ``ADMM(rho=1, relaxation=1)`` is the iteration of the paper.
    restarts : bool, optional
        Whether the pairs (q, x) are pulled towards an anchor that moves up at restarts (Halpern's iteration), where
        rho then adapts. None (default): where a loss has kinks and no rho is given.
    polish : bool
        As for `PrimalDual`: now and then a central step guesses which differences vanish. Never with a given rho.

    Examples
    --------
    >>> run = problem.solve(gr.ADMM(), gap=1e-8)
    >>> run.status, run.certificate.relative_gap <= 1e-8
    ('certified', True)
    """

    needs = "losses that are smooth or piecewise linear; any penalty, any graph"
    sends = "the over-relaxed parameters, both ways across every edge: the coordinates that it couples"
    rows = True

    rho: float | None = checked(positive, None)
    relaxation: float = checked(inside("(0, 2)"), 1.7)
    restarts: bool | None = None
    polish: bool = True

    def missing(self, form: Form) -> tuple[str, ...]:
        return without_prox(form)

    def polishes(self) -> bool:
        return self.polish and self.rho is None

    @cached_property
    def acceleration(self) -> Acceleration:
        return Acceleration(self.relaxation, self.restarts, None if self.rho is None else 1.0 / self.rho, pace=4)

    def image(self, state: State) -> tuple[Array, Flows, Memories]:
        """(w+, u), of which u is known from the last round."""
        view, q, x, u = state.view, state.x.w, state.x.u, state.hat.u
        t = (2.0 * after - before for after, before in zip(u, x, strict=True))
        tau = view.steps(state.s)
        w, memory = view.prox(q - tau[:, None] * view.adjoint(t), tau, state.hat.w, state.memory)  # (1)
        return w, u, memory

    def ready(self, state: State) -> State:
        """The edges' half of T (q+, x+): u+."""
        q = state.view.engine.exchange(state.x.w)
        u = state.view.dual_prox(state.x.u, q, state.s)  # (2), (3)
        return replace(state, x=Iterate(q, state.x.u), hat=Iterate(state.hat.w, u))

    def travelled(self, state: State) -> Iterate:
        return Iterate(state.x.w, state.hat.u)

    def rebalanced(self, state: State, s: float) -> State:
        """The state with another balance: copies and flows stay; u - x, which is sigma times their disagreement,
        follows rho."""
        factor, pairs = state.s / s, zip(state.hat.u, state.x.u, strict=True)
        x = Iterate(state.x.w, tuple(u - factor * (u - before) for u, before in pairs))
        return replace(state, s=s, x=x)
