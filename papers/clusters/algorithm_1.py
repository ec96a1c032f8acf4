"""Section 3: Async-L2GD, its oracle, coins and communication."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import graphreg as gr

from .. import Check, Evidence, Trial, at_least, at_most, claim, equal
from ..computing import error_of_share, fixed, sent, watched
from ._instances import Array, Coins, Instance, by_cluster, oracle


@claim("clusters.prop3.1", "Proposition 3.1")
def gradients(at: Trial) -> Evidence:
    """The gradients of the regularisers are grad psi_j = gamma_i (theta_i - thetabar_j) and grad phi = alpha_j gamma_i
    (theta_i - thetabar), though the means depend on theta, too."""
    of = Instance.drawn(at.rng(0))
    theta, gamma = at.rng(1).standard_normal(of.X.shape[::2]), at.given(of.gamma)
    psi = gamma[:, None] * (theta - of.cluster_mean() @ theta)
    phi = (of.alpha[of.cluster] * gamma)[:, None] * (theta - of.network_mean(of.alpha) @ theta)
    return Evidence.of(
        equal("grad psi_j", of.psi() @ theta, psi, 1e-12), equal("grad phi", of.phi(of.alpha) @ theta, phi, 1e-12)
    )


@claim("clusters.oracle-unbiased", "(3.2)")
def unbiased(at: Trial) -> Evidence:
    """The oracle G is unbiased: E[G] = grad F, for any tau_j in (0, 1)."""
    of, rng = Instance.drawn(at.rng(0)), at.rng(1)
    coins, theta = Coins(0.3, rng.uniform(0.1, 0.9, 3), rng.uniform(0.1, 0.9, 3)), rng.standard_normal((9, 3))
    return _compared(at, of, coins, theta, "gr.AsyncL2GD")


def _compared(at: Trial, of: Instance, coins: Coins, theta: Array, method: str, count: int = 80) -> Evidence:
    """E[G] by (3.2), and the first steps of the library from theta: each is an outcome, and each kind as frequent as
    its probability says."""
    every, chances = _outcomes(of, coins, theta)
    steps = _steps(of, coins, theta, count)
    far = np.array([np.abs(every - G).max(axis=(1, 2)) for G in steps])
    found = np.bincount(far.argmin(axis=1), minlength=len(chances)) / count
    error = np.sqrt(np.maximum(chances * (1.0 - chances), 1.0 / count) / count)
    stated = of.gradients(theta) + of.penalty(at.given(of.alpha)) @ theta
    return Evidence.of(
        equal("E[G] over all outcomes of the coins", np.tensordot(chances, every, 1), stated, 1e-10),
        at_most(f"distance of {count} steps of {method} from the outcomes of (3.2)", far.min(axis=1), 1e-9),
        equal("how often each outcome is among them", found, chances, 4.0, error=error),
    )


def _outcomes(of: Instance, coins: Coins, theta: Array) -> tuple[Array, Array]:
    """(3.2) at every outcome of the coins, and the probabilities."""
    chances, G = list[float](), list[Array]()
    for chance, xi_0, xi in coins.outcomes():
        chances.append(chance)
        G.append(oracle(of, coins, of.alpha, theta, of.gradients(theta), xi_0, xi))
    return np.array(G), np.array(chances)


def _steps(of: Instance, coins: Coins, theta: Array, count: int) -> list[Array]:
    """The oracle of the first round of gr.AsyncL2GD from theta, by seed."""
    problem, eta = of.problem(), 1e-3
    if coins.p.any():
        p, tau = by_cluster(coins.p), by_cluster(coins.tau)
        method = gr.AsyncL2GD(step_size=eta, p_global=coins.p0, p_cluster=p, tau=tau)
    else:
        method = gr.AsyncL2GD(step_size=eta, p_global=coins.p0, coin="single")
    out: list[Array] = []
    for seed in range(count):
        seen = watched(problem, method, 1, "state.theta", start=theta, seed=seed)
        first, second = seen["state.theta"][:2, : len(theta)]
        out.append((first - second) / eta)
    return out


@claim("clusters.single-coin", "section 6", stated="does not affect the validity of the results")
def single_coin(at: Trial) -> Evidence:
    """One coin may decide between a local step and one towards both averages at once: with p_j = 0 and tau_j = 1 the
    oracle (3.2) is unbiased at p_0 = 0.1, the communication probability of the experiments."""
    of = Instance.drawn(at.rng(0))
    theta, coins = at.rng(1).standard_normal(of.X.shape[::2]), Coins(0.1, np.zeros(3), np.ones(3))
    return _compared(at, of, coins, theta, "gr.AsyncL2GD(coin='single')")


@claim(
    "clusters.majority-coin",
    "section 3.3, end",
    stated="easily decentralised",
    perturbation=0.5,
    quick={"flips": 1000},
    full={"flips": 20_000},
)
def majority_coin(at: Trial, flips: int) -> Evidence:
    """The network's coin can be decentralised: every cluster flips one, and the majority decides. Where each shows 1
    with the probability q at which sum over v > k/2 of binom(k, v) q^v (1 - q)^(k - v) = p_0 the outcome has
    probability p_0."""
    p0, table, found = 0.3, [], []
    for k in (2, 3, 4):
        m = k // 2 + 1
        q: Any = brentq(lambda q, m=m, k=k: binom.sf(m - 1, k, q) - p0, 0.0, 1.0)
        shown = _shown_by_majority(Instance.drawn(at.rng(k), sizes=(2,) * k), p0, flips)
        found.append(shown)
        table.append({"clusters": k, "q": q, "with votes of p_0": binom.sf(m - 1, k, p0), "by gr.AsyncL2GD": shown})
    error = error_of_share(p0, flips)
    return Evidence.of(equal("how often it shows 1", found, at.given(p0), 4.0, error=error), table=table)


def _shown_by_majority(of: Instance, p0: float, flips: int) -> float:
    """The frequency with which the network's coin of gr.AsyncL2GD(majority=True) shows 1: a round in which all
    clients move towards the network's average, counted by its messages from the root."""
    method = gr.AsyncL2GD(majority=True, p_global=p0, p_cluster=0.3)
    run = fixed(of.problem(), method, flips, seed=1)
    return sent(run, sender="root") / flips - 1.0  # the outcome of the vote goes down in every round


@claim(
    "clusters.prop3.2-rounds",
    "Proposition 3.2",
    stated="p_0 (1 - p_0) T and (1 - p_0) p_j (1 - p_j) T",
    perturbation=0.3,
    quick={"T": 2000},
    full={"T": 200_000},
)
def communication(at: Trial, T: int) -> Evidence:
    """Of T rounds of Algorithm 1 p_0 (1 - p_0) T communicate between clusters, and (1 - p_0) p_j (1 - p_j) T within
    cluster j, in expectation.

    Correction (substance): Within cluster j it is (1 - p_0)^2 p_j (1 - p_j) T, where a round follows on a local step;
    and both hold with equal weights only: with unequal gamma_i no average is known, and the rounds are p_0 T and (1 -
    p_0) p_j T.
    """
    drawn, p0, p, k = Instance.drawn(at.rng(), sizes=(3, 3, 3)), 0.3, 0.4, 3
    even = replace(drawn, gamma=np.ones(9), lam=np.ones(3))
    between, within = _rounds(even, p0, p, T)
    every, own = _rounds(drawn, p0, p, T)
    printed = p0 * (1.0 - p0) * T, (1.0 - p0) * p * (1.0 - p) * T

    def compared(what: str, found: Any, stated: float) -> Check:
        return equal(what, found, stated, 4.0, error=np.sqrt(stated * (1.0 - stated / T)))

    q = at.given(1.0 - p0)
    return Evidence.of(
        compared("between clusters, unequal weights, as printed", every, printed[0]),
        compared("within each of the clusters, equal weights, as printed", within, printed[1]),
        corrected=[
            compared("between clusters, equal weights", between, (1.0 - q) * q * T),
            compared("within each, equal weights", within, q**2 * p * (1.0 - p) * T),
            compared("between clusters, unequal weights", every, (1.0 - q) * T),
            compared("within each, unequal weights", own, q * p * T),
            equal("gr.theory.printed.communication_rounds", gr.theory.printed.communication_rounds(p0, p, T), printed),
        ],
        table=[{"cluster": j, "equal weights": within[j], "unequal weights": own[j]} for j in range(k)],
    )


def _rounds(of: Instance, p0: float, p: float, T: int) -> tuple[int, list[int]]:
    """Rounds between clusters, and within each, by the ledger of gr.AsyncL2GD: what a cluster sent to its first client,
    less what it passed on from the root."""
    run = fixed(of.problem(), gr.AsyncL2GD(p_global=p0, p_cluster=p), T, seed=0)
    between = sent(run, sender="root")
    firsts = [int(np.flatnonzero(of.cluster == j)[0]) for j in range(len(of.lam))]
    return between, [sent(run, receiver=i) - between for i in firsts]


@claim("clusters.prop3.3", "Proposition 3.3", stated="a bound")
def variance(at: Trial) -> Evidence:
    """With tau_j = p_0 / (p_0 + 2 (1 - p_0) p_j): E||G(theta) - G(theta*)||^2 <= 2/p_0 ||grad phi(theta) - grad
    phi(theta*)||^2 + sum_j 2 (1 - alpha_j)^2 / (p_0 + 2 (1 - p_0) p_j) ||grad psi_j(theta) - grad psi_j(theta*)||^2 +
    1/(1 - p_0) sum_j 1/(1 - p_j) ||grad F_j(theta) - grad F_j(theta*)||^2."""
    of = Instance.drawn(at.rng(0))
    star = of.minimiser(of.penalty(of.alpha))
    found, bounds = [], []
    for trial in range(40):
        rng = at.rng(1, trial)
        coins = Coins.balanced(rng.uniform(0.05, 0.95), rng.uniform(0.05, 0.95, 3))
        theta = star + _direction(of, rng, trial)
        (G, chances), (G_star, _) = _outcomes(of, coins, theta), _outcomes(of, coins, star)
        found.append(float(chances @ ((G - G_star) ** 2).sum(axis=(1, 2))))
        change = of.gradients(theta) - of.gradients(star)
        bounds.append(coins.weighed(of, theta - star, change))
    shares = np.array(found) / bounds
    check = at_most("E||G(theta) - G(theta*)||^2 over its bound, at 40 random points and coins", shares, 1.0, 1e-12)
    return Evidence.of(check, table=[{"largest share of the bound": shares.max(), "least": shares.min()}])


def _direction(of: Instance, rng: np.random.Generator, trial: int) -> Array:
    """A displacement of the clients: of each by itself, of clusters as a whole, or of all alike."""
    own = np.arange(len(of.gamma))
    groups = (own, of.cluster, np.zeros_like(own))[trial % 3]
    return 10.0 ** rng.uniform(-1.0, 1.0) * rng.standard_normal((len(own), of.X.shape[2]))[groups]


@claim("clusters.prop3.4", "Proposition 3.4", stated="bounds of the Hessians")
def regularisers(at: Trial) -> Evidence:
    """psi_j is convex and max_i gamma_i-smooth, phi is convex and max_j max_i alpha_j gamma_i-smooth."""
    least, steepest = [], []
    for trial in range(20):
        of = Instance.drawn(at.rng(trial))
        phi = np.linalg.eigvalsh(of.phi(of.alpha)) / (of.alpha[of.cluster] * of.gamma).max()
        parts = [of.psi()[np.ix_(own, own)] for own in (of.cluster == j for j in range(3))]
        largest = [of.gamma[of.cluster == j].max() for j in range(3)]
        spectra = [phi, *(np.linalg.eigvalsh(part) / L for part, L in zip(parts, largest, strict=True))]
        least += [values[0] for values in spectra]
        steepest += [values[-1] for values in spectra]
    return Evidence.of(
        at_least("least eigenvalue over the smoothness", least, 0.0, 1e-12),
        at_most("largest eigenvalue over the smoothness", steepest, 1.0, 1e-12),
        table=[{"largest eigenvalue over the smoothness": max(steepest)}],
    )


@claim("clusters.cor3.6", "Corollary 3.6", stated="optimal", quick={"grid": 200})
def probabilities(at: Trial, grid: int) -> Evidence:
    """Where C_2 > C_1, p_0 = 2 C_1 / (C_1 + C_2 + L) and p_j = (C_2 - C_1) / (C_2 - C_1 + L) minimise the bound (3.5);
    where C_2 <= C_1, p_0 = 2 C_1 / (2 C_1 + L) and p_j = 0 do. It is C_1 + C_2 + L there, or 2 C_1 + L, the tau_j of
    Proposition 3.3 is C_1 / C_2, or 1 (appendix A.6), and the orders of the rounds that communicate follow from
    Proposition 3.2."""
    shares, least, tau, stated, rounds, orders = list[float](), list[float](), list[float](), [], [], []
    table, mesh = list[dict[str, float]](), np.linspace(0.0, 1.0, grid, endpoint=False) + 0.5 / grid
    for trial in range(20):
        C1, C2, L = at.rng(trial).uniform(0.1, 5.0, 3)
        near, (p0, p) = C2 <= C1, Coins.best(C1, C2, L)
        P0, P = np.meshgrid(mesh, np.append(mesh, 0.0))
        best = float(_smoothness(P0, P, C1, C2, L).min())
        least.append(float(_smoothness(np.array(p0), np.array(p), C1, C2, L)))
        shares.append(least[-1] / best)
        tau.append(float(Coins.balanced(p0, np.array([p])).tau[0]))
        stated.append((2.0 * C1 + L, 1.0) if near else (C1 + C2 + L, C1 / C2))
        rounds.append(((1.0 - p0) * p0 * least[-1], (1.0 - p0) * p * (1.0 - p) * least[-1]))
        S, rest = C1 + C2 + L, C2 - C1 + L
        far = 2.0 * C1 * rest / S, L * (C2 - C1) / rest
        orders.append((2.0 * C1 * L / (2.0 * C1 + L), 0.0) if near else far)
        row = {"C_1": C1, "C_2": C2, "L": L, "p_0": p0, "p_j": p}
        table.append({**row, "(3.5) over the least of the grid": shares[-1]})
    bound, fraction = at.given(np.array(stated)).T
    return Evidence.of(
        at_most("(3.5) over its least value on a grid", shares, 1.0, 1e-12),
        equal("(3.5)", least, bound),
        equal("tau_j", tau, fraction),
        equal("p_0 (1 - p_0) and (1 - p_0) p_j (1 - p_j) times (3.5), beside the orders of the rounds", rounds, orders),
        table=table,
    )


def _smoothness(p0: Array, p: Array, C1: float, C2: float, L: float) -> Array:
    """(3.5)."""
    parts = (2.0 * C1 / p0, 2.0 * C2 / (p0 + 2.0 * (1.0 - p0) * p), L / ((1.0 - p0) * (1.0 - p)))
    return np.maximum.reduce(np.broadcast_arrays(*parts))
