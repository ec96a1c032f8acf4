"""Graphs and bounds: sparseness of networks, the corrected Theorem 3.1 beside the printed one, the regimes of fidelity,
the rate in the number of samples, and how tight the bounds of the compatibility factor are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr


def _torus(k: int) -> Callable[[int], nx.Graph]:
    return lambda side: nx.grid_graph([side] * k, periodic=True)


def _random(K: int, seed: int, p: float) -> nx.Graph:
    """A connected Erdos-Renyi graph."""
    graphs = (nx.fast_gnp_random_graph(K, p, seed=1000 * seed + k) for k in range(1000))
    return next(graph for graph in graphs if nx.is_connected(graph))


def study_sparseness_of_networks() -> pd.DataFrame:
    """The exponent q of 1 - rho ~ K^-q, lazy Metropolis matrices (Table 1 of the slides, which print 2 for the star),
    and the order of K that Theorem 6 allows. Of random graphs five are drawn per size."""
    sizes = (100, 200, 400, 800, 1600)
    squares, cubes = (10, 14, 20, 28, 40), (4, 6, 8, 10, 12)
    drawn = [(K, seed) for K in (50, 100, 200, 400, 800) for seed in range(5)]
    families: list[tuple[str, str, Callable[[Any], nx.Graph], Any]] = [
        ("ring", "2", nx.cycle_graph, sizes),
        ("2-D grid", "1", lambda side: nx.grid_2d_graph(side, side), squares),
        ("2-D torus", "1", _torus(2), squares),
        ("3-D torus", "2/3", _torus(3), cubes),
        ("star", "1 (printed: 2)", lambda K: nx.star_graph(K - 1), sizes),
        ("random regular, degree 4", "0", lambda it: nx.random_regular_graph(4, it[0], seed=it[1]), drawn),
        ("random regular, degree 8", "0", lambda it: nx.random_regular_graph(8, it[0], seed=it[1]), drawn),
        ("Erdos-Renyi, mean degree K / 2", "0", lambda it: _random(*it, 0.5), drawn),
        ("Erdos-Renyi, mean degree 4 log K", "0", lambda it: _random(*it, 4 * np.log(it[0]) / it[0]), drawn),
        ("Erdos-Renyi, mean degree log K", "0, slowly", lambda it: _random(*it, np.log(it[0]) / it[0]), drawn),
    ]
    rows: list[dict[str, Any]] = []
    for name, asked, family, these in families:
        found = gr.theory.sparseness_exponent(family, these)
        order = gr.theory.largest_network(1000, exponent=max(float(found), 0.0)).order
        last = found.table.iloc[-1]
        rows.append(
            {"network": name, "asked": asked, "found": f"{float(found):.2f} +- {found.std_error:.2f}"}
            | {"K": int(last["nodes"]), "gap there": last["gap"], "K = o(T^...)": round(order, 3)}
        )
    return pd.DataFrame(rows)


def _instance(seed: int, kind: str) -> tuple[gr.Problem, np.ndarray, gr.Parameter]:
    """A random graph with weights, nodes in up to three clusters, and a problem whose strength may be changed."""
    rng = np.random.default_rng(seed)
    n, d, m = int(rng.integers(3, 20)), int(rng.integers(1, 5)), int(rng.integers(8, 40))
    graph = nx.gnm_random_graph(n, int(rng.integers(2, 3 * n)), seed=seed)
    nx.set_edge_attributes(graph, {edge: float(rng.uniform(0.3, 3.0)) for edge in graph.edges}, "weight")
    w = float(rng.choice([0.3, 1.0, 5.0])) * rng.normal(size=(3, d))[rng.integers(0, 3, n)]
    X, node, strength = rng.normal(size=(n * m, d)), np.repeat(np.arange(n), m), gr.Parameter(1.0)
    eta = np.einsum("ij,ij->i", X, w[node])
    tie = strength * gr.TotalVariation(graph, gr.L1() if seed % 2 else gr.L2())
    if kind == "squared":
        return (
            gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, eta + rng.normal(size=n * m), node)) + tie),
            w,
            strength,
        )
    y = (rng.random(n * m) < 1 / (1 + np.exp(-eta))).astype(int)
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, node)) + gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(loss + tie), w, strength


def study_corrected_theorem_3_1() -> pd.DataFrame:
    """Random graphs, weights, clusters, strengths from the required one to ten times it: the squared error of the
    certified optimum against the bound, l1 and l2 alike."""
    rows: list[dict[str, Any]] = []
    for kind in ("squared", "logistic"):
        ratios: list[float] = []
        for seed in range(150):
            problem, w, strength = _instance(seed, kind)
            strength.value = gr.theory.error_bound(problem, w).required * (1.0, 2.0, 10.0)[seed % 3]
            found = gr.theory.error_bound(problem, w)
            if found.holds:
                ratios.append(float(((problem.solve(gap=1e-8).coef - w) ** 2).sum() / len(w) / found.bound))
        rows.append(
            {"losses": kind, "asked": "error <= bound", "found": f"{sum(r > 1 for r in ratios)} violations"}
            | {"instances": len(ratios), "largest ratio": max(ratios), "median ratio": float(np.median(ratios))}
        )
    return pd.DataFrame(rows)


def study_printed_theorem_3_1() -> pd.DataFrame:
    """(6) as printed, whose strength is sqrt(|V|) times too large, on paths whose nodes alternate between two values:
    the error is beyond the bound, more so the longer the path. With the strength R*{(D^+)'Psi} / |V| it is not."""
    rows: list[dict[str, Any]] = []
    for n in (6, 12, 25, 50, 100):
        rng = np.random.default_rng(1)
        w = 50.0 * (np.arange(n) % 2)[:, None]
        data = gr.NodeData.from_arrays(None, w + 0.2 * rng.normal(size=(n, 1)), range(n))
        strength = gr.Parameter(1.0)
        tie = strength * gr.TotalVariation(nx.path_graph(n), gr.L1())
        problem = gr.Problem(gr.MeanLoss(data, scale=1 / n) + tie)
        first = gr.theory.error_bound(problem, w)
        lam, rho = np.sqrt(n) * first.required, np.sqrt(n) * first.projection
        printed = 2 * (rho**2 + 4 * len(first.false_edges) / first.compatibility.value * lam**2)
        for name, value in (("as printed", lam), ("corrected", first.required)):
            strength.value = float(value)
            error = float(((problem.solve().coef - w) ** 2).mean())
            bound = printed if name == "as printed" else gr.theory.error_bound(problem, w).theorem
            asked = (
                "error > bound" if name == "as printed" and n > 6 else "error <= bound" if name == "corrected" else ""
            )
            found = f"{error:.3g} {'>' if error > bound else '<='} {bound:.3g}"
            rows.append({"nodes": n, "theorem": name, "asked": asked, "found": found, "error / bound": error / bound})
    return pd.DataFrame(rows)


def _errors(graph: nx.Graph, w: np.ndarray, m: int, replications: int) -> np.ndarray:
    """The squared errors per node at the required strength of each replication, means of m samples."""
    n, d = w.shape
    out: list[float] = []
    for seed in range(replications):
        drawn = w[:, None] + np.random.default_rng(seed).normal(size=(n, m, d))
        if not graph.edges:
            out.append(float(((drawn.mean(axis=1) - w) ** 2).sum() / n))
            continue
        data = gr.NodeData.from_arrays(None, drawn.reshape(n * m, d), np.repeat(range(n), m))
        strength = gr.Parameter(1.0)
        problem = gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L2()))
        strength.value = gr.theory.error_bound(problem, w).required
        out.append(float(((problem.solve().coef - w) ** 2).sum() / n))
    return np.array(out)


def study_regimes_of_fidelity() -> pd.DataFrame:
    """24 nodes in 3 clusters, 20 samples each, means of 3 features: squared error against local estimates. The rate
    says (K(E) + |S|) / |V| up to constants; exact is K(E_0) / |V| for cliques and 1 without edges."""
    n, rows = 24, []
    cluster = np.arange(n) % 3
    w = 2.0 * np.random.default_rng(5).normal(size=(3, 3))[cluster]
    true = [(a, b) for a in range(n) for b in range(a) if cluster[a] == cluster[b]]
    edges = {"cliques": true, "cliques, three false edges": [*true, (0, 1), (1, 2), (0, 2)], "no edges": []}
    edges["complete"] = list(nx.complete_graph(n).edges)
    local = 3 / 20
    for name, these in edges.items():
        graph = nx.empty_graph(n)
        graph.add_edges_from(these)
        found = gr.theory.graph_fidelity(graph, cluster)
        error = float(_errors(graph, w, 20, 40).mean()) / local
        asked = {"cliques": "0.125", "no edges": "1", "complete": "> 1"}.get(name, "between 0.125 and 1")
        rows.append(
            {"graph": name, "asked": asked, "found": round(error, 3), "fidelity": found.value}
            | {"effective / |V|": found.parameters / n, "regime": found.regime.split(":")[0]}
        )
    return pd.DataFrame(rows)


def study_rate_in_samples() -> pd.DataFrame:
    """The squared error at the required strength falls like 1 / n with the samples of a node (Theorem 3.2): the slope
    of log(error) against log(n), for n = 10 to 160, two clusters of ten nodes on a path."""
    w = np.repeat([[0.0, 0.0], [3.0, -3.0]], 10, axis=0)
    n, replications = np.array([10, 20, 40, 80, 160]), 120
    errors = [_errors(nx.path_graph(20), w, int(m), replications) for m in n]
    x = np.repeat(np.log(n), replications)
    (slope, _), covariance = np.polyfit(x, np.log(np.concatenate(errors)), 1, cov="unscaled")
    spread = float(np.std(np.concatenate([np.log(each) - np.log(each).mean() for each in errors])))
    means = [round(float(each.mean()), 5) for each in errors]
    found = f"{slope:.3f} +- {spread * np.sqrt(covariance[0, 0]):.3f}"
    return pd.DataFrame([{"asked": "-1", "found": found, "mean errors": means}])


def study_compatibility() -> pd.DataFrame:
    """Bounds of kappa_T over 60 random graphs of 8 nodes, T all edges, against the best that is known: how often they
    fail and how far they fall short."""
    rows: list[dict[str, Any]] = []
    for norm, p in (("l1", 1), ("l1", 3), ("l1", 10), ("l2", 3)):
        found = []
        for seed in range(60):
            graph = nx.gnm_random_graph(8, 7 + seed % 12, seed=seed)
            found.append(gr.theory.compatibility_factor(graph, list(graph.edges), norm, p))
        for name in ("as printed", "corrected", "degrees", "best"):
            ratios = np.array([each.bounds.loc[name, "value"] / each.upper for each in found])
            exact = sum(each.exact for each in found)
            asked = "fails" if name == "as printed" and norm == "l1" and p >= 3 else "a lower bound"
            said = f"{int((ratios > 1 + 1e-9).sum())} of 60 beyond kappa"
            rows.append({"norm": norm, "p": p, "bound": name, "asked": asked, "found": said})
            rows[-1] |= {"median share of kappa": float(np.median(ratios)), "exact": exact}
    return pd.DataFrame(rows)
