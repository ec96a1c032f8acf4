"""Warm starts: rounds and CPU seconds from nothing and from the answer of a problem that is nearly the same.

    python -m benchmarks.again [--seeds 3] [--nodes 200]

The problem before: the answer certified to 1e-6 by the same method. The problem now: targets with 1% of noise, one node
more, or another strength; solved cold, and with ``start=`` the answer before.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.methods import AbstractMethod

METHODS = (gr.PrimalDual(), gr.ADMM(), gr.FedADMM(), gr.Exact())
STRENGTHS = (1.1, 1.5, 2.0)
D = 3
LOSSES: dict[str, Callable[[gr.NodeData], gr.Model]] = {
    "squared, L2": lambda data: gr.Model.of(gr.SquaredLoss(data)),
    "squared, L1": lambda data: gr.Model.of(gr.SquaredLoss(data)),
    "logistic, L2": lambda data: gr.LogisticLoss(data) + 1e-2 * gr.NodePenalty(gr.SquaredL2()),
    "quantile, L1": lambda data: gr.Model.of(gr.QuantileLoss(data, tau=0.7)),
    "squared, SquaredL2": lambda data: gr.Model.of(gr.SquaredLoss(data)),
}


def problem(kind: str, seed: int, n: int, *, noise: float = 0.0, more: int = 0, strength: float = 1.0) -> gr.Problem:
    """One of the problems; what varies leaves all else as it is."""
    rng = np.random.default_rng(seed)
    graph = nx.random_geometric_graph(n + 1, 1.6 / np.sqrt(n), seed=seed)
    truth = rng.standard_normal((4, D))
    samples: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for i in graph:
        x, y = graph.nodes[i]["pos"]
        X = rng.standard_normal((10, D))
        target = X @ truth[2 * int(x > 0.5) + int(y > 0.5)] + 0.5 * rng.standard_normal(10)
        moved = target + noise * np.sqrt(np.mean(target**2)) * np.random.default_rng((seed, i)).standard_normal(10)
        samples[i] = (X, (moved > 0).astype(float) if kind.startswith("logistic") else moved)
    kept = range(n + more)
    data = gr.NodeData.from_dict({i: samples[i] for i in kept})
    penalty = getattr(gr, kind.partition(", ")[2])()
    return gr.Problem(LOSSES[kind](data) + 0.1 * strength * gr.TotalVariation(graph.subgraph(kept), penalty))


def cases(kind: str, seed: int, n: int) -> dict[str, gr.Problem]:
    changed = {"targets + 1%": problem(kind, seed, n, noise=0.01), "a node more": problem(kind, seed, n, more=1)}
    return changed | {f"strength x {s:g}": problem(kind, seed, n, strength=s) for s in STRENGTHS}


def timed(now: gr.Problem, method: AbstractMethod, start: gr.Solution | None) -> tuple[int, float, str]:
    """Rounds, CPU seconds and status of a solve."""
    began = time.process_time()
    found = now.solve(method, start=start, progress=False, on_failure="return")
    return found.rounds, time.process_time() - began, found.status


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=200)
    asked = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    for kind in LOSSES:
        for method in METHODS:
            for seed in range(asked.seeds):
                before = problem(kind, seed, asked.nodes)
                if method.missing(before.form):
                    continue
                old = before.solve(method, progress=False, on_failure="return")
                for case, now in cases(kind, seed, asked.nodes).items():
                    cold, warm = timed(now, method, None), timed(now, method, old)
                    rows.append((kind, method.name, case, cold[0], warm[0], cold[1], warm[1], warm[2] == "certified"))
    names = ["problem", "method", "change", "rounds cold", "rounds warm", "seconds cold", "seconds warm", "certified"]
    frame = pd.DataFrame(rows, columns=names)
    for by, how in ((names[:3], "median"), (names[1:3], "sum")):
        print(f"{how} by {', '.join(by)}")
        print(frame.pivot_table(index=by, values=names[3:], aggfunc=how, sort=False).to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
