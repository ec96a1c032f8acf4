"""The iterative federated clustering algorithm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...certificate import Certifier
from ...checks import Check, checked, count, one_of, positive
from ...clock import look
from ...form import Form
from ...network import Site, Star, Streams, balanced_flows, star, tied
from ...oracles import without_bound, without_gradient
from ...terms import Array
from ...terms.penalties import Zero
from ..base import AbstractIteration, Point, Start, warn
from ._baseline import AbstractBaseline, AbstractRounds

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
    site: Site
    round: int
    star: Star
    models: Array  # (s, k, d), of each start, as the servers sent them last
    cluster: Array  # (s, n), of each client in each start
    scale: Array  # L_i as the server knows them, a_i where a step was given, (n,)
    calm: int  # rounds without a change of any assignment
    objectives: Array  # of each start, (rounds of the search, starts)


@dataclass(frozen=True)
class IFCA(AbstractBaseline):
    """Iterative federated clustering (Ghosh, Chung, Yin and Ramchandran, NeurIPS 2020, Algorithm 1).

        minimise over the models w_1 ... w_k    sum_i min over j of f_i(w_j)

    which is not convex. In a round the server sends all models, every client picks the one with the least f_i (the
    first of several), and the server steps each model along the gradients of those who picked it,

        j_i = argmin over j of f_i(w_j),     w_j <- w_j - eta_j sum over {i : j_i = j} of grad f_i(w_j).

    f_i holds the smooth node penalties. The objective never grows while eta_j <= 2 / (sum of the L_i of the members).
    What the models end at depends on where they start, so ``starts`` runs go on side by side until no assignment of
    any has changed for 10 rounds (500 rounds at most); the one with the lowest objective goes on alone. The problem
    that is certified is convex again: the fits of the clusters *found*, one model each.

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

    ``start=`` of `solve` is not used. ``solution.gathered`` holds ``cluster``, the model of each node by number (-1 at
    the server), and ``objectives``, those of every start in every round of the search, (rounds, starts).
    """

    aim = "the fits of the clusters that it found"
    needs = (
        "a number of models k; smooth losses (a bound of their curvature or a given step), smooth node penalties; it "
        "drops the edges between nodes"
    )
    sends = (
        "nothing across the edges; the server sends k models to every node, which sends back a gradient and the "
        "number of its model; for every start, until the search is over"
    )

    k: int | None = checked(count, None)
    starts: int = checked(count, 10)
    start: Any = checked(one_of("random", "data", "zero") | MODELS, "random")
    step_size: float | None = checked(positive, None)

    def missing(self, form: Form) -> tuple[str, ...]:
        n, d, out = form.space.n_observed, form.d, list[str]()
        if self.k is None:
            out.append("the number of models is to be chosen: give IFCA(k=...)")
        elif self.k > n:
            out.append(f"IFCA(k={self.k}) has more models than there are nodes ({n})")
        if self.k is not None and not isinstance(self.start, str) and np.shape(self.start)[-2:] != (self.k, d):
            out.append(f"start must end with the shape {(self.k, d)} of all models, got {np.shape(self.start)}")
        return (*out, *without_gradient(form), *(without_bound(form) if self.step_size is None else ()))

    def target(self, form: Form) -> Form:
        return star(form, Zero())

    @property
    def iteration(self) -> AbstractIteration:
        return _Search(self)


@dataclass(frozen=True)
class _Search(AbstractRounds):
    options: IFCA

    def init(self, site: Site, start: Start | None) -> State:
        del start  # that of one model per node says nothing about k
        circle, step = Star.of(site), self.options.step_size
        own = np.stack([_finite(site.gradients.smoothness), site.gradients.shares], axis=1)
        L, share = site.engine.exchange(own, circle.up, parameters=False).T
        i = circle.client[L[circle.client] > 0]
        bound = 2.0 * float((share[i] / L[i]).min(initial=np.inf))
        if step is not None and step > bound:
            warn(f"the step_size {step} of IFCA is beyond 2/L = {bound:.3g}: its objective may grow")
        models = _broadcast(site, circle, _first_models(self.options, site, circle))
        cluster, objectives = np.zeros((len(models), site.form.n), dtype=np.int64), np.zeros((0, len(models)))
        return State(site, 0, circle, models, cluster, (L if step is None else share).copy(), 0, objectives)

    def step(self, state: State) -> State:
        site, circle, gradients = state.site, state.star, state.site.gradients
        values = [[gradients.value(np.broadcast_to(w_j, site.form.shape)) for w_j in w] for w in state.models]
        cluster, least = np.argmin(values, axis=1), np.min(values, axis=1)  # j_i = argmin over j of f_i(w_j)
        sent = [np.column_stack([gradients.full(w[j]), j]) for w, j in zip(state.models, cluster, strict=True)]
        heard = site.engine.exchange(np.concatenate(sent, axis=1), circle.up, parameters=False)
        each = np.split(heard[circle.client], len(sent), axis=1)
        scale = state.scale[circle.client]
        models = np.stack([self._stepped(w, h, scale) for w, h in zip(state.models, each, strict=True)])
        models = _broadcast(site, circle, models)
        new = replace(state, round=state.round + 1, models=models, cluster=cluster)
        return self._compared(state, new, least) if self.searches(state) else new

    def _stepped(self, w: Array, heard: Array, scale: Array) -> Array:
        """w_j - eta_j sum over {i : j_i = j} of grad f_i(w_j), from what the clients sent, (c, d + 1)."""
        j, total = heard[:, -1].astype(np.int64), np.zeros(w.shape)
        np.add.at(total, j, heard[:, :-1])
        mass = np.bincount(j, scale, len(w))
        eta = (1.0 if self.options.step_size is None else self.options.step_size) / np.where(mass > 0, mass, 1.0)
        return w - eta[:, None] * total

    def _compared(self, before: State, new: State, least: Array) -> State:
        """The search after a round: what it has cost, and whether it is over."""
        site = new.site
        changed = (new.cluster != before.cluster).any(axis=0)
        clients = site.ids < site.n_observed
        each = np.column_stack([np.where(clients, least, 0.0).T, np.where(clients, changed, 0.0)])
        total = site.engine.reduce(each, "method")
        calm = new.calm + 1 if total[-1] == 0 and before.round > 0 else 0
        new = replace(new, calm=calm, objectives=np.vstack([new.objectives, total[:-1]]))
        if calm < SETTLED and new.round < LONGEST:
            return new
        best = int(np.argmin(total[:-1]))
        return replace(new, models=new.models[[best]], cluster=new.cluster[[best]], calm=SETTLED)

    def searches(self, state: State) -> bool:
        return state.calm < SETTLED

    def judge(self, state: State, certifier: Certifier) -> Certifier:
        """The certifier of the clusters found; the one at hand where it is of these."""
        form = tied(state.site.form, self._found(state))
        return certifier if _same_ties(form, certifier.form) else Certifier(form)

    def _found(self, state: State) -> Array:
        """The cluster of each client in the best start so far."""
        return state.cluster[self._best(state)]

    def _best(self, state: State) -> int:
        s = len(state.models)
        return 0 if s == 1 or not len(state.objectives) else int(np.argmin(state.objectives[-1]))

    def point(self, state: State) -> Point:
        site, member = state.site, self._found(state)
        w = np.where((site.ids >= site.n_observed)[:, None], 0.0, state.models[self._best(state)][member])
        return w, balanced_flows(tied(site.form, member), site.gradients, w), None

    def gathered(self, state: State) -> dict[str, Any]:
        latent = state.site.ids >= state.site.n_observed
        return {"cluster": np.where(latent, -1, self._found(state)), "objectives": state.objectives}


# ---- models of the servers, (s, k, d) --------------------------------------------------------------------------------
def _broadcast(site: Site, circle: Star, models: Array) -> Array:
    """From the server to every client."""
    servers = np.unique(circle.server)
    values = np.zeros((site.form.n, models.size))
    values[servers] = models.ravel()
    return site.engine.exchange(values, circle.down, parameters=False)[servers[0]].reshape(models.shape)


def _first_models(options: IFCA, site: Site, circle: Star) -> Array:
    """At the server; what it has not heard of is 0."""
    k, d, start = options.k or 1, site.form.d, options.start
    if not isinstance(start, str):
        return np.array(start, dtype=float).reshape(-1, k, d)
    if start == "zero":
        if k > 1:
            warn("IFCA(start='zero') begins with equal models: every client picks the first, and it fits one to all")
        return np.zeros((1, k, d))
    coins = Streams(site.seed, "start", range(options.starts))
    draws = [coins.generator(s, 0) for s in range(options.starts)]
    if start == "random":
        return _size(site) * np.stack([each.standard_normal((k, d)) for each in draws])
    return _own_fits(site, circle, np.array([each.permutation(site.n_observed)[:k] for each in draws]))


def _own_fits(site: Site, circle: Star, drawn: Array) -> Array:
    """Of the clients drawn for each start, (s, k)."""
    w, memory = np.zeros(site.form.shape), site.memory()
    tau = LONG / np.where(site.curvature > 0, site.curvature, 1.0)
    for _ in range(OWN_STEPS):
        look()
        w, memory = site.prox(w, tau, w, memory)
    asked = np.isin(site.ids, drawn)
    heard = site.engine.exchange(w, circle.up & asked[site.arcs.source])
    place = np.full(site.n_observed, -1)  # -1: the models of clients that this site knows nothing of
    place[site.ids[asked]] = np.flatnonzero(asked)
    return np.where(place[drawn][:, :, None] >= 0, heard[place[drawn]], 0.0)


def _same_ties(one: Form, two: Form) -> bool:
    ends = [[(edge.tail.tolist(), edge.head.tolist()) for edge in form.edges] for form in (one, two)]
    return ends[0] == ends[1]


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)


def _size(site: Site) -> float:
    """The root mean square over coordinates and nodes with a loss of a gradient step 1/L_i from 0; 1 where it is 0."""
    L = _finite(site.gradients.smoothness)
    step = site.gradients.full(np.zeros(site.form.shape)) / np.where(L > 0, L, 1.0)[:, None]
    moved = (site.gradients.counts > 0) & (L > 0)
    total, count = site.engine.reduce(np.where(moved[:, None], np.stack([(step**2).mean(axis=1), moved], axis=1), 0.0))
    return float(np.sqrt(total / max(count, 1.0))) or 1.0
