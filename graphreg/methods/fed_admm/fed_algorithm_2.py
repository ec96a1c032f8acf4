"""Algorithm 2 of graph-fused M-estimation: gradients with inverse-probability weights, neighbours that act for nodes
that are away."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...network import Availability, LocalView, Presence
from ...running import Start
from ...terms import Array
from . import fed_algorithm_1
from ._copies import Copies
from ._fed_steps import StepOptions
from ._versions import Versions, begun


@dataclass(frozen=True)
class State(fed_algorithm_1.State[Versions]):
    """The same, beta and u = -alpha as each end of an edge has them, and what neighbours know of each other."""

    presence: Presence
    received: Array = field(kw_only=True)  # L_i as neighbours know it, (n,): they step for node i while it is away


@dataclass(frozen=True)
class Algorithm2:
    """(21a), (21b), (18) and (19), without a server. For the map see `FedADMM`."""

    descent: StepOptions
    away: Availability

    def init(self, view: LocalView, start: Start | None) -> State:
        (theta, flows), (scale, L) = view.begin(start), self.descent.begin(view)
        copies = Copies.of(view, theta, flows)
        known = np.stack([L, scale.degree], axis=1)
        (L, degree), theta, versions = begun(view, known, theta, copies, start is not None)
        presence = self.away.begin(view)
        bound = L if presence.p is None else L / presence.p
        scale = self.descent.given(view, replace(scale, degree=degree), bound)
        return State(view, 0, theta, versions, scale, L, presence, received=L)

    def step(self, state: State) -> State:
        view, scale, descent, t = state.view, state.scale, self.descent, state.round + 1
        there, _, presence = self.away.attend(view, t, state.presence)
        weight = self.away.inverse(presence, t)  # 1 / p_i
        copies, theta = state.copies.met(view, state.theta, scale.degree, there)
        # (21a) where a node is there, (21b) where it is away
        g = descent.gradient(view, theta, t)
        slope = np.where(there, weight, 0.0)[:, None] * g + copies.coupling_gradient(view, theta, scale.rho)
        theta, L = descent.step(view, theta, g, slope, state.L, lambda L: descent.eta(view, scale, t, L * weight))
        # (18), (19), at each end with the theta that it has of the other one
        eta = descent.eta(view, scale, t, state.received * weight)
        copies = copies.step(view, theta, eta, scale.degree, scale.rho, there)
        return replace(state, round=t, theta=theta, copies=copies, L=L, presence=presence)
