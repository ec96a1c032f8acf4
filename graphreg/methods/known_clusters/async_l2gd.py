"""Asynchronous loopless local gradient descent for known clusters (Async-L2GD)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...checks import checked, count, one_of
from ...errors import MethodError
from ...form import Form
from ...network import LocalView
from ...running import Point, Start
from ...terms import Array
from . import _clusters
from ._clusters import Averages
from ._probabilities import AbstractKnownClusters, Coins, Probabilities, over, without_convexity

COINS = ("separate", "single")


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    theta: Array
    averages: Averages
    xi_0: Array  # the network's coin in the round before
    probabilities: Probabilities
    step_size: Array  # eta, (n,)


@dataclass(frozen=True)
class AsyncL2GD(AbstractKnownClusters):
    """Async-L2GD (Algorithm 1 of Personalized Federated Learning with Multiple Known Clusters).

    SGD on (2.1), sum_i f_i + the hierarchy with its latent nodes minimised out, with one part of its gradient at a
    time: theta_i <- theta_i - eta G_i by the oracle (3.2), where in each round a coin of the network and one of each
    cluster decide,

        xi_0 = 1:           G_i = gamma_i/p0 [alpha_j (theta_i - thetabar) + tau_j (1 - alpha_j)(theta_i - thetabar_j)]
        xi_0 = 0, xi_j = 1: G_i = gamma_i (1 - tau_j)(1 - alpha_j)/((1 - p0) p_j) (theta_i - thetabar_j)
        xi_0 = 0, xi_j = 0: G_i = grad f_i(theta_i)/((1 - p0)(1 - p_j)).

    For smooth losses (smooth ground edges count into f_i) with a Hierarchy of two levels and SquaredL2, or
    ``Hierarchy.from_alpha``. The coins are shared randomness, from which every node draws without messages. With a
    constant step E||theta - theta*||^2 falls as (1 - eta mu)^t to a neighbourhood of size 2 eta sigma^2 / mu
    (Theorem 3.5): it does not reach a small gap, which `AsyncAL2SGD` does.

    Parameters
    ----------
    step_size : float, optional
        eta; None (default) is 1/(2 L) with the expected smoothness L of (3.5), beyond which nothing is proven
        (a `MethodWarning`).
    p_global, p_cluster : float, optional
        p0 and p_j in [0, 1), p_j a number or a mapping from cluster labels; by default those of Corollary 3.6.
    tau : float or mapping, optional
        tau_j in [0, 1]; by default p0/(p0 + 2 (1 - p0) p_j) (Proposition 3.3). Where p_j = 0 it must be 1.
    batch : int, optional
        Samples of each client in a local step, drawn with replacement; None (default) takes all.
    coin : {"separate", "single"}
        With "single" (section 6) no cluster averages on its own: one coin decides between a local step and one
        towards both averages. That is p_j = 0 and tau_j = 1.
    majority : bool
        Whether the network's coin is decided by a vote of the clusters (section 3.3), which costs messages.
    decreasing : bool
        Whether the step falls as 2/(mu t) after round 4/(2 eta mu), with which the error falls as 1/t to 0 (Gower et
        al., SGD: general analysis and improved rates, 2019, Theorem 3.2). Needs strongly convex losses.

    Notes
    -----
    An average that all can compute is not sent again: that of a cluster after a step along averages where gamma is the
    same throughout the cluster, that of the network after a step between clusters where moreover alpha_j gamma_i is
    the same throughout. There the expected number of rounds within cluster j is (1 - p0)^2 p_j (1 - p_j) T and
    between clusters p0 (1 - p0) T (Proposition 3.2, corrected); else (1 - p0) p_j T and p0 T.

    Examples
    --------
    >>> clusters = gr.Hierarchy({"north": ["a", "b"], "south": ["c", "d"]}, weights=(1.0, 1.0))
    >>> run = gr.Problem(gr.SquaredLoss(data) + clusters).solve(gr.AsyncL2GD(), rounds=500, gap=0, seed=0)
    >>> run.certificate.relative_gap < 0.2  # with a constant step it moves around the optimum
    True
    """

    needs = (
        "losses with bounded curvature, smooth node penalties, and every node in a Hierarchy of two levels with "
        "SquaredL2 and on no other edge; with decreasing=True strong convexity at every node"
    )
    sends = (
        "nothing but where a coin asks for means: the parameters of the clients up to their cluster, the mean of the "
        "clusters on to the root where the coin is the network's, and the means back"
    )

    batch: int | None = checked(count | None, None)
    coin: str = checked(one_of(*COINS), "separate")
    majority: bool = False
    decreasing: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coin == "single" and (self.p_cluster is not None or self.tau is not None):
            raise MethodError(f"with coin='single' {self.name} takes no p_cluster and no tau: they are 0 and 1")

    @property
    def coins(self) -> Coins:
        return Coins(self.p_global, 0.0 if self.coin == "single" else self.p_cluster, self.tau)

    def missing(self, form: Form) -> tuple[str, ...]:
        return super().missing(form) or (without_convexity(form) if self.decreasing else ())

    def nearer(self, form: Form) -> str:
        if self.decreasing:
            return ""
        return "a shorter step_size is nearer" if without_convexity(form) else "take decreasing=True, or AsyncAL2SGD()"

    def init(self, view: LocalView, start: Start | None) -> State:
        probabilities = self.probabilities_of(view, self.batch)
        eta = self.step_within(view, 0.5 / probabilities.bound, "1/(2 L) of Theorem 3.5")
        theta = np.zeros(view.form.shape) if start is None else start[0]
        return State(view, 0, theta, Averages(theta, theta), np.zeros(view.form.n, dtype=bool), probabilities, eta)

    def step(self, state: State) -> State:
        view, c, eta = state.view, state.probabilities.constants, self._eta(state)[:, None]
        xi_0 = self._network_coin(state)
        xi_j = ~xi_0 & _clusters.cluster_coin(view, state.probabilities.p, state.round)
        local = ~(xi_0 | xi_j)
        known, known_top = self._known(state)
        between, within = xi_0 & ~known_top, xi_j & ~known
        up = (between | within) & ~known
        bars = state.averages.renewed(view, c.share, state.theta, up, within, between)
        g = view.gradient(state.theta, self.batch, state.round) if local.any() else np.zeros_like(state.theta)
        theta = state.theta - eta * oracle(state, state.theta, bars, xi_0, xi_j, g)  # (3.2)
        # thetabar_j moves as a client at thetabar_j would; what no longer is the average is not known
        moved = bars.center - eta * oracle(state, bars.center, bars, xi_0, xi_j, np.zeros_like(theta))
        return replace(
            state,
            round=state.round + 1,
            theta=_clusters.with_latents(view, theta, bars),
            averages=replace(bars, center=np.where((xi_0 & c.even)[:, None], moved, bars.center)),
            xi_0=xi_0,
        )

    def point(self, state: State) -> Point:
        return state.theta, None, None

    def gathered(self, state: State) -> dict[str, Any]:
        """The probabilities, fractions and steps at the nodes."""
        p = state.probabilities
        return {"p_global": p.p0, "p_cluster": p.p, "tau": p.tau, "step_size": self._eta(state)}

    def without_messages(self) -> str:
        why = (
            "all must hear the vote of majority=True, which decides who sends; leave it out, or take crashes away and "
        )
        return f"{why}resend=True" if self.majority else ""

    def _known(self, state: State) -> tuple[Array, Array]:
        """Where a cluster and its clients take thetabar_j to be known without asking, and all of them thetabar: by the
        coins of the round before, so that one who was away then asks for what the others send."""
        if not state.round:
            return state.xi_0, state.xi_0
        before, p, c = replace(state, round=state.round - 1), state.probabilities.p, state.probabilities.constants
        xi_0 = state.xi_0 if self.majority else self._network_coin(before)
        return c.even & (xi_0 | _clusters.cluster_coin(state.view, p, before.round)), c.level & xi_0

    def _network_coin(self, state: State) -> Array:
        p = state.probabilities
        if self.majority:
            return _clusters.majority_coin(state.view, p.p0, p.constants.voters, state.round)
        return _clusters.network_coin(state.view, p.p0, state.round)

    def _eta(self, state: State) -> Array:
        """The step of this round; decreasing: (2 t + 1)/((t + 1)^2 mu) for t > 4 K, K = 1/(2 eta mu)."""
        if not self.decreasing:
            return state.step_size
        t, mu = state.round, np.maximum(state.probabilities.constants.mu, 1e-300)  # mu > 0 at all clients
        later = t > 4 * np.ceil(0.5 / (state.step_size * mu))
        return np.where(later, (2 * t + 1) / ((t + 1) ** 2 * mu), state.step_size)


def oracle(state: State, theta: Array, bars: Averages, xi_0: Array, xi_j: Array, g: Array) -> Array:
    """G (n, d), equation (3.2), for coins (n,) bool, of which xi_j counts where xi_0 = 0."""
    p, alpha, gamma = state.probabilities, state.probabilities.constants.alpha, state.view.tree.gamma
    to_top = np.where(xi_0, over(gamma * alpha, p.p0), 0.0)
    to_center = np.where(xi_0, over(gamma * p.tau * (1 - alpha), p.p0), 0.0)
    to_center += np.where(xi_j, over(gamma * (1 - p.tau) * (1 - alpha), (1 - p.p0) * p.p), 0.0)
    down = np.where(xi_0 | xi_j, 0.0, 1.0 / ((1 - p.p0) * (1 - p.p)))
    return to_top[:, None] * (theta - bars.top) + to_center[:, None] * (theta - bars.center) + down[:, None] * g
