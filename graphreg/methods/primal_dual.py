"""The primal-dual method of GTV minimisation (Algorithm 1), with adaptive balance and over-relaxation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from ..checks import Check, checked, inside, is_number, positive
from ..errors import MethodError
from ..form import Form
from ..lowering.inexact import Accuracy, gradient_steps, without_steps
from ..lowering.nodeprox import without_prox
from ..lowering.site import Memories, Scales, Site
from ..terms.records import Array
from ._base import AbstractIteration, Point, Start
from ._halpern import Halpern, difference, distances
from ._lossy import edges_under_loss
from .tolerance import Swap, ToleratesLoss

FIRST_ADAPTATION = 10
DAMPING = 0.7  # s <- q^.7 s^.3
CHANGE = 1.3  # the least factor that is worth a change
LONELY = 1e-6  # the degree by which a node without edges steps: a proximal-point iteration with a long step
INEXACT = Check(
    "a whole number of gradient steps, a number c for the tolerance c / (t + 1)^2, or a function of the round t",
    lambda given: callable(given) or (is_number(given) and 0.0 < given < np.inf),
)
TOLERANCE = inside("[0, inf]", "a tolerance >= 0")


@dataclass(frozen=True)
class State:
    """Iterates, over-relaxed; ``w_hat`` and ``u_hat`` are the un-relaxed prox outputs, which are certified."""

    site: Site
    round: int
    w: Array
    u: tuple[Array, ...]
    w_hat: Array
    u_hat: tuple[Array, ...]
    memory: Memories  # of the node proxes; of inexact ones, the curvatures of their last steps
    s: float  # balance
    next_adaptation: int
    w_last: Array  # at the last adaptation, or restart: the anchor
    u_last: tuple[Array, ...]
    halpern: Halpern | None  # None: no restarts


@dataclass(frozen=True)
class PrimalDual(AbstractIteration, ToleratesLoss):
    """Primal-dual method (Chambolle-Pock) with diagonal steps.

        w+ = prox of tau f at  w - tau K'u
        u+ = prox of sigma g* at  u + sigma (K(2 w+ - w) - center)
        (w, u) <- (w, u) + relaxation ((w+, u+) - (w, u))

    with tau_i = s / deg_i and sigma_e = 1/(2 s) (1/s on edges to the ground): Algorithm 1 of GTV minimisation,
    equations (32) and (33), is ``PrimalDual(balance=1, relaxation=1)``.

    Parameters
    ----------
    balance : float, optional
        s, in units of 1 / curvature. None (default) starts at mean degree over mean curvature and adapts: at rounds
        10, 20, 40, ... s moves towards the ratio of the distances that w and u travelled since the last change.
    relaxation : float
        In (0, 2); 1.8 by default.
    restarts : bool, optional
        Whether points are pulled towards an anchor that moves up at restarts (Halpern's iteration), where the balance
        then adapts. None (default): where a loss has kinks and no balance is given.
    polish : bool
        Now and then guess from the flows which differences vanish, merge those nodes, and solve the small problem that
        is left by Newton's method; taken only where the certificate confirms it. Where a point is certified, what the
        flows say is fused is set to its mean, if that is better. Central steps, booked in the ledger as sums over all
        nodes. Never with a given balance, which is for following the paper's iteration, and never
        with inexact updates.
    inexact : int, float or callable, optional
        Nodes take gradient steps instead of solving for their prox: a whole number of them in each round, from the
        point of the last; or as many as bring a node within a tolerance of its prox, in the units of the parameters:
        a number c stands for the tolerance c / (t + 1)^2 in round t = 0, 1, ..., a function of t gives any other. The
        method converges where the tolerances are summable over the rounds (Condat, J. Optim. Theory Appl. 158, 2013,
        theorem 3.1; of the paper the remark on inexact updates); where they are not, it may stop short of the optimum.
        The certificate holds in any case. For smooth losses.
    """

    needs = "losses that are smooth or piecewise linear; any penalty, any graph"
    sends = "the extrapolated parameters, both ways across every edge: the coordinates that it couples"

    balance: float | None = checked(positive, None)
    relaxation: float = checked(inside("(0, 2)"), 1.8)
    restarts: bool | None = None
    polish: bool = True
    inexact: int | float | Callable[[int], float] | None = checked(INEXACT, None)

    def missing(self, form: Form) -> tuple[str, ...]:
        return without_prox(form) if self.inexact is None else without_steps(form)

    def polishes(self) -> bool:
        return self.polish and self.balance is None and self.inexact is None

    def centres(self) -> bool:
        return self.balance is None

    def init(self, site: Site, start: Start | None) -> State:
        w, flows = (np.zeros(site.form.shape), None) if start is None else start
        u = site.form.nothing().flows if flows is None else flows
        scales = site.scales() if self.balance is None else None
        s = self.balance or _first_balance(scales)
        restarts = scales is not None and scales.kinks if self.restarts is None else self.restarts
        halpern = Halpern() if restarts else None
        memory = site.memory() if self.inexact is None else (None,)
        return State(site, 0, w, u, w, u, memory, s, FIRST_ADAPTATION, w, u, halpern)

    def resume(self, site: Site, state: State, start: Start | None) -> State:
        """With the balance of the last run and, where the losses are the same, what their proxes remember."""
        new = self.init(site, start)
        memory = state.memory if site.same_losses(state.site) else new.memory
        return replace(new, s=state.s, memory=memory)

    def step(self, state: State) -> State:
        site, rho = state.site, self.relaxation
        w_hat, memory = self._nodes(state)
        ahead = site.engine.exchange(2.0 * w_hat - state.w)
        u_hat: list[Array] = []
        relaxed: list[Array] = []
        for edge, u, c in zip(site.form.edges, state.u, site.weights, strict=True):
            sigma = (1.0 if edge.ground else 0.5) / state.s
            z = edge.difference(ahead)  # in place from here on: these are the largest arrays of a round
            z *= sigma
            z += u
            u_hat.append(edge.penalty.dual_prox(z, np.full(len(c), sigma), c))
            over = np.subtract(u_hat[-1], u, out=None if np.may_share_memory(u_hat[-1], z) else z)
            over *= rho
            over += u
            relaxed.append(over)
        new = replace(
            state,
            round=state.round + 1,
            w=state.w + rho * (w_hat - state.w),
            u=tuple(relaxed),
            w_hat=w_hat,
            u_hat=tuple(u_hat),
            memory=memory,
        )
        if state.halpern is not None:
            return self._pulled(state, new, state.halpern)
        return self._adapt(new) if self.balance is None and new.round == new.next_adaptation else new

    def under_loss(self) -> PrimalDual:
        """Without restarts, which no theory covers there. (A balance that adapts does so ever more rarely.)"""
        if self.restarts:
            raise MethodError(
                "PrimalDual(restarts=True) is not proven where messages may be lost; leave restarts to be chosen"
            )
        return replace(self, restarts=False)

    def step_under_loss(self, state: State, swap: Swap) -> State:
        """See `edges_under_loss`: the same round where nothing is lost."""
        w_hat, memory = self._nodes(state)
        w = state.w + self.relaxation * (w_hat - state.w)
        ends = edges_under_loss(state.site, (state.w, w_hat, w), state.u, state.s, self.relaxation, swap)
        new = replace(
            state,
            round=state.round + 1,
            w=w,
            u=tuple(u for u, _, _ in ends),
            w_hat=w_hat,
            u_hat=tuple(np.where(heard, u_hat, old) for (_, u_hat, heard), old in zip(ends, state.u_hat, strict=True)),
            memory=memory,
        )
        return self._adapt(new) if self.balance is None and new.round >= new.next_adaptation else new

    def _nodes(self, state: State) -> tuple[Array, Memories]:
        """The nodes' half of a round: the prox of their losses, exact or not."""
        site = state.site
        tau = state.s / np.maximum(site.degree, LONELY)
        pull = np.zeros(site.form.shape)
        for edge, u in zip(site.form.edges, state.u, strict=True):
            edge.add_adjoint(u, pull)
        v = state.w - tau[:, None] * pull
        if self.inexact is None:
            return site.prox(v, tau, state.w_hat, state.memory)
        w, curvature = gradient_steps(site.losses, v, tau, state.w_hat, state.memory[0], self._accuracy(state.round))
        return w, (curvature,)

    def _accuracy(self, t: int) -> Accuracy:
        given = self.inexact
        if isinstance(given, Integral):
            return Accuracy(steps=int(given))
        tolerance = given(t) if callable(given) else float(given or 0.0) / (t + 1) ** 2
        return Accuracy(
            tolerance=float(TOLERANCE(tolerance, f"the value of PrimalDual(inexact=...) in round {t}", MethodError))
        )

    def point(self, state: State) -> Point:
        return state.w_hat, state.u_hat, state.site.prices(state.w_hat, state.memory)

    def _pulled(self, state: State, new: State, halpern: Halpern) -> State:
        """The new state pulled towards the anchor, or restarted at the outputs of the proxes."""
        w, *u = halpern.pull((new.w, *new.u), (state.w_last, *state.u_last))
        halpern = halpern.step()
        if halpern.looks:
            at, anchor = (new.w_hat, new.u_hat), (state.w_last, state.u_last)
            moves = ((b[0] - at[0], difference(b[1], at[1])) for b in ((state.w, state.u), anchor))
            (dw, du), travel = distances(state.site, *moves)
            looked = halpern.looked(float(np.sqrt(dw / state.s + du * state.s)), new.round)
            if looked is None:
                s = state.s if self.balance is not None else _balanced(state.s, *travel)
                last = {"w_last": new.w_hat, "u_last": new.u_hat}
                return replace(new, w=new.w_hat, u=new.u_hat, s=s, halpern=Halpern(), **last)
            halpern = looked
        return replace(new, w=w, u=tuple(u), halpern=halpern)

    def _adapt(self, state: State) -> State:
        """s moves towards s sqrt(||dw||^2_{1/tau} / ||du||^2_{1/sigma}), d the travel since the last adaptation."""
        travel = distances(state.site, (state.w - state.w_last, difference(state.u, state.u_last)))
        s = _balanced(state.s, *travel[0])
        later = state.round + max(FIRST_ADAPTATION, state.round // 2)
        return replace(state, s=s, next_adaptation=later, w_last=state.w, u_last=state.u)


def _balanced(s: float, dw: float, du: float) -> float:
    if not (dw > 0 and du > 0):
        return s
    new = float(np.sqrt(dw / du) ** DAMPING * s ** (1.0 - DAMPING))
    return new if max(new / s, s / new) > CHANGE else s


def _first_balance(scales: Scales | None) -> float:
    if scales is None or not (scales.degree and scales.curvature):
        return 1.0
    return scales.degree / scales.curvature
