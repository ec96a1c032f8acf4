"""Stochastic gradient descent at one client: Lemma 1 and (7)."""

from __future__ import annotations

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, claim, equal
from ..computing import rows
from ._instances import PLAIN, Array, run

H, SIGMA2 = 1.5, 2.0  # the curvature of F_1, and the variance of the gradients


def variances(T: int, D: Array, alpha: Array) -> tuple[Array, Array]:
    """Of theta_T and of the average of theta_0, ..., theta_{T-1}, by recursion, eta_t = D t^-alpha and theta_0 fixed:
    theta <- theta - eta (h theta - noise)."""
    v, covariance, total = np.zeros((3, len(D)))  # of theta_t; of theta_t and the sum of those before; of this sum
    for t in range(1, T + 1):
        total += 2.0 * covariance + v
        eta = D * t**-alpha
        covariance = (1.0 - eta * H) * (covariance + v)
        v = (1.0 - eta * H) ** 2 * v + eta**2 * SIGMA2
    return v, total / T**2


def sampled(rng: np.random.Generator, D: float, alpha: float, T: int, copies: int) -> tuple[Array, Array]:
    """theta_T and the average of so many runs of gr.LocalSGD at one client, whose gradients are h theta - noise."""
    x = np.sqrt(H)
    y = np.sqrt(SIGMA2) / x * (rng.exponential(size=copies * T) - 1.0)
    data = gr.NodeData.from_arrays(np.full((copies * T, 1), x), y, np.repeat(np.arange(copies), T))
    got, seen = run(
        gr.Problem(gr.SquaredLoss(data)), copies, gr.LocalSGD(gr.DecreasingStep(D, 0.0, alpha), **PLAIN), T, 0.0, at=[T]
    )
    return seen[T].ravel(), got["mean"].ravel()


def without_noise(D: float, alpha: float, ends: tuple[int, ...]) -> list[float]:
    """theta after some steps of gr.LocalSGD from 1 along h theta."""
    data = gr.NodeData.from_arrays(np.full((max(ends), 1), np.sqrt(H)), np.zeros(max(ends)), np.zeros(max(ends), int))
    method = gr.LocalSGD(gr.DecreasingStep(D, 0.0, alpha), **PLAIN)
    _, seen = run(gr.Problem(gr.SquaredLoss(data)), 1, method, max(ends), 1.0, at=ends)
    return [float(seen[t].item()) for t in ends]


def lemma_1(D: Array, alpha: Array) -> Array:
    """sigma^2(alpha, D), (6)."""
    return np.where(alpha < 1.0, D * SIGMA2 / (2.0 * H), D**2 * SIGMA2 / (2.0 * H * D - 1.0))


def in_errors(values: Array) -> float:
    """The standard error of a variance."""
    return float(((values - values.mean()) ** 2).std() / np.sqrt(len(values)))


@claim(
    "consensus.lemma1",
    "Lemma 1, (6)",
    stated="(6)",
    perturbation=0.3,
    quick={"T": 30_000, "T_sampled": 200, "copies": 2000},
    full={"T": 1_000_000, "T_sampled": 2000, "copies": 2000},
)
def last_iterate(at: Trial, T: int, T_sampled: int, copies: int) -> Evidence:
    """T^alpha Var(theta_T) -> D sigma^2/(2 F'') for 1/2 < alpha < 1, and D^2 sigma^2/(2 F'' D - 1) for alpha = 1."""
    D, alpha = np.array([0.8, 0.5, 1.2, 0.6, 1.0, 2.0]), np.array([0.8, 0.7, 0.6, 1.0, 1.0, 1.0])
    limit = lemma_1(at.given(D), alpha)
    by_recursion = variances(T_sampled, D, alpha)[0]
    found, errors = np.zeros(3), np.zeros(3)
    for k, which in enumerate((0, 4, 5)):
        theta, _ = sampled(at.rng(k), float(D[which]), float(alpha[which]), T_sampled, copies)
        found[k], errors[k] = theta.var(), in_errors(theta)
    scaled, ends = T**alpha * variances(T, D, alpha)[0], (1, 2, 7)
    letter = [float(np.prod(1.0 - H * 0.5 * np.arange(1.0, t + 1.0) ** -0.7)) for t in ends]
    return Evidence.of(
        equal("variance of runs and by recursion", found, by_recursion[[0, 4, 5]], 4.0, error=errors),
        equal("theta after 1, 2, 7 steps without noise, and the products", without_noise(0.5, 0.7, ends), letter),
        equal("T^alpha Var(theta_T)", scaled, limit, 1.06, "ratio"),
        table=rows({"alpha": alpha, "D": D, "T^alpha Var": scaled, "stated limit": limit}),
    )


@claim("consensus.lemma1-condition", "Lemma 1, (6)", stated="for some D > 0", perturbation=0.1)
def needs_a_long_step(at: Trial) -> Evidence:
    """For alpha = 1 and some D > 0, T Var(theta_T) -> D^2 sigma^2 / (2 F'' D - 1).

    Correction (substance): For D > 1/(2 F'') alone; below, the print is negative, and Var(theta_T) falls like T^(-2 F''
    D).
    """
    D, alpha, ends = np.array([0.1 / H, 0.2 / H]), np.ones(2), (3000, 12_000)
    v = np.array([variances(T, D, alpha)[0] for T in ends])
    rate = -np.log(v[1] / v[0]) / np.log(ends[1] / ends[0])
    return Evidence.of(
        equal("T Var(theta_T), F'' D = .1 and .2", ends[1] * v[1], lemma_1(D, alpha), 1.05, "ratio"),
        corrected=[equal("exponent of T in Var(theta_T)", rate, 2.0 * H * at.given(D), 0.01, "absolute")],
    )


@claim("consensus.lemma1-efficiency", "after Lemma 1", stated="D = 1/F''")
def best_step(at: Trial) -> Evidence:
    """With alpha = 1 theta_T is inefficient unless D = 1/F'': sigma^2(1, D) is least there, and then sigma^2/F''^2."""
    D = np.linspace(0.51, 3.0, 200) / H
    best = lemma_1(at.given(np.array([1.0 / H])), np.ones(1))
    return Evidence.of(
        equal("sigma^2(1, 1/F'')", best, SIGMA2 / H**2),
        at_least("sigma^2(1, D) over sigma^2/F''^2", lemma_1(D, np.ones(200)) / (SIGMA2 / H**2), 1.0 - 1e-12),
    )


@claim(
    "consensus.pr-efficiency",
    "(7)",
    stated="sigma^2/F''^2",
    perturbation=0.3,
    quick={"T": 30_000, "T_sampled": 200, "copies": 2000},
    full={"T": 1_000_000, "T_sampled": 2000, "copies": 2000},
)
def average(at: Trial, T: int, T_sampled: int, copies: int) -> Evidence:
    """sqrt(T) (average - theta*) -> N(0, sigma^2/F''^2) for 1/2 < alpha < 1: no step is inefficient."""
    D, alpha = np.array([0.8, 0.5, 1.2, 0.8]), np.array([0.8, 0.7, 0.6, 0.6])
    _, of_runs = sampled(at.rng(), 0.8, 0.8, T_sampled, copies)
    mean = variances(T, D, alpha)[1]
    recursion = float(variances(T_sampled, D, alpha)[1][0])
    return Evidence.of(
        equal("variance of runs and by recursion", of_runs.var(), recursion, 4.0, error=in_errors(of_runs)),
        equal("T Var(average)", T * mean, at.given(SIGMA2) / H**2, 1.08, "ratio"),
    )


@claim(
    "consensus.pr-one",
    "section 4, Drawback of the PR-procedure, and Motivation",
    stated="not statistically efficient, but sqrt(T K)-consistent",
    perturbation=0.3,
    quick={"T": 30_000},
    full={"T": 1_000_000},
)
def average_at_one(at: Trial, T: int) -> Evidence:
    """With alpha = 1 the average is consistent at the rate sqrt(T), and not efficient: T Var(average) -> sigma^2/F''^2
    times 2 F'' D/(2 F'' D - 1) for D > 1/(2 F''). (The factor is ours.)"""
    D = np.array([1.0, 1.5, 2.0, 4.0]) / H
    found = T * variances(T, D, np.ones(4))[1] / (SIGMA2 / H**2)
    factor = 2.0 * H * at.given(D) / (2.0 * H * at.given(D) - 1.0)
    return Evidence.of(
        equal("T Var(average) over sigma^2/F''^2, F'' D = 1, 1.5, 2, 4", found, factor, 1.02, "ratio"),
        at_least("its least value, which is 1 where the average is efficient", found.min(), 1.1),
    )
