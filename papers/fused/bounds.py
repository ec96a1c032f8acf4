"""Theorems 3.1 and 3.2: how far the estimator is from the truth."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, rows, slope
from ..figures import curve
from ._instances import Array, Study, squared


# ---- Theorem 3.1 -----------------------------------------------------------------------------------------------------
def _on_a_path(rng: np.random.Generator, V: int, jump: float) -> tuple[gr.Problem, gr.Parameter, Array]:
    """One number at each node of a path, 0 but ``jump`` at the node in the middle; (4) and the truth."""
    truth = np.where(np.arange(V) == V // 2, jump, 0.0)[:, None]
    data = gr.NodeData.from_arrays(None, truth + rng.standard_normal((V, 1)), np.arange(V))
    lam = gr.Parameter(1.0, name="lam")
    return (
        gr.Problem(gr.MeanLoss(data, scale=1.0 / V) + lam * gr.TotalVariation(gr.Graph.chain(V), gr.L1())),
        lam,
        truth,
    )


@claim("fused.thm3.1", "Theorem 3.1", stated="2 kappa^2 (rho^2 + 4 |S| lambda^2 / kappa_0)")
def error_bound(at: Trial) -> Evidence:
    """With lambda = |V|^(-1/2) R*{(D^+)' Psi} in (4) the error (1/|V|) ||Theta^ - Theta*||_F^2 is at most (6), 2
    kappa^2 (rho^2 + 4 |S| lambda^2 / kappa_0).

    Correction (constant): Such a lambda is sqrt(|V|) times too large for (4), and the proof divides kappa_S^2 out, not
    kappa_0: with R*{(D^+)' Psi} / |V| in (4), sqrt(|V|) lambda in the bound and kappa_S^2 it holds.
    """
    errors, bounds, right, limits = list[float](), list[float](), list[float](), list[float]()
    ours, stated, library, letter = list[float](), list[float](), list[Any](), list[Any]()
    for k, (V, jump) in enumerate(((40, 100.0), (60, 100.0), (20, 30.0), (40, 30.0))):
        problem, lam, truth = _on_a_path(at.rng(k), V, jump)
        printed = gr.theory.printed.error_bound(problem, truth)
        lam.value = printed.strength
        errors.append(squared(problem.solve(gr.Exact(), gap=1e-10).coef, truth))
        bounds.append(printed.bound)
        required = gr.theory.error_bound(problem, truth).required
        lam.value = required * (1.0 + 1e-9)
        right.append(squared(problem.solve(gr.Exact(), gap=1e-10).coef, truth))
        limits.append(gr.theory.error_bound(problem, truth).theorem)
        D = gr.Graph.chain(V).difference().toarray()
        psi = at.given(problem.oracles().gradient(truth))  # of f_i = M_i / V
        ours.append(required)
        stated.append(float(np.abs(np.linalg.pinv(D).T @ psi).max()))
        library.append((printed.strength, printed.bound))
        rho2, lam2 = (V * psi.mean()) ** 2, V * stated[-1] ** 2  # of M_i = V f_i
        # kappa = 1; two edges meet at the node in the middle, so that kappa_S = sqrt(2) / |(1, -2, 1)|
        letter.append((np.sqrt(lam2), 2.0 * (rho2 + 4.0 * 2.0 * lam2 / np.sqrt(2.0 / 6.0))))
    found = {"squared error, printed lambda": errors, "(6)": bounds}
    found |= {"lambda of the proof": right, "(6) corrected": limits}
    return Evidence.of(
        at_most("squared error at the printed lambda, paths", errors, bounds),
        corrected=[
            at_most("squared error at the lambda of the proof", right, limits),
            equal("that lambda, R*{(D^+)' Psi} / |V|", ours, stated, 1e-8),
            equal("printed lambda and (6), gr.theory.printed.error_bound and to the letter", library, letter, 1e-8),
        ],
        table=rows(found),
    )


@claim("fused.eq8", "(8) and (S.23)", stated="p log(|E| / xi)")
def largest_load(at: Trial) -> Evidence:
    """With phi = ||.||_1 and probability 1 - xi, lambda^2 = R*{(D^+)' Psi}^2 / |V| is at most a constant times sigma^2
    / gamma_G^2 times p log(|E| / xi) / (n |V|)."""
    # Normal gradients of variance 1/n on a path; of p features the factor p is not needed, but log(p |E| / xi).
    V, n, xi, draws = 20, 30, 0.1, 400
    D = gr.Graph.chain(V).difference().toarray()
    gamma = gr.theory.algebraic_connectivity(nx.path_graph(V)).smallest_positive
    load, scale = np.linalg.pinv(D).T, 1.0 / (gamma * n * V)
    table = []
    for p in (1, 4, 16, 64):
        psi = at.rng(p).standard_normal((draws, V, p)) / np.sqrt(n)
        size = np.quantile(np.abs(load @ psi).max(axis=(1, 2)) ** 2 / V, 1.0 - xi)
        row = {"p": p, "0.9 quantile of lambda^2": size, "stated": scale * p * np.log((V - 1) / xi)}
        table.append({**row, "log(p |E| / xi)": scale * np.log(p * (V - 1) / xi)})
    found, stated, less = (np.array([row[name] for row in table]) for name in list(table[0])[1:])
    shares = (found / less).min()
    return Evidence.of(
        at_most("lambda^2, beside 2 sigma^2 / gamma_G^2 p log(|E| / xi) / (n |V|)", found, 2.0 * stated),
        at_most("lambda^2, beside the same with log(p |E| / xi)", found, 2.0 * less),
        at_most("its share of that, the largest over the least of p = 1 to 64", (found / less).max() / shares, 2.0),
        table=table,
    )


@claim("fused.eq7", "(7), and section 3.1.1, end", stated="sigma^2 p K / (n |V|)", perturbation=0.3)
def shift(at: Trial) -> Evidence:
    """With probability 1 - xi, rho^2 = ||Pi_Ker(D) Psi||_F^2 / |V| is at most a constant times sigma^2 K p log(1 / xi)
    / (n |V|); its mean is sigma^2 p K / (n |V|), K the components of G."""
    # Normal gradients of variance 1/n; K n |V| rho^2 is chi-square with p K degrees of freedom.
    V, n, xi, draws = 24, 30, 0.1, 400
    table = []
    for parts in (1, 2, 6):
        graph = gr.Graph.of(nx.disjoint_union_all([nx.cycle_graph(V // parts)] * parts))
        D = graph.difference().toarray()
        kernel = np.eye(V) - np.linalg.pinv(D) @ D
        for p in (1, 5):
            psi = at.rng(parts, p).standard_normal((draws, V, p)) / np.sqrt(n)
            rho2 = ((kernel @ psi) ** 2).sum(axis=(1, 2)) / V
            row = {"K": parts, "p": p, "mean of rho^2": rho2.mean(), "error": rho2.std(ddof=1) / np.sqrt(draws)}
            table.append({**row, "0.9 quantile": np.quantile(rho2, 1.0 - xi), "stated": p * parts / (n * V)})
    mean, error, high, stated = (np.array([row[name] for row in table]) for name in list(table[0])[2:])
    return Evidence.of(
        equal("mean of rho^2", mean, at.given(stated), 4.0, error=error),
        at_most(
            "its 0.9 quantile, beside 1.5 sigma^2 K p log(1 / xi) / (n |V|)", high, 1.5 * stated * np.log(1.0 / xi)
        ),
        table=table,
    )


# ---- Theorem 3.2 -----------------------------------------------------------------------------------------------------
BASE: dict[str, Any] = {"V": 20, "n": 40, "false": 4}


def _estimated(rng: np.random.Generator, V: int, n: int, false: int) -> dict[str, float]:
    """Squared error at the strength of the (corrected) theorem: cliques as G_0, and some edges between clusters."""
    of = Study.drawn(rng, V, n, 0.0, p=4, K=4)
    between = [(i, j) for i in range(V) for j in range(i) if of.cluster[i] != of.cluster[j]]
    extra = np.array([between[k] for k in rng.choice(len(between), false, replace=False)]).reshape(-1, 2)
    lam, graph = gr.Parameter(1.0, name="lam"), of.joined(np.concatenate([of.edges, extra]))
    problem = of.problem(lam, graph=graph)
    lam.value = gr.theory.error_bound(problem, of.truth).required * (1.0 + 1e-9)
    found = gr.theory.error_bound(problem, of.truth)
    K = gr.theory.graph_fidelity(graph, of.cluster.tolist()).parameters
    return {"error": of.error(problem.solve(gr.Exact(), gap=1e-6).coef), "bound": found.theorem, "parameters": K}


def _draw_rates(figure: Any, data: dict[str, Any]) -> None:
    for axes, (name, label) in zip(figure.subplots(1, 3, sharey=True), LABELS.items(), strict=True):
        curve(axes, data[name]["x"], data[name]["errors"], "error")
        axes.plot(data[name]["x"], data[name]["slope one"], "k:", marker="", label="slope stated")
        axes.set(xscale="log", yscale="log", xlabel=label, ylabel="squared error per node")
        axes.set_xticks(data[name]["x"], [f"{x:.3g}" for x in data[name]["x"]])
        axes.set_xticks([], minor=True)
    figure.axes[0].legend()


LABELS = {"n": "n (samples per node)", "V": "|V| (nodes)", "false": "K(E) + |E \\ E_0|"}
SWEEP = {"n": (20, 40, 80, 160), "V": (12, 24, 48), "false": (4, 12, 28)}


@claim(
    "fused.thm3.2-rate",
    "Theorem 3.2 and (9)",
    stated="(K + |S|) / (n |V|)",
    quick={"replications": 3},
    full={"replications": 100},
    experiment=True,
    perturbation=0.5,
    figure=_draw_rates,
)
def rate(at: Trial, replications: int) -> Evidence:
    """The squared error scales as sigma^2 p (K + |S|) / (n |V|), up to a logarithm."""
    checks, table, data = [], [], {}
    for name, values in SWEEP.items():
        base = {**BASE, "false": 0} if name == "n" else BASE
        runs = at.replicate(_estimated, [{**base, name: value} for value in values], replications)
        errors, x = column(runs, "error"), np.array(values, dtype=float)
        if name == "false":
            x = column(runs, "parameters").mean(axis=1)
        means, worst = errors.mean(axis=1), (errors / column(runs, "bound")).max()
        found = slope(x, means)
        if name == "n":
            checks.append(equal("exponent of 1/n", -found, at.given(1.0), 0.25, "absolute"))
        elif name == "V":
            checks.append(at_least("exponent of 1/|V|, |S| fixed", -found, 0.6))
        else:
            checks.append(at_most("exponent of K(E) + |S|, a logarithm aside", found, 1.3))
            checks.append(at_least("exponent of K(E) + |S|, more than 0", found, 0.3))
        checks.append(at_most(f"error beside the corrected bound, over {name}", worst, 1.0))
        table += rows({name: values, "squared error": means})
        line = means[0] * (x / x[0]) ** (1.0 if name == "false" else -1.0)
        data[name] = {"x": x, "errors": errors, "slope one": line}
    return Evidence.of(*checks, table=table, data=data)
