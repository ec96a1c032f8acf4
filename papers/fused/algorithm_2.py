"""Section 4.1: Fed-ADMM where devices are away at random."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, error_of_share, fixed, grid, optimum, rows, slope, watched
from ..figures import curve
from ._instances import Array, Study, squared
from .algorithm_1 import condition_2


def _chances(of: Study, low: float = 0.3) -> dict[Any, float]:
    return dict(enumerate(np.linspace(low, 0.95, len(of.X)).tolist()))


@claim(
    "fused.alg2-unbiased",
    "before (21a)",
    stated="unbiased",
    perturbation=0.5,
    quick={"rounds": 800},
    full={"rounds": 100_000},
)
def unbiased(at: Trial, rounds: int) -> Evidence:
    """R_i(t) / p_i times the mean of psi over a mini-batch is an unbiased estimator of grad M_i."""
    # Steps of 1e-9 leave theta where it is, and so small a rho the flows: each step is one draw of the estimator.
    of, eta = Study.drawn(at.rng(), 5, 12, p=2, K=1), 1e-9
    start, V = np.ones_like(of.truth), len(of.X)
    method = gr.FedADMM(
        batch=4, availability=_chances(of), while_away="ipw", step_size=lambda _t: eta, rho=1e-6, average="last"
    )
    look = gr.Observer("state.theta", rounds=1, memory=2**28)
    theta = watched(of.problem(0.05), method, rounds, look, start=start, seed=7)["state.theta"]
    drawn = -np.diff(theta, axis=0) / eta
    error = drawn.std(axis=0, ddof=1) / np.sqrt(rounds)
    away = float((np.abs(drawn[:, 0]).max(axis=1) < 1e-3).mean())
    return Evidence.of(
        equal("mean of the steps / eta", drawn.mean(axis=0), at.given(of.gradients(start) / V), 4.5, error=error),
        table=[{"p of the first node": 0.3, "rounds in which it did not move": away, "rounds": rounds}],
    )


@claim("fused.alg2-optimum", "Algorithm 2", stated="a similar algorithmic convergence guarantee", perturbation=0.5)
def limit(at: Trial) -> Evidence:
    """With p_i known, or estimated from the rounds so far, Algorithm 2 converges to the minimiser of (4)."""
    of, strength = Study.drawn(at.rng(), 8, 30, p=3, K=2), 0.02
    problem, p = of.problem(strength), _chances(of)
    best = optimum(problem).coef
    checks, table = [], []
    for name, away in (("known", p), ("estimated", gr.Availability(p, known=False))):
        found = fixed(problem, gr.FedADMM(availability=away, while_away="ipw"), 4000, seed=1).coef
        checks.append(equal(f"theta, p_i {name}", found, at.given(best), 0.05))
        off = {"||Theta - Theta of (4)||^2 / V": squared(found, best), "at 0": squared(best, 0 * best)}
        table.append({"p_i": name, **off})
    return Evidence.of(*checks, table=table)


@claim("fused.alg2-proportion", "section S.1", stated="the proportion of each device being offline", perturbation=0.5)
def proportion(at: Trial) -> Evidence:
    """Unknown p_i can be estimated by the proportion of the first t - 1 iterations in which a device was offline.

    Correction (misprint): p_i is the probability of being there: it is estimated by the proportion of being online.
    """
    of, rounds = Study.drawn(at.rng(), 6, 10, p=2, K=2), 2000
    p, away = np.array(list(_chances(of).values())), gr.Availability(_chances(of), known=False)
    method = gr.FedADMM(availability=away, while_away="ipw")
    online, error = fixed(of.problem(0.02), method, rounds, seed=1).gathered["online"], error_of_share(p, rounds)
    return Evidence.of(
        equal("proportion offline, and p_i", 1.0 - online, p, 4.0, error=error),
        corrected=[equal("proportion online, and p_i", online, at.given(p), 4.0, error=error)],
    )


@claim("fused.freeze", "a variant of ours, not in the paper", stated="the same fixed point, linear convergence")
def freeze(at: Trial) -> Evidence:
    """Where devices that are away keep their parameters, and an edge is updated only where both its ends are there, no
    p_i is needed, the limit is the minimiser of (4), and full gradients with constant steps converge linearly, also
    where devices are away together."""
    of, strength = Study.drawn(at.rng(), 8, 30, p=3, K=2), 0.02
    problem = of.problem(strength)
    best = optimum(of.problem(at.given(strength)), 1e-13).coef
    errors: dict[str, list[float]] = {}
    checks = []
    for name, away in (("independent", gr.Availability(0.5)), ("in halves", gr.Availability(sampler=_halves))):
        observe = gr.Observer({"error": lambda at: squared(at.w, best)}, rounds=[300, 600, 1200])
        run = fixed(problem, gr.FedADMM(availability=away), 1200, seed=5, observe=observe)
        assert run.observed is not None
        errors[name] = run.observed["error"].tolist()
        checks.append(equal(f"theta, away {name}", run.coef, best, 1e-5))
    factor = [seen[1] / seen[0] for seen in errors.values()]
    return Evidence.of(
        *checks,
        at_most("squared error of round 600 beside that of round 300", factor, 1e-2),
        table=[{"away": name, **dict(zip(("300", "600", "1200"), seen, strict=True))} for name, seen in errors.items()],
    )


def _halves(t: int, labels: Any, uniform: Array, common: np.random.Generator) -> Array:
    """Either the even nodes are there, or the odd ones, or all."""
    turn = common.integers(3)
    return np.array([turn == 2 or label % 2 == turn for label in labels])


# ---- Corollary 4.2 ---------------------------------------------------------------------------------------------------
CHANCES = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)


def _reached(rng: np.random.Generator, p0: float, batch: int, rounds: int) -> dict[str, float]:
    """Squared error of the mean of all iterates, from the minimiser on, with the step of (20), beside the bound."""
    of, strength = Study.drawn(np.random.default_rng(42), 8, 50, p=4, K=2), 0.05
    problem, kappa = of.problem(strength, whole=True), condition_2(of)
    exact, look = optimum(problem), gr.Observer("w", rounds=[rounds])
    best = exact.coef
    method = gr.FedADMM(batch=batch or None, kappa=kappa, rho=1.0, average="printed", availability=p0, while_away="ipw")
    w = watched(problem, method, rounds, look, start=exact, seed=int(rng.integers(2**31)))["w"][-1]
    psi = np.einsum("ukj,uk->ukj", of.X, np.einsum("ukj,uj->uk", of.X, best) - of.y)
    C, square = (psi**2).sum(axis=2).mean(axis=1), (psi.mean(axis=1) ** 2).sum(axis=1)
    bound = 2.0 * kappa**2 * float(C.max()) * np.log(rounds) / (p0 * rounds)
    noise = (C - square) / batch if batch else np.zeros(len(C))  # of a mini-batch
    return {"error": squared(w, best), "bound": bound, "variance": float(noise.sum() / square.sum())}


SHAPES = {"full gradients": "(1 - p0) / p0", "batches of 10": "(1 - p0 + v) / p0"}


def _draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for name in SHAPES:
        curve(axes, data["p0"], data[name], name)
    for (name, shape), dashes in zip(SHAPES.items(), ("-", "--"), strict=True):
        fitted = data[f"{name}, fitted"]
        axes.plot(data["p0"], fitted, color="0.6", linewidth=0.8, linestyle=dashes, marker="", label=f"fitted: {shape}")
    first = np.mean(data["full gradients"][0])
    axes.plot(
        data["p0"], first * data["p0"][0] / np.array(data["p0"]), "k:", marker="", label="the bound's shape: 1 / p0"
    )
    axes.set(xscale="log", yscale="log", xlabel="p0 (probability of being there)", ylabel="mean squared error per node")
    axes.legend()


@claim(
    "fused.cor4.2-p0",
    "Corollary 4.2",
    stated="2 kappa^2 C_psi log(T) / (p_0 T)",
    quick={"rounds": 600, "replications": 6},
    minutes=15.0,
    full={"rounds": 5000, "replications": 40},
    experiment=True,
    perturbation=1.0,
    figure=_draw,
)
def dropout(at: Trial, rounds: int, replications: int) -> Evidence:
    """Where devices are there with probability p_0 the mean squared error of the mean of all iterates is at most 2
    kappa^2 C_psi log(T) / (p_0 T), with the step of (20). (Ours: 1/p_0 is the second moment of the weighted gradient,
    the error goes with its variance, (1 - p_0) / p_0 with full gradients and (1 - p_0 + v) / p_0 with mini-batches of
    variance v beside ||grad||^2 = 1.)"""
    found = at.replicate(_reached, grid(batch=(0, 10), p0=CHANCES, rounds=rounds), replications)
    samples, k = column(found, "error"), len(CHANCES)
    means, bounds = samples.mean(axis=1).reshape(2, -1), column(found, "bound")[:, 0].reshape(2, -1)
    v, p0 = found[-1][0]["variance"], np.array(CHANCES)
    shapes = np.array([(1.0 - p0) / p0, (1.0 - p0 + v) / p0])
    slopes, steeper = [*map(slope, shapes, means)], -slope(p0[2:], means[0, 2:])
    fitted = shapes * np.exp((np.log(means) - np.log(shapes)).mean(axis=1))[:, None]
    return Evidence.of(
        at_most("squared error, beside the bound", means, bounds),
        equal("exponent of (1 - p_0) / p_0, full gradients", slopes[0], at.given(1.0), 0.2, "absolute"),
        equal("exponent of (1 - p_0 + v) / p_0, batches of 10", slopes[1], at.given(1.0), 0.2, "absolute"),
        at_least("exponent of 1/p_0, full gradients, p_0 from 0.35 to 0.9: more than 1", steeper, 1.3),
        table=rows({"p_0": CHANCES, **dict(zip(SHAPES, means, strict=True)), "stated bound": bounds[0]}),
        data={"p0": CHANCES, **dict(zip(SHAPES, (samples[:k], samples[k:]), strict=True))}
        | {f"{name}, fitted": each for name, each in zip(SHAPES, fitted, strict=True)},
    )
