"""Local SGD, gradient tracking and exact diffusion: rates, biases, what is sent and what certifies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.distributed import InProcess
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.mixing import mixing_of, spectral_gap
from graphreg.network.view import LocalView

K, D, M = 20, 3, 40  # nodes, coordinates, samples per node
GRAPH = nx.random_regular_graph(4, K, seed=1)
CORRECTED = (gr.GradientTracking, gr.ExactDiffusion)


def network(
    family: str = "squared", spread: float = 0.5, scales: float = 0.5, graph: Any = GRAPH, seed: int = 0
) -> Any:
    """A consensus of K nodes whose coefficients differ by ``spread`` and whose covariates by factors of about
    exp(``scales``), so that neither gradients nor Hessians are those of the neighbours."""
    rng = np.random.default_rng(seed)
    factor = np.exp(scales * rng.standard_normal((K, 1, D)))
    X = factor * rng.standard_normal((K, M, D))
    x = np.einsum("kmd,kd->km", X, 0.5 + spread * rng.standard_normal((K, D)))
    noise = rng.standard_normal((K, M))
    data = lambda y: gr.NodeData.from_arrays(X.reshape(-1, D), y.ravel(), np.repeat(np.arange(K), M))  # noqa: E731
    losses = {
        "squared": lambda: gr.SquaredLoss(data(x + noise)),
        "logistic": lambda: gr.LogisticLoss(data((x + noise > 0).astype(int))),
        "huber": lambda: gr.HuberLoss(data(x + noise**3), delta=1.0),
        "poisson": lambda: gr.PoissonLoss(data(rng.poisson(np.exp(np.clip(0.5 * x, -2, 2))))),
        "multinomial": lambda: gr.MultinomialLoss(data(np.digitize(x + noise, [-1.0, 1.0]))),
    }
    model = losses[family]() + gr.Consensus(graph)
    ridge = family in ("logistic", "multinomial")
    return gr.Problem(model + 0.1 * gr.NodePenalty(gr.SquaredL2()) if ridge else model)


def view_of(problem: Any, seed: int = 0) -> LocalView:
    form = problem.form
    return LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), seed)


def slope(x: Any, y: Any) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def study_certified() -> pd.DataFrame:
    """Rounds to a certified relative gap of 1e-8 with default steps (1 / max L_i; 0.1 for the Poisson loss, whose
    curvature has no bound); messages of the method and of the certificates."""
    rows = []
    for family in ("squared", "logistic", "huber", "poisson", "multinomial"):
        for method in CORRECTED:
            step = 0.1 if family == "poisson" else None
            run = network(family).solve(method(step_size=step), gap=1e-8, rounds=20_000)
            sent, repairs = run.ledger.messages["method"], run.ledger.messages["certificate"]
            row = {"loss": family, "method": run.method, "asked": "<= 1e-8; 180 to 660 rounds"}
            found = f"{run.certificate.relative_gap:.1e}; {run.rounds}"
            rows.append({**row, "found": found, "sent": sent, "for certificates": repairs})
    return pd.DataFrame(rows)


def study_error_in_time() -> pd.DataFrame:
    """The slope in T of the mean squared error of the mean over the clients, over 400 <= T <= 12,600 (averaged over
    stretches of T, and over 12 seeds; with its standard error): -alpha by (9), v_1 eta_T / K + v_2 eta_T^2, where the
    first term leads."""
    problem, rows = network(spread=0.2, scales=0.0), []
    truth = problem.solve(gap=1e-10).coef[0]
    ends = np.logspace(np.log10(400), np.log10(12_600), 11).astype(int)
    for alpha in (0.6, 0.8, 1.0):
        step = gr.DecreasingStep(D=2.5 / K, gamma=20.0, alpha=alpha)  # the curvature of the sum is about K
        errors = np.array([_errors(problem, step, ends, seed, truth) for seed in range(12)])
        middle = np.sqrt(ends[1:] * ends[:-1])
        parts = [slope(middle, np.delete(errors, k, axis=0).mean(axis=0)) for k in range(12)]  # the jackknife
        spread = float(np.sqrt(11.0 / 12.0 * np.sum((np.array(parts) - np.mean(parts)) ** 2)))
        rows.append({"alpha": alpha, "asked": -alpha, "found": slope(middle, errors.mean(axis=0)), "s.e.": spread})
    return pd.DataFrame(rows)


def _errors(problem: Any, step: Any, ends: Any, seed: int, truth: Any) -> Any:
    """The squared error of the mean over the clients, averaged between each two ends."""
    method = gr.LocalSGD(step_size=step)
    state = method.init(view_of(problem, seed), None)
    errors = np.zeros(int(ends[-1]))
    for t in range(len(errors)):
        errors[t] = np.sum((state.theta.mean(axis=0) - truth) ** 2)
        state = method.step(state)
    return np.array([errors[a:b].mean() for a, b in pairwise(ends)])


def _settled(problem: Any, method: Any, rounds: int, start: Any) -> Any:
    """The iterate after so many rounds from near the optimum."""
    state = method.init(view_of(problem), (np.tile(start, (K, 1)), None))
    for _ in range(rounds):
        state = method.step(state)
    return state.theta


def study_consensus_error() -> pd.DataFrame:
    """The slope of (1/K) sum_k ||theta_k - mean||^2 in a constant step with full gradients: 2 by Proposition 1 once
    eta tau << 1 - rho; the note measured 1.7 to 2.0."""
    problem, rows = network(), []
    optimum = problem.solve(gap=1e-10).coef[0]
    view = view_of(problem)
    gap = spectral_gap(mixing_of(view, "metropolis", False).matrix(problem.form))
    L = K * view.gradients.smoothness.max()
    for tau in (1, 5):
        etas = np.array([0.2, 0.1, 0.05, 0.025]) / (tau * L)
        errors = []
        for eta in etas:
            method = gr.LocalSGD(step_size=float(eta), tau=tau, batch=None)
            w = _settled(problem, method, round(20 / (eta * K)) * tau, optimum)
            errors.append(np.mean(np.sum((w - w.mean(axis=0)) ** 2, axis=1)))
        found = [round(slope(etas[k : k + 2], errors[k : k + 2]), 2) for k in range(len(etas) - 1)]
        row = {"tau": tau, "1 - rho": gap, "eta tau L": [0.2, 0.1, 0.05, 0.025]}
        rows.append({**row, "asked": "towards 2", "found": found})
    return pd.DataFrame(rows)


def study_bias() -> pd.DataFrame:
    """The distance from the optimum at constant steps eta, eta/2, eta/4 with full gradients, where Hessians differ:
    that of local SGD stays, and is proportional to the step; the corrected methods have none."""
    problem, rows = network(scales=0.8), []
    optimum = problem.solve(gap=1e-12, on_failure="return").coef[0]
    L = view_of(problem).gradients.smoothness.max()
    for name in ("LocalSGD", "GradientTracking", "ExactDiffusion"):
        found = []
        for part in (1.0, 0.5, 0.25):
            eta = 0.1 * part / L
            method = gr.LocalSGD(eta / K, batch=None) if name == "LocalSGD" else getattr(gr, name)(eta)
            w = _settled(problem, method, 10_000, optimum)
            found.append(np.sqrt(np.mean(np.sum((w - optimum) ** 2, axis=1))))
        asked = "halves twice" if name == "LocalSGD" else "< 1e-8"
        rows.append({"method": name, "asked": asked, "found": " ".join(f"{x:.2e}" for x in found)})
    return pd.DataFrame(rows)


def study_saving() -> pd.DataFrame:
    """The share of messages that tau local steps per gossip save: 1 - 1/tau."""
    problem, rows = network(), []
    for tau in (1, 2, 5, 10):
        sent = [problem.solve(gr.LocalSGD(tau=t), gap=0, rounds=200).ledger.messages["method"] for t in (1, tau)]
        rows.append({"tau": tau, "asked": 1 - 1 / tau, "found": 1 - sent[1] / sent[0]})
    return pd.DataFrame(rows)


def study_nonresponse() -> pd.DataFrame:
    """Root mean squared distance from the optimum after 20,000 steps, over 4 seeds, by the probability of no answer."""
    problem, rows = network(), []
    optimum = problem.solve(gap=1e-10).coef[0]
    for p in (0.0, 0.2, 0.5, 0.8):
        errors = []
        for seed in range(4):
            method = gr.LocalSGD(availability=1 - p)
            state = method.init(view_of(problem, seed), None)
            for _ in range(20_000):
                state = method.step(state)
            errors.append(np.sum((state.theta.mean(axis=0) - optimum) ** 2))
        rows.append({"nonresponse": p, "asked": "as without", "found": float(np.sqrt(np.mean(errors)))})
    return pd.DataFrame(rows)
