"""Corollaries 3.6 and 4.4: rounds to an accuracy, and those that communicate, with the parameters of the theory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, fixed, grid, rows, sent, watched
from ..figures import curves
from ._instances import Instance
from .algorithm_2 import bregman
from .convergence import curvature, noise, parameters

LONGEST = 16_000
WEAK = ((10.0, 0.3), (10.0, 1.0), (10.0, 3.0), (10.0, 30.0), (10.0, 300.0))  # gamma and lambda
STRONG = ((100.0, 3e4), (300.0, 3e5), (1e3, 3e6), (1e4, 3e8))


def _drawn(seed: int, gamma: float, lam: float) -> Instance:
    """Two clusters of five clients, whose losses have a condition number of about 1000."""
    drawn = Instance.drawn(np.random.default_rng(seed), sizes=(5, 5), m=20)
    return replace(drawn, X=drawn.X * np.array([1.0, 0.2, 0.04]), gamma=np.full(10, gamma), lam=np.full(2, lam))


def _until(of: Instance, method: Any, eps: float) -> tuple[int, bool]:
    """The round in which F - F* is eps times that of the start, found by runs of twice the length; whether one is."""
    problem, star, most, below = of.problem(), of.minimiser(of.penalty(of.alpha)), 250, np.zeros(0)
    look = gr.Observer({"excess": lambda at: bregman(of, at.w[: len(star)] - star)}, rounds=10)
    while len(below) == 0 and most < LONGEST:
        most *= 2
        seen = watched(problem, method, most, look, seed=0)
        below = seen.rounds[seen["excess"] <= eps * bregman(of, -star)]
    return (int(below[0]), True) if len(below) else (most, False)


def _rounds(of: Instance, method: Any, eps: float) -> dict[str, float]:
    """Rounds to an accuracy, and of these the ones that communicate, by the ledger."""
    stop, reached = _until(of, method, eps)
    run = fixed(of.problem(), method, stop, seed=0)
    between, within = float(sent(run, sender="root")), float(sent(run, receiver=0))
    return {"reached": float(reached), "iterations": stop, "between": between, "within": within - between}


def _nesterov(of: Instance, eps: float) -> int:
    """Rounds of Nesterov's method on F, for strongly convex functions; in each of them all clusters communicate."""
    star, penalty = of.minimiser(of.penalty(of.alpha)), of.penalty(of.alpha)
    mu, L = curvature(of)
    L += float(of.gamma.max())
    momentum = (np.sqrt(L) - np.sqrt(mu)) / (np.sqrt(L) + np.sqrt(mu))
    theta = ahead = np.zeros_like(star)
    rounds = 0
    while bregman(of, theta - star) > eps * bregman(of, -star):
        before, theta = theta, ahead - (of.gradients(ahead) + penalty @ ahead) / L
        ahead = theta + momentum * (theta - before)
        rounds += 1
    return rounds


def _counted(
    rng: np.random.Generator, *, instance: int, gamma: float, lam: float, eps: float, rho: float | None = None
) -> dict[str, Any]:
    of = _drawn(instance, gamma, lam)
    (mu, L), C1 = curvature(of), float((of.alpha[of.cluster] * of.gamma).max())
    order = np.sqrt(min(C1, L) / mu) * np.log(1.0 / eps)
    return {"C_1/L": C1 / L, "order": order, "Nesterov": _nesterov(of, eps)} | _rounds(of, gr.AsyncAL2SGD(rho=rho), eps)


KINDS = {
    "between": "Algorithm 2, between clusters",
    "within": "Algorithm 2, within a cluster",
    "Nesterov": "Nesterov's method on F, between",
}


def _by_strength(figure: Any, data: dict[str, Any]) -> None:
    looks = {
        "xlabel": "C_1 / L",
        "ylabel": "rounds of communication (0 drawn at 0.5)",
        "xscale": "log",
        "yscale": "log",
    }
    shown = {label: np.maximum(data[name], 0.5).tolist() for name, label in KINDS.items()}
    curves(figure.subplots(), data["C_1/L"], shown, **looks)


@claim(
    "clusters.communication",
    "section 4, Corollary 4.4",
    stated="optimal",
    experiment=True,
    quick={"strengths": (*WEAK[::2], *STRONG[:2]), "eps": 1e-4, "instances": 1, "rhos": (1.0,)},
    full={"strengths": (*WEAK, *STRONG), "eps": 1e-4, "instances": 5, "rhos": (0.02, 0.1, 0.3, 0.5, 1.0)},
    minutes=20.0,
    figure=_by_strength,
)
def against_nesterov(at: Trial, strengths: Any, eps: float, instances: int, rhos: tuple[float, ...]) -> Evidence:
    """Algorithm 2 enjoys optimal communication complexity regardless of the relation between the regularisation and the
    smoothness of the f_i, in a single cluster, and by the authors' hypothesis with several: the rounds between clusters
    are of the order sqrt(min(C_1, L)/mu) log(1/eps), the optimal one of Hanzely et al. (2020a). (Ours: Nesterov's
    method on F takes far more where C_1 is below L/50, and fewer where it is above L/10.)

    Part: It holds while C_1 is well below L: up to L/4 the rounds are 0.4 to 1 times the order. From a few L on it does
    not hold: they are 3.7 times the order at C_1 = 2.7 L, 12 times at 8 L, more than 30 times at 28 L, and with no rho
    that was tried there less than 11 times. For p_0 tends to 1, and of T rounds p_0 T communicate, not p_0 (1 - p_0) T
    (clusters.cor4.4).
    """
    # Where the accuracy is not reached the rounds are those of the whole run: a bound from below.
    cells = [{"instance": k, "gamma": g, "lam": lam, "eps": eps} for g, lam in strengths for k in range(instances)]
    slow = grid(instance=0, gamma=1e3, lam=3e6, eps=eps, rho=rhos)
    runs, others = (at.replicate(_counted, each, 1) for each in (cells, slow))
    columns = ("C_1/L", "order", "iterations", "reached", *KINDS)
    found = {name: column(runs, name).reshape(len(strengths), -1) for name in columns}
    mean = {name: values.mean(axis=1) for name, values in found.items()}
    share, ratio, constant = mean["between"] / mean["Nesterov"], mean["C_1/L"], mean["between"] / mean["order"]
    low, far = ratio <= 0.25, ratio > 2.0
    over = column(others, "between")[:, 0] / column(others, "order")[:, 0]
    table = {"C_1/L": ratio, "over the order": constant, "iterations": mean["iterations"]}
    table |= {label: mean[name] for name, label in KINDS.items()}
    return Evidence.of(
        at_most("rounds between clusters over sqrt(min(C_1, L)/mu) log(1/eps), every C_1/L", constant, 1.0),
        at_most("the largest of these over the least", constant.max() / constant.min(), 3.0),
        corrected=[
            at_least("C_1 <= L/4: runs that reach the accuracy", mean["reached"][low], 1.0),
            at_most("C_1 <= L/4: rounds between clusters over the order", constant[low], 1.0),
            at_most("C_1 <= L/4: the largest of these over the least", constant[low].max() / constant[low].min(), 3.0),
            at_least("C_1 > 2 L: rounds between clusters over the order", constant[far], 2.0),
            at_least("C_1 = 28 L, by rho: rounds between clusters over the order", over, 10.0),
            at_most("C_1 < L/50: rounds between clusters over those of Nesterov's method", share[ratio < 0.02], 1.0),
            at_least("C_1 > L/10: rounds between clusters over those of Nesterov's method", share[ratio > 0.1], 1.0),
        ],
        table=[*rows(table), *rows({"rho at C_1 = 28 L": rhos, "over the order": over})],
        data={"C_1/L": ratio, **{name: found[name] for name in KINDS}},
    )


# ---- Algorithm 1 -----------------------------------------------------------------------------------------------------
def _end(rng: np.random.Generator, *, instance: int, eps: float) -> dict[str, Any]:
    """||theta - theta*||^2 at the end of a run of Algorithm 1, over that of the start, with a constant and a falling
    step; and the rounds that communicate."""
    of = Instance.drawn(np.random.default_rng(instance), m=12)
    of = replace(of, gamma=np.ones(9), lam=np.ones(3))
    star, problem, T = of.minimiser(of.penalty(of.alpha)), of.problem(), _iterations(of, eps)
    out, seed = dict[str, float](T=T), int(rng.integers(2**31))
    for name, method, rounds in (
        ("constant", gr.AsyncL2GD(), T),
        ("longer", gr.AsyncL2GD(), 5 * T),
        ("falling", gr.AsyncL2GD(decreasing=True), 5 * T),
    ):
        run = fixed(problem, method, rounds, seed=seed, observe="state.theta")
        assert run.observed is not None
        off = run.observed["state.theta"][-1][: len(star)] - star
        out[name] = (off**2).sum() / (star**2).sum()
        if name == "longer":
            out["between"] = sent(run, sender="root") / rounds
    return out


def _iterations(of: Instance, eps: float) -> int:
    """T with (1 - eta mu)^T <= eps, eta = 1/(2 L) of Corollary 3.6."""
    (_, L), (mu, _) = parameters(of), curvature(of)
    return int(np.ceil(np.log(eps) / np.log1p(-0.5 * mu / L)))


@claim(
    "clusters.cor3.6-rounds",
    "Corollary 3.6",
    stated="O((C_1 + C_2 + L)/mu log 1/eps)",
    experiment=True,
    perturbation=0.6,
    quick={"eps": 1e-4, "runs": 8},
    full={"eps": 1e-4, "runs": 200},
)
def to_the_neighbourhood(at: Trial, eps: float, runs: int) -> Evidence:
    """With its parameters Algorithm 1 takes O((C_1 + C_2 + L)/mu log 1/eps) iterations to an accuracy eps, and O(C_1
    (C_2 - C_1 + L)/((C_1 + C_2 + L) mu) log 1/eps) rounds between clusters.

    Correction (substance): With a constant step it ends in the neighbourhood of Theorem 3.5 and stays there, however
    long it runs; the number is that of iterations to this neighbourhood. The share of rounds between clusters is p_0 (1
    - p_0), with equal weights; with a falling step the error goes on falling, as 1/t.
    """
    of = replace(Instance.drawn(np.random.default_rng(at.seed), m=12), gamma=np.ones(9), lam=np.ones(3))
    star, (coins, L), (mu, _) = of.minimiser(of.penalty(of.alpha)), parameters(of), curvature(of)
    found = at.replicate(_end, [{"instance": at.seed, "eps": eps}], runs)
    left = {name: column(found, name)[0] for name in ("T", "constant", "longer", "falling", "between")}
    near = noise(of, coins, star) / (L * mu) / float((star**2).sum())
    q, T = coins.p0 * (1.0 - coins.p0), 5 * left["T"][0]
    error, mean = np.sqrt(q / T / runs), {name: float(values.mean()) for name, values in left.items()}
    return Evidence.of(
        at_most("||theta - theta*||^2 after T iterations, over that of the start", mean["constant"], eps),
        at_most("the same after 5 T", mean["longer"], eps),
        corrected=[
            at_most("after T iterations, over eps and the neighbourhood", mean["constant"] / (eps + near), 1.0),
            at_most("with a falling step after 5 T, over a constant one", mean["falling"] / mean["longer"], 1.0),
            equal("share of rounds between clusters", mean["between"], at.given(q), 4.0, error=error),
        ],
        table=[{"neighbourhood": near, "eps": eps} | mean],
    )
