"""Algorithm 1 of graph-fused M-estimation: stochastic gradients at the nodes, exact proxes on the edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from ...network import Availability, LocalView, Presence
from ...running import Start
from ...terms import Array
from ..splitting._lossy import edges_with_lost_messages
from ..tolerance import Swap
from ._averages import SuffixMean, WholeMean
from ._copies import Copies
from ._fed_steps import StepOptions, StepRule

C = TypeVar("C")  # copies, or versions of them


@dataclass(frozen=True)
class State(Generic[C]):
    """Iterates, in the variables of `FedADMM`."""

    view: LocalView
    round: int  # t
    theta: Array
    copies: C  # beta, and the flows u = -alpha, which are certified
    scale: StepRule
    L: Array  # L_i; where the loss has no bound, what the steps so far have shown, (n,)
    presence: Presence | None  # None: all nodes are always there
    average: WholeMean | SuffixMean | None = None  # None: the last iterate


@dataclass(frozen=True)
class Algorithm1:
    """(17), (18) and (19); nodes that are away stay as they are, and so do their edges. For the map see `FedADMM`."""

    descent: StepOptions
    away: Availability | None

    def init(self, view: LocalView, start: Start | None) -> State[Copies]:
        (theta, flows), (scale, L) = view.begin(start), self.descent.begin(view)
        copies = Copies.of(view, theta, flows)
        presence = None if self.away is None else self.away.begin(view)
        return State(view, 0, theta, copies, self.descent.given(view, scale, L), L, presence)

    def step(self, state: State[Copies]) -> State[Copies]:
        view, rho, t = state.view, state.scale.rho, state.round + 1
        present, along, presence = np.full(view.form.n, True), None, None
        if self.away is not None and state.presence is not None:
            present, along, presence = self.away.attend(view, t, state.presence)
        theta, L = self._descended(state, present, t)  # (17)
        copies = state.copies.step(view, view.engine.exchange(theta, along), rho, present)  # (18), (19)
        return replace(state, round=t, theta=theta, copies=copies, L=L, presence=presence)

    def _descended(self, state: State[Copies], present: Array, t: int) -> tuple[Array, Array]:
        """(17): theta_i - eta_i (g_i + rho sum of (theta_i - beta_ij - alpha_ij / rho)), and L_i."""
        view, theta, scale, descent = state.view, state.theta, state.scale, self.descent
        g = descent.gradient(view, theta, t)
        slope = np.where(present[:, None], g + state.copies.coupling_gradient(view, theta, scale.rho), 0.0)
        return descent.step(view, theta, g, slope, state.L, lambda L: descent.eta(view, scale, t, L))

    def step_with_lost_messages(self, state: State[Copies], swap: Swap) -> State[Copies]:
        """The halves in the order of `edges_with_lost_messages`: Davis-Yin splitting, as averaged, for 1/L_i."""
        view, t = state.view, state.round + 1
        theta, L = self._descended(state, np.full(view.form.n, True), t)
        flows = state.copies.flows(view.form, state.theta)
        ends = edges_with_lost_messages(view, (state.theta, theta, theta), flows, 1.0 / state.scale.rho, 1.0, swap)
        return replace(state, round=t, theta=theta, copies=Copies.of(view, theta, tuple(u for u, _, _ in ends)), L=L)
