"""The iterative federated clustering algorithm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.clock import check_deadline
from ...base.messages import warn
from ...certificate import Certifier
from ...checks import Check, checked, count, one_of, positive
from ...form import Form
from ...network import AVAILABILITY, LocalView, Presence, Streams, TakesAvailability
from ...oracles import without_bound, without_gradient
from ...running import AbstractIteration, Point, Start
from ...terms import Array
from ._baseline import AbstractBaseline, AbstractTargetIteration
from ._servers import OneServer, ServerTopology, balanced_flows, clients_there, consensus_within

SETTLED = 10  # rounds without a change of any assignment, after which the starts are compared
LONGEST = 500  # rounds, after which they are compared anyway
OWN_STEPS, LONG = 5, 1e4  # proximal-point steps to a node's own fit, and how long they are


def _are_models(given: Any) -> bool:
    try:
        models = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        return False
    return models.ndim in (2, 3) and bool(np.isfinite(models).all())


MODELS = Check("an array (k, d) or (starts, k, d) of finite numbers", _are_models)


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    topology: ServerTopology
    models: Array  # (s, k, d), of each start, as the servers sent them last
    cluster: Array  # (s, n), of each client in each start
    scale: Array  # L_i as the server knows them, a_i where a step was given, (n,)
    calm: int  # rounds without a change of any assignment
    objectives: Array  # of each start, (rounds of the search, starts)
    least: Array  # (s, n), min over j of f_i(w_j), as each client sent it last
    presence: Presence | None


@dataclass(frozen=True)
class IFCA(OneServer, TakesAvailability, AbstractBaseline):
    """Iterative federated clustering (Ghosh, Chung, Yin and Ramchandran, NeurIPS 2020, Algorithm 1).

        minimise over the models w_1 ... w_k    sum_i min over j of f_i(w_j)

    which is not convex. In a round the server sends all models, every client picks the one with the least f_i (the
    first of several), and the server steps each model along the gradients of those who picked it,

        j_i = argmin over j of f_i(w_j),     w_j <- w_j - eta_j sum over {i : j_i = j} of grad f_i(w_j).

    f_i holds the smooth node penalties. Any number sent as j_i counts as the nearest model's. The objective never grows
    while eta_j <= 2 / (sum of the L_i of the members). What the models end at depends on their start, so ``starts``
    runs go on side by side until no assignment of any has changed for 10 rounds (500 at most); the one with the lowest
    objective goes on alone. Until then a round takes four messages per client in place of two: a sum over all nodes of
    the objectives, too. The certified problem is convex again: the fits of the clusters *found*, one model each.

    Parameters
    ----------
    k : int
        How many models; at most as many as nodes. Required: None (default) is refused by `solve`.
    starts : int
        10 by default; one, where ``start`` allows no other.
    start : {"random", "data", "zero"} or array
        "random" (default): independent normal numbers, of the size of a gradient step of a node from 0. "data": the own
        fits of k clients drawn without replacement. "zero": all models equal, so that every client picks the first, and
        IFCA fails: it fits one model to all (a MethodWarning says so). An array (k, d), or (starts, k, d).
    step_size : float, optional
        eta in units of 1 / sum of the a_i of the members, f_i = a_i F_i as for `FedAvg`. None (default): eta_j = 1 /
        sum of the L_i of the members. Beyond the least 2 a_i / L_i a MethodWarning.
    availability : number, mapping, sampler or Availability, optional
        Which clients are there, see `Availability`; by default all. Every client hears the models; one that is away
        keeps its j_i and its last value of the objective at the server, and the gradients and L_i (or a_i) of those
        that are there are divided by the probability that they are.

    ``start=`` of `solve` is not used. ``solution.gathered`` holds ``cluster``, the model of each node by number (-1 at
    the server), and ``objectives``, those of every start in every round of the search, (rounds, starts).

    Examples
    --------
    >>> run = problem.solve(gr.IFCA(k=2), gap=1e-6, seed=0)
    >>> a, b, c, d, server = run.gathered["cluster"].tolist()
    >>> a == b, c == d, a == c
    (True, True, False)
    """

    aim = "the fits of the clusters that it found"
    needs = (
        "a number of models k; smooth losses (a bound of their curvature or a given step), smooth node penalties; it "
        "drops the edges between nodes"
    )
    sends = (
        "nothing across the edges; the server sends k models to every node, which sends back, where it is there, a "
        "gradient and the number of its model; until the search is over for all starts in one message, with a sum over "
        "all nodes of their objectives and of who changed, up and down a tree"
    )

    k: int | None = checked(count, None)
    starts: int = checked(count, 10)
    start: Any = checked(one_of("random", "data", "zero") | MODELS, "random")
    step_size: float | None = checked(positive, None)
    availability: Any = checked(AVAILABILITY, None)

    def missing(self, form: Form) -> tuple[str, ...]:
        n, d, out = form.space.n_observed, form.d, list[str]()
        if self.k is None:
            out.append("the number of models is to be chosen: give IFCA(k=...)")
        elif self.k > n:
            out.append(f"IFCA(k={self.k}) has more models than there are nodes ({n})")
        if self.k is not None and not isinstance(self.start, str) and np.shape(self.start)[-2:] != (self.k, d):
            out.append(f"start must end with the shape {(self.k, d)} of all models, got {np.shape(self.start)}")
        out += [*self.unmatched_nodes(form), *without_gradient(form)]
        return (*out, *(without_bound(form) if self.step_size is None else ()))

    @property
    def bias(self) -> str:
        return "" if self.away is None else "availability"

    @property
    def iteration(self) -> AbstractIteration:
        return _Search(self)


class _Search(AbstractTargetIteration[IFCA]):
    def init(self, view: LocalView, start: Start | None) -> State:
        del start  # that of one model per node says nothing about k
        topology, step = ServerTopology.of(view), self.options.step_size
        own = np.stack([np.nan_to_num(view.gradients.smoothness, posinf=0.0), view.gradients.shares], axis=1)
        L, share = view.engine.exchange(own, topology.up, parameters=False, purpose="adaptation").T
        i = topology.client[L[topology.client] > 0]
        bound = 2.0 * float((share[i] / L[i]).min(initial=np.inf))
        if step is not None and step > bound:
            warn(f"the step_size {step} of IFCA is beyond 2/L = {bound:.3g}: its objective may grow")
        models = _broadcast(view, topology, _first_models(self.options, view, topology), "adaptation")
        cluster, objectives = np.zeros((len(models), view.form.n), dtype=np.int64), np.zeros((0, len(models)))
        scale, nobody = (L if step is None else share).copy(), self.options.nobody_away(view)
        return State(view, 0, topology, models, cluster, scale, 0, objectives, np.zeros(cluster.shape), nobody)

    def step(self, state: State) -> State:
        view, topology, gradients, t = state.view, state.topology, state.view.gradients, state.round + 1
        present, weight, presence = clients_there(self.options, view, t, state.presence)
        values = [[gradients.value(np.broadcast_to(w_j, view.form.shape)) for w_j in w] for w in state.models]
        cluster = np.where(present, np.argmin(values, axis=1), state.cluster)  # j_i = argmin over j of f_i(w_j)
        least = np.where(present, np.min(values, axis=1), state.least)
        sent = [np.column_stack([gradients.full(w[j]), j]) for w, j in zip(state.models, cluster, strict=True)]
        up = topology.up & present[view.arcs.source]
        received = view.engine.exchange(np.concatenate(sent, axis=1), up, parameters=False)
        i = topology.client[present[topology.client]]
        each = np.split(received[i], len(sent), axis=1)
        models = [self._stepped(w, h, weight[i], state.scale[i]) for w, h in zip(state.models, each, strict=True)]
        models = _broadcast(view, topology, np.stack(models))
        new = replace(state, round=t, models=models, cluster=cluster, least=least, presence=presence)
        return self._compared(state, new) if state.calm < SETTLED else new

    def _stepped(self, w: Array, received: Array, weight: Array, scale: Array) -> Array:
        """w_j - eta_j sum over {i : j_i = j} of grad f_i(w_j), from what the clients sent, (c, d + 1), by weights."""
        number, total = np.nan_to_num(received[:, -1]), np.zeros(w.shape)
        j = np.clip(np.rint(number), 0, len(w) - 1).astype(np.int64)  # whatever a client sends, as it may lie
        np.add.at(total, j, weight * received[:, :-1])
        mass = np.bincount(j, weight[:, 0] * scale, len(w))
        eta = (1.0 if self.options.step_size is None else self.options.step_size) / np.where(mass > 0, mass, 1.0)
        return w - eta[:, None] * total

    def _compared(self, before: State, new: State) -> State:
        """The search after a round: what it has cost, and whether it is over."""
        view = new.view
        changed = (new.cluster != before.cluster).any(axis=0)
        clients = view.ids < view.n_observed
        each = np.column_stack([np.where(clients, new.least, 0.0).T, np.where(clients, changed, 0.0)])
        total = view.engine.reduce(each, "method")
        calm = new.calm + 1 if total[-1] == 0 and before.round > 0 else 0
        new = replace(new, calm=calm, objectives=np.vstack([new.objectives, total[:-1]]))
        if calm < SETTLED and new.round < LONGEST:
            return new
        best = int(np.argmin(total[:-1]))
        return replace(new, models=new.models[[best]], cluster=new.cluster[[best]], calm=SETTLED)

    def early(self, state: State) -> bool:
        return state.calm < SETTLED  # the starts are still compared

    def judge(self, state: State, certifier: Certifier) -> Certifier:
        """The certifier of the clusters found; the one at hand where it is of these."""
        form = consensus_within(state.view.form, self._found(state))
        ends = [[(e.tail.tolist(), e.head.tolist()) for e in each.edges] for each in (form, certifier.form)]
        return certifier if ends[0] == ends[1] else Certifier(form)

    def _found(self, state: State) -> Array:
        """The cluster of each client in the best start so far."""
        return state.cluster[self._best(state)]

    def _best(self, state: State) -> int:
        s = len(state.models)
        return 0 if s == 1 or not len(state.objectives) else int(np.argmin(state.objectives[-1]))

    def point(self, state: State) -> Point:
        view, member = state.view, self._found(state)
        w = np.where((view.ids >= view.n_observed)[:, None], 0.0, state.models[self._best(state)][member])
        return w, balanced_flows(consensus_within(view.form, member), view.gradients, w), None

    def gathered(self, state: State) -> dict[str, Any]:
        latent = state.view.ids >= state.view.n_observed
        return {"cluster": np.where(latent, -1, self._found(state)), "objectives": state.objectives}


# ---- models of the servers, (s, k, d) --------------------------------------------------------------------------------
def _broadcast(view: LocalView, topology: ServerTopology, models: Array, purpose: str = "method") -> Array:
    """The models of the server, at every client."""
    values = np.zeros((view.form.n, models.size))
    values[topology.server] = models.ravel()
    received = topology.broadcast(view, values, parameters=False, purpose=purpose)
    return received[topology.server[0]].reshape(models.shape)


def _first_models(options: IFCA, view: LocalView, topology: ServerTopology) -> Array:
    """The first models at the server; what it has not heard of is 0."""
    k, d, start = options.k or 1, view.form.d, options.start
    if not isinstance(start, str):
        return np.array(start, dtype=float).reshape(-1, k, d)
    if start == "zero":
        if k > 1:
            warn("IFCA(start='zero') begins with equal models: every client picks the first, and it fits one to all")
        return np.zeros((1, k, d))
    coins = Streams(view.seed, "start", range(options.starts))
    draws = [coins.generator(s, 0) for s in range(options.starts)]
    if start == "random":
        return _size(view) * np.stack([each.standard_normal((k, d)) for each in draws])
    return _own_fits(view, topology, np.array([each.permutation(view.n_observed)[:k] for each in draws]))


def _own_fits(view: LocalView, topology: ServerTopology, drawn: Array) -> Array:
    """The own fits of the clients drawn for each start, (s, k)."""
    w, memory = np.zeros(view.form.shape), view.memory()
    tau = LONG / np.where(view.curvature > 0, view.curvature, 1.0)
    for _ in range(OWN_STEPS):
        check_deadline()
        w, memory = view.prox(w, tau, w, memory)
    asked = np.isin(view.ids, drawn)
    received = view.engine.exchange(w, topology.up & asked[view.arcs.source], purpose="adaptation")
    place = np.full(view.n_observed, -1)  # -1: the models of clients that this view knows nothing of
    place[view.ids[asked]] = np.flatnonzero(asked)
    return np.where(place[drawn][:, :, None] >= 0, received[place[drawn]], 0.0)


def _size(view: LocalView) -> float:
    """The root mean square over coordinates and nodes with a loss of a gradient step 1/L_i from 0; 1 where it is 0."""
    L = np.nan_to_num(view.gradients.smoothness, posinf=0.0)
    step = view.gradients.full(np.zeros(view.form.shape)) / np.where(L > 0, L, 1.0)[:, None]
    moved = (view.gradients.counts > 0) & (L > 0)
    total, count = view.engine.reduce(np.where(moved[:, None], np.stack([(step**2).mean(axis=1), moved], axis=1), 0.0))
    return float(np.sqrt(total / max(count, 1.0))) or 1.0
