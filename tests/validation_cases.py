"""Problems for the tests of cross-validation, and one whose scores are given."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

FEATURES = ["a", "b"]


def frame_of(nodes=6, per_node=7, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(nodes)]
    frame = pd.DataFrame({"node": np.repeat(names, per_node)})
    frame[FEATURES] = rng.standard_normal((len(frame), 2))
    slope = np.where(frame["node"].isin(names[: nodes // 2]), 1.0, -1.0)
    frame["y"] = slope * frame["a"] + 0.5 * frame["b"] + 0.3 * rng.standard_normal(len(frame))
    frame["hit"] = (frame["y"] + 0.5 * rng.standard_normal(len(frame)) > 0).astype(int)
    frame["count"] = rng.poisson(np.exp(0.3 * frame["y"].clip(-2, 2)))
    frame["kind"] = np.where(frame["y"] < -0.5, "low", np.where(frame["y"] > 0.5, "high", "mid"))
    frame["v"] = rng.uniform(0.5, 2.0, len(frame))
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)  # nodes in no order


def read(frame, target="y", weights="v", **kwargs):
    return gr.NodeData.from_frame(
        frame, node="node", target=target, features=FEATURES, weights=weights, intercept=True, **kwargs
    )


def river(nodes=6):
    return nx.path_graph([f"n{i}" for i in range(nodes)])


def ridge():
    return 1e-2 * gr.NodePenalty(gr.SquaredL2())


@cache
def plain():
    """A fused regression with one Parameter, and its cross-validation over four strengths."""
    lam = gr.Parameter(0.3, name="lam")
    problem = gr.Problem(gr.SquaredLoss(read(frame_of())) + lam * gr.TotalVariation(river(), gr.L2()) + ridge())
    return problem, lam, gr.cross_validate(problem, [0.05, 1.0, 0.2, 5.0], seed=3)


def constructed(costs, sizes=None, strengths=(1.0, 2.0, 3.0, 4.0), on_loss=False, rule="1se"):
    """A cross-validation whose folds have given scores: targets 0, and predictors whose loss is the score."""
    costs = np.asarray(costs, dtype=float)
    sizes = [1] * len(costs) if sizes is None else sizes
    M = sum(sizes) + 2
    data = gr.NodeData.from_arrays(np.ones((M, 1)), np.zeros(M), ["x", "z"] * (M // 2) + ["x"] * (M % 2))
    lam, tv = gr.Parameter(1.0, name="lam"), gr.TotalVariation(nx.path_graph(["x", "z"]), gr.L2())
    model = lam * gr.SquaredLoss(data) + tv if on_loss else gr.SquaredLoss(data) + lam * tv
    edges = np.cumsum([0, *sizes])
    tests = [np.arange(a, b) for a, b in itertools.pairwise(edges)]
    pairs = [(np.setdiff1d(np.arange(M), test), test) for test in tests]
    found = gr.cross_validate(gr.Problem(model), list(strengths), pairs, rule="min", refit=False, gap=1e-2)
    runs = {
        k: replace(found.runs[k], links=np.sqrt(2 * row)[:, None, None] * np.ones((1, size, 1)))
        for k, (row, size) in enumerate(zip(costs, sizes, strict=True))
    }
    return replace(found, runs=runs, rule=rule)
