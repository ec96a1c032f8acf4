"""Clients whose Hessians differ, and the methods that remove the bias (Discussion)."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import error_of_share, grid, watched
from ._instances import Array, Design, matrix, network, samples_of
from .inference import LEVEL, coverage, gather, halves


# ---- constant steps, full gradients ----------------------------------------------------------------------------------
def _quadratics(problem: gr.Problem, K: int) -> tuple[Array, Array]:
    """A_k and b_k of grad f_k = A_k theta - b_k, by hand."""
    X, y = (each.reshape(K, -1, *each.shape[1:]) for each in samples_of(problem))
    m = X.shape[1]
    return np.einsum("kmi,kmj->kij", X, X) / (K * m), np.einsum("kmi,km->ki", X, y) / (K * m)


def _ends(at: Trial, method: Any, rounds: int) -> tuple[gr.Problem, Array, Array, Array]:
    """The problem, A and b, and theta of a method after 0 to 20 rounds and at the end."""
    problem = Design(10, 30, scales=0.8).problem(at.rng())
    look = gr.Observer("state.theta", rounds=[*range(21), rounds])
    return problem, *_quadratics(problem, 10), watched(problem, method, rounds, look, seed=0)["state.theta"]


def _compared(at: Trial, name: str, eta: float, theta: Array, A: Array, b: Array, by_hand: list[Array]) -> Evidence:
    """A corrected method against its recursion and the optimum, and local SGD with the same step."""
    best = np.linalg.solve(A.sum(axis=0), at.given(b).sum(axis=0))
    plain = _ends(at, gr.LocalSGD(eta / 10, batch=None), 3000)[-1][-1]
    off = np.linalg.norm(plain - best, axis=1).max() / np.linalg.norm(best)
    return Evidence.of(
        equal(f"theta of the recursion, 20 rounds of {name}", theta[1:21], by_hand, 1e-10),
        equal(f"theta of {name} at the end, and theta*", theta[-1], np.tile(best, (10, 1)), 1e-8),
        at_least("distance from theta* of local SGD, relative", off, 0.01),
    )


@claim("consensus.exact-diffusion", "Discussion, Exact Diffusion (Yuan et al., 2020)", stated="bias corrected")
def exact_diffusion(at: Trial) -> Evidence:
    """Exact diffusion, psi+ = theta - eta g, theta+ = (I + C)/2 (psi+ + theta - psi), ends at theta* with a constant
    step, where decentralised gradient descent keeps a bias."""
    eta = 0.6
    _, A, b, theta = _ends(at, gr.ExactDiffusion(eta), 2000)
    half, now, by_hand = (np.eye(10) + matrix(network(10, 4))) / 2.0, np.zeros((10, 6)), list[Array]()
    before = now
    for _ in range(20):
        psi = now - eta * (np.einsum("kij,kj->ki", A, now) - b)
        now, before = half @ (psi + now - before), psi
        by_hand.append(now)
    return _compared(at, "ExactDiffusion", eta, theta, A, b, by_hand)


@claim("consensus.tracking", "Discussion, Gradient Tracking (Nedic et al., 2016)", stated="bias corrected")
def gradient_tracking(at: Trial) -> Evidence:
    """Gradient tracking, y = C (y + g - g_old), theta = C (theta - eta y), ends at theta* with a constant step, where
    decentralised gradient descent keeps a bias."""
    eta = 0.6
    _, A, b, theta = _ends(at, gr.GradientTracking(eta), 2000)
    C, now, by_hand = (np.eye(10) + matrix(network(10, 4))) / 2.0, np.zeros((10, 6)), list[Array]()
    y = old = np.zeros((10, 6))
    for _ in range(20):
        g = np.einsum("kij,kj->ki", A, now) - b
        y, old = C @ (y + g - old), g
        now = C @ (now - eta * y)
        by_hand.append(now)
    return _compared(at, "GradientTracking", eta, theta, A, b, by_hand)


# ---- regions ---------------------------------------------------------------------------------------------------------
METHODS = ("LocalSGD", "GradientTracking", "ExactDiffusion")


def _coverages(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for k, (name, (held, error)) in enumerate(data["held"].items()):
        at = np.arange(len(held)) + 0.08 * (k - 1)
        axes.errorbar(at, held, yerr=error, linestyle="none", capsize=2.5, label=name)
    axes.axhline(LEVEL, color="black", lw=0.8, ls="--", marker="", label="stated: .95")
    axes.set_xticks(np.arange(len(data["cells"])), data["cells"])
    axes.set(xlabel="estimator and exponent alpha of the steps", ylabel="coverage of 95% regions", ylim=(-0.05, 1.05))
    axes.legend()


@claim(
    "consensus.heterogeneous-hessians",
    "Theorem 5 and Theorem 4, where the clients' Hessians differ",
    stated=0.95,
    perturbation=0.3,
    experiment=True,
    quick={"K": 20, "T": 1000, "replications": 100, "alphas": (1.0, 0.8)},
    full={"K": 50, "T": 3000, "replications": 1000, "alphas": (1.0, 0.8, 0.6)},
    figure=_coverages,
)
def unlike(at: Trial, K: int, T: int, replications: int, alphas: tuple[float, ...]) -> Evidence:
    """The 95% regions of local SGD hold theta* with probability near .95. (In the experiments of the paper all clients
    have the same Hessian; here the covariates have scales of their own at each client, log-standard deviation .5.)

    Correction (substance): Clients that disagree by eta_t pull the mean off where their Hessians differ; with gradient
    tracking or exact diffusion in the place of local SGD the one-step regions hold.
    """
    same = {"K": K, "T": T, "start": 1.0, "a": 200, "scales": 0.5, "neighbours": 10 if K > 20 else 4}
    cells = grid(method=METHODS, alpha=alphas, **same)
    found = gather(at, cells, replications, 400)
    error = error_of_share(LEVEL, replications)
    table = [
        {"method": cell["method"], "alpha": cell["alpha"]}
        | {name: coverage(each[name]) for name in ("one-step", "average")}
        | {"standard error": error}
        for cell, each in zip(cells, found, strict=True)
    ]
    held = {name: [row["one-step"] for row in table if row["method"] == name] for name in METHODS}
    both = {name: held[name] + [row["average"] for row in table if row["method"] == name] for name in METHODS}
    names = [f"{name}, {alpha}" for name in ("one-step", "average") for alpha in alphas]
    right = np.array([held[name] for name in METHODS[1:]])
    return Evidence.of(
        equal("one-step regions, local SGD", held["LocalSGD"], LEVEL, 4.0, error=error),
        corrected=[
            equal("one-step regions, both corrections", right, at.given(LEVEL), 4.0, error=error),
            halves("one-step regions, both corrections", [each["one-step"] for each in found[len(alphas) :]]),
            at_most("least coverage of local SGD's one-step regions", min(held["LocalSGD"]), 0.7),
        ],
        table=table,
        data={"cells": names, "held": {name: [each, error] for name, each in both.items()}},
    )
