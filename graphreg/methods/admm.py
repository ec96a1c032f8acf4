"""The network-lasso ADMM, with over-relaxation and an adapted penalty parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..checks import checked, inside, positive
from ..form import Form
from ..lowering.nodeprox import without_prox
from ..lowering.site import Memories, Scales, Site
from ..terms.records import Array
from ._base import AbstractIteration, Point, Start
from ._halpern import Halpern, difference, distances

FIRST_ADAPTATION = 10
DAMPING = 0.7  # rho <- ratio^.7 rho^.3
CHANGE = 1.3  # the least factor that is worth a change
LONELY = 1e-6  # the copies by which a node without edges steps: a proximal-point iteration with a long step


@dataclass(frozen=True)
class State:
    """Iterates, in the variables of `ADMM`."""

    site: Site
    round: int
    w: Array  # outputs of the nodes' prox: un-relaxed, these are certified
    q: Array  # w over-relaxed; (q_t + q_h) / 2 is the mean of the copies of an edge
    u: tuple[Array, ...]  # flows, rho y_t: outputs of the edges' prox, these are certified
    t: tuple[Array, ...]  # flows as the nodes see them: u and by how much parameters and copies disagree
    memory: Memories  # of the node proxes
    rho: float
    next_adaptation: int
    q_last: Array  # at the last adaptation; or the anchor (q, x) of the last restart
    u_last: tuple[Array, ...]
    halpern: Halpern | None  # None: no restarts


@dataclass(frozen=True)
class ADMM(AbstractIteration):
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
    t = u + sigma (K q - center - d) and Moreau's identity for (3), is

        w+ = prox of tau f  at  q - tau K't,      tau_i = 1 / (rho deg_i)
        q+ = q + relaxation (w+ - q)
        x  = u + (relaxation - 1) (t - u)
        u+ = prox of sigma g*  at  x + sigma (K q+ - center)
        t+ = 2 u+ - x

    Edges to the ground have one copy: the same with sigma = rho. Coordinates that an edge does not couple have copies
    that no penalty holds, z = q: they leave (1) where it is, and need no variables. Both ends of an edge keep its u
    and t, and compute the same; so a round sends q+ across every edge, in both directions, and nothing else.

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
    """

    needs = "losses that are smooth or piecewise linear; any penalty, any graph"
    sends = "the over-relaxed parameters, both ways across every edge: the coordinates that it couples"

    rho: float | None = checked(positive, None)
    relaxation: float = checked(inside("(0, 2)"), 1.7)
    restarts: bool | None = None
    polish: bool = True

    def missing(self, form: Form) -> tuple[str, ...]:
        return without_prox(form)

    def polishes(self) -> bool:
        return self.polish and self.rho is None

    def centres(self) -> bool:
        return self.rho is None

    def init(self, site: Site, start: Start | None) -> State:
        w, flows = (np.zeros(site.form.shape), None) if start is None else start
        u = site.form.nothing().flows if flows is None else flows  # t = u: the copies are those of w
        scales = site.scales() if self.rho is None else None
        rho = self.rho or _first_rho(scales)
        restarts = scales is not None and scales.kinks if self.restarts is None else self.restarts
        halpern = Halpern() if restarts else None
        return State(site, 0, w, w, u, u, site.memory(), rho, FIRST_ADAPTATION, w, u, halpern)

    def resume(self, site: Site, state: State, start: Start | None) -> State:
        """With the penalty parameter of the last run and, where the losses are the same, what their proxes remember."""
        new = self.init(site, start)
        memory = state.memory if site.same_losses(state.site) else new.memory
        return replace(new, rho=state.rho, memory=memory)

    def step(self, state: State) -> State:
        site, rho, over = state.site, state.rho, self.relaxation
        if state.halpern is not None:
            return self._pulled(state, state.halpern)
        w, memory = self._nodes(state)
        q = site.engine.exchange(state.q + over * (w - state.q))
        flows: list[Array] = []
        seen: list[Array] = []
        for edge, u, t, c in zip(site.form.edges, state.u, state.t, site.weights, strict=True):
            sigma = rho if edge.ground else 0.5 * rho
            x = t - u  # in place from here on: these are the largest arrays of a round
            x *= over - 1.0
            x += u
            v = edge.difference(q)
            v *= sigma
            v += x
            flows.append(edge.penalty.dual_prox(v, np.full(len(c), sigma), c))
            np.subtract(flows[-1], x, out=x)
            x += flows[-1]
            seen.append(x)
        new = replace(state, round=state.round + 1, w=w, q=q, u=tuple(flows), t=tuple(seen), memory=memory)
        return self._adapt(new) if self.rho is None and new.round == new.next_adaptation else new

    def _nodes(self, state: State) -> tuple[Array, Memories]:
        """The nodes' half of a round, (1)."""
        site = state.site
        tau = 1.0 / (state.rho * np.maximum(site.degree, LONELY))
        pull = np.zeros(site.form.shape)
        for edge, t in zip(site.form.edges, state.t, strict=True):
            edge.add_adjoint(t, pull)
        return site.prox(state.q - tau[:, None] * pull, tau, state.w, state.memory)

    def _pulled(self, state: State, halpern: Halpern) -> State:
        """A round on the pair (q, x), whose un-relaxed image is (w+, u): pulled towards the anchor, or restarted."""
        site, rho, over = state.site, state.rho, self.relaxation
        w, memory = self._nodes(state)
        xs = [2.0 * u - t for u, t in zip(state.u, state.t, strict=True)]
        relaxed = (a + over * (b - a) for a, b in zip((state.q, *xs), (w, *state.u), strict=True))
        q, *x = halpern.pull(tuple(relaxed), (state.q_last, *state.u_last))
        last = {"q_last": state.q_last, "u_last": state.u_last}
        halpern = halpern.step()
        if halpern.looks:
            moves = ((a - w, difference(b, state.u)) for a, b in ((state.q, xs), (state.q_last, state.u_last)))
            (dq, dx), (dz, dy) = distances(site, *moves)
            looked = halpern.looked(float(np.sqrt(dq * rho + dx / rho)), state.round + 1)
            if looked is None:
                q, x, last = w, list(state.u), {"q_last": w, "u_last": state.u}
                rho *= 1.0 if self.rho is not None else _factor(rho, dz, dy)
            halpern = looked or Halpern()
        q = site.engine.exchange(q)
        flows: list[Array] = []
        for edge, each, c in zip(site.form.edges, x, site.weights, strict=True):
            sigma = rho if edge.ground else 0.5 * rho
            flows.append(edge.penalty.dual_prox(each + sigma * edge.difference(q), np.full(len(c), sigma), c))
        seen = tuple(2.0 * u - each for u, each in zip(flows, x, strict=True))
        more = {"round": state.round + 1, "rho": rho, "halpern": halpern, **last}
        return replace(state, w=w, q=q, u=tuple(flows), t=seen, memory=memory, **more)

    def point(self, state: State) -> Point:
        return state.w, state.u, state.site.prices(state.w, state.memory)

    def _adapt(self, state: State) -> State:
        """rho moves towards ||rho dy|| / ||dz||, both over all copies, d the travel since the last adaptation.

        Copies and flows stay; t - u, which is sigma times their disagreement, follows rho.
        """
        travel = distances(state.site, (state.q - state.q_last, difference(state.u, state.u_last)))
        factor = _factor(state.rho, *travel[0])
        t = state.t if factor == 1.0 else tuple(u + factor * (t - u) for u, t in zip(state.u, state.t, strict=True))
        later = state.round + max(FIRST_ADAPTATION, state.round // 4)
        return replace(state, rho=factor * state.rho, t=t, next_adaptation=later, q_last=state.q, u_last=state.u)


def _factor(rho: float, dz: float, dy: float) -> float:
    """By how much rho changes after copies and multipliers have travelled so far."""
    if not (dz > 0 and dy > 0):
        return 1.0
    factor = float((np.sqrt(dy / dz) / rho) ** DAMPING)
    return factor if max(factor, 1.0 / factor) > CHANGE else 1.0


def _first_rho(scales: Scales | None) -> float:
    if scales is None or not (scales.degree and scales.curvature):
        return 1.0
    return scales.curvature / scales.degree
