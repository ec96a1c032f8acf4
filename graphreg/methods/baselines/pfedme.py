"""Personalised federated learning with Moreau envelopes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.clock import check_deadline
from ...base.messages import unmatched, warn
from ...checks import checked, count, per, positive
from ...form import Form
from ...network import AVAILABILITY, LocalView, Memories, Presence, TakesAvailability, per_node
from ...oracles import without_ground_gradient, without_prox
from ...running import AbstractIteration, Point, Start
from ...terms import Array
from ...terms.penalties import SquaredL2
from ._baseline import AbstractBaseline, AbstractTargetIteration
from ._servers import ServerTopology, clients_there, server_form


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    topology: ServerTopology
    theta: Array  # the personal models, in the rows of the clients
    model: Array  # of each server, in the rows of its clients as well
    memory: Memories
    presence: Presence | None


@dataclass(frozen=True)
class PFedMe(TakesAvailability, AbstractBaseline):
    """pFedMe (Dinh, Tran and Nguyen, NeurIPS 2020, Algorithm 1).

        minimise over w  sum_i F_i(w),     F_i(w) = min over theta of  f_i(theta) + lam_i/2 ||theta - w||^2,

    jointly over all theta_i and w: SquaredL2 edges of weight lam_i between the clients and a latent server. ``coef``
    holds the personal models theta_i. The last row of ``solution.own.w`` is the best w for these, their mean
    ``sum_i lam_i theta_i / sum_j lam_j``, and not the w of the last round, which lags behind it unless all has
    converged; an observer sees that one as ``"state.model"``. (The paper has (1/N) sum_i F_i and the same lam for all.)
    A round is

        theta_i <- argmin f_i(theta) + lam_i/2 ||theta - w_i||^2,   w_i <- w_i - step_size (w_i - theta_i)
        w <- (1 - beta) w + beta sum_i lam_i w_i / sum_j lam_j

    with the first line ``local_steps`` times from w_i = w. In the argmin smooth node penalties stand by their gradient
    at the last theta_i (a proximal-gradient step, exact for a SquaredL2 on all coordinates). Of smooth losses but
    squares it is found to a hundredth of the move from that theta_i, and not exactly as by ``problem.oracles().prox``.
    One local step with step_size 1 and beta 1 is gradient descent on sum_i F_i with step 1/L, L = sum_j lam_j, and ends
    at the optimum; with more local steps and different data the limit is another (as for `FedAvg`).

    Parameters
    ----------
    lam : float or mapping
        lam_i, positive, one for all or one per node label. Required: None (default) is refused by `solve`.
    local_steps : int
        R in the paper, at least 1.
    step_size : float
        eta lam in the paper; 1 by default.
    beta : float
        1 by default. Where ``beta * step_size`` (``beta`` or ``step_size`` alone, with several local steps) is 2 or
        more, a MethodWarning.
    availability : number, mapping, sampler or Availability, optional
        Which clients are there, see `Availability`; by default all. Every client hears every w and moves by it, as in
        the paper; the mean of a round is over those that are there, with lam_i divided by the probability that i is.

    Examples
    --------
    >>> run = problem.solve(gr.PFedMe(lam=1.0), gap=1e-6)
    >>> run.table().round(2)
          rain  temp
    node
    a     0.33  0.16
    b     0.60  0.07
    c    -0.28 -0.04
    d    -0.51 -0.08
    """

    aim = "the Moreau envelopes of the nodes' own losses, tied to one server"
    needs = (
        "a pull lam; losses that are smooth or piecewise linear, smooth node penalties; it drops the edges between "
        "nodes"
    )
    sends = "nothing across the edges; every node that is there sends the server its w_i, all get back the server's w"

    lam: float | Mapping[Hashable, float] | None = checked(per("node", positive), None)
    local_steps: int = checked(count, 1)
    step_size: float = checked(positive, 1.0)
    beta: float = checked(positive, 1.0)
    availability: Any = checked(AVAILABILITY, None)

    def missing(self, form: Form) -> tuple[str, ...]:
        out = unmatched("lam", self.lam, form.space.index)
        if self.lam is None:
            out.append("the pull of the server on the clients is to be chosen: give PFedMe(lam=...)")
        return (*out, *self.unmatched_nodes(form), *without_prox(form), *without_ground_gradient(form))

    def target(self, form: Form) -> Form:
        assert self.lam is not None  # or it is missing
        return server_form(form, SquaredL2(), per_node(form, self.lam, 1.0)[: form.space.n_observed])

    @property
    def iteration(self) -> AbstractIteration:
        return _Envelopes(self)

    @property
    def bias(self) -> str:
        options = {"local_steps": self.local_steps > 1, "availability": self.away is not None}
        return " and ".join(name for name, given in options.items() if given)


class _Envelopes(AbstractTargetIteration[PFedMe]):
    def init(self, view: LocalView, start: Start | None) -> State:
        beta, step = self.options.beta, self.options.step_size
        alone = self.options.local_steps == 1
        factor, what = (beta * step, "beta * step_size") if alone else (max(beta, step), "beta or step_size")
        if factor >= 2.0:
            warn(f"{what} of PFedMe is {factor:.3g}, beyond its bound 2: it may diverge")
        w = np.zeros(view.form.shape) if start is None else start[0]
        topology = ServerTopology.of(view)
        nobody = self.options.nobody_away(view)
        model = topology.broadcast(view, w, purpose="adaptation")
        return State(view, 0, topology, w, model, view.memory(), nobody)

    def step(self, state: State) -> State:
        view, topology, lam, beta = state.view, state.topology, state.topology.weight[:, None], self.options.beta
        theta, w_i, memory, t = state.theta, state.model, state.memory, state.round + 1
        present, weight, presence = clients_there(self.options, view, t, state.presence)
        for _ in range(self.options.local_steps):
            check_deadline()
            theta, memory = _personal(view, lam, theta, w_i, memory)
            w_i = w_i - self.options.step_size * (w_i - theta)
        received = view.engine.exchange(w_i, topology.up & present[view.arcs.source])
        w = (1.0 - beta) * state.model + beta * topology.means(received, lam * weight, state.model, present)
        return replace(state, round=t, theta=theta, model=topology.broadcast(view, w), memory=memory, presence=presence)

    def point(self, state: State) -> Point:
        view = state.view
        w = np.where((view.ids >= view.n_observed)[:, None], state.model, state.theta)
        return w, None, view.prices(w, state.memory)


def _personal(view: LocalView, lam: Array, theta: Array, w: Array, memory: Memories) -> tuple[Array, Memories]:
    """argmin f_i(theta) + lam_i/2 ||theta - w_i||^2, with the smooth node penalties by their gradient at theta."""
    ground = view.gradients.ground_smoothness[:, None]
    tau = 1.0 / np.where(lam > 0, lam + ground, 1.0)
    pull = lam * w + ground * theta - view.gradients.ground_gradient(theta)
    return view.prox(tau * pull, tau[:, 0], theta, memory)
