"""Fed-ADMM: stochastic gradients at the nodes, exact proxes on the edges, nodes that are not always there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...base.messages import unmatched
from ...checks import among, checked, count, one_of, positive, several
from ...errors import MethodError
from ...form import Form
from ...network import AVAILABILITY, LocalView, TakesAvailability
from ...oracles import unbounded, without_gradient
from ...running import AbstractIteration, Point, Start
from ..tolerance import Messages, ToleratesLostMessages
from ._averages import averaged
from ._fed_steps import STEPS, StepOptions, StepSize
from .fed_algorithm_1 import Algorithm1
from .fed_algorithm_1 import State as State1
from .fed_algorithm_2 import Algorithm2
from .fed_algorithm_2 import State as State2

PRINTED = {
    "(17)": "(17) as printed drops the factor 1/|V| of (16), so that the losses count |V| times in the limit; leave "
    "'(17)' out of as_printed",
    "kappa/t": "the printed step kappa/t is longer than 2/L_i in the first rounds; leave 'kappa/t' out of as_printed",
}


@dataclass(frozen=True)
class FedADMM(AbstractIteration, ToleratesLostMessages, TakesAvailability):
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

    **Nodes that are away** (see `Availability`) send and receive nothing. ``while_away="freeze"``: their parameters
    stay, and an edge is updated in the rounds in which both its ends are there. No weights and no probabilities are
    needed, the fixed points are the same, and full gradients keep their linear convergence. ``while_away="ipw"``, (21a)
    and (21b): the gradient counts 1/p_i while a node is there, the rest of (17) in every round. No server is needed,
    since neighbours act for a node that is away: each end of an edge has a version of it, which it moves in every
    round, with the theta_j+ that j sends where both are there. Where not, i finds it by (21b) if j has no other edges;
    so in a star or a hierarchy a middle that is always there does what the server of Algorithm 2 does, step by step.
    For other j it would take the copies of j's other edges, and i goes on with the theta_j that it last heard: with
    records of those copies, the paper's remark, the mean squared error was 1.2 to 3.4 times that on the server, since
    records stand still and pull on and on; so it is 0.9 to 2.2 times. Ends that meet again take the version of the one
    that was there more often, and a node without other edges its parameters; this message, and theta+, are all that is
    sent.
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
        Which nodes are there, see `Availability`; by default all.
    while_away : {"freeze", "ipw"}
        What a node does in the rounds in which it is away.
    as_printed : {"(17)", "kappa/t"}, or both
        What is to be as the paper prints it; by default nothing. "(17)": g_i is the gradient of |V| f_i, since (17)
        drops the 1/|V| of (16), and with a model scaled as (4) the limit is the optimum of sum_i |V| f_i + penalties:
        another one. "kappa/t": the step of Theorem 4.1, without its proximal part; beyond 2/L_i in the first rounds.
        Nothing is proven of either, and the solution says so; its certificate holds. The printed mean of all iterates
        is ``average="printed"``.

    Examples
    --------
    >>> run = problem.solve(gr.FedADMM(availability=0.6), seed=0)  # four of ten are away in a round
    >>> run.status
    'certified'
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
    availability: Any = checked(AVAILABILITY, None)
    while_away: str = checked(one_of("freeze", "ipw"), "freeze")
    as_printed: str | tuple[str, ...] = checked(among(*PRINTED), ())

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "as_printed", several(self.as_printed))
        if self.step_size is not None and "kappa/t" in self.as_printed:
            raise MethodError("FedADMM takes a step_size, or as_printed='kappa/t', which is one, and not both")
        if self.step_size is not None and self.kappa is not None:
            raise MethodError("FedADMM takes a step_size or a kappa, of which the step follows, and not both")

    # ---- which algorithm it is -------------------------------------------------------------------------------------
    @cached_property
    def algorithm(self) -> Algorithm1 | Algorithm2:
        """Algorithm 2 where gradients count 1/p_i, else Algorithm 1."""
        whole, steep = ("(17)" in self.as_printed), ("kappa/t" in self.as_printed)
        descent = StepOptions(self.rho, self.step_size, self.kappa, self.batch, self.batch is not None, whole, steep)
        if self.away is None or self.while_away == "freeze":
            return Algorithm1(descent, self.away)
        return Algorithm2(replace(descent, noisy=True), self.away)

    def unproven(self, form: Form) -> tuple[str, ...]:
        return tuple(PRINTED[name] for name in several(self.as_printed))

    def missing(self, form: Form) -> tuple[str, ...]:
        out = [*without_gradient(replace(form, edges=()))]  # of the losses: edges have a prox
        if self.batch is not None and self.step_size is None and "kappa/t" not in self.as_printed:
            remedy = "leave batch out, or give a step_size"
            out += [f"the curvature of {name} has no bound: {remedy}" for name in unbounded(form)]
        return (*out, *unmatched("step_size", self.step_size, form.space.index), *self.unmatched_nodes(form))

    # ---- a run -----------------------------------------------------------------------------------------------------
    def init(self, view: LocalView, start: Start | None) -> State1[Any] | State2:
        return self.algorithm.init(view, start)

    def step(self, state: Any) -> Any:
        return self._averaged(state, self.algorithm.step(state))

    def for_lost_messages(self) -> FedADMM:
        constant = self.batch is None and self.kappa is None and not callable(self.step_size) and not self.as_printed
        if not constant or self.availability is not None:
            raise MethodError(
                "FedADMM is proven under lost messages with full gradients and constant steps; leave batch, kappa, "
                "schedules and as_printed out, and say who is away in Faults(crash=...) and not in availability"
            )
        return self

    def step_with_lost_messages(self, state: Any, messages: Messages) -> Any:
        assert isinstance(self.algorithm, Algorithm1)  # or `for_lost_messages` refuses it
        return self._averaged(state, self.algorithm.step_with_lost_messages(state, messages.swap))

    def point(self, state: State1[Any] | State2) -> Point:
        theta = state.theta if state.average is None else state.average.value()
        return theta, state.copies.flows(state.view.form, theta), None

    def gathered(self, state: State1[Any] | State2) -> dict[str, Any]:
        """The proportion of the rounds in which each node was there, where there is an Availability."""
        return {} if state.presence is None else {"online": state.presence.online / max(state.round, 1)}

    def _averaged(self, before: Any, state: Any) -> Any:
        average = self.average or ("suffix" if self.algorithm.descent.noisy else "last")
        if average == "last":
            return state
        mean = averaged(average == "printed", before.average, before.theta, state.theta)
        return replace(state, average=mean)
