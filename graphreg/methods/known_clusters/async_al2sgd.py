"""Accelerated, variance-reduced local SGD for known clusters (Async-AL2SGD+, a loopless Katyusha)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...checks import among, checked, count, fraction, inside, positive, several
from ...form import Form
from ...network import LocalView
from ...running import Point, Start
from ...terms import Array
from . import _clusters
from ._clusters import Averages
from ._probabilities import AbstractKnownClusters, Probabilities, over, without_convexity

PRINTED = {
    "(4.1)": "the estimator (4.1) as printed is biased: it lacks the within-cluster part where xi_0 = 1; leave '(4.1)' "
    "out of as_printed",
    "b2/n": "z moves by b2/n as printed, where the theorem asks for b2/eta; leave 'b2/n' out of as_printed",
}


@dataclass(frozen=True)
class Momentum:
    """The constants of Theorem 4.3 at the nodes, (n,) arrays."""

    eta: Array
    rho: Array
    a1: Array
    a2: Array
    b1: Array
    b2: Array


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    x: Array  # where full gradient and averages were last computed
    y: Array
    z: Array
    slope: Array  # grad f_i(x_i)
    of_x: Averages
    probabilities: Probabilities
    momentum: Momentum


@dataclass(frozen=True)
class AsyncAL2SGD(AbstractKnownClusters):
    """Async-AL2SGD+ (Algorithm 2 of Personalized Federated Learning with Multiple Known Clusters), corrected.

    L-Katyusha on (2.1), for smooth and strongly convex losses (smooth ground edges count into f_i) with a Hierarchy
    of two levels and SquaredL2, or ``Hierarchy.from_alpha``: with the coins xi_0, xi_j of `AsyncL2GD`,

        theta_i = a1 z_i + a2 x_i + (1 - a1 - a2) y_i
        g_i = grad f_i(x_i) + alpha_j gamma_i (x_i - xbar) + (1 - alpha_j) gamma_i (x_i - xbar_j)
              + G_i(theta) - G_i(x)     with the oracle G of (3.2), in a local step of the same samples at both points
        y_i <- theta_i - eta g_i
        z_i <- b1 z_i + (1 - b1) theta_i + (b2/eta) (y_i - theta_i)
        x_i <- y_i  with probability rho, the same for all; gradient and averages are then computed anew.

    Departures from the print: (4.1) lacks the within-cluster part of G where xi_0 = 1 and is biased without it, so
    that the method may diverge; z moves by b2/eta, not b2/n, with which it is many times slower; 0 < a1, a2 < 1.

    Parameters
    ----------
    step_size : float, optional
        eta; None (default) is 1/(4 max(L_F, L)) (Theorem 4.3), beyond which nothing is proven (a `MethodWarning`).
        L is the expected smoothness (3.5) with Ltilde, L_F = Ltilde + max gamma_i.
    p_global, p_cluster, tau : float or mapping, optional
        As in `AsyncL2GD`; by default by Corollary 4.4 and Proposition 3.3.
    rho : float, optional
        In (0, 1]; by default p (1 - p), p = p0 or, where no cluster is tied to the root, p_j: as many refreshes as
        other rounds of that kind. Where C_1 = max alpha_j gamma_i is far above Ltilde, p0 is near 1 and this is too
        seldom: set rho to 0.3 to 1 there. At C_1 = 28 Ltilde (two clusters of five nodes, condition number 1000) the
        excess was a 1e-4th after 2890 rounds with rho = 1, 4300 with 0.5, 8170 with 0.1, and not after 16000 with the
        default, 0.017; at C_1 = 2.7 Ltilde after 970, 1210, 2230 and, with the default, 0.13, 1950.
    batch : int, optional
        Samples of each client in a local step, drawn with replacement; None (default) takes all. Ltilde is the
        largest smoothness of one sample's part of f_i where batch = 1, that of f_i where it is None.
    a1, a2, b1, b2 : float, optional
        By default, with mu the least strong convexity (Theorem 4.3; computed in this order):
        a2 = L/(2 max(L_F, L)), a1 = min(1/2, sqrt(eta mu max(1/2, a2/rho))), b2 = 1/max(2 mu, 4 a1/eta),
            b1 = 1 - b2 mu.
    as_printed : {"(4.1)", "b2/n"}, or both
        What is to be as the paper prints it; by default nothing. "(4.1)": g_i without the within-cluster part of G
        where xi_0 = 1, which leaves E[g_i] short of grad F_i(theta) by gamma_i tau_j (1 - alpha_j)
        [(theta_i - thetabar_j) - (x_i - xbar_j)]: no fixed point moves, but where within-cluster steps are rare it
        diverges. "b2/n": z moves by b2/n, n the number of clients, in place of b2/eta. Nothing is proven of either,
        and the solution says so; its certificate holds.

    Notes
    -----
    Of T rounds p0 T communicate between clusters and (1 - p0) p_j T within cluster j, as theta moves in every round
    and no average can be known without asking; a refresh, rho T times, is one more of the former. So from a few times
    Ltilde on for C_1 the rounds between clusters are not of the optimal order, whatever rho is; at C_1 = 28 Ltilde
    Nesterov's method on (2.1) needs a tenth of them (``python -m papers run --claim clusters.communication``).

    Examples
    --------
    >>> clusters = gr.Hierarchy({"north": ["a", "b"], "south": ["c", "d"]}, weights=(1.0, 1.0))
    >>> run = gr.Problem(gr.SquaredLoss(data) + clusters).solve(gr.AsyncAL2SGD(), seed=0)
    >>> run.status
    'certified'
    """

    needs = (
        "losses with bounded curvature, smooth node penalties, strong convexity at every node, and every node in a "
        "Hierarchy of two levels with SquaredL2 and on no other edge"
    )
    sends = (
        "nothing but where a coin asks for means: the parameters of the clients up to their cluster, the mean of the "
        "clusters on to the root where the coin is the network's, and the means back; once more for a refresh"
    )

    rho: float | None = checked(inside("(0, 1]"), None)
    batch: int | None = checked(count | None, None)
    a1: float | None = checked(fraction, None)
    a2: float | None = checked(fraction, None)
    b1: float | None = checked(fraction, None)
    b2: float | None = checked(positive, None)
    as_printed: str | tuple[str, ...] = checked(among(*PRINTED), ())

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "as_printed", several(self.as_printed))

    def unproven(self, form: Form) -> tuple[str, ...]:
        return tuple(PRINTED[name] for name in several(self.as_printed))

    def missing(self, form: Form) -> tuple[str, ...]:
        return super().missing(form) or without_convexity(form)

    def init(self, view: LocalView, start: Start | None) -> State:
        probabilities = self.probabilities_of(view, self.batch)
        x = np.zeros(view.form.shape) if start is None else start[0]
        averages, all_ = Averages(x, x), np.full(view.form.n, True)
        if start is not None:  # of zeros the averages are known
            averages = averages.renewed(view, probabilities.constants.share, x, all_, ~all_, all_)
        momentum = self._momentum(view, probabilities)
        return State(view, 0, x, x, x, view.gradients.full(x), averages, probabilities, momentum)

    def step(self, state: State) -> State:
        view, m, k = state.view, state.momentum, state.round
        a1, a2, b1, b2, eta = (each[:, None] for each in (m.a1, m.a2, m.b1, m.b2, m.eta))
        theta = a1 * state.z + a2 * state.x + (1 - a1 - a2) * state.y
        xi_0 = _clusters.network_coin(view, state.probabilities.p0, k)
        xi_j = ~xi_0 & _clusters.cluster_coin(view, state.probabilities.p, k)
        bars = state.of_x.renewed(view, state.probabilities.constants.share, theta, xi_0 | xi_j, xi_j, xi_0)
        y = theta - eta * self.estimate(state, theta, bars, xi_0, xi_j)  # (4.1)
        pace = b2 / (view.n_observed if "b2/n" in self.as_printed else eta)
        z = b1 * state.z + (1 - b1) * theta + pace * (y - theta)
        return self._refreshed(replace(state, round=k + 1, y=y, z=z), k)

    def _refreshed(self, state: State, k: int) -> State:
        """x <- y where the coin of round k says so, with its gradient and averages."""
        view = state.view
        all_ = _clusters.network_coin(view, state.momentum.rho, k, _clusters.REFRESH)
        averages = state.of_x.renewed(view, state.probabilities.constants.share, state.y, all_, all_ & False, all_)
        if not all_.any():
            return state
        x = np.where(all_[:, None], state.y, state.x)
        slope = np.where(all_[:, None], view.gradients.full(x), state.slope)
        return replace(state, x=x, slope=slope, of_x=averages)

    def estimate(self, state: State, theta: Array, bars: Averages, xi_0: Array, xi_j: Array) -> Array:
        """g (n, d) for coins (n,) bool: (4.1), with the term added by which it is unbiased."""
        p, alpha, gamma = state.probabilities, state.probabilities.constants.alpha, state.view.tree.gamma
        top, center = alpha * gamma, (1 - alpha) * gamma
        from_top, from_center = state.x - state.of_x.top, state.x - state.of_x.center
        g = state.slope + top[:, None] * from_top + center[:, None] * from_center
        more_top = np.where(xi_0, over(top, p.p0), 0.0)
        whole = xi_0 & ("(4.1)" not in self.as_printed)  # (4.1) has no such part, and is biased without
        more_center = np.where(whole, over(center * p.tau, p.p0), 0.0)
        more_center += np.where(xi_j, over(center * (1 - p.tau), (1 - p.p0) * p.p), 0.0)
        g += more_top[:, None] * (theta - bars.top - from_top)
        g += more_center[:, None] * (theta - bars.center - from_center)
        down = np.where(xi_0 | xi_j, 0.0, 1.0 / ((1 - p.p0) * (1 - p.p)))
        return g + down[:, None] * self._change(state, theta) if down.any() else g

    def point(self, state: State) -> Point:
        return _clusters.with_latents(state.view, state.y, state.of_x), None, None

    def gathered(self, state: State) -> dict[str, Any]:
        """The probabilities, fractions, and constants at the nodes."""
        p, m = state.probabilities, state.momentum
        constants = {name: getattr(m, name) for name in ("rho", "a1", "a2", "b1", "b2")}
        return {"p_global": p.p0, "p_cluster": p.p, "tau": p.tau, "step_size": m.eta, **constants}

    def _change(self, state: State, theta: Array) -> Array:
        """grad f_i(theta) - grad f_i(x), or that of the sampled part."""
        gradients = state.view.gradients
        if self.batch is None:
            return gradients.full(theta) - state.slope
        uniform = state.view.streams("samples").uniform(state.round, self.batch)
        return gradients.sampled(theta, uniform) - gradients.sampled(state.x, uniform)

    def _momentum(self, view: LocalView, probabilities: Probabilities) -> Momentum:
        """Theorem 4.3, in the order in which the constants depend on one another."""
        L_F, mu = probabilities.constants.L + probabilities.constants.gamma, probabilities.constants.mu
        most = np.maximum(L_F, probabilities.bound)
        eta = self.step_within(view, 0.25 / most, "1/(4 max(L_F, L)) of Theorem 4.3")
        p = np.where(probabilities.p0 > 0, probabilities.p0, probabilities.p)
        rho = _set(self.rho, p * (1 - p))
        a2 = _set(self.a2, probabilities.bound / (2 * most))
        a1 = _set(self.a1, np.minimum(0.5, np.sqrt(eta * mu * np.maximum(0.5, over(a2, rho)))))
        b2 = _set(self.b2, 1 / np.maximum(2 * mu, 4 * a1 / eta))
        return Momentum(eta, rho, a1, a2, _set(self.b1, 1 - b2 * mu), b2)


def _set(value: float | None, otherwise: Array) -> Array:
    return otherwise if value is None else np.full(len(otherwise), float(value))
