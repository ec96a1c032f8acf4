"""Federated averaging around the servers of a star: what `FedAvg` and `ClusteredFedAvg` do in a round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...base.clock import check_deadline
from ...base.messages import warn
from ...form import Form
from ...network import LocalView, Presence, TakesAvailability
from ...oracles import without_bound, without_gradient
from ...running import AbstractIteration, Point, Start
from ...terms import Array
from ._baseline import AbstractBaseline, AbstractTargetIteration
from ._servers import ServerTopology, balanced_flows, clients_there


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    topology: ServerTopology
    w: Array  # the model of each server, in the rows of its clients as well
    share: Array  # a_i, at the clients
    step_size: Array  # eta of each server, in the rows of its clients as well
    presence: Presence | None


class AbstractAveraging(TakesAvailability, AbstractBaseline):
    """One model per server, by local steps of its clients: see `FedAvg`, whose options these are."""

    local_steps: int
    step_size: float | None
    batch: int | None

    def missing(self, form: Form) -> tuple[str, ...]:
        bound = without_bound(form) if self.step_size is None else ()
        return (*without_gradient(form), *bound, *self.unmatched_nodes(form))

    @property
    def iteration(self) -> AbstractIteration:
        return Averaging(self)

    @property
    def bias(self) -> str:
        options = {
            "local_steps": self.local_steps > 1,
            "batch": self.batch is not None,
            "availability": self.away is not None,
        }
        return " and ".join(name for name, given in options.items() if given)

    @property
    def drawn(self) -> bool:
        return self.batch is not None or super().drawn


class Averaging(AbstractTargetIteration[AbstractAveraging]):
    """Algorithm 1 of McMahan et al.; for the map see `FedAvg`."""

    def init(self, view: LocalView, start: Start | None) -> State:
        """The servers learn a_i and the smoothness of the F_i of their clients, and tell them the step."""
        w = np.zeros(view.form.shape) if start is None else start[0]
        options, topology, share = self.options, ServerTopology.of(view), view.gradients.shares
        L = view.gradients.smoothness if options.batch is None else view.gradients.sample_smoothness
        L = L / np.maximum(share, 1e-300)
        known = np.stack([share, np.where(share > 0, L, 0.0)], axis=1)
        received = view.engine.exchange(known, topology.up, parameters=False)
        bound = self._bound(view, topology, received)
        step = bound if options.step_size is None else np.full(len(bound), float(options.step_size))
        bounded = bound > 0.0  # 0 where a loss has no bound
        if (step > 2.0 * bound)[bounded].any():
            least = 2.0 * float(bound[bounded].min())
            warn(f"the step_size {options.step_size} of {self.name} is beyond 2/L = {least:.3g}: it may diverge")
        both = topology.broadcast(view, np.column_stack([step, w]), parameters=False)
        nobody = options.nobody_away(view)
        return State(view, 0, topology, both[:, 1:], np.nan_to_num(received[:, 0]), both[:, 0], nobody)

    def _bound(self, view: LocalView, topology: ServerTopology, received: Array) -> Array:
        """1/L, (n,), inf where there is no server or nothing to fit: L that of the mean of the F_i, or, where clients
        take several steps by themselves, of the steepest of them."""
        share, L = received[:, 0], received[:, 1]
        if self.options.local_steps > 1:
            largest = topology.largest(L)
        else:
            total = topology.sums(np.stack([share * L, share], axis=1))
            largest = total[:, 0] / np.maximum(total[:, 1], 1e-300)
        latent = view.ids >= view.n_observed
        return np.where(latent & (largest > 0), 1.0 / np.maximum(largest, 1e-300), np.where(latent, 1.0, np.inf))

    def step(self, state: State) -> State:
        view, topology, R = state.view, state.topology, self.options.local_steps
        present, weight, presence = clients_there(self.options, view, state.round + 1, state.presence)
        moves = present & (state.share > 0)
        rate = np.where(moves, state.step_size / np.where(moves, state.share, 1.0), 0.0)[:, None]  # eta / a_i
        w = state.w
        for k in range(R):  # w_i <- w_i - eta grad F_i(w_i)
            check_deadline()
            w = w - rate * view.gradient(w, self.options.batch, state.round * R + k)
        received = view.engine.exchange(w, topology.up & present[view.arcs.source])
        new = topology.means(received, state.share[:, None] * weight, state.w, present)  # w <- sum_i p_i w_i
        return replace(state, round=state.round + 1, w=topology.broadcast(view, new), presence=presence)

    def point(self, state: State) -> Point:
        return state.w, balanced_flows(state.view.form, state.view.gradients, state.w), None
