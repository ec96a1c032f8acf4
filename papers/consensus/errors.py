"""The consensus error and the mean square error: Proposition 1, Theorem 2, Figures 4 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, grid, rows, slope
from ..figures import curve
from ._instances import PLAIN, Array, Design, consensus_error, matrix, network, run, steps


# ---- the design ------------------------------------------------------------------------------------------------------
@claim("consensus.design", "section 5, Data Generating Process; Assumption 6", stated="bounded")
def heterogeneity(at: Trial) -> Evidence:
    """With phi_kj = delta ((k - 1) - (K - 1)/2) the clients' heterogeneity is bounded, sum_k w_k |grad F - grad F_k|^2
    <= kappa^2 for a kappa that does not depend on K.

    Correction (substance): It is kappa^2 = d delta^2 (K^2 - 1)/12, which grows with K; theta* = 0 holds.
    """
    K = np.array([50, 100, 200, 400, 800])
    designs = [Design(k, 1) for k in K.tolist()]
    kappa2 = np.array([((of.phi - of.phi.mean(axis=0)) ** 2).sum(axis=1).mean() for of in designs])
    return Evidence.of(
        equal("kappa^2 over that at K = 50", kappa2 / kappa2[0], 1.0),
        corrected=[
            equal("kappa^2", kappa2, 6 * 0.2**2 * (at.given(K) ** 2.0 - 1.0) / 12.0),
            equal("theta*", [of.phi.mean(axis=0) for of in designs], 0.0, 1e-12, "absolute"),
        ],
    )


def bounded(K: int, T: int, neighbours: int) -> Design:
    """The design with delta such that kappa = 1."""
    return Design(K, T, gap=float(np.sqrt(2.0 / (K**2 - 1.0))), neighbours=neighbours)


# ---- Proposition 1 ---------------------------------------------------------------------------------------------------
def limit(of: Design) -> float:
    """The consensus error over eta^2 as eta -> 0 where all H_k = I, in stationarity (tau = 1): with the gradients b_k
    at theta*, L = C - 11'/K, (1/K) |(I - L)^-1 L b|^2 + (1/K) tr(L^2 (I - L^2)^-1) mean_k tr S_k."""
    K = of.nodes
    L = matrix(network(K, of.neighbours)) - 1.0 / K
    drift = np.linalg.solve(np.eye(K) - L, L @ (of.truth - of.phi))
    values = np.linalg.eigvalsh(L)
    return float((drift**2).sum() / K + (values**2 / (1.0 - values**2)).mean() * of.noise)


def _settled(rng: np.random.Generator, *, eta: float, tau: int, copies: int) -> dict[str, Any]:
    """The consensus error right after gossips, in the mean over time."""
    of, at = Design(10, 300), range(100, 301, 10)
    _, seen = run(of.problem(rng, copies), copies, gr.LocalSGD(eta, tau=tau, **PLAIN), 300, of.truth, at=at)
    return {"error": float(np.mean([consensus_error(theta) for theta in seen.values()]))}


@claim(
    "consensus.prop1",
    "Proposition 1, (8)",
    stated="slope 2 in eta",
    perturbation=0.3,
    experiment=True,
    quick={"copies": 20, "batches": 5},
    full={"copies": 100, "batches": 20},
)
def proposition_1(at: Trial, copies: int, batches: int) -> Evidence:
    """The consensus error is at most c_0 eta_t^2. (c_0 holds a constant a that is nowhere defined, so that the order is
    what can be checked; our own constant for equal Hessians and tau = 1 is checked with it.)"""
    etas, taus = np.array([0.04, 0.02, 0.01, 0.005]), (1, 5)
    cells = [{"eta": eta / tau, "tau": tau, "copies": copies} for tau in taus for eta in etas.tolist()]
    found = at.replicate(_settled, cells, batches)
    errors = column(found, "error").reshape(2, len(etas), -1)
    mean, error = errors.mean(axis=2), errors.std(axis=2) / np.sqrt(batches - 1.0)
    constant = at.given(limit(Design(10, 300)))
    tau, eta, m = np.repeat(taus, len(etas)), np.tile(etas, 2) / np.repeat(taus, len(etas)), mean.ravel()
    table = {"tau": tau, "eta": eta, "error": m, "standard error": error.ravel(), "error / eta^2": m / eta**2}
    return Evidence.of(
        equal("slope of log error in log eta, tau = 1 and 5", [slope(etas, row) for row in mean], 2.0, 0.1, "absolute"),
        equal("error / eta^2 at eta = .01 and .005, tau = 1", mean[0, 2:] / etas[2:] ** 2, constant, 1.1, "ratio"),
        table=rows(table),
    )


# ---- over time -------------------------------------------------------------------------------------------------------
def _over_time(
    rng: np.random.Generator, *, K: int, T: int, alpha: float, copies: int, neighbours: int, long: bool = False
) -> dict[str, Any]:
    """Consensus errors and squared errors of the mean at steps T/20 to T, in each of the copies."""
    of, step = bounded(K, T, neighbours), longer(alpha) if long else steps(alpha)
    _, seen = run(of.problem(rng, copies), copies, gr.LocalSGD(step, **PLAIN), T, 0.3, at=times(T))
    apart = np.array([consensus_error(theta) for theta in seen.values()])
    off = np.array([((theta.mean(axis=1) - of.truth) ** 2).sum(axis=1) for theta in seen.values()])
    return {"apart": apart, "off": off}


def times(T: int) -> list[int]:
    return np.unique(np.geomspace(T / 20, T, 12).round()).astype(int).tolist()


def longer(alpha: float) -> gr.DecreasingStep:
    """D > 2/mu and eta_1 <= 1/mu, as Theorem 2 asks, mu = 1."""
    return gr.DecreasingStep(2.5, {1.0: 20.0, 0.8: 30.0, 0.6: 100.0}[alpha], alpha)


def observed(
    at: Trial, Ks: tuple[int, ...], alphas: tuple[float, ...], T: int, nodes: int, batches: int, **more: Any
) -> dict[tuple[int, float], dict[str, Array]]:
    """By K and alpha: what is seen, (times, replications)."""
    cells = [
        {**each, "copies": max(nodes // each["K"], 1), "neighbours": 2 * (each["K"] // 4)}
        for each in grid(alpha=alphas, K=Ks, T=T, **more)
    ]
    found = at.replicate(_over_time, cells, batches)
    return {
        (cell["K"], cell["alpha"]): {name: np.concatenate(column([each], name)[0], axis=1) for name in ("apart", "off")}
        for cell, each in zip(cells, found, strict=True)
    }


def eta_at(alpha: float, t: Any, step: gr.DecreasingStep | None = None) -> Array:
    step = step or steps(alpha)
    assert step.D is not None
    assert step.gamma is not None
    return step.D * (np.asarray(t) + 1.0 + step.gamma) ** -alpha


def in_eta(alpha: float, T: int, values: Array) -> float:
    """The slope of the logarithm of the mean over the replications in log eta_t."""
    return slope(eta_at(alpha, times(T)), values.mean(axis=1))


def _standard_error(alpha: float, T: int, values: Array) -> float:
    """Of `in_eta`, by the jackknife over the replications."""
    n = values.shape[1]
    each = [in_eta(alpha, T, np.delete(values, k, axis=1)) for k in range(n)]
    return float(np.sqrt((n - 1.0) * np.var(each)))


def drawn_over_time(name: str, label: str, power: int) -> Any:
    def draw(figure: Any, data: dict[str, Any]) -> None:
        sheets = figure.subplots(1, len(data["curves"]), sharey=True, squeeze=False)[0]
        for axes, (alpha, curves) in zip(sheets, data["curves"].items(), strict=True):
            for K, samples in curves.items():
                curve(axes, data["t"], samples, f"K = {K}")
            last, eta = np.mean(list(curves.values())[-1][-1]), eta_at(float(alpha), data["t"])
            axes.plot(data["t"], last * (eta / eta[-1]) ** power, color="black", ls=":", marker="", lw=2.0, label=name)
            axes.set(xlabel="SGD steps t", ylabel=label, xscale="log", yscale="log", title=f"alpha = {alpha}")
        sheets[0].legend()

    return draw


SIZES: dict[str, Any] = {
    "quick": {"Ks": (20, 50, 100), "alphas": (0.6, 0.8), "T": 800, "nodes": 200, "batches": 4},
    "full": {"Ks": (50, 100, 200, 400, 800), "alphas": (0.6, 0.8), "T": 3000, "nodes": 800, "batches": 5},
}


def _table(seen: dict[tuple[int, float], dict[str, Array]], name: str, T: int) -> list[dict[str, Any]]:
    return [
        {"K": K, "alpha": alpha, "at t = T": float(each[name][-1].mean())}
        | {"slope in eta_t": in_eta(alpha, T, each[name]), "standard error": _standard_error(alpha, T, each[name])}
        for (K, alpha), each in seen.items()
    ]


def _curves(seen: dict[tuple[int, float], dict[str, Array]], name: str, T: int) -> dict[str, Any]:
    alphas = sorted({alpha for _, alpha in seen})
    return {"t": times(T), "curves": {a: {K: each[name] for (K, b), each in seen.items() if a == b} for a in alphas}}


@claim(
    "consensus.fig4",
    "Figure 4",
    stated="curves without numbers in the text",
    perturbation=0.5,
    experiment=True,
    **SIZES,
    minutes=5.0,
    figure=drawn_over_time("eta_t^2", "consensus error", 2),
)
def figure_4(at: Trial, T: int, **sizes: Any) -> Evidence:
    """The consensus error over the steps, K = 50 to 800, alpha = .6 and .8 (the text has no numbers; delta such that
    kappa = 1, K/2 neighbours): for each K it falls as eta_t^2, Proposition 1."""
    seen = observed(at, T=T, **sizes)
    table = _table(seen, "apart", T)
    slopes = [row["slope in eta_t"] for row in table]
    return Evidence.of(
        equal("slopes", slopes, at.given(2.0), 0.25, "absolute"), table=table, data=_curves(seen, "apart", T)
    )


@claim(
    "consensus.fig5",
    "Figure 5",
    stated="curves without numbers in the text",
    perturbation=0.6,
    experiment=True,
    **SIZES,
    minutes=8.0,
    figure=drawn_over_time("eta_t", "mean square error", 1),
)
def figure_5(at: Trial, T: int, **sizes: Any) -> Evidence:
    """The mean square error of the mean over the clients, K = 50 to 800, alpha = .6 and .8 (the text has no numbers;
    delta such that kappa = 1, K/2 neighbours): after the start it is noise eta_t/(2 K), so that it falls as eta_t/K."""
    seen = observed(at, T=T, **sizes)
    table = _table(seen, "off", T)
    late = [float(each["off"][-4:].mean()) for each in seen.values()]
    stated = at.given([bounded(K, T, 2).noise * eta_at(alpha, times(T)[-4:]).mean() / (2.0 * K) for K, alpha in seen])
    return Evidence.of(
        equal("error in the last third", late, stated, 1.5, "ratio"),
        table=[row | {"late": a, "noise eta/(2 K)": b} for row, a, b in zip(table, late, stated, strict=True)],
        data=_curves(seen, "off", T),
    )


@claim(
    "consensus.thm2-mse",
    "Theorem 2, (9)",
    stated="a bound of the order eta_T/K",
    experiment=True,
    quick={"Ks": (10, 40), "alphas": (0.8, 1.0), "T": 800, "nodes": 200, "batches": 4},
    full={"Ks": (50, 100, 200, 400, 800), "alphas": (0.6, 0.8, 1.0), "T": 3000, "nodes": 800, "batches": 5},
)
def theorem_2(at: Trial, T: int, **sizes: Any) -> Evidence:
    """For alpha <= 1, D > 2/mu, eta_1 <= 1/mu: E|mean_T - theta*|^2 <= v_1 eta_T/K + v_2 eta_T^2, v_1 = D b_4 (sigma^2
    + 3 L_xi kappa^2)/(D mu - 1). (Of v_2 only its second member, gamma^2/D^2 |theta_0 - theta*|^2, can be computed, as
    the c_0 of the first is incomplete: the bound with it is smaller, and is what is checked.)"""
    seen, d, table, ratios = observed(at, T=T, long=True, **sizes), 6, list[dict[str, Any]](), list[float]()
    for (K, alpha), each in seen.items():
        step = longer(alpha)
        eta, D, gamma = eta_at(alpha, times(T), step), step.D or 0.0, step.gamma or 0.0
        v1 = D * (d + 3.0 * (d + 1.0)) / (D - 1.0)  # mu = 1, b_4 = 1, sigma^2 = d, L_xi = d + 1, kappa = 1
        bound = v1 * eta / K + gamma**2 / D**2 * d * 0.3**2 * eta**2
        mean = each["off"].mean(axis=1)
        upper = mean + 3.0 * each["off"].std(axis=1) / np.sqrt(each["off"].shape[1])
        ratios.append(float((upper / bound).max()))
        row = {"at T": mean[-1], "K / eta_T times it": K * mean[-1] / eta[-1], "bound": bound[-1]}
        row["of that, noise/2"] = 2.0 * row["K / eta_T times it"] / bounded(K, T, 2 * (K // 4)).noise
        table.append({"K": K, "alpha": alpha, **row, "largest ratio": ratios[-1]})
    return Evidence.of(
        at_most("mean square error over the bound, over all steps", ratios, 1.0),
        at_least(
            "error at T over noise eta_T/(2 K): no smaller order", [row["of that, noise/2"] for row in table], 0.7
        ),
        table=table,
    )
