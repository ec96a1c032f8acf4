"""Local SGD with gossip (Statistical inference for decentralised federated learning)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from ..errors import MethodError, MethodWarning
from ..form import Form
from ..lowering.mixing import Mixing, MixingMatrix, mixing_of
from ..lowering.site import Site
from ..terms.records import Array
from . import _consensus as consensus
from ._base import AbstractIteration, Point, Start, is_number
from ._decreasing import DecreasingStep, Steps, steps_of
from ._passes import Moments, Order, drawn_places, next_places


@dataclass(frozen=True)
class State:
    """Iterates, in the variables of `LocalSGD`."""

    site: Site
    round: int  # t
    theta: Array
    mixing: Mixing
    steps: Steps
    silence: Array | None  # each node's probability of no answer, (n,)
    order: Order | None  # of the samples in the present pass; None in the order of the data, or with replacement
    mean: Array  # of theta_0, ..., theta_{t-1} at each node
    moments: Moments | None  # None with full gradients


@dataclass(frozen=True)
class LocalSGD(AbstractIteration):
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
    tau : int
        Steps per gossip; 1 by default.
    batch : int, optional
        Samples of each node per step, 1 by default; None for all of them.
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
    nonresponse : float or {label: float}, optional
        The probability, in [0, 1), that a node does not answer at a gossip (0 where a mapping has no entry). A pair
        exchanges where both answer; else its c_ij goes to the diagonals of both, and C stays doubly stochastic.
    hessian_samples : int, optional
        a(T), over how many of the last steps the Hessians are taken; by default ceil(100 d / (K batch)), since
        K a(T) >= 100 d is what coverage was found to need.

    After T steps ``solution.gathered`` has, with one row per node and G_kt the gradient of f_k that node k saw at
    step t (the paper's w_k grad f_k):

    - ``steps``: T. ``passes`` (n,): how many times the samples were gone through, T batch / m_k.
    - ``mean`` (n, d): (1/T) sum_t theta_kt, t < T. Its mean over the nodes is the Polyak-Ruppert estimator.
    - ``gradient_mean`` (n, d): (1/T) sum_t G_kt. Its sum over the nodes is what H^-1 is applied to in the one-step
      estimator (14): mean over k of ``mean`` - H^-1 sum over k of ``gradient_mean``.
    - ``gradient_covariance`` (n, d, d): (1/T) sum_t G_kt G_kt' - the square of its mean, centred at each node. K times
      its sum over the nodes is S = K sum_k w_k^2 S_k, of the means of batches.
    - ``hessian`` (n, d, d): of f_k, at theta_kT, from the samples of the last a(T) steps (12). Its sum is H.

    With full gradients there is no noise to speak of, hence no ``gradient_mean`` and no ``gradient_covariance``.
    """

    needs = (
        "smooth losses (a bound of their curvature or a given step), smooth node penalties, a Consensus of all nodes "
        "in all coordinates and no other edges"
    )
    sends = "in every tau-th round the parameters, both ways across every edge both of whose ends answer; else nothing"

    step_size: float | DecreasingStep | None = None
    tau: int = 1
    batch: int | None = 1
    replacement: bool = True
    shuffle: bool = True
    mixing: Any = "metropolis"
    lazy: bool = False
    nonresponse: Any = None
    hessian_samples: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, DecreasingStep):
            consensus.check_step(self.step_size, self.name)
        consensus.check_batch(self.batch, self.name)
        for option in ("tau", "hessian_samples"):
            value = getattr(self, option)
            if not (consensus.is_count(value) or (value is None and option != "tau")):
                raise MethodError(f"the {option} of LocalSGD must be a whole number >= 1, got {value!r}")
        for option in ("replacement", "shuffle", "lazy"):
            if not isinstance(getattr(self, option), bool):
                raise MethodError(f"the {option} of LocalSGD must be True or False, got {getattr(self, option)!r}")
        _check_nonresponse(self.nonresponse)
        object.__setattr__(self, "mixing", MixingMatrix.of(self.mixing, self.name))

    def missing(self, form: Form) -> tuple[str, ...]:
        step = self.step_size
        stepped = is_number(step) or (isinstance(step, DecreasingStep) and None not in (step.D, step.gamma))
        out = consensus.missing(form, self.mixing, self.lazy, stepped)
        known = self.nonresponse if isinstance(self.nonresponse, Mapping) else {}
        strange = [label for label in known if label not in form.space.index]
        return (*out, *(f"the nonresponse of LocalSGD names {label!r}, which is not a node" for label in strange[:1]))

    def init(self, site: Site, start: Start | None) -> State:
        theta, _ = consensus.start_of(site, start)
        form, moments, order = site.form, None, None
        if self.batch is not None:
            a = self.hessian_samples or ceil(100 * form.d / (site.n_nodes * self.batch))
            moments = Moments.start(form.n, form.d, a, self.batch)
            order = None if self.replacement or not self.shuffle else Order.start(site)
        steps = steps_of(site, theta, self.step_size, self.batch, self.tau)
        mixing = mixing_of(site, self.mixing, self.lazy)
        return State(site, 0, theta, mixing, steps, self._silence(form), order, np.zeros_like(theta), moments)

    def step(self, state: State) -> State:
        site, t = state.site, state.round
        order, moments = state.order, state.moments
        if moments is None or self.batch is None:
            G = site.gradients.full(state.theta)
        else:
            if self.replacement:
                place = drawn_places(site, t, self.batch)
            else:
                place, order = next_places(site, t, self.batch, order)
                self._warn_of_a_second_pass(site, t)
            G = site.gradients.at_samples(state.theta, place)
            moments = moments.add(G, place)
        theta = state.theta - state.steps.at(t) * site.n_nodes * G
        if (t + 1) % self.tau == 0:
            theta = self._gossip(state, theta)
        mean = state.mean + (state.theta - state.mean) / (t + 1)
        return replace(state, round=t + 1, theta=theta, order=order, mean=mean, moments=moments)

    def point(self, state: State) -> Point:
        return state.theta, None, None

    def gathered(self, state: State) -> dict[str, Any]:
        site, moments = state.site, state.moments
        if moments is None or self.batch is None:
            passes = np.full(site.form.n, float(state.round))
            return {
                "steps": state.round,
                "passes": passes,
                "mean": state.mean,
                "hessian": site.gradients.hessians(state.theta),
            }
        seen = moments.count * self.batch / np.maximum(site.gradients.counts, 1)
        return {
            "steps": state.round,
            "passes": np.where(site.gradients.counts > 0, seen, 0.0),
            "mean": state.mean,
            "gradient_mean": moments.mean,
            "gradient_covariance": moments.scatter / max(moments.count, 1),
            "hessian": site.gradients.hessians(state.theta, moments.last() if moments.count else None),
        }

    def _gossip(self, state: State, theta: Array) -> Array:
        """One exchange with the neighbours that answer. Both ends know who does: the coins are the nodes' own."""
        site, answers, along = state.site, None, None
        if state.silence is not None:
            coin = site.streams("availability").uniform(state.round // self.tau, 1)[:, 0]
            answers = coin >= state.silence
            site.engine.away(~answers)
            along = answers[site.arcs.source] & answers[site.arcs.target]
        return state.mixing.apply(site.form, site.engine.exchange(theta, along), answers)

    def _silence(self, form: Form) -> Array | None:
        if self.nonresponse is None:
            return None
        if isinstance(self.nonresponse, Mapping):
            return np.array([float(self.nonresponse.get(label, 0.0)) for label in form.labels])
        return np.full(form.n, float(self.nonresponse))

    def _warn_of_a_second_pass(self, site: Site, t: int) -> None:
        """At the step in which the first node takes a sample for the second time."""
        counts, batch = site.gradients.counts, self.batch or 1
        if not (site.own & (counts > 0)).any():
            return
        k = int(np.argmin(np.where(site.own & (counts > 0), counts, np.iinfo(np.int64).max)))
        if t * batch <= counts[k] < (t + 1) * batch:
            warnings.warn(
                f"the {counts[k]} samples of the node {site.form.labels[k]!r} are used up after {t} steps of LocalSGD: "
                "from here on samples are taken again, which inference from a single pass does not allow",
                MethodWarning,
                stacklevel=2,
            )


def _check_nonresponse(value: Any) -> None:
    each = value if isinstance(value, Mapping) else {None: value}
    for label, p in each.items():
        if (value is not None) and not (is_number(p) and 0.0 <= p < 1.0):
            where = f"of the node {label!r} " if isinstance(value, Mapping) else ""
            raise MethodError(
                f"the nonresponse {where}of LocalSGD must be a probability in [0, 1), got {p!r}; a node that never "
                "answers is no part of the network: leave it out"
            )
