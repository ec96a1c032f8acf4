"""Federated averaging around the servers of a star: what `FedAvg` and all its relatives do in a round."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...base.clock import check_deadline
from ...base.messages import unmatched, warn
from ...form import Form
from ...network import LocalView, Presence, TakesAvailability, most
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
    """One model per server, by local steps of its clients: see `FedAvg`, whose options these are. ``mu`` is the pull
    of local steps to the server's model, see `FedProx`."""

    aim = "the fit of one model to all nodes"
    needs = (
        "smooth losses (a bound of their curvature or a given step), smooth node penalties; it drops the edges "
        "between nodes"
    )
    sends = (
        "nothing across the edges; the server sends its model to every node, and those that are there send theirs back"
    )
    mu: ClassVar[float | None] = 0.0
    local_steps: int | Mapping[Hashable, int]
    step_size: float | None
    batch: int | Mapping[Hashable, int] | None

    def missing(self, form: Form) -> tuple[str, ...]:
        bound = without_bound(form) if self.step_size is None else ()
        labels = form.space.index
        wrong = (*unmatched("local_steps", self.local_steps, labels), *unmatched("batch", self.batch, labels))
        return (*without_gradient(form), *bound, *wrong, *self.unmatched_nodes(form))

    @property
    def most_steps(self) -> int:
        """The local steps of a round, of those that take most."""
        return most(self.local_steps)

    @property
    def iteration(self) -> AbstractIteration:
        return Averaging(self)

    @property
    def bias(self) -> str:
        options = {
            "local_steps": self.most_steps > 1,
            "batch": self.batch is not None,
            "availability": self.away is not None,
        }
        return " and ".join(name for name, given in options.items() if given)

    @property
    def drawn(self) -> bool:
        return self.batch is not None or super().drawn


class Averaging(AbstractTargetIteration[Any]):
    """Algorithm 1 of McMahan et al.; for the map see `FedAvg`."""

    limit: ClassVar[str] = "2/L"

    def init(self, view: LocalView, start: Start | None) -> State:
        """The servers learn a_i and the smoothness of the F_i of their clients, and tell them the step."""
        w = np.zeros(view.form.shape) if start is None else start[0]
        options, topology, share = self.options, ServerTopology.of(view), view.gradients.shares
        L = view.gradients.smoothness if options.batch is None else view.gradients.sample_smoothness
        L = L / np.maximum(share, 1e-300)
        known = np.stack([share, np.where(share > 0, L, 0.0)], axis=1)
        received = view.engine.exchange(known, topology.up, parameters=False, purpose="adaptation")
        bound = self._bound(view, topology, received)
        step = bound if options.step_size is None else np.full(len(bound), float(options.step_size))
        bounded = bound > 0.0  # 0 where a loss has no bound
        if (step > 2.0 * bound)[bounded].any():
            least = 2.0 * float(bound[bounded].min())
            warn(
                f"the step_size {options.step_size} of {self.name} is beyond {self.limit} = {least:.3g}: it may diverge"
            )
        both = topology.broadcast(view, np.column_stack([step, w]), parameters=False, purpose="adaptation")
        nobody = options.nobody_away(view)
        return State(view, 0, topology, both[:, 1:], np.nan_to_num(received[:, 0]), both[:, 0], nobody)

    def _bound(self, view: LocalView, topology: ServerTopology, received: Array) -> Array:
        """1/L, (n,), inf where there is no server or nothing to fit: L that of the mean of the F_i, or, where clients
        take several steps by themselves, of the steepest of them."""
        share, L = received[:, 0], received[:, 1]
        if self.options.most_steps > 1:
            return self._of_steepest(view, topology, received)
        total = topology.sums(np.stack([share * L, share], axis=1))
        return self._inverse(view, total[:, 0] / np.maximum(total[:, 1], 1e-300))

    def _of_steepest(self, view: LocalView, topology: ServerTopology, received: Array) -> Array:
        return self._inverse(view, topology.largest(received[:, 1]) + self.options.mu)

    def _inverse(self, view: LocalView, largest: Array) -> Array:
        latent = view.ids >= view.n_observed
        return np.where(latent & (largest > 0), 1.0 / np.maximum(largest, 1e-300), np.where(latent, 1.0, np.inf))

    def step(self, state: Any) -> Any:
        view, topology, mu = state.view, state.topology, self.options.mu
        present, weight, presence = clients_there(self.options, view, state.round + 1, state.presence)
        pull = (lambda w: mu * (w - state.w)) if mu else None
        w = self._steps(state, present, pull)
        received = view.engine.exchange(w, topology.up & present[view.arcs.source])
        new = topology.means(received, state.share[:, None] * weight, state.w, present)  # w <- sum_i p_i w_i
        return replace(state, round=state.round + 1, w=topology.broadcast(view, new), presence=presence)

    def _steps(self, state: State, present: Array, shift: Callable[[Array], Array] | None = None) -> Array:
        """The clients' own models after local steps  w_i <- w_i - eta (grad F_i(w_i) + shift_i(w_i))  from the model of
        the server; of clients that are away, that model."""
        view, R, w = state.view, self.options.most_steps, state.w
        moves, own = present & (state.share > 0), view.each(self.options.local_steps)
        eta = np.where(moves, state.step_size, 0.0)[:, None]
        rate = eta / np.where(moves, state.share, 1.0)[:, None]  # eta / a_i
        for k in range(R):
            check_deadline()
            new = w - rate * view.gradient(w, self.options.batch, state.round * R + k)
            new = new if shift is None else new - eta * shift(w)
            w = np.where((k < own)[:, None], new, w)
        return w

    def point(self, state: Any) -> Point:
        return state.w, balanced_flows(state.view.form, state.view.gradients, state.w), None
