"""Fed-ADMM: stochastic gradients at the nodes, exact proxes on the edges, nodes that are not always there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..checks import checked, count, one_of, positive
from ..clock import look
from ..errors import MethodError
from ..form import Form
from ..lowering.gradients import without_gradient
from ..lowering.site import Site
from ..messages import unmatched
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.records import Array
from ._averages import Mean, SuffixMean, averaged
from ._base import AbstractIteration, Point, Start
from ._copies import Copies, copies_at
from ._fed_steps import STEPS, StepSize, batch_smoothness, bends_more, constant_steps, scheduled, warn
from ._lossy import edges_under_loss
from ._versions import Versions, begun
from .availability import Availability
from .tolerance import Swap, ToleratesLoss

RHO = 4.0  # in units of mean curvature / mean degree
KAPPA = 3.0  # in units of 1 / mean curvature
LEAST = 1e-300  # the curvature of a node without samples and edges, which does not move


@dataclass(frozen=True)
class State:
    """Iterates, in the variables of `FedADMM`."""

    site: Site
    round: int
    w: Array  # theta
    copies: Copies | Versions  # beta, and the flows u = -alpha, which are certified
    rho: float
    kappa: float | None  # of the decreasing step; None where it is constant or given
    given: Array | None  # the constant steps that were given, (n,)
    smoothness: Array  # L_i; where the loss has no bound, what the steps so far have shown, (n,)
    held: Array  # rho deg_i, deg_i the number of copies of node i, (n,)
    probability: Array | None  # p_i; None where there is no Availability or it has none
    online: Array  # rounds in which each node was there, (n,)
    told: Array | None  # with weights, L_i as neighbours know it, (n,): they step for node i while it is away
    average: Mean | SuffixMean | None  # None: the last iterate


@dataclass(frozen=True)
class FedADMM(AbstractIteration, ToleratesLoss):
    """Fed-ADMM, the decentralised stochastic ADMM of graph-fused M-estimation (Algorithms 1 and 2).

    Each edge e = (i, j) has a copy of the parameters of both ends, beta_ij = theta_i and beta_ji = theta_j, with
    multipliers alpha_ij and alpha_ji. A round is, with a gradient g_i of f_i at all samples of node i or at ``batch``
    of them,

        theta_i+ = theta_i - eta_i (g_i + rho sum over j of (theta_i - beta_ij - alpha_ij / rho))               (17)
        (beta_ij+, beta_ji+) = argmin g_e(beta_ij - beta_ji) + rho/2 (||beta_ij - a||^2 + ||beta_ji - b||^2)     (18)
        alpha_ij+ = alpha_ij - rho (theta_i+ - beta_ij+),        a = theta_i+ - alpha_ij / rho,  b alike         (19)

    and (18) is, for every penalty, beta_ij+ + beta_ji+ = a + b and beta_ij+ - beta_ji+ = prox of g_e / sigma at a - b
    with sigma = rho/2. So alpha_ji = -alpha_ij: one flow u = -alpha_ij per edge, and by Moreau's identity

        theta+ = theta - eta (g + K'u + rho sum of (theta - beta))
        u+     = prox of sigma g_e* at  u + sigma (K theta+ - center)
        beta_ij+ = theta_i+ - (u+ - u) / rho,   beta_ji+ = theta_j+ + (u+ - u) / rho

    u is a subgradient of g_e at the difference of the copies: the flow of every round lies in its domain, and is what
    is certified. Both ends keep u and their own copy, and compute the same u: a round sends theta+ across every edge,
    in both directions, and nothing else. Edges to the ground have one copy, and sigma = rho; those of smooth penalties
    need none, they are a part of g_i. The objective here has no factor 1/|V|, which (17) as printed drops.

    **Steps.** With all samples eta_i = 1 / (L_i + rho deg_i), where L_i is the smoothness of f_i: linear convergence of
    the last iterate. (Poisson losses have no L_i: each node starts from its mean curvature and doubles it as long as a
    step shows that f_i bends more.) With batches, or inverse-probability weights,

        eta_i(t) = kappa / (t + kappa (L_i + rho deg_i)),    L_i of a batch of b:  (1 - 1/b) L_i + max_k L_ik / b

    with L_ik that of sample k alone, so that E[H^2] <= L_i E[H] for the Hessian H of a batch: the printed eta = kappa/t
    (``step_size=lambda t: kappa / t``) explodes in its first rounds, and the proof is of the step eta~ = kappa/t of
    (20). The mean squared error is O(1/T).

    **Nodes that are away** (see `Availability`) send and receive nothing. ``dropout="freeze"``: their parameters stay,
    and an edge is updated in the rounds in which both its ends are there. No weights and no probabilities are needed,
    the fixed points are the same, and full gradients keep their linear convergence. ``dropout="ipw"``, (21a) and (21b):
    the gradient counts 1/p_i while a node is there, the rest of (17) in every round. No server is needed, since
    neighbours act for a node that is away: each end of an edge has a version of it, which it moves in every round, with
    the theta_j+ that j sends where both are there. Where not, i finds it by (21b) if j has no other edges; so in a star
    or a hierarchy a middle that is always there does what the server of Algorithm 2 does, step by step. For other j it
    would take the copies of j's other edges, and i goes on with the theta_j that it last heard: with records of those
    copies, the paper's remark, the mean squared error was 1.2 to 3.4 times that on the server, since records stand
    still and pull on and on; so it is 0.9 to 2.2 times. Ends that meet again take the version of the one that was there
    more often, and a node without other edges its parameters; this message, and theta+, are all that is sent.
    In the step L_i is L_i / p_i; the mean squared error is O(1/T).

    Parameters
    ----------
    rho : float, optional
        The penalty parameter, in units of curvature; 4 mean curvature / mean degree by default.
    step_size : number, mapping or callable, optional
        eta: one number, one per label, or a function of the round t = 1, 2, ... that returns a number or one per node
        (n,), in the order of the problem. By default as above.
    kappa : float, optional
        kappa of the decreasing step, in units of 1 / curvature; 3 / mean curvature by default. Where it is given the
        step decreases with full gradients too.
    batch : int, optional
        How many samples each node draws in a round, with replacement; None (default) for the gradient of all.
    average : {"last", "printed", "suffix"}, optional
        What is certified and returned: the last iterate, the mean of theta(0), ..., theta(T-1) of Algorithm 1, or the
        mean of the last rounds, at least half and at most three quarters of them (`SuffixMean`). By default "suffix"
        with batches and inverse-probability weights, else "last".
    availability : number, mapping, sampler or Availability, optional
        Which nodes are there; by default all.
    dropout : {"freeze", "ipw"}
        What a node does in the rounds in which it is away.
    """

    needs = "smooth losses (with batches a bound of their curvature or a given step); any penalty, any graph"
    sends = (
        "the new parameters, both ways across every edge both of whose ends are there: the coordinates that it couples"
    )

    rho: float | None = checked(positive, None)
    step_size: StepSize | None = checked(STEPS, None)
    kappa: float | None = checked(positive, None)
    batch: int | None = checked(count | None, None)
    average: str | None = checked(one_of("last", "printed", "suffix"), None)
    availability: Any = None
    dropout: str = checked(one_of("freeze", "ipw"), "freeze")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_size is not None and self.kappa is not None:
            raise MethodError("FedADMM takes a step_size or a kappa, of which the step follows, and not both")
        _ = self.away  # raises where it is wrong

    # ---- what it needs ---------------------------------------------------------------------------------------------
    @cached_property
    def away(self) -> Availability | None:
        """Which nodes are there; None: all, always."""
        return Availability.of(self.availability)

    @property
    def weighted(self) -> bool:
        """Whether gradients count 1/p_i."""
        return self.availability is not None and self.dropout == "ipw"

    @property
    def noisy(self) -> bool:
        """Whether steps must decrease to converge."""
        return self.batch is not None or self.weighted

    def missing(self, form: Form) -> tuple[str, ...]:
        out = [*without_gradient(replace(form, edges=()))]  # of the losses: edges have a prox
        if self.batch is not None and self.step_size is None:
            losses = [b.loss for b in form.samples if isinstance(b.loss, AbstractSmoothLoss)]
            names = sorted({type(loss).__name__ for loss in losses if np.isinf(loss.smoothness())})
            out += [f"the curvature of {each} has no bound: leave batch out, or give a step_size" for each in names]
        out += unmatched("step_size", self.step_size, form.space.index)
        return (*out, *(() if self.away is None else self.away.missing(form)))

    # ---- a run -----------------------------------------------------------------------------------------------------
    def init(self, site: Site, start: Start | None) -> State:
        w, flows = (np.zeros(site.form.shape), None) if start is None else start
        rho, kappa = self._constants(site)
        L = batch_smoothness(site.gradients, self.batch)
        L = np.where(np.isfinite(L), L, site.curvature)  # the mean curvature where there is no bound, to begin with
        state = State(
            site=site,
            round=0,
            w=w,
            copies=Copies.of(site, w, site.form.nothing().flows if flows is None else flows),
            rho=rho,
            kappa=kappa,
            given=None,
            smoothness=L,
            held=rho * copies_at(site),
            probability=None if self.away is None else self.away.probabilities(site),
            online=np.zeros(site.form.n, dtype=np.int64),
            told=None,
            average=None,
        )
        if self.weighted:
            known = np.stack([L, state.held], axis=1)
            (L, held), w, versions = begun(site, known, w, state.copies, start is not None)
            state = replace(state, w=w, copies=versions, smoothness=L, held=held, told=L)
        return self._with_given_steps(state)

    def step(self, state: State) -> State:
        site, t = state.site, state.round + 1
        there = self._there(state, t)
        online = state.online + there
        inverse = self._inverse(state, online, t)
        if self.availability is not None:
            site.engine.away(~there)
        if isinstance(state.copies, Versions):
            assert state.told is not None
            degree = np.rint(state.held / state.rho)
            copies, w = state.copies.met(site, state.w, degree, there)
            w, smoothness = self._moved(replace(state, copies=copies, w=w), there, inverse, t)
            eta = self._step_sizes(state, state.told * inverse, t)
            copies = copies.step(site, w, eta, degree, state.rho, there)
        else:
            w, smoothness = self._moved(state, there, inverse, t)
            along = there[site.arcs.source] & there[site.arcs.target] if self.availability is not None else None
            copies = state.copies.step(site, site.engine.exchange(w, along), state.rho, there)
        more = {"round": t, "online": online, "average": self._averaged(state, w)}
        return replace(state, w=w, copies=copies, smoothness=smoothness, **more)

    def under_loss(self) -> FedADMM:
        if self.noisy or self.kappa is not None or callable(self.step_size) or self.availability is not None:
            raise MethodError(
                "FedADMM is proven under lost messages with full gradients and constant steps; leave batch, kappa and "
                "schedules out, and say who is away in Faults(crash=...) and not in availability"
            )
        return self

    def step_under_loss(self, state: State, swap: Swap) -> State:
        """The halves of Fed-ADMM in the order of `edges_under_loss`: Davis-Yin splitting, as averaged, for 1/L_i."""
        site, all_there = state.site, np.full(state.site.form.n, True)
        w, smoothness = self._moved(state, all_there, np.ones(len(all_there)), state.round + 1)
        flows = state.copies.flows(site.form, state.w)
        ends = edges_under_loss(site, (state.w, w, w), flows, 1.0 / state.rho, 1.0, swap)
        copies = Copies.of(site, w, tuple(u for u, _, _ in ends))
        more = {"round": state.round + 1, "average": self._averaged(state, w)}
        return replace(state, w=w, copies=copies, smoothness=smoothness, **more)

    def point(self, state: State) -> Point:
        w = state.w if state.average is None else state.average.value()
        return w, state.copies.flows(state.site.form, w), None

    def gathered(self, state: State) -> dict[str, Any]:
        """The proportion of the rounds in which each node was there, where there is an Availability."""
        return {} if self.availability is None else {"online": state.online / max(state.round, 1)}

    # ---- steps -----------------------------------------------------------------------------------------------------
    def _constants(self, site: Site) -> tuple[float, float | None]:
        """rho, and kappa where the step decreases."""
        decreasing = self.step_size is None and (self.noisy or self.kappa is not None)
        if self.rho is not None and (self.kappa is not None or not decreasing):
            return self.rho, self.kappa
        scales = site.scales()
        h, degree = scales.curvature or 1.0, scales.degree or 1.0
        return self.rho or RHO * h / degree, (self.kappa or KAPPA / h) if decreasing else None

    def _with_given_steps(self, state: State) -> State:
        """The state with the constant steps that were given, if any."""
        if self.step_size is None or callable(self.step_size):
            return state
        p = state.probability if self.weighted and state.probability is not None else 1.0
        if self.noisy:
            warn("a constant step_size keeps the variance of its gradients: let it decrease like 1/t")
        bound = 1.0 / np.maximum(state.smoothness / p + state.held, LEAST)
        bound = np.where(np.isfinite(state.site.gradients.smoothness), bound, np.inf)
        return replace(state, given=constant_steps(state.site, self.step_size, bound))

    def _there(self, state: State, t: int) -> Array:
        if self.away is None:
            return np.full(state.site.form.n, True)
        return self.away.there(state.site, t, state.probability)

    def _inverse(self, state: State, online: Array, t: int) -> Array:
        """1/p_i where gradients are weighted: p_i known, or the proportion of the rounds so far; else 1."""
        if self.away is None or not self.weighted:
            return np.ones(len(online))
        if self.away.known and state.probability is not None:
            return 1.0 / state.probability
        return t / np.maximum(online, 1)

    def _moved(self, state: State, there: Array, inverse: Array, t: int) -> tuple[Array, Array]:
        """(17), (21a) and (21b): the parameters after the nodes' half of round t, and L_i."""
        gradients, L = state.site.gradients, state.smoothness
        if self.batch is None:
            g = gradients.full(state.w)
        else:
            g = gradients.sampled(state.w, state.site.streams("samples").uniform(t, self.batch))
        slope = np.where(there, inverse, 0.0)[:, None] * g + state.copies.pull(state.site, state.w, state.rho)
        unbounded = ~np.isfinite(gradients.smoothness) if self.step_size is None else np.full(len(L), False)
        while True:  # at most a thousand times: then the L_i of all that bend more are infinite
            look()
            w = state.w - self._step_sizes(state, L * inverse, t)[:, None] * slope
            if not self.weighted:
                w = np.where(there[:, None], w, state.w)
            short = unbounded & bends_more(gradients, state.w, w, g, L) if unbounded.any() else unbounded
            short = short & np.isfinite(L)  # a gradient that is no number is not mended by shorter steps
            if not short.any():
                return w, L
            L = np.where(short, 2.0 * L, L)

    def _step_sizes(self, state: State, L: Array, t: int) -> Array:
        """eta_i(t), (n,)."""
        if state.given is not None:
            return state.given
        if callable(self.step_size):
            return scheduled(state.site, self.step_size, t)
        bound = np.maximum(L + state.held, LEAST)
        return 1.0 / bound if state.kappa is None else state.kappa / (t + state.kappa * bound)

    def _averaged(self, state: State, w: Array) -> Mean | SuffixMean | None:
        average = self.average or ("suffix" if self.noisy else "last")
        if average == "last":
            return None
        return averaged(average == "printed", state.average, state.w, w)
