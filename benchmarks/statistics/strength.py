"""The largest strength that matters, from both sides, and the strength that the noise asks for."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.theory import strength_max
from graphreg.tuning import noise_strength

CLUSTERS, FEATURES, NODES, SAMPLES = 5, 20, 60, 50  # graph-fused M-estimation, Section 5
GRID = 2.0 ** np.arange(-5.0, 2.0)  # of the strength of the noise
REPLICATIONS = 3


def study_strength_max() -> pd.DataFrame:
    """30 random problems (l1, l2; squared, logistic; trees, several components, cycles; random weights): a point better
    than the consensus at 0.999 times the lower bound, and the gap of the consensus at 1.001 times the upper one."""
    rows = []
    for seed in range(30):
        problem, what = _random(seed)
        found = strength_max(problem)
        better, above = found.better(0.999), found.certificate(1.001)
        rows.append((*what, found.value, found.upper / found.lower - 1.0, better.relative, above.relative_gap))
    names = ["loss", "penalty", "graph", "value", "distance", "decrease", "gap"]
    table = pd.DataFrame(rows, columns=names)
    asked = ["smallest relative decrease at 0.999: > 0", "largest relative gap at 1.001: <= 1e-9", "bounds meet"]
    found = [table["decrease"].min(), table["gap"].max(), table["distance"].max()]
    return pd.DataFrame({"asked": asked, "found": [f"{x:.2g}" for x in found], "problems": len(table)})


def _random(seed: int) -> tuple[gr.Problem, tuple[str, str, str]]:
    rng = np.random.default_rng(seed)
    shape, penalty = ("tree", "components", "grid", "random")[seed % 4], (gr.L1, gr.L2)[seed // 4 % 2]()
    n = int(rng.integers(8, 40))
    graph: Any = {
        "tree": lambda: nx.random_labeled_tree(n, seed=seed),
        "components": lambda: nx.disjoint_union(nx.cycle_graph(n), nx.path_graph(5)),
        "grid": lambda: nx.grid_2d_graph(4, 2 + n // 4),
        "random": lambda: nx.gnp_random_graph(n, 0.3, seed=seed),
    }[shape]()
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = float(10.0 ** rng.uniform(-1, 1))
    kind, samples = (gr.SquaredLoss, gr.LogisticLoss)[seed % 2], {}
    for label in graph.nodes:
        X = rng.normal(size=(40, 3))
        score = X @ rng.normal(size=3) + rng.normal(size=40)
        samples[label] = (X, score if kind is gr.SquaredLoss else (score > 0).astype(float))
    model = kind(gr.NodeData.from_dict(samples)) + gr.TotalVariation(graph, penalty)
    return gr.Problem(model), (kind.__name__, type(penalty).__name__, shape)


def study_noise_strength() -> pd.DataFrame:
    """K = 5 clusters, p = 20, V = 60, n = 50, l1 (graph-fused M-estimation, Section 5): the mean squared error per node
    at the strength of the noise against the best of a grid of multiples, on the true graph and with a tenth of all
    pairs flipped; and the strength over the best one."""
    rows = []
    for corruption, asked in ((0.0, "best .034, there .037; 1"), (0.1, "several times too large (4 to 9)")):
        errors, own, fifth, times = [], [], [], []
        for seed in range(REPLICATIONS):
            lam, problem, truth = _clusters(seed, corruption)
            noise = float(noise_strength(problem, seed=seed))
            along = [_error(problem, lam, factor * noise, truth) for factor in GRID]
            own.append(along[int(np.argmin(np.abs(GRID - 1.0)))])
            fifth.append(_error(problem, lam, 0.2 * noise, truth))
            errors.append(min(along))
            times.append(1.0 / GRID[int(np.argmin(along))])
        rows.append(
            {
                "corruption": corruption,
                "asked": asked,
                "found": f"best {np.mean(errors):.3f}, there {np.mean(own):.3f}; {np.mean(times):.2g}",
                "at a fifth": np.mean(fifth),
            }
        )
    return pd.DataFrame(rows)


def _clusters(seed: int, corruption: float) -> tuple[gr.Parameter, gr.Problem, Any]:
    rng = np.random.default_rng(seed)
    member = np.arange(NODES) % CLUSTERS
    centers = rng.normal(size=(CLUSTERS, FEATURES)) * FEATURES**-0.25
    truth = centers[member]
    same = member[:, None] == member[None, :]
    flip = rng.random((NODES, NODES)) < corruption
    adjacency = np.triu(same ^ flip, 1)
    graph = nx.from_numpy_array((adjacency | adjacency.T).astype(int))
    samples = {}
    for i in range(NODES):
        X = rng.normal(size=(SAMPLES, FEATURES))
        samples[i] = (X, X @ truth[i] + rng.normal(size=SAMPLES))
    lam = gr.Parameter(1.0)
    model = gr.SquaredLoss(gr.NodeData.from_dict(samples)) + lam * gr.TotalVariation(graph, gr.L1())
    return lam, gr.Problem(model), truth


def _error(problem: gr.Problem, lam: gr.Parameter, strength: float, truth: Any) -> float:
    lam.value = strength
    found = problem.solve(gr.ADMM(), gap=1e-4).coef
    return float(((found - truth) ** 2).sum() / len(truth))
