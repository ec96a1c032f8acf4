"""Theorems 3.5 and 4.3, and what Algorithm 2 samples and sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_most, claim, equal
from ..computing import column, fixed, optimum, rows, sent, watched
from ..figures import curve
from ._instances import Array, Coins, Instance, estimate

GRID = (0, 10, 20, 40, 60, 80, 100, 150, 200, 300, 400)


def _instance(seed: int) -> Instance:
    return Instance.drawn(np.random.default_rng(seed), m=12)


def _distances(rng: np.random.Generator, *, instance: int) -> dict[str, Any]:
    """||theta^t - theta*||^2 of a run of Algorithm 1 with the parameters of Corollary 3.6."""
    of = _instance(instance)
    star, coins, L = of.minimiser(of.penalty(of.alpha)), *parameters(of)
    method = gr.AsyncL2GD(step_size=0.5 / L, p_global=coins.p0, p_cluster=float(coins.p[0]))
    look = gr.Observer({"far": lambda at: ((at.w[: len(star)] - star) ** 2).sum()}, rounds=list(GRID))
    seed = int(rng.integers(2**31))
    return {"far": watched(of.problem(), method, GRID[-1], look, seed=seed)["far"]}


def curvature(of: Instance) -> tuple[float, float]:
    """mu and L of the f_i."""
    values = np.linalg.eigvalsh(np.einsum("imj,imk->ijk", of.X, of.X))
    return float(values[:, 0].min()), float(values[:, -1].max())


def parameters(of: Instance) -> tuple[Coins, float]:
    """Corollary 3.6, and the L of (3.3)."""
    j, alpha, (_, L) = of.cluster, of.alpha, curvature(of)
    C1, C2 = (alpha[j] * of.gamma).max(), ((1.0 - alpha[j]) * of.gamma).max()
    p0, p = Coins.best(C1, C2, L)
    coins = Coins.balanced(p0, np.full(len(alpha), p))
    return coins, coins.smoothness(of, L)


def noise(of: Instance, coins: Coins, star: Array) -> float:
    """sigma^2 at the minimiser, (3.4)."""
    return coins.weighed(of, star, of.gradients(star))


def _neighbourhood(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    curve(axes, data["rounds"], data["found"], "Algorithm 1, mean of the runs")
    axes.plot(data["rounds"], data["bound"], label="bound of Theorem 3.5")
    axes.set(xlabel="rounds t", ylabel="E ||theta^t - theta*||^2", yscale="log")
    axes.legend()


@claim(
    "clusters.thm3.5",
    "Theorem 3.5",
    stated="a bound",
    experiment=True,
    quick={"runs": 20},
    full={"runs": 400},
    figure=_neighbourhood,
)
def rate(at: Trial, runs: int) -> Evidence:
    """With eta = 1/(2 L), L of (3.3), E||theta^t - theta*||^2 <= (1 - eta mu)^t ||theta^0 - theta*||^2 + 2 eta sigma^2
    / mu, sigma^2 of (3.4)."""
    of = _instance(at.seed)
    star, (coins, L), (mu, _) = of.minimiser(of.penalty(of.alpha)), parameters(of), curvature(of)
    [far], t = column(at.replicate(_distances, [{"instance": at.seed}], runs), "far"), np.array(GRID)
    bound = (1.0 - 0.5 / L * mu) ** t * (star**2).sum() + noise(of, coins, star) / (L * mu)
    mean, error = far.mean(axis=0), far.std(axis=0, ddof=1) / np.sqrt(runs)
    return Evidence.of(
        at_most("mean over the bound, after 10 to 400 rounds", (mean + 3.0 * error)[1:] / bound[1:], 1.0),
        table=rows({"t": GRID, "found": mean, "standard error": error, "bound": bound}),
        data={"rounds": GRID, "found": far.T, "bound": bound},
    )


@claim(
    "clusters.cor4.4",
    "Corollary 4.4, by Proposition 3.2",
    stated="as in Corollary 3.6, p_0 (1 - p_0) T",
    perturbation=0.3,
    quick={"T": 3000},
    full={"T": 100_000},
)
def refreshes(at: Trial, T: int) -> Evidence:
    """Of T rounds of Algorithm 2 p_0 (1 - p_0) T communicate between clusters, in expectation.

    Correction (substance): There are p_0 T, as theta moves in every round and no average is known, and rho T more to
    refresh x.
    """
    of, p0, rho = _instance(at.seed), 0.3, 0.1
    method = gr.AsyncAL2SGD(p_global=p0, p_cluster=0.4, rho=rho)
    found, stated = sent(fixed(of.problem(), method, T, seed=0), sender="root"), p0 * (1.0 - p0) * T
    error = np.sqrt(T * (p0 * (1.0 - p0) + rho * (1.0 - rho)))
    right = at.given(p0 + rho) * T
    return Evidence.of(
        equal("rounds between clusters, as printed", found, stated, 4.0, error=error),
        corrected=[equal("rounds between clusters", found, right, 4.0, error=error)],
    )


@claim("clusters.finite-sum", "Assumption 4.1, (4.1)", stated="variance-reduced")
def samples(at: Trial) -> Evidence:
    """With f_i = 1/n_i sum_l f_il and one l for each client the estimate g (with the part within clusters where xi_0 =
    1) is unbiased, and its variance falls to 0 as theta and x approach each other, at the optimum and elsewhere."""
    of, rng = Instance.drawn(at.rng(0)), at.rng(1)
    coins, (x, z) = Coins.balanced(0.3, rng.uniform(0.1, 0.9, 3)), rng.standard_normal((2, *of.X.shape[::2]))
    parts, spread = [of.of_sample(k) for k in range(of.X.shape[1])], list[float]()
    means: list[Array] = []
    for far in (1.0, 0.1, 0.01):
        theta, mean, square = x + far * z, np.zeros_like(x), 0.0
        gradient = of.gradients(theta) + of.penalty(at.given(of.alpha)) @ theta
        for part in parts:
            change = part.gradients(theta) - part.gradients(x)
            for chance, xi_0, xi in coins.outcomes():
                g = estimate(of, coins, theta, x, change, xi_0, xi)
                mean += chance / len(parts) * g
                square += chance / len(parts) * float(((g - gradient) ** 2).sum())
        means.append(mean - gradient)
        spread.append(square)
    return Evidence.of(
        equal("E[g] - grad F over all coins and samples", means, 0.0, 1e-9, "absolute"),
        equal("variance at a distance of .1, .01 over that at 1", np.array(spread[1:]) / spread[0], [1e-2, 1e-4], 1e-6),
    )


@claim(
    "clusters.thm4.3",
    "Theorem 4.3",
    stated="O((1/rho + sqrt(L/(rho mu))) log 1/eps)",
    experiment=True,
    quick={"gammas": (1.0, 10.0, 100.0, 1000.0), "eps": 1e-6},
    full={"gammas": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0), "eps": 1e-10},
)
def iterations(at: Trial, gammas: tuple[float, ...], eps: float) -> Evidence:
    """Algorithm 2 (corrected, see clusters.alg2-linear) takes O((1/rho + sqrt(L/(rho mu))) log 1/eps) rounds, L of
    Lemma 4.2, with its eta, a_1, a_2, b_1 and b_2: over three decades of gamma the constant stays below 2, and varies
    by less than a factor of 2."""
    drawn, rho, table = Instance.drawn(at.rng(), sizes=(5, 5), m=20), 0.1, list[dict[str, Any]]()
    found, stated = list[list[float]](), list[tuple[float, ...]]()
    for gamma in gammas:
        of = replace(drawn, gamma=np.full(10, gamma), lam=np.full(2, gamma))
        (_, L), (mu, _) = parameters(of), curvature(of)
        order = (1.0 / rho + np.sqrt(L / (rho * mu))) * np.log(1.0 / eps)
        table.append({"gamma": gamma, "L": L, "order": order, "rounds": _until(of, rho, eps, int(2.0 * order))})
        used = fixed(of.problem(), gr.AsyncAL2SGD(rho=rho), 1).gathered
        found.append([float(used[name][0]) for name in ("step_size", "a1", "a2", "b1", "b2")])
        stated.append(_constants(at.given(mu), L, max(gamma + curvature(of)[1], L), rho))
    shares = [row["rounds"] / row["order"] for row in table]
    return Evidence.of(
        equal("eta, a_1, a_2, b_1 and b_2, by gamma", found, stated),
        at_most("rounds over the order", shares, 2.0),
        at_most("the largest of these over the least", max(shares) / min(shares), 2.0),
        table=table,
    )


def _constants(mu: float, L: float, most: float, rho: float) -> tuple[float, ...]:
    """eta, a_1, a_2, b_1 and b_2 of Theorem 4.3; ``most`` is max{L_F, L}."""
    eta, a2 = 0.25 / most, 0.5 * L / most
    a1 = min(0.5, float(np.sqrt(eta * mu * max(0.5, a2 / rho))))
    b2 = 1.0 / max(2.0 * mu, 4.0 * a1 / eta)
    return eta, a1, a2, 1.0 - b2 * mu, b2


def _until(of: Instance, rho: float, eps: float, most: int) -> float:
    """Rounds of gr.AsyncAL2SGD until F - F* is eps times that of the start; more than the most where it is not."""
    problem, n = of.problem(), len(of.gamma)
    best = optimum(problem).objective
    look = gr.Observer({"excess": lambda at: problem.value(at.w[:n]) - best}, rounds=10)
    seen = watched(problem, gr.AsyncAL2SGD(rho=rho), most, look, seed=0)
    below = np.flatnonzero(seen["excess"] <= eps * seen["excess"][0])
    return float(seen.rounds[below[0]]) if len(below) else most + 10.0
