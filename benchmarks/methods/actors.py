"""Isolated actors: the iterates of whole arrays; what faults cost, and who ends at the optimum under them."""

from __future__ import annotations

import time
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import MethodWarning
from graphreg.methods import METHODS, AbstractIteration
from graphreg.methods.tolerance import ToleratesLostMessages

SEEDS = range(0, 500, 21)
MOST_NODES = 20
ROUNDS = 600
KINDS = ("squared + L2", "logistic + L2", "squared + L1 of two features", "consensus", "hierarchy")


def problem(kind: str, seed: int, n: int = 12, m: int = 5) -> gr.Problem:
    """n nodes in three groups, with three features and m samples each."""
    rng = np.random.default_rng([seed, n])
    graph, node = nx.connected_watts_strogatz_graph(n, 4, 0.3, seed=seed), np.repeat(range(n), m)
    X, truth = rng.standard_normal((n * m, 3)), np.repeat(rng.standard_normal((3, 3)), n // 3, axis=0)
    y = np.einsum("ij,ij->i", X, truth[node]) + 0.3 * rng.standard_normal(n * m)
    data = gr.NodeData.from_arrays(X, y, node)
    if kind.startswith("logistic"):
        loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, (y > 0).astype(int), node))
        return gr.Problem(loss + 0.1 * gr.TotalVariation(graph, gr.L2()) + 1e-2 * gr.NodePenalty(gr.SquaredL2()))
    clusters = {f"c{k}": list(range(k * n // 3, (k + 1) * n // 3)) for k in range(3)}
    edges: Any = {
        "squared + L2": 0.2 * gr.TotalVariation(graph, gr.L2()),
        "squared + L1 of two features": 0.2 * gr.TotalVariation(graph, gr.L1(), features=["x0", "x2"]),
        "consensus": gr.Consensus(graph),
        "hierarchy": 1.0 * gr.Hierarchy(clusters, (1.0, 0.3)),
    }[kind]
    return gr.Problem(gr.SquaredLoss(data) + edges)


def study_the_same_iterates() -> pd.DataFrame:
    """The largest deviation of the parameters after 40 rounds from those on whole arrays, relative to the largest
    parameter on the way, over random problems of at most 20 nodes and one of each kind of the other studies; and on how
    many the ledgers of the method agree."""
    rows: list[dict[str, Any]] = []
    drawn = [p for p in (random_problem(seed).problem for seed in SEEDS) if p.form.n <= MOST_NODES]
    drawn += [problem(kind, seed) for kind in KINDS for seed in (0, 1)]
    for method in METHODS:
        if not isinstance(method, AbstractIteration) or method.central:  # all data in one place
            continue
        worst, ledgers, count, seconds = 0.0, 0, 0, 0.0
        for each in [p for p in drawn if not method.missing(p.form)]:
            options: dict[str, Any] = {"gap": 0, "seed": 1, "on_failure": "return"}
            plain = _unpolished(method)
            path = [each.solve(plain, rounds=t, **options) for t in (5, 40)]
            began = time.perf_counter()
            actors = each.solve(plain, rounds=40, engine=gr.Actors(), **options)
            seconds += time.perf_counter() - began
            arrays, size = path[-1], max(np.abs(run.certificate.w).max() for run in path)
            worst = max(worst, float(np.abs(arrays.certificate.w - actors.certificate.w).max() / max(size, 1e-300)))
            sent = [
                (s.ledger.messages[p], s.ledger.bytes[p]) for s in (arrays, actors) for p in ("method", "adaptation")
            ]
            ledgers += sent[:2] == sent[2:]
            count += 1
        rows.append(
            {
                "method": method.name,
                "problems": count,
                "asked": "<= 1e-12",
                "found": f"{worst:.1e}",
                "ledgers agree": f"{ledgers} of {count}",
                "ms per round": round(1e3 * seconds / max(40 * count, 1), 2),
            }
        )
    return pd.DataFrame(rows)


def study_a_fifth_of_all_messages_lost() -> pd.DataFrame:
    """The certified relative gap after 600 rounds (FedADMM 1500), two seeds each, where 20% are lost, and where nothing
    is; ADMM does not tolerate loss (the copies of a flow at the two ends differ for ever)."""
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        for seed in (0, 1):
            each = problem(kind, seed)
            for method in _under_faults(kind):
                if method.missing(each.form):
                    continue
                gaps = [_gap(each, method, seed, faults) for faults in (None, gr.Faults(drop=0.2))]
                asked = "<= 1e-8" if isinstance(method, ToleratesLostMessages) else "none"
                rows.append(
                    {
                        "problem": f"{kind}, {seed}",
                        "method": method.name,
                        "asked": asked,
                        "found": f"{gaps[1]:.1e}",
                        "nothing lost": f"{gaps[0]:.1e}",
                    }
                )
    return pd.DataFrame(rows)


def study_the_cost_of_resending() -> pd.DataFrame:
    """Messages per message of a run without loss: 1/(1-p)^2 copies and 1/(1-p) acknowledgements are expected, and
    the same iterates."""
    rows: list[dict[str, Any]] = []
    each = problem("squared + L2", 0)
    method = gr.PrimalDual(balance=1.0)
    plain = each.solve(method, gap=0, rounds=100, seed=1, engine=gr.Actors())
    for p in (0.05, 0.2, 0.5):
        again = each.solve(method, gap=0, rounds=100, seed=1, engine=gr.Actors(faults=gr.Faults(drop=p, resend=True)))
        rows.append(
            {
                "lost": p,
                "asked": round(1 / (1 - p) ** 2 + 1 / (1 - p), 3),
                "found": round(again.ledger.messages["method"] / plain.ledger.messages["method"], 3),
                "bytes": round(again.ledger.bytes["method"] / plain.ledger.bytes["method"], 3),
                "deviation": float(np.abs(again.coef - plain.coef).max()),
            }
        )
    return pd.DataFrame(rows)


def study_crashes() -> pd.DataFrame:
    """The certified relative gap after 600 rounds where every node crashes with a probability per round and is away
    for some rounds, with 20% of the messages lost besides."""
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        for crash, down in ((0.01, 4), (0.05, 4), (0.01, 20)):
            each, faults = problem(kind, 0), gr.Faults(drop=0.2, crash=crash, down=down)
            run = each.solve(_primal_dual(kind), gap=0, rounds=ROUNDS, seed=1, engine=gr.Actors(faults=faults))
            away = run.ledger.by_node()["away"].mean() / run.rounds
            rows.append(
                {
                    "problem": kind,
                    "crash": crash,
                    "down": down,
                    "away": f"{away:.0%}",
                    "asked": "<= 1e-8",
                    "found": f"{run.certificate.relative_gap:.1e}",
                }
            )
    return pd.DataFrame(rows)


def _primal_dual(kind: str) -> gr.PrimalDual:
    """With a balance of the size of 1 / curvature."""
    return gr.PrimalDual(balance=10.0 if kind.startswith("logistic") else 1.0)


def _under_faults(kind: str) -> list[AbstractIteration]:
    methods: list[AbstractIteration] = [_primal_dual(kind), gr.ADMM(rho=1.0)]
    return [*methods, gr.FedADMM()]


def _unpolished(method: AbstractIteration) -> AbstractIteration:
    return type(method)(polish=False) if isinstance(method, (gr.PrimalDual, gr.ADMM)) else method


def _sent(run: gr.Solution) -> list[tuple[int, int]]:
    return [(run.ledger.messages[what], run.ledger.bytes[what]) for what in ("method", "adaptation")]


def _gap(each: gr.Problem, method: AbstractIteration, seed: int, faults: gr.Faults | None) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        run = each.solve(
            method,
            gap=0,
            rounds=1500 if isinstance(method, gr.FedADMM) else ROUNDS,
            seed=seed,
            on_failure="return",
            engine=gr.Actors(faults=faults),
        )
    return run.certificate.relative_gap
