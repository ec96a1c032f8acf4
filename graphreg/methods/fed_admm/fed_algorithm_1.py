"""Algorithm 1 of graph-fused M-estimation: stochastic gradients at the nodes, exact proxes on the edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...network import Availability, Presence, Site
from ...terms import Array
from ..base import Start
from ..splitting._lossy import edges_under_loss
from ..tolerance import Swap
from ._averages import Mean, SuffixMean
from ._copies import Copies
from ._fed_steps import Descent, Scale


@dataclass(frozen=True)
class State:
    """Iterates, in the variables of `FedADMM`."""

    site: Site
    round: int  # t
    theta: Array
    copies: Copies  # beta, and the flows u = -alpha, which are certified
    scale: Scale
    L: Array  # L_i; where the loss has no bound, what the steps so far have shown, (n,)
    presence: Presence | None  # None: all nodes are always there
    average: Mean | SuffixMean | None = None  # None: the last iterate


@dataclass(frozen=True)
class Algorithm1:
    """(17), (18) and (19); nodes that are away stay as they are, and so do their edges. For the map see `FedADMM`."""

    descent: Descent
    away: Availability | None

    def init(self, site: Site, start: Start | None) -> State:
        theta, flows = (np.zeros(site.form.shape), None) if start is None else start
        scale, L = self.descent.begin(site)
        copies = Copies.of(site, theta, site.form.nothing().flows if flows is None else flows)
        presence = None if self.away is None else self.away.begin(site)
        return State(site, 0, theta, copies, self.descent.given(site, scale, L), L, presence)

    def step(self, state: State) -> State:
        site, rho, t = state.site, state.scale.rho, state.round + 1
        there, along, presence = np.full(site.form.n, True), None, None
        if self.away is not None and state.presence is not None:
            there, along, presence = self.away.attend(site, t, state.presence)
        theta, L = self._descended(state, there, t)  # (17)
        copies = state.copies.step(site, site.engine.exchange(theta, along), rho, there)  # (18), (19)
        return replace(state, round=t, theta=theta, copies=copies, L=L, presence=presence)

    def _descended(self, state: State, there: Array, t: int) -> tuple[Array, Array]:
        """(17): theta_i - eta_i (g_i + rho sum of (theta_i - beta_ij - alpha_ij / rho)), and L_i."""
        site, theta, scale, descent = state.site, state.theta, state.scale, self.descent
        g = site.gradient(theta, descent.batch, t)
        slope = np.where(there[:, None], g + state.copies.pull(site, theta, scale.rho), 0.0)
        return descent.step(site, theta, g, slope, state.L, lambda L: descent.eta(site, scale, t, L))

    def step_under_loss(self, state: State, swap: Swap) -> State:
        """The halves in the order of `edges_under_loss`: Davis-Yin splitting, as averaged, for 1/L_i."""
        site, t = state.site, state.round + 1
        theta, L = self._descended(state, np.full(site.form.n, True), t)
        flows = state.copies.flows(site.form, state.theta)
        ends = edges_under_loss(site, (state.theta, theta, theta), flows, 1.0 / state.scale.rho, 1.0, swap)
        return replace(state, round=t, theta=theta, copies=Copies.of(site, theta, tuple(u for u, _, _ in ends)), L=L)
