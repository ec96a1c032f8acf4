"""Local SGD with gossip (Statistical inference for decentralised federated learning)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.messages import unmatched
from ...checks import checked, count, counts, whole
from ...form import Form
from ...network import AVAILABILITY, LocalView, Mixing, Presence, TakesAvailability, mixing_of, most
from ...running import Point, Start
from ...terms import Array
from . import _consensus as consensus
from . import _robust as robustly
from ._decreasing import STEP, DecreasingStep, Steps, steps_of
from ._sampling import AbstractConsensusMethod, SampleHistory


@dataclass(frozen=True)
class State:
    """Iterates, in the variables of `LocalSGD`."""

    view: LocalView
    round: int  # t
    theta: Array
    mixing: Mixing
    steps: Steps
    presence: Presence | None
    seen: SampleHistory


@dataclass(frozen=True)
class LocalSGD(AbstractConsensusMethod, TakesAvailability):
    """Local SGD with gossip, for a smooth consensus over K nodes. Step t = 0, 1, ...:

        theta_k <- theta_k - eta_t K grad f_k(theta_k; samples of the step)        at every node k
        theta_k <- sum_j c_kj theta_j                                              where tau divides t + 1,

    f_k our summand, which is w_k F_k in the paper, so that the mean of the theta_k follows the gradient of the sum.
    Between gossips nothing is sent: a saving of 1 - 1/tau. With a constant step, nodes whose Hessians differ settle
    away from the optimum, by a distance proportional to the step, even with full gradients; a decreasing step, or
    `GradientTracking` and `ExactDiffusion`, end there.

    Parameters
    ----------
    step_size : DecreasingStep or float, optional
        eta_t; ``DecreasingStep()`` by default, a constant where a number is given, in units of 1 / curvature of the
        sum of all f_k. Beyond 2 / (K max L_k) it warns.
    tau : int or mapping
        Steps per gossip; 1 by default. By node label: a gossip comes after as many steps as the largest, of which
        slower nodes take their own number and wait. Nothing is proven of it, the limit moves towards the optima of the
        fast, and nothing is gathered for inference.
    batch : int or mapping, optional
        Samples of each node per step, for all or by node label; 1 by default, None for all of them.
    replacement : bool
        Whether samples are drawn with replacement (default). Without, every node goes through its samples one after the
        other; once one of them has used them up it warns, and goes through them again, ``gathered["passes"]`` times.
    shuffle : bool
        Whether a pass without replacement takes the samples in the order of a permutation, a new one for each
        pass (default); else in the order of the data.
    mixing : "metropolis", (n, n) array in node order, DataFrame or {i: {j: c_ij}}
        C: symmetric, rows of sum 1, positive on the edges of the communication graph and 0 off it.
    lazy : bool
        Whether (C + I)/2 takes the place of C.
    availability : number, mapping, sampler or Availability, optional
        Which nodes are there at a gossip (t of a sampler is its number), see `Availability`; by default all. A pair
        exchanges where both are; else its c_ij goes to the diagonals of both, and C stays doubly stochastic. Local
        steps go on at a node that is away.
    robust : int or "median", optional
        Takes the place of C, against malicious neighbours: of b, in every coordinate by itself, the mean of the own
        value and those of the neighbours but the b largest and the b smallest (BRIDGE-T: Fang, Yang and Bajwa, IEEE
        Trans. Signal Inf. Process. Netw. 8, 2022); "median", the median of the own value and those of all neighbours
        (BRIDGE-M), where at least two of these are there. **Guaranteed**, whatever is sent: where at most b of the
        neighbours of a node lie (fewer than half of the values that are there, with "median"), each coordinate of what
        it goes on with lies between the least and the largest of those that it and its honest neighbours have. With b,
        honest nodes come to agree where the steps decrease and enough honest links are left whichever b are dropped at
        each node. **Not guaranteed**: an optimum. These means are no doubly stochastic C, so that the limit is off the
        optimum of all, liars or none, and that of the honest nodes alone is beyond every method (Su and Vaidya, PODC
        2016); where all nodes' data are alike the distance is a statistical one. Nothing is gathered for inference.
    hessian_samples : int, optional
        a(T), over how many of the last steps the Hessians are taken; by default ceil(100 d / (K batch)), since
        K a(T) >= 100 d is what coverage was found to need.

    burn_in : int
        B, how many of the first steps are left out of everything that is gathered; 0 by default. The rest is what a run
        gathers that starts at theta_B with gamma + B for gamma, so that the theory of averages holds for it as it is.

    After B + T steps ``solution.gathered`` has, with sums over t from B on, one row per node and G_kt the gradient of
    f_k that node k saw at step t (the paper's w_k grad f_k):

    - ``steps``: T. ``burn_in``: B. ``batch``, ``replacement`` (0 or 1). ``alpha``: of the step, 0 where it is constant.
    - ``passes`` (n,): how many times the samples were gone through in these T steps, T batch / m_k.
    - ``mean`` (n, d): (1/T) sum_t theta_kt. Its mean over the nodes is the Polyak-Ruppert estimator.
    - ``gradient_mean`` (n, d): (1/T) sum_t G_kt. Its sum over the nodes is what H^-1 is applied to in the one-step
      estimator (14): mean over k of ``mean`` - H^-1 sum over k of ``gradient_mean``.
    - ``gradient_covariance`` (n, d, d): (1/T) sum_t G_kt G_kt' - the square of its mean, centred at each node. K times
      its sum over the nodes is S = K sum_k w_k^2 S_k, of the means of batches.
    - ``hessian`` (n, d, d): of f_k, at the last theta_k, from the samples of the last a(T) steps (12). Its sum is H.
      ``hessian_samples``: how many these are at a node, a(T) batch.
    `graphreg.inference.confidence_region` makes confidence regions of it.

    With full gradients there is no noise to speak of, hence no ``gradient_mean`` and no ``gradient_covariance``.

    Examples
    --------
    >>> one_model = gr.Problem(gr.SquaredLoss(data) + gr.Consensus(graph))
    >>> run = one_model.solve(gr.LocalSGD(tau=5, batch=None), rounds=200, gap=0)
    >>> run.ledger.messages["method"]  # 2 for each of 3 edges in every fifth round
    240
    """

    sends = "in every tau-th round the parameters, both ways across edges both of whose ends are there; else nothing"

    step_size: float | DecreasingStep | None = checked(STEP, None)
    tau: int | Mapping[Hashable, int] = checked(counts, 1)
    batch: consensus.Batch = checked(counts | None, 1)
    replacement: bool = True
    shuffle: bool = True
    mixing: Any = "metropolis"
    lazy: bool = False
    availability: Any = checked(AVAILABILITY, None)
    robust: int | str | None = checked(robustly.ROBUST | None, None)
    hessian_samples: int | None = checked(count, None)
    burn_in: int = checked(whole(0), 0)

    def missing(self, form: Form) -> tuple[str, ...]:
        few = () if self.robust is None else robustly.too_few(form, self.robust)
        wrong = unmatched("tau", self.tau, form.space.index)
        return (*super().missing(form), *few, *wrong, *self.unmatched_nodes(form))

    def unproven(self, form: Form) -> tuple[str, ...]:
        said = "robust means lead to no optimum, but keep what malicious neighbours send within the range of the honest"
        return () if self.robust is None else (said,)

    def nearer(self, form: Form) -> str:
        decreasing = self.step_size is None or isinstance(self.step_size, DecreasingStep)
        return "" if decreasing else "take step_size=DecreasingStep(), or GradientTracking()"

    @property
    def bias(self) -> str:
        return "" if self.robust is None else "robust"

    @property
    def drawn(self) -> bool:
        return self.robust is not None  # it moves as long as its steps do

    def init(self, view: LocalView, start: Start | None) -> State:
        theta, _ = consensus.start_of(view, start)
        steps = replace(steps_of(view, theta, self.step_size, self.batch), tau=most(self.tau))
        mixing = mixing_of(view, self.mixing, self.lazy)
        return State(view, 0, theta, mixing, steps, self.nobody_away(view), self.nothing_seen(view, theta))

    def step(self, state: State) -> State:
        view, t, tau = state.view, state.round, most(self.tau)
        G, seen = self.sampled_gradients(state)
        if isinstance(self.tau, Mapping):  # the slow wait for the gossip
            G = np.where((t % tau < view.each(self.tau))[:, None], G, 0.0)
        theta, presence = state.theta - state.steps.at(t) * view.n_nodes * G, state.presence
        if (t + 1) % tau == 0:
            theta, presence = self._gossip(state, theta)
        return replace(state, round=t + 1, theta=theta, seen=seen, presence=presence)

    def point(self, state: State) -> Point:
        return state.theta, None, None

    def gathered(self, state: State) -> dict[str, Any]:
        """The sums for inference, but for rounds of which no theory of it speaks."""
        found = super().gathered(state)
        plain = self.robust is None and not isinstance(self.tau, Mapping)
        return found if plain else {name: found[name] for name in ("steps", "burn_in", "mean")}

    def _gossip(self, state: State, theta: Array) -> tuple[Array, Presence | None]:
        """One exchange with the neighbours that are there. Both ends know who is: the coins are the nodes' own."""
        view, present, along, presence = state.view, None, None, state.presence
        if self.away is not None and presence is not None:
            present, along, presence = self.away.attend(view, (state.round + 1) // most(self.tau), presence)
        received = view.engine.exchange(theta, along)
        if self.robust is not None:
            return robustly.robust_mean(view, theta, received, present, self.robust), presence
        return state.mixing.apply(view.form, received, present), presence
