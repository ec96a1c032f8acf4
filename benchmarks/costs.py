"""``python -m benchmarks.clusters cost``: what a round takes on so many ranks, as a model, and how good that is.

    seconds = a + b nodes + c edges + h border + l log2(ranks)

of the largest part, with its own nodes, the edges that touch them and the nodes of others at their ends, is fitted
(without negative numbers, by relative errors) to one and two ranks on meshes and on random graphs. It is judged by more
ranks than there are cores, which take turns. What networks add is taken from their data sheets.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
from scipy.optimize import nnls

Array = Any
NODES = (10_000, 30_000, 100_000)
TERMS = ("a round", "a node", "an edge", "a node on the border", "a doubling of ranks")
LATENCY, BANDWIDTH = 2e-6, 10e9  # seconds a message, bytes a second and rank: a common network of clusters
HUGE = 10_000_000


def cost(asked: argparse.Namespace) -> None:
    """Measure, fit, judge, predict."""
    cores = os.cpu_count() or 1
    known = [_row(asked, graph, nodes, ranks, cores) for graph, nodes, ranks in _cases(asked.ranks or (1, 2))]
    others = [
        _row(asked, graph, nodes, ranks, cores) for graph, nodes, ranks in _cases(asked.check) if nodes > NODES[0]
    ]
    design, seconds = np.array([row[1] for row in known]), np.array([row[2] for row in known])
    fitted = nnls(design / seconds[:, None], np.ones(len(seconds)))[0]
    print("| graph | nodes | ranks | border | ms a round | model |\n|---|---|---|---|---|---|")
    for words, numbers, measured in [*known, *others]:
        print(f"| {words} | {1e3 * measured:.3g} | {1e3 * float(numbers @ fitted):.3g} |")
    print("fitted: " + ", ".join(f"{name} {1e6 * each:.3g} us" for name, each in zip(TERMS, fitted, strict=True)))
    for name, rows in (("the ranks of the fit", known), ("others", others)):
        ratios = [float(numbers @ fitted) / measured for _, numbers, measured in rows]
        if ratios:
            print(
                f"model over measured, {name}: median {np.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"
            )
    _predicted(fitted, asked)


def _cases(ranks: list[int]) -> list[tuple[str, int, int]]:
    return [(graph, nodes, many) for graph in ("band", "random") for nodes in NODES for many in ranks]


def _row(asked: argparse.Namespace, graph: str, nodes: int, ranks: int, cores: int) -> tuple[str, Array, float]:
    from .clusters import heard, sized

    found = heard(ranks, "rounds", *sized(asked, nodes=nodes, graph=graph))
    turns = max(1.0, ranks / cores)
    numbers = np.array([1.0, nodes / ranks, found["edges"], found["border"], np.log2(ranks)])
    words = f"{graph} | {nodes:,} | {ranks} | {found['border']:,}"
    return words, turns * numbers, float(found["seconds"])


def _predicted(fitted: Array, asked: argparse.Namespace) -> None:
    """Ten million nodes, on a mesh and where any node may be anybody's neighbour."""
    print(f"\n{HUGE:,} nodes, {asked.degree * HUGE:,} edges, d = {asked.d}, a network of {1e6 * LATENCY:g} us and "
          f"{BANDWIDTH / 1e9:g} GB/s a rank:")  # fmt: skip
    print("| graph | ranks | nodes of a rank | of others | ms a round | of it network | speed-up |")
    print("|---|---|---|---|---|---|---|")
    alone = float(np.array([1.0, HUGE, asked.degree * HUGE, 0.0, 0.0]) @ fitted)
    for graph in ("mesh", "random"):
        for ranks in (64, 1024):
            own, degree = HUGE / ranks, asked.degree
            if graph == "mesh":
                border, edges, neighbours = 4.0 * np.sqrt(own), degree * own, 8
            else:
                far = (HUGE - own) / HUGE
                border = (HUGE - own) * -np.expm1(-2.0 * degree * own / HUGE)
                edges, neighbours = degree * own * (1.0 + far), ranks - 1
            network = LATENCY * (neighbours + 2.0 * np.log2(ranks)) + 8.0 * asked.d * border / BANDWIDTH
            here = float(np.array([1.0, own, edges, border, np.log2(ranks)]) @ fitted)
            seconds = here + network
            print(f"| {graph} | {ranks} | {own:,.0f} | {border:,.0f} | {1e3 * seconds:.3g} | {1e3 * network:.3g} | "
                  f"{alone / seconds:.0f} |")  # fmt: skip
