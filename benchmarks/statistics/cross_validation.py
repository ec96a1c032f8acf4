"""Cross-validation beside the truth: how near the chosen strength is to the best one, and what its scores are worth."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

STRENGTHS = np.geomspace(0.01, 3.0, 12)
DRAWS = 25
NODES, PER_NODE, FEATURES, NOISE = 24, 10, 4, 1.0


@dataclass(frozen=True)
class Draw:
    """Regressions in three groups on a graph with some wrong edges, and their true coefficients."""

    problem: gr.Problem
    parameter: gr.Parameter
    truth: np.ndarray  # (n, d)


def draw(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(3), NODES // 3)
    graph = nx.random_partition_graph([NODES // 3] * 3, 0.5, 0.03, seed=seed)
    truth = rng.normal(size=(3, FEATURES))[group]
    node = np.repeat(np.arange(NODES), PER_NODE)
    X = rng.normal(size=(len(node), FEATURES))
    y = np.einsum("ij,ij->i", X, truth[node]) + NOISE * rng.normal(size=len(node))
    lam = gr.Parameter(1.0, name="lam")
    plain = nx.Graph(graph.edges)
    plain.add_nodes_from(range(NODES))
    model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node)) + lam * gr.TotalVariation(plain, gr.L2())
    return Draw(gr.Problem(model + 1e-3 * gr.NodePenalty(gr.SquaredL2())), lam, truth)


def _risks(drawn: Draw) -> np.ndarray:
    """The mean squared error on new samples at each strength, of fits to all data: noise plus ||w_i - truth_i||^2."""
    path = gr.path(drawn.problem, STRENGTHS, progress=False)
    place = [next(iter(path)).labels.index(label) for label in range(NODES)]
    return NOISE**2 + ((path.coef[:, place] - drawn.truth) ** 2).sum(axis=2).mean(axis=1)


def study_choice() -> pd.DataFrame:
    """Three groups of 8 regressions, 10 samples of 4 features each, a graph with wrong edges: the error on new samples
    at the strength that 5 folds choose, over that at the best of the grid (medians and 90 % quantiles of 25 draws)."""
    ratios: dict[str, list[float]] = {"min": [], "1se": []}
    clusters: dict[str, list[float]] = {"min": [], "1se": []}
    for seed in range(DRAWS):
        drawn = draw(seed)
        risks = _risks(drawn)
        found = gr.cross_validate(drawn.problem, STRENGTHS, seed=seed, refit=False)
        for rule, own in ratios.items():
            k = found.index(rule)
            own.append(risks[k] / risks.min())
            clusters[rule].append(float(np.mean([run.clusters[k] for run in found.runs.values()])))
    rows = {
        rule: {
            "asked": "near 1",
            "found": f"{np.median(own):.3f} (90 %: {np.quantile(own, 0.9):.3f})",
            "clusters (3 in truth)": np.median(clusters[rule]),
        }
        for rule, own in ratios.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("rule")


def study_score() -> pd.DataFrame:
    """The cross-validated mean squared error at a fixed strength beside the true one of fits to all data, and its
    standard error beside the spread of the difference, over 25 draws. (Folds fit to 4/5 of the data: biased upwards.)
    """
    k = 6
    scores, errors, truths = [], [], []
    for seed in range(DRAWS):
        drawn = draw(seed)
        truths.append(_risks(drawn)[k])
        drawn.parameter.value = STRENGTHS[k]
        found = gr.cross_validate(drawn.problem, [STRENGTHS[k]], seed=seed, refit=False, scoring="mse")
        scores.append(found.mean[0])
        errors.append(found.standard_error[0])
    away = np.array(scores) - truths
    rows = {
        "mean score": {"asked": f"{np.mean(truths):.3f}, or somewhat more", "found": f"{np.mean(scores):.3f}"},
        "standard error": {"asked": f"{away.std(ddof=1):.3f}", "found": f"{np.mean(errors):.3f}"},
    }
    return pd.DataFrame.from_dict(rows, orient="index")
