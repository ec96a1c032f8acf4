"""SCAFFOLD: federated averaging with control variates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...checks import checked, counts, one_of, positive
from ...network import AVAILABILITY, LocalView
from ...running import AbstractIteration, Start
from ...terms import Array
from ._averaging import AbstractAveraging, Averaging
from ._averaging import State as AveragingState
from ._servers import OneServer, ServerTopology, clients_there


@dataclass(frozen=True)
class State(AveragingState):
    own: Array  # c_i, at the clients
    control: Array  # c of each server, in the rows of its clients as well


@dataclass(frozen=True)
class SCAFFOLD(OneServer, AbstractAveraging):
    """SCAFFOLD (Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, ICML 2020, Algorithm 1) of the model of `Pooled`.

    The server has a control variate c beside its model x, every client one of its own, c_i, all 0 at first. With K =
    ``local_steps``, F_i and p_i as for `FedAvg`, a round is

        y_i <- x,  then K times  y_i <- y_i - eta (grad F_i(y_i) - c_i + c)             at the clients that are there
        c_i+ = grad F_i(x)  (option "I"),   or   c_i - c + (x - y_i) / (K eta)  (option "II")
        x <- x + global_step mean_i (y_i - x),   c <- c + sum_i p_i (c_i+ - c_i)         at the server

    with the mean of `FedAvg` over those that take part, and c = sum_i p_i c_i all along. At the pooled fit, with c_i =
    grad F_i there, c = 0 and no local step moves: unlike `FedAvg` it has **no bias**, however many local steps there
    are and however few clients are there. One local step of all clients is gradient descent.

    Proven (Theorem III, for strongly convex F_i, full gradients): linear convergence for eta <= 1/(81 L K global_step)
    where all are there, L the largest L_i. By default eta is 1/(L K), of which nothing is proven beyond equal Hessians;
    ``step_size=`` takes the other. Where it is too long, no gap is met. With batches the iterates keep moving around
    the fit.

    Parameters
    ----------
    local_steps : int or mapping
        K, for all or by node label (K_i in the renewal of c_i then); 5 by default.
    step_size : float, optional
        eta; by default 1 / (K times the largest L_i). Beyond twice that a MethodWarning.
    global_step : float
        eta_g in the paper; 1 by default.
    option : {"II", "I"}
        How c_i is renewed; "I" takes one gradient more.
    batch, availability
        As for `FedAvg`.

    Model and control variate go down to every client, and both differences up from those that are there: messages are
    twice as large as those of `FedAvg`.

    Examples
    --------
    >>> run = problem.solve(gr.SCAFFOLD(), gap=1e-6)  # one model for all: far from the optimum of the problem
    >>> run.own.holds(1e-6), run.certificate.relative_gap > 0.5
    (True, True)
    """

    sends = (
        "nothing across the edges; the server sends its model and its control variate to every node, and those that "
        "are there send both of theirs back"
    )

    local_steps: int | Mapping[Hashable, int] = checked(counts, 5)
    step_size: float | None = checked(positive, None)
    global_step: float = checked(positive, 1.0)
    option: str = checked(one_of("II", "I"), "II")
    batch: int | Mapping[Hashable, int] | None = checked(counts | None, None)
    availability: Any = checked(AVAILABILITY, None)

    @property
    def bias(self) -> str:
        return "batch" if self.batch is not None else ""

    @property
    def iteration(self) -> AbstractIteration:
        return _Controlled(self)


class _Controlled(Averaging):
    limit: ClassVar[str] = "2/(K L)"

    def init(self, view: LocalView, start: Start | None) -> State:
        before = super().init(view, start)
        return State(**vars(before), own=np.zeros_like(before.w), control=np.zeros_like(before.w))

    def _bound(self, view: LocalView, topology: ServerTopology, received: Array) -> Array:
        return self._of_steepest(view, topology, received) / self.options.most_steps

    def step(self, state: State) -> State:
        view, topology, options, x, d = state.view, state.topology, self.options, state.w, state.view.form.d
        present, weight, presence = clients_there(options, view, state.round + 1, state.presence)
        y = self._steps(state, present, lambda _: state.control - state.own)
        moves = (present & (state.share > 0))[:, None]
        if options.option == "I":
            t = (state.round + 1) * options.most_steps - 1  # a batch of this round
            own = view.gradient(x, options.batch, t) / np.where(moves, state.share[:, None], 1.0)
        else:
            own = state.own - state.control + (x - y) / (view.each(options.local_steps) * state.step_size)[:, None]
        own = np.where(moves, own, state.own)
        up = np.hstack([y, own - state.own])
        up = view.engine.exchange(up, topology.up & present[view.arcs.source], parameters=False)
        share = state.share[:, None]
        mean = topology.means(up[:, :d], share * weight, x, present)
        total = np.maximum(topology.sums(share), 1e-300)
        c = state.control + topology.sums(share * up[:, d:], present) / total
        both = topology.broadcast(view, np.hstack([x + options.global_step * (mean - x), c]), parameters=False)
        new = {"w": both[:, :d], "own": own, "control": both[:, d:]}
        return replace(state, round=state.round + 1, presence=presence, **new)
