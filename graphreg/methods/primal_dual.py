"""The primal-dual method of GTV minimisation (Algorithm 1), with adaptive balance and over-relaxation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import MethodError
from ..form import Form
from ..lowering.site import Memory, Site
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.records import Array
from ._base import AbstractIteration, Point, Start, is_number

FIRST_ADAPTATION = 10
DAMPING = 0.7  # s <- q^.7 s^.3
CHANGE = 1.3  # the least factor that is worth a change
LONELY = 1e-6  # the degree by which a node without edges steps: a proximal-point iteration with a long step


@dataclass(frozen=True)
class State:
    """Iterates, over-relaxed; ``w_hat`` and ``u_hat`` are the un-relaxed prox outputs, which are certified."""

    site: Site
    round: int
    w: Array
    u: tuple[Array, ...]
    w_hat: Array
    u_hat: tuple[Array, ...]
    memory: Memory  # of the node proxes
    s: float  # balance
    next_adaptation: int
    w_last: Array  # at the last adaptation
    u_last: tuple[Array, ...]


@dataclass(frozen=True)
class PrimalDual(AbstractIteration):
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
    polish : bool
        Now and then guess from the flows which differences vanish, merge those nodes, and solve the small problem that
        is left by Newton's method; taken only where the certificate confirms it. A central step, booked in the ledger
        as sums over all nodes. Never with a given balance, which is for following the paper's iteration.
    """

    balance: float | None = None
    relaxation: float = 1.8
    polish: bool = True

    def __post_init__(self) -> None:
        if self.balance is not None and not (is_number(self.balance) and 0.0 < self.balance < np.inf):
            raise MethodError(f"the balance of PrimalDual must be a positive finite number, got {self.balance!r}")
        if not (is_number(self.relaxation) and 0.0 < self.relaxation < 2.0):
            raise MethodError(f"the relaxation of PrimalDual must be a number in (0, 2), got {self.relaxation!r}")

    def missing(self, form: Form) -> tuple[str, ...]:
        return tuple(
            f"{type(b.loss).__name__} is not smooth" for b in form.samples if not isinstance(b.loss, AbstractSmoothLoss)
        )

    def polishes(self) -> bool:
        return self.polish and self.balance is None

    def init(self, site: Site, start: Start | None) -> State:
        w, flows = (np.zeros(site.form.shape), None) if start is None else start
        u = site.form.nothing().flows if flows is None else flows
        s = self.balance or _first_balance(site)
        return State(site, 0, w, u, w, u, site.memory(), s, FIRST_ADAPTATION, w, u)

    def step(self, state: State) -> State:
        site, rho = state.site, self.relaxation
        form = site.form
        tau = state.s / np.maximum(site.degree, LONELY)
        pull = np.zeros(form.shape)
        for edge, u in zip(form.edges, state.u, strict=True):
            edge.add_adjoint(u, pull)
        w_hat, memory = site.prox(state.w - tau[:, None] * pull, tau, state.w_hat, state.memory)
        ahead = site.engine.exchange(2.0 * w_hat - state.w)
        u_hat: list[Array] = []
        relaxed: list[Array] = []
        for edge, u, c in zip(form.edges, state.u, site.weights, strict=True):
            sigma = (1.0 if edge.ground else 0.5) / state.s
            z = edge.difference(ahead)  # in place from here on: these are the largest arrays of a round
            z *= sigma
            z += u
            u_hat.append(edge.penalty.dual_prox(z, np.full(len(c), sigma), c))
            over = u_hat[-1] - u
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
        return self._adapt(new) if self.balance is None and new.round == new.next_adaptation else new

    def point(self, state: State) -> Point:
        return state.w_hat, state.u_hat, None  # its prices are gradients: the certifier's own, where it needs them

    def _adapt(self, state: State) -> State:
        """s moves towards s sqrt(||dw||^2_{1/tau} / ||du||^2_{1/sigma}), d the travel since the last adaptation."""
        site = state.site
        travelled = np.zeros((site.form.n, 2))  # in w and in u, booked at the node or at the tail of the edge
        travelled[:, 0] = site.degree * ((state.w - state.w_last) ** 2).sum(axis=1)
        for edge, u, last in zip(site.form.edges, state.u, state.u_last, strict=True):
            each = (1.0 if edge.ground else 2.0) * ((u - last) ** 2).sum(axis=1)
            travelled[:, 1] += np.bincount(edge.tail, each, minlength=site.form.n)
        dw, du = site.engine.reduce(travelled)
        s = state.s
        if dw > 0 and du > 0:
            q = np.sqrt(dw / du)
            new = float(q**DAMPING * s ** (1.0 - DAMPING))
            s = new if max(new / s, s / new) > CHANGE else s
        later = state.round + max(FIRST_ADAPTATION, state.round // 2)
        return replace(state, s=s, next_adaptation=later, w_last=state.w, u_last=state.u)


def _first_balance(site: Site) -> float:
    degree = site.degree[site.degree > 0]
    curvature = site.curvature[site.curvature > 0]
    if not len(degree) or not len(curvature):
        return 1.0
    return float(degree.mean() / curvature.mean())
