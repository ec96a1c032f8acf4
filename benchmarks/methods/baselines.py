"""Baselines and subgradient descent: what each fits, and how fast."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.distributed import InProcess
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.view import LocalView

Array = np.ndarray[Any, np.dtype[Any]]


def _two_clusters(n: int, m: int, d: int, noise: float, seed: int = 0) -> tuple[gr.NodeData, Array]:
    """Linear data of two clusters of nodes, and the coefficients of every node."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((2, d)) < 0.5) * 0.5
    each = truth[(np.arange(n) >= n // 2).astype(int)]
    node = np.repeat(np.arange(n), m)
    X = rng.standard_normal((n * m, d))
    return gr.NodeData.from_arrays(X, (X * each[node]).sum(axis=1) + noise * rng.standard_normal(n * m), node), each


def _table(rows: list[tuple[str, Any, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "asked", "found"]).set_index("what")


def study_what_they_fit() -> pd.DataFrame:
    """Each against the exact solution of what it minimises, as the user would write it: the relative difference of the
    objectives, and the certified gap of its own problem."""
    n = 20
    data, _ = _two_clusters(n, 15, 4, 0.3)
    loss, ridge = gr.LogisticLoss(_classes(data)), 0.05 * gr.NodePenalty(gr.SquaredL2())
    cluster: dict[Hashable, int] = {i: int(i >= n // 2) for i in range(n)}
    halves = nx.disjoint_union(nx.star_graph(n // 2 - 1), nx.star_graph(n // 2 - 1))
    written = {
        gr.LocalOnly(): loss + ridge,
        gr.Pooled(): loss + ridge + gr.Consensus(nx.star_graph(n - 1)),
        gr.FedAvg(): loss + ridge + gr.Consensus(nx.star_graph(n - 1)),
        gr.PFedMe(0.5): loss + ridge + gr.Hierarchy({"all": list(range(n))}, (0.5, 1.0)),
    }
    model = gr.Problem(loss + ridge + 0.1 * gr.TotalVariation(nx.cycle_graph(n), gr.L2()))
    pairs = [*written.items(), (gr.ClusteredFedAvg(cluster), loss + ridge + gr.TotalVariation(halves, gr.Zero()))]
    rows: list[tuple[str, Any, Any]] = []
    for method, other in pairs:
        optimum, run = gr.Problem(other).solve(gap=1e-10), model.solve(method, gap=1e-8)
        assert run.own is not None
        rows.append((f"{method.name}: objective", "<= 1e-8", run.own.primal / optimum.objective - 1.0))
        rows.append((f"{method.name}: own gap, in {run.rounds} rounds", "<= 1e-8", run.own.relative_gap))
    return _table(rows)


def _classes(data: gr.NodeData) -> gr.NodeData:
    rng = np.random.default_rng(1)
    y = np.asarray(data.y) + rng.logistic(size=data.n_samples) > 0
    return gr.NodeData.from_arrays(data.X, y.astype(int), data.node)


def study_local_steps() -> pd.DataFrame:
    """FedAvg with 5 local steps ends off the pooled fit by a distance in proportion to its step."""
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(12), 20)
    X = rng.standard_normal((240, 3)) * (1.0 + (node % 3)[:, None])
    y = (X * np.array([[1.0, 2.0, -1.0], [-1.0, 0.5, 2.0]])[node % 2]).sum(axis=1)
    problem = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node)))
    pooled = problem.solve(gr.Pooled(), gap=1e-12).coef[0]
    steps = np.array([0.02, 0.01, 0.005, 0.0025])
    runs = [problem.solve(gr.FedAvg(local_steps=5, step_size=eta), gap=0, rounds=4000) for eta in steps]
    far = [float(np.linalg.norm(run.coef[0] - pooled)) for run in runs]
    slope = float(np.polyfit(np.log(steps), np.log(far), 1)[0])
    one = problem.solve(gr.FedAvg(step_size=0.01), gap=0, rounds=4000).coef[0]
    rows = [(f"distance, step {eta}", "> 0", each) for eta, each in zip(steps, far, strict=True)]
    rows.append(("slope of log distance over log step", "1", slope))
    return _table([*rows, ("distance, one local step", "0", float(np.linalg.norm(one - pooled)))])


def study_table_one() -> pd.DataFrame:
    """Table I of GTV minimisation (200 nodes, d = 100, m = 10): the mean squared error of the coefficients.

    Pooled and FedAvg end near ||w_1 - w_2||^2 / 4, IFCA from random starts at the oracle's error.
    """
    data, truth = _two_clusters(200, 10, 100, 1e-3)
    problem = gr.Problem(gr.SquaredLoss(data))
    quarter = float(((truth[0] - truth[-1]) ** 2).sum() / 4)
    cluster: dict[Hashable, int] = {i: int(i >= 100) for i in range(200)}
    rows: list[tuple[str, Any, Any]] = []
    for method in (gr.Pooled(), gr.FedAvg()):
        run = problem.solve(method, gap=1e-8, rounds=3000, seed=0)
        rows.append((method.name, f"about {quarter:.3f}", float(((run.coef - truth) ** 2).sum(axis=1).mean())))
    for starts in (1, 10):
        run = problem.solve(gr.IFCA(2, starts=starts), gap=1e-8, rounds=3000, seed=0)
        error = float(((run.coef - truth) ** 2).sum(axis=1).mean())
        rows.append((f"IFCA, {starts} random starts, {run.rounds} rounds", "1e-7", error))
    oracle = problem.solve(gr.ClusteredFedAvg(cluster), gap=1e-8, rounds=3000, seed=0)
    rows.append(("ClusteredFedAvg", "1e-7", float(((oracle.coef - truth) ** 2).sum(axis=1).mean())))
    return _table(rows)


def study_stochastic_subgradient_descent() -> pd.DataFrame:
    """Strongly convex and smooth, one sample per node and round, default steps: the slope of log mean ||w - w*||^2
    over log t, from 20 seeds and 100 to 10,000 rounds, asked to be -1; of the suffix average too."""
    data, _ = _two_clusters(10, 20, 3, 1.0)
    edges = gr.TotalVariation(nx.cycle_graph(10), gr.SquaredL2())
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * edges + 0.3 * gr.NodePenalty(gr.SquaredL2()))
    best = problem.solve(gap=1e-10).coef
    rounds = np.unique(np.logspace(2, 4, 9).astype(int))
    rows: list[tuple[str, Any, Any]] = []
    for average in (None, "suffix"):
        method, total = gr.SubgradientDescent(batch=1, average=average), np.zeros(len(rounds))
        for seed in range(20):
            view = LocalView(problem.form, InProcess(Ledger(arcs_of(problem.form), problem.form.labels)), seed)
            state, k = method.init(view, None), 0
            for t in range(1, int(rounds[-1]) + 1):
                state = method.step(state)
                if t == rounds[k]:
                    total[k] += float(((method.point(state)[0] - best) ** 2).sum()) / 20
                    k += 1
        slope = float(np.polyfit(np.log(rounds), np.log(total), 1)[0])
        rows.append((f"slope, average={average}", "-1", slope))
        rows.append((f"mean squared distance at 10,000 rounds, average={average}", "", total[-1]))
    return _table(rows)
