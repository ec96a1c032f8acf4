"""Confidence regions: Theorems 3 to 5 on the design of the experiments, (12) to (14), Figure 6."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2

import graphreg as gr

from .. import Check, Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, error_of_share, fixed, grid, rows
from ._instances import PLAIN, Array, Design, normalised, run, samples_of, steps

D, LEVEL = 6, 0.95
HELD = float(chi2.ppf(LEVEL, D))


def estimates(
    rng: np.random.Generator, *, K: int, T: int, alpha: float, copies: int, start: float, a: int, **more: Any
) -> dict[str, Any]:
    """In each copy T K off' Sigma^-1 off of both estimators, ``start`` away from theta* in every coordinate."""
    of = Design(K, T, **{name: each for name, each in more.items() if name in ("scales", "neighbours")})
    method = more.get("method", "LocalSGD")
    tool = getattr(gr, method)(
        steps(alpha), **PLAIN, hessian_samples=a, **({"tau": more["tau"]} if "tau" in more else {})
    )
    got, _ = run(of.problem(rng, copies), copies, tool, T, of.truth + start)
    return normalised(got, T, of.truth)


def gather(at: Trial, cells: list[dict[str, Any]], replications: int, nodes: int) -> list[dict[str, Array]]:
    """By cell, for all replications; so many nodes at once, with a million samples at most."""
    out: list[dict[str, Array]] = []
    for cell in cells:
        copies = max(min(nodes, 1_000_000 // cell["T"]) // cell["K"], 1)
        [found] = at.replicate(estimates, [{**cell, "copies": copies}], -(-replications // copies))
        out.append({name: np.concatenate(column([found], name)[0]) for name in found[0]})
    return out


def coverage(values: Array) -> float:
    return float((values <= HELD).mean())


def halves(what: str, values: list[Array]) -> Check:
    """The coverage of 50% regions: it tells regions that are too large, which 95% regions with few replications do
    not."""
    found = [float((each <= chi2.ppf(0.5, D)).mean()) for each in values]
    return equal(f"{what}, 50% regions", found, 0.5, 4.0, error=error_of_share(0.5, len(values[0])))


# ---- formulas --------------------------------------------------------------------------------------------------------
@claim("consensus.eq13-14", "(12), (13), (14)", stated="(12), (13), (14)")
def sums_of_a_run(at: Trial) -> Evidence:
    """Sigma = H^-1 S H^-1 with H = sum_k w_k H_k and S = K sum_k w_k^2 S_k, S_k centred at each client; the one-step
    estimator is average - H^-1 (1/T) sum_t sum_k w_k grad f_k. ((12) prints f_m for f_k and p_k for w_k.)"""
    K, T, a, d = 5, 60, 20, 6
    of, rng = Design(K, T), at.rng()
    problem = of.problem(rng)
    tool = gr.LocalSGD(steps(0.8), **PLAIN, hessian_samples=a)
    look = gr.Observer("state.theta", rounds=1)
    found = fixed(problem, tool, T, observe=look)
    assert found.observed is not None
    theta = found.observed["state.theta"][:T]
    X, y = (np.swapaxes(each.reshape(K, T, -1), 0, 1) for each in samples_of(problem))
    G = X * (np.einsum("tkd,tkd->tk", X, theta)[..., None] - y)  # grad f_k, (T, K, d)
    w = at.given(np.full(K, 1.0 / K))
    S_k = np.einsum("tki,tkj->kij", G, G) / T - np.einsum("ki,kj->kij", G.mean(axis=0), G.mean(axis=0))
    S = K * np.einsum("k,kij->ij", w**2, S_k)
    H = np.einsum("k,tki,tkj->ij", w, X[-a:], X[-a:]) / a
    inverse = np.linalg.inv(H)
    average = theta.mean(axis=(0, 1))
    one_step = average - inverse @ np.einsum("k,tkd->d", w, G) / T
    regions = {name: gr.inference.confidence_region(found, name) for name in ("one-step", "average")}
    return Evidence.of(
        equal("Sigma/(T K)", regions["average"].covariance.to_numpy(), inverse @ S @ inverse / (T * K), 1e-9),
        equal("average", regions["average"].estimate.to_numpy(), average, 1e-9),
        equal("one-step estimator", regions["one-step"].estimate.to_numpy(), one_step, 1e-9),
        equal("coefficients", len(regions["average"].names), d, 0.0),
    )


@claim(
    "consensus.hessian-samples",
    "(12), Theorem 4: K a(T) -> infinity",
    stated="small a(T) suffices as K grows",
    perturbation=0.3,
    experiment=True,
    quick={"copies": 40, "replications": 150},
    full={"copies": 400, "replications": 1000},
)
def hessians(at: Trial, copies: int, replications: int) -> Evidence:
    """The H_k need not be estimated consistently: with a samples at each of K clients E|H_hat - H|_F^2 = c/(K a), here
    c = E|x|^4 - d = p (p + 3), p = d - 1. Regions need K a(T) large: .78, .88, .94 with a = 2, 10, 300 at K = 10
    (ours)."""
    cells, p, sizes = [(5, 2), (5, 50), (20, 2), (20, 50)], at.given(5.0), list[tuple[float, float]]()
    for k, (K, a) in enumerate(cells):
        tool = gr.LocalSGD(1e-9, **PLAIN, hessian_samples=a)
        got, _ = run(Design(K, a).problem(at.rng(k), copies), copies, tool, a, 0.0)
        off = ((got["hessian"].sum(axis=1) - np.eye(6)) ** 2).sum(axis=(1, 2)) * K * a
        sizes.append((float(off.mean()), float(off.std() / np.sqrt(copies))))
    samples = (2, 10, 300)
    found = gather(at, grid(K=10, T=600, alpha=0.8, start=1.0, a=samples), replications, 300)
    held = [coverage(each["one-step"]) for each in found]
    mean, error, off = *np.array(sizes).T, error_of_share(LEVEL, replications)
    return Evidence.of(
        equal("K a E|H_hat - H|^2, K = 5, 20, a = 2, 50", mean, p * (p + 3.0), 4.0, error=error),
        at_most("coverage with K a = 20", held[0], 0.9),
        equal("coverage with K a = 3000", held[2], LEVEL, 4.0, error=off),
        table=rows({"K": 10, "a": samples, "coverage of the one-step region": held, "standard error": off}),
    )


# ---- theorems --------------------------------------------------------------------------------------------------------
@claim(
    "consensus.thm3-normality",
    "Theorem 3, (11)",
    stated="chi-square, d",
    perturbation=0.3,
    experiment=True,
    quick={"T": 1000, "replications": 200},
    full={"T": 10_000, "replications": 1000},
)
def theorem_3(at: Trial, T: int, replications: int) -> Evidence:
    """sqrt(T K) S^-1/2 H (average - theta*) -> N(0, I) for 1/2 < alpha < 1, K = o(T^(2 alpha - 1)): the squared norm is
    chi-square with d degrees of freedom (alpha = .6, started at theta*; equal Hessians)."""
    [found] = gather(at, [{"K": 10, "T": T, "alpha": 0.6, "start": 0.0, "a": 200}], replications, 500)
    return _chi_square(at, found["average"])


def _chi_square(at: Trial, values: Array) -> Evidence:
    """The mean, and the shares below quantiles, against those of chi-square."""
    levels, n = np.array([0.25, 0.5, 0.75, 0.95]), len(values)
    shares = np.array([(values <= chi2.ppf(level, D)).mean() for level in levels])
    error = error_of_share(levels, n)
    return Evidence.of(
        equal("mean", values.mean(), at.given(float(D)), 4.0, error=values.std() / np.sqrt(n)),
        equal("shares below the quantiles .25, .5, .75, .95", shares, levels, 4.0, error=error),
        table=rows({"level": levels, "share": shares, "standard error": error}),
    )


@claim(
    "consensus.thm5-onestep",
    "Theorem 5",
    stated="chi-square, d",
    perturbation=0.3,
    experiment=True,
    quick={"T": 1000, "replications": 200},
    full={"T": 10_000, "replications": 1000},
)
def theorem_5(at: Trial, T: int, replications: int) -> Evidence:
    """With alpha = 1 and K = o(T) sqrt(T K) S^-1/2 H (one-step - theta*) -> N(0, I): the squared norm is chi-square
    with d degrees of freedom, also from a start that is far (equal Hessians)."""
    [found] = gather(at, [{"K": 10, "T": T, "alpha": 1.0, "start": 1.0, "a": 300}], replications, 500)
    return _chi_square(at, found["one-step"])


@claim(
    "consensus.thm4-region",
    "Theorem 4, (13)",
    stated=0.95,
    perturbation=0.3,
    experiment=True,
    quick={"Ts": (200, 2000), "replications": 200},
    full={"Ts": (200, 1000, 4000, 16_000), "replications": 1000},
)
def theorem_4(at: Trial, Ts: tuple[int, ...], replications: int) -> Evidence:
    """The 95% region of the average holds theta* with probability -> .95 as T grows (alpha = .8, K = 10, start 1 away:
    what is left of the start goes like sqrt(K/T), so that it is not there yet at T = 200)."""
    cells = grid(K=10, T=Ts, alpha=0.8, start=1.0, a=200)
    values = [each["average"] for each in gather(at, cells, replications, 500)]
    held, error = [coverage(each) for each in values], error_of_share(LEVEL, replications)
    return Evidence.of(
        equal("coverage at the largest T", held[-1], at.given(LEVEL), 4.0, error=error),
        halves("coverage at the largest T", values[-1:]),
        at_least("coverage at the largest T less that at the smallest", held[-1] - held[0], 0.0),
        table=rows({"T": Ts, "coverage": held, "standard error": error}),
    )


# ---- Figure 6 --------------------------------------------------------------------------------------------------------
KINDS = [("one-step", 1.0), ("one-step", 0.8), ("one-step", 0.6), ("average", 0.8), ("average", 0.6)]


def _figure_6(figure: Any, data: dict[str, Any]) -> None:
    sheets = figure.subplots(1, len(data["Ks"]), sharey=True, squeeze=False)[0]
    for axes, K in zip(sheets, data["Ks"], strict=True):
        for name, points in data["curves"][str(K)].items():
            Ts, off, error = np.array(points).T
            axes.errorbar(Ts, off, yerr=error, capsize=2.5, markersize=4.0, linewidth=1.0, label=name)
        axes.axhline(0.0, color="0.8", lw=0.8, zorder=0)
        axes.set(xlabel="samples of each client T", ylabel="|coverage - .95|", xscale="log", title=f"K = {K}")
        axes.set_xticks(data["Ts"], list(map(str, data["Ts"])), minor=False)
        axes.minorticks_off()
    sheets[0].legend()


@claim(
    "consensus.fig6",
    "Figure 6",
    stated="curves without numbers in the text",
    perturbation=0.3,
    experiment=True,
    quick={"Ks": (10, 20), "Ts": (200, 800), "replications": 100},
    full={"Ks": (10, 50), "Ts": (1000, 4000), "replications": 1000},
    figure=_figure_6,
)
def figure_6(at: Trial, Ks: tuple[int, ...], Ts: tuple[int, ...], replications: int) -> Evidence:
    """Absolute coverage errors of the 95% regions of the one-step estimator (alpha = 1, .8, .6) and of the average
    (alpha = .8, .6), delta = .2 (the text has no numbers; K, T, D, gamma, neighbours, start are ours): those of the
    one-step estimator vanish, those of the average are larger and fall with T."""
    cells = grid(K=Ks, T=Ts, alpha=(1.0, 0.8, 0.6), start=1.0, a=200)
    found = dict(zip([(c["K"], c["T"], c["alpha"]) for c in cells], gather(at, cells, replications, 500), strict=True))
    held = {(K, T, *kind): coverage(found[K, T, kind[1]][kind[0]]) for K in Ks for T in Ts for kind in KINDS}
    error, last = error_of_share(LEVEL, replications), Ts[-1]
    table = [
        {"K": K, "T": T, "estimator": name, "alpha": alpha, "coverage": each, "standard error": error}
        for (K, T, name, alpha), each in held.items()
    ]
    one = [each for (_, T, name, _), each in held.items() if name == "one-step" and last == T]
    every = [(T, each) for (_, T, name, alpha), each in held.items() if name == "average" and alpha == 0.6]
    early, late = (np.mean([each for T, each in every if (last == T) is end]) for end in (False, True))
    averages = "mean coverage of the averages, alpha = .6"
    curves = {
        str(K): {f"{n}, alpha = {a}": [[T, abs(held[K, T, n, a] - LEVEL), error] for T in Ts] for n, a in KINDS}
        for K in Ks
    }
    return Evidence.of(
        equal(f"coverage of the one-step regions at T = {last}", one, at.given(LEVEL), 4.0, error=error),
        halves(
            f"coverage of the one-step regions at T = {last}",
            [found[K, last, alpha][name] for K in Ks for name, alpha in KINDS if name == "one-step"],
        ),
        at_most(f"{averages}, at the least T less that at the largest", early - late, 0.0),
        at_most(f"{averages}, less that of the one-step estimator", late - np.mean(one), 0.0),
        table=table,
        data={"Ks": Ks, "Ts": Ts, "curves": curves},
    )
